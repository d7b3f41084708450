# Copyright (C) The nginx-dsa authors
#
# Requests whose work waits for a thread or runs there: clients leave at every
# moment, timeouts expire, workers shut down, and the tenants take turns.
# Threads are held in front of a task or behind it, see
# t/preload/nginx_preload.c.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Keys;
use DSA::Test;
use Test::More;
use Time::HiRes qw/ time /;

# the transitions of work are in the debug log

BEGIN { $ENV{DSA_LOG_LEVEL} = 'debug' }

# bytes of a body whose work runs in threads

use constant LONG => 40_000;

my $t = DSA::Test->new('work-hold');
my $chat = '/v1/chat/completions';
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake('submit=' . (32 << 20), 'context=100000000');

my %nginx = (preload => 1, redis => 'timeout=20s',
    http => 'dsa_tenant $http_x_tenant; dsa_keepalive 100ms;',
    server => q{
        location /short/ { dsa_pass v32; dsa_timeout 3s; }
        location /ignore/ { dsa_pass v32; dsa_ignore_client_abort on; }
    });

$t->start_nginx(%nginx);

$t->wait_redis(1);


# A chat, answered by a script, with so much text in front of it.

sub long {
    my ($script, $size, %more) = @_;

    return { model => 'deepseek-chat', messages => [
        { role => 'user', content => 'x' x ($size || LONG) },
        { role => 'user', content => "!fake\n$script" } ], %more };
}


# Sends a request without waiting for its answer.

sub send_chat {
    my ($body, %opt) = @_;

    my $s = $t->connect();

    $s->send_request('POST', $opt{uri} || $chat,
        body => ref $body ? json_encode($body) : $body,
        headers => [ 'Content-Type' => 'application/json',
                     'X-Tenant' => $opt{tenant} || 'alice' ]);

    return $s;
}


sub answer {
    my ($s) = @_;

    $s->read_head();
    my $body = $s->read_body;

    return { status => $s->status, body => $body,
             json => eval { json_decode($body) } };
}


# The lines of the log that matter here; the others are many.

my ($log, @lines);

sub logged {
    my ($re) = @_;

    if (!defined $log) {
        open $log, '<', $t->path('error.log') or die "error.log: $!\n";
    }

    seek $log, 0, 1;

    while (my $line = <$log>) {

        # nginx writes a line at once

        push @lines, $line
            if $line =~ /dsa\ work:|client\ (?:prematurely|canceled)
                         |exiting|exited|shutting\ down|:\ finished,/x;
    }

    return scalar grep { /$re/ } @lines;
}


# Work that waits for a thread.

sub waiting {
    return logged(qr/dsa work: \w+ of \d+ bytes waits/)
           - logged(qr/dsa work: \w+ of \d+ bytes runs/)
           - logged(qr/dsa work: \w+ stopped/);
}


# One task at a time: holds the next one in front of it, and the one that is
# held there behind it.

sub in_front {
    $t->hold('before');
    $t->release('after');
    wait_until(sub { $t->held('before') }, 30, 'a task');
}

sub behind {
    $t->hold('after');
    $t->release('before');
    wait_until(sub { $t->held('after') }, 30, 'the end of a task');
}


sub status { my ($code) = @_;
             return $t->metrics->{qq/dsa_requests_total{code="$code"}/} }
sub in_flight { $t->metrics->{dsa_requests_in_flight} }

sub idle {
    wait_until(sub { in_flight() == 0 }, 30, 'no request in flight');
    is(waiting(), 0, "$_[0]: nothing waits");
}


# The tenants take turns, and a request that has begun goes on before others of
# its tenant.

{
    $t->hold('before');

    my @alice = map { my $s = send_chat(long("t a$_"));
                      wait_until(sub { $t->held('before') }, 30, 'a task')
                          if $_ == 1;
                      $s } 1 .. 6;

    wait_until(sub { waiting() == 5 }, 30, 'the requests of a tenant');

    my @bob = map { send_chat(long("t b$_"), tenant => 'bob') } 1, 2;

    wait_until(sub { waiting() == 7 }, 30, 'and of another one');

    is($t->post($chat, script('t hi'))->{json}{choices}[0]{message}{content},
       'hi', 'a short request does not wait');

    my $before = submitted($fake);

    $t->release();

    is(answer($_)->{status}, 200, 'an answer') for @alice, @bob;

    my @order = map { /t ([ab]\d)\[/ } (submitted($fake))[$before .. $before
                                                            + 7];

    is(scalar @order, 8, 'all were submitted');

    my %place = map { $order[$_] => $_ } 0 .. 7;

    cmp_ok($place{b1}, '<=', 1, 'the other tenant waits for one request');
    cmp_ok($place{b2}, '<=', 3, 'its next one for one more') or diag("@order");
    is(join(' ', grep { /a/ } @order), 'a1 a2 a3 a4 a5 a6',
       'those of a tenant have their order');
    idle('turns');
}


# A client leaves: while its work waits, runs, and has run; in each stage.

sub leaves {
    my ($name, $stages, $open, $close) = @_;

    # another request runs, so this one waits

    my $gone = status(499);
    my $submitted = submitted($fake);

    $t->hold('before');

    my $other = send_chat(long('t other'), tenant => 'bob');
    wait_until(sub { $t->held('before') }, 30, 'a task');

    my $s = $open->();
    wait_until(sub { waiting() == 1 }, 30, 'work that waits');
    $close->($s);

    ok(wait_until(sub { status(499) == $gone + 1 }, 30, 'the end'),
       "$name: the work waits");
    is(waiting(), 0, "$name: and is removed");
    $t->release();
    is(answer($other)->{json}{choices}[0]{message}{content}, 'other',
       "$name: the other request goes on");
    is(scalar submitted($fake), ++$submitted, "$name: only this one");
    idle($name);

    # in front of and behind its stages: parse, read, check, encode

    for my $stage (@$stages) {
        for my $when ('in front of', 'behind') {
            $gone = status(499);

            $t->hold('before');
            $s = $open->();
            wait_until(sub { $t->held('before') }, 30, 'a task');

            for (1 .. $stage) {
                behind();
                in_front();
            }

            behind() if $when eq 'behind';

            my $left = logged(qr/client (?:prematurely|canceled)/);

            $close->($s);
            wait_until(sub { logged(qr/client (?:prematurely|canceled)/)
                             > $left }, 30, 'the client to leave');
            is(status(499), $gone, "$name, $when stage $stage: it is kept");

            $t->release();

            ok(wait_until(sub { status(499) == $gone + 1 }, 30, 'the end'),
               "$name, $when stage $stage: until the task has ended");
            is(scalar submitted($fake), $submitted,
               "$name, $when stage $stage: nothing is submitted");
            idle("$name, $when stage $stage");
        }
    }
}

leaves('HTTP/1', [0 .. 3], sub { send_chat(long('t hi')) },
       sub { $_[0]->close });
leaves('HTTP/1, a stream', [2], sub {
           send_chat(long('t hi', 0, stream => \1)) }, sub { $_[0]->close });

sub send_http2 {
    my $h = DSA::HTTP2->new(port => $t->port(1));

    $h->{id} = $h->request('POST', $chat, json_encode(long('t hi')),
                           [ 'x-tenant' => 'alice' ]);
    return $h;
}

leaves('HTTP/2, a reset', [0, 3], \&send_http2,
       sub { $_[0]->reset($_[0]{id}) });
leaves('HTTP/2, the connection', [0, 3], \&send_http2, sub { $_[0]->close });


# the end of an answer: it is charged

{
    my $many = join '', map { "b 1000 abcdefgh\n" } 1 .. 10;

    for my $when ('in front of', 'behind') {
        my $gone = status(499);
        my $left = logged(qr/client prematurely/);
        my $tokens = $t->metrics->{'dsa_tokens_total{type="completion"}'};

        my $s = send_chat(script("${many}wait\nt end", max_tokens => 20_000));
        wait_until(sub { in_flight() == 1
                         && ctl($fake, 'live') eq '1' }, 30, 'the answer');
        $t->hold('before');
        ctl($fake, 'go');
        wait_until(sub { $t->held('before') }, 30, 'the end of the answer');
        behind() if $when eq 'behind';
        $s->close;
        wait_until(sub { logged(qr/client prematurely/) > $left }, 30,
                   'the client to leave');
        is(status(499), $gone, "the end of an answer, $when: it is kept");
        $t->release();
        ok(wait_until(sub { status(499) == $gone + 1 }, 30, 'the end'),
           "the end of an answer, $when: until the task has ended");
        is($t->metrics->{'dsa_tokens_total{type="completion"}'} - $tokens,
           10_002, 'and it is charged, with its end token');
        idle("the end of an answer, $when");
    }
}


# with dsa_ignore_client_abort the request goes on

{
    my $submitted = submitted($fake);

    $t->hold('before');
    my $s = send_chat(long('t hi'), uri => "/ignore$chat");
    wait_until(sub { $t->held('before') }, 30, 'a task');
    $s->close;
    $t->release();
    ok(wait_until(sub { submitted($fake) == $submitted + 1 }, 30, 'it'),
       'dsa_ignore_client_abort: the request goes on');
    idle('dsa_ignore_client_abort');
}


# dsa_timeout

{
    $t->hold('before');

    my $other = send_chat(long('t other'), tenant => 'bob');
    wait_until(sub { $t->held('before') }, 30, 'a task');

    my $r = answer(send_chat(long('t hi'), uri => "/short$chat"));
    is($r->{status}, 504, 'a timeout while the work waits');
    $t->release();
    is(answer($other)->{status}, 200, 'the other request goes on');
    idle('a timeout');

    $t->hold('before');
    my $s = send_chat(long('t hi'), uri => "/short$chat");
    wait_until(sub { $t->held('before') }, 30, 'a task');
    my $start = time;
    wait_until(sub { time > $start + 4 }, 30, 'the time to pass');
    is(in_flight(), 1, 'a timeout while it runs: the request is kept');
    $t->release();
    is(answer($s)->{status}, 504, 'and then gets its error');
    idle('a timeout of a task');

    # an error that the task has found comes first

    $t->hold('before');
    $s = send_chat('{"x":"' . 'x' x LONG, uri => "/short$chat");
    wait_until(sub { $t->held('before') }, 30, 'a task');
    $start = time;
    wait_until(sub { time > $start + 4 }, 30, 'the time to pass');
    $t->release();
    is(answer($s)->{status}, 400, 'or the error of its body');
    idle('a timeout of a body');
}


# keep-alives of a stream while a task runs

{
    $t->hold('before');
    my $s = send_chat(long('t hi', 0, stream => \1));
    wait_until(sub { $t->held('before') }, 30, 'a task');

    for (1 .. 2) {
        behind();
        in_front();
    }

    $s->read_head();
    is($s->next_event->{comment}, 'keep-alive', "a keep-alive, $_") for 1 .. 2;
    $t->release();

    my $m = DSA::HTTP->gather(grep { !defined $_->{comment} } $s->events);
    is($m->{content}, 'hi', 'and then the answer');
    idle('keep-alives');
}


# too much work of one tenant: 256 MB and the task that runs

{
    my $size = 7_900_000;
    my $most = int(256 * 1024 * 1024 / $size);

    $t->hold('before');

    my $first = send_chat(long('t first', $size), tenant => 'carol');
    wait_until(sub { $t->held('before') }, 30, 'a task');

    my @s = map { send_chat(long('t hi', $size), tenant => 'carol') }
            1 .. $most;
    wait_until(sub { waiting() == $most }, 60, 'work that waits');

    my $r = answer(send_chat(long('t hi', $size), tenant => 'carol'));
    is($r->{status}, 429, 'more than that is refused')
        or diag(substr $r->{body}, 0, 400);
    is($r->{json}{error}{code}, 'rate_limit_exceeded', 'with this code');
    is($t->metrics->{dsa_work_refused_total}, 1, 'and counted');

    my $other = send_chat(long('t other'), tenant => 'bob');
    wait_until(sub { waiting() == $most + 1 }, 30, 'another tenant');

    $_->close for @s;
    wait_until(sub { waiting() == 1 }, 60, 'the clients to leave');

    is($t->metrics->{'dsa_work_total{stage="parse",where="thread"}'},
       logged(qr/dsa work: parse of \d+ bytes runs/), 'their work never ran');
    $t->release();
    is(answer($_)->{status}, 200, 'the others are served') for $first, $other;
    idle('too much work');
}


# Workers that shut down.  After worker_shutdown_timeout all connections are
# closed, and that of the task is kept until it has ended.

for my $how (qw/ reload QUIT TERM timeout /) {
    $t->start_nginx(%nginx, $how eq 'timeout'
                            ? (main => 'worker_shutdown_timeout 300ms;') : ())
        if !$t->nginx_pid;

    my ($old) = $t->workers;
    my $waits = waiting();

    $t->hold('before');

    my $runs = send_chat(long('t other'), tenant => 'bob');
    wait_until(sub { $t->held('before') }, 30, 'a task');

    my $s = send_chat(long('t hi'));
    wait_until(sub { waiting() == $waits + 1 }, 30, 'work that waits');

    if ($how eq 'reload') {
        $t->reload(%nginx);

    } else {
        kill $how eq 'timeout' ? 'QUIT' : $how, $t->nginx_pid;
    }

    wait_until(sub { logged($how eq 'TERM' ? qr/ $old#\d+: exiting/
                            : qr/ $old#\d+: gracefully shutting down/) }, 30,
               'the signal');

    if ($how eq 'timeout') {
        ok($s->closed_within(30), 'timeout: the request that waits is closed');
        ok(!$runs->closed_within(0), 'timeout: that of the task is kept');
    }

    # after TERM, the master kills a worker that has not ended in 1.5 s

    my $killed = qr/worker process $old exited on signal 9/;

    $t->allow_alert($killed) if $how eq 'TERM';
    ok(kill(0, $old) || $how eq 'TERM'
       && wait_until(sub { logged($killed) }, 30, 'the log'),
       "$how: the worker waits for the task");
    $t->release();

    if ($how =~ /reload|QUIT/) {
        is(answer($_)->{status}, 200, "$how: the requests are served")
            for $runs, $s;
    }

    $_->close for $runs, $s;

    ok(wait_until(sub { !kill 0, $old }, 30, 'the worker to end'),
       "$how: then it ends");

    wait_until(sub { !$t->nginx_pid }, 30, 'nginx to end')
        if $how ne 'reload';
}

$t->done;
