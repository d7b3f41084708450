#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# TLS to the Redis of the state: certificates, names, and what the log says when
# they are not accepted.  No engine is needed, because conversations can be
# created and read without one.

use strict;
use warnings;

use lib 't/lib';
use DSA::Cluster;
use DSA::Test;
use DSA::TLS;
use IO::Socket::INET;
use Test::More;

my $t = DSA::Test->new('redis-tls');
my $dir = $t->dir;
my $id = 'conv_00112233445566778899aabbccddeeff';

make_ca($dir, 'ca');
make_ca($dir, 'other');
make_certificate($dir, 'ca', 'ip', 'IP:127.0.0.1');
make_certificate($dir, 'ca', 'named', 'DNS:redis.test');
make_certificate($dir, 'ca', 'ended', 'IP:127.0.0.1', -1);
make_certificate($dir, 'ca', 'nginx', 'DNS:nginx.test');


sub conf {
    my ($directive) = @_;

    # what may take long on a busy machine; a later parameter counts

    $directive =~ s/^dsa_redis [^ ;]+/$& timeout=20s connect_timeout=20s/;

    return <<"EOC";
%%GLOBALS%%
events { worker_connections 512; }
http {
    %%HTTP%%
    client_max_body_size 8m;
    $directive
    dsa_pool none { engine unix:%%DIR%%/none.sock; }
    server {
        listen 127.0.0.1:%%PORT%%;
        location /v1/ { dsa_pass none; }
        location = /up { return 200; }
    }
}
EOC
}


# A Redis with a port of TLS and one without it, which the test uses.

sub redis_with {
    my ($name, %more) = @_;

    my $port = $t->free_port;
    my $redis = $t->start_redis(conf => {
        'tls-port' => $port, 'tls-cert-file' => "$dir/$name.pem",
        'tls-key-file' => "$dir/$name.key",
        'tls-ca-cert-file' => "$dir/ca.pem", 'tls-auth-clients' => 'no',
        %more });

    return ($redis, "127.0.0.1:$port");
}


sub reload {
    my ($parameters) = @_;

    $t->reload(conf => conf("dsa_redis $parameters;"));
    wait_until(sub { $t->workers == 1 }, 30, 'the old worker to leave');

    return;
}


sub conversation { $t->get("/v1/conversations/$id") }

sub errors { return scalar grep { /\[error\]/ && /$_[0]/ && !/refused with/ }
                           split /\n/, $t->error_log }


sub served {
    my ($name) = @_;

    wait_until(sub { conversation()->{status} == 404 }, 30, $name);
    pass($name);

    return;
}


# With these parameters, Redis is not used.  The log has the reason once,
# however often nginx tries again.

sub refused {
    my ($name, $parameters, $re) = @_;

    my $errors = errors($re);

    reload($parameters);
    wait_until(sub { errors($re) > $errors }, 30, $name);

    my $more = () = $t->error_log =~ /\[info\].*$re/g;

    wait_until(sub { (() = $t->error_log =~ /\[info\].*$re/g) > $more + 1 },
               30, "$name: more attempts");
    is(errors($re), $errors + 1, "$name: is logged once");
    is(conversation()->{status}, 503, "$name: a conversation");
    is($t->get('/up')->{status}, 200, "$name: other locations are served");

    return;
}


# the directive

for my $case (
    [ 'tls_ca=%%DIR%%/ca.pem', qr/parameter of TLS without "tls"/ ],
    [ 'tls_verify=off', qr/parameter of TLS without "tls"/ ],
    [ 'tls tls_verify=maybe', qr/expected on or off/ ],
    [ 'tls tls_ca=', qr/expected a file with certificates/ ],
    [ 'tls tls_ca=%%DIR%%/none.pem', qr/none\.pem.*No such file/ ],
    [ 'tls tls_ca=%%DIR%%/ca.key', qr/ca\.key/ ],
    [ 'tls tls_certificate=%%DIR%%/nginx.pem', qr/expected both or none/ ],
    [ 'tls tls_key=%%DIR%%/nginx.key', qr/expected both or none/ ],
    [ 'tls tls_certificate=%%DIR%%/nginx.pem tls_key=%%DIR%%/ip.key',
      qr/key values mismatch|ip\.key/ ],
    [ 'tls unix:/tmp/redis.sock', qr/on which Redis has no TLS/ ],
    [ 'tlss', qr/invalid parameter "tlss"; .*tls_verify=/ ])
{
    my ($parameters, $want) = @$case;
    my ($rc, $out) = $t->nginx_test(
        conf => conf("dsa_redis 127.0.0.1:1 $parameters;"));

    ok($rc != 0 && $out =~ $want, $parameters) or diag($out);
}

my ($rc, $out) = $t->nginx_test(conf => conf(
    'dsa_redis [::1]:1 tls tls_ca=%%DIR%%/ca.pem tls_name=redis.test '
    . 'tls_certificate=%%DIR%%/nginx.pem tls_key=%%DIR%%/nginx.key '
    . 'tls_verify=on;'));
is($rc, 0, 'all parameters') or diag($out);


# a certificate for the address

my ($redis, $address) = redis_with('ip');
my $ca = 'tls tls_ca=%%DIR%%/ca.pem';

$t->start_nginx(conf => conf("dsa_redis $address $ca;"));
served('a certificate of the CA for the address');

my $made = $t->post('/v1/conversations', '{}');
is($made->{status}, 200, 'a conversation is stored');
is($t->redis($redis)->cmd('EXISTS', grep { /:c:/ } $t->redis($redis)->keys), 1,
   'in this Redis');

# commands and replies that are larger than a record of TLS and than the buffers
# of sockets

my $large = join '', map { chr(97 + $_ % 26) } 1 .. 3_000_000;
my $uri = "/v1/conversations/$made->{json}{id}";

$made = $t->post('/v1/conversations', json_encode({
    items => [ { role => 'user', content => $large } ] }));
is($made->{status}, 200, '3 MB are stored') or diag($made->{body});
$uri = "/v1/conversations/$made->{json}{id}";
is($t->get($uri)->{json}{messages}[0]{content}, $large, 'and read as they are');

# the server is restarted, and closes connections

$t->redis($redis)->cmd(qw/ CLIENT KILL TYPE normal SKIPME yes /);
served('after a connection was closed');
$redis->kill9;
wait_until(sub { conversation()->{status} == 503 }, 30, 'Redis to be away');
$redis->restart;
served('after a restart of Redis');
unlike($t->error_log, qr/SSL.*(?:\[crit\]|\[alert\])/, 'no alerts of OpenSSL');


# certificates that are not accepted

refused('another CA', "$address tls tls_ca=%%DIR%%/other.pem",
        qr/not accepted: "\d+, [^"]*for the name 127.*one of a CA .*tls_ca=/);
refused('the CAs of the system', "$address tls",
        qr/not accepted: "\d+, [^"]*for the name 127.*one of a CA .*tls_ca=/);
reload("$address tls tls_ca=%%DIR%%/other.pem tls_verify=off");
served('without verification');

my (undef, $ended) = redis_with('ended');
refused('expired', "$ended $ca",
        qr/not accepted: .*has expired.*expected one that is valid/);

my (undef, $named) = redis_with('named');
refused('another name', "$named $ca",
        qr/mismatch, for the name 127\.0\.0\.1; expected one .*tls_name=/);
refused('a wrong tls_name', "$named $ca tls_name=wrong.test",
        qr/mismatch, for the name wrong\.test;/);
reload("$named $ca tls_name=redis.test");
served('tls_name');

# nothing is sent to a server whose certificate is not accepted

my $secret = write_file($t->path('secret'), "s3cret\n");
chmod 0600, $secret;
my $sni = $t->free_port;
my $server = $t->spawn('s_server', qw/ openssl s_server -www -tlsextdebug
                                       -accept /, $sni, '-cert',
                       "$dir/named.pem", '-key', "$dir/named.key");
wait_until(sub { IO::Socket::INET->new("127.0.0.1:$sni") }, 20, 's_server');

reload("127.0.0.1:$sni $ca tls_name=wrong.test password_file=%%DIR%%/secret");
wait_until(sub { errors(qr/wrong\.test;/) > 1 }, 30, 'a refusal');
unlike($server->output, qr/s3cret|AUTH/, 'no password for a wrong name');
my $dump = $server->output =~ s/^[0-9a-f]{4} - .{48}//mgr =~ s/\n//gr;
like($server->output, qr/server name/, 'SNI');
like($dump, qr/wrong\.test/, 'has the name');


# certificates of nginx

my (undef, $strict) = redis_with('ip', 'tls-auth-clients' => 'yes');
refused('no certificate of nginx', "$strict $ca",
        qr/expected "tls_certificate" and/);
reload("$strict $ca tls_certificate=%%DIR%%/nginx.pem "
       . 'tls_key=%%DIR%%/nginx.key');
served('with a certificate of nginx');


# peers without TLS, and peers that stop

# a Redis without TLS waits for the end of a line

refused('a port without TLS',
        "127.0.0.1:$redis->{port} $ca connect_timeout=1s",
        qr/handshake with Redis failed; expected a port/);
refused('TLS without "tls"', $address,
        qr/before it replied; .*expected "tls"/);

my $deaf = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 64)
    or die "listen: $!\n";
reload('127.0.0.1:' . $deaf->sockport . " $ca connect_timeout=200ms");
wait_until(sub { errors(qr/handshake with Redis failed.*\(110:/) }, 30,
           'the timeout of the handshake');
is(conversation()->{status}, 503, 'a peer that is silent');
is($t->get('/up')->{status}, 200, 'does not stop the worker');
reload("$address $ca");
served('another Redis after it');


# a Sentinel with TLS names the port of TLS of its primary

my $port = $t->free_port;

write_file($t->path('sentinel.conf'), <<"EOC");
port 0
tls-port $port
tls-cert-file $dir/ip.pem
tls-key-file $dir/ip.key
tls-ca-cert-file $dir/ca.pem
tls-auth-clients no
tls-replication yes
bind 127.0.0.1
dir $dir
daemonize no
sentinel monitor mymaster @{[ $address =~ s/:/ /r ]} 1
EOC

$t->spawn('sentinel', 'redis-server', $t->path('sentinel.conf'), '--sentinel');
reload("127.0.0.1:$port sentinel=mymaster $ca");
served('the primary of a Sentinel');

# a cluster: a redirect of a connection with TLS names a port of TLS

my @tls = map { $t->free_port } 1 .. 2;
my $cluster = DSA::Cluster->new($t, masters => 2, conf => sub { {
    'tls-port' => $tls[$_[0]], 'tls-cert-file' => "$dir/ip.pem",
    'tls-key-file' => "$dir/ip.key", 'tls-ca-cert-file' => "$dir/ca.pem",
    'tls-auth-clients' => 'no', 'tls-cluster' => 'yes' } });

for my $port (@tls) {
    reload("127.0.0.1:$port $ca");
    served("a cluster, from node $port");
    $made = $t->post('/v1/conversations', '{}');
    is($made->{status}, 200, 'it has the conversation') or diag($made->{body});
}

is(scalar(grep { $cluster->cmd($_, qw/ INFO commandstats /)
                 =~ /cmdstat_eval:calls=2/ } 0, 1), 1, 'one node has both');

$t->done;
