#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The torture run on a Redis Cluster of six nodes with TLS: its cluster slots
# are moved, its replicas take over, and its nodes, nginx's workers and engines
# are ended by kill -9.  The ledger has each request once, to the token, and no
# turn of a conversation is lost.  Each fault must happen while the clients
# send, which a busy machine cannot promise, so that this runs only with
# TORTURE_CLUSTER=1.

use strict;
use warnings;

use lib 't/lib';
use DSA::Soak qw/ check_turns /;
use DSA::Test;
use DSA::Torture qw/ compare report /;
use Test::More;

plan skip_all => 'TORTURE_CLUSTER=1 runs it' if !$ENV{TORTURE_CLUSTER};

my $t = DSA::Test->new('cluster-kill');
my $seed = $ENV{TORTURE_SEED} || 1 + int rand 1_000_000;
my $run = DSA::Torture->new($t, requests => 2500, clients => 80, processes => 2,
                            seed => $seed, cluster => 1);

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

cmp_ok($run->{kills}{$_} || 0, '>', 0, "$_: at least once")
    for qw/ move failover node worker replica /;

diag("seed $seed, ", $run->kills, "\n", report($figures));

$t->done;
