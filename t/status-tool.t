#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# dsa status: its report, its screen in a terminal, and answers that are
# hostile.

use strict;
use warnings;

use Fcntl qw/ O_RDWR O_NOCTTY /;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw/ _exit setsid /;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

use constant {
    TIOCSCTTY  => 0x540e,
    TIOCSWINSZ => 0x5414,
    TIOCGPTN   => 0x80045430,
    TIOCSPTLCK => 0x40045431,
};

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('status-tool');
my $fake = $t->start_fake();

write_keys($t->path('keys'), key_entry('anna'));
$t->start_redis();
$t->start_nginx(
    http => 'dsa_keys file=%%DIR%%/keys zone=keys:8m; dsa_price currency=EUR;
             dsa_price fake-model miss=1000 hit=100 output=2000;
             server { listen unix:%%DIR%%/http.sock;
                      location = /state { dsa_status; } }',
    server => 'location = /status { dsa_status; }');

wait_until(sub {
    $t->get('/v1/models', bearer(key_text('anna')))->{status} == 200
}, 10, 'the keys to be read');

my $address = 'http://127.0.0.1:' . $t->port . '/status';


# (exit status, stdout, stderr) of dsa status

sub status {
    my (@argv) = @_;

    my ($out, $err) = map { $t->path("status.$_") } qw/ out err /;
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', $out or _exit(99);
        open STDERR, '>', $err or _exit(99);
        open STDIN, '<', '/dev/null' or _exit(99);
        exec $t->build . '/dsa', 'status', @argv or _exit(99);
    }

    waitpid $pid, 0;

    return ($? & 127 ? "signal $?" : $? >> 8, read_file($out),
            read_file($err));
}


# a report of known requests

$t->post($chat, script("t a\nprompt 100\ncached 10\n", model => 'fake-model'),
         bearer(key_text('anna'))) for 1 .. 3;
ctl($fake, 'load 3 4');
ctl($fake, join ' ', 'tier', $_, (map { $_ * 100 } 1 .. 13), 2, 1) for 0 .. 2;
wait_until(sub {
    my $s = $t->get('/status')->{json};
    return $s->{tokens}{prompt} == 300 && $s->{engines}[0]{running} == 3
           && $s->{redis}{up} && $s->{redis}{queue} == 0
           && $s->{redis}{memory_used};
}, 10, 'the figures');

my ($rc, $out, $err) = status($address, '--once');

is($rc, 0, 'dsa status --once');
is($err, '', 'without an error');
like($out, qr/^nginx-dsa \d+\.\d+  up 0d 00:0\d:\d\d$/m, 'version and age');
like($out, qr/^requests +0 in flight, [\d.]+\/s, \d+ in all, 0 failed$/m,
     'requests');
like($out, qr/^tokens +0\.0\/s of answers, 0\.0\/s of prompts, - cached$/m,
     'tokens per second');
like($out, qr/^first token +p50 -, p90 -, p99 -$/m, 'nothing in this second');

# for a token: 90 of 1000, 10 of 100, 2 of 2000 for a million, three times

like($out, qr/^money +0\.285 EUR, 0\.0000 per hour$/m, 'money');
like($out, qr/^redis\ +up,\ memory\ \d+%;\ 0\ ledger\ entries\ wait,
              \ 0\ of\ 20000\ places\ are\ used$/mx, 'Redis');
like($out, qr{^unix:\S{20,}\ +fake-model\ +up\ +3\ +4\ +\S+\ +200/100\ +
              200/100\ 1/2\ DOWN\ +0\.0\ +-\ +-$}mx,
     'the engine with its pages, and a cache of which a server is off');
my $id = key_entry('anna')->{id};
like($out, qr/^anna +$id +0 +0 +3 +0\.0 0\.285$/m, 'the tenant');

($rc, $out) = status("unix:" . $t->path('http.sock') . ':/state');
is($rc, 0, 'by a unix socket; not a terminal: one report');
like($out, qr/^anna /m, 'with the tenant');

($rc, $out) = status($address, '--json');
is($rc, 0, '--json');
is(json_decode($out)->{tokens}{prompt}, 300, 'the document');


# rates and percentiles, from two documents that are a second apart

my @documents;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5,
                                   ReuseAddr => 1) or die "listen: $!\n";
my $where = 'http://127.0.0.1:' . $server->sockport . '/x';


# Runs dsa status against a server that answers with these texts in turn.

sub against {
    my ($argv, @answers) = @_;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        for my $answer (@answers) {
            my $c = $server->accept or last;
            local $SIG{PIPE} = 'IGNORE';
            1 while defined($_ = <$c>) && /\S/;
            print $c ref $answer ? $$answer
                     : "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n$answer";
            close $c;
        }
        _exit(0);
    }

    my @got = status($where, @$argv);

    kill 'KILL', $pid;
    waitpid $pid, 0;

    return @got;
}

sub document {
    my ($time, $completion, $counts, %more) = @_;

    return json_encode({
        time => $time, uptime => $time, version => '9.9',
        requests => { in_flight => 1, total => $time * 4,
                      by_status => { 200 => 1, 500 => 2, 503 => 3 } },
        tokens => { prompt => $time * 100, completion => $completion,
                    cached => { gpu => $time * 25, host => 0, redis => 0 } },
        latency => { ttft => { bounds => [10, 20, 40], counts => $counts } },
        engines => [], tenants => [], %more });
}

($rc, $out) = against(['--once'], document(100, 1000, [5, 5, 5, 5]),
                      document(102, 1600, [15, 15, 5, 5]));
is($rc, 0, 'two documents');
like($out, qr/ 1 in flight, 4\.0\/s, 408 in all, 5 failed$/m, 'requests');
like($out, qr/ 300\/s of answers, 100\/s of prompts, 25\.0% cached$/m,
     'tokens');
like($out, qr/^first token +p50 10\.0 ms, p90 18\.0 ms, p99 19\.8 ms$/m,
     'percentiles, of 10 up to 10 ms and 10 up to 20 ms');
like($out, qr/^next token +p50 -, p90 -, p99 -$/m, 'none where there is none');

# Debian's Redis has no append-only file: what it has confirmed may be lost

for (['false', { durable => JSON::PP::false }, 1],
     ['true', { durable => JSON::PP::true }, 0], ['absent', {}, 0],
     ['no boolean', { durable => 'false' }, 0])
{
    my ($name, $member, $lossy) = @$_;

    ($rc, $out) = against(['--once'],
        map { document($_, 1000, [0, 0, 0, 0],
                       redis => { up => JSON::PP::true, queue => 2,
                                  %$member }) } 100, 101);
    is(($out =~ /^redis +NOT DURABLE: appendonly is off, /m) ? 1 : 0, $lossy,
       "durable is $name");
}

($rc, $out) = against(['--once'], document(100, 1000, [0, 0, 0, 0]),
                      document(101, 1000, [0, 0, 0, 7]));
like($out, qr/p50 >40 ms, p90 >40 ms/, 'beyond the last bound');

($rc, $out) = against(['--once'], document(100, 1000, [5, 5, 5, 5]),
                      document(3, 10, [1, 1, 1, 1]));
is($rc, 0, 'the server was started again in between');
like($out, qr/ -\/s of answers/, 'so there is no rate');

# what is wrong with Redis

my @redis = (
    [ { up => 0, writable => 0, queue => 7, queue_used => 9,
        queue_capacity => 20 },
      'DOWN, memory -; 7 ledger entries wait, 9 of 20 places are used' ],
    [ { up => 1, writable => 0, queue => 20, queue_used => 20,
        queue_capacity => 20, memory_used => 2001, memory_limit => 2000 },
      'REFUSES WRITES, memory 100%; 20 ledger entries wait, '
      . '20 of 20 places are used' ]);

for (@redis) {
    my ($state, $line) = @$_;
    my %redis = (%$state, map { $_ => $state->{$_} ? JSON::PP::true
                                                   : JSON::PP::false }
                          qw/ up writable /);

    ($rc, $out) = against(['--once'],
                          map { document($_, 1, [0, 0, 0, 0],
                                         redis => \%redis) } 1, 2);
    like($out, qr/^redis +\Q$line\E$/m, $line);
}


# hostile answers: an error, or a report without control characters

my $evil = "a\x1b[2J\x{9b}31m\x07\n\x{202e}b";

my @hostile = (
    [ 'not JSON', '<html>', 1 ],
    [ 'nothing', '', 1 ],
    [ 'another JSON', '[1,2]', 1 ],
    [ 'deep JSON', '[' x 100000, 1 ],
    [ 'a repeated name', qq({"a\\u001b[31m":1,"a\\u001b[31m":2}), 1 ],
    [ 'invalid UTF-8', qq({"uptime":1,"version":"\xff\x9b"}), 1 ],
    [ 'not HTTP', \"hello\r\n\r\n", 1 ],
    [ 'no headers', \'HTTP/1.1 200 OK', 1 ],
    [ 'an error', \"HTTP/1.1 403 \x1b[31m\r\n\r\n", 1 ],
    [ 'nothing at all', \'', 1 ],
    [ 'five million bytes', '{"uptime":1,"x":"' . 'x' x 5e6 . '"}', 1 ],
    [ 'a million values', '{"uptime":1,"x":[' . '1,' x 1e6 . '1]}', 1 ],
    [ 'wrong types', json_encode({
          time => 'x', uptime => [], version => {}, requests => 7,
          tokens => [1], latency => { ttft => [], inter_token => {
          bounds => [3, 2, 1], counts => [1, 2, 3, 4] } }, money => 1,
          redis => [], engines => { a => 1 }, tenants => 'x' }), 0 ],
    [ 'wrong types in rows', json_encode({
          uptime => 1, engines => [1, 'x', [], { up => 'x', tiers => 3 }],
          tenants => [undef, 4, { tenant => 5, running => -3,
          requests => 1e300, tokens => 'x', cost => {} }] }), 0 ],
    [ 'huge numbers', '{"uptime":1e308,"time":-1e308,"requests":{"total":'
      . '9' x 400 . ',"in_flight":18446744073709551615}}', 0 ],
    [ 'escape sequences', json_encode({
          uptime => 1, version => $evil, money => { currency => $evil x 50,
          miss => '1', hit => '0', output => '0' },
          engines => [{ pool => $evil, engine => $evil, model => $evil x 99,
                        up => JSON::PP::true }],
          tenants => [{ tenant => $evil x 999, key => $evil, name => $evil,
                        cost => $evil x 99 }] }), 0 ],
    [ 'many rows', json_encode({ uptime => 1, tenants => [
          map { { tenant => $_ } } 1 .. 20000 ] }), 0 ],
    [ 'a histogram of other lengths', document(1, 1, [1 .. 40]), 0 ],
);

for (@hostile) {
    my ($name, $answer, $want) = @$_;
    my ($rc, $out, $err) = against(['--once'], $answer, $answer);

    is($rc, $want, "$name: the exit status");
    like($want ? $err : $out, $want ? qr/^dsa status: .+\n\z/ : qr/^nginx-dsa/,
         "$name: " . ($want ? 'one line of error' : 'a report'));
    unlike($out . $err, qr/[^\x20-\x7e\n\x80-\xff]|\xc2[\x80-\x9f]/,
           "$name: no control characters");
}

($rc, $out, $err) = against(['--json'], '{"uptime":1,');
is($rc, 1, '--json: only a whole document is printed');
is($out, '', 'and nothing else');


# mistakes

for (['ftp://x', 'is not an address'], ['http://', 'is empty or too long'],
     ['http://127.0.0.1:0x/', ''], ["unix:/nowhere", 'cannot connect'],
     ['http://127.0.0.1:1/', 'cannot connect'],
     ["http://127.0.0.1:1/a b", 'has a blank'],
     ['unix:' . '/x' x 100, 'the path of the socket'])
{
    my ($rc, $out, $err) = status($_->[0]);

    is($rc, 1, "$_->[0]: refused");
    like($err, qr/^dsa status: .*\Q$_->[1]\E.*\n\z/, 'with the reason');
}

is((status('--wrong'))[0], 2, 'an unknown option');
is((status($address, $address))[0], 2, 'two addresses');


# A screen: returns a hash with the master side of a terminal of this size.

sub terminal {
    my ($rows, $columns, @argv) = @_;

    sysopen my $master, '/dev/ptmx', O_RDWR|O_NOCTTY or return;
    my $n = pack 'i', 0;

    ioctl $master, TIOCSPTLCK, $n or return;
    ioctl $master, TIOCGPTN, $n or return;

    my $name = '/dev/pts/' . unpack 'i', $n;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        setsid();
        sysopen my $slave, $name, O_RDWR or _exit(99);
        ioctl $slave, TIOCSCTTY, 0;
        resize({ master => $slave }, $rows, $columns);
        open STDIN, '<&', $slave or _exit(99);
        open STDOUT, '>&', $slave or _exit(99);
        open STDERR, '>&', $slave or _exit(99);
        exec $t->build . '/dsa', 'status', @argv or _exit(99);
    }

    return { pid => $pid, master => $master, text => '' };
}


sub resize {
    my ($term, $rows, $columns) = @_;

    my $size = pack 'S4', $rows, $columns, 0, 0;
    ioctl $term->{master}, TIOCSWINSZ, $size or die "TIOCSWINSZ: $!\n";

    return;
}


# Reads until the text matches; returns what was read.

sub expect {
    my ($term, $re, $what) = @_;

    my $end = time + slow(20);

    while ($term->{text} !~ $re) {
        my $left = $end - time;

        if ($left <= 0 || !IO::Select->new($term->{master})->can_read($left)) {
            fail($what);
            diag($term->{text});
            return '';
        }

        sysread $term->{master}, $term->{text}, 65536, length $term->{text}
            or last;
    }

    my $ok = $term->{text} =~ $re;
    ok($ok, $what) or diag($term->{text});

    return $ok ? $& : '';
}

my $frame = qr/\e\[H((?:(?!\e\[H).)*?)\e\[J/s;
my $term = terminal(30, 100, $address);

SKIP: {
    skip 'no pseudo terminals', 1 if !$term;

    expect($term, qr/\e\[\?1049h\e\[\?25l/, 'the alternate screen');
    expect($term, qr/anna +$id/, 'the tenant is on it');

    my ($screen) = expect($term, $frame, 'a whole frame') =~ $frame;
    my @lines = split /\e\[K\r+\n/, $screen;
    is((grep { length > 100 } @lines), 0, 'no line is too long');

    # it follows the server

    my $s = $t->stream(script("t a\nhold\n", model => 'fake-model'),
                       bearer(key_text('anna')));
    $term->{text} = '';
    expect($term, qr/requests +1 in flight.*anna +$id +1 /s,
           'a request that begins');
    $s->close;

    # and the size of the terminal

    $term->{text} = '';
    resize($term, 8, 40);

    # frames of the former size may come first

    my $small = qr/\e\[H((?:(?:(?!\e\[[HJ])[^\n])*\n){1,7})\e\[J/;

    ($screen) = expect($term, $small, 'the lines of a smaller terminal')
                =~ $small;
    @lines = split /\e\[K\r+\n/, $screen // '';
    is((grep { length > 40 } @lines), 0, 'and its columns');

    # nginx is away for a while

    resize($term, 30, 100);
    $t->stop_nginx;
    $term->{text} = '';
    expect($term, qr/dsa status: cannot connect/, 'no server: the reason');
    expect($term, qr/nginx-dsa \d/, 'and the last figures');

    $t->start_nginx(server => 'location = /status { dsa_status; }');
    $term->{text} = '';
    expect($term, qr/\e\[Hnginx-dsa/, 'it is back');

    # q

    $term->{text} = '';
    syswrite $term->{master}, 'q';
    expect($term, qr/\e\[\?25h\e\[\?1049l/, 'q: the screen as it was');
    waitpid $term->{pid}, 0;
    is($?, 0, 'the exit status');

    # a signal

    $term = terminal(30, 100, $address);
    expect($term, $frame, 'another screen');
    kill 'TERM', $term->{pid};
    expect($term, qr/\e\[\?25h\e\[\?1049l/, 'a signal: the screen as it was');
    waitpid $term->{pid}, 0;
    is($?, 0, 'the exit status');
}

$t->done;
