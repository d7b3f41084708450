#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Chats over HTTP/2: streams beside each other, resets, windows.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;

my $t = DSA::Test->new('h2');
my $fake = $t->start_fake();

$t->start_nginx(
    server => 'location /small/ { dsa_pass v32; dsa_output_limit 64k; }
               location /short/ { dsa_pass v32; dsa_timeout 300ms; }
               location /cut/ { dsa_pass v32; dsa_timeout 10s; }');

sub body { json_encode($_[0]) }
sub streaming { json_encode({ %{ $_[0] }, stream => $true }) }

sub text {
    return join '', map { $_->{choices}[0]{delta}{content} // '' }
                    map { json_decode($_) } $_[0] =~ /^data: (\{.*\})$/mg;
}


my $h = DSA::HTTP2->new(port => $t->port(1));

my $id = $h->request('POST', $chat, body(ask('hello')));
$h->until(sub { $h->ended($id) });
is($h->status($id), 200, 'not streamed');
is(json_decode($h->data($id))->{choices}[0]{message}{content}, 'echo: hello',
   'the answer');

$id = $h->request('POST', $chat, streaming(ask('hello')));
$h->until(sub { $h->ended($id) });
is($h->status($id), 200, 'a stream');
is(text($h->data($id)), 'echo: hello', 'its text');
like($h->data($id), qr/data: \[DONE\]\n\n$/, 'to the end');

$id = $h->request('GET', '/v1/models');
$h->until(sub { $h->ended($id) });
is($h->status($id), 200, 'models');

$id = $h->request('POST', $chat, '{');
$h->until(sub { $h->ended($id) });
is($h->status($id), 400, 'an error');
is(json_decode($h->data($id))->{error}{type}, 'invalid_request_error',
   'its shape');

$id = $h->request('POST', $chat, body(ask('x' x 100000)));
$h->until(sub { $h->ended($id) });
is(length json_decode($h->data($id))->{choices}[0]{message}{content}, 100006,
   'a body of many frames');


# many streams of one connection, each its own

my %want = map { my $n = $_;
                 $h->request('POST', $chat, streaming(ask("number $n")))
                 => "echo: number $n" } 1 .. 100;
$h->until(sub { !grep { !$h->ended($_) } keys %want });
is(scalar(grep { text($h->data($_)) ne $want{$_} } keys %want), 0,
   '100 streams at once');


# a reset cancels one and leaves the others alone

my $a = $h->request('POST', $chat, streaming(script("t a\nhold\n")));
my $b = $h->request('POST', $chat, streaming(script("t b\nwait\nt end\n")));
$h->until(sub { text($h->data($a)) eq 'a' && text($h->data($b)) eq 'b' });
$h->reset($a);
wait_until(sub { ctl($fake, 'live') eq '1' }, 10, 'it to be cancelled');
is(scalar(@{[cancelled($fake)]}), 1, 'a reset cancels');
ctl($fake, 'go');
$h->until(sub { $h->ended($b) });
is(text($h->data($b)), 'bend', 'the other stream goes on');

$a = $h->request('POST', $chat, body(script("noaccept\nhold\n")));
wait_until(sub { ctl($fake, 'live') eq '1' }, 10, 'the submit');
$h->reset($a);
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'it to be cancelled');
pass('before it was accepted');


# the connection ends, and all of its streams

my @ids = map { $h->request('POST', $chat, streaming(script("t a\nhold\n"))) }
          1 .. 10;
$h->until(sub { 10 == grep { $h->status($_) } @ids });
$h->close();
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'all to be cancelled');
is(scalar(@{[cancelled($fake)]}), 12, 'a lost connection cancels all');


# a window of 0 stops one stream, not the other

$h = DSA::HTTP2->new(port => $t->port(1), window => 0, grant => 0);

my $word = 'w' x 100;
$a = $h->request('POST', $chat, streaming(script("r 100 $word\n")));
$b = $h->request('POST', $chat, streaming(script("t free\n")));
$h->until(sub { $h->status($a) && $h->status($b) });
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'both to be done');
is($h->data($a) . $h->data($b), '', 'a window of nothing');
$h->window($b, 100000);
$h->until(sub { $h->ended($b) });
is(text($h->data($b)), 'free', 'one is let go');
is($h->data($a), '', 'the other one waits');

# small steps

my $step = 1;

while (!$h->ended($a)) {
    my $had = length $h->data($a);
    $h->window($a, $step);
    $h->until(sub { $h->ended($a) || length $h->data($a) >= $had + $step });
    $step = $step * 2 + 1;
}

is(text($h->data($a)), $word x 100, 'and comes through whatever window');


# a timeout: the engine gets the cancel at once, the client the error when it
# reads

my $submits = submitted($fake);

$a = $h->request('POST', '/short/chat/completions',
                 body(script("hold\n")));
wait_until(sub { submitted($fake) > $submits }, 10, 'the submit');
$h->until(sub { $h->status($a) });
is($h->status($a), 504, 'not in time');
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'it to be cancelled');
is($h->data($a), '', 'the client does not read yet');
$h->window($a, 10000);
$h->until(sub { $h->ended($a) });
is(json_decode($h->data($a))->{error}{code}, 'timeout', 'the whole error');

# an answer that has begun is cut off; streamed, and its window shut until then

$a = $h->request('POST', '/cut/chat/completions',
                 body(script("t a\nhold\n")));
$b = $h->request('POST', '/cut/chat/completions',
                 streaming(script("t a\nhold\n")));
wait_until(sub { ctl($fake, 'live') eq '2' }, 10, 'the submits');
wait_until(sub { ctl($fake, 'live') eq '0' }, 40, 'them to be cancelled');
$h->window($_, 10000) for $a, $b;
$h->until(sub { $h->ended($a) && $h->ended($b) });
is($h->status($a), 200, 'an answer that has begun');
is(json_decode($h->data($a))->{choices}[0]{finish_reason}, 'length',
   'is cut off');
like($h->data($b), qr/"finish_reason":"length".*data: \[DONE\]/s,
     'streamed, too');


# one that never opens its window is cancelled

$a = $h->request('POST', '/small/chat/completions',
                 streaming(script("r 100000 $word\n", max_tokens => 150000)));
wait_until(sub { $t->metrics->{'dsa_cancelled_total{reason="slow"}'} == 1 },
           20, 'it to be cancelled');
pass('too much waits for it');
wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'the engine to hear of it');


# A stream is cancelled while a frame of it is half sent: the rest of the frame
# is its own text, although its memory may be used again.

$h = DSA::HTTP2->new(port => $t->port(1), window => 0x7fffffff, grant => 0,
                     rcvbuf => 4096);
$a = $h->request('POST', '/small/chat/completions',
                 streaming(script("r 100000 " . 'w' x 500 . "\n",
                                  max_tokens => 150000)));
wait_until(sub { $t->metrics->{'dsa_cancelled_total{reason="slow"}'} == 2 },
           180, 'it to be cancelled');
$t->post($chat, ask('Z' x 100000)) for 1 .. 20;
$h->until(sub { $h->ended($a) }, 60);
is($h->ended($a), 'reset', 'cut off');
(my $rest = $h->data($a)) =~ s/w+//g;
like($rest, qr/^(?:data: \{[\x20-\x7e]*\n\n)*(?:data: [\x20-\x7e]*)?$/,
     'with its own bytes');
unlike($rest, qr/ZZZZ/, 'and nobody else\'s');


# a reload: the stream ends, then the connection

$h = DSA::HTTP2->new(port => $t->port(1));
$a = $h->request('POST', $chat, streaming(script("t a\nwait\nr 20 b\n")));
$h->until(sub { text($h->data($a)) eq 'a' });
$t->reload();
ctl($fake, 'go');
$h->until(sub { $h->ended($a) });
is(text($h->data($a)), 'a' . 'b' x 20, 'no event is lost by a reload');

$h->close();
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
is($t->metrics->{dsa_requests_in_flight}, 0, 'nothing is left');

$t->done;
