# Copyright (C) The nginx-dsa authors
#
# Long work on the data of requests does not hold up the event loop: of the
# largest inputs that are accepted, or refused only after they were read, no
# turn of the loop parses, hashes or encrypts more than a bound.  What it does
# is counted by a library that is preloaded into nginx, not by the module.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use JSON::PP;
use Test::More;

# the bound of a turn, and of one stage in it

use constant { TURN => 128 * 1024, SHORT => 32 * 1024, BODY => 7_900_000,
               STORED => 4_100_000 };

# KB that a worker may keep when no request is open

use constant MEMORY => 64 * 1024;

my $t = DSA::Test->new('work');
my $chat = '/v1/chat/completions';
my $uri = '/v1/conversations';
my $hi = '!fake\nt hi\ndone stop\n';

my $server = $t->start_redis();
my $redis = $t->redis;
my @fake = ('submit=' . (32 << 20));

$t->start_fake('context=100000000', @fake);

$t->start_nginx(preload => 1, redis => 'timeout=20s');

wait_until(sub { $t->get("$uri/conv_" . '0' x 32)->{status} == 404 }, 10,
           'Redis');


# How many bytes each stage has read, where it ran.

sub work {
    my $m = $t->metrics;

    return map { my $where = $_;
        map { /^dsa_work_bytes_total\{stage="(\w+)",where="$where"\}/
              ? ("$1 $where" => $m->{$_}) : () } keys %$m } qw/ loop thread /;
}


# Runs code that returns an answer.  These stages have to run in threads, each
# with so many bytes; on the loop none has more than is short.

sub stages {
    my ($name, $status, $expect, $code) = @_;

    my %before = work();
    my $r = $code->();
    my %after = work();

    is($r->{status}, $status, $name) or diag(substr $r->{body}, 0, 400);

    for my $stage (sort keys %$expect) {
        cmp_ok($after{"$stage thread"} - $before{"$stage thread"}, '>=',
               $expect->{$stage}, "$name: $stage in a thread");
    }

    my @long = grep { / loop$/ && $after{$_} - $before{$_} > SHORT }
               keys %after;

    ok(!@long, "$name: nothing long on the loop") or diag("@long");
    cmp_ok($t->turn, '<=', TURN, "$name: no long turn");

    return $r;
}


sub text { $_[0] x (BODY / length $_[0]) }

sub one {
    my ($text, $fields) = (@_, '');

    return qq/{"model":"deepseek-chat",$fields"messages":[{"role":"user",/
           . qq/"content":"$text"}]}/;
}

my %chat = map { $_ => BODY } qw/ parse read check encode /;


# text

for (['escapes', '\\n'], ['escapes \\u', '\\u00e9'], ['plain text', 'text ']) {
    my ($name, $unit) = @$_;

    stages($name, 200, \%chat,
           sub { $t->post($chat, one($hi . text($unit))) });
}

# in short pieces: nginx has a buffer for each, which are read together

stages('a body in pieces', 200, \%chat, sub {
    my $s = $t->connect();
    my $body = one($hi . text('\\n'));

    $s->send("POST $chat HTTP/1.1\r\nHost: x\r\nContent-Length: "
             . length($body) . "\r\nContent-Type: application/json\r\n\r\n");
    $s->send(substr $body, 0, 4096, '') while length $body;
    $s->read_head();

    return { status => $s->status, body => $s->read_body };
});

stages('a body in chunks', 200, \%chat, sub {
    my $s = $t->connect();

    $s->send_request('POST', $chat,
        chunked => [unpack '(a4096)*', one($hi . text('\\n'))],
        headers => ['Content-Type' => 'application/json']);
    $s->read_head();

    return { status => $s->status, body => $s->read_body };
});

stages('a text completion', 200, { %chat, check => 0 }, sub {
    $t->post('/v1/completions', qq/{"model":"deepseek-chat","prompt":"$hi/
             . text('\\n') . '"}');
});

stages('count_tokens', 200, \%chat, sub {
    $t->post('/v1/messages/count_tokens', one(text('\\n')));
});


# many values, accepted and refused

my $user = '{"role":"user","content":"x"},';

stages('100,000 messages', 400, { parse => 2_000_000 }, sub {
    $t->post($chat, '{"model":"deepseek-chat","messages":['
             . $user x 80_000 . '"x"]}');
});

stages('8,192 messages', 200, { parse => 300_000, encode => 300_000 }, sub {
    $t->post($chat, '{"model":"deepseek-chat","messages":['
             . '{"role":"user","content":"a text of some words"},' x 8191
             . qq/{"role":"user","content":"$hi"}]}/);
});

stages('the most values', 400, { parse => 3_000_000, read => 3_000_000 }, sub {
    $t->post($chat, '{"model":"deepseek-chat","messages":[]' . ',"x":['
             . join(',', ('0            ') x 262_130) . ']}');
});

stages('more values', 413, { parse => 3_000_000 }, sub {
    $t->post($chat, '{"model":"deepseek-chat","messages":[]' . ',"x":['
             . join(',', ('0            ') x 262_150) . ']}');
});

stages('deep nesting', 400, { parse => 500_000, read => 500_000 }, sub {
    $t->post($chat, '{"model":"deepseek-chat","x":['
             . join(',', ('[      ' x 120 . ']' x 120) x 2_100) . ']}');
});

stages('invalid JSON', 400, { parse => BODY }, sub {
    $t->post($chat, one(text('\\n')) . 'x');
});

stages('unknown fields', 200, { parse => 3_000_000, read => 3_000_000 }, sub {
    $t->post($chat, one($hi, join '', map { qq/"field$_":0,/ } 1 .. 200_000));
});

stages('128 tools', 200, { parse => 4_000_000, encode => 4_000_000 }, sub {
    my $properties = join ',', map { qq/"property_$_":{"type":"string"}/ }
                     1 .. 1_000;

    $t->post($chat, one($hi, '"tools":[' . join(',', map {
        qq/{"type":"function","function":{"name":"f$_","parameters":/
        . qq/{"type":"object","properties":{$properties}}}}/ } 1 .. 128)
        . '],'));
});


# stored conversations

my $entry = '{"role":"user","content":"' . 'word ' x 420 . '"}';
my $entries = join ',', ($entry) x (STORED / length $entry);
my $r;

$r = stages('POST of a conversation', 200, { object => STORED }, sub {
    $t->post($uri, qq/{"messages":[$entries]}/);
});

my $id = $r->{json}{id};

stages('a conversation that is too large', 413, { object => BODY }, sub {
    $t->post($uri, qq/{"messages":[{"role":"user","content":"/ . text('\\n')
                   . '"}]}');
});

stages('GET of it', 200, { object => STORED },
       sub { $t->get("$uri/$id") });

$r = stages('its items', 200, { object => STORED },
            sub { $t->get("$uri/$id/items?limit=100") });

is(scalar @{ $r->{json}{data} }, 100, 'a page of them');

my $item = $r->{json}{data}[0]{id};

stages('an item', 200, { object => STORED },
       sub { $t->get("$uri/$id/items/$item") });

stages('items that are added', 200, { object => 3_000_000 }, sub {
    $t->post("$uri/$id/items", '{"items":[{"type":"message","role":"user",'
             . '"content":"' . '\\n' x 1_500_000 . '"}]}');
});

stages('an item that is deleted', 200, { object => 1_000_000 },
       sub { $t->request('DELETE', "$uri/$id/items/$item") });

$r = $t->post($uri, qq/{"messages":[$entries]}/);
$id = $r->{json}{id};

$r = stages('a turn', 200, { conversation => STORED, check => STORED,
                             encode => STORED }, sub {
    $t->post($chat, one($hi, qq/"conversation":"$id",/));
});

is($r->{json}{conversation}{stored}, JSON::PP::true, 'it is stored')
    or diag($r->{body});

stages('a turn with a long message', 200,
       { parse => 2_000_000, answer => 2_000_000 }, sub {
    $t->post($chat, one($hi . '\\n' x 1_000_000, qq/"conversation":"$id",/));
});


# responses: items, what is stored of them, a chain of the greatest depth

stages('a response', 200, { parse => BODY, references => BODY, read => BODY,
                            encode => BODY, answer => BODY }, sub {
    $t->post('/v1/responses', qq/{"model":"deepseek-chat","input":"$hi/
             . text('\\n') . '"}');
});

$r = $t->post('/v1/responses', { model => 'deepseek-chat',
                                 input => "!fake\nt hi\n" . 'word ' x 700 });
is($r->{status}, 200, 'the last response of a chain');

my ($last) = $redis->keys('*:r:resp_*');
my %node = @{ $redis->cmd('HGETALL', $last) };
my $parent = '';

for (1 .. 999) {
    my $name = sprintf 'resp_%032x', $_;

    $redis->cmd('HSET', $last =~ s/resp_.*/$name/r,
                %node, parent => $parent);
    $parent = $name;
}

$redis->cmd('HSET', $last, parent => $parent);

my $chain = 1_000 * (length($node{input}) + length $node{output});

cmp_ok($chain, '>', 3_800_000, 'a long chain');

$r = stages('a chain of 1,000 responses', 200,
            { history => $chain, encode => $chain }, sub {
    $t->post('/v1/responses', { model => 'deepseek-chat',
             previous_response_id => $r->{json}{id},
             input => "!fake\nt hi" });
});

$r = stages('a reference', 200, { references => 4_000 }, sub {
    $t->post('/v1/responses', { model => 'deepseek-chat', input => [
        (map { { type => 'item_reference',
                 id => "msg_" . sprintf('%032x', $_) . '0' x 16 } } ()),
        { type => 'message', role => 'user', content => 'x' x 40_000 },
        { type => 'message', role => 'user', content => "!fake\nt hi" } ] });
});

stages('a stored response', 200, { object => 40_000 },
       sub { $t->get("/v1/responses/$r->{json}{id}/input_items") });


# an answer in one piece; the engine sends records of 4,096 tokens

my $long = "b 4096 abcdefgh\n" x 32;

stages('a long answer', 200, { answer => 1_000_000 },
       sub { $t->post($chat, script($long, max_tokens => 200_000)) });

stages('a long answer that is stored', 200, { answer => 2_000_000 }, sub {
    $t->post('/v1/responses', { model => 'deepseek-chat',
             input => "!fake\n$long", max_output_tokens => 200_000 });
});


# retention: four answers of the greatest length

my $dsml = "\x{ff5c}DSML\x{ff5c}";
my $call = "\\n\\n<${dsml}function_calls>\\n<${dsml}invoke name=\"f\">\\n"
           . "</${dsml}invoke>\\n</${dsml}function_calls>";
my @tools = ({ type => 'function', function => { name => 'f' } });

$r = $t->post($chat, { model => 'deepseek-reasoner', tools => \@tools,
    max_tokens => 200_000, messages => [ { role => 'user', content => "!fake\n"
        . "b 4096 abcdefgh\n" x 30 . tokens("</think>$call") } ] });

my $sampled = $r->{json}{choices}[0]{message}{tool_calls}[0]{id};

ok(defined $sampled, 'an answer with a call')
    or diag(substr $r->{body}, 0, 400);

wait_until(sub { my @keys = $redis->keys('*:s:*'); @keys != 0 }, 10,
           'its record');

my ($record) = $redis->keys('*:s:*');
my $value = $redis->cmd('GET', $record);

cmp_ok(length $value, '>', 900_000, 'a long record');

my @ids = map { 'call_' . $_ x 22 } 'a' .. 'd';

$redis->cmd('SET', $record =~ s/:s:.*/":s:" . substr $_, 5/er, $value)
    for @ids;

stages('retention', 200, { retention => 3_600_000 }, sub {
    $t->post($chat, { model => 'deepseek-reasoner', tools => \@tools,
        messages => [ { role => 'user', content => 'x' },
            map { ({ role => 'assistant', content => '', tool_calls => [
                      { id => $_, type => 'function', function =>
                        { name => 'f', arguments => '{}' } } ] },
                   { role => 'tool', tool_call_id => $_,
                     content => "!fake\nt </think>\nt hi" }) } @ids ] });
});

is($t->metrics->{'dsa_retention_messages_total{result="restored"}'}, 4,
   'all are restored');


# Memory that the threads have used is given back: glibc keeps the heap of each
# thread at its greatest by default.

SKIP: {
    skip 'sanitizers have heaps of their own', 2 if $ENV{DSA_SANITIZED};

    my $worker;

    wait_until(sub { ($worker) = $t->workers }, 30, 'the worker');

    my $kb = private($worker);

    cmp_ok($kb, '>', 0, 'memory of an idle worker');
    cmp_ok($kb, '<', MEMORY, 'it is given back, KB');
}

sub private {
    my $kb = 0;
    my $text = read_file("/proc/$_[0]/smaps_rollup");

    $kb += $1 while $text =~ /^Private_(?:Clean|Dirty):\s+(\d+) kB/mg;

    return $kb;
}


# context strategies

sub rounds {
    return map { ({ role => 'assistant', content => '', tool_calls => [
                    { id => "call_$_", type => 'function', function =>
                      { name => 'f', arguments => '{"a": 1}' } } ] },
                  { role => 'tool', tool_call_id => "call_$_",
                    content => 'result ' x 4_000 }) } 1 .. 200;
}

my $history = JSON::PP->new->canonical->encode([
    { role => 'user', content => 'x' }, rounds(),
    { role => 'user', content => "!fake\nt hi" } ]);

my $large = $t;

$t = DSA::Test->new('work-small');

write_file($t->path('script'), "t a summary\ndone stop\n");

$t->start_redis();
$t->start_fake('context=1000000', @fake, 'script=' . $t->path('script'));
$t->start_nginx(preload => 1, redis => 'timeout=20s');

$t->wait_redis(1);

for (['discard_75', window => 20_000_000],
     ['summary', window => 20_000_000, summary => 5_000_000])
{
    my ($strategy, %expect) = @$_;

    $r = stages("strategy $strategy", 200, \%expect, sub {
        $t->post($chat, '{"model":"deepseek-chat","context_management":'
                 . qq/{"strategy":"$strategy"},"messages":$history}/);
    });

    is($r->{headers}{'x-dsa-context'}, $strategy, 'it is applied')
        or diag($r->{head});
}


# The pool is also that of nginx's own tasks.  While these have filled its
# queue, work runs on the loop and nothing is lost.

my $full = DSA::Test->new('work-full');

write_file($full->path('file'), 'a file');

$full->start_fake('context=1000000');
$full->start_nginx(preload => 1,
    main => 'thread_pool default threads=1 max_queue=0;',
    server => 'location = /file { root %%DIR%%; aio threads; sendfile off; }');

$full->hold('before');

my $file = $full->connect();

$file->send_request('GET', '/file');
wait_until(sub { $full->held('before') }, 30, 'a read in a thread');

is($full->post($chat, one($hi . 'x' x 40_000))->{status}, 200, 'a full pool')
    for 1, 2;

my $m = $full->metrics;

cmp_ok($m->{'dsa_work_bytes_total{stage="parse",where="loop"}'}, '>=', 80_000,
       'a full pool: work on the loop');
is($m->{'dsa_work_total{stage="parse",where="thread"}'}, 0,
   'a full pool: not in a thread');
like(read_file($full->path('error.log')),
     qr/thread pool "default" queue overflow/, 'a full pool: a log');

$full->release();
$file->read_head();
is($file->read_body, 'a file', 'a full pool: its task goes on');

$_->done for $large, $t, $full;
