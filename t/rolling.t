#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The engines of a pool are restarted one after the other by "dsa drain", while
# clients send chats and turns of conversations: each of them ends, and is
# billed once with the tokens that it was sent.

use strict;
use warnings;

use List::Util qw/ sum /;
use Test::More;

use lib 't/lib';
use DSA::Ledger;
use DSA::Load;
use DSA::Test;

use constant { ROUNDS => 3 };

my $t = DSA::Test->new('rolling');
my $dsa = $t->build . '/dsa';

my @engine = map {
    $t->start_engine(name => "null$_", conf => {
        name => 'null', backend => 'null rate=40', drain_timeout => '500ms' })
} 0, 1;

$t->start_redis();
$t->start_nginx(workers => 2);
$t->wait_sessions(4);


# Runs dsa drain.  Returns its exit status and what it prints.

sub drain {
    my (@args) = @_;

    my $pid = open my $out, '-|';

    die "fork: $!\n" if !defined $pid;

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        exec $dsa, 'drain', @args;
    }

    my $text = join '', <$out>;

    close $out;

    return ($? >> 8, $text);
}


# some answers are longer than drain_timeout and move, some are not

my @load = map {
    my $n = $_;
    my %tenant = (key => "tenant$n", model => 'null', tokens => [1, 80],
                  role => $n == 0 ? 'talk' : 'light', open => 12,
                  think => 0.05, retry => 0.2, stream => 70, leave => 0,
                  slow => 0);

    $t->daemon("load$n", sub {
        DSA::Load::run(port => $t->port, seed => 1 + $n, number => $n,
                       tenants => [ \%tenant ],
                       out => $t->path("load$n.json"));
    });
} 0, 1;


sub running {
    my $m = $t->metrics;

    return map { $m->{$_} }
           grep { /^dsa_engine_requests_running/ } sort keys %$m;
}


for my $round (1 .. ROUNDS) {
    for my $engine (@engine) {

        # both engines have several requests

        wait_until(sub { !grep { $_ < 3 } running() }, 30, 'the load');

        my $path = $engine->sock;
        my $pid = $engine->pid;
        my ($status, $text) = drain("unix:$path");

        is($status, 0, "round $round: dsa drain succeeds") or diag($text);
        is($text =~ s/after [\d.]+ s/after N s/r,
           "unix:$path: the engine, process $pid, finishes its answers\n"
           . "unix:$path: the engine has ended after N s\n",
           'and reports what it does');
        is($engine->wait_end(0), 0, 'the engine has ended with status 0');

        $engine->restart;
        $t->wait_sessions(4);
    }
}

$_->signal('TERM') for @load;
is($_->wait_end(60), 0, 'the clients end') for @load;

my @requests = grep { $_->{kind} }
               map { map { json_decode($_) }
                     split /\n/, read_file($t->path("load$_.json")) } 0, 1;
my @chats = grep { $_->{kind} eq 'chat' } @requests;
my @bad = grep { $_->{outcome} ne 'ended' && ($_->{error} || '')
                 !~ /in progress/ } @requests;

cmp_ok(scalar(@chats), '>', 100, 'many chats were sent');
is(scalar(@bad), 0, 'and each of them ends')
    or diag(json_encode($bad[0]));

# the second of two turns at once gets 409, and costs nothing

@chats = grep { $_->{outcome} eq 'ended' } @chats;

my @short = grep { $_->{usage}{completion_tokens} != $_->{max} } @chats;

is(scalar(@short), 0, 'with all of its tokens') or diag(json_encode($short[0]));
is(scalar(grep { $_->{claim} && !$_->{claim}{stored} } @chats), 0,
   'each turn is stored');

my $ledger = ledger_change($t);

is($ledger->{requests}, scalar @chats, 'each request is billed once');
is($ledger->{completion_tokens}, sum(map { $_->{max} } @chats),
   'with the tokens of its answer');
is($ledger->{prompt_tokens}, sum(map { $_->{usage}{prompt_tokens} } @chats),
   'and one prompt');

my $m = $t->metrics;

cmp_ok($m->{dsa_resumed_answers_total}, '>', 10, 'answers have moved');

# a worker that does not run within a second of the end of drain_timeout loses
# its session, and its answers move because of that

cmp_ok($m->{dsa_sessions_lost_requests_total}, '<',
       $m->{dsa_resumed_answers_total}, 'not because all sessions were lost');


# What is no engine is not ended.

my ($status, $text) = drain('unix:' . $t->path('none.sock'));

is($status, 1, 'no socket: status 1');
is($text, 'dsa drain: unix:' . $t->path('none.sock') . ': No such file or '
   . "directory; expected the socket of a running engine\n", 'and why');

my $fake = $t->start_fake;

($status, $text) = drain('unix:' . $fake->sock);
is($status, 1, 'a process that is no replica: status 1');
like($text, qr/is not a replica of an engine/, 'and why');
ok($fake->alive && kill(0, $$), 'neither it nor its parent has ended');

$engine[0]->stop;
($status, $text) = drain('unix:' . $engine[0]->sock);
is($status, 1, 'an engine that does not run: status 1');

for ([], [ '/tmp/x' ], [ 'unix:a', 'unix:b' ], [ '--force' ]) {
    ($status, $text) = drain(@$_);
    is($status, 2, "wrong usage: @$_");
    like($text, qr/\Adsa/, 'one line') or diag($text);
}

# without the rights it changes nothing

SKIP: {
    skip 'needs root', 3 if $> != 0;

    my $pid = $engine[1]->pid;
    my $nobody = getpwnam 'nobody';

    chmod 0755, $t->dir;
    chmod 0777, $engine[1]->sock;
    $text = qx{setpriv --reuid=$nobody --clear-groups $dsa drain \\
               unix:@{[ $engine[1]->sock ]} 2>&1};
    is($? >> 8, 1, 'another user: status 1');
    like($text, qr/expected root or the user of the engine/, 'and why');
    ok($engine[1]->alive, 'the engine runs');
}

$t->done;
