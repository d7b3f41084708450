# Copyright (C) The nginx-dsa authors
#
# Reasoning retention (DeepSeek-V3.2, 3.2.1 and Figure 4): reasoning goes when a
# user message comes, and stays while only tool messages come.  What a client
# leaves out in a tool round is restored from Redis, so that the prompt is what
# the model has seen and sampled, to the token.
#
# The engine is scripted, so each answer is known.  It prints the prompt with
# control tokens in brackets.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;
use Time::HiRes qw/ time /;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('retention');
my $chat = '/v1/chat/completions';
my ($user, $assistant) = ('[<｜User｜>]', '[<｜Assistant｜>]');
my $eos = '[<｜end▁of▁sentence｜>]';


# What the model samples in each round: the arguments have an order and a
# spacing that no JSON writer gives them.

my $sampled = "Weigh it.\n</think>I call.\n\n<｜DSML｜function_calls>\n"
    . "<｜DSML｜invoke name=\"f\">\n"
    . "<｜DSML｜parameter name=\"z\" string=\"false\">[1,2,  3.50]"
    . "</｜DSML｜parameter>\n"
    . "<｜DSML｜parameter name=\"a\" string=\"true\">say \"ö\""
    . "</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
    . "<｜DSML｜invoke name=\"g\">\n\n</｜DSML｜invoke>\n"
    . "</｜DSML｜function_calls>";

# as the fake engine prints it

my $shown = ($sampled =~ s/\n/\\n/gr) =~ s{(</think>|｜DSML｜)}{[$1]}gr;

my $script = "prompt 900\ncached 640\n" . tokens($sampled =~ s/\n/\\n/gr)
             . "\n";
utf8::encode(my $bytes = $script);
write_file($t->path('script'), $bytes);

my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake('script=' . $t->path('script'));

$t->start_nginx(
    redis => 'timeout=3s connect_timeout=3s',
    http => q{log_format restored '$dsa_restored';},
    location => q{access_log %%DIR%%/restored.log restored;},
    server => q{
        location /strict/ { dsa_pass v32; dsa_retention strict; }
        location /off/ { dsa_pass v32; dsa_retention off; }
        location /short/ { dsa_pass v32; dsa_retention on ttl=90s;
            location /short/inherited/ { dsa_pass v32; }
            location /short/on/ { dsa_pass v32; dsa_retention on; }
        }
        location /nobody/ { dsa_pass v32; dsa_tenant ""; }
        location /nobody/strict/ { dsa_pass v32; dsa_tenant "";
                                   dsa_retention strict; }});

my @tools = map { { type => 'function', function => { name => $_ } } }
            qw/ f g /;


# Sends messages; streamed or not, as the caller says.  Returns the message of
# the answer, or the whole response if it is an error.

sub answer {
    my ($messages, %opt) = @_;

    my $uri = ($opt{at} || '') . $chat;
    my $body = { model => $opt{model} || 'deepseek-reasoner',
                 tools => \@tools, messages => $messages };
    my @as = (headers => [ Authorization =>
                           'Bearer ' . ($opt{as} || 'alice') ]);

    if ($opt{stream}) {
        my $s = $t->stream({ %$body, stream => \1 }, uri => $uri, @as);
        my $m = DSA::HTTP->gather($s->events);

        return { role => 'assistant', content => $m->{content},
                 reasoning_content => $m->{reasoning_content},
                 tool_calls => [ map { +{
                     id => $_->{id}, type => 'function',
                     function => { name => $_->{name},
                                   arguments => $_->{arguments} } }
                 } @{ $m->{tool_calls} } ] };
    }

    my $r = $t->post($uri, $body, @as);

    return $r->{status} == 200 ? $r->{json}{choices}[0]{message} : $r;
}


sub prompt {
    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: stop=.*)?$/;
    utf8::decode($prompt);

    # the tools of the system message are the same in all prompts

    return $prompt =~ s{^.*</functions>\\n}{}r;
}


# Prompts are long, so only the part that differs is shown.

sub same {
    my ($want, $name) = @_;

    my $got = prompt();
    my $at = 0;

    return if ok($got eq $want, $name);

    $at++ while substr($got, 0, $at + 1) eq substr($want, 0, $at + 1);
    $at = $at > 20 ? $at - 20 : 0;
    diag('     got: ...' . substr($got, $at, 200) . "\nexpected: ..."
         . substr($want, $at, 200));
}


sub metric { $t->metrics->{"dsa_retention_$_[0]"} }
sub restored { metric('messages_total{result="restored"}') }

# How many answers Redis has.  The worker has one connection to Redis, so its
# reply to this command comes when those before it have been executed.

sub stored {
    $t->get('/v1/conversations/conv_' . '0' x 32)->{status} == 404
        or die "Redis is not used\n";

    return scalar(my @keys = $redis->keys('dsa1:*:s:*'));
}


sub user { return { role => 'user', content => $_[0] } }

sub results {
    my ($m) = @_;

    return map { +{ role => 'tool', tool_call_id => $_->{id},
                    content => "done $_->{function}{name}" } }
           @{ $m->{tool_calls} };
}

my $results = '\n\n<function_results>\n<result>done f</result>'
              . '\n<result>done g</result>\n</function_results>\n\n';


# What a client does with an answer before it sends it back.

sub arguments {
    my ($m, $code) = @_;

    my @calls = map {
        my $f = $_->{function};
        +{ %$_, function => { %$f, arguments => $code->($f->{arguments}) } }
    } @{ $m->{tool_calls} };

    return { %$m, tool_calls => \@calls };
}

sub dropped { my %m = %{ $_[0] }; delete $m{reasoning_content}; return \%m }

my %client = (
    'keeps everything' => sub { $_[0] },
    'drops the reasoning' => \&dropped,
    'sends empty reasoning' => sub { +{ %{ $_[0] }, reasoning_content => '' } },
    'writes the arguments in another way' => sub {
        arguments($_[0], sub { utf8::encode(my $s = $_[0]);
                               $s = json_encode(json_decode($s));
                               utf8::decode($s);
                               return $s }) },
    'sends the arguments as an object' => sub {
        arguments($_[0], sub { utf8::encode(my $s = $_[0]);
                               json_decode($s) }) },
    'drops everything that it can' => sub {
        +{ %{ arguments(dropped($_[0]), sub { utf8::encode(my $s = $_[0]);
                                              json_decode($s) }) },
           content => undef } },
    'trims' => sub { +{ %{ $_[0] }, content => 'I call.',
                        reasoning_content => 'Weigh it.' } });

# JSON::PP sorts keys, so "another way" is really another order

like(json_encode(json_decode('{"z": 1, "a": 2}')), qr/^\{"a":2,"z":1}$/,
     'the clients change the order');


# Figure 4: three rounds of tools within a turn, then another user message.

$t->wait_redis(1);

my %seen;

for my $name (sort keys %client) {
    for my $stream (0, 1) {
        my $label = $name . ($stream ? ', streamed' : '');
        my @messages = user('q');
        my $expected;

        for my $round (0 .. 3) {
            my $m = answer(\@messages, stream => $stream);

            $expected = $round == 0 ? prompt()
                                    : $expected . $shown . $eos . $results
                                      . '[<think>]';
            same($expected, "$label: prompt of round $round");

            push @messages, $client{$name}->($m), results($m);
        }

        push @{ $seen{$name} }, $expected;
    }
}

is(index($seen{'keeps everything'}[0], "${user}q${assistant}[<think>]$shown"),
   0, 'it begins with the question');
is(scalar(grep { $_ ne $seen{'keeps everything'}[0] } map { @$_ } values %seen),
   0, 'all clients get the same prompts, streamed or not');

my $log = $t->path('restored.log');

wait_until(sub { (() = read_file($log) =~ /\n/g) == 4 * @{[ %seen ]} }, 10,
           'the requests to be logged');
is(join(' ', (split /\n/, read_file($log))[0 .. 3]), '- 1 2 3',
   '$dsa_restored');

my $requests = 3 * @{[ %seen ]};

is(restored(), $requests * 2, 'restored messages are counted: 1, 2 and 3');
is(metric('cached_tokens_total'), $requests * 640,
   'and the cached tokens of their requests');
is(stored(), $requests / 3 * 4, 'every answer has one key');
is(metric('saved_total'), $requests / 3 * 4, 'and is counted');


# Another user message drops the reasoning; calls and results stay.

my ($m, $r, @messages);

sub begin {
    my (%opt) = @_;

    @messages = (user('q'));
    $m = answer(\@messages, %opt);
    push @messages, dropped($m), results($m);

    return;
}

my $first = "${user}q${assistant}[<think>]$shown$eos${results}[<think>]";
my $bare = $first =~ s/Weigh it\.\\n//r;
my $plain = $bare =~ s/1,2,  3\.50/1, 2, 3.5/r;

begin();
answer(\@messages);
same($first, 'a tool round has its reasoning');

push @messages, { role => 'assistant', content => 'x',
                  reasoning_content => 'y' }, user('next');
answer(\@messages);
same(($plain =~ s/<think>/<\/think>/gr) =~ s/>\]\[<\/think>\]I call/>]I call/r
     . "x$eos${user}next${assistant}[<think>]",
     'a user message drops it, and calls and results stay');


# Without thinking there is no reasoning, and the calls are still exact.

begin();
answer(\@messages, model => 'deepseek-chat');
same(($bare =~ s/<think>/<\/think>/gr) =~ s/>\]\[<\/think>\]I call/>]I call/r,
     'thinking is switched off: the calls as they were sampled');

begin(model => 'deepseek-chat');
$messages[1]{content} = undef;
answer(\@messages, model => 'deepseek-chat');
same($first =~ s/<think>/<\/think>/gr, 'a round without thinking');

answer(\@messages);
same($first =~ s/\[<think>]\KWeigh/[<\/think>]Weigh/r,
     'thinking is switched on behind it');


# What the client changed stays; what it left out is restored.

begin();
$messages[1]{tool_calls}[1]{function}{arguments} = '{"x": 1}';
answer(\@messages);
like(prompt(), qr/\[<think>\]Weigh it\.\\n\[<\/think>\].*"x" string="false">1</,
     'changed arguments: the reasoning, and these arguments');

begin();
$messages[1]{content} = 'Changed.';
answer(\@messages);
like(prompt(), qr/\[<think>\]Weigh it\.\\n\[<\/think>\]Changed\.\\n/,
     'changed content: the reasoning, and this content');

begin();
$messages[1]{reasoning_content} = 'I.';
my $changed = metric('messages_total{result="changed"}');
answer(\@messages);
like(prompt(), qr/\[<think>\]I\.\[<\/think>\]I call/, 'changed reasoning');
is(metric('messages_total{result="changed"}'), $changed + 1, 'is counted');

begin();
pop @{ $messages[1]{tool_calls} };
pop @messages;
answer(\@messages);
like(prompt(), qr/\[<think>\]Weigh it\.\\n\[<\/think>\].*<result>done f<\/r/,
     'a call is left out: the reasoning is found by the other');

begin();
shift @{ $messages[1]{tool_calls} };
splice @messages, 2, 1;
answer(\@messages);
like(prompt(), qr/\[<think>\]Weigh it\.\\n\[<\/think>\].*<result>done g<\/r/,
     'and by either of them');


# Control tokens: what the model spelled with ordinary tokens stays text, and
# what a client sends is text.

my $spelled = user("!fake\nt so </th\nt ink>\nt  on\nt <｜User｜>\nt </think>\n"
                   . tokens('\n\n<｜DSML｜function_calls>\n'
                            . '<｜DSML｜invoke name="f">\n{"a":"</think>"}'
                            . '</｜DSML｜invoke>\n</｜DSML｜function_calls>'));
@messages = ($spelled);
$m = answer(\@messages);
push @messages, dropped($m), results($m);
answer(\@messages);
like(prompt(), qr/\[<think>\]so <\/think> on\[<｜User｜>\]\[<\/think>\]/,
     'control tokens and text that spells them');


# Nothing is missing, or there is no tool round: Redis is not read.

sub evals {
    my ($n) = $redis->cmd('INFO', 'commandstats')
              =~ /^cmdstat_strlen:calls=(\d+)/m;

    return $n || 0;
}

my $evals = evals();
my $clean = user("!fake\nt why\nt </think>\n"
                 . tokens('\n\n<｜DSML｜function_calls>\n'
                          . '<｜DSML｜invoke name="f">\n'
                          . '<｜DSML｜parameter name="a" string="false">[1, 2]'
                          . '</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
                          . '</｜DSML｜function_calls>'));
@messages = ($clean);
$m = answer(\@messages);
push @messages, $m, results($m);
answer(\@messages);
like(prompt(), qr/\[<think>\]why\[<\/think>\]/, 'a client that keeps all');
answer([ @messages, { role => 'assistant', content => 'x',
                      reasoning_content => 'y' }, user('z') ]);
answer([ user('z') ]);
is(evals(), $evals, 'Redis is not read');

$messages[1] = dropped($m);
answer(\@messages);
is(evals(), $evals + 1, 'it is, once, when something is missing');


# Ids of other tenants, invented ids, ids of other servers.

sub unrestored {
    my ($name, %opt) = @_;

    $r = answer(\@messages, %opt);
    is(ref $r, 'HASH', "$name: answered");
    same($opt{want} || $plain, "$name: nothing is restored");

    return;
}

sub missing { metric('messages_total{result="missing"}') }

begin();
my $missing = missing();
unrestored('another tenant', as => 'bob');
is(missing(), $missing + 1, 'counted as missing');
answer(\@messages);
same($first, 'the tenant itself');

$evals = evals();

for my $id ('x' x 22, 'call_00_' . 'x' x 22, 'toolu_' . 'Z9' x 11) {
    $messages[1]{tool_calls}[0]{id} = $messages[2]{tool_call_id} = $id;
    $messages[1]{tool_calls}[1]{id} = $messages[3]{tool_call_id} = "${id}_1";
    unrestored("the id $id");
}

is(evals(), $evals + 2, 'of these, two could be from this server');

for my $id ("call_00_*", 'call_00_' . ('}' x 22), 'call_00_ö' . 'x' x 21,
            'x' x 10_000 . '-')
{
    $messages[1]{tool_calls}[0]{id} = $messages[2]{tool_call_id} = $id;
    unrestored('the id ' . substr $id, 0, 40);
}

is(evals(), $evals + 2, 'ids of another form are not looked up');


# Records in Redis that are malformed or of another type.

sub invalid { metric('messages_total{result="invalid"}') }

sub key {
    my $key;
    my $pattern = 'dsa1:*:s:' . substr $m->{tool_calls}[0]{id}, -22;

    # the answer is stored after its end was sent

    wait_until(sub { ($key) = $redis->keys($pattern); defined $key }, 30,
               'the stored answer');

    return $key;
}

begin();
answer(\@messages);
my $key = key();
my $answer = $redis->cmd('GET', $key);

like($key, qr/^dsa1:\{[0-9a-f]{32}\}:s:[A-Za-z0-9]{22}$/, 'the key');
like($answer, qr/^dsa-rt-1/, 'the retained answer');
cmp_ok($redis->cmd('PTTL', $key), '>', 3_000_000, 'it expires');
cmp_ok($redis->cmd('PTTL', $key), '<=', 3_600_000, 'after an hour');

for (['text', 'x' x 100], ['nothing', ''], ['a part', substr $answer, 0, 40],
     ['a flipped bit', $answer ^ ("\0" x 22 . "\1")],
     ['another layout', 'dsa-rt-2' . substr $answer, 8])
{
    my ($name, $value) = @$_;
    my $n = $value eq '' ? missing() : invalid();

    $redis->cmd('SET', $key, $value);
    unrestored($name);
    is(($value eq '' ? missing() : invalid()), $n + 1, "$name: counted");
}

$redis->cmd('DEL', $key);
$redis->cmd('RPUSH', $key, 'a');
unrestored('a list');

$redis->cmd('DEL', $key);
$redis->cmd('SET', $key, $answer);
answer(\@messages);
same($first, 'the retained answer itself');

$redis->cmd('PEXPIREAT', $key, 1);
unrestored('a retained answer that expired');

# a retained answer of another request

$redis->cmd('SET', $key, $answer);
$messages[1]{tool_calls}[0]{function}{name} = 'other';
answer(\@messages);
like(prompt(), qr/Weigh it.*invoke name="other"/, 'another call');


# Where it is switched off, and for answers that are not stored.

my $keys = stored();

begin(at => '/off');
unrestored('off', at => '/off');
unrestored('an answer that was not stored');

begin(at => '/nobody');
unrestored('no tenant', at => '/nobody');

@messages = (user("!fake\n" . ($script =~ s/\n\z//r) . "\ndone length"));
answer(\@messages);
answer([ user('q') ], model => 'deepseek-chat');

is(stored(), $keys + 2,
   'of these only the one to a request that was not switched off is stored, '
   . 'and the last one');

begin(at => '/short');
answer(\@messages);
same($first, 'another lifetime');
cmp_ok($redis->cmd('PTTL', key()), '<=', 90_000, 'it is short');
begin(at => '/short/inherited');
cmp_ok($redis->cmd('PTTL', key()), '<=', 90_000, 'it is inherited');
begin(at => '/short/on');
cmp_ok($redis->cmd('PTTL', key()), '>', 3_000_000, 'with the mode or not');


# Strict.

sub refused {
    my ($status, $why, $name, %opt) = @_;

    my $n = metric('refused_total');
    my $sent = submitted($fake);

    $r = answer(\@messages, at => '/strict', %opt);
    is($r->{status}, $status, "$name: refused with $status");
    is($r->{json}{error}{param}, 'messages[1].reasoning_content',
       "$name: the field");
    like($r->{json}{error}{message}, $why, "$name: why");
    is(metric('refused_total'), $n + 1, "$name: counted");
    is(scalar submitted($fake), $sent, "$name: no engine got it");

    return;
}

begin(at => '/strict');
answer(\@messages, at => '/strict');
same($first, 'strict: restored');

refused(400, qr/nothing is stored for its tool calls\. Send reasoning_content/,
        'another tenant', as => 'bob');
refused(400, qr/nothing is stored/, 'without a tenant', at => '/nobody/strict');

$redis->cmd('SET', key(), 'x');
refused(400, qr/nothing is stored/, 'a damaged answer');
answer(\@messages, at => '/strict', model => 'deepseek-chat');
like(prompt(), qr/I call\./, 'strict: without thinking nothing is missing');

$messages[1]{reasoning_content} = 'Mine.';
answer(\@messages, at => '/strict');
like(prompt(), qr/\[<think>\]Mine\./, 'strict: what the client sends is used');

$messages[1]{tool_calls}[0]{id} = $messages[2]{tool_call_id} = 'a';
$messages[1]{tool_calls}[1]{id} = $messages[3]{tool_call_id} = 'b';
delete $messages[1]{reasoning_content};
refused(400, qr/nothing is stored/, 'ids of another server');


# Redis is full, or read-only: what is stored is restored, nothing is added.

sub lost { metric('lost_total') }

for (['full', [qw/ CONFIG SET maxmemory 1 /], [qw/ CONFIG SET maxmemory 0 /]],
     ['read-only', [qw/ REPLICAOF 127.0.0.1 1 /], [qw/ REPLICAOF NO ONE /]])
{
    my ($name, $on, $off) = @$_;

    # for a second after it has seen a full Redis, nginx drops answers

    wait_until(sub { stored();
                     my $saved = metric('saved_total');
                     begin();
                     stored();
                     return metric('saved_total') > $saved }, 20,
               'an answer to be stored');

    my @before = @messages;
    my $n = lost();

    answer(\@messages);
    same($first, "$name: before");
    $redis->cmd(@$on);

    answer(\@messages);
    ok(prompt() eq $first || prompt() eq $plain, "$name: answered");

    begin();
    wait_until(sub { lost() > $n }, 10, 'the loss to be counted');
    pass("$name: an answer that is not stored is counted");

    $redis->cmd(@$off);
    @messages = @before;

    wait_until(sub { answer(\@messages); prompt() eq $first }, 20,
               'Redis to serve again');
    pass("$name: afterwards");
}


# Redis is frozen: one wait, not longer than its timeout.

sub failed { metric('failed_lookups_total') }

begin();
answer(\@messages);
same($first, 'before Redis is frozen');

for my $at ('', '/strict') {
    $server->signal('STOP');

    my $n = failed();
    my $start = time;

    if ($at eq '') {
        unrestored('frozen');

    } else {
        refused(503, qr/cannot be restored now: Redis/, 'frozen');
        is($r->{headers}{'retry-after'}, 1, 'when to try again');
    }

    cmp_ok(time - $start, '<', slow(30), 'in bounded time');
    is(failed(), $n + 1, 'counted');

    $server->signal('CONT');
    wait_until(sub { answer(\@messages); prompt() eq $first }, 20,
               'Redis to serve again');
}


# Redis is down: no wait.  The answers of this time are stored when it is back.

$server->stop;
$t->wait_redis(0);

unrestored('down');
refused(503, qr/cannot be restored now: Redis/, 'down');

my @old = @messages;

begin();
unrestored('an answer while Redis is down');
$server->restart;

$redis = $t->redis;
wait_until(sub { my @k = $redis->keys('dsa1:*:s:*'); @k != 0 }, 20,
           'the answer to be stored');
wait_until(sub { answer(\@messages); prompt() eq $first }, 20,
           'the answer to be restored');
pass('it is stored when Redis is back');

@messages = @old;
unrestored('what Redis has forgotten');


# Redis ends with the answer in its socket, unread: the answer is sent again.

begin();
answer(\@messages);
same($first, 'before Redis ends');
$server->signal('STOP');
begin();
$t->wait_redis(0);
$server->signal('KILL');
$server->wait_end(10);
$server->restart;
$redis = $t->redis;
wait_until(sub { my @k = $redis->keys('dsa1:*:s:*'); @k != 0 }, 20,
           'the answer to be stored');
wait_until(sub { answer(\@messages); prompt() eq $first }, 20,
           'the answer to be restored');
pass('a retained answer that was sent and not confirmed is sent again');


# A client leaves during the lookup in Redis.

my $sent;

# once more if it has left after the end of the lookup, which has a timeout

wait_until(sub {
    my $failed = failed();

    $server->signal('STOP');
    $sent = submitted($fake);

    my $gone = $t->stream({ model => 'deepseek-reasoner', tools => \@tools,
                            messages => \@messages }, head => 0,
                          headers => [ Authorization => 'Bearer alice' ]);

    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 1 }, 10,
               'the request');
    undef $gone;
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10,
               'the end of the request');
    $server->signal('CONT');
    $t->wait_redis(1);

    return failed() == $failed;
}, 60, 'a client that leaves in time');

is(scalar submitted($fake), $sent, 'a client that left is not answered');


# A conversation has the messages, and Redis the exact text of the calls.

$r = $t->post('/v1/conversations', {},
              headers => [ Authorization => 'Bearer alice' ]);
my $id = $r->{json}{id};
my @as = (headers => [ Authorization => 'Bearer alice' ]);
my %more = (model => 'deepseek-reasoner', conversation => $id,
            tools => \@tools);

$m = $t->post($chat, { %more, messages => [ user('q') ] }, @as)
     ->{json}{choices}[0]{message};
$t->post($chat, { %more, messages => [ results($m) ] }, @as);
same($first, 'a conversation');


# Anthropic's API: thinking blocks are left out, and the input of a call is an
# object in any case.

my %anthropic = (model => 'deepseek-reasoner', max_tokens => 2000,
                 thinking => { type => 'enabled', budget_tokens => 1024 },
                 tools => [ map { +{ name => $_, input_schema => {
                                     type => 'object' } } } qw/ f g / ]);

sub anthropic {
    my (@messages) = @_;

    $r = $t->post('/v1/messages', { %anthropic, messages => \@messages },
                  headers => [ 'x-api-key' => 'alice' ]);
    is($r->{status}, 200, 'Anthropic') or diag($r->{body});

    return $r->{json}{content};
}

my $blocks = anthropic(user('q'));
my $begun = prompt();
my @uses = grep { $_->{type} eq 'tool_use' } @$blocks;
my @parts = grep { $_->{type} ne 'thinking' } @$blocks;

is(scalar @uses, 2, 'two calls');
cmp_ok(scalar @parts, '<', scalar @$blocks, 'and thinking');
anthropic(user('q'), { role => 'assistant', content => \@parts },
          { role => 'user', content => [ map { +{
              type => 'tool_result', tool_use_id => $_->{id},
              content => "done $_->{name}" } } @uses ] });
same("$begun$shown$eos${results}[<think>]", 'Anthropic: restored');


# The Responses API: a client that keeps the items of calls and leaves out those
# of reasoning and text.

sub respond {
    $r = $t->post('/v1/responses', {
        model => 'deepseek-reasoner', store => \0, input => \@_,
        tools => [ map { +{ type => 'function', name => $_ } } qw/ f g / ] },
        headers => [ Authorization => 'Bearer alice' ]);
    is($r->{status}, 200, 'Responses') or diag($r->{body});

    return grep { $_->{type} eq 'function_call' } @{ $r->{json}{output} };
}

my @called = respond(user('q'));

is(scalar @called, 2, 'two calls');
$begun = prompt();
respond(user('q'), @called, map { +{ type => 'function_call_output',
    call_id => $_->{call_id}, output => "done $_->{name}" } } @called);
same("$begun$shown$eos${results}[<think>]", 'Responses: restored');


# The directives.

for (['dsa_retention maybe;', qr/invalid value "maybe"/],
     ['dsa_retention on ttl=0;', qr/must be more than 0/],
     ['dsa_retention on ttl=soon;', qr/invalid value/],
     ['dsa_retention on; dsa_retention off;', qr/is duplicate/])
{
    my ($directive, $want) = @$_;
    my ($rc, $out) = $t->nginx_test(http => $directive);

    ok($rc != 0 && $out =~ $want, $directive) or diag($out);
}

{
    local $t->{redises} = [];

    my ($rc, $out) = $t->nginx_test(server => 'dsa_retention strict;');
    ok($rc != 0 && $out =~ /"dsa_retention strict" needs "dsa_redis"/,
       'strict without dsa_redis') or diag($out);

    ($rc, $out) = $t->nginx_test(server => 'dsa_retention on;');
    is($rc, 0, 'on without dsa_redis') or diag($out);
}

$t->done;
