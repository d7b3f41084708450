# Copyright (C) The nginx-dsa authors
#
# What one tenant stores does not stop others: quotas of bytes and objects, the
# limits of requests that write and read, and a Redis without memory.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;
use Test::More;

my $t = DSA::Test->new('quota');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();

my ($bytes, $objects) = (40 * 1024, 15);
my $http = 'dsa_keys file=%%DIR%%/keys zone=keys:1m;';
my $chat = '/v1/chat/completions';
my $uri = '/v1/conversations';

write_keys($t->path('keys'), (map { key_entry($_) } qw/ alice bob carol dave
           erin frank /), map { key_entry($_, rpm => 1) } qw/ post delete get
           chat /);

$t->start_nginx(redis => "quota=40k objects=$objects", workers => 2,
                http => $http);
$t->wait_redis(2);

my $chats = 0;


sub as { bearer(key_text($_[0])) }
sub create { $t->post($uri, $_[1] || {}, as($_[0])) }
sub remove { $t->request('DELETE', $_[1], as($_[0])) }
sub conversation { { items => [ { role => 'user', content => 'x' x $_[0] } ] } }


# A chat that is billed.  It is answered whatever is stored.

sub chat {
    my ($who, %more) = @_;

    my $r = $t->post($chat, { model => 'deepseek-chat', messages => [
                         { role => 'user', content => 'x' } ], %more },
                     as($who));
    $chats++ if $r->{status} == 200;

    return $r;
}


sub respond {
    my ($who, %more) = @_;

    my $r = $t->post('/v1/responses', { model => 'deepseek-chat',
                                        input => 'x', %more }, as($who));
    $chats++ if $r->{status} == 200;

    return $r;
}


# A chat with a tool call, which is retained.

sub call {
    my ($who) = @_;

    my $r = chat($who, messages => [ { role => 'user', content => "!fake\n"
        . tokens('</think>\n\n<｜DSML｜function_calls>\n'
                 . '<｜DSML｜invoke name="f">\n</｜DSML｜invoke>\n'
                 . '</｜DSML｜function_calls>') } ],
        tools => [ { type => 'function', function => { name => 'f' } } ]);

    is($r->{json}{choices}[0]{finish_reason}, 'tool_calls', "$who: a call");

    return;
}


# Bytes and objects in the account of a conversation's tenant, and its key.

sub account {
    my ($id) = @_;

    my ($key) = map { /^(dsa1:\{\w+\}:)/ } $redis->keys("*:c:$id");
    my ($n, $sum) = (0, 0);

    for (map { [ split ' ' ] } values %{ $redis->hgetall("${key}stored") }) {
        $n += $_->[0];
        $sum += $_->[1];
    }

    return ($sum, $n, $key);
}


sub over {
    my ($r, $name) = @_;

    is($r->{status}, 403, "$name: 403");
    is($r->{json}{error}{code}, 'storage_quota_exceeded', "$name: its code");
    like($r->{json}{error}{message}, qr/Delete conversations or responses/,
         "$name: what to do");

    return;
}


# Requests in the ledger, of all tenants.

sub entries {
    my $n = 0;

    for my $key ($redis->keys('dsa1:*:ledger:????-??-??')) {
        my $fields = $redis->hgetall($key);
        $n += $fields->{$_} for grep { /^[^|]+\|requests$/ } keys %$fields;
    }

    return $n;
}


# A key without a limit of requests fills its part, and no more.

my @ids;
my $r;

for (1 .. 100) {
    $r = create('alice', conversation(2000));
    last if $r->{status} != 200;
    push @ids, $r->{json}{id};
}

over($r, 'a conversation');

my ($sum, $n, $key) = account($ids[0]);
is($n, @ids, 'all of them are counted');
cmp_ok($sum, '<=', $bytes, 'within the quota');
cmp_ok($sum, '>', $bytes - 4000, 'which is used up');
cmp_ok($sum, '>', 2000 * @ids, 'with all of their text');
like($r->{json}{error}{message},
     qr/\b$sum of $bytes bytes and $n of $objects objects are used/,
     'the error has what is used');
is($r->{headers}{'retry-after'}, undef, 'it is not worth a retry');

over($t->post("$uri/$ids[0]/items", conversation(4000), as('alice')),
     'more items');
over($t->post("$uri/$ids[0]", { metadata => {
                  map { $_ => 'x' x 500 } 'a' .. 'h' } }, as('alice')),
     'more metadata');
is_deeply($t->get("$uri/$ids[0]", as('alice'))->{json}{metadata}, {},
          'which are not stored');

# others, and the tenant's own chats, go on

is(create('bob', conversation(2000))->{status}, 200, 'another tenant stores');
is(respond('bob')->{json}{store}, JSON::PP::true, 'also responses');
is(chat('bob')->{status}, 200, 'and chats');
is(chat('alice')->{status}, 200, 'the tenant itself chats');

$r = chat('alice', conversation => $ids[0], messages => [
              { role => 'user', content => 'x' x 4000 } ]);
is($r->{status}, 200, 'a turn is answered');
is($r->{json}{conversation}{stored}, JSON::PP::false, 'and not stored');
like($r->{json}{conversation}{reason}, qr/storage quota/, 'with the reason');

is(remove('alice', "$uri/" . pop @ids)->{status}, 200, 'one makes room');
is(respond('alice', input => 'x')->{json}{store}, JSON::PP::true,
   'what fits is stored');
$r = respond('alice', input => 'x' x 4000);
is($r->{status}, 200, 'a response is answered');
is($r->{json}{store}, JSON::PP::false, 'and not stored');
like($r->{json}{store_error}, qr/storage quota/, 'with the reason');

# to delete frees

is(remove('alice', "$uri/$ids[0]")->{status}, 200, 'one is deleted');
is((account($ids[1]))[1], scalar @ids,
   'and not counted, and the response is');
$r = create('alice', conversation(2000));
is($r->{status}, 200, 'so that another one fits');
push @ids, $r->{json}{id};

$r = remove('alice', "$uri/$_"), is($r->{status}, 200, 'deleted')
    for @ids[1 .. $#ids];
is(remove('alice', "$uri/$ids[1]")->{status}, 404, 'which is no more');
is($redis->cmd('EXISTS', "${key}stored"), 1, 'the response is still counted');


# The number of objects, of which retained answers are some.

my $saved = $t->metrics->{dsa_retention_saved_total};
call('dave');
wait_until(sub { $t->metrics->{dsa_retention_saved_total} == $saved + 1 }, 30,
           'the answer to be retained');

my @responses = map { respond('dave')->{json}{id} } 2 .. $objects;
over(create('dave'), 'one object more');
like(respond('dave')->{json}{store_error}, qr/storage quota/, 'and a response');

my $lost = $t->metrics->{dsa_retention_lost_total};
call('dave');
wait_until(sub { $t->metrics->{dsa_retention_lost_total} == $lost + 1 }, 30,
           'an answer that is not retained to be counted');
ok($t->logged(qr/is not retained: the storage quota/), 'and logged');

is(remove('dave', "/v1/responses/$responses[0]")->{status}, 200,
   'a response is deleted');
is(create('dave')->{status}, 200, 'a conversation has its place');


# Requests that write are requests of the key, and reads have a limit of their
# own.

my $id = create('frank')->{json}{id};

is(create('post')->{status}, 200, 'rpm=1: one is created');
$r = create('post');
is($r->{status}, 429, 'the second one is refused');
is($r->{json}{error}{code}, 'rate_limit_exceeded', 'with the code of chats');
is($r->{headers}{'x-ratelimit-limit-requests'}, 1, 'and their headers');
cmp_ok($r->{headers}{'retry-after'}, '>', 0, 'also Retry-After');
is(chat('post')->{status}, 429, 'and so is a chat');
is($t->get("$uri/$id", as('post'))->{status}, 404, 'reads go on');

is(chat('chat')->{status}, 200, 'a chat');
is(create('chat')->{status}, 429, 'takes the place of a conversation');

is(remove('delete', "$uri/$id")->{status}, 404, 'DELETE counts');
is(remove('delete', "/v1/responses/resp_" . '0' x 32)->{status}, 429,
   'for responses, too');

my $reads = 0;
my $began = time;

for my $path (("$uri/$id", '/v1/responses/resp_' . '0' x 32) x 1000) {
    $r = $t->get($path, as('get'));
    last if $r->{status} == 429;
    $reads++;
}

cmp_ok($reads, '>=', 10, 'ten times as many reads');
cmp_ok($reads, '<=', 11 + (time - $began) / 6, 'and no more');
like($r->{json}{error}{message}, qr/may read .* 10 times per minute/, 'why');
is(chat('get')->{status}, 200, 'a chat goes on');

my $limited = $t->metrics;
is($limited->{'dsa_limited_requests_total{limit="reads"}'}, 1,
   'a read that is refused is counted');
is($limited->{'dsa_limited_requests_total{limit="requests"}'}, 4,
   'and so are writes');

wait_until(sub { entries() == $chats }, 30, 'the ledger');


# What expires is not counted.

$t->reload(redis => 'quota=4k ttl=2s', workers => 2, http => $http);
wait_until(sub { $t->workers == 2 }, 30, 'two workers');

# the workers before had no such quota

wait_until(sub { create('erin', conversation(2000))->{status} == 403 }, 30,
           'the quota to be used up');
wait_until(sub { create('erin', conversation(2000))->{status} == 200 }, 60,
           'it to be free again');


# A Redis that is nearly full: the rest of its memory is for the ledger.

$t->reload(redis => 'timeout=10s', workers => 2, http => $http);
wait_until(sub { $t->workers == 2 }, 30, 'two workers');
$t->wait_redis(2);

$id = create('frank')->{json}{id};
my $other = create('frank')->{json}{id};

sub limit {
    my ($part) = @_;
    my ($used) = $redis->cmd('INFO', 'memory') =~ /^used_memory:(\d+)/m;

    $redis->cmd('CONFIG', 'SET', 'maxmemory', $part ? int $used / $part : 0);

    return;
}

limit(0.93);

# without a write, because few of them would fill the rest

wait_until(sub {
    my $m = $t->metrics;
    my $has = $m->{dsa_redis_memory_limit_bytes};

    $has > 0 && $m->{dsa_redis_memory_used_bytes} >= 0.9 * $has
}, 60, 'nginx to see that Redis is nearly full');

is(create('frank')->{status}, 507, 'nearly full: no conversation is created');
$r = create('bob');
is($r->{status}, 507, 'for every tenant');
is($r->{json}{error}{code}, 'insufficient_storage', 'its code');

$r = chat('frank', conversation => $id);
is($r->{json}{conversation}{stored}, JSON::PP::false, 'a turn: not stored');
like($r->{json}{conversation}{reason}, qr/nearly full/, 'why');
wait_until(sub { chat('frank', conversation => $id)->{status} == 200 }, 20,
           'the next turn');
$r = respond('frank');
is($r->{json}{store}, JSON::PP::false, 'a response: not stored');
like($r->{json}{store_error}, qr/nearly full/, 'why');

$lost = $t->metrics->{dsa_retention_lost_total};
call('frank');
wait_until(sub { $t->metrics->{dsa_retention_lost_total} == $lost + 1 }, 30,
           'an answer to be dropped');

is(chat('bob')->{status}, 200, 'a chat');
wait_until(sub { entries() == $chats }, 30, 'the ledger has all of them');
is($t->get("$uri/$id", as('frank'))->{status}, 200, 'it can be read');

# and one that is full

$redis->cmd('CONFIG', 'SET', 'maxmemory', 1);
is(chat('bob')->{status}, 200, 'full: a chat') for 1 .. 20;
is($t->get("$uri/$id", as('frank'))->{status}, 200, 'full: to read');
is(remove('frank', "$uri/$id")->{status}, 200, 'full: to delete');
is(chat('frank', conversation => $other)->{status}, 503,
   'full: a turn, which needs a lease');

limit(0);
wait_until(sub { entries() == $chats }, 60,
           'the ledger to have what waited in the queue');
wait_until(sub { create('frank')->{status} == 200 }, 60,
           'conversations to be stored again');
is(entries(), $chats, 'each of them once');

$t->done;
