# Copyright (C) The nginx-dsa authors
#
# Cuts of long histories in Redis: found again, separate for each tenant, and
# not needed: while Redis is away, frozen or has damaged cuts, requests get
# the same prompts.  An engine that stops or dies while it counts, and clients
# that leave meanwhile.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

use constant { WINDOW => 4000, PAGE => 64 };

my $chat = '/v1/chat/completions';

my $t = DSA::Test->new('window-redis');
my $server = $t->start_redis();
my $redis = $t->redis;
my $engine = $t->start_engine(conf => { backend => 'null rate=0',
                                        context_length => WINDOW,
                                        kv_memory => '64m' });

$t->start_nginx(redis => 'timeout=5s', workers => 2,
                http => 'dsa_context_strategy discard_75;'
                        . 'dsa_tenant $http_x_tenant;',
                server => 'location /summary/ { dsa_pass v32;'
                          . ' dsa_context_strategy summary threshold=60%; }');


sub history {
    my ($rounds) = @_;

    return ({ role => 'user', content => 'Find the place.' },
            map { my $i = $_;
                  ({ role => 'assistant', content => '', tool_calls => [
                       { id => "call_$i", type => 'function', function => {
                           name => 'look', arguments => '{}' } } ] },
                   { role => 'tool', tool_call_id => "call_$i",
                     content => join ' ', map { "result $i-$_" } 1 .. 30 })
            } 1 .. $rounds);
}


sub body {
    my ($rounds) = @_;

    return { model => 'deepseek-chat', max_tokens => 1,
             messages => [ history($rounds) ] };
}


sub ask {
    my ($rounds, $tenant) = @_;

    return $t->post($chat, body($rounds),
                    headers => [ 'X-Tenant' => $tenant || 'alice' ]);
}


# What a request got: its status, prompt, and calls that have left.

sub got {
    my ($r) = @_;

    return join ' ', $r->{status}, $r->{json}{usage}{prompt_tokens} || '-',
                     $r->{json}{context_management}{dropped_tool_calls} || 0;
}


sub metric { $t->metrics->{$_[0]} }
sub cuts { my @keys = sort $redis->keys('dsa1:*:w:*'); return @keys }


sub found {
    my ($code) = @_;
    my $before = metric('dsa_context_found_total');

    $code->();

    return metric('dsa_context_found_total') - $before;
}


$t->wait_redis(2);


# without a tenant nothing is stored; these are the expected prompts

my %want;

for my $n (8 .. 40) {
    my $r = $t->post($chat, body($n));

    $want{$n} = got($r);
}

is(scalar cuts(), 0, 'no tenant, no cut');
like($want{40}, qr/^200 \d+ [1-9]/, 'the prompts are cut');

is(got(ask($_)), $want{$_}, "$_ rounds") for 8 .. 40;

my @cuts = cuts();

cmp_ok(scalar @cuts, '>', 2, 'the overflows have cuts');
cmp_ok(scalar @cuts, '<', 10, 'not every request has one');

for my $key (@cuts) {
    like($key, qr/^dsa1:\{[0-9a-f]{32}\}:w:[0-9a-f]{64}$/, 'a key');
    like($redis->cmd('GET', $key), qr/^v1 [1-9]\d*$/, 'its value');
    cmp_ok($redis->cmd('TTL', $key), '>', 86000, 'its lifetime');
}


# found again, with fewer counts, and also by the workers after a reload

for my $when ('again', 'after a reload') {
    if ($when ne 'again') {
        $t->reload();
        $t->wait_redis(2);
    }

    my $before = metric('dsa_context_counts_total');
    my $r;

    is(found(sub { $r = ask(40) }), 1, "$when: found");
    is(got($r), $want{40}, 'the same prompt');
    cmp_ok(metric('dsa_context_counts_total') - $before, '<=', 2,
           'the history and the prompt are counted, nothing else');
    cmp_ok($r->{json}{usage}{prompt_tokens_details}{cached_tokens}, '>=',
           $r->{json}{usage}{prompt_tokens} - 2 * PAGE, 'it is cached');
}


# another tenant, and another history of the same one

is(found(sub { is(got(ask(40, 'bob')), $want{40}, 'another tenant') }), 0,
   'does not find it');
cmp_ok(scalar cuts(), '>', scalar @cuts, 'it has a cut of its own');

is(found(sub {
    my $other = body(40);
    $other->{messages}[0]{content} .= ' ';
    $t->post($chat, $other, headers => [ 'X-Tenant' => 'alice' ]);
}), 0, 'another first message');


# the strategy summary: an agent keeps one prefix until the next overflow, the
# prompt of a summary has that prefix too, and no prompt exceeds the threshold

sub summarized {
    my ($rounds) = @_;

    my $r = $t->post("/summary$chat", body($rounds),
                     headers => [ 'X-Tenant' => 'summary' ]);
    my $c = $r->{json}{context_management}{summary} || {};
    my $u = $r->{json}{usage};

    return { status => $r->{status}, body => $r->{body},
             made => $c->{status} || 'none',
             dropped => $r->{json}{context_management}{dropped_tool_calls}
                        || 0,
             summary => $c->{cached_tokens} || 0,
             prompt => $u->{prompt_tokens} - ($c->{prompt_tokens} || 0),
             cached => $u->{prompt_tokens_details}{cached_tokens}
                       - ($c->{cached_tokens} || 0) };
}

my (%made, @odd);
my $last;

for my $n (4 .. 60) {
    my $now = summarized($n);
    my $again = summarized($n);

    $made{ $now->{made} }++;

    push @odd, "$n: $now->{status} $now->{body}" if $now->{status} != 200;
    push @odd, "$n: $now->{prompt} tokens" if $now->{prompt} > WINDOW * 0.6;
    push @odd, "$n: $again->{made}, $again->{prompt} tokens again"
        if $again->{made} ne ($now->{made} eq 'made' ? 'remembered'
                                                     : $now->{made})
           || $again->{prompt} != $now->{prompt};

    my $cached = $now->{made} eq 'made' ? $now->{summary} : $now->{cached};

    push @odd, "$n: $cached of $last->{prompt} cached"
        if $last && $cached < $last->{prompt} - 2 * PAGE;
    push @odd, "$n: $now->{dropped} rounds left after $last->{dropped}"
        if $last && ($now->{made} eq 'made'
                     ? $now->{dropped} <= $last->{dropped}
                     : $now->{dropped} != $last->{dropped});

    $last = $now;
}

cmp_ok($made{made}, '>', 2, 'summaries are made');
cmp_ok($made{remembered}, '>', 20, 'and remembered');
is($made{failed}, undef, 'none fails');
is_deeply(\@odd, [], 'each prompt has the prefix of the one before it');


# a stored conversation keeps what its prompt lacks

my @alice = (headers => [ 'X-Tenant' => 'alice' ]);
my $id = $t->post('/v1/conversations', { messages => [ history(20) ] },
                  @alice)->{json}{id};
my $turn = $t->post($chat, { model => 'deepseek-chat', max_tokens => 1,
                             conversation => $id, messages => [
                                 { role => 'user', content => 'And now?' } ] },
                    @alice);

is($turn->{status}, 200, 'a turn of a long conversation')
    or diag($turn->{body});
cmp_ok($turn->{json}{context_management}{dropped_tool_calls}, '>=', 10,
       'its prompt is cut');

my $stored = $t->get("/v1/conversations/$id", @alice)->{json}{messages};

is(scalar @$stored, 1 + 2 * 20 + 2, 'it has all messages');
is($stored->[2]{content}, (history(1))[2]{content}, 'results too');


# a request without messages has nothing to cut

is($t->post('/v1/completions', { model => 'deepseek-chat', max_tokens => 1,
                                 prompt => 'x ' x 1700 })->{status}, 200,
   'a text completion');


# damaged cuts

for my $value ('', 'v1', 'v1 ', 'v1 0', 'v1 -3', 'v1 x', 'v1 3 ', 'v2 3',
               'v1 99', 'v1 99999999999', 'v1 00000000000000000003', "v1 \0",
               undef)
{
    for my $key (@cuts) {
        $redis->cmd('DEL', $key);
        defined $value ? $redis->cmd('SET', $key, $value)
                       : $redis->cmd('HSET', $key, 'v1', 3);
    }

    my $name = defined $value ? $value =~ s/\0/NUL/r : 'a hash';

    is(got(ask(40)), $want{40}, "a cut that is damaged: $name");
}


# frozen, away, and back

$server->signal('STOP');
is(got(ask(40)), $want{40}, 'Redis is frozen');

my $counted = metric('dsa_context_counts_total');
my $c = $t->connect;
$c->send_request('POST', $chat, body => json_encode(body(40)),
                 headers => [ 'X-Tenant' => 'alice' ]);
wait_until(sub { metric('dsa_context_counts_total') > $counted }, 10,
           'the first count');
$c->reset;
wait_until(sub { metric('dsa_requests_in_flight') == 0 }, 10, 'its end');
$server->signal('CONT');

$server->kill9;
is(got(ask(40)), $want{40}, 'Redis is away');
$server->restart;
$t->wait_redis(2);
is(got(ask(40)), $want{40}, 'Redis is back, and empty');
is(found(sub { ask(40) }), 1, 'the cut is there again');


# a client leaves while the engine counts: its replica, not the supervisor

my ($replica) = DSA::Process::children($engine->pid);
kill 'STOP', $replica;

for (1 .. 3) {
    $c = $t->connect;
    $c->send_request('POST', $chat, body => json_encode(body(40)));
    wait_until(sub { metric('dsa_requests_in_flight') == 1 }, 10,
               'the request');
    $c->close;
    wait_until(sub { metric('dsa_requests_in_flight') == 0 }, 10, 'its end');
}

kill 'CONT', $replica;
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'the engine');
is(got(ask(40)), $want{40}, 'the engine goes on');


# the engine dies while it counts

kill 'STOP', $replica;
$c = $t->connect;
$c->send_request('POST', $chat, body => json_encode(body(40)));
wait_until(sub { metric('dsa_requests_in_flight') == 1 }, 10, 'the request');
$engine->kill9;
$c->read_head;
is($c->status, 503, 'the engine dies while it counts');
$c->close;

$engine->restart;
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'the engine');
wait_until(sub { metric('dsa_sessions') == 2 }, 20, 'both sessions');
is(got(ask(40)), $want{40}, 'it is back');

$t->done;
