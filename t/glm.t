# Copyright (C) The nginx-dsa authors
#
# A small GLM model with random weights through nginx, on the CPU: how its
# version is found, thinking, efforts, sampling, tools, the four APIs, and
# reasoning that comes back from Redis.  A random model writes no meaningful
# text, so this test asserts on structure, on counts of tokens, and that equal
# requests have equal answers.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use lib 't/lib';
use DSA::GLM qw/ glm_model /;
use DSA::Test;

my $t = DSA::Test->new('glm');
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my ($chat, $messages, $responses, $completions) =
    map { "/v1/$_" } qw{ chat/completions messages responses completions };
my $dir = glm_model($t);
my %off = (thinking => { type => 'disabled' });


sub question {
    my ($text, %more) = @_;

    return { model => 'glm', seed => 5, max_tokens => 60,
             messages => [{ role => 'user', content => $text }], %more };
}


sub refused {
    my ($conf, $like, $name) = @_;

    write_file($t->path('bad.conf'), "model $dir;\nlisten unix:"
               . $t->path('bad.sock') . ";\nbackend cpu;\n$conf");

    my $out = `$t->{build}/dsa-engine -c ${\ $t->path('bad.conf') } -t 2>&1`;

    isnt($?, 0, "$name: refused");
    like($out, $like, "$name: the error");
}


# ---------------------------------------------------------------- version

refused('', qr{chat_template\.jinja\ does\ not\ exist,.*
               expected\ "prompt_format"\ with\ glm-5,\ glm-5\.1,\ glm-5\.2
               \ or\ glm-5\.3}x, 'no template');

write_file("$dir/chat_template.jinja", '{{ messages }}');

refused('', qr{is\ not\ a\ published\ template:\ its\ SHA-256\ is\ [0-9a-f]{64},
               .*expected\ "prompt_format"}x, 'an unknown template');

refused("prompt_format glm-6;\n",
        qr/"prompt_format" is "glm-6"; expected glm-5, /,
        'an unknown version');

refused("prompt_format deepseek;\n", qr/expected glm-5, glm-5\.1, /,
        'the format of another model');

# ----------------------------------------------------------------- serving

$t->start_redis();
$t->start_engine(conf => { model => $dir, prompt_format => 'glm-5.2',
                           name => 'glm' });
$t->start_nginx(workers => 1, redis => 'timeout=5s');

# the models have the name of those who made them, as z.ai's API lists it

for my $models ($t->get('/v1/models')->{json}{data},
                [ $t->get('/v1/models/glm')->{json} ])
{
    is(join(' ', map { "$_->{id} $_->{owned_by}" } grep { $_->{id} eq 'glm' }
                 @$models), 'glm z-ai', 'who made the model');
}

# thinking is on unless the request switches it off

my $r = $t->post($chat, question('one two three'));
my $usage = $r->{json}{usage};

is($r->{status}, 200, 'an answer') or diag($r->{body});
ok(length($r->{json}{choices}[0]{message}{reasoning_content} // ''),
   'it thinks');
cmp_ok($usage->{completion_tokens_details}{reasoning_tokens}, '>', 0,
       'reasoning tokens');

my $off = $t->post($chat, question('one two three', %off));

ok(length $off->{json}{choices}[0]{message}{content}, 'an answer without');
ok(!defined $off->{json}{choices}[0]{message}{reasoning_content},
   'no reasoning');
is($off->{json}{usage}{completion_tokens_details}{reasoning_tokens} // 0, 0,
   'no reasoning tokens');

# "[gMASK]<sop><|system|>Reasoning Effort: Max" or High; without thinking there
# is no line, but a </think>

my %prompt = map {
    my ($name, %more) = @$_;
    $name => $t->post($chat, question('one two three', max_tokens => 1, %more))
               ->{json}{usage}{prompt_tokens};
} ['max', reasoning_effort => 'xhigh'], ['high', reasoning_effort => 'low'],
  ['off', %off], ['none', reasoning_effort => 'none'],
  ['kwargs', chat_template_kwargs => { enable_thinking => $false }];

is($prompt{max}, $usage->{prompt_tokens}, 'the effort is Max by default');
isnt($prompt{high}, $prompt{off}, 'the line of the effort');
is($prompt{$_}, $prompt{off}, "$_: thinking is off") for qw/ none kwargs /;

# a name of a token that a user writes takes several tokens

my @counts = map {
    $t->post($chat, question($_, max_tokens => 1, %off))
      ->{json}{usage}{prompt_tokens}
} 'x', map { "x$_" } qw{ <think> <|user|> /nothink [gMASK] </arg_value> };

cmp_ok($_, '>', $counts[0] + 1, 'the name of a control token is text')
    for @counts[1 .. $#counts];

# sampling counts in thinking mode, too

my @greedy = map {
    json_encode($t->post($chat, question('one two', temperature => 0,
                                         seed => $_))->{json}{choices})
} 1, 2;

is($greedy[0], $greedy[1], 'temperature 0');

# a stream has the same text

my $stream = DSA::HTTP->gather($t->stream(question('one two three',
                                                   stream => $true))->events);

is($stream->{reasoning_content},
   $r->{json}{choices}[0]{message}{reasoning_content}, 'streamed reasoning');
is($stream->{content} // '', $r->{json}{choices}[0]{message}{content} // '',
   'streamed content');

# a budget: the engine writes </think> when it is spent

$r = $t->post($chat, question('one two three', max_thinking_tokens => 3));

is($r->{json}{usage}{completion_tokens_details}{reasoning_tokens}, 4,
   'a budget of three tokens and </think>') or diag($r->{body});

# ------------------------------------------------------------------- tools

my $schema = {
    type => 'object', additionalProperties => $false,
    properties => {
        s => { enum => ['12', 'x <b>'] }, n => { type => 'integer',
               minimum => 1, maximum => 99 }, b => { type => 'boolean' },
        a => { type => 'array', maxItems => 2, items => { enum => ['y'] } },
    },
    required => [qw/ s n b a /],
};
my @tools = ({ type => 'function', function => {
                   name => 'f', strict => $true, parameters => $schema } });


sub check_arguments {
    my ($arguments, $name) = @_;

    my $args = eval { json_decode($arguments) };

    ok($args, "$name: arguments are JSON") or diag($arguments);
    is(join(' ', sort keys %$args), 'a b n s', "$name: the arguments");
    like($arguments, qr/"s": "(?:12|x <b>)"/, "$name: a string");
    like($arguments, qr/"n": [1-9][0-9]?,/, "$name: an integer");
    like($arguments, qr/"b": (?:true|false)/, "$name: a boolean");
    is(ref $args->{a}, 'ARRAY', "$name: an array");
}


for my $more ([ 'thinking', max_thinking_tokens => 5 ],
              [ 'not thinking', %off ])
{
    my ($name, %more) = @$more;
    my $ask = question('call', tools => \@tools, tool_choice => 'required',
                       parallel_tool_calls => $false, max_tokens => 400,
                       %more);
    my $one = $t->post($chat, $ask);
    my $choice = $one->{json}{choices}[0];

    is($choice->{finish_reason}, 'tool_calls', "$name: finish_reason")
        or diag($one->{body});
    is(scalar @{ $choice->{message}{tool_calls} || [] }, 1, "$name: a call");
    is($choice->{message}{tool_calls}[0]{function}{name}, 'f', 'its name');
    check_arguments($choice->{message}{tool_calls}[0]{function}{arguments},
                    $name);

    my $all = DSA::HTTP->gather($t->stream({ %$ask, stream => $true })
                                  ->events);

    is($all->{tool_calls}[0]{arguments},
       $choice->{message}{tool_calls}[0]{function}{arguments},
       "$name: streamed arguments");

    next if $name ne 'thinking';

    # the round goes on: reasoning that the client left out comes back

    my $call = $choice->{message};
    my @round = ({ role => 'user', content => 'call' }, $call,
                 { role => 'tool', tool_call_id => $call->{tool_calls}[0]{id},
                   content => 'done' });
    my %lost = %$call;

    delete $lost{reasoning_content};
    ok(length $call->{reasoning_content}, 'the call has reasoning');

    my ($whole, $lost) = map {
        $t->post($chat, { %$ask, messages => $_, tool_choice => 'auto',
                          max_tokens => 8 })->{json}
    } \@round, [ $round[0], \%lost, $round[2] ];

    is($lost->{usage}{prompt_tokens}, $whole->{usage}{prompt_tokens},
       'the prompt without reasoning is the prompt with it');
    is(json_encode($lost->{choices}), json_encode($whole->{choices}),
       'and so is the answer');

    # behind a further question, it stays if clear_thinking is false

    push @round, { role => 'user', content => 'more' };

    my ($kept, $cleared, $back) = map {
        my ($clear, @list) = @$_;
        $t->post($chat, { %$ask, messages => \@list, tool_choice => 'auto',
                          max_tokens => 1,
                          thinking => { type => 'enabled',
                                        clear_thinking => $clear } })
          ->{json}{usage}{prompt_tokens}
    } [ $false, @round ], [ $true, @round ],
      [ $false, $round[0], \%lost, @round[2, 3] ];

    cmp_ok($kept, '>', $cleared, 'reasoning that is kept');
    is($back, $kept, 'and restored if the client left it out');
}

# no call, though the prompt has the tools

$r = $t->post($chat, question('call', tools => \@tools,
                              tool_choice => 'none'));

ok(!$r->{json}{choices}[0]{message}{tool_calls}, 'tool_choice none');

# ---------------------------------------------------------------- the APIs

$r = $t->post($messages, { model => 'glm', max_tokens => 400,
                           messages => [{ role => 'user', content => 'call' }],
                           thinking => { type => 'disabled' },
                           tools => [{ name => 'f', input_schema => $schema,
                                       strict => $true }],
                           tool_choice => { type => 'tool', name => 'f' } });

is($r->{status}, 200, 'messages') or diag($r->{body});
is($r->{json}{content}[-1]{type}, 'tool_use', 'a call');
is(join(' ', sort keys %{ $r->{json}{content}[-1]{input} }), 'a b n s',
   'its input');

$r = $t->post($messages, { model => 'glm', max_tokens => 60, temperature => 0,
                           messages => [{ role => 'user',
                                          content => 'one' }] });

is($r->{json}{content}[0]{type}, 'thinking', 'messages: thinking by default')
    or diag($r->{body});

$r = $t->post($responses, { model => 'glm', input => 'call',
                            max_output_tokens => 400,
                            reasoning => { effort => 'none' },
                            tools => [{ type => 'function', name => 'f',
                                        strict => $true,
                                        parameters => $schema }],
                            tool_choice => 'required' });

is($r->{status}, 200, 'responses') or diag($r->{body});

my ($call) = grep { $_->{type} eq 'function_call' } @{ $r->{json}{output} };

check_arguments($call->{arguments}, 'responses');

$r = $t->post($responses, { model => 'glm', input => 'one', temperature => 0,
                            max_output_tokens => 60 });

is($r->{json}{output}[0]{type}, 'reasoning', 'responses: reasoning by default')
    or diag($r->{body});

$r = $t->post($completions, { model => 'glm', prompt => 'one two',
                              max_tokens => 8, seed => 3 });

is($r->{status}, 200, 'completions') or diag($r->{body});
ok(length $r->{json}{choices}[0]{text}, 'a text');

$r = $t->post($completions, { model => 'glm', prompt => 'one', suffix => 'two',
                              max_tokens => 8 });

is($r->{status}, 400, 'a suffix is refused');
like($r->{json}{error}{message}, qr/cannot fill in the middle/, 'why');

# a stored conversation

my $conv = $t->post('/v1/conversations', {})->{json}{id};

$r = $t->post($chat, question('first', conversation => $conv));
is($r->{status}, 200, 'a turn of a conversation') or diag($r->{body});

my $next = $t->post($chat, question('second', conversation => $conv,
                                    max_tokens => 1));

cmp_ok($next->{json}{usage}{prompt_tokens}, '>',
       $r->{json}{usage}{prompt_tokens}, 'the next turn has the first one');

$t->stop_nginx();

# --------------------------------------------------------------- GLM-5.3

my $t3 = DSA::Test->new('glm 5.3');

$t3->start_engine(conf => { model => $dir, prompt_format => 'glm-5.3',
                            name => 'glm', backend => 'null rate=0' });
$t3->start_nginx(workers => 1);

for my $case ([ 'thinking', thinking => { type => 'disabled' } ],
              [ 'reasoning_effort', reasoning_effort => 'medium' ])
{
    my ($param, %more) = @$case;

    $r = $t3->post($chat, question('one', %more));

    is($r->{status}, 400, "GLM-5.3, $param: refused");
    is($r->{json}{error}{param}, $param, 'the field');
}

is($t3->post($chat, question('one', reasoning_effort => 'low'))->{status}, 200,
   'GLM-5.3: an effort');

$t3->done();
$t->done();
