# Copyright (C) The nginx-dsa authors
#
# The tenant of a request: by key, by another scheme of Authorization, by
# client certificate, or by dsa_tenant.  What the engine receives and which
# conversations a caller can read are the oracles.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use MIME::Base64 qw/ encode_base64 /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Test;

my $private = 4;         # DSA_LINK_PRIVATE of engine/link_request.h

my $t = DSA::Test->new('identity');
my $dir = $t->dir;

$t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();


# Runs a program, quietly; dies if it fails.

sub run {
    my (@argv) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', @argv
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };

    close $fh or die "@argv: $out\n";

    return $out;
}


# Requests in the ledgers whose keys match.

sub entries {
    my ($pattern) = @_;

    my $n = 0;

    for my $key ($redis->keys($pattern)) {
        my $fields = $redis->hgetall($key);
        $n += $fields->{$_} for grep { /\|requests$/ } keys %$fields;
    }

    return $n;
}


# DIR/NAME.pem and DIR/NAME.key, signed by itself or by DIR/CA.pem.

sub certificate {
    my ($name, $ca) = @_;

    my @sign = $ca ? ('-CA', "$dir/$ca.pem", '-CAkey', "$dir/$ca.key") : ();

    run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
        'ec_paramgen_curve:prime256v1', '-nodes', '-days', 3650, '-subj',
        "/CN=$name", '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr")
        if !@sign;

    if (@sign) {
        run('openssl', 'req', '-newkey', 'ec', '-pkeyopt',
            'ec_paramgen_curve:prime256v1', '-nodes', '-subj', "/CN=$name",
            '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr");
        run('openssl', 'x509', '-req', '-in', "$dir/$name.csr", @sign,
            '-CAcreateserial', '-days', 3650, '-out', "$dir/$name.pem");
        return;
    }

    rename "$dir/$name.csr", "$dir/$name.pem" or die "rename: $!\n";
}

certificate('ca');
certificate($_, 'ca') for qw/ server anna otto /;
certificate('stranger');

sub fingerprint {
    my ($name) = @_;

    my ($hex) = run('openssl', 'x509', '-in', "$dir/$name.pem", '-noout',
                    '-sha1', '-fingerprint') =~ /=([0-9A-F:]+)/;

    return lc $hex =~ tr/://dr;
}

write_file("$dir/users", "anna:{PLAIN}a\notto:{PLAIN}o\n");

my $basic = 'auth_basic x; auth_basic_user_file %%DIR%%/users;';
my $tls = "ssl_certificate %%DIR%%/server.pem;
           ssl_certificate_key %%DIR%%/server.key;
           ssl_client_certificate %%DIR%%/ca.pem;";

$t->start_nginx(
    http => "log_format tenant '\$uri [\$dsa_tenant]';
             access_log %%DIR%%/tenant.log tenant;
             server { listen 127.0.0.1:%%PORT2%% ssl; $tls
                 ssl_verify_client optional;
                 location /v1/ { dsa_pass v32; }
                 location /named/ { dsa_pass v32;
                     dsa_tenant \$ssl_client_fingerprint; } }
             server { listen 127.0.0.1:%%PORT3%% ssl; $tls
                 ssl_verify_client optional_no_ca;
                 location /v1/ { dsa_pass v32; } }",
    server => "location /basic/ { $basic dsa_pass v32; }
               location /user/ { $basic dsa_tenant \$remote_user;
                   dsa_pass v32; }
               location /open/ { $basic satisfy any; allow all;
                   dsa_tenant \$remote_user; dsa_pass v32; }
               location /arg/ { dsa_tenant \$arg_tenant; dsa_pass v32;
                   location /arg/own/ { dsa_tenant n-\$arg_tenant;
                       dsa_pass v32; }
                   location /arg/inherited/ { dsa_pass v32; } }
               location /early/ { $basic set \$early '[\$dsa_tenant]';
                   dsa_tenant \$remote_user; dsa_pass v32;
                   add_header X-Early \$early always; }
               location /redirect/ { error_page 418 = \@user; return 418; }
               location \@user { $basic dsa_tenant \$remote_user;
                   dsa_pass v32; }
               location /who/ { auth_request /ask;
                   auth_request_set \$who \$upstream_http_x_who;
                   dsa_tenant \$who; dsa_pass v32; }
               location = /ask { internal;
                   proxy_pass http://127.0.0.1:%%PORT%%/answer;
                   proxy_pass_request_body off;
                   proxy_set_header Content-Length ''; }
               location = /answer { add_header X-Who \$http_x_ticket;
                   return 204; }
               location /asked/ { auth_request /sub; dsa_pass v32; }
               location = /sub { internal; dsa_pass v32; }");

my $n = 0;


# What the engine gets of a chat sent by CODE: (tenant, flags).

sub engine_got {
    my ($code) = @_;

    my $mark = 'chat' . $n++ . 'x';
    my $status = $code->($mark);
    my ($line) = grep { /\b$mark\b/ } submitted($fake);

    return "refused with $status" if !defined $line;

    my ($flags, $tenant) = $line =~ / flags=(\w+) .*tenant=(\w+) /;

    return hex($flags) & $private ? "private $tenant" : $tenant;
}


# The same of a chat with such headers.

sub tenant {
    my ($headers, $prefix) = @_;

    $prefix = '/v1' if !defined $prefix;
    my ($path, $args) = split /\?/, $prefix;
    my $uri = "$path/chat/completions" . ($args ? "?$args" : '');

    return engine_got(sub {
        $t->post($uri, ask($_[0]), headers => $headers)->{status};
    });
}


sub basic { 'Basic ' . encode_base64("$_[0]:$_[1]", '') }


# curl with a client certificate: (status, body).

sub curl {
    my ($port, $name, $uri, @more) = @_;

    my @cert = $name ? ('--cert', "$dir/$name.pem", '--key',
                        "$dir/$name.key") : ();
    my $out = run('curl', '-s', '-k', '-m', int slow(20), '-w',
                  '\n%{http_code}', @cert, @more,
                  'https://127.0.0.1:' . $t->port($port) . $uri);

    my ($body, $status) = $out =~ /\A(.*)\n(\d+)\z/s;

    return ($status, $body);
}

sub by_certificate {
    my ($port, $name, $prefix, @more) = @_;

    return engine_got(sub {
        (curl($port, $name, "$prefix/chat/completions", @more, '-H',
              'Content-Type: application/json', '-d',
              json_encode(ask($_[0]))))[0];
    });
}


# keys

my $anonymous = sha256_hex('');
my $key = sha256_hex('sk-1');

is(tenant([]), $anonymous, 'without a key');
is(tenant(['Authorization', 'Bearer sk-1']), $key, 'a Bearer key');
is(tenant(['x-api-key', 'sk-1']), $key, 'the same key as x-api-key');
is(tenant(['X-API-Key', '  sk-1  ']), $key, 'with blanks');
is(tenant(['authorization', "bEARER \t  sk-1 \t "]), $key,
   'case and blanks of Bearer');
is(tenant(['Authorization', 'Bearer sk-1', 'x-api-key', 'sk-2']), $key,
   'Authorization comes before x-api-key');
is(tenant(['x-api-key', 'sk-2', 'Authorization', 'Bearer sk-1']), $key,
   'in whatever order they come');
is(tenant(['Authorization', 'Bearer SK-1']), sha256_hex('SK-1'),
   'the case of a key counts');
is(tenant(['Authorization', 'Bearer a b']), sha256_hex('a b'),
   'a blank within a key');

for my $empty ('Bearer', 'Bearer ', 'bearer  ', '') {
    is(tenant(['Authorization', $empty]), $anonymous,
       "'$empty' counts as no key");
    is(tenant(['Authorization', $empty, 'x-api-key', 'sk-1']), $key,
       'so that x-api-key counts');
}

is(tenant(['x-api-key', '']), $anonymous, 'an empty x-api-key');

my $long = 'k' x 7000;
is(tenant(['Authorization', "Bearer $long"]), sha256_hex($long),
   'a key of 7000 bytes');
is(tenant(['Authorization', "Bearer ${long}2"]), sha256_hex("${long}2"),
   'all of its bytes count');

my $odd = join '', map { chr } 1 .. 8, 11, 12, 14 .. 31, 127 .. 255;
is(tenant(['Authorization', "Bearer x${odd}x"]), sha256_hex("x${odd}x"),
   'control characters and 8-bit bytes');
is(tenant(['Authorization', "Bearer a\0b"]), 'refused with 400',
   'a NUL byte cannot come');


# other schemes

for my $value (basic('anna', 'a'), 'Digest username="anna"', 'Bearerx sk-1',
               'sk-1', 'Token sk-1')
{
    is(tenant(['Authorization', $value]), sha256_hex($value),
       "all of '$value'");
}

isnt(tenant(['Authorization', basic('anna', 'a')], '/basic'),
     tenant(['Authorization', basic('otto', 'o')], '/basic'),
     'two users of Basic are two tenants');


# repeated headers

for my $name ('Authorization', 'x-api-key') {
    my $value = $name eq 'x-api-key' ? 'sk' : 'Bearer sk';

    is(tenant([$name, "$value-1", $name, "$value-2"]), 'refused with 400',
       "two headers $name");
    is(tenant([$name, "$value-1", lc $name, "$value-1"]), 'refused with 400',
       'even if they are equal');
}

my $r = $t->post('/v1/conversations', {},
                 headers => ['x-api-key', 'a', 'x-api-key', 'b']);
is($r->{status}, 400, 'for conversations as well');
like($r->{json}{error}{message}, qr/"x-api-key" must not be repeated/,
     'the error names the header');


# each request of a connection has its own

my $http = $t->connect;
$http->send(join '', map {
    $http->format_request('POST', '/v1/chat/completions',
        type => 'application/json', body => json_encode(ask("pipe$_")),
        headers => $_ ? ['Authorization', "Bearer p$_"] : [])
} 0 .. 3, 0);
$http->response for 0 .. 4;

my @got = map { /tenant=(\w+) .*\bpipe\d/ ? $1 : () } submitted($fake);
is_deeply(\@got, [ map { sha256_hex($_) } '', qw/ p1 p2 p3 /, '' ],
          'pipelined requests');

my $h = DSA::HTTP2->new(port => $t->port(1));
my @ids = map { $h->request('POST', '/v1/chat/completions',
                            json_encode(ask("frame$_")),
                            $_ ? ['authorization', " Bearer h$_ "] : []) }
          0 .. 3;
$h->until(sub { !grep { !$h->ended($_) } @ids });

my %got = map { /tenant=(\w+) .*\bframe(\d)/ ? ($2 => $1) : () }
          submitted($fake);
is_deeply(\%got, { 0 => $anonymous, map { $_ => sha256_hex("h$_") } 1 .. 3 },
          'streams of an HTTP/2 connection');


# repeated headers over HTTP/2, and headers of anything

@ids = map { $h->request('POST', '/v1/chat/completions',
                         json_encode(ask('odd')), $_) }
    ['authorization', 'Bearer a', 'authorization', 'Bearer b'],
    ['x-api-key', 'a', 'x-api-key', 'b'];
$h->until(sub { !grep { !$h->ended($_) } @ids });
is(scalar(grep { $h->status($_) eq '200' } @ids), 0,
   'repeated headers over HTTP/2 are refused');

srand 4711;
my ($worker) = $t->workers;
my $served = 0;

for my $n (1 .. 200) {
    my $value = join '', map { chr((33 .. 126, 128 .. 255)[rand 222]) }
                         1 .. 1 + int rand 40;
    my $name = (qw/ Authorization x-api-key Content-Type /)[rand 3];
    my $r = $t->post('/v1/chat/completions', ask('fuzz'),
                     headers => [$name, ('', 'Bearer ')[rand 2] . $value]);

    $served++ if $r->{status} == 200;
    fail("status $r->{status}") if $r->{status} !~ /^(?:200|400|415)$/;
}

cmp_ok($served, '>', 50, 'random headers: some are served');
is(join(' ', $t->workers), $worker, 'and the worker lives');


# client certificates

my $cert = sha256_hex("\0certificate\0" . fingerprint('anna'));

is(by_certificate(2, 'anna', '/v1'), $cert, 'a verified certificate');
is(by_certificate(2, 'otto', '/v1'),
   sha256_hex("\0certificate\0" . fingerprint('otto')), 'another one');
is(by_certificate(2, '', '/v1'), $anonymous, 'no certificate');
is(by_certificate(2, 'anna', '/v1', '-H', 'Authorization: Bearer sk-1'),
   $key, 'a key comes before a certificate');
is(by_certificate(2, 'anna', '/v1', '-H', 'Authorization: Bearer'), $cert,
   'an empty one does not');
is(by_certificate(3, 'stranger', '/v1'), $anonymous,
   'a certificate that is not verified');
is(by_certificate(3, 'anna', '/v1'), $cert, 'beside one that is');
isnt(tenant(['Authorization', 'Bearer ' . fingerprint('anna')]), $cert,
     'a key that spells the fingerprint is not the certificate');

my ($status, $body) = curl(2, 'anna', '/v1/conversations', '-H',
                           'Content-Type: application/json', '-d', '{}');
is($status, 200, 'a conversation of a certificate');
my $uri = '/v1/conversations/' . json_decode($body)->{id};
is((curl(2, 'anna', $uri))[0], 200, 'its owner reads it');
is((curl(2, 'otto', $uri))[0], 404, 'another certificate does not');
is((curl(2, '', $uri))[0], 404, 'nor does anybody without one');
is((curl(2, '', $uri, '-H',
         'Authorization: Bearer ' . fingerprint('anna')))[0],
   404, 'nor does a key that spells the fingerprint');

is(by_certificate(2, 'anna', '/named'),
   sha256_hex("\0dsa_tenant\0" . fingerprint('anna')),
   'dsa_tenant $ssl_client_fingerprint');
is(by_certificate(2, '', '/named', '-H', 'Authorization: Bearer sk-1'),
   "private $anonymous", 'without a certificate there is no tenant');


# dsa_tenant

my @anna = ('Authorization', basic('anna', 'a'));
my @otto = ('Authorization', basic('otto', 'o'));

sub named { sha256_hex("\0dsa_tenant\0$_[0]") }

is(tenant(\@anna, '/user'), named('anna'), 'dsa_tenant $remote_user');
is(tenant(\@otto, '/user'), named('otto'), 'another user');
is(tenant([@anna, 'x-api-key', 'sk-1'], '/user'), named('anna'),
   'it replaces the key');
is(tenant([@anna, 'x-api-key', 'a', 'x-api-key', 'b'], '/user'),
   named('anna'), 'however often a key comes');
is(tenant(['Authorization', basic('anna', 'wrong')], '/user'),
   'refused with 401', 'a wrong password');
isnt(tenant(['Authorization', 'Bearer anna']), named('anna'),
     'a key that spells the name is another tenant');
is(tenant([], '/arg?tenant=x'), named('x'), 'any variable');
is(tenant(['X-Ticket', 'olga'], '/who'), named('olga'),
   'what auth_request has set');
is(tenant([], '/who'), "private $anonymous", 'if it has');
is(tenant([], '/arg/own?tenant=x'), named('n-x'),
   'an inner location has its own value');
is(tenant([], '/arg/inherited?tenant=x'), named('x'), 'or inherits it');
is(tenant(\@anna, '/redirect'), named('anna'),
   'an internal redirect to a location that has it');
is(tenant([], '/redirect'), 'refused with 401',
   'which passes through its access phase');

$r = $t->post('/user/conversations', {}, headers => \@anna);
is($r->{status}, 200, 'a conversation of a user');
$uri = "/conversations/$r->{json}{id}";

is($t->get("/user$uri", headers => \@anna)->{status}, 200, 'read by its user');
is($t->get("/user$uri", headers => \@otto)->{status}, 404,
   'but not by another user');
is($t->get("/v1$uri", headers => \@anna)->{status}, 404,
   'nor elsewhere with the password as the key');
is($t->get("/v1$uri", headers => ['x-api-key', 'anna'])->{status}, 404,
   'nor with the name as the key');


# no tenant

my $empty = '/arg/chat/completions';

is(tenant([], '/arg'), "private $anonymous", 'an empty value: no tenant');
is(tenant(['Authorization', 'Bearer sk-1'], '/arg'), "private $anonymous",
   'whatever the key is');
is(tenant([], '/open'), "private $anonymous", 'satisfy any without a user');

$r = $t->post($empty, ask('x', conversation => 'conv_' . '0' x 32));
is($r->{status}, 403, 'a conversation is refused');
is($r->{json}{error}{param}, 'conversation', 'by the name of the field');
like($r->{json}{error}{message}, qr/dsa_tenant/, 'and the directive');

for my $case ([ POST => '' ], map { [ $_ => '/conv_' . '0' x 32 ] }
              qw/ GET HEAD DELETE /)
{
    my ($method, $id) = @$case;
    my $r = $t->request($method, "/arg/conversations$id",
                        $method eq 'POST' ? (type => 'application/json',
                                             body => '{}') : ());

    is($r->{status}, 403, "$method conversations$id");
    is($r->{json}{error}{code}, 'forbidden', 'in the API\'s shape')
        if $method ne 'HEAD';
}

is(DSA::HTTP->gather($t->stream(ask('s'), uri => $empty)->events)->{done}, 1,
   'a stream ends well without a tenant');

# entries are written in the order of their requests: when that of a tenant is
# there, those before it are as well

my $own = 'dsa1:{' . substr(named('x'), 0, 32) . '}:ledger:*';

wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 20,
           'the entries before them');

my ($all, $x) = map { entries($_) } 'dsa1:*:ledger:*', $own;

is($t->post($empty, ask('x'))->{status}, 200, 'a chat without a tenant');
is($t->post("$empty?tenant=x", ask('x'))->{status}, 200, 'and with one');
wait_until(sub { entries($own) == $x + 1 }, 20, 'the ledger');
is(entries('dsa1:*:ledger:*'), $all + 1, 'nothing is stored without a tenant');
is($t->logged(qr/ledger entry is lost/), 0,
   'and no entry is reported as lost');


# the variable

$r = $t->post('/early/chat/completions', ask('x'), headers => \@anna);
is($r->{headers}{'x-early'}, '[]',
   '$dsa_tenant is empty before the content phase');

my $log = wait_until(sub { my $s = read_file("$dir/tenant.log");
                           $s =~ m{^/early/.*\n}m && $s }, 10, 'the log');
my $hex = substr named('anna'), 0, 32;
like($log, qr{^/early/chat/completions \[$hex\]$}m, 'in the log it is there');
like($log, qr{^/arg/chat/completions \[-?\]$}m, 'without a tenant it is empty');
unlike($log, qr/\Q$anonymous\E/, 'and names nobody');


# a subrequest is not served

is(tenant([], '/asked'), 'refused with 500', 'auth_request to dsa_pass');
is($t->logged(qr/subrequest/) > 0, 1, 'is logged');

($status, my $out) = $t->nginx_test(
    location => 'dsa_tenant a; dsa_tenant b;');
is($status, 1, 'dsa_tenant twice');
like($out, qr/"dsa_tenant" directive is duplicate/, 'is refused');

$t->done;
