#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# "dsa bench node --only chats" computes without a GPU: its bound is checked
# with the bytes of GLM-4.7-Flash's weights, its projection with the measured
# steps that it reads, and the tables of the results with what it prints.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;
use Test::More;

my $dsa = DSA::GPU::dsa_cuda();

plan skip_all => 'needs dsa-cuda, which a build with nvcc has' if !-x $dsa;

$ENV{CUDA_VISIBLE_DEVICES} = '';
chdir $DSA::Test::root or die "chdir: $!\n";

use constant {
    HBM    => 4384e9,
    BF16   => 790e12,
    LATENT => 1152,
};

my $t = DSA::Test->new('bench-chats');
my $steps = 'bench/results/2026-11-28-glm-4.7-flash.csv';


# (exit status, output with errors)

sub bench {
    my ($model, @args) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', $dsa, 'bench',
         'node', '--model', $model, '--only', 'chats', @args
         or die "sh: $!\n";

    my $out = do { local $/; <$fh> };

    close $fh;

    return ($? >> 8, $out);
}


# { streams, prompt => [ the cells behind them ] } of a table.

sub rows {
    my ($text) = @_;

    return { map { m{^\| (\d+)[^|]*\| (\d+) / \d+ \| (.*) \|$}
                   ? ("$1, $2" => [ split / *\| */, $3, -1 ]) : () }
             split /\n/, $text };
}


sub near {
    my ($got, $want, $what) = @_;

    cmp_ok(abs($got / $want - 1), '<', 0.005, $what)
        or diag("$got instead of $want");
}


# Of GLM-4.7-Flash, in elements: attention with kv_b, the dense layer's MLP, a
# layer's router, an expert, and the head.

my $attention = 2048 * (768 + 576) + 768 * 5120 + 512 * 8960 + 5120 * 2048;
my $dense = 3 * 2048 * 10240;
my $router = 64 * 2048;
my $expert = 3 * 2048 * 1536;
my $head = 154880 * 2048;


# Seconds of HBM that a step takes with so many experts of a layer, and keys.

sub hbm {
    my ($experts, $keys) = @_;

    return (2 * (47 * $attention + $dense
                 + 46 * ($router + (1 + $experts) * $expert) + $head)
            + 47 * LATENT * $keys) / HBM;
}

my ($rc, $out) = bench('bench/glm-4.7-flash', '--gpus', 1);
my $rows = rows($out);

is($rc, 0, 'it needs no GPU') or diag($out);
is(scalar keys %$rows, 16, 'eight numbers of streams of two loads');

# One stream: 255 steps with 4 experts of a token, and once all weights; a step
# sees the prompt and half of the answer.

near($rows->{'1, 1024'}[0],
     256 / (255 * hbm(4, 1024 + 128) + hbm(64, 1024)), 'one stream');
near($rows->{'1, 8192'}[0],
     1024 / (1023 * hbm(4, 8192 + 512) + hbm(64, 8192)), 'a longer one');

# 512 streams: products of all tokens with 4 of 64 experts, of prompts with all
# keys before them in 20 heads of 256 and 256 columns, and of answers with
# absorbed keys of 1,088 columns.

my $token = 47 * $attention + $dense + 46 * ($router + 5 * $expert);
my $prompt = 1024 * $token + $head + 47 * 1024 * 512 * 20 * 512;
my $answer = 255 * ($token + $head + 47 * 1152 * 20 * 1088);

near($rows->{'512, 1024'}[0], 256 * BF16 / (2 * ($prompt + $answer)),
     'products of 512 streams');
is($rows->{'512, 1024'}[1], 'products', 'its limit');
is($rows->{'1, 1024'}[1], 'HBM', 'that of one stream');

# A draft that is always right: half of the steps, each with two rows and the
# draft layer, whose product makes one vector of two.

($rc, $out) = bench('bench/glm-4.7-flash', '--gpus', 1, '--drafts', 1);

my ($first, $drafted) = @{rows($out)->{'1, 8192'}}[0, 3];

is($first, $rows->{'1, 8192'}[0], 'the bound without drafts is the same');
cmp_ok($drafted / $first, '<', 2, 'a draft less than doubles the bound');
cmp_ok($drafted / $first, '>', 1.3, 'and is worth it');

(undef, $out) = bench('bench/glm-4.7-flash', '--gpus', 1, '--drafts', 0);
cmp_ok(rows($out)->{'1, 8192'}[3], '<', $first, 'a wrong draft costs time');


# --------------------------------------------------------------- projections

# 11 layers with experts, and 35 more; a prompt of 8,192 tokens is a third of
# the way from 4,096 to 16,384, and a context of 8,704 hardly behind 8,192.

($rc, $out) = bench('bench/glm-4.7-flash', '--gpus', 1, '--steps', $steps);
is($rc, 0, 'measured steps') or diag($out);
$rows = rows($out);

my %ms;

for (split /\n/, read_file($steps)) {
    $ms{"$1, $2"} = $3 + 35 * $4 / 1000
        if /^decode,(\d+),(\d+),([\d.]+),([\d.]+)$/;
    $ms{$1} = ($2 + 35 * $3 / 1000) / $1
        if /^prefill,(\d+),([\d.]+),([\d.]+)$/;
}

for my $streams (1, 8, 32, 128) {
    my $step = $ms{"$streams, 8192"}
               + (8704 - 8192) / (65536 - 8192)
                 * ($ms{"$streams, 65536"} - $ms{"$streams, 8192"});
    my $read = 8192 * ($ms{4096} + ($ms{16384} - $ms{4096}) / 3);
    my $row = $rows->{"$streams, 8192"};

    near($row->[2], 1000 * $streams * 1024
                    / ($streams * $read + 1023 * $step),
         "$streams streams: projected");
    cmp_ok($row->[2], '<', $row->[0], "$streams streams: below the bound");
}

is($rows->{'512, 1024'}[2], '', 'what was not measured is not projected');
is($rows->{'32, 8192'}[7], 1536, 'what was served');
is($rows->{'32, 8192'}[8], sprintf('%.2f', 1536 / $rows->{'32, 8192'}[0]),
   'by the bound');


# ------------------------------------------------------------------- results

my $results = read_file('bench/results/2026-11-29-chats.md');
my $tables = 0;

while ($results =~ /^    dsa-cuda bench node (.*)\n\n((?:[^ \n].*\n|\n)*)/mg) {
    my (@args, $text) = split(' ', $1);
    my %want = %{rows($2)};
    my $model = $args[1];

    ($rc, $text) = bench($model, grep { !/^--only|^chats/ } @args[2 .. $#args]);
    is($rc, 0, "$1: runs") or diag($text);

    my $got = rows($text);

    is_deeply({ map { $_ => $got->{$_} } keys %want }, \%want,
              "$1: the table of the results");
    $tables += keys %want > 0;
}

cmp_ok($tables, '>=', 4, 'tables of the results');


# ------------------------------------------------------------------- refused

for ([ qr/has no draft layer/, 'bench/moonlight', '--gpus', 1, '--drafts',
       '.5' ],
     [ qr/"--kv bf16": the model has an indexer/, 'bench/v3.2', '--kv',
       'bf16' ],
     [ qr/64 experts cannot be shared out equally to 3/, 'bench/moonlight',
       '--gpus', 3 ],
     [ qr/do not hold the weights, 3\d\d\.\d GB on each/, 'bench/v3.2',
       '--gpus', 2 ],
     [ qr/none\/config\.json/, $t->path('none') ],
     [ qr/none: No such file/, 'bench/v3.2', '--steps', $t->path('none') ])
{
    my ($reason, @args) = @$_;

    ($rc, $out) = bench(@args);
    is($rc, 1, "@args: fails");
    like($out, $reason, 'with the reason');
}

for ("decode,1,1024,2,3\n", "layers,4,1\nlayer,1\n",
     "layers,4,1\ndecode,1,1024,0.1,500\n", "layers,1,4\n")
{
    my $file = write_file($t->path('steps.csv'), "# a comment\n$_");
    my $line = 2 + (/^layers,4/ ? 1 : 0);

    ($rc, $out) = bench('bench/glm-4.7-flash', '--gpus', 1, '--steps', $file);
    is($rc, 1, 'a file of something else');
    like($out, qr/steps\.csv: line $line is not a measurement/, 'its line');
}

for ([ '--drafts', '.5,' ], [ '--drafts', 2 ], [ '--only', 'decode' ],
     [ '--drafts', join ',', (0.5) x 8 ], [ '--model', 'bench/v3.1' ])
{
    is((bench('bench/v3.2', @$_))[0], 2, "@$_ is refused");
}

$t->done;
