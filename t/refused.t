# Copyright (C) The nginx-dsa authors
#
# The ACL of Redis refuses a command that nginx needs: nothing is written while
# it does, each request is billed once when it is permitted again, and the log
# has the name of the command, once.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Digest::SHA qw/ sha256_hex /;
use Test::More;

my $t = DSA::Test->new('refused');
my $server = $t->start_redis();
my $redis = $t->redis($server);
my $chat = '/v1/chat/completions';

$t->start_fake();
chmod 0600, write_file($t->path('redis.pw'), "a-password\n");
$redis->cmd(qw/ ACL SETUSER nginx on >a-password ~* +@all /);
$t->start_nginx(redis => 'user=nginx password_file=%%DIR%%/redis.pw');
$t->wait_redis(1);


# All keys with their values.  Leases are left out: a turn may begin.

sub snapshot {
    return { map { $_ => $redis->cmd('TYPE', $_) eq 'hash'
                         ? $redis->hgetall($_) : $redis->cmd('GET', $_) }
             grep { !/:l:/ } $redis->keys('*') };
}


# The counts of a tenant in the ledger.

sub ledger {
    my ($tenant) = @_;
    my %sum;

    for my $key ($redis->keys("dsa1:{$tenant}:ledger:*")) {
        my $fields = $redis->hgetall($key);
        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return { map { $_ => $sum{$_} || 0 }
             qw/ requests prompt_tokens completion_tokens / };
}


# How many scripts Redis has run, or other commands.

sub calls {
    my ($re) = @_;

    my $stats = $redis->cmd('INFO', 'commandstats');
    my $n = 0;

    $n += $_ for $stats =~ /^cmdstat_$re:calls=(\d+)/mg;

    return $n;
}


sub scripts { calls(qr/eval(?:sha)?/) }


sub pending { $t->metrics->{dsa_redis_pending_records} }

my $serial = 0;

# What needs each command: the entry of a request, the turn of a conversation
# (503: it is refused before it begins), a new conversation, a response that is
# stored.

my %needs = (
    set      => { turn => 503 },
    hset     => { entry => 1, turn => 200, create => 1, store => 1 },
    expire   => { entry => 1, turn => 200, create => 1, store => 1 },
    hincrby  => { turn => 200 },
    eval     => { entry => 1, turn => 503, create => 1, store => 1 });

for my $command (sort keys %needs) {
    my $needs = $needs{$command};
    my @key = (headers => [ Authorization => "Bearer $command" ]);
    my $tenant = substr sha256_hex($command), 0, 32;
    my %want = (requests => 0, prompt_tokens => 0, completion_tokens => 0);


    # A request with counts of its own.

    my $request = sub {
        my ($uri, %more) = @_;

        my $n = ++$serial;
        my ($prompt, $completion) = (100 + $n, 1 + $n % 7);
        my $body = script("prompt $prompt\ncompletion $completion\nt word");

        $body = { model => $body->{model},
                  input => $body->{messages}[0]{content} }
            if $uri =~ /responses/;

        my $r = $t->post($uri, { %$body, %more }, @key);

        if ($r->{status} == 200) {
            $want{requests}++;
            $want{prompt_tokens} += $prompt;
            $want{completion_tokens} += $completion;
        }

        return $r;
    };

    my $settled = sub {
        my ($name) = @_;

        wait_until(sub { pending() == 0 }, 30, 'the ledger');
        is_deeply(ledger($tenant), \%want, "$command: $name");
    };

    my $id = $t->post('/v1/conversations', {}, @key)->{json}{id};

    $request->($chat);
    ok($request->($chat, conversation => $id)->{json}{conversation}{stored},
       "$command: a turn is stored");
    $settled->('two requests');

    my $before = snapshot();
    my $counted = ledger($tenant);
    my $logged = () = $t->error_log =~ /are waiting for Redis/g;

    $redis->cmd(qw/ ACL SETUSER nginx /, "-$command",
                $command eq 'eval' ? '-evalsha' : ());

    my $turn = $request->($chat, conversation => $id);

    is($turn->{status}, $needs->{turn}, "$command: a turn");
    ok(!$turn->{json}{conversation}{stored},
       "$command: is not stored, which its answer reports");
    is($request->($chat)->{status}, 200, "$command: a chat") for 1 .. 3;

    is($t->post('/v1/conversations', {}, @key)->{status}, 503,
       "$command: no conversation is created") if $needs->{create};
    ok(!$request->('/v1/responses')->{json}{store},
       "$command: no response is stored") if $needs->{store};

    if ($needs->{entry}) {
        my $more = scripts() + 8;

        wait_until(sub { scripts() >= $more }, 60, 'further attempts')
            if $command ne 'eval';

        is_deeply(snapshot(), $before, "$command: nothing is written");
        cmp_ok(pending(), '>=', 3, "$command: the entries wait");

        my @lines = $t->error_log =~ /(are waiting for Redis: .*)/g;

        is(@lines - $logged, 1, "$command: which is logged once");
        like($lines[-1], qr/NOPERM\ .*\b(?:\U$command\E\ on\ dsa1:
                            |\U$command\E\ |$command)/x,
             "$command: with the name of the command");
    }

    $redis->cmd(qw/ ACL SETUSER nginx +@all /);
    $settled->('each request is billed once');

    # a lease that could not be ended has a lifetime of 30 seconds

    $redis->cmd('DEL', $_) for $redis->keys('*:l:*');

    my $next = $request->($chat, conversation => $id)->{json}{conversation};

    ok($next->{stored}, "$command: the next turn is stored");
    is($next->{version}, 3, "$command: after the first one");
    $settled->('and billed');
}


# A replica, for a user that may not ask for the role: that INFO succeeds does
# not mean that Redis is available again.

my $again = $t->logged(qr/Redis is available again/);

$redis->cmd(qw/ ACL SETUSER nginx -role /);
$redis->cmd(qw/ REPLICAOF 127.0.0.1 1 /);
is($t->post('/v1/conversations', {})->{status}, 503, 'a replica');
is($t->logged(qr/\[error\].*read-only replica.*redis: /), 1, 'is logged');

# this test has sent one of them between two looks

my $info = calls('info');
wait_until(sub { calls('info') - $info++ > 1 }, 30, 'INFO of nginx');

is($t->logged(qr/Redis is available again/), $again, 'it is not available');
$redis->cmd(qw/ REPLICAOF NO ONE /);
is($t->post('/v1/conversations', {})->{status}, 200, 'a primary');
is($t->logged(qr/Redis is available again/), $again + 1, 'now it is');

$t->done;
