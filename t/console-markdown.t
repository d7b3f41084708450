# Copyright (C) The nginx-dsa authors
#
# Markdown of the page with texts that are long or made to take long: each is
# rendered as a whole, in a time that grows with its length.

use strict;
use warnings;

use File::Copy qw/ copy /;
use Test::More;

use lib 't/lib';
use DSA::Test;

my $t = DSA::Test->new('console-markdown');
my $dir = $t->path('console');
my $many = 300_000;     # more than arguments fit on the stack of a browser

if (system('command -v node > /dev/null 2>&1') != 0) {
    plan skip_all => 'no node' if !$ENV{DSA_NO_SKIP};
    fail('no node');
    done_testing();
    exit;
}

# older versions of node take a .js for a module only below such a file

mkdir $dir;
write_file("$dir/package.json", '{"type": "module"}');
copy("$DSA::Test::root/console/$_.js", "$dir/$_.js") or die "copy: $!\n"
    for qw/ markdown inline dom /;

sub links { join '', map { "[]($_[0]" } 1 .. 400 }

my %text = (
    'escapes'         => '\\*' x $many,
    'emphasis'        => '*a* ' x $many,
    'rows'            => "|a|\n|-|\n" . "|x|\n" x $many,
    'items'           => "- x\n" x $many,
    'blank lines'     => "- a\n" . "\n" x $many . "  b\n",
    'blocks'          => "# x\n" x $many,
    'line breaks'     => "x  \n" x $many,
    'one line'        => 'x' x 1_000_000,
    'open brackets'   => '[' x $many,
    'no spaces'       => links('x' x 2_900),
    'spaces'          => links(' ' x 2_900),
    'spaces, address' => links('x' . ' ' x 2_900),
);

write_file($t->path('texts'), json_encode(\%text));

my $program = "$DSA::Test::root/t/console/markdown.mjs";
my $texts = $t->path('texts');
my $out = `node $program $dir < $texts`;
is($?, 0, 'all texts were rendered') or BAIL_OUT($out);

my $result = json_decode($out);

for my $name (sort keys %text) {
    is($result->{$name}{error}, undef, "$name: no error");
}

for my $name ('escapes', 'emphasis', 'rows', 'items', 'blocks', 'line breaks') {
    cmp_ok($result->{$name}{nodes}, '>=', $many, "$name: all are there");
}

# no space may be tried as the end of each of two gaps

for my $name ('spaces', 'spaces, address') {
    my ($cpu, $other) = map { $result->{$_}{cpu} } $name, 'no spaces';

    cmp_ok($cpu, '<', 20 * $other + 200_000,
           "$name: takes about as long as other texts (us)");
    note("$name: $cpu us, a text without spaces $other us");
}

$t->done;
