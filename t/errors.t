#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Bad input: each case gets the right status and an error that names the field.
# No input crashes a worker, and all faults are logged as the client's.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';

my $t = DSA::Test->new('errors');
my $fake = $t->start_fake('context=4096');

$t->start_nginx();

my ($worker) = $t->workers;

$t->post($chat, ask('x', stream => "a\nb c"));
is($t->logged(qr/invalid type: string "a b c"/), 1,
   'what a client sends begins no line of the log');

my $user = '{"role":"user","content":"hi"}';
my $base = "\"model\":\"deepseek-chat\",\"messages\":[$user]";


# [name, body, status, param, message]; what is undef is not looked at

my @table = (

    # JSON

    ['an empty body', '', 400, undef, qr/^Failed to deserialize/],
    ['blanks', " \n", 400, undef, qr/^Failed to deserialize/],
    ['no JSON', 'hello', 400, undef, qr/^Failed to deserialize/],
    ['two values', "{$base}{}", 400, undef, qr/^Failed to deserialize/],
    ['a comma too many', "{$base,}", 400, undef, qr/^Failed to deser/],
    ['a single quote', "{'model':1}", 400, undef, qr/^Failed to deser/],
    ['invalid UTF-8', "{\"model\":\"\xff\"}", 400, undef,
     qr/^Failed to deserialize/],
    ['a surrogate in UTF-8', "{\"model\":\"\xed\xa0\x80\"}", 400, undef,
     qr/^Failed to deserialize/],
    ['an overlong character', "{\"model\":\"\xc0\xaf\"}", 400, undef,
     qr/^Failed to deserialize/],
    ['half of a character', "{$base,\"x\":\"a\\ud800b\"}", 400, undef,
     qr/surrogate.* at byte \d+$/],
    ['the other half', "{$base,\"x\":\"\\udc00\"}", 400, undef,
     qr/surrogate.* at byte \d+$/],
    ['a name twice', "{$base,\"model\":\"x\"}", 400, undef,
     qr/the name "model" is repeated in an object/],
    ['a name twice in a schema', "{$base,\"tools\":[{\"function\":{\"name\":"
     . '"f","parameters":{"a\u006e":1,"an":2}}}]}', 400, undef,
     qr/the name "an" is repeated in an object/],
    ['a raw newline in a string', "{\"model\":\"a\nb\"}", 400, undef,
     qr/^Failed to deserialize/],
    ['a NUL byte', "{\"model\":\"a\0b\"}", 400, undef, qr/^Failed to deser/],
    ['NaN', "{$base,\"temperature\":NaN}", 400, undef, qr/^Failed to deser/],
    ['a depth bomb', '[' x 100000, 400, undef, qr/deep|nest/],
    ['a deep object', '{"a":' x 5000, 400, undef, qr/deep|nest/],
    ['a bomb of values', '[' . '[],' x 300000 . '1]', 413, undef,
     qr/^The request body is too large: .* needs too much memory/],
    ['more values than any chat has', '[' . '[1],' x 1100000 . '1]', 413,
     undef, qr/^The request body is too large: .* at most 262144 are accepted/],
    ['an array', "[$user]", 400, undef, qr/object/],
    ['a string', '"x"', 400, undef, qr/object/],
    ['null', 'null', 400, undef, qr/object/],

    # messages

    ['no messages', '{"model":"deepseek-chat"}', 400, 'messages'],
    ['messages null', '{"model":"deepseek-chat","messages":null}', 400,
     'messages'],
    ['messages an object', '{"model":"deepseek-chat","messages":{}}', 400,
     'messages'],
    ['messages empty', '{"model":"deepseek-chat","messages":[]}', 400,
     'messages'],
    ['a message a string', '{"model":"deepseek-chat","messages":["x"]}', 400,
     'messages[0]'],
    ['a message empty', '{"model":"deepseek-chat","messages":[{}]}', 400,
     qr/^messages\[0\]/],
    ['an unknown role', '{"model":"deepseek-chat","messages":[{"role":"elf",'
     . '"content":"x"}]}', 400, 'messages[0].role'],
    ['a role a number', '{"model":"deepseek-chat","messages":[{"role":1,'
     . '"content":"x"}]}', 400, 'messages[0].role'],
    ['a developer last', '{"model":"deepseek-chat","messages":[{"role":'
     . '"developer","content":"x"}]}', 400, 'messages[0].role'],
    ['content a number', '{"model":"deepseek-chat","messages":[{"role":'
     . '"user","content":1}]}', 400, qr/^messages\[0\]\.content/],
    ['an image', '{"model":"deepseek-chat","messages":[{"role":"user",'
     . '"content":[{"type":"image_url"}]}]}', 400,
     qr/^messages\[0\]\.content/],
    ['a system message last', "{\"model\":\"deepseek-chat\",\"messages\":["
     . "$user,{\"role\":\"system\",\"content\":\"x\"}]}", 400, qr/^messages/],
    ['a result without a call', "{\"model\":\"deepseek-chat\",\"messages\":["
     . "$user,{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}]}",
     400, qr/^messages/],
    ['a call without a result', "{\"model\":\"deepseek-chat\",\"messages\":["
     . "$user,{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"type\":"
     . '"function","function":{"name":"f","arguments":"{}"}}]}]}',
     400, qr/^messages/, qr/tool_call/],
    ['a result of another call', "{\"model\":\"deepseek-chat\",\"messages\":["
     . "$user,{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"type\":"
     . '"function","function":{"name":"f","arguments":"{}"}}]},'
     . '{"role":"tool","tool_call_id":"b","content":"x"},' . "$user]}",
     400, 'messages[2].tool_call_id', qr/not among its calls/],

    # the model

    ['no model', "{\"messages\":[$user]}", 400, 'model'],
    ['a model a number', "{\"model\":1,\"messages\":[$user]}", 400, 'model'],
    ['an unknown model', "{\"model\":\"gpt-9\",\"messages\":[$user]}", 404,
     'model', qr{^The model "gpt-9" does not exist\. GET /models lists }],

    # numbers

    (map { ["$_->[0] $_->[1]", "{$base,\"$_->[0]\":$_->[1]}", 400, $_->[0]] }
     ['temperature', -0.1], ['temperature', 2.1], ['temperature', '"1"'],
     ['temperature', '1e999'], ['temperature', 'true'],
     ['top_p', 0], ['top_p', 1.1], ['top_p', '[]'],
     ['frequency_penalty', 2.5], ['presence_penalty', -2.5],
     ['max_tokens', 0], ['max_tokens', -1], ['max_tokens', 1.5],
     ['max_tokens', '"5"'], ['max_tokens', '-99999999999999999999'],
     ['max_tokens', '{}'],
     ['top_logprobs', 21], ['top_logprobs', -1], ['top_logprobs', 5],
     ['seed', '"x"'], ['stream', '"yes"'], ['stream', 1],
     ['logprobs', '"x"'], ['stream_options', '[]'], ['stop', 5],
     ['stop', '{}'], ['thinking', '"on"'], ['tools', '{}'],
     ['tool_choice', '5'], ['tool_choice', '"always"'],
     ['response_format', '"json"'], ['conversation', '5']),

    (map { ["$_->[0] $_->[1]: the range", "{$base,\"$_->[0]\":$_->[1]}", 400,
            $_->[0], qr/^$_->[0]: the value $_->[1] is too small; (?x:
                        )expected 1 or more$/ ] }
     ['max_tokens', 0], ['max_tokens', -1], ['max_tokens', '-1e300'],
     ['max_completion_tokens', 0]),

    (map { ["logit_bias $_->[0]", "{$base,\"logit_bias\":$_->[0]}", 400,
            'logit_bias', $_->[1]] }
     ['{"a":-100}', qr/^logit_bias: "a" is not a token id; expected digits/],
     ['{"1":-101}', qr/^logit_bias: the bias of token id 1 is not a number in/],
     ['{"1":1,"01":2}', qr/^logit_bias: token id 1 occurs twice/],
     ['{' . join(',', map { "\"$_\":0" } 1 .. 1025) . '}',
      qr/^logit_bias: 1025 ids; at most 1024/],
     ['[1]', qr/expected an object of token ids and numbers/]),

    # fields that change the answer, and nothing here honors them

    (map { ["$_->[0] $_->[1]", "{$base,\"$_->[0]\":$_->[1]}", 400, $_->[0],
            qr/^\Q$_->[0]\E(?:: this value)? is not supported; expected .*field/
           ] }
     ['functions', '[{"name":"f"}]'], ['function_call', '{"name":"f"}'],
     ['prediction', '{}'], ['modalities', '["text","audio"]'],
     ['top_k', 40], ['min_p', 0.1], ['repetition_penalty', 1.1],
     ['stop_token_ids', '[7]'], ['guided_json', '{}'],
     ['structured_outputs', '{}'], ['chat_template', '"x"'],
     ['continue_final_message', 'true'], ['echo', 'true'],
     ['best_of', 2], ['verbosity', '"none"'], ['moderation', '{}']),
    ['a schema without a name', "{$base,\"response_format\":{\"type\":"
     . '"json_schema","json_schema":{"schema":{}}}}', 400,
     'response_format.json_schema.name', qr/expected a string that matches/],
    ['a required call without tools', "{$base,\"tool_choice\":\"required\"}",
     400, 'tool_choice', qr/`required` without tools/],
    ['a named tool that is not there', "{$base,\"tool_choice\":{\"type\":"
     . '"function","function":{"name":"f"}}}', 400,
     'tool_choice.function.name', qr/no tool has the name "f"/],

    # lists

    ['17 stop strings', "{$base,\"stop\":[" . join(',', ('"x"') x 17) . ']}',
     400, 'stop'],
    ['a stop string a number', "{$base,\"stop\":[1]}", 400, qr/^stop/],
    ['129 tools', "{$base,\"tools\":[" . join(',', map {
         "{\"type\":\"function\",\"function\":{\"name\":\"f$_\"}}" } 1 .. 129)
     . ']}', 400, 'tools'],
    ['a tool without a function', "{$base,\"tools\":[{}]}", 400,
     qr/^tools\[0\]/],
    ['a tool without a name', "{$base,\"tools\":[{\"type\":\"function\","
     . '"function":{}}]}', 400, qr/^tools\[0\]\.function/],
    ['an unknown response format', "{$base,\"response_format\":{\"type\":"
     . '"xml"}}', 400, qr/^response_format/],
    ['JSON mode without the word', "{$base,\"response_format\":{\"type\":"
     . '"json_object"}}', 400, qr/^response_format|^messages/, qr/'json'/],

    # features that this configuration does not have

    ['a conversation without Redis', "{$base,\"conversation\":\"abc\"}", 400,
     'conversation', qr/dsa_redis/],

    # the context

    ['a prompt over the context', '{"model":"deepseek-chat","messages":[{'
     . '"role":"user","content":"' . 'z' x 5000 . '"}]}', 400, 'messages',
     qr/^This model's maximum context length is 4096 tokens\./],
);

for (@table) {
    my ($name, $body, $status, $param, $message) = @$_;

    my $r = $t->post($chat, $body);
    my $e = $r->{json}{error};

    is($r->{status}, $status, "$name: status");

    my $shape = $e && join ' ', sort keys %$e;
    is($shape, 'code message param type', "$name: shape")
        or diag($r->{body});

    my $got = $e->{param} // 'null';
    ref $param ? like($got, $param, "$name: param")
               : is($got, $param // 'null', "$name: param")
        or diag($r->{body});

    like($e->{message}, $message, "$name: message") if $message;
}


# every field with a value of each wrong type is refused by name

my %good = (
    model => 's', messages => 'a', conversation => 's', thinking => 'o',
    reasoning_effort => 's', reasoning => 'o', 'reasoning.effort' => 's',
    'reasoning.enabled' => 'b', enable_thinking => 'b',
    chat_template_kwargs => 'o', 'chat_template_kwargs.thinking' => 'b',
    'chat_template_kwargs.enable_thinking' => 'b',
    temperature => 'n', top_p => 'n',
    frequency_penalty => 'n', presence_penalty => 'n', max_tokens => 'nxl',
    max_completion_tokens => 'nxl', n => 'n', seed => 'n', stop => 'sa',
    stream => 'b', ignore_eos => 'b', stream_options => 'o', logprobs => 'b',
    top_logprobs => 'n', response_format => 'o', tools => 'a',
    tool_choice => 'so',
    'messages[0].role' => 's', 'messages[0].content' => 'sa',
    'messages[0].reasoning_content' => 's',
    'messages[0].tool_calls' => 'a', 'messages[0].tool_call_id' => 's',
    'messages[0].prefix' => 'b',
    'messages[0].content[0]' => 'o', 'messages[0].content[0].type' => 's',
    'messages[0].content[0].text' => 's',
    'messages[1].tool_calls[0]' => 'o', 'messages[1].tool_calls[0].id' => 's',
    'messages[1].tool_calls[0].type' => 's',
    'messages[1].tool_calls[0].function' => 'o',
    'messages[1].tool_calls[0].function.name' => 's',
    'messages[1].tool_calls[0].function.arguments' => 'so',
    'stop[0]' => 's', 'stream_options.include_usage' => 'b',
    'thinking.type' => 's', 'response_format.type' => 's',
    'tools[0]' => 'o', 'tools[0].type' => 's', 'tools[0].function' => 'o',
    'tools[0].function.name' => 's', 'tools[0].function.description' => 's',
    'tools[0].function.parameters' => 'o', 'tools[0].function.strict' => 'b',
);

my %sample = (s => '"x"', n => '7', b => 'true', a => '[1]',
              o => '{"x":1}', x => '1e999', l => '9' x 400);

# The JSON of a whole request in which VALUE stands at PATH.

sub with {
    my ($path, $value) = @_;

    my %request = (
        model => 'deepseek-chat', stream => JSON::PP::true,
        messages => [
            { role => $path =~ /reasoning|calls|prefix/ ? 'assistant'
                    : $path =~ /call_id/ ? 'tool' : 'user',
              content => [ { type => 'text', text => 'q' } ] },
            { role => 'assistant', tool_calls => [
                { id => 'a', type => 'function',
                  function => { name => 'f', arguments => '{}' } } ] },
            { role => 'tool', tool_call_id => 'a', content => 'r' } ],
        stop => ['x'], stream_options => { include_usage => JSON::PP::true },
        thinking => { type => 'disabled' }, response_format =>
            { type => 'text' },
        tools => [ { type => 'function', function => { name => 'f' } } ]);

    my $at = \\%request;
    my @steps = $path =~ /(\w+)/g;

    $at = /^\d+$/ ? \$$at->[$_] : \$$at->{$_} for @steps;
    $$at = 'VALUE';

    return json_encode(\%request) =~ s/"VALUE"/$value/r;
}

is($t->post($chat, with('model', '"deepseek-chat"'))->{status}, 200,
   'a request with every field');

my ($tried, @unnamed) = 0;

for my $path (sort keys %good) {
    for my $type (sort keys %sample) {
        next if index($good{$path}, $type) >= 0;

        my $r = $t->post($chat, with($path, $sample{$type}));
        my $param = $r->{json}{error}{param} // 'null';

        $tried++;
        push @unnamed, "$path $sample{$type}: $r->{status} $param"
            if $r->{status} != 400
               || $param !~ /^\Q$path\E(?:\[0\]|\.\w+)*$/;
    }
}

is(join("\n", @unnamed), '', "$tried wrong types, each refused by name");


# broken at every byte: an error or, where a prefix is whole, an answer

my $body = '{"model":"deepseek-chat","messages":[{"role":"user","content":"h'
           . '\u00e9\ud83d\ude00"},{"role":"assistant","content":null,'
           . '"tool_calls":[{"id":"a","type":"function","function":{"name":'
           . '"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a",'
           . '"content":[{"type":"text","text":"r"}]}],"temperature":1.5e0,'
           . '"stop":["x"],"stream":false}';

is($t->post($chat, $body)->{status}, 200, 'a request with a bit of all');

my @bad;
my $http = $t->connect();

for my $n (0 .. length($body) - 1) {
    my $r = $http->request('POST', $chat, body => substr $body, 0, $n);
    push @bad, "cut $n: $r->{status}" if $r->{status} != 400;
}

is("@bad", '', 'cut at every byte');

srand 4711;

for my $n (0 .. length($body) - 1) {
    my $copy = $body;
    substr($copy, $n, 1) = chr int rand 256;

    my $r = $http->request('POST', $chat, body => $copy);
    push @bad, "byte $n: $r->{status}" if $r->{status} !~ /^(?:200|40[04])$/;
    $http = $t->connect() if ($r->{headers}{connection} || '') eq 'close';
}

is("@bad", '', 'a wrong byte at every place');


# streams are refused the same way, as HTTP

my $r = $t->post($chat, "{$base,\"stream\":true,\"temperature\":9}");
is($r->{status}, 400, 'a stream that is refused');
is($r->{headers}{'content-type'}, 'application/json', 'in JSON');


# an answer of the API is accepted as history of the next turn

for (['cut arguments', '"{\\"city\\": \\"Par"'],
     ['arguments that are an array', '"[1]"'],
     ['arguments that are no JSON', '"x\\ny"'],
     ['no arguments', '""'])
{
    my ($name, $arguments) = @$_;

    is($t->post($chat, "{\"model\":\"deepseek-chat\",\"messages\":[$user,"
                . '{"role":"assistant","content":"","tool_calls":[{"id":"a",'
                . '"type":"function","function":{"name":"f","arguments":'
                . "$arguments}}]},$user]}")->{status},
       200, $name);
}


# nulls and unknown fields are accepted

$r = $t->post($chat, "{$base," . join(',', map { "\"$_\":null" }
    qw/ temperature top_p max_tokens stop stream stream_options tools
        tool_choice response_format logprobs top_logprobs seed thinking
        conversation frequency_penalty presence_penalty logit_bias user /)
    . ',"n":1,"store":false,"metadata":{"a":[1]}}');
is($r->{status}, 200, 'nulls and unknown fields');


# headers

$http = $t->connect();
$http->send("POST $chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
            . "Content-Type: application/json\r\n"
            . "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
is($http->response()->{status}, 400, 'two lengths');

$http = $t->connect();
$http->send("POST $chat HTTP/1.1\r\nHost: x\r\n"
            . "Content-Type: application/json\r\n\r\n");
is($http->response()->{status}, 400, 'no length: no body');


my @lines = grep { /\[(?:warn|error|crit|alert|emerg)\]/ }
            split /\n/, $t->error_log;
is("@lines", '', 'nothing of it is logged above info');


# The log names each refused request by the id that its client got, with what
# refused it, and why.

$r = $t->post($chat, "{$base,\"temperature\":9}");
my $id = $r->{headers}{'x-request-id'};
is($t->logged(qr/\[info\].* request "\Q$id\E" is refused with 400: .*client:/),
   1, 'what nginx has refused');

for (['context x', 'it exceeds the context', 400],
     ['grammar /a x', 'its schema cannot be enforced', 400],
     ['bias x', 'its logit_bias is invalid', 400],
     ['invalid x', 'it is invalid', 500],
     ['draining x', 'the engine stops', 503],
     ['overloaded x', 'the engine is full', 503],
     ['tenant x', 'too many requests of its tenant wait', 429])
{
    my ($code, $why, $status) = @$_;

    $r = $t->post($chat, script("noaccept\nerror $code", $code =~ /^grammar/
             ? (response_format => { type => 'json_schema', json_schema => {
                  name => 'a', schema => { type => 'object' } } }) : (),
             $code =~ /^bias/ ? (logit_bias => { 1 => 1 }) : ()));
    $id = $r->{headers}{'x-request-id'};
    is($r->{status}, $status, "an engine refuses: $code");
    ok($t->logged(qr/pool "v32" refused request "\Q$id\E", because $why: .*x,/),
       'what an engine has refused');

    my $level = $code =~ /^invalid/ ? 'error' : 'info';
    ok($t->logged(qr/\[$level\].* request "\Q$id\E", because/),
       "a client's mistake is no error of the log: $code");
}

$r = $t->post($chat, script("t a\nerror overloaded x"));
$id = $r->{headers}{'x-request-id'};
is($t->logged(qr/an engine of pool "v32" ended request "\Q$id\E", because the/),
   1, 'what an engine has ended');


# The field with the prompt has the name that it has in the API, for requests
# and for counts of their prompts.

{
    my $t = DSA::Test->new('errors of prompts');

    $t->start_fake('context=4096', 'submit=16384');
    $t->start_nginx();

    my $turns = sub { [ { role => 'user', content => 'x' x $_[0] } ] };
    my $uses = sub {
        return [ { role => 'user', content => 'Look.' },
                 map({ { role => 'assistant', content => [ {
                             type => 'tool_use', id => "c$_", name => 'look',
                             input => {} } ] },
                       { role => 'user', content => [ {
                             type => 'tool_result', tool_use_id => "c$_",
                             content => 'x' x $_[0] } ] } } 1 .. 4) ];
    };
    my @edit = (context_management => { edits => [ {
        type => 'clear_tool_uses_20250919',
        trigger => { type => 'input_tokens', value => 1000 } } ] });
    my @compact = (context_management => [ { type => 'compaction',
                                             compact_threshold => 1000 } ]);

    my @paths = (
        [ '/v1/chat/completions', 'messages', $turns ],
        [ '/v1/completions', 'prompt', sub { 'x' x $_[0] } ],
        [ '/v1/messages', 'messages', $turns, max_tokens => 9 ],
        [ '/v1/messages', 'messages', $uses, max_tokens => 9, @edit ],
        [ '/v1/messages/count_tokens', 'messages', $turns ],
        [ '/v1/messages/count_tokens', 'messages', $uses, @edit ],
        [ '/v1/responses', 'input', $turns, store => JSON::PP::false ],
        [ '/v1/responses', 'input', $turns, store => JSON::PP::false,
          @compact ],
        [ '/v1/responses/input_tokens', 'input', $turns ],
        [ '/v1/responses/compact', 'input', $turns ],
    );

    for my $case (@paths) {
        my ($uri, $field, $prompt, %more) = @$case;
        my $name = join ' ', $uri, exists $more{context_management}
                                   ? 'with a count' : ();
        my $ask = sub {
            my ($n) = @_;
            my $r = $t->post($uri, { model => 'deepseek-chat', %more,
                                     $field => $prompt->($n) });

            return $r, $r->{json}{error};
        };

        my ($r, $e) = $ask->(20000);

        is($r->{status}, 413, "$name: more bytes than the link takes");

        if ($uri =~ m{/messages}) {
            like($e->{message}, qr/^$field: The prompt of /, "$name: param");

        } else {
            is($e->{param}, $field, "$name: param");
        }

        next if $uri !~ m{/(?:completions|responses)\z};

        ($r, $e) = $ask->(5000);

        is($e->{param}, $field, "$name: more tokens than the context has");
        like($e->{message}, qr/, your $field resulted in /, "$name: message");
        like($e->{message}, qr/ the length of the $field\.\z/, 'and advice');
    }

    $t->done;
}


# all workers are still alive

is(join(' ', $t->workers), $worker, 'the same worker all the time');

$t->done;
