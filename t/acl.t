# Copyright (C) The nginx-dsa authors
#
# The users of Redis in docs/operate/redis.md have all rights that nginx, dsa
# and the engines need, and no others.

use strict;
use warnings;

use lib 't/lib';
use DSA::Keys;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('acl');
my $server = $t->start_redis();
my $redis = $t->redis();
my $password = 'a-password-of-the-test';

my ($rules) = read_file("$DSA::Test::root/docs/operate/redis.md")
              =~ /^```text\n(user dsa .*?)^```/ms;
my %user = map { /^user (\w+) (.*)$/ ? ($1 => $2) : () }
           split /\n/, $rules // '';

is_deeply([ sort keys %user ], [qw/ admin dsa pages /], 'the guide has users');
chmod 0600, write_file($t->path('redis.pw'), "$password\n");

for my $name (sort keys %user) {
    my @rule = map { s/^>PASSWORD$/>$password/r } split / /, $user{$name};

    is(eval { $redis->cmd('ACL', 'SETUSER', $name, 'reset', @rule) }, 'OK',
       "Redis accepts the user $name") or diag($@);
}


# every command of a script is permitted to a user that may run scripts

my %permitted = map { $_ => 1 } map { /\+(\w+)/g } @user{qw/ admin dsa /};
my %called = map { lc $_ => 1 } map { /\b(?:attempt|call|write)\('([A-Z]+)'/g }
             map { read_file($_) } glob "$DSA::Test::root/redis_schema/*.h";

cmp_ok(scalar keys %called, '>', 15, 'there are scripts');
is_deeply([ grep { !$permitted{$_} } sort keys %called ], [],
          'the users may run all of their commands');


# What Redis has refused since the last call.

sub refused {
    my @log = @{ $redis->cmd('ACL', 'LOG') };

    $redis->cmd('ACL', 'LOG', 'RESET');

    return map { my %entry = @$_; "$entry{username}: $entry{reason} "
                                  . "$entry{object}" } @log;
}


# dsa creates keys in Redis

my @where = ('--redis', "127.0.0.1:$server->{port}", '--user', 'admin',
             '--password-file', $t->path('redis.pw'));
my $dsa = $t->build . '/dsa';
my @limits = qw/ --budget-day 5 --rpm 1000 /;
my $key = qx{$dsa key create @where --name anna @limits 2> /dev/null}
          =~ s/\s+\z//r;

is($?, 0, 'dsa key create');
like($key, qr/^sk-dsa-/, 'a key');

# nginx and the engine, each as its user

$t->start_engine(conf => {
    model => "$DSA::Test::root/demo/model", name => 'demo', kv_memory => '12m',
    host_memory => '64m',
    redis_cache => "127.0.0.1:$server->{port} user=pages password_file="
                   . $t->path('redis.pw') . ' ttl=1h' });
$t->start_nginx(
    redis => 'user=dsa password_file=%%DIR%%/redis.pw',
    http => 'dsa_keys redis zone=keys:1m; '
            . 'dsa_price demo miss=1 hit=0.1 output=2;');

my @key = bearer($key);

wait_until(sub { $t->get('/v1/models', @key)->{status} == 200 }, 20,
           'the key from Redis');

my %ask = (model => 'demo', max_tokens => 8, temperature => 0);
my $text = join ' ', map { "word $_" } 1 .. 60;
my @user = (messages => [ { role => 'user', content => $text } ]);

is($t->post('/v1/chat/completions', { %ask, @user }, @key)->{status}, 200,
   'a chat');

my $conversation = $t->post('/v1/conversations', {}, @key)->{json}{id};
my $url = "/v1/conversations/$conversation";
my $turn = $t->post('/v1/chat/completions',
                    { %ask, @user, conversation => $conversation }, @key);

ok($turn->{json}{conversation}{stored}, 'a turn is stored');
is($t->get("$url/items", @key)->{status}, 200, 'its items');
is($t->post("$url/items", { items => [ { role => 'user',
            content => 'more' } ] }, @key)->{status}, 200, 'an item is added');

my %response = (model => 'demo', max_output_tokens => 16, input => 'Hello');
my $r = $t->post('/v1/responses', \%response, @key)->{json};

ok($r->{store}, 'a response is stored');
$r = $t->post('/v1/responses', { %response, previous_response_id => $r->{id} },
              @key)->{json};
ok($r->{store}, 'and continued');
is($t->get("/v1/responses/$r->{id}/input_items", @key)->{status}, 200,
   'its input');
is($t->request('DELETE', "/v1/responses/$r->{id}", @key)->{status}, 200,
   'it is deleted');
is($t->request('DELETE', $url, @key)->{status}, 200,
   'the conversation is deleted');

# an answer with a call is retained, and restored

my $tool = { type => 'function', function => { name => 'look', parameters =>
             { type => 'object', properties => {} } } };
my $call = $t->post('/v1/chat/completions',
    { %ask, @user, max_tokens => 64, tools => [$tool],
      tool_choice => 'required' }, @key)->{json}{choices}[0]{message};

SKIP: {
    skip 'no call', 1 if !@{ $call->{tool_calls} || [] };
    is($t->post('/v1/chat/completions', { %ask, tools => [$tool],
       messages => [ @{ $user[1] }, { role => 'assistant',
       tool_calls => $call->{tool_calls} }, { role => 'tool',
       tool_call_id => $call->{tool_calls}[0]{id}, content => '1' } ] },
       @key)->{status}, 200, 'a round of tools');
}

# a long history has its cut stored

is($t->post('/v1/chat/completions', { %ask, @user,
   context_management => { strategy => 'discard_75' } }, @key)->{status}, 200,
   'a strategy');

wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
           'the ledger');

like(qx{$dsa usage @where 2>&1}, qr/demo/, 'dsa usage');
my ($tenant) = $redis->keys('dsa1:*:r:*');
$tenant =~ s/.*\{(.*)\}.*/$1/;
like(qx{$dsa tenant delete $tenant --yes @where 2>&1}, qr/^responses +1 +1$/m,
     'dsa tenant delete');
my @refused;

wait_until(sub {
    my $m = $t->metrics;
    (grep { /^dsa_engine_tier_written_pages_total\{.*tier="redis"/
            && $m->{$_} > 0 } keys %$m) || (@refused = refused());
}, 20, 'pages in Redis');

is_deeply([ @refused, refused() ], [], 'Redis refused nothing');


# what they must not do

for ([ dsa => 'FLUSHALL' ], [ dsa => 'CONFIG', 'GET', '*' ],
     [ dsa => 'GET', 'other' ], [ dsa => 'KEYS', '*' ],
     [ pages => 'GET', 'dsa1:{keys}:version' ], [ pages => 'EVAL', '', 0 ],
     [ admin => 'FLUSHALL' ], [ admin => 'GET', 'other' ])
{
    my ($name, @command) = @$_;
    my $client = $t->redis($server);

    $client->cmd('AUTH', $name, $password);
    ok(!eval { $client->cmd(@command); 1 }, "$name may not @command");
    like($@, qr/NOPERM/, 'it is not permitted');
}

$t->done;
