# Copyright (C) The nginx-dsa authors
#
# "dsa-engine -t" prints the plan of GPU memory from config.json alone.  The
# weights of the published DeepSeek-V3.2 are computed here from its model
# config.  No GPU is visible to the program, also where there are some.

use strict;
use warnings;

use JSON::PP ();

use lib 't/lib';
use DSA::Test;
use DSA::Weights;
use Test::More;

$ENV{CUDA_VISIBLE_DEVICES} = '';

my $t = DSA::Test->new('plan');

my $v32 = $t->path('v32');
my $small = $t->model;

mkdir $v32 or die "mkdir: $!\n";
write_file("$v32/config.json",
           read_file("$DSA::Test::root/bench/v3.2/config.json"));
write_file("$v32/tokenizer.json", read_file("$small/tokenizer.json"));
sparse_weights($v32);


# (exit status, output) of dsa-engine -t with more arguments

sub check {
    my ($model, $text, @args) = @_;

    # there is no chat_template.jinja by which the engine finds the format

    my $format = $model =~ /glm52$/ ? 'prompt_format glm-5.2; '
                 : $model =~ /(?:dense|no_q)$/ ? 'prompt_format deepseek-v3; '
                 : '';

    my $conf = write_file($t->path('engine.conf'),
                          "model $model; listen unix:" . $t->path('%n.sock')
                          . "; $format$text");

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
        $t->build . '/dsa-engine', '-t', @args, '-c', $conf
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


# on the CPU there is no plan, but the model must have equal parts

my ($rc, $out) = check($small, 'gpus 4;');
is($rc, 0, 'cpu: 4 ranks');
like($out, qr/\Adsa-engine: configuration file \S+ is valid\n\z/, 'one line');

($rc, $out) = check($small, 'gpus 3;');
is($rc, 1, 'cpu: 3 ranks');
is($out, "dsa-engine: 8 experts cannot be shared out equally to 3 GPUs; "
         . "expected a number of GPUs that divides \"n_routed_experts\" of "
         . "config.json\n", 'the reason');

($rc, $out) = check($small, 'gpus 2; attention tensor;');
is($rc, 1, 'cpu: 2 ranks with attention tensor');
like($out, qr/"moe_intermediate_size" is 128 and cannot be split over 2 GPUs/,
     'the reason');

is((check($small, 'backend null; gpus 3;'))[0], 0, 'null: 3 ranks');


# Host memory: a page of 64 tokens has 656 + 132 bytes of each token and layer,
# or 4 bytes of each element, and begins at a multiple of 4096.  The one of the
# null backend has 64 bytes.

my ($layers) = read_file("$small/config.json")
               =~ /"num_hidden_layers":\s*(\d+)/;

sub holds {
    my ($what, $model, $text, $page, $memory) = @_;

    my ($rc, $out) = check($model, "$text host_memory $memory;");
    my $slots = int($memory / (4096 * int(($page + 4095) / 4096)));

    is($rc, 0, $what);
    like($out, qr{^dsa-engine:\ host\ memory:
                  \ \Q${\ sprintf('%.2f', $memory * 1e-9)}\E\ GB,
                  \ $slots\ pages\ of\ 64\ tokens\ with
                  \ \Q${\ sprintf('%.2f', $page * 1e-6)}\E\ MB\ each,
                  \ \Q${\ sprintf('%.2f', $slots * 64e-6)}\E\ M\ tokens\ of
                  \ KV$}mx, "$what: its tokens");
}

my $small_page = 64 * (656 + 132) * $layers;

holds('cpu', $small, '', $small_page, 1_000_000_000);
holds('cpu, precision exact', $small, 'precision exact;',
      64 * (512 + 64 + 128) * 4 * $layers, 1_000_000_000);
holds('cpu, the published model', $v32, 'speculate off;',
      64 * (656 + 132) * 61, 1_000_000_000);

# the draft layer, and the hidden state of the last token in bfloat16

holds('cpu, with its draft layer', $v32, '', 64 * (656 + 132) * 62 + 2 * 7168,
      1_000_000_000);
holds('cpu, one page', $small, '', $small_page, 4096 * 75);
holds('null', $small, 'backend null;', 64, 4_096_000);

($rc, $out) = check($small, 'replicas 2; host_memory 1g;');
is($rc, 0, 'host memory of two replicas');
like($out, qr/^dsa-engine: replica $_: host memory: 1\.07 GB, /m,
     "of replica $_") for 0, 1;

($rc, $out) = check($small, 'host_memory 100k;');
is($rc, 1, 'host memory below a page');
like($out, qr/"host_memory" is 102400 bytes; expected at least one page, \d+/,
     'the reason');


# A model with the config.json of DeepSeek-V3.2 and other fields, undef removing
# one; there are no weights.

sub variant {
    my ($name, %fields) = @_;

    my $dir = $t->path($name);
    my $json = JSON::PP->new->canonical;
    my $config = $json->decode(read_file("$v32/config.json"));

    for my $field (keys %fields) {
        delete $config->{$field};
        $config->{$field} = $fields{$field} if defined $fields{$field};
    }

    mkdir $dir or die "mkdir: $!\n";
    write_file("$dir/config.json", $json->encode($config));
    write_file("$dir/tokenizer.json", read_file("$small/tokenizer.json"));

    return $dir;
}


# Layers without indexers of their own have no index keys: of the 61 layers, 0,
# 1, 2, 6, 10, ... 58 have them.

my %glm = (index_topk_freq => 4, index_skip_topk_offset => 3);
my $glm = variant('glm', %glm);
my $dense = variant('dense', model_type => 'deepseek_v3');

for ([ $glm, 656 * 61 + 132 * 17, 'shared selections' ],
     [ $dense, 656 * 61, 'no indexers' ])
{
    my ($model, $bytes, $name) = @$_;

    my (undef, $out) = check($model, 'speculate off; host_memory 1g;');

    like($out, qr/with ${\ sprintf '%.2f', 64e-6 * $bytes} MB each/,
         "$name: the size of a page");
}

my $cuda = 'backend cuda; weights random; speculate off;';

($rc, $out) = check($v32, $cuda);

if ($out =~ /built without nvcc/) {
    $t->done;
    exit;
}


# The CUDA backend refuses a model by what it does not implement.

for (
    [ variant('rope', qk_rope_head_dim => 32),
      '"qk_rope_head_dim" is 32; "backend cuda" expects 64' ],
    [ variant('nope', qk_nope_head_dim => 192),
      '"qk_nope_head_dim" is 192 and "v_head_dim" is 128; "backend cuda" '
      . 'expects 128 and 128, or 192 and 256' ],
    [ variant('v', v_head_dim => 256),
      '"qk_nope_head_dim" is 128 and "v_head_dim" is 256; "backend cuda" '
      . 'expects 128 and 128, or 192 and 256' ]
) {
    my ($model, $reason) = @$_;

    my ($rc, $out) = check($model, $cuda);

    is($rc, 1, "refused: $reason");
    like($out, qr/\Q$reason\E$/m, 'with the reason');
}


# Bytes of an FP8 matrix with a float32 scale for each 128 x 128 block, and of
# a BF16 one.

sub fp8 {
    my ($rows, $cols) = @_;

    return $rows * $cols
           + 4 * int(($rows + 127) / 128) * int(($cols + 127) / 128);
}


sub bf16 { 2 * $_[0] * $_[1] }


# And of an INT4 one, with a BF16 scale for 128 columns of a row.

sub int4 { $_[0] * $_[1] / 2 + 2 * $_[0] * $_[1] / 128 }


# The sizes of DeepSeek-V3.2 and of GLM-5.2: layers, those of them with an
# indexer, width, heads, columns of a query without RoPE and of a value, rank of
# the queries, heads of the indexer, width of the MLP of the first 3 layers, and
# vocabulary.  The other layers have 256 experts and a shared one of width 2048.

my %v32 = (layers => 61, indexers => 61, hidden => 7168, heads => 128,
           nope => 128, v => 128, lora => 1536, index => 64, mlp => 18432,
           vocab => 129280);
my %glm52 = (layers => 78, indexers => 21, hidden => 6144, heads => 64,
             nope => 192, v => 256, lora => 2048, index => 32, mlp => 12288,
             vocab => 154880);


# Bytes of a model on one of $n GPUs.

sub weights {
    my ($n, $tensor, %m) = @_;

    my $hidden = $m{hidden};
    my $heads = $tensor ? $m{heads} / $n : $m{heads};
    my $part = $tensor ? 1 / $n : 1;
    my $mlp = sub { my ($width, $size) = ($_[0] * $part, $_[1] // \&fp8);
                    2 * $size->($width, $hidden)
                    + $size->($hidden, $width) };
    my $experts = $tensor ? 256 : 256 / $n;

    # queries, latents and index keys of the hidden state begin at multiples
    # of 128 rows; kv_b is there in BF16 as well

    my $attention = fp8($m{lora} + 576, $hidden)
                    + fp8($heads * ($m{nope} + 64), $m{lora})
                    + fp8($heads * ($m{nope} + $m{v}), 512)
                    + bf16($heads * ($m{nope} + $m{v}), 512)
                    + fp8($hidden, $heads * $m{v});
    my $indexer = fp8($m{index} * 128, $m{lora}) + bf16($m{index}, $hidden)
                  + fp8(64 + 128, $hidden) + 4 * 2 * 128;
    my $norms = 4 * (2 * $hidden + $m{lora} + 512);
    my $moe = bf16(256, $hidden) + 4 * 256 + $mlp->(2048)
              + $experts * $mlp->(2048, $m{experts});

    return $m{layers} * ($attention + $norms) + $m{indexers} * $indexer
           + 3 * $mlp->($m{mlp}) + ($m{layers} - 3) * $moe + 4 * $hidden
           + 2 * bf16($m{vocab} * $part, $hidden);
}


# The draft layer beside them, which has an indexer of its own.

sub draft_layer {
    my ($n, $tensor, %m) = @_;

    my $more = weights($n, $tensor, %m, layers => $m{layers} + 1,
                       indexers => $m{indexers} + 1);

    return $more - weights($n, $tensor, %m) + 4 * 3 * $m{hidden}
           + bf16($m{hidden}, 2 * $m{hidden});
}


sub weighs {
    my ($n, $attention, $model, %m) = @_;

    my $speculate = $m{speculate} // 'off';
    my $name = "$n with attention $attention, $m{layers} layers, heads of "
               . "$m{nope} and $m{v}, speculate $speculate";
    my ($rc, $out) = check($model, "backend cuda; weights random; gpus $n; "
                                   . "attention $attention; context_length "
                                   . "65536; speculate $speculate;");
    my @of = ($n, $attention eq 'tensor', %m);
    my $want = weights(@of) * 1e-9;

    $want += draft_layer(@of) * 1e-9 if $speculate ne 'off';

    my ($sum, $parts) = $out =~ /([\d.]+) GB = (weights .*?), and what/;
    my ($weights) = $parts =~ /weights ([\d.]+)/;

    cmp_ok(abs($weights - $want), '<', 0.011,
           sprintf('%s: %.2f GB of weights', $name, $want)) or diag($out);

    $sum -= $_ for $parts =~ /([\d.]+)/g;
    cmp_ok(abs($sum), '<', 0.03, "$name: the sum") or diag($out);
}


# Models without an indexer have latents in BF16 unless they are to be FP8.

for (['', 1152], ['kv fp8;', 656], ['kv bf16;', 1152]) {
    my ($kv, $bytes) = @$_;

    (undef, $out) = check($dense, "$cuda gpus 8; $kv host_memory 1g;");
    like($out, qr/with ${\ sprintf '%.2f', 64e-6 * $bytes * 61} MB each/,
         "no indexers, $kv: the size of a page");
}

($rc, $out) = check($v32, "$cuda gpus 8; kv bf16;");
is($rc, 1, 'BF16 latents of a model with an indexer');
like($out, qr/"kv bf16" is for models whose layers attend to all positions/,
     'with the reason');


weighs(1, 'data', $v32, %v32);
weighs(2, 'data', $v32, %v32);
weighs(8, 'data', $v32, %v32);
weighs(16, 'data', $v32, %v32);
weighs(2, 'tensor', $v32, %v32);
weighs(8, 'tensor', $v32, %v32);
weighs(16, 'tensor', $v32, %v32);

weighs(8, $_, $v32, %v32, speculate => 5) for qw/ data tensor /;

my $int4 = variant('int4', quantization_config => {
                       quant_method => 'w4afp8',
                       moe_activation_scheme => 'dynamic' });

weighs($_, 'data', $int4, %v32, experts => \&int4) for 1, 4, 8;
weighs(8, 'tensor', $int4, %v32, experts => \&int4);
weighs(4, 'data', $int4, %v32, experts => \&int4, speculate => 5);

# Scales in F32 need no more memory than those in BF16, to which they are
# rounded when they are read.

my $script = variant('script', quantization_config => {
                         quant_method => 'w4afp8' });

sparse_weights($_) for $int4, $script;

for my $attention (qw/ data tensor /) {
    my @plan = map {
        my ($rc, $out) = check($_, "backend cuda; gpus 8; speculate off; "
                                   . "attention $attention;");

        like($out, qr/ = weights [\d.]+ \+ workspace /,
             "$_ with attention $attention: a plan");
        $out =~ / = weights ([\d.]+)/;
    } $int4, $script;

    is($plan[1], $plan[0], "scales in F32, attention $attention: weights");
}

# The tokens of KV that INT4 experts leave on a GPU of each shipped
# configuration, with the weights of above: what is left of its memory has pages
# of 64 tokens.  An H200 has 139g, an H100 79g.

for (['4xh200', 4, 139, 0.77], ['8xh100', 8, 79, 0.29],
     ['8xh200', 8, 139, 1.63])
{
    my ($name, $n, $memory, $million) = @$_;
    my $conf = read_file("$DSA::Test::root/conf/engine-v3.2-int4-$name.conf");

    $conf =~ s{^(?:model|listen|socket_group|host_memory)\s.*\n}{}mg;

    my ($rc, $out) = check($int4, $conf, '--gpu-memory', "${memory}g");

    is($rc, 0, "$name: fits") or diag($out);

    my ($other) = $out =~ /( \+ workspace .*) \+ pages /;
    my $left = $memory * 2**30 - weights($n, 0, %v32, experts => \&int4);

    $left -= $_ * 1e9 for $other =~ /([\d.]+)/g;

    my ($pages) = $out =~ /; (\d+) pages of 64 tokens on each GPU, /;

    # three numbers have two digits behind the point

    cmp_ok(abs($pages - $left / (64 * (656 + 132) * 61)), '<', 6,
           "$name: pages") or diag($out);
    is(sprintf('%.2f', $pages * 64e-6), $million,
       "$name: $million million tokens on a GPU");
    cmp_ok($pages * 64, '>', 163840, "$name: a sequence of the whole context");
}

weighs(8, $_, $dense, %v32, indexers => 0) for qw/ data tensor /;

# other kernels compute heads of these sizes

my $wide = variant('wide', qk_nope_head_dim => 192, v_head_dim => 256);

weighs(8, $_, $wide, %v32, nope => 192, v => 256) for qw/ data tensor /;


# GLM-5.2: 21 of its layers have an indexer, and index keys in a page.  Its own
# context is longer than that of the kernels.

my $glm52 = $t->path('glm52');

mkdir $glm52 or die "mkdir: $!\n";
write_file("$glm52/config.json",
           read_file("$DSA::Test::root/bench/glm-5.2/config.json"));
write_file("$glm52/tokenizer.json", read_file("$small/tokenizer.json"));

weighs(8, 'data', $glm52, %glm52);
weighs(16, 'data', $glm52, %glm52);
weighs(8, 'tensor', $glm52, %glm52);

($rc, $out) = check($glm52, "$cuda gpus 8;");
is($rc, 1, 'GLM-5.2 with its own context');
like($out, qr/a context of 1048576 tokens is too long for "backend cuda"; /,
     'the reason');

($rc, $out) = check($glm52, "$cuda gpus 8; "
                            . 'context_length 262144;');
is($rc, 0, 'GLM-5.2 with a shorter one');
like($out, qr/a page of 64 tokens has ${\
              sprintf '%.2f', 64e-6 * (78 * 656 + 21 * 132)} MB/,
     'a page of it');

($rc, $out) = check($v32, "$cuda gpus 3;");
is($rc, 1, '3 GPUs');
like($out, qr/256 experts cannot be shared out equally to 3 GPUs/,
     'the reason');


# the whole output, without and with a size of the KV cache: a page has 64
# tokens of 656 + 132 bytes in 61 layers

my $page = 64 * (656 + 132) * 61;
my $mb = sprintf '%.2f', $page * 1e-6;
my $gb = sprintf '%.2f', $page * 163840 / 64 * 1e-9;

($rc, $out) = check($v32, "$cuda gpus 8;");
is($rc, 0, 'the configuration is valid');

like($out, qr{\A
dsa-engine:\ each\ of\ 8\ GPUs:\ [\d.]+\ GB\ =\ weights\ .*\n
dsa-engine:\ 8\ GPUs\ with\ attention\ data:\ steps\ of\ up\ to\ 8192\ tokens
\ and\ 128\ sequences\ on\ each\ GPU;\ a\ page\ of\ 64\ tokens\ has\ $mb\ MB,
\ the\ pages\ of\ a\ sequence\ of\ 163840\ tokens\ $gb\ GB\ on\ one\ GPU\n
dsa-engine:\ no\ GPU\ was\ found\ \(.*\):\ whether\ the\ plan\ fits\ was\ not
\ checked\n
dsa-engine:\ configuration\ file\ \S+\ is\ valid\n
\z}x, 'the plan');

my ($each) = $out =~ /GPUs: ([\d.]+) GB/;
my $pages = int(30 * 2**30 / $page);
my $tokens = sprintf '%.2f', 8 * $pages * 64 * 1e-6;

($rc, $out) = check($v32, "$cuda gpus 8; replicas 2; "
                          . 'kv_memory 30g;');
is($rc, 0, 'kv_memory and two replicas');

for my $n (0, 1) {
    like($out, qr{^dsa-engine:\ replica\ $n:\ 8\ GPUs\ with\ attention\ data:
                  \ .*;\ $pages\ pages\ of\ 64\ tokens\ on\ each\ GPU,
                  \ $tokens\ M\ tokens\ of\ KV\ in\ all;
                  \ contexts\ up\ to\ 163840\ tokens$}mx,
         "replica $n: its pages");
}

my ($more) = $out =~ /GPUs: ([\d.]+) GB/;

cmp_ok(abs($more - $each - $pages * $page * 1e-9), '<', 0.02,
       'its GPUs need the memory of the pages as well') or diag($out);


($rc, $out) = check($v32, 'backend cuda; gpus 5,2; replicas 2;');
like($out, qr/^dsa-engine:\ replica\ 0:\ GPU\ 5:\ .*
              ^dsa-engine:\ replica\ 1:\ GPU\ 2:\ /msx,
     'each replica has its GPU of the list');


# host memory is beside the GPUs; more than the machine has is an error, after
# the plan

($rc, $out) = check($v32, 'backend cuda; gpus 8; speculate off; '
                           . 'host_memory 512g;');
is($rc, $out =~ /"host_memory" is too large: / ? 1 : 0, 'host memory');
like($out, qr{^dsa-engine:\ host\ memory:\ 549\.76\ GB,\ 178481\ pages\ of\ 64
              \ tokens\ with\ 3\.08\ MB\ each,\ 11\.42\ M\ tokens\ of\ KV$}mx,
     'its tokens');


# with attention tensor all GPUs have the same pages and compute all tokens

$tokens = sprintf '%.2f', $pages * 64 * 1e-6;
($rc, $out) = check($v32, 'backend cuda; gpus 8; attention tensor; '
                          . 'speculate off; kv_memory '
                          . '30g; context_length 5000;');
is($rc, 0, 'attention tensor');
like($out, qr{steps\ of\ up\ to\ 8192\ tokens\ and\ 128\ sequences;
              \ $pages\ pages\ of\ 64\ tokens,\ the\ same\ on\ each\ GPU,
              \ $tokens\ M\ tokens\ of\ KV\ in\ all;
              \ contexts\ up\ to\ 5000\ tokens$}mx, 'its pages');

$t->done;
