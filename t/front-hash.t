# Copyright (C) The nginx-dsa authors
#
# $dsa_prefix and dsa_hash in an nginx that has neither engines nor Redis: the
# value depends on what the requests of a conversation have in common, however
# their bodies arrive; equal values go to one server; and a hot value spreads,
# so that no server has more than 1.25 times its share.

use strict;
use warnings;

use Test::More;
use IO::Select;
use IO::Socket::INET;
use List::Util qw/ max sum uniq /;
use Socket qw/ SOMAXCONN /;

use lib 't/lib';
use DSA::HTTP;
use DSA::HTTP2;
use DSA::Test;

my $t = DSA::Test->new('front-hash');

# servers that accept and do not answer

my @held = map {
    IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => SOMAXCONN,
                          Proto => 'tcp') or die "listen: $!\n"
} 1 .. 3;

my $http2 = $t->nginx_version >= 1.025
            ? 'listen 127.0.0.1:%%PORT1%%; http2 on;'
            : 'listen 127.0.0.1:%%PORT1%% http2;';

sub servers { join ' ', map { "server 127.0.0.1:$_ max_fails=0;" } @_ }

sub conf {
    my ($down) = @_;

    my $hosts = servers(map { "%%PORT$_%%" } 2 .. 4);
    my $held = servers(map { $_->sockport } @held);

    $hosts =~ s/(%%PORT$down%%)/$1 down/ if $down;

    return <<"EOC";
%%GLOBALS%%
events { worker_connections 4096; }
http {
    %%HTTP%%
    log_format prefix "\$dsa_prefix";
    access_log %%DIR%%/prefix.log prefix;

    upstream hosts { zone hosts 256k; dsa_hash \$dsa_prefix; $hosts
                     keepalive 4; }
    upstream ring { hash \$dsa_prefix consistent; $hosts }
    upstream held { zone held 256k; dsa_hash \$dsa_prefix; $held }
    upstream dead { dsa_hash \$dsa_prefix; server 127.0.0.1:%%PORT2%%;
                    server 127.0.0.1:%%PORT5%%; server 127.0.0.1:%%PORT6%%; }

    server { listen 127.0.0.1:%%PORT2%%; access_log off; return 200 2; }
    server { listen 127.0.0.1:%%PORT3%%; access_log off; return 200 3; }
    server { listen 127.0.0.1:%%PORT4%%; access_log off; return 200 4; }

    server {
        listen 127.0.0.1:%%PORT%%;
        $http2

        client_max_body_size     1m;
        client_body_buffer_size  300k;
        add_header               X-Prefix  \$dsa_prefix  always;

        location / { proxy_pass http://hosts; }
        location /ring { proxy_pass http://ring; }
        location /held { proxy_pass http://held; }
        location /dead { proxy_pass http://dead; }
        location /unbuffered { proxy_pass http://hosts;
                               proxy_request_buffering off; }
        location /tenant { dsa_tenant \$http_x_tenant;
                           proxy_pass http://hosts; }

        location /early {
            set         \$early   \$dsa_prefix;
            add_header  X-Early  \$early       always;
            add_header  X-Prefix \$dsa_prefix  always;
            proxy_pass  http://hosts;
        }
    }
}
EOC
}

$t->start_nginx(workers => 2, conf => conf());

my @key = (Authorization => 'Bearer sk-one');

sub chat {
    my ($text, @more) = @_;

    return json_encode({ model => 'm', messages => [
        { role => 'system', content => 'Be brief.' },
        { role => 'user', content => $text }, @more ] });
}

sub prefix {
    my ($body, %opt) = @_;

    my $r = $t->request(defined $body || $opt{chunked} ? 'POST' : 'GET',
                        delete $opt{uri} || '/v1/chat/completions',
                        headers => [@key], body => $body, %opt);

    is($r->{status}, 200, 'a server answers');

    return $r->{headers}{'x-prefix'};
}

my $body = chat("hello \"you\" \x{e9}");
my $want = prefix($body);
my $tenant = prefix(undef);

like($want, qr/^[0-9a-f]{32}$/, 'the value');
like($tenant, qr/^[0-9a-f]{32}$/, 'without a body');
isnt($want, $tenant, 'a message counts');

is(prefix(chat("hello \"you\" \x{e9}", { role => 'assistant', content => 'hi' },
               { role => 'user', content => 'and?' })), $want, 'a later turn');
isnt(prefix(chat('hello')), $want, 'another message');
is(prefix($body, headers => [ 'x-api-key' => 'sk-one' ]), $want,
   'the key in the other header');
isnt(prefix($body, headers => [ 'x-api-key' => 'sk-two' ]), $want,
     'another key');
isnt(prefix($body, headers => []), $want, 'no key');
is(prefix($body, uri => '/tenant', headers => [ 'X-Tenant' => 'a', @key ]),
   prefix($body, uri => '/tenant', headers => [ 'X-Tenant' => 'a' ]),
   'dsa_tenant in place of the key');


# in pieces: split at each byte, each byte a chunk, over HTTP/2

my @split = map {
    my $http = $t->connect();

    my $text = $http->format_request('POST', '/v1/chat/completions',
                                     body => $body, headers => [@key]);
    my $at = length($text) - $_;

    $http->send(substr $text, 0, $at);
    $http->send(substr $text, $at);
    $http->response()->{headers}{'x-prefix'};
} 0 .. length($body);

is_deeply([ uniq(@split) ], [$want], 'split at each byte');
is(prefix(undef, chunked => [ split //, $body ]), $want, 'in chunks');

my $h2 = DSA::HTTP2->new(port => $t->port(1));
my $before = () = read_file($t->path('prefix.log')) =~ /\n/g;
my $id = $h2->request('POST', '/v1/chat/completions', $body,
                      [ authorization => 'Bearer sk-one' ]);

$h2->until(sub { $h2->ended($id) });
is($h2->status($id), 200, 'HTTP/2');
wait_until(sub { $before < (() = read_file($t->path('prefix.log')) =~ /\n/g) },
           30, 'the log');
is((split /\n/, read_file($t->path('prefix.log')))[-1], $want,
   'and in the log');
$h2->close();


# not in memory, not to be read, or not there yet

my $long = chat('hello ' . 'x' x 200_000);

isnt(prefix($long), $tenant, 'a long body in memory');
is(prefix(chat('hello ' . 'x' x 400_000)), $tenant, 'in a file');
is(prefix($long, uri => '/unbuffered'), $tenant, 'not read');
is(prefix($body, uri => '/unbuffered'), $want, 'read with the header');
is(prefix("\x1f\x8b\x08abc", headers => [ @key, 'Content-Encoding', 'gzip' ]),
   $tenant, 'compressed');
is(prefix('{"messages":[' x 1000), $tenant, 'no JSON');

my $early = $t->post('/early', $body, headers => [@key]);

is($early->{headers}{'x-early'}, $tenant, 'before the body is read');
is($early->{headers}{'x-prefix'}, $want, 'does not stay');


# equal values have one server, all values together all servers, evenly

sub homes {
    my ($uri) = @_;

    return map { $t->post($uri, chat("message $_"), headers => [@key])->{body}
               } 1 .. 300;
}

my @homes = homes('/v1');
my %n;

$n{$_}++ for @homes;
is_deeply([ sort keys %n ], [ 2, 3, 4 ], 'all servers');
cmp_ok(max(values %n), '<', 145, 'evenly') or diag(explain(\%n));
is_deeply([ homes('/v1') ], \@homes, 'equal values have one server');

my @ring = homes('/ring');

is(scalar(uniq(@ring)), 3, 'nginx\'s hash uses all servers');
is_deeply([ homes('/ring') ], \@ring, 'and has one for a value');

$t->reload(conf => conf(3));
wait_until(sub { $t->workers == 2 }, 30, 'the end of the old workers');

my @less = homes('/v1');
my @moved = grep { $less[$_] ne $homes[$_] } 0 .. $#homes;

is_deeply([ uniq(map { $homes[$_] } @moved) ], [3],
          'without a server only its values move');
is(scalar(uniq(map { $less[$_] } @moved)), 2, 'to both others');

is_deeply([ uniq(map { $t->post('/dead', chat("m $_"), headers => [@key])
                         ->{body} } 1 .. 30) ], [2],
          'servers that refuse are passed over');


# A hot value: the first 32 requests to one server; then at most 1.25 times the
# share of each.

my @open;

sub hold {
    my ($n) = @_;

    for (1 .. $n) {
        my $http = $t->connect();

        $http->send_request('POST', '/held', body => $body, headers => [@key]);
        push @open, $http;

        my ($ready) = IO::Select->new(@held)->can_read(slow(30));

        die "no server gets request $_\n" if !$ready;
        push @{ ${*$ready}{held} }, scalar $ready->accept;
    }

    return sort { $b <=> $a } map { scalar @{ ${*$_}{held} || [] } } @held;
}

# The same by one of both workers, while the other one is stopped.

sub hold_by {
    my ($n, $other) = @_;

    DSA::Process::suspend($other);
    my @counts = hold($n);
    kill 'CONT', $other;

    return @counts;
}

sub let_go {
    $_->close for @open;
    @open = ();
    delete ${*$_}{held} for @held;
}

my @workers = $t->workers;

hold_by(16, $workers[0]);
is_deeply([ hold_by(16, $workers[1]) ], [ 32, 0, 0 ],
          'two workers: a server that is not busy');
is_deeply([ hold_by(1, $workers[0]) ], [ 32, 1, 0 ],
          'the requests of both make it busy');
let_go();

# With one worker, because each worker counts what it has chosen, and the kernel
# gives two workers any part of the requests.

$t->reload(workers => 1, conf => conf());
wait_until(sub { $t->workers == 1 }, 30, 'the end of the old workers');

is_deeply([ hold(32) ], [ 32, 0, 0 ], 'a server that is not busy');
is_deeply([ hold(32) ], [ 32, 32, 0 ], 'then the second');

my @counts = hold(80);

is(sum(@counts), 144, 'all requests');
cmp_ok($counts[0], '<=', 60, 'the busiest has 1.25 times the mean at most')
    or diag("@counts");
cmp_ok($counts[1], '>=', 40, 'and the second as well, before the third')
    or diag("@counts");

let_go();


# the configuration

for ([ '$dsa_prefix bound=0.9',
       qr/invalid parameter "bound=0\.9" of "dsa_hash"; expected "bound=" and /
     ],
     [ '$dsa_prefix bound=101', qr/invalid parameter "bound=101"/ ],
     [ '$dsa_prefix least=0', qr/invalid parameter "least=0"/ ],
     [ '$dsa_prefix least=1 least=2', qr/invalid parameter "least=2"/ ],
     [ '$dsa_prefix most=1', qr/invalid parameter "most=1"/ ],
     [ '$dsa_prefix; dsa_hash $uri',
       qr/"dsa_hash" follows another directive that chooses servers/ ],
     [ '$dsa_nothing', qr/unknown "dsa_nothing" variable/ ])
{
    my ($text, $error) = @$_;
    my ($status, $out) = $t->nginx_test(conf => <<"EOC");
%%GLOBALS%%
events { }
http { %%HTTP%% upstream a { dsa_hash $text; server 127.0.0.1:1; } }
EOC

    isnt($status, 0, "dsa_hash $text");
    like($out, $error, 'with the reason');
}

$t->done;
