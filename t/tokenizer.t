# Copyright (C) The nginx-dsa authors
#
# dsa tokenize and dsa detokenize with the vocabulary of DeepSeek-V3.2, compared
# with ids from other implementations (t/data/tokenizer/README.md).

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('tokenizer');
my $data = "$DSA::Test::root/t/data";
my $file = $t->path('tokenizer.json');

system('sh', '-c', 'exec xz -dc "$1" > "$2"', '-',
       "$data/tokenizer/deepseek-v3.2-tokenizer.json.xz", $file) == 0
    or die "xz failed\n";

my @cases = (
    @{ json_decode(read_file("$data/tokenizer/cases.json")) },
    map { { text => $_->{prompt}, ids => $_->{token_ids} } } @{
        json_decode(read_file("$data/encoding/worked_examples.json"))
        ->{examples}
    },
);


# Runs dsa; returns its exit status and what it wrote.

sub dsa {
    my ($input, @args) = @_;

    my ($in, $out, $err) = map { $t->path($_) } qw/ in out err /;
    my $env = $t->sanitizer_env('dsa');

    local @ENV{keys %$env} = values %$env;

    write_file($in, $input);

    my $rc = system 'sh', '-c',
                    'in=$1 out=$2 err=$3; shift 3;'
                    . ' exec "$@" < "$in" > "$out" 2> "$err"', '-',
                    $in, $out, $err, $t->build . '/dsa', @args;

    return ($rc >> 8, read_file($out), read_file($err));
}


sub jsonl { return join '', map { json_encode($_) . "\n" } @_ }
sub lines { return map { json_decode($_) } split /\n/, $_[0] }


# Compares two lists, and shows the first three that differ.

sub differ {
    my ($got, $expected, $name) = @_;

    my @bad = grep {
        json_encode($got->[$_]) ne json_encode($expected->[$_])
    } 0 .. $#$expected;

    is(@$got, @$expected, "$name: the number of answers");
    is(@bad, 0, "$name: none differs");

    for my $i (splice @bad, 0, 3) {
        diag(json_encode($cases[$i]{text}), "\n",
             ' got      ', json_encode($got->[$i]), "\n",
             ' expected ', json_encode($expected->[$i]));
    }
}


my @texts = map { $_->{text} } @cases;
my @ids = map { $_->{ids} } @cases;

cmp_ok(scalar @cases, '>', 80, 'there are cases');

my ($rc, $out, $err) = dsa(jsonl(@texts), 'tokenize', '--tokenizer', $file,
                           '--special', '--jsonl');

is($rc, 0, 'tokenize --special --jsonl');
is($err, '', 'without a message');
differ([lines($out)], \@ids, 'ids');

($rc, $out) = dsa(jsonl(@ids), 'detokenize', '--tokenizer', $file, '--jsonl');

is($rc, 0, 'detokenize --jsonl');
differ([lines($out)], \@texts, 'texts');

# without --special added tokens are text: none of their ids, and the same text
# again

($rc, $out) = dsa(jsonl(@texts), 'tokenize', '--tokenizer', $file, '--jsonl');

is($rc, 0, 'tokenize --jsonl');

my @plain = lines($out);
my @added = grep { $_ < 3 || $_ >= 128000 } map { @$_ } @plain;

is(@added, 0, 'no added token');

my @other = grep { "@{ $plain[$_] }" ne "@{ $ids[$_] }" } 0 .. $#ids;

cmp_ok(scalar @other, '>', 10, 'where --special finds some');

($rc, $out) = dsa(jsonl(@plain), 'detokenize', '--tokenizer', $file,
                  '--jsonl');
differ([lines($out)], \@texts, 'texts of plain ids');

# one text, one array

($rc, $out) = dsa('Hello', 'tokenize', '--tokenizer', $file);
is($out, "[19923]\n", 'a text');

($rc, $out) = dsa('', 'tokenize', '--tokenizer', $file);
is($out, "[]\n", 'no text');

my $user = "<\x{ff5c}User\x{ff5c}>";
utf8::encode($user);

($rc, $out) = dsa($user, 'tokenize', '--tokenizer', $file, '--special');
is($out, "[128803]\n", 'an added token');

# any bytes are preserved

my $bytes = join '', map { chr } 0 .. 255, reverse 0 .. 255;

$bytes .= "\xe4\xb8 \xf0\x9f\x98\x80 \xed\xa0\x80";

($rc, $out) = dsa($bytes, 'tokenize', '--tokenizer', $file);
is($rc, 0, 'bytes that are not UTF-8');

($rc, $out) = dsa($out, 'detokenize', '--tokenizer', $file);
is($rc, 0, 'and back');
ok($out eq $bytes, 'the same bytes');

# in JSON invalid bytes are U+FFFD: a character of three tokens, and its first
# two tokens

($rc, $out) = dsa("\xe9\xbe\x98", 'tokenize', '--tokenizer', $file);
my $parts = json_decode($out);
cmp_ok(scalar @$parts, '>', 1, 'a character of several tokens');

($rc, $out) = dsa(jsonl($parts, [@$parts[0 .. $#$parts - 1], 19923]),
                  'detokenize', '--tokenizer', $file, '--jsonl');
is_deeply([lines($out)], ["\x{9f98}", "\x{fffd}Hello"], 'a character cut off');

# a megabyte that no pattern cuts would take minutes if it were quadratic

for my $c ('a', ' ', "\n", "\xcc\x81") {
    my $long = $c x (1024 * 1024 / length $c);

    ($rc, $out) = dsa($long, 'tokenize', '--tokenizer', $file);
    is($rc, 0, sprintf 'a megabyte of %vx', $c);

    ($rc, $out) = dsa($out, 'detokenize', '--tokenizer', $file);
    ok($out eq $long, 'and back');
}

# the speed in CPU time, without that of opening the tokenizer

SKIP: {
    skip 'sanitizers are slow', 1 if $ENV{DSA_SANITIZED};

    my $cpu = sub {
        my ($text) = @_;
        my $before = (times)[2];

        ($rc) = dsa($text, 'tokenize', '--tokenizer', $file);
        die "dsa tokenize: $rc\n" if $rc != 0;

        return (times)[2] - $before;
    };

    my $mb = 4;
    my $size = $mb * 1024 * 1024;
    my ($none) = sort { $a <=> $b } map { $cpu->('') } 1 .. 3;

    my @words = map { split /(?<=\s)(?=\S)/, read_file($_) }
                glob "$DSA::Test::root/README.md $DSA::Test::root/*/README.md";
    my $english = '';

    srand 1;
    $english .= $words[rand @words] while length $english < $size;

    for (['English', $english, 5], (map { [(sprintf '%vx', $_),
             $_ x ($size / length $_), 1] } 'a', ' ', "\n", "\xcc\x81"))
    {
        my ($name, $text, $least) = @$_;
        my $speed = $mb / (($cpu->($text) - $none) || 0.01);

        cmp_ok($speed, '>=', $least, "MB/s of $name");
        note(sprintf '%s: %.1f MB/s', $name, $speed);
    }
}

# errors

for (
    [2, '', qr/usage: dsa tokenize/, 'tokenize'],
    [2, '', qr/usage: dsa tokenize/, 'tokenize', '--tokenizer', $file, 'x'],
    [2, '', qr/"--special" is not an option/, 'detokenize', '--tokenizer',
     $file, '--special'],
    [1, '', qr{/nowhere}, 'tokenize', '--tokenizer', '/nowhere'],
    [1, '', qr/model/, 'tokenize', '--tokenizer',
     write_file($t->path('empty.json'), '{}')],
    [1, "\"a\"\n7\n", qr/line 2: not a JSON string/, 'tokenize', '--jsonl',
     '--tokenizer', $file],
    [1, "\"a\n", qr/line 1: /, 'tokenize', '--jsonl', '--tokenizer', $file],
    [1, '{}', qr/not a JSON array/, 'detokenize', '--tokenizer', $file],
    [1, '[67, 4294967296]', qr/element 1, "4294967296"/, 'detokenize',
     '--tokenizer', $file],
    [1, '[67, -1]', qr/element 1, "-1"/, 'detokenize', '--tokenizer', $file],
    [1, '[67, "a"]', qr/element 1, "a"/, 'detokenize', '--tokenizer', $file],
    [1, '[129279]', qr/element 0, "129279"/, 'detokenize', '--tokenizer',
     $file],
) {
    my ($status, $input, $line, @args) = @$_;

    ($rc, $out, $err) = dsa($input, @args);

    is($rc, $status, "exit status of @args[0, $#args]");
    like($err, $line, 'with a line that says why');
}

$t->done;
