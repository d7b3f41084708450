#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Clients that leave, and engines that die, drain, reject requests or violate
# the protocol.

use strict;
use warnings;

use Encode qw/ decode_utf8 /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;

my $t = DSA::Test->new('cancel');
my $fake = $t->start_fake('slots=64');

$t->start_nginx(
    http => 'log_format dsa "$status $dsa_completion_tokens '
            . '$dsa_finish_reason"; access_log %%DIR%%/dsa.log dsa;',
    server => 'location /short/ { dsa_pass v32; dsa_timeout 300ms; }');

sub live { ctl($fake, 'live') }

sub idle {
    my ($what) = @_;
    ok(wait_until(sub { live() eq '0' }, 10, 'no live requests'), $what);
}

sub reason { $t->metrics->{"dsa_cancelled_total{reason=\"$_[0]\"}"} }


# the client leaves

my $s = $t->stream(script("t one\nhold\n"));
$s->next_event() for 1 .. 2;
$s->close();
idle('left in the middle of a stream');
is(reason('client'), 1, 'counted');
wait_until(sub { read_file($t->path('dsa.log')) =~ /^200 1 cancelled$/m }, 10,
           'the access log');

$s = $t->stream(script("noaccept\nhold\n"), head => 0);
wait_until(sub { live() eq '1' }, 10, 'the submit');
$s->close();
idle('left before the prompt was accepted');
wait_until(sub { read_file($t->path('dsa.log')) =~ /^499 - cancelled$/m }, 10,
           'the access log');

$s = $t->connect();
$s->send_request('POST', $chat, body => json_encode(script("t a\nhold\n")));
wait_until(sub { live() eq '1' }, 10, 'the submit');
$s->reset();
idle('a reset, not streamed');

$s = $t->stream(script("t one\nhold\n"));
$s->next_event() for 1 .. 2;
$s->half_close();
idle('half-closed');
ok($s->closed_within(30), 'is closed');

my $before = @{[submitted($fake)]};

for (1 .. 50) {
    $s = $t->stream(script("hold\n"), head => 0);
    $s->close();
}

$t->get('/readyz') for 1 .. 20;
idle('sent and left at once, 50 times');
my $got = @{[submitted($fake)]} - $before;
note("$got of 50 reached the engine");

$s = $t->connect();
$s->send("POST $chat HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
$s->close();
wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10,
           'nothing in flight');
pass('left in the middle of its body');

$before = reason('client');
$s = $t->stream(ask('quick'));
$s->events;
$s->close();
is(reason('client'), $before, 'left when all was done: nothing to cancel');

my @c = cancelled($fake);
is(scalar(grep { !/^cancelled [0-9a-f]+ sent=[01]$/ } @c), 0,
   'nothing went on for long');
is(reason('client'), scalar(@c), 'each cancelled once');


# usage of a cancelled request counts

my $m = $t->metrics;
$s = $t->stream(script("r 5 x\nhold\n"));
wait_until(sub { ($s->next_event->{json}{choices}[0]{delta}{content} // '')
                 ne '' }, 10, 'a token');
wait_until(sub { live() eq '1' }, 10, 'the request');
ctl($fake, 'live') for 1 .. 30;
$s->close();
idle('left');
wait_until(sub {
    $t->metrics->{'dsa_tokens_total{type="completion"}'}
    - $m->{'dsa_tokens_total{type="completion"}'} == 5
}, 10, 'the tokens to be counted');
pass('the tokens of a cancelled request are counted');


# slots are used again

for my $round (1 .. 3) {
    my @s = map { $t->stream(script("t a\nhold\n")) } 1 .. 64;
    $_->next_event() for @s;
    is(live(), 64, "all slots, round $round");

    my $r = $t->post($chat, ask('one too many'));
    is($r->{status}, 503, 'no slot is left');
    is($r->{headers}{'retry-after'}, 1, 'try again');
    like($r->{json}{error}{message}, qr/pool "v32" are busy/, 'says which');

    $_->close() for @s;
    idle('all left');
}

is($t->post($chat, ask('again'))->{status}, 200, 'and all is free');


# dsa_timeout, before the first byte

my $r = $t->post('/short/chat/completions', script("hold\n"));
is($r->{status}, 504, 'not answered in time');
is($r->{json}{error}{code}, 'timeout', 'its error');
idle('cancelled');
is(reason('timeout'), 1, 'counted');


# the engine dies

$s = $t->stream(script("t part\nhold\n"));
$s->next_event() for 1 .. 2;
my $whole = $t->connect();
$whole->send_request('POST', $chat, body => json_encode(script("t a\nhold")));
wait_until(sub { live() eq '2' }, 10, 'both');

$fake->kill9();

my @events = $s->events;
is_deeply(DSA::HTTP->gather(@events)->{errors},
          [{ message => 'The engine went away before the answer was complete.',
             type => 'server_error', param => undef,
             code => 'service_unavailable' }], 'an error in the stream');
is($s->truncated, 0, 'a clean end of it');
$r = $whole->response();
is($r->{status}, 503, 'not streamed: 503');
is($r->{headers}{'retry-after'}, 1, 'try again');

$r = $t->post($chat, ask('x'));
is($r->{status}, 503, 'no engine');
is($r->{json}{error}{message}, 'No engine of pool "v32" is available; try '
   . 'again later.', 'names the pool');
$r = $t->get('/readyz');
is($r->{status}, 503, 'not healthy');
is($r->{json}{status}, 'unavailable', 'says so');

$fake->restart();
wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 30, 'service');
is($t->get('/readyz')->{status}, 200, 'healthy again');

is($t->metrics->{dsa_sessions_lost_requests_total}, 2, 'lost requests counted');


# the link breaks in every way

for my $kind (qw/ head odd length type slot stale tail short count ends /) {
    $s = $t->stream(script("t part\nhold\n"));
    $s->next_event() for 1 .. 2;

    ctl($fake, "corrupt $kind");

    # the worker reads the tail when it submits the next request

    $t->post($chat, ask('x')) if $kind eq 'tail';

    $m = DSA::HTTP->gather($s->events);
    is(scalar(@{ $m->{errors} }), 1, "corrupt $kind: the stream has an error");

    wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 10,
               'service');
    pass('and service goes on');
}

ctl($fake, 'close');
wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 10, 'service');
pass('a session closed by the engine comes back');


# a record as long as the largest ring

{
    my $huge = $t->start_fake('event=4294967296', 'slots=4');
    my $other = DSA::Test->new('huge ring');

    $other->{build} = $t->{build};
    $other->{engines} = [$huge];
    $other->start_nginx();

    $s = $other->stream(script("hold\n"));
    ctl($huge, 'corrupt huge');
    $m = DSA::HTTP->gather($s->events);
    is(scalar(@{ $m->{errors} }), 1, 'a record of 4 GB: an error');
    is($s->truncated, 0, 'and no more than that');
    wait_until(sub { $other->post($chat, ask('x'))->{status} == 200 }, 10,
               'service');

    $other->done;
    $huge->stop('KILL');
    pop @{ $t->{engines} };
}


# records that an engine wrote before its end count, even without a wake-up

$s = $t->stream(script("t part\nwait\nt end\n"));
$s->next_event() for 1 .. 2;
my $ends = @{[finished($fake)]};
ctl($fake, 'mute 1');
ctl($fake, 'go');
wait_until(sub { @{[finished($fake)]} > $ends }, 10, 'the end');
ctl($fake, 'close');
ctl($fake, 'mute 0');
$m = DSA::HTTP->gather($s->events);
is("$m->{content}|$m->{done}", 'end|1', 'the last words of an engine');
wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 10, 'service');


# faulty hellos open no session; a correct one does

for my $fault (qw/ magic version size heat top unsealed plain silent /) {
    my $bad = $t->start_fake("hello=$fault");
    my $other = DSA::Test->new("hello $fault");

    $other->{build} = $t->{build};
    $other->{engines} = [$bad];
    $other->start_nginx(wait => 0);

    wait_until(sub { $bad->output =~ /session/ }, 10, 'a connection');

    if ($fault eq 'silent') {
        my $h = $other->stream(ask('x'), head => 0);
        wait_until(sub { $other->metrics->{dsa_requests_in_flight} == 1 }, 10,
                   'the request to wait');
        pass('silent: requests wait for the hello');
        $h->close();
        wait_until(sub { $other->metrics->{dsa_requests_in_flight} == 0 }, 10,
                   'it to leave');

    } else {
        wait_until(sub { $other->logged(qr/engine "unix:[^"]*"/) }, 10,
                   'a word in the log');
        wait_until(sub { $other->post($chat, ask('x'))->{status} == 503 }, 10,
                   'a refusal');
        pass("$fault: refused");
        is($other->get('/v1/models')->{status}, 503,
           "$fault: its model is not listed");

        # the workers retry, and each of the two logs the fault once

        wait_until(sub { (() = $bad->output =~ /session/g) >= 9 }, 10,
                   'more tries');
        cmp_ok($other->logged(qr/\[error\][^\n]*engine "unix:/), '<=', 2,
               "$fault: told once");
    }

    $other->done;
    $bad->stop('KILL');
    pop @{ $t->{engines} };
}


# an engine cannot inject lines, escapes or quotes into the log

{
    my $name = "m 2026/01/01 [alert] forged [2J\"\\\xc3\xa9";
    my $evil = $t->start_fake("model=$name");
    my @bad = map { $t->start_fake($_) }
                  "model=m\n2026/01/01 [alert] forged", "model=\e[2J",
                  "model=\xff", "model=\xc2\x9b", 'model=', "fingerprint=\n",
                  'fingerprint=', 'context=1';
    my $other = DSA::Test->new('hostile strings');

    $other->{build} = $t->{build};
    $other->{engines} = [ $evil, @bad ];
    $other->start_nginx();
    wait_until(sub { $other->metrics->{dsa_sessions} >= 1 }, 10, 'a session');
    $name = decode_utf8($name);

    for (1 .. @bad) {
        my $why = $_ < 6 ? 'model' : $_ < 8 ? 'fingerprint' : 'context_length';
        my $sock = quotemeta $bad[$_ - 1]->sock;

        wait_until(sub { $other->logged(
                             qr/\[error\].*$sock".* a hello with $why .*, exp/)
                   }, 10, "the hello $_");
        pass("a hello with a wrong $why");
    }

    my $r = $other->post($chat, ask('x'));
    is($other->get('/v1/models')->{json}{data}[0]{id}, $name, 'the model');
    is($other->get('/readyz')->{json}{engines}[0]{model}, $name, 'its health');
    is($other->post($chat, { %{ ask('x') }, model => $name })->{status}, 200,
       'it has this name');

    $r = $other->post($chat, script('error internal \n2026/01/01 [alert] '
        . 'forged \x1b[2J \x7f \xc2\x9b \xff \xe6\x97\xa5 ' . 'x' x 600));
    is($r->{json}{error}{message}, 'The engine failed.', 'its error');

    my $log = $other->error_log;
    is(() = $log =~ /^2026\/01\/01 /mg, 0, 'no line of its own');
    is(() = $log =~ /[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]/g, 0,
       'no control characters');
    my $wrote = "internal  2026/01/01 [alert] forged  [2J     ? "
                . "\xe6\x97\xa5 xxx";
    like($log, qr/because the engine failed: \Q$wrote\E/, 'what it wrote');
    like($log, qr/ x{400,512}, client/, 'and not all of it');

    $other->allow_alert(qr/forged/);
    $other->done;
    $_->stop('KILL') for $evil, @bad;
    pop @{ $t->{engines} } for $evil, @bad;
}


# two engines: the less busy one, and the other one when it rejects

my $t2 = DSA::Test->new('two engines');
my $a = $t2->start_fake('model=m');
my $b = $t2->start_fake('model=m');
$t2->start_nginx();
wait_until(sub { $t2->metrics->{dsa_sessions} == 2 }, 10, 'both sessions');

sub counts { join ' ', map { scalar(@{[submitted($_)]}) } $a, $b }

$t2->post($chat, ask('x')) for 1 .. 10;
is(counts(), '5 5', 'taking turns');

ctl($a, 'load 10 5');
wait_until(sub { $t2->metrics->{'dsa_engine_requests_waiting{pool="v32",'
                 . 'engine="unix:' . $a->sock . '"}'} == 5 }, 10, 'the load');
$t2->post($chat, ask('x')) for 1 .. 10;
is(counts(), '5 15', 'all to the one that has less to do');

ctl($b, 'drain 1');
wait_until(sub { $t2->metrics->{'dsa_engine_draining{pool="v32",'
                 . 'engine="unix:' . $b->sock . '"}'} == 1 }, 10, 'draining');
is($t2->post($chat, ask('x'))->{status}, 200, 'one drains');
is(counts(), '6 15', 'the other one takes it');

ctl($b, 'drain 0');
wait_until(sub { $t2->metrics->{'dsa_engine_draining{pool="v32",'
                 . 'engine="unix:' . $b->sock . '"}'} == 0 }, 10, 'no more');

# 503: another host could help; a tenant's own excess is 429

for ([ overloaded => 503, 'server_error' ], [ draining => 503, 'server_error' ],
     [ tenant => 429, 'rate_limit_error' ])
{
    my ($code, $status, $type) = @$_;

    $r = $t2->post($chat, script("noaccept\nerror $code no\n"));
    is($r->{status}, $status, "both $code");
    is($r->{json}{error}{type}, $type, 'its type');
    is($r->{headers}{'retry-after'}, 1, 'try again');
}

is(counts(), '9 18', 'both were asked');

$s = $t2->stream(script("noaccept\nwait\naccept\nt x\n"), head => 0);
wait_until(sub { counts() eq '9 19' }, 10, 'the submit');
$b->kill9();
wait_until(sub { counts() eq '10 19' }, 10, 'another engine');
ctl($a, 'go');
$s->read_head();
is(DSA::HTTP->gather($s->events)->{content}, 'x',
   'not yet accepted: another engine answers');

$a->kill9();
$r = $t2->post($chat, ask('x'));
is($r->{status}, 503, 'none is left');

$t2->done;


# the heartbeat

ctl($fake, 'alive 0');
wait_until(sub { $t->get('/readyz')->{status} == 503 }, 10, 'a bad health');
is($t->post($chat, ask('x'))->{status}, 503, 'an engine that hangs');
ctl($fake, 'alive 1');
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 10, 'good health');
is($t->post($chat, ask('x'))->{status}, 200, 'and is back');


# a worker is killed

$s = $t->stream(script("t part\nhold\n"));
$s->next_event() for 1 .. 2;
$t->allow_alert(qr/worker process \d+ exited on signal 9/);
my ($worker) = $t->workers;
kill 'KILL', $worker;
$s->events;
is($s->truncated, 1, 'a stream of a worker that was killed');
wait_until(sub { $fake->output =~ /session closed/ && live() eq '0' }, 10,
           'the engine to notice');
wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 10, 'service');
wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10, 'gauges');
is($t->metrics->{dsa_sessions}, 1, 'the new worker\'s session');

$t->done;
