package DSA::Golden;

# Copyright (C) The nginx-dsa authors
#
# t/data/golden keeps sums of the float32 outputs.  A test that needs the logits
# themselves computes them on the CPU with the oracle's selection and compares
# their sums with the oracle's.

use strict;
use warnings;

use Exporter qw/ import /;

use DSA::Tensors;
use DSA::Test qw/ read_file /;

our @EXPORT = qw/ same_sums exact_logits /;


# Checks that each row is within 1e-4 of the oracle's, by sums.  The bound for
# sums is half of that, because they may be nearer than the rows.  Returns the
# largest distance.

sub same_sums {
    my ($got, $want, $name) = @_;

    my ($most) = sort { $b <=> $a } distances(sums($got), $want);

    at_most($most, 0.5e-4, $name);

    return $most;
}


# By the program $dsa and for the model in $dir; $out is a file to write.

sub exact_logits {
    my ($dsa, $dir, $out) = @_;

    my $golden = "$dir/golden.safetensors";
    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', "$out.log", $dsa,
                    'logits', '--model', $dir, '--tokens', $golden, '--out',
                    $out, '--exact', '--select', $golden;

    die "dsa logits --exact: " . read_file("$out.log") . "\n" if $rc != 0;

    my $logits = tensors($out)->{logits};

    same_sums($logits, tensors($golden)->{logits},
              'float32 logits and transformers');

    return $logits;
}


1;
