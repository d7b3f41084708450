# Copyright (C) The nginx-dsa authors
#
# dsa generate: the greedy continuation of the golden vectors, sampling that
# repeats with its seed, and what it refuses.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('generate');
my $dsa = $t->build . '/dsa';

chdir $DSA::Test::root or die "chdir: $!\n";


# A tensor of int32 of a safetensors file.

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
cmp_ok(length $one, '>', 1, 'there is some');

is((generate(@model, '--prompt', 'Once upon', '-n', 30, '--seed', 11))[1],
   $one, 'the same seed, the same text');
isnt((generate(@model, '--prompt', 'Once upon', '-n', 30, '--seed', 12))[1],
     $one, 'another seed, another text');


for (
    [ 0, qr/^usage/, '--help' ],
    [ 2, qr/usage/ ],
    [ 2, qr/usage/, @model, '-n', 5 ],
    [ 2, qr/usage/, @model, '--prompt', 'a' ],
    [ 2, qr/usage/, @model, '--prompt', 'a', '--ids', '1', '-n', 5 ],
    [ 2, qr/-n takes/, @model, '--prompt', 'a', '-n', 'x' ],
    [ 2, qr/--seed takes/, @model, '--prompt', 'a', '-n', 5, '--seed', -1 ],
    [ 1, qr/--ids takes ids/, @model, '--ids', '1 x', '-n', 5 ],
    [ 1, qr/--ids takes ids/, @model, '--ids', '99999999', '-n', 5 ],
    [ 1, qr/one id at least/, @model, '--ids', ' ', '-n', 5 ],
    [ 1, qr/over the model's context/, @model, '--ids', '1', '-n', 999999 ],
    [ 1, qr/config\.json/, '--model', '/nowhere', '--ids', '1', '-n', 5 ],
) {
    my ($want, $re, @args) = @$_;
    my ($rc, $out) = generate(@args);

    is($rc, $want, "status of: @args");
    like($out, $re, 'told');
}

$t->done;
