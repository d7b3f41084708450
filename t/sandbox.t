#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The engine with each shipped configuration, under the restrictions of the
# shipped unit.  DSA::Sandbox reads them from the unit, so that this test
# follows it.  The network has two hosts: an address that the configurations
# name, and one that the unit must forbid.

use strict;
use warnings;

use IO::Select;
use Socket;
use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Process;
use DSA::Test;
use DSA::Sandbox qw/ %equivalent %without /;
use File::Copy qw/ copy /;

my $root = $DSA::Test::root;
my $file = $ENV{DSA_UNIT} || "$root/conf/systemd/dsa-engine\@.service";
my $t = DSA::Test->new('sandbox');
my $box = $t->path('box');
my $probe = 'unshare --mount --net true 2> /dev/null';

if ($> != 0 || system($probe) != 0) {
    BAIL_OUT('sandbox.t: namespaces need root') if $ENV{DSA_NO_SKIP};
    plan skip_all => 'namespaces need root';
}

my $unit = DSA::Sandbox->new($file, 'test');

# t/README.md lists what has an equivalent

my ($list) = read_file("$root/t/README.md")
             =~ /^## The sandbox\n(.*?)(?:^## |\z)/ms;

for my $name (sort grep { $unit->has($_) } keys %equivalent, keys %without) {
    like($list // '', qr/`\Q$name\E`/, "t/README.md describes $name");
}


# Two network namespaces with a cable between them.  In the first, Redis has two
# addresses.  The second has routes to what the unit allows.

my $allowed = '10.0.0.5';
my $denied = '203.0.113.9';
my @holder = map {
    $t->spawn("net$_", 'unshare', '--net', 'sleep', '86400')
} 0, 1;

sub net { "/proc/" . $holder[$_[0]]->pid . '/ns/net' }

sub inside {
    my ($n, @argv) = @_;

    system('nsenter', '--net=' . net($n), @argv) == 0
        or die "@argv failed\n";
}

for my $n (0, 1) {
    wait_until(sub { (readlink(net($n)) // '') =~ /net/
                     && readlink(net($n)) ne readlink('/proc/self/ns/net') },
               30, 'a network namespace');
    inside($n, qw/ ip link set lo up /);
}

inside(0, qw/ ip link add cable type veth peer name cable netns /,
       $holder[1]->pid);
inside(0, qw/ ip address add dev cable /, "$_/32") for $allowed, $denied;
inside(1, qw/ ip address add dev cable 192.0.2.1\/32 /);
inside($_, qw/ ip link set cable up /) for 0, 1;
inside(0, qw/ ip route add 192.0.2.1 dev cable /);

if ($unit->denies) {
    inside(1, qw/ ip route add prohibit default /);
    inside(1, qw/ ip route add dev cable /, $_)
        for grep { !/^127\./ } $unit->allowed;

} else {
    inside(1, qw/ ip route add default dev cable /);
}

write_file($t->path('redis.conf'), <<"EOC");
bind $allowed $denied
port 6379
unixsocket ${\ $t->path('redis.sock')}
protected-mode no
requirepass secret
save ""
dir ${\ $t->dir}
EOC

my $redis = $t->spawn('redis', 'nsenter', '--net=' . net(0), 'redis-server',
                      $t->path('redis.conf'));
wait_until(sub { -S $t->path('redis.sock') }, 30, 'Redis');

sub kv_keys {
    my $n = `redis-cli -s @{[ $t->path('redis.sock') ]} -a secret \\
             --no-auth-warning --scan --pattern 'dsa1:kv:*' | wc -l`;
    chomp $n;
    return $n;
}


# The directory that the sandbox leaves as it is.

chmod 0755, $t->dir;
mkdir $_ or die "mkdir $_: $!\n" for $box, map { "$box/$_" } qw/ bin run /;

for my $name ('dsa-engine', 't/seccomp') {
    my $to = "$box/bin/" . $name =~ s{.*/}{}r;

    copy($t->build . "/$name", $to) or die "copy $name: $!\n";
    chmod 0755, $to;
}

system('cp', '-r', $t->model, "$box/model") == 0 or die "cp: $?\n";
write_file("$box/cache.pw", "secret\n");

my ($uid) = map { /^--reuid=(\d+)/ ? $1 : () } $unit->privileges;
my ($gid) = map { /^--regid=(\d+)/ ? $1 : () } $unit->privileges;


# Starts a program in the sandbox.

sub sandboxed {
    my ($name, @argv) = @_;

    my @net = $unit->is('PrivateNetwork', 'yes')
              ? ('unshare', '--net') : ('nsenter', '--net=' . net(1));
    my $proc = DSA::Process->start(
        name => $name, dir => $t->dir, env => {
            %{ $t->sanitizer_env($name) },
            ASAN_OPTIONS => 'detect_leaks=0:log_path=/run/dsa/sanitizer',
            NOTIFY_SOCKET => '/run/dsa/notify',
            WATCHDOG_USEC => 1_000_000 * $unit->value('WatchdogSec') },
        argv => [ @net, 'unshare', '--mount', '--propagation', 'private',
                  "$root/t/sandbox/run", $file, $box, @argv ]);

    push @{ $t->{procs} }, $proc;

    return $proc;
}


# the restrictions are there, by what a program sees of them

my $look = sandboxed('look', '/usr/bin/perl', '-MSocket', '-e', <<'EOC');
    my @status = `cat /proc/self/status`;
    print grep { /^(?:NoNewPrivs|Seccomp|CapBnd|Uid|Gid):/ } @status;
    printf "%s: %s\n", $_, open(my $fh, '>', $_) ? 'written' : $!
        for '/etc/x', '/usr/x', '/var/x', '/tmp/x', '/run/dsa/x', '/sys/x';
    printf "%s: %s\n", $_, opendir(my $d, $_) ? 'read' : $!
        for '/root', '/home';
    printf "family %d: %s\n", $_, socket(my $s, $_, SOCK_STREAM, 0) ? 'ok' : $!
        for AF_UNIX, AF_INET, 16;
    printf "umask %o\n", umask;
    printf "chmod: %s\n", chmod(04755, '/run/dsa/x') ? 'suid' : $!;
    printf "unshare: %d\n", system 'unshare --user true 2> /dev/null';
EOC

$look->wait_end(30);
my $seen = $look->output;

like($seen, qr/^Uid:\t$uid\t$uid\t/m, 'the user');
like($seen, qr/^Gid:\t$gid\t$gid\t/m, 'the group');
like($seen, qr/^NoNewPrivs:\t1$/m, 'NoNewPrivileges');
like($seen, qr/^CapBnd:\t0+$/m, 'CapabilityBoundingSet');
like($seen, qr/^Seccomp:\t2$/m, 'a filter of system calls');
like($seen, qr{^$_: Read-only file system$}m, "ProtectSystem: $_")
    for qw{ /etc/x /usr/x /var/x };
like($seen, qr{^$_: written$}m, "$_ can be written")
    for qw{ /tmp/x /run/dsa/x };
like($seen, qr{^/sys/x: (?!written)}m, 'ProtectKernelTunables');
like($seen, qr{^$_: Permission denied$}m, "ProtectHome: $_")
    for qw{ /root /home };
like($seen, qr/^family ${\ AF_UNIX}: ok$/m, 'sockets of the host');
like($seen, qr/^family 16: Address family not supported/m,
     'RestrictAddressFamilies: no netlink');
like($seen, qr/^umask 7$/m, 'UMask');
like($seen, qr/^chmod: Operation not permitted$/m, 'RestrictSUIDSGID');
like($seen, qr/^unshare: (?!0$)/m, 'RestrictNamespaces');
unlink "$box/run/x";


# Starts the engine with a shipped configuration, of which only directories,
# sizes, and the backend of a GPU are changed.  It notifies the test, as it does
# systemd.

sub engine {
    my ($name, %change) = @_;

    my $conf = read_file("$root/conf/$name");

    $conf =~ s{^# (?=redis_cache )}{}m;
    $conf =~ s{/etc/dsa/}{$box/}g;

    my %value = (model => "$box/model", host_memory => '64m',
                 kv_memory => '64m', backend => 'cpu', %change);

    $conf =~ s{^\Q$_\E\s.*}{$_ $value{$_};}m for keys %value;
    write_file("$box/$name", $conf);

    unlink "$box/run/notify";
    socket my $s, AF_UNIX, SOCK_DGRAM, 0 or die "socket: $!\n";
    bind $s, pack_sockaddr_un("$box/run/notify") or die "bind: $!\n";
    chown $uid, $gid, "$box/run/notify";

    my $proc = sandboxed("engine-$name", "$box/bin/dsa-engine", '-c',
                         "$box/$name");
    my $select = IO::Select->new($s);
    my $text = '';

    wait_until(sub {
        die "the engine ended: ", $proc->output if !$proc->alive;
        $select->can_read(0.01) or return 0;
        recv $s, $text, 4096, 0;
        return $text =~ /^READY=1$/m;
    }, 60, 'READY=1');

    ok(-S "$box/run/v32.sock", "$name: ready, and its socket is there");
    is((stat _)[5], $gid, "$name: the socket is of the group");

    $proc->{sock} = "$box/run/v32.sock";
    $proc->{socks} = [ $proc->{sock} ];
    $t->{engines} = [ $proc ];

    return $proc;
}


# A metric of the tier in Redis.

sub tier {
    my ($name) = @_;

    my $m = $t->metrics;

    return (map { $m->{$_} }
            grep { /^dsa_engine_tier_$name\{.*tier="redis"/ } keys %$m)[0];
}

sub chat {
    my ($text) = @_;

    my $r = $t->post('/v1/chat/completions',
                     ask($text, max_tokens => 4, temperature => 0));

    is($r->{status}, 200, 'an answer') or diag($r->{body});

    return $r->{json}{usage}{prompt_tokens_details};
}

# Stops an engine; nginx has no session with it when this returns.

sub stop {
    my ($engine) = @_;

    $engine->stop();
    wait_until(sub { $t->metrics->{dsa_sessions} == 0 }, 30, 'no session');
}

my $prompt = 'one ' . 'cat dog ' x 200;
my $old;

for my $name (map { s{.*/}{}r } sort glob "$root/conf/engine*.conf") {
    my $engine = engine($name);
    my $cache = read_file("$box/$name") =~ /^redis_cache\s+(\S+?):6379/m
                ? $1 : undef;

    defined $old ? $t->reload() : $t->start_nginx();
    $old = 1;
    wait_until(sub { $t->workers == 1 }, 30, 'the old worker to leave');

    wait_until(sub { $t->get('/readyz')->{status} == 200 }, 30, 'a session');
    chat($prompt);

    if (defined $cache) {
        is($cache, $allowed, "$name: the address of the cache");
        wait_until(sub { tier('servers_on') == 1 }, 30, 'the cache is on');
        wait_until(sub { kv_keys() > 2 }, 30, 'pages are in the cache');

        # pages that do not come in time are computed: several attempts

        my $tokens = 0;

        for (my $i = 0; $i < 10 && $tokens == 0; $i++) {
            stop($engine);
            $engine = engine($name);
            wait_until(sub { $t->get('/readyz')->{status} == 200 }, 30,
                       'a session');
            wait_until(sub { tier('servers_on') == 1 }, 30, 'the cache is on');
            $tokens = chat($prompt)->{redis_tokens};
        }

        cmp_ok($tokens, '>', 0, 'the next start finds them');

        # an address that the unit forbids is seen from outside

        stop($engine);
        $engine = engine($name, redis_cache => "$denied:6379 password_file="
                                               . "$box/cache.pw");
        wait_until(sub { $t->get('/readyz')->{status} == 200 }, 30,
                   'a session');
        chat($prompt);
        wait_until(sub { tier('failed_operations_total') > 1 }, 30,
                   'failures are counted');
        is(tier('servers_on'), 0, 'an address that is not allowed');
        like($engine->output,
             qr/Redis \Q$denied\E:6379 is off: cannot connect.*IPAddressAllow/,
             'the log has the reason');
    }

    stop($engine);
    unlike($engine->output, qr/\[(?:error|alert|emerg)\]/, "$name: no error");
}

is_deeply([ glob "$box/run/sanitizer*" ], [], 'no sanitizer reported anything');

$t->done;
