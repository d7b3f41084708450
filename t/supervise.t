#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Replicas that hang: in a step, as a whole (SIGSTOP), or while they start.  The
# supervisor kills and replaces them, and the other replica continues their
# requests and serves new ones.  A replica whose step fails ends itself.

use strict;
use warnings;

use Test::More;
use Time::HiRes ();

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $limit = slow(5);                    # s, of a step and of a start

# Tokens of an answer, ten seconds of the null backend: an answer that ended
# before its replica hangs would not move.

my $long = 500;

my $t = DSA::Test->new('supervise');

mkdir $t->path('hang') or die "mkdir: $!\n";
$ENV{HANG_DIR} = $t->path('hang');

my %conf = (backend => 'null', replicas => 2, step_timeout => "${limit}s",
            start_timeout => 3 * $limit . 's');
my $engine = $t->start_engine(program => 't/hang_engine', conf => \%conf);

$t->start_nginx(workers => 1);
ready();


# Waits until both replicas have a session.

sub ready {
    wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 20, 'both sessions');
}


# Returns the process ids of the replicas.

sub replicas { DSA::Process::children($engine->pid) }


# Waits until another replica runs beside the second one.

sub replaced {
    my ($first, $second) = @_;

    wait_until(sub {
        my @now = replicas();
        @now == 2 && !grep({ $_ == $first } @now)
            && grep { $_ == $second } @now;
    }, 30, 'another replica');
}


# Starts six streams at once, which the pool spreads over both replicas.

sub six {
    my ($tokens) = @_;

    return map { $t->stream(ask("Number $_.", max_tokens => $tokens, seed => 1,
                                ignore_eos => JSON::PP::true), head => 0) }
           1 .. 6;
}


# Counts the streams that are complete and those that end with an error.

sub ends {
    my ($done, $errors) = (0, 0);

    for my $s (@_) {
        $s->read_head() if !defined $s->{status};

        if ($s->{status} != 200) {
            $errors++;
            next;
        }

        my $m = DSA::HTTP->gather($s->events);
        $done += $m->{done};
        $errors += @{ $m->{errors} };
    }

    return "$done complete, $errors failed";
}


# Returns how many answers have moved to another replica since the start.

sub moved { $t->metrics->{dsa_resumed_answers_total} }


# Waits until more than this number have moved.

sub wait_moved {
    my ($n) = @_;

    wait_until(sub { moved() > $n }, 60, "more than $n moved answers");
}


sub took {
    my ($start, $name) = @_;

    cmp_ok(Time::HiRes::time() - $start, '<', $limit + slow(30), $name);
}


is(ends(six(20)), '6 complete, 0 failed', 'six requests are served');


# a step that does not end

my ($first, $second) = replicas();
my @streams = six($long);

for my $s (@streams) {
    $s->read_head();
    $s->next_event() for 1 .. 2;
}

my $moved = moved();
my $start = Time::HiRes::time();

write_file($t->path("hang/step.$first"), '');
wait_moved($moved);
took($start, 'a step hangs: its requests move after step_timeout');

replaced($first, $second);
ready();
took($start, 'and another replica serves');

like($engine->output,
     qr/replica \d has not finished a step for \d+ ms and is killed/,
     'the log has the reason');
is(ends(@streams), '6 complete, 0 failed', 'and all of them are complete');
is(ends(six(20)), '6 complete, 0 failed', 'then all requests are served');


# a step that fails: the replica ends although its backend cannot be closed

($first, $second) = replicas();
@streams = six($long);

for my $s (@streams) {
    $s->read_head();
    $s->next_event() for 1 .. 2;
}

my $before = length $engine->output;

$moved = moved();
$start = Time::HiRes::time();

write_file($t->path("hang/fail.$first"), '');
wait_moved($moved);
replaced($first, $second);
ready();
took($start, 'and another replica serves');

my $log = substr $engine->output, $before;

is(() = $log =~ /an illegal memory access/g, 1, 'the log has the reason once');
like($log, qr/ $first: a step failed: GPU 3: an illegal memory access$/m,
     'with the process and the GPU');
like($log, qr/replica \d ended with status 1, a new one starts in \d+ ms/,
     'the replica ended itself');
unlike($log, qr/killed/, 'and was not killed');
is(ends(@streams), '6 complete, 0 failed', 'its requests move as well');
is(ends(six(20)), '6 complete, 0 failed', 'then all requests are served');


# a stopped process has not accepted its requests, so all of them move

($first, $second) = replicas();

kill 'STOP', $second or die "kill: $!\n";
$start = Time::HiRes::time();
is(ends(six(20)), '6 complete, 0 failed',
   'a replica is stopped: its requests move to the other one');
took($start, 'after step_timeout');

wait_until(sub { !grep { $_ == $second } replicas() }, 30, 'its end');
ready();
took($start, 'and another replica serves');
like($engine->output, qr/replica \d has not run for \d+ ms and is killed/,
     'the log has the reason');


# a restarted replica hangs while it loads the model

write_file($t->path('hang/start'), '');
($first) = replicas();
kill 'KILL', $first or die "kill: $!\n";

my $late = qr/replica \d has not finished its start for \d+ ms and is killed/;
wait_until(sub { $engine->output =~ $late }, 20, 'the limit of a start');
pass('a replica that does not finish its start is killed');
is($t->post($chat, ask('x', max_tokens => 1))->{status}, 200,
   'the other one serves');

unlink $t->path('hang/start');
ready();
pass('the supervisor repeats the start until it succeeds');


# the first start of an engine hangs

write_file($t->path('hang/start'), '');

my $other = $t->start_engine(program => 't/hang_engine', name => 'other',
                             conf => { %conf, replicas => 1 }, wait => 0);
$other->wait_end(60);
is($other->{status} >> 8, 1, 'a first start that hangs ends the program');
is($other->output, "dsa-engine: replica 0 has not finished its start for "
   . ($other->output =~ /for (\d+) ms/ ? $1 : '?') . " ms\n",
   'the log has one line');

unlink $t->path('hang/start');

$t->done;
