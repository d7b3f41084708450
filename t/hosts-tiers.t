#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A replica over two hosts with host memory and Redis: prefixes are found in the
# memory of the host of their rank, and in Redis after a restart, and the
# answers are those of two ranks in one process without any tier.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $page = 64;
my $prompts = 6;
my $t = DSA::Test->new('hosts-tiers');
my $redis = $t->start_redis(password => 'secret');
my $secret = write_file($t->path('secret'), 'f' x 64 . "\n");
my $cache = "127.0.0.1:$redis->{port} password_file=" . $t->path('cache.pw')
            . ' ttl=1h connections=2';
my %own = (model => "$DSA::Test::root/demo/model", backend => 'cpu');
my %conf = (%own, kv_memory => '12m', speculate => 'off');

write_file($t->path('cache.pw'), "secret\n");
chmod 0600, $secret or die "chmod: $!\n";


sub follower {
    my ($name, @more) = @_;

    my $port = $t->free_port();
    my $file = write_file($t->path("$name.conf"), join '', map { "$_;\n" }
                          "model $own{model}", 'backend cpu',
                          "listen 127.0.0.1:$port", "host_secret $secret",
                          @more);
    my $proc = $t->spawn($name, $t->build . '/dsa-engine', '-c', $file);

    $proc->{port} = $port;
    $proc->{ready} = sub { $proc->output =~ /waits for the leader/ };
    $proc->wait_ready(60);

    return $proc;
}


my $follower = follower('follower', "redis_cache $cache");
my %hosts = (hosts => "127.0.0.1:$follower->{port}", host_secret => $secret,
             host_memory => '64m', redis_cache => $cache);

$t->start_engine(name => 'one', conf => { %conf, name => 'one', gpus => 2 });

my $leader = $t->start_engine(name => 'leader', conf => {
    %conf, %hosts, name => 'leader', log_level => 'debug' });

$t->start_nginx();


sub sessions {
    my ($n) = @_;

    wait_until(sub { ($t->metrics->{dsa_sessions} // 0) == $n }, 60,
               "$n sessions");
}

sessions(2);


# Answers of one model to prompts that run together, so that both ranks have
# some: the choices with their probabilities, and the cached tokens by tier.

sub chats {
    my ($model, @text) = @_;

    my (@answer, %tokens);
    my @stream = map {
        $t->stream({ %{ ask($_, max_tokens => 12, temperature => 0, seed => 1,
                            logprobs => JSON::PP::true,
                            stream_options => { include_usage =>
                                                JSON::PP::true }) },
                     model => $model }, head => 0)
    } @text;

    for my $s (@stream) {
        $s->read_head();

        my @events = $s->events;
        my $m = DSA::HTTP->gather(@events);
        my $d = $m->{usage}{prompt_tokens_details};

        # an event has as many tokens as its step, or several

        push @answer, join '|', $m->{done}, $m->{content} // '',
                      map { "$_->{token} $_->{logprob}" }
                      map { @{ $_->{json}{choices}[0]{logprobs}{content}
                               || [] } }
                      grep { $_->{json} && @{ $_->{json}{choices} } } @events;

        $tokens{$_} += $d->{"${_}_tokens"} for qw/ gpu host redis /;
        $tokens{hit} += int(($m->{usage}{prompt_tokens} - 1) / $page) * $page;
    }

    return (\@answer, \%tokens);
}


my @text = map { "$_ " . 'cat dog ' x 200 } 1 .. $prompts;
my @other = map { "other $_ " . 'sun ' x 400 } 1 .. $prompts;

my ($want) = chats('one', @text);
my ($want_other) = chats('one', @other);

like($want->[0], qr/^1\|.+ -?\d/s, 'two ranks of one process answer');

my ($got, $tokens) = chats('leader', @text);

is_deeply($got, $want, 'two hosts give the same answers');
is($tokens->{gpu} + $tokens->{host} + $tokens->{redis}, 0,
   'and nothing was cached');


# Host memory: the ranks have pages for two of the prompts.  Pages that do not
# come in time are computed, which may be all on a busy machine: several
# attempts.

sub loaded {
    my ($log) = @_;

    return grep { $log =~ /loaded from host memory on rank $_\n/ } 0, 1;
}

for (1 .. 10) {
    ($got) = chats('leader', @other);
    is_deeply($got, $want_other, 'others overwrite their pages');

    ($got, $tokens) = chats('leader', @text);
    is_deeply($got, $want, 'from host memory: the same answers');

    last if $tokens->{host} >= $tokens->{hit} / 2
            && loaded($leader->output) == 2;
}

cmp_ok($tokens->{host}, '>=', $tokens->{hit} / 2, 'most is found there');

for my $rank (0, 1) {
    like($leader->output, qr/saved from rank $rank to host memory/,
         "rank $rank has saved pages");
    like($leader->output, qr/loaded from host memory on rank $rank\n/,
         "and has loaded some");
}

unlike($leader->output, qr/does not have it/, 'none was lost');


# Redis: both hosts write to it, and read after a restart of both.

sub kv_keys {
    return grep { /^dsa1:kv:/ } $t->redis($redis)->keys('dsa1:kv:*');
}

wait_until(sub { kv_keys() >= $tokens->{hit} / $page }, 60,
           'the pages in Redis');

# The process that dies takes the other one with it.

sub restart {
    my ($who) = @_;

    my $from = length $leader->output;
    my %before = map { $_->{name} => $_->replica } $follower, $leader;

    $who->signal_replica('KILL');
    wait_until(sub {
        !grep { my $pid = $_->replica; !$pid || $pid == $before{$_->{name}} }
              $follower, $leader
    }, 60, 'both processes');
    wait_until(sub {
        substr($leader->output, $from) =~ /replica 0: model leader/
    }, 60, 'the leader');
    sessions(2);

    return $from;
}

# A read that takes longer than computing is given up, as it does beside the
# steps of others.  Two at a time are on both hosts, and read before they begin.
# On a busy machine all may be given up; then both hosts start once more.

my $read = 0;
my %rank;

for (1 .. 20) {
    my $from = restart($follower);

    $got = [];

    for my $i (map { 2 * $_ } 0 .. $prompts / 2 - 1) {
        my ($two, $tiers) = chats('leader', @text[$i, $i + 1]);

        push @$got, @$two;
        $read += $tiers->{redis};
    }

    is_deeply($got, $want, 'from Redis after a restart: the same answers');

    $rank{$_} = 1 for loaded(substr $leader->output, $from);

    last if $read != 0 && keys %rank == 2;
}

cmp_ok($read, '>', 0, 'some tokens are found there');
ok($rank{$_}, "on rank $_") for 0, 1;


# A leader that is drained ends when both hosts have written their pages.  A
# write is given up if Redis takes long, as on a busy machine: several attempts.

my (@late, $want_late, $written);

for my $n (1 .. 10) {
    @late = map { "late $n.$_ " . 'dog ' x 700 } 1 .. $prompts;
    ($want_late) = chats('one', @late);

    my $keys = kv_keys();

    (undef, $tokens) = chats('leader', @late);
    $leader->stop('TERM', 60);
    $written = kv_keys() - $keys;
    $leader->restart();
    sessions(2);

    last if $written >= $tokens->{hit} / $page;
}

cmp_ok($written, '>=', $tokens->{hit} / $page,
       'after a drain Redis has all pages of both hosts');

($got, $tokens) = chats('leader', @late);
is_deeply($got, $want_late, 'and from there: the same answers');


# Pages of Redis that are damaged or gone are computed.

restart($leader);

for my $key (kv_keys()) {
    $t->redis($redis)->cmd('SETRANGE', $key, 5000, 'damaged');
}

($got, $tokens) = chats('leader', @text);
is_deeply($got, $want, 'with damaged pages in Redis: the same answers');
is($tokens->{redis}, 0, 'none of them was used');

restart($leader);
$t->redis($redis)->cmd('FLUSHALL');
($got, $tokens) = chats('leader', @text);
is_deeply($got, $want, 'without pages in Redis: the same answers');
is($tokens->{redis}, 0, 'nothing was found');


# A host without the Redis of its leader.

my $bare = follower('bare');
my $file = write_file($t->path('run.conf'), join '', map { "$_;\n" }
                      "model $own{model}", 'backend cpu', "listen unix:"
                      . $t->path('run.sock'), "hosts 127.0.0.1:$bare->{port}",
                      "host_secret $secret", 'host_memory 64m',
                      "redis_cache $cache");
my $out = `timeout 60 @{[$t->build]}/dsa-engine -c $file 2>&1`;

is($? >> 8, 1, 'a follower without redis_cache');
like($out, qr/: host 127\.0\.0\.1:$bare->{port}: the leader has "redis_cache"/,
     'is named');

ok($_->alive, "$_->{name} runs") for $follower, $bare, $leader;

$t->done;
