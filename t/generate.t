# Copyright (C) The nginx-dsa authors
#
# dsa generate: greedy continuations equal the golden vectors, sampling repeats
# with its seed, and invalid input is rejected.  The temperature and top_p of a
# model's generation_config.json are used here and by the engine.

use strict;
use warnings;

use File::Spec;

use lib 't/lib';
use DSA::Test;
use DSA::Widen;
use Test::More;

my $t = DSA::Test->new('generate');
my $dsa = $t->build . '/dsa';

chdir $DSA::Test::root or die "chdir: $!\n";


# Reads a tensor of int32 from a safetensors file.

sub ints {
    my ($file, $name) = @_;

    my ($head, $json, $data);

    open my $fh, '<:raw', $file or die "$file: $!\n";
    read $fh, $head, 8;
    my $n = unpack 'Q<', $head;
    read $fh, $json, $n;

    my ($from, $to) = @{ json_decode($json)->{$name}{data_offsets} };

    seek $fh, 8 + $n + $from, 0;
    read $fh, $data, $to - $from;

    return unpack 'l<*', $data;
}


sub generate {
    my (@args) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', $dsa, 'generate',
         @args
        or die "sh: $!\n";

    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


for my $name (qw/ a-fp8 b-bf16 /) {
    my $dir = "t/data/golden/$name";
    my ($len) = ints("$dir/golden.safetensors", 'greedy_prompt_len');
    my @ids = (ints("$dir/golden.safetensors", 'tokens'))[0 .. $len - 1];
    my @want = ints("$dir/golden.safetensors", 'greedy');

    my ($rc, $out) = generate('--model', $dir, '--ids', "@ids", '-n',
                              scalar @want, '--greedy', '--exact');

    is($rc, 0, "$name: status");
    is($out, "@want\n", "$name: greedy continuation");
}


my @model = ('--model', $t->model);

my ($rc, $one) = generate(@model, '--prompt', 'Once upon', '-n', 30,
                          '--seed', 11);
is($rc, 0, 'text') or diag($one);
cmp_ok(length $one, '>', 1, 'the text is not empty');

is((generate(@model, '--prompt', 'Once upon', '-n', 30, '--seed', 11))[1],
   $one, 'the same seed, the same text');
isnt((generate(@model, '--prompt', 'Once upon', '-n', 30, '--seed', 12))[1],
     $one, 'another seed, another text');


# Makes a copy of the small model with another generation_config.json.

sub model_with {
    my ($name, $json) = @_;

    my $dir = $t->path($name);

    mkdir $dir or die "$dir: $!\n";

    for my $file (glob $t->model . '/*') {
        my ($base) = $file =~ m{([^/]+)$};

        next if $base eq 'generation_config.json';
        symlink File::Spec->rel2abs($file), "$dir/$base"
            or die "$dir/$base: $!\n";
    }

    write_file("$dir/generation_config.json", $json) if defined $json;

    return $dir;
}


my $cold = model_with('cold', '{"temperature": 0}');

my %request = (model => 'deepseek-chat', max_tokens => 40,
               messages => [{ role => 'user', content => 'Once upon' }]);
my %think = (%request, thinking => { type => 'enabled' });

write_file($t->path('request'), json_encode(\%think));
my $prompt = do {
    open my $fh, '-|', "$dsa encode < " . $t->path('request')
        or die "sh: $!\n";
    local $/;
    <$fh>;
};

my @args = ('--special', '--prompt', $prompt, '-n', 40);
my $greedy = (generate(@model, @args, '--greedy'))[1];

isnt((generate(@model, @args, '--seed', 3))[1], $greedy,
     'sampling with temperature 1 differs from greedy');

for (
    [ 'temperature 0', '{"temperature": 0}' ],
    [ 'do_sample', '{"do_sample": false, "temperature": 2}' ],
    [ 'top_p', '{"temperature": 1, "top_p": 1e-9}' ],
) {
    my ($name, $json) = @$_;
    my $dir = $name eq 'temperature 0' ? $cold : model_with($name, $json);

    is((generate('--model', $dir, @args, '--seed', 3))[1], $greedy,
       "$name of the model is used");
}

isnt((generate('--model', $cold, @args, '--seed', 3, '--temperature', 1))[1],
     $greedy, 'an option overrides it');

my $top = (generate(@model, @args, '--seed', 3, '--temperature', 1, '--top-p',
                    1))[1];

is((generate('--model', model_with('none'), @args, '--seed', 3))[1], $top,
   'both are 1 without the file');


# On several GPUs, which the CPU computes, the demonstration model answers as on
# one.  It is widened for "attention tensor", because its experts have the least
# width that there is.

my $demo = "$DSA::Test::root/demo/model";
my $wide = widen_all($demo, $t->path('wide'), 2);

write_file($t->path('request'), json_encode({ model => 'deepseek-chat',
    messages => [{ role => 'user', content => 'What is 48 times 27?' }] }));

my $question = do {
    open my $fh, '-|', "$dsa encode < " . $t->path('request')
        or die "sh: $!\n";
    local $/;
    <$fh>;
};

for my $precision ([], ['--exact']) {
    my @all = ('--special', '--prompt', $question, '-n', 240, '--greedy',
               @$precision);
    my $text = (generate('--model', $demo, @all))[1];

    like($text, qr/1296/, "one GPU @$precision: the answer");

    for (
        [ $demo, '--gpus', 2 ],
        [ $demo, '--gpus', 4, '--attention', 'data' ],
        [ $wide, '--gpus', 2, '--attention', 'tensor' ],
    ) {
        my ($model, @gpus) = @$_;

        is((generate('--model', $model, @all, @gpus))[1], $text,
           "@gpus @$precision: the same text");
    }
}


my $bad = model_with('bad', '{"temperature": "0"}');

like((generate('--model', $bad, @args))[1],
     qr{/bad/generation_config\.json: "temperature" is "0"; expected },
     'an invalid file is rejected');

# the engine uses the same values

$t->start_engine(conf => { model => $cold, name => 'cold' });
$t->start_nginx();

sub answer {
    my (%more) = @_;

    my $r = $t->post('/v1/chat/completions', \%more);
    my $m = $r->{json}{choices}[0]{message};

    is($r->{status}, 200, 'answered') or diag($r->{body});

    return join '|', map { defined $_ ? $_ : '' }
                     @$m{qw/ reasoning_content content /};
}

chomp $greedy;

is(answer(%think), "$greedy|", 'thinking: the values of the model');
is(answer(%think, temperature => 1.5, top_p => 1), "$greedy|",
   'thinking: those of the request are ignored');

my $plain = answer(%request);

is(answer(%request), $plain, 'a chat: the same seed, the same text');
is(answer(%request, temperature => 0), $plain, 'a chat: temperature 0');
isnt(answer(%request, temperature => 1, seed => 3), $plain,
     'a chat: the temperature of the request is used');

my $conf = $t->path('bad.conf');

write_file($conf, "model $bad; listen unix:" . $t->path('bad.sock')
                  . "; backend cpu;\n");

for my $test ([], ['-t']) {
    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
         $t->build . '/dsa-engine', '-c', $conf, @$test
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    is($? >> 8, 1, "dsa-engine @$test: does not start with an invalid file");
    like($out, qr{^dsa-engine: \S+/bad/generation_config\.json: "temperature"},
         'the error names the field');
}


for (
    [ 0, qr/^usage/, '--help' ],
    [ 2, qr/usage/ ],
    [ 2, qr/either --prompt or --ids.*\nusage/, @model, '-n', 5 ],
    [ 2, qr/-n with at least 1, .*\nusage/, @model, '--prompt', 'a', '-n', 0 ],
    [ 2, qr/usage/, @model, '--prompt', 'a' ],
    [ 2, qr/usage/, @model, '--prompt', 'a', '--ids', '1', '-n', 5 ],
    [ 2, qr/-n "x" is not a number/, @model, '--prompt', 'a', '-n', 'x' ],
    [ 2, qr/--seed "-1" is not/, @model, '--prompt', 'a', '-n', 5,
      '--seed', -1 ],
    [ 2, qr/--gpus "17" is not a number of GPUs; expected 1 to 16/, @model,
      '--ids', 1, '-n', 5, '--gpus', 17 ],
    [ 2, qr/--attention is "heads"; expected data or tensor/, @model,
      '--ids', 1, '-n', 5, '--attention', 'heads' ],
    [ 1, qr/8 experts cannot be shared out equally to 3 GPUs/, @model,
      '--ids', 1, '-n', 5, '--gpus', 3 ],
    [ 1, qr/"moe_intermediate_size" is 128 and cannot be split over 2 GPUs/,
      @model, '--ids', 1, '-n', 5, '--gpus', 2, '--attention', 'tensor' ],
    [ 1, qr/"x" does not begin with an id/, @model, '--ids', '1 x', '-n', 5 ],
    [ 1, qr/expected 0 to 2047/, @model, '--ids', '99999999', '-n', 5 ],
    [ 1, qr/at least one id/, @model, '--ids', ' ', '-n', 5 ],
    [ 1, qr/over the model's context/, @model, '--ids', '1', '-n', 999999 ],
    [ 1, qr/config\.json/, '--model', '/nowhere', '--ids', '1', '-n', 5 ],
) {
    my ($want, $re, @args) = @$_;
    my ($rc, $out) = generate(@args);

    is($rc, $want, "status of: @args");
    like($out, $re, 'the reason');
}

$t->done;
