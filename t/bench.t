#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The load client measures every token's delay, even if the machine did not
# run it for many steps and its streams ended meanwhile.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('bench');
my $port = $t->free_port;
my $source = $t->spawn('source', $t->build . '/bench/source', $port, 50);

$source->{ready} = sub {
    IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
};
$source->wait_ready(10);


# Runs the client and returns its report.  The sub runs when all streams are
# open.

sub load {
    my ($code) = @_;

    my $pid = open my $fh, '-|', $t->build . '/bench/load', '-p', $port,
              '-c', 20, '-n', 30, '-u', '/?n=30', '-o', $port
              or die "load: $!\n";

    is(scalar <$fh>, "open 20\n", 'the streams are open');
    $code->($pid);

    my $r = json_decode(scalar <$fh>);
    close $fh;

    return $r;
}


my $r = load(sub { });
is($r->{ok}, 20, 'all streams end');
is($r->{measured}, 600, 'all tokens are measured');

# The source sends another stream of 40 ticks while the client is stopped, so
# that the 30 ticks of the client's streams are over.

$r = load(sub {
    my ($pid) = @_;

    kill 'STOP', $pid;
    DSA::HTTP->new(port => $port)->request('GET', '/?n=40');
    kill 'CONT', $pid;
});
is($r->{ok}, 20, 'all streams end after a stall');
is($r->{measured}, 600, 'all tokens are measured after a stall');

$t->done;
