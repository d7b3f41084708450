# Copyright (C) The nginx-dsa authors
#
# The command lines of dsa, dsa-cuda and dsa-engine for people without knowledge
# of them: versions, help, wrong words, and what is found without options.

use strict;
use warnings;

use IO::Socket::INET;
use POSIX ();
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my $t = DSA::Test->new('cli');
my $build = $t->build;
my ($version) = read_file("$DSA::Test::root/base/version.h")
                =~ /DSA_VERSION +"([^"]+)"/;


# Exit status, stdout and stderr; stdin is empty.

sub run {
    my ($program, @args) = @_;

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $t->path('out');
        open STDERR, '>', $t->path('err');
        exec "$build/$program", @args or POSIX::_exit(127);
    }

    waitpid $pid, 0;

    return ($? >> 8, map { read_file($t->path($_)) } qw/ out err /);
}

# Wrong usage: one line on stderr that matches, and the exit status 2.

sub wrong {
    my ($re, $program, @args) = @_;
    my ($rc, $out, $err) = run($program, @args);
    my $what = join ' ', $program, @args;

    is($rc, 2, "$what: the exit status");
    is($out, '', "$what: nothing on stdout");
    like($err, qr/\A[^\n]*$re[^\n]*\n\z/, "$what: the reason");
}


for my $program ('dsa', 'dsa-engine', -x "$build/dsa-cuda" ? 'dsa-cuda' : ()) {
    my ($rc, $out, $err) = run($program, '--version');

    is($rc, 0, "$program --version");
    is($out, "$program $version\n", 'its name and version');
    is($err, '', 'no error');

    for my $help ('--help', '-h') {
        ($rc, $out, $err) = run($program, $help);

        is($rc, 0, "$program $help");
        like($out, qr/\Ausage: dsa/, 'its usage on stdout');
        is($err, '', 'no error');
    }

    ($rc, $out, $err) = run($program);

    is($rc, 2, "$program without arguments");
    is($out, '', 'nothing on stdout');
    like($err, qr/\Ausage: dsa/, 'its usage on stderr');
}


# the list of commands, one on each line, and what each of them prints

my ($rc, $out, $err) = run('dsa', '--help');
my @commands = $out =~ /^  dsa ([a-z]+(?: [a-z]+)?)  +\w/mg;
my %group;

cmp_ok(scalar @commands, '>', 20, 'there are commands');
is(scalar @commands, (() = $out =~ /^  dsa /mg), 'each line has one');
is((run('dsa', 'help'))[1], $out, 'dsa help');

for my $command (@commands) {
    my @words = split ' ', $command;
    my $gpu = $command =~ /^bench (?!cache)/;

    $group{$words[0]} = 1 if @words == 2;

    ($rc, $out, $err) = run('dsa', @words, '--help');

    is($rc, 0, "dsa $command --help");
    like($out, qr/^(?:usage:|      ) dsa $command\b/m, 'its usage on stdout');
    is($err, '', 'no error');

    next if $gpu && !-x "$build/dsa-cuda";

    wrong(qr/"--frobnicate" is not an option/, $gpu ? 'dsa-cuda' : 'dsa',
          @words, '--frobnicate');
}

is_deeply([ sort keys %group ], [ qw/ bench key tenant / ], 'groups');

for my $group (sort keys %group) {
    ($rc, $out, $err) = run('dsa', $group, '--help');
    is($rc, 0, "dsa $group --help");
    like($out, qr/^usage: dsa $group /, 'its usage on stdout');

    ($rc, $out, $err) = run('dsa', $group);
    is($rc, 2, "dsa $group");
    is_deeply([ $err =~ /^  dsa ($group \w+) /mg ],
              [ grep { /^$group / } @commands ], 'its commands on stderr');
}


# a wrong word names the nearest one, if there is one

for ([ 'dsa key', 'keey' ], [ 'dsa usage', 'usgae' ], [ 'dsa status', 'stat' ],
     [ 'dsa tenant', 'tenants' ], [ 'dsa key create', 'key', 'crate' ],
     [ 'dsa key revoke', 'key', 'revok' ], [ 'dsa bench comm', 'bench', 'com' ],
     [ undef, 'tenant', 'remove' ], [ undef, 'frobnicate' ], [ undef, 'x' ],
     [ undef, '' ],
     [ undef, 'key', 'x' x 5000 ], [ undef, '-x' ])
{
    my ($near, @words) = @$_;

    wrong($near ? qr/is not a command; the nearest one is "$near"/
                : qr/is not a command; "dsa --help" prints the commands/,
          'dsa', @words);
}

for ([ '--tenant', 'usage', '--tenent', 'x' ],
     [ '--budget-day', 'key', 'set', '--budjet-day=5' ],
     [ '--tokenizer', 'tokenize', '--tokeniser', 'x' ],
     [ '--segments', 'encode', '--segmenst' ],
     [ '--thinking', 'parse', '--thinkng' ],
     [ '--model', 'fingerprint', '--modle', 'x' ],
     [ '--address', 'bench', 'cache', '--adress', 'x' ],
     [ '--once', 'status', '--onse' ],
     [ undef, 'usage', '--secret=x' ])
{
    my ($near, @words) = @$_;

    wrong($near ? qr/is not an option; the nearest one is "$near"/
                : qr/"--secret" is not an option; "dsa usage --help" prints/,
          'dsa', @words);
}

for ([ qr/"--vresion" is not an option; the nearest one is "--version"/,
       '--vresion' ],
     [ qr/"-x" is not an option/, '-x' ],
     [ qr/"-c" has no value; expected one/, '-c' ],
     [ qr/--help has a value; expected none/, '--help=x' ])
{
    my ($re, @words) = @$_;

    wrong($re, 'dsa-engine', @words);
}

wrong(qr/"-m" is not an option/, 'dsa', 'fingerprint', '-m', 'x');
wrong(qr/--model has no value; expected one/, 'dsa', 'fingerprint', '--model');


# DSA_REDIS is in place of --redis, which goes before it, as does --file

my $server = $t->start_redis();

{
    local $ENV{DSA_REDIS} = '127.0.0.1:' . $server->port;

    is((run('dsa', qw/ key create --name n /))[0], 0, 'DSA_REDIS: dsa key');
    is($t->redis->cmd('HLEN', 'dsa1:{keys}:id'), 1, 'the key is there');
    is((run('dsa', 'usage'))[0], 0, 'DSA_REDIS: dsa usage');
    is((run('dsa', qw/ key create --name n --file /, $t->path('keys')))[0], 0,
       '--file goes before DSA_REDIS');
    ok(-s $t->path('keys'), 'the key is in the file');

    ($rc, $out, $err) = run('dsa', qw/ usage --redis 127.0.0.1:1 /);
    is($rc, 1, '--redis goes before DSA_REDIS');
    like($err, qr/127\.0\.0\.1:1/, 'its address');
}

{
    local $ENV{DSA_REDIS} = '';

    wrong(qr/expected --redis ADDRESS/, 'dsa', 'usage');
    wrong(qr/expected either --redis/, 'dsa', 'key', 'list');
}


# dsa status finds the ports of conf/nginx.conf and of the demonstration, in a
# network of their own

like(read_file("$DSA::Test::root/conf/nginx.conf"), qr/^ +listen  80  /m,
     'the port of conf/nginx.conf');
like(read_file("$DSA::Test::root/demo/run"), qr/free_port 8080/,
     'the port of the demonstration');

$t->start_fake();
$t->start_nginx(server => 'location = /status { dsa_status; }');

my $document = $t->get('/status')->{body};

SKIP: {
    if (system("unshare -n true 2> $t->{dir}/unshare") != 0) {
        BAIL_OUT('no network namespaces') if $ENV{DSA_NO_SKIP};
        skip 'no network namespaces', 8;
    }

    my @cases = ([ 80 => 'as shipped', 80 ],
                 [ 8080 => 'the demonstration', 8080 ],
                 [ 8080 => 'another server has port 80', 8080, 80 ],
                 [ undef, 'no server' ]);

    for my $case (@cases) {
        my ($port, $what, $serves, $other) = @$case;

        ($rc, $out, $err) = in_network($serves, $other);

        if (defined $port) {
            is($rc, 0, "dsa status: $what") or diag($err);
            is($out, $document, 'its document');

        } else {
            is($rc, 1, "dsa status: $what");
            like($err, qr{127\.0\.0\.1}, 'the reason has the address');
        }
    }
}


# Runs dsa status --json in a new network with a server of the document and
# with one that knows no page.

sub in_network {
    my ($serves, $other) = @_;

    write_file($t->path('document'), $document);
    write_file($t->path('network'), <<'EOC');
        use strict;
        use warnings;
        use IO::Socket::INET;

        my ($dsa, $file, $serves, $other) = @ARGV;
        my $text = do { local (@ARGV, $/) = $file; <> };

        # SIOCSIFFLAGS with IFF_UP brings the loopback up

        socket my $s, AF_INET, SOCK_DGRAM, 0 or die "socket: $!";
        my $request = pack 'a16 s x22', 'lo', 1;
        ioctl $s, 0x8914, $request or die "ioctl: $!";

        my @pids;

        for ([ $serves, "200 OK", $text ], [ $other, "404 Not Found", "no" ]) {
            my ($port, $status, $body) = @$_;
            next if !$port;

            my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
                                          LocalPort => $port, Listen => 5)
                or die "listen: $!";
            my $pid = fork // die "fork: $!";

            if ($pid == 0) {
                while (my $c = $l->accept) {
                    while (defined(my $line = <$c>)) {
                        last if $line !~ /\S/;
                    }

                    print $c "HTTP/1.0 $status\r\n"
                             . "Content-Type: application/json\r\n\r\n$body";
                    close $c;
                }
            }

            push @pids, $pid;
        }

        my $rc = system $dsa, 'status', '--json';
        kill 'KILL', @pids;
        exit $rc >> 8;
EOC

    my $pid = fork() // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', $t->path('out');
        open STDERR, '>', $t->path('err');
        exec 'unshare', '-n', $^X, $t->path('network'), "$build/dsa",
             $t->path('document'), $serves // 0, $other // 0
            or POSIX::_exit(127);
    }

    waitpid $pid, 0;

    return ($? >> 8, map { read_file($t->path($_)) } qw/ out err /);
}

$t->done;
