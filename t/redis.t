# Copyright (C) The nginx-dsa authors
#
# The connection to Redis: addresses, passwords, databases, timeouts,
# reconnecting, and any bytes that a Redis can send.  No engine is needed:
# conversations can be created and read without one.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use IO::Select;
use IO::Socket::INET;
use Socket qw/ IPPROTO_TCP TCP_NODELAY /;
use Test::More;
use Time::HiRes qw/ time /;

my $id = 'conv_00112233445566778899aabbccddeeff';
my $t = DSA::Test->new('redis');


sub conf {
    my ($directives, $main) = @_;

    $main = '' if !defined $main;

    return <<"EOC";
%%GLOBALS%%
$main
events {
    worker_connections  512;
}

http {
    %%HTTP%%
    $directives
    dsa_pool none { engine unix:%%DIR%%/none.sock; }

    server {
        listen  127.0.0.1:%%PORT%%;
        location /v1/ { dsa_pass none; }
        location /up { return 200; }
    }
}
EOC
}


sub conversation { $t->get("/v1/conversations/$id", @_) }


sub message {
    my ($r) = @_;

    return $r->{json} && $r->{json}{error} ? $r->{json}{error}{message} : '';
}


# How many lines report that Redis cannot be used for this reason.  The line of
# a client's refusal is not counted.

sub reported {
    my ($why) = @_;

    return scalar grep { /\[error\]/ && !/refused with/ && /\Q$why\E/ }
                  split /\n/, $t->error_log;
}


sub served {
    my ($status, $seconds) = @_;

    return wait_until(sub { conversation()->{status} == $status },
                      $seconds || 20, "status $status");
}


# The directive.

my $secret = write_file($t->path('secret'), "s3cret\n");
chmod 0600, $secret;
my $open = write_file($t->path('open'), 's3cret');
chmod 0644, $open;
write_file($t->path('empty'), "\n");
write_file($t->path('long'), 'x' x 5000);

for my $case (
    [ 'dsa_redis 127.0.0.1:1; dsa_redis 127.0.0.1:2;', qr/is duplicate/ ],
    [ 'dsa_redis 127.0.0.1:99999;', qr/invalid port/ ],
    [ 'dsa_redis unix:;', qr/no path/ ],
    [ 'dsa_redis no.such.host.invalid;', qr/host not found/ ],
    [ 'dsa_redis 127.0.0.1:1 color=red;', qr/invalid parameter "color=red"/ ],
    [ 'dsa_redis 127.0.0.1:1 db;', qr/invalid parameter "db"; expected user=/ ],
    [ 'dsa_redis 127.0.0.1:1 db=-1;', qr/invalid value in "db=-1"/ ],
    [ 'dsa_redis 127.0.0.1:1 timeout=0;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 timeout=soon;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 connect_timeout=;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 ttl=0;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 ttl=101y;', qr/expected a time from 1s to 100y/ ],
    [ 'dsa_redis 127.0.0.1:1 queue=many;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 queue=0;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 queue=1000001;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 queue_file=;', qr/invalid value/ ],
    [ 'dsa_redis 127.0.0.1:1 user=dsa;', qr/without "password_file"/ ],
    [ 'dsa_redis 127.0.0.1:1 password_file=%%DIR%%/none;',
      qr/No such file/ ],
    [ 'dsa_redis 127.0.0.1:1 password_file=%%DIR%%/empty;',
      qr/must contain a password/ ],
    [ 'dsa_redis 127.0.0.1:1 password_file=%%DIR%%/long;',
      qr/must contain a password/ ],
    [ 'dsa_redis;', qr/invalid number of arguments/ ])
{
    my ($directive, $want) = @$case;
    my ($rc, $out) = $t->nginx_test(conf => conf($directive));

    ok($rc != 0 && $out =~ $want, $directive) or diag($out);
}

my ($rc, $out) = $t->nginx_test(
    conf => conf('dsa_redis [::1]:1 password_file=%%DIR%%/open db=3 ttl=7d '
                 . 'timeout=1s connect_timeout=300ms queue=5 user=x '
                 . 'queue_file=%%DIR%%/queue;'));
is($rc, 0, 'all parameters') or diag($out);
like($out, qr/\[warn\].*open to every user/,
     'a password that everyone can read');
unlike($out, qr/s3cret/, 'a password is not shown');

($rc, $out) = $t->nginx_test(
    conf => conf('dsa_redis unix:/nowhere password_file=%%DIR%%/secret;'));
is($rc, 0, 'a unix socket');
unlike($out, qr/warn/, 'a password file of mode 0600');


# A real one: password, database, user.

my $redis = $t->start_redis(
    password => 's3cret',
    conf => { databases => 4, unixsocket => $t->path('redis.sock') });
my $client = $t->redis($redis);

$t->start_nginx(conf => conf('dsa_redis %%REDIS%% db=3 timeout=10s '
                             . 'password_file=%%DIR%%/secret;'));

served(404);

my $made = $t->post('/v1/conversations', '{}');
is($made->{status}, 200, 'made');
is($client->cmd('DBSIZE'), 0, 'not in database 0');
$client->cmd('SELECT', 3);
is_deeply([ sort map { s/.*:(?:c:)?//r } $client->keys ],
          [ $made->{json}{id}, 'stored' ], 'in database 3');

$t->reload(conf => conf('dsa_redis unix:%%DIR%%/redis.sock timeout=10s '
                        . 'password_file=%%DIR%%/secret;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
served(404);
is($t->post('/v1/conversations', '{}')->{status}, 200, 'by unix socket');

$client->cmd(qw/ ACL SETUSER dsa on >other ~dsa1:* +@all -acl /);
write_file($t->path('other'), 'other');
$t->reload(conf => conf('dsa_redis %%REDIS%% user=dsa timeout=10s '
                        . 'password_file=%%DIR%%/other;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
served(404);
ok((grep { /user=dsa/ } split /\n/, $client->cmd('CLIENT', 'LIST')),
   'as a user');

# a database that does not exist is an error, and no other one is used

$t->reload(conf => conf('dsa_redis %%REDIS%% db=9 '
                        . 'password_file=%%DIR%%/secret;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
wait_until(sub { reported('DB index is out of range') }, 10, 'a refusal');
is($t->post('/v1/conversations', '{}')->{status}, 503, 'no such database');

# wrong and missing passwords

$t->reload(conf => conf('dsa_redis %%REDIS%% '
                        . 'password_file=%%DIR%%/other;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
wait_until(sub { reported('WRONGPASS') }, 10, 'a refusal');

for (1 .. 5) {
    my $r = conversation();

    is($r->{status}, 503, 'wrong password');
    like(message($r), qr/Redis rejects the password/,
         'the message names the cause');
}

is(reported('WRONGPASS'), 1, 'logged once');
unlike($t->error_log, qr/s3cret/, 'no password in the log');

# the worker tries again without a reload

$client->cmd(qw/ CONFIG SET requirepass other /);
served(404);
ok($t->logged(qr/\[notice\].*Redis is available again/),
   'the log reports that it is available');

$t->reload(conf => conf('dsa_redis %%REDIS%%;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
wait_until(sub { reported('NOAUTH') }, 10, 'a refusal');
like(message(conversation()), qr/requires a password/, 'no password given');


# A Redis that hangs, dies and restarts.

$redis = $t->start_redis();

$t->reload(conf => conf('dsa_redis %%REDIS1%% timeout=300ms;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
served(404);

my $hung = reported('does not answer in time');

$redis->signal('STOP');

my $start = time;
my $r = conversation();
is($r->{status}, 503, 'stopped');
like(message($r), qr/does not answer in time/, 'the message names the cause');
cmp_ok(time - $start, '<', slow(30), 'in time');
is($r->{headers}{'retry-after'}, 1, 'Retry-After');

conversation() for 1 .. 5;
is(reported('does not answer in time') - $hung, 1, 'logged once');

$redis->signal('CONT');
served(404);

$redis->kill9;
served(503);
conversation() for 1 .. 5;
wait_until(sub { $t->logged(qr/\[info\].*: Redis cannot be reached/) > 2 },
           20, 'more attempts');
is(reported('Redis cannot be reached'), 1, 'a dead Redis is logged once');

$redis->restart;
served(404);

# Redis closes an idle connection

my $other = $t->redis($redis);
my $lost = reported('closed the connection');
$other->cmd(qw/ CLIENT KILL TYPE normal SKIPME yes /);
wait_until(sub { reported('closed the connection') > $lost }, 10, 'the end');
served(404);

# a worker that waits for no reply exits at once

$t->reload();
wait_until(sub { $t->workers == 1 }, 5, 'the old worker to leave');
served(404);


# A fake Redis.  It writes each command as a line of the file "commands", and
# sends what the test has put into the file "script": { connect => pieces,
# NAME => pieces }.  A piece is bytes, "fill N" for so many bytes, "wait
# SECONDS", so that the bytes arrive apart, or "close".  hold => N: it replies
# to HGETALL when it has received N of them.  large => 1: it replies with
# large().  The script is read at each command, so it is short.

sub fake {
    my ($port) = @_;

    my $listen = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
        Listen => 16, ReuseAddr => 1) or die "listen: $!\n";
    my $select = IO::Select->new($listen);
    my (%in, %silent, %behind);
    my @held;

    local $SIG{PIPE} = 'IGNORE';

    for ( ;; ) {
        for my $s ($select->can_read) {

            if ($s == $listen) {
                my $c = $listen->accept or next;
                setsockopt $c, IPPROTO_TCP, TCP_NODELAY, 1;
                $select->add($c);
                $in{$c} = '';
                delete $silent{$c};
                delete $behind{$c};
                note_command('connect');
                answer($c, $select, script()->{connect});
                next;
            }

            if (!sysread $s, $in{$s}, 65536, length $in{$s}) {
                $select->remove($s);
                close $s;
                next;
            }

            while (my @words = command(\$in{$s})) {
                note_command(join ' ', map { substr $_, 0, 100 } @words);

                # the test changes the script when it has seen a command

                my $script = script();

                # replies are in the order of the commands, so that none may
                # follow one that is not sent, or not yet

                my $reply = $script->{$words[0]} || ["+OK\r\n"];

                $silent{$s} ||= !@$reply;
                next if $silent{$s};

                if ($script->{hold} && $words[0] eq 'HGETALL') {
                    push @held, [ $s, $words[1] ];
                    next if @held < $script->{hold};

                    for (splice @held) {
                        my ($to, $key) = @$_;
                        answer($to, $select, [ stored(length $key, $key) ]);
                    }

                    answer($_->[0], $select, $_->[1])
                        for map { @$_ } values %behind;
                    %behind = ();

                    next;
                }

                if (grep { $_->[0] == $s } @held) {
                    push @{ $behind{$s} }, [ $s, $reply ];
                    next;
                }

                if ($script->{large} && $words[0] eq 'HGETALL') {
                    answer($s, $select, [ stored(7, large()) ]);
                    next;
                }

                answer($s, $select, $reply);
            }
        }
    }
}


sub large { map { $_ x 500 } 1000 .. 2999 }


sub script { json_decode(read_file($t->path('script'))) }


sub note_command {
    open my $fh, '>>', $t->path('commands') or die;
    syswrite $fh, "$_[0]\n";
}


sub commands { split /\n/, read_file($t->path('commands')) || '' }
sub connects { scalar grep { $_ eq 'connect' } commands() }


sub command {
    my ($in) = @_;

    $$in =~ /\A\*(\d+)\r\n/ or return;
    my ($n, $at, @words) = ($1, $+[0]);

    for (1 .. $n) {
        pos($$in) = $at;
        $$in =~ /\G\$(\d+)\r\n/gc or return;
        $at = pos $$in;
        return if length $$in < $at + $1 + 2;
        push @words, substr $$in, $at, $1;
        $at += $1 + 2;
    }

    substr($$in, 0, $at) = '';

    return @words;
}


sub answer {
    my ($to, $select, $pieces) = @_;

    for my $piece (@{ $pieces || [] }) {
        if ($piece eq 'close') {
            $select->remove($to);
            close $to;
            return;
        }

        if ($piece =~ /\Await (.*)/) {
            select undef, undef, undef, $1;
            next;
        }

        # JSON carries bytes as characters

        my $sent = 0;
        my $bytes = $piece =~ /\Afill (\d+)/ ? 'x' x $1 : $piece;
        utf8::downgrade($bytes);

        while ($sent < length $bytes) {
            my $n = syswrite $to, $bytes, length($bytes) - $sent, $sent;
            return if !defined $n;
            $sent += $n;
        }
    }
}


# The reply to HGETALL for a conversation.

sub stored {
    my ($version, @messages) = @_;

    my %fields = (version => $version, created => 1770163199,
                  count => scalar @messages, next => scalar @messages,
                  first => 0, bytes => 0,
                  map { $_ => qq({"role": "user", "content": ")
                              . $messages[$_] . '"}' } 0 .. $#messages);

    return '*' . 2 * keys(%fields) . "\r\n"
           . join '', map { '$' . length($_) . "\r\n$_\r\n" }
                      map { $_ => $fields{$_} } reverse sort keys %fields;
}


sub play {
    my (%script) = @_;

    write_file($t->path('script.new'),
               json_encode({ PING => ["+PONG\r\n"], %script }));
    rename $t->path('script.new'), $t->path('script') or die;
}


my $port = $t->free_port;
play();
my $fake = $t->daemon('fake', \&fake, $port);
wait_until(sub {
    IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)
}, 10, 'the fake Redis');

my $fast = "dsa_redis 127.0.0.1:$port timeout=10s;";
my $good = [ stored(7, 'one', 'two') ];

play(HGETALL => $good);
$t->reload(conf => conf($fast));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
served(200);

my $want = conversation()->{body};
is_deeply(json_decode($want), {
    id => $id, object => 'conversation', created_at => 1770163199,
    metadata => {}, version => 7,
    messages => [ { role => 'user', content => 'one' },
                  { role => 'user', content => 'two' } ] },
    'a conversation');


# The reply cut at every byte, and in single bytes.

my $bytes = $good->[0];
my @bad;

for my $cut (1 .. length($bytes) - 1) {
    play(HGETALL => [ substr($bytes, 0, $cut), 'wait 0.002',
                      substr($bytes, $cut) ]);

    push @bad, $cut if conversation()->{body} ne $want;
}

is("@bad", '', 'cut in two at every byte');

play(HGETALL => [ map { ($_, 'wait 0.0005') } split //, $bytes ]);
is(conversation()->{body}, $want, 'byte by byte');

my $opened = connects();


# An error that concerns one command does not end the connection.

play(HGETALL => ["-ERR boom\r\n"]);
is(conversation()->{status}, 503, 'an error');

for my $reply (":1\r\n", "+OK\r\n", "\$3\r\nabc\r\n", "\$-1\r\n", "*-1\r\n",
               "*1\r\n:1\r\n", "*2\r\n:1\r\n:2\r\n",
               "*2\r\n\$7\r\nversion\r\n\$1\r\nx\r\n",
               "*2\r\n*2\r\n:1\r\n:1\r\n*0\r\n",
               stored(7, 'one') =~ s/count\r\n\$1\r\n1/count\r\n\$1\r\n2/r)
{
    play(HGETALL => [$reply]);
    is(conversation()->{status}, 500, 'not a conversation')
        or diag($reply);
}

play(HGETALL => ["*0\r\n"]);
is(conversation()->{status}, 404, 'unknown');
play(HGETALL => $good);
is(conversation()->{body}, $want, 'the next command succeeds');
is(connects(), $opened, 'on the same connection');


# Text from Redis is logged in one short line of printable characters.

my $evil = "\x1b[2J\x07\x08\x7f\x00\x0b" . 'x' x 5000;

play(HGETALL => ["-ERR $evil\r\n"]);
my $evil_reply = conversation();
is($evil_reply->{status}, 503, 'an error with control characters');
unlike($evil_reply->{body}, qr/[\x00-\x1f\x7f]|xxx/, 'not for the client');
play(HGETALL => ["-NOAUTH $evil\r\n"]);
is(conversation()->{status}, 503, 'and one that ends the connection');
my $refused = reported('rejects the connection');
play(PING => ["-ERR $evil\r\n"], HGETALL => $good);
wait_until(sub { reported('rejects the connection') > $refused }, 10,
           'a refused setup');
play(HGETALL => $good);
served(200);

my @lines = grep { /xxx/ } split /\n/, $t->error_log;
cmp_ok(scalar @lines, '>=', 3, 'each is in the log');
is_deeply([ grep { /[\x00-\x1f\x7f]/ || length > 600 } @lines ], [],
          'without control characters, and short');


# Errors that mean that this Redis cannot be used at all.

for my $case ([ 'CLUSTERDOWN The cluster is down', qr/cluster that is down/ ],
              [ 'LOADING Redis is loading the dataset', qr/is loading/ ],
              [ 'MASTERDOWN Link with MASTER is down', qr/without its master/ ],
              [ 'NOAUTH Authentication required.', qr/requires a password/ ],
              [ "READONLY You can't write", qr/read-only replica/ ])
{
    my ($error, $want_message) = @$case;
    my $before = reported(substr $error, 0, 8);

    # the text differs each time, and the cause is the same

    for my $n (1 .. 3) {
        my $asked = grep { /^HGETALL/ } commands();
        my $r;

        play(HGETALL => [ "-$error $n\r\n" ]);

        wait_until(sub {
            $r = conversation();
            $asked < grep { /^HGETALL/ } commands();
        }, 10, $error);

        is($r->{status}, 503, "$error: refused");
        like(message($r), $want_message, "$error: the message names it");
        unlike(message($r), qr/127\.0\.0\.1/, 'the client gets no address');
    }

    is(reported(substr $error, 0, 8) - $before, 1, "$error: logged once");

    play(HGETALL => $good);
    served(200);
}

play(PING => ["-LOADING Redis is loading\r\n"], HGETALL => $good);
$t->reload();
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
like(message(wait_until(sub { my $r = conversation();
                              message($r) =~ /is loading/ ? $r : undef },
                        10, 'a refusal')),
     qr/is loading/, 'loading during the setup');
play(HGETALL => $good);
served(200);


# No command is sent before the database is selected: a SELECT that fails
# slowly is followed by no other command.

play(SELECT => [ 'wait 0.2', "-ERR DB index is out of range\r\n" ]);
my $asked = grep { /^HGETALL/ } commands();
$t->reload(conf => conf($fast =~ s/;/ db=9;/r));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');

for (1 .. 3) {
    my $selects = grep { /^SELECT/ } commands();
    wait_until(sub { $selects < grep { /^SELECT/ } commands() }, 10,
               'an attempt');
    is(conversation()->{status}, 503, 'requested during the setup');
}

is(scalar(grep { /^HGETALL/ } commands()), $asked, 'and not sent');

# a command that waits is sent when the setup has succeeded

play(SELECT => [ 'wait 0.2', "+OK\r\n" ], HGETALL => $good);
my $selects = grep { /^SELECT/ } commands();
wait_until(sub { $selects < grep { /^SELECT/ } commands() }, 10,
           'an attempt');
is(conversation()->{status}, 200,
   'requested during the setup, answered after it');

$t->reload(conf => conf($fast));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');


# Bytes that are not a reply, or a reply that is too large.

for my $case (
    [ 'no RESP', "hello\r\n" ],
    [ 'HTTP', "HTTP/1.1 400 Bad Request\r\n\r\n" ],
    [ 'two replies to one command', ":1\r\n:2\r\n" ],
    [ 'an array beyond bounds', "*2000000000\r\n" ],
    [ 'arrays beyond bounds', "*4000\r\n" x 5 ],
    [ 'a deep array', "*1\r\n" x 20 . ":1\r\n" ],
    [ 'a string that never ends', "\$2000000000\r\n", 'fill 8000000' ],
    [ 'a line that never ends', '+', 'fill 8000000' ],
    [ 'the end within a reply', substr($bytes, 0, 50), 'close' ],
    [ 'the end', 'close' ])
{
    my ($name, @pieces) = @$case;

    play(HGETALL => \@pieces);
    my $r = conversation();
    is($r->{status}, 503, $name) unless $name =~ /two replies/;

    play(HGETALL => $good);
    served(200);
    is(conversation()->{body}, $want, "$name: over");
}

my ($worker) = $t->workers;
my ($peak) = read_file("/proc/$worker/status") =~ /VmHWM:\s+(\d+) kB/;
cmp_ok($peak, '<', $ENV{DSA_SANITIZED} ? 1_000_000 : 64_000,
       'bounded memory, kB');

# replies before any command

for my $case ([ 'too many clients',
                [ "-ERR max number of clients reached\r\n", 'close' ] ],
              [ 'closed when connected', [ 'close' ] ],
              [ 'a reply to nothing', [ "+hello\r\n" ] ])
{
    my ($name, $pieces) = @$case;

    my $before = connects();

    play(connect => $pieces, HGETALL => ['close']);
    served(503);
    wait_until(sub { connects() > $before + 1 }, 20, 'attempts to connect');
    play(HGETALL => $good);
    served(200);
    pass($name);
}

ok(reported('max number of clients'), 'the error is logged');
ok(reported('a reply without a command'), 'and the unexpected reply');


# The largest conversation.

play(large => 1);
$r = conversation();
is($r->{status}, 200, 'a large conversation');
is(scalar @{ $r->{json}{messages} }, 2000, 'has all messages');
is(join(' ', map { $_->{content} } @{ $r->{json}{messages} }),
   join(' ', large()), 'as they are, in their order');


# A worker that shuts down waits for a reply.

play(hold => 2);
my $n = grep { /^HGETALL/ } commands();
my $early = $t->connect;
$early->send_request(GET => "/v1/conversations/$id");
wait_until(sub { $n + 1 == grep { /^HGETALL/ } commands() }, 10, 'a command');
my $quits = $t->logged(qr/gracefully shutting down/);
$t->reload();
wait_until(sub { $t->logged(qr/gracefully shutting down/) > $quits }, 10,
           'the old worker to shut down');
is(conversation()->{status}, 200, 'the new worker has its answer');
is($early->response->{status}, 200, 'and the old one its own');
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');


# Fifty requests, answered together: each gets its own answer.  A client that
# leaves does not affect the others.

play(hold => 51);
$n = grep { /^HGETALL/ } commands();

my @ids = map { sprintf 'conv_%032x', $_ } 1 .. 50;
my $left = $t->connect;
$left->send_request(GET => "/v1/conversations/$id");
wait_until(sub { $n + 1 == grep { /^HGETALL/ } commands() }, 10, 'a command');
$left->close;
wait_until(sub { $t->access_log =~ / 499 / }, 10, '499');

my @clients = map {
    my $c = $t->connect;
    $c->send_request(GET => "/v1/conversations/$_");
    $c;
} @ids;

my @mixed = grep {
    my $r = $clients[$_]->response;
    $r->{status} != 200 || $r->{json}{id} ne $ids[$_]
    || $r->{json}{messages}[0]{content} !~ /:c:$ids[$_]$/
} 0 .. $#ids;

is("@mixed", '', 'fifty answers, each for its own request');

# if no reply comes, all of them get an error

play(HGETALL => []);
@clients = map {
    my $c = $t->connect;
    $c->send_request(GET => "/v1/conversations/$_");
    $c;
} @ids;
my @refused = map { $_->response } @clients;

is_deeply([ map { $_->{body} } grep { $_->{status} != 503 } @refused ], [],
          'fifty refusals');
play(HGETALL => $good);
served(200);

$fake->stop;


# An address where connecting hangs: a listener that accepts no connection.

my $deaf = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 1)
    or die "listen: $!\n";
my @fill = map {
    IO::Socket::INET->new(PeerAddr => '127.0.0.1', Proto => 'tcp',
                          PeerPort => $deaf->sockport, Blocking => 0)
} 1 .. 4;

$t->reload(conf => conf('dsa_redis 127.0.0.1:' . $deaf->sockport
                        . ' connect_timeout=200ms timeout=200ms;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
$start = time;
$r = conversation();
is($r->{status}, 503, 'no connection is accepted');
cmp_ok(time - $start, '<', slow(30), 'in time');

# an address without a listener

$t->reload(conf => conf('dsa_redis unix:%%DIR%%/nobody.sock;'));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
like(message(conversation()), qr/cannot be reached/,
     'the message names the cause');
is($t->get('/up')->{status}, 200, 'a location without Redis is served');

# none at all

$t->reload(conf => conf(''));
wait_until(sub { $t->workers == 1 }, 10, 'the old worker to leave');
is(conversation()->{status}, 501, 'not configured');

$t->done;
