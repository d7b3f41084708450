# Copyright (C) The nginx-dsa authors
#
# The items of conversations under attack: other tenants, hostile ids and
# bodies, conversations at their limits, parts of messages of chats, damage in
# Redis, and a Redis that is full, read-only or away.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('conversation-items');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();

$t->start_nginx(redis => 'ttl=1h', workers => 2,
                http => 'client_max_body_size 16m;
                         large_client_header_buffers 4 16k;');

my $uri = '/v1/conversations';
my @alice = (headers => [ Authorization => 'Bearer alice' ]);
my @bob = (headers => [ Authorization => 'Bearer bob' ]);
my $none = 'conv_' . '0' x 32;

wait_for_redis();


# A worker that a read-only Redis has refused connects again later, and may have
# served none of these requests.

sub wait_for_redis {
    wait_until(sub { $t->get("$uri/$none")->{status} == 404 }, 20, 'Redis')
        for 1 .. 8;
    $t->wait_redis(2);
}

sub user { { role => 'user', content => $_[0] } }
sub create { my ($body, @as) = @_;
             return $t->post($uri, $body // {}, @as)->{json}{id} }
sub add { my ($id, $items, @as) = @_;
          return $t->post("$uri/$id/items", { items => $items }, @as) }
sub items { my ($id, @as) = @_;
            return $t->get("$uri/$id/items?order=asc&limit=100", @as)
                   ->{json}{data} }
sub chat { my ($id, @messages) = @_;
           return $t->post('/v1/chat/completions',
                           { model => 'deepseek-chat', conversation => $id,
                             messages => \@messages }) }
sub respond { my ($id, $input, %more) = @_;
              return $t->post('/v1/responses',
                              { model => 'deepseek-chat', conversation => $id,
                                input => $input, %more }) }

sub story {
    return join ' | ', map {
        my $i = $_;
        my $text = join '', map { $_->{text} } @{ $i->{content} || [] };
        $i->{type} eq 'message' ? "$i->{role}: $text"
        : $i->{type} eq 'reasoning' ? "thinks: $text"
        : $i->{type} eq 'function_call' ? "calls: $i->{name}"
        : "result: $i->{output}"
    } @{ items(@_) };
}

sub key { my ($key) = $redis->keys("*:c:$_[0]"); return $key }


# Other tenants: each request as if there were no such conversation.

my $hers = create({ items => [ user('secret') ], metadata => { a => 'b' } },
                  @alice);
my $item = items($hers, @alice)->[0]{id};

for my $case ([ GET => '' ], [ DELETE => '' ],
              [ POST => '', { metadata => { a => 'c' } } ],
              [ GET => '/items' ], [ POST => '/items',
                                     { items => [ user('mine') ] } ],
              [ GET => "/items/$item" ], [ DELETE => "/items/$item" ])
{
    my ($method, $path, $body) = @$case;

    for my $as (\@bob, []) {
        my @answers = map {
            my $r = $t->request($method, "$uri/$_$path", @$as,
                                $body ? (type => 'application/json',
                                         body => json_encode($body)) : ());
            "$r->{status} $r->{body}";
        } $hers, $none;

        like($answers[0], qr/^404 /, "$method $path of another tenant");
        is($answers[0], $answers[1], 'the answer is that for an unknown id');
    }
}

is(respond($hers, 'x')->{status}, 404, 'nor is it continued');
is(story($hers, @alice), 'user: secret', 'the owner still has it');
is_deeply($t->get("$uri/$hers", @alice)->{json}{metadata}, { a => 'b' },
          'unchanged');

# an item of one conversation is not one of another

my $other = create({ items => [ user('x') ] }, @alice);
is($t->request($_, "$uri/$other/items/$item", @alice)->{status}, 404,
   "$_ an item of another conversation") for qw/ GET DELETE /;


# Hostile paths.

my $id = create({ items => [ user('stays') ] });

for my $path ('x', '%00', '%2e%2e', '..%2f..%2fadmin', '*', '{x}', "'%20or",
              '%ff%fe', 'msg_' . '0' x 8000, '%C3%BC', '%0d%0aX:%20y')
{
    for my $method (qw/ GET DELETE /) {
        my $status = $t->request($method, "$uri/$id/items/$path")->{status};
        like($status, qr/^40[04]$/, substr "$method item $path", 0, 40);
    }
}

for my $path ("/$id/", "/$id/x", "/$id/items/", "/$id/items/a/b",
              "/$id/itemsx", "/$id/items/items",
              '/items', '//items')
{
    my $r = $t->get("$uri$path");
    like($r->{status}, qr/^40[04]$/, "GET $path") or diag($r->{body});
    is(ref $r->{json}{error}, 'HASH', 'an error of the API');
}

is(story($id), 'user: stays', 'nothing is changed');


# Hostile bodies.

my $long = 'x' x 513;

for my $case (
    [ 'no items', {}, 'items' ], [ 'null', { items => undef }, 'items' ],
    [ 'a string', { items => 'x' }, 'items' ],
    [ 'an object', { items => {} }, 'items' ],
    [ '21 items', { items => [ map { user('x') } 1 .. 21 ] }, 'items' ],
    [ 'a number', { items => [ 1 ] }, 'items[0]' ],
    [ 'no role', { items => [ { content => 'x' } ] }, 'items[0].role' ],
    [ 'a role', { items => [ { role => 'king' } ] }, 'items[0].role' ],
    [ 'a type', { items => [ { type => 'mcp_call' } ] }, 'items[0].type' ],
    [ 'an image', { items => [ { role => 'user', content => [
        { type => 'input_image', image_url => 'x' } ] } ] },
      'items[0].content[0].type' ],
    [ 'a reference', { items => [ { type => 'item_reference',
                                    id => $item } ] }, 'items[0].type' ],
    [ 'a call without a name', { items => [
        { type => 'function_call', call_id => 'c' } ] }, 'items[0].name' ],
    [ 'reasoning of another server', { items => [
        { type => 'reasoning', summary => [], encrypted_content => 'x' } ] },
      'items[0].encrypted_content' ])
{
    my ($name, $body, $param) = @$case;

    for my $r ($t->post("$uri/$id/items", $body),
               defined $body->{items} ? $t->post($uri, $body) : ())
    {
        is($r->{status}, 400, "refused: $name") or diag($r->{body});
        is($r->{json}{error}{param}, $param, 'its field');
    }
}

for my $metadata ('x', [], { a => 1 }, { a => undef }, { $long => 'x' },
                  { a => $long }, { map { $_ => 'x' } 1 .. 17 })
{
    for my $at ($uri, "$uri/$id") {
        is($t->post($at, { metadata => $metadata })->{status}, 400,
           'metadata ' . substr json_encode($metadata), 0, 30);
    }
}

is($t->post("$uri/$id", {})->{status}, 400, 'no metadata');
is($t->post("$uri/$id", '')->{status}, 400, 'no body');
is_deeply($t->post("$uri/$id", { metadata => undef })->{json}{metadata}, {},
          'null removes it');
is($t->request('POST', "$uri/$id/items", body => '{"items":[]}',
               type => 'text/plain')->{status}, 415, 'another type');
is($t->get("$uri/$id/items?$_")->{status}, 400, $_)
    for qw/ limit=0 limit=101 limit=-1 order=up include=x include[]=x
            include%5B%5D=a.b /;
is($t->get("$uri/$id/items?include[]=web_search_call.results")->{status}, 200,
   'what this server never has may be requested');
is_deeply($t->get("$uri/$id/items?after=none")->{json}{data}, [],
          'nothing is behind an unknown item');
is_deeply(add($id, [])->{json}{data}, [], 'no items');
is(story($id), 'user: stays', 'nothing is changed');

# ids of the client: one that cannot be part of a path is replaced

my $ids = add($id, [ map { { %{ user('i') }, id => $_ } }
                     'msg_mine', 'a/b', "x\ny", '', 'y' x 65 ])->{json}{data};
is($ids->[0]{id}, 'msg_mine', 'an id of the client');
like($ids->[$_]{id}, qr/^msg_[0-9a-f]{48}$/, 'one of the server') for 1 .. 4;
is($t->request('DELETE', "$uri/$id/items/$_->{id}")->{status}, 200, 'deleted')
    for @$ids;
is(story($id), 'user: stays', 'the first one is left');


# Parts of a message of a chat are items of their own.

my $call = sub { { id => "call_$_[0]", type => 'function',
                   function => { name => "f$_[0]", arguments => '{}' } } };
$id = create({ messages => [
    { role => 'system', content => 'sys' }, user('ask'),
    { role => 'assistant', content => 'text', reasoning_content => 'hm',
      tool_calls => [ map { $call->($_) } 1 .. 3 ] },
    map({ { role => 'tool', tool_call_id => "call_$_", content => "r$_" } }
        1 .. 3),
    { role => 'assistant', content => 'done' } ] });

my @parts = ('system: sys', 'user: ask', 'thinks: hm', 'assistant: text',
             'calls: f1', 'calls: f2', 'calls: f3', 'result: r1',
             'result: r2', 'result: r3', 'assistant: done');
is(story($id), join(' | ', @parts), 'the items of messages');
my @ids = map { $_->{id} } @{ items($id) };
is(scalar(keys %{ { map { $_ => 1 } @ids } }), @ids, 'each has its own id');
is($t->get("$uri/$id/items/$_")->{status}, 200, 'and is found by it')
    for @ids;

my $messages = $t->get("$uri/$id")->{json}{messages};
is(chat($id, user('go on'))->{status}, 200, 'a chat continues it');

for my $at (5, 8, 3, 2, 4, 7) {
    my $found = grep { $_ eq $ids[$at] } map { $_->{id} } @{ items($id) };

    is($found, 1, "$parts[$at] still has its id");
    is($t->request('DELETE', "$uri/$id/items/$ids[$at]")->{status}, 200,
       "$parts[$at] is deleted");
    $parts[$at] = undef;
    is(story($id) =~ s/ \| user: go on.*//r,
       join(' | ', grep { defined } @parts), 'the others stay');
}

is(chat($id, user('more'))->{status}, 200, 'it is still continued');
is(respond($id, 'and more')->{status}, 200, 'by both APIs');
my $now = $t->get("$uri/$id")->{json}{messages};
is_deeply([ map { $_->{role} } @$now ],
          [ qw/ system user assistant tool assistant user assistant
                user assistant user assistant / ],
          'messages of both are in one list');
is($t->request('DELETE', "$uri/$id/items/$ids[6]")->{status}, 200,
   'the last call is deleted');
is(respond($id, 'x')->{status}, 400,
   'a result without its call is an error of the next turn');


# At the limits: 2,000 entries and 4 MB.

$id = create({ messages => [ { role => 'system', content => 'sys' },
                             map { (user("q$_"), { role => 'assistant',
                                                   content => "a$_" }) }
                             1 .. 999 ] });
is($redis->cmd('HGET', key($id), 'count'), 1999, '1,999 messages');
is(add($id, [ user('last') ])->{status}, 200, 'one more');
is(add($id, [ user('over') ])->{status}, 200, 'and one that does not fit');
is($redis->cmd('HGET', key($id), 'count'), 1999, 'the oldest turn has left');
like(story($id), qr/^system: sys \| user: q2 \| assistant: a2 /,
     'behind the system message');

# a deleted entry in the middle of what leaves

@ids = map { $_->{id} } @{ items($id) };
$t->request('DELETE', "$uri/$id/items/$ids[2]");
is(respond($id, 'r')->{status}, 200, 'a turn');
is(respond($id, 'r')->{status}, 200, 'and another one');
my $c = $redis->cmd('HGET', key($id), 'count');
cmp_ok($c, '<=', 2000, "$c entries");
is($redis->cmd('HLEN', key($id)), $c + 8, 'as many as are counted');

$id = create();
my $big = user('x' x 1_000_000);
is(add($id, [ $big, $big, $big ])->{status}, 200, '3 MB');
is(add($id, [ $big, $big ])->{status}, 200, 'and 2 MB');
is(scalar @{ items($id) }, 4, 'one had to leave');
is(add($id, [ ($big) x 5 ])->{status}, 413, '5 MB at once');
is(scalar @{ items($id) }, 4, 'change nothing');
is($t->post($uri, { items => [ ($big) x 5 ] })->{status}, 413,
   'nor are they a conversation');

my $bytes = $redis->cmd('HGET', key($id), 'bytes');
is($bytes, eval { my $n = 0; my %h = @{ $redis->cmd('HGETALL', key($id)) };
                  $n += length $h{$_} for grep { /^\d+$/ } keys %h; $n },
   'bytes is what is there');


# A turn keeps the conversation, a change of metadata does not.

$id = create();
$redis->cmd('EXPIRE', key($id), 100);
$t->post("$uri/$id", { metadata => { a => 'b' } });
cmp_ok($redis->cmd('TTL', key($id)), '<=', 100, 'metadata');
$t->get("$uri/$id/items");
cmp_ok($redis->cmd('TTL', key($id)), '<=', 100, 'a list');

for my $case ([ 'items', sub { $item = add($id, [ user('x') ])
                                       ->{json}{data}[0]{id} } ],
              [ 'a deleted item', sub { $t->request('DELETE',
                                        "$uri/$id/items/$item") } ],
              [ 'a response', sub { respond($id, 'x') } ],
              [ 'a chat', sub { chat($id, user('x')) } ])
{
    my ($name, $do) = @$case;

    $redis->cmd('EXPIRE', key($id), 100);
    $do->();
    cmp_ok($redis->cmd('TTL', key($id)), '>', 3500, "$name renew it");
}


# What is in Redis is not a conversation: an error of the server, and none that
# another host could help with.

for my $case (
    [ 'another type', sub { $redis->cmd('DEL', $_[0]);
                            $redis->cmd('RPUSH', $_[0], 'x') } ],
    [ 'no fields', sub { $redis->cmd('DEL', $_[0]);
                         $redis->cmd('HSET', $_[0], 'x', 'y') } ],
    [ 'an entry is missing', sub { $redis->cmd('HDEL', $_[0], 0) } ])
{
    my ($name, $damage) = @$case;

    my $id = create({ items => [ user('a'), user('b') ] });
    my $item = items($id)->[1]{id};
    my $at = key($id);
    $damage->($at);

    my $n = submitted($fake);
    is($t->get("$uri/$id")->{status}, 500, "$name: GET");
    is($t->get("$uri/$id/items")->{status}, 500, "$name: its items");
    is($t->request('DELETE', "$uri/$id/items/$item")->{status}, 500,
       "$name: an item");
    is(respond($id, 'x')->{status}, 500, "$name: a turn");
    is(scalar submitted($fake), $n, "$name: nothing is computed");
    is($t->request('DELETE', "$uri/$id")->{status}, 200,
       "$name: it can be deleted");
    $redis->cmd('DEL', $at);
}

for my $garbage ('', 'x', '[]', '"x"', '{"type":"message"}', '{"type":5}',
                 '{"role":"user","content":5}', '{"role":"assistant",'
                 . '"tool_calls":5}', "{\"role\":\"\xff\"}",
                 '{"role":"assistant","tool_calls":[{"id":"c"}]}',
                 '{"a":' x 200 . '1' . '}' x 200)
{
    my $id = create({ items => [ user('a') ] });
    $redis->cmd('HSET', key($id), 0, $garbage);

    for my $path ('', '/items', '/items/x') {
        my $status = $t->get("$uri/$id$path")->{status};
        like($status, qr/^(?:200|404|500)$/, substr "$garbage $path", 0, 40);
    }

    like(respond($id, 'x')->{status}, qr/^(?:200|400|500)$/, 'a turn');
}

is($t->get("$uri/$none")->{status}, 404, 'the workers are alive') for 1 .. 4;


# Redis refuses to write: what changes something gets a 503, or a 507 for its
# memory, and changes it not.

for my $case (
    [ 'full', sub { $redis->cmd(qw/ CONFIG SET maxmemory 1 /) },
      sub { $redis->cmd(qw/ CONFIG SET maxmemory 0 /) } ],
    [ 'read-only', sub { $redis->cmd(qw/ REPLICAOF 127.0.0.1 1 /) },
      sub { $redis->cmd(qw/ REPLICAOF NO ONE /) } ])
{
    my ($name, $break, $heal) = @$case;

    my $id = create({ items => [ user('a'), user('b') ],
                      metadata => { a => 'b' } });
    my $item = items($id)->[1]{id};
    my $n = submitted($fake);

    $break->();
    my $status = $name eq 'full' ? 507 : 503;
    is(add($id, [ user('c') ])->{status}, $status, "$name: items");
    is($t->post("$uri/$id", { metadata => { c => 'd' x 99 } })->{status},
       $status, "$name: metadata");
    is($t->post($uri, {})->{status}, $status, "$name: a conversation");
    is(respond($id, 'x')->{status}, 503, "$name: a turn");
    is(scalar submitted($fake), $n, "$name: nothing is computed");
    is($t->request('DELETE', "$uri/$id/items/$item")->{status},
       $name eq 'full' ? 200 : 503, "$name: a deleted item needs no memory");
    $heal->();

    wait_for_redis();
    wait_until(sub { add($id, [])->{status} == 200 }, 20, 'writes') for 1 .. 8;
    is(story($id), $name eq 'full' ? 'user: a' : 'user: a | user: b',
       "$name: items are as they were");
    is_deeply($t->get("$uri/$id")->{json}{metadata}, { a => 'b' },
              "$name: and metadata");
    wait_until(sub { respond($id, 'x')->{status} == 200 }, 20, 'a turn');
}

$server->stop;
wait_until(sub { $t->get("$uri/$none")->{status} == 503 }, 20, 'the loss')
    for 1 .. 8;
is($t->get("$uri/$id/items")->{status}, 503, 'away: a list');
is(add($id, [ user('x') ])->{status}, 503, 'away: items');
is(respond($id, 'x')->{status}, 503, 'away: a turn');

$t->done;
