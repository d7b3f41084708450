# Copyright (C) The nginx-dsa authors
#
# The ledger: each request is counted once, whatever happens to Redis, to its
# replies, and to nginx.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Process;
use DSA::Test;
use Digest::SHA qw/ sha256_hex /;
use Fcntl ();
use IO::Select;
use IO::Socket::INET;
use Math::BigInt;
use Test::More;

my $t = DSA::Test->new('ledger');
my $server = $t->start_redis(appendonly => 1);
my $fake = $t->start_fake();
my $chat = '/v1/chat/completions';

my %want;
my $serial = 0;


# Runs $n chats, $at_once at a time, each with counts of its own.

sub chats {
    my ($n, $at_once, @key) = @_;

    while ($n > 0) {
        my $some = $n < $at_once ? $n : $at_once;
        my @open = map { begin(undef, @key) } 1 .. $some;

        for (@open) {
            my $r = $_->response;
            $r->{status} == 200 or fail("a chat: $r->{body}");
        }

        $n -= $some;
    }
}


# With the option key, the chat is that of another tenant.

sub begin {
    my ($lines, %more) = @_;

    my $key = delete $more{key};

    my $i = ++$serial;
    my ($prompt, $cached, $completion) = (100 + $i, $i % 64, 2 + $i % 7);
    my ($host, $redis) = tiers($cached);

    my $text = "prompt $prompt\ncached $cached\ntiers $host $redis\n"
               . "completion $completion\n"
               . (defined $lines ? $lines : 't word');
    my $c = $t->connect;

    $c->send_request(POST => $chat, type => 'application/json',
                     body => json_encode(script($text, %more)),
                     $key ? (headers => [ Authorization => "Bearer $key" ])
                          : ());

    count($prompt, $cached, $completion);

    return $c;
}


# What of so many cached tokens is in host memory and in Redis.

sub tiers {
    my ($cached) = @_;

    return (int($cached / 2), int($cached / 3));
}


sub count {
    my ($prompt, $cached, $completion) = @_;
    my ($host, $redis) = tiers($cached);

    $want{requests}++;
    $want{prompt_tokens} += $prompt;
    $want{cached_tokens} += $cached;
    $want{cached_host_tokens} += $host;
    $want{cached_redis_tokens} += $redis;
    $want{completion_tokens} += $completion;
    $want{$_} += 0 for qw/ reasoning_tokens cost_miss cost_hit cost_output /;
}


# The keys of Redis of a kind, of all tenants or of the one with a key.

sub keys_of {
    my ($kind, $key) = @_;

    my $tenant = defined $key ? substr sha256_hex($key), 0, 32 : '*';

    return $t->redis($server)->keys("dsa1:{$tenant}:$kind:*");
}


# The sums of each count over all days, because midnight may pass.

sub ledger {
    my ($tenant) = @_;

    my $redis = $t->redis($server);
    my %sum;

    for my $key (keys_of(ledger => $tenant)) {
        my $fields = $redis->hgetall($key);
        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return \%sum;
}


sub settled {
    my ($name, $seconds) = @_;

    eval {
        wait_until(sub { (eval { ledger() } || {})->{requests}
                         && ledger()->{requests} >= $want{requests} },
                   $seconds || 30, 'the ledger');
    };

    is_deeply(ledger(), \%want, $name);
}


$t->start_nginx(redis => 'timeout=1s', workers => 2,
                main => 'worker_shutdown_timeout 60s;');

chats(20, 5);
settled('twenty requests');


# A client that leaves is charged for what was computed until then.

my $s = begin("t a\nt b\nhold", stream => JSON::PP::true);
$s->read_head;
$s->next_event;
my $left = cancelled($fake);
$s->close;
wait_until(sub { cancelled($fake) > $left }, 10, 'the cancel');
settled('a client that left');

# a request that the engine refused is not charged

is($t->post($chat, script("noaccept\nerror context too long"))->{status}, 400,
   'refused by the engine');
is($t->post($chat, '{')->{status}, 400, 'refused by us');
chats(1, 1);
settled('refusals are not charged');


# The id of a request, by which it is counted once, comes from the server alone:
# a client that could choose it would get two requests for the price of one.

for my $name (qw/ first second /) {
    my $r = $t->post($chat, { %{ script("prompt 8\ncompletion 2\nt word") },
                              user => 'chosen-id', metadata => {
                                  id => 'chosen-id' } },
                     headers => [ 'Content-Type' => 'application/json',
                                  'X-Request-Id' => 'chosen-id',
                                  'X-Client-Request-Id' => 'chosen-id' ]);

    is($r->{status}, 200, "the $name request with an id of the client's");
    like($r->{json}{id}, qr/^chatcmpl-[0-9a-f]{32}$/, 'has one of its own');
    $want{requests}++;
    $want{prompt_tokens} += 8;
    $want{completion_tokens} += 2;
}

settled('both are charged');
is(scalar(grep { /chosen/ } $t->redis($server)->keys('*')), 0,
   'and nothing in Redis has the id of the client');


# Redis loses the script.

$t->redis($server)->cmd(qw/ SCRIPT FLUSH /);
chats(20, 10);
settled('SCRIPT FLUSH');


# Redis restarted, killed, stopped and continued, under load.

for my $round (1 .. 6) {
    chats(10, 5);

    if ($round % 3 == 1) {
        $server->restart;

    } elsif ($round % 3 == 2) {
        $server->kill9;
        chats(10, 5);
        $server->restart;

    } else {
        $server->signal('STOP');
        chats(10, 10);
        $server->signal('CONT');
    }

    chats(10, 5);
}

settled('restarted, killed and stopped under load');

# While this process restarts Redis, a child chats until the pipe to it closes,
# and then reports how many chats it had.

pipe my $until, my $stop or die "pipe: $!\n";
pipe my $number, my $report or die "pipe: $!\n";

my $load = fork;
die "fork: $!\n" if !defined $load;

if ($load == 0) {
    close $stop;

    my $select = IO::Select->new($until);
    my $n = 0;
    my $ok = eval {
        do { chats(40, 4); $n += 40 } until $select->can_read(0) && $n >= 200;
        1;
    };

    print STDERR $@ if !$ok;
    syswrite $report, $n;
    POSIX::_exit($ok ? 0 : 1);
}

close $until;
close $report;

for my $round (1 .. 6) {
    $round % 2 ? $server->stop : $server->kill9;
    $server->restart;
}

close $stop;
waitpid $load, 0;
is($?, 0, 'chats while Redis comes and goes');
sysread $number, my $n, 16;
cmp_ok($n, '>=', 200, "$n of them");

for my $i ($serial + 1 .. $serial + $n) {
    count(100 + $i, $i % 64, 2 + $i % 7);
}

$serial += $n;
settled('each counted once');


# Redis has no memory left.

my $redis = $t->redis($server);
$redis->cmd(qw/ CONFIG SET maxmemory 1 /);
chats(10, 5);
wait_until(sub { $t->logged(qr/\[error\].*are waiting for Redis: .*OOM/) }, 10,
           'a line in the log');
chats(10, 5);
cmp_ok($t->logged(qr/\[error\].*are waiting for Redis/), '<=', 2,
       'once a worker');
$redis->cmd(qw/ CONFIG SET maxmemory 0 /);
settled('Redis was full');


# The entries that wait are in a file that all processes share: no process has
# to wait for them, and no entry is lost when a process ends.

my $file = $t->path('nginx.pid.ledger');
my $header = 4096;
my $cell = 512;

is((stat $file)[2] & 07777, 0600, 'no other user can read the file');
is(-s $file, $header + 20000 * $cell, 'it is allocated');


# Slots of the file that are not free, as [ number, bytes ].

sub cells {
    my ($path) = @_;

    my $bytes = read_file($path);
    my $n = (length($bytes) - $header) / $cell;

    return grep { ord $_->[1] != 0 }
           map { [ $_, substr $bytes, $header + $_ * $cell, $cell ] }
           0 .. $n - 1;
}


sub patch {
    my ($path, $at, $bytes) = @_;

    open my $fh, '+<:raw', $path or die "$path: $!\n";
    sysseek $fh, $at, 0;
    syswrite $fh, $bytes;
    close $fh;
}


sub kill_all {
    my @pids = ($t->nginx_pid, $t->workers);

    kill 'KILL', @pids;

    for my $pid (@pids) {
        wait_until(sub { DSA::Process::gone($pid) }, 10,
                   'the end of a process');
    }
}


$t->allow_alert(qr/exited on signal 9/);

wait_until(sub { cells($file) == 0 }, 10, 'no entry to wait');

$server->stop;
chats(10, 5);
is(scalar cells($file), 10, 'ten entries are in the file');

my @old = $t->workers;
$t->reload;
wait_until(sub { my @now = $t->workers;
                 !grep { my $pid = $_; grep { $_ == $pid } @old } @now }, 20,
           'the old workers to leave');
chats(3, 3);
is(scalar cells($file), 13, 'old workers do not wait for Redis');
$server->restart;
settled('what they left is written by the new ones');
wait_until(sub { cells($file) == 0 }, 10, 'no entry to wait');

# a second descriptor of the file would release the locks when it is closed

$t->reload for 1 .. 3;
wait_until(sub { $t->workers == 2 }, 20, 'the old workers to leave');
is(scalar(grep { (readlink || '') eq $file } glob "/proc/$_/fd/*"), 1,
   'open once') for $t->nginx_pid, $t->workers;

# killed at any moment

my @how = (
    [ 'a worker is killed', sub {
        my ($pid) = $t->workers;
        kill 'KILL', $pid;
        wait_until(sub { my @now = $t->workers;
                         @now == 2 && !grep { $_ == $pid } @now }, 10,
                   'a new worker') } ],
    [ 'nginx is ended with TERM', sub {
        $t->stop_nginx('TERM');
        $t->start_nginx(redis => 'timeout=1s', workers => 2) } ],
    [ 'nginx is ended with QUIT', sub {
        $t->stop_nginx('QUIT');
        $t->start_nginx(redis => 'timeout=1s', workers => 2) } ],
    [ 'master and workers are killed', sub {
        kill_all();
        $t->start_nginx(redis => 'timeout=1s', workers => 2) } ],
    [ 'the binary is upgraded', sub {
        my $master = $t->upgrade;
        chats(2, 2);
        wait_until(sub { !kill 0, $master }, 20, 'the old master to leave');
      } ]);

for my $case (@how) {
    my ($name, $end) = @$case;

    $server->stop;
    chats(7, 4);
    $end->();
    chats(3, 3);
    cmp_ok(scalar cells($file), '>=', 10, "$name: all is in the file");
    $server->restart;
    settled("$name: each is counted once");
    wait_until(sub { cells($file) == 0 }, 10, 'no entry to wait');
}

ok($t->logged(qr/\[notice\].*7 ledger entries are left over in "\Q$file\E"/),
   'logged at the start');
ok($t->logged(qr/\[notice\].*ledger entries of processes that have ended/),
   'and by the worker that adopts them');

# A request whose worker is killed is charged with what the worker had read. The
# tiers of its cached tokens are not known before its end.

my $cut = $t->connect;
my $texts = 0;

$cut->send_request(POST => $chat, type => 'application/json',
                   body => json_encode(script(
                       "noaccept\nprompt 300\ncached 64\naccept\n"
                       . "t a\nt b\nt c\nhold", stream => JSON::PP::true)));
$cut->read_head;

while ($texts < 3) {
    my $event = $cut->next_event or last;
    $texts += length $1 if $event->{data} =~ /"content":"([abc]+)"/;
}

my @cut = $t->workers;
kill 'KILL', @cut;
wait_until(sub { my %old = map { $_ => 1 } @cut;
                 2 == grep { !$old{$_} } $t->workers }, 10, 'new workers');

$want{requests}++;
$want{prompt_tokens} += 300;
$want{cached_tokens} += 64;
$want{completion_tokens} += 3;
settled('a request whose worker is killed is charged until then');
wait_until(sub { cells($file) == 0 }, 10, 'no entry to wait');

# a request that is refused after its cell was reserved frees it

is($t->post($chat, script("noaccept\nerror context too long"))->{status}, 400,
   'refused by the engine');
is(scalar cells($file), 0, 'its cell is free');


# Workers are killed under load.  Each request is of a tenant of its own: if its
# answer was complete, it is in the ledger; else it may be, and at most once.

my $load_pid = fork;
die "fork: $!\n" if !defined $load_pid;

if ($load_pid == 0) {
    open my $keys, '>', $t->path('answered') or POSIX::_exit(1);

    for my $n (1 .. 100) {
        eval { wait_until(sub { (eval { $t->get('/readyz')->{status} } || 0)
                                == 200 }, 30, 'a session') };

        my %open = map { my $key = "key$n-$_";
                         $key => eval { begin(undef, key => $key) } } 1 .. 4;

        for my $key (sort keys %open) {
            my $r = eval { $open{$key}->response } or next;
            syswrite $keys, "$key\n" if $r->{status} == 200 && $r->{json};
        }
    }

    POSIX::_exit(0);
}

my $kills = 0;

while (waitpid($load_pid, POSIX::WNOHANG()) == 0) {
    my @now = $t->workers;

    next if @now < 2;
    kill 'KILL', $now[rand @now];
    $kills++;
    wait_until(sub { $t->workers == 2 }, 10, 'a new worker');
}

cmp_ok($kills, '>', 3, "$kills workers killed under load");
wait_until(sub { cells($file) == 0 }, 20, 'no entry to wait');

my %answered = map { $_ => 1 } split /\n/, read_file($t->path('answered'));
my %counted = map { my $n = $_;
                    map { $_ => ledger($_)->{requests} || 0 }
                    map { "key$n-$_" } 1 .. 4 } 1 .. 100;

cmp_ok(scalar keys %answered, '>', 100, keys(%answered) . ' answers');
is_deeply([ grep { $counted{$_} != 1 } sort keys %answered ], [],
          'each is in the ledger, once');
is_deeply([ grep { $counted{$_} > 1 } sort keys %counted ], [],
          'and no other one twice');

%want = %{ ledger() };
$serial += 400;


# Redis has a marker for each cell that a tenant's requests have used, not for
# each request, and cells that were used are used again.

# Redis gets the entries of each thirty before the next thirty begin, because
# entries that wait use cells of their own.

for (1 .. 10) {
    chats(30, 3, key => 'often');
    settled("$_ times thirty requests of a tenant");
    wait_until(sub { cells($file) == 0 }, 10, 'no entry to wait');
}

my $marks = 0;
$marks += $t->redis($server)->cmd('HLEN', $_) for keys_of(done => 'often');
cmp_ok($marks, '>', 0, 'markers');
cmp_ok($marks, '<', 60, "$marks of them");

# A copy of the file that is older than what Redis has: entries that were never
# sent when it was made, and a request that ran, are counted once.

$server->stop;
chats(5, 5);
$s = begin("t a\nt b\nhold", stream => JSON::PP::true);
$s->read_head;
$s->next_event;

my $copy = read_file($file);

is(scalar(() = cells($file)), 6, 'a copy of six cells');
$left = cancelled($fake);
$s->close;
wait_until(sub { cancelled($fake) > $left }, 10, 'the cancel');
$server->restart;
settled('what they become');
wait_until(sub { cells($file) == 0 }, 10, 'no entry to wait');
chats(40, 4);
settled('and more requests in these cells');
kill_all();
write_file($file, $copy);
$t->start_nginx(redis => 'timeout=1s', workers => 2);
ok($t->logged(qr/5 ledger entries are left over in "\Q$file\E"/),
   'the copy is in place');
wait_until(sub { cells($file) == 0 }, 20, 'no entry to wait');
is_deeply(ledger(), \%want, 'is counted once');
$t->wait_redis(2);


# A bounded queue.

my $short = 'timeout=1s queue=5 queue_file=%%DIR%%/short.ledger';

$t->reload(redis => $short, workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                 == 404 }, 10, 'Redis');
chats(1, 1);
settled('a short queue');
wait_until(sub { cells($t->path('short.ledger')) == 0 }, 10, 'no entry');

$server->stop;
wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                 == 503 }, 10, 'no Redis');
chats(5, 1);

my %before = %want;
my $submits = () = submitted($fake);

for (1 .. 3) {
    my $r = begin()->response;
    is($r->{status}, 503, 'a further request is refused');
    like($r->{body}, qr/cannot record the usage of the request now/,
         'with the reason');
}

%want = %before;
is(scalar(() = submitted($fake)), $submits, 'before an engine works on it');

my $health = $t->get('/readyz');

is($health->{status}, 200, '/readyz: Redis takes no host away');
is($health->{json}{status}, 'degraded', 'and the body reports it');
is_deeply($health->{json}{ledger},
          { capacity => 5, used => 5, waiting => 5,
            writable => JSON::PP::false }, 'because the queue is full');
is($t->logged(qr/\[error\].*refused with 503: .*the queue for Redis is full/),
   1, 'which is logged once');
is($t->metrics->{dsa_redis_lost_records_total}, 0, 'and no entry is lost');

# a larger queue keeps the entries of a smaller one

$t->reload(redis => $short =~ s/queue=5/queue=8/r, workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
is($t->logged(qr/\[error\].*dsa: 2 more times in .*refused with 503/), 1,
   'and at the end, how many there were');
chats(3, 1);
is(scalar cells($t->path('short.ledger')), 8, 'a larger queue');
$t->reload(redis => $short =~ s/queue=5/queue=2/r, workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
is(-s $t->path('short.ledger'), $header + 8 * $cell, 'does not shrink');
$server->restart;
settled('up to it, written');
wait_until(sub { cells($t->path('short.ledger')) == 0 }, 10, 'no entry');
$health = $t->get('/readyz');
is($health->{json}{status}, 'ok', '/readyz: it serves again');
is_deeply($health->{json}{ledger},
          { capacity => 8, used => 0, waiting => 0,
            writable => JSON::PP::true }, 'the queue is empty');


# All cells of a queue are used, whichever worker needs them, and again when
# Redis has the entries.  A worker finds free cells by bits, each of 32 cells,
# which begin at byte 64.

my $odd = $t->path('odd.ledger');
my $full = qr/the queue for Redis is full.*, client:/;

$t->reload(redis => 'timeout=1s queue=100 queue_file=%%DIR%%/odd.ledger',
           workers => 2);
wait_until(sub { $t->workers == 2 }, 20, 'the old worker to leave');

for my $round (1 .. 2) {
    $t->wait_redis(2);
    $server->stop;
    $t->wait_redis(0);
    chats(100, 10);
    is(scalar cells($odd), 100, "round $round: each cell has an entry");

    %before = %want;
    my @open = map { begin() } 1 .. 8;
    is(join(' ', map { $_->response->{status} } @open),
       join(' ', (503) x 8), 'further requests are refused');
    %want = %before;

    $server->restart;
    settled('a hundred entries');
    wait_until(sub { cells($odd) == 0 }, 10, 'no entry');
}

chats(20, 10);
settled('served at once when cells are free');
wait_until(sub { cells($odd) == 0 }, 10, 'no entry');

# A worker may be killed when it has freed a cell and has not set the bit yet.

my $refused = $t->logged($full);

patch($odd, 64, "\0" x ($header - 64));
wait_until(sub { unpack('x64 Q', read_file($odd)) == 0b1111 }, 20,
           'the bits of four groups');
chats(1, 1);
is($t->logged($full), $refused, 'cells of unset bits are found again');
settled('after that');
wait_until(sub { cells($odd) == 0 }, 10, 'no entry');

# Slots that were added since a worker began are not cells of that worker.  A
# worker of the new configuration uses them, although the old one finds none.

my $grown = $short =~ s/queue=5/queue=3/r =~ s/short/grown/r;

$t->reload(redis => $grown, workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old workers to leave');
$t->wait_redis(1);
$server->stop;
$t->wait_redis(0);
chats(3, 1);

my $half = $t->connect;
my ($former) = $t->workers;
my $body = json_encode(script('t word'));

$half->send("POST $chat HTTP/1.1\r\nHost: x\r\n"
            . "Content-Type: application/json\r\n"
            . 'Content-Length: ' . length($body) . "\r\n\r\n");
wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 1 }, 10,
           'a request without its body');

$t->reload(redis => $grown =~ s/queue=3/queue=6/r, workers => 1);
wait_until(sub { read_file("/proc/$former/cmdline") =~ /shutting down/ }, 20,
           'the old worker, which waits for the body, to accept no connection');
$half->send($body);
is($half->response->{status}, 503, 'its cells are not free');
chats(3, 1);
is(scalar cells($t->path('grown.ledger')), 6, 'those of the new worker are');

wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
$server->restart;
settled('a queue that was enlarged');
wait_until(sub { cells($t->path('grown.ledger')) == 0 }, 10, 'no entry');

$t->reload(redis => $short, workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
$t->wait_redis(1);


# A cell: state and owner, the names, sender and number with their CRC, which of
# two sets of counts is valid, and both sets, each with its own checksum.

sub crc32 {
    my ($crc, $bytes) = (0xffffffff, @_);

    for my $byte (unpack 'C*', $bytes) {
        $crc ^= $byte;
        $crc = ($crc >> 1) ^ ($crc & 1 ? 0xedb88320 : 0) for 1 .. 8;
    }

    return $crc ^ 0xffffffff;
}


sub check {
    my ($h, @words) = @_;

    for my $word (@words) {
        $h = (Math::BigInt->new($h ^ $word) * Math::BigInt->from_hex(
                  '9e3779b97f4a7c15'))->bmod(Math::BigInt->new(2)->bpow(64));
        $h = 0 + "$h";
        $h ^= $h >> 32;
    }

    return $h;
}


# Where the valid counts of a cell are, and these: time, prompt, cached, host,
# redis, completion, reasoning, three costs, checksum.

sub counts {
    my ($bytes) = @_;

    my $at = 256 + 88 * unpack 'x248 Q', $bytes;

    return ($at, unpack "x$at Q11", $bytes);
}


# Writes other tiers to a cell, with the checksum.

sub set_tiers {
    my ($path, $cell_at, $host, $redis) = @_;

    my ($n, $bytes) = @$cell_at;
    my ($at, @words) = counts($bytes);

    @words[3, 4] = ($host, $redis);
    $words[10] = check(unpack('x8 V', $bytes), @words[0 .. 9]);
    patch($path, $header + $n * $cell + $at, pack 'Q11', @words);
}


my $queue = $t->path('short.ledger');

$server->stop;
chats(4, 1);
kill_all();

my @cells = cells($queue);
my (undef, @first) = counts($cells[0][1]);

is(scalar @cells, 4, 'four entries in the file');
is_deeply([ sort { $a->[0] <=> $b->[0] }
            map { [ (counts($_->[1]))[3, 4, 5] ] } @cells ],
          [ sort { $a->[0] <=> $b->[0] }
            map { [ $_ % 64, tiers($_ % 64) ] } $serial - 3 .. $serial ],
          'their cached tokens, and these of the host and of Redis');
is(unpack('x8 V', $cells[0][1]), crc32(substr $cells[0][1], 12, 236),
   'the CRC covers the names');
is($first[10], check(unpack('x8 V', $cells[0][1]), @first[0 .. 9]),
   'the checksum covers the counts');

set_tiers($queue, $cells[0], 0, 0);
$want{cached_host_tokens} -= $first[3];
$want{cached_redis_tokens} -= $first[4];

$t->start_nginx(redis => $short, workers => 1);
$server->restart;
settled('an entry without tiers, and three with them');
wait_until(sub { cells($queue) == 0 }, 10, 'no entry');


# Damaged entries of a file are not used.

sub damaged {
    my ($name, $damage, $want_left, $want_log) = @_;

    my $path = $t->path('short.ledger');

    $server->stop;
    chats(4, 1);
    kill_all();
    $damage->($path, cells($path));
    $t->start_nginx(redis => $short, workers => 1);
    ok($t->logged($want_log), "$name: is in the log")
        or diag($t->error_log =~ s/^(?!.*dsa: ).*\n//mgr);
    $server->restart;

    # the test knows how many entries are left, not which ones

    my $count = ledger()->{requests};
    my $left = $want{requests} - 4 + $want_left;
    wait_until(sub { ledger()->{requests} >= $left }, 20, $name);
    wait_until(sub { cells($path) == 0 }, 10, 'no entry to wait');
    is(ledger()->{requests}, $left, "$name: the others are written");
    %want = %{ ledger() };
}

damaged('a byte of a cell', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell + 32, "\xff");
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('a cell of no owner', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell, "\x02\xff\xff\xff");
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('a cell of no state', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell, "\x7f");
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('a cell with more tokens of the host than cached ones', sub {
    my ($path, $first) = @_;
    my (undef, undef, undef, $cached) = counts($first->[1]);
    set_tiers($path, $first, $cached, 1);
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('the counts of a cell', sub {
    my ($path, $first) = @_;
    my ($at) = counts($first->[1]);
    patch($path, $header + $first->[0] * $cell + $at + 8, "\xff");
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('the id of a key', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell + 208, "\x07");
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('the number of the valid counts', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell + 248, "\x07");
}, 3, qr/a ledger entry is lost: cell \d+ of .* is damaged/);

damaged('a cell whose request ran when its worker ended', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell, "\x03");
}, 4, qr/3 ledger entries are left over/);

damaged('a cell that was being written', sub {
    my ($path, $first) = @_;
    patch($path, $header + $first->[0] * $cell, "\x01");
}, 3, qr/ledger entries are left over/);

damaged('the header', sub { patch($_[0], 16, "\xff\xff\xff\xff") }, 0,
        qr/its header is damaged; it was renamed to "\S+\.damaged\.\d+"/);
damaged('the layout', sub { patch($_[0], 0, 'elephant') }, 0,
        qr/it is not a file of ledger entries/);
damaged('a text', sub { write_file($_[0], 'hello') }, 0,
        qr/it has no header; it was renamed/);
damaged('a truncated file', sub {
    my ($path, $first, $second) = @_;
    truncate $path, $header + $second->[0] * $cell + 10;
}, 1, qr/was truncated to \d+ of \d+ bytes/);

# The file is truncated while nginx runs.  A worker that reads it is killed by
# the kernel, and the one that replaces it allocates the file again.  Sanitizers
# report the signal.

if (!$ENV{DSA_SANITIZED}) {
    my ($worker) = $t->workers;
    my $size = -s $queue;
    my $n = $t->logged(qr/was truncated to 0 of/);

    $t->allow_alert(qr/exited on signal 7/);
    truncate $queue, 0;
    wait_until(sub { my @now = $t->workers;
                     @now == 1 && $now[0] != $worker && -s $queue == $size },
               30, 'a worker that has allocated the file');
    is($t->logged(qr/was truncated to 0 of/), $n + 1, 'truncated: is logged');
    $t->wait_redis(1);
    chats(3, 1);
    settled('and nginx serves');
    is(substr(read_file($queue), 0, 8), 'dsaledgr', 'the file has a header');
    wait_until(sub { cells($queue) == 0 }, 10, 'no entry');
}

damaged('an empty file', sub { truncate $_[0], 0 }, 0, qr/./);
damaged('no file', sub { unlink $_[0] }, 0, qr/./);

# An entry that was sent and not confirmed is sent again for 23 hours after the
# first attempt: its marker lives 24 hours.

my $sent = 432;

chats(1, 1);
settled('connected');
wait_until(sub { cells($queue) == 0 }, 10, 'no entry');
$server->signal('STOP');
chats(1, 1);
wait_until(sub { my ($s) = cells($queue);
                 $s && abs(unpack("x$sent Q", $s->[1]) - time) < 60 }, 10,
           'the time of the attempt');
kill_all();
$server->signal('CONT');
$t->start_nginx(redis => $short, workers => 1);
settled('confirmed by a later attempt');
wait_until(sub { cells($queue) == 0 }, 10, 'no entry');

$server->stop;
chats(3, 1);
kill_all();
@cells = cells($queue);
patch($queue, $header + $cells[0][0] * $cell + $sent,
      pack 'Q', time - 23 * 3600 - 60);
patch($queue, $header + $cells[1][0] * $cell + $sent,
      pack 'Q', time - 23 * 3600 + 600);

my (undef, undef, @gone) = counts($cells[0][1]);
my @names = qw/ prompt_tokens cached_tokens cached_host_tokens
                cached_redis_tokens completion_tokens /;

$want{requests}--;
$want{ $names[$_] } -= $gone[$_] for 0 .. $#names;

$t->start_nginx(redis => $short, workers => 1);
$server->restart;
wait_until(sub { cells($queue) == 0 }, 20, 'no entry');
settled('sent again before, and never sent');
is($t->logged(qr/is lost: it was sent 23 hours ago.* prompt $gone[0],/), 1,
   'not later, which is logged');


# a file that cannot be opened is an error at the start, and the running
# configuration stays

for my $case (map { [ $_, qr{"queue_file=\S+"; expected a file in a} ]
              } '/nonexistent/queue', '%%DIR%%', '/dev/null')
{
    my ($path, $want_log) = @$case;
    my @workers = $t->workers;
    my $n = $t->logged($want_log);

    $t->write_nginx_conf(redis => "queue_file=$path", workers => 1);
    kill 'HUP', $t->nginx_pid;
    wait_until(sub { $t->logged($want_log) > $n }, 10, 'the error');
    is_deeply([ $t->workers ], \@workers, "$path: the workers stay");
}

$t->allow_alert(qr/\[emerg\].*queue_file/);
chats(2, 1);
settled('after reloads that failed');

my ($status, $out) = $t->nginx_test(
    conf => read_file($t->path('nginx.conf')) =~ s{queue_file=\S+;}{;}r
            =~ s{nginx\.pid}{test.pid}r);
is($status, 0, 'nginx -t') or diag($out);
ok(!-e $t->path('test.pid.ledger'), 'makes no file');


# The debug log has each transition of the connection and of an entry.

SKIP: {
    my $nginx = $ENV{DSA_NGINX} || '/usr/sbin/nginx';
    skip 'nginx is built without --with-debug', 1
        if `$nginx -V 2>&1` !~ /--with-debug/;

    $t->reload(redis => 'timeout=30s', workers => 1,
               main => 'error_log %%DIR%%/debug.log debug;');
    wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
    wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                     == 404 }, 10, 'Redis');
    chats(1, 1);
    settled('with a debug log');

    my @seen;
    wait_until(sub {
        @seen = read_file($t->path('debug.log'))
                =~ /dsa\ (redis\ (?:connecting|connected|ready)
                         |ledger\ entry\ \d+\ \w+)/gx;
        grep { /confirmed/ } @seen }, 10, 'the confirmation');

    my ($number) = "@seen" =~ /entry (\d+)/;
    is_deeply(\@seen, [ map({ "redis $_" } qw/ connecting connected ready /),
                        map({ "ledger entry $number $_" }
                            qw/ queued sent confirmed /) ], 'transitions');
}

$t->reload(redis => 'timeout=1s', workers => 1);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');


# Lost replies: a relay passes each command to Redis and closes the connection
# instead of passing the reply, two times out of three.

sub relay {
    my ($port) = @_;

    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
        Listen => 16, ReuseAddr => 1) or die "listen: $!\n";
    my $n = 0;

    local $SIG{PIPE} = 'IGNORE';

    while (my $c = $listen->accept) {
        my $up = IO::Socket::INET->new(
            PeerAddr => '127.0.0.1', PeerPort => $server->port,
            Proto => 'tcp') or die "connect: $!\n";
        my $select = IO::Select->new($c, $up);
        my $scripts = 0;

        LINE: for ( ;; ) {
            for my $s ($select->can_read) {
                sysread $s, my $data, 65536 or last LINE;

                if ($s == $c) {
                    $scripts += () = $data =~ /EVAL/g;
                    syswrite $up, $data;
                    next;
                }

                last LINE if $scripts && $n++ % 3;

                syswrite $c, $data;
                $scripts = 0;
            }
        }

        close $c;
        close $up;
    }
}


my $port = $t->free_port;
my $relay = $t->daemon('relay', \&relay, $port);
wait_until(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                       PeerPort => $port) }, 10, 'the relay');

my $conf = read_file($t->path('nginx.conf'));
my $own = $server->port;
$conf =~ s/127\.0\.0\.1:$own [^;]*;/127.0.0.1:$port timeout=1s;/
    or die "no dsa_redis in nginx.conf\n";
$t->reload(conf => $conf);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');

chats(40, 4);
settled('replies lost, nothing counted twice', 60);


# An entry that can never be written is logged and does not block the others.

my $r = $t->redis($server);
my ($key) = reverse sort(keys_of(ledger => ''));    # of this day
my ($field) = grep { /\|reasoning_tokens$/ } keys %{ $r->hgetall($key) };
$r->cmd('HSET', $key, $field, 'many');
%before = %want;
chats(1, 1);
wait_until(sub { $t->logged(qr/is lost: .*of the ledger is not a count/) },
           20, 'the loss to be logged');
$r->cmd('HSET', $key, $field, 0);
%want = %before;
chats(2, 1);
settled('after a damaged ledger', 60);

$relay->stop;

$t->done;
