# Copyright (C) The nginx-dsa authors
#
# "dsa check": a host that is right has no FAIL, and each thing that is wrong
# has a line with what is expected, and makes the exit status 1.

use strict;
use warnings;

use File::Basename qw/ dirname /;
use Test::More;

use lib 't/lib';
use DSA::Test;
use DSA::TLS;

my $t = DSA::Test->new('check-host');
my $dir = $t->dir;
my $tls = $t->free_port;

make_ca($dir, 'ca');
make_ca($dir, 'other');
make_certificate($dir, 'ca', 'redis', 'IP:127.0.0.1');

my $server = $t->start_redis(conf => {
    'tls-port' => $tls, 'tls-cert-file' => "$dir/redis.pem",
    'tls-key-file' => "$dir/redis.key", 'tls-ca-cert-file' => "$dir/ca.pem",
    'tls-auth-clients' => 'no' });
my $redis = $t->redis;
my $sock = $t->path('e0.sock');

sub setting {
    while (my ($name, $value) = splice @_, 0, 2) {
        $redis->cmd('CONFIG', 'SET', $name, $value);
    }
}

setting(appendonly => 'yes', maxmemory => '200mb',
        'maxmemory-policy' => 'noeviction');
write_file($t->path('password'), "secret\n");
mkdir $t->path('disk');

my %engine = (model => $t->model, backend => 'cpu', kv_memory => '16m',
              listen => "unix:$dir/e%n.sock", replicas => 2);
my $queue = '/var/tmp/dsa-check-' . $$;

mkdir $queue or die "mkdir: $!\n";
END { system 'rm', '-rf', $queue if defined $queue }


sub engine_conf {
    my ($name, %change) = @_;
    my %conf = (%engine, %change);

    return write_file($t->path($name), join '', map { "$_ $conf{$_};\n" }
                      grep { defined $conf{$_} } sort keys %conf);
}

sub nginx_conf {
    my (%change) = (redis => 'queue_file=' . "$queue/q", at => '%%REDIS%%',
                    pool => join(' ', map { "engine unix:$dir/e$_.sock;" }
                                      0, 1), main => '', @_);

    return write_file($t->path('nginx.conf'), $t->expand(<<"EOC"));
%%GLOBALS%%
$change{main}
events { }
http {
    %%HTTP%%
    # } a comment; with marks {
    map \$arg_a \$b { default "a;b{c}"; '~x"\\'y' \${arg_c}; }
    dsa_pool "v32" { $change{pool} }
    dsa_redis $change{at} $change{redis};
    server { listen 127.0.0.1:%%PORT%%; location / { dsa_pass v32; } }
}
EOC
}

# (exit status, output) of dsa check for these files and options.

sub check {
    my ($nginx, @args) = @_;

    # nginx of the same kind, with which "nginx -T" need not free its memory

    my $env = $t->sanitizer_env('check');
    local @ENV{keys %$env} = values %$env;

    $ENV{ASAN_OPTIONS} .= ':detect_leaks=0';

    open my $fh, '-|', 'sh', '-c', 'PATH="$1:$PATH"; shift; exec "$@" 2>&1',
        '-', join(':', $t->build, dirname($t->{nginx})), 'dsa', 'check',
        '--nginx', $nginx, @args
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}

sub finds {
    my ($what, $rc, $re, @args) = @_;
    my ($got, $out) = check(@args);

    is($got, $rc, "$what: the exit status") or diag $out;
    like($out, $re, $what);
    like($out, qr/^\d+ failed, \d+ warnings\n\z/m, "$what: the sum");

    return $out;
}


# all is right, before and while an engine runs

my @good = (nginx_conf(), '--engine', engine_conf('one.conf'), '--rate', 10);
my $out = finds('engines that are not started', 0,
                qr/^warn  \Q$sock\E: no engine listens: No such file/m, @good);

like($out, qr/^ok    nginx: it accepts/m, 'nginx');
like($out, qr/^ok    engine: dsa-engine [\d.]+$/m, 'the version of the engine');
like($out, qr{^ok    \S+/one\.conf: .* is valid$}m, 'the engine');
like($out, qr/^ok    memory: the pages of all engines take 32 MB of \d+ MB/m,
     'memory');
like($out, qr/^ok    queue: without Redis it lasts 2000 s/m, 'the queue');
like($out, qr/^ok    disk: \Q$queue\E has room for/m, 'the disk');
like($out, qr/^ok    dsa_redis: \S+ answers; it uses \d+ of 200 MB/m, 'Redis');
like($out, qr/^(?:ok|warn) +clock: .* differs by \d s/m, 'the clock');
unlike($out, qr/^FAIL/m, 'nothing has failed');

my $engine = $t->start_engine(conf => { backend => 'null' });
my $pool = 'engine unix:' . $engine->sock . ';';

$out = finds('an engine that runs', 0,
             qr/^ok    \Q${\ $engine->sock }\E: an engine listens$/m,
             nginx_conf(pool => $pool), '--engine',
             engine_conf('two.conf', replicas => 1,
                         listen => 'unix:' . $engine->sock));
$engine->stop;


# what is wrong with nginx and the engines

finds('nginx rejects its configuration', 1,
      qr/^FAIL  nginx: .*\[emerg\].* unknown directive "nonsense"/m,
      nginx_conf(main => 'nonsense;'));
finds('a socket of no engine', 1,
      qr{^FAIL  \Q$dir\E/none\.sock: .*"listen unix:\Q$dir\E/none\.sock;"}m,
      nginx_conf(pool => "engine unix:$dir/none.sock;"), '--engine',
      $t->path('one.conf'));
finds('a socket of no pool', 0,
      qr{^warn  \Q$dir\E/e1\.sock: an engine of \S+ listens here, but no}m,
      nginx_conf(pool => "engine unix:$dir/e0.sock;"), '--engine',
      $t->path('one.conf'));
finds('an engine that does not fit', 1,
      qr{^FAIL  \S+/big\.conf: dsa-engine: .*"kv_memory" }m, nginx_conf(),
      '--engine', engine_conf('big.conf', kv_memory => '90000g'));
finds('a model that is missing', 1, qr{^FAIL  \S+/no\.conf: .*"model" is "/no}m,
      nginx_conf(), '--engine', engine_conf('no.conf', model => '/none'));
finds('a configuration that is missing', 1, qr{^FAIL  .*none\.conf.*No such}m,
      nginx_conf(), '--engine', $t->path('none.conf'));
finds('a configuration of nginx that is a directory', 1,
      qr{^FAIL  nginx: .*\[crit\].*"\Q$dir\E" failed .*directory}m, $dir);

write_file($t->path('circle.conf'), "include $dir/circle.conf;\n");
finds('a file that includes itself', 1,
      qr/^FAIL  nginx: signal .* ended it .*; expected no file that includes/m,
      nginx_conf(main => "include $dir/circle.conf;"));

$out = finds('control characters', 1,
             qr{^warn  /tmp/a\\x1b\[31m\\x07: an engine of}m, nginx_conf(),
             '--engine', engine_conf('escape.conf', replicas => 1,
                                     listen => "unix:/tmp/a\e[31m\a"));
unlike($out, qr/[^\n\x20-\x7e]/, 'they are not printed');
finds('a zero byte', 1, qr{^FAIL  \S+/zero\.conf: dsa-engine: }m,
      nginx_conf(), '--engine', engine_conf('zero.conf', threads => "1;\0"));
unlike((check(nginx_conf(), '--engine', $t->path('zero.conf')))[1],
       qr/unexpected/, 'and no other error is found');

# sockets are compared in pairs

my $long = 'many' x 10;

finds('1,536 sockets', 1, qr{^warn  \Q$dir/$long\E5\.255\.sock: an engine}m,
      nginx_conf(pool => "engine unix:$dir/one.sock;"),
      map { ('--engine', engine_conf("many$_.conf", replicas => 256,
                                     backend => 'null', kv_memory => undef,
                                     listen => "unix:$dir/$long$_.%n.sock")) }
      0 .. 5);
finds('two engines with a socket', 1,
      qr{^FAIL  \Q$sock\E: \S+one\.conf and \S+copy\.conf both listen here}m,
      nginx_conf(), '--engine', $t->path('one.conf'), '--engine',
      engine_conf('copy.conf'));

my @gpus = map { engine_conf("gpu$_->[0].conf", backend => 'cuda',
                             gpus => $_->[1], replicas => 1,
                             listen => "unix:$dir/g$_->[0].sock") }
           [ 0, 2 ], [ 1, '3,1' ];

finds('two engines with a GPU', 1,
      qr{^FAIL  \S+gpu1\.conf: GPU 1 is also one of \S+gpu0\.conf}m,
      nginx_conf(), map { ('--engine', $_) } @gpus);
finds('more memory than there is', 1,
      qr{^FAIL  memory: the pages of all engines take 2097184 MB, but}m,
      nginx_conf(), '--engine', $t->path('one.conf'), '--engine',
      engine_conf('huge.conf', backend => 'null', host_memory => '2048g',
                  replicas => 1, listen => "unix:$dir/h.sock",
                  kv_memory => undef));

SKIP: {
    skip('only root checks groups', 6) if $> != 0;

    my @args = (nginx_conf(), '--engine',
                engine_conf('group.conf', socket_group => 'daemon'));
    my $conf = read_file($args[0]) =~ s/^user .*/user bin;/mr;

    write_file($args[0], $conf);
    finds('a group without the workers', 1,
          qr/^FAIL  \S+group\.conf: .*"bin", which is not in/m, @args);
    write_file($args[0], $conf =~ s/^user .*/user daemon;/mr);
    finds('a group with the workers', 0,
          qr/^ok    \S+group\.conf: nginx's workers \(daemon\) are in/m, @args);
}


# Redis, its queue and its disk

my @one = ('--engine', $t->path('one.conf'));

finds('a queue that is too small for the rate', 0,
      qr/^warn  queue: .* lasts 20 s at 1000 .*ten minutes, queue=600000$/m,
      nginx_conf(), @one, '--rate', 1000);
like((check(nginx_conf(), @one, '--rate', 1000))[1],
     qr/^warn  dsa_redis: .*at 1000 requests.s, .* 16136 MB, and 1\d\d MB/m,
     'and a Redis that is');
finds('a queue in memory', 0, qr{^warn  queue: its file is in /dev/shm, in}m,
      nginx_conf(redis => "queue_file=/dev/shm/dsa-check-$$"), @one);
unlink glob "/dev/shm/dsa-check-$$*";
finds('a queue in the prefix of nginx', 0,
      qr{^warn  queue: its file dsa\.queue is in the prefix of nginx, which}m,
      nginx_conf(redis => 'queue_file=dsa.queue'), @one);
setting(appendonly => 'no');
finds('a Redis that is not durable', 1, qr/^FAIL  .*"appendonly yes"$/m,
      nginx_conf(), @one);
setting(appendonly => 'yes', 'maxmemory-policy' => 'allkeys-lru');
finds('a Redis that evicts', 1, qr/^FAIL  .*"maxmemory-policy noeviction"$/m,
      nginx_conf(), @one);
setting('maxmemory-policy' => 'noeviction', maxmemory => '1mb');
finds('a Redis that is full', 1, qr/^FAIL  .*full to 90 %.*"maxmemory"$/m,
      nginx_conf(), @one);
setting(maxmemory => '200mb', requirepass => 'secret');
finds('a password', 0, qr/^ok    dsa_redis: \S+ answers/m,
      nginx_conf(redis => "queue_file=$queue/q password_file=$dir/password"),
      @one);
finds('no password', 1, qr/^FAIL  dsa_redis: .*NOAUTH/m, nginx_conf(), @one);
finds('TLS', 0, qr/^ok    dsa_redis: 127\.0\.0\.1:$tls answers/m,
      nginx_conf(at => "127.0.0.1:$tls", redis => "queue_file=$queue/q "
                 . "password_file=$dir/password tls tls_ca=$dir/ca.pem"), @one);
finds('TLS with another CA', 1,
      qr/^FAIL  dsa_redis: .*certificate of Redis is not accepted/m,
      nginx_conf(at => "127.0.0.1:$tls", redis => "queue_file=$queue/q "
                 . "password_file=$dir/password tls tls_ca=$dir/other.pem"),
      @one);
# Sentinels, which have a password of their own

my @sentinel = map { sentinel($_) } 1, 2;
my $other = $t->free_port;

sub sentinel {
    my ($n) = @_;

    my $port = $t->free_port;
    my $file = write_file($t->path("sentinel$n.conf"), <<"EOC");
port $port
bind 127.0.0.1
dir $dir
requirepass s3cret
sentinel monitor chat 127.0.0.1 $server->{port} 1
sentinel auth-pass chat secret
EOC

    $t->spawn("sentinel$n", 'redis-server', $file, '--sentinel');

    my $client = { port => $port, password => 's3cret' };

    wait_until(sub { eval { $t->redis($client)->cmd('PING') eq 'PONG' } }, 20,
               'the Sentinel');

    return $client;
}


sub watched {
    my ($name, %change) = @_;

    return nginx_conf(at => join(' ', map { "127.0.0.1:$_->{port}" }
                                      @sentinel),
                      redis => "queue_file=$queue/q sentinel=$name "
                               . "password_file=$dir/password "
                               . 'sentinel_password_file=' . $t->path('s.pw'),
                      %change);
}


write_file($t->path('s.pw'), "s3cret\n");

my ($status, $text) = check(watched('chat'), @one);

is($status, 0, 'Sentinels') or diag($text);
is(scalar(grep { /^ok    dsa_redis: the Sentinel \S+ names the primary /
                 && /127\.0\.0\.1:$server->{port}$/ } split /\n/, $text), 2,
   'each is asked') or diag($text);
like($text, qr/^ok    dsa_redis: 127\.0\.0\.1:$server->{port} answers;/m,
     'and the primary is checked');
finds('a name that no Sentinel has', 1,
      qr/^FAIL  dsa_redis: the Sentinel \S+ monitors no "talk"; expected/m,
      watched('talk'), @one);
finds('Sentinels without their password', 1,
      qr/^FAIL  dsa_redis: .*NOAUTH/m,
      watched('chat', redis => "queue_file=$queue/q sentinel=chat "
                               . "password_file=$dir/password"), @one);
finds('a Redis in place of a Sentinel', 1,
      qr/^FAIL  dsa_redis: \S+ is not a Sentinel; it replied "ERR unknown/m,
      watched('chat', at => "127.0.0.1:$server->{port}",
              redis => "queue_file=$queue/q sentinel=chat "
                       . "password_file=$dir/password sentinel_password_file="
                       . "$dir/password"), @one);
finds('a Sentinel that does not run', 1,
      qr/^FAIL  dsa_redis: .*[Rr]efused; expected a Sentinel/m,
      watched('chat', at => "127.0.0.1:$sentinel[0]{port} 127.0.0.1:$other"),
      @one);
$t->redis($sentinel[1])->cmd('SENTINEL', 'REMOVE', 'chat');
$t->redis($sentinel[1])->cmd('SENTINEL', 'MONITOR', 'chat', '127.0.0.1',
                             $other, 1);
finds('two primaries', 0, qr/^warn  dsa_redis: .*; expected one primary$/m,
      watched('chat'), @one);
finds('a cache that does not evict', 1,
      qr/^warn  redis_cache: .*"maxmemory-policy allkeys-lru"$/m, nginx_conf(),
      '--engine', engine_conf('cache.conf', host_memory => '16m',
                              redis_cache => "127.0.0.1:$server->{port}"
                              . " password_file=$dir/password"));
$server->stop;
finds('no Redis', 1, qr/^FAIL  dsa_redis: .*[Rr]efused; expected a Redis/m,
      nginx_conf(), @one);


# usage

for ([ '--rate', 0 ], [ '--rate', 'x' ], [ 'more' ], [ '--engines' ]) {
    is((check(nginx_conf(), @$_))[0], 2, "wrong usage: @$_");
}

$t->done;
