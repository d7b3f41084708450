#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A replica over two hosts in network namespaces of their own, under streams: a
# follower that dies, hangs, is slow or is cut off at each stage of a step.  The
# leader names it, within step_timeout; the streams go on elsewhere with the
# text that they would have had; and both hosts start again.  So they do after
# the follower had another version, other weights or another secret.
#
# A proxy beside the follower stops at the message of a stage, so that no fault
# depends on when it happens.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Hosts;
use DSA::Stages;
use DSA::Test;
use DSA::Wait qw/ pause /;

my $why = DSA::Hosts::missing();

if (defined $why) {
    BAIL_OUT("hosts-faults.t: $why") if $ENV{DSA_NO_SKIP};
    plan skip_all => $why;
}

DSA::Hosts::isolate();

use constant { PORT => 7400, PROXY => 7401, STREAMS => 4 };

my $t = DSA::Test->new('hosts-faults');
my $limit = slow(8);                    # s: step_timeout
my $host = DSA::Hosts->new($t, 1);
my $where = $host->address . ':' . PROXY;
my $secret = secret('secret', 'f');


sub secret {
    my ($name, $letter) = @_;

    my $file = write_file($t->path($name), $letter x 64 . "\n");

    chmod 0600, $file or die "chmod: $!\n";

    return $file;
}


# A follower in the namespace.

sub follower {
    my ($name, %change) = @_;

    my %conf = (model => $t->model, backend => 'cpu', host_secret => $secret,
                listen => '127.0.0.1:' . PORT, step_timeout => "${limit}s",
                %change);
    my $file = write_file($t->path("$name.conf"), join '',
                          map { "$_ $conf{$_};\n" } sort keys %conf);
    my $proc = $t->spawn($name, DSA::Stages::inside($host),
                         $t->build . '/dsa-engine', '-c', $file);

    $proc->{ready} = sub { $proc->output =~ /waits for the leader/ };
    $proc->wait_ready(60);

    return $proc;
}


my $follower = follower('follower');
my $stages = DSA::Stages->new($t, $host, PROXY, PORT);

my %conf = (backend => 'cpu', max_running => 8, kv_memory => '16m',
            speculate => 'off');

# all of them have two ranks, so that their bits are the same

$t->start_engine(name => 'reference', conf => {
    %conf, name => 'reference', gpus => 2 });
$t->start_engine(name => 'spare', conf => { %conf, name => 'm', gpus => 2 });

my $leader = $t->start_engine(name => 'leader', conf => {
    %conf, name => 'm', hosts => $where, host_secret => $secret,
    step_timeout => "${limit}s" });

$t->start_nginx();
serving();


# Waits until all three replicas have their session.

sub serving {
    wait_until(sub { ($t->metrics->{dsa_sessions} // 0) == 3 }, 90,
               'all sessions');
}


sub streams {
    my ($model, $name) = @_;

    return map {
        $t->stream({ %{ ask("$name, number $_. " . 'And more. ' x 20,
                            max_tokens => 30, temperature => 0,
                            ignore_eos => JSON::PP::true) },
                     model => $model }, head => 0)
    } 1 .. STREAMS;
}


sub texts {
    return map {
        $_->read_head();
        my $m = DSA::HTTP->gather($_->events);

        join '|', map { $_ // '' } $m->{done}, $m->{usage}{completion_tokens},
                                   $m->{content};
    } @_;
}


# The stages of a step, by the message before which it stands still.  The steps
# before it are those of prompts.

my %stage = (
    'before its plan is sent'  => [ [ 'leader', 'STEP', 4 ] ],
    'after its plan was sent'  => [ [ 'leader', 'STEP', 4 ],
                                    [ 'follower', 'DATA', 1 ] ],
    'within the exchange'      => [ [ 'leader', 'STEP', 4 ],
                                    [ 'follower', 'DATA', 2 ] ],
    'before its result'        => [ [ 'leader', 'STEP', 4 ],
                                    [ 'follower', 'RESULT', 1 ] ],
);

my $silent = qr/has sent nothing for (\d+) ms/;

# if the thread that waits for the host does not run then, the thread that
# watches its calls finds a second later that this one takes too long

my $late = qr/error\] \d+: .*takes more than \d+ ms, .* of host \Q$where\E/;
my $named = 0;

# What happens while the step stands still, how the leader names it, and what
# happens then.

my %fault = (
    dies  => [ sub { $follower->signal_replica('KILL'); $stages->go },
               qr/has closed the connection/, sub { } ],
    hangs => [ sub { $follower->signal_replica('STOP'); $stages->go }, $silent,
               sub { } ],
    'is cut off'
          => [ sub { $host->link('down'); $stages->go }, $silent,
               sub { $host->link('up') } ],
    'is slower than step_timeout'
          => [ sub { }, $silent, sub { $stages->go } ],
);


# Both hosts have other processes than before, and the leader serves.

sub again {
    my (%before) = @_;

    wait_until(sub {
        !grep { my $pid = $_->replica; !$pid || $pid == $before{$_->{name}} }
              $follower, $leader
    }, 90, 'both processes');
    serving();

    return;
}


sub pids { map { $_->{name} => $_->replica } $follower, $leader }


for my $stage (sort keys %stage) {
    for my $fault (sort keys %fault) {
        my ($begin, $names, $end) = @{ $fault{$fault} };
        my $name = "a follower $fault $stage";
        my @want = texts(streams('reference', $name));
        my %before = pids();
        my $from = length $leader->output;

        $stages->hold(@{ $stage{$stage} });

        my @streams = streams('m', $name);

        $stages->reached;
        $begin->();

        my ($text, $ms);

        wait_until(sub {
            $text = substr $leader->output, $from;
            return 1 if $fault ne 'dies' && $text =~ $late;
            $text =~ /error\] \d+: .*host \Q$where\E $names/ or return 0;
            $ms = $1;
            return 1;
        }, 60, "$name: its name");

        $named++ if defined $ms;
        is($ms, $fault eq 'dies' || !defined $ms ? undef : $limit * 750,
           "$name: it is named, at the latest after 3/4 of step_timeout")
            or diag($text);

        $end->();
        is_deeply([ texts(@streams) ], \@want, "$name: the streams go on");
        again(%before);
        pass("$name: both hosts start again");
    }
}

cmp_ok($named, '>', 0, 'a thread that waits for the host runs in time');


# Slow, but not too slow: nothing happens.

for my $stage (sort keys %stage) {
    my $name = "a follower is slow $stage";
    my @want = texts(streams('reference', $name));
    my %before = pids();

    $stages->hold(@{ $stage{$stage} });

    my @streams = streams('m', $name);

    $stages->reached;
    pause($limit / 10);
    $stages->go;

    is_deeply([ texts(@streams) ], \@want, "$name: the streams are answered");
    is_deeply({ pids() }, \%before, "$name: by the same processes");
}


# A follower that is started again, and is not the one that it was.

my $other = secret('other', 'e');

for my $case (
    [ 'another secret', qr/the secret of the leader is not that of this host/,
      host_secret => $other ],
    [ 'other weights', qr/has other weights: their fingerprint is [0-9a-f]+/,
      model => "$DSA::Test::root/t/data/golden/a-fp8" ],
    [ 'another version', qr/has version 9\.87 \(messages 1\); expected /])
{
    my ($name, $names, %change) = @$case;
    my @want = texts(streams('reference', $name));
    my %before = pids();
    my $from = length $leader->output;

    # the leader meets it when it starts again

    $stages->hold([ 'leader', 'STEP', 4 ]);

    my @streams = streams('m', $name);

    $stages->reached;
    $stages->alter(%change ? 0 : 1);
    $follower->stop('TERM', 30);

    my $wrong = follower("wrong $name" =~ tr/ /-/r, %change);

    $stages->go;

    wait_until(sub {
        substr($leader->output, $from) =~ /host \Q$where\E:? .*?$names/
    }, 60, "$name: its name");
    pass("$name is named");

    is_deeply([ texts(@streams) ], \@want, "$name: the streams go on");

    $stages->alter(0);
    $wrong->stop('TERM', 30);
    $follower = follower("right $name" =~ tr/ /-/r);
    serving();

    isnt($leader->replica, $before{leader}, "$name: the leader starts again");
    is((texts(streams('m', $name)))[0], $want[0], "$name: and answers");
}

ok($_->alive, "$_->{name} runs") for $follower, $leader;

my @bad = $host->end;

is(scalar @bad, 0, 'the namespace has ended well') or diag("@bad");

$t->done;
