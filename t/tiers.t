#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Cached prefixes in host memory and Redis, from HTTP to the CPU backend: the
# same answer from every tier, and from none when a tier fails.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $page = 64;
my $t = DSA::Test->new('tiers');
my $redis = $t->start_redis(password => 'secret');

write_file($t->path('cache.pw'), "secret\n");

my %conf = (
    model        => "$DSA::Test::root/demo/model",
    name         => 'demo',
    backend      => 'cpu',
    kv_memory    => '12m',
    host_memory  => '64m',
    redis_cache  => "127.0.0.1:$redis->{port} password_file="
                    . $t->path('cache.pw') . ' ttl=1h connections=2',
);

my $engine = $t->start_engine(conf => { %conf });
$t->start_nginx();


# A metric of the engine's Redis tier.

sub redis_metric {
    my ($name) = @_;

    my $m = $t->metrics;
    my ($key) = grep { /^dsa_engine_tier_\Q$name\E\{.*tier="redis"/ } keys %$m;

    return $m->{$key};
}


# An answer with what its logarithms of probabilities are, and its usage.

sub chat { return chat_on($t, @_) }


sub chat_on {
    my ($host, $text, %more) = @_;

    my $r = $host->post('/v1/chat/completions',
                        ask($text, max_tokens => 12, temperature => 0,
                            seed => 1, logprobs => JSON::PP::true, %more));

    is($r->{status}, 200, 'answered') or diag $r->{body};

    my $body = json_decode($r->{body});

    return (json_encode($body->{choices}), $body->{usage});
}


sub tiers {
    my ($usage) = @_;

    my $d = $usage->{prompt_tokens_details};

    return "$d->{cached_tokens}: $d->{gpu_tokens} $d->{host_tokens} "
           . $d->{redis_tokens};
}


sub kv_keys {
    return scalar grep { /^dsa1:kv:/ } $t->redis($redis)->keys('dsa1:kv:*');
}


# An engine computes a prompt if reading its pages is not faster, and on a busy
# machine the first page may come too late.  Returns the answer and the usage of
# the first attempt that has these tiers, or of the last one.

sub found {
    my ($host, $text, $want, $again) = @_;
    my ($answer, $usage);

    for (1 .. 10) {
        $again->();
        ($answer, $usage) = chat_on($host, $text);
        last if tiers($usage) eq $want;
    }

    return ($answer, $usage);
}


# Other prompts, until the pages of the rank were overwritten.

my $n = 0;

sub overwrite {
    for (1 .. 4) {
        $n++;
        chat("$n " . 'sun ' x 450, max_tokens => 1);
    }
}


my $prompt = 'one ' . 'cat dog ' x 200;

my ($computed, $usage) = chat($prompt);
my $hit = int(($usage->{prompt_tokens} - 1) / $page) * $page;

cmp_ok($hit, '>', 10 * $page, 'the prompt has many pages');
is(tiers($usage), '0: 0 0 0', 'nothing was cached');

# from each tier

(my $answer, $usage) = chat($prompt);
is(tiers($usage), "$hit: $hit 0 0", 'found on the rank');
is($answer, $computed, 'the same answer');

($answer, $usage) = found($t, $prompt, "$hit: 0 $hit 0", \&overwrite);
is(tiers($usage), "$hit: 0 $hit 0", 'found in host memory');
is($answer, $computed, 'the same answer');
is($usage->{prompt_cache_hit_tokens}, $hit, 'the sum for DeepSeek clients');

wait_until(sub { kv_keys() >= $hit / $page }, 20, 'the pages in Redis');
cmp_ok($t->redis($redis)->cmd('TTL', ($t->redis($redis)
                                      ->keys('dsa1:kv:*'))[0]),
       '>', 3000, 'for a time');

# a replica that ended: its pages are gone, those of Redis are not

sub restart {
    my ($signal) = @_;

    if ($signal eq 'KILL') {
        $engine->kill9();

    } else {
        $engine->stop();
    }

    wait_until(sub { $t->metrics->{dsa_sessions} == 0 }, 20, 'no session');
    $engine->restart();
    wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 20, 'a session');
}

($answer, $usage) = found($t, $prompt, "$hit: 0 0 $hit",
                          sub { restart('KILL'); $t->wait_cache });
is(tiers($usage), "$hit: 0 0 $hit", 'found in Redis after a restart');
is($answer, $computed, 'the same answer');
is(redis_metric('hit_tokens_total'), $hit,
   'and counted');

# a replica of another host finds them as well, beyond what its indexer selects

{
    my $host = DSA::Test->new('tiers-other');

    my $other = $host->start_engine(conf => { %conf });

    $host->start_nginx();

    ($answer, $usage) = found($host, $prompt, "$hit: 0 0 $hit", sub {
        $other->kill9();
        wait_until(sub { $host->metrics->{dsa_sessions} == 0 }, 20,
                   'no session');
        $other->restart();
        wait_until(sub { $host->metrics->{dsa_sessions} == 1 }, 20,
                   'a session');
        $host->wait_cache;
    });
    is(tiers($usage), "$hit: 0 0 $hit", 'another replica finds them');
    is($answer, $computed, 'the same answer');

    # the first half from Redis, and a part that only this replica knows

    my $half = substr($prompt, 0, length($prompt) / 2) . 'sun ' x 150;

    (my $first, $usage) = chat_on($host, $half);
    cmp_ok($usage->{prompt_tokens_details}{cached_tokens}, '>', 256,
           'more than the 256 tokens that attention selects');
    ($answer) = chat_on($host, $half);
    is($answer, $first, 'half of a prefix: the same answer');

    $host->done();
}

# a drained replica writes its pages to Redis before it ends

my $late = 'two ' . 'dog ' x 700;

(my $late_answer, $usage) = chat($late);
my $late_hit = int(($usage->{prompt_tokens} - 1) / $page) * $page;
($answer, $usage) = found($t, $late, "$late_hit: 0 0 $late_hit",
                          sub { restart('TERM'); $t->wait_cache });
is(tiers($usage), "$late_hit: 0 0 $late_hit", 'found after a drain');
is($answer, $late_answer, 'the same answer');

# Values of Redis that are not this page: the turn writes its pages again, and
# invalid ones are counted.  On a busy machine a page may not be read in time,
# or not be written: several attempts.

sub spoil {
    my ($name, $change, $invalid) = @_;

    my $r = $t->redis($redis);
    my $repaired;

    for (1 .. 10) {
        $change->($r, $_) for $r->keys('dsa1:kv:*');
        restart('KILL');
        $t->wait_cache;
        ($answer, $usage) = chat($prompt);
        is(tiers($usage), '0: 0 0 0', "$name: not used");
        is($answer, $computed, 'the same answer');

        $repaired = eval { wait_until(sub {
            redis_metric('written_pages_total') >= $hit / $page
                && redis_metric('invalid_pages_total') >= $invalid;
        }, 20, 'the pages in Redis') };

        last if $repaired;
    }

    ok($repaired, 'and written again');

    return;
}

my %byte;

spoil('one bit', sub {
    my ($r, $key) = @_;
    $byte{$key} //= $r->cmd('GETRANGE', $key, 5000, 5000);
    $r->cmd('SETRANGE', $key, 5000, $byte{$key} ^ "\1");
}, 1);

spoil('cut short', sub {
    my ($r, $key) = @_;
    $r->cmd('SET', $key, $r->cmd('GETRANGE', $key, 0, 4999));
}, 0);

my @key = $t->redis($redis)->keys('dsa1:kv:*');
my $foreign = $t->redis($redis)->cmd('GET', $key[0]);

spoil('the page of another key', sub {
    my ($r, $key) = @_;
    $r->cmd('SET', $key, $foreign) if $key ne $key[0];
    $r->cmd('DEL', $key) if $key eq $key[0];
}, 0);

spoil('another type', sub {
    my ($r, $key) = @_;
    $r->cmd('DEL', $key);
    $r->cmd('RPUSH', $key, 'x');
}, 0);

spoil('nothing', sub { $_[0]->cmd('DEL', $_[1]) }, 0);

# a Redis that is frozen; another stream goes on meanwhile, whose tokens in the
# same steps change the roundings of the CPU, so that answers are not compared
# then

restart('KILL');
$redis->signal('STOP');
($answer, $usage) = chat($prompt);
is($answer, $computed, 'a frozen Redis: the same answer');
is(tiers($usage), '0: 0 0 0', 'which was computed');
wait_until(sub { $engine->output() =~ /Redis \S+ is off/ }, 10,
           'the cause in the log');
$redis->signal('CONT');

restart('KILL');
my $stream = $t->stream(ask('Count for ever.', max_tokens => 1400, seed => 1,
                            ignore_eos => JSON::PP::true));
ok(defined $stream->next_event(), 'another stream') for 1 .. 3;
$redis->signal('STOP');
(undef, $usage) = chat($prompt);
is(tiers($usage), '0: 0 0 0', 'a frozen Redis is not waited for');
ok(defined $stream->next_event(), 'the other stream goes on') for 1 .. 3;
$stream->close();
$redis->signal('CONT');

restart('KILL');
wait_until(sub { redis_metric('servers_on') == 1 }, 30, 'the server is on');
is(redis_metric('servers'), 1, 'the only one');
$redis->kill9();
($answer) = chat($prompt);
is($answer, $computed, 'a dead Redis: the same answer');

# an engine that starts without the server: nothing asks for it, and still it is
# counted and logged, once

my $logged = () = $engine->output() =~ /Redis \S+ is off/g;

restart('KILL');
wait_until(sub { redis_metric('failed_operations_total') > 2 }, 30,
           'attempts to connect are counted as failures');
is(redis_metric('servers_on'), 0, 'the server is off');
is(scalar(() = $engine->output() =~ /Redis \S+ is off/g), $logged + 1,
   'and logged once');

$redis->restart();
$redis->wait_ready(20);
wait_until(sub { redis_metric('servers_on') == 1 }, 30, 'it is on again');
wait_until(sub { kv_keys() || (chat($prompt))[0] eq '' }, 30,
           'pages in the new Redis');

# full, and read-only

for my $limit ('maxmemory 2mb', 'min-replicas-to-write 1') {
    my $r = $t->redis($redis);

    $r->cmd('FLUSHALL');
    $r->cmd('CONFIG', 'SET', split / /, $limit);
    restart('KILL');
    ($answer) = chat($prompt);
    is($answer, $computed, "$limit: the same answer");
    wait_until(sub {
        redis_metric('failed_operations_total')
        > 0;
    }, 20, 'failures are counted');
    $r->cmd('CONFIG', 'SET', split / /, $limit =~ s/\d\w*/0/r);
}

# a wrong password

write_file($t->path('cache.pw'), "wrong\n");
restart('KILL');
($answer) = chat($prompt);
is($answer, $computed, 'a wrong password: the same answer');
wait_until(sub { $engine->output() =~ /WRONGPASS|invalid password/i }, 10,
           'the cause in the log');

$t->done;
