# Copyright (C) The nginx-dsa authors
#
# Runs the Python tests of demo/, t/demo/test_*.py.  The model is trained on
# another machine, which has numpy and torch.  Only the tests that need one of
# them are skipped here, with a reason.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('tasks');

chdir $DSA::Test::root or die "chdir: $!\n";

my @sources = sort glob 't/demo/test_*.py';

ok(@sources > 0, 'tests were found');

$ENV{DSA_BUILD} = $t->build;
$ENV{PYTHONPATH} = 'demo';
$ENV{PYTHONDONTWRITEBYTECODE} = 1;
$ENV{TMPDIR} = $t->dir;

$t->model;

for my $source (@sources) {
    my ($name) = $source =~ m{(test_\w+)\.py$};
    my $out = $t->path("$name.out");

    # Debian's Python, even if the PATH has another one first

    my $rc = system 'sh', '-c', 'exec /usr/bin/python3 -m unittest discover'
                                . ' -v -s t/demo -p "$1" > "$2" 2>&1',
                    '-', "$name.py", $out;
    my $text = read_file($out);
    my ($n) = $text =~ /^Ran (\d+) tests? in /m;

    ok($n, "$name: " . ($n || 'no') . ' tests ran');
    is($rc, 0, "$name: passed") or diag($text);

    while ($text =~ /\.\.\. skipped '(.*)'$/mg) {
        my $why = $1;

        SKIP: {
            skip("$name: $why", 1)
                if $why =~ /^no (?:numpy|torch)\b/ || !$ENV{DSA_NO_SKIP};
            fail("$name: skipped: $why");
        }
    }
}

$t->done;
