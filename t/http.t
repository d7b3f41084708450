#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The HTTP side of chats: routes, methods, bodies in every form, versions of
# HTTP, many at once.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $chat = '/v1/chat/completions';

my $t = DSA::Test->new('http');
my $fake = $t->start_fake();

$t->start_nginx(
    http => 'log_format dsa "$status $dsa_model $dsa_tenant '
            . '$dsa_prompt_tokens $dsa_cached_tokens '
            . '$dsa_completion_tokens $dsa_reasoning_tokens $dsa_ttft '
            . '$dsa_finish_reason $dsa_request_id \"$dsa_conversation\"";'
            . 'access_log %%DIR%%/dsa.log dsa;',
    server => 'location /api/ { dsa_pass v32; client_max_body_size 1k; }
               location /closed/ { dsa_pass v32; deny all; }
               location /named/ { dsa_pass v32;
                   add_header X-Model $dsa_model always; }
               location /mirror/ { dsa_pass v32; mirror /copy; }
               location = /copy { internal;
                   proxy_pass http://127.0.0.1:%%PORT%%/v1/chat/completions; }
               location /if/ { dsa_pass v32; if ($arg_x) { set $y 1; } }
               location /except/ { dsa_pass v32;
                   limit_except POST { allow all; } }');


# the members of a completion

my $r = $t->post($chat, ask('hello'));
is($r->{status}, 200, 'chat');
is($r->{headers}{'content-type'}, 'application/json', 'its type');
like($r->{json}{id}, qr/^chatcmpl-[0-9a-f]{32}$/, 'id');
is($r->{json}{object}, 'chat.completion', 'object');
is($r->{json}{model}, 'deepseek-chat', 'model');
cmp_ok(abs($r->{json}{created} - time), '<', 60, 'created');
is($r->{json}{system_fingerprint}, 'fp_0123456789', 'fingerprint');
is_deeply($r->{json}{choices},
          [{ index => 0, finish_reason => 'stop', logprobs => undef,
             message => { role => 'assistant', content => 'echo: hello',
                          refusal => undef, annotations => [] } }],
          'choices');
is_deeply($r->{json}{usage},
          { prompt_tokens => 9, completion_tokens => 3, total_tokens => 12,
            prompt_tokens_details => { cached_tokens => 0, audio_tokens => 0,
                                       gpu_tokens => 0, host_tokens => 0,
                                       redis_tokens => 0 },
            completion_tokens_details => {
                reasoning_tokens => 0, audio_tokens => 0,
                accepted_prediction_tokens => 0,
                rejected_prediction_tokens => 0,
                draft_tokens => 0, accepted_draft_tokens => 0 },
            prompt_cache_hit_tokens => 0, prompt_cache_miss_tokens => 9 },
          'usage');

is(join(' ', (submitted($fake))[0] =~ /^submit (\S+) (max=\S+) .*(prompt=.*)/),
   '100000000 max=4096 prompt=[<｜begin▁of▁sentence｜>][<｜User｜>]hello'
   . '[<｜Assistant｜>][</think>]', 'what the engine got');


# routes and methods

$r = $t->get('/v1/models');
is_deeply($r->{json}, { object => 'list', data => [
              map { { id => $_, object => 'model', created => 0,
                      owned_by => 'deepseek',
                      context_length => 163840, max_model_len => 163840 } }
              qw/ fake-model deepseek-chat deepseek-reasoner / ] }, 'models');

$r = $t->request('HEAD', '/v1/models');
is($r->{status}, 200, 'HEAD of models');
is($r->{body}, '', 'without a body');

for my $name (qw/ fake-model deepseek-chat deepseek-reasoner /) {
    $r = $t->get("/v1/models/$name");
    is_deeply($r->{json}, { id => $name, object => 'model', created => 0,
                            owned_by => 'deepseek', context_length => 163840,
                            max_model_len => 163840 }, "model $name");
}

is($t->get("$_/fake-model")->{json}{id}, 'fake-model', "$_/ID")
    for '/api/models', '/api/models/models', '/api/v1/models';

is_deeply($t->get('/v1/models/fake%2Dmodel')->{json},
          $t->get('/v1/models/fake-model')->{json}, 'a name that is escaped');

$r = $t->request('HEAD', '/v1/models/fake-model');
is("$r->{status} $r->{body}", '200 ', 'HEAD of a model');

for my $name ('fake', 'fake-model2', 'fake-model/', 'a/b', '%00', "x\xff") {
    $r = $t->get("/v1/models/$name");
    is($r->{status}, $name eq '%00' ? 400 : 404, "no model $name");
    next if $name eq '%00';
    is($r->{json}{error}{code}, 'model_not_found', 'its code');
    is($r->{json}{error}{param}, 'model', 'the field');
}

for my $uri ('/v1/chat/completions', '/api/chat/completions',
             '/api/v1/chat/completions', '/if/chat/completions?x=1',
             '/if/chat/completions', '/except/v1/chat/completions',
             '/v1/chat/completions?beta=true')
{
    $r = $t->post($uri, ask('hi'));
    is($r->{json}{choices}[0]{message}{content}, 'echo: hi', "POST $uri");
}

for my $uri ('/v1/', '/v1/chat', '/v1/xcompletions', '/v1/models/',
             '/v1/chat/completions/', '/v1/conversationsx', '/v1//')
{
    $r = $t->get($uri);
    is($r->{status}, 404, "$uri is not found");
    is($r->{json}{error}{code}, 'unknown_url', 'in the API\'s shape');
}

for ([GET => $chat, 'POST'], [GET => '/v1/completions', 'POST'],
     [PUT => $chat, 'POST'], [DELETE => $chat, 'POST'],
     [HEAD => $chat, 'POST'], [POST => '/v1/models', 'GET, HEAD'],
     [DELETE => '/v1/models/fake-model', 'GET, HEAD'])
{
    my ($method, $uri, $allow) = @$_;

    $r = $t->request($method, $uri, $method =~ /^P/ ? (body => '{}') : ());
    is($r->{status}, 405, "$method $uri");
    is($r->{headers}{allow}, $allow, 'says what is allowed');
    is($r->{json}{error}{code}, 'method_not_allowed', 'in the API\'s shape')
        if $method ne 'HEAD';
}

for my $model ('fake-model', 'deepseek-reasoner') {
    $r = $t->post($chat, { %{ ask('x') }, model => $model });
    is($r->{json}{model}, $model, "model $model");
}


# bodies

my $body = json_encode(ask('hé 日本 😀'));
my $want = 'echo: hé 日本 😀';
utf8::decode($want);

sub content { $_[0]{json}{choices}[0]{message}{content} }

is(content($t->post($chat, json_encode(ask("h\x{e9} \x{1f600}")))),
   "echo: h\x{e9} \x{1f600}", 'beyond ASCII');

my $short = '{"model":"deepseek-chat","messages":[{"role":"user","content":'
            . '"\u00e9'. "\xc3\xa9" . '"}]}';
my @bad;

for my $at (1 .. length($short) - 1) {
    my $http = $t->connect();

    $http->send($http->format_request('POST', $chat, body => $short)
                =~ s/\Q$short\E$//sr . substr $short, 0, $at);
    $http->send(substr $short, $at);

    push @bad, $at if (content($http->response()) || '')
                      ne "echo: \x{e9}\x{e9}";
}

is("@bad", '', 'a body cut at every byte');

@bad = ();

for my $at (1 .. length($short) - 1) {
    my $c = content($t->request('POST', $chat, chunked => [
                substr($short, 0, $at), substr($short, $at) ])) || '';
    push @bad, $at if $c ne "echo: \x{e9}\x{e9}";
}

is("@bad", '', 'a chunked body cut at every byte');

is(content($t->request('POST', $chat, chunked => [split //, $short])),
   "echo: \x{e9}\x{e9}", 'a chunk a byte');

my $http = $t->connect();
$http->send($http->format_request('POST', $chat, body => $short, headers =>
            ['Expect', '100-continue']) =~ s/\Q$short\E$//sr);
is($http->read_head(), 100, '100 Continue is sent');
$http->send($short);
is(content($http->response()), "echo: \x{e9}\x{e9}", 'and then the answer');

my $big = 'x' x (5 * 1024 * 1024);
$r = $t->post($chat, ask($big));
is($r->{status}, 413, 'a prompt longer than the ring');
like($r->{json}{error}{message}, qr/longer than the engine accepts/,
     'is told');

$big = 'x' x (100 * 1024);
$r = $t->post($chat, ask($big));
is(length content($r), 6 + length $big, 'a body of 100K');
is($t->logged(qr/buffered to a temporary file/), 0, 'never on disk');

$r = $t->request('POST', $chat, chunked => [json_encode(ask($big))]);
is(length content($r), 6 + length $big, 'the same, chunked');
is($t->logged(qr/buffered to a temporary file/), 0, 'never on disk');

$r = $t->post('/api/chat/completions', ask('x' x 2000));
is($r->{status}, 413, 'a body over client_max_body_size');
is($r->{headers}{'content-type'}, 'application/json', 'answered in JSON');
is_deeply($r->{json}{error}, { message => 'The request body is longer than '
              . 'the limit of 1024 bytes.', type => 'invalid_request_error',
              param => undef, code => 'request_too_large' }, 'its error');

$r = $t->request('POST', '/api/chat/completions',
                 chunked => [('x' x 100) x 20]);
is($r->{status}, 413, 'the same, chunked');
is($r->{json}{error}{code}, 'request_too_large', 'its error');

$http = $t->connect();
$http->send("POST $chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
            . "Content-Type: application/json\r\n\r\nzz\r\n");
$r = $http->response();
is($r->{status}, 400, 'a malformed chunk');
is($r->{json}{error}{code}, 'invalid_request_error', 'its error');

$r = $t->post('/closed/chat/completions', ask('x'));
is($r->{status}, 403, 'an error of another module');
is($r->{json}{error}{code}, 'forbidden', 'in the API\'s shape');


# the type of a body: any page may send the others without a preflight

for my $type ('application/json', 'APPLICATION/Json',
              'application/json; charset=utf-8', 'application/json;charset=x',
              'application/json ; a=b', 'application/vnd.api+json',
              'application/problem+JSON; charset=utf-8')
{
    is($t->post($chat, ask('x'), type => $type)->{status}, 200,
       "Content-Type: $type");
}

for my $type ('text/plain', 'text/plain; charset=utf-8', '', 'text/json',
              'application/x-www-form-urlencoded', 'multipart/form-data',
              'text/plain;application/json', 'text/plain, application/json',
              'application/json, text/plain', 'application/jsonp', 'json',
              'application/xjson', 'application/json+xml', 'application/',
              'xapplication/json', 'text/x+json', '*/*', "application/jso\xff",
              undef)
{
    for my $uri ($chat, '/v1/conversations') {
        my $n = submitted($fake);
        my $name = "POST $uri of " . ($type // 'no type');

        $r = $t->post($uri, ask('x'), type => $type);
        is($r->{status}, 415, $name);
        is($r->{json}{error}{code}, 'unsupported_media_type', 'its code');
        like($r->{json}{error}{message}, qr{Content-Type: application/json},
             'the error says what is accepted');
        like($r->{json}{error}{message}, qr{curl -d sends another type},
             'and what to do about curl -d');
        is(scalar submitted($fake), $n, 'nothing is computed');
    }
}

$r = $t->request('POST', $chat, type => undef);
is($r->{status}, 415, 'neither a type nor a body');
$r = $t->request('POST', $chat, type => 'text/plain', chunked => ['{', '}']);
is($r->{status}, 415, 'a chunked body of text');
is($t->request('POST', '/v1/models', body => 'x',
               type => 'text/plain')->{status}, 405,
   'the method is wrong before the type is');

$http = $t->connect();
$r = $http->request('POST', $chat, body => 'x' x 100000, type => 'text/plain');
is($r->{status}, 415, 'a long body of text');
is(content($http->request('POST', $chat, body => json_encode(ask('next')))),
   'echo: next', 'is read, and the connection goes on');


# a mirror has the body too

$r = $t->post('/mirror/chat/completions', ask('mirror' x 2000));
is($r->{status}, 200, 'mirrored');
wait_until(sub { 2 == grep { /(?:mirror){2000}/ } submitted($fake) }, 10,
           'the copy');
pass('the copy is whole');


# a model's name in a header

my $named = '/named/chat/completions';
is($t->post($named, ask('x'))->{headers}{'x-model'}, 'deepseek-chat',
   'the model in a header');
$r = $t->post($named, ask('x', model => "a\r\nX-Evil: 1"));
is($r->{status}, 404, 'a line feed in its name');
is($r->{json}{error}{message}, 'The model does not exist. GET /models lists '
   . 'those that do.', 'is no model');
is($r->{headers}{'x-evil'}, undef, 'begins no header');
is($t->post($named, ask('x', model => 'm' x 64))->{status}, 404,
   'longer than a name can be');


# versions, connections

$r = $t->post($chat, ask('old'), version => '1.0');
is(content($r), 'echo: old', 'HTTP/1.0');
is($r->{headers}{connection}, 'close', 'is closed');

$http = $t->stream(ask('old'), version => '1.0');
is($http->header('transfer-encoding'), undef, 'a stream without chunks');
my $m = DSA::HTTP->gather($http->events);
is("$m->{content}|$m->{done}", 'echo: old|1', 'to its end');

$http = $t->connect();

for my $n (1 .. 3) {
    is(content($http->request('POST', $chat, body => json_encode(ask("n$n")))),
       "echo: n$n", "request $n of a connection");
}

$http->send_request('POST', $chat, body => json_encode(ask('s', stream =>
                    JSON::PP::true)));
$http->read_head();
is(DSA::HTTP->gather($http->events)->{content}, 'echo: s', 'a stream on it');
is(content($http->request('POST', $chat, body => json_encode(ask('after')))),
   'echo: after', 'and another request');

$http = $t->connect();
$http->send(join '', map {
    $http->format_request('POST', $chat, body => json_encode(ask("p$_")))
} 1 .. 4);
is(join(' ', map { content($http->response()) } 1 .. 4),
   'echo: p1 echo: p2 echo: p3 echo: p4', 'pipelined');


# tenants and the access log

$r = $t->post($chat, ask('mine'), headers => ['Authorization', 'Bearer sk-1']);
my ($line) = grep { /mine/ } submitted($fake);
my $digest = sha256_hex('sk-1');
like($line, qr/tenant=$digest /, 'the tenant is the key\'s digest');

$t->post($chat, ask('theirs'), headers => ['authorization', 'bearer   sk-1']);
($line) = grep { /theirs/ } submitted($fake);
like($line, qr/tenant=$digest /, 'however it is written');

$t->post($chat, ask('nobodys'));
($line) = grep { /nobodys/ } submitted($fake);
$digest = sha256_hex('');
like($line, qr/tenant=$digest /, 'without a key that of nothing');

$digest = substr sha256_hex('sk-1'), 0, 32;
my $id = $r->{json}{id};
my $log = wait_until(sub { read_file($t->path('dsa.log')) =~ /(.*$id.*)/
                           && $1 }, 10, 'the access log');
like($log, qr/^200 deepseek-chat $digest 8 0 3 0 \d+\.\d{3} stop $id "-"$/,
     'the variables');
unlike($t->error_log . $t->access_log, qr/sk-1/, 'no key in any log');


# many at once, each gets its own

my $count = 200;
my @streams = map { $t->stream(ask("chat number $_ says " . 'w' x ($_ % 7)),
                               head => 0) } 1 .. $count;
my $wrong = 0;

for my $n (1 .. $count) {
    my $s = $streams[$n - 1];
    $s->read_head();
    my $m = DSA::HTTP->gather($s->events);
    $wrong++ if $m->{content} ne "echo: chat number $n says "
                                 . 'w' x ($n % 7)
                || $m->{done} != 1 || @{ $m->{errors} };
}

is($wrong, 0, "$count chats at once, each with its own text");


# the sessions end with nothing left

wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'no live requests');
is($t->metrics->{dsa_requests_in_flight}, 0, 'nothing in flight');

$t->done;
