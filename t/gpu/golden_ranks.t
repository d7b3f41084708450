# Copyright (C) The nginx-dsa authors
#
# dsa logits --backend cuda on several GPUs against one GPU, with the bounds of
# golden.t: sums in another order move the logits by as much as the noise of
# FP8 products does.

use strict;
use warnings;

use List::Util qw/ max sum /;
use Test::More;

use lib 't/lib';
use DSA::GPU;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;

need_gpu();

my $t = DSA::Test->new('gpu golden ranks');

if (gpus() < 2) {
    plan skip_all => 'this machine has one GPU';
}

my $dsa = $t->build . '/dsa';
my $golden = "$DSA::Test::root/t/data/golden/a-fp8";
my $wide = widen($golden, $t->path('wide'), 4);
my $tokens = "$golden/golden.safetensors";
my $exact = tensors($tokens)->{logits};
my $start = tensors("$golden/served.safetensors")
            ->{served_decode_start}[0][0];


sub logits {
    my ($name, @args) = @_;

    my $out = $t->path("$name.safetensors");
    my $log = $t->path("$name.log");
    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', $log, $dsa, 'logits',
                    '--backend', 'cuda', '--tokens', $tokens, '--out', $out,
                    @args;

    die "dsa logits @args: " . read_file($log) . "\n" if $rc != 0;

    return tensors($out)->{logits};
}


sub median { quantile(0.5, distances(@_)) }


# Greedy tokens agree except where the two best logits are close.

sub greedy {
    my ($got, $want) = @_;

    my @wrong;

    for my $row (0 .. $#$want) {
        my ($g, $w) = ($got->[$row], $want->[$row]);
        my ($best) = sort { $w->[$b] <=> $w->[$a] } 0 .. $#$w;
        my ($mine) = sort { $g->[$b] <=> $g->[$a] } 0 .. $#$g;
        my $norm = sqrt(sum(map { $_ * $_ } @$w) / @$w);

        push @wrong, $row if $mine != $best
                             && $w->[$best] - $w->[$mine] > 0.25 * $norm;
    }

    return @wrong;
}


for my $form ([ 'prefill' ], [ 'decode', '--decode-from', $start ]) {
    my ($name, @form) = @$form;
    my $one = logits("$name-1", '--model', $golden, @form);
    my $from = $name eq 'decode' ? $start : 0;
    my @floats = @{$exact}[$from .. $#$exact];

    for my $ranks (grep { $_ <= gpus() } 2, 4) {
        for my $attention (qw/ data tensor /) {

            # 4 heads have 192 rows of q_b_proj each: two heads are 3 blocks

            next if $attention eq 'tensor' && $ranks == 4;

            my $what = "$name, $ranks GPUs, attention $attention";
            my @args = ('--model', $attention eq 'tensor' ? $wide : $golden,
                        '--gpus', $ranks, '--attention', $attention, @form);
            my $got = logits("$name-$ranks-$attention", @args);
            my $again = logits("$name-$ranks-$attention-2", @args);

            is(max(distances($again, $got)), 0, "$what: the same bits twice");
            at_most(median($got, $one), 0.051, "$what: as one GPU");
            is_deeply([ greedy($got, $one) ], [], "$what: greedy tokens");

            at_most(quantile(0.5, distances([ @{$got}[$from .. $#$got] ],
                                            \@floats)),
                    1.1 * quantile(0.5, distances([ @{$one}[$from .. $#$one] ],
                                                  \@floats)),
                    "$what: as far from float32 as one GPU");
        }
    }
}

$t->done;
