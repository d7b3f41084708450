# Copyright (C) The nginx-dsa authors
#
# dsa logits --backend cuda with INT4 experts.  One model in FP8 and in INT4,
# whose numbers and scales are the same, has logits that are as near as those of
# the CPU are, but other bits, because the tensor cores have other operands.  A
# model that "dsa quantize" has made is as near to float32 as on the CPU.

use strict;
use warnings;

use List::Util qw/ max /;
use Test::More;

use lib 't/lib';
use DSA::GPU;
use DSA::Golden;
use DSA::Int4;
use DSA::Tensors;
use DSA::Test;

need_gpu();

my $t = DSA::Test->new('gpu int4');
my $dsa = $t->build . '/dsa-cuda';
my $from = "$DSA::Test::root/t/data/golden/a-fp8";
my $tokens = "$from/golden.safetensors";
my $start = 200;


sub median { quantile(0.5, distances(@_)) }


sub logits {
    my ($model, @args) = @_;

    my ($got, $log) = dsa_logits($dsa, $t->path('got.safetensors'), $model,
                                 $tokens, @args);

    die "dsa logits @args: $log\n" if !$got;

    return $got;
}


# one model in both formats

int4_twins($from, $t->path('fp8'), $t->path('int4'), int4_config());

for my $args ([], [ '--decode-from', $start ],
              gpus() < 2 ? () : [ '--gpus', 2, '--attention', 'data' ])
{
    my ($fp8, $int4) = map { logits($t->path($_), '--backend', 'cuda',
                                    '--select', $tokens, @$args)->{logits} }
                           qw/ fp8 int4 /;

    at_most(median($int4, $fp8), 0.055, "FP8 and INT4 @$args");
}


# a quantized model

my $model = $t->path('quantized');

is(system("$dsa quantize --in $from --out $model --experts int4 > /dev/null"),
   0, 'quantized');

my $exact = logits($model, '--exact', '--select', $tokens)->{logits};
my @floats = @{$exact}[$start .. $#$exact];
my %cpu = (whole => logits($model, '--trace'),
           decode => logits($model, '--decode-from', $start),
           same => logits($model, '--trace', '--select', $tokens));
my @cuda = ('--backend', 'cuda');
my %gpu = (whole => logits($model, @cuda, '--trace'),
           decode => logits($model, @cuda, '--decode-from', $start),
           same => logits($model, @cuda, '--trace', '--select', $tokens));

at_most(median($gpu{same}{logits}, $cpu{same}{logits}), 0.055,
        'logits and the CPU, the same selection');

for my $bound ([ 0.1, 1.1 ], [ 0.5, 1.1 ], [ 0.9, 1.21 ]) {
    my ($q, $factor) = @$bound;
    my $what = sprintf '%d %% from float32', $q * 100;
    my ($prefill, $twin) = map { quantile($q, distances($_->{whole}{logits},
                                                        $exact)) }
                               \%gpu, \%cpu;
    my ($decode, $other) = map {
        my $all = $_->{decode}{logits};
        quantile($q, distances([ @{$all}[$start .. $#$all] ], \@floats));
    } \%gpu, \%cpu;

    diag(sprintf '%s: prefill %.4f (CPU %.4f), decode %.4f (CPU %.4f)', $what,
         $prefill, $twin, $decode, $other);
    at_most($prefill, $factor * $twin, "$what, prefill, as the CPU");
    at_most($decode, $factor * $other, "$what, decode, as the CPU");
}

for my $chunk (1, 37, 64, 200) {
    is(max(distances(logits($model, @cuda, '--chunk', $chunk)->{logits},
                     $gpu{whole}{logits})),
       0, "in chunks of $chunk");
}


# scales that are no scales, as they are read for the GPU

my $expert = 'model.layers.2.mlp.experts.5.down_proj';
my $n = 0;
my %stored;

for ([ 0, '0' ], [ 0x7f80, 'inf' ], [ 0x7fc0, 'nan' ], [ 0xbf80, '-1' ]) {
    my ($bits, $text) = @$_;
    my $dir = $t->path('refused' . $n++);

    int4_twins($from, undef, $dir, int4_config(), sub {
        substr $_[0]{"$expert.weight_scale_inv"}[2], 6, 2, pack 'v', $bits;
    });

    my ($got, $why, $status) = dsa_logits($dsa, $t->path('none'), $dir,
                                          $tokens, @cuda);

    is($status, 1, "a scale of $text");
    like($why, qr/"\Q$expert\E.weight_scale_inv" has the scale $text at /,
         'the reason');
}

for ([ 0, '0' ], [ 'inf', 'inf' ], [ 'nan', '-?nan' ], [ -1, '-1' ],
     [ 3.4e38, '3\.4e\+38' ], [ 2 ** -134, '4\.59177e-41' ])
{
    my ($value, $text) = @$_;
    my $dir = $t->path('refused' . $n++);

    int4_twins($from, undef, $dir, int4_config(), sub {
        int4_of_script($_[0]);
        substr $_[0]{"$expert.weight_scale_inv"}[2], 12, 4, pack 'f<', $value;
    });

    my ($got, $why, $status) = dsa_logits($dsa, $t->path('none'), $dir,
                                          $tokens, @cuda);

    is($status, 1, "a scale of $value in F32");
    like($why, qr/"\Q$expert\E.weight_scale_inv" has the scale $text at \S+ (?#
                 )0\]; expected a finite number above 0, also when it is (?#
                 )rounded to BF16/, 'the reason');
}

# Stored scales of activations: the greatest ones count, so that one expert's
# decide.  With scales that are too great for the numbers, logits are as far
# from float32 as on the CPU, which is more than twice as far as with fitting
# ones, or with each expert's own.

sub stored {
    my ($name, $up, $edit) = @_;

    int4_twins($from, undef, $t->path($name),
               int4_config(moe_activation_scheme => 'static'), sub {
        my ($raw) = @_;

        for (grep { is_expert($_) } keys %$raw) {
            my $scale = /down_proj/ ? 2 ** -4 : $up;

            $scale /= 4 if !/experts\.3\./;
            $raw->{s/weight$/input_scale/r} = [ 'F32', [], pack 'f<', $scale ];
        }

        $edit->($raw) if $edit;
    });
}

for ([ 'fit', 2 ** -4 ], [ 'coarse', 2 ** 8 ]) {
    my ($name, $up) = @$_;

    stored($name, $up);

    my $float = logits($t->path($name), '--exact', '--select', $tokens);
    my $twin = logits($t->path($name), '--trace', '--select', $tokens);
    my $far = median($twin->{logits}, $float->{logits});

    for my $args ([], gpus() < 2 ? () : [ '--gpus', 2, '--attention', 'data' ])
    {
        my $same = logits($t->path($name), @cuda, '--trace', '--select',
                          $tokens, @$args);
        my $got = median($same->{logits}, $float->{logits});

        diag(sprintf '%s from float32: %.4f (CPU %.4f)', $name, $got, $far);
        at_most($got, 1.1 * $far, "stored scales, $name @$args");
        cmp_ok($got, '>', 0.9 * $far, 'and not nearer');
    }

    $stored{$name} = logits($t->path($name), @cuda, '--select', $tokens);
}

cmp_ok(median($stored{coarse}{logits}, $stored{fit}{logits}), '>', 0.1,
       'the scale is used');


# the layout of TensorRT-LLM's script, its scales between BF16 numbers: the bits
# of the model with the nearest ones

my @between = map { 1 + $_ } 0, 2 ** -8, -2 ** -9, 2 ** -9, -2 ** -11;

stored('script', 2 ** -4, sub {
    int4_of_script($_[0], sub { $_[0] * $between[$_[1] % @between] });
});

my $script = logits($t->path('script'), @cuda, '--select', $tokens);

is(max(distances($script->{logits}, $stored{fit}{logits})), 0,
   'of the script: every bit');

$t->done;
