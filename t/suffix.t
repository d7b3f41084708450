# Copyright (C) The nginx-dsa authors
#
# A text completion with a suffix needs control tokens that not every tokenizer
# has: an engine with them and one without them.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Test;

my $t = DSA::Test->new('suffix');

# the same model whose tokenizer has other names for them

my $model = $t->model;
my $plain = $t->path('plain');
mkdir $plain or die "$plain: $!\n";

for my $file (glob "$model/*") {
    my ($name) = $file =~ m{([^/]+)$};

    if ($name ne 'tokenizer.json') {
        symlink $file, "$plain/$name" or die "$file: $!\n";
        next;
    }

    my $text = read_file($file);
    my $n = $text =~ s/fim(?=\xe2\x96\x81(?:hole|begin|end))/fam/g;
    cmp_ok($n, '>=', 3, 'the tokens have other names');
    write_file("$plain/$name", $text);
}

my %request = (model => 'with', prompt => 'def f(', max_tokens => 1);

$t->start_engine(conf => { backend => 'null', name => 'with' });
$t->start_engine(conf => { backend => 'null', name => 'without',
                           model => $plain });
$t->start_nginx();

for my $name (qw/ with without /) {
    my $r;

    wait_until(sub { $r = $t->post('/v1/completions',
                                   { %request, model => $name });
                     $r->{status} == 200 }, 20, $name);
    is($r->{status}, 200, "$name: a prompt");
}

is($t->post('/v1/completions', { %request, suffix => ')' })->{status}, 200,
   'a suffix, with the tokens');

for my $stream (JSON::PP::false, JSON::PP::true) {
    my $r = $t->post('/v1/completions', { %request, model => 'without',
                                          suffix => ')', stream => $stream });

    is($r->{status}, 400, 'a suffix, without the tokens');
    is($r->{json}{error}{param}, 'suffix', 'its field');
    is($r->{json}{error}{type}, 'invalid_request_error', 'its type');
    like($r->{json}{error}{message},
         qr/lacks <\x{ff5c}fim\x{2581}begin\x{ff5c}>, .*expected no such field/,
         'and what is missing');
}

is($t->post('/v1/completions', { %request, model => 'without' })->{status},
   200, 'the engine goes on');

$t->done;
