#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# "dsa bench comm" and "dsa bench engine" over two hosts in network namespaces
# of their own, with the configurations of engines: the bytes in their tables
# are those of the model, and have passed the link between the hosts.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Hosts;
use DSA::Stages;
use DSA::Test;

my $why = DSA::Hosts::missing();

if (defined $why) {
    BAIL_OUT("bench-hosts-run.t: $why") if $ENV{DSA_NO_SKIP};
    plan skip_all => $why;
}

DSA::Hosts::isolate();

use constant PORT => 7400;

my $t = DSA::Test->new('bench-hosts-run');
my $host = DSA::Hosts->new($t, 1);
my $where = $host->address . ':' . PORT;
my $secret = secret('secret', 'f');
my $config = json_decode(read_file($t->model . '/config.json'));
my $columns = $config->{hidden_size};
my $k = $config->{num_experts_per_tok};
my $moe = $config->{num_hidden_layers} - $config->{first_k_dense_replace};


sub secret {
    my ($name, $letter) = @_;

    my $file = write_file($t->path($name), $letter x 64 . "\n");

    chmod 0600, $file or die "chmod: $!\n";

    return $file;
}


sub conf {
    my ($name, %conf) = @_;

    return write_file($t->path("$name.conf"), join '',
                      map { "$_ $conf{$_};\n" } sort keys %conf);
}


my %own = (model => $t->model, backend => 'cpu', host_secret => $secret);
my %leader = (%own, listen => 'unix:' . $t->path('sock'), hosts => $where,
              kv_memory => '64m', step_timeout => slow(30) . 's');
my %follower = (%own, listen => $where);
my $leader = conf('leader', %leader);
my $follower = conf('follower', %follower);
my $runs = 0;


# Starts a program in the namespace, which waits for the leader.

sub follow {
    my (@argv) = @_;

    my $proc = $t->spawn('follower' . ++$runs, DSA::Stages::inside($host),
                         @argv);

    $proc->{ready} = sub { $proc->output =~ /waits for the leader/i };
    $proc->wait_ready(60);

    return $proc;
}

sub bench_follow { follow($t->build . '/dsa', 'bench', @_) }


sub lead { $t->spawn('leader' . ++$runs, $t->build . '/dsa', 'bench', @_) }


# The exit status and the output of a leader.

sub ended {
    my ($proc) = @_;

    my $status = $proc->wait_end(300);

    return (defined $status ? $status >> 8 : 'runs', $proc->output);
}


sub rows {
    my ($text, $begin) = @_;

    return map { [ split / *\| */, $_ =~ s/^\| //r ] }
           grep { /^\| $begin/ } split /\n/, $text;
}


# What the link has carried in both directions.

sub link_bytes {
    my ($line) = read_file('/proc/self/net/dev') =~ /^\s*host1: *(.*)/m;

    return (split ' ', $line)[0, 8];
}


# The exchange by size.

my $proc = bench_follow('comm', '--conf', $follower);
my @before = link_bytes();
my ($rc, $out) = ended(lead('comm', '--conf', $leader));
my @after = link_bytes();

is($rc, 0, 'comm: the leader ends well') or diag($out);
is($proc->wait_end(60), 0, 'and its follower') or diag($proc->output);

my ($rate) = $out =~ /The bound is their time at (\S+) GB/;
my @rows = rows($out, '\d');

cmp_ok(scalar @rows, '>=', 3, 'it prints sizes');
like($out, qr/between 2 hosts with 1 rank each, $columns columns\./,
     'the hosts');
like($out, qr/A message of 4 bytes to each other host takes \d+\.\d us/,
     'and the smallest message');

my $sum = 0;

for my $row (@rows) {
    my ($tokens, $bytes, $us, $bound, $sums, $sums_us, $sums_bound) = @$row;

    is($bytes, $tokens * ($columns * 4 + $k * 8), "$tokens tokens: bytes");
    is($sums, $tokens * $columns * 4, "$tokens tokens: bytes of sums");
    cmp_ok($us, '>', 0, 'it takes some time');
    cmp_ok($sums_us, '>', 0, 'so do sums');

    # a bound is printed with one digit behind the point

    cmp_ok(abs($bound - $bytes / $rate / 1e3), '<=', 0.06 + $bound / 100,
           'the bound');

    $sum += $bytes + $sums;
}

# each size 16 times, and before them 8 messages each of 4 bytes to 16 MB

$sum *= 16;
$sum += 8 * 4 ** $_ for 1 .. 12;

cmp_ok($after[$_] - $before[$_], '>', $sum, 'the link has carried them')
    for 0, 1;

$proc = bench_follow('comm', '--conf', $follower);
($rc, $out) = ended(lead('comm', '--conf', $leader, '--network', '0.125'));
is($rc, 0, 'with a rate');
is($_->[3], sprintf('%.1f', $_->[1] / 125), "$_->[0] tokens: the bound at it")
    for rows($out, '\d');
$proc->wait_end(60);


# Steps of the model: the follower is a bench, or an engine.

sub check_engine {
    my ($name, $proc) = @_;

    my @from = link_bytes();
    my ($rc, $out) = ended(lead('engine', '--conf', $leader, '--prefill=100',
                                '--decode=2x70'));
    my @to = link_bytes();

    is($rc, 0, "$name: the leader ends well") or diag($out);

    my @row = (rows($out, 'prompt'), rows($out, 'decode'));

    is_deeply([ map { @$_[0, 1] } @row ],
              [ 'prompt', 100, 'decode at 70', 2 ], "$name: both steps");

    for my $row (@row) {
        my ($step, $tokens, $ms, $rate, $exchanges, $bytes, $within) = @$row;

        is($exchanges, 4 * $moe, "$name, $step: exchanges");
        is($bytes, $moe * $tokens * (2 * $columns * 4 + $k * 8),
           "$name, $step: bytes");
        cmp_ok($within, '>', 0, "$name, $step: some time in exchanges");
        cmp_ok($within, '<=', $ms, "$name, $step: and not more than its time");
        cmp_ok(abs($rate - $tokens * 2 / $ms * 1e3), '<', 0.01 * $rate + 1,
               "$name, $step: tokens of both ranks");
    }

    cmp_ok($to[$_] - $from[$_], '>', $row[0][5],
           "$name: the link has carried them") for 0, 1;

    return;
}

$proc = bench_follow('engine', '--conf', $follower);
check_engine('a bench follows', $proc);
is($proc->wait_end(60), 0, 'its follower ends well') or diag($proc->output);

my $engine = follow($t->build . '/dsa-engine', '-c', $follower);
check_engine('an engine follows', $engine);
$engine->stop('TERM', 30);


# What cannot be measured is named.

$proc = bench_follow('comm', '--conf', $follower);
($rc, $out) = ended(lead('engine', '--conf', $leader));
is($rc, 1, 'an exchange without a model follows a model');
like($out, qr/host \Q$where\E has other weights: their fingerprint is comm_/,
     'it is named');
ok(defined $proc->wait_end(60), 'and the follower ends');

$proc = bench_follow('comm', '--conf', $follower);
($rc, $out) = ended(lead('comm', '--conf', conf('other', %leader,
    host_secret => secret('other', 'e'))));
is($rc, 1, 'another secret');
like($out, qr/host \Q$where\E: the secret of the leader is not that/,
     'is named');
$proc->kill9;

# a follower that is killed while it is measured

$proc = bench_follow('engine', '--conf', $follower);

my $killed = lead('engine', '--conf', $leader);

wait_until(sub { $killed->output =~ /^\| step \|/m }, 60, 'the first steps');
kill 'KILL', DSA::Process::children($proc->pid), $proc->pid;
($rc, $out) = ended($killed);
is($rc, 1, 'a follower that is killed');
like($out, qr/dsa bench: host \Q$where\E has closed the connection/,
     'is named');

my $alone = conf('alone', model => $t->model, backend => 'cpu',
                 listen => 'unix:' . $t->path('sock'));

($rc, $out) = ended(lead('comm', '--conf', $alone));
is($rc, 1, 'one host alone');
like($out, qr/has neither "hosts" nor "listen HOST:PORT"/, 'is refused');

for my $bad ([ 'comm', '--conf', $leader, '--prefill' ],
             [ 'comm', '--conf', $leader, '--network', '0' ],
             [ 'engine', '--conf', $leader, '--decode=0x5' ],
             [ 'engine', '--conf', $leader, 'more' ])
{
    is((ended(lead(@$bad)))[0], 2, "@$bad[0, 3 .. $#$bad] is refused");
}

my @bad = $host->end;

is(scalar @bad, 0, 'the namespace has ended well') or diag("@bad");

$t->done;
