#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# bench/ops sums the kernels of the steps that ncu has recorded.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('bench-ops');

# (exit status, output with errors)

sub ops {
    my (@files) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
        "$DSA::Test::root/bench/ops", @files or die "bench/ops: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


# Ten steps as "dsa bench engine --mixed" has them: five of 4 layers, and five
# of 8.  Before the first kernel of a step its input is copied.

sub records {
    my (@kernels) = @_;
    my $n = 0;

    my $text = "Random weights, 8 layers of which 3 are dense; an MoE layer is "
               . "the difference to 4 layers.\n\n| 64 | 1.000 |\n"
               . qq{"ID","Kernel Name","Grid Size","Metric Value"\n};

    for my $layers (4, 8) {
        for my $prompt (0 .. 4) {
            for (['dsa_copy_kernel(dsa_copy_parts_t)', 900],
                 ['dsa_feed_kernel(int *, const int *)', 2000],
                 map { [$_->[0], $_->[1]->($layers, $prompt)] } @kernels)
            {
                my ($name, $ns) = @$_;

                1 while $ns =~ s/^(\d+)(\d{3})/$1,$2/;
                $text .= qq{"$n","$name","(1, 1, 1)","$ns"\n};
                $n++;
            }
        }
    }

    return $text;
}


my @kernels = (
    ['dsa_decode_wide(dsa_decode_t)', sub { (4 - $_[1]) * $_[0] * 10_000 }],
    ['dsa_decode_combine(dsa_decode_t)', sub { 1_000 * $_[0] }],
    ['void dsa_heads_kernel<dsa_heads_shape_t<128, 128, 128>, 0, 1>(int)',
     sub { $_[1] == 0 ? 0 : 25_000 * $_[0] }],
    ['void dsa_moe_gemm_kernel<0, 1, 64, 8>(dsa_moe_gemm_t)',
     sub { 1_500_000 * ($_[0] - 3) }],
    ['void dsa_many_kernel<dsa_many_shape_t<0, 2, 1, 64, 1, 8, 1, 2>>(int)',
     sub { 7_000 * $_[0] }],
    ['void dsa_many_kernel<dsa_many_shape_t<1, 2, 1, 64, 1, 8, 1, 2>>(int)',
     sub { 450_000 }],
    ['nvjet_sm90_tst_128x96_64x7_1x1_h_bz_TNT', sub { 3_000 * $_[0] }],
);

my $file = write_file($t->path('64.csv'), records(@kernels));
my ($rc, $out) = ops($file);
is($rc, 0, 'a file of ten steps is read');

my $parts = join ' ', map { "prompt $_ % |" } 0, 25, 50, 75, 100;

is($out, <<"END", 'a layer is the difference of steps of 8 and of 4 layers');

| 64 rows, a layer with experts, us | $parts
|---|---|---|---|---|---|
| attention, answers | 41 | 31 | 21 | 11 | 1 |
| attention, prompts | 0 | 25 | 25 | 25 | 25 |
| experts' products | 1500 | 1500 | 1500 | 1500 | 1500 |
| FP8 products | 7 | 7 | 7 | 7 | 7 |
| BF16 products | 3 | 3 | 3 | 3 | 3 |
| all | 1551 | 1566 | 1556 | 1546 | 1536 |

| 64 rows, a step of 4 layers, us | $parts
|---|---|---|---|---|---|
| attention, answers | 164 | 124 | 84 | 44 | 4 |
| attention, prompts | 0 | 100 | 100 | 100 | 100 |
| experts' products | 1500 | 1500 | 1500 | 1500 | 1500 |
| FP8 products | 28 | 28 | 28 | 28 | 28 |
| BF16 products | 462 | 462 | 462 | 462 | 462 |
| samples, input | 3 | 3 | 3 | 3 | 3 |
| all | 2157 | 2217 | 2177 | 2137 | 2097 |
END

# What is not understood is an error, and no table.

($rc, $out) = ops();
is($rc, 2, 'files are expected');
like($out, qr{\Ausage: bench/ops}, 'the usage is shown');

$file = write_file($t->path('128.csv'),
                   records(@kernels, ['of_another_program()', sub { 1 }]));
($rc, $out) = ops($file);
is($rc, 1, 'an unknown kernel is an error');
like($out, qr/"of_another_program\(\)" is of no kind/, 'which has its name');

my @lines = split /^/, records(@kernels);

$file = write_file($t->path('96.csv'), join '', @lines[0 .. $#lines - 9]);
($rc, $out) = ops($file);
is($rc, 1, 'a file of nine steps is an error');
like($out, qr/96\.csv has 9 steps; expected 10/, 'which says so');

$file = write_file($t->path('65.csv'), qq{"0","dsa_decode_wide()","1"\n});
($rc, $out) = ops($file);
is($rc, 1, 'a row without a header is an error');
like($out, qr/has no kernel and its time in/, 'which has the row');

# each kernel of the project has a kind

my ($known, @unknown) = 0;

for my $source (glob("$DSA::Test::root/kernels/*/*.cu"),
                glob("$DSA::Test::root/kernels/*/*.cuh"))
{
    my $text = read_file($source);

    while ($text =~ /__global__ void[^;{]*?\b(dsa_\w+)\(/g) {
        next if $1 =~ /random|_pack_|fp8_decode_weight|int4_scale|_feed_/;

        my $name = $1 eq 'dsa_many_kernel' ? "void $1<dsa_many_shape_t<0, 2>>()"
                   : $1 eq 'dsa_gemm_decode_kernel' ? "void $1<0, 64>()"
                   : "$1()";
        my $path = write_file($t->path('1.csv'),
                              records([$name, sub { 1000 }]));
        my ($failed, $text) = ops($path);

        push @unknown, $text if $failed;
        $known++ if !$failed;
    }
}

is(join('', @unknown), '', 'all kernels of a step have a kind');
cmp_ok($known, '>', 40, 'and were found');

$t->done;
