package DSA::Wait;

# Copyright (C) The nginx-dsa authors
#
# Waiting for a condition, with a deadline.

use strict;
use warnings;

use Exporter qw/ import /;
use Time::HiRes qw/ time /;

our @EXPORT_OK = qw/ wait_until pause slow /;


# Under sanitizers everything takes longer, so deadlines are longer, too.

sub slow { ($ENV{DSA_SLOW} || 1) * ($_[0] || 1) }


sub pause { select undef, undef, undef, $_[0] }


# No deadline of wait_until() is shorter than this, because other processes may
# use all CPUs.  It is shorter than the timeouts of nginx, so that a condition
# does not become true by one of those.

use constant LEAST => 30;


# Calls the sub every 10 ms until it returns true, and returns that value.  Dies
# after so many seconds.

sub wait_until {
    my ($code, $seconds, $what) = @_;

    $seconds = LEAST if $seconds < LEAST;
    my $end = time + slow($seconds);

    for ( ;; ) {
        my $value = $code->();

        return $value if $value;

        die "timed out after $seconds s waiting for "
            . ($what || 'a condition') . "\n" if time > $end;

        pause(0.01);
    }
}


1;
