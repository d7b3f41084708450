# Copyright (C) The nginx-dsa authors
#
# "weights fp8": a BF16 checkpoint is quantized while it is loaded.  The oracle
# is the same checkpoint in FP8, which is written here by the published rule:
# both have the same logits, in every bit.

use strict;
use warnings;

use List::Util qw/ max min /;
use Test::More;

use lib 't/lib';
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;

my $t = DSA::Test->new('fp8');
my $dsa = $t->build . '/dsa';
my $golden = "$DSA::Test::root/t/data/golden";


# sparse attention, and dense with a draft layer

for my $name (qw/ b-bf16 drafts-glm-4.7-flash /) {
    my $model = "$golden/$name";
    my $tokens = "$model/golden.safetensors";
    my $fp8 = in_fp8($model, $t->path("$name-fp8"));
    my @drafts = $name =~ /^drafts/ ? ('--drafts', 1) : ();

    for my $precision ([], ['--exact']) {
        my ($got, $log) = dsa_logits($dsa, $t->path('got'), $model, $tokens,
                                     '--fp8', @$precision, @drafts);
        my ($want, $why) = dsa_logits($dsa, $t->path('want'), $fp8, $tokens,
                                      @$precision, @drafts);
        my ($plain) = dsa_logits($dsa, $t->path('plain'), $model, $tokens,
                                 @$precision);
        my $what = "$name @$precision";

        ok($got && $want, "$what: computed") or diag("$log$why");

        for my $tensor (sort keys %$want) {
            is(max(map { abs } distances($got->{$tensor}, $want->{$tensor})),
               0, "$what: $tensor");
        }

        cmp_ok(min(distances($got->{logits}, $plain->{logits})), '>', 1e-3,
               "$what: another model than in BF16");
        like($log, qr/"weights fp8" changes the model: /, "$what: the log");
    }
}


# what cannot be quantized

my (undef, $log, $rc) = dsa_logits($dsa, $t->path('none'), "$golden/a-fp8",
                                   "$golden/a-fp8/golden.safetensors",
                                   '--fp8');
is($rc, 1, 'an FP8 checkpoint');
like($log, qr/ has "quantization_config", so that the weights are in FP8 (?#
             )already; expected "weights files"$/m, 'the reason');

my $inf = $t->path('inf');
my $raw = DSA::Golden::raw_tensors("$golden/b-bf16");

substr $raw->{'model.layers.1.self_attn.o_proj.weight'}[2], 7000, 2,
       pack 'v', 0x7f80;
DSA::Golden::raw_model("$golden/b-bf16", $inf, $raw, undef);

(undef, $log, $rc) = dsa_logits($dsa, $t->path('none'), $inf,
                                "$golden/b-bf16/golden.safetensors", '--fp8');
is($rc, 1, 'an infinite weight');
like($log, qr/"weights fp8": a matrix \[192, 512\] of layer 1 has a number (?#
             )that is not finite$/m, 'the reason');


# the engine: its directive, and the identity of its pages

sub engine {
    my ($model, $text) = @_;

    my $conf = write_file($t->path('engine.conf'),
                          "model $model; listen unix:" . $t->path('e.sock')
                          . "; $text");

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
        $t->build . '/dsa-engine', '-t', '-c', $conf or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}

for (
    [ $t->model, 'weights fp8;', 'the weights are in FP8 already' ],
    [ $t->model, 'backend null; weights fp8;',
      '"weights fp8" needs "backend cpu" or "backend cuda"' ],
    [ $t->model, 'weights fp4;',
      '"weights" is "fp4"; expected files, fp8 or random' ]
) {
    my ($model, $text, $reason) = @$_;
    my ($rc, $out) = engine($model, $text);

    is($rc, 1, $text);
    like($out, qr/\Q$reason\E/, 'the reason');
}

$t->done;
