#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# "dsa bench node --only hosts" computes without a GPU: the bytes between hosts
# are those of the page about two hosts, and of the table in bench/README.md.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;
use Test::More;

my $dsa = DSA::GPU::dsa_cuda();

plan skip_all => 'needs dsa-cuda, which a build with nvcc has' if !-x $dsa;

my $t = DSA::Test->new('bench-hosts');


sub bench { return bench_of('bench/v3.2', @_) }


sub bench_of {
    my ($model, @args) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', $dsa, 'bench',
         'node', '--model', "$DSA::Test::root/$model", '--only', 'hosts',
         @args or die "sh: $!\n";

    my $out = do { local $/; <$fh> };

    close $fh;

    return ($? >> 8, $out);
}


# The rows of a table by tokens of a GPU, as lists of cells.

sub rows {
    my ($text) = @_;

    return map { [ split / *\| */, $_ =~ s/^\| //r ] }
           grep { /^\| (?:decode|prompt)/ } split /\n/, $text;
}


# Milliseconds that a GPU of 8 sends to the 8 of another host, at so many GB/s:
# in each of 58 layers, for each token 7,168 columns in FP8 with a scale of 4
# bytes for 128 of them, 8 experts with 8 bytes each, and as many sums in BF16.

sub network {
    my ($tokens, $rate) = @_;

    return 58 * 8 * $tokens * (7168 + 7168 / 128 * 4 + 8 * 8 + 2 * 7168)
           / $rate / 1e6;
}


my ($rc, $out) = bench();

is($rc, 0, 'it needs no GPU');

my @rows = rows($out);

cmp_ok(scalar @rows, '>', 3, 'it prints a table');
is($_->[4], sprintf('%.2f', network($_->[1], 50)),
   "$_->[1] tokens: the network") for @rows;

for my $row (@rows) {
    my $sum = $row->[2] + $row->[6]
              + ($row->[4] > $row->[5] ? $row->[4] : $row->[5]);

    cmp_ok(abs($row->[7] - $sum), '<', 0.03, "$row->[1] tokens: the sum");
    cmp_ok($row->[8], '>', $row->[7], "$row->[1] tokens: the projection");
}

my ($slow) = rows((bench('--network', 25))[1]);

is($slow->[4], sprintf('%.2f', network($slow->[1], 25)),
   'half the rate takes twice the time');

is_deeply([ rows(read_file("$DSA::Test::root/bench/README.md")
                 =~ s/.*### Two hosts of 8 H100//sr
                 =~ s/### Results of a node.*//sr) ], \@rows,
          'bench/README.md has this table');

my %page = read_file("$DSA::Test::root/docs/operate/two-hosts.md")
           =~ /^\| ([\d,]+) \| [\d.]+ [MG]B \| ([\d.]+) ms \|$/mg;

is(scalar keys %page, 4, 'the page has four steps');

for my $tokens (sort keys %page) {
    my $want = network($tokens =~ tr/,//dr, 50);

    cmp_ok(abs($page{$tokens} - $want), '<=', 0.01 * $want + 0.005,
           "the page: $tokens tokens");
}

for my $bad ([ '--hosts', 1 ], [ '--hosts', 3 ], [ '--network', 0 ],
             [ '--attention', 'tensor' ], [ '--only', 'decode' ])
{
    is((bench(@$bad))[0], 2, "@$bad is refused");
}

# the model's 8 experts cannot be shared out to 2 hosts of 8 GPUs

($rc, $out) = bench_of('demo/model');

is($rc, 1, 'experts that are not divided');
like($out, qr/8 experts cannot be shared out equally to 16 GPUs/,
     'with the reason');

$t->done;
