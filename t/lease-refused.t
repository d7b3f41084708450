# Copyright (C) The nginx-dsa authors
#
# A renewal of a lease that Redis refuses for the moment, as a node of a cluster
# does, is not sent again: executed after the release, it would hold back the
# next turn.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $t = DSA::Test->new('lease-refused');
my $server = $t->start_redis;
my $redis = $t->redis;
my $fake = $t->start_fake();
my $port = $t->free_port;


# Reads a line, or a reply of any kind, as it was sent.

sub reply {
    my ($s) = @_;

    my $text = <$s> // die "closed\n";

    if ($text =~ /^\$(\d+)/) {
        read $s, $text, $1 + 2, length $text;

    } elsif ($text =~ /^\*(\d+)/) {
        $text .= reply($s) for 1 .. $1;
    }

    return $text;
}


# Passes commands to Redis, one at a time, but for renewals of leases, which it
# refuses.  Each of them is a line of "leases", and so is each release.

sub relay {
    my ($client) = @_;

    my $to = IO::Socket::INET->new("127.0.0.1:" . $server->port) or return;

    while (defined(my $n = <$client>)) {
        my $text = $n;
        my @words;

        for (1 .. $n =~ s/\D//gr) {
            my $head = <$client>;
            read($client, my $word, ($head =~ s{\D}{}gr) + 2);
            $text .= $head . $word;
            push @words, $word =~ s/\r\n\z//r;
        }

        if ($words[0] =~ m{^EVAL} && $words[2] eq 1 && $words[3] =~ m{:l:}) {
            open my $log, '>>', $t->path('leases') or die;
            syswrite $log, (@words == 6 ? 'renewal ' : 'release ')
                           . time . "\n";

            if (@words == 6) {
                syswrite $client, "-TRYAGAIN keys are being moved\r\n";
                next;
            }
        }

        syswrite $to, $text;
        syswrite $client, reply($to);
    }

    return;
}

$t->daemon('relay', sub {
    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
        Listen => 64, ReuseAddr => 1) or die "listen: $!\n";

    local $SIG{CHLD} = 'IGNORE';

    while (my $client = $listen->accept) {
        if (!fork) {
            close $listen;
            eval { relay($client) };
            POSIX::_exit(0);
        }

        close $client;
    }
});

wait_until(sub { IO::Socket::INET->new("127.0.0.1:$port") }, 20, 'the relay');

$t->start_nginx(conf => $t->default_conf(redis => 'timeout=5s')
                        =~ s/%%REDIS%%/127.0.0.1:$port/r);

my $uri = '/v1/conversations';

wait_until(sub { $t->get("$uri/conv_" . '0' x 32)->{status} == 404 }, 20,
           'Redis');
$t->wait_sessions(1);

my $id = $t->post($uri, {})->{json}{id};
my $client = $t->connect;

sub leases { return grep { /$_[0]/ }
                    split /\n/, read_file($t->path('leases')) // '' }

$client->send_request(POST => '/v1/chat/completions',
                      type => 'application/json',
                      body => json_encode(script("t a\nwait\nt b",
                                                 conversation => $id)));
wait_until(sub { leases('renewal') }, 60, 'a renewal');

# all that nginx sends again is sent within timeout=, and the next renewal ten
# seconds later

my ($first) = map { / ([\d.]+)$/ } leases('renewal');
my $end = $first + 6;

wait_until(sub { $t->get("$uri/$id")->{status} == 200 && time > $end }, 60,
           'what is sent again');
is((grep { / ([\d.]+)$/ && $1 <= $end } leases('renewal')), 1,
   'the renewal was sent once');

$client->close;
wait_until(sub { leases('release') }, 30, 'the release');
wait_until(sub { !(() = $redis->keys("*:l:$id")) }, 30, 'the end of the lease');
is($t->post('/v1/chat/completions', ask('x', conversation => $id))->{status},
   200, 'the next turn');

$t->done;
