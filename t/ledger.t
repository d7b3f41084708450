# Copyright (C) The nginx-dsa authors
#
# The ledger: each request is counted once, whatever happens to Redis, to the
# replies of Redis, and to nginx.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use IO::Select;
use IO::Socket::INET;
use Test::More;

my $t = DSA::Test->new('ledger');
my $server = $t->start_redis(appendonly => 1);
my $fake = $t->start_fake();
my $chat = '/v1/chat/completions';

my %want;
my $serial = 0;


# Chats, so many at once, each with numbers of its own.

sub chats {
    my ($n, $at_once) = @_;

    while ($n > 0) {
        my $some = $n < $at_once ? $n : $at_once;
        my @open = map { begin() } 1 .. $some;

        for (@open) {
            my $r = $_->response;
            $r->{status} == 200 or fail("a chat: $r->{body}");
        }

        $n -= $some;
    }
}


sub begin {
    my ($lines, %more) = @_;

    my $i = ++$serial;
    my ($prompt, $cached, $completion) = (100 + $i, $i % 64, 1 + $i % 7);

    my $text = "prompt $prompt\ncached $cached\ncompletion $completion\n"
               . (defined $lines ? $lines : 't word');
    my $c = $t->connect;

    $c->send_request(POST => $chat, type => 'application/json',
                     body => json_encode(script($text, %more)));

    count($prompt, $cached, $completion);

    return $c;
}


sub count {
    my ($prompt, $cached, $completion) = @_;

    $want{requests}++;
    $want{prompt_tokens} += $prompt;
    $want{cached_tokens} += $cached;
    $want{completion_tokens} += $completion;
    $want{reasoning_tokens} += 0;
}


# All days' ledgers (midnight may pass), summed up by the last word.

sub ledger {
    my $redis = $t->redis($server);
    my %sum;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);
        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return \%sum;
}


sub settled {
    my ($name, $seconds) = @_;

    eval {
        wait_until(sub { (eval { ledger() } || {})->{requests}
                         && ledger()->{requests} >= $want{requests} },
                   $seconds || 30, 'the ledger');
    };

    is_deeply(ledger(), \%want, $name);
}


$t->start_nginx(redis => 'timeout=1s', workers => 2,
                main => 'worker_shutdown_timeout 60s;');

chats(20, 5);
settled('twenty requests');


# A client that leaves is charged for what was made until then.

my $s = begin("t a\nt b\nhold", stream => JSON::PP::true);
$s->read_head;
$s->next_event;
my $left = cancelled($fake);
$s->close;
wait_until(sub { cancelled($fake) > $left }, 10, 'the cancel');
settled('a client that left');

# one that the engine refused is not

is($t->post($chat, script("noaccept\nerror context too long"))->{status}, 400,
   'refused by the engine');
is($t->post($chat, '{')->{status}, 400, 'refused by us');
chats(1, 1);
settled('refusals cost nothing');


# Redis forgets the script.

$t->redis($server)->cmd(qw/ SCRIPT FLUSH /);
chats(20, 10);
settled('SCRIPT FLUSH');


# Redis restarted, killed, stopped and continued, under load.

for my $round (1 .. 6) {
    chats(10, 5);

    if ($round % 3 == 1) {
        $server->restart;

    } elsif ($round % 3 == 2) {
        $server->kill9;
        chats(10, 5);
        $server->restart;

    } else {
        $server->signal('STOP');
        chats(10, 10);
        $server->signal('CONT');
    }

    chats(10, 5);
}

settled('restarted, killed and stopped under load');

my $load = fork;
die "fork: $!\n" if !defined $load;

if ($load == 0) {

    # while this process restarts Redis, a child keeps chatting

    my $ok = eval { chats(800, 4); 1 };
    print STDERR $@ if !$ok;
    POSIX::_exit($ok ? 0 : 1);
}

my $rounds = 0;

while (waitpid($load, POSIX::WNOHANG()) == 0) {
    $rounds++ % 2 ? $server->kill9 : $server->stop;
    $server->restart;
}

is($?, 0, 'eight hundred chats while Redis comes and goes');
cmp_ok($rounds, '>', 1, "$rounds times");

for my $i ($serial + 1 .. $serial + 800) {
    count(100 + $i, $i % 64, 1 + $i % 7);
}

$serial += 800;
settled('each counted once');


# Redis is full.

my $redis = $t->redis($server);
$redis->cmd(qw/ CONFIG SET maxmemory 1 /);
chats(10, 5);
wait_until(sub { $t->logged(qr/\[error\].*records wait: .*OOM/) }, 10,
           'a line that says so');
chats(10, 5);
cmp_ok($t->logged(qr/\[error\].*records wait/), '<=', 2,
       'once a worker');
$redis->cmd(qw/ CONFIG SET maxmemory 0 /);
settled('Redis was full');


# Reload while Redis is away: old workers stay until all is written.

$server->stop;
chats(10, 5);
my @old = $t->workers;
my $ending = $t->logged(qr/gracefully shutting down/);
$t->reload;
wait_until(sub { $t->logged(qr/gracefully shutting down/) == $ending + 2 },
           20, 'the old workers to be told');
chats(3, 3);

# the kernel may have given all chats to one of the two

cmp_ok(scalar(grep { my $pid = $_; grep { $_ == $pid } @old } $t->workers),
       '>=', 1, 'old workers with records stay');
$server->restart;
settled('written by workers that were to end');
wait_until(sub { my @now = $t->workers;
                 !grep { my $pid = $_; grep { $_ == $pid } @old } @now }, 20,
           'the old workers to leave');
pass('then they leave');

# the same with a limit: what is lost is told, to the last token

$server->stop;
$t->reload(redis => 'timeout=1s', workers => 1,
           main => 'worker_shutdown_timeout 1s;');
wait_until(sub { $t->workers == 1 }, 20, 'one worker');
my %before = %want;
my $number = $serial + 1;
chats(3, 1);
$t->reload;
wait_until(sub { $t->logged(qr/the worker ends with 3 records not written/) },
           20, 'the loss to be told');
is($t->logged(qr/a ledger entry is lost: .*prompt \d+, cached/), 3,
   'each with its numbers');
my ($prompt, $cached, $made) = (100 + $number, $number % 64,
                                1 + $number % 7);
is($t->logged(qr/is\ lost:.*\ prompt\ $prompt,\ cached\ $cached,
                 \ completion\ $made,/x), 1, 'the right ones');
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
%want = %before;
$server->restart;
settled('and no more is lost');


# A bounded queue.

$t->reload(redis => 'timeout=1s queue=5', workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                 == 404 }, 10, 'Redis');
chats(1, 1);
settled('a short queue');

$server->stop;
wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                 == 503 }, 10, 'no Redis');
my $lost = $t->logged(qr/a ledger entry is lost/);
chats(5, 1);
%before = %want;
chats(3, 1);
%want = %before;
is($t->logged(qr/is lost: the queue is full/), 3, 'over it, told');
$server->restart;
settled('up to it, written');


# Replies that are lost on their way: a relay that hands each command to
# Redis and cuts the line instead of bringing the answer, two times of three.

sub relay {
    my ($port) = @_;

    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
        Listen => 16, ReuseAddr => 1) or die "listen: $!\n";
    my $n = 0;

    local $SIG{PIPE} = 'IGNORE';

    while (my $c = $listen->accept) {
        my $up = IO::Socket::INET->new(
            PeerAddr => '127.0.0.1', PeerPort => $server->port,
            Proto => 'tcp') or die "connect: $!\n";
        my $select = IO::Select->new($c, $up);
        my $scripts = 0;

        LINE: for ( ;; ) {
            for my $s ($select->can_read) {
                sysread $s, my $data, 65536 or last LINE;

                if ($s == $c) {
                    $scripts += () = $data =~ /EVAL/g;
                    syswrite $up, $data;
                    next;
                }

                last LINE if $scripts && $n++ % 3;

                syswrite $c, $data;
                $scripts = 0;
            }
        }

        close $c;
        close $up;
    }
}


my $port = $t->free_port;
my $relay = $t->daemon('relay', \&relay, $port);
wait_until(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                       PeerPort => $port) }, 10, 'the relay');

my $conf = read_file($t->path('nginx.conf'));
my $own = $server->port;
$conf =~ s/127\.0\.0\.1:$own timeout=1s queue=5/127.0.0.1:$port timeout=1s/
    or die "no dsa_redis in nginx.conf\n";
$t->reload(conf => $conf);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');

chats(40, 4);
settled('replies lost, nothing counted twice', 60);

my $r = $t->redis($server);
is(scalar(() = $r->keys('dsa1:*:done:*')), $want{requests},
   'a marker for each request');


# What can never be written is told and does not hold up the rest.

my ($key) = $r->keys('dsa1:*:ledger:*');
my ($field) = grep { /\|reasoning_tokens$/ } keys %{ $r->hgetall($key) };
$r->cmd('HSET', $key, $field, 'many');
%before = %want;
chats(1, 1);
wait_until(sub { $t->logged(qr/is lost: .*a field of the ledger is no count/) },
           20, 'the loss to be told');
$r->cmd('HSET', $key, $field, 0);
%want = %before;
chats(2, 1);
settled('after a damaged ledger', 60);

$relay->stop;

$t->done;
