# Copyright (C) The nginx-dsa authors
#
# Each kind of model without indexers, with the published sizes of a head: dsa
# logits --backend cuda against float32 on the CPU, which t/dense.t compares
# with transformers, and from which the GPU may be about as far as the CPU is
# in served precision.

use strict;
use warnings;

use List::Util qw/ max /;
use Test::More;

use lib 't/lib';
use DSA::GPU;
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;

use constant START => 120;      # of the answer

need_gpu();

my $t = DSA::Test->new('gpu families');
my $dsa = $t->build . '/dsa-cuda';

for my $name (qw/ v3 joyai glm-4.7-flash moonlight /) {
    my $model = "$DSA::Test::root/t/data/golden/$name-wide";

    my $logits = sub {
        my (@args) = @_;
        my ($got, $log) = dsa_logits($dsa, $t->path('out.safetensors'), $model,
                                     "$model/golden.safetensors", @args);

        die "dsa logits @args: $log\n" if !$got;

        return $got->{logits};
    };

    my $exact = $logits->('--exact');
    my $cpu = $logits->();
    my @answer = START .. $#$exact;

    for my $kv (qw/ bf16 fp8 /) {
        my @cuda = ('--backend', 'cuda', '--kv', $kv);
        my $gpu = $logits->(@cuda);
        my $decode = $logits->(@cuda, '--decode-from', START);

        near("$name, $kv, prompt", $exact, $cpu, $gpu);
        near("$name, $kv, decode",
             map { [ @$_[@answer] ] } $exact, $cpu, $decode);
        is(max(distances($logits->(@cuda, '--chunk', 37), $gpu)), 0,
           "$name, $kv: in chunks of 37");
    }

    next if gpus() < 2;

    # experts of 128 columns are one block of FP8, which "tensor" cannot cut

    my @two = ('--gpus', 2, '--attention', 'data');

    near("$name, 2 GPUs", $exact, $logits->(@two),
         $logits->('--backend', 'cuda', @two));
}

$t->done;
