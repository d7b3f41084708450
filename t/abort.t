#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# dsa_ignore_client_abort: an answer whose client left, or stopped reading, is
# finished and its turn stored.  Without it, as by default, the engine is
# cancelled.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;

my $t = DSA::Test->new('abort');

$t->start_redis;

my $fake = $t->start_fake();

$t->start_nginx(
    redis => 'ttl=1h',
    server => 'dsa_ignore_client_abort on;
               location /off/ { dsa_pass v32; dsa_ignore_client_abort off; }
               location /slow/ { dsa_pass v32; dsa_output_limit 64k; }
               location /timeout/ { dsa_pass v32; send_timeout 300ms;
                                    dsa_output_limit 16m; }');


# A conversation, created when Redis is connected.

sub create {
    my $r;

    wait_until(sub { $r = $t->post('/v1/conversations', {});
                     $r->{status} == 200 }, 20, 'Redis');

    return $r->{json}{id};
}


# The answer's text in a conversation, when it has its first turn.

sub stored {
    my ($id) = @_;
    my $r;

    wait_until(sub { $r = $t->get("/v1/conversations/$id");
                     ($r->{json}{version} // 0) > 1 }, 120, 'the turn');

    return $r->{json}{messages}[-1]{content};
}


# A script that waits for a permit in the middle of its answer.

sub turn {
    my ($id, %more) = @_;

    return script("t part\nwait\nt  end\n", conversation => $id, %more);
}


sub cancels {
    my $m = $t->metrics;
    my $n = 0;

    $n += $m->{$_} for grep { /^dsa_cancelled_total/ } keys %$m;

    return $n;
}


# The client leaves in the middle of a stream, and before its headers.

my $id = create();
my $s = $t->stream(turn($id));
ok($s->next_event, 'a stream begins');
$s->close();
$t->get('/metrics') for 1 .. 3;
is(ctl($fake, 'live'), '1', 'the client left, and the engine goes on');
ctl($fake, 'go');
is(stored($id), 'part end', 'its turn is stored');

$id = create();
$s = $t->stream(script("noaccept\nwait\naccept\nt late\n",
                       conversation => $id), head => 0);
wait_until(sub { ctl($fake, 'live') eq '1' }, 10, 'the request');
$s->reset();
ctl($fake, 'go');
is(stored($id), 'late', 'a client that left before the first byte');

$id = create();
$s = $t->stream(turn($id, stream => JSON::PP::false), head => 0);
wait_until(sub { ctl($fake, 'live') eq '1' }, 10, 'the request');
$s->reset();
ctl($fake, 'go');
is(stored($id), 'part end', 'an answer that is not streamed');

# HTTP/2: a stream is reset; the whole connection is closed

for my $how (qw/ reset close /) {
    my $h = DSA::HTTP2->new(port => $t->port(1));

    $id = create();

    my $stream = $h->request('POST', $chat,
                             json_encode({ %{ turn($id) }, stream => $true }));

    $h->until(sub { ($h->data($stream) // '') =~ /part/ });
    $how eq 'reset' ? $h->reset($stream) : $h->close;
    ctl($fake, 'go');
    is(stored($id), 'part end', "HTTP/2, $how");
}

# a client that reads nothing: more than dsa_output_limit waits, send_timeout

my $word = 'w' x 500;

for my $where (qw/ slow timeout /) {
    $id = create();
    $s = DSA::HTTP->new(port => $t->port, rcvbuf => 4096);
    $s->send_request('POST', "/$where/chat/completions",
                     body => json_encode({ %{ script("r 6000 $word\nt end\n",
                                                     conversation => $id,
                                                     max_tokens => 9000) },
                                           stream => $true }));
    is(length stored($id), 6000 * length($word) + 3, "$where: all is stored");
}

is(cancels(), 0, 'nothing was cancelled');
is($t->metrics->{dsa_requests_in_flight}, 0, 'and nothing remains');

# off, as by default

$id = create();
$s = $t->stream(turn($id), uri => '/off/chat/completions');
ok($s->next_event, 'off: a stream begins');
$s->close();
wait_until(sub { ctl($fake, 'live') eq '0' }, 20, 'the engine to be cancelled');
is(cancels(), 1, 'the client left, and the engine is cancelled');
is($t->get("/v1/conversations/$id")->{json}{version}, 1, 'nothing is stored');

$t->done;
