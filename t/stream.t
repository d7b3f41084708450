#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The chunks of a stream, one by one, and that an answer in one piece has the
# same contents.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;

my $t = DSA::Test->new('stream');
my $fake = $t->start_fake('context=100000', 'temperature=0.75',
                          'top_p=0.875');

$t->start_nginx(
    server => 'location /ping/ { dsa_pass v32; dsa_keepalive 50ms; }
               location /json/ { dsa_pass v32; dsa_keepalive 50ms json=on; }
               location /late/ { dsa_pass v32; dsa_keepalive 50ms;
                                 dsa_timeout 4s; }');


# The deltas of a stream, with the other members of their choices.

sub deltas {
    my ($request, %opt) = @_;

    my @events = $t->stream($request, %opt)->events;

    return map {
        !$_->{json} ? $_->{data}
        : $_->{json}{error} ? { error => $_->{json}{error} }
        : { %{ $_->{json}{choices}[0]{delta} },
            ($_->{json}{choices}[0]{finish_reason}
             ? (finish => $_->{json}{choices}[0]{finish_reason}) : ()) }
    } grep { defined $_->{data} } @events;
}


# Two records may come in one wake, and be one chunk: where that matters the
# script waits between them, and goes on when the one before has arrived.

sub stepwise {
    my ($request, $steps) = @_;

    my $s = $t->stream($request);
    my @events;

    for (1 .. $steps) {
        ctl($fake, 'go');

        do {
            push @events, $s->next_event();
        } until ($events[-1]{json}{choices}[0]{delta}{content} // '') ne '';
    }

    return (@events, $s->events);
}


# the bytes of a whole stream

my $s = $t->stream(ask('x'));
is($s->status, 200, 'a stream');
is($s->header('content-type'), 'text/event-stream', 'its type');
is($s->header('cache-control'), 'no-cache', 'is not to be cached');
is($s->header('x-accel-buffering'), 'no', 'nor buffered');
is($s->header('content-length'), undef, 'has no length');
$s->events;

my $text = join '', map { $_->{raw} }
                    stepwise(script("wait\nT a|b\nwait\nt c\n"), 2);
my ($head) = $text =~ /^data:\ (\{"id":"chatcmpl-[0-9a-f]{32}",
    "object":"chat\.completion\.chunk","created":\d+,"model":"deepseek-chat",
    "system_fingerprint":"fp_0123456789",
    "choices":\[\{"index":0,"delta":\{)/x;
ok($head, 'how a chunk begins') or diag($text);

my $prompt = length("!fake\nwait\nT a|b\nwait\nt c\n") + 4;

is($text, join('', map({ "data: $head$_\n\n" }
    '"role":"assistant","content":"","refusal":null},"logprobs":null,'
    . '"finish_reason":null}]}',
    '"content":"ab"},"logprobs":null,"finish_reason":null}]}',
    '"content":"c"},"logprobs":null,"finish_reason":null}]}',
    '"content":""},"logprobs":null,"finish_reason":"stop"}],"usage":{'
    . "\"prompt_tokens\":$prompt,\"completion_tokens\":4,\"total_tokens\":"
    . ($prompt + 4) . ',"prompt_tokens_details":{"cached_tokens":0,'
    . '"audio_tokens":0,"gpu_tokens":0,"host_tokens":0,"redis_tokens":0},'
    . '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,'
    . '"accepted_prediction_tokens":0,"rejected_prediction_tokens":0,'
    . '"draft_tokens":0,"accepted_draft_tokens":0},'
    . "\"prompt_cache_hit_tokens\":0,\"prompt_cache_miss_tokens\":$prompt}}"),
    "data: [DONE]\n\n"), 'a stream, byte by byte');


# chat mode, thinking mode

is_deeply([deltas(script("T x|y\n"))],
          [{ role => 'assistant', content => '', refusal => undef },
           { content => 'xy' }, { content => '', finish => 'stop' },
           '[DONE]'], 'chat');

is_deeply([deltas(script("T r1|r2|</think>|c\n",
                         model => 'deepseek-reasoner'))],
          [{ role => 'assistant', content => undef, reasoning_content => '',
             refusal => undef },
           { content => undef, reasoning_content => 'r1r2' },
           { content => 'c', reasoning_content => undef },
           { content => '', reasoning_content => undef, finish => 'stop' },
           '[DONE]'], 'thinking: reasoning, then content');

is_deeply([deltas(script("T only\ndone length\n",
                         thinking => { type => 'enabled' }))]->[-2],
          { content => '', reasoning_content => undef, finish => 'length' },
          'thinking that used up max_tokens');

is_deeply([deltas(script("done stop\n"))],
          [{ role => 'assistant', content => '', refusal => undef },
           { content => '', finish => 'stop' }, '[DONE]'], 'nothing to say');

my @usage = map { $_->{json} } grep { $_->{json} }
            $t->stream(script("T r|</think>|c\ncached 7\ntiers 4 1\n",
                              model => 'deepseek-reasoner',
                              stream_options => { include_usage => $true }))
              ->events;
is(join(' ', map { exists $_->{usage} ? defined $_->{usage} ? 'u' : 'null'
                                      : 'none' } @usage),
   'null null null u', 'include_usage: null until the last');
is_deeply($usage[-1]{usage}{completion_tokens_details},
          { reasoning_tokens => 2, audio_tokens => 0,
            accepted_prediction_tokens => 0, rejected_prediction_tokens => 0,
            draft_tokens => 0, accepted_draft_tokens => 0 },
          'reasoning tokens');
is_deeply([@{ $usage[-1]{usage} }{qw/ prompt_cache_hit_tokens
              completion_tokens /},
           $usage[-1]{usage}{prompt_tokens_details}{cached_tokens},
           $usage[-1]{usage}{prompt_cache_miss_tokens} + 7
           - $usage[-1]{usage}{prompt_tokens}],
          [7, 4, 7, 0], 'cached tokens, by both names');
is_deeply($usage[-1]{usage}{prompt_tokens_details},
          { cached_tokens => 7, audio_tokens => 0, gpu_tokens => 2,
            host_tokens => 4, redis_tokens => 1 }, 'and by tier');
is(scalar(grep { $_->{id} ne $usage[0]{id}
                 || $_->{created} != $usage[0]{created} } @usage), 0,
   'one id and time in all chunks');


# one wake, one chunk; several wakes, several

my @events = stepwise(script("wait\nt one\nwait\nt two\nwait\nt three\n"), 3);
is(join('|', map { $_->{json}{choices}[0]{delta}{content} // '' }
             grep { $_->{json} } @events),
   '|one|two|three|', 'each token as soon as it comes');


# tool calls

my $dsml = "\xef\xbd\x9cDSML\xef\xbd\x9c";
my $call = sub {
    my ($name, $args) = @_;
    return "<${dsml}invoke name=\"$name\">\\n$args</${dsml}invoke>\\n";
};
my $calls = "\\n\\n<${dsml}function_calls>\\n"
    . $call->('get_weather', "<${dsml}parameter name=\"city\" "
              . "string=\"true\">Paris \"x\"</${dsml}parameter>\\n")
    . $call->('now', '') . "</${dsml}function_calls>";
utf8::decode($calls);

my %tools = (tools => [map { { type => 'function',
                               function => { name => $_ } } }
                       qw/ get_weather now /]);

$calls = tokens($calls);

@events = deltas(script("t Sure.\n$calls\n", %tools));
my @ids = map { $_->{tool_calls} && $_->{tool_calls}[0]{id} || () }
          grep { ref } @events;
is(scalar(@ids), 2, 'two calls');
like($ids[0], qr/^call_00_[A-Za-z0-9]{20,}$/, 'the first one\'s id');
like($ids[1], qr/^call_01_[A-Za-z0-9]{20,}$/, 'the second one\'s id');

my @calls = grep { $_->{tool_calls} } grep { ref } @events;
is_deeply($calls[0], { tool_calls => [{ index => 0, id => $ids[0],
              type => 'function', function => { name => 'get_weather',
              arguments => '' } }] }, 'a call begins with its name');
is(join('', map { $_->{tool_calls}[0]{function}{arguments} }
            grep { $_->{tool_calls}[0]{index} == 0 } @calls),
   '{"city": "Paris \"x\""}', 'arguments in fragments');
is(scalar(grep { exists $_->{tool_calls}[0]{id} } @calls[1 .. $#calls]), 1,
   'ids only where a call begins');
is($events[-2]{finish}, 'tool_calls', 'the finish reason');

@events = deltas(script("$calls\n", %tools, tool_choice => 'none'));
is(scalar(grep { ref && $_->{tool_calls} } @events), 0,
   'tool_choice none: text only');


# the same in one piece

my @cases = (
    ['text', script("t a\nt \\n\nt \\x22b\\x5c\\x01\nT \\xe6\\x97\\xa5|x\n")],
    ['thinking', script("t why\nt </think>\nt so\n",
                        model => 'deepseek-reasoner')],
    ['no end of thinking', script("t why\ndone length\n",
                                  model => 'deepseek-reasoner')],
    ['calls', script("t Sure.\n$calls\n", %tools)],
    ['calls after thinking', script("T hm</think>|ok\n$calls\n", %tools,
                                    model => 'deepseek-reasoner')],
    ['a call cut off', script(substr($calls, 0, 120) . "\ndone length\n",
                              %tools)],
    ['markers in prose', script("t 1 < 2\nt \\n\\n<\nt b\\n\\n\n")],
);

for (@cases) {
    my ($name, $request) = @$_;

    my $whole = $t->post($chat, $request)->{json};
    my $parts = DSA::HTTP->gather($t->stream($request)->events);
    my $message = $whole->{choices}[0]{message};

    is($parts->{content}, $message->{content}, "$name: content");
    is($parts->{reasoning_content}, $message->{reasoning_content} // '',
       "$name: reasoning");
    is_deeply([map { [@$_{qw/ name arguments /}] } @{ $parts->{tool_calls} }],
              [map { [@{ $_->{function} }{qw/ name arguments /}] }
               @{ $message->{tool_calls} || [] }], "$name: calls");
    is($parts->{finish_reason}, $whole->{choices}[0]{finish_reason},
       "$name: finish reason");
    is_deeply($parts->{usage}, $whole->{usage}, "$name: usage");
}

my $r = $t->post($chat, script("t Sure.\n$calls\n", %tools));
my $m = $r->{json}{choices}[0]{message};
is($m->{content}, 'Sure.', 'content beside calls');
is_deeply([sort keys %{ $m->{tool_calls}[1] }],
          [qw/ function id index type /], 'a call in one piece');
is($t->post($chat, script("$calls\n", %tools))
     ->{json}{choices}[0]{message}{content}, '', 'content "" beside calls');


# logprobs

sub logprobs {
    my ($request) = @_;

    my @p;

    for (grep { $_->{json} && !$_->{json}{error} }
         $t->stream($request)->events)
    {
        push @p, @{ $_->{json}{choices}[0]{logprobs}{content} || [] };
    }

    return \@p;
}

like($t->post($chat, script("t x<>\\xed\\xa0\\x80\n",
                            logprobs => $true))->{body},
     qr/"token":"(?:\xef\xbf\xbd){3}"/, 'a surrogate is no character');

my $request = script("t a\nt \\xe6\\x97\\xa5\nt c\n", logprobs => $true,
                     top_logprobs => 2);
my $whole = $t->post($chat, $request)->{json}{choices}[0]{logprobs};
is_deeply($whole->{content}[1],
          { token => "\x{65e5}", logprob => -0.25, bytes => [230, 151, 165],
            top_logprobs => [
                { token => 'alt0', logprob => -1,
                  bytes => [unpack 'C*', 'alt0'] },
                { token => 'alt1', logprob => -2,
                  bytes => [unpack 'C*', 'alt1'] }
            ] }, 'an entry of logprobs');
is_deeply(logprobs($request), $whole->{content}, 'the same in a stream');


# parameters on their way to the engine

$t->post($chat, ask('params', temperature => 0.5, top_p => 0.25, seed => 42,
         max_tokens => 17, frequency_penalty => 1, presence_penalty => -1,
         stop => ['END', "\n"], logprobs => $true, top_logprobs => 3));
my ($line) = grep { /params/ } submitted($fake);
like($line, qr/\ max=17\ temperature=0\.5\ top_p=0\.25\ frequency=1
               \ presence=-1\ seed=42\ flags=0\ logprobs=1\ top=3
               \ deadline=later\ .*\ stop=END\|\\n$/x, 'sampling parameters');

for (
    [ 'none', '0.75 0.875' ],
    [ 'null', '0.75 0.875', temperature => undef, top_p => undef ],
    [ 'temperature', '0 0.875', temperature => 0 ],
    [ 'top_p', '0.75 1', top_p => 1 ],
    [ 'both, thinking', '0.75 0.875', temperature => 0.5, top_p => 0.25,
      thinking => { type => 'enabled' } ],
) {
    my ($name, $want, %given) = @$_;

    is($t->post($chat, ask("given: $name", %given))->{status}, 200,
       "given: $name");

    ($line) = grep { /given: $name/ } submitted($fake);
    is(join(' ', $line =~ / temperature=(\S+) top_p=(\S+) /), $want,
       "given: $name: the rest is the model's own");
}

# what a float cannot hold is not 0, which an engine would refuse

$t->post($chat, ask('tiny', top_p => 1e-300));
($line) = grep { /tiny/ } submitted($fake);
cmp_ok(($line =~ / top_p=(\S+) /)[0], '>', 0, 'the least top_p');

$r = $t->post($chat, ask('a b c d', max_tokens => 3));
is($r->{json}{choices}[0]{finish_reason}, 'length', 'max_tokens');

$t->post($chat, ask('default thinking', model => 'deepseek-reasoner'));
($line) = grep { /default thinking/ } submitted($fake);
like($line, qr/ max=32768 /, 'max_tokens of thinking by default');


# the context

my $most = 100000 - 4;
$r = $t->post($chat, ask('y' x $most));
is($r->{status}, 400, 'a prompt of the whole context');
is($r->{json}{error}{message}, "This model's maximum context length is 100000 "
   . 'tokens. However, your messages resulted in 100000 tokens. Please reduce '
   . 'the length of the messages.', 'as clients know it');

$r = $t->post($chat, ask('y ' x (($most - 1) / 2)));
is($r->{status}, 200, 'a prompt that leaves less than the default');

for my $max (60, 4096, 100001, 5e9) {
    $r = $t->post($chat, ask('y ' x (($most - 50) / 2), max_tokens => $max));
    is($r->{status}, 200, "max_tokens $max, of which 50 are left");
    is($r->{json}{usage}{completion_tokens}, 50, 'gets them');
    is($r->{json}{choices}[0]{finish_reason}, 'length', 'and ends for length');
}


# keep-alives

$s = $t->stream(script("wait\nt late\n"), uri => '/ping/chat/completions');
is($s->next_event()->{comment}, 'keep-alive', 'a comment while waiting');
is($s->next_event()->{comment}, 'keep-alive', 'and another one');
ctl($fake, 'go');
$m = DSA::HTTP->gather($s->events);
is("$m->{content}|$m->{done}", 'late|1', 'then the answer');

$s = $t->stream(script("noaccept\nwait\naccept\nt late\n"),
                uri => '/ping/chat/completions');
is($s->next_event()->{comment}, 'keep-alive', 'before the prompt is accepted');
ctl($fake, 'go');
is(DSA::HTTP->gather($s->events)->{content}, 'late', 'then the answer');

my $http = $t->connect();
$http->send_request('POST', '/json/chat/completions',
                    body => json_encode(script("wait\nt late\n")));
is($http->read_head(), 200, 'not streamed: headers after a while');
is($http->header('content-length'), undef, 'without a length');
is($http->read_piece(), "\n", 'a blank line');
is($http->read_piece(), "\n", 'and another one');
ctl($fake, 'go');
my $json = json_decode($http->read_body());
is($json->{choices}[0]{message}{content}, 'late', 'then the answer');
is($http->request('POST', $chat, body => json_encode(ask('x')))->{status},
   200, 'and the connection goes on');


# errors after the headers

$s = $t->stream(script("t partial\nwait\nerror internal secret\n"));
@events = map { $s->next_event() } 1 .. 2;
ctl($fake, 'go');
push @events, $s->events;
$m = DSA::HTTP->gather(@events);
is($m->{content}, 'partial', 'what came before the error');
is_deeply($m->{errors}, [{ message => 'The engine failed.', param => undef,
              type => 'server_error', code => 'internal_error' }],
          'the error in the stream');
is($m->{done}, 0, 'no [DONE]');
is($s->truncated, 0, 'a clean end');
is($s->request('POST', $chat, body => json_encode(ask('x')))->{status},
   200, 'and the connection goes on');
is($t->logged(qr/the engine failed: internal secret/), 1, 'it is logged');

$http = $t->connect();
$http->send_request('POST', '/json/chat/completions',
                    body => json_encode(script("wait\nerror internal x\n")));
is($http->read_head(), 200, 'not streamed, after a blank line: 200');
$http->read_piece();
ctl($fake, 'go');
$json = json_decode($http->read_body());
is($json->{error}{code}, 'internal_error', 'and the error is the body');

# without json=on a late error has its status; the comments of a
# stream that started later show that keep-alives were due

$http = $t->connect();
$http->send_request('POST', '/ping/chat/completions',
                    body => json_encode(script("t a\nwait\n"
                                               . "error internal x\n")));
wait_until(sub { ctl($fake, 'live') eq '1' }, 10, 'the submit');
$s = $t->stream(script("hold\n"), uri => '/ping/chat/completions');
is($s->next_event()->{comment}, 'keep-alive', 'time goes by') for 1 .. 3;
$s->close();
ctl($fake, 'go');
is($http->read_head(), 500, 'a late error has its status');
is(json_decode($http->read_body())->{error}{code}, 'internal_error',
   'and its body');
is($http->request('POST', $chat, body => json_encode(ask('x')))->{status},
   200, 'and the connection goes on');

$r = $t->post($chat, script("t a\nerror internal x\n"));
is($r->{status}, 500, 'not streamed, before any byte');
is($r->{json}{error}{type}, 'server_error', 'its error');

$r = $t->post($chat, script("t a\ndone cancelled\n"));
is($r->{status}, 500, 'an engine that gives it up');


# dsa_timeout

$r = $t->post('/late/chat/completions', script("noaccept\nhold\n",
                                               stream => $true));
is($r->{status}, 200, 'a stream that had a comment');
like($r->{body}, qr/^(?::\ keep-alive\n\n)+data:\ \{"error":\{"message":
                    "The\ answer\ was\ not\ complete\ in\ time\."[^\n]*
                    "code":"timeout"\}\}\n\n$/x, 'ends with the error');
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'it to be cancelled');
is($t->metrics->{'dsa_cancelled_total{reason="timeout"}'}, 1, 'counted');

$t->done;
