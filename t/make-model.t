# Copyright (C) The nginx-dsa authors
#
# demo/make-model: it makes the same bytes in every run, a checkpoint in the
# published layout with weights of the intended sizes, and a working tokenizer.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Test;
use Digest::SHA qw/ sha256_hex /;
use Test::More;

my $t = DSA::Test->new('make-model');
my $dir = $t->path('model');
my $made = $t->model;

is(system($^X, "$DSA::Test::root/demo/make-model", $dir), 0, 'runs');

my @files = sort map { s{.*/}{}r } glob "$dir/*";

is_deeply(\@files, [qw/ config.json generation_config.json
                        model-00001-of-000002.safetensors
                        model-00002-of-000002.safetensors
                        model.safetensors.index.json tokenizer.json /],
          'files');

is(sha256_hex(read_file("$dir/$_")), sha256_hex(read_file("$made/$_")),
   "$_ is the same in every run") for @files;

my $size = 0;
$size += -s "$dir/$_" for @files;
cmp_ok($size, '<', 8e6, 'small');

my $config = json_decode(read_file("$dir/config.json"));
my $index = json_decode(read_file("$dir/model.safetensors.index.json"));

is($config->{model_type}, 'deepseek_v32', 'model_type');
is_deeply([@$config{qw/ kv_lora_rank qk_rope_head_dim qk_nope_head_dim
                        v_head_dim index_head_dim index_topk /}],
          [512, 64, 128, 128, 128, 64], 'head geometry and selection');

# the value of each byte of e4m3, by its definition

my @e4m3 = map {
    my ($e, $m) = ($_ >> 3 & 15, $_ & 7);
    my $x = $e ? (1 + $m / 8) * 2 ** ($e - 7) : $m / 8 * 2 ** -6;
    $_ & 0x80 ? -$x : $x;
} 0 .. 255;

my %bytes = (F32 => 4, BF16 => 2, F8_E4M3 => 1);
my ($total, %tensor) = (0);

for my $file (grep { /\.safetensors$/ } @files) {
    my $data = read_file("$dir/$file");
    my $n = unpack 'Q<', $data;
    my $header = json_decode(substr $data, 8, $n);

    delete $header->{__metadata__};

    for my $name (keys %$header) {
        my ($from, $to) = @{ $header->{$name}{data_offsets} };

        $tensor{$name} = { %{ $header->{$name} }, file => $file,
                           data => substr($data, 8 + $n + $from,
                                          $to - $from) };
        $total += $to - $from;
    }
}

is($index->{metadata}{total_size}, $total, 'total_size');
is_deeply($index->{weight_map},
          { map { $_ => $tensor{$_}{file} } keys %tensor }, 'weight_map');

my (@size, @nan, @scale, @full, @spread);

for my $name (sort keys %tensor) {
    my ($w, $rows, $cols) = ($tensor{$name}, @{ $tensor{$name}{shape} });

    push @size, $name if length $w->{data}
                         != $rows * ($cols || 1) * $bytes{$w->{dtype}};

    next if $w->{dtype} ne 'F8_E4M3';

    my $s = $tensor{"${name}_scale_inv"};
    my $across = int(($cols + 127) / 128);
    my @s = unpack 'f<*', $s->{data};

    push @scale, $name if $s->{dtype} ne 'F32'
                          || "@{ $s->{shape} }" ne int(($rows + 127) / 128)
                                                   . " $across"
                          || grep { $_ <= 0 || unpack('L', pack 'f', $_)
                                               & 0x7fffff } @s;

    push @nan, $name if $w->{data} =~ /[\x7f\xff]/;

    # a block uses the range of e4m3, and its weights have the intended size

    my (@most, $sum);

    for my $r (0 .. $rows - 1) {
        my @x = @e4m3[unpack 'C*', substr $w->{data}, $r * $cols, $cols];

        for my $b (0 .. $across - 1) {
            my $i = int($r / 128) * $across + $b;

            for (@x[$b * 128 .. $b * 128 + 127]) {
                $most[$i] = abs $_ if abs $_ > ($most[$i] || 0);
                $sum += ($_ * $s[$i]) ** 2;
            }
        }
    }

    push @full, $name if grep { $_ <= 224 || $_ > 448 } @most;

    my $spread = sqrt($sum / $rows / $cols) * sqrt $cols;
    $spread *= 4 if $name =~ /\.(?:o|down)_proj\./;
    push @spread, "$name $spread" if $spread < 0.35 || $spread > 2.9;
}

is("@size", '', 'every tensor has the bytes of its shape');
is("@scale", '', 'every FP8 tensor has powers of two for its blocks');
is("@nan", '', 'every weight is a number');
is("@full", '', 'every block uses the range of e4m3');
is("@spread", '', 'weights keep the size of their input');

# the tokenizer, by its file

my $tokenizer = json_decode(read_file("$dir/tokenizer.json"));
my %id = map { $_->{content} => $_->{id} } @{ $tokenizer->{added_tokens} };

is($id{"<｜begin▁of▁sentence｜>"}, $config->{bos_token_id}, 'BOS');
is($id{"<｜end▁of▁sentence｜>"}, $config->{eos_token_id}, 'EOS');
ok(exists $id{$_}, $_ =~ s/[^ -~]/?/gr)
    for '<think>', '</think>', '<｜User｜>', '<｜Assistant｜>', '｜DSML｜',
        '<｜▁pad▁｜>', '<｜fim▁hole｜>', '<｜tool▁sep｜>';

my $n = keys %{ $tokenizer->{model}{vocab} };

cmp_ok($n, '<', $config->{vocab_size}, 'each entry has an embedding');
is_deeply([sort { $a <=> $b } values %{ $tokenizer->{model}{vocab} }],
          [0 .. $n - 1], 'no id is missing');

my $text = "<｜User｜>The small river follows the old road, doesn't it?\n"
           . "Ünïcode 12345 中文 😀<｜Assistant｜></think>";
my $in = $t->path('in');

write_file($in, json_encode($text) . "\n");

my $dsa = $t->build . '/dsa';
my $file = "$dir/tokenizer.json";
my $ids = `"$dsa" tokenize --tokenizer "$file" --special --jsonl < "$in"`;
is($?, 0, 'tokenize');

my @ids = @{ json_decode($ids) };

is($ids[0], $id{'<｜User｜>'}, 'a control token is one token');
is_deeply([@ids[-2, -1]], [@id{'<｜Assistant｜>', '</think>'}], 'two of them');
cmp_ok(scalar @ids, '<', 50, 'words are tokens');

write_file($in, $ids);

my $back = `"$dsa" detokenize --tokenizer "$file" --jsonl < "$in"`;
is(json_decode($back), $text, 'and back');

# the loader and the forward pass of the engine run it

my $out = `"$dsa" generate --model "$dir" --ids "0 5 7" -n 4 --greedy 2>&1`;
is($?, 0, 'generate') or diag($out);

$t->done;
