#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# dsa bench routing: the rows of the fullest GPU by the exponent, and what
# copies of the busiest experts change.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('routing');
my $dsa = $t->build . '/dsa';


sub routing {
    my (@args) = @_;

    my $pid = open my $fh, '-|', $dsa, 'bench', 'routing', '--model',
                   "$DSA::Test::root/bench/v3.2", @args or die "fork: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    my @rows = map { [ /([\d.]+)/g ] }
               grep { /^\| [\d.]+ \|/ } split /\n/, $out;

    return ($? >> 8, $out, @rows);
}


my ($rc, $out, @rows) = routing();
is($rc, 0, 'it succeeds');
like($out, qr/^256 experts, 8 of a token, on 8 GPUs; a step of 1024 tokens/,
     'what it computes');
is(scalar(@rows), 6, 'six exponents');

# exponent, busiest, experts, and rows with 0, 8, 16, 32, 64 copies

my @fullest = map { $_->[3] } @rows;
is_deeply(\@fullest, [ sort { $a <=> $b } @fullest ],
          'skew fills the fullest GPU');

# Without skew an expert has 32 of 8,192 rows and a GPU 1,024, with a standard
# deviation of about 30: the fullest of eight has 1.4 deviations more.

cmp_ok(abs($rows[0][3] - 1 - 1.4 * 30 / 1024), '<', 0.03, 'without skew');

# a token has an expert once, so the busiest one has at most 1,024 rows

cmp_ok($_->[1], '<=', 32, "exponent $_->[0]: the busiest expert") for @rows;
cmp_ok($rows[4][7], '<', 1.15, 'copies of 64 experts even out exponent 1');
cmp_ok($rows[4][4], '<', $rows[4][3], 'copies of 8 help');

($rc, $out, @rows) = routing(qw/ --gpus 1 --zipf 1 /);
is_deeply([ map { $_ + 0 } @{ $rows[0] }[3 .. 7] ], [ (1) x 5 ],
          'one GPU has the mean');

($rc, $out, @rows) = routing(qw/ --gpus 2 --tokens 1 --zipf 0 --zipf 4 /);
is(scalar(@rows), 2, 'two exponents');
cmp_ok($_->[3], '>=', 1, 'one token') for @rows;
cmp_ok($_->[3], '<=', 2, 'one token: all of it') for @rows;

for (qw/ --gpus=0 --gpus=7 --gpus=x --tokens=0 --zipf=-1 --zipf=x --other /) {
    my $model = "$DSA::Test::root/bench/v3.2";
    my $err = qx($dsa bench routing --model $model $_ 2>&1);
    isnt($?, 0, "$_ is refused");
    isnt($err, '', 'with a reason');
}

my $err = qx($dsa bench routing --model $DSA::Test::root/bench 2>&1);
is($? >> 8, 1, 'no model');
like($err, qr/config\.json/, 'and its name');

# a model with more experts, or choices, than there is room for

my $config = read_file("$DSA::Test::root/bench/v3.2/config.json");

for ([ n_routed_experts => 1024 ], [ num_experts_per_tok => 32 ]) {
    my ($name, $n) = @$_;
    my $model = $t->path($name);

    mkdir $model or die "mkdir: $!\n";
    write_file("$model/config.json", $config =~ s/("$name": )\d+/$1$n/r);

    $err = qx($dsa bench routing --model $model 2>&1);
    is($? >> 8, 1, "$name $n: is refused");
    like($err, qr/expected at most 512 and 16$/, 'with what is accepted');
}

$t->done;
