#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A follower that dies, hangs, is cut off or connects again while pages move
# between its ranks and its memory: the leader names it, the streams go on with
# the text that they would have had, both hosts start again, and what the memory
# had is computed, never taken from another page.

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
    BAIL_OUT("hosts-moves.t: $why") if $ENV{DSA_NO_SKIP};
    plan skip_all => $why;
}

DSA::Hosts::isolate();

use constant { PORT => 7400, PROXY => 7401, STREAMS => 6 };

my $t = DSA::Test->new('hosts-moves');
my $limit = slow(8);                    # s: step_timeout
my $host = DSA::Hosts->new($t, 1);
my $where = $host->address . ':' . PROXY;
my $secret = write_file($t->path('secret'), 'f' x 64 . "\n");

chmod 0600, $secret or die "chmod: $!\n";

my $file = write_file($t->path('follower.conf'), join '', map { "$_;\n" }
                      'model ' . $t->model, 'backend cpu',
                      "host_secret $secret", 'listen 127.0.0.1:' . PORT,
                      "step_timeout ${limit}s");
my $follower = $t->spawn('follower', DSA::Stages::inside($host),
                         $t->build . '/dsa-engine', '-c', $file);

$follower->{ready} = sub { $follower->output =~ /waits for the leader/ };
$follower->wait_ready(60);

my $stages = DSA::Stages->new($t, $host, PROXY, PORT);
my %conf = (backend => 'cpu', kv_memory => '2m', token_budget => 128,
            speculate => 'off');

# all of them have two ranks, so that their bits are the same

$t->start_engine(name => 'reference', conf => {
    %conf, name => 'reference', gpus => 2 });

my $spare = $t->start_engine(name => 'spare', conf => {
    %conf, name => 'm', gpus => 2 });

my $leader = $t->start_engine(name => 'leader', conf => {
    %conf, name => 'm', hosts => $where, host_secret => $secret,
    host_memory => '64m', step_timeout => "${limit}s",
    log_level => 'debug' });

$t->start_nginx();
serving(3);


# Waits until so many replicas have their session.

sub serving {
    my ($n) = @_;

    wait_until(sub { ($t->metrics->{dsa_sessions} // 0) == $n }, 90,
               "$n sessions");
}


sub pids { map { $_->{name} => $_->replica } $follower, $leader }


sub streams {
    my ($model, $name) = @_;

    return map {
        $t->stream({ %{ ask("$name, number $_. " . 'And more. ' x 60,
                            max_tokens => 12, temperature => 0,
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


# Both hosts have other processes than before, and the leader serves.

sub again {
    my (%before) = @_;

    wait_until(sub {
        !grep { my $pid = $_->replica; !$pid || $pid == $before{$_->{name}} }
              $follower, $leader
    }, 90, 'both processes');
    serving(3);

    return;
}


# The same streams after others, which take the pages of the ranks.

sub repeated {
    my ($name, @want) = @_;

    texts(streams('m', "other than $name"));
    is_deeply([ texts(streams('m', $name)) ], \@want, "$name: and again");

    return;
}


# Where it stands still: a MOVE that is not sent, and one that was executed and
# is not answered.

my %stage = (
    'before a move is sent'     => [ [ 'leader', 'MOVE', 2 ] ],
    'before a move is answered' => [ [ 'leader', 'MOVE', 1 ],
                                     [ 'follower', 'MOVED', 1 ] ],
);

my $silent = qr/has (?:sent|read) nothing for (\d+) ms/;

# if the thread that waits for the host does not run then, the thread that
# watches its calls finds a second later that this one takes too long

my $late = qr/error\] \d+: .*takes more than \d+ ms, .* of host \Q$where\E/;
my $named = 0;

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

        is_deeply([ texts(streams('m', $name)) ], \@want,
                  "$name: and the same after both hosts have started");
        repeated($name, @want);
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
    repeated($name, @want);
    is_deeply({ pids() }, \%before, "$name: by the same processes");
}

# All streams on the leader, so that each rank has to load some of its pages.

$spare->stop('TERM', 60);
serving(2);

my @want = texts(streams('reference', 'alone'));

is_deeply([ texts(streams('m', 'alone')) ], \@want, 'alone: the streams');
repeated('alone', @want) for 1, 2;

like($leader->output, qr/loaded from host memory on rank $_\n/,
     "rank $_ has loaded pages") for 0, 1;
unlike($leader->output, qr/does not have it/,
       'the leader has never expected a page that was not there');
ok($_->alive, "$_->{name} runs") for $follower, $leader;

my @bad = $host->end;

is(scalar @bad, 0, 'the namespace has ended well') or diag("@bad");

$t->done;
