# Copyright (C) The nginx-dsa authors
#
# Models whose layers attend to all positions: dsa logits --backend cuda against
# float32 on the CPU, which t/dense.t compares with transformers.  The GPU may
# be about as far from it as the CPU in served precision, whose latents are FP8;
# golden.t has what bounds the distances.  The models are those of golden.t
# without their indexers, which have the sizes of a head that the kernels need.

use strict;
use warnings;

use List::Util qw/ max /;
use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::GPU;
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;

use constant LONG => 4500;      # more than one part of the keys of a prompt

need_gpu();

my $t = DSA::Test->new('gpu dense');
my $dsa = $t->build . '/dsa-cuda';
my $data = "$DSA::Test::root/t/data/golden";


sub run {
    my ($model, $tokens, @args) = @_;

    my $out = $t->path('out.safetensors');
    my $log = $t->path('out.log');
    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', $log, $dsa, 'logits',
                    '--model', $model, '--tokens', $tokens, '--out', $out,
                    @args;

    die "dsa logits @args: " . read_file($log) . "\n" if $rc != 0;

    return tensors($out);
}


sub logits { run(@_)->{logits} }


# Answers of the backend with drafts.

sub answers {
    my ($name, @args) = @_;

    my $log = $t->path('speculate.log');
    my $rc = system 'sh', '-c', 'exec "$@" > "$0" 2>&1', $log,
                    $t->build . '/t/gpu_speculate', @args;

    is($rc, 0, "$name: answers with drafts are those without")
        or diag(read_file($log));
}


my @models = map {
    my ($name, $type) = @$_;

    [ $name, "$data/$name/golden.safetensors",
      dense("$data/$name", $t->path($name), $type),
      dense(with_drafts("$data/$name", $t->path("$name-draft")),
            $t->path("$name-drafts"), $type) ]
} [ 'a-fp8', 'deepseek_v3' ], [ 'glm-5', 'glm4_moe_lite' ];

for my $case (@models) {
    my ($name, $tokens, $model) = @$case;
    my $exact = logits($model, $tokens, '--exact');
    my $cpu = logits($model, $tokens);
    my $start = 200;
    my @exact = @{$exact}[$start .. $#$exact];
    my @cpu = @{$cpu}[$start .. $#$exact];

    for my $kv (qw/ bf16 fp8 /) {
        my @cuda = ('--backend', 'cuda', '--kv', $kv);
        my $gpu = logits($model, $tokens, @cuda);
        my $decode = logits($model, $tokens, @cuda, '--decode-from', $start);

        near("$name, $kv, prompt", $exact, $cpu, $gpu);
        near("$name, $kv, decode", \@exact, \@cpu,
             [ @{$decode}[$start .. $#$exact] ]);

        is(max(distances([ @{$decode}[0 .. $start - 1] ],
                         [ @{$gpu}[0 .. $start - 1] ])), 0,
           "$name, $kv: the prompt before the answer");

        for my $chunk (1, 37, 64, 200) {
            my $cut = logits($model, $tokens, @cuda, '--chunk', $chunk);

            is(max(distances($cut, $gpu)), 0, "$name, $kv: in chunks of "
               . $chunk);
        }
    }
}

# a prompt of several parts, and an answer behind it

{
    my ($name, $tokens, $model) = @{$models[0]};
    my $id = tensors($tokens)->{tokens};
    my @ids = map { $_->[0] } @$id;
    my $long = $t->path('long.safetensors');
    my $from = LONG - 20;

    write_tensors($long, tokens => [ 'I32', [ LONG ],
                                     map { $ids[$_ * $_ % @ids] }
                                     1 .. LONG ]);

    my $cpu = logits($model, $long);
    my $gpu = logits($model, $long, '--backend', 'cuda');
    my $cut = logits($model, $long, '--backend', 'cuda', '--chunk', 600);
    my $decode = logits($model, $long, '--backend', 'cuda', '--decode-from',
                        $from);

    is(max(distances($cut, $gpu)), 0, 'a long prompt in chunks of 600');

    my ($early, $late, $answer) = map {
        my ($logits, $first, $last) = @$_;
        quantile(0.5, distances([ @{$logits}[$first .. $last] ],
                                [ @{$cpu}[$first .. $last] ]))
    } [ $gpu, 3500, 3999 ], [ $gpu, 4096, LONG - 1 ],
      [ $decode, $from, LONG - 1 ];

    note(sprintf 'from the CPU: %.4f in the first part, %.4f behind it, %.4f '
                 . 'in the answer', $early, $late, $answer);
    at_most($late, 1.2 * $early, 'the second part is as near as the first');
    at_most($answer, 1.3 * $early, 'the answer is as near as the prompt');
}

# a field without a meaning for these models

my $config = json_decode(read_file("$models[1][3]/config.json"));

write_file("$models[1][3]/config.json",
           json_encode({ %$config, index_share_for_mtp_iteration => \1 }));

# gpu_speculate reads its prompts from golden.safetensors

for my $case (@models) {
    my ($name, $tokens, undef, $model) = @$case;

    symlink $tokens, "$model/golden.safetensors" or die "$model: $!\n";

    my ($exact, $cpu, $gpu) = map {
        run($model, $tokens, '--drafts', 2, @$_)
    } [ '--exact' ], [ ], [ '--backend', 'cuda' ];

    for my $k (1, 2) {
        near("$name, step $k of the draft layer",
             map { $_->{"draft_logits.$k"} } $exact, $cpu, $gpu);
    }

    answers($name, $model);
    answers("$name, two ranks", $model, 'data');
}

my $wide = widen_all($models[0][3], $t->path('wide'), 4);

symlink $models[0][1], "$wide/golden.safetensors" or die "$wide: $!\n";
answers('wider, tensor', $wide, 'tensor');

$t->done;
