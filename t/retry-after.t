#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Retry-After of a request that finds all queues full: the time that the least
# busy engine needs for what waits there, at the rate at which its requests have
# ended lately.

use strict;
use warnings;

use POSIX qw/ ceil floor /;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $full = script("error overloaded the queue is full\n");


# The engine dictates the count of requests that have ended, and how many wait.
# The time of the measurement begins when nginx starts.  It begins again after
# 20 seconds (NGX_HTTP_DSA_BACKLOG_WINDOW); nginx is started again before that.

my $t = DSA::Test->new('retry');
my $real = DSA::Test->new('queue');
my @fake = map { $t->start_fake } 0, 1;

my ($before, $after);

sub begin {
    $t->stop_nginx;
    ctl($_, 'load 4 0 1000') for @fake;

    $before = time;
    $t->start_nginx(workers => 1);
    $t->wait_sessions(2);
    $after = time;

    return;
}

begin();


# Sets what the engines have, waits until their control blocks have it, sends a
# request that all of them refuse, and compares the seconds with the bounds that
# the earliest and the latest begin of the measurement give.

sub refused {
    my ($name, $load, $bounds, $script, $status) = @_;

    my ($from, $to, $r);

    for (1 .. 10) {
        begin() if time > $before + 5;
        ($from, $to, $r) = asked($load, $script);
        last if $to < $before + 19;
    }

    my ($least, $most) = $bounds->($from - $after, $to - $before);
    my $value = $r->{headers}{'retry-after'};

    is($r->{status}, $status // 503, "$name: refused");
    ok($value >= $least && $value <= $most, "$name: Retry-After is the time "
       . 'of the queue')
        or diag("$value, expected from $least to $most");

    return;
}


# The times before and after the request, and its answer.

sub asked {
    my ($load, $script) = @_;

    ctl($fake[$_], "load 4 $load->[$_]") for 0, 1;

    wait_until(sub {
        my $m = $t->metrics;
        my @waiting = map { $_->[0] }
                      map { [ $load->[$_] =~ /^(\d+)/ ] } 0, 1;
        my %have = map { /(engine\d)/ ? ($1 => $m->{$_}) : () }
                   grep { /^dsa_engine_requests_waiting/ } keys %$m;

        $have{engine0} == $waiting[0] && $have{engine1} == $waiting[1];
    }, 20, 'the load');

    my $from = time;
    my $r = $t->post($chat, $script // $full);

    return ($from, time, $r);
}


# the rate is that of 10 to 20 seconds at most

sub clamp {
    my ($seconds) = @_;

    return $seconds < 1 ? 1 : $seconds > 60 ? 60 : $seconds;
}


sub at_rate {
    my ($waiting, $ended) = @_;

    return sub {
        my ($least, $most) = @_;

        return (clamp(floor($waiting * $least / $ended)),
                clamp(ceil($waiting * ($most + 0.1) / $ended)));
    };
}


refused('nothing waits', [ '0 1000', '0 1000' ], sub { (1, 1) });
refused('both wait', [ '50 1010', '40 1010' ], at_rate(40, 10));
refused('another engine is faster', [ '50 1100', '40 1010' ],
        at_rate(50, 100));
refused('a queue of days', [ '4000000000 1001', '4000000000 1001' ],
        sub { (60, 60) });
refused('nothing has ended', [ '8 1000', '9 1000' ],
        sub { (clamp(floor($_[0])), clamp(ceil($_[1] + 0.1))) });
refused('a count below the first', [ '8 3', '9 3' ],
        sub { (clamp(floor($_[0])), clamp(ceil($_[1] + 0.1))) });
refused("a tenant's own excess", [ '50 1010', '40 1010' ], at_rate(40, 10),
        script("error tenant too many of yours\n"), 429);

# one that drains does not count, and without an engine the second one may be
# there at once

ctl($fake[1], 'drain 1');
refused('one drains', [ '50 1010', '40 1100' ], at_rate(50, 10));
ctl($fake[1], 'drain 0');

$_->kill9 for @fake;
wait_until(sub { $t->get('/readyz')->{status} == 503 }, 20, 'no engine');

my $r = $t->post($chat, $full);

is($r->{status}, 503, 'no engine');
is($r->{headers}{'retry-after'}, 1, 'no engine: another host may have one');
$t->done;


# A real queue: one request runs, at 4 steps a second, and four wait.  Answers
# of 8 tokens have ended before, which the test counts; those do not end.

$real->start_engine(conf => {
    backend => 'null rate=4', name => 'm', max_running => 1, max_waiting => 4,
    token_target => 0 });

$before = time;

$real->start_nginx(workers => 1);
$real->wait_sessions(1);

$after = time;

my $ended = 0;


sub open_one {
    my ($tokens) = @_;

    my $s = $real->connect;

    $s->send_request('POST', $chat, body => json_encode({
        model => 'm', max_tokens => $tokens, stream => JSON::PP::true,
        messages => [ { role => 'user', content => 'Twice upon a time' } ] }));

    return $s;
}


for (1 .. 4) {
    my $s = open_one(8);

    $s->read_head;
    is($s->status, 200, 'served') if $s->status != 200;
    $s->events;
    $ended++;
}

sub has {
    my ($what, $n) = @_;

    wait_until(sub {
        my $m = $real->metrics;
        my ($name) = grep { /^dsa_engine_requests_$what/ } keys %$m;

        $m->{$name} == $n;
    }, 20, "$n requests $what");

    return;
}

has('running', 0);

my @five = open_one(1000);

has('running', 1);
push @five, map { open_one(1000) } 1 .. 4;
has('waiting', 4);

my $extra = open_one(1000);

$extra->read_head;

my $seconds = $extra->header('Retry-After');
my $least = floor(4 * (time - $after) / ($ended + 1));
my $most = ceil(4 * (time - $before + 0.1) / $ended);

is($extra->status, 429, 'the sixth is refused');
ok($seconds >= $least && $seconds <= $most && $least > 1,
   'Retry-After is four times the time of a request')
    or diag("$seconds, expected from $least to $most");

$_->close for @five, $extra;
$real->done;
