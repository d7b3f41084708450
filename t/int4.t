# Copyright (C) The nginx-dsa authors
#
# INT4 experts on the CPU: the same model in FP8 and in INT4 has the same logits
# in every bit; "dsa quantize" against the definition of its result in float64,
# interrupted, and with too little room; and checkpoints that are refused.

use strict;
use warnings;

use Fcntl qw/ :flock /;
use List::Util qw/ max min reduce sum0 /;
use Test::More;

use lib 't/lib';
use DSA::Golden;
use DSA::Int4;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;

my $t = DSA::Test->new('int4');
my $dsa = $t->build . '/dsa';
my $model = "$DSA::Test::root/t/data/golden/a-fp8";
my $tokens = "$model/golden.safetensors";


sub logits {
    my ($dir, @args) = @_;

    return dsa_logits($dsa, $t->path('got'), $dir, $tokens, @args);
}


sub same { dsa_same($dsa, $t->path('got'), $tokens, @_) }


# one model in both formats

int4_twins($model, $t->path('twin-fp8'), $t->path('twin'), int4_config());

same($t->path('twin'), $t->path('twin-fp8'), 'twins @$_', @$_)
    for [], ['--exact'], ['--gpus', 4, '--attention', 'data'];


# Experts of 256 columns, which "attention tensor" splits between two GPUs.
# Those in FP8 are compared with transformers (t/golden.t).  One GPU adds up the
# same products in another order; in served precision it rounds them once, not
# in two parts, and the bound is that of t/unit/test_ranks.c.

my $wide = widen_all($model, $t->path('wide'), 2);
my @tensor = ('--gpus', 2, '--attention', 'tensor');

int4_twins($wide, $t->path('wide-fp8'), $t->path('wide-int4'), int4_config());

for ([ 'served', 0.1 ], [ 'exact', 1e-5, '--exact' ]) {
    my ($precision, $bound, @args) = @$_;
    my $what = "wide twins, tensor, $precision";

    my $two = same($t->path('wide-int4'), $t->path('wide-fp8'), $what, @args,
                   @tensor);
    my ($one) = logits($t->path('wide-int4'), @args);
    my $far = quantile($precision eq 'exact' ? 1 : 0.5,
                       distances($two->{logits}, $one->{logits}));

    at_most($far, $bound, "$what: near one GPU");
    note(sprintf '%s: %.3g from one GPU', $what, $far);
    ok($far > 0, "$what: two parts");
}


# Stored scales of activations: the greatest of a layer counts, and those that
# are too large for the numbers make another model.

sub stored {
    my ($name, %scale) = @_;

    my $number = 0;
    my $edit = delete $scale{edit} // sub { };

    int4_twins($model, undef, $t->path($name),
               int4_config(moe_activation_scheme => 'static'), sub {
        my ($raw) = @_;

        for (sort grep { is_expert($_) } keys %$raw) {
            my $value = /down_proj/ ? $scale{down} : $scale{up};

            # one of the experts of each layer has it, others less

            $value /= 4 if $scale{one} && !/experts\.3\.(?:up|down)_proj/;

            $raw->{s/weight$/input_scale/r}
                = $number++ % 2 ? [ 'F32', [], pack 'f<', $value ]
                  : [ 'BF16', [ 1 ],
                      DSA::Tensors::to_bytes('BF16', $value) ];
        }

        $edit->($raw);
    });

    return $t->path($name);
}

my $fit = same(stored('all', up => 2 ** -4, down => 2 ** -4),
               stored('one', up => 2 ** -4, down => 2 ** -4, one => 1),
               'the greatest scale counts');
my ($dynamic) = logits($t->path('twin'));
my ($coarse) = logits(stored('coarse', up => 2 ** 8, down => 2 ** -4));

cmp_ok(quantile(0.5, distances($fit->{logits}, $dynamic->{logits})), '<',
       0.03, 'stored scales that fit');
cmp_ok(quantile(0.5, distances($coarse->{logits}, $dynamic->{logits})), '>',
       0.1, 'and that do not');

same($t->path('coarse'), $t->path('twin-fp8'), 'exact', '--exact');


# The layout of TensorRT-LLM's script, with scales that are BF16 numbers, that
# are between two and round to them, also halfway to the even one, and that are
# the least one that is above 0.  The scales of the twins are powers of two.

my %scale = (up => 2 ** -4, down => 2 ** -2);
my @between = map { 1 + $_ } 0, 2 ** -8, -2 ** -9, 2 ** -9, -2 ** -11;

sub script {
    my ($name, $change) = @_;

    return stored($name, %scale, edit => sub {
                      int4_of_script($_[0], $change);
                  });
}

sub scales {
    my ($name, $change) = @_;

    return stored($name, %scale, edit => sub {
        my ($raw) = @_;

        for (grep { is_expert($_) } keys %$raw) {
            my $of = $raw->{"${_}_scale_inv"};
            my @value = DSA::Tensors::from_bytes('BF16', $of->[2]);

            $of->[2] = DSA::Tensors::to_bytes('BF16', map { $change->($_) }
                                                      @value);
        }
    });
}

stored('plain', %scale);
script('script');
script('between', sub { $_[0] * $between[$_[1] % @between] });

same($t->path('script'), $t->path('plain'), "of the script @$_", @$_)
    for [], ['--exact'], ['--gpus', 4, '--attention', 'data'];
same($t->path('between'), $t->path('plain'), "scales between BF16 numbers @$_",
     @$_) for [], ['--exact'];
same(script('odd', sub { $_[0] * (1 + 3 * 2 ** -8) }),
     scales('even', sub { $_[0] * (1 + 2 ** -6) }), 'halfway, upwards');
same(script('tiny', sub { 2 ** -134 + 2 ** -149 }),
     scales('least', sub { 2 ** -133 }), 'the least scale');

int4_twins($wide, undef, $t->path('wide-script'), int4_config(), sub {
    int4_of_script($_[0], sub { $_[0] * $between[$_[1] % @between] });
});

same($t->path('wide-script'), $t->path('wide-int4'),
     'of the script, two parts', @tensor);


# dsa quantize

sub quantize {
    my ($in, $out, $limit) = @_;

    # a file that exceeds the limit is an error, as on a full disk

    my $log = $t->path('quantize.log');
    my $rc = system 'bash', '-c', ($limit ? "trap '' XFSZ; ulimit -f $limit; "
                                          : '')
                    . 'exec "$@" > "$0" 2>&1', $log, $dsa, 'quantize',
                    '--in', $in, '--out', $out, '--experts', 'int4';

    return ($rc >> 8, read_file($log));
}


sub contents {
    my ($dir) = @_;

    return { map { m{([^/]*)$}; $1 => read_file($_) } glob "$dir/{*,.??*}" };
}


mkdir $t->path('in') or die;
symlink $_, $t->path('in/' . s{.*/}{}r) or die
    for grep { !/xz$|golden\.safetensors$/ } glob "$model/*";

write_file($t->path('in/tokenizer.json'), 'x' x 6e6);

my $out = $t->path('out');
my ($rc, $log) = quantize($t->path('in'), $out);

is($rc, 0, 'quantized') or diag($log);
like($log, qr/^model-00001-of-00002.safetensors: 1 of 2, \d+ matrices of (?#
             )experts$/m, 'progress');
my ($loss) = $log =~ /changed by ([0-9.]+) % \(root mean square\)/;

my $whole = contents($out);
is(join(' ', sort keys %$whole), 'config.json model-00001-of-00002.safetensors '
   . 'model-00002-of-00002.safetensors model.safetensors.index.json '
   . 'tokenizer.json', 'the files');

my %want = %{json_decode(read_file("$model/config.json"))};
my $config = json_decode($whole->{'config.json'});
my $quantization = delete $config->{quantization_config};

delete $want{quantization_config};
is_deeply($config, \%want, 'config.json');
is_deeply($quantization, { quant_method => 'w4afp8', fmt => 'e4m3',
                           group_size => 128, scale_fmt => 'ue8m0',
                           weight_block_size => [ 128, 128 ],
                           activation_scheme => 'dynamic',
                           moe_activation_scheme => 'dynamic' },
          'quantization_config');

my $index = json_decode($whole->{'model.safetensors.index.json'});
is_deeply($index->{weight_map},
          json_decode(read_file("$model/model.safetensors.index.json"))
          ->{weight_map}, 'the index');

my $raw = DSA::Golden::raw_tensors($out);
my $from = DSA::Golden::raw_tensors($model);

is($index->{metadata}{total_size}, sum0(map { length $_->[2] } values %$raw),
   'total_size');
is(join(' ', sort keys %$raw), join(' ', sort keys %$from), 'the tensors');
is(join(' ', grep { !/\.mlp\.experts\./ && ($raw->{$_}[2] ne $from->{$_}[2]
                    || $raw->{$_}[0] ne $from->{$_}[0]) } keys %$from), '',
   'others are unchanged');


# each group in float64: nearest numbers, and less error than with the scale
# that has the largest weight in its range

my ($error, $weights, $worse, $wrong, $far) = (0) x 5;

for my $name (sort grep { is_expert($_) } keys %$from) {
    my @w = fp8_numbers($from, $name);
    my @q = int4_numbers($raw->{$name}[2]);
    my @scale = DSA::Tensors::from_bytes('BF16',
                                         $raw->{"${name}_scale_inv"}[2]);

    $wrong++ if "@{$raw->{$name}[1]}" ne "$from->{$name}[1][0] "
                                         . $from->{$name}[1][1] / 2;

    for my $g (0 .. $#scale) {
        my @at = $g * 128 .. $g * 128 + 127;
        my $most = max(map { abs } @w[@at]) / 7;
        my ($own, $plain) = (0, 0);

        for (@at) {
            my $d = $w[$_] - $scale[$g] * $q[$_];
            my $r = $w[$_] - $most * sprintf '%.0f', $w[$_] / $most;

            $own += $d * $d;
            $plain += $r * $r;
            $weights += $w[$_] ** 2;

            $far++ if $q[$_] > -8 && $q[$_] < 7
                      && abs($d) > 0.5001 * $scale[$g];
        }

        $error += $own;
        $worse++ if $own > 1.02 * $plain;
    }
}

is($wrong, 0, 'shapes');
is($far, 0, 'the nearest numbers');
is($worse, 0, 'no group has more error than with max / 7');
cmp_ok(abs($loss - 100 * sqrt($error / $weights)), '<', 0.02,
       "the error, $loss %");

int4_in_f32($out, $t->path('f32'));
my $exact = same($out, $t->path('f32'), 'quantized', '--exact');
my ($fp8) = logits($model, '--exact');
my $distance = max(distances($exact->{logits}, $fp8->{logits}));

cmp_ok($distance, '>', 1e-3, 'another model than in FP8');


# the table of docs/engine.md

sub best {
    my ($row) = @_;

    return reduce { $row->[$b] > $row->[$a] ? $b : $a } 0 .. $#$row;
}

my $page = read_file("$DSA::Test::root/docs/engine.md");

for my $name (qw/ a-fp8 glm-5 glm-5.2 v3-wide joyai-wide /) {
    my $fp8 = "$DSA::Test::root/t/data/golden/$name";
    my $int4 = $t->path("$name-int4");
    my ($rc, $log) = quantize(variant_of($fp8, $t->path("$name-in")), $int4);

    is($rc, 0, "$name: quantized") or diag($log);

    my ($loss) = $log =~ /changed by ([0-9.]+) %/;
    my ($one, $two) = map {
        (dsa_logits($dsa, $t->path('got'), $_, "$fp8/golden.safetensors",
                    '--exact'))[0]{logits}
    } $fp8, $int4;

    my @far = distances($two, $one);
    my $same = grep { best($one->[$_]) == best($two->[$_]) } 0 .. $#far;
    my $row = join ' | ', map({ sprintf '%.1f %%', $_ } $loss, map { 100 * $_ }
                              quantile(0.5, @far), quantile(0.9, @far),
                              max(@far)),
                          sprintf('%.0f %%', 100 * $same / @far);

    my ($shown) = $page =~ /^\| `\Q$name\E`[^|]*\| (.*) \|$/m;

    is($shown, $row, "docs/engine.md: $name");
}


# interrupted at each file, and continued: the same bytes

sub incomplete {
    my ($dir, $what) = @_;

    is(join(' ', glob "$dir/*.part"), '', "$what: no part of a file");
    ok(!-e "$dir/config.json", "$what: no config.json");
    my ($none) = logits($dir);
    is($none, undef, "$what: the directory does not load");
}

my $again = $t->path('again');
my $shown = 0;

for (
    [ 1000, qr{/model-00001-of-00002.safetensors.part: File too large$}m ],
    [ 5000, qr{/tokenizer.json: File too large$}m ],
    [ 8, qr{: File too large$}m ],
) {
    my ($limit, $reason) = @$_;

    ($rc, $log) = quantize($t->path('in'), $again, $limit);
    is($rc, 1, "a limit of $limit KB");
    like($log, $reason, 'the reason');
    incomplete($again, "a limit of $limit KB");
}

like($log, qr/^model-00002-of-00002.safetensors: 2 of 2, .* was there$/m,
     'complete files are kept');

($rc, $log) = quantize($t->path('in'), $again);
is($rc, 0, 'continued') or diag($log);
is_deeply(contents($again), $whole, 'the same bytes');


# Killed when the first shard is there.  If this test does not run then, all may
# be there before: several attempts.

my $killed;

for my $n (1 .. 20) {
    $killed = $t->path("killed$n");

    my $pid = open my $pipe, '-|', $dsa, 'quantize', '--in', $t->path('in'),
                   '--out', $killed, '--experts', 'int4' or die "dsa: $!\n";

    while (my $line = <$pipe>) {
        last if $line =~ /1 of 2, \d+ matrices of experts$/;
    }

    kill 'KILL', $pid;
    close $pipe;

    last if !-e "$killed/config.json";
}

ok(-e "$killed/model-00001-of-00002.safetensors", 'killed after a shard');
ok(!-e "$killed/config.json", 'and before the end');

($rc, $log) = quantize($t->path('in'), $killed);
is($rc, 0, 'continued') or diag($log);
is_deeply(contents($killed), $whole, 'the same bytes');


# two at a time

mkdir $t->path('locked') or die;
open my $lock, '<', $t->path('locked') or die "locked: $!\n";
flock $lock, LOCK_EX or die "flock: $!\n";
($rc, $log) = quantize($t->path('in'), $t->path('locked'));
is($rc, 1, 'a directory that another process has locked');
like($log, qr/another process works on this directory$/m, 'the reason');
close $lock;


# a directory of another origin

($rc, $log) = quantize($t->path('in'), $killed);
is($rc, 1, 'a complete directory');
like($log, qr/has the file "[^"]+"; expected an empty directory, or one (?#
             )that this command has not finished$/m, 'the reason');

quantize($t->path('in'), $t->path('begun'), 1000);
($rc, $log) = quantize($t->path('twin-fp8'), $t->path('begun'));
is($rc, 1, 'another checkpoint');
like($log, qr/an earlier run has begun this directory from another (?#
             )checkpoint; expected an empty one, or the same --in$/m,
     'the reason');

write_file($t->path('begun/model-00001-of-00002.safetensors'),
           read_file("$model/model-00002-of-00002.safetensors"));
($rc, $log) = quantize($t->path('in'), $t->path('begun'));
is($rc, 1, 'a shard of another origin');
like($log, qr/the file has other tensors than this command writes; remove (?#
             )it$/m, 'the reason');

($rc, $log) = quantize($model, $model);
is($rc, 1, 'onto itself');
like($log, qr/--in and --out are the same directory; expected two$/m,
     'the reason');

($rc, $log) = quantize($out, $t->path('twice'));
is($rc, 1, 'an INT4 checkpoint');
like($log, qr/the experts are INT4 already; expected a checkpoint with (?#
             )"quant_method": "fp8" in config.json$/m, 'the reason');

($rc, $log) = quantize($t->path('script'), $t->path('twice'));
is($rc, 1, 'one of the script');
like($log, qr/the experts are INT4 already; /, 'the reason');

($rc, $log) = quantize("$DSA::Test::root/t/data/golden/b-bf16",
                       $t->path('bf16'));
is($rc, 1, 'a BF16 checkpoint');
like($log, qr/the experts are not quantized; expected a checkpoint with /,
     'the reason');

my %nan = %$from;
$nan{'model.layers.1.mlp.experts.3.up_proj.weight'}[2] =~ s/^.{77}\K./\x7f/s;
DSA::Golden::raw_model($model, $t->path('nan'), \%nan,
                       { quant_method => 'fp8', activation_scheme => 'dynamic',
                         weight_block_size => [ 128, 128 ] });
($rc, $log) = quantize($t->path('nan'), $t->path('nan-out'));
is($rc, 1, 'a weight that is no number');
like($log, qr/a weight of an expert \[\d+, \d+\] is not a finite number$/m,
     'the reason');
incomplete($t->path('nan-out'), 'it');


# checkpoints that are refused

my $expert = 'model.layers.2.mlp.experts.5.down_proj';
my $n = 0;

for (
    [ {}, 'weight_scale_inv', sub { substr $_[0][2], 6, 2, pack 'v', 0 },
      qr/has the scale 0 at \[\d+, \d+\]; expected a finite number above 0/ ],
    [ {}, 'weight_scale_inv', sub { substr $_[0][2], 6, 2, pack 'v', 0x7f80 },
      qr/has the scale inf at / ],
    [ {}, 'weight_scale_inv', sub { substr $_[0][2], 6, 2, pack 'v', 0x7fc0 },
      qr/has the scale nan at / ],
    [ {}, 'weight_scale_inv', sub { substr $_[0][2], 6, 2, pack 'v', 0xbf80 },
      qr/has the scale -1 at / ],
    [ {}, 'weight_scale_inv', sub { $_[0][0] = 'I8'; $_[0][1][1] *= 2 },
      qr/is I8 \[\d+, \d+\]; expected F32 or BF16 \[/ ],
    [ {}, 'weight_scale_inv', sub { $_[0] = undef }, qr/is missing/ ],
    [ {}, 'weight', sub { $_[0][0] = 'F8_E4M3' },
      qr/is F8_E4M3 \[\d+, \d+\]; expected I8, two INT4 numbers in each, \[/ ],
    [ {}, 'input_scale', sub { $_[0] = [ 'F32', [], pack 'f<', 1 ] },
      qr/is unknown; expected none, because "moe_activation_scheme" of (?#
        )config.json is "dynamic"/ ],
    [ { moe_activation_scheme => 'static' }, '', sub { },
      qr/tensor "[^"]*\.gate_proj\.input_scale" is missing, and so is (?#
        )"[^"]*\.w1\.input_scale"; expected one of them/ ],
) {
    my ($fields, $name, $edit, $reason) = @$_;
    my $dir = $t->path('refused' . $n++);

    int4_twins($model, undef, $dir, int4_config(%$fields), sub {
        my ($raw) = @_;

        $edit->($raw->{"$expert.$name"});
        delete $raw->{"$expert.$name"} if !$raw->{"$expert.$name"}[0];
    });

    my ($got, $why, $status) = logits($dir);

    is($status, 1, "refused: $reason");
    like($why, $reason, 'the reason');
    like($why, qr/\Q$expert.$name\E|input_scale/, 'the tensor');
}

for (0, 'inf', 'nan', -1) {
    my $value = $_;
    my $dir = $t->path('refused' . $n++);

    int4_twins($model, undef, $dir,
               int4_config(moe_activation_scheme => 'static'), sub {
        my ($raw) = @_;

        $raw->{s/weight$/input_scale/r}
            = [ 'F32', [], pack 'f<', /^\Q$expert\E/ ? $value : 0.01 ]
            for grep { is_expert($_) } keys %$raw;
    });

    my ($got, $why, $status) = logits($dir);

    my $of_it = qr/"\Q$expert\E.input_scale" is -?\w+; expected a finite (?#
                  )number above 0/;

    is($status, 1, "refused: a stored scale of $value");
    like($why, $of_it, 'the reason');

    # it is read with the headers, as for a GPU, unlike the scales of weights

    $why = `$dsa fingerprint --model $dir 2>&1`;
    is($? >> 8, 1, "dsa fingerprint: a stored scale of $value");
    like($why, $of_it, 'the reason');
}

# and in the layout of TensorRT-LLM's script

my $other = $expert =~ s/down_proj/w2/r;
my $above = qr/expected a finite number above 0, also when it is rounded to (?#
              )BF16/;

for (
    (map { [ "$expert.weight_scale_inv", $_->[0],
             qr/ has the scale $_->[1] at \[1, 0\]; $above/ ] }
         [ 0, 0 ], [ 'inf', 'inf' ], [ 'nan', '-?nan' ], [ -1, -1 ],
         [ 1e39, 'inf' ], [ 3.4e38, '3\.4e\+38' ],
         [ 2 ** -149, '1\.4013e-45' ], [ 2 ** -134, '4\.59177e-41' ]),
    (map { [ "$other.input_scale", $_,
             qr/ is -?\w+; expected a finite number above 0/ ] }
         0, 'inf', 'nan', -1),
    [ "$other.input_scale", undef,
      qr/ is missing, and so is "\Q$other\E\.input_scale"; expected one of (?#
        )them/, "$expert.input_scale" ],
    [ "$expert.input_scale", 0.01,
      qr/, which is there, too; expected one of them/ ],
) {
    my ($name, $value, $reason, $shown) = @$_;
    my $dir = $t->path('refused' . $n++);
    my $text = $value // 'none';

    $shown //= $name;

    stored($dir =~ s{.*/}{}r, %scale, edit => sub {
        my ($raw) = @_;

        int4_of_script($raw);

        if (!defined $value) {
            delete $raw->{$name} or die "no $name\n";

        } elsif ($name =~ /weight_scale/) {
            substr $raw->{$name}[2], 4, 4, pack 'f<', $value;

        } else {
            $raw->{$name} = [ 'F32', [ 1 ], pack 'f<', $value ];
        }
    });

    my ($got, $why, $status) = logits($dir);

    is($status, 1, "of the script, refused: $name is $text");
    like($why, qr/"\Q$shown\E"$reason/, 'the reason');
}

# its names with scales of activations that are computed, and of other tensors

for ([ 'w1.input_scale', qr/expected none, because "moe_activation_scheme"/ ],
     [ 'w1.weight', qr/expected those of the model/ ])
{
    my ($name, $reason) = @$_;
    my $dir = $t->path('refused' . $n++);

    int4_twins($model, undef, $dir, int4_config(), sub {
        $_[0]{"model.layers.2.mlp.experts.5.$name"}
            = [ 'F32', [ 1 ], pack 'f<', 0.01 ];
    });

    my ($got, $why, $status) = logits($dir);

    is($status, 1, "refused: $name");
    like($why, qr/"[^"]*experts\.5\.\Q$name\E" is unknown; $reason/,
         'the reason');
}


# a quantization that another file than config.json describes

my $bf16 = "$DSA::Test::root/t/data/golden/b-bf16";
my $config_json = qr/"quantization_config" in config\.json, with the (?#
                    )quant_method "fp8" or "w4afp8"$/m;
my $method = qr/expected $config_json/;

$tokens = "$bf16/golden.safetensors";

for (
    [ 'hf_quant_config.json', '{"quantization":{"quant_algo":"W4A8_AWQ"}}',
      qr/: "quantization\.quant_algo" is "W4A8_AWQ"; expected (?#
        )"MIXED_PRECISION", or $config_json/ ],
    [ 'hf_quant_config.json', '{"quantization":{"quant_algo":null}}' ],
    [ 'hf_quant_config.json', '{"producer":{}}' ],
    [ 'hf_quant_config.json', '{"quantization":1}',
      qr/: "quantization" is 1; expected an object$/m ],
    [ 'hf_quant_config.json', '', qr/: the file is empty; / ],
    [ 'quant_config.json', '{"w_bit":4}',
      qr/: the file describes a format of AutoAWQ; $method/ ],
    [ 'quantize_config.json', '{"bits":4}',
      qr/: the file describes a format of AutoGPTQ; $method/ ],
) {
    my ($file, $text, $reason) = @$_;
    my $dir = $t->path('beside' . $n++);

    mkdir $dir or die "mkdir: $!\n";
    symlink $_, "$dir/" . s{.*/}{}r or die "symlink: $!\n"
        for grep { !/xz$/ } glob "$bf16/*";
    write_file("$dir/$file", $text);

    my ($got, $why, $status) = logits($dir);

    is($status, $reason ? 1 : 0, "$file: $text") or diag($why);
    like($why, qr/\Q$file\E$reason/, 'the reason') if $reason;
}

$t->done;
