# Copyright (C) The nginx-dsa authors
#
# The Responses API: what its requests become, its objects and events, and the
# storage of responses in Redis.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('responses');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();

my %nginx = (redis => 'ttl=1h', workers => 2,
             http => 'client_max_body_size 8m;',
             server => 'location /keep/ { dsa_pass v32;
                                          dsa_ignore_client_abort on; }');

$t->start_nginx(%nginx);

my $uri = '/v1/responses';
my @alice = (headers => [ Authorization => 'Bearer alice' ]);
my @bob = (headers => [ Authorization => 'Bearer bob' ]);
my $false = JSON::PP::false;
my $true = JSON::PP::true;

my $tool = { type => 'function', name => 'weather', strict => $false,
             description => 'of a place',
             parameters => { type => 'object' } };
my $call = '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
           . '<｜DSML｜parameter name="place" string="true">Köln'
           . '</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
           . '<｜DSML｜invoke name="weather">\n'
           . '<｜DSML｜parameter name="place" string="true">Bonn'
           . '</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
           . '</｜DSML｜function_calls>';

wait_for_redis();


sub wait_for_redis {
    wait_until(sub { $t->get("$uri/" . id('0'))->{status} == 404 }, 20,
               'Redis') for 1 .. 8;
}

# Reloads nginx and waits until no worker of before serves requests.

sub reloaded {
    my %old = map { $_ => 1 } $t->workers;

    $t->reload(%nginx, @_);
    wait_until(sub { !grep { $old{$_} } $t->workers }, 20, 'the old workers');
    wait_for_redis();
}

sub id { 'resp_' . $_[0] x 32 }
sub body { my ($input, %more) = @_;
           return { model => 'deepseek-chat', input => $input, %more } }
sub played { my ($lines, %more) = @_;
             return body("!fake\n$lines", %more) }
sub ok200 {
    my ($body, @as) = @_;
    my $r = $t->post($uri, $body, @as);
    is($r->{status}, 200, 'answered') or diag($r->{body});
    return $r->{json};
}

# The prompt of the last request that the engine got.

sub prompt {
    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: stop=.*)?$/;
    utf8::decode($prompt);

    return $prompt;
}

# What must be the same in both forms of an answer: all but ids and times.

sub same {
    my ($o) = @_;

    if (ref $o eq 'HASH') {
        return { map { $_ => /^(?:id|call_id|encrypted_content)$/
                           ? (defined $o->{$_} ? 'set' : undef)
                       : /^(?:created_at|completed_at)$/ ? 'time'
                       : same($o->{$_}) } keys %$o };
    }

    return ref $o eq 'ARRAY' ? [ map { same($_) } @$o ] : $o;
}


# A whole answer.

my $r = $t->post($uri, body('Hello', instructions => 'Be brief.',
                            metadata => { a => 'b' }, temperature => 0.5,
                            max_output_tokens => 50, user => 'u'));
is($r->{status}, 200, 'answered') or diag($r->{body});
my $o = $r->{json};
like($o->{id}, qr/^resp_[0-9a-f]{32}$/, 'id');
is($o->{object}, 'response', 'object');
is($o->{status}, 'completed', 'status');
is($o->{model}, 'deepseek-chat', 'model');
cmp_ok(abs($o->{created_at} - time), '<', 60, 'created_at');
is($o->{error}, undef, 'no error');
is($o->{incomplete_details}, undef, 'not incomplete');
is($o->{instructions}, 'Be brief.', 'instructions are repeated');
is_deeply($o->{metadata}, { a => 'b' }, 'and metadata');
is($o->{temperature}, 0.5, 'and temperature');
is($o->{max_output_tokens}, 50, 'and max_output_tokens');
is($o->{store}, $true, 'it is stored');
is(scalar @{ $o->{output} }, 1, 'one item');
my $m = $o->{output}[0];
my ($digits) = $o->{id} =~ /_(.*)/;
like($m->{id}, qr/^msg_$digits[0-9a-f]{16}$/,
     'the id of the item begins with that of its response');
is_deeply({ %$m, id => 0 },
          { id => 0, type => 'message', role => 'assistant',
            status => 'completed',
            content => [ { type => 'output_text', text => 'echo: Hello',
                           annotations => [], logprobs => [] } ] },
          'the message');
my $u = $o->{usage};
is($u->{total_tokens}, $u->{input_tokens} + $u->{output_tokens}, 'usage');
is($u->{output_tokens_details}{reasoning_tokens}, 0, 'no reasoning');
is(prompt(), '[<｜begin▁of▁sentence｜>]Be brief.[<｜User｜>]Hello'
             . '[<｜Assistant｜>][</think>]', 'the prompt');


# Every form of the answer, streamed and not.

my $thinks = "t Let me \nt look.\nt </think>\nt I look.";

for my $case (
    [ 'text', played("t a \nt b\nt c"), [ 'message' ] ],
    [ 'reasoning', played($thinks, reasoning => { effort => 'high',
                                                  summary => 'auto' }),
      [ 'reasoning', 'message' ] ],
    [ 'encrypted', played($thinks, reasoning => { effort => 'low' },
                          store => $false,
                          include => [ 'reasoning.encrypted_content' ]),
      [ 'reasoning', 'message' ] ],
    [ 'calls', played("$thinks\n" . tokens($call), tools => [$tool],
                      reasoning => { effort => 'high' }),
      [ 'reasoning', 'message', 'function_call', 'function_call' ] ],
    [ 'one call', played(tokens($call), tools => [$tool],
                         parallel_tool_calls => $false),
      [ 'function_call' ] ],
    [ 'cut off', played("t a \nt b\ndone length"), [ 'message' ] ],
    [ 'cut off in reasoning', played("t hm\ndone length",
                                     reasoning => { effort => 'high' }),
      [ 'reasoning' ] ],
    [ 'nothing', played("done stop"), [] ])
{
    my ($name, $body, $types) = @$case;

    my $whole = ok200($body);
    my $s = $t->connect;
    $s->send_request(POST => $uri, body => json_encode({ %$body,
                                                         stream => $true }));
    $s->read_head;
    is($s->status, 200, "$name: streamed");
    like($s->header('content-type'), qr{^text/event-stream}, 'type');
    my @events = $s->events;
    my @json = map { $_->{json} || () } @events;

    is(scalar(grep { ($_->{event} || '') ne ($_->{json}{type} || '?') }
              @events), 0, "$name: each event has its type");
    is_deeply([ map { $_->{sequence_number} } @json ], [ 0 .. $#json ],
              "$name: sequence_number");
    is_deeply([ map { $_->{type} } @{ $whole->{output} } ], $types,
              "$name: items");
    is_deeply([ map { $_->{type} } @json ], [ expected_events($whole, @json) ],
              "$name: the order of events");

    my $last = $json[-1]{response};
    is_deeply(same($last), same($whole), "$name: streamed as unstreamed");
    is($json[0]{response}{status}, 'in_progress', "$name: in progress first");
    is_deeply($json[0]{response}{output}, [], "$name: and empty");

    check_parts($name, $last, @json);
}


# The events that an answer must have, given how many deltas there were.

sub expected_events {
    my ($whole, @json) = @_;

    my @types = ('response.created', 'response.in_progress');

    for my $i (0 .. $#{ $whole->{output} }) {
        my $type = $whole->{output}[$i]{type};
        my $name = { reasoning => 'reasoning_text', message => 'output_text',
                     function_call => 'function_call_arguments' }->{$type};
        my $n = grep { $_->{type} eq "response.$name.delta"
                       && $_->{output_index} == $i } @json;

        push @types, 'response.output_item.added';
        push @types, 'response.content_part.added' if $name =~ /text/;
        push @types, ("response.$name.delta") x ($n || 1);
        push @types, "response.$name.done";
        push @types, 'response.content_part.done' if $name =~ /text/;
        push @types, 'response.output_item.done';
    }

    return (@types, "response.$whole->{status}");
}


# Deltas, their whole texts, parts and items are the same text everywhere.

sub check_parts {
    my ($name, $last, @json) = @_;

    for my $i (0 .. $#{ $last->{output} }) {
        my $item = $last->{output}[$i];
        my @of = grep { defined $_->{output_index}
                        && $_->{output_index} == $i } @json;
        my $text = $item->{type} eq 'function_call' ? $item->{arguments}
                                                    : $item->{content}[0]{text};

        is(join('', map { defined $_->{delta} ? $_->{delta} : () } @of), $text,
           "$name: deltas of item $i");
        is_deeply([ map { defined $_->{text} ? $_->{text}
                          : defined $_->{arguments} ? $_->{arguments} : () }
                    @of ], [ $text ], "$name: its whole text");
        is_deeply($of[-1]{item}, $item, "$name: the item when it is done");
        is($of[0]{item}{status}, 'in_progress', "$name: and when it begins");
        is(scalar(grep { defined $_->{item_id}
                         && $_->{item_id} ne $item->{id} } @of), 0,
           "$name: one id");
    }
}

my $cut = ok200(played("t a\ndone length"));
is($cut->{status}, 'incomplete', 'cut off');
is_deeply($cut->{incomplete_details}, { reason => 'max_output_tokens' },
          'by max_output_tokens');
is($cut->{output}[0]{status}, 'incomplete', 'and so is its item');

# a failure in the middle of a stream

my $s = $t->connect;
$s->send_request(POST => $uri, body => json_encode(
                 played("t a\nwait\nerror internal broken", stream => $true)));
$s->read_head;

my @json = $s->next_event->{json};

push @json, $s->next_event->{json}
    while $json[-1]{type} ne 'response.output_text.delta';

ctl($fake, 'go');
push @json, map { $_->{json} || () } $s->events;
is($json[-1]{type}, 'response.failed', 'a failure');
is($json[-1]{response}{status}, 'failed', 'its status');
is($json[-1]{response}{error}{code}, 'server_error', 'its code');
is_deeply([ map { $_->{sequence_number} } @json ], [ 0 .. $#json ],
          'its number');
wait_until(sub { $t->get("$uri/$json[0]{response}{id}")->{status} == 404 }, 20,
           'the end of the response');
pass('is not stored');


# What items become.

my @turn = (
    { role => 'developer', content => [ { type => 'input_text',
                                          text => 'Dev.' } ] },
    { type => 'message', role => 'user', content => 'Wetter?' },
    { type => 'reasoning', id => 'rs_1', summary => [],
      content => [ { type => 'reasoning_text', text => 'hm' } ] },
    { type => 'function_call', id => 'fc_1', call_id => 'call_1',
      name => 'weather', arguments => '{"place": "Ü"}' },
    { type => 'function_call', call_id => 'call_2', name => 'weather',
      arguments => '{}' },
    { type => 'function_call_output', call_id => 'call_2', output => 'zwei' },
    { type => 'function_call_output', call_id => 'call_1',
      output => [ { type => 'input_text', text => 'eins' } ] });

ok200(body(\@turn, tools => [$tool], reasoning => { effort => 'high' }));
like(prompt(), qr/Dev\..*\[<｜User｜>\]Wetter\?.*hm.*name="weather".*Ü.*
                  <result>eins<\/result>.*<result>zwei<\/result>/x,
     'items become messages, results in the order of their calls');

$t->post('/v1/chat/completions', '{"model":"deepseek-chat","messages":[{"role":'
         . '"user","content":"x"}],"tools":[{"type":"function","function":'
         . '{"name":"weather","description":"of a place","parameters":'
         . '{"type":"object"}}}]}');
my $want = prompt();
ok200(body('x', tools => [$tool]));
is(prompt(), $want, 'tools give the same prompt as in chat completions');

ok200(body([ map { { role => 'user', content => $_ } } qw/ a b / ]));
$want = prompt();
ok200(body([ { role => 'user', content => 'a' },
             { type => 'reasoning', summary => [], content => [
               { type => 'reasoning_text', text => 'cut off' } ] },
             { role => 'user', content => 'b' } ]));
is(prompt(), $want, 'reasoning without an answer is left out');

# What is refused, with the name of the field.

for my $case (
    [ { input => undef }, 'input' ], [ { input => 5 }, 'input' ],
    [ { input => [] }, 'input' ], [ { input => [ 1 ] }, 'input[0]' ],
    [ { input => [ { role => 'king', content => 'x' } ] }, 'input[0].role' ],
    [ { input => [ { role => 'user', content => 5 } ] }, 'input[0].content' ],
    [ { input => [ { role => 'user', content => [ { type => 'input_image' } ] }
      ] }, 'input[0].content[0].type', qr/input_image/ ],
    [ { input => [ { type => 'function_call', name => 'f' } ] },
      'input[0].call_id' ],
    [ { input => [ { type => 'function_call', call_id => 'f' } ] },
      'input[0].name' ],
    [ { input => [ { role => 'user', content => 'x' },
                   { type => 'function_call_output', call_id => 'no',
                     output => 'x' } ] }, 'input[1].role' ],
    [ { input => [ { role => 'user', content => 'x' },
                   { role => 'system', content => 'y' } ] },
      'input[1].role' ],
    [ { input => [ { type => 'reasoning', encrypted_content => 'AAAA',
                     summary => [] } ] }, 'input[0].encrypted_content' ],
    [ { instructions => 5 }, 'instructions' ],
    [ { model => undef }, 'model' ],
    [ { background => $true, store => $false }, 'background' ],
    [ { conversation => 'conv_1' }, 'conversation' ],
    [ { prompt => { id => 'x' } }, 'prompt' ],
    [ { messages => [] }, 'messages', qr/use input/ ],
    [ { max_tokens => 5 }, 'max_tokens', qr/use max_output_tokens/ ],
    [ { max_output_tokens => 'x' }, 'max_output_tokens' ],
    [ { max_output_tokens => 0 }, 'max_output_tokens' ],
    [ { response_format => {} }, 'response_format', qr/use text.format/ ],
    [ { logprobs => $true }, 'logprobs' ],
    [ { top_logprobs => 21 }, 'top_logprobs' ],
    [ { top_logprobs => -1 }, 'top_logprobs' ],
    [ { n => 2 }, 'n' ],
    [ { truncation => 'auto' }, 'truncation' ],
    [ { service_tier => 'flex' }, 'service_tier' ],
    [ { temperature => 3 }, 'temperature' ],
    [ { top_p => 2 }, 'top_p' ],
    [ { store => 'yes' }, 'store' ],
    [ { stream => 'yes' }, 'stream' ],
    [ { stream_options => { include_obfuscation => $false } },
      'stream_options' ],
    [ { stream => $true, stream_options => { include_obfuscation => $true } },
      'stream_options.include_obfuscation' ],
    [ { metadata => { a => 1 } }, 'metadata' ],
    [ { metadata => { map { $_ => 'x' } 1 .. 17 } }, 'metadata' ],
    [ { metadata => { a => 'x' x 513 } }, 'metadata' ],
    [ { include => [ 'message.output_text.other' ] }, 'include[0]' ],
    [ { include => 'x' }, 'include' ],
    [ { user => 5 }, 'user' ],
    [ { parallel_tool_calls => 'x' }, 'parallel_tool_calls' ],
    [ { previous_response_id => 5 }, 'previous_response_id' ],
    [ { previous_response_id => '' }, 'previous_response_id' ],
    [ { reasoning => { effort => 'huge' } }, 'reasoning.effort' ],
    [ { reasoning => { summary => 'long' } }, 'reasoning.summary' ],
    [ { reasoning => { context => 'all_turns' } }, 'reasoning.context' ],
    [ { reasoning => { mode => 'pro' } }, 'reasoning.mode' ],
    [ { reasoning => { other => 1 } }, 'reasoning.other' ],
    [ { reasoning => 'high' }, 'reasoning' ],
    [ { text => { verbosity => 'none' } }, 'text.verbosity' ],
    [ { moderation => {} }, 'moderation' ],
    [ { access_programs => {} }, 'access_programs' ],
    [ { image => {} }, 'image' ],
    [ { prompt_cache_options => 'x' }, 'prompt_cache_options' ],
    [ { text => { format => { type => 'xml' } } }, 'text.format.type' ],
    [ { text => { format => 'text' } }, 'text.format' ],
    [ { tools => {} }, 'tools' ],
    [ { tools => [ { type => 'other' } ] }, 'tools[0].type', qr/other/ ],
    [ { tools => [ { type => 'function', name => 'a b' } ] },
      'tools[0].name' ],
    [ { tools => [ { type => 'function', name => 'f', parameters => 5 } ] },
      'tools[0].parameters' ],
    [ { tools => [ $tool ], tool_choice => 'maybe' }, 'tool_choice' ],
    [ { tools => [ $tool ], tool_choice => { type => 'web_search' } },
      'tool_choice.type' ],
    [ { min_p => 0.5 }, 'min_p' ])
{
    my ($fields, $param, $text) = @$case;
    my $r = $t->post($uri, body('x', %$fields));
    my $name = json_encode($fields);
    utf8::decode($name);
    $name = substr $name, 0, 60;

    is($r->{status}, 400, "refused: $name") or diag($r->{body});
    is($r->{json}{error}{param}, $param, "names it: $name")
        or diag($r->{body});
    like($r->{json}{error}{message}, $text, "its text: $name") if $text;
}

# What changes nothing, or is honoured.

for my $fields (
    { background => $false }, { truncation => 'disabled' },
    { service_tier => 'auto' }, { top_logprobs => 0 }, { n => 1 },
    { store => undef }, { include => [] }, { max_tool_calls => 3 },
    { include => [ 'web_search_call.action.sources' ] },
    { prompt_cache_key => 'k', safety_identifier => 's' },
    { prompt_cache_retention => '24h' },
    { stream_options => undef }, { tools => [] }, { tool_choice => 'auto' },
    { tools => [ $tool ], tool_choice => 'none' },
    { text => { format => { type => 'text' }, verbosity => 'medium' } },
    { reasoning => { effort => undef, summary => undef } },
    { reasoning => { effort => 'none', summary => 'auto' } },
    { thinking => { type => 'disabled' } }, { temperature => 2, top_p => 1 },
    { unknown_field => { a => [ 1 ] } })
{
    my $r = $t->post($uri, body('x', %$fields));

    is($r->{status}, 200, 'accepted: ' . json_encode($fields))
        or diag($r->{body});
}

is($t->get($uri)->{status}, 405, 'only POST');
is($t->post($uri, '{')->{status}, 400, 'not JSON');


# Stored: read, listed, deleted.

my $first = ok200(body([ { role => 'user', content => 'eins' },
                         { role => 'assistant', content => 'A',
                           phase => 'commentary' },
                         { role => 'user', content => 'zwei' } ]), @alice);
$r = $t->get("$uri/$first->{id}", @alice);
is($r->{status}, 200, 'read');
is_deeply($r->{json}, $first, 'what was answered');

my ($key) = $redis->keys("dsa1:*:r:$first->{id}");
like($key, qr/^dsa1:\{[0-9a-f]{32}\}:r:resp_/, 'its key has a hash tag');
cmp_ok($redis->cmd('TTL', $key), '>', 3500, 'and a TTL');

$r = $t->get("$uri/$first->{id}/input_items", @alice);
is($r->{status}, 200, 'its input');
is($r->{json}{object}, 'list', 'is a list');
is_deeply([ map { $_->{content}[0]{text} } @{ $r->{json}{data} } ],
          [ 'zwei', 'A', 'eins' ], 'the last item first');
is_deeply([ map { $_->{content}[0]{type} } @{ $r->{json}{data} } ],
          [ 'input_text', 'output_text', 'input_text' ], 'with its parts');
is_deeply([ map { $_->{phase} } @{ $r->{json}{data} } ],
          [ undef, 'commentary', undef ], 'and its phase');
is($r->{json}{has_more}, $false, 'all of them');
like($r->{json}{first_id}, qr/^msg_/, 'with ids');

$r = $t->get("$uri/$first->{id}/input_items?order=asc&limit=2", @alice);
is_deeply([ map { $_->{content}[0]{text} } @{ $r->{json}{data} } ],
          [ 'eins', 'A' ], 'the first page');
is($r->{json}{has_more}, $true, 'is not all');
$r = $t->get("$uri/$first->{id}/input_items?order=asc&limit=2&after="
             . $r->{json}{last_id}, @alice);
is_deeply([ map { $_->{content}[0]{text} } @{ $r->{json}{data} } ],
          [ 'zwei' ], 'the second page');
is($t->get("$uri/$first->{id}/input_items?$_", @alice)->{status}, 400, $_)
    for qw/ limit=0 limit=101 limit=x order=up /;
is($t->get("$uri/$first->{id}?stream=true", @alice)->{status}, 400,
   'no stream of a stored one');
is($t->get("$uri/$first->{id}/other", @alice)->{status}, 404, 'other paths');
is($t->request('PUT', "$uri/$first->{id}", body => '{}')->{status}, 405,
   'other methods');

my $unknown = $t->get("$uri/" . id('0'))->{body};

for my $as (\@bob, []) {
    is($t->get("$uri/$first->{id}", @$as)->{body}, $unknown,
       'another tenant does not see it');
    is($t->get("$uri/$first->{id}/input_items", @$as)->{status}, 404,
       'nor its input');
    is($t->request('DELETE', "$uri/$first->{id}", @$as)->{status}, 404,
       'nor deletes it');
    my $r = $t->post($uri, body('x', previous_response_id => $first->{id}),
                     @$as);
    is($r->{status}, 404, 'nor continues it');
    is($r->{json}{error}{code}, 'previous_response_not_found', 'the code');
    is($r->{json}{error}{param}, 'previous_response_id', 'which is named');
}

for my $bad ('x', id('g'), id('0') . '0', 'a}b') {
    is($t->get("$uri/$bad")->{status}, 404, "id $bad");
}

my $off = ok200(body('x', store => $false), @alice);
is($off->{store}, $false, 'store false');
is($t->get("$uri/$off->{id}", @alice)->{status}, 404, 'is not stored');


# A chain, and two children of one parent.

my $second = ok200(body('drei', instructions => 'New.',
                        previous_response_id => $first->{id}), @alice);
is($second->{previous_response_id}, $first->{id}, 'the parent is named');
is(prompt(), '[<｜begin▁of▁sentence｜>]New.[<｜User｜>]eins'
             . '[<｜Assistant｜>][</think>]A[<｜end▁of▁sentence｜>]'
             . '[<｜User｜>]zwei[<｜Assistant｜>][</think>]echo: zwei'
             . '[<｜end▁of▁sentence｜>][<｜User｜>]drei'
             . '[<｜Assistant｜>][</think>]',
   'instructions, what was before, the request');

my @two = map { my $s = $t->connect;
                $s->send_request(POST => $uri, @alice, body => json_encode(
                    played("t $_\nwait", store => $true,
                           previous_response_id => $second->{id})),
                    headers => $alice[1]);
                $s } qw/ left right /;
wait_until(sub { 2 <= grep { /t (?:left|right)/ } submitted($fake) }, 10,
           'both requests');
ctl($fake, 'go 2');
my ($left, $right) = map { $_->response->{json} } @two;

for ([ $left, 'left' ], [ $right, 'right' ]) {
    my ($parent, $name) = @$_;

    is($parent->{status}, 'completed', "$name: a child");
    is($parent->{store}, $true, "$name: is stored");
    ok200(body('next', previous_response_id => $parent->{id}), @alice);
    like(prompt(), qr/drei.*\]$name\[.*next/, "$name: has its own chain");
}

is($t->request('DELETE', "$uri/$left->{id}", @alice)->{status}, 200,
   'deleted');
is($t->get("$uri/$left->{id}", @alice)->{status}, 404, 'it is gone');
$r = $t->request('DELETE', "$uri/$right->{id}", @alice);
is_deeply($r->{json}, { id => $right->{id}, object => 'response',
                        deleted => $true }, 'the answer to DELETE');

# a child renews the TTL of those before it

$redis->cmd('EXPIRE', $key, 100);
ok200(body('more', previous_response_id => $second->{id}), @alice);
cmp_ok($redis->cmd('TTL', $key), '>', 3500, 'the TTL of a parent is renewed');


# Encrypted reasoning: any worker and a reload accept it, another tenant and a
# changed byte are refused.

$o = ok200(played($thinks, reasoning => { effort => 'high' },
                  store => $false,
                  include => [ 'reasoning.encrypted_content' ]), @alice);
my ($rs) = grep { $_->{type} eq 'reasoning' } @{ $o->{output} };
unlike($rs->{encrypted_content}, qr/look/, 'encrypted');
delete $rs->{content};

my @again = ([ { role => 'user', content => 'q' }, $rs,
               { type => 'function_call', call_id => 'c', name => 'weather',
                 arguments => '{}' },
               { type => 'function_call_output', call_id => 'c',
                 output => 'r' } ], tools => [$tool], store => $false,
             reasoning => { effort => 'high' });

for (1 .. 8) {
    ok200(body(@again), @alice);
    like(prompt(), qr/Let me look\./, 'decrypted');
}

reloaded();
ok200(body(@again), @alice) for 1 .. 4;
is($t->post($uri, body(@again), @bob)->{status}, 400, 'not for another tenant');
substr($rs->{encrypted_content}, 30, 1) =~ s/(.)/$1 eq 'A' ? 'B' : 'A'/e;
$r = $t->post($uri, body(@again), @alice);
is($r->{status}, 400, 'a changed byte');
is($r->{json}{error}{param}, 'input[1].encrypted_content', 'is named');


# Requests like those of Codex, made by hand from its documentation: a first
# request, and a round with the items that came back.

my $codex = json_decode(DSA::Test::read_file("$DSA::Test::root/t/data/codex/"
                                             . 'first.json'));
$codex->{input}[2]{content}[0]{text} = "!fake\n$thinks\n" . tokens($call);
$s = $t->connect;
$s->send_request(POST => $uri, @alice, body => json_encode($codex));
$s->read_head;
is($s->status, 200, 'Codex: the first request');
my @done = map { $_->{json}{item} }
           grep { ($_->{event} || '') eq 'response.output_item.done' }
           $s->events;
is_deeply([ map { $_->{type} } @done ],
          [ qw/ reasoning message function_call / ],
          'Codex: one call, because parallel_tool_calls is false');
like(prompt(), qr/coding\ agent.*sandboxing.*environment_context.*
                  \[<｜Assistant｜>\]\[<think>\]$/x, 'Codex: the prompt');

$codex = json_decode(DSA::Test::read_file("$DSA::Test::root/t/data/codex/"
                                          . 'round.json'));
$codex->{input}[3]{encrypted_content} = $done[0]{encrypted_content};
$r = $t->post($uri, $codex, @alice);
is($r->{status}, 200, 'Codex: a round');
like($r->{body}, qr/^event: response\.completed$/m, 'Codex: to its end');
like(prompt(), qr/List\ the\ files.*\[<think>\]Let\ me\ look\.\[<\/think>\]
                  I\ list\ them\..*name="shell".*bash.*README\.md/x,
     'Codex: with its reasoning');


# A corrupt node, a wrong type, a chain that is too long.

sub continued {
    my ($id) = @_;
    my $n = submitted($fake);
    my $r = $t->post($uri, body('x', previous_response_id => $id), @alice);

    is(scalar submitted($fake), $n, 'no engine received it')
        if $r->{status} != 200;

    return $r;
}

(my $prefix = $key) =~ s/resp_.*//;

$redis->cmd('HDEL', $key, 'output');
is(continued($second->{id})->{status}, 500, 'a field is missing');
is($t->get("$uri/$first->{id}", @alice)->{status}, 500, 'and cannot be read');
$redis->cmd('HSET', $key, 'output', '[{"type":"king"}]');
is(continued($second->{id})->{status}, 500, 'an item that cannot be');
$redis->cmd('HSET', $key, 'output', '{"a');
is(continued($second->{id})->{status}, 500, 'not JSON');
$redis->cmd('DEL', $key);
$r = continued($second->{id});
is($r->{status}, 404, 'a parent is gone');
is($r->{json}{error}{code}, 'previous_response_not_found', 'the code');
like($r->{json}{error}{message}, qr/deleted or has expired/, 'which is said');
$redis->cmd('SET', $key, 'x', 'EX', 100);
is(continued($second->{id})->{status}, 500, 'the parent has another type');
is($t->get("$uri/$first->{id}", @alice)->{status}, 500, 'and cannot be read');
$redis->cmd('DEL', $key);
$redis->cmd('HSET', "$prefix" . id('a'), 'parent', id('a'), 'input', '[]',
            'output', '[]');
$r = continued(id('a'));
is($r->{status}, 400, 'a chain without end');
like($r->{json}{error}{message}, qr/more than 1000/, 'which is said');

for my $n (1 .. 1001) {
    $redis->cmd('HSET', $prefix . sprintf('resp_%032x', $n), 'parent',
                $n > 1 ? sprintf('resp_%032x', $n - 1) : '', 'input', '[]',
                'output', '[]');
}

is(continued(sprintf 'resp_%032x', 1000)->{status}, 200, '1000 responses');
is(continued(sprintf 'resp_%032x', 1001)->{status}, 400, '1001 responses');

$redis->cmd('HSET', $prefix . id('b'), 'parent', '', 'output', '[]',
            'input', '[' . ' ' x 4_100_000 . ']');
is(continued(id('b'))->{status}, 200, 'nearly 4 MB');
$redis->cmd('HSET', $prefix . id('c'), 'parent', id('b'), 'input', '[]',
            'output', '[' . ' ' x 100_000 . ']');
$r = continued(id('c'));
is($r->{status}, 400, 'over 4 MB');
like($r->{json}{error}{message}, qr/larger than 4 MB/, 'which is said');


# Redis hangs, is full, is gone: the stream goes on and reports that it is not
# stored; what needs Redis gets an error.

reloaded(redis => 'ttl=1h timeout=2s');

for my $case (
    [ 'hangs', sub { $server->signal('STOP') },
      sub { $server->signal('CONT') }, qr/./ ],
    [ 'is full', sub { $redis->cmd(qw/ CONFIG SET maxmemory 1 /) },
      sub { $redis->cmd(qw/ CONFIG SET maxmemory 0 /) }, qr/Redis/ ])
{
    my ($name, $break, $heal, $why) = @$case;

    my $s = $t->connect;
    $s->send_request(POST => $uri, body => json_encode(
                     played("t a\nwait\nt b", stream => $true)));
    $s->read_head;
    my @first;
    while (my $e = $s->next_event) {
        push @first, $e->{json} if $e->{json};
        last if $e->{json} && $e->{json}{type} =~ /delta$/;
    }
    $break->();
    ctl($fake, 'go 1');
    my @json = (@first, map { $_->{json} || () } $s->events);
    my $last = $json[-1]{response};

    is($json[-1]{type}, 'response.completed', "Redis $name: the stream ends");
    is($last->{output}[0]{content}[0]{text}, 'ab', "Redis $name: with all");
    is($last->{store}, $false, "Redis $name: not stored");
    like($last->{store_error}, $why, "Redis $name: why");
    is_deeply([ map { $_->{sequence_number} } @json ], [ 0 .. $#json ],
              "Redis $name: sequence_number");

    if ($name eq 'hangs') {
        is($t->get("$uri/$second->{id}", @alice)->{status}, 503,
           "Redis $name: cannot be read");
        is($t->post($uri, body('x', previous_response_id => $second->{id}),
                    @alice)->{status}, 503, "Redis $name: nor continued");
    }

    $heal->();
    wait_for_redis();
}

reloaded();

# nginx may have read the memory of Redis while it was full, and reads it again
# within a second

wait_until(sub { $t->post($uri, body('x'))->{json}{store} }, 20, 'the memory');
is(ok200(body('after'))->{store}, $true, 'then they are stored again');

# a replica that is read-only, and a Redis that is not there

for my $case (
    [ 'is read-only', sub { $redis->cmd(qw/ REPLICAOF 127.0.0.1 1 /) },
      sub { $redis->cmd(qw/ REPLICAOF NO ONE /) } ],
    [ 'is down', sub { $server->stop }, sub { $server->restart } ])
{
    my ($name, $break, $heal) = @$case;

    my $unsaved = $t->metrics->{dsa_redis_refused_responses_total};
    $break->();
    my $o;
    for (1 .. 4) {
        $o = ok200(body('x'));
        is($o->{store}, $false, "Redis $name: not stored");
        like($o->{store_error}, qr/Redis/, "Redis $name: why");
        ok($t->logged(qr/response.* is not stored: /), "Redis $name: logged");
    }
    is($t->metrics->{dsa_redis_refused_responses_total}, $unsaved + 4,
       "Redis $name: each is counted");
    my $status = $t->get("$uri/$o->{id}")->{status};
    like($status, qr/^(?:404|503)$/, "Redis $name: GET");
    $heal->();
    wait_until(sub { $t->post($uri, body('x'))->{json}{store} }, 20, 'Redis')
        for 1 .. 8;
    $t->wait_redis(2);
}


# a client that leaves

$s = $t->connect;
$s->send_request(POST => $uri, body => json_encode(
                 played("t a\nhold", stream => $true)));
$s->read_head;
$s->next_event;
my $n = cancelled($fake);
$s->socket->close;
wait_until(sub { cancelled($fake) > $n }, 10, 'the cancel');

# one that leaves where answers are finished in any case

$s = $t->connect;
$s->send_request(POST => '/keep/responses', body => json_encode(
                 played("t a\nwait\nt b", stream => $true)));
$s->read_head;
my $left_id = $s->next_event->{json}{response}{id};
$s->socket->close;
ctl($fake, 'go 1');
wait_until(sub { $r = $t->get("$uri/$left_id");
                 $r->{status} == 200 && $r->{json}{status} eq 'completed' },
           20, 'the response');
is($r->{json}{output}[0]{content}[0]{text}, 'ab', 'is finished and stored');


# Without Redis: store is off unless it is requested.

$t->stop_nginx;
$t->write_nginx_conf(conf => do { my $c = $t->default_conf();
                                  $c =~ s/^\s*dsa_redis.*$//m; $c });
$t->start_nginx(conf => do { my $c = $t->default_conf();
                             $c =~ s/^\s*dsa_redis.*$//m; $c }, wait => 1);

is(ok200(body('x'))->{store}, $false, 'without Redis: not stored');
$r = $t->post($uri, body('x', store => $true));
is($r->{status}, 400, 'store true is refused');
is($r->{json}{error}{param}, 'store', 'and named');
$r = $t->post($uri, body('x', previous_response_id => id('0')));
is($r->{status}, 400, 'so is previous_response_id');
is($r->{json}{error}{param}, 'previous_response_id', 'and named');
is($t->get("$uri/" . id('0'))->{status}, 501, 'and GET');

# the key was made anew at the start

is($t->post($uri, body(@again), @alice)->{status}, 400,
   'a restart forgets the key');

$t->done;
