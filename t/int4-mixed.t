# Copyright (C) The nginx-dsa authors
#
# Checkpoints with INT4 experts as TensorRT-LLM's script writes them: without a
# quantization_config, with hf_quant_config.json and quant_cfg.json, with scales
# of activations in two files, and with an index that names tensors of a layer
# that is not there.  They have the logits of the same tensors with a
# quantization_config; all else is refused.

use strict;
use warnings;

use Digest::SHA qw/ sha256 sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Golden;
use DSA::Int4;
use DSA::Test;

my $t = DSA::Test->new('int4-mixed');
my $dsa = $t->build . '/dsa';
my $model = "$DSA::Test::root/t/data/golden/a-fp8";
my $tokens = "$model/golden.safetensors";
my $n = 0;

my $hf = { quantization => { quant_algo => 'MIXED_PRECISION',
                             kv_cache_quant_algo => undef } };
my $fp8 = { quant_algo => 'FP8_BLOCK_SCALES' };
my $int4 = { quant_algo => 'W4A8_AWQ' };


# What the script writes for a model of 3 layers, of which the first is dense.

sub layers {
    my (%change) = @_;

    my %layers;

    for my $l (0 .. 2) {
        my $name = "model.layers.$l";

        $layers{"$name.self_attn.$_"} = $fp8
            for qw/ fused_a q_b_proj kv_b_proj o_proj /;
        $layers{"$name.mlp.shared_experts.$_"} = $fp8
            for qw/ gate_up_proj down_proj /;
        $layers{"$name.mlp.experts"} = $int4 if $l > 0;
    }

    $layers{"model.layers.0.mlp.$_"} = $fp8 for qw/ gate_up_proj down_proj /;

    my %all = (%layers, %change);

    return { quant_algo => 'MIXED_PRECISION', kv_cache_quant_algo => undef,
             quantized_layers => { map { $_ => $all{$_} }
                                   grep { !defined $all{$_}
                                          || $all{$_} ne 'none' }
                                   keys %all } };
}


# The tensors in a new directory, with or without a quantization_config.

sub make {
    my ($config, $edit) = @_;

    my $dir = $t->path('model' . $n++);

    int4_twins($model, undef, $dir, $config, sub {
        my ($raw) = @_;

        my $number = 0;

        for (sort grep { is_expert($_) } keys %$raw) {
            $raw->{s/weight$/input_scale/r}
                = [ 'F32', [ 1 ], pack 'f<', 2 ** (/down_proj/ ? -2 : -4)
                                             / (1 + $number++ % 3) ];
        }

        int4_of_script($raw);
        $edit->($raw) if $edit;
    });

    return $dir;
}


# Another directory with the same weights and these two files beside them: text,
# what is encoded, or undef for none.

my $plain = make();

sub beside {
    my ($one, $two, $config) = @_;

    my $dir = $t->path('beside' . $n++);

    mkdir $dir or die "mkdir: $!\n";
    symlink "$plain/model.safetensors", "$dir/model.safetensors"
        or die "symlink: $!\n";
    write_file("$dir/config.json", $config // read_file("$plain/config.json"));
    describe($dir, $one, $two);

    return $dir;
}


sub describe {
    my ($dir, @files) = @_;

    for my $name ('hf_quant_config.json', 'quant_cfg.json') {
        my $file = shift @files;

        write_file("$dir/$name", ref $file ? json_encode($file) : $file)
            if defined $file;
    }

    return $dir;
}


sub logits {
    my ($dir, @args) = @_;

    return dsa_logits($dsa, $t->path('got'), $dir, $tokens, @args);
}


sub same { dsa_same($dsa, $t->path('got'), $tokens, @_) }


sub refused {
    my ($dir, $reason, $what) = @_;

    my ($got, $why, $status) = logits($dir);

    is($status, 1, "refused: $what");
    like($why, $reason, 'the reason');
}


# the same numbers as with a quantization_config

my $stored = make({ quant_method => 'w4afp8' });
my $mixed = beside($hf, layers());

same($mixed, $stored, "MIXED_PRECISION @$_", @$_)
    for [], ['--exact'], ['--gpus', 4, '--attention', 'data'];

for (
    [ $hf, layers('model.layers.1.mlp.experts'
                  => { %$int4, group_size => 128, has_zero_point => undef,
                       pre_quant_scale => json_decode('false') },
                  'model.layers.2.self_attn.o_proj'
                  => { %$fp8, group_size => 128 }),
      'with the fields that other tools write' ],
    [ $hf, layers('model.layers.3.mlp.experts' => $fp8),
      'experts of the draft layer in FP8' ],
    [ $hf, layers('model.layers.3.mlp.experts' => $int4),
      'and in INT4' ],
    [ '{"quantization":{"quant_algo":"MIXED_PRECISION"},"was":null}',
      { map { $_ => layers()->{$_} } qw/ quant_algo quantized_layers / },
      'without the format of the cache' ],
) {
    my ($one, $two, $what) = @$_;

    same(beside($one, $two), $stored, $what);
}

# a quantization_config counts alone

same(describe(make({ quant_method => 'w4afp8' }), $hf, '{'), $stored,
     'with a quantization_config');


# the fingerprint covers what was read

sub fingerprint {
    my ($dir) = @_;

    my ($line) = `$dsa fingerprint --model $dir 2>&1` =~ /^(\w{64})$/m;

    return $line;
}

sub expected {
    my ($dir) = @_;

    my $data = read_file("$dir/model.safetensors");
    my $leaves = join '', map { sha256($_) } unpack '(a8388608)*', $data;

    return sha256_hex(sha256(join '', map { read_file("$dir/$_") }
                                      qw/ config.json hf_quant_config.json
                                          quant_cfg.json /)
                      . pack('Q< Q</a* Q<', 1, 'model.safetensors',
                             length $data) . $leaves);
}

my $fields = beside($hf, layers('model.layers.1.mlp.experts'
                                => { %$int4, group_size => 128 }));

is(fingerprint($mixed), expected($mixed), 'the fingerprint');
is(fingerprint($fields), expected($fields), 'of another quant_cfg.json');
isnt(expected($mixed), expected($fields), 'they differ');


# The files of the script, in two parts: the scales are in the first one and in
# the file from which they came, and the index names those of a draft layer, in
# a part that is there and in one that is not.

sub parts {
    my ($config, $edit, $index_edit) = @_;

    my $dir = $t->path('parts' . $n++);
    my $raw = DSA::Golden::raw_tensors($plain);
    my (%part, %index);

    for my $name (keys %$raw) {
        my $file = $name =~ /^model\.layers\.2\./
                   ? 'model-00001-of-00002.safetensors'
                   : 'model-00000-of-00002.safetensors';

        if ($name =~ /\.input_scale$/) {
            $part{'model-00000-of-00002.safetensors'}{$name} = $raw->{$name};
            $file = 'act_scales.safetensors';
        }

        $part{$file}{$name} = $raw->{$name};
        $index{$name} = $file;
    }

    $index{'model.layers.3.enorm.weight'} = 'model-00001-of-00002.safetensors';
    $index{'model.layers.3.hnorm.weight'} = 'model-00002-of-00002.safetensors';
    $index{'model.layers.10.hnorm.weight'} = 'model-00002-of-00002.safetensors';

    $edit->(\%part) if $edit;
    $index_edit->(\%index) if $index_edit;

    mkdir $dir or die "mkdir: $!\n";
    DSA::Golden::raw_file("$dir/$_", $part{$_}) for keys %part;
    write_file("$dir/model.safetensors.index.json",
               json_encode({ metadata => {}, weight_map => \%index }));

    my $text = json_decode(read_file("$plain/config.json"));

    $text->{num_nextn_predict_layers} = 1;
    $text->{quantization_config} = $config if $config;
    write_file("$dir/config.json", json_encode($text));

    return describe($dir, $hf, layers());
}

my $scale = 'model.layers.1.mlp.experts.3.w2.input_scale';
my $group = 'model.layers.1.mlp.experts.3.up_proj.weight_scale_inv';
my ($first, $given) = ('model-00000-of-00002.safetensors',
                       'act_scales.safetensors');

same(parts(), $stored, 'the files of the script');
same(parts({ quant_method => 'w4afp8' }), $stored,
     'the files of the script with a quantization_config');

# a draft layer with experts in FP8 is not used

same(parts(undef, sub {
    my $raw = DSA::Golden::raw_tensors($model);

    $_[0]{$first}{s/layers\.2/layers.3/r} = $raw->{$_}
        for grep { /^model\.layers\.2\./ } keys %$raw;
}), $stored, 'a draft layer in FP8');

my ($none, $why) = logits(parts(), '--drafts', 1);

is($none, undef, 'no drafts');
like($why, qr/tensor "model\.layers\.3\.[^"]*" is missing/, 'the reason');

for (
    [ undef, sub { $_[0]{$given}{$scale} = [ 'F32', [ 1 ], pack 'f<', 3 ] },
      undef, qr/: tensor "\Q$scale\E" is in two files$/m,
      'two scales of one matrix' ],
    [ undef, sub { $_[0]{$given}{$scale} = [ 'BF16', [ 1 ], "\x80\x3f" ];
                   $_[0]{$first}{$scale} = [ 'F16', [ 1 ], "\x80\x3f" ] },
      undef, qr/: tensor "\Q$scale\E" is in two files$/m,
      'of two dtypes' ],
    [ undef, sub { $_->{$scale} = [ 'F32', [ 2 ], pack 'f<*', 1, 1 ]
                       for @{$_[0]}{$given, $first} },
      undef, qr/: tensor "\Q$scale\E" is in two files$/m,
      'scales of two numbers' ],
    [ undef, sub { $_[0]{$given}{$group} = $_[0]{$first}{$group} },
      undef, qr/: tensor "\Q$group\E" is in two files$/m,
      'another tensor in two files' ],
    [ undef, undef, sub { $_[0]{'model.layers.2.zzz'} = $first },
      qr/: tensor "model\.layers\.2\.zzz" is not in file "\Q$first\E", which (?#
        )model\.safetensors\.index\.json names for it$/m,
      'a tensor of the model that is not where the index says' ],
    (map { my $name = $_;
           [ undef, undef, sub { $_[0]{$name} = $first },
             qr/: tensor "\Q$name\E" is not in file /, "not a layer: $name" ] }
     'model.layers.3', 'model.layers.3x.a', 'model.layers..a',
     'model.layers.4294967299.a', 'model.layer.3.a'),
    [ undef, undef, sub { $_[0]{'model.layers.2.zzz'} = 'zzz' },
      qr/: file "zzz" is missing, which /, 'a missing file of the model' ],
    [ int4_config(), sub { delete $_[0]{$given};
                           delete @{$_[0]{$first}}{grep { /input_scale/ }
                                                   keys %{$_[0]{$first}}} },
      sub { delete @{$_[0]}{grep { /input_scale|layers\.10/ } keys %{$_[0]}};
            $_[0]{'model.layers.3.hnorm.weight'} = $first },
      qr/: tensor "model\.layers\.3\.[eh]norm\.weight" is not in file /,
      'a draft layer with scales of activations that are computed' ],
) {
    my ($config, $edit, $index_edit, $reason, $what) = @$_;

    refused(parts($config, $edit, $index_edit), $reason, $what);
}

refused(describe(make(undef, sub {
            $_[0]{'model.layers.2.mlp.experts.5.up_proj.pre_quant_scale'}
                = [ 'BF16', [ 256 ], "\x80\x3f" x 256 ];
        }), $hf, layers()),
        qr/"model\.layers\.2\.mlp\.experts\.5\.up_proj\.pre_quant_scale" is (?#
          )unknown; expected those of the model/, 'scales of columns');


# what hf_quant_config.json may have

my $instead = qr/"quantization_config" in config\.json, with the (?#
                )quant_method "fp8" or "w4afp8"$/m;
my $deep = '[' x 100;

sub hf {
    my (%fields) = @_;

    return { quantization => { %{$hf->{quantization}}, %fields } };
}

for (
    [ hf(quant_algo => 'NVFP4'),
      qr/"quantization\.quant_algo" is "NVFP4"; expected (?#
        )"MIXED_PRECISION", or $instead/ ],
    [ hf(quant_algo => 5), qr/"quantization\.quant_algo" is 5; / ],
    [ hf(quant_algo => [ 'MIXED_PRECISION' ]),
      qr/"quantization\.quant_algo" is \["MIXED_PRECISION"\]; / ],
    [ hf(kv_cache_quant_algo => 'FP8'),
      qr/"quantization\.kv_cache_quant_algo" is "FP8"; expected null$/m ],
    [ hf(quantized_layers => {}),
      qr/"quantization\.quantized_layers" is not a supported field; (?#
        )expected quant_algo, kv_cache_quant_algo$/m ],
    [ { %$hf, producer => {} },
      qr/"producer" is not a supported field; expected quantization$/m ],
    [ { quantization => [] }, qr/"quantization" is \[\]; expected an object/ ],
    [ '[]', qr/the text is not a JSON object$/m ],
    [ '', qr/the file is empty; / ],
    [ '{', qr/truncated: / ],
    [ "{\"quantization\":$deep", qr/not JSON: .* nested too deeply / ],
    [ '{"quantization":{"quant_algo":"MIXED_PRECISION","quant_algo":null}}',
      qr/not JSON: the name "quant_algo" is repeated / ],
    [ json_encode($hf) . ' ' x (16 << 20), qr/ 16777216 / ],
) {
    my ($one, $reason) = @$_;

    refused(beside($one, layers()), qr/hf_quant_config\.json: .*$reason/,
            'hf_quant_config.json: ' . substr ref $one ? json_encode($one)
                                                       : $one, 0, 80);
}

my $without = beside($hf);

refused($without, qr{\Q$without\E/hf_quant_config\.json: (?#
        )"quantization\.quant_algo" is "MIXED_PRECISION", and (?#
        )quant_cfg\.json is missing; expected that file, or $instead},
        'no quant_cfg.json');

for ([ 'hf_quant_config.json', undef, layers() ],
     [ 'quant_cfg.json', $hf, undef ])
{
    my ($name, @files) = @$_;
    my $dir = beside(@files);

    symlink "$dir/nothing", "$dir/$name" or die "symlink: $!\n";
    refused($dir, qr{\Q$dir/$name\E: No such file or directory$}m,
            "a link to a missing $name");
}

refused(beside($hf, layers(), read_file("$plain/config.json")
               =~ s/("moe_intermediate_size" *: *)128/${1}192/r),
        qr/config\.json: "moe_intermediate_size" is 192; expected a multiple (?#
          )of 128, the columns of a scale of INT4 experts$/m,
        'groups with a remainder');


# and quant_cfg.json

my $of = 'quantized_layers.model.layers.';
my $experts = 'model.layers.1.mlp.experts';
my ($yes) = @{json_decode('[true]')};

for (
    [ layers($experts => { quant_algo => 'W4A16_AWQ' }),
      qr/"${of}1\.mlp\.experts\.quant_algo" is "W4A16_AWQ"; expected (?#
        )"W4A8_AWQ"$/m ],
    [ layers($experts => $fp8),
      qr/"${of}1\.mlp\.experts\.quant_algo" is "FP8_BLOCK_SCALES"; expected (?#
        )"W4A8_AWQ"$/m ],
    [ layers($experts => 'none'),
      qr/"${of}1\.mlp\.experts\.quant_algo" is missing; expected (?#
        )"W4A8_AWQ"$/m ],
    [ layers($experts => {}),
      qr/"${of}1\.mlp\.experts\.quant_algo" is missing; expected / ],
    [ layers($experts => { %$int4, group_size => 64 }),
      qr/"${of}1\.mlp\.experts\.group_size" is 64; expected 128$/m ],
    [ layers($experts => { %$int4, has_zero_point => $yes }),
      qr/"${of}1\.mlp\.experts\.has_zero_point" is true; expected false$/m ],
    [ layers($experts => { %$int4, pre_quant_scale => $yes }),
      qr/"${of}1\.mlp\.experts\.pre_quant_scale" is true; expected false$/m ],
    [ layers($experts => { %$int4, bits => 4 }),
      qr/"${of}1\.mlp\.experts\.bits" is not a supported field; expected (?#
        )quant_algo, group_size, has_zero_point, pre_quant_scale$/m ],
    [ layers($experts => 'W4A8_AWQ'),
      qr/"${of}1\.mlp\.experts" is "W4A8_AWQ"; expected an object$/m ],
    [ layers($experts => undef),
      qr/"${of}1\.mlp\.experts" is null; expected an object$/m ],
    [ layers('model.layers.2.self_attn.o_proj' => $int4),
      qr/"${of}2\.self_attn\.o_proj\.quant_algo" is "W4A8_AWQ"; expected (?#
        )"FP8_BLOCK_SCALES"$/m ],
    [ layers('model.layers.2.self_attn.o_proj' => {}),
      qr/"${of}2\.self_attn\.o_proj\.quant_algo" is missing; expected / ],
    [ layers('model.layers.3.mlp.experts' => { quant_algo => 'NVFP4' }),
      qr/"${of}3\.mlp\.experts\.quant_algo" is "NVFP4"; expected / ],
    [ layers("a\n" . 'b' x 400 => $int4),
      qr/"quantized_layers\.a\\x0Ab+\.quant_algo" is "W4A8_AWQ"; /i ],
    [ { %{layers()}, quant_algo => 'W4A8_AWQ' },
      qr/"quant_algo" is "W4A8_AWQ"; expected "MIXED_PRECISION"$/m ],
    [ { %{layers()}, quant_algo => undef },
      qr/"quant_algo" is missing; expected "MIXED_PRECISION"$/m ],
    [ { %{layers()}, kv_cache_quant_algo => 'FP8' },
      qr/"kv_cache_quant_algo" is "FP8"; expected null$/m ],
    [ { %{layers()}, exclude_modules => [] },
      qr/"exclude_modules" is not a supported field; expected quant_algo, / ],
    [ { %{layers()}, quantized_layers => [] },
      qr/"quantized_layers" is \[\]; expected an object$/m ],
    [ { %{layers()}, quantized_layers => undef },
      qr/"quantized_layers" is missing; expected an object of names of (?#
        )modules and objects$/m ],
    [ '[]', qr/the text is not a JSON object$/m ],
    [ '', qr/the file is empty; / ],
    [ "{\"quantized_layers\":$deep", qr/not JSON: .* nested too deeply / ],
    [ json_encode(layers()) . ' ' x (1 << 20), qr/ 1048576 / ],
) {
    my ($two, $reason) = @$_;

    refused(beside($hf, $two), qr/quant_cfg\.json: .*$reason/,
            'quant_cfg.json: ' . ($reason =~ s/^\(\?\^\w*:|\\//gr));
}

$t->done;
