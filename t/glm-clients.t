# Copyright (C) The nginx-dsa authors
#
# Tests that need no meaningful text, with a small GLM model instead of the
# small DeepSeek model: DSA_FAMILY chooses it (t/lib/DSA/Test.pm).  These are
# the tests of clients that start an engine with it; the others have no model,
# or name one, and would only be repeated.  Two of them run at the same time.

use strict;
use warnings;

use POSIX ();
use Test::More;

use lib 't/lib';
use DSA::Test;

my $t = DSA::Test->new('glm clients');

my @tests = qw/ openai anthropic-sdk ai langchain /;


# Starts a test, and returns its process id.

sub begin {
    my ($name) = @_;

    my $pid = fork;

    die "fork: $!\n" if !defined $pid;
    return $pid if $pid != 0;

    $ENV{DSA_FAMILY} = 'glm';

    open STDOUT, '>', $t->path("$name.tap") or POSIX::_exit(126);
    open STDERR, '>&', \*STDOUT or POSIX::_exit(126);
    exec $^X, '-It/lib', "t/$name.t" or POSIX::_exit(127);
}


sub ended {
    my ($name, $status) = @_;

    my $tap = read_file($t->path("$name.tap"));

  SKIP: {
        skip("$name: $1", 1) if $tap =~ /^1\.\.0 # SKIP (.*)/m;

        ok($status == 0 && $tap =~ /^1\.\.[1-9]/m, $name) or diag($tap);
    }
}


my @left = @tests;
my %running;

while (@left || %running) {
    if (@left && keys %running < 2) {
        my $name = shift @left;

        $running{begin($name)} = $name;
        next;
    }

    my $pid = waitpid -1, 0;

    die "waitpid: $!\n" if $pid < 0;

    ended(delete $running{$pid}, $?) if exists $running{$pid};
}

$t->done;
