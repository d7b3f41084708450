# Copyright (C) The nginx-dsa authors
#
# "dsa-engine -t --gpu-memory" says from config.json alone whether a model fits
# GPUs, and with how many tokens of KV.  The expected bytes of weights and of a
# token are the published models' numbers of parameters, with FP8 or INT4
# experts the sums that t/plan.t computes, and the sizes of their latents
# (bench/README.md has the sources of their config.json).

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

$ENV{CUDA_VISIBLE_DEVICES} = '';

my $t = DSA::Test->new('fit');
my $bench = "$DSA::Test::root/bench";


# A directory with a config.json and nothing else.

sub model {
    my ($name, $from, %fields) = @_;

    my $dir = $t->path($name);
    my %config = (%{json_decode(read_file("$from/config.json"))}, %fields);

    delete $config{$_} for grep { !defined $config{$_} } keys %fields;
    mkdir $dir or die "$dir: $!\n";
    write_file("$dir/config.json", json_encode(\%config));

    return $dir;
}


# (exit status, output, errors) of dsa-engine -t

sub fit {
    my (@args) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2> "$0"', $t->path('errors'),
        $t->build . '/dsa-engine', '-t', @args or die "sh: $!\n";
    my $out = do { local $/; <$fh> } // '';
    close $fh;

    return ($? >> 8, $out, read_file($t->path('errors')));
}


my $flash = "$bench/glm-4.7-flash";
my $joyai8 = "$bench/joyai-llm-flash";
my $joyai = model('JoyAI', $joyai8, quantization_config => undef);
my $moonlight = "$bench/moonlight";

# GLM-5.2 with a context that the kernels compute, and INT4 experts as
# "dsa quantize" writes them

my $glm = model('GLM-5.2', "$bench/glm-5.2", max_position_embeddings => 262144);
my $int4 = model('INT4', "$bench/v3.2",
                 quantization_config => { quant_method => 'w4afp8',
                                          moe_activation_scheme => 'dynamic' });

my ($rc, $out, $errors) = fit('--gpus', 1, '--gpu-memory', '139g', $flash);

if ($errors =~ /built without nvcc/) {
    is($rc, 1, 'built without nvcc');
    $t->done;
    exit;
}


# One model: GPUs and their memory, GB of weights, and bytes of a token's
# latents and index keys by format; undef: the model has no such format.  A
# page has the hidden state of a token besides, with drafts (on one GPU).

for (
    [ 'GLM-4.7-Flash', $flash, 1, '139g', 59.89 + 1.29,
      { bf16 => 1152 * 48, fp8 => 656 * 48 }, 2 * 2048 ],
    [ 'GLM-4.7-Flash, 2 GPUs', $flash, 2, '79g', undef,
      { bf16 => 1152 * 47, fp8 => 656 * 47 }, 0 ],
    [ 'JoyAI in BF16', $joyai, 1, '139g', 97.89 + 0.16,
      { bf16 => 1152 * 41, fp8 => 656 * 41 }, 2 * 2048 ],
    [ 'JoyAI in FP8', $joyai8, 1, '79g', undef,
      { bf16 => 1152 * 41, fp8 => 656 * 41 }, 2 * 2048 ],
    [ 'JoyAI in FP8 on an H200', $joyai8, 1, '139g', undef,
      { bf16 => 1152 * 41, fp8 => 656 * 41 }, 2 * 2048 ],
    [ 'Moonlight', $moonlight, 1, '79g', 31.92,
      { bf16 => 1152 * 27, fp8 => 656 * 27 }, 0 ],
    [ 'Moonlight on two GPUs of 24 GB', $moonlight, 2, '23g', undef,
      { bf16 => 1152 * 27, fp8 => 656 * 27 }, 0 ],
    [ 'DeepSeek-V3.2', "$bench/v3.2", 8, '139g', 103.80,
      { fp8 => (656 + 132) * 61 }, 0 ],
    [ 'DeepSeek-V3.2, config.json', "$bench/v3.2/config.json", 8, '139g',
      103.80, { fp8 => (656 + 132) * 61 }, 0 ],
    [ 'DeepSeek-V3.1', "$bench/v3.1", 8, '139g', 102.89,
      { bf16 => 1152 * 61, fp8 => 656 * 61 }, 0 ],
    [ 'GLM-5.2', $glm, 8, '139g', 113.55,
      { fp8 => 656 * 78 + 132 * 21 }, 0 ],
    [ 'DeepSeek-V3.2 with INT4 experts', $int4, 4, '139g', 106.33,
      { fp8 => (656 + 132) * 61 }, 0 ],
    [ 'DeepSeek-V3.2 with INT4 experts, 8 GPUs', $int4, 8, '79g', 64.19,
      { fp8 => (656 + 132) * 61 }, 0 ]
) {
    my ($what, $model, $gpus, $memory, $weights, $bytes, $hidden) = @$_;
    my ($rc, $out, $errors) = fit('--gpus', $gpus, '--gpu-memory', $memory,
                                  $model);

    is($rc, 0, "$what: it fits") or diag($errors);
    is($errors, '', "$what: no errors");

    for my $kv (qw/ bf16 fp8 /) {
        my ($gb, $w, $kv_gb) = $out =~ /^kv\ $kv:\ (?:GPU\ 0|each\ of\ \d+
                                        \ GPUs):\ ([\d.]+)\ GB\ =\ weights
                                        \ ([\d.]+)\ .*pages\ ([\d.]+)\ /mx;
        my ($pages) = $out =~ /^kv $kv: .* (\d+) pages of 64 tokens/m;

        if (!$bytes->{$kv}) {
            unlike($out, qr/^kv $kv/m, "$what: no kv $kv");
            next;
        }

        my ($size) = $memory =~ /(\d+)/;

        cmp_ok(abs($gb - $size * 2 ** 30 * 1e-9), '<', 0.01,
               "$what, kv $kv: the memory");
        cmp_ok(abs($w - $weights), '<', 0.02, "$what, kv $kv: weights")
            if $weights;
        cmp_ok(abs($kv_gb - $pages * (64 * $bytes->{$kv} + $hidden) * 1e-9),
               '<', 0.02, "$what, kv $kv: tokens") or diag($out);
    }
}

# in FP8 the experts need half

my ($half) = (fit('--gpus', 1, '--gpu-memory', '79g', $joyai8))[1]
             =~ /weights ([\d.]+)/;

cmp_ok($half, '>', 97.89 / 2 - 0.1, 'JoyAI in FP8: more than half');
cmp_ok($half, '<', 97.89 / 2 + 2.5, 'JoyAI in FP8: embedding and head in BF16');


# the table of docs/operate/dense.md: millions of tokens on an H200 and an H100

my $page = read_file("$DSA::Test::root/docs/operate/dense.md");
my @cells = map { /^(?:GLM-4\.7|JoyAI).* GB/ ? [ split / \| / ] : () }
            map { s/^\| | \|$//gr } split /\n/, $page;

for my $model ($flash, $joyai, $joyai8) {
    my (undef, undef, @want) = @{shift @cells};

    for my $memory ('139g', '79g') {
        my ($rc, $out) = fit('--gpus', 1, '--gpu-memory', $memory, $model);
        my $is = $rc ? 'no: ' . sprintf '%.1f GB', $out =~ /needs ([\d.]+) =/
                     : join ', ', map { "$_ M" } $out =~ /([\d.]+) M tokens/g;

        is(shift @want, $is, "docs/operate/dense.md: $model, $memory");
    }
}


# too small

for (
    [ $flash, 1, '59g', qr/GPU 0 has 63\.35 GB of memory but needs / ],
    [ $joyai, 1, '79g',
      qr/weights 98\.0\d .*: 2 such GPUs with "attention data"/ ],
    [ $moonlight, 1, '31g', qr/weights 31\.92 .*: 2 such GPUs with/ ],
    [ $joyai8, 1, '47g', qr/weights 49\.9\d .*: 2 such GPUs with/ ],
    [ $joyai8, 3, '139g', qr/256 experts cannot be shared out equally/ ],
    [ "$bench/v3.2", 4, '139g', qr/: 8 such GPUs with "attention data"/ ],
    [ "$bench/v3.2", 3, '139g', qr/256 experts cannot be shared out equally/ ],
    [ "$bench/v3.1", 8, '79g',
      qr/weights 102\.89 .*: 16 such GPUs with "attention data"/ ],
    [ $glm, 4, '139g',
      qr/weights 204\.17 .*: 8 such GPUs with "attention data"/ ],
    [ "$bench/glm-5.2", 8, '139g',
      qr/a context of 1048576 tokens is too long .* at most 393216$/ ],
    [ $int4, 4, '79g',
      qr/weights 106\.33 .*: 8 such GPUs with "attention data"/ ],
    [ $int4, 2, '139g',
      qr/weights 190\.62 .*: 4 such GPUs with "attention data"/ ]
) {
    my ($model, $gpus, $memory, $reason) = @$_;
    my ($rc, $out, $errors) = fit('--gpus', $gpus, '--gpu-memory', $memory,
                                  $model);

    is($rc, 1, "$model on $gpus GPUs of $memory");
    like($out, qr/^kv fp8: not possible: .*$reason/m, 'the reason');
    like($errors, qr/ cannot be served by $gpus such GPU/, 'the error');
}


# the directives of a configuration; weights in FP8 need half

my $conf = write_file($t->path('engine.conf'),
                      "model $joyai; listen unix:" . $t->path('e.sock')
                      . '; backend cuda; weights fp8; kv fp8; '
                      . 'prompt_format deepseek-v3;');

($rc, $out) = fit('--gpu-memory', '79g', '-c', $conf);
is($rc, 0, 'a configuration with weights fp8');
like($out, qr/^kv fp8: GPU 0: [\d.]+ GB = weights $half /m,
     'the weights of the FP8 checkpoint');
unlike($out, qr/^kv bf16/m, 'the format of the configuration only');


# wrong words

for (
    [ [ '--gpus', 'two', '--gpu-memory', '79g', $flash ],
      qr/--gpus is "two"; expected a number from 1 to 16/ ],
    [ [ '--gpus', 17, '--gpu-memory', '79g', $flash ], qr/"gpus" is "17"/ ],
    [ [ '--gpus', 1, '--gpu-memory', '79x', $flash ],
      qr/--gpu-memory is "79x"; expected a size from 1 to / ],
    [ [ '--gpus', 1, '--gpu-memory', '79g', $t->path('none') ],
      qr/none\/config\.json/ ]
) {
    my ($args, $reason) = @$_;
    my ($rc, undef, $errors) = fit(@$args);

    is($rc, 1, "@$args[0 .. 3]");
    like($errors, $reason, 'the reason');
}

for ([ '--gpus', 1, $flash ], [ '--gpu-memory', '79g' ],
     [ '--gpus', 1, '--gpu-memory', '79g' ],
     [ '--gpus', 1, '--gpu-memory', '79g', '-c', $conf ])
{
    is((fit(@$_))[0], 2, "usage: @$_");
}

$t->done;
