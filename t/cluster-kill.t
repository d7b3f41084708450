#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The torture run on a Redis Cluster of six nodes with TLS: its cluster slots
# are moved, its replicas take over, and its nodes, nginx's workers and engines
# are ended by kill -9.  The ledger has each request once, to the token, and no
# turn of a conversation is lost.  The clients send until each fault has
# happened a few times.

use strict;
use warnings;

use lib 't/lib';
use DSA::Soak qw/ check_turns /;
use DSA::Test;
use DSA::Torture qw/ compare report /;
use Test::More;

my $t = DSA::Test->new('cluster-kill');
my $seed = $ENV{TORTURE_SEED} || 1 + int rand 1_000_000;
my %least = (worker => 3, move => 4, failover => 2, node => 2, replica => 2);
my $run = DSA::Torture->new($t, requests => 2000, clients => 80, processes => 2,
                            seed => $seed, cluster => 1, least => \%least);

$run->run;

my ($figures, @bad) = compare($run->results);

is(@bad + 0, 0, 'the ledger has what was sent')
    or diag(join "\n", splice @bad, 0, 20);
cmp_ok($figures->{exact}, '>', 1000, "$figures->{exact} requests to the token");

my @chats = grep { $_->{kind} eq 'chat' } $run->requests;
my @turns = grep { ($_->{claim} || {})->{stored} } @chats;

cmp_ok(scalar @turns, '>', 100, scalar(@turns) . ' turns are stored');

@bad = check_turns(\@chats, $run->conversations);
is(@bad + 0, 0, 'and no turn is lost')
    or diag(join "\n", splice @bad, 0, 20);

cmp_ok($run->{kills}{$_} || 0, '>=', $least{$_}, "faults: $_")
    for sort keys %least;

diag("seed $seed, ", $run->kills, "\n", report($figures));

$t->done;
