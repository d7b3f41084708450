# Copyright (C) The nginx-dsa authors
#
# dsa logits --backend cuda with BF16 weights: the golden FP8 models with their
# weights in BF16, against the CPU twin and against float32.  The scales of
# a-fp8 are powers of two, so that in BF16 it is the same model, with the same
# float32 logits.

use strict;
use warnings;

use List::Util qw/ max /;
use Test::More;

use lib 't/lib';
use DSA::GPU;
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;

need_gpu();

my $t = DSA::Test->new('gpu bf16');
my $dsa = $t->build . '/dsa-cuda';


sub median { quantile(0.5, distances(@_)) }


for my $name (qw/ a-fp8 glm-5 glm-5.2 /) {
    my $from = "$DSA::Test::root/t/data/golden/$name";
    my $tokens = "$from/golden.safetensors";
    my $model = in_bf16($from, $t->path($name));
    my $start = 200;

    my $logits = sub {
        my ($what, @args) = @_;
        my ($got, $log) = dsa_logits($dsa, $t->path("$name-$what.safetensors"),
                                     $model, $tokens, @args);

        die "dsa logits @args: $log\n" if !$got;

        return $got;
    };

    my $exact = $logits->('exact', '--exact', '--select', $tokens)->{logits};

    if ($name eq 'a-fp8') {
        same_sums($exact, tensors($tokens)->{logits},
                  "$name: float32 logits and transformers");
    }

    my @floats = @{$exact}[$start .. $#$exact];

    my %cpu = map { $_->[0] => $logits->("cpu-$_->[0]", @$_[1 .. $#$_]) }
              [ 'whole', '--trace' ], [ 'decode', '--decode-from', $start ],
              [ 'same', '--trace', '--select', $tokens ];
    my %gpu = map { $_->[0] => $logits->($_->[0], '--backend', 'cuda',
                                         @$_[1 .. $#$_]) }
              [ 'whole', '--trace' ], [ 'decode', '--decode-from', $start ],
              [ 'same', '--trace', '--select', $tokens ];

    at_most(median($gpu{same}{'hidden.0'}, $cpu{same}{'hidden.0'}), 0.012,
            "$name: layer 0 and the CPU, the same selection");
    at_most(median($gpu{same}{logits}, $cpu{same}{logits}), 0.055,
            "$name: logits and the CPU, the same selection");

    for my $bound ([ 0.1, 1.1 ], [ 0.5, 1.1 ], [ 0.9, 1.21 ]) {
        my ($q, $factor) = @$bound;
        my $what = sprintf '%s: %d %% from float32', $name, $q * 100;
        my ($prefill, $twin) = map { quantile($q, distances($_->{whole}{logits},
                                                            $exact)) }
                                   \%gpu, \%cpu;
        my ($decode, $other) = map {
            my $all = $_->{decode}{logits};
            quantile($q, distances([ @{$all}[$start .. $#$all] ], \@floats));
        } \%gpu, \%cpu;

        note(sprintf '%s: prefill %.4f (CPU %.4f), decode %.4f (CPU %.4f)',
             $what, $prefill, $twin, $decode, $other);
        at_most($prefill, $factor * $twin, "$what, prefill, as the CPU");
        at_most($decode, $factor * $other, "$what, decode, as the CPU");
    }

    # "weights fp8": the codes and scales of the checkpoint in FP8

    my $fp8 = in_fp8($model, $t->path("$name-fp8"));
    my $made = $logits->('fp8', '--backend', 'cuda', '--fp8');
    my ($read, $why) = dsa_logits($dsa, $t->path('read'), $fp8, $tokens,
                                  '--backend', 'cuda');

    ok($read, "$name: the model in FP8") or diag($why);
    is(max(distances($made->{logits}, $read->{logits})), 0,
       "$name: quantized while it is loaded");

    for my $chunk (1, 37, 64, 200) {
        my $cut = $logits->("chunk$chunk", '--backend', 'cuda', '--chunk',
                            $chunk);

        is(max(distances($cut->{logits}, $gpu{whole}{logits})), 0,
           "$name: in chunks of $chunk");
    }

    next if gpus() < 2;

    my $two = $logits->('two', '--backend', 'cuda', '--gpus', 2, '--attention',
                        'data');
    my $twin = $logits->('cpu-two', '--gpus', 2, '--attention', 'data');

    at_most(median($two->{logits}, $gpu{whole}{logits}),
            1.5 * median($twin->{logits}, $cpu{whole}{logits}) + 0.01,
            "$name: two GPUs and one");
}

$t->done;
