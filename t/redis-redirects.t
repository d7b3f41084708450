#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Redirects of a Redis that is broken or hostile: circles, addresses that are
# none, other cluster slots, ever new nodes, and addresses without a node.  Each
# command ends in time, the log has the cause once, and the next command
# succeeds.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use IO::Select;
use IO::Socket::INET;
use Test::More;

my $t = DSA::Test->new('redis-redirects');
my $id = 'conv_00112233445566778899aabbccddeeff';
my ($first, $second, $nobody) = map { $t->free_port } 1 .. 3;


# The cluster slot of a key: CRC16 of its hash tag, bit by bit.

sub slot {
    my ($key) = @_;

    my $crc = 0;

    for my $c (unpack 'C*', $key =~ /\{(.+?)\}/ ? $1 : $key) {
        $crc ^= $c << 8;
        $crc = ($crc & 0x8000 ? $crc << 1 ^ 0x1021 : $crc << 1) & 0xffff
            for 1 .. 8;
    }

    return $crc % 16384;
}


# A node.  Its reply to HGETALL is the text of the file "reply.PORT", in which
# SLOT is the cluster slot of the key, OTHER another one, NEXT a random port, at
# which no test has a server.  Each line of "commands" is a port and a command
# that it has received.

sub node {
    my ($port) = @_;

    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
        Listen => 64, ReuseAddr => 1) or die "listen: $!\n";
    my $select = IO::Select->new($listen);
    my %in;
    my %reply = (ROLE => "*3\r\n\$6\r\nmaster\r\n:0\r\n*0\r\n",
                 INFO => "-ERR no\r\n", PING => "+PONG\r\n");

    local $SIG{PIPE} = 'IGNORE';

    for ( ;; ) {
        for my $s ($select->can_read) {

            if ($s == $listen) {
                my $c = $listen->accept or next;
                $select->add($c);
                $in{$c} = '';
                next;
            }

            if (!sysread $s, $in{$s}, 65536, length $in{$s}) {
                $select->remove($s);
                close $s;
                next;
            }

            # no word has a line feed

            while ($in{$s} =~ /\A\*(\d+)\r\n/) {
                my $n = $1;

                $in{$s} =~ s/\A\*\d+\r\n((?:\$\d+\r\n.*\r\n){$n})//
                    or last;

                my @words = $1 =~ /^\$\d+\r\n(.*)\r\n/mg;

                open my $log, '>>', $t->path('commands') or die;
                syswrite $log, "$port $words[0]\n";

                my $text = $reply{$words[0]} || "+OK\r\n";

                if ($words[0] eq 'HGETALL') {
                    my $slot = slot($words[1]);

                    $text = read_file($t->path("reply.$port"));
                    $text =~ s/SLOT/$slot/;
                    $text =~ s/OTHER/($slot + 1) % 16384/e;
                    $text =~ s/NEXT/1 + int rand 1023/e;
                    $text .= "\r\n";
                }

                syswrite $s, $text;
            }
        }
    }
}


sub reply {
    my ($port, $text) = @_;

    write_file($t->path("reply.$port.new"), $text);
    rename $t->path("reply.$port.new"), $t->path("reply.$port");

    return;
}


sub sent { return scalar grep { /\A$_[0] $_[1]/ }
                         split /\n/, read_file($t->path('commands')) || '' }

# The line of a client's refusal is not counted.

sub errors { return scalar grep { /\[error\]/ && /$_[0]/ && !/refused with/ }
                           split /\n/, $t->error_log }

sub conversation { $t->get("/v1/conversations/$id") }


my @nodes = map { $t->daemon("node$_", \&node, $_) } $first, $second;

reply($_, '*0') for $first, $second;

for my $port ($first, $second) {
    wait_until(sub { IO::Socket::INET->new("127.0.0.1:$port") }, 30, 'nodes');
}

$t->start_nginx(conf => <<"EOC");
%%GLOBALS%%
events { worker_connections 512; }
http {
    %%HTTP%%
    dsa_redis 127.0.0.1:$first timeout=2s;
    dsa_pool none { engine unix:%%DIR%%/none.sock; }
    server {
        listen 127.0.0.1:%%PORT%%;
        location /v1/ { dsa_pass none; }
        location = /status { dsa_status; }
    }
}
EOC

wait_until(sub { conversation()->{status} == 404 }, 30, 'Redis');


# An answer: status and message.

sub refused {
    my ($name, $re) = @_;

    my $r = conversation();

    is($r->{status}, 503, $name);
    like($r->{json}{error}{message}, $re, "$name: the message");
    unlike($r->{body}, qr/127\.0\.0\.1|MOVED|ASK/, "$name: no address");

    return;
}


# All is well again, and the node that the last redirect named is not asked.

sub good {
    my ($name) = @_;

    reply($_, '*0') for $first, $second;
    wait_until(sub { conversation()->{status} == 404 }, 30, "after $name");

    return;
}


# a redirect is followed, and the node remembered

reply($first, "-MOVED SLOT 127.0.0.1:$second");
is(conversation()->{status}, 404, 'MOVED');
my $n = sent($first, 'HGETALL');
is(conversation()->{status}, 404, 'and again');
is(sent($first, 'HGETALL'), $n, 'without a redirect');
reply($second, "-MOVED SLOT 127.0.0.1:$first");
reply($first, '*0');
is(conversation()->{status}, 404, 'MOVED back');

reply($second, '*0');
reply($first, "-ASK SLOT :$second");
$n = sent($first, 'HGETALL');
is(conversation()->{status}, 404, 'ASK, to another port of the same host');
is(conversation()->{status}, 404, 'and again');
is(sent($first, 'HGETALL'), $n + 2, 'is not remembered');
is(sent($second, 'ASKING'), 2, 'ASKING precedes each command');

# circles: bounded in commands and in time

for my $case ([ 'MOVED to itself', "-MOVED SLOT 127.0.0.1:$first", '*0' ],
              [ 'a circle of two', "-MOVED SLOT 127.0.0.1:$second",
                "-MOVED SLOT 127.0.0.1:$first" ],
              [ 'a circle of ASK', "-ASK SLOT 127.0.0.1:$second",
                "-ASK SLOT 127.0.0.1:$first" ])
{
    my ($name, @replies) = @$case;

    reply($first, $replies[0]);
    reply($second, $replies[1]);

    $n = sent('\\d+', 'HGETALL');
    refused($name, qr/in a circle/);

    # 6 for each attempt, and in two seconds at most 18 attempts

    my $more = sent('\\d+', 'HGETALL') - $n;

    ok($more >= 6 && $more <= 108, "$name: $more commands");
    good($name);
}

is(errors(qr/in a circle/), 1, 'circles are logged once');

# addresses and cluster slots that are none

for my $text ('MOVED', 'MOVED SLOT', 'MOVED SLOT node.example:6379',
              'MOVED SLOT 127.0.0.1', 'MOVED SLOT 127.0.0.1:0',
              'MOVED SLOT 127.0.0.1:65536', 'MOVED SLOT 127.0.0.1:6379 x',
              'MOVED SLOT 1.2.3:6379', 'MOVED SLOT ::g:6379',
              "MOVED OTHER 127.0.0.1:$second", "ASK OTHER 127.0.0.1:$second",
              'MOVED 16384 127.0.0.1:1', 'MOVED -1 127.0.0.1:1',
              'ASK x 127.0.0.1:1', 'MOVED SLOT ' . 'x' x 4000)
{
    reply($first, "-$text");
    $n = sent('\\d+', 'HGETALL');
    refused(substr($text, 0, 40), qr/an IP address and a port/);
    is(sent('\\d+', 'HGETALL'), $n + 1, 'no further attempt');
}

is(errors(qr/a redirect that does not have/), 1, 'is logged once');
is(scalar(grep { length > 600 } split /\n/, $t->error_log), 0,
   'in short lines');
good('nonsense');

# an address without a node

reply($first, "-MOVED SLOT 127.0.0.1:$nobody");
refused('nobody there', qr/cannot be reached/);
refused('nobody there, again', qr/cannot be reached/);
ok(errors(qr/cannot be reached.*redis: 127\.0\.0\.1:$nobody/),
   'the log has its address');
reply($first, "-MOVED SLOT ::1:$nobody");
refused('nobody at an address of IPv6', qr/cannot be reached/);
ok(errors(qr/cannot be reached.*redis: \[::1\]:$nobody/),
   'the log has it, too');
good('nobody');

# TRYAGAIN for ever

reply($first, '-TRYAGAIN Multiple keys request during rehashing of slot');
refused('TRYAGAIN', qr/moving the keys/);
good('TRYAGAIN');

# ever new nodes: their number is bounded

reply($first, '-MOVED SLOT 127.0.0.1:NEXT');
reply($second, "-MOVED SLOT 127.0.0.1:$first");

conversation() for 1 .. 100;
my ($worker) = $t->workers;
cmp_ok(scalar(() = glob "/proc/$worker/fd/*"), '<', 120, 'open files');
good('new nodes');

# nodes that are all in use, and another one

my @many = map { $t->free_port } 1 .. 70;
my @more = map { $t->daemon("many$_", \&node, $_) } @many;

for my $port (@many) {
    wait_until(sub { IO::Socket::INET->new("127.0.0.1:$port") }, 30, 'nodes');
}

wait_until(sub {
    for my $port (@many) {
        reply($_, "*0") for $second, @many;
        reply($first, "-ASK SLOT 127.0.0.1:$port");
        conversation();
    }
    errors(qr/more than 64 nodes/);
}, 60, 'more nodes than there may be');

is(errors(qr/more than 64 nodes/), 1, 'too many nodes are logged once');
good('many nodes');
is($t->workers, 1, 'the worker has served all of it');

$t->done;
