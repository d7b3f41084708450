# Copyright (C) The nginx-dsa authors
#
# Web pages of other origins: preflight requests and the headers of answers,
# as raw HTTP and with a headless browser.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Browser;
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;

my $t = DSA::Test->new('cors');

$t->start_redis();
my $fake = $t->start_fake();

write_file($t->path('users'), "anna:{PLAIN}a\n");

my $app = 'https://app.example.com';
my $dev = 'http://localhost:5173';

$t->start_nginx(
    http => "dsa_cors $app $dev;
             limit_req_zone \$server_port zone=slow:1m rate=1r/m;",
    server => 'location /any/ { dsa_pass v32; dsa_cors *; }
               location /off/ { dsa_pass v32; dsa_cors off; }
               location /basic/ { dsa_pass v32; auth_basic x;
                   auth_basic_user_file %%DIR%%/users; }
               location /deny/ { dsa_pass v32; deny all; }
               location /small/ { dsa_pass v32; client_max_body_size 10; }
               location /req/ { dsa_pass v32; limit_req zone=slow; }
               location /if/ { dsa_pass v32;
                   if ($arg_x) { set $y 1; } }
               location /static/ { root %%DIR%%; }');

my $chat = '/v1/chat/completions';

my @preflight = ('Access-Control-Request-Method', 'POST',
                 'Access-Control-Request-Headers',
                 'authorization,content-type,x-stainless-os');

# what the page's fetch() may see of a response

my @exposed = qw/ Retry-After request-id x-request-id
                  Idempotent-Replayed X-Should-Retry
                  x-ratelimit-limit-requests x-ratelimit-limit-tokens
                  x-ratelimit-remaining-requests x-ratelimit-remaining-tokens
                  x-ratelimit-reset-requests x-ratelimit-reset-tokens /;


sub preflight {
    my ($uri, $origin, @more) = @_;

    return $t->request('OPTIONS', $uri,
                       headers => [Origin => $origin, @preflight, @more]);
}


# Checks the headers of an answer that a page of this origin may read; undef:
# none may.

sub readable {
    my ($r, $origin, $name) = @_;

    my $h = $r->{headers};

    is($h->{'access-control-allow-origin'}, $origin, "$name: origin");
    is($h->{'access-control-expose-headers'},
       defined $origin ? join(', ', @exposed) : undef, "$name: exposed");
    is($h->{'access-control-allow-credentials'}, undef,
       "$name: no credentials");
    like($h->{vary} // '', qr/\bOrigin\b/, "$name: Vary");
}


# preflights

for my $origin ($app, $dev) {
    my $r = preflight($chat, $origin);

    is($r->{status}, 204, "preflight of $origin");
    is($r->{body}, '', 'has no body');
    is($r->{headers}{'content-length'}, undef, 'and no length');
    is($r->{headers}{'access-control-allow-methods'}, 'GET, POST, DELETE',
       'methods');
    is($r->{headers}{'access-control-allow-headers'},
       'authorization,content-type,x-stainless-os',
       'the requested headers are echoed');
    like($r->{headers}{'access-control-max-age'}, qr/^\d+$/, 'a time to keep');
    like($r->{headers}{vary}, qr/Access-Control-Request-$_\b/, "Vary: $_")
        for 'Method', 'Headers';
    like($r->{headers}{'x-request-id'}, qr/^[0-9a-f]{32}$/, 'an id');
    readable($r, $origin, 'the answer');
}

my $r = $t->request('OPTIONS', $chat, headers =>
    [Origin => $app, 'Access-Control-Request-Method', 'POST']);
is($r->{status}, 204, 'a preflight without headers');
is($r->{headers}{'access-control-allow-headers'}, undef, 'echoes none');

for my $uri ('/v1/models', '/v1/conversations', '/v1/conversations/conv_1',
             '/v1/nothing', '/basic/models', '/deny/models', '/small/x',
             '/if/models?x=1', '/any/models')
{
    $r = preflight($uri, $app);
    is($r->{status}, 204, "preflight of $uri");
}

preflight('/req/models', $app) for 1 .. 3;
is(preflight('/req/models', $app)->{status}, 204,
   'limit_req counts no preflight');

is(preflight('/any/models', 'null')->{headers}{'access-control-allow-origin'},
   '*', 'any page, also one without an origin');

for my $origin ("$app.evil.com", 'http://app.example.com', "$app:8443",
                'https://APP.example.com', 'null', 'https://app.example.co',
                'x', "$app, $dev")
{
    $r = preflight($chat, $origin);

    is($r->{status}, 403, "preflight of $origin");
    readable($r, undef, 'its answer');
    like($r->{json}{error}{message}, qr/dsa_cors/, 'an error in JSON');
    readable($t->post($chat, ask('x'), headers => [Origin => $origin]), undef,
             'an answer');
}

$r = preflight($chat, $app, Origin => $dev);
is($r->{status}, 405, 'two origins: no preflight');
readable($r, undef, 'two origins');

$r = preflight('/off/chat/completions', $app);
is($r->{status}, 405, 'dsa_cors off: no preflight');
is($r->{headers}{vary}, undef, 'and no Vary');

is($t->request('OPTIONS', $chat, headers => [Origin => $app])->{status}, 405,
   'OPTIONS without a requested method is no preflight');
is($t->request('OPTIONS', $chat, headers => [@preflight])->{status}, 405,
   'OPTIONS without an origin neither');

my $http = $t->connect;
$r = $http->request('OPTIONS', $chat, body => 'x' x 1000,
                    headers => [Origin => $app, @preflight]);
is($r->{status}, 204, 'a preflight with a body');
$r = $http->request('POST', $chat, body => json_encode(ask('next')),
                    headers => [Origin => $app]);
is($r->{json}{choices}[0]{message}{content}, 'echo: next',
   'the connection goes on');

my $h = DSA::HTTP2->new(port => $t->port(1));
my $stream = $h->request('OPTIONS', $chat, headers =>
    [ origin => $app, 'access-control-request-method' => 'POST' ]);
$h->until(sub { $h->ended($stream) });
is($h->status($stream), 204, 'over HTTP/2');


# answers and errors

for my $case (
    [ 'an answer', $t->post($chat, ask('x'), headers => [Origin => $app]),
      200, $app ],
    [ 'models', $t->get('/v1/models', headers => [Origin => $dev]), 200,
      $dev ],
    [ 'any page', $t->get('/any/models', headers => [Origin => 'http://x.y']),
      200, '*' ],
    [ 'without an origin', $t->get('/v1/models'), 200, undef ],
    [ 'a bad body', $t->post($chat, '{', headers => [Origin => $app]), 400,
      $app ],
    [ 'not found', $t->get('/v1/x', headers => [Origin => $app]), 404, $app ],
    [ 'no password', $t->get('/basic/models', headers => [Origin => $app]),
      401, $app ],
    [ 'deny', $t->get('/deny/models', headers => [Origin => $app]), 403,
      $app ],
    [ 'a long body', $t->post('/small/chat/completions', ask('x'),
                              headers => [Origin => $app]), 413, $app ],
    [ 'a form', $t->post($chat, 'a=b', type =>
                         'application/x-www-form-urlencoded',
                         headers => [Origin => $app]), 415, $app ],
    [ 'limit_req', ($t->get('/req/models'),
                    $t->get('/req/models', headers => [Origin => $app])), 503,
      $app ])
{
    my ($name, $status, $origin) = ($case->[0], @$case[-2, -1]);

    $r = $case->[-3];
    is($r->{status}, $status, $name);
    readable($r, $origin, $name);
}

my $s = $t->stream(ask('x'), headers => [Origin => $app]);
is($s->header('access-control-allow-origin'), $app, 'a stream');
is(DSA::HTTP->gather($s->events)->{done}, 1, 'it ends well');

is($t->get('/readyz', headers => [Origin => $app])
     ->{headers}{'access-control-allow-origin'}, undef,
   'other locations have no such headers');
is(preflight('/static/x', $app)->{status}, 405,
   'and nginx answers their OPTIONS');


# the directive

for my $case (
    [ 'a path', 'https://a.b/', qr/without a path/ ],
    [ 'no scheme', 'app.example.com', qr/is not an origin; expected/ ],
    [ 'no host', 'https://', qr/is not an origin/ ],
    [ 'a capital letter', 'https://App.b', qr/in lower case/ ],
    [ '* beside another', "* $app", qr/"\*" is given with/ ],
    [ 'off beside another', "$app off", qr/"off" is given with/ ],
    [ 'twice', "off; dsa_cors off", qr/is duplicate/ ],
    [ 'nothing', '', qr/invalid number of arguments/ ])
{
    my ($name, $value, $like) = @$case;
    my ($rc, $out) = $t->nginx_test(location => "dsa_cors $value;");

    isnt($rc, 0, "dsa_cors with $name");
    like($out, $like, 'the error');
}


# a page in a browser

SKIP: {
    my $browser = DSA::Browser::find_chromium();

    if (!$browser) {
        ok(0, 'there is a browser') if $ENV{DSA_NO_SKIP};
        skip 'no chromium here; DSA_CHROMIUM may name one', 1;
    }

    my $origin = 'http://127.0.0.1:' . $t->port;
    my $api = 'http://localhost:' . $t->port . '/any';
    my $off = $api =~ s{any}{off}r;

    # The page is of the origin 127.0.0.1, and the API of localhost.

    mkdir $t->path('static');
    write_file($t->path('static/page.html'), <<"EOC");
<title>page</title><pre id=out>nothing</pre><script>
(async () => {
    const out = document.getElementById("out");
    const ask = (key, body) => fetch("$api/chat/completions", {
        method: "POST", headers: { "Content-Type": "application/json",
                                   "Authorization": "Bearer " + key,
                                   "x-stainless-os": "Page" },
        body: JSON.stringify(body) });
    const messages = [{ role: "user", content: "page" }];
    const r = await ask("k", { model: "deepseek-chat", messages,
                               stream: true });
    const text = await r.text();
    const bad = await ask("k", { model: "none", messages });
    const closed = await fetch("$off/models").then(() => "read",
                                                          () => "blocked");
    out.textContent = [r.status, /echo|page/.test(text), /DONE/.test(text),
                       /^chatcmpl-/.test(r.headers.get("x-request-id")),
                       bad.status, (await bad.json()).error.param,
                       closed].join(" ");
})();
</script>
EOC

    my $home = $t->path('chromium');
    my $out = qx{timeout 300 '$browser' --headless --no-sandbox --disable-gpu \\
                 --user-data-dir='$home' --virtual-time-budget=10000 \\
                 --dump-dom '$origin/static/page.html' 2>/dev/null};

    like($out, qr/<pre id="out">200 true true true 404 model blocked</,
         'a page of another origin streams a chat and reads an error');
}

$t->done;
