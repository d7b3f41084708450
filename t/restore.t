# Copyright (C) The nginx-dsa authors
#
# Backup and restore of Redis while nginx runs.  The steps, with redis-cli -p
# PORT; nginx is neither stopped nor reloaded.
#
# Backup of the append-only file, while Redis runs:
#
#   1. bgrewriteaof
#   2. info persistence, until aof_rewrite_in_progress and
#      aof_rewrite_scheduled are 0
#   3. copy the directory appendonlydir
#
# Restore:
#
#   1. stop Redis, if it runs
#   2. put the copy in place of appendonlydir in "dir" of redis.conf
#   3. start Redis
#
# Backup of a snapshot, while Redis runs: bgsave, or save; copy dump.rdb.
# Restore:
#
#   1. stop Redis; move appendonlydir away; put the copy in place of dump.rdb
#   2. start Redis with "appendonly no": with "yes" and without an append-only
#      file it does not read dump.rdb and starts empty
#   3. config set appendonly yes, and step 2 of the first backup
#   4. start Redis with its redis.conf, which has "appendonly yes"
#
# What came after the backup is lost: turns, conversations, responses, keys,
# and entries of the ledger, except those that nginx could not send yet.

use strict;
use warnings;

use File::Path qw/ remove_tree /;
use POSIX ();
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $t = DSA::Test->new('restore');
my $dsa = $t->build . '/dsa';
my $fake = $t->start_fake();
my $server = $t->start_redis(appendonly => 1);
my $chat = '/v1/chat/completions';
my @where = ('--redis', '127.0.0.1:' . $server->port);
my @counts = qw/ requests prompt_tokens completion_tokens cost_miss
                 cost_hit cost_output /;

# The stdout of dsa.

sub run {
    open my $fh, '-|', $dsa, @_ or die "dsa: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh or die "dsa @_ failed\n";

    return $out;
}

sub new_key {
    my ($name) = @_;
    return run('key', 'create', @where, '--name', $name, '--tenant', $name,
               '--budget-total', 100) =~ s/\n//r;
}

sub as { (headers => [ Authorization => "Bearer $_[0]", @_[1 .. $#_] ]) }

# The counts of a tenant in the ledger, and what its keys have spent.

sub bill {
    my ($tenant) = @_;

    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
               'the entries');

    my ($row) = @{ json_decode(run('usage', '--json', '--tenant', $tenant,
                                   @where))->{usage} };
    my ($spend) = $t->redis($server)->keys('dsa1:*:spend');

    return { (map { $_ => $row->{$_} } @counts),
             spend => $t->redis($server)->hgetall($spend) };
}

sub persisted {
    my $redis = $t->redis($server);

    wait_until(sub {
        $redis->cmd('INFO', 'persistence')
            =~ /aof_rewrite_in_progress:0.*aof_rewrite_scheduled:0/s
    }, 20, 'the append-only file');
}

# A redis-server in a directory of its own, on the same port, with a copy, to
# which both workers are connected again.

sub restored {
    my ($from, $name, %conf) = @_;
    my $dir = $t->path('redis' . @{ $t->{redises} });

    mkdir $dir or die "mkdir: $!\n";
    system('cp', '-r', $from, "$dir/$name") == 0 or die "cp failed\n";
    $server = $t->start_redis(port => $server->port, %conf);
    $t->wait_redis(2);
}

# The last prompt that the engine got.

sub prompt { (submitted($fake))[-1] =~ / prompt=(.*)/ ? $1 : '' }


my $key = new_key('anna');
my @anna = as($key);

$t->start_nginx(workers => 2, redis => 'timeout=10s',
                http => 'dsa_keys redis zone=keys:1m;
                         dsa_price deepseek-chat miss=1 hit=1 output=1;');

sub serves {
    my ($status, $key, $what) = @_;

    wait_until(sub { $t->get('/v1/models', as($key))->{status} == $status },
               20, $what) for 1 .. 8;
}

sub finds {
    my ($uri, $status) = @_;

    wait_until(sub { $t->get($uri, @anna)->{status} == $status }, 20,
               "$uri: $status") for 1 .. 8;
}

sub turn {
    my ($text, $conversation) = @_;
    my $r = $t->post($chat, ask($text, conversation => $conversation), @anna);

    is($r->{status}, 200, "a turn: $text") or diag($r->{body});
    ok($r->{json}{conversation}{stored}, 'is stored');
}

serves(200, $key, 'the key');
finds('/v1/conversations/conv_' . '0' x 32, 404);


# what is in the backups

my $id = $t->post('/v1/conversations', {}, @anna)->{json}{id};

turn($_, $id) for 'first', 'second';

my $response = $t->post('/v1/responses', { model => 'deepseek-chat',
                                           input => 'remember' }, @anna)
                 ->{json}{id};
my @repeat = ($chat, ask('once'), as($key, 'Idempotency-Key', 'k1'));
my $once = $t->post(@repeat)->{json}{id};
my $before = bill('anna');
my $items = $t->get("/v1/conversations/$id/items", @anna)->{body};
my $keys = run('key', 'list', '--json', @where);

is($before->{requests}, 4, 'the requests before the backup');

my $aof = $t->path('backup.aof');
my $rdb = $t->path('backup.rdb');

$t->redis->cmd('BGREWRITEAOF');
persisted();
system('cp', '-r', $t->path('redis0/appendonlydir'), $aof);
$t->redis->cmd('SAVE');
system('cp', $t->path('redis0/dump.rdb'), $rdb);


# what comes after them, and is lost with the disk

turn('third', $id);

my $late = $t->post('/v1/conversations', {}, @anna)->{json}{id};
my $later = new_key('bert');

serves(200, $later, 'the key after the backup');
is(bill('anna')->{requests}, 5, 'the requests after the backup');
$server->kill9;
remove_tree($t->path('redis0'));

# without Redis chats go on; their entries wait in nginx

my $r = $t->post($chat, ask('without redis'), @anna);
is($r->{status}, 200, 'a chat without Redis');
is($t->get("/v1/conversations/$id", @anna)->{status}, 503,
   'no conversation without Redis');


# As it was at the backup, for all that is documented to be there.

sub as_before {
    my ($what, $more) = @_;
    my $want = { %$before };

    for my $r (@$more) {
        my $usage = $r->{json}{usage};

        $want->{requests}++;
        $want->{$_} += $usage->{$_}
            for qw/ prompt_tokens completion_tokens /;
    }

    finds("/v1/conversations/$id", 200);

    my $bill = bill('anna');

    is($bill->{$_}, $want->{$_}, "$what: the bill: $_")
        for qw/ requests prompt_tokens completion_tokens /;
    is_deeply($bill, $before, "$what: costs, and what keys have spent")
        if !@$more;
    is($t->get("/v1/conversations/$id/items", @anna)->{body}, $items,
       "$what: the conversation");
    is(run('key', 'list', '--json', @where), $keys, "$what: the keys");

    $r = $t->post(@repeat);
    is($r->{json}{id}, $once, "$what: a request that is repeated");
    is($r->{headers}{'idempotent-replayed'}, 'true', "$what: is not computed");

    # what came later

    is($t->get("/v1/conversations/$late", @anna)->{status}, 404,
       "$what: a later conversation is lost");
    serves(401, $later, "$what: a later key is lost");
    serves(200, $key, "$what: the key");
}

sub goes_on {
    my ($what) = @_;

    turn('again', $id);
    like(prompt(), qr/first.*second.*again/, "$what: the history is there");
    unlike(prompt(), qr/third/, "$what: a later turn is lost");

    my $r = $t->post('/v1/responses', { model => 'deepseek-chat',
                     input => 'and', previous_response_id => $response },
                     @anna);
    is($r->{status}, 200, "$what: a response continues");
    like(prompt(), qr/remember.*and/, "$what: with its history");
}


# the append-only file

restored($aof, 'appendonlydir', appendonly => 1);
as_before('append-only file', [$r]);
goes_on('append-only file');


# the snapshot

$server->stop('TERM', 20);
restored($rdb, 'dump.rdb', appendonly => 0);
is($t->redis($server)->cmd(qw/ CONFIG SET appendonly yes /), 'OK',
   'the append-only file begins');
persisted();
as_before('snapshot', []);
$server->kill9;
system('cp', '-r', $t->path('redis2/appendonlydir'), $t->path('kept'));
restored($t->path('kept'), 'appendonlydir', appendonly => 1);
as_before('snapshot, after a restart', []);
goes_on('snapshot');

$t->done;
