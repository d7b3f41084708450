#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# dsa_status: valid JSON with the figures of /metrics and of the control blocks
# of engines, summed over workers, reloads and workers that were killed.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';
my %status = (server => 'location = /status { dsa_status; }');
my $t = DSA::Test->new('status');
my $fake = $t->start_fake();

$t->start_redis();
$t->start_nginx(%status, workers => 2);


sub status { return $t->get('/status')->{json} }


# What /metrics has of a metric with one label, by its label.

sub family {
    my ($m, $name, $label) = @_;

    return { map { /^\Q$name\E\{$label="(\w+)"\}$/ ? ($1 => $m->{$_}) : () }
             keys %$m };
}


my $r = $t->get('/status');
is($r->{status}, 200, '/status');
is($r->{headers}{'content-type'}, 'application/json', 'its type');
is($r->{headers}{'cache-control'}, 'no-store', 'it is not cached');
unlike($r->{body}, qr/[^\x20-\x7e\n]/, 'printable');

my ($version) = read_file("$DSA::Test::root/debian/changelog")
                =~ /^nginx-dsa \(([^)-]+)/;
is($r->{json}{version}, $version, 'the version is that of the packages');
cmp_ok(abs($r->{json}{time} - time), '<', 60, 'the time');

is($t->post('/status', '')->{status}, 405, 'POST is refused');
is($t->request('HEAD', '/status')->{body}, '', 'HEAD has no body');


# known requests, by both workers

$t->post($chat, script("T r|r|</think>|c\ncached 9\nprompt 100\ntiers 4 2\n",
                       model => 'deepseek-reasoner')) for 1 .. 10;
$t->post($chat, '{') for 1 .. 3;
$t->get('/v1/none');

my $s;

wait_until(sub { $s = status(); $s->{requests}{total} >= 14 }, 10,
           'all are counted');

is($s->{requests}{total}, 14, 'requests');
is($s->{requests}{by_status}{200}, 10, 'answered');
is($s->{requests}{by_status}{400}, 3, 'bad requests');
is($s->{requests}{by_status}{404}, 1, 'not found');
is_deeply($s->{tokens},
          { prompt => 1000, completion => 50, reasoning => 30,
            cached => { gpu => 30, host => 40, redis => 20 } }, 'tokens');

my $sum = 0;
$sum += $_ for @{ $s->{latency}{ttft}{counts} };
is($sum, 10, 'times to first token');


# the same as /metrics

my $m = $t->metrics;

is_deeply($s->{requests}{by_status},
          family($m, 'dsa_requests_total', 'code'), 'status codes');
is_deeply($s->{requests}{cancelled},
          family($m, 'dsa_cancelled_total', 'reason'), 'cancelled');

my %histogram = (ttft => 'time_to_first_token', inter_token => 'inter_token',
                 duration => 'request_duration', queue => 'queue');

for my $key (sort keys %histogram) {
    my $name = "dsa_$histogram{$key}_seconds";
    my $h = $s->{latency}{$key};
    my (%got, $n);

    for my $i (0 .. $#{ $h->{counts} }) {
        my $bound = $h->{bounds}[$i];

        $n += $h->{counts}[$i];
        $got{defined $bound ? sprintf('%.9g', $bound / 1000) : '+Inf'} = $n;
    }

    is_deeply(\%got, { map { /^${name}_bucket\{le="(.*)"\}$/
                             ? ($1 => $m->{$_}) : () } keys %$m },
              "$key: buckets");
    is(sprintf('%.3f', $h->{sum} / 1000), $m->{"${name}_sum"}, 'their sum');
}


# engines

ctl($fake, 'load 3 4');
ctl($fake, 'page 4096');
ctl($fake, join ' ', 'tier', $_, map { $_ * 100 } 1 .. 15) for 0 .. 2;

my $e;

wait_until(sub { $e = status()->{engines}[0]; $e->{running} == 3 }, 10,
           'the load');

is($e->{pool}, 'v32', 'the pool');
is($e->{engine}, 'unix:' . $fake->sock, 'the engine');
is($e->{model}, 'fake-model', 'its model');
is($e->{up}, JSON::PP::true, 'it is up');
is($e->{draining}, JSON::PP::false, 'it is not draining');
is($e->{waiting}, 4, 'waiting');
is($e->{pages}, 100, 'pages');
is($e->{pages_used}, 25, 'pages in use');
is($e->{page_bytes}, 4096, 'bytes of a page');
is_deeply($e->{tiers},
          { gpu => { pages => 100, used => 200, hit_tokens => 300 },
            host => { pages => 100, used => 200, hit_tokens => 300 },
            redis => { hit_tokens => 300, servers => 1400,
                       servers_on => 1500 } }, 'tiers');
cmp_ok($e->{heartbeat_ms}, '<', 5000, 'a heartbeat');


# requests in flight

my $tokens = status()->{tokens}{completion};
my @s = map { $t->stream(script("t a\nhold\n")) } 1 .. 5;
is(status()->{requests}{in_flight}, 5, 'in flight');
$_->close() for @s;
wait_until(sub { status()->{requests}{in_flight} == 0 }, 10, 'the end');
is(status()->{requests}{cancelled}{client}, 5, 'cancelled');

# the engine reports the tokens later

wait_until(sub { status()->{tokens}{completion} == $tokens + 5 }, 10,
           'the tokens');


# The zone outlives a reload, the uptime too.

my $before = status();

$t->reload(%status);

my $after = status();

is($after->{tokens}{prompt}, $before->{tokens}{prompt},
   'counters outlive a reload');
cmp_ok($after->{uptime}, '>=', $before->{uptime}, 'and so does the uptime');
cmp_ok($after->{uptime}, '<=', time - $^T + 1, 'which began with the server');


# Redis

my $server = $t->{redises}[0];
my $redis = $t->redis($server);

sub redis { status()->{redis} }

$redis->cmd(qw/ CONFIG SET maxmemory 100mb /);
wait_until(sub { redis()->{up} && redis()->{queue} == 0 }, 10, 'Redis');
wait_until(sub { (redis()->{memory_limit} // 0) == 100 * 1024 * 1024 }, 20,
           'its memory');
ok(redis()->{writable}, 'Redis accepts writes');
ok(!redis()->{evicts}, 'and evicts nothing');
ok(!redis()->{durable}, 'it keeps no append-only file');

$redis->cmd(qw/ CONFIG SET appendonly yes /);
wait_until(sub { redis()->{durable} }, 20, 'an append-only file');
cmp_ok(redis()->{memory_used}, '>', 500_000, 'the memory that it uses');
cmp_ok(redis()->{memory_used}, '<', 50_000_000, 'is not that of the machine');
is(redis()->{queue_used}, 0, 'nothing is in the queue');
is(redis()->{queue_capacity}, 20000, 'which has 20000 places');

# a request that runs, and entries that Redis refuses

$redis->cmd(qw/ ACL SETUSER default -hset /);
$s = $t->stream(script("t a\nhold\n"));
$t->post($chat, script("t a\n")) for 1 .. 2;
wait_until(sub { !redis()->{writable} }, 10, 'a refusal');
is_deeply([ @{ redis() }{qw/ up queue queue_used /} ],
          [ JSON::PP::true, 2, 3 ], 'two entries wait and one request runs');
$redis->cmd(qw/ ACL SETUSER default +hset /);
$s->close;
wait_until(sub { redis()->{writable} && redis()->{queue_used} == 0 }, 10,
           'the entries to be written');

$server->kill9();
$t->post($chat, script("t a\n")) for 1 .. 3;
wait_until(sub { !redis()->{up} }, 10, 'Redis to be down');
is(redis()->{queue}, 3, 'entries that wait for Redis');
ok(!redis()->{writable}, 'it accepts no writes');


# A name that an engine sends is text.  An engine whose name has control
# characters, or is not UTF-8, is not used.

my $hostile = DSA::Test->new('status-hostile');

$hostile->start_fake("model=\"}[31m\\</script>");
$hostile->start_fake("model=\e[31m");
$hostile->start_fake("model=x\xff");
$hostile->start_fake("fingerprint=\n");
$hostile->start_nginx(%status);
wait_until(sub { 3 == grep { $hostile->logged($_) }
                     qr/engine1.*with model "\\x1b\[31m"/,
                     qr/engine2.*with model "x\\xff"/,
                     qr/engine3.*with fingerprint "\\x0a"/ }, 10,
           'the hellos');
wait_until(sub { $hostile->metrics->{dsa_sessions} >= 1 }, 10, 'a session');
$r = $hostile->get('/status');
unlike($r->{body}, qr/[^\x20-\x7e\n]/, 'a hostile name: printable');
is($r->{json}{engines}[0]{model}, '"}[31m\\</script>', 'it is one string');
is((grep { $_->{up} } @{ $r->{json}{engines} }), 1, 'the others are not used');
unlike(join('', map { $_->{model} // '' } @{ $r->{json}{engines} }[1 .. 3]),
       qr/[^\x20-\x7e]/, 'and their names are not shown');


# An engine that is down.  Each worker has a session of its own, and any of them
# may answer.

$fake->kill9();
$t->wait_sessions(0);
is(status()->{engines}[0]{up}, JSON::PP::false, 'the engine is down');
is_deeply([ sort keys %{ status()->{engines}[0] } ],
          [qw/ engine model pool up /], 'an engine without figures');

$hostile->done;
$t->done;
