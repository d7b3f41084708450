package DSA::Wait;

# Copyright (C) The nginx-dsa authors
#
# Waiting for a condition, with a deadline.

use strict;
use warnings;

use Exporter qw/ import /;
use Time::HiRes qw/ time /;

our @EXPORT_OK = qw/ wait_until pause slow /;


# Under sanitizers everything takes longer, and deadlines stretch with it.

sub slow { ($ENV{DSA_SLOW} || 1) * ($_[0] || 1) }


sub pause { select undef, undef, undef, $_[0] }


# The value of the sub as soon as it is true, asked every 10 ms; dies when it
# is not within so many seconds.

sub wait_until {
    my ($code, $seconds, $what) = @_;

    my $end = time + slow($seconds);

    for ( ;; ) {
        my $value = $code->();

        return $value if $value;

        die "gave up after $seconds s waiting for "
            . ($what || 'a condition') . "\n" if time > $end;

        pause(0.01);
    }
}


1;
