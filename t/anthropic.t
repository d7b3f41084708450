# Copyright (C) The nginx-dsa authors
#
# The Messages API of Anthropic over HTTP: its events byte by byte, the same
# message in one piece, errors, and each field of a request.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $uri = '/v1/messages';
my $true = JSON::PP::true;
my $dsml = "\x{ff5c}DSML\x{ff5c}";

my $t = DSA::Test->new('anthropic');
my $fake = $t->start_fake('context=100000');

$t->start_nginx(
    server => 'location /anthropic/ { dsa_pass v32; }
               location /ping/ { dsa_pass v32; dsa_keepalive 50ms; }
               location /late/ { dsa_pass v32; dsa_timeout 200ms; }
               location /small/ { dsa_pass v32; client_max_body_size 10; }
               location /closed/ { dsa_pass v32; deny all; }');


sub body {
    my ($content, %more) = @_;

    return { model => 'deepseek-chat', max_tokens => 4096,
             messages => [{ role => 'user', content => $content }], %more };
}


sub say { my ($lines, %more) = @_; return body("!fake\n$lines", %more) }


# The message that the events of a stream add up to, as a client adds them.

sub gather {
    my $m;

    for my $e (grep { $_->{json} } @_) {
        my $j = $e->{json};

        is($j->{type}, $e->{event}, 'the event is named twice');

        if ($j->{type} eq 'message_start') {
            $m = $j->{message};

        } elsif ($j->{type} eq 'content_block_start') {
            is($j->{index}, scalar @{ $m->{content} }, 'the next block');
            push @{ $m->{content} }, $j->{content_block};
            $m->{json} = '';

        } elsif ($j->{type} eq 'content_block_delta') {
            my $d = $j->{delta};
            my $b = $m->{content}[ $j->{index} ];

            $b->{$_} .= $d->{$_}
                for grep { defined $d->{$_} } qw/ text thinking signature /;
            $m->{json} .= $d->{partial_json} // '';

        } elsif ($j->{type} eq 'content_block_stop') {
            my $b = $m->{content}[ $j->{index} ];
            $b->{input} = json_decode($m->{json}) if $b->{type} eq 'tool_use';

        } elsif ($j->{type} eq 'message_delta') {
            $m = { %$m, %{ $j->{delta} }, usage => $j->{usage} };
        }
    }

    delete $m->{json};

    return $m;
}


# ids are random

sub same {
    my ($m) = @_;

    delete $m->{id};

    for my $b (@{ $m->{content} }) {
        like(delete $b->{id}, qr/^call_\d\d_\w{22}$/, 'the id of a call')
            if exists $b->{id};
        like(delete $b->{signature}, qr/^dsa1[0-9a-f]{32}$/, 'a signature')
            if exists $b->{signature};
    }

    return $m;
}


# the bytes of a stream

my $script = "prompt 90\ncached 64\nT why|</think>|so\n"
    . tokens("\\n\\n<${dsml}function_calls>\\n<${dsml}invoke name=\"f\">\\n"
             . "<${dsml}parameter name=\"a\" string=\"true\">x\\x22</${dsml}"
             . "parameter>\\n</${dsml}invoke>\\n</${dsml}function_calls>")
    . "\ncompletion 17\n";
my %tool = (tools => [{ name => 'f', input_schema => { type => 'object' } }]);

my $s = $t->stream(say("noaccept\nprompt 90\ncached 64\naccept\n$script", %tool,
                    thinking => { type => 'adaptive' }),
                uri => "/anthropic$uri");
my $text = join '', map { $_->{raw} } $s->events;
my $id = $s->header('request-id');

like($id, qr/^msg_[0-9a-f]{32}$/, 'request-id');
is($s->header('x-request-id'), $id, 'x-request-id is the same');
is($s->status, 200, 'a stream');
is($s->header('content-type'), 'text/event-stream', 'its type');

my ($call) = $text =~ /"id":"(call_00_\w{22})"/;
my $usage = '"usage":{"input_tokens":26,"cache_creation_input_tokens":0,'
    . '"cache_read_input_tokens":64,"output_tokens":';
my $thinking = ',"output_tokens_details":{"thinking_tokens":';
my $tools = '},"server_tool_use":null';
my $details = ',"cache_creation":{"ephemeral_5m_input_tokens":0,'
    . '"ephemeral_1h_input_tokens":0},"inference_geo":null,"service_tier":'
    . '"standard","speed":"standard"';
my $absent = ',"stop_details":null,"container":null';
my $signature = 'dsa1' . substr $id, 4;

is($text, join('', map { my ($type) = /^\{"type":"(\w+)"/;
                         "event: $type\ndata: $_\n\n" }
    '{"type":"message_start","message":{"id":"' . $id . '","type":"message",'
    . '"role":"assistant","model":"deepseek-chat","content":[],'
    . '"stop_reason":null,"stop_sequence":null' . $absent
    . ',"diagnostics":null,' . "${usage}0${thinking}0$tools$details}}}",
    '{"type":"content_block_start","index":0,"content_block":{"type":'
    . '"thinking","thinking":"","signature":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":'
    . '"thinking_delta","thinking":"why"}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":'
    . '"signature_delta","signature":"' . $signature . '"}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"content_block_start","index":1,"content_block":{"type":"text",'
    . '"text":"","citations":null}}',
    '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta",'
    . '"text":"so"}}',
    '{"type":"content_block_stop","index":1}',
    '{"type":"content_block_start","index":2,"content_block":{"type":'
    . '"tool_use","id":"' . $call . '","name":"f","input":{},"caller":'
    . '{"type":"direct"}}}',
    '{"type":"content_block_delta","index":2,"delta":{"type":'
    . '"input_json_delta","partial_json":"{\"a\": \"x\\\\\"\"}"}}',
    '{"type":"content_block_stop","index":2}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use",'
    . '"stop_sequence":null' . $absent . '},'
    . "${usage}17${thinking}2$tools}}",
    '{"type":"message_stop"}'), 'a stream, byte by byte');

my $r = $t->post("/anthropic$uri", say($script, %tool,
                                       thinking => { type => 'adaptive' }));
$id = $r->{headers}{'request-id'};
$signature = 'dsa1' . substr $id, 4;
($call) = $r->{body} =~ /"id":"(call_00_\w{22})"/;

is($r->{body}, '{"id":"' . $id . '","type":"message","role":"assistant",'
   . '"model":"deepseek-chat","content":[{"type":"thinking","thinking":"why",'
   . '"signature":"' . $signature . '"},{"type":"text","text":"so",'
   . '"citations":null},'
   . '{"type":"tool_use","id":"' . $call . '","name":"f","input":'
   . '{"a": "x\""},"caller":{"type":"direct"}}],"stop_reason":"tool_use",'
   . '"stop_sequence":null' . $absent . ',"diagnostics":null,'
   . "${usage}17${thinking}2$tools$details}}", 'a message, byte by byte');


# streamed and in one piece

sub calls {
    return tokens("\\n\\n<${dsml}function_calls>\\n" . join('', map {
        my ($name, @args) = @$_;
        "<${dsml}invoke name=\"$name\">\\n" . join('', map {
            "<${dsml}parameter name=\"$_->[0]\" string=\"$_->[1]\">$_->[2]"
            . "</${dsml}parameter>\\n" } @args) . "</${dsml}invoke>\\n"
    } @_) . "</${dsml}function_calls>");
}


my %think = (thinking => { type => 'enabled', budget_tokens => 1024 });

for (
    [ 'text', 'end_turn',
      "t a\nt \\n\nt \\x22b\\x5c\\x01\nT \\xe6\\x97\\xa5|x" ],
    [ 'nothing', 'end_turn', 'done stop' ],
    [ 'cut', 'max_tokens', "t a\ndone length" ],
    [ 'thinking', 'end_turn', "t why\nt </think>\nt so", %think ],
    [ 'no end of thinking', 'max_tokens', "t why\ndone length", %think ],
    [ 'no thinking', 'end_turn', "T </think>|so", %think ],
    [ 'a call', 'tool_use', "t Sure.\n" . calls([ 'f', [ qw/ n false 1.50 / ],
                                                  [ qw/ s true 2 / ] ]) ],
    [ 'two calls', 'tool_use', calls([ 'f', [ 'o', 'false', '{"a": [1]}' ] ],
                                     [ 'g' ]) ],
    [ 'thinking and a call', 'tool_use',
      "T hm|</think>|ok\n" . calls([ 'f' ]), %think ],
    [ 'no calls', 'end_turn', "t x\n" . calls([ 'f' ]),
      tool_choice => { type => 'none' } ])
{
    my ($name, $reason, $lines, %more) = @$_;

    my $request = say("prompt 70\ncached 7\n$lines", %tool, %more);
    my $whole = $t->post($uri, $request);
    my $m = gather($t->stream($request, uri => $uri)->events);

    is($whole->{status}, 200, "$name: status") or diag($whole->{body});
    is($m->{stop_reason}, $reason, "$name: stop_reason");
    is($m->{usage}{input_tokens} + $m->{usage}{cache_read_input_tokens}, 70,
       "$name: input tokens");

    # the end of a stream has only counts

    my $of_start = delete @{ $whole->{json}{usage} }{qw/
                       cache_creation inference_geo service_tier speed /};
    is($of_start, 'standard', "$name: the speed");
    is_deeply(same($m), same($whole->{json}), "$name: streamed and whole");
}


# what ended an answer: the client's own limit or, before it, the context

for ([ 10, 'max_tokens' ], [ 11, 'model_context_window_exceeded' ],
     [ 4096, 'model_context_window_exceeded' ])
{
    my ($max, $reason) = @$_;
    my $request = say("prompt 99990\nt a\ndone length", max_tokens => $max);

    $r = $t->post($uri, $request);
    is($r->{json}{stop_reason}, $reason, "10 tokens left of $max");

    $request->{stream} = JSON::PP::true;
    is(gather($t->stream($request, uri => $uri)->events)->{stop_reason},
       $reason, 'also in a stream');
}

$r = $t->post($uri, say("t Sure.\n" . tokens("<${dsml}invoke name=\"f\">\\n"
                        . "<${dsml}parameter name=\"a\" string=\"true\">x")
                        . "\ndone length", %tool));
is_deeply($r->{json}{content}[1]{input}, {}, 'arguments that were cut');
is($r->{json}{stop_reason}, 'max_tokens', 'and the reason');


# pings: message_start waits for the tokens of the prompt, ping does not

$s = $t->stream(say("noaccept\nwait\naccept\nwait\nt x"), uri => "/ping$uri");
is($s->next_event->{raw}, "event: ping\ndata: {\"type\":\"ping\"}\n\n",
   'a ping before the prompt is counted');
ctl($fake, 'go 1');
my $e;
do { $e = $s->next_event } while ($e->{event} eq 'ping');
is($e->{event}, 'message_start', 'then the start');
is($s->next_event->{event}, 'ping', 'and pings before the first token');
ctl($fake, 'go 1');
is((grep { $_->{event} ne 'ping' } $s->events)[-1]{event}, 'message_stop',
   'and the end');


# errors

sub refused {
    my ($r, $status, $type, $like, $name) = @_;

    is($r->{status}, $status, "$name: status") or diag($r->{body});
    is(join(' ', sort keys %{ $r->{json} || {} }), 'error request_id type',
       "$name: shape") or diag($r->{body});
    is($r->{json}{type}, 'error', "$name: type");
    is($r->{json}{error}{type}, $type, "$name: the error's type");
    like($r->{json}{error}{message}, $like, "$name: message");
    is($r->{json}{request_id}, $r->{headers}{'request-id'}, "$name: id");
    like($r->{json}{request_id}, qr/^(?:msg_|req_)?[0-9a-f]{32}$/,
         "$name: an id");
}


my $bad = 'invalid_request_error';

refused($t->get($uri), 405, $bad, qr/POST/, 'GET');
refused($t->post($uri, '{'), 400, $bad, qr/JSON/, 'no JSON');
refused($t->post($uri, '[]'), 400, $bad, qr/sequence/, 'no object');
refused($t->post($uri, body('x'), headers => ['Content-Type', 'text/plain']),
        415, $bad, qr/application.json/, 'no type');
refused($t->post($uri, body('x', model => 'no')), 404,
        'not_found_error', qr/^The model "no" does not exist/, 'no model');
refused($t->post("/small$uri", body('x')), 413, 'request_too_large',
        qr/limit of 10 bytes/, 'a long body');
refused($t->post("/closed$uri", body('x')), 403, 'permission_error',
        qr/not allow/, 'deny');
refused($t->post($uri, say("noaccept\nerror overloaded x")), 503,
        'overloaded_error', qr/try again/, 'busy');
refused($t->post($uri, body('x' x 99996, max_tokens => 1)), 400, $bad,
        qr/^prompt is too long: 100000 tokens > 100000 maximum$/,
        'a prompt that is too long');
refused($t->post($uri, say('error internal x')), 500, 'api_error',
        qr/engine failed/, 'an engine that fails');

$s = $t->stream(say("t a\nwait\nerror internal x"), uri => $uri);
$e = $s->next_event until $e->{event} eq 'content_block_delta';
ctl($fake, 'go 1');
@_ = $s->events;
is($_[-1]{event}, 'error', 'an error within a stream');
is_deeply($_[-1]{json}, { type => 'error', request_id =>
              $s->header('request-id'), error => { type => 'api_error',
              message => 'The engine failed.' } }, 'in its shape');
is(scalar(grep { $_->{event} eq 'message_stop' } @_), 0, 'without an end');


# counting: a prompt has as many tokens as the message that it begins

my $count = "$uri/count_tokens";

for (body('x'), body('x', %tool, system => 'S'), body('x', %think)) {
    my $n = $t->post("/anthropic$count", $_);
    my $m = $t->post($uri, $_);

    is($n->{status}, 200, 'a count') or diag($n->{body});
    is($n->{body}, '{"input_tokens":' . $m->{json}{usage}{input_tokens} . '}',
       'of the same prompt');
    like($n->{headers}{'request-id'}, qr/^req_[0-9a-f]{32}$/, 'its id');
}

$e = body('x', stream => $true);
delete $e->{max_tokens};
is($t->post($count, $e)->{headers}{'content-type'}, 'application/json',
   'neither max_tokens nor stream belong to it');
refused($t->post($count, body('x', model => 'no')), 404, 'not_found_error',
        qr/^The model "no" does not exist/, 'a count without a model');
refused($t->get($count), 405, $bad, qr/POST/, 'GET of a count');
refused($t->post($count, body('x', temperature => 9)), 400, $bad,
        qr/temperature/, 'a count with a wrong field');

# a client that leaves, and a timeout: both end the COUNT, and no other request

$s = $t->stream(say("t a\nwait\nt b"), uri => $uri);
$e = $s->next_event until ($e->{event} // '') eq 'content_block_delta';

refused($t->post("/late$count", body("!fake\nhold")), 504, 'timeout_error',
        qr/not complete in time/, 'a count that takes too long');

my $counts = sub { scalar grep { /^count / } split /\n/, $fake->output };
my $before = $counts->();
my $http = $t->connect;
$http->send_request('POST', $count, body => json_encode(body("!fake\nhold")));
wait_until(sub { $counts->() > $before && scalar(cancelled($fake)) == 1 },
           20, 'the first cancel and the second count');
$http->close;
wait_until(sub { scalar(cancelled($fake)) == 2 }, 20, 'the second cancel');
is(ctl($fake, 'sessions'), 1, 'the session stays');
ctl($fake, 'go 1');
is(($s->events)[-1]{event}, 'message_stop', 'and so does a stream');
is($t->post($count, body('x'))->{status}, 200, 'slots can be used again');


# the requests of Claude Code

my %prompt;

for my $name (qw/ first first-again tools later title quota /) {
    my $body = read_file("$DSA::Test::root/t/data/anthropic/$name.json");
    my $r = $t->post("$uri?beta=true", $body, headers =>
                     [ 'anthropic-version', '2023-06-01', 'anthropic-beta',
                       'claude-code-20250219,context-management-2025-06-27' ]);

    is($r->{status}, 200, "Claude Code's $name") or diag($r->{body});
    ($prompt{$name}) = (submitted($fake))[-1] =~ / prompt=(.*)/;
}

my $why = "Why does the test fail?[<\x{ff5c}Assistant\x{ff5c}>]";
my $note = '<system-reminder>\nThe TodoWrite tool hasn\'t been used recently.'
    . '\n</system-reminder>';
utf8::encode($_) for $why, $note;

is($prompt{'first-again'}, $prompt{first}, 'a billing header changes nothing');
unlike($prompt{$_}, qr/x-anthropic-billing/, "$_: it is not in the prompt")
    for sort keys %prompt;
ok(index($prompt{first}, "]You are Claude Code, Anthropic's official CLI for "
         . 'Claude.\nYou are an interactive') > 0, 'the system blocks');
is(scalar(() = $prompt{first} =~ /\\n\{"name": "/g), 9, 'each tool in a line');
ok(index($prompt{first}, 'Use tabs.\n</system-reminder>\n' . $why) > 0,
   'reminders beside a question');
ok(index($prompt{tools}, "$why\[<think>]I look at the log and at the code."
         . '[</think>]I\'ll look at both.') > 0,
   'the reasoning of a tool round');
ok(index($prompt{tools}, '<result>Exit code 2\nFAIL: a.c:7</result>\n<result>'
         . "     6\tint x;\\n     7\tassert(x);\\n\\n\\n$note</result>\\n"
         . '</function_results>\n\n[<think>]') > 0,
   'results, and the reminder in the last one') or diag($prompt{tools});
ok(index($prompt{later}, 'has not been read yet.</tool_use_error>\n\nThe file '
         . '/src/project/a.c was changed by the user.</result>') > 0,
   'a system message in the result before it') or diag($prompt{later});
unlike($prompt{later}, qr/I look at the log/, 'a new question ends reasoning');
like($prompt{later}, qr/interrupted by user\]Go on\.\[/, 'the question');

is($t->post("$count?beta=true",
            scalar read_file("$DSA::Test::root/t/data/anthropic/count.json"))
     ->{status}, 200, 'Claude Code\'s count');


# each field: values that are accepted, and values that are refused

my $int = qr/expected an integer/;
my $str = qr/expected a string/;
my $bool = qr/expected a boolean/;
my $cache = { type => 'ephemeral', ttl => '1h' };
my $forever = { type => 'ephemeral', ttl => 'x' };
my $ttl = qr/cache_control.ttl: .*expected `5m` or `1h`/;
my $format = { type => 'json_schema', schema => { enum => [ 'a', 'b' ] } };

for (
    [ 'model', [ 'deepseek-chat', 'deepseek-reasoner' ],
      [ 1, qr/expected/ ], [ undef, qr/name of a model/ ],
      [ '', qr/name of a model/ ] ],
    [ 'max_tokens', [ 1, 99000, 3.0, 100001, 1e15 ], [ 0, qr/1 or more/ ],
      [ -1, qr/^max_tokens: the value -1 is too small; expected 1 or more$/ ],
      [ 1.5, $int ], [ '1', $int ], [ undef, $int ] ],
    [ 'stream', [ JSON::PP::false, undef ], [ 1, $bool ], [ 'x', $bool ] ],
    [ 'temperature', [ 0, 1, 2, undef ], [ -0.1, qr/\[0, 2\]/ ],
      [ 2.1, qr/\[0, 2\]/ ], [ 'hot', qr/expected a number/ ] ],
    [ 'top_p', [ 0.001, 1, undef ], [ 0, qr/\(0, 1/ ], [ 1.1, qr/\(0, 1/ ] ],
    [ 'top_k', [ 0, -1, 1, 40, undef ], [ 'x', qr/expected a number/ ] ],
    [ 'stop_sequences', [ [], [ 'a' ], [ ('b') x 16 ], undef ],
      [ 'a', qr/array of strings/ ], [ [ 1 ], qr/stop_sequences\[0\]: inv/ ],
      [ [ '' ], qr/of 0 bytes; expected 1 to 1024/ ],
      [ [ ('b') x 17 ], qr/17 stop sequences; at most 16/ ],
      [ [ 'b' x 1025 ], qr/of 1025 bytes/ ] ],
    [ 'system', [ 'S', '', [], undef, [{ type => 'text', text => 'S',
                                         cache_control => $cache }] ],
      [ 1, qr/system: invalid type/ ], [ [ 1 ], qr/content block object/ ],
      [ [{ type => 'image' }], qr/`image` are not supported .* `text`$/ ],
      [ [{ type => 'text' }], qr/system\[0\].text: missing field/ ] ],
    [ 'thinking', [ { type => 'disabled' }, { type => 'adaptive' }, undef,
                    { type => 'enabled', budget_tokens => 1024 },
                    { type => 'enabled', budget_tokens => 4095 },
                    { type => 'adaptive', display => 'summarized' } ],
      [ 1, qr/thinking: invalid type/ ], [ {}, qr/thinking.type: missing/ ],
      [ { type => 'on' }, qr/unknown variant `on`/ ],
      [ { type => 'enabled' }, qr/budget_tokens: missing field/ ],
      [ { type => 'enabled', budget_tokens => 1023 },
        qr/greater than or equal to 1024/ ],
      [ { type => 'enabled', budget_tokens => 4096 },
        qr/`max_tokens` must be greater than `thinking.budget_tokens`/ ],
      [ { type => 'enabled', budget_tokens => 'x' }, $int ],
      [ { type => 'adaptive', display => 'omitted' },
        qr/thinking.display: this value is not supported/ ] ],
    [ 'tools', [ [], undef, $tool{tools},
                 [{ %{ $tool{tools}[0] }, type => 'custom', description => 'D',
                    cache_control => $cache, strict => JSON::PP::false,
                    defer_loading => JSON::PP::false,
                    eager_input_streaming => $true,
                    input_examples => [ {} ], allowed_callers => ['direct'] }],
                 [ map { { name => "f$_", input_schema => {} } } 1 .. 128 ] ],
      [ {}, qr/array of tools/ ], [ [ 1 ], qr/tools\[0\]: invalid type/ ],
      [ [{ name => 'f' }], qr/tools\[0\].input_schema: missing field/ ],
      [ [{ input_schema => {} }], qr/tools\[0\].name: missing field/ ],
      [ [{ name => 'a b', input_schema => {} }], qr/does not match pattern/ ],
      [ [ ({ name => 'f', input_schema => {} }) x 2 ], qr/must be unique/ ],
      [ [{ %{ $tool{tools}[0] }, description => 1 }], $str ],
      [ [{ type => 'web_search_20250305', name => 'web_search' }],
        qr/tools\[0\].type: tools of this type are not supported/ ],
      [ [{ %{ $tool{tools}[0] }, defer_loading => $true }],
        qr/tools cannot be searched/ ],
      [ [{ %{ $tool{tools}[0] }, allowed_callers => ['code_execution'] }],
        qr/only the model calls tools/ ],
      [ [ map { { name => "f$_", input_schema => {} } } 1 .. 129 ],
        qr/129 tools, at most 128/ ] ],
    [ 'tool_choice', [ { type => 'auto' }, { type => 'none' }, undef,
                       { type => 'auto', disable_parallel_tool_use =>
                         JSON::PP::false } ],
      [ 'auto', qr/tool_choice: invalid type/ ],
      [ {}, qr/tool_choice.type: missing field/ ],
      [ { type => 'some' }, qr/unknown variant `some`/ ] ],
    [ 'metadata', [ {}, { user_id => 'u' }, { user_id => undef }, undef ],
      [ 1, qr/metadata: invalid type/ ], [ { user_id => 1 }, $str ] ],
    [ 'output_config',
      [ {}, map({ { effort => $_ } } qw/ low medium high xhigh max /),
        { effort => undef, format => undef }, undef, { format => $format },
        { effort => 'low', format => $format } ],
      [ 1, qr/output_config: invalid type/ ], [ { effort => 1 }, $str ],
      [ { effort => 'none' },
        qr/output_config.effort: unknown variant `none`, expected one of/ ],
      [ { format => 1 }, qr/output_config.format: invalid type/ ],
      [ { format => {} }, qr/output_config.format.type: missing field/ ],
      [ { format => { type => 'json_object' } },
        qr/unknown variant `json_object`, expected `json_schema`/ ],
      [ { format => { type => 'json_schema' } },
        qr/output_config.format.schema: missing field/ ],
      [ { format => { %$format, schema => $true } },
        qr/output_config.format.schema: invalid type/ ] ],
    [ 'output_format', [ undef, $format ],
      [ 'x', qr/output_format: invalid type/ ] ],
    [ 'context_management',
      [ undef, {}, { edits => [] }, { edits => [{ keep => 'all',
                              type => 'clear_thinking_20251015' }] },
        { edits => [{ type => 'clear_tool_uses_20250919' }] } ],
      [ 1, qr/context_management: invalid type/ ],
      [ { edits => 1 }, qr/expected an array/ ],
      [ { edits => [{ type => 'clear_all' }] },
        qr/context_management.edits\[0\]: this edit is not supported/ ] ],
    [ 'mcp_servers', [ undef, [] ], [ [ {} ], qr/calls no other servers/ ] ],
    [ 'service_tier', [ 'auto', 'standard_only', undef ],
      [ 'priority', qr/expected "auto", "standard_only"/ ] ],
    [ 'speed', [ 'standard', undef ], [ 'fast', qr/expected "standard"/ ] ],
    [ 'inference_geo', [ 'global', 'not_available', undef ],
      [ 'us', qr/expected "global", "not_available"/ ] ],
    [ 'diagnostics', [ { previous_message_id => undef }, {}, undef ],
      [ 'x', qr/expected an object/ ] ],
    [ 'fallback_credit_token', [ undef ], [ 'x', qr/is not supported/ ] ],
    [ 'billing_policy', [ undef ], [ {}, qr/is not supported/ ] ],
    [ 'container', [ 'x', { skills => [] }, undef ],
      [ 1, qr/id of a container, or an object/ ] ],
    [ 'cache_control', [ { type => 'ephemeral' }, undef,
                         map { { type => 'ephemeral', ttl => $_ } }
                             '5m', '1h', undef ],
      [ 'x', qr/cache_control: invalid type/ ],
      [ {}, qr/cache_control.type: missing field/ ],
      [ { type => 'x' }, qr/cache_control.type: unknown variant `x`/ ],
      [ { type => 'ephemeral', ttl => '2h' },
        qr/cache_control.ttl: unknown variant `2h`, expected `5m` or `1h`/ ],
      [ { type => 'ephemeral', ttl => 5 }, $ttl ] ],
    [ 'betas', [ [ 'x' ] ] ],
    [ 'unknown', [ 1 ] ],
    map([ $_, [ undef ], [ 'x', qr/^$_: this field is not supported by/ ] ],
        qw/ stop max_completion_tokens max_thinking_tokens response_format n
            conversation /))
{
    my ($name, $good, @bad) = @$_;

    for my $value (@$good) {
        my $r = $t->post($uri, body('x', $name => $value));

        is($r->{status}, 200, "$name: " . json_encode([ $value ]))
            or diag($r->{body});
    }

    refused($t->post($uri, body('x', $name => $_->[0])), 400, $bad, $_->[1],
            "$name: " . substr json_encode([ $_->[0] ]), 0, 60) for @bad;
}

# cache_control of each part that may have one

for ([ 'system[0]', system => [ { type => 'text', text => 'S',
                                  cache_control => $forever } ] ],
     [ 'tools[0]', tools => [ { %{ $tool{tools}[0] },
                                cache_control => $forever } ] ],
     [ 'messages[0].content[0]', messages => [
         { role => 'user', content => [ { type => 'text', text => 'x',
                                          cache_control => $forever } ] } ] ],
     [ 'messages[1].content[0]', messages => [
         { role => 'user', content => 'x' },
         { role => 'assistant', content => [
             { type => 'tool_use', id => 'a', name => 'f', input => {},
               cache_control => $forever } ] } ] ],
     [ 'messages[2].content[0]', messages => [
         { role => 'user', content => 'x' },
         { role => 'assistant', content => [
             { type => 'tool_use', id => 'a', name => 'f', input => {},
               cache_control => $cache } ] },
         { role => 'user', content => [
             { type => 'tool_result', tool_use_id => 'a', content => 'x',
               cache_control => $forever } ] } ] ])
{
    my ($path, %field) = @$_;

    refused($t->post($uri, { %{ body('x') }, %field }), 400, $bad,
            qr/\Q$path\E\.$ttl/, "cache_control of $path");
}

# forced calls become a grammar, which the engine gets

for ([ { type => 'any' } ], [ { type => 'tool', name => 'f' } ],
     [ { type => 'auto', disable_parallel_tool_use => $true } ],
     [ { type => 'tool', name => 'g' }, qr/no tool has the name "g"/ ],
     [ { type => 'tool' }, qr/tool_choice.name: missing field/ ])
{
    my ($choice, $like) = @$_;
    my $r = $t->post($uri, body('x', %tool, tool_choice => $choice));

    $like ? refused($r, 400, $bad, $like, 'a tool that is not there')
          : is($r->{status}, 200, 'forced: ' . json_encode($choice));
}

refused($t->post($uri, body('x', tool_choice => { type => 'any' })), 400,
        $bad, qr/"tools" is empty/, 'any tool of none');
refused($t->post($uri, { model => 'deepseek-chat', max_tokens => 1 }), 400,
        $bad, qr/messages: missing field/, 'no messages');

# so does a format, which is in the prompt as well

my $of_schema = qr/\ grammar=\{"type":"json_schema","strict":true,
                    "schema":\{"enum":\ \["a",\ "b"\]\}\}$/x;

for ([ 'a format', { output_config => { format => $format } },
       $of_schema ],
     [ 'its beta', { output_format => $format },
       $of_schema ],
     [ 'a format beside tools', { %tool, output_format => $format },
       qr/ grammar=\{"type":"tools",.*"text":\{"type":"json_schema",/ ])
{
    my ($name, $fields, $grammar) = @$_;

    is($t->post($uri, body('x', %$fields))->{status}, 200, $name);
    like((submitted($fake))[-1], $grammar, "$name: the grammar");
    like((submitted($fake))[-1], qr/## Response Format:.*"type": "json_schema"/,
         "$name: the prompt");
}

# what the engine refuses in it, in an answer and in a count

for ([ { output_config => { format => $format } }, 'properties.a',
       'output_config.format.schema.properties.a' ],
     [ { output_format => $format }, '', 'output_format.schema' ],
     [ { %tool, tool_choice => { type => 'any' } },
       'tools[0].function.parameters.items', 'tools[0].input_schema.items' ])
{
    my ($fields, $path, $name) = @$_;

    for my $to ($uri, "$uri/count_tokens") {
        my $body = say("noaccept\nerror grammar $path \"if\" is unknown\n",
                       %$fields);
        delete $body->{max_tokens} if $to ne $uri;

        refused($t->post($to, $body), 400, $bad,
                qr/^\Q$name: "if" is unknown\E$/, "$to: $name");
    }
}

refused($t->post($uri, body('x', output_config => { format => $format },
                            output_format => $format)), 400, $bad,
        qr/output_format: the request has output_config.format as well/,
        'two formats');

for ([ output_format => $format ], [ output_config => { format => $format } ]) {
    my ($name) = @$_;

    refused($t->post($uri, body('x', @$_, messages => [
                { role => 'user', content => 'x' },
                { role => 'assistant', content => '"' } ])), 400, $bad,
            qr/^$name.*: the structure of an answer that continues a prefix/,
            "$name with a prefix");
}

for (qw/ anthropic-version anthropic-beta /) {
    is($t->post($uri, body('x'), headers => [ $_, 'x' ])->{status}, 200,
       "the header $_");
}

# the last lines of the engine have what became of the fields

$t->post($uri, body('x', stop_sequences => [ 'a', 'b' ], max_tokens => 9,
                    temperature => 0.5, top_p => 0.25));
like((submitted($fake))[-1],
     qr/max=9 .*temperature=0\.5.*top_p=0\.25.*stop=a\|b/,
     'fields that the engine gets');

$t->done;
