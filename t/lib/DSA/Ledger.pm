package DSA::Ledger;

# Copyright (C) The nginx-dsa authors
#
# What the ledger in Redis has, over all days because midnight may pass, and how
# many clients put it there.

use strict;
use warnings;

use Exporter qw/ import /;
use POSIX ();

use DSA::Wait qw/ wait_until /;

our @EXPORT = qw/ ledger_sums ledger_tenants ledger_change
                  ledger_differences clients_died /;


# The sum of each count of a Redis connection's ledger, of all tenants.

sub ledger_sums {
    my ($redis) = @_;

    my %sum;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);

        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return \%sum;
}


# The same by tenant, and without the ledgers of keys; "cost" is the sum of all
# costs, in 10^-12.

sub ledger_tenants {
    my ($redis) = @_;

    my %sum;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my ($tenant) = $key =~ /\{(\w+)\}:ledger:\d{4}-\d\d-\d\d$/ or next;
        my $fields = $redis->hgetall($key);

        for my $field (keys %$fields) {
            my ($name) = $field =~ /([^|]+)$/;

            $sum{$tenant}{$name} += $fields->{$field};
            $sum{$tenant}{cost} += $fields->{$field} if $name =~ /^cost_/;
        }
    }

    return \%sum;
}


# By how much the sums of a DSA::Test are larger than those of the last call,
# once nothing waits to be written.

my %before;

sub ledger_change {
    my ($t) = @_;

    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
               'the entries');

    my $sum = ledger_sums($t->redis);
    my $before = $before{$t} || {};

    $before{$t} = $sum;

    return { map { $_ => $sum->{$_} - ($before->{$_} || 0) } keys %$sum };
}


# Where the counts @names of the tenants in $want are others in $got; a count
# that is missing is 0.  Returns texts.

sub ledger_differences {
    my ($got, $want, @names) = @_;

    my @bad;

    for my $tenant (sort keys %$want) {
        for my $name (@names) {
            my ($have, $must) = map { $_->{$tenant}{$name} || 0 } $got, $want;

            push @bad, "$tenant has $name $have and not $must"
                if $have != $must;
        }
    }

    return @bad;
}


# Runs each sub in a process of its own, with the seed beside it.  Returns how
# many of them died.

sub clients_died {
    my (@clients) = @_;

    my $died = 0;

    my @pids = map {
        my ($seed, $code) = @$_;
        my $pid = fork // die "fork: $!\n";

        if ($pid == 0) {
            srand $seed;
            local $SIG{PIPE} = 'IGNORE';

            my $ok = eval { $code->(); 1 };

            print STDERR "a client died: $@" if !$ok;
            POSIX::_exit($ok ? 0 : 1);
        }

        $pid;
    } @clients;

    for (@pids) {
        waitpid $_, 0;
        $died += $? != 0;
    }

    return $died;
}


1;
