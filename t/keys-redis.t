# Copyright (C) The nginx-dsa authors
#
# Keys of Redis: what is served while Redis is away at the start, dies, loses
# its data, replies slowly or with something else; changes; unknown keys.

use strict;
use warnings;

use Digest::SHA qw/ sha256 sha256_hex /;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

my $t = DSA::Test->new('keys-redis');
my $fake = $t->start_fake();

my ($status, $out) = $t->nginx_test(http => 'dsa_keys redis zone=keys:2m;');
isnt($status, 0, 'without dsa_redis');
like($out, qr/"dsa_keys redis" needs "dsa_redis"; expected/, 'and why');

my $server = $t->start_redis();
$server->kill9();

my $http = "dsa_keys redis zone=keys:2m;
            log_format keys '[\$dsa_key] \$http_authorization';
            access_log %%DIR%%/keys.log keys;";

$t->start_nginx(http => $http, workers => 2, redis => 'timeout=5s');


# a request with a key: its status; those of several connections, which are of
# both workers

sub chat { my ($name, %more) = @_;
           return $t->post('/v1/chat/completions', ask('x'),
                           bearer(key_text($name)), %more) }
sub status { chat(@_)->{status} }

sub settles {
    my ($name, $status, $what) = @_;

    my $same = 0;

    wait_until(sub { $same = status($name) == $status ? $same + 1 : 0;
                     $same >= 10 }, 20, $what);
    pass($what);
}


# Redis is away at the start

my $r = chat('anna');
is($r->{status}, 503, 'Redis is away: the key cannot be checked');
is_deeply($r->{json}, { error => {
    message => 'The server cannot check the API key now, because the keys '
               . 'have not been loaded yet. Try again later.',
    type => 'server_error', param => undef, code => 'service_unavailable' } },
    'in the shape of OpenAI');
is($r->{headers}{'retry-after'}, 1, 'with Retry-After');

$r = $t->post('/v1/messages', { model => 'deepseek-chat', max_tokens => 5,
              messages => [{ role => 'user', content => 'x' }] },
              headers => ['x-api-key', key_text('anna')]);
is($r->{status}, 503, 'with Anthropic');
is($r->{json}{error}{type}, 'overloaded_error', 'in its shape');
is($t->post('/v1/responses', { model => 'deepseek-chat', input => 'x' },
            bearer(key_text('anna')))->{status}, 503, 'with Responses');
is($t->post('/v1/chat/completions', ask('x'))->{status}, 401,
   'a request without a key needs no Redis');


# Redis starts, with more keys than a reply has

my @names = map { "name$_" } 1 .. 600;

$server->restart();
my $redis = $t->redis;
put_keys($redis, map { key_entry($_) } @names, 'anna');

settles('anna', 200, 'Redis has started');
is(status('name1'), 200, 'the first key');
is(status($_), 200, "key $_") for qw/ name255 name256 name257 name600 /;
is(status('unknown'), 401, 'a key that does not exist');


# Changes.  When Redis executes the second read since a change, nginx has
# applied the reply to the first one, so all later requests are decided by it.

sub reads {
    my ($n) = $redis->cmd('INFO', 'commandstats')
              =~ /cmdstat_zrangebyscore:calls=(\d+)/;
    return $n // 0;
}

sub follows {
    my ($name, $status, $what) = @_;

    my $from = reads();
    my ($same, $late) = (0, 0);

    wait_until(sub {
        my $read = reads() - $from;

        $same = status($name) == $status ? $same + 1 : 0;
        $late += $same == 0 && $read >= 2;
        $same >= 10;
    }, 20, $what);
    is($late, 0, $what);
}

put_keys($redis, key_entry('new'));
follows('new', 200, 'a new key');
put_keys($redis, key_entry('new', state => 'revoked'));
follows('new', 401, 'it is revoked');
is(chat('new')->{json}{error}{message}, 'The API key was revoked.',
   'its message');
put_keys($redis, key_entry('new'));
follows('new', 200, 'and active again');

sub rotated {
    my ($until) = @_;

    return key_entry('new', hash => sha256_hex(key_text('newer')),
                      old => { hash => sha256_hex(key_text('new')),
                               until => int(time) + $until });
}

put_keys($redis, rotated(3600));
follows('newer', 200, 'it is rotated');
is(status('new'), 200, 'the old text during the grace time');
put_keys($redis, rotated(1));
wait_until(sub { status('new') == 401 }, 10, 'the end of the grace time');
is(status('newer'), 200, 'the new text afterwards');


# entries that "dsa key" would not write

my $bad = key_entry('anna');
put_key_entry($redis, $bad->{id}, '{"id":');
put_keys($redis, key_entry('after'));
settles('after', 200, 'changes behind a malformed entry');
is(status('anna'), 200, 'its key remains');
is($t->logged(qr/key "$bad->{id}" of Redis is not updated: .*expected/), 1,
   'the log has the id');
put_keys($redis, $bad);


# unknown keys cost no calls of Redis, and do not evict known ones

sub calls {
    my $n = 0;
    $n += $_ for $redis->cmd('INFO', 'commandstats') =~ /calls=(\d+)/g;
    return $n;
}

my $before = calls();
my $begin = time;
my $sent = 5000;
my $refused = 0;

for my $part (1 .. 10) {
    my $h = $t->connect;

    for my $batch (1 .. 10) {
        $h->send(join '', map {
            $h->format_request('GET', '/v1/models',
                               bearer(key_text("unknown$part.$batch.$_")))
        } 1 .. $sent / 100);
        $refused += $h->response->{status} == 401 for 1 .. $sent / 100;
    }

    $h->close;
}

my $took = time - $begin;
is($refused, $sent, 'unknown keys are refused');
cmp_ok(calls() - $before, '<', 20 + 10 * $took,
       'which costs no calls of Redis');
is(status($_), 200, "$_ is still there") for qw/ anna name1 name600 newer /;


# Redis is slow: known keys do not wait

$server->signal('STOP');
is(status('anna'), 200, 'Redis hangs, and a known key does not wait for it')
    for 1 .. 10;
$server->signal('CONT');
undef $redis;
wait_until(sub { $redis = eval { my $c = $t->redis; $c->cmd('PING'); $c } },
           20, 'Redis to reply again');
put_keys($redis, key_entry('slow'));
settles('slow', 200, 'changes afterwards');


# read-only

$redis->cmd('REPLICAOF', '127.0.0.1', $t->free_port);
is(status('anna'), 200, 'Redis is read-only') for 1 .. 10;
$redis->cmd('REPLICAOF', 'NO', 'ONE');
put_keys($redis, key_entry('writable'));
settles('writable', 200, 'changes when it is writable again');


# keys of other types

$redis->cmd('RENAME', 'dsa1:{keys}:id', 'saved');
$redis->cmd('SET', 'dsa1:{keys}:id', 'x');
wait_until(sub { $t->logged(qr/keys cannot be updated from Redis: .*type/) },
           20, 'the log line');
is(status('anna'), 200, 'keys of other types: a known key');
wait_until(sub { status('unknown') == 503 }, 20, '503 for unknown keys');
is(status('anna'), 200, 'and still known ones');
$redis->cmd('DEL', 'dsa1:{keys}:id');
$redis->cmd('RENAME', 'saved', 'dsa1:{keys}:id');
settles('unknown', 401, 'the right types');
cmp_ok($t->logged(qr/keys are updated from Redis again/), '>=', 1,
       'which is logged');


# Redis dies

$server->kill9();
is(status('anna'), 200, 'Redis is dead: a known key');
wait_until(sub { status('unknown') == 503 }, 20, 'unknown ones get 503');
like(chat('unknown')->{json}{error}{message}, qr/keys cannot be updated/,
     'and why');
is(status('anna'), 200, 'known ones do not expire');

$t->reload();
is(status('anna'), 200, 'a reload while Redis is dead');
is(status('unknown'), 503, 'with the same for unknown keys');


# it comes back empty

$server->restart();
wait_until(sub { $t->logged(qr/it has no keys any more/) }, 20,
           'the log line');
is(status($_), 200, "Redis has lost its keys: $_") for qw/ anna name300 /;
is(status('unknown'), 503, 'others may exist');


# an older state is restored

$redis = $t->redis;
put_keys($redis, key_entry('anna'), key_entry('otto'));
settles('otto', 200, 'an older state is restored');
is(status('anna'), 200, 'with this key');
is(status('name300'), 401, 'without this one');
is(status('unknown'), 401, 'and it is complete');


# the process that reads is killed

for my $pid ($t->workers) {
    kill 'KILL', $pid;
    wait_until(sub { my @w = $t->workers; @w == 2 && !grep { $_ == $pid } @w },
               10, 'another worker');
}

$t->allow_alert(qr/worker process \d+ exited on signal 9/);
put_keys($redis, key_entry('late'));
settles('late', 200, 'a change after the death of both workers');


# another binary

$t->upgrade();
settles('anna', 200, 'after USR2');
put_keys($redis, key_entry('latest'));
settles('latest', 200, 'and a change');


# the text of a key is nowhere: logs, Redis, shared memory

my @texts = map { key_text($_) } qw/ anna otto new newer unknown late /;
my $dump = '';

$redis->cmd('CONFIG', 'SET', 'rdbcompression', 'no');
$redis->cmd('SAVE');
$dump = read_file($t->path('redis0/dump.rdb'));
like($dump, qr/\Q${\ sha256_hex($texts[0]) }/, 'Redis has the hash');

sub shared_memory {
    my ($pid) = @_;

    no warnings 'portable';     # addresses have more than 32 bits

    open my $mem, '<:raw', "/proc/$pid/mem" or return;

    return join '', map {
        my ($from, $to) = map { hex } /^(\w+)-(\w+) rw-s .*\/dev\/zero/
            or next;
        my $bytes = '';
        sysseek $mem, $from, 0;
        sysread $mem, $bytes, $to - $from;
        $bytes
    } grep { m{ rw-s .*/dev/zero} } split /\n/, read_file("/proc/$pid/maps");
}

my $memory = shared_memory(($t->workers)[0]);
my $log = read_file($t->path('keys.log'));

SKIP: {
    skip 'the memory of nginx cannot be read', 1 + @texts
        if !defined $memory && !$ENV{DSA_NO_SKIP};

    cmp_ok(index($memory, sha256($texts[0])), '>', 0, 'the zone has the hash');
    is(index($memory, $_), -1, 'and not the key') for @texts;
}

for my $text (@texts) {
    is(index($dump, $text), -1, 'Redis does not have the key');
    is(index($log, $text), -1, 'nor does the access log');
    is(index($t->error_log, $text), -1, 'nor does the error log');
}

$t->done;
