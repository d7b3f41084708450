# Copyright (C) The nginx-dsa authors
#
# Conversations: created, read and deleted over HTTP, continued by chats,
# separate for each tenant, and never half written.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use IO::Select;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('conversation');
my $server = $t->start_redis(appendonly => 1);
my $redis = $t->redis;
my $fake = $t->start_fake();

$t->start_nginx(redis => 'ttl=1h timeout=5s', workers => 2,
                http => 'client_max_body_size 8m;');

my $chat = '/v1/chat/completions';
my $uri = '/v1/conversations';
my @alice = (headers => [ Authorization => 'Bearer alice' ]);
my @bob = (headers => [ Authorization => 'Bearer bob' ]);

$t->wait_redis(2);


sub id { 'conv_' . $_[0] x 32 }


sub create {
    my ($value, @as) = @_;

    my $r;

    # Redis may be slow, or nginx has not seen yet that it has memory again

    wait_until(sub { $r = $t->post($uri, $value, @as);
                     $r->{status} !~ /^50[37]\z/ }, 30, 'Redis');

    return $r->{status} == 200 ? $r->{json}{id} : die "not made: $r->{body}\n";
}


# Reads a conversation.  After Redis was away each worker has to reconnect, and
# answers with 503 until then.

sub conversation {
    my ($id, @more) = @_;
    my $r;

    wait_until(sub { $r = $t->get("$uri/$id", @more); $r->{status} != 503 },
               20, 'the worker to be connected to Redis');

    return $r->{json};
}


# Requests in the ledger, of all days and tenants.

sub entries {
    my $n = 0;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);
        $n += $fields->{$_} for grep { /\|requests$/ } keys %$fields;
    }

    return $n;
}


sub messages { conversation(@_)->{messages} }
sub version { conversation(@_)->{version} }


# "user: Hello | assistant: Hi" of a conversation's messages.

sub story {
    return join ' | ', map { my $m = $_;
        join ' ', "$m->{role}:", map { defined $m->{$_} ? $m->{$_} : () }
                                 qw/ reasoning_content content /
    } @{ messages(@_) };
}


# The prompt of the last request that the engine got.

sub prompt {
    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: stop=.*)?$/;
    utf8::decode($prompt);

    return $prompt;
}


# Created, read, deleted.

my $r = $t->post($uri, {});
is($r->{status}, 200, 'made');
is($r->{headers}{'content-type'}, 'application/json', 'its type');
like($r->{json}{id}, qr/^conv_[0-9a-f]{32}$/, 'its id');
is($r->{json}{object}, 'conversation', 'its object');
cmp_ok(abs($r->{json}{created_at} - time), '<', 60, 'its time');
is_deeply([ sort keys %{ $r->{json} } ],
          [qw/ created_at id metadata object /], 'nothing more');
is_deeply($r->{json}{metadata}, {}, 'no metadata');

my $first = $r->{json};
my $got = $t->get("$uri/$first->{id}");
is($got->{status}, 200, 'read');
is_deeply($got->{json}, { %$first, version => 1, messages => [] }, 'empty');

isnt(create({}), $first->{id}, 'another has another id');

for my $body ('', '{}', '{"messages":null}', '{"messages":[]}',
              '{"metadata":{"a":"b"}}')
{
    is($t->post($uri, $body)->{status}, 200, "body '$body'");
}

my $arguments = '{"place": "Ü", "n": 12345678901234567890123}';
my @start = (
    { role => 'system', content => 'Answer in "rhymes" – kurz.' },
    { role => 'user', content => "Schöne Grüße \x{1F600}\n\ttab \\ \x01" },
    { role => 'assistant', content => 'Hallo', reasoning_content => 'hm' },
    { role => 'user', content => 'Wetter?' },
    { role => 'assistant', content => '', tool_calls => [
        { id => 'call_1', type => 'function',
          function => { name => 'weather', arguments => $arguments } } ] },
    { role => 'tool', tool_call_id => 'call_1', content => '22 °C' });

my $id = create({ messages => \@start });
my $kept = messages($id);

is(scalar @$kept, 6, 'initial messages');
is($kept->[$_]{content} || '', $start[$_]{content}, "message $_")
    for 0 .. $#start;
is($kept->[2]{reasoning_content}, 'hm', 'reasoning');
is($kept->[4]{tool_calls}[0]{id}, 'call_1', 'the call of a tool');
is($kept->[4]{tool_calls}[0]{function}{arguments},
   $arguments, 'its arguments, to the byte');
is($kept->[5]{tool_call_id}, 'call_1', 'whose result it is');

# a body in pieces, and one in a file

my $body = json_encode({ messages => \@start });
my $pieces = $t->request('POST', $uri, type => 'application/json',
                         chunked => [ map { substr $body, $_ * 7, 7 }
                                      0 .. length($body) / 7 ]);
is_deeply(messages($pieces->{json}{id}), $kept, 'a chunked body');

my $long = create({ messages => [ { role => 'user',
                                    content => 'x' x 2_000_000 } ] });
is(length messages($long)->[0]{content}, 2_000_000, 'a large body');

$r = $t->request('HEAD', "$uri/$id");
is($r->{status}, 200, 'HEAD');
is($r->{body}, '', 'without a body');

$r = $t->request('DELETE', "$uri/$id");
is($r->{status}, 200, 'deleted');
is_deeply($r->{json}, { id => $id, object => 'conversation.deleted',
                        deleted => JSON::PP::true }, 'what is said of it');
is($t->get("$uri/$id")->{status}, 404, 'it is gone');
is($t->request('DELETE', "$uri/$id")->{status}, 404, 'and stays gone');


# What is refused.

for my $case (
    [ '[1]', undef ], [ '"x"', undef ], [ '{"a":1', undef ], [ '{]', undef ],
    [ '{}{}', undef ], [ "{\"a\":\"\xff\"}", undef ],
    [ '[' x 100, undef ],
    [ '{"items":{}}', 'items' ],
    [ '{"items":[],"messages":[]}', 'messages' ],
    [ '{"messages":{}}', 'messages' ], [ '{"messages":"x"}', 'messages' ],
    [ '{"messages":[1]}', 'messages[0]' ],
    [ '{"messages":[{"role":"king","content":"x"}]}', 'messages[0].role' ],
    [ '{"messages":[{"role":"user","content":"x"},{"role":"user",'
      . '"content":5}]}', 'messages[1].content' ])
{
    my ($bad, $param) = @$case;
    my $r = $t->post($uri, $bad);
    my $name = substr $bad, 0, 40;

    is($r->{status}, 400, "refused: $name") or diag($r->{body});
    is($r->{json}{error}{param}, $param, "names it: $name");
    isnt($r->{json}{error}{message}, '', 'has a message');
}

for my $n (1 .. 40) {
    my $cut = substr $body, 0, $n * 5;

    $t->post($uri, $cut)->{status} == 400 or fail("cut at $n * 5");
}

$r = $t->post($uri, { messages => [ map { { role => 'user', content => 'x' } }
                                    1 .. 2001 ] });
is($r->{status}, 400, 'too many messages');

$r = $t->post($uri, { messages => [ { role => 'user',
                                      content => 'x' x 4_300_000 } ] });
is($r->{status}, 413, 'too large a conversation');
is($t->post($uri, 'x' x 9_000_000)->{status}, 413, 'too large a body');

for my $bad ('x', 'conv_', id('g'), id('A'), id('0') . '0', 'conv_/../',
             'conv_%00', 'a}b')
{
    my $status = $t->get("$uri/$bad")->{status};

    ok($status == 400 || $status == 404, "id '$bad'");
}

is($t->get("$uri/" . id('g'))->{status}, 400, 'an id that cannot be');

for my $case ([ GET => $uri, 'POST' ], [ DELETE => $uri, 'POST' ],
              [ PUT => "$uri/" . id('0'), 'GET, HEAD, POST, DELETE' ],
              [ DELETE => "$uri/" . id('0') . '/items', 'GET, HEAD, POST' ],
              [ POST => "$uri/" . id('0') . '/items/msg_1',
                'GET, HEAD, DELETE' ])
{
    my ($method, $at, $allow) = @$case;
    my $r = $t->request($method, $at, body => '{}');

    is($r->{status}, 405, "$method $at");
    is($r->{headers}{allow}, $allow, 'what is allowed');
    is(ref $r->{json}{error}, 'HASH', 'an error of the API');
}


# Each tenant has its own conversations.

my $hers = create({ messages => [ { role => 'user', content => 'secret' } ] },
                  @alice);

for my $other (\@bob, []) {
    is($t->get("$uri/$hers", @$other)->{status}, 404, 'not to be read');
    is($t->request('DELETE', "$uri/$hers", @$other)->{status}, 404,
       'not to be deleted');

    my $n = submitted($fake);
    my $r = $t->post($chat, ask('what was it?', conversation => $hers),
                     @$other);
    is($r->{status}, 404, 'not to be continued');
    is($r->{json}{error}{param}, 'conversation', 'which names it');
    is(scalar submitted($fake), $n, 'and no engine received it');
}

my $unknown = $t->get("$uri/" . id('0'))->{body};
is($t->get("$uri/$hers", @bob)->{body}, $unknown,
   'the same answer as for an unknown id');
is(story($hers, @alice), 'user: secret', 'the owner still has it');


# Continued by chats.

$id = create({ messages => [ { role => 'system', content => 'Be brief.' } ] });

my $s = $t->stream(ask('one', conversation => $id));
my @said = $s->events;
my $m = DSA::HTTP->gather(@said);
is($m->{content}, 'echo: one', 'a streamed turn');
is($m->{done}, 1, 'to its end');
is_deeply([ map { $_->{json}{conversation} || () } @said ],
          [ { id => $id, version => 2, stored => JSON::PP::true } ],
          'the last chunk reports that it is stored');
is(story($id), 'system: Be brief. | user: one | assistant: echo: one',
   'is kept');
is(version($id), 2, 'as a new version');

$r = $t->post($chat, ask('two', conversation => $id));
is($r->{json}{choices}[0]{message}{content}, 'echo: two', 'a whole turn');
is_deeply($r->{json}{conversation},
          { id => $id, version => 3, stored => JSON::PP::true },
          'which reports the same');
is(prompt(), '[<｜begin▁of▁sentence｜>]Be brief.[<｜User｜>]one'
             . '[<｜Assistant｜>][</think>]echo: one[<｜end▁of▁sentence｜>]'
             . '[<｜User｜>]two[<｜Assistant｜>][</think>]',
   'with all that was before');
is(scalar @{ messages($id) }, 5, 'is kept');

# a message is stored in one form, whichever request brought it

my ($stored) = $redis->keys("*:c:$id");
is($redis->cmd('HGET', $stored, 0),
   '{"role":"system","content":"Be brief."}', 'bytes of a message of a POST');
is($redis->cmd('HGET', $stored, 1), '{"role":"user","content":"one"}',
   'of one of a chat');
is($redis->cmd('HGET', $stored, 2),
   '{"role":"assistant","content":"echo: one"}', 'and of its answer');

ok(!exists $t->post($chat, ask('x'))->{json}{conversation},
   'a chat without a conversation reports none');

# reasoning and the call of a tool, answered in the next request

my $tool = { type => 'function', function => {
             name => 'weather', parameters => { type => 'object' } } };
my $call = '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
           . '<｜DSML｜parameter name="place" string="true">Köln'
           . '</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
           . '</｜DSML｜function_calls>';

$id = create({});
my $script = "!fake\nt Let me \nt look.\nt </think>\nt I look.\n"
             . tokens($call);
$s = $t->stream({ model => 'deepseek-reasoner', conversation => $id,
                  tools => [$tool],
                  messages => [ { role => 'user', content => $script } ] });
$m = DSA::HTTP->gather($s->events);
is($m->{finish_reason}, 'tool_calls', 'a tool is called');

$kept = messages($id);
is($kept->[1]{reasoning_content}, 'Let me look.', 'reasoning is kept');
is($kept->[1]{content}, 'I look.', 'content is kept');
delete $_->{index} for @{ $kept->[1]{tool_calls} };
is_deeply($kept->[1]{tool_calls},
          [ { id => $m->{tool_calls}[0]{id}, type => 'function',
              function => { name => 'weather',
                            arguments => '{"place": "Köln"}' } } ],
          'the call is kept');

$r = $t->post($chat, { model => 'deepseek-reasoner', conversation => $id,
                       tools => [$tool], messages => [
                       { role => 'tool', content => '22 °C',
                         tool_call_id => $m->{tool_calls}[0]{id} } ] });
is($r->{status}, 200, 'its result') or diag($r->{body});
like(prompt(), qr/Let me look\.\[<\/think>\]I look\./, 'the reasoning is back');
like(prompt(), qr/<result>22 °C<\/result>/, 'and the result');
is(scalar @{ messages($id) }, 4, 'all of it is kept');


# Two turns at once: the second one is refused, whichever worker it comes to,
# and nothing is computed for it.

$id = create({});
my $lines = "t a\nwait\nt b";
$s = $t->stream(script($lines, conversation => $id));
$s->next_event;
my $n = submitted($fake);

for (1 .. 8) {
    my $r = $t->post($chat, ask('me too', conversation => $id));

    is($r->{status}, 409, 'a second turn');
    is($r->{json}{error}{code}, 'conversation_locked', 'its code');
    is($r->{json}{error}{param}, 'conversation', 'its field');
    like($r->{json}{error}{message}, qr/another request is in progress/,
         'its cause');
}

is(scalar submitted($fake), $n, 'no engine received it');
ctl($fake, 'go 1');
is_deeply([ map { $_->{json}{conversation} || () } $s->events ],
          [ { id => $id, version => 2, stored => JSON::PP::true } ],
          'the first one is stored');
is($t->post($chat, ask('now', conversation => $id))->{status}, 200,
   'and ends the lease');
is(version($id), 3, 'two turns are kept');


# The conversation was deleted, or the client left: nothing of the turn is
# stored.

$id = create({});
$s = $t->stream(script($lines, conversation => $id));
$s->next_event;
is($t->request('DELETE', "$uri/$id")->{status}, 200, 'deleted meanwhile');
ctl($fake, 'go 1');
@said = $s->events;
is(DSA::HTTP->gather(@said)->{done}, 1, 'the answer ends well');
is_deeply([ map { $_->{json}{conversation} || () } @said ],
          [ { id => $id, stored => JSON::PP::false,
              reason => 'the conversation was deleted' } ],
          'and says why it is not stored');
is($t->get("$uri/$id")->{status}, 404, 'and does not bring it back');

$id = create({});
$s = $t->stream(script("t a\nhold", conversation => $id));
$s->next_event;
$n = cancelled($fake);
$s->close;
wait_until(sub { cancelled($fake) > $n }, 10, 'the cancel');
is(story($id), '', 'a turn whose client left is not stored');
wait_until(sub { $t->post($chat, ask('again', conversation => $id))->{status}
                 == 200 }, 10, 'the end of its lease');
is(version($id), 2, 'and can be repeated');

# an answer that failed is not stored

$id = create({});
$r = $t->post($chat, script('error internal broken', conversation => $id));
is($r->{status}, 500, 'an error');
is(version($id), 1, 'is not kept');


# Each turn finds the one before, whichever worker serves it.

$id = create({});

for my $n (1 .. 40) {
    my $how = $n % 2 ? { stream => JSON::PP::true } : {};
    my $r = $t->post($chat, ask("q$n", conversation => $id, %$how));
    my $before = $n - 1;

    next if $r->{status} == 200
            && ($n == 1 || prompt() =~ /\]q$before\[/);

    fail("turn $n does not find $before");
    last;
}

is(version($id), 41, 'forty turns');
is(join(' ', map { $_->{content} } @{ messages($id) }),
   join(' ', map { ("q$_", "echo: q$_") } 1 .. 40), 'in order');


# The end of an answer waits until its turn is stored, so that the client's next
# turn finds it.  If Redis hangs for longer than timeout=, because the machine
# is slow, this is tried again.

sub unconfirmed {
    my ($c) = @_;

    return $c && !$c->{stored} && $c->{reason} =~ /did not confirm/;
}

my (@events, @rest, $waits);

wait_until(sub {
    $id = create({});
    $s = $t->stream(script($lines, conversation => $id));
    $s->next_event;
    $server->signal('STOP');
    ctl($fake, 'go 1');

    @events = ();
    eval { while (my $e = $s->next_event(0.3)) { push @events, $e } };
    $waits = $@;
    $server->signal('CONT');
    @rest = $s->events;

    return !grep { unconfirmed($_->{json}{conversation}) } @events, @rest;
}, 60, 'a turn that is stored in time');

like($waits, qr/nothing to read/, 'no end while Redis hangs');
is(scalar(grep { ($_->{data} || '') eq '[DONE]' } @events), 0,
   'but the text so far is there');
is(DSA::HTTP->gather(@rest)->{done}, 1, 'then it ends');
is(version($id), 2, 'and is written');


# Redis receives the turn and hangs: the answer reports that it is not known
# whether the turn is stored.  Redis may store it later, but only once, and the
# next turn has it if and only if the conversation has it.

$id = create({});
$s = $t->stream(script($lines, conversation => $id));
$s->next_event;
my $entries = entries();
$server->signal('STOP');
ctl($fake, 'go 1');
@said = $s->events;
is(DSA::HTTP->gather(@said)->{done}, 1, 'the answer ends');
is_deeply([ map { $_->{json}{conversation} || () } @said ],
          [ { id => $id, stored => JSON::PP::false,
              reason => 'Redis did not confirm it in time; read the '
                        . 'conversation before the next turn' } ],
          'and reports that this is not known');
$server->signal('CONT');
wait_until(sub { entries() == $entries + 1 }, 20, 'the ledger');
wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
           'its confirmation');
wait_until(sub { $t->get("$uri/$id")->{status} == 200 }, 20, 'each worker')
    for 1 .. 8;
my $there = @{ messages($id) };
is(version($id), 1 + $there / 2, "$there messages are there, once");
wait_until(sub { $r = $t->post($chat, ask('and now', conversation => $id));
                 $r->{status} == 200 }, 20, 'the next turn');
is($r->{json}{conversation}{stored}, JSON::PP::true, 'the next turn');
is(prompt() =~ /t a\\nwait/ ? 2 : 0, $there, 'has what is there');


# A client left while its turn was being stored: the turn is stored or not, and
# that does not change later.

for my $soon (0, 1) {
    $id = create({});
    $s = $t->stream(script($lines, conversation => $id));
    $s->next_event;
    my $refused = $t->metrics->{dsa_redis_refused_turns_total};
    $redis->cmd(qw/ CONFIG SET maxmemory 1 /);
    ctl($fake, 'go 1');
    $s->next_event;
    wait_until(sub { $t->metrics->{dsa_redis_pending_records} != 0 }, 10,
               'the refusal');
    $s->close;

    wait_until(sub { $t->metrics->{dsa_redis_refused_turns_total} > $refused },
               20, 'the end of its time') if !$soon;

    $redis->cmd(qw/ CONFIG SET maxmemory 0 /);
    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
               'the ledger');
    is(version($id), 1, 'a turn whose time was over is withdrawn') if !$soon;
    is(version($id), 1 + @{ messages($id) } / 2, 'no half of it is there');
}

wait_until(sub { $t->post($chat, ask('x', conversation => $id))->{status}
                 == 200 }, 20, 'turns') for 1 .. 8;


# Redis refuses to write.  The answer reports that, and the worker begins no
# other turn until Redis accepts writes.

$id = create({});
my $one = $t->connect;
my @ask = (type => 'application/json',
           body => json_encode(ask('once', conversation => $id)));

$n = submitted($fake);
$one->send_request(POST => $chat, type => 'application/json',
                   body => json_encode(script($lines, conversation => $id)));
wait_until(sub { submitted($fake) > $n }, 10, 'a turn');
$redis->cmd(qw/ CONFIG SET maxmemory 1 /);
ctl($fake, 'go 1');
$r = $one->response;
is($r->{status}, 200, 'Redis is full');
like(delete $r->{json}{conversation}{reason},
     qr/^Redis (?:refuses to write at present|is nearly full)\z/, 'why');
is_deeply($r->{json}{conversation}, { id => $id, stored => JSON::PP::false },
          'the answer reports that the turn is not stored');
$n = submitted($fake);
$r = $one->request(POST => $chat, @ask);
is($r->{status}, 503, 'the next one is refused');
like($r->{json}{error}{message}, qr/Redis refuses to write/,
     'the message names the cause');
is(scalar submitted($fake), $n, 'before anything is computed');
is(version($id), 1, 'reading goes on');
$redis->cmd(qw/ CONFIG SET maxmemory 0 /);
wait_until(sub { my $r = $one->request(POST => $chat, @ask);
                 return $r->{status} == 200 && says_stored($r) }, 20,
           'a turn');
is(scalar @{ messages($id) }, 2, 'and what was refused does not appear');


# Turns of forty conversations, on all workers, while Redis refuses to write
# and still serves reads: an answered turn is stored unless its answer says
# that it is not, and the next turn has all that is stored.

# 1 unless the answer reports that its turn is not stored; undef if it reports
# that this is not known.

sub says_stored {
    my ($r) = @_;

    my $c = $r->{json}{conversation};

    return unconfirmed($c) ? undef : $c && !$c->{stored} ? 0 : 1;
}


# Starts a turn and waits until the engine has it.  A worker answers 503 until
# Redis has accepted one of its writes again.

sub begun {
    my ($value) = @_;

    my $c;

    wait_until(sub {
        my $n = submitted($fake);

        $c = $t->connect;
        $c->send_request(POST => $chat, type => 'application/json',
                         body => json_encode($value));

        wait_until(sub { submitted($fake) > $n
                         || IO::Select->new($c->socket)->can_read(0) },
                   10, 'the engine or an answer');

        return submitted($fake) > $n;
    }, 20, 'a turn to begin');

    return $c;
}


sub refusing {
    my ($name, $break, $heal, $how) = @_;

    wait_until(sub { $t->post($uri, {})->{status} == 200 }, 60,
               'nginx to see that Redis has memory');

    my @ids = map { create({}) } 0 .. 39;
    my (@stored, @open);

    # the first turns have loaded their conversation when Redis breaks

    my $begun = submitted($fake);

    @open = map { begun(script("t a1-$_\nwait\nt end",
                               conversation => $ids[$_])) } 0 .. $#ids;

    $break->();
    ctl($fake, 'go 40');
    $heal->() if $how eq 'heals soon';

    for my $i (0 .. $#ids) {
        my $r = $open[$i]->response;

        is($r->{status}, 200, "$name: turn 1 of $i") if $r->{status} != 200;
        $stored[$i][1] = says_stored($r);
    }

    $t->reload if $how eq 'reloaded';

    # the second turns are refused by a worker whose write was refused

    for my $i (0 .. $#ids) {
        $open[$i] = $t->connect;
        $open[$i]->send_request(
            POST => $chat, type => 'application/json',
            body => json_encode(ask("q2-$i", conversation => $ids[$i])));
    }

    for my $i (0 .. $#ids) {
        my $r = $open[$i]->response;

        $stored[$i][2] = $r->{status} == 200 ? says_stored($r) : 0;

        # a lease that Redis refuses to end holds until it expires

        is($r->{status}, 503, "$name: turn 2 of $i")
            if $r->{status} !~ /^(?:200|409|503)$/;
    }

    $heal->() if $how ne 'heals soon';

    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
               'the ledger');

    my @prompts = submitted($fake);
    splice @prompts, 0, $begun;

    my @bad;
    my $kept = 0;

    for my $i (0 .. $#ids) {
        my $r;

        wait_until(sub { $r = $t->get("$uri/$ids[$i]");
                         $r->{status} == 200 }, 20, 'the conversation');

        my $text = join ' ', map { $_->{content} } @{ $r->{json}{messages} };
        my ($prompt) = grep { /\]q2-$i\[/ } @prompts;
        my ($one, $two) = @{ $stored[$i] }[1, 2];
        my @has = map { $text =~ $_ ? 1 : 0 } qr/t a1-$i\n/, qr/q2-$i\b/;

        push @bad, "$i: turn 1 " . ($one ? 'is lost' : 'appears')
            if defined $one && $one != $has[0];
        push @bad, "$i: turn 2 " . ($two ? 'is lost' : 'appears')
            if defined $two && $two != $has[1];
        push @bad, "$i: turn 2 does not see turn 1"
            if $prompt && $one && $prompt !~ /a1-$i\b/;
        push @bad, "$i: version $r->{json}{version}"
            if $r->{json}{version} != 1 + $has[0] + $has[1];

        $kept += $has[0] + $has[1];
    }

    is_deeply(\@bad, [], "$name: answers and conversations agree, "
              . "$kept of 80 turns are stored");
}


my @full = (sub { $redis->cmd(qw/ CONFIG SET maxmemory 1 /) },
            sub { $redis->cmd(qw/ CONFIG SET maxmemory 0 /) });
my @replica = (sub { $redis->cmd(qw/ REPLICAOF 127.0.0.1 1 /) },
               sub { $redis->cmd(qw/ REPLICAOF NO ONE /) });

$t->reload(redis => 'ttl=1h timeout=3s', workers => 4,
           http => 'client_max_body_size 8m;');
wait_until(sub { $t->workers == 4 }, 20, 'four workers');
wait_until(sub { $t->get("$uri/" . id('0'))->{status} == 404 }, 10, 'Redis')
    for 1 .. 16;

for my $how ('stays', 'heals soon', 'reloaded') {
    refusing("full, $how", @full, $how);
    refusing("replica, $how", @replica, $how);
}


# The keys in Redis and their lifetimes.

is_deeply([ grep { !/^dsa1:\{[0-9a-f]{32}\}:(?:[cl]:conv_[0-9a-f]{32}
                     |done:[0-9a-f]{16}
                     |s:[A-Za-z0-9]{22}
                     |ledger:\d{4}-\d\d-\d\d
                     |rolled|stored)$/x } $redis->keys ], [],
          'no other keys');

# -1: it has no end; -2: it has ended since it was listed

my @forever = grep { $redis->cmd('TTL', $_) == -1 } $redis->keys;
my $ledger = qr/:(?:ledger:[\d-]+|rolled)$/;
is_deeply([ grep { !/$ledger/ } @forever ], [],
          'every key but those of the ledger expires');
is_deeply([ grep { /$ledger/ } $redis->keys ], \@forever,
          'the ledger stays');

my ($key) = $redis->keys("*:c:$id");
my $ttl = $redis->cmd('TTL', $key);
cmp_ok($ttl, '<=', 3600, "ttl=1h");
cmp_ok($ttl, '>', 2400, 'since the last turn');


# A damaged conversation is refused.

$redis->cmd('HDEL', $key, 0);
is($t->get("$uri/$id")->{status}, 500, 'a damaged one');
is($t->post($chat, ask('x', conversation => $id))->{status}, 500,
   'is not continued');


# Without Redis: requests that need it get an error that names it, others are
# served.

$id = create({});
$s = $t->stream(script($lines, conversation => $id));
$s->next_event;
$server->stop;
ctl($fake, 'go 1');
@said = $s->events;
is(DSA::HTTP->gather(@said)->{done}, 1, 'a turn under way ends well');
my ($not) = map { $_->{json}{conversation} || () } @said;
ok(!$not->{stored}, 'and reports that it is not stored');
like($not->{reason}, qr/Redis/, 'and why');

wait_until(sub { $t->get("$uri/$id")->{status} == 503 }, 10, '503')
    for 1 .. 4;

$r = $t->post($chat, ask('x', conversation => $id));
is($r->{status}, 503, 'a turn needs Redis');
like($r->{json}{error}{message}, qr/Redis/, 'the message names the cause');
is($t->post($uri, {})->{status}, 503, 'so does a new one');
is($t->post($chat, ask('x'))->{status}, 200, 'a chat does not');
is(DSA::HTTP->gather($t->stream(ask('x'))->events)->{done}, 1,
   'nor when streamed');

# when Redis is back, the ledger entry of the turn is written, its messages are
# not

$server->restart;
wait_until(sub { $t->get("$uri/$id")->{status} == 200 }, 20, 'Redis');
wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
           'the ledger');
is(story($id), '', 'a turn that was not confirmed does not appear later');

$t->done;
