package DSA::Golden;

# Copyright (C) The nginx-dsa authors
#
# t/data/golden keeps sums of the float32 outputs.  A test that needs the logits
# themselves computes them on the CPU with the oracle's selection and compares
# their sums with the oracle's.

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ max /;
use Test::More;

use DSA::Tensors;
use DSA::Test qw/ json_decode json_encode read_file write_file /;

our @EXPORT = qw/ same_sums same_experts exact_logits dsa_logits variant_of /;


# Checks that each row is within 1e-4 of the oracle's, by sums.  The bound for
# sums is half of that, because they may be nearer than the rows.  Returns the
# largest distance.

sub same_sums {
    my ($got, $want, $name) = @_;

    my ($most) = sort { $b <=> $a } distances(sums($got), $want);

    at_most($most, 0.5e-4, $name);

    return $most;
}


# Checks the experts of each layer and their weights, which have no order.

sub same_experts {
    my ($got, $want, $name) = @_;

    for my $l (map { /^expert\.(\d+)$/ ? $1 : () } sort keys %$want) {
        my @wrong = differing($got->{"expert.$l"}, $want->{"expert.$l"});
        is("@wrong", '', "$name: expert.$l");

        my $off = 0;

        for my $row (0 .. $#{$want->{"expert.$l"}}) {
            my (%w, %g);
            @w{@{$want->{"expert.$l"}[$row]}}
                = @{$want->{"expert_weight.$l"}[$row]};
            @g{@{$got->{"expert.$l"}[$row]}}
                = @{$got->{"expert_weight.$l"}[$row]};
            $off = max($off, map { abs($w{$_} - ($g{$_} // 1e9)) } keys %w);
        }

        at_most($off, 1e-5, "$name: expert_weight.$l");
    }
}


# Runs "dsa logits" of the program $dsa; $out is a file to write.  Returns its
# tensors, or undef after a failure, what it logged, and its exit status.

sub dsa_logits {
    my ($dsa, $out, $model, $tokens, @args) = @_;

    unlink $out;

    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', "$out.log", $dsa,
                    'logits', '--model', $model, '--tokens', $tokens, '--out',
                    $out, @args;

    return $rc == 0 ? tensors($out) : undef, read_file("$out.log"), $rc >> 8;
}


# Makes a directory $to with the weights of the model in $from and a config.json
# in which these fields are different; those with undef are left out.

sub variant_of {
    my ($from, $to, %fields) = @_;

    my %config = (%{json_decode(read_file("$from/config.json"))}, %fields);

    delete $config{$_} for grep { !defined $config{$_} } keys %fields;

    mkdir $to or die "$to: $!\n";
    write_file("$to/config.json", json_encode(\%config));

    for my $part (glob "$from/model*") {
        symlink $part, $to . '/' . ($part =~ s{.*/}{}r) or die "$part: $!\n";
    }

    return $to;
}


# By the program $dsa and for the model in $dir; $out is a file to write.

sub exact_logits {
    my ($dsa, $dir, $out) = @_;

    my $golden = "$dir/golden.safetensors";
    my ($got, $log) = dsa_logits($dsa, $out, $dir, $golden, '--exact',
                                 '--select', $golden);

    die "dsa logits --exact: $log\n" if !$got;

    my $logits = $got->{logits};

    same_sums($logits, tensors($golden)->{logits},
              'float32 logits and transformers');

    return $logits;
}


1;
