package DSA::Unit;

# Copyright (C) The nginx-dsa authors
#
# Runs C tests (cmocka) as Perl tests.

use strict;
use warnings;

use Exporter qw/ import /;
use Test::More;

use DSA::Test;

our @EXPORT = qw/ c_tests /;


# Runs every program DIR/test_*.c; each of its cases is a test.

sub c_tests {
    my ($t, $dir) = @_;

    my $env = $t->sanitizer_env('unit');

    $ENV{$_} = $env->{$_} for keys %$env;
    $ENV{CMOCKA_MESSAGE_OUTPUT} = 'TAP';
    $ENV{TMPDIR} = $t->dir;

    chdir $DSA::Test::root or die "chdir: $!\n";

    my @sources = sort glob "$dir/test_*.c";

    ok(@sources > 0, 'there are C tests');

    for my $source (@sources) {
        my ($name) = $source =~ m{(test_\w+)\.c$};
        my $out = $t->path("$name.tap");
        my $err = $t->path("$name.out");

        my $rc = system 'sh', '-c', 'exec "$1" > "$2" 2> "$3"', '-',
                        $t->build . "/t/$name", $out, $err;

        my $n = 0;

        for (split /\n/, read_file($out)) {
            next if !/^(not )?ok \d+ - (.*)/;
            ok(!$1, "$name: $2");
            $n++;
        }

        ok($n > 0, "$name: ran");
        is($rc, 0, "$name: exit status")
            or diag(read_file($out), read_file($err));
    }
}


1;
