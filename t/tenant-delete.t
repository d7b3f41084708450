# Copyright (C) The nginx-dsa authors
#
# dsa tenant delete: deletes what a tenant has in Redis, exactly that, and the
# ledger by choice.  Three tenants get data of each kind through the API; the
# names of two are patterns that match the third one.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use POSIX ();
use Test::More;

use lib 't/lib';
use DSA::Cluster;
use DSA::Fake;
use DSA::Keys;
use DSA::Test;

my $t = DSA::Test->new('tenant-delete');
my $dsa = $t->build . '/dsa';
my $server = $t->start_redis();
my $redis = $t->redis;

$t->start_engine(conf => { backend => 'null rate=0', context_length => 4000,
                           kv_memory => '64m' });
my $fake = $t->start_fake();
my $where = '127.0.0.1:' . $server->port;

$ENV{DSA_REDIS} = $where;

my @names = ('acme', 'acme*', '[a]cm?');
my %kinds = ('conversations' => 'c:', 'leases' => 'l:', 'responses' => 'r:',
             'retained answers' => 's:', 'idempotency keys' => 'i',
             'cuts and summaries' => 'w:', 'account' => 'stored',
             'ledger' => 'ledger:', 'amounts spent' => 'spend',
             'markers' => 'done:');

sub digits { substr sha256_hex("\0dsa_tenant\0$_[0]"), 0, 32 }


# Exit status, stdout and stderr of dsa; the first argument is its stdin.

sub run {
    my ($in, @args) = @_;

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<', write_file($t->path('in'), $in);
        open STDOUT, '>', $t->path('out');
        open STDERR, '>', $t->path('err');
        exec $dsa, @args or POSIX::_exit(127);
    }

    waitpid $pid, 0;

    return ($? >> 8, map { read_file($t->path($_)) } qw/ out err /);
}

# What a report has: { KIND => [FOUND, DELETED] }.

sub report {
    my ($text) = @_;

    return { map { /^([a-z][a-z ]+?) +(\d+) +(\d+)$/ ? ($1 => [$2, $3]) : () }
             split /\n/, $text };
}

sub deleted {
    my ($in, @args) = @_;
    my ($rc, $out, $err) = run($in, 'tenant', 'delete', @args);

    is($rc, 0, "dsa tenant delete @args") or diag($err);

    return report($out);
}

# All keys with their values as Redis stores them, but those that change with
# time.

sub everything {
    return { map { $_ => unpack 'H*', $redis->cmd('DUMP', $_) }
             grep { !/:limits$/ } $redis->keys('dsa1:*') };
}

sub keys_of {
    my ($name) = @_;
    my $prefix = 'dsa1:{' . digits($name) . '}:';

    return sort map { /^\Q$prefix\E(.*)/s ? $1 : () } $redis->keys('dsa1:*');
}

sub others {
    my ($all, $name) = @_;
    my $digits = digits($name);

    return { map { $_ => $all->{$_} } grep { !/\{$digits\}/ } keys %$all };
}


# A key for each tenant

my %key;

for my $name (@names) {
    my ($rc, $out, $err) = run('', qw/ key create --name n --budget-total 100
                                       --tenant /, $name);
    is($rc, 0, "a key of $name, with DSA_REDIS") or diag($err);
    chomp($key{$name} = $out);
}

$t->start_nginx(workers => 2, wait => 0, conf => <<'EOC');
%%GLOBALS%%
events {
}
http {
    %%HTTP%%
    dsa_pool v32 { engine unix:%%SOCK%%; }
    dsa_pool fake { engine unix:%%SOCK1%%; }
    dsa_redis %%REDIS%%;
    dsa_keys redis zone=keys:1m;
    dsa_price deepseek-chat miss=1 hit=1 output=1;
    dsa_price deepseek-reasoner miss=1 hit=1 output=1;
    server {
        listen 127.0.0.1:%%PORT%%;
        location / { dsa_pass v32; dsa_context_strategy discard_75; }
        location /fake/ { dsa_pass fake; }
        location = /metrics { dsa_metrics; }
    }
}
EOC

sub as { bearer($key{$_[0]}) }

for my $name (@names) {
    wait_until(sub { $t->get('/v1/models', as($name))->{status} == 200
                     && $t->get('/fake/v1/models', as($name))->{status} == 200
                     && $t->get('/v1/conversations/conv_' . '0' x 32,
                                as($name))->{status} == 404 }, 20,
               "the key of $name") for 1 .. 8;
}

$t->wait_redis(2);

sub post {
    my ($name, $uri, $body, @headers) = @_;

    my $r = $t->post($uri, $body, headers => [ @{ +{ as($name) }->{headers} },
                                               @headers ]);
    is($r->{status}, 200, "$name: $uri") or diag($r->{body});

    return $r->{json};
}

sub settled {
    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
               'the entries');
}

# Makes data of each kind, and returns a client whose turn goes on.

sub fill {
    my ($name) = @_;
    my $tool = { type => 'function', function => { name => 'f' } };
    my $id = post($name, '/v1/conversations', {})->{id};
    my $other = post($name, '/v1/conversations', {})->{id};

    post($name, '/fake/v1/chat/completions', ask('x', conversation => $id));
    post($name, '/fake/v1/chat/completions', ask('y'),
         'Idempotency-Key' => 'again');

    my $r = post($name, '/fake/v1/responses',
                 { model => 'deepseek-chat', input => 'Hello' });
    post($name, '/fake/v1/responses',
         { model => 'deepseek-chat', input => 'more',
           previous_response_id => $r->{id} });

    # an answer with a call, and a history whose rounds leave

    post($name, '/fake/v1/chat/completions', script(
        "t I call.\n" . tool_calls([ 'f', 'a', 'true', 'b' ]),
        tools => [$tool]));
    post($name, '/v1/chat/completions', {
        model => 'deepseek-chat', max_tokens => 1, messages => [
            { role => 'user', content => 'q' }, map {
                my $i = $_;
                ({ role => 'assistant', content => '', tool_calls => [
                     { id => "call_$i", type => 'function', function => {
                         name => 'f', arguments => '{}' } } ] },
                 { role => 'tool', tool_call_id => "call_$i",
                   content => join ' ', map { "result $i-$_" } 1 .. 30 })
            } 1 .. 30 ] });

    my $n = submitted($fake);
    my $c = $t->connect;

    $c->send_request(POST => '/fake/v1/chat/completions', as($name),
                     type => 'application/json', body => json_encode(
                         script("t a\nwait\nt b", conversation => $other)));
    wait_until(sub { submitted($fake) > $n }, 10, 'a turn');

    return $c;
}

my %turn = map { $_ => fill($_) } @names;

settled();

for my $name (@names) {
    my @keys = keys_of($name);

    for my $kind (sort keys %kinds) {
        ok((grep { /^$kinds{$kind}/ } @keys), "$name: $kind");
    }
}


# --dry-run counts, and changes nothing

my $before = everything();
my $n = () = keys_of('acme*');
my $r = deleted('', 'acme*', '--dry-run');
my $sum = 0;

is_deeply([ sort keys %$r ], [ sort 'unknown', keys %kinds ], 'the kinds');
$sum += $_->[0] for values %$r;
is($sum, $n, '--dry-run: all keys are counted');
is((grep { $_->[1] } values %$r), 0, '--dry-run: none is deleted');
is($r->{conversations}[0], 2, 'the conversations');
is($r->{responses}[0], 2, 'the responses');
is($r->{unknown}[0], 0, 'each kind is known');
is_deeply(everything(), $before, '--dry-run changes nothing');

# without --yes there is a question; only "yes" deletes

for my $answer ('', "no\n", "y\n", 'yes', "yes, all of it\n") {
    my ($rc, $out, $err) = run($answer, qw/ tenant delete acme* /);

    is($rc, 1, 'another answer than yes');
    like($err, qr/Delete all of it but the ledger.*nothing was deleted$/s,
         'the reason');
}

is_deeply(everything(), $before, 'no data is deleted');

# a tenant without data, and wrong usage

$r = deleted('', 'acm', '--yes', '--ledger');
is((grep { $_->[0] } values %$r), 0, 'a name that others begin with');
is_deeply(everything(), $before, 'nothing changes');

for ([ qr/0 names.*expected one/ ], [ qr/2 names.*expected one/, 'a', 'b' ],
     [ qr/expected 1 to 64 bytes/, '' ],
     [ qr/expected 1 to 64 bytes/, 'a' x 65 ],
     [ qr/"--yess" is not an option; the nearest one is "--yes"/, '--yess' ])
{
    my ($re, @args) = @$_;
    my ($rc, $out, $err) = run('', 'tenant', 'delete', @args);

    is($rc, 2, 'wrong usage');
    like($err, qr/^dsa tenant delete: .*$re/, 'the reason');
}

{
    local $ENV{DSA_REDIS} = '';
    my ($rc, $out, $err) = run('', qw/ tenant delete acme /);

    is($rc, 2, 'no address of Redis');
    like($err, qr/expected --redis ADDRESS/, 'the reason');
}


# the data but the ledger

my $ledger = { map { $_ => $before->{$_} }
               grep { /:(?:ledger:|rolled$|spend$|done:)/ } keys %$before };

$r = deleted("yes\n", 'acme*');
settled();

# the turn that goes on may have renewed its lease since

is_deeply([ grep { !/^(?:ledger:|rolled$|spend$|done:|l:)/ } keys_of('acme*') ],
          [], 'only the ledger and its markers are left');
is_deeply({ map { $_ => everything()->{$_} } keys %$ledger }, $ledger,
          'the ledger is as before');
is_deeply(others(everything(), 'acme*'), others($before, 'acme*'),
          'the other tenants and the keys are as before');
is($r->{conversations}[1], 2, 'deleted conversations');
is($r->{responses}[1], 2, 'deleted responses');
is($r->{ledger}[1], 0, 'the ledger is kept');
is($r->{markers}[1], 0, 'the markers are kept');

# it can be repeated

$r = deleted('', 'acme*', '--yes');
is((grep { $_ ne 'leases' && $r->{$_}[1] } keys %$r), 0,
   'again: nothing is left to delete');

# what was deleted is not found, and the turn that went on ends without it

my $digits = digits('acme*');
my @gone = map { /\{$digits\}:c:(.*)/ ? $1 : () } keys %$before;

is(scalar @gone, 2, 'the conversations that were deleted');
is($t->get("/v1/conversations/$_", as('acme*'))->{status}, 404, 'one is gone')
    for @gone;

ctl($fake, 'go 3');

for my $name (@names) {
    my $s = $turn{$name};
    $s->read_head;
    is($s->status, 200, "$name: the turn that went on");
    my $json = json_decode($s->read_body);
    is(!!$json->{conversation}{stored}, $name ne 'acme*',
       "$name: it is stored if its conversation exists");
}

settled();


# the ledger as well, by the digits of the tenant

$before = everything();
$r = deleted('', digits('[a]cm?'), '--ledger', '--yes');
is_deeply([ grep { !/^done:/ } keys_of('[a]cm?') ], [],
          '--ledger: only markers are left');
cmp_ok($r->{$_}[1], '>', 0, "--ledger: $_") for 'ledger', 'amounts spent';
is_deeply(others(everything(), '[a]cm?'), others($before, '[a]cm?'),
          'the other tenants and the keys are as before');
my @left = map { $redis->cmd('TTL', 'dsa1:{' . digits('[a]cm?') . "}:$_") }
           keys_of('[a]cm?');
is((grep { $_ < 0 || $_ > 86400 } @left), 0, 'markers expire within a day');

# a kind that this version does not have is left, and reported

$redis->cmd('SET', 'dsa1:{' . digits('acme') . '}:new:1', 'x');
my ($rc, $out, $err) = run('', qw/ tenant delete acme --yes --ledger /);
is($rc, 1, 'an unknown kind');
like($err, qr/1 keys .* were not deleted/, 'is reported');
is(report($out)->{unknown}[0], 1, 'and counted');
is_deeply([ grep { !/^done:/ } keys_of('acme') ], ['new:1'], 'and left');
$redis->cmd('DEL', 'dsa1:{' . digits('acme') . '}:new:1');


# each key of the layout has a kind

my ($layout) = read_file("$DSA::Test::root/redis_schema/README.md")
               =~ /^\| key \| type(.*?)\n\n/ms;
my @forms = $layout =~ /`dsa1:\{TENANT\}:([^`]+)`/g;

cmp_ok(scalar @forms, '>', 11, 'redis_schema/README.md has the keys');
$redis->cmd('SET', 'dsa1:{' . digits('forms') . "}:$_", 'x') for @forms;
$r = deleted('', 'forms', '--yes', '--ledger');
is($r->{unknown}[0], 0, 'each has a kind');
is_deeply([ keys_of('forms') ], [ grep { /^done:/ } @forms ],
          'and is deleted, but for markers');


# all tenants are served as before

for my $name (@names) {
    my $id = post($name, '/v1/conversations', {})->{id};
    my $turn = post($name, '/fake/v1/chat/completions',
                    ask('anew', conversation => $id));
    ok($turn->{conversation}{stored}, "$name: a turn is stored");
    post($name, '/fake/v1/chat/completions', ask('z'),
         'Idempotency-Key' => 'again');
}

settled();
($rc, $out) = run('', qw/ usage --json --tenant /, '[a]cm?');
is($rc, 0, 'dsa usage');
is(json_decode($out)->{usage}[0]{requests}, 2,
   'the ledger has what came after its deletion');


# with the ledger, what a key has spent is deleted: its budget begins anew

my ($poor) = (run('', qw/ key create --name n --tenant poor
                          --budget-total 0.000001 /))[1] =~ /(\S+)/;
my $status = sub { $t->post('/fake/v1/chat/completions', ask('x'),
                            bearer($poor))->{status} };

wait_until(sub { $status->() == 402 }, 20, 'the budget is used up');
settled();
deleted('', qw/ poor --yes /);
is($status->(), 402, 'without --ledger it remains used up');
deleted('', qw/ poor --yes --ledger /);
wait_until(sub { $status->() == 200 }, 20, 'the budget begins anew');
pass('with --ledger it begins anew');


# many keys, more than one reply of SCAN, and among many others

my $many = 'dsa1:{' . digits('many') . '}';

$redis->cmd('EVAL', <<'EOC', 0, $many);
    for i = 1, 5000 do
        redis.call('HSET', ARGV[1] .. ':c:conv_' .. i, 'version', 1)
        redis.call('SET', 'dsa1:{' .. i .. '}:s:' .. i, 'x')
    end
EOC

$before = everything();
$r = deleted('', 'many', '--yes');
is($r->{conversations}[1], 5000, 'many keys');
is_deeply([ keys_of('many') ], [], 'all of them');
is_deeply(everything(), others($before, 'many'), 'and no others');


# a cluster: the node of another slot gets the command first

my ($empty, $full) = DSA::Cluster->pair($t);

my $key = 'dsa1:{' . digits('acme') . '}:c:conv_1';

$t->redis($full)->cmd('HSET', $key, 'version', 1);
$ENV{DSA_REDIS} = '127.0.0.1:' . $empty->port;
$r = deleted('', 'acme', '--yes');
is($r->{conversations}[1], 1, 'a cluster: deleted where its slot is');
is($t->redis($full)->cmd('EXISTS', $key), 0, 'a cluster: it is gone');

# while the slot moves, the command is refused

my $slot = $t->redis($full)->cmd('CLUSTER', 'KEYSLOT', $key);
my $to = $t->redis($empty)->cmd('CLUSTER', 'MYID');

$t->redis($full)->cmd('CLUSTER', 'SETSLOT', $slot, 'MIGRATING', $to);
($rc, $out, $err) = run('', qw/ tenant delete acme --yes /);
is($rc, 1, 'a cluster that moves the slot');
like($err, qr/is moving the tenant .* repeat the command/, 'the reason');

$t->done;
