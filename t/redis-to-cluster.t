#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# From a single Redis to a Redis Cluster, as docs/operate/redis.md describes:
# what was in the one is in the other, and entries of the queue file that nginx
# sends again are counted once.

use strict;
use warnings;

use lib 't/lib';
use DSA::Cluster;
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('redis-to-cluster');
my $old = $t->start_redis(appendonly => 1);
my $fake = $t->start_fake();
my $chat = '/v1/chat/completions';
my @who = map { "t$_" } 0 .. 7;
my (%chats, %conversation);


sub as { return (headers => [ Authorization => "Bearer $_[0]" ]) }


sub say {
    my ($who, %more) = @_;

    my $r = $t->post($chat, script("prompt 9\ncompletion 3\nt word", %more),
                     as($who));

    $r->{status} == 200 ? $chats{$who}++ : fail("a chat: $r->{body}");

    return;
}


sub requests {
    my ($all) = @_;

    my %sum;

    for my $key (grep { /:ledger:/ } keys %$all) {
        my ($digits) = $key =~ /\{(\w+)\}/;

        $sum{$digits} += $all->{$key}{$_}
            for grep { /\|requests$/ } keys %{ $all->{$key} };
    }

    return [ sort { $a <=> $b } values %sum ];
}


sub single {
    my $client = $t->redis($old);

    return { map { my $type = $client->cmd('TYPE', $_);
                   ($_ => $type eq 'hash' ? $client->hgetall($_)
                                          : $client->cmd('GET', $_))
                 } $client->keys };
}


$t->start_nginx();
$t->wait_redis(1);

for my $i (0 .. $#who) {
    my $who = $who[$i];

    $conversation{$who} = $t->post('/v1/conversations', '{}',
                                   as($who))->{json}{id};
    say($who, conversation => $conversation{$who}) for 0 .. $i;
}

my $want = [ sort { $a <=> $b } values %chats ];

wait_until(sub { eval { is_same(requests(single()), $want) } }, 30,
           'the ledger');

sub is_same { return "@{ $_[0] }" eq "@{ $_[1] }" }

# entries that Redis executes and does not confirm, because nginx is killed

my $confirmed = 0;
$confirmed += $_ for @$want;

kill STOP => $old->pid;
say($_) for @who;

my $master = $t->nginx_pid;
kill KILL => $master, $t->workers;
wait_until(sub { !kill 0, $master }, 20, 'nginx to end');
unlink $t->path('nginx.pid');
kill CONT => $old->pid;

$want = [ sort { $a <=> $b } values %chats ];
my $sum;
wait_until(sub { $sum = 0;
                 $sum += $_ for @{ requests(single()) };
                 $sum > $confirmed }, 30,
           'Redis to execute what it had received');

# the move

my $cluster = DSA::Cluster->new($t);
my $out = `redis-cli --cluster import ${\ $cluster->address(0)} \\
           --cluster-from 127.0.0.1:$old->{port} --cluster-copy 2>&1`;

is($?, 0, 'the import') or diag($out);

diag($sum - $confirmed, " entries were executed and not confirmed");

my $before = single();
my $after = $cluster->everything;

is_deeply($after, $before, 'the cluster has all keys with their values');
is(scalar(grep { $cluster->cmd($_, 'DBSIZE') > 0 } 0 .. 2), 3,
   'on all nodes');
$old->kill9;

my $directive = 'dsa_redis ' . $cluster->address(1);

$t->start_nginx(conf => $t->default_conf() =~ s/dsa_redis \S+/$directive/r,
                wait => 1);
wait_until(sub { $t->get('/readyz')->{json}{ledger}{used} == 0 }, 30,
           'the queue to be sent again');
is_deeply(requests($cluster->everything), $want,
          'entries that are sent again are counted once');

say($_, conversation => $conversation{$_}) for @who;
$want = [ sort { $a <=> $b } values %chats ];
wait_until(sub { is_same(requests($cluster->everything), $want) }, 30,
           'the ledger');

my @lengths = map { scalar @{ $t->get("/v1/conversations/$conversation{$_}",
                                      as($_))->{json}{messages} } } @who;
is_deeply(\@lengths, [ map { 2 * ($_ + 2) } 0 .. $#who ],
          'conversations go on');

$t->done;
