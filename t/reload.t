#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Streams outlive a reload and a binary upgrade, and requests during these are
# served.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('reload');
my $fake = $t->start_fake();

$t->start_nginx(workers => 2);


# Starts streams in all states: with tokens, waiting for the first one, waiting
# to be accepted, and one not streamed.  Returns a sub that returns what they
# got.

sub begin {
    my @s = map { $t->stream(script("t begun\nwait\nr 50 x\n")) } 1 .. 4;
    $_->next_event() for map { ($_, $_) } @s;

    push @s, map { $t->stream(script("wait\nr 50 x\n")) } 1 .. 2;
    push @s, map { $t->stream(script("noaccept\nwait\naccept\nr 50 x\n"),
                              head => 0) } 1 .. 2;
    my $whole = $t->connect();
    $whole->send_request('POST', $chat,
                         body => json_encode(script("wait\nr 50 x\n")));

    wait_until(sub { ctl($fake, 'live') eq '9' }, 10, 'all of them');

    return sub {
        ctl($fake, 'go 9');

        my @got;

        for my $n (0 .. $#s) {
            $s[$n]->read_head() if $n > 5;
            my $m = DSA::HTTP->gather($s[$n]->events);
            push @got, length($m->{content}) . ":$m->{done}:"
                       . $m->{finish_reason};
        }

        return join ' ', @got, length $whole->response()
                         ->{json}{choices}[0]{message}{content};
    };
}

# Waits until only the workers of the last configuration run.

sub settle { wait_until(sub { $t->workers == 2 }, 20, 'old workers to leave') }


my $want = join ' ', ('50:1:stop') x 8, 50;


my $end = begin();
my %old = map { $_ => 1 } $t->workers;

$t->reload();
is($t->post($chat, ask('new'))->{status}, 200, 'served after a reload');
is($end->(), $want, 'no event of a stream is lost by a reload');
settle();
is(scalar(grep { $old{$_} } $t->workers), 0, 'the old ones are gone');


# many reloads while requests come: none fails

my @status;

for (1 .. 5) {
    kill 'HUP', $t->nginx_pid;
    push @status, map { $t->post($chat, ask("n$_"))->{status} } 1 .. 20;
}

is(scalar(grep { $_ != 200 } @status), 0, 'no request fails across reloads');
settle();


# another configuration

$end = begin();
$t->reload(workers => 2, server => 'location /other/ { dsa_pass v32; }');
ok(wait_until(sub { $t->post('/other/chat/completions', ask('x'))->{status}
                    == 200 }, 10, 'the new location'), 'a new location');
is($end->(), $want, 'no event of a stream is lost');

my $count = $t->metrics->{'dsa_requests_total{code="200"}'};
cmp_ok($count, '>', 100, 'counters outlive a reload');


# worker_shutdown_timeout ends streams that take longer, and the engine gets
# the cancel; t/shutdown.t has more of it

$t->reload(workers => 2, main => 'worker_shutdown_timeout 300ms;');
settle();
my $s = $t->stream(script("t part\nhold\n"));
$s->next_event() for 1 .. 2;
$t->reload();
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'it to be cancelled');
is(scalar(@{ DSA::HTTP->gather($s->events)->{errors} }), 1,
   'ended by worker_shutdown_timeout');
is($s->truncated, 0, 'and not cut off');
is($t->metrics->{'dsa_cancelled_total{reason="shutdown"}'}, 1, 'counted');
$t->reload(workers => 2, main => '');
settle();


# USR2

$end = begin();
my $old = $t->upgrade();
is($t->post($chat, ask('new'))->{status}, 200, 'served after an upgrade');
is($end->(), $want, 'no event of a stream is lost by an upgrade');
wait_until(sub { !kill 0, $old }, 20, 'the old master to leave');
pass('the old master has left');


# QUIT waits for streams, TERM does not

$s = $t->stream(script("t part\nwait\nt end\n"));
$s->next_event() for 1 .. 2;
my $pid = $t->nginx_pid;
kill 'QUIT', $pid;
wait_until(sub { !IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                 PeerPort => $t->port) }, 10, 'nginx to stop listening');
ctl($fake, 'go');
is(DSA::HTTP->gather($s->events)->{content}, 'end', 'a stream ends after QUIT');
wait_until(sub { !kill 0, $pid }, 10, 'nginx to end');
wait_until(sub { ctl($fake, 'sessions') eq '0' }, 10, 'sessions to end');
pass('no session is left');

is($t->logged(qr/open socket/), 0, 'no socket was left open');

$t->done;
