#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The state in a Redis Cluster of three nodes and a replica: tenants on all
# nodes, a cluster slot that is moved while chats run, a node that dies and is
# failed over, and nodes that send nonsense.  Each request is in the ledger
# once, and conversations have their turns.

use strict;
use warnings;

use lib 't/lib';
use DSA::Cluster;
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('redis-cluster');
my $cluster = DSA::Cluster->new($t, masters => 3, replicas => 1);
my $fake = $t->start_fake();

my $chat = '/v1/chat/completions';
my @who = map { "t$_" } 0 .. 15;
my (%chats, %turns, %unsure, %conversation);


# A command may wait so long for a cluster slot that is moved.

sub conf { return $t->default_conf() =~ s/dsa_redis [^;]*;/$_[0]/r }

my $patient = 'dsa_redis ' . $cluster->address(0) . ' timeout=600s;';
my $hasty = 'dsa_redis ' . $cluster->address(0) . ' timeout=300ms;';


sub as { return (headers => [ Authorization => "Bearer $_[0]" ]) }


sub reload {
    my ($directive, $workers) = @_;

    $workers ||= 2;
    $t->reload(conf => conf($directive), workers => $workers);
    wait_until(sub { $t->workers == $workers }, 60, 'the old workers to leave');

    return;
}


# A chat of the tenant, or a turn of its conversation.

sub say {
    my ($who, %more) = @_;

    my $r = $t->post($chat, script("prompt 9\ncompletion 3\nt word", %more),
                     as($who));

    $chats{$who}++ if $r->{status} == 200;

    return $r;
}


sub turn {
    my ($who) = @_;

    my $r = say($who, conversation => $conversation{$who});

    if ($r->{status} == 200) {
        $r->{json}{conversation}{stored} ? $turns{$who}++ : $unsure{$who}++;
    }

    return $r;
}


# What is wrong with the messages of all conversations.  A turn that was not
# confirmed, because its node died, may be there.

sub lost {
    my @wrong;

    for my $who (@who) {
        my $n = messages($who);
        my $most = $turns{$who} + ($unsure{$who} // 0);

        push @wrong, "$who: $n of " . 2 * $turns{$who} . " to " . 2 * $most
            if $n !~ /^\d+\z/ || $n % 2 || $n < 2 * $turns{$who}
               || $n > 2 * $most;
    }

    return "@wrong";
}


sub messages {
    my ($who) = @_;

    my $r;

    # a command may take longer than a short timeout

    eval { wait_until(sub {
        $r = $t->get("/v1/conversations/$conversation{$who}", as($who));
        $r->{status} != 503;
    }, 30, 'messages') };

    return $r->{status} == 200 ? scalar @{ $r->{json}{messages} }
                               : "$r->{status}: $r->{body}";
}


# Requests and tokens in the ledger, of each tenant by the name of its key.

my %tenant;

sub ledger {
    my %sum;
    my $all = $cluster->everything('dsa1:*:ledger:*');

    for my $key (keys %$all) {
        my ($digits) = $key =~ /\{(\w+)\}/;
        my $who = $tenant{$digits} || $digits;

        $sum{$who}{ s/.*\|//r } += $all->{$key}{$_} for keys %{ $all->{$key} };
    }

    return \%sum;
}


sub settled {
    my ($name) = @_;

    my $want = { map { ($_ => [ $chats{$_}, 9 * $chats{$_}, 3 * $chats{$_} ])
                     } keys %chats };
    my $has;

    my $look = sub {
        my $ledger = ledger();
        $has = { map { my $l = $ledger->{$_};
                       ($_ => [ map { $l->{$_} }
                                qw/ requests prompt_tokens
                                    completion_tokens / ])
                     } keys %$ledger };
        return !grep { ($has->{$_} || [ 0 ])->[0] < $want->{$_}[0] }
               keys %$want;
    };

    eval { wait_until($look, 60, 'the ledger') };

    return is_deeply($has, $want, $name);
}


# The line of a client's refusal is not counted.

sub errors { return scalar grep { /\[error\]/ && /$_[0]/ && !/refused with/ }
                           split /\n/, $t->error_log }


# A tenant and its conversation on each node

$t->start_nginx(conf => conf($patient), workers => 2);
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'the engine');
$t->wait_redis(2);

for my $who (@who) {
    my %before = map { ($_ => 1) } keys %{ ledger() };

    is(say($who)->{status}, 200, "a chat of $who");
    wait_until(sub { keys %{ ledger() } > keys %before }, 30, 'its entry');

    my ($new) = grep { !$before{$_} } keys %{ ledger() };
    $tenant{$new} = $who;

    my $r = $t->post('/v1/conversations', '{}', as($who));
    $conversation{$who} = $r->{json}{id} or diag($r->{body});
}

my %digits = reverse %tenant;
my %node = map { ($_ => ($cluster->owner("dsa1:{$digits{$_}}:x"))[0]) } @who;

is_deeply([ sort keys %{ { map { ($_ => 1) } values %node } } ], [ 0, 1, 2 ],
          'the tenants are on all nodes');

turn($_) for @who, @who;
settled('each node has the ledger of its tenants');
is_deeply([ map { messages($_) } @who ], [ (4) x @who ],
          'and their conversations');
is($t->logged(qr/\[error\]/), 0, 'redirects are no errors');

# each worker is redirected once for each cluster slot, and then sends commands
# to the node that has it

my $moved = sub { ($cluster->cmd(0, qw/ INFO errorstats /)
                   =~ /errorstat_MOVED:count=(\d+)/)[0] || 0 };

wait_until(sub {
    my $before = $moved->();
    turn($_) for @who;
    $moved->() == $before
}, 60, 'the end of the redirects');
pass('each worker has learned where the tenants are');


# A cluster slot is moved while its tenant and others chat.  The turn of the
# tenant waits; a chat of it is answered, and its entry waits; the others are
# not affected.

my ($mover) = grep { $node{$_} == 1 } @who;
my ($other) = grep { $node{$_} == 1 && $_ ne $mover } @who;
my ($from, $slot) = $cluster->owner("dsa1:{$digits{$mover}}:x");
my $to = 2;

$cluster->begin($slot, $from, $to);
$cluster->keys($slot, $from, $to, qr/:c:|:spend$|:done:/);

# a single key is found on the node that has it: ASK, and ASKING

my $asked = sub { ($cluster->cmd($to, qw/ INFO commandstats /)
                   =~ /cmdstat_asking:calls=(\d+)/)[0] || 0 };
my $before = $asked->();
is(messages($mover), 2 * $turns{$mover}, 'a key that is moved is read');
cmp_ok($asked->(), '>', $before, 'with ASKING');

is(say($mover)->{status}, 200, 'a chat while the slot is moved');
is(turn($other)->{status}, 200, 'a turn of another tenant of this node');

# the turn waits for the end of the move

my $wait = $t->connect;
$wait->send_request(POST => $chat, as($mover), body => json_encode(
    script("prompt 9\ncompletion 3\nt word",
           conversation => $conversation{$mover})));
$before = $asked->();
wait_until(sub { $asked->() > $before + 3 }, 60, 'the turn to be repeated');
$cluster->end($slot, $from, $to);

my $r = $wait->response;
is($r->{status}, 200, 'a turn waits for the end of the move')
    or diag($r->{body});
$chats{$mover}++;
$turns{$mover}++;
settled('no entry is lost, and none is counted twice');
is(messages($mover), 2 * $turns{$mover}, 'the conversation is intact');
is($t->logged(qr/\[error\]/), 0, 'a move that ends in time is no error');

# A script that uses keys which it does not declare never sees a part of them:
# a response whose parent is on the other node, and a day of the ledger that is
# due to be added to its month while that is on the other node.

sub respond {
    my ($parent) = @_;

    return { model => 'deepseek-chat', input => "!fake\nprompt 9\ncompletion 3"
                                                . "\nt word",
             $parent ? (previous_response_id => $parent) : () };
}


my @response;

for (1, 2) {
    $r = $t->post('/v1/responses', respond($response[-1]), as($mover));
    is($r->{status}, 200, 'a response');
    push @response, $r->{json}{id};
    $chats{$mover}++;
}

settled('the responses');

my $old = 'dsa1:{' . $digits{$mover} . '}:ledger:2020-01-01';
my $today = (grep { /\d\d-\d\d-\d\d/ }
             keys %{ $cluster->everything($old =~ s/2020.*/*/r) })[0];

($from, $slot) = $cluster->owner($old);
$cluster->cmd($from, 'HSET', $old, 'm|requests', 0);
$cluster->cmd($from, 'HSET', substr($today, 0, -3), 'm|requests', 0);
$cluster->cmd($from, 'HSET', $old =~ s/ledger.*/spend/r, 'x', 0);
$cluster->cmd($from, 'SET', $old =~ s/ledger.*/rolled/r, 18262);
$to = ($from + 1) % 3;
$cluster->begin($slot, $from, $to);
$cluster->keys($slot, $from, $to,
               qr/:done:|:rolled|:spend|:stored|\Q$today\E|:r:$response[1]
                  |^\Q${\ substr($today, 0, -3) }\E$/x);

is(say($mover)->{status}, 200, 'a chat');
$wait = $t->connect;
$wait->send_request(POST => '/v1/responses', as($mover),
                    body => json_encode(respond($response[1])));
$before = $asked->();
wait_until(sub { $asked->() > $before + 6 }, 60, 'attempts');
$cluster->end($slot, $from, $to);

$r = $wait->response;
is($r->{status}, 200, 'a response whose parent was elsewhere')
    or diag($r->{body});
$chats{$mover}++;
say($mover);
settled('nor is a day counted twice');
is_deeply([ grep { /2020/ } keys %{ $cluster->everything('*:ledger:*') } ],
          [ substr $old, 0, -3 ], 'the day is in its month');

# many moves while four processes chat

my @load = map {
    my $n = $_;

    $t->daemon("load$n", sub {
        my (%done, %stored);

        for (1 .. 1000) {
            last if -e $t->path('stop');

            my $who = $who[int rand @who];
            my $r = $t->post($chat, script("prompt 9\ncompletion 3\nt word",
                                           $_ % 3 ? () : (
                                               conversation =>
                                               $conversation{$who})),
                             as($who));

            # another turn of the conversation may go on

            $r->{status} == 200 || $r->{status} == 409
                or write_file($t->path("bad$n"), $r->{body});
            $done{$who}++ if $r->{status} == 200;
            $stored{$who}++ if ($r->{json}{conversation} || {})->{stored};
        }

        write_file($t->path("load$n.tmp"),
                   json_encode({ done => \%done, stored => \%stored }));
        rename $t->path("load$n.tmp"), $t->path("load$n");
        sleep 1 while 1;
    }, 0)
} 1 .. 4;

for (1 .. 3) {
    for my $who (@who) {
        my ($at, $n) = $cluster->owner("dsa1:{$digits{$who}}:x");

        $cluster->move($n, $at, ($at + 1) % 3);
    }
}

write_file($t->path('stop'), '');

for my $n (1 .. 4) {
    wait_until(sub { -e $t->path("load$n") }, 120, 'the load to end');

    my $has = json_decode(read_file($t->path("load$n")));

    ok(!-e $t->path("bad$n"), 'the load has no errors')
        or diag(read_file($t->path("bad$n")));

    $chats{$_} += $has->{done}{$_} for keys %{ $has->{done} };
    $turns{$_} += $has->{stored}{$_} for keys %{ $has->{stored} };
}

$_->stop for @load;

my $sum = 0;
$sum += $_ for values %chats;
diag("$sum chats");
settled('48 moves under load: the ledger is exact');
is(lost(), '', 'all turns are there');


# A move that does not end: the client gets the reason in time, and the entry of
# a chat waits.

reload($hasty);
($mover) = @who;
($from, $slot) = $cluster->owner("dsa1:{$digits{$mover}}:x");
$cluster->begin($slot, $from, ($from + 1) % 3);
$cluster->keys($slot, $from, ($from + 1) % 3, qr/:spend$|:done:/);

wait_until(sub { $r = turn($mover);
                 $r->{body} =~ /moving the keys/ }, 30, 'a refusal');
is($r->{status}, 503, 'a move that does not end');
is(errors(qr/is moving the keys to another node: "TRYAGAIN/), 1,
   'is logged once');
is(say($mover)->{status}, 200, 'a chat without a conversation');
is(json_decode($t->get('/readyz')->{body})->{ledger}{writable},
   JSON::PP::true, 'others can write');
$cluster->end($slot, $from, ($from + 1) % 3);
settled('its entry comes with the end of the move');


# A node hangs: it has more entries than a worker sends at the same time, and
# those of others are written before the timeout, which is ten minutes.  The
# worker has just begun, so that it does not know yet which node has a tenant.
# It is the only one: another one might get none of the turns below, and would
# ask the first node, while that hangs, where the tenants of others are.

# The requests in the ledger of tenants, by the nodes that have them: a node
# that hangs is not read.

my $written = sub {
    my (%on) = @_;

    my %sum;

    for my $who (keys %on) {
        my $client = $cluster->client($on{$who});

        for my $key ($client->keys("dsa1:{$digits{$who}}:ledger:*")) {
            my $day = $client->hgetall($key);

            $sum{$who} += $day->{$_}
                for grep { /^deepseek[^|]*\|requests$/ } keys %$day;
        }
    }

    return \%sum;
};

# Ten chats of each of the others are written after 300 of the tenants of a node
# that hangs.

my $hang = sub {
    my ($node, $name) = @_;

    my %on = map { ($_ => ($cluster->owner("dsa1:{$digits{$_}}:x"))[0]) } @who;
    my @hung = grep { $on{$_} == $node } @who;
    my @free = grep { $on{$_} != $node } @who;
    my ($want, $has);

    delete @on{@hung};
    $want = $written->(%on);
    $_ += 10 for values %$want;
    $cluster->node($node)->signal('STOP');

    for my $i (1 .. 300) {
        say($hung[$i % @hung])->{status} == 200 or fail('a chat');
    }

    for my $who (@free) {
        say($who)->{status} == 200 or fail('a chat') for 1 .. 10;
    }

    eval { wait_until(sub {
        $has = $written->(%on);
        return !grep { $has->{$_} < $want->{$_} } @free;
    }, 30, 'entries') };
    is_deeply($has, $want, "$name: entries of others are written meanwhile");
    $cluster->node($node)->signal('CONT');
    settled("$name: its own when it goes on");
};

reload($patient, 1);
$hang->(1, 'a node hangs');
turn($_) for @who, @who, @who;
settled('the worker has a connection to each node');
$hang->(1, 'a node that the worker knows hangs');
$hang->(0, 'the node that dsa_redis names hangs');


# A node has no memory left: turns of its tenants are refused, and those of
# others are not.

{
    my %on = map { ($_ => ($cluster->owner("dsa1:{$digits{$_}}:x"))[0]) } @who;
    my @full = grep { $on{$_} == 1 } @who;
    my @free = grep { $on{$_} != 1 } @who;

    $cluster->cmd(1, qw/ CONFIG SET maxmemory 1 /);
    wait_until(sub { say($full[0]); turn($full[0])->{status} == 503 }, 30,
               'a turn to be refused');

    is(join(' ', map { turn($_)->{status} } (@free) x 4),
       join(' ', (200) x (4 * @free)), 'other tenants are served');

    $cluster->cmd(1, qw/ CONFIG SET maxmemory 0 /);
    wait_until(sub { turn($full[0])->{status} == 200 }, 30,
               'a turn to be stored');
    settled('its entries come when it has memory again');
}

reload($hasty);


# A node dies: its tenants wait for the replica, the others do not.

my $replica = 3;
my @gone = grep { ($cluster->owner("dsa1:{$digits{$_}}:x"))[0] == 2 } @who;
my @stay = grep { ($cluster->owner("dsa1:{$digits{$_}}:x"))[0] != 2 } @who;

ok(@gone && @stay, 'tenants on this node and others');
wait_until(sub {
    my @has = map { $cluster->cmd($_, 'ROLE') } 2, $replica;
    $has[1][0] eq 'slave' && $has[1][3] eq 'connected'
        && $has[0][1] == $has[1][4] && @{ $has[0][2] } == 1
}, 30, 'the replica to be in sync');

$cluster->node(2)->kill9;

is(say($_)->{status}, 200, "a chat of $_ while its node is dead") for @gone;
wait_until(sub { turn($stay[0])->{status} == 200 }, 30,
           'a turn of another tenant');

$r = turn($gone[0]);
is($r->{status}, 503, 'a turn of a tenant of the dead node')
    or diag($r->{body});
wait_until(sub { errors(qr/a node of Redis Cluster cannot be reached/) }, 30,
           'the log');
is($t->get('/readyz')->{status}, 200, 'nginx serves');

$cluster->cmd($replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
wait_until(sub { turn($gone[0])->{status} == 200 }, 60, 'the new master');
settled('the entries of the dead node are with its replica');
is(lost(), '', 'and so are the turns');

# the old master comes back as a replica

$cluster->node(2)->restart;
wait_until(sub { $cluster->cmd(2, 'ROLE')->[0] eq 'slave' }, 60,
           'the old master to follow');
turn($_) for @who;
settled('the old master is a replica');

# the only node that dsa_redis names dies: the others are used

@gone = grep { ($cluster->owner("dsa1:{$digits{$_}}:x"))[0] == 0 } @who;
@stay = grep { ($cluster->owner("dsa1:{$digits{$_}}:x"))[0] != 0 } @who;
$cluster->node(0)->kill9;
wait_until(sub { turn($_)->{status} == 200 }, 30, "a turn of $_") for @stay;
is(say($_)->{status}, 200, "a chat of $_") for @gone;
$cluster->node(0)->restart;
wait_until(sub { $cluster->cmd(0, qw/ CLUSTER INFO /)
                 =~ /^cluster_state:ok/m }, 60, 'the first node to serve');
wait_until(sub { turn($_)->{status} == 200 }, 60, "a turn of $_") for @gone;
settled('the first node was away');
is(lost(), '', 'conversations at the end');

$t->done;
