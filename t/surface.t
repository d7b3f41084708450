# Copyright (C) The nginx-dsa authors
#
# The API as a client sees it apart from chats: base URLs, errors of nginx
# itself, request ids, Retry-After; and pages of the operator, which stay as
# they are.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;

my $t = DSA::Test->new('surface');

$t->start_redis();
my $fake = $t->start_fake();

my $own = '<html>an operator\'s page</html>';
write_file($t->path('own.html'), $own);
write_file($t->path('users'), "anna:{PLAIN}a\n");

$t->start_nginx(
    http => 'limit_conn_zone $server_port zone=all:1m;
             limit_req_zone $server_port zone=slow:1m rate=1r/m;
             log_format id "$status $dsa_request_id $sent_http_x_request_id";
             access_log %%DIR%%/id.log id;',
    server => 'location / { dsa_pass v32; }
               location /one/ { dsa_pass v32; limit_conn all 1;
                   limit_conn_status 429; }
               location /req/ { dsa_pass v32; limit_req zone=slow; }
               location /late/ { dsa_pass v32; client_body_timeout 100ms; }
               location /small/ { dsa_pass v32; client_max_body_size 10; }
               location /closed/ { dsa_pass v32; deny all; }
               location /basic/ { dsa_pass v32; auth_basic x;
                   auth_basic_user_file %%DIR%%/users; }
               location /code/ { dsa_pass v32;
                   if ($arg_code = 404) { return 404; }
                   if ($arg_code = 405) { return 405; }
                   if ($arg_code = 409) { return 409; }
                   if ($arg_code = 415) { return 415; }
                   if ($arg_code = 418) { return 418; }
                   if ($arg_code = 451) { return 451; }
                   if ($arg_code = 500) { return 500; }
                   if ($arg_code = 502) { return 502; }
                   if ($arg_code = 503) { return 503; } }
               location /text/ { dsa_pass v32; default_type text/html;
                   if ($arg_text) { return 403 "<p>own text</p>"; } }
               location /pages/ { dsa_pass v32; deny all;
                   error_page 403 /own.html; }
               location /named/ { dsa_pass v32; deny all;
                   error_page 403 = @teapot; }
               location /again/ { dsa_pass v32; client_max_body_size 10;
                   error_page 413 = /v1/models; }
               location /rechat/ { dsa_pass v32; client_max_body_size 300;
                   error_page 413 = @chat; }
               location @chat { dsa_pass v32; }
               location /loop/ { dsa_pass v32; deny all;
                   recursive_error_pages on; error_page 403 /loop/models; }
               location /mirrored/ { dsa_pass v32; mirror /v1/models; }
               location = /own.html { root %%DIR%%; }
               location @teapot { return 418 "teapot"; }
               location /added/ { dsa_pass v32;
                   add_header X-Seen $dsa_request_id always; }');

my $chat = '/v1/chat/completions';


# Checks the format of an error, and that its answer has an id.

sub refused {
    my ($r, $status, $name, $like) = @_;

    is($r->{status}, $status, $name);
    is($r->{headers}{'content-type'}, 'application/json', 'in JSON')
        or diag($r->{body});
    is(join(' ', sort keys %{ $r->{json}{error} || {} }),
       'code message param type', 'in the API\'s shape');
    like($r->{headers}{'x-request-id'}, qr/^(?:chatcmpl-)?[0-9a-f]{32}$/,
         'with an id');
    is($r->{headers}{'content-length'}, length $r->{body}, 'its length');
    is($r->{headers}{'retry-after'},
       $status == 429 || $status == 503 ? 1 : undef, 'Retry-After');
    like($r->{json}{error}{message}, $like, 'its message') if $like;
}


# base URLs

for my $base ('', '/v1', '/beta', '/beta/v1', '/api/v3') {
    my $r = $t->post("$base/chat/completions", ask('hi'));
    is($r->{json}{choices}[0]{message}{content}, 'echo: hi', "base '$base'");
    is($t->get("$base/models")->{json}{object}, 'list', 'its models');
    is($t->get("$base/models/fake-model")->{json}{id}, 'fake-model',
       'one of them');
    is($t->post("$base/conversations", {})->{json}{object}, 'conversation',
       'its conversations');
}

for my $uri ('/', '/v1', '/v1/', '/favicon.ico', '/v1/complete',
             '/chat/completions/', '/index.html', '/%ff%0a')
{
    my $r = $t->get($uri);

    refused($r, 404, "GET $uri");

    for my $there ('POST /chat/completions', 'GET /models',
                   'POST /conversations', 'POST /responses')
    {
        like($r->{json}{error}{message}, qr/\Q$there\E/, "lists $there");
    }
}

my $r = $t->request('HEAD', '/');
is($r->{status}, 404, 'HEAD /');
is($r->{body}, '', 'without a body');
like($r->{headers}{'x-request-id'}, qr/^[0-9a-f]{32}$/, 'with an id');


# errors of nginx itself

refused($t->post('/closed/models', '{}'), 403, 'deny', qr/not allow/);
refused($t->post('/small/chat/completions', ask('x')), 413, 'a long body',
        qr/limit of 10 bytes/);
refused($t->get('/basic/models'), 401, 'no password', qr/Authentication/);
like($t->get('/basic/models')->{headers}{'www-authenticate'}, qr/^Basic/,
     'WWW-Authenticate stays');

for my $code (404, 405, 409, 415, 418, 451, 500, 502, 503) {
    refused($t->get("/code/models?code=$code"), $code, "return $code");

    my $r = $t->request('HEAD', "/code/models?code=$code");
    is($r->{status}, $code, 'the same of HEAD');
    is($r->{body}, '', 'without a body');
    like($r->{headers}{'x-request-id'}, qr/^[0-9a-f]{32}$/, 'with an id');
}

like($t->get('/code/x?code=404')->{json}{error}{message},
     qr{POST /chat/completions}, 'a 404 of nginx lists what is there');

refused($t->get('/code/models?code=404', version => '1.0'), 404, 'HTTP/1.0');

my $http = $t->connect;
$http->send($http->format_request('POST', '/late/chat/completions',
                                  body => '{') =~ s/: 1\r\n/: 5\r\n/r);
is($http->response->{status}, 0,
   'nginx closes the connection of a body that does not come');

$t->get('/req/models');
refused($t->get('/req/models'), 503, 'limit_req', qr/again/);

my $s = $t->stream(script("t a\nwait\nt b"), uri => '/one/chat/completions');
$s->next_event;
refused($t->post('/one/chat/completions', ask('x')), 429, 'limit_conn',
        qr/too many requests/);
ctl($fake, 'go 1');
is(DSA::HTTP->gather($s->events)->{done}, 1, 'the first one ends well');

my $h = DSA::HTTP2->new(port => $t->port(1));
my $stream = $h->request('GET', '/code/models?code=418');
$h->until(sub { $h->ended($stream) });
is($h->status($stream), 418, 'over HTTP/2');
is(json_decode($h->data($stream))->{error}{message},
   'The request failed with status 418.', 'the same');


# an operator's own pages

is($t->get('/pages/models')->{body}, $own, 'error_page with a file');
is($t->get('/pages/models')->{status}, 403, 'its status');
$r = $t->get('/named/models');
is("$r->{status} $r->{body}", '418 teapot', 'error_page with a location');
$r = $t->get('/text/models?text=1');
is($r->{body}, '<p>own text</p>', 'return with a text');
is($r->{headers}{'content-type'}, 'text/html', 'of its own type');
like($r->{headers}{'x-request-id'}, qr/^[0-9a-f]{32}$/, 'with an id');

$r = $t->post('/again/chat/completions', ask('x'));
is($r->{status}, 200, 'error_page with a path of the API');
is($r->{json}{object}, 'list', 'which answers');
$r = $t->request('POST', '/again/chat/completions',
                 chunked => [ ('x' x 10) x 10 ]);
is($r->{json}{object}, 'list', 'also after a part of the body');


# nginx has discarded a part of the body before the redirect

$r = $t->post('/rechat/chat/completions', ask('x' x 1000));
is($r->{status}, 400, 'error_page with a location of dsa_pass');
is(ref $r->{json}{error}, 'HASH', 'is an error in JSON');
$r = $t->request('POST', '/rechat/chat/completions',
                 chunked => [ (json_encode(ask('x' x 200)), ' ' x 10) x 20 ]);
like($r->{status}, qr/^4\d\d$/, 'also after a part of the body');
is(ref $r->{json}{error}, 'HASH', 'is an error in JSON');

$r = $t->get('/loop/models');
is($r->{status}, 500, 'an error_page that leads to itself') or diag($r->{body});

$r = $t->post('/mirrored/chat/completions', ask('hi'));
is($r->{status}, 200, 'a mirror to the API does no harm');
is($t->logged(qr/does not serve the subrequest "\/v1\/models"/), 1,
   'but is logged');


# ids

$r = $t->post($chat, ask('x'));
my $id = $r->{json}{id};
is($r->{headers}{'x-request-id'}, $id, 'the id of a completion');
like($id, qr/^chatcmpl-/, 'in its form');

$s = $t->stream(ask('x'));
my $m = DSA::HTTP->gather($s->events);
is($s->header('x-request-id'), $m->{id}, 'the id of a stream');

$r = $t->post('/added/chat/completions', ask('x'));
is($r->{headers}{'x-seen'}, $r->{json}{id}, '$dsa_request_id is the same');
$r = $t->get('/added/models');
is($r->{headers}{'x-seen'}, $r->{headers}{'x-request-id'},
   'without a chat as well');

like($t->post($chat, '{')->{headers}{'x-request-id'}, qr/^chatcmpl-/,
     'an error of a chat');
refused($t->get('/v1/conversations/conv_' . '0' x 32), 404, 'a conversation');

isnt($t->get('/v1/models')->{headers}{'x-request-id'},
     $t->get('/v1/models')->{headers}{'x-request-id'},
     'each request has its own');

$r = $t->get('/v1/models', headers => ['X-Request-Id', 'mine']);
like($r->{headers}{'x-request-id'}, qr/^[0-9a-f]{32}$/,
     'it is not the client\'s');

is($t->get($_)->{headers}{'x-request-id'}, undef, "$_ has none")
    for '/readyz', '/metrics';

my @lines = wait_until(sub {
    my @l = split /\n/, read_file($t->path('id.log'));
    grep({ /\b$id\b/ } @l) && \@l;
}, 10, 'the log');
is_deeply([ grep { !/^\d+ (\S+) \1$/ && !/^(?:200|403|418) - -$/
                    && !/^408 \S+ -$/ }
            @{ $lines[0] } ], [], 'the log has the same ids');

is($t->metrics->{dsa_requests_in_flight}, 0, 'nothing is in flight');

$t->done;
