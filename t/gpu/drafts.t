# Copyright (C) The nginx-dsa authors
#
# dsa logits --drafts --backend cuda against the CPU, which t/drafts.t compares
# with an independent implementation: in float32, from which the GPU may be as
# far as the CPU's served precision is, and in served precision.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::GPU;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;

use constant STEPS => 3;

need_gpu();

my $t = DSA::Test->new('gpu drafts');
my $dsa = $t->build . '/dsa-cuda';


sub logits {
    my ($model, $tokens, $name, @args) = @_;

    my $out = $t->path("$name.safetensors");
    my $log = $t->path("$name.log");
    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', $log, $dsa, 'logits',
                    '--model', $model, '--tokens', $tokens, '--out', $out,
                    '--drafts', STEPS, @args;

    die "dsa logits @args: " . read_file($log) . "\n" if $rc != 0;

    return tensors($out);
}


# A copy of a model in whose config.json later steps share the selection of the
# first one.

sub sharing {
    my ($from, $to) = @_;

    my $config = json_decode(read_file("$from/config.json"));

    mkdir $to or die "$to: $!\n";

    for my $file (glob "$from/*") {
        my $name = $file =~ s{.*/}{}r;
        next if $name eq 'config.json';
        symlink $file, "$to/$name" or die "$to/$name: $!\n";
    }

    write_file("$to/config.json",
               json_encode({ %$config,
                             index_share_for_mtp_iteration => \1 }));

    return $to;
}


# The draft logits are about as far from float32 as the CPU's.  A tenth of the
# rows has another expert or position somewhere, so that their distances vary
# more than those of the model itself.

sub near {
    my ($name, $k, $exact, $cpu, $gpu) = @_;

    for my $bound ([ 0.1, 1.1 ], [ 0.5, 1.1 ], [ 0.9, 1.4 ]) {
        my ($q, $factor) = @$bound;
        my ($got, $twin) = map {
            quantile($q, distances($_->{"draft_logits.$k"},
                                   $exact->{"draft_logits.$k"}))
        } $gpu, $cpu;
        my $what = sprintf '%s: step %d: %d %% from float32', $name, $k,
                   $q * 100;

        note(sprintf '%s: %.4f (CPU %.4f)', $what, $got, $twin);
        at_most($got, $factor * $twin, $what);
    }
}


# Answers of the backend, which a scheduler without drafts has as well.

sub answers {
    my ($name, @args) = @_;

    my $log = $t->path('speculate.log');
    my $rc = system 'sh', '-c', 'exec "$@" > "$0" 2>&1', $log,
                    $t->build . '/t/gpu_speculate', @args;

    is($rc, 0, "$name: answers with drafts are those without")
        or diag(read_file($log));
    note($_) for grep { /accepted/ } split /\n/, read_file($log);
}


my @models = map {
    my $from = "$DSA::Test::root/t/data/golden/$_";
    my $own = with_drafts($from, $t->path($_));

    ([ $_, $own, "$from/golden.safetensors" ],
     [ "$_, shared", sharing($own, $t->path("$_-shared")),
       "$from/golden.safetensors" ])
} qw/ a-fp8 glm-5.2 /;

for my $case (@models) {
    my ($name, $model, $tokens) = @$case;
    my $exact = logits($model, $tokens, 'exact', '--exact');
    my $cpu = logits($model, $tokens, 'cpu', '--trace');
    my $gpu = logits($model, $tokens, 'gpu', '--backend', 'cuda', '--trace');
    my @rows = differing($gpu->{'draft_topk.1'}, $cpu->{'draft_topk.1'});

    note(sprintf '%s: draft_topk.1: %d of %d rows differ from the CPU', $name,
         scalar @rows, scalar @{$cpu->{'draft_topk.1'}});

    # entry 0 belongs to no row: position -1 of a row would be one

    for my $k (1 .. STEPS) {
        my $topk = $gpu->{"draft_topk.$k"};
        my $want = $cpu->{"draft_topk.$k"};
        my @wrong = grep {
            my $row = $_;
            my @pick = grep { $_ >= 0 } @{$topk->[$row]};
            @pick != grep { $_ >= 0 } @{$want->[$row]}
        } 0 .. $#$topk;

        is("@wrong", '', "$name: step $k: as many positions as the CPU");

        near($name, $k, $exact, $cpu, $gpu);
    }

    answers($name, $model);
    answers("$name, two ranks", $model, 'data');

    # The bits depend on how a text is cut, because those of the model's hidden
    # states do; the distance does not.

    for my $chunk (7, 64) {
        my $cut = logits($model, $tokens, "chunk$chunk", '--backend', 'cuda',
                         '--chunk', $chunk);

        near("$name, in chunks of $chunk", $_, $exact, $cpu, $cut)
            for 1 .. STEPS;
    }
}

# the heads and experts of a wider model can be split over two ranks

for my $case (@models[0, 1]) {
    my ($name, $model, $prompts) = @$case;
    my $wide = widen_all($model, "$model-wide", 4);

    symlink $prompts, "$wide/golden.safetensors" or die "$wide: $!\n";
    answers("$name, wider, tensor", $wide, 'tensor');
}

$t->done;
