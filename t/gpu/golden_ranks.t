# Copyright (C) The nginx-dsa authors
#
# dsa logits --backend cuda on several GPUs against one GPU.  Each GPU rounds
# its part of a sum to BF16, and this small model turns such roundings into
# flipped choices, so that the logits move by some percent.  How much is right
# follows from the CPU, which computes the same parts and roundings with
# "--gpus": its distance from itself with one rank, and the margins of the
# tokens that it chooses differently, bound those of the GPUs.

use strict;
use warnings;

use List::Util qw/ max sum /;
use Test::More;

use lib 't/lib';
use DSA::GPU;
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;

need_gpu();

my $t = DSA::Test->new('gpu golden ranks');

if (gpus() < 2) {
    plan skip_all => 'this machine has one GPU';
}

my $dsa = $t->build . '/dsa-cuda';
my $golden = "$DSA::Test::root/t/data/golden/a-fp8";
my $wide = widen($golden, $t->path('wide'), 4);
my $tokens = "$golden/golden.safetensors";
my $exact = exact_logits($dsa, $golden, $t->path('exact'));
my $start = tensors("$golden/served.safetensors")
            ->{served_decode_start}[0][0];


sub logits {
    my ($name, @args) = @_;

    return run($name, '--backend', 'cuda', @args);
}


sub run {
    my ($name, @args) = @_;

    my $out = $t->path("$name.safetensors");
    my $log = $t->path("$name.log");
    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', $log, $dsa, 'logits',
                    '--tokens', $tokens, '--out', $out, @args;

    die "dsa logits @args: " . read_file($log) . "\n" if $rc != 0;

    return tensors($out)->{logits};
}


sub median { quantile(0.5, distances(@_)) }


# By how much, in units of the logits' root mean square, a token with another
# choice is less probable than the best one: the mean over all tokens.  35 of
# 320 tokens have another choice with two ranks of the CPU, so that the widest
# of these margins is as it happens to be, and the mean is not.

sub margin {
    my ($got, $want) = @_;

    return 1 / @$want * sum map {
        my ($g, $w) = ($got->[$_], $want->[$_]);
        my ($best) = sort { $w->[$b] <=> $w->[$a] } 0 .. $#$w;
        my ($mine) = sort { $g->[$b] <=> $g->[$a] } 0 .. $#$g;

        ($w->[$best] - $w->[$mine]) / sqrt(sum(map { $_ * $_ } @$w) / @$w);
    } 0 .. $#$want;
}


# The CPU's distances, first of all.

my @case;

for my $form ([ 'prefill' ], [ 'decode', '--decode-from', $start ]) {
    my ($name, @form) = @$form;
    my $one = run("$name-cpu-1", '--model', $golden, @form);

    for my $ranks (grep { $_ <= gpus() } 2, 4) {
        for my $attention (qw/ data tensor /) {

            # 4 heads have 192 rows of q_b_proj each: two heads are 3 blocks

            next if $attention eq 'tensor' && $ranks == 4;

            my $model = $attention eq 'tensor' ? $wide : $golden;
            my @args = ('--model', $model, '--gpus', $ranks, '--attention',
                        $attention, @form);
            my $cpu = run("$name-$ranks-$attention-cpu", @args);

            push @case, [ $name, "$ranks GPUs, attention $attention",
                          median($cpu, $one), margin($cpu, $one), \@form,
                          \@args ];
        }
    }
}

my %one;

for my $case (@case) {
    my ($name, $split, $far, $margin, $form, $args) = @$case;
    my $what = "$name, $split";
    my $from = $name eq 'decode' ? $start : 0;
    my $one = $one{$name} //= logits("$name-1", '--model', $golden, @$form);
    my $got = logits("$what-1", @$args);
    my $again = logits("$what-2", @$args);
    my @floats = @{$exact}[$from .. $#$exact];

    is(max(distances($again, $got)), 0, "$what: the same bits twice");
    at_most(median($got, $one), 1.2 * $far, "$what: as one GPU");
    at_most(margin($got, $one), 2.5 * $margin,
            "$what: greedy tokens differ only within the noise");
    at_most(quantile(0.5, distances([ @{$got}[$from .. $#$got] ], \@floats)),
            1.1 * quantile(0.5, distances([ @{$one}[$from .. $#$one] ],
                                          \@floats)),
            "$what: as far from float32 as one GPU");
}

$t->done;
