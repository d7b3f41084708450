#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Hard budgets while Redis does not do what it should: it is full, cannot save,
# refuses a command, is read-only, killed or frozen, and nginx is restarted
# meanwhile.  A budget is exceeded by the requests in flight at most, and each
# entry counts once.

use strict;
use warnings;

use POSIX ();
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

my $chat = '/v1/chat/completions';
my $cost = 100;                             # of a request, 10^-6
my $most = 30;                              # requests in a row

my $t = DSA::Test->new('budgets');
my $server = $t->start_redis(appendonly => 1, conf => {
    'enable-protected-configs' => 'yes', 'stop-writes-on-bgsave-error' => 'yes'
});
my $fake = $t->start_fake();
my $file = $t->path('keys');
my $queue = $t->path('nginx.pid.ledger');

my %budget = (budget => { map { $_ => { hard => '0.001' } }
                          qw/ day month total / });
my @names = qw/ full unsaved refused read-only killed frozen many dead upgrade
                lost damaged removed grown /;

write_keys($file, (map { key_entry($_, tenant => 'acme', %budget) } @names),
           key_entry('torn', budget => { total => { hard => '1' } }),
           key_entry('soft', budget => { total => { soft => '0.0001' } }),
           key_entry('free'));

my %nginx = (
    workers => 2, redis => 'timeout=500ms',
    http => 'dsa_keys file=%%DIR%%/keys zone=keys:1m;
             dsa_price deepseek-chat miss=1 hit=1 output=1;',
    server => 'location /user/ { dsa_pass v32; }
               location = /status { dsa_status; }');

start();


sub id { key_entry($_[0])->{id} }
sub auth { bearer(key_text($_[0])) }

sub script_of { script("t a\nprompt 60\ncompletion 40\ndone stop") }
sub once { $t->post($chat, script_of(), auth($_[0])) }
sub status { once($_[0])->{status} }
sub balance { $t->get('/user/balance', auth($_[0])) }

sub pending { $t->metrics->{dsa_redis_pending_records} }


# Slots of the queue file whose requests run, or did so when their worker was
# killed.

sub running {
    my $bytes = read_file($queue);
    my $slot = unpack 'x12 L', $bytes;

    return scalar grep { ord(substr $bytes, 4096 + $_ * $slot, 1) == 3 }
                  0 .. (length($bytes) - 4096) / $slot - 1;
}


# Starts nginx, and waits until the workers have read what all keys have spent,
# if Redis is there.

sub start {
    my (%opt) = @_;

    $t->start_nginx(%nginx);

    return if $opt{away};

    $t->wait_redis(2);
    wait_until(sub { !grep { balance($_)->{status} != 200 } @names }, slow(30),
               'what keys have spent');
}


# What Redis has of a key in total, 10^-6 units.

sub spent {
    my ($name) = @_;

    my $redis = $t->redis($server);
    my $sum = 0;

    for my $key (grep { /:spend$/ } $redis->keys('dsa1:*')) {
        $sum += $redis->cmd('HGET', $key, id($name)) || 0;
    }

    return $sum / 1e6;
}


# Waits until sums of a key were requested twice, so that the second request
# was made after this call.  A request with the key lets nginx read them.

sub read_again {
    my ($name) = @_;

    my $redis = $t->redis($server);
    my $n = 0;

    $redis->cmd('MONITOR');

    while ($n < 2) {
        $n++ if $redis->reply =~ /"HMGET".*\Q${\id($name)}\E/i;
    }

    return;
}


# How many requests in a row a key may send; after the
# sixth one the sums are read, if they can be.

sub row {
    my ($name, $readable) = @_;

    for my $n (0 .. $most - 1) {
        my $status = status($name);

        if ($status != 200) {
            is($status, 402, "$name: the last answer is 402");
            return $n;
        }

        read_again($name) if $readable && $n == 5;
    }

    return $most;
}


# Kills all processes of nginx, as a crash of the machine's container does.

sub crash {
    my $master = $t->nginx_pid;
    my @pids = ($master, $t->workers);

    kill 'KILL', @pids;
    DSA::Process::wait_gone($_, slow(20)) for @pids;
    unlink $t->path('nginx.pid');
}


# the faults of Redis

mkdir $t->path('redis0/directory');

my %fault = (
    full => {
        begin => [ qw/ CONFIG SET maxmemory 1 / ],
        end => [ qw/ CONFIG SET maxmemory 0 / ],
    },
    unsaved => {
        begin => [ [ qw/ CONFIG SET dbfilename directory / ],
                   [ 'CONFIG', 'SET', 'save', '3600 1' ], [ 'BGSAVE' ] ],
        end => [ [ 'CONFIG', 'SET', 'save', '' ],
                 [ qw/ CONFIG SET dbfilename dump.rdb / ] ],
        closed => 1,                        # to new connections
    },
    refused => {
        begin => [ qw/ ACL SETUSER default -eval -evalsha / ],
        end => [ qw/ ACL SETUSER default +@all / ],
    },
    'read-only' => {
        begin => [ qw/ REPLICAOF 127.0.0.1 1 / ],
        end => [ qw/ REPLICAOF NO ONE / ],
        away => 1,
    },
    killed => {
        begin => sub { $server->kill9 },
        end => sub { $server->restart; $server->wait_ready(slow(30)) },
        away => 1,
    },
    frozen => {
        begin => sub { $server->signal('STOP') },
        end => sub { $server->signal('CONT') },
        away => 1,
    });


sub change {
    my ($what) = @_;

    return $what->() if ref $what eq 'CODE';

    my @commands = ref $what->[0] ? @$what : $what;
    my $redis = $t->redis($server);

    $redis->cmd(@$_) for @commands;

    wait_until(sub { $redis->cmd('INFO', 'persistence')
                     =~ /rdb_bgsave_in_progress:0/ }, slow(30), 'BGSAVE');
}


for my $name (qw/ full unsaved refused read-only killed frozen /) {
    my $fault = $fault{$name};

    change($fault->{begin});

    is(row($name, !$fault->{away}), 10, "$name: 10 requests of 0.0001");
    is(status('free'), 200, "$name: a key without a budget is served");
    is(balance($name)->{json}{balance_infos}[0]{total_balance}, '0.00',
       "$name: nothing is left");

    # nginx is restarted meanwhile, or crashes

    $name =~ /u/ ? crash() : $t->stop_nginx();
    start(away => 1);

    is(status($name), 402, "$name: nor after a restart");
    is(balance($name)->{json}{is_available}, JSON::PP::false,
       "$name: as the balance reports");

    read_again($name) if !$fault->{away} && !$fault->{closed};
    is(status($name), 402, "$name: nor when the sums are read");

    change($fault->{end});
    wait_until(sub { pending() == 0 }, slow(60), "$name: the ledger");

    is(spent($name), 10 * $cost, "$name: Redis has each entry once");
    read_again($name);
    is(status($name), 402, "$name: and the key stays refused");

    # nothing else counts: a credit of two requests admits two requests

    my ($spend) = grep { /:spend$/ && $t->redis($server)->cmd('HEXISTS', $_,
                                                           id($name)) }
                  $t->redis($server)->keys('dsa1:*');

    my %fields = %{ $t->redis($server)->hgetall($spend) };

    $t->redis($server)->cmd('HINCRBY', $spend, $_, -2 * $cost * 1e6)
        for grep { /^\Q${\id($name)}\E/ } keys %fields;

    wait_until(sub { status($name) == 200 }, slow(30), "$name: a credit");
    is(row($name, 0), 1, "$name: each entry counted once here")
        or diag(balance($name)->{body});
}


# many at the same time: at most those in flight exceed the budget

change($fault{full}{begin});

{
    my @c = map { $t->connect } 1 .. 24;
    my $body = json_encode(script("t a\nprompt 60\ncompletion 40\nwait\n"
                                  . 'done stop'));
    my @held = splice @c, 0, 12;

    $_->send_request('POST', $chat, auth('many'), body => $body) for @held;
    wait_until(sub { ctl($fake, 'live') eq '12' }, slow(30), '12 in flight');
    ctl($fake, 'go 12');
    is((grep { $_->response->{status} == 200 } @held), 12, 'in flight');

    $_->send_request('POST', $chat, auth('many'), body => $body) for @c;
    is((grep { $_->response->{status} == 402 } @c), 12, 'and no more');
}

read_again('many');
is(status('many'), 402, 'after the next read as well');


# A worker is killed: its requests are charged with the counts of their slots.
# 500 tokens of the prompt and two of the answer were sent.

{
    my @s = map { $t->stream(script("prompt 500\nt a\nt b\nhold\n"),
                             auth('dead')) } 1, 2;

    # a token is a letter; tokens that come together are one event

    for my $s (@s) {
        my $text = '';

        $text .= $s->next_event->{json}{choices}[0]{delta}{content} // ''
            while length $text < 2;
    }

    my %victim = map { $t->worker_of($_) => 1 } @s;

    $t->allow_alert(qr/worker process \d+ exited on signal 9/);
    kill 'KILL', keys %victim;

    # a chat costs as well, and ten of them would spend the budget

    wait_until(sub {
        my $infos = balance('dead')->{json}{balance_infos};
        return $infos && $infos->[0]{total_balance} eq '0.00';
    }, slow(30), 'their charge');

    my ($is) = once('dead')->{json}{error}{message} =~ /and (0\.\d+) is spent/;
    cmp_ok($is, '>=', 0.001004, 'what killed workers had in flight counts');
}

# the replacement of a worker has to be there before the next step

wait_until(sub { $t->workers == 2 }, slow(20), 'both workers');


# Workers are killed at any moment, also while they change the sums: what nginx
# has counted is what Redis gets at the end, each entry once.

{
    my $body = json_encode(script("t a\nprompt 60\ncompletion 40\ndone stop"));
    my @pids;

    for my $i (1 .. 4) {
        my $pid = fork // die "fork: $!\n";

        if ($pid == 0) {
            local $SIG{PIPE} = 'IGNORE';

            for (my $n = 0; $n < 150; ) {
                eval { $t->post($chat, $body, auth('torn')) and $n++ };
            }

            POSIX::_exit(0);
        }

        push @pids, $pid;
    }

    my $kills = 0;

    while (grep { kill 0, $_ } @pids) {
        my @workers = $t->workers;

        kill 'KILL', $workers[rand @workers] if @workers && $kills++ < 20;
        DSA::Wait::pause(rand 0.06);
        @pids = grep { waitpid($_, POSIX::WNOHANG()) == 0 } @pids;
    }

    cmp_ok($kills, '>', 5, 'workers were killed');
    wait_until(sub { $t->workers == 2 }, slow(20), 'both workers');
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, slow(30),
               'the requests');

    # the slots of killed workers are adopted within three seconds

    wait_until(sub { running() == 0 }, slow(30), 'each entry to be charged');
}

my ($left) = map { $_->{total_balance} }
             @{ balance('torn')->{json}{balance_infos} };


# A binary upgrade has a new zone and the same files.  Old and new workers serve
# at the same time, and count together.

{
    my $s = $t->stream(script("prompt 30\nt a\nwait\ncompletion 70\n"
                              . 'done stop'), auth('upgrade'));
    is(status('upgrade'), 200, 'before the upgrade') for 1 .. 8;

    $t->upgrade;
    is(status('upgrade'), 200, 'the new nginx goes on');
    ctl($fake, 'go 1');
    is(DSA::HTTP->gather($s->events)->{done}, 1, 'the old one ends a stream');
    is(status('upgrade'), 402, 'which counts at the new one');
}

# A reload with a larger zone, which is new, needs a larger file of sums.  A
# worker of the old configuration still runs, and has to see it.

{
    my $size = -s "$queue.sums";
    my $s = $t->stream(script("prompt 30\nt a\nwait\ncompletion 70\n"
                              . 'done stop'), auth('grown'));

    is(status('grown'), 200, 'before the reload') for 1 .. 8;
    $t->reload(%nginx, http => $nginx{http} =~ s/keys:1m/keys:4m/r);
    cmp_ok(-s "$queue.sums", '>', 2 * $size, 'the file of sums has grown');
    is(status('upgrade'), 402, 'with what is in it');
    is(status('grown'), 200, 'the new worker goes on');
    ctl($fake, 'go 1');
    is(DSA::HTTP->gather($s->events)->{done}, 1, 'the old one ends a stream');
    is(status('grown'), 402, 'which counts in the new file');
}

change($fault{full}{end});
wait_until(sub { pending() == 0 }, slow(60), 'the ledger');
is(spent('grown'), 10 * $cost, 'each once');
is(spent('upgrade'), 10 * $cost, 'ten requests of two masters');
is(sprintf('%.6f', $left + spent('torn') / 1e6), '1.000000',
   'what was counted while workers were killed is in Redis');
cmp_ok(spent('torn'), '>', 100 * $cost, 'which is a lot');
is(spent('many'), 12 * $cost, 'twelve of them in flight at once');
cmp_ok(spent('dead'), '>=', 1004, 'those of killed workers');
is(status('upgrade'), 402, 'the new one');
read_again('upgrade');
is(status('upgrade'), 402, 'and they count once');


# An entry that the ledger can never have is lost, and stays spent: in the day
# and the month of its request, and in total.

{
    my $redis = $t->redis($server);
    my $field = id('lost') . '|deepseek-chat|requests';

    is(status('lost'), 200, 'an entry of the ledger') for 1 .. 3;
    wait_until(sub { pending() == 0 }, slow(30), 'the ledger');
    is(spent('lost'), 3 * $cost, 'three requests');

    # of the day of these requests

    my ($ledger) = reverse sort grep {
        /:ledger:\d{4}-\d\d-\d\d$/ && exists $redis->hgetall($_)->{$field}
    } $redis->keys('dsa1:*');

    $redis->cmd('HSET', $ledger, $field, 'x');
    is(row('lost', 0), 7, 'lost entries count');
    is(spent('lost'), 3 * $cost, 'although Redis does not have them');
    wait_until(sub { $t->metrics->{dsa_redis_lost_records_total} >= 7 },
               slow(30), 'the losses');
    is($t->metrics->{dsa_redis_lost_records_total}, 7, 'all seven are lost');

    crash();
    start();
    is(status('lost'), 402, 'also after a restart');
    read_again('lost');
    is(status('lost'), 402, 'and the next read');

    $redis->cmd('HDEL', $ledger, $field);
}


# A file of sums that is damaged or missing: nothing is known until Redis is
# read, and the entries in the queue count then.

change($fault{full}{begin});
is(row('damaged', 0), 10, 'a budget is spent');
is(row('removed', 0), 10, 'and another one');
change($fault{killed}{begin});

for my $what (qw/ damaged removed /) {
    $what eq 'damaged' ? crash() : $t->stop_nginx();

    if ($what eq 'damaged') {
        my $bytes = read_file("$queue.sums");
        substr $bytes, 0, 64, 'x' x 64;
        write_file("$queue.sums", $bytes);

    } else {
        unlink "$queue.sums" or die "$queue.sums: $!\n";
    }

    start(away => 1);

    my $r = once($what);

    is($r->{status}, 503, "$what: what is spent is not known");
    like($r->{json}{error}{message}, qr/what the key has spent could not be/,
         "$what: a clear text");
    is($r->{headers}{'retry-after'}, 1, "$what: and Retry-After");
    is(balance($what)->{status}, 503, "$what: nor the balance");
    is(status('soft'), 200, "$what: without a hard budget it is served");
    is($t->metrics->{'dsa_limited_requests_total{limit="unknown"}'}, 1,
       "$what: one was refused");

    my ($row) = grep { $_->{key} && $_->{key} eq id('soft') }
                @{ $t->get('/status')->{json}{tenants} };
    is($row->{spent}, undef, "$what: /status has no sums");
}

like($t->error_log, qr/nginx\.pid\.ledger\.sums" is damaged/, 'it is logged');

# Redis can be read, but it is still full

change($fault{killed}{end});
change($fault{full}{begin});
wait_until(sub { status('damaged') != 503 }, slow(60), 'the first read');
is(status($_), 402, "$_: known again, with the entries in the queue")
    for qw/ damaged removed /;

change($fault{full}{end});
wait_until(sub { pending() == 0 }, slow(60), 'the ledger');
is(spent($_), 10 * $cost, "$_: each entry once") for qw/ damaged removed /;


# a key that is new on this host is known soon

{
    my $first;

    write_keys($file, key_entry('free'),
               map { key_entry($_, %budget) } qw/ new unread /);
    wait_until(sub { ($first = status('new')) !~ /^(?:401|503)\z/ }, slow(30),
               'a new key');
    is($first, 200, 'a new key is served soon');
    is(status('new'), 200, 'and again') for 1 .. 9;
    is(status('new'), 402, 'up to its budget');
}


# Redis does not permit to read what keys have spent

{
    my $redis = $t->redis($server);

    $redis->cmd(qw/ ACL SETUSER default -hmget /);
    crash();
    unlink "$queue.sums" or die "$queue.sums: $!\n";
    start(away => 1);

    is(status('unread'), 503, 'what is spent cannot be read');
    is(status('free'), 200, 'a key without a hard budget');
    $redis->cmd(qw/ ACL SETUSER default +hmget /);
    wait_until(sub { status('unread') != 503 }, slow(30), 'it can be read');
    is(status('unread'), 200, 'and is known');
}


# Redis is slow: a request with a new key waits for what the key has spent

{
    my $slow = DSA::Test->new('budgets-slow');
    my $redis = $slow->start_redis();

    $slow->start_fake();
    write_keys($slow->path('keys'), key_entry('free'));
    $slow->start_nginx(%nginx, redis => 'timeout=30s');
    $slow->wait_redis(2);

    $redis->signal('STOP');
    write_keys($slow->path('keys'), key_entry('late', %budget));
    wait_until(sub { $slow->get('/v1/models', auth('late'))->{status} == 200 },
               slow(30), 'a new key');

    my $s = $slow->connect;
    $s->send_request('POST', $chat, auth('late'),
                     body => json_encode(script_of()));
    is($slow->post($chat, script_of(), auth('late'))->{status}, 503,
       'a request waits for a second, and is refused');
    is($s->response->{status}, 503, 'and so is another one');

    # on a busy machine Redis may need more than this second

    my $status;

    wait_until(sub {
        $s = $slow->connect;
        $s->send_request('POST', $chat, auth('late'),
                         body => json_encode(script_of()));
        $redis->signal('CONT');
        $status = $s->response->{status};

        return $status != 503;
    }, slow(30), 'an answer');
    is($status, 200, 'or until it is known');

    $slow->done;
}

$t->done;
