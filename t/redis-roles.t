#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The roles of Redis: a worker uses the primary of several addresses, leaves a
# Redis that has become a replica, and finds the new primary itself or with a
# Sentinel.  No ledger entry is lost or counted twice on the way.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('redis-roles');
my $chat = '/v1/chat/completions';
my $requests = 0;

# a primary would wait at its end for a replica that lags behind

my ($first, $second) = map {
    $t->start_redis(appendonly => 1, conf => { 'shutdown-timeout' => 0 })
} 1 .. 2;

my $fake = $t->start_fake();
my ($one, $two) = map { "127.0.0.1:$_->{port}" } $first, $second;


sub conf {
    my ($directive) = @_;

    return $t->default_conf() =~ s/dsa_redis [^;]*;/$directive/r;
}


sub role { return $t->redis($_[0])->cmd('ROLE')->[0] }
sub replicate { $t->redis($_[0])->cmd('REPLICAOF', split /:/, $_[1]) }
sub promote { $t->redis($_[0])->cmd(qw/ REPLICAOF NO ONE /) }


# Waits until a replica has everything that its primary has.

sub in_sync {
    my ($primary, $replica) = @_;

    wait_until(sub {
        my @has = map { $t->redis($_)->cmd('ROLE') } $primary, $replica;

        $has[1][0] eq 'slave' && $has[1][3] eq 'connected'
            && $has[0][1] == $has[1][4] && @{ $has[0][2] } == 1
    }, 20, 'the replica to be in sync');
}


sub chats {
    my ($n) = @_;

    for (1 .. $n) {
        my $r = $t->post($chat, script("prompt 9\ncompletion 3\nt word"));
        $r->{status} == 200 or fail("a chat: $r->{body}");
    }

    $requests += $n;
}


sub ledger {
    my ($server) = @_;

    my %sum;
    my $redis = $t->redis($server);

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);
        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return \%sum;
}


sub settled {
    my ($server, $name) = @_;

    eval { wait_until(sub { (ledger($server)->{requests} || 0) >= $requests },
                      20, 'the ledger') };

    my $has = ledger($server);

    is_deeply([ map { $has->{$_} || 0 }
                qw/ requests prompt_tokens completion_tokens / ],
              [ $requests, 9 * $requests, 3 * $requests ], $name);
}


# configuration

for my $case (
    [ "dsa_redis $one $two timeout=1s;", undef ],
    [ "dsa_redis $one timeout=1s unix:/tmp/a=b;", undef ],
    [ "dsa_redis $one $two sentinel=mymaster;", undef ],
    [ "dsa_redis $one no-port;", qr/invalid parameter "no-port".* address/ ],
    [ "dsa_redis $one :0;", qr/in ":0" of "dsa_redis"/ ],
    [ "dsa_redis $one sentinel=;", qr/expected the name of a primary/ ],
    [ "dsa_redis $one sentinel_password_file=/dev/null;", qr/must contain/ ])
{
    my ($directive, $want) = @$case;
    my ($rc, $out) = $t->nginx_test(conf => conf($directive));

    ok($want ? $rc != 0 && $out =~ $want : $rc == 0, $directive)
        or diag($out);
}


# several addresses

replicate($second, $one);
in_sync($first, $second);

$t->start_nginx(conf => conf("dsa_redis $two $one timeout=10s;"), workers => 2);
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'the engine');

chats(6);
settled($first, 'the address of a primary is used');
is($t->logged(qr/\[error\].*replica/), 0, 'a replica beside it is no error');

# the roles change while both run

in_sync($first, $second);
promote($second);
replicate($first, $two);
in_sync($second, $first);
chats(8);
settled($second, 'a Redis that became a replica is left');

# the primary is killed, and entries wait until there is another one

in_sync($second, $first);
$second->kill9;
chats(8);
is(ledger($first)->{requests}, $requests - 8, 'they wait');
promote($first);
settled($first, 'the primary was killed, and its replica promoted');

# the old one comes back as a replica

$second->restart;
replicate($second, $one);
in_sync($first, $second);
chats(4);
settled($first, 'the old primary is back as a replica');

# no primary at all

replicate($first, '127.0.0.1:' . $t->port(2));
chats(2);
wait_until(sub { $t->logged(qr/\[error\].*Redis\ is\ a\ (?:read-only\ )?replica
                               /x) }, 10, 'the log');
pass('no primary: the cause is logged');
promote($first);
settled($first, 'and nothing is lost');


# a Sentinel, which is a part of the program of Redis

my $port = $t->free_port;
my $conf = $t->path('sentinel.conf');

in_sync($first, $second);
write_file($conf, <<"EOC");
port $port
bind 127.0.0.1
dir ${\ $t->dir}
daemonize no
requirepass s3cret
sentinel monitor mymaster 127.0.0.1 $first->{port} 1
sentinel down-after-milliseconds mymaster 5000
sentinel failover-timeout mymaster 10000
EOC

$t->spawn('sentinel', 'redis-server', $conf, '--sentinel');

my $sentinel = { port => $port, password => 's3cret' };

wait_until(sub {
    my $r = eval { $t->redis($sentinel)->cmd(
                       qw/ SENTINEL replicas mymaster /) };
    $r && @$r == 1 }, 120, 'the Sentinel to find the replica');

write_file($t->path('sentinel.pw'), "s3cret\n");
chmod 0600, $t->path('sentinel.pw');

# the first address refuses connections

my $directive = "dsa_redis 127.0.0.1:1 127.0.0.1:$port sentinel=mymaster "
                . 'sentinel_password_file=%%DIR%%/sentinel.pw timeout=1s;';

$t->reload(conf => conf($directive), workers => 2);
wait_until(sub { $t->workers == 2 }, 20, 'the old workers to leave');
chats(6);
settled($first, 'the primary of a Sentinel');

in_sync($first, $second);
$first->kill9;
chats(6);
wait_until(sub { (eval { role($second) } || '') eq 'master' }, 120,
           'the failover');
chats(2);
settled($second, 'the Sentinel promoted the replica');

# A Sentinel closes the clients of a Redis whose role it changes.  It does
# nothing for 30 seconds (TILT) if the machine did not run it for two.

$first->restart;
wait_until(sub { (eval { role($first) } || '') eq 'slave' }, 120,
           'the old primary to follow');
chats(2);
settled($second, 'the old primary follows');

$t->reload(conf => conf($directive =~ s/mymaster/nobody/r), workers => 2);
wait_until(sub { $t->workers == 2 }, 20, 'the old workers to leave');
wait_until(sub { $t->logged(qr/\[error\].*monitors no primary with the name/)
               }, 10, 'the log');
pass('an unknown name');

$t->done;
