# Copyright (C) The nginx-dsa authors
#
# The limits of keys over two hosts with one Redis: each has an nginx with its
# own zone of keys.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ time sleep /;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

my $a = DSA::Test->new('limits-a');
my $b = DSA::Test->new('limits-b');
my $redis = $a->start_redis();

my @records = (
    key_entry('shared', rpm => 30),
    key_entry('away', rpm => 30),
    key_entry('running', concurrency => 2),
    key_entry('spender', tenant => 'acme',
               budget => { total => { hard => '0.0003' } }),
    key_entry('dated', tenant => 'acme', budget => { day => { hard => '1' } }),
);

for my $t ($a, $b) {
    $t->start_fake();
    write_keys($t->path('keys'), @records);
    $t->start_nginx(
        workers => 2,
        http => 'dsa_keys file=%%DIR%%/keys zone=keys:1m;
                 dsa_price deepseek-chat miss=1 hit=1 output=1;'
                . ($t == $b ? 'dsa_redis 127.0.0.1:' . $redis->port
                              . ' timeout=10s;'
                            : ''));
    wait_until(sub { connections($t) == 2 }, slow(10), 'Redis');
}


sub connections { $_[0]->metrics->{dsa_redis_connections} }

sub limits { "dsa1:{" . key_entry($_[0])->{id} . "}:limits" }

sub chat {
    my ($t, $key, $prompt, $completion) = @_;

    $prompt = 1 if !defined $prompt;
    $completion = 0 if !defined $completion;

    return $t->post('/v1/chat/completions',
                    script(($completion ? "t a\n" : "rate 0\n")
                           . "prompt $prompt\ncompletion $completion\n"
                           . 'done stop', max_tokens => $completion + 2),
                    bearer(key_text($key)));
}

sub status { chat(@_)->{status} }


# How many requests a host admits without pause; it is one that refuses the
# next one.

sub drain {
    my ($t, $key) = @_;

    for my $n (0 .. 100) {
        return $n if status($t, $key) != 200;
    }

    return 101;
}


# A request each fifth of a second, until one is refused: how many were not.

sub slowly {
    my ($t, $key) = @_;

    for my $n (0 .. 100) {
        return $n if status($t, $key) != 200;
        sleep 0.2;
    }

    return 101;
}


# What is missing in Redis, in requests.

sub missing { ($a->redis->cmd('HGET', limits($_[0]), 'requests') || 0) / 60000 }


# requests per minute

my $start = time;
my $first = drain($a, 'shared');
my $refill = sub { int((time - $start) / 2) + 1 };

ok($first >= 30 && $first <= 30 + $refill->(), 'one host admits 30 requests')
    or diag($first);
wait_until(sub { missing('shared') > 28 - $refill->() }, slow(5), 'its share');

# the other host has not used the key, and reads what is missing in Redis

my $second = slowly($b, 'shared');

cmp_ok($second, '<', 30, 'the other one refuses before it has admitted 30');
wait_until(sub { status($a, 'shared') == 429 }, slow(10),
           'the use of the other host');

# both have debts, which are paid together

my $paid = missing('shared') - 30;
my $early = 0;
my $from = time;

while (time < $from + 3) {
    $early += status($_, 'shared') == 200 for $a, $b;
    sleep 0.1;
}

my $owed = $paid - (time - $from) / 2;
cmp_ok($early, '<=', $owed > 1 ? 0 : 3,
       'no more than one each two seconds follow') or diag("owed $owed");


# Redis is away: each host counts alone, and shares its use later

$redis->stop;
wait_until(sub { !connections($a) && !connections($b) }, slow(10),
           'the loss of Redis');
$start = time;
$first = drain($a, 'away');
ok($first >= 30 && $first <= 30 + $refill->(), 'the limit of this host')
    or diag($first);
is(status($b, 'away'), 200, 'the other host has its own');

$redis->restart;
$redis->wait_ready(slow(20));
wait_until(sub { missing('away') > 25 - $refill->() }, slow(20),
           'use that could not be shared');
wait_until(sub { connections($b) == 2 }, slow(10), 'Redis');

$second = slowly($b, 'away');
cmp_ok($second, '<', 30, 'counts on the other host');
wait_until(sub { status($a, 'away') == 429 }, slow(10), 'the same here');

# a Redis without its data gets most of it back

$a->redis->cmd('DEL', limits('away'));
wait_until(sub { missing('away') > 20 - $refill->() }, slow(5),
           'the data again');
pass('a Redis that lost the limits has them again');


# budgets: what a host has spent counts on the other one

is(chat($a, 'spender', 100, 99)->{status}, 200, '0.000199 are spent');
is(chat($b, 'spender', 100, 1)->{status}, 200, '0.000101 elsewhere');
wait_until(sub { status($a, 'spender', 0, 0) == 402 }, slow(10), 'a sum');
wait_until(sub { status($b, 'spender', 0, 0) == 402 }, slow(10), 'a sum');
pass('both hosts refuse at 0.0003');

my ($spend) = grep { $a->redis->cmd('HEXISTS', $_,
                                    key_entry('spender')->{id}) }
              grep { /:spend$/ } $a->redis->keys('dsa1:*');
my $id = key_entry('dated')->{id};
my $day = sub {
    my @t = gmtime(time - 86400 * $_[0]);
    return sprintf '%d-%02d-%02d', $t[5] + 1900, $t[4] + 1, $t[3];
};

sub reads {
    my ($n) = $a->redis->cmd('INFO', 'commandstats')
              =~ /cmdstat_hmget:calls=(\d+)/;
    return $n // 0;
}

$a->redis->cmd('HSET', $spend, "$id|" . $day->(1), 2_000_000_000_000);
is(status($a, 'dated'), 200, 'a key with a budget for the day');
my $reads = reads();
wait_until(sub { reads() > $reads + 3 }, slow(10), 'what it has spent');
is(status($a, 'dated'), 200, 'what was spent yesterday does not count');
$a->redis->cmd('HSET', $spend, "$id|" . $day->(0), 2_000_000_000_000);
wait_until(sub { status($a, 'dated') == 402 }, slow(10), 'today');
pass('what was spent today does');


# concurrent requests, and a host that is killed

my @open = map { $a->stream(script("t a\nhold"),
                            bearer(key_text('running'))) } 1, 2;
is((grep { $_->status == 200 } @open), 2, 'two requests run');
is(status($a, 'running'), 429, 'and no third');
wait_until(sub { status($b, 'running') == 429 }, slow(5), 'the lease');
pass('nor on the other host');

my $master = $a->nginx_pid;
my @workers = $a->workers;
kill 'KILL', $master, @workers;
DSA::Process::wait_gone($_, slow(10)) for $master, @workers;

# "RUNNING UNTIL" of the killed host, and the time of Redis, in ms

my %shared = @{ $a->redis->cmd('HGETALL', limits('running')) };
my ($until) = map { /^2 (\d+)$/ ? $1 : () } values %shared;

sub redis_time {
    my ($seconds, $us) = @{ $a->redis->cmd('TIME') };

    return 1000 * $seconds + $us / 1000;
}

cmp_ok($until - redis_time(), '<=', 10_000,
       'a killed host has a lease of ten seconds');
wait_until(sub { status($b, 'running') == 200 }, slow(30), 'the end of it');
cmp_ok(redis_time(), '>=', $until, 'until then its requests count');

$b->done;
$a->done;
