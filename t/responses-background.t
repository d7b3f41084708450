#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Responses in the background: without a connection of their client, cancelled,
# read again event by event, and what remains of a response whose worker was
# killed, reloaded, or lost Redis.

use strict;
use warnings;

use List::Util qw/ sum /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Ledger;
use DSA::Test;

my $uri = '/v1/responses';
my $true = JSON::PP::true;
my $false = JSON::PP::false;
my @alice = (headers => [ Authorization => 'Bearer alice' ]);
my @bob = (headers => [ Authorization => 'Bearer bob' ]);

my $t = DSA::Test->new('background');
my $server = $t->start_redis(appendonly => 1);
my $redis = $t->redis;
my $fake = $t->start_fake;
my %nginx = (redis => 'ttl=1h timeout=5s', workers => 2,
             http => 'client_max_body_size 8m;', server => 'send_timeout 10m;');

$t->start_nginx(%nginx);
$t->wait_sessions(2);
$t->allow_alert(qr/worker process \d+ exited on signal 9/);
wait_until(sub { $t->get("$uri/" . 'resp_' . '0' x 32)->{status} == 404 }, 20,
           'Redis') for 1 .. 8;


sub played {
    my ($lines, %more) = @_;

    return { model => 'deepseek-chat', input => "!fake\n$lines",
             background => $true, %more };
}


# Starts a response that does not stream.

sub begin {
    my ($lines, %more) = @_;

    my $r = $t->post($uri, played($lines, %more), @alice);

    is($r->{status}, 200, 'begun') or diag($r->{body});

    return $r->{json};
}


sub look {
    my ($id, @as) = @_;

    return $t->get("$uri/$id", @as ? @as : @alice)->{json};
}


sub ended {
    my ($id, $status) = @_;

    wait_until(sub { look($id)->{status} eq $status }, 60, $status);

    return look($id);
}


sub text_of {
    my ($o) = @_;

    return join '', map { map { $_->{text} } @{ $_->{content} || [] } }
                    grep { $_->{type} eq 'message' } @{ $o->{output} };
}


# The events of a stream up to its end.

sub events {
    my ($c) = @_;

    return map { $_->{json} } grep { $_->{json} } $c->events;
}


# GET with stream, after the event N.

sub follow {
    my ($id, $after) = @_;

    my $c = $t->connect;

    $c->send_request('GET', "$uri/$id?stream=true"
                            . (defined $after ? "&starting_after=$after" : ''),
                     @alice);
    $c->read_head;

    return $c;
}


# Reloads nginx and waits until no worker of before serves requests.

sub reloaded {
    my (%more) = @_;

    my %old = map { $_ => 1 } $t->workers;

    $t->reload(%nginx, %more);
    wait_until(sub { !grep { $old{$_} } $t->workers }, 30, 'the old workers');
    $t->wait_sessions(2);
}


sub live { ctl($fake, 'live') =~ s/\s//gr }


# Without stream: the answer comes at once, while the engine has sent no token.

my $o = begin("wait\nt Hello\nt  there\n",
              metadata => { status => 'completed' },
              instructions => 'Say "status":"completed".');

is($o->{status}, 'queued', 'queued');
is($o->{background}, $true, 'in the background');
is($o->{object}, 'response', 'a response');
is_deeply($o->{output}, [], 'without output');
is($o->{usage}, undef, 'and usage');
is_deeply($o->{metadata}, { status => 'completed' }, 'with its metadata');

my $seen = look($o->{id});

is($seen->{status}, 'in_progress', 'GET: in progress');
is($seen->{created_at}, $o->{created_at}, 'created at the same time');
is($seen->{completed_at}, undef, 'not completed');
is($seen->{error}, undef, 'no error');
is(look($o->{id}, @bob)->{error}{code}, 'not_found', 'for its tenant only');
is($t->get("$uri/$o->{id}?stream=true", @alice)->{status}, 400,
   'its events are not kept');

# what needs the stored response has an error that fits one which GET returns

my $early = $t->post($uri, { model => 'deepseek-chat', input => 'And?',
                             previous_response_id => $o->{id} }, @alice);

is($early->{status}, 404, 'it cannot be continued yet');
is($early->{json}{error}{code}, 'previous_response_not_found', 'by its code');
like($early->{json}{error}{message}, qr/one that runs, .* be continued/,
     'and the reason');
$early = $t->get("$uri/$o->{id}/input_items", @alice);
is($early->{status}, 404, 'nor is its input listed');
like($early->{json}{error}{message}, qr/one that runs, .* its input/,
     'with the reason');

# another connection, and another worker as well, because there are many

ctl($fake, 'go');

my $done = ended($o->{id}, 'completed');

is(text_of($done), 'Hello there', 'the answer');
is($done->{created_at}, $o->{created_at}, 'created as it was');
is($done->{background}, $true, 'in the background');
is($done->{usage}{output_tokens}, 3, 'with its usage');
is_deeply([ grep { !/:r:/ } $redis->keys('dsa1:*resp_*') ], [],
          'nothing of its progress is left in Redis');
is($t->post("$uri/$o->{id}/cancel", {}, @alice)->{json}{status}, 'completed',
   'one that is complete is not cancelled');

my $next = $t->post($uri, { model => 'deepseek-chat', input => 'And?',
                            previous_response_id => $o->{id} }, @alice);
is($next->{status}, 200, 'another response continues it');


# The answer of the POST ends its connection, and a client that leaves at once
# stops nothing.

my $c = $t->connect;

$c->send_request('POST', $uri, body => json_encode(played("wait\nt x\n")),
                 version => '1.1', @alice);
my $r = $c->response;
is($r->{status}, 200, 'HTTP/1.1: answered');
is(lc $r->{headers}{connection}, 'close', 'and the connection is not kept');
$c->reset;
is($t->get('/readyz')->{status}, 200, 'nginx serves others');
ctl($fake, 'go');
is(text_of(ended($r->{json}{id}, 'completed')), 'x',
   'the client left, and its response is complete');

# a long object does not fit the socket of a client that does not read

$c = $t->connect(rcvbuf => 2048);
$c->send_request('POST', $uri, body => json_encode(
    played("wait\nt y\n", prompt_cache_key => 'long ' x 800_000)), @alice);
wait_until(sub { live() eq '1' }, 20, 'the request');
ctl($fake, 'go');
$r = $c->response;
is($r->{json}{status}, 'queued', 'a slow client gets all of it');
is(text_of(ended($r->{json}{id}, 'completed')), 'y', 'and it is complete');


# over HTTP/2 the connection goes on with other requests

my $h = DSA::HTTP2->new(port => $t->port(1));
my $stream = $h->request('POST', $uri, json_encode(played("wait\nt two\n")),
                         [ authorization => 'Bearer alice' ]);

$h->until(sub { $h->ended($stream) });
is($h->status($stream), 200, 'HTTP/2: answered');

my $two = json_decode($h->data($stream))->{id};

$stream = $h->request('GET', "$uri/$two", undef,
                      [ authorization => 'Bearer alice' ]);
$h->until(sub { $h->ended($stream) });
is(json_decode($h->data($stream))->{status}, 'in_progress',
   'the same connection can be used meanwhile');
$h->close;
ctl($fake, 'go');
is(text_of(ended($two, 'completed')), 'two', 'and be closed');

# a client of HTTP/2 that leaves when its window is full does not hold anything

for my $streams ($false, $true) {
    $h = DSA::HTTP2->new(port => $t->port(1), window => 100, grant => 0);
    $stream = $h->request('POST', $uri,
                          json_encode(played("wait\nt full\n",
                                             stream => $streams)),
                          [ authorization => 'Bearer alice' ]);
    $h->until(sub { length $h->data($stream) == 100 });
    $h->close;
    ctl($fake, 'go');
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 30,
               'the request to end');
    pass('it ends, stream ' . json_encode($streams));
}


# Streams: the events that a client gets are those that others read later.

$c = $t->connect;
$c->send_request('POST', $uri, body => json_encode(played(
    "t one\nt  two\nwait\nt  three\nt  four\n", stream => $true)), @alice);
$c->read_head;

my @first;

push @first, $c->next_event->{json}
    while (($first[-1] || {})->{delta} || '') !~ / two\z/;
my $id = $first[0]{response}{id};

is($first[0]{response}{status}, 'in_progress', 'a stream begins as usual');

# one reader from the begin, one from an event on; the client leaves

my $all = follow($id);
my $some = follow($id, 3);

is($all->status, 200, 'read again');
is($all->header('Content-Type'), 'text/event-stream', 'as a stream');

my @again = map { $all->next_event->{json} } @first;

is_deeply(\@again, \@first, 'the same events');
$c->reset;

is($some->next_event->{json}{sequence_number}, 4, 'from an event on');
ctl($fake, 'go');

push @again, events($all);

my @numbers = map { $_->{sequence_number} } @again;

is_deeply(\@numbers, [ 0 .. $#numbers ], 'in order, each once');
is($again[-1]{type}, 'response.completed', 'up to the end');
is($again[-1]{response}{status}, 'completed', 'which is complete');
is(text_of($again[-1]{response}), 'one two three four', 'with the answer');
is(join('', map { $_->{delta} // '' } @again), 'one two three four',
   'as the deltas have it');
is_deeply($again[-1]{response}, look($id), 'as GET has it');

is_deeply([ map { $_->{sequence_number} } events($some) ],
          [ @numbers[5 .. $#numbers] ], 'the other reader has the rest');

# when it is complete

is_deeply([ events(follow($id)) ], \@again, 'after its end: the same');
is_deeply([ events(follow($id, $numbers[-3])) ], [ @again[-2, -1] ],
          'the last two');
is_deeply([ events(follow($id, $numbers[-1])) ], [], 'none');
is_deeply([ events(follow($id, 999_999_999)) ], [], 'none for a far number');

for (qw/ x -1 1e3 99999999999 /, '') {
    my $r = $t->get("$uri/$id?stream=true&starting_after=$_", @alice);

    is($r->{status}, 400, "starting_after=$_ is refused");
    is($r->{json}{error}{param}, 'starting_after', 'by its name');
}

is($t->get("$uri/$id?starting_after=3", @alice)->{status}, 400,
   'starting_after without stream is refused');
is($t->get("$uri/$id?stream=yes", @alice)->{status}, 400, 'stream=yes, too');
is($t->get("$uri/$id?stream=false", @alice)->{json}{status}, 'completed',
   'stream=false is the object');
is($t->get("$uri/resp_" . '0' x 32 . '?stream=true', @alice)->{status}, 404,
   'an unknown id');
is($t->get("$uri/$id?stream=true", @bob)->{status}, 404,
   'that of another tenant');

my ($key) = $redis->keys("dsa1:*:e:$id");
my $ttl = $redis->cmd('TTL', $key);

ok($ttl > 3500 && $ttl <= 3600, 'events expire an hour after the end');
$redis->cmd('DEL', $key);
is($t->get("$uri/$id?stream=true", @alice)->{status}, 400,
   'then there is none');
is(look($id)->{status}, 'completed', 'but the response');


# Cancel: the engine ends it, what it has sent is billed, and readers get its
# end.

ledger_change($t);
$o = begin("t some\nt  words\nhold\n");
wait_until(sub { live() eq '1' }, 20, 'the request');

$r = $t->post("$uri/$o->{id}/cancel", {}, @bob);
is($r->{status}, 404, 'another tenant cannot cancel it');
$r = $t->request('POST', "$uri/$o->{id}/cancel", @alice);
is($r->{status}, 200, 'cancelled') or diag($r->{body});
is($r->{json}{status}, 'cancelled', 'its status');
is($r->{json}{id}, $o->{id}, 'its id');
wait_until(sub { live() eq '0' }, 20, 'the engine to end it');

# its worker bills it when it has read the end, and does not count it as a
# pending record before

wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 20,
           'its worker to end it');
is(look($o->{id})->{status}, 'cancelled', 'GET has it');
is($t->post("$uri/$o->{id}/cancel", {}, @alice)->{json}{status}, 'cancelled',
   'again: the same');
is(ledger_change($t)->{requests}, 1, 'it is billed once');
is($t->metrics->{'dsa_cancelled_total{reason="client"}'}, 1,
   'and counts as what a client cancelled');

$c = $t->connect;
$c->send_request('POST', $uri, body => json_encode(played(
    "t some\nt  words\nhold\n", stream => $true)), @alice);
$c->read_head;
$id = $c->next_event->{json}{response}{id};
$all = follow($id);
$all->next_event;
$t->post("$uri/$id/cancel", {}, @alice);

my @mine = events($c);
my @others = events($all);

is($mine[-1]{type}, 'response.failed', 'its client gets the end');
is($mine[-1]{response}{error}{message}, 'The response was cancelled.',
   'and why');
is($others[-1]{type}, 'response.failed', 'and so does a reader');
is($others[-1]{response}{status}, 'cancelled', 'with its status');
is(ledger_change($t)->{requests}, 1, 'billed once');
wait_until(sub { live() eq '0' }, 20, 'the engine to end it');
is($t->metrics->{'dsa_cancelled_total{reason="client"}'}, 2,
   'and counts as what a client cancelled');
is($t->logged(qr/\[error\].*was cancelled/), 0, 'which is no error');

for ([ 'GET', 405 ], [ 'DELETE', 405 ]) {
    my ($method, $status) = @$_;

    is($t->request($method, "$uri/$id/cancel", @alice)->{status}, $status,
       "$method of cancel is refused");
}

is($t->post("$uri/resp_" . '0' x 32 . '/cancel', {}, @alice)->{status}, 404,
   'cancel of an unknown id');

$c = $t->connect;
$c->send_request('POST', $uri, body => json_encode(
    { %{ played("wait\nt z\n") }, background => $false }), @alice);
wait_until(sub { live() eq '1' }, 20, 'the request');

my $running;

wait_until(sub { ($running) = grep { look($_)->{status} eq 'in_progress' }
                 map { /(resp_\w+)/ } $redis->keys('dsa1:*:p:resp_*');
                 return $running }, 20, 'its progress');
$r = $t->post("$uri/$running/cancel", {}, @alice);
is($r->{status}, 400, 'one that is not in the background is not cancelled');
is($t->request('DELETE', "$uri/$running", @alice)->{status}, 404,
   'nor deleted');
ctl($fake, 'go');
is($c->response->{json}{id}, $running, 'and GET had it before its end');
is(look($running)->{status}, 'completed', 'and has it now');


# DELETE of one that runs ends it.

$o = begin("t a\nhold\n");
wait_until(sub { live() eq '1' }, 20, 'the request');
is($t->request('DELETE', "$uri/$o->{id}", @alice)->{json}{deleted}, $true,
   'deleted while it runs');
wait_until(sub { live() eq '0' }, 20, 'the engine to end it');
is(look($o->{id})->{error}{code}, 'not_found', 'and gone');
is_deeply([ $redis->keys("dsa1:*$o->{id}") ], [], 'nothing is left in Redis');


# Failures

$o = begin("t a\nwait\nerror internal broken\n");
ctl($fake, 'go');
$done = ended($o->{id}, 'failed');
is($done->{error}{code}, 'server_error', 'a failure has a code');
is($done->{error}{message}, 'The engine failed.', 'and a text');
is_deeply($done->{output}, [], 'and no output');

# before an engine has accepted it, the client gets the error itself

$r = $t->post($uri, played("noaccept\nerror overloaded full\n"), @alice);
is($r->{status}, 503, 'no engine has room: 503');
ok($r->{headers}{'retry-after'}, 'with Retry-After');

for ([ { store => $false }, 400, 'background' ],
     [ { background => 'yes' }, 400, 'background' ],
     [ { max_output_tokens => 0 }, 400, 'max_output_tokens' ])
{
    my ($more, $status, $param) = @$_;
    my $r = $t->post($uri, { %{ played("t a\n") }, %$more }, @alice);

    is($r->{status}, $status, 'refused: ' . json_encode($more));
    is($r->{json}{error}{param}, $param, 'by its name');
}

is($t->post($uri, { model => 'deepseek-chat', input => 'x',
                    background => undef }, @alice)->{json}{background}, $false,
   'null is false');

my %progress;

wait_until(sub { %progress = map { $_ => 1 } $redis->keys('dsa1:*:p:resp_*');
                 keys %progress == 3 }, 20, 'the end of the others');

my @kept = map { $redis->hgetall($_)->{state} } keys %progress;

is_deeply([ sort @kept ], [ qw/ cancelled cancelled failed / ],
          'Redis has what was cancelled and what has failed, and no other');


# A repeated request gets the answer of the first one.

my @key = (headers => [ Authorization => 'Bearer alice',
                        'Idempotency-Key' => 'k1' ]);

$r = $t->post($uri, played("wait\nt q\n"), @key);
$next = $t->post($uri, played("wait\nt q\n"), @key);
is($next->{json}{id}, $r->{json}{id}, 'an Idempotency-Key: the same response');
is($next->{headers}{'idempotent-replayed'}, 'true', 'replayed');
is(live(), '1', 'which the engine has once');
ctl($fake, 'go');
ended($r->{json}{id}, 'completed');


# A reload: the old worker finishes it.

$o = begin("wait\nt reloaded\n");

my %old = map { $_ => 1 } $t->workers;

$t->reload(%nginx);

# the one that does not compute it ends, so both have begun to shut down

wait_until(sub { (grep { $old{$_} } $t->workers) < 2 }, 30, 'an old worker');
is(look($o->{id})->{status}, 'in_progress', 'after a reload it goes on');
is(scalar(grep { $old{$_} } $t->workers), 1, 'in its old worker');
ctl($fake, 'go');
is(text_of(ended($o->{id}, 'completed')), 'reloaded', 'to its end');

# worker_shutdown_timeout ends it

reloaded(main => 'worker_shutdown_timeout 2s;');
$o = begin("t a\nhold\n");
$t->reload(%nginx);
$done = ended($o->{id}, 'failed');
like($done->{error}{message}, qr/worker_shutdown_timeout/,
     'worker_shutdown_timeout: failed, and why');
$t->wait_sessions(2);


# SIGKILL of a worker: when the lease is over the response has failed, and is
# billed once with what was sent, for each kind of request.

ledger_change($t);

$o = begin("t one\nt two\nhold\n");

my @streams = map {
    my $c = $t->connect;

    $c->send_request('POST', $uri, body => json_encode(
        { %{ played("t one\nt two\nhold\n") }, stream => $true,
          background => $_ ? $true : $false }), @alice);
    $c->read_head;
    $c;
} 0, 1;
my @ids = map {
    my @e;

    push @e, $_->next_event->{json}
        while (($e[-1] || {})->{delta} || '') !~ /two\z/;
    $e[0]{response}{id};
} @streams;

wait_until(sub { live() eq '3' }, 20, 'the requests');

# until Redis has the event

my $reader = follow($ids[1]);
my $last = {};

$last = $reader->next_event->{json} while ($last->{delta} || '') !~ /two\z/;
kill 'KILL', $_ for $t->workers;
$t->wait_sessions(2);

for ([ $o->{id}, 'in the background' ], [ $ids[0], 'a stream' ],
     [ $ids[1], 'a stream in the background' ])
{
    my ($id, $name) = @$_;
    my $done = ended($id, 'failed');

    is($done->{error}{message}, 'The server stopped before the answer was '
       . 'complete; send the request again.', "$name, killed: failed");
    is($done->{id}, $id, 'with its id');
}

@others = events(follow($ids[1]));
is(join('', map { $_->{delta} // '' } @others), 'onetwo',
   'the events until then are kept');
is($others[-1]{type}, 'response.failed', 'and the end');

my $ledger = ledger_change($t);

is($ledger->{requests}, 2, 'each stream is billed once');
is($ledger->{completion_tokens}, 4, 'with the tokens that were sent');


# Redis executes a chunk whose reply is lost: it is sent again with the same
# bytes, because a reader may have read them, and reads the next chunk then.

my ($twice, @chunks);

for (1 .. 5) {
    @chunks = lost_reply();
    $twice = grep { @$_ > 1 } @chunks;

    # else Redis had stopped before the chunk was sent

    last if $twice;
}

ok($twice, 'a chunk is sent again');
is_deeply([ map { my %texts = map { $_ => 1 } @$_; scalar keys %texts }
            @chunks ],
          [ map { 1 } @chunks ], 'each time with the same bytes');


# Returns the texts with which each chunk was written.

sub lost_reply {
    my $c = $t->connect;
    my $monitor = $t->redis;
    my $logged = $t->logged(qr/is not updated in Redis/);

    $monitor->cmd('MONITOR');
    $c->send_request('POST', $uri, body => json_encode(played(
        "t one\nwait\nt two\nwait\nt three\nwait\nt four\n",
        stream => $true)), @alice);
    $c->read_head;

    my $id = $c->next_event->{json}{response}{id};

    wait_until(sub { my @key = $redis->keys("dsa1:*:e:$id"); @key }, 20,
               'events');
    $server->signal('STOP');
    ctl($fake, 'go');
    until_delta($c, 'two');
    wait_until(sub { $t->logged(qr/is not updated in Redis/) > $logged }, 30,
               'the timeout');
    ctl($fake, 'go');
    until_delta($c, 'three');
    $server->signal('CONT');
    written($id, 'three');
    ctl($fake, 'go');
    ended($id, 'completed');
    $redis->cmd('PING', $id);

    my @chunks;

    while ((my $line = $monitor->line) !~ /"PING" "$id"/) {
        push @{ $chunks[$1] }, $2
            if $line =~ /lua\] "HSET" "[^"]*:e:$id" "(\d+)" (.*)/;
    }

    return @chunks;
}


# Waits until Redis has this event, because only then the worker of the response
# has Redis again.

sub written {
    my ($id, $text) = @_;

    wait_until(sub {
        my ($key) = $redis->keys("dsa1:*:e:$id");

        $key && grep { /"delta":"$text"/ } values %{ $redis->hgetall($key) };
    }, 60, "$text in Redis");
}


sub until_delta {
    my ($c, $text) = @_;

    for (;;) {
        my $e = $c->next_event or die "no delta $text\n";

        return if ($e->{json}{delta} || '') eq $text;
    }
}


# Redis is away while one runs: it goes on, and is there afterwards.

$c = $t->connect;
$c->send_request('POST', $uri, body => json_encode(played(
    "t one\nwait\nt two\nwait\nt three\n", stream => $true)), @alice);
$c->read_head;
$id = $c->next_event->{json}{response}{id};
wait_until(sub { $redis->cmd('EXISTS', ($redis->keys("dsa1:*:e:$id"))[0]
                                       || 'none') }, 20, 'events');
$server->kill9;
ctl($fake, 'go');
wait_until(sub { (($c->next_event || {})->{json}{delta} || '') eq 'two' }, 20,
           'the stream');
$r = $t->post($uri, played("t a\n"), @alice);
is($r->{status}, 503, 'without Redis another one is refused');
is($r->{json}{error}{param}, 'background', 'by its name');
$server->restart;

# its worker is connected again when it has stored what was written meanwhile

wait_until(sub {
    my $client = eval { $t->redis } or return 0;
    my ($key) = eval { $client->keys("dsa1:*:e:$id") } or return 0;

    return join('', values %{ $client->hgetall($key) }) =~ /"two"/;
}, 90, 'Redis');

# the other worker may serve what comes now

$t->wait_redis(2);
is(look($id)->{status}, 'in_progress', 'Redis is back: it goes on');
ctl($fake, 'go');
ended($id, 'completed');
@others = events(follow($id));
is(join('', map { $_->{delta} // '' } @others), 'onetwothree',
   'Redis was away: all events are kept');


# A reader that does not read is not kept, as an answer would be.

reloaded(location => 'dsa_ignore_client_abort on;', server => 'send_timeout 1s;'
         . 'listen 127.0.0.1:%%PORT4%% sndbuf=4096;');
wait_until(sub { $t->get("$uri/$id", @alice)->{status} == 200 }, 20, 'Redis')
    for 1 .. 8;

$c = $t->connect;
$c->send_request('POST', $uri, body => json_encode(played(
    'r 200 ' . 'x' x 900 . "\nhold\n", stream => $true)), @alice);
$c->read_head;
$id = $c->next_event->{json}{response}{id};

wait_until(sub {
    my ($key) = $t->redis->keys("dsa1:*:e:$id") or return 0;

    length(join '', values %{ $t->redis->hgetall($key) }) > 100_000;
}, 30, 'many events');

my $slow = $t->connect(port => $t->port(4), rcvbuf => 2048);

$slow->send_request('GET', "$uri/$id?stream=true", @alice);
wait_until(sub { $t->access_log =~ /$id\?stream=true/ }, 30,
           'the end of the reader');
pass('send_timeout ends a reader that does not read');
$t->post("$uri/$id/cancel", {}, @alice);
ended($id, 'cancelled');


# quota

reloaded(redis => 'ttl=1h quota=60k');
wait_until(sub { $t->get("$uri/$id", @alice)->{status} == 200 }, 20, 'Redis')
    for 1 .. 8;

my @carol = (headers => [ Authorization => 'Bearer carol' ]);

$r = $t->post($uri, played("t a\n", instructions => 'x' x 100_000), @carol);
is($r->{status}, 403, 'above the quota: 403');
is($r->{json}{error}{code}, 'storage_quota_exceeded', 'its code');
$r = $t->post($uri, played("t a\n", stream => $true), @carol);
is($r->{status}, 200, 'events above the quota are not kept');
($id) = $r->{body} =~ /(resp_\w+)/;
is($t->get("$uri/$id", @carol)->{json}{status}, 'completed',
   'but the response is');
is($t->get("$uri/$id?stream=true", @carol)->{status}, 400,
   'and cannot be read as a stream');

$t->done;
