#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A Redis Cluster in which all nodes that dsa_redis names have become replicas:
# a worker that starts then asks one of them for the node of each key, so that
# turns are stored and ledger entries counted, by it or by a master.

use strict;
use warnings;

use lib 't/lib';
use DSA::Cluster;
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('redis-replicas');
my $cluster = DSA::Cluster->new($t, masters => 3, replicas => 3, spread => 1);
my $fake = $t->start_fake();
my @who = map { "t$_" } 0 .. 7;
my ($chats, %conversation) = (0);


sub conf {
    my $named = join ' ', map { $cluster->address($_) } 0 .. 2;

    return $t->default_conf() =~ s/dsa_redis [^;]*;/dsa_redis $named $_[0];/r;
}


# A chat of each tenant, and a turn.  Returns the statuses of the turns.

sub chats {
    return join ' ', map {
        my $who = $_;
        my @as = (headers => [ Authorization => "Bearer $who" ]);

        $conversation{$who} ||= $t->post('/v1/conversations', {},
                                         @as)->{json}{id};

        my ($r, $turn) = map {
            $t->post('/v1/chat/completions',
                     script("prompt 9\ncompletion 3\nt word", %$_), @as)
        } {}, { conversation => $conversation{$who} };

        $chats++ for grep { $_->{status} == 200 } $r, $turn;
        $turn->{json}{conversation}{stored} ? 'stored' : $turn->{status};
    } @who;
}


sub settled {
    my ($name) = @_;

    my $n;

    eval { wait_until(sub {
        my $all = $cluster->everything('dsa1:*:ledger:*');

        $n = 0;

        for my $day (values %$all) {
            $n += $day->{$_} for grep { /\|requests$/ } keys %$day;
        }

        return $n >= $chats;
    }, 30, 'the ledger') };

    is($n, $chats, $name);
}


$t->start_nginx(conf => conf('timeout=10s'), workers => 1);
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'the engine');
is(chats(), join(' ', map { 'stored' } @who), 'turns');
settled('masters are named');

for my $replica (3 .. 5) {
    # a failover that takes longer than five seconds is given up

    wait_until(sub { $cluster->cmd($replica, 'ROLE')->[0] eq 'master'
                     || $cluster->failover($replica) == $replica }, 120,
               'a failover');
}

wait_until(sub { $cluster->follows($_) }, 30, 'the old masters') for 0 .. 2;
is(join(' ', $cluster->masters), '3 4 5', 'all that are named are replicas');

my ($before) = $t->workers;

$t->allow_alert(qr/worker process \d+ exited on signal 9/);
kill 'KILL', $before;
wait_until(sub { my ($now) = $t->workers; $now && $now != $before }, 20,
           'another worker');
wait_until(sub { chats() eq join ' ', map { 'stored' } @who }, 30, 'turns');
pass('turns with a worker that starts now');
settled('replicas are named');

# a user who lacks +asking

for (0 .. 5) {
    $cluster->cmd($_, qw/ ACL SETUSER dsa on >s3cret ~* +@all -asking/);
}

write_file($t->path('pw'), "s3cret\n");
chmod 0600, $t->path('pw');
$t->reload(conf => conf('timeout=10s user=dsa password_file=%%DIR%%/pw'),
           workers => 1);
wait_until(sub { $t->logged(qr/is a replica and not the primary: "NOPERM/) },
           30, 'the log');
pass('a user who lacks +asking: the log has the cause');
chats();
$cluster->cmd($_, qw/ ACL SETUSER dsa +asking /) for 0 .. 5;
settled('and the entries wait for it');

$t->done;
