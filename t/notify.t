#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# What the engine sends to a service manager, by the protocol of sd_notify(3):
# the test is the manager.

use strict;
use warnings;

use IO::Select;
use Socket;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Test;

my $t = DSA::Test->new('notify');
my $path = $t->path('notify.sock');
my @received;


# A datagram socket at an address.

sub manager {
    my ($address) = @_;

    socket my $s, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!\n";
    bind $s, pack_sockaddr_un($address) or die "bind: $!\n";

    return IO::Select->new($s);
}


# Receives until a datagram matches; dies after some seconds.

sub until_received {
    my ($select, $re) = @_;

    my $end = time() + slow(60);

    while (time() < $end) {
        my ($s) = $select->can_read($end - time()) or last;
        recv $s, my $text, 4096, 0;
        push @received, $text;
        return $text if $text =~ $re;
    }

    die "nothing that matches $re in: @received\n";
}


my $select = manager($path);

$ENV{NOTIFY_SOCKET} = $path;
$ENV{WATCHDOG_USEC} = 400_000;

# the socket holds only a few datagrams, so they are read from the beginning

my $engine = $t->start_engine(conf => { backend => 'null', replicas => 2 },
                              wait => 0);

until_received($select, qr/^READY=1$/m);
until_received($select, qr/^STATUS=2 of 2 replicas are ready$/m);
is(scalar(grep { /READY/ } @received), 1, 'ready once');

# watchdog notifications, and none from a supervisor that does not run

my $begin = time();

while ($select->can_read(0)) {          # those of the time before
    recv +($select->handles)[0], my $old, 4096, 0;
}

until_received($select, qr/^WATCHDOG=1$/) for 1 .. 10;
cmp_ok(time() - $begin, '>', 1.5, 'signs of life have half the period');

kill STOP => $engine->pid;
wait_until(sub { read_file('/proc/' . $engine->pid . '/stat') =~ /\) T / }, 10,
           'the supervisor to stop');
while (my ($s) = $select->can_read(0)) { recv $s, my $text, 4096, 0 }
ok(!$select->can_read(1), 'a supervisor that hangs sends none');
kill CONT => $engine->pid;
until_received($select, qr/^WATCHDOG=1$/);
pass('it continues');

# a replica that dies

kill KILL => (DSA::Process::children($engine->pid))[0];
until_received($select, qr/^STATUS=1 of 2 replicas are ready$/m);
until_received($select, qr/^STATUS=2 of 2 replicas are ready$/m);
pass('the status follows the replicas');

kill TERM => $engine->pid;
until_received($select, qr/^STOPPING=1$/m);
pass('it announces its end');
is($engine->wait_end(20), 0, 'and ends');

# an abstract address, and values that cannot be used

my $abstract = manager("\0dsa-test-$$");

$ENV{NOTIFY_SOCKET} = "\@dsa-test-$$";
$ENV{WATCHDOG_USEC} = 'often';
my $second = $t->start_engine(conf => { backend => 'null' });
until_received($abstract, qr/^READY=1$/);
like($second->output, qr/WATCHDOG_USEC is "often"; expected a number/,
     'a period that is no number is logged');

$ENV{NOTIFY_SOCKET} = $t->path('nobody.sock');
my $third = $t->start_engine(conf => { backend => 'null' });
like($third->output, qr/NOTIFY_SOCKET ".*nobody.sock": No such file/,
     'a manager that is not there is logged, and the engine serves');

$t->done;
