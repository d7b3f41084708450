#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# dsa_timeout, and the deadline that an engine keeps itself: an answer that
# has begun ends as one that reached max_tokens, any other one with 504.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;
use Time::HiRes qw/ time /;

my $chat = '/short/chat/completions';
my $true = JSON::PP::true;
my $false = JSON::PP::false;
my $short = int(DSA::Wait::slow(2) * 1000);
my $longer = 5 * $short;

my $t = DSA::Test->new('timeout');
my $server = $t->start_redis();
my $fake = $t->start_fake();

$t->start_nginx(workers => 1, redis => "timeout=${longer}ms",
    http => 'log_format dsa "$status $dsa_prompt_tokens $dsa_cached_tokens '
            . '$dsa_completion_tokens $dsa_finish_reason";
             access_log %%DIR%%/dsa.log dsa;',
    server => "location /short/ { dsa_pass v32; dsa_timeout ${short}ms;
                                  dsa_output_limit 64m; }
               location /json/ { dsa_pass v32; dsa_timeout ${short}ms;
                                 dsa_keepalive 20ms json=on; }");


sub live { ctl($fake, 'live') }

sub idle {
    my ($what) = @_;
    ok(wait_until(sub { live() eq '0' }, 10, 'no live requests'), $what);
}

sub reason { $t->metrics->{"dsa_cancelled_total{reason=\"$_[0]\"}"} }

sub logged {
    my ($line) = @_;

    my $logged = eval { wait_until(sub {
        (split /\n/, read_file($t->path('dsa.log')))[-1] eq $line
    }, 10, 'the access log') };

    ok($logged, "logged: $line") or diag(read_file($t->path('dsa.log')));
}


# The end of an answer, streamed and not: status, text, finish reason, usage
# and the codes of errors as one string.

sub outcome {
    my ($lines, %more) = @_;

    my $r = $t->post($chat, script($lines, %more));
    my $c = $r->{json}{choices}[0];
    my $u = $r->{json}{usage};

    my $whole = join ' ', $r->{status}, map { $_ // '-' }
                $c->{message}{content}, $c->{finish_reason},
                @$u{qw/ prompt_tokens prompt_cache_hit_tokens
                        completion_tokens /}, $r->{json}{error}{code};

    my $s = $t->stream(script($lines, stream_options =>
                              { include_usage => $true }, %more),
                       uri => $chat);

    if ($s->status != 200) {
        my $e = json_decode($s->read_body())->{error};
        return ($whole, join ' ', $s->status, ('-') x 5, $e->{code});
    }

    my $m = DSA::HTTP->gather($s->events);
    $u = $m->{usage};

    return ($whole, join ' ', 200 + ($m->{done} ? 0 : 1), map { $_ // '-' }
            (length $m->{content} ? $m->{content} : undef),
            $m->{finish_reason},
            @$u{qw/ prompt_tokens prompt_cache_hit_tokens
                    completion_tokens /}, $m->{errors}[0]{code});
}


sub both {
    my ($name, $lines, $want, $streamed) = @_;

    my @got = outcome($lines);

    is($got[0], $want, $name);
    is($got[1], $streamed // $want, "$name, streamed");
    idle("$name: nothing is left");
}


my $accept = "noaccept\nprompt 50\naccept\ncached 20\n";
my $timeout = '504 - - - - - timeout';

# in a stream whose headers are out: an error event and no [DONE]

my $event = '201 - - - - - timeout';


# dsa_timeout

both('an answer that has begun', "${accept}completion 5\nt a\nt b\nhold\n",
     '200 ab length 50 20 5 -');
logged('200 50 20 5 length');
both('an answer that has not', "${accept}hold\n", $timeout, $event);
logged('200 50 20 0 error');
both('one that was not accepted', "noaccept\nhold\n", $timeout);
is(reason('timeout'), 6, 'each counted once');
is(reason('client') + reason('error'), 0, 'and only so');


# the deadline of the engine

both("the engine's own deadline", "${accept}t a\nt b\ndone deadline\n",
     '200 ab length 50 20 2 -');
both("the engine's own deadline, without a token",
     "${accept}done deadline\n", $timeout);
both("the engine's own deadline, before the accept",
     "noaccept\ndone deadline\n", $timeout);


# what the engine does after it was cancelled

both('more tokens', "${accept}deaf\nt a\ncancel\nt b\ndone cancelled\n",
     '200 ab length 50 20 2 -');
both('its end', "${accept}deaf\nt a\ncancel\nt b\ndone stop\n",
     '200 ab stop 50 20 3 -');
both('its first token', "${accept}deaf\ncancel\nt a\ndone cancelled\n",
     '200 a length 50 20 1 -');
both('an error', "${accept}deaf\nt a\ncancel\nerror internal x\n",
     '200 a length 50 0 1 -');
both('an error without a token', "${accept}deaf\ncancel\nerror internal x\n",
     $timeout, $event);
both('a refusal', "noaccept\ndeaf\ncancel\nerror overloaded x\n", $timeout);
both('an accept', "noaccept\ndeaf\ncancel\naccept\ndone cancelled\n",
     $timeout);

for (["t a\nt b\n", '200 ab'], ['', '504 -']) {
    my ($text, $want) = @$_;

    my $r = $t->post($chat, script("${accept}deaf\n${text}cancel\ncorrupt "
                                   . "short\n"));
    is(join(' ', $r->{status}, $r->{json}{choices}[0]{message}{content} // '-'),
       $want, 'a link that breaks: as far as it was');
    wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');
}


# an engine that does not respond to the cancel

my $silent = "${accept}deaf\nt a\nt b\nwait\ncompletion 9\ndone cancelled\n";
my $n = scalar(@{[finished($fake)]});
my $r = $t->post($chat, script($silent));
is($r->{json}{choices}[0]{message}{content}, 'ab', 'silent: what there is');
is($r->{json}{choices}[0]{finish_reason}, 'length', 'silent: its end');
is(join(' ', @{ $r->{json}{usage} }{qw/ prompt_tokens completion_tokens /}),
   '50 2', 'silent: as the worker counted');
is(live(), '1', 'silent: it goes on');

my %before = %{ $t->metrics };
ctl($fake, 'go');
wait_until(sub { @{[finished($fake)]} > $n }, 10, 'its end');
is($t->post($chat, ask('x'))->{status}, 200, 'and another one');
is($t->metrics->{'dsa_tokens_total{type="completion"}'}
   - $before{'dsa_tokens_total{type="completion"}'}, 3, 'it is counted once');

# the request was logged with what it was charged with, so that nothing is added

$n = scalar(@{[finished($fake)]});
%before = %{ $t->metrics };
$r = $t->post($chat, script("${accept}deaf\nwait\nprompt 30\n"
                            . "done cancelled\n"));
is($r->{status}, 504, 'silent, without a token');
ctl($fake, 'go');
wait_until(sub { @{[finished($fake)]} > $n }, 10, 'its end');
is($t->post($chat, script("${accept}t x\n"))->{status}, 200,
   'and another one');
is($t->metrics->{'dsa_tokens_total{type="prompt"}'}
   - $before{'dsa_tokens_total{type="prompt"}'}, 50,
   'what it reports later is not counted');


# The client leaves during that wait, after which the worker counts by itself: a
# second after the deadline (NGX_HTTP_DSA_GRACE).  If this test is late, it
# proves nothing: several attempts.

my ($s, $timeouts, $figures);

for (1 .. 20) {
    $timeouts = reason('timeout');
    $s = $t->stream(script("${accept}deaf\nt a\nwait\ncompletion 3\n"
                           . "done cancelled\n"), uri => $chat);

    my ($earliest, $now) = (time) x 2;

    wait_until(sub { ($earliest, $now) = ($now, time);
                     reason('timeout') == $timeouts + 1 }, 10, 'the deadline');
    %before = %{ $t->metrics };
    $s->close();
    ctl($fake, 'go');

    my $in_time = time - $earliest < 0.5;

    wait_until(sub { live() eq '0'
                     && $t->metrics->{dsa_requests_in_flight} == 0 }, 10,
               'it to leave');
    next if !$in_time;
    $figures = wait_until(sub {
        $t->metrics->{'dsa_tokens_total{type="completion"}'}
        - $before{'dsa_tokens_total{type="completion"}'} == 3
    }, 10, 'its figures');
    last;
}

ok($figures, "left after the deadline: the engine's figures");
is(reason('client'), 0, 'left after the deadline: cancelled once');


# the connection goes on

my $http = $t->connect();
my $post = sub {
    my ($lines) = @_;
    return $http->format_request('POST', $chat,
                                 body => json_encode(script($lines)));
};

$http->send($post->("${accept}hold\n") . $post->("${accept}t a\nhold\n")
            . $post->("t end\n"));
is($http->read_head(), 504, 'pipelined: the first one');
is(json_decode($http->read_body())->{error}{code}, 'timeout', 'its error');
is($http->read_head(), 200, 'pipelined: the second one');
is(json_decode($http->read_body())->{choices}[0]{finish_reason}, 'length',
   'its answer');
is($http->read_head(), 200, 'pipelined: the third one');
is(json_decode($http->read_body())->{choices}[0]{message}{content}, 'end',
   'its answer');


# the blank lines have sent the status already

$r = $t->post('/json/chat/completions', script("${accept}hold\n"));
is($r->{status}, 200, 'dsa_keepalive with json=on');
like($r->{body}, qr/^\n+\{"error":.*"code":"timeout"\}\}$/, 'the error');
$r = $t->post('/json/chat/completions', script("${accept}t a\nhold\n"));
like($r->{body}, qr/^\n+\{"id":.*"finish_reason":"length"/, 'an answer');


# a client that is slow then gets all of what it is charged with

my $word = 'w' x 500;

$s = $t->stream(script("r 30000 $word\nhold\n", max_tokens => 100000,
                       stream_options => { include_usage => $true }),
                uri => $chat, rcvbuf => 4096);
idle('a slow client: the engine is done');
my $m = DSA::HTTP->gather($s->events(60));
is("$m->{finish_reason}|$m->{done}", 'length|1', 'its end');
is($m->{usage}{completion_tokens}, length($m->{content}) / 500, 'its text');


# a tool call that is cut off

my $dsml = "\xef\xbd\x9cDSML\xef\xbd\x9c";
my $call = "\\n\\n<${dsml}function_calls>\\n<${dsml}invoke name=\"f\">\\n"
           . "<${dsml}parameter name=\"a\" string=\"true\">hello";
utf8::decode($call);
$call = tokens($call);
my %tools = (tools => [{ type => 'function', function => { name => 'f' } }]);

my ($cut, $length) = map {
    my $r = $t->post($chat, script("$call\n$_\n", %tools));
    my $c = $r->{json}{choices}[0];
    delete $_->{id} for @{ $c->{message}{tool_calls} || [] };
    $c
} 'hold', 'done length';

is($cut->{message}{tool_calls}[0]{function}{name}, 'f', 'a tool call');
is_deeply($cut, $length, 'that is cut off: as by max_tokens');


# a conversation keeps the turn

my $conversation = $t->post('/v1/conversations', {})->{json}{id};

$r = $t->post($chat, script("t a\nt b\nhold\n",
                            conversation => $conversation));
is($r->{json}{choices}[0]{finish_reason}, 'length', 'a turn is cut off');
my $kept = $t->get("/v1/conversations/$conversation")->{json}{messages};
is($kept->[-1]{content}, 'ab', 'and kept');

# Redis answers too late

$s = $t->connect();
$s->send_request('POST', $chat, body => json_encode(script("t c\ndeaf\nwait\n"
                 . "cancel\ndone cancelled\n", conversation => $conversation)));
wait_until(sub { live() eq '1' }, 10, 'the submit');
$server->signal('STOP');
ctl($fake, 'go');
$s->read_head();
$r = json_decode($s->read_body());
is($r->{choices}[0]{finish_reason}, 'length',
   'Redis hangs when the turn is written: the answer');
is($r->{conversation}{stored}, $false, 'it says that the turn is not stored');
like($r->{conversation}{reason}, qr/did not confirm/, 'and why');

# Redis is available, and hangs when the next turn loads the conversation

$server->signal('CONT');
wait_until(sub { $t->get("/v1/conversations/$conversation")->{status} == 200 },
           10, 'Redis');
$server->signal('STOP');
$r = $t->post($chat, script("t d\n", conversation => $conversation));
is($r->{status}, 504, 'Redis hangs when the conversation is read');
$server->signal('CONT');

# Neither responds: the worker waits for Redis while the engine goes on, and
# later records of the engine change nothing.

for my $end ("t late\ncompletion 9\ndone stop", 'error internal x',
             'corrupt short')
{
    my $id = wait_until(sub { $t->post('/v1/conversations', {})->{json}{id} },
                        10, 'Redis');

    $s = $t->connect();
    $s->send_request('POST', $chat, body => json_encode(script(
        "${accept}deaf\nt e\nwait\n$end\n", conversation => $id)));
    wait_until(sub { live() eq '1' }, 10, 'the submit');
    $server->signal('STOP');

    # its tokens are counted when the worker ends the answer by itself

    my $tokens = $t->metrics->{'dsa_tokens_total{type="completion"}'};
    wait_until(sub { $t->metrics->{'dsa_tokens_total{type="completion"}'}
                     > $tokens }, 10, 'the end of the wait for the engine');
    ctl($fake, 'go');

    $s->read_head();
    my $c = json_decode($s->read_body());
    $server->signal('CONT');

    is(join(' ', $c->{choices}[0]{message}{content},
            $c->{choices}[0]{finish_reason},
            @{ $c->{usage} }{qw/ prompt_tokens completion_tokens /}),
       'e length 50 1', 'Redis and the engine hang: the answer');

    wait_until(sub { live() eq '0' && $t->metrics->{dsa_sessions} == 1 }, 10,
               'the engine to be idle');
    is($c->{conversation}{stored}, $false,
       'and it says that the turn is not stored');
}

# A slow client: the engine ends when its answer is on its way already.

$timeouts = reason('timeout');
$s = $t->stream(script("r 30000 $word\ndeaf\nwait\nt late\n",
                       max_tokens => 100000,
                       stream_options => { include_usage => $true }),
                uri => $chat, rcvbuf => 4096);
wait_until(sub { reason('timeout') == $timeouts + 1 }, 10, 'the deadline');
ctl($fake, 'go');
idle('a slow client, a silent engine');
$m = DSA::HTTP->gather($s->events(60));
is("$m->{finish_reason}|$m->{done}", 'length|1', 'its end');

$r = $t->post($chat, ask('x'));
is($r->{status}, 200, 'and goes on');


# an engine that has not come up

my $other = DSA::Test->new('no session');
my $down = $t->start_fake('hello=silent');

$other->{build} = $t->{build};
$other->{engines} = [$down];
$other->start_nginx(wait => 0, location => "dsa_timeout ${short}ms;");
$r = $other->post('/v1/chat/completions', ask('x'));
is($r->{status}, 504, 'no session in time');
is($r->{json}{error}{code}, 'timeout', 'its error');
$other->done;
$down->stop('KILL');
pop @{ $t->{engines} };

# the engine itself, with 20 tokens a second: one answer is cut off, another
# one never begins, because the only place in the batch is taken

my $real = DSA::Test->new('engine');
my $engine = $real->start_engine(conf => { backend => 'null rate=20',
                                           max_running => 1 });
my $labels = '{pool="v32",engine="unix:' . $engine->sock . '"}';

$real->start_nginx(server => "location /short/ { dsa_pass v32;
                                                 dsa_timeout ${short}ms; }");

$r = $real->post($chat, ask('x', max_tokens => 100000,
                            ignore_eos => $true));
is($r->{json}{choices}[0]{finish_reason}, 'length', 'an engine: cut off');
$m = $r->{json}{usage};
ok($m->{completion_tokens} > 0 && $m->{completion_tokens} < 100000,
   'after some tokens') or diag(json_encode($m));
wait_until(sub { $real->metrics->{"dsa_engine_requests_running$labels"} == 0 },
           10, 'the engine to end it');
is($real->metrics->{"dsa_engine_completion_tokens_total$labels"},
   $m->{completion_tokens}, 'the usage has all that the engine generated');
is($real->metrics->{"dsa_engine_prompt_tokens_total$labels"},
   $m->{prompt_tokens}, 'and the prompt');

$s = $real->stream(ask('x', max_tokens => 100000, ignore_eos => $true));
$r = $real->post($chat, ask('x'));
is($r->{status}, 504, 'an engine: a request that waited only');
is($real->metrics->{"dsa_engine_requests_running$labels"}, 1,
   'the other one goes on');
$s->close;
wait_until(sub { $real->metrics->{"dsa_engine_requests_running$labels"} == 0 },
           10, 'the engine to be idle');
ok(eval { wait_until(sub {
    $m = $real->metrics;
    $m->{'dsa_tokens_total{type="prompt"}'}
        == $m->{"dsa_engine_prompt_tokens_total$labels"}
}, 30, 'its figures') }, 'a prompt that was not computed is not counted');
$real->done;

is($t->metrics->{dsa_requests_in_flight}, 0, 'nothing is in flight');

$t->done;
