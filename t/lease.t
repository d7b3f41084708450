# Copyright (C) The nginx-dsa authors
#
# The lease of a turn on its conversation: of turns at the same time one is
# served and the others get a 409, in every worker and both APIs; when the lease
# ends; and what does not hold it.

use strict;
use warnings;

use IO::Select;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $t = DSA::Test->new('lease');
my $server = $t->start_redis;
my $redis = $t->redis;
my $fake = $t->start_fake();
my $true = JSON::PP::true;

$t->start_nginx(
    redis => 'ttl=1h', workers => 4,
    server => 'location /keep/ { dsa_pass v32; dsa_ignore_client_abort on; }
               location /brief/ { dsa_pass v32; dsa_timeout 6s; }');

# a worker is killed on purpose

$t->allow_alert(qr/exited on signal 9/);

my $uri = '/v1/conversations';
my $chat = '/v1/chat/completions';

wait_until(sub { $t->get("$uri/conv_" . '0' x 32)->{status} == 404 }, 20,
           'Redis') for 1 .. 16;


sub create { $t->post($uri, {})->{json}{id} }
sub version { $t->get("$uri/$_[0]")->{json}{version} }
sub key { my ($key) = $redis->keys("*:l:$_[0]"); return $key }
sub turn { $t->post($chat, ask('x', conversation => $_[0], @_[1 .. $#_])) }
sub response { $t->post('/v1/responses',
                        { model => 'deepseek-chat', input => 'x',
                          conversation => $_[0] }) }


# A turn that the engine holds until "go".

sub begin {
    my ($id, $where) = @_;

    my $n = submitted($fake);
    my $c = $t->connect;

    $c->send_request(POST => $where // $chat, type => 'application/json',
                     body => json_encode(script("t a\nwait\nt b",
                                                conversation => $id)));
    wait_until(sub { submitted($fake) > $n }, 10, 'a turn');

    return $c;
}

# Waits until the conversation accepts a turn: the command that ends a lease
# and the answer that made the test continue are on different connections.

sub free {
    my ($id, $name) = @_;
    my $r;

    wait_until(sub { $r = turn($id); $r->{status} != 409 }, 10, $name);
    is($r->{status}, 200, $name);
}


# Both APIs, in every worker.

for my $api (qw/ chat response /) {
    my $id = create();
    my $open = begin($id);
    my $n = submitted($fake);
    my %seen;

    for (1 .. 12) {
        my $r = $api eq 'chat' ? turn($id) : response($id);

        $seen{ $r->{status} }++;
        is($r->{json}{error}{code}, 'conversation_locked', "$api: its code");
    }

    is_deeply(\%seen, { 409 => 12 }, "$api: refused by every worker");
    is(scalar submitted($fake), $n, "$api: nothing is computed");
    ctl($fake, 'go 1');
    is($open->response->{status}, 200, "$api: the first turn ends");
    is(version($id), 2, "$api: and is stored");

    # its end has ended the lease, so this is not a race

    is($api eq 'chat' ? turn($id)->{status} : response($id)->{status}, 200,
       "$api: the next one");
    is(key($id), undef, "$api: no lease is left");
}

# the other way round: a response has it

my $id = create();
my $s = $t->connect;
my $n = submitted($fake);
$s->send_request(POST => '/v1/responses', type => 'application/json',
                 body => json_encode({ model => 'deepseek-chat',
                                       stream => $true, conversation => $id,
                                       input => "!fake\nt a\nwait\nt b" }));
wait_until(sub { submitted($fake) > $n }, 10, 'a turn');
is(turn($id)->{status}, 409, 'a response has the lease');
ctl($fake, 'go 1');
$s->response;
is(turn($id)->{status}, 200, 'and ends it');


# Many at once: one is served, and each of the others is refused.

$id = create();
my @all = map { $t->connect } 1 .. 20;
$_->send_request(POST => $chat, type => 'application/json',
                 body => json_encode(script("t a\nwait\nt b",
                                            conversation => $id))) for @all;
my %seen;
my %open = map { fileno($_->socket) => $_ } @all;

# the one that is served has no answer until "go"

while (keys %open > 1) {
    my @ready = IO::Select->new(map { $_->socket } values %open)->can_read(30)
        or last;

    $seen{ delete($open{ fileno $_ })->response->{status} }++ for @ready;
}

ctl($fake, 'go 1');
$seen{ $_->response->{status} }++ for values %open;
is_deeply(\%seen, { 200 => 1, 409 => 19 }, 'one of twenty');
is(version($id), 2, 'and it is stored');


# What changes the conversation during a turn.

$id = create();
my $item = $t->post("$uri/$id/items", { items => [ { role => 'user',
                                                     content => 'hi' } ] })
           ->{json}{data}[0]{id};
my $open = begin($id);

for my $case (
    [ 'items are added', POST => "/items", { items => [ { role => 'user',
                                                          content => 'y' } ] },
      409 ],
    [ 'an item is deleted', DELETE => "/items/$item", undef, 409 ],
    [ 'items are listed', GET => '/items', undef, 200 ],
    [ 'metadata is replaced', POST => '', { metadata => { a => 'b' } }, 200 ])
{
    my ($name, $method, $path, $body, $status) = @$case;
    my $r = $body ? $t->post("$uri/$id$path", $body)
                  : $t->request($method, "$uri/$id$path");

    is($r->{status}, $status, "$name: $status");
    is($r->{json}{error}{code}, 'conversation_locked', "$name: the code")
        if $status == 409;
}

ctl($fake, 'go 1');
is($open->response->{json}{conversation}{stored}, $true,
   'the turn is stored all the same');
is($t->request('DELETE', "$uri/$id/items/$item")->{status}, 200,
   'then the item is deleted');

$id = create();
$open = begin($id);
is($t->request('DELETE', "$uri/$id")->{status}, 200,
   'a conversation is deleted during its turn');
is(turn($id)->{status}, 404, 'and not continued');
ctl($fake, 'go 1');
is($open->response->{json}{conversation}{reason},
   'the conversation was deleted', 'as the answer of the turn reports');
is(key($id), undef, 'no lease is left');


# How a turn ends without being stored.

$id = create();
$open = begin($id);
$open->close;
free($id, 'the client left');

$id = create();
is($t->post($chat, script('error internal broken', conversation => $id))
   ->{status}, 500, 'an error of the engine');
free($id, 'after an error');

$id = create();
is($t->post($chat, { %{ ask('x', conversation => $id) }, model => 'none' })
   ->{status}, 404, 'an unknown model');
free($id, 'after an unknown model');

$id = create();
is($t->post($chat, { model => 'deepseek-chat', conversation => $id,
                     messages => [ { role => 'tool', tool_call_id => 'none',
                                     content => 'x' } ] })->{status}, 400,
   'messages that are not valid');
free($id, 'after a refusal');

$id = create();
$open = begin($id, '/brief/chat/completions');
is($open->response->{status}, 200, 'dsa_timeout ends the answer');
is(version($id), 2, 'and its turn is stored');
is(turn($id)->{status}, 200, 'the next one');


# dsa_ignore_client_abort: the lease holds until the turn is stored.

$id = create();
$open = begin($id, '/keep/chat/completions');
$open->close;
is(turn($id)->{status}, 409, 'its client left, and the turn goes on') for 1, 2;
ctl($fake, 'go 1');
wait_until(sub { version($id) == 2 }, 10, 'the turn');
is(turn($id)->{status}, 200, 'when it is stored, the next one');


# A worker that is killed: its lease has a lifetime.

$id = create();
$open = begin($id);
my $lease = key($id);
ok($lease, 'a lease') or diag(join ' ', $redis->keys);
my $ms = $redis->cmd('PTTL', $lease);
ok($ms > 0 && $ms <= 30000, "of at most 30 s: $ms ms");
like($redis->cmd('GET', $lease), qr/^chatcmpl-[0-9a-f]{32}$/,
     'its owner is the request');
kill 'KILL', $t->workers;
eval { $open->response };
wait_until(sub { $t->get("$uri/$id")->{status} == 200 }, 20, 'new workers')
    for 1 .. 16;
is(turn($id)->{status}, 409, 'the workers were killed, and the lease stays');
$redis->cmd('PEXPIRE', $lease, 1);
free($id, 'when it has expired');


# Refusals that repeat: the first one is an error in the log, and so is the
# number of the others, later, for which the end of this test waits.

my $damaged = create();
my ($hash) = $redis->keys("*:c:$damaged");
my $refused = qr{is refused with 500: .*is damaged.*GET $uri/$damaged};
my $c = $t->connect;

$redis->cmd('HSET', $hash, 'count', 7);

for (1 .. 6) {
    $c->send_request(GET => "$uri/$damaged");
    is($c->response->{status}, 500, 'a damaged conversation');
}

is($t->logged(qr/\[error\].*$refused/), 1, 'one refusal is an error');
is($t->logged(qr/\[info\].*$refused/), 5, 'the others are information');


# It is renewed while the turn goes on.

$id = create();
$open = begin($id);
$lease = key($id);
$redis->cmd('PEXPIRE', $lease, 15000);
wait_until(sub { $redis->cmd('PTTL', $lease) > 15000 }, 20, 'the renewal');
is(turn($id)->{status}, 409, 'renewed');

# one that was lost is taken again, unless another turn has it

$redis->cmd('DEL', $lease);
wait_until(sub { $redis->cmd('PTTL', $lease) > 0 }, 20, 'the renewal');
is(turn($id)->{status}, 409, 'taken again');
$redis->cmd('DEL', $lease);
my $other = begin($id);
my $owner = $redis->cmd('GET', $lease);
ctl($fake, 'go 2');
my @stored = map { $_->response->{json}{conversation} } $open, $other;
is((grep { $_->{stored} } @stored), 1,
   'of two turns with the same version one is stored');
is(version($id), 2, 'once');
free($id, 'the next turn');


# What is at the key and is no lease.

for my $case ([ 'a string for ever', 'SET', 'garbage' ],
              [ 'another type', 'RPUSH', 'x' ])
{
    my ($name, @cmd) = @$case;

    $id = create();
    turn($id);
    my ($conversation) = $redis->keys("*:c:$id");
    my $at = $conversation =~ s/:c:/:l:/r;

    $redis->cmd($cmd[0], $at, $cmd[1]);
    is(turn($id)->{status}, 200, "$name holds nothing back");
    is($redis->cmd('EXISTS', $at), 0, "$name is gone");
}

$id = create();
my ($at) = $redis->keys("*:c:$id");
$redis->cmd('DEL', $at);
$redis->cmd('RPUSH', $at, 'x');
is(turn($id)->{status}, 500, 'another type in place of the conversation');
is($redis->cmd('EXISTS', $at =~ s/:c:/:l:/r), 0, 'takes no lease');
$redis->cmd('DEL', $at);


# Redis hangs while a turn begins: the answer is a 503, and nothing is computed.

$id = create();
$n = submitted($fake);
$server->signal('STOP');
is(turn($id)->{status}, 503, 'Redis hangs');
$server->signal('CONT');
is(scalar submitted($fake), $n, 'nothing is computed');
$lease = $at =~ s/:c:.*/:l:$id/r;
wait_until(sub { my $r = turn($id); $redis->cmd('DEL', $lease)
                 if $r->{status} == 409; $r->{status} == 200 }, 20,
           'a turn when it is back');

wait_until(sub { $t->logged(qr/\[error\].*\ dsa:\ 5\ more\ times\ in\ at\ most
                              \ 30\ s:.*\ is\ refused\ with\ 500:/x) }, 60,
           'the number of the refusals that repeated');

$t->done;
