# Copyright (C) The nginx-dsa authors
#
# demo/make-tokenizer: the number of entries, the special tokens, every byte,
# each digit as a token; the same text makes the same tokenizer.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('make-tokenizer');
my $root = $DSA::Test::root;
my $dsa = $t->build . '/dsa';
my $in = $t->path('in');


# Trains on a text: (exit status, file, messages).

sub make {
    my ($name, $n, $text) = @_;

    my ($file, $err) = ($t->path("$name.json"), $t->path('err'));

    write_file($in, $text);

    my $rc = system 'sh', '-c', '"$1" "$2" "$3" < "$4" > "$5" 2> "$6"', '-',
                    $^X, "$root/demo/make-tokenizer", $n, $in, $file, $err;

    return ($rc >> 8, $file, read_file($err));
}


sub ids {
    my ($file, $text) = @_;

    write_file($in, $text);

    return json_decode(`"$dsa" tokenize --tokenizer "$file" --special < "$in"`);
}


# files of the project, and words between special tokens

my $text = join '', map { read_file($_) } glob("$root/docs/*/*.md"),
                    glob "$root/context/*.c";
my $user = "<｜User｜>";
my $end = "<｜end▁of▁sentence｜>";

utf8::encode($_) for $user, $end;

$text .= "${user}zqzq$end" x 5000 . "x2024" x 5000;

my ($rc, $file, $err) = make('first', 4096, $text);
is($rc, 0, 'runs') or diag($err);

my $made = read_file($file);
my ($rc2, $file2) = make('second', 4096, $text);
ok($made eq read_file($file2), 'the same twice');

my $json = json_decode($made);
my %id = %{ $json->{model}{vocab} };
my %added = map { $_->{content} => $_->{id} } @{ $json->{added_tokens} };
my %all = (%id, %added);

is_deeply([sort { $a <=> $b } values %all], [0 .. 4095], '4096 entries');
is(@{ $json->{model}{merges} }, 4096 - 256 - keys %added, 'merges');
is_deeply([@added{"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>",
                  "<｜▁pad▁｜>"}], [0 .. 2], 'the first three');

my @names = ('<think>', '</think>', '<｜User｜>', '<｜Assistant｜>', '｜DSML｜');

ok($added{$_} >= 4096 - 20, s/[^ -~]/?/gr . ' is among the last') for @names;

for my $name (@names) {
    my $bytes = $name;
    utf8::encode($bytes);
    is_deeply(ids($file, $bytes), [$added{$name}], 'and a token in a text');
}

# no merge joins a special token with the text beside it

is(@{ ids($file, "\xef\xbd\x9c") }, 3, 'bars of special tokens never merge');
ok(exists $id{zqzq}, 'the text between special tokens does');

is(scalar(grep { /\d.|.\d/ } keys %id), 0, 'no digit in a longer token');
is(@{ ids($file, '20241234567') }, 11, 'a number is its digits');

my $words = 'the server reads a request and the engine answers';
cmp_ok(scalar @{ ids($file, $words) }, '<=', split(/ /, $words) + 2,
       'words are tokens');

# A name has the same tokens at each place in a text.  If another word is at
# another place, only its first token may differ.

for my $mark (' ', '"', '(', '/', '_', ' "') {
    my $after = sub { @{ ids($file, $mark . shift) } };
    my $same = ids($file, 'Readhull');
    my @name = $after->('Readhull');

    is_deeply([@name[@name - @$same .. $#name]], $same, "a name after $mark");

    $same = ids($file, 'servantin');

    my @word = $after->('servantin');

    is_deeply([@word[@word - $#$same .. $#word]], [@$same[1 .. $#$same]],
              "another word after $mark");
}

is(@{ ids($file, ' the') }, 1, 'a space and a frequent word are a token');

# all bytes and back, in an order that is not UTF-8

my $bytes = join '', map { chr } reverse(0 .. 255), 0 .. 255;
my $ids = ids($file, $bytes);

write_file($in, json_encode($ids));
ok(`"$dsa" detokenize --tokenizer "$file" < "$in"` eq $bytes,
   'every byte and back');

# errors

for ([4096, 'a few words', qr/the text is too small/],
     [100, $text, qr/100 entries are too few/],
     [4096, "\xff", qr/not UTF-8/],
     ['many', $text, qr/^usage: /])
{
    my ($n, $text, $re) = @$_;
    my ($rc, undef, $err) = make('bad', $n, $text);

    isnt($rc, 0, "$n entries: an error");
    like($err, $re, 'with the reason');
}

$t->done;
