#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Readers that are slow or do not read at all: they get everything or are
# cancelled, and do not delay others.

use strict;
use warnings;

use Compress::Raw::Zlib ();
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $t = DSA::Test->new('slow');
my $fake = $t->start_fake('slots=64');

$t->start_nginx(
    server => 'location /small/ { dsa_pass v32; dsa_output_limit 64k; }
               location /big/ { dsa_pass v32; dsa_output_limit 64m;
                                dsa_timeout 60s; }
               location /rate/ { dsa_pass v32; limit_rate 40k; }
               location /gzip/ { dsa_pass v32; gzip on; gzip_min_length 0;
                                 gzip_types text/event-stream; }
               location /timeout/ { dsa_pass v32; send_timeout 200ms;
                                    dsa_output_limit 64m; }');

my $word = 'w' x 500;


# a reader that stops and goes on gets every word, of more than what the
# kernel's buffers take

my $s = $t->stream(script("r 20000 $word\n", max_tokens => 100000),
                   uri => '/big/chat/completions', rcvbuf => 4096);
$s->next_event();
wait_until(sub { ctl($fake, 'live') eq '0' }, 30, 'the engine to be done');

my @events = $s->events(60);
my $m = DSA::HTTP->gather(@events);
is(length $m->{content}, 20000 * 500, 'all of it');
is($m->{done}, 1, 'to the end');
cmp_ok($m->{chunks}, '<', 15000, 'coalesced');


# one that does not read is cancelled, the others go on

my @slow = map { $t->stream(script("r 100000 $word\n",
                            max_tokens => 150000), rcvbuf => 4096,
                            uri => '/small/chat/completions') } 1 .. 3;
my $other = $t->stream(script("wait\n" . "r 200 ok\n"));

wait_until(sub { (() = cancelled($fake)) == 3 }, 30, 'it to be cancelled');
is($t->metrics->{'dsa_cancelled_total{reason="slow"}'}, 3, 'three cancelled');
is($t->logged(qr/client of request "[^"]+" is too slow: \d+ /), 3,
   'as info');

ctl($fake, 'go');
$m = DSA::HTTP->gather($other->events);
is("$m->{content}|$m->{done}", 'ok' x 200 . '|1', 'another reader has it all');

for my $s (@slow) {
    $s->read_body();
    is($s->truncated, 1, 'the slow one\'s answer is cut off');
}


# send_timeout, when little waits

$s = $t->stream(script("r 20000 $word\nhold\n",
                       max_tokens => 100000), rcvbuf => 4096,
                uri => '/timeout/chat/completions');
wait_until(sub { (() = cancelled($fake)) == 4 }, 30, 'it to be cancelled');
is($t->metrics->{'dsa_cancelled_total{reason="slow"}'}, 4, 'by send_timeout');


# limit_rate

$s = $t->stream(script("r 60 $word\n"), uri => '/rate/chat/completions');
$m = DSA::HTTP->gather($s->events(30));
is(length $m->{content}, 60 * 500, 'limit_rate: all of it');
is($m->{done}, 1, 'to the end');


# gzip flushes each event

{
    $s = $t->stream(script("wait\nt first\nwait\nt second\n"),
                    uri => '/gzip/chat/completions',
                    headers => ['Accept-Encoding', 'gzip']);
    is($s->header('content-encoding'), 'gzip', 'compressed');

    my $z = Compress::Raw::Zlib::Inflate->new(
                -WindowBits => Compress::Raw::Zlib::WANT_GZIP());
    my $text = '';

    for my $want ('first', 'second', '[DONE]') {
        ctl($fake, 'go') if $want ne '[DONE]';

        while (index($text, $want) < 0) {
            my $piece = $s->read_piece();
            last if !defined $piece;
            $z->inflate($piece, my $out);
            $text .= $out;
        }
    }

    like($text, qr/first.*second.*\[DONE\]/s, 'each event as it comes');
}


is($t->metrics->{dsa_requests_in_flight}, 0, 'nothing is left');

$t->done;
