#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Idempotency-Key: a request that is repeated with the same key gets the answer
# of the first one, and is computed and billed once.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;
use Digest::SHA qw/ sha256_hex /;
use Test::More;

my $t = DSA::Test->new('idempotency');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();

$t->start_nginx(redis => 'timeout=5s', workers => 2,
                http => 'client_max_body_size 8m;',
                server => 'location /short/ { dsa_pass v32;
                                              dsa_timeout 20s; }
                         location /none/ { dsa_pass v32;
                                           dsa_tenant $arg_none; }');

my $true = JSON::PP::true;
my $chat = '/v1/chat/completions';
my $serial = 0;

wait_for_redis();


sub wait_for_redis {
    wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                     == 404 }, 60, 'Redis') for 1 .. 8;
}

sub new_key { 'key-' . ++$serial . '-' . rand }

sub headers {
    my ($key, $who) = @_;

    return (headers => [ Authorization => 'Bearer ' . ($who // 'alice'),
                         defined $key ? ('Idempotency-Key' => $key) : () ]);
}

# Posts with a key, and returns the answer.

sub post {
    my ($uri, $body, $key, $who) = @_;

    return $t->post($uri, $body, headers($key, $who));
}

# The same, and returns the connection without the answer.

sub begin {
    my ($uri, $body, $key, $who) = @_;
    my $c = $t->connect;

    $c->send_request(POST => $uri, type => 'application/json',
                     body => json_encode($body), headers($key, $who));

    return $c;
}

sub replayed { ($_[0]{headers}{'idempotent-replayed'} // '') eq 'true' }

# The requests that the ledger has of a tenant.

sub billed {
    my ($who) = @_;
    my $tenant = substr sha256_hex($who // 'alice'), 0, 32;
    my $n = 0;

    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 30,
               'the ledger');

    for my $key ($redis->keys("dsa1:{$tenant}:ledger:*")) {
        my $all = $redis->hgetall($key);

        $n += $all->{$_} for grep { /^[^|]*\|requests$/ } keys %$all;
    }

    return $n;
}

# The Redis key of an idempotency key.

sub stored {
    my ($key, $who) = @_;

    return 'dsa1:{' . substr(sha256_hex($who // 'alice'), 0, 32) . '}:i:'
           . sha256_hex($key);
}

sub state { $redis->cmd('HGET', stored(@_), 'state') // 'none' }
sub live { ctl($fake, 'live') }

my @apis = (
    [ chat => $chat, sub { script($_[0]) } ],
    [ completions => '/v1/completions',
      sub { { model => 'deepseek-chat', prompt => "!fake\n$_[0]" } } ],
    [ responses => '/v1/responses',
      sub { { model => 'deepseek-chat', input => "!fake\n$_[0]" } } ],
    [ messages => '/v1/messages',
      sub { { model => 'deepseek-chat', max_tokens => 100,
              messages => [ { role => 'user', content => "!fake\n$_[0]" } ] }
          } ],
);


# each API: the first client leaves in the middle, the second one gets all

for (@apis) {
    my ($name, $uri, $make) = @$_;
    my $key = new_key();
    my $body = $make->("t one\nwait\nt two");
    my $before = billed();
    my $computed = submitted($fake);

    my $c = begin($uri, $body, $key);
    wait_until(sub { live() eq '1' }, 30, 'the engine');
    $c->reset;

    my $again = begin($uri, $body, $key);
    ctl($fake, 'go 1');

    my $r = $again->response;
    is($r->{status}, 200, "$name: the retry is answered") or diag($r->{body});
    like($r->{body}, qr/onetwo/, "$name: with all of the first answer");
    ok(replayed($r), "$name: which the header reports");
    is(scalar submitted($fake), $computed + 1, "$name: computed once");
    is(billed(), $before + 1, "$name: billed once");

    my $third = post($uri, $body, $key);
    is($third->{body}, $r->{body}, "$name: the same once more");
    ok(replayed($third), "$name: as a replay");
    is(billed(), $before + 1, "$name: still billed once");

    ctl($fake, 'go 1');
    is(post($uri, $body, new_key())->{status}, 200, "$name: another key");
}


# a client of HTTP/2 resets its stream, and others go on

{
    my $key = new_key();
    my $body = script("t one\nwait\nt two");
    my $before = billed();
    my $h = DSA::HTTP2->new(port => $t->port(1));
    my $id = $h->request('POST', $chat, json_encode($body),
                         [ 'authorization', 'Bearer alice',
                           'idempotency-key', $key ]);

    wait_until(sub { live() eq '1' }, 30, 'the engine');
    $h->reset($id);

    my $models = $h->request('GET', '/v1/models');
    $h->until(sub { $h->ended($models) });
    is($h->status($models), 200, 'HTTP/2: another stream');

    my $again = begin($chat, $body, $key);
    ctl($fake, 'go 1');

    my $r = $again->response;
    like($r->{body}, qr/onetwo/, 'HTTP/2: the retry has all');
    ok(replayed($r), 'HTTP/2: which the header reports');
    is(billed(), $before + 1, 'HTTP/2: billed once');
}

is(scalar cancelled($fake), 0, 'nothing was cancelled');


# two at once, and the first one gets its answer

{
    my $key = new_key();
    my $before = billed();
    my $body = script("t a\nwait\nt b");
    my $c = begin($chat, $body, $key);
    wait_until(sub { live() eq '1' }, 30, 'the engine');
    my @more = map { begin($chat, $body, $key) } 1 .. 3;

    ctl($fake, 'go 1');

    my @r = map { $_->response } $c, @more;
    is_deeply([ map { $_->{body} } @r ], [ ($r[0]{body}) x 4 ],
              'at once: all get the same');
    is_deeply([ map { replayed($_) ? 1 : 0 } @r ], [ 0, 1, 1, 1 ],
              'at once: the first one is no replay');
    is(billed(), $before + 1, 'at once: billed once');
}


# one that waits ends with its time, or with its client; the key stays as it is

{
    my $key = new_key();
    my $uri = '/short/chat/completions';
    my $body = ask('x');
    my $before = billed();

    is(post($uri, $body, $key)->{status}, 200, 'a request');
    wait_until(sub { state($key) eq 'answer' }, 30, 'the end');
    my $kept = $redis->cmd('HGET', stored($key), 'answer');
    $redis->cmd('HSET', stored($key), 'state', 'running', 'until', time + 900);

    is(post($uri, $body, $key)->{status}, 504, 'it waits for dsa_timeout');

    my $c = begin($chat, $body, $key);
    is($c->response->{status}, 422, 'another path');
    $c = begin($uri, $body, $key);
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 1 }, 30,
               'it waits');
    $c->reset;
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 30,
               'it ends');

    $c = begin($uri, $body, $key);
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 1 }, 30,
               'it waits');
    $redis->cmd('HSET', stored($key), 'state', 'answer');
    my $r = $c->response;
    is($r->{body}, $kept, 'one that waits gets the answer');
    ok(replayed($r), 'as a replay');
    is(billed(), $before + 1, 'billed once');
}


# another request with the same key

{
    my $key = new_key();
    my $before = billed();

    is(post($chat, ask('one'), $key)->{status}, 200, 'a request');
    my $r = post($chat, ask('two'), $key);
    is($r->{status}, 422, 'another body');
    like($r->{json}{error}{message}, qr/belongs to another request/, 'why');
    is(post('/v1/completions', ask('one'), $key)->{status}, 422,
       'another path');
    is($r->{headers}{'x-should-retry'}, 'false', 'SDKs do not retry it');
    is(post($chat, ask('two'), $key, 'bob')->{status}, 200,
       'tenants have keys of their own');
    is(billed(), $before + 1, 'billed once');
    is($redis->cmd('TTL', stored($key)) > 86000 ? 1 : 0, 1, 'for 24 hours');
}


# streams

{
    my $key = new_key();
    my $before = billed();
    my $body = script('t a', stream => $true);

    like(post($chat, $body, $key)->{body}, qr/DONE/, 'a stream');
    my $r = post($chat, $body, $key);
    is($r->{status}, 409, 'a stream cannot be repeated');
    like($r->{json}{error}{message}, qr/stream and billed/, 'why');
    is(billed(), $before + 1, 'a stream is billed once');

    $key = new_key();
    $body = { model => 'deepseek-chat', input => 'x', stream => $true };
    my ($id) = post('/v1/responses', $body, $key)->{body}
               =~ /response\.completed.*?"id":"(resp_\w+)"/s;
    $r = post('/v1/responses', $body, $key);
    is($r->{status}, 409, 'a response that was streamed');
    like($r->{json}{error}{message}, qr/GET.*\Q$id\E/, 'GET returns it');

    # its client leaves: what was computed is billed

    $key = new_key();
    $before = billed();
    my $n = cancelled($fake);
    my $s = begin($chat, script("t a\nhold", stream => $true), $key);
    $s->read_head;
    $s->next_event;
    $s->reset;
    wait_until(sub { cancelled($fake) == $n + 1 }, 30, 'it is cancelled');
    wait_until(sub { state($key) ne 'running' }, 30, 'the end');
    $s = begin($chat, script("t a\nhold", stream => $true), $key);
    $s->read_head;
    is($s->status, 409, 'a stream whose client has left');
    $s->close;
    is(billed(), $before + 1, 'is billed once');
}


# a turn of a conversation

{
    my $id = post('/v1/conversations', {})->{json}{id};
    my $key = new_key();
    my $body = script("t a\nwait\nt b", conversation => $id);
    my $c = begin($chat, $body, $key);

    wait_until(sub { live() eq '1' }, 30, 'the engine');
    $c->reset;
    my $again = begin($chat, $body, $key);
    ctl($fake, 'go 1');
    my $r = $again->response;
    is($r->{status}, 200, 'a turn is repeated');
    ok($r->{json}{conversation}{stored}, 'it is stored');
    is(scalar @{ $t->get("/v1/conversations/$id/items",
                         headers())->{json}{data} }, 2, 'once');
}


# a conversation is created once, and items are added once

{
    my $tenant = substr sha256_hex('eve'), 0, 32;
    my $key = new_key();
    my $body = { items => [ { role => 'user', content => 'x' } ] };
    my $r = post('/v1/conversations', $body, $key, 'eve');
    my $again = post('/v1/conversations', $body, $key, 'eve');

    is($again->{body}, $r->{body}, 'a conversation is created');
    ok(replayed($again), 'once');
    is(scalar(() = $redis->keys("dsa1:{$tenant}:c:*")), 1, 'as Redis has it');
    is(post('/v1/conversations', {}, $key, 'eve')->{status}, 422,
       'another body');

    my $items = "/v1/conversations/$r->{json}{id}/items";

    $key = new_key();
    $r = post($items, $body, $key, 'eve');
    $again = post($items, $body, $key, 'eve');
    is($again->{body}, $r->{body}, 'an item is added');
    ok(replayed($again), 'once');
    is(scalar @{ $t->get($items, headers(undef, 'eve'))->{json}{data} }, 2,
       'as the conversation has it');

    # bodies that nginx writes to a file

    my ($x, $y) = map { { items => [ { role => 'user',
                                       content => $_ x 50_000 } ] } } 'x', 'y';
    $key = new_key();
    $r = post('/v1/conversations', $x, $key, 'eve');
    is($r->{status}, 200, 'a long body');
    is(post('/v1/conversations', $x, $key, 'eve')->{body}, $r->{body},
       'the same once more');
    is(post('/v1/conversations', $y, $key, 'eve')->{status}, 422,
       'another long body');

    $key = new_key();
    is(post($items, { items => [ { role => 'king' } ] }, $key, 'eve')
       ->{status}, 400, 'a body that is refused');
    wait_until(sub { state($key, 'eve') eq 'none' }, 30, 'the key');
    is(post('/v1/conversations', {}, 'a b', 'eve')->{status}, 400,
       'a key with a space');
}


# the first one fails: the key is free again

{
    my $key = new_key();
    my $before = billed();
    my $bad = ask('x', temperature => 99);

    is(post($chat, $bad, $key)->{status}, 400, 'a request that is refused');
    wait_until(sub { state($key) eq 'none' }, 30, 'the key to be free');
    is(post($chat, $bad, $key)->{status}, 400, 'and refused again');
    wait_until(sub { state($key) eq 'none' }, 30, 'the key to be free');
    is(post($chat, ask('x'), $key)->{status}, 200, 'the key is free');

    $key = new_key();
    isnt(post($chat, script('error internal broken'), $key)->{status}, 200,
         'an engine that fails');
    wait_until(sub { state($key) eq 'none' }, 30, 'the key to be free');
    is(billed(), $before + 1, 'only the answer is billed');
}


# values of the header

for my $case ([ 'x' x 255, 200 ], [ 'x' x 256, 400 ], [ "\xe9", 400 ],
              [ 'a b', 400 ], [ '!~', 200 ])
{
    my ($key, $status) = @$case;

    is(post($chat, ask('x'), $key)->{status}, $status,
       length($key) . ' bytes: ' . $status);
}

{
    my $c = $t->connect;

    is($c->request(POST => $chat, type => 'application/json',
                   body => json_encode(ask('x')),
                   headers => [ Authorization => 'Bearer alice',
                                'Idempotency-Key' => 'a',
                                'Idempotency-Key' => 'b' ])->{status}, 400,
       'two keys');
}

is(post('/none/chat/completions', ask('x'), 'x y')->{status}, 200,
   'without a tenant the header is ignored');


# a worker is killed

{
    my $key = new_key();
    my $body = script("t a\nwait\nt b");
    my $c = begin($chat, $body, $key);

    wait_until(sub { live() eq '1' }, 30, 'the engine');
    is(state($key), 'running', 'the key is claimed');
    my $until = $redis->cmd('HGET', stored($key), 'until');
    cmp_ok($until, '>', time - 5, 'with a lease');
    cmp_ok($until, '<', time + 60, 'that ends');

    my @before = $t->workers;

    $t->allow_alert(qr/worker process \d+ exited on signal 9/);
    kill 'KILL', @before;
    wait_until(sub { my %old = map { $_ => 1 } @before;
                     2 == grep { !$old{$_} } $t->workers }, 30, 'workers');
    $c->close;
    wait_for_redis();

    # its lease is over

    $redis->cmd('HSET', stored($key), 'until', 1);
    my $r = post($chat, $body, $key);
    is($r->{status}, 409, 'a killed worker: it was interrupted');
    like($r->{json}{error}{message}, qr/may have been executed and billed/,
         'why');
}


# the bound: keys and bytes of a tenant

{
    my $all = 'dsa1:{' . substr(sha256_hex('carol'), 0, 32) . '}:i';
    my $hour = int(time / 3600);
    my $before = billed('carol');
    my $key = new_key();

    $redis->cmd('HSET', $all, $hour - 3 . '|keys', 10000,
                $hour - 30 . '|keys', 77);
    my $r = post($chat, ask('x'), $key, 'carol');
    is($r->{status}, 429, 'too many keys');
    like($r->{json}{error}{message}, qr/10000/, 'how many');
    is(billed('carol'), $before, 'nothing is billed');

    $redis->cmd('HSET', $all, $hour - 3 . '|keys', 9999);
    is(post($chat, ask('x'), $key, 'carol')->{status}, 200, 'one less');
    is(post($chat, ask('x'), new_key(), 'carol')->{status}, 429, 'the last');
    is($redis->cmd('HGET', $all, $hour - 30 . '|keys'), undef,
       'hours before are removed');

    $redis->cmd('HSET', $all, $hour - 3 . '|keys', 1,
                $hour - 3 . '|bytes', 64 * 1024 * 1024);
    $key = new_key();
    is(post($chat, ask('x'), $key, 'carol')->{status}, 200, 'too many bytes');
    wait_until(sub { state($key, 'carol') ne 'running' }, 30, 'the end');
    $r = post($chat, ask('x'), $key, 'carol');
    is($r->{status}, 409, 'the answer is not kept');
    like($r->{json}{error}{message}, qr/too large/, 'why');

    $key = new_key();
    my $body = script('r 2200 ' . 'w' x 500);
    is(post($chat, $body, $key, 'dora')->{status}, 200, 'a long answer');
    wait_until(sub { state($key, 'dora') ne 'running' }, 30, 'the end');
    is(state($key, 'dora'), 'large', 'is not kept');
    is($redis->cmd('HLEN', stored($key, 'dora')) < 10
       && length($redis->cmd('HGET', stored($key, 'dora'), 'answer')), 0,
       'nothing of it');
}


# what Redis has is damaged

for my $case ([ state => 'odd' ], [ until => 'x' ], [ state => 'answer' ]) {
    my $key = new_key();

    is(post($chat, ask('x'), $key)->{status}, 200, 'a request');
    wait_until(sub { state($key) eq 'answer' }, 30, 'the end');
    $redis->cmd('HSET', stored($key), @$case);
    $redis->cmd('HDEL', stored($key), 'answer');
    is(post($chat, ask('x'), $key)->{status}, 200,
       "damaged @$case: it goes on without");
}


# Redis is away: the request goes on without its key

{
    my $key = new_key();

    $server->signal('STOP');
    is(post($chat, ask('x'), $key)->{status}, 200, 'Redis hangs: answered');
    is(post($chat, ask('x'), $key)->{status}, 200, 'each time');
    $server->signal('CONT');
    wait_for_redis();
    ok($t->logged(qr/goes on without its Idempotency-Key/), 'logged');
    is(post($chat, ask('x'), new_key())->{status}, 200, 'then as before');
}

wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10, 'the end');

$t->done;
