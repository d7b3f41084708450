# Copyright (C) The nginx-dsa authors
#
# What "dsa-engine -t" finds in the files of a model and in the machine: the
# error names the file or the value, and what is accepted.  t/unit/test_conf.c
# has the errors in the text of engine.conf.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use DSA::Weights;
use Test::More;

my $t = DSA::Test->new('check');
my $dir = $t->path('model');
my @shards = map { "model-0000$_-of-000002.safetensors" } 1, 2;
my $index = 'model.safetensors.index.json';
my $pointer = "version https://git-lfs.github.com/spec/v1\n"
              . 'oid sha256:' . '4d7a2146' x 8 . "\nsize 4987202208\n";
my $html = "<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n";


# (exit status, output) of dsa-engine with these directives.

sub engine {
    my ($how, $text) = @_;

    my $conf = write_file($t->path('engine.conf'), $text);

    open my $fh, '-|', 'sh', '-c', 'exec timeout 60 "$@" 2>&1', '-',
        $t->build . '/dsa-engine', $how eq 'test' ? '-t' : (), '-c', $conf
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


# A configuration of a model with some changes.

sub conf {
    my (%change) = @_;

    my %conf = (model => $dir, listen => 'unix:' . $t->path('e.sock'),
                backend => 'cpu', %change);

    return join '', map { "$_ $conf{$_};\n" } sort keys %conf;
}

sub fresh {
    system('rm', '-rf', $dir) == 0 && system('cp', '-r', $t->model, $dir) == 0
        or die "cp: $?\n";
}

sub edit {
    my ($file, $code) = @_;

    local $_ = read_file("$dir/$file");
    $code->();
    write_file("$dir/$file", $_);
}

sub cut {
    my ($file, $size) = @_;

    truncate "$dir/$file", $size < 0 ? $size + -s "$dir/$file" : $size
        or die "truncate: $!\n";
}

fresh();

my ($rc, $out) = engine(test => conf());

is($rc, 0, 'a model') or diag($out);
is($out, 'dsa-engine: configuration file ' . $t->path('engine.conf')
         . " is valid\n", 'is valid');


# A pattern of one line, which is written in several.

sub line {
    my ($re) = @_;

    return "$re" =~ s/\n\s*/ /gr;
}


# files of the model: what to do with them, and the error after DIR

my @files = (
    [ 'a truncated shard', sub { cut($shards[1], -1000) },
      qr{/$shards[1]: truncated: tensor "\S+" ends at byte \d+ of the data, but
          the file has \d+ bytes of it$} ],
    [ 'a shard of which the header is truncated', sub { cut($shards[1], 100) },
      qr{/$shards[1]: truncated: the header has \d+ bytes, but the file has
          100$} ],
    [ 'an empty shard', sub { cut($shards[1], 0) },
      qr{/$shards[1]: truncated: the file has 0 bytes; expected at least 8$} ],
    [ 'a longer shard', sub { edit($shards[1], sub { $_ .= 'x' x 100 }) },
      qr{/$shards[1]: the file has 100 bytes after the last tensor; expected
          none$} ],
    [ 'a missing shard', sub { unlink "$dir/$shards[1]" },
      qr{: file "$shards[1]" is missing, which \Q$index\E names$} ],
    [ 'a shard that is a pointer',
      sub { write_file("$dir/$shards[1]", $pointer) },
      qr{/$shards[1]: the file is a pointer of Git LFS, .*"git lfs pull"} ],
    [ 'a shard that is a page of HTML',
      sub { write_file("$dir/$shards[1]", $html) },
      qr{/$shards[1]: the file is a page of HTML, .*; expected the file} ],
    [ 'a shard that is something else',
      sub { write_file("$dir/$shards[1]", 'PK' . 'x' x 100) },
      qr{/$shards[1]: not a safetensors file: .*; expected the length of a
          header, at most \d+$} ],
    [ 'a directory for a shard',
      sub { unlink "$dir/$shards[1]"; mkdir "$dir/$shards[1]" },
      qr{/$shards[1]: not a regular file$} ],
    [ 'a shard of another dtype', sub { edit($shards[0], sub {
          s/"BF16"/"F16" / or die }) },
      qr{: tensor "\S+" is F16 \S+ \S+; expected F32 or BF16 } ],
    [ 'a model of another shape', sub { edit('config.json', sub {
          s/"hidden_size": 256/"hidden_size": 384/ or die }) },
      qr{: tensor "\S+" is BF16 \S+ \S+; expected F32 or BF16 \S+ \S+ \(and \d+
          more tensors are missing, invalid or unknown\)$} ],
    [ 'a layer too few', sub { edit('config.json', sub {
          s/"num_hidden_layers": 3/"num_hidden_layers": 4/ or die }) },
      qr{: tensor "model\.layers\.3\.\S+" is missing } ],

    [ 'no index', sub { unlink "$dir/$index" },
      qr{: no weights; expected \Q$index\E or model\.safetensors$} ],
    [ 'a truncated index', sub { cut($index, 5000) },
      qr{/\Q$index\E: truncated: .* the file has 5000 bytes$} ],
    [ 'an index that is a pointer', sub { write_file("$dir/$index", $pointer) },
      qr{/\Q$index\E: the file is a pointer of Git LFS} ],
    [ 'an index of other files', sub { edit($index, sub {
          s/model-00002-of/model-00009-of/g }) },
      qr{: file "model-00009-of-000002\.safetensors" is missing} ],
    [ 'an index that leads elsewhere', sub { edit($index, sub {
          s{"model-00002}{"../model-00002}g }) },
      qr{/\Q$index\E: .* expected the name of a file in this directory$} ],

    [ 'no config.json', sub { unlink "$dir/config.json" },
      qr{/config\.json: No such file or directory$} ],
    [ 'an empty config.json', sub { cut('config.json', 0) },
      qr{/config\.json: the file is empty; expected a JSON object$} ],
    [ 'a truncated config.json', sub { cut('config.json', 500) },
      qr{/config\.json: truncated: the JSON object has no end, and the file has
          500 bytes$} ],
    [ 'no JSON', sub { write_file("$dir/config.json", 'hidden_size = 5') },
      qr{/config\.json: not JSON: } ],
    [ 'an array', sub { write_file("$dir/config.json", '[]') },
      qr{/config\.json: the text is not a JSON object$} ],
    [ 'a page', sub { write_file("$dir/config.json", $html) },
      qr{/config\.json: the file is a page of HTML} ],
    [ 'another model', sub { edit('config.json', sub {
          s/deepseek_v32/llama/ or die }) },
      qr{/config\.json: "model_type" is "llama"; expected "deepseek_v32", } ],
    [ 'a field of another type', sub { edit('config.json', sub {
          s/"hidden_size": 256/"hidden_size": "256"/ or die }) },
      qr{/config\.json: "hidden_size" is "256"; expected an integer from } ],
    [ 'a field that is missing', sub { edit('config.json', sub {
          s/\s*"hidden_size": 256,// or die }) },
      qr{/config\.json: "hidden_size" is missing; expected an integer from } ],
    [ 'another quantization', sub { edit('config.json', sub {
          s/"quant_method": "fp8"/"quant_method": "gptq"/ or die }) },
      qr{/config\.json: "quantization_config\.quant_method" is "gptq"; expected
         "fp8" or "w4afp8"$} ],

    [ 'no tokenizer', sub { unlink "$dir/tokenizer.json" },
      qr{/tokenizer\.json: No such file or directory$} ],
    [ 'a truncated tokenizer', sub { cut('tokenizer.json', 5000) },
      qr{/tokenizer\.json: truncated: .* 5000 bytes$} ],
    [ 'a tokenizer that is a pointer',
      sub { write_file("$dir/tokenizer.json", $pointer) },
      qr{/tokenizer\.json: the file is a pointer of Git LFS} ],
    [ 'no model in it', sub { write_file("$dir/tokenizer.json", '{}') },
      qr{/tokenizer\.json: "model" is missing; expected an object$} ],
    [ 'a tokenizer of another model', sub { edit('config.json', sub {
          s/"vocab_size": 2048/"vocab_size": 1024/ or die }) },
      qr{/tokenizer\.json has ids up to \d+, but vocab_size in config\.json is
          1024; expected the files of one model$} ],
    [ 'a default that is a word', sub {
          write_file("$dir/generation_config.json", '{"temperature":"hot"}') },
      qr{/generation_config\.json: "temperature" is "hot"; expected a number} ],
);

for (@files) {
    my ($what, $damage, $error) = @$_;

    my $re = line($error);

    fresh();
    $damage->();
    my ($rc, $out) = engine(test => conf());

    is($rc, 1, $what);
    like($out, qr/^dsa-engine: \Q$dir\E$re/m, "$what: the error");
    is(scalar(my @lines = $out =~ /\n/g), 1, "$what: one line");
}

# an unreadable file; root can read all files

SKIP: {
    skip 'root can read all files', 1 if $> == 0;

    fresh();
    chmod 0, "$dir/$shards[1]";
    like((engine(test => conf()))[1],
         qr{^dsa-engine: \Q$dir/$shards[1]\E: Permission denied$},
         'a shard that cannot be read');
}


# values; those that a start would find as well are found before it

fresh();

my $missing = $t->path('none');

write_file($t->path('file'), '');

for ([ { kv_memory => '1k' }, 0,
       qr/"kv_memory" is 1024 bytes; expected at least one page, \d+ bytes$/ ],
     [ { kv_memory => '1k', backend => 'null' }, 0,
       qr/"kv_memory" is 1024 bytes; expected at least one page, \d+ bytes$/ ],
     [ { kv_memory => '90000g' }, 1,
       qr/"kv_memory" is too large: .* expected at most \d+m$/ ],
     [ { kv_memory => '45000g', gpus => 2 }, 1,
       qr/"kv_memory" .* 1 replica of 2 ranks .* expected at most \d+m$/ ],
     [ { host_memory => '1k' }, 0,
       qr/"host_memory" is 1024 bytes; expected at least one page, \d+ bytes$/
     ],
     [ { host_memory => '90000g' }, 1,
       qr/"host_memory" is too large: .* expected at most \d+m$/ ],
     [ { host_memory => '45000g', backend => 'null', replicas => 2,
         listen => 'unix:' . $t->path('%n.sock') }, 1,
       qr/"host_memory" .* 2 replicas of 1 rank .* expected at most \d+m$/ ],
     [ { context_length => 163841 }, 1,
       qr/"context_length" is 163841, .* expected at most 163840$/ ],
     [ { model => $missing }, 1,
       qr/"model" is "\Q$missing\E": No such file .* expected a directory with/
     ],
     [ { model => $t->path('file') }, 1,
       qr/"model" is "\S+": not a directory; expected a directory with/ ],
     [ { listen => "unix:$missing/e.sock" }, 0,
       qr{"listen" is "unix:\S+", but \Q$missing\E: No such file or directory;
          expected a directory} ],
     [ { listen => 'unix:' . $t->path('file') . '/e.sock' }, 0,
       qr/"listen" is "unix:\S+", but \S+: [Nn]ot a directory; expected a / ],
     [ { listen => 'unix:' . $t->path('file') }, 0,
       qr/"listen" is "unix:\S+", which exists and is not a socket; expected /
     ])
{
    my ($change, $start, $error) = @$_;
    my $what = join ' ', %$change;

    for my $how ('test', $start ? 'start' : ()) {
        my ($rc, $out) = engine($how => conf(%$change));
        my $re = line($error);

        is($rc, 1, "$how: $what");
        like($out, qr/^dsa-engine: .*$re/m, "$how: $what: the error");
    }
}

# what is as large as it may be

is((engine(test => conf(context_length => 163840)))[0], 0,
   'the context of the model');

# a machine that is full of weights would take minutes to read them: of a model
# of 689 GB only the headers are read

mkdir $t->path('v32');
write_file($t->path('v32') . "/$_->[0]", read_file($_->[1]))
    for [ 'config.json', "$DSA::Test::root/bench/v3.2/config.json" ],
        [ 'tokenizer.json', "$dir/tokenizer.json" ];
cmp_ok(sparse_weights($t->path('v32')), '>', 600e9, 'a model of 670 GB');
is((engine(test => conf(model => $t->path('v32'))))[0], 0, 'is checked');

truncate $t->path('v32') . '/model.safetensors', 600e9;
($rc, $out) = engine(test => conf(model => $t->path('v32')));
like($out, qr{/v32/model\.safetensors: truncated: tensor "\S+" ends at byte },
     'and its truncated file is found');

# the null backend and random weights need no weights

unlink "$dir/$shards[1]";
is((engine(test => conf(backend => 'null')))[0], 0, 'no weights are needed');

$t->done;
