# Copyright (C) The nginx-dsa authors
#
# The tools of the Responses API that chat completions does not have: tools in
# namespaces, custom tools, tools that OpenAI's server would run itself.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('responses-tools');
my $engine = DSA::Test->new('responses-tools-engine');
my $server = $t->start_redis();
my $fake = $t->start_fake();

$t->start_nginx(redis => 'ttl=1h');

my $uri = '/v1/responses';
my $false = JSON::PP::false;
my $object = { type => 'object' };

wait_until(sub { $t->get("$uri/resp_" . '0' x 32)->{status} == 404 }, 20,
           'Redis');

sub function { { type => 'function', name => $_[0], parameters => $object } }
sub strict { return { %{ $_[0] }, strict => $false } }
sub space { my ($name, @tools) = @_;
            return { type => 'namespace', name => $name,
                     description => "$name.", tools => \@tools } }
sub custom { my ($name, @format) = @_;
             return { type => 'custom', name => $name, description => "$name?",
                      @format ? (format => $format[0]) : () } }
sub body { my ($lines, %more) = @_;
           return { model => 'deepseek-chat', input => "!fake\n$lines",
                    %more } }

# The last request that the engine got: its prompt, and its grammar.

sub submit {
    my $line = (submitted($fake))[-1];
    utf8::decode($line);
    my ($prompt, $grammar) = $line =~ / prompt=(.*?)(?: grammar=(.*))?$/;

    return ($prompt, $grammar);
}

# The tools of a prompt, one JSON object a line.

sub offered {
    my ($prompt) = submit();
    my ($list) = $prompt =~ m{<functions>\\n(.*?)\\n</functions>};

    return map { json_decode(do { utf8::encode($_); $_ }) }
               split /\\n(?=\{"name")/, $list // '';
}

# An answer as an object, after it was compared with the stream's.

sub answer {
    my ($name, $body) = @_;

    my $r = $t->post($uri, $body);
    is($r->{status}, 200, "$name: answered") or diag($r->{body});

    my $s = $t->connect;
    $s->send_request(POST => $uri, body => json_encode({ %$body,
                                       stream => JSON::PP::true }));
    $s->read_head;
    my @json = map { $_->{json} || () } $s->events;
    my %text;

    for (grep { $_->{type} =~ /\.delta$/ } @json) {
        $text{ $_->{item_id} } .= $_->{delta};
    }

    for my $item (@{ $json[-1]{response}{output} }) {
        next if $item->{type} !~ /call$/;

        my $key = exists $item->{input} ? 'input' : 'arguments';
        my $kind = $key eq 'input' ? 'custom_tool_call_input'
                                   : 'function_call_arguments';
        my ($done) = grep { $_->{type} eq "response.$kind.done"
                            && $_->{item_id} eq $item->{id} } @json;
        is($text{ $item->{id} } // '', $item->{$key}, "$name: deltas");
        is($done->{$key}, $item->{$key}, "$name: the whole text");
    }

    my @items = map { { map { $_->{type} => { %$_, id => 0, call_id => 0 } }
                            @{ $_->{output} } } }
                    $r->{json}, $json[-1]{response};
    is_deeply($items[1], $items[0], "$name: streamed as unstreamed");

    return $r->{json};
}


# Namespaces: the same name in two of them and in none.

my @tools = (function('close'),
             space('files', function('close'), function('open')),
             space('mcp__db', function('open')));
my $o = answer('namespace', body(
    tool_calls([ 'files.open', 'path', 'true', 'a b' ],
               [ 'close', 'x', 'false', '1' ],
               [ 'mcp__db.open', 'x', 'true', 'é"\\\\' ]),
    tools => \@tools));

is_deeply([ map { $_->{name} } offered() ],
          [ qw/ close files.close files.open mcp__db.open / ],
          'the model reads one name for both');
is_deeply([ map { $_->{description} } offered() ],
          [ undef, 'files.', undef, 'mcp__db.' ],
          'the first tool of a namespace has its description');
is_deeply([ map { [ @$_{qw/ type namespace name arguments /} ] }
                @{ $o->{output} } ],
          [ [ 'function_call', 'files', 'open', '{"path": "a b"}' ],
            [ 'function_call', undef, 'close', '{"x": 1}' ],
            [ 'function_call', 'mcp__db', 'open', '{"x": "é\\"\\\\"}' ] ],
          'the client reads two');
is_deeply($o->{tools}, [ strict($tools[0]), @tools[1, 2] ],
          'the answer has the tools of the request');

my @results = map { { type => 'function_call_output', output => 'ok',
                      call_id => $_->{call_id} } } @{ $o->{output} };

$t->post($uri, body('t end', previous_response_id => $o->{id},
                    tools => \@tools,
                    input => [ @results, { role => 'user',
                                           content => "!fake\nt end" } ]));
my ($stored) = submit();
my $question = { role => 'user', content => body(
    tool_calls([ 'files.open', 'path', 'true', 'a b' ],
               [ 'close', 'x', 'false', '1' ],
               [ 'mcp__db.open', 'x', 'true', 'é"\\\\' ]))->{input} };
$t->post($uri, body('', tools => \@tools, store => $false,
                    input => [ $question, @{ $o->{output} }, @results,
                               { role => 'user',
                                 content => "!fake\nt end" } ]));
my ($sent) = submit();
like($stored, qr/invoke name="files\.open"/, 'history has the name again');
is($sent, $stored, 'the same if the client sends the calls');

my $items = $t->get("$uri/" . $t->post($uri, body('t x', input => [
    { type => 'function_call', call_id => 'c', name => 'open',
      namespace => 'files', arguments => '{}' },
    { type => 'function_call_output', call_id => 'c', output => 'r' } ]))
        ->{json}{id} . '/input_items?order=asc')->{json}{data};
is_deeply([ @{ $items->[0] }{qw/ namespace name /} ], [ 'files', 'open' ],
          'it is listed with its namespace');

$t->post($uri, body('t x', tools => [ space('files', {
                    %{ function('close') }, strict => JSON::PP::true,
                    parameters => { type => 'object', properties => {},
                                    required => [],
                                    additionalProperties => $false } }) ],
                    tool_choice => { type => 'function', name => 'close',
                                     namespace => 'files' }));
like((submit())[1], qr/"name":"files\.close"/, 'it can be required');

# Tools that tool search would offer later are offered at once.

$t->post($uri, body('t x', tools => [ { type => 'tool_search' },
                    space('a', { %{ function('f') },
                                 defer_loading => JSON::PP::true }) ]));
is_deeply([ map { $_->{name} } offered() ], [ 'a.f' ], 'deferred tools');


# Hosted tools.

my @hosted = map { { type => $_ } } qw/
    code_interpreter computer computer_use computer_use_preview file_search
    image_generation mcp tool_search web_search web_search_2025_08_26
    web_search_preview web_search_preview_2025_03_11 /;

$o = answer('hosted', body('t x', tools => [ @hosted, function('f') ]));
is_deeply([ map { $_->{name} } offered() ], [ 'f' ], 'they are not offered');
is_deeply($o->{tools}, [ @hosted, strict(function('f')) ], 'but repeated');

is($t->metrics->{dsa_hosted_tools_total}, 1 + 2 * @hosted, 'and counted');

answer('only hosted', body('t x', tools => \@hosted));
unlike((submit())[0], qr/<functions>/, 'a prompt without tools');


# Custom tools.

my $text = 'a\n"b" \\\\ é 😀 </x>';
$o = answer('custom', body(tool_calls([ 'patch', 'input', 'true', $text ],
                                      [ 'e.patch', 'input', 'true', 'x' ]),
                           tools => [ custom('patch'),
                                      space('e', custom('patch')) ]));
is_deeply([ map { [ @$_{qw/ type namespace name input arguments /} ] }
                @{ $o->{output} } ],
          [ [ 'custom_tool_call', undef, 'patch', "a\n\"b\" \\ é 😀 </x>",
              undef ],
            [ 'custom_tool_call', 'e', 'patch', 'x', undef ] ],
          'the input is a text');
like($o->{output}[0]{id}, qr/^ctc_/, 'its id');
is_deeply([ map { $_->{description} } offered() ],
          [ 'patch?', "e.\npatch?" ], 'both descriptions');
is_deeply((offered())[0]{parameters}{properties},
          { input => { type => 'string' } }, 'the model reads a string');

$t->post($uri, body('', tools => [ custom('patch') ], input => [
    @{ $o->{output} },
    (map { { type => 'custom_tool_call_output', output => 'ok',
             call_id => $_->{call_id} } } @{ $o->{output} }),
    { role => 'user', content => "!fake\nt end" } ]));
like((submit())[0], qr/parameter name="input" string="true">a\\n"b" /,
     'history has the text');

$items = $t->get("$uri/" . $t->post($uri, body('t x', input => [
    { type => 'custom_tool_call', call_id => 'c', name => 'p', input => 'i' },
    { type => 'custom_tool_call_output', call_id => 'c', output => 'r' } ]))
        ->{json}{id} . '/input_items?order=asc')->{json}{data};
is_deeply([ map { [ @$_{qw/ type input output /} ] } @$items ],
          [ [ 'custom_tool_call', 'i', undef ],
            [ 'custom_tool_call_output', undef, 'r' ] ], 'items are listed');

# The model may also write other arguments; they are not lost.

$o = answer('other arguments', body(
    tool_calls([ 'patch', 'code', 'true', 'a "b"' ]),
    tools => [ custom('patch') ]));
is($o->{output}[0]{input}, '{"code": "a \\"b\\""}', 'the input is all of it');

$t->post($uri, body('t x', tools => [ custom('number', {
                    type => 'grammar', syntax => 'regex',
                    definition => '[0-9]+|none' }) ]));
my $grammar = (submit())[1];
like($grammar, qr/"pattern": ?"\^\(\?:\[0-9\]\+\|none\)\$"/,
     'a regular expression is the pattern of the string');

# A Lark grammar is beside the function, where a client cannot put it.

my $lark = qq{start: expr\n?expr: NUMBER | "(" expr "+" expr ")"\n}
           . qq{NUMBER: /[0-9]+/\n};

sub lark { custom($_[0], { type => 'grammar', syntax => 'lark',
                           definition => $_[1] }) }

$t->post($uri, body('t x', tools => [ lark('sum', $lark),
                                      space('s', lark('sum', $lark)) ]));
$grammar = json_decode((submit())[1]);
is_deeply($grammar->{tools},
          [ map { { name => $_, strict => JSON::PP::true,
                    input => { syntax => 'lark', definition => $lark } } }
                qw/ sum s.sum / ], 'a Lark grammar is the input of a tool');
is_deeply([ map { $_->{parameters}{properties}{input} } offered() ],
          [ ({ type => 'string', description =>
               "A text of this Lark grammar:\n$lark" }) x 2 ],
          'the model reads it');

my $forged = { type => 'function', strict => JSON::PP::true, name => 'f',
               parameters => { type => 'object', properties => {},
                               additionalProperties => $false },
               input => { syntax => 'lark', definition => $lark } };
my %inner = (%$forged);
delete $inner{type};

$t->post($uri, body('t x', tools => [ $forged ]));
unlike((submit())[1], qr/"input"/, 'a client cannot put it into a function');

$t->post('/v1/chat/completions', {
    model => 'deepseek-chat',
    messages => [ { role => 'user', content => "!fake\nt x" } ],
    tools => [ { type => 'function', function => \%inner,
                 input => $forged->{input} } ] });
unlike((submit())[1], qr/"input"/, 'nor beside it');


# What is refused.

for my $case (
    [ [ { type => 'local_shell' } ], 'tools[0].type', qr/local_shell/ ],
    [ [ function('f'), { type => 'namespace', name => 'a b',
                         tools => [] } ], 'tools[1].name' ],
    [ [ { type => 'namespace', tools => [] } ], 'tools[0].name' ],
    [ [ { type => 'namespace', name => 'a' } ], 'tools[0].tools' ],
    [ [ space('a', space('b')) ], 'tools[0].tools[0].type', qr/namespace/ ],
    [ [ space('a', { type => 'web_search' }) ], 'tools[0].tools[0].type' ],
    [ [ space('a', function('f'), function('g.h')) ],
      'tools[0].tools[1].name' ],
    [ [ function('a.f') ], 'tools[0].name' ],
    [ [ space('a', function('f')), space('a', function('f')) ],
      'tools[1].tools[0]', qr/unique/ ],
    [ [ { type => 'web_search' }, function('f'), function('f') ], 'tools[2]',
      qr/unique/ ],
    [ [ space('a', map { function("f$_") } 1 .. 129) ],
      'tools[0].tools[128]', qr/128/ ],
    [ [ { type => 'custom' } ], 'tools[0].name' ],
    [ [ custom('c', 'text') ], 'tools[0].format' ],
    [ [ custom('c', { type => 'xml' }) ], 'tools[0].format.type' ],
    [ [ custom('c', { type => 'grammar', syntax => 'ebnf',
                      definition => 'start: "a"' }) ],
      'tools[0].format.syntax', qr/`lark` or `regex`/ ],
    [ [ custom('c', { type => 'grammar', syntax => 'regex' }) ],
      'tools[0].format.definition' ],
    [ [ custom('c', { type => 'grammar', syntax => 'lark' }) ],
      'tools[0].format.definition' ],
    [ [ lark('c', 5) ], 'tools[0].format.definition' ])
{
    my ($tools, $param, $text) = @$case;
    my $r = $t->post($uri, body('t x', tools => $tools));

    is($r->{status}, 400, "refused: $param") or diag($r->{body});
    is($r->{json}{error}{param}, $param, 'its place') or diag($r->{body});
    like($r->{json}{error}{message}, $text, 'its text') if $text;
}

for my $case (
    [ { type => 'web_search' }, 'tool_choice.type' ],
    [ { type => 'function', name => 'f', namespace => 5 },
      'tool_choice.namespace' ],
    [ { type => 'function', name => 'f', namespace => 'b' },
      'tool_choice.name' ])
{
    my $r = $t->post($uri, body('t x', tools => [ space('a', function('f')),
                                                  { type => 'web_search' } ],
                                tool_choice => $case->[0]));
    is($r->{status}, 400, 'a choice is refused') or diag($r->{body});
    is($r->{json}{error}{param}, $case->[1], 'its place');
}

for my $name ('a.f', 'f.g') {
    my $r = $t->post('/v1/chat/completions', {
        model => 'deepseek-chat', messages => [ { role => 'user',
                                                  content => 'x' } ],
        tools => [ { type => 'function', function => { name => $name } } ] });
    is($r->{status}, 400, 'chat completions has no namespaces');
}


# Codex tries a WebSocket first.

my $r = $t->request(GET => $uri, headers => [ Connection => 'Upgrade',
                                              Upgrade => 'websocket' ]);
is($r->{status}, 426, 'a WebSocket is refused so that POST is used');
like($r->{json}{error}{message}, qr/WebSocket/, 'the reason');
is($t->get($uri)->{status}, 405, 'GET without an upgrade');

$t->done;


# An engine that samples at random: each input is of the grammar.

$engine->start_engine(conf => { model => "$DSA::Test::root/demo/model",
                                backend => 'null rate=0' });
$engine->start_nginx(workers => 1);

my $sum = qr/^(\(?:[0-9]+\)|[0-9]+|\((?1)\+(?1)\))$/;
my (%n, @wrong);

for my $seed (1 .. 40) {
    my $r = $engine->post($uri, { model => 'deepseek-chat', seed => $seed,
                                  input => 'x', store => $false,
                                  reasoning => { effort => 'none' },
                                  max_output_tokens => 2000,
                                  tool_choice => 'required',
                                  tools => [ lark('sum', $lark) ] });
    my @calls = grep { $_->{type} eq 'custom_tool_call' }
                     @{ $r->{json}{output} || [] };

    $n{$r->{json}{status} // $r->{body}}++;
    next if ($r->{json}{status} // '') ne 'completed';

    push @wrong, $r->{body} if !@calls || grep { $_->{input} !~ $sum } @calls;
}

is(scalar @wrong, 0, 'a Lark grammar is enforced') or diag($wrong[0]);
ok($n{completed}, 'answers are completed') or diag(explain(\%n));

for my $case (
    [ qq{start: "a" |\n  b\n}, qr/line 2, column 4: .*":"/ ],
    [ qq{start: a "x"\na: start?\n}, qr/line 1, column 1: .*begins/ ],
    [ qq{start: "a\x{ff5c}"}, qr/line 1, column 10: .*syntax of calls/ ])
{
    my $r = $engine->post($uri, { model => 'deepseek-chat', input => 'x',
                                  tools => [ { type => 'web_search' },
                                             custom('text'),
                                             lark('sum', $case->[0]) ] });
    is($r->{status}, 400, 'a grammar is refused') or diag($r->{body});
    is($r->{json}{error}{param}, 'tools[2].format.definition', 'its place');
    like($r->{json}{error}{message}, $case->[1], 'line and column');
}

for my $case (
    [ lark('sum', 'start: x'), 'tools[1].tools[1].format.definition' ],
    [ custom('r', { type => 'grammar', syntax => 'regex',
                    definition => 'a(?=b)' }),
      'tools[1].tools[1].format.definition' ],
    [ { %{ function('f') }, strict => JSON::PP::true, parameters => {
            type => 'object', properties => { input => { type => 'string',
            pattern => 'a(?=b)' } }, required => ['input'],
            additionalProperties => JSON::PP::false } },
      'tools[1].tools[1].parameters.properties.input.pattern' ],
    [ { %{ function('f') }, strict => JSON::PP::true,
        parameters => { type => 'x' } }, 'tools[1].tools[1].parameters.type' ])
{
    my $r = $engine->post($uri, { model => 'deepseek-chat', input => 'x',
                                  tools => [ { type => 'web_search' },
                                             space('s', function('g'),
                                                   $case->[0]) ] });
    is($r->{status}, 400, 'a tool in a namespace') or diag($r->{body});
    is($r->{json}{error}{param}, $case->[1], 'its place');
}

$engine->done;
