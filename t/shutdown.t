#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# worker_shutdown_timeout: before nginx closes the connections of an old worker,
# its requests end with an error, in the form of their API, and are billed.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;
my $text = 'The server shuts down or has a new configuration, and the answer '
           . 'was not complete in time (worker_shutdown_timeout); send the '
           . 'request again.';

my $t = DSA::Test->new('shutdown');
my $redis = $t->start_redis();
my $fake = $t->start_fake('model=m');

my %conf = (
    main => 'worker_shutdown_timeout 4s;',
    http => 'log_format dsa "$request_id $status $dsa_finish_reason '
            . '$dsa_completion_tokens";',
    server => "access_log " . $t->path('dsa.log') . " dsa;
               location /ping/ { dsa_pass v32; dsa_keepalive 50ms json=on; }
               location /on/ { dsa_pass v32; dsa_ignore_client_abort on; }",
);

$t->start_nginx(%conf, workers => 2);


# The lines that make the fake engine send N tokens and then nothing.

sub hold { '!fake' . "\n" . "t word\n" x $_[0] . "hold\n" }


# Requests of each API, of which the engine sends 2 tokens, as [URI, body,
# number].

my $ask = { model => 'm', messages => [ { role => 'user',
                                          content => hold(2) } ] };
my @apis = (
    [ $chat, $ask, 6 ],
    [ '/v1/responses', { model => 'm', input => hold(2) }, 3 ],
    [ '/v1/messages', { %$ask, max_tokens => 50 }, 3 ],
    [ '/v1/completions', { model => 'm', prompt => hold(2) }, 3 ],
);


# What is left of the events of a stream, checked by its API.

sub ends {
    my ($name, $uri, $events) = @_;

    my @data = grep { defined } map { $_->{data} } @$events;
    my $last = json_decode($data[-1]);

    is(scalar(grep { $_ eq '[DONE]' } @data), 0, "$name: no [DONE]");

    if ($uri =~ /responses/) {
        is($last->{type}, 'response.failed', "$name: the last event");
        is($last->{response}{status}, 'failed', "$name: its status");
        is($last->{response}{error}{message}, $text, "$name: its error");

    } elsif ($uri =~ /messages/) {
        is($events->[-1]{event}, 'error', "$name: the last event");
        is($last->{type}, 'error', "$name: its type");
        is($last->{error}{message}, $text, "$name: its error");

    } else {
        is($last->{error}{message}, $text, "$name: the error");
        is($last->{error}{type}, 'server_error', "$name: its type");
    }

    return;
}


# Starts all requests, calls the sub, and checks how they end.  Returns their
# number.

sub shut {
    my ($how, $code) = @_;

    my (@streams, @plain, @two);

    for my $api (@apis) {
        my ($uri, $body, $n) = @$api;

        for my $i (1 .. $n) {
            my $s = $t->connect;

            $s->send_request('POST', $uri, body => json_encode(
                { %$body, stream => $true }),
                $i == 2 ? (version => '1.0') : ());
            push @streams, { s => $s, uri => $uri,
                             name => "$how, $uri, stream $i" };
        }

        my $c = $t->connect;

        $c->send_request('POST', $uri, body => json_encode($body));
        push @plain, { c => $c, uri => $uri, name => "$how, $uri" };
    }

    # HTTP/2, a stream and another answer of each API on one connection

    my $h = DSA::HTTP2->new(port => $t->port(1));

    for my $api (@apis) {
        my ($uri, $body) = @$api;

        push @two, { uri => $uri, stream => $_, name => "$how, HTTP/2, $uri",
                     id => $h->request('POST', $uri, json_encode(
                         { %$body, $_ ? (stream => $true) : () })) }
            for 0, 1;
    }

    # a blank line in front of a JSON object has sent the status

    my $ping = $t->connect;

    $ping->send_request('POST', '/ping/chat/completions',
                        body => json_encode($ask));

    # not accepted; and the client sends only half of the body

    my $early = $t->connect;
    my $half = $t->connect;
    my $body = json_encode($ask);

    $early->send_request('POST', $chat, body => json_encode(
        { %$ask, messages => [ { role => 'user',
                                 content => "!fake\nnoaccept\nprompt 0\n"
                                            . "hold\n" } ] }));
    $half->send("POST $chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                . 'application/json' . "\r\nContent-Length: "
                . (length($body) + 10) . "\r\n\r\n$body");

    # all of them wait for the engine or for their body

    my $n = @streams + @plain + @two + 3;

    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == $n }, 30,
               "$n requests");
    wait_until(sub { ctl($fake, 'live') == $n - 1 }, 30, 'the engine');

    for my $s (@streams) {
        $s->{s}->read_head;
        is($s->{s}->status, 200, "$s->{name}: begins");
    }

    $ping->read_head;
    $h->until(sub { !grep { $_->{stream} && !$h->status($_->{id}) } @two });
    $code->();

    for my $s (@streams) {
        ends($s->{name}, $s->{uri}, [ $s->{s}->events ]);
        is($s->{s}->truncated, 0, "$s->{name}: not cut off");
    }

    for my $p (@plain, { c => $early, name => "$how, not accepted" },
               { c => $half, name => "$how, half of a body" })
    {
        my $r = $p->{c}->response;

        is($r->{status}, 503, "$p->{name}: 503");
        is($r->{json}{error}{message}, $text, "$p->{name}: the error");
        is($r->{headers}{'retry-after'}, 1, "$p->{name}: Retry-After");
    }

    $h->until(sub { !grep { !$h->ended($_->{id}) } @two });

    for my $two (@two) {
        my $data = $h->data($two->{id});

        is($h->status($two->{id}), $two->{stream} ? 200 : 503,
           "$two->{name}: its status");
        $two->{stream}
            ? ends($two->{name}, $two->{uri}, [ map {
                  my ($event) = /^event: (.*)/m;
                  my ($value) = /^data: (.*)/m;
                  { event => $event, data => $value }
              } split /\n\n/, $data ])
            : is(json_decode($data)->{error}{message}, $text,
                 "$two->{name}: the error");
    }

    my $rest = $ping->read_body;

    is(json_decode($rest)->{error}{message}, $text,
       "$how, blank lines: the error behind them");
    is($ping->truncated, 0, "$how, blank lines: not cut off");

    return $n;
}


# The completion tokens in the ledger, and its requests.

sub ledger {
    my ($tokens, $requests) = (0, 0);

    for my $key ($t->redis->keys('dsa1:*:ledger:*')) {
        my $fields = $t->redis->hgetall($key);

        $tokens += $fields->{$_} for grep { /completion_tokens/ } keys %$fields;
        $requests += $fields->{$_} for grep { /requests/ } keys %$fields;
    }

    return ($requests, $tokens);
}


sub settle {
    wait_until(sub { $t->workers == 2 }, 30, 'old workers to leave');

    return;
}


my $n = shut('reload', sub { $t->reload(workers => 2, %conf) });

settle();
is($t->metrics->{'dsa_cancelled_total{reason="shutdown"}'}, $n - 1,
   'requests that an engine has are cancelled');
is(ctl($fake, 'live'), 0, 'the engine has none any more');

wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 30,
           'the entries');
# 8 are not streamed: nothing was sent, and they cost nothing

is_deeply([ ledger() ], [ $n - 10, 2 * ($n - 10) ],
          'streams with tokens are billed, with all of them');

my @log = grep { !/GET/ } split /\n/, read_file($t->path('dsa.log'));

is(scalar(grep { / (?:200|503) error 2$/ } @log), $n - 10,
   'they are in the access log');
is(scalar(grep { / 503 error / } @log), 4 + 4 + 2, 'each with its status');


# The client has left, but its answer goes on.  nginx ends it as well.

my $c = $t->connect;

$c->send_request('POST', '/on/chat/completions', body => json_encode($ask));
wait_until(sub { ctl($fake, 'live') == 1 }, 30, 'the request');
$c->close;
$t->reload(workers => 2, %conf);
settle();
is(ctl($fake, 'live'), 0, 'an answer without a client ends as well');


# A client that does not read its answer does not get the error.

my $slow = $t->connect(rcvbuf => 4096);

$slow->send_request('POST', $chat, body => json_encode(
    { %$ask, stream => $true, messages => [ {
        role => 'user', content => "!fake\nr 20000 word\nhold\n" } ] }));
wait_until(sub { ctl($fake, 'live') == 1 }, 30, 'the request');
$t->reload(workers => 2, %conf);
settle();
pass('a client that does not read is closed');
is(ctl($fake, 'live'), 0, 'and its request ends');
$slow->close;


# Without worker_shutdown_timeout streams run to their end.

$t->reload(workers => 2, %conf, main => '');
settle();

my $s = $t->stream(script("t a\nwait\nt b\n"));

$s->next_event for 1 .. 2;
$t->reload(workers => 2, %conf);
wait_until(sub { $t->workers == 3 }, 30, 'the old worker to shut down');
ctl($fake, 'go');
is(DSA::HTTP->gather($s->events)->{done}, 1,
   'without worker_shutdown_timeout a stream runs to its end');
settle();


# QUIT

my $pid = $t->nginx_pid;

shut('QUIT', sub { kill 'QUIT', $pid });
wait_until(sub { !kill 0, $pid }, 30, 'nginx to end');
is($t->logged(qr/open socket/), 0, 'no socket was left open');

$t->done;
