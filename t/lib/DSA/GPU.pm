package DSA::GPU;

# Copyright (C) The nginx-dsa authors
#
# Tests that need a GPU are skipped with a reason if there is none.  "make
# test-gpu" sets DSA_GPU=1, with which they fail instead.

use strict;
use warnings;

use Exporter qw/ import /;
use Test::More;

our @EXPORT = qw/ need_gpu gpus /;


# The program with the commands that use a GPU; a build without nvcc has none.

sub dsa_cuda { ($ENV{DSA_BUILD} || 'build') . '/dsa-cuda' }


sub need_gpu {
    my $why = !-e '/dev/nvidiactl' ? 'no GPU here: "make test-gpu" runs this'
            : !-x dsa_cuda() ? 'built without nvcc: no CUDA to test'
            : undef;

    return if !defined $why;

    BAIL_OUT($why) if $ENV{DSA_GPU};
    plan skip_all => $why;
}


# The number of GPUs that a program may use.

sub gpus {
    my $visible = $ENV{CUDA_VISIBLE_DEVICES};

    return defined $visible ? scalar(split /,/, $visible)
                            : scalar grep { /^GPU / } `nvidia-smi -L`;
}


1;
