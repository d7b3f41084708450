#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# TLS to Redis of those that are not nginx: the commands of dsa, and the cache
# of an engine.  Certificates that are not accepted are errors that name what is
# wrong; peers without TLS and peers that stop in the handshake end nothing.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Process;
use DSA::Test;
use DSA::TLS;
use IO::Socket::INET;
use Test::More;

my $t = DSA::Test->new('redis-tls-clients');
my $dir = $t->dir;
my $dsa = $t->build . '/dsa';
my $page = 64;

make_ca($dir, 'ca');
make_ca($dir, 'other');
make_certificate($dir, 'ca', 'ip', 'IP:127.0.0.1');
make_certificate($dir, 'ca', 'named', 'DNS:redis.test');
make_certificate($dir, 'ca', 'ended', 'IP:127.0.0.1', -1);
make_certificate($dir, 'ca', 'client', 'DNS:client.test');


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


# Exit status, stdout and stderr of dsa.

sub dsa {
    my (@args) = @_;

    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>', $t->path('err');
        exec $dsa, @args or POSIX::_exit(127);
    }

    my $out = do { local $/; <$fh> } // '';
    close $fh;

    return ($? >> 8, $out, read_file($t->path('err')));
}


# A peer that accepts and closes when it has the first bytes of the handshake.

my $closes = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 64)
    or die "listen: $!\n";
my $closing = '127.0.0.1:' . $closes->sockport;

$t->daemon('closes', sub {
    while (my $s = $closes->accept) {
        sysread $s, my $bytes, 5;
        close $s;
    }
});

my ($redis, $address) = redis_with('ip');
my (undef, $named) = redis_with('named');
my (undef, $ended) = redis_with('ended');
my ($strict_redis, $strict) = redis_with('ip', 'tls-auth-clients' => 'yes');
my $plain = '127.0.0.1:' . $redis->port;

# where, parameters as those of dsa_redis, and what is wrong: none is served

my @cases = (
    [ 'the CA', $address, 'tls_ca=ca.pem', undef ],
    [ 'a name', $named, 'tls_ca=ca.pem tls_name=redis.test', undef ],
    [ 'not verified', $address, 'tls_ca=other.pem tls_verify=off', undef ],
    [ 'a certificate', $strict, 'tls_ca=ca.pem tls_certificate=client.pem '
      . 'tls_key=client.key', undef ],
    [ 'another CA', $address, 'tls_ca=other.pem',
      qr/not accepted: \d+, .*, for the name 127\.0\.0\.1; expected one of a CA/
    ],
    [ 'the CAs of the system', $address, '',
      qr/not accepted: \d+, .*expected one of a CA in the file of tls_ca=/ ],
    [ 'another name', $named, 'tls_ca=ca.pem',
      qr/mismatch, for the name 127\.0\.0\.1; expected one .*tls_name=/ ],
    [ 'a wrong name', $named, 'tls_ca=ca.pem tls_name=wrong.test',
      qr/mismatch, for the name wrong\.test;/ ],
    [ 'expired', $ended, 'tls_ca=ca.pem',
      qr/has expired, .*expected one that is valid now/ ],
    [ 'no certificate', $strict, 'tls_ca=ca.pem',
      qr/expected tls_certificate= and tls_key=/ ],
    [ 'a port without TLS', $plain, 'tls_ca=ca.pem',
      qr/handshake of TLS failed, expected a port of TLS/ ],
    [ 'closes in the handshake', $closing, 'tls_ca=ca.pem',
      qr/handshake of TLS failed.*(?:closed the connection|reset by peer)/ ],
);


# the commands of dsa

sub options {
    my ($parameters) = @_;

    return '--tls', map {
        my ($name, $value) = split /=/;
        $value = "$dir/$value" if $value =~ /\.(?:pem|key)$/;
        ('--' . $name =~ tr/_/-/r, $value);
    } split / /, $parameters;
}

for (@cases) {
    my ($name, $where, $parameters, $error) = @$_;
    my ($rc, $out, $err) = dsa(qw/ key create --name a --redis /, $where,
                               options($parameters));

    if (!defined $error) {
        is($rc, 0, "dsa: $name") or diag($err);
        like($out, qr/sk-dsa-/, 'a key');
        next;
    }

    isnt($rc, 0, "dsa: $name");
    like($err, qr/\Q$where\E: .*$error/, 'with the reason');
}

is($t->redis($redis)->cmd('HLEN', 'dsa1:{keys}:id'), 2,
   'the keys are in this Redis');

for ([ 'without --tls', qr/expected --tls as well/, '--tls-ca', 'x' ],
     [ 'a Unix socket', qr/no TLS; expected HOST:PORT/, '--tls', '--redis',
       "unix:$dir/x" ],
     [ 'no file', qr/tls_ca=\S+none\.pem cannot be used: No such file/,
       '--tls', '--tls-ca', "$dir/none.pem" ],
     [ 'no key', qr/expected both or none/, '--tls', '--tls-certificate',
       "$dir/client.pem" ],
     [ 'another key', qr/tls_key=.*key values mismatch/, '--tls',
       '--tls-certificate', "$dir/client.pem", '--tls-key', "$dir/ip.key" ],
     [ 'verify', qr/expected on or off/, '--tls', '--tls-verify', 'no' ])
{
    my ($name, $error, @args) = @$_;
    my ($rc, $out, $err) = dsa(qw/ key list --redis /, $address, @args);

    isnt($rc, 0, "dsa: $name");
    like($err, $error, 'with the reason');
}


# a reply that is longer than a record of TLS, and than the engine's buffer

for (1 .. 80) {
    dsa(qw/ key create --redis /, $address, options('tls_ca=ca.pem'), '--name',
        'n' x 60);
}

my ($rc, $out, $err) = dsa(qw/ key list --json --redis /, $address,
                           options('tls_ca=ca.pem'));

is($rc, 0, 'dsa key list') or diag($err);
is(scalar(() = $out =~ /n{60}/g), 80, 'has the keys');


# the cache of an engine: pages are written and read with TLS

sub cache {
    my ($where, $parameters) = @_;

    return "$where tls connections=2 ttl=1h " . join ' ', map {
        s{=(\S+\.(?:pem|key))$}{=$dir/$1}r
    } split / /, $parameters;
}

my %conf = (model => "$DSA::Test::root/demo/model", name => 'demo',
            backend => 'cpu', kv_memory => '12m', host_memory => '64m');
my $engine = $t->start_engine(conf => {
    %conf, redis_cache => cache($strict, 'tls_ca=ca.pem '
        . 'tls_certificate=client.pem tls_key=client.key') });

$t->start_nginx();

sub chat {
    my ($text, %more) = @_;

    my $r = $t->post('/v1/chat/completions',
                     ask($text, max_tokens => 8, temperature => 0, seed => 1,
                         logprobs => JSON::PP::true, %more));

    is($r->{status}, 200, 'answered') or diag($r->{body});

    return ($r->{json}{choices}, $r->{json}{usage});
}

# A session with nginx says nothing about the cache, whose handshakes may take
# longer: until its server is on, no page is written or found.

sub cache_on {
    wait_until(sub {
        my $all = $t->metrics;
        my ($name) = grep { /^dsa_engine_tier_servers_on\{.*tier="redis"/ }
                     keys %$all;

        return $name && $all->{$name} == 1;
    }, 30, 'the cache to be on');
}

cache_on();

my $prompt = 'one ' . 'cat dog ' x 540;
my ($computed, $usage) = chat($prompt);
my $hit = int(($usage->{prompt_tokens} - 1) / $page) * $page;

chat("$_ " . 'sun ' x 450, max_tokens => 1) for 1 .. 4;
wait_until(sub { $hit / $page <= grep { /^dsa1:kv:/ }
                 DSA::Redis->new(port => $strict_redis->port)->keys }, 60,
           'the pages in Redis');

# An engine computes a prompt if reading its pages is not faster, and on a busy
# machine the first page may come too late, so that several engines may be
# needed until one has read all of them.

my ($answer, $found);

for (1 .. 10) {
    $engine->stop();
    wait_until(sub { $t->metrics->{dsa_sessions} == 0 }, 20, 'no session');
    $engine->restart();
    wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 20, 'a session');
    cache_on();

    ($answer, $usage) = chat($prompt);
    $found = $usage->{prompt_tokens_details}{redis_tokens};
    last if $found == $hit;
}

is($found, $hit, 'found in Redis');
is_deeply($answer, $computed, 'the same answer');


# what is not accepted: the engine logs it, and serves without the cache

for (grep { defined $_->[3] } @cases) {
    my ($name, $where, $parameters, $error) = @$_;
    my $e = $t->start_engine(name => 'e' . $where =~ tr/0-9//cdr . length $name,
        wait => 0, conf => { backend => 'null', host_memory => '64m',
        redis_cache => cache($where, $parameters) });

    ok(eval { wait_until(sub { $e->output =~ /\Q$where\E is off: .*$error/ },
                         30, $name) }, "engine: $name")
        or diag($e->output);
    ok($e->alive, 'it runs');
    $e->stop();
}

$t->done;
