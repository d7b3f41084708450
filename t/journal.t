#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The journal of a null backend: its lines for requests that end, whose client
# leaves, or whose worker or engine dies; files that are slow, full, renamed or
# deleted.

use strict;
use warnings;

use Fcntl qw/ O_NONBLOCK O_RDONLY /;
use POSIX qw/ mkfifo /;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Process;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('journal');
my $file = $t->path('engine.journal');

my $engine = $t->start_engine(conf => { backend => 'null rate=50',
                                        name => 'null', journal => $file,
                                        log_level => 'debug' });

$t->start_nginx;
$t->allow_alert(qr/exited on signal 9/);


# The events of a request in their order.

sub events {
    my ($id) = @_;

    my $text = read_file($file);

    return grep { $_->{request} eq $id }
           map { json_decode($_) } split /\n/, $text;
}


# The last of them, which may be written after the client has what it reports.

sub newest { return (events($_[0]))[-1] // { event => '' } }


sub stream {
    my ($tokens) = @_;

    my $c = $t->connect;

    $c->send_request(POST => $chat, type => 'application/json',
                     body => json_encode(ask('Say this.', max_tokens => $tokens,
                                             stream => JSON::PP::true,
                                             ignore_eos => JSON::PP::true)));
    $c->read_head;

    my $event = $c->next_event;

    return ($c, json_decode($event->{data})->{id});
}


is((stat $file)[2] & 07777, 0600, 'no other user can read the journal');

my $r = $t->post($chat, ask('Repeat this text.', max_tokens => 7));
my $body = json_decode($r->{body});
my $usage = $body->{usage};
my @events = events($body->{id});

is($r->{status}, 200, 'answered') or diag $r->{body};
is($events[0]{event}, 'accepted', 'the request was accepted');
like($events[0]{tenant}, qr/^[0-9a-f]{64}$/, 'for a tenant');
is($events[0]{prompt}, $usage->{prompt_tokens}, 'with its prompt');
is($events[-1]{event}, 'done', 'it has ended');
is($events[-1]{prompt}, $usage->{prompt_tokens}, 'with the prompt of usage');
is($events[-1]{completion}, $usage->{completion_tokens},
   'and the completion of usage');

my $sum = 0;
$sum += $_->{tokens} for grep { $_->{event} eq 'tokens' } @events;
is($sum, $events[-1]{sent}, 'the tokens that were sent add up');
like($engine->output, qr/\Q$body->{id}\E: finished/,
     "the engine's log has the id");

is($events[0]{skipped}, 0, 'no condition of a schema was left out');

my %schema = (type => 'object',
              properties => { a => { type => 'array', contains => {} } });

$r = $t->post($chat, ask('Repeat this text.', max_tokens => 7,
                         response_format => { type => 'json_schema',
                             json_schema => { name => 'x',
                                              schema => \%schema } }));
is((events(json_decode($r->{body})->{id}))[0]{skipped}, 1,
   'a condition of a schema was left out');

my %name = map { $_ => "dsa_schema_unenforced_total{part=\"$_\"}" }
               qw/ condition schema /;
my $m = $t->metrics;

is($m->{ $name{condition} }, 1, 'which the metrics count');
is($m->{ $name{schema} }, 0, 'and no whole schema');

$schema{properties}{a} = { type => 7 };

$r = $t->post($chat, ask('Repeat this text.', max_tokens => 7, n => 2,
                         response_format => { type => 'json_schema',
                             json_schema => { name => 'x',
                                              schema => \%schema } }));
is($r->{status}, 200, 'a schema that cannot be enforced at all');
$m = $t->metrics;
is($m->{ $name{schema} }, 1, 'is counted once for two answers');
is($m->{ $name{condition} }, 1, 'and has no conditions');

my ($c, $id) = stream(1000);
$c->next_event;
$c->close;
wait_until(sub { newest($id)->{event} eq 'done' }, 10, 'the cancel');
is(newest($id)->{finish}, 'cancelled', 'a client that leaves');

($c, $id) = stream(1000);
$c->next_event;
kill 'KILL', $t->workers;
wait_until(sub { newest($id)->{event} eq 'left' }, 10, 'the end');
cmp_ok(newest($id)->{sent}, '>', 0, 'a worker that is killed');
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 10, 'a worker');

($c, $id) = stream(1000);
$c->next_event for 1 .. 3;
ok(wait_until(sub { (newest($id)->{sent} // 0) >= 2 }, 30, 'its lines'),
   'the journal has each token that an engine sent');
my ($replica) = DSA::Process::children($engine->pid);
kill 'KILL', $replica;
wait_until(sub { !kill 0, $replica }, 10, 'the end of the replica');
is(newest($id)->{event}, 'tokens', 'one that is killed has no end');

is(join(' ', map { $_->{event} } events('')), '', 'all requests have their id');

$t->stop_nginx('TERM');
$engine->stop;


# The engine does not wait for its journal: a pipe without a reader stops the
# journal's thread only.

sub slow_journal {
    my ($name, $journal, %more) = @_;

    my $t = DSA::Test->new($name);
    my $engine = $t->start_engine(conf => {
        backend => 'null rate=50', name => 'null', journal => $journal,
        step_timeout => slow(5) . 's', %more });

    $t->start_nginx;

    return ($t, $engine);
}

my $fifo = $t->path('fifo');

mkfifo($fifo, 0600) or die "mkfifo: $!\n";
sysopen my $pipe, $fifo, O_RDONLY|O_NONBLOCK or die "open: $!\n";
fcntl $pipe, 1031, 4096 or die "F_SETPIPE_SZ: $!\n";

my ($s, $null) = slow_journal('fifo', $fifo, drain_timeout => '10s');
my ($child) = DSA::Process::children($null->pid);
my @streams = map { $s->stream(ask("Say this $_.", max_tokens => 50 * slow(12),
                                   ignore_eos => JSON::PP::true)) } 1 .. 4;

is(DSA::HTTP->gather($_->events)->{done}, 1, 'a stream is complete')
    for @streams;
is(join(' ', DSA::Process::children($null->pid)), $child,
   'after several times step_timeout it is the same process');
is(() = $null->output =~ /does not keep up/g, 1, 'the log has the reason once');
is($s->post($chat, ask('x', max_tokens => 1))->{status}, 200, 'it serves');
$null->signal('TERM');
is($null->wait_end(30), 0, 'and it ends');
like($null->output, qr/the last lines are lost/, 'the log has what is lost');
close $pipe;
$s->done;

# a disk that is full

($s, $null) = slow_journal('full', '/dev/full');
is($s->post($chat, ask("x$_", max_tokens => 20))->{status}, 200, 'a full disk')
    for 1 .. 3;
is(() = $null->output =~ /lines are lost: write\(\): No space left/g, 1,
   'the log has the error once');
$null->signal('TERM');
is($null->wait_end(30), 0, 'and it ends');
$s->done;

# a file that is rotated or deleted

my $rotated = $t->path('rotated');

($s, $null) = slow_journal('rotated', $rotated);

for my $turn (0 .. 2) {
    my $id = json_decode($s->post($chat, ask('x', max_tokens => 5))->{body})
             ->{id};
    my $text;

    ok(eval { wait_until(sub {
        $text = read_file($rotated) // '';
        $text =~ /"request":"$id".*"event":"done".*\n/
    }, 30, 'its lines') }, 'the lines of a request are in the file')
        or diag $text;
    is(scalar(grep { !/"$id"/ } split /\n/, $text), 0, 'and no others');
    $turn == 0 ? rename $rotated, "$rotated.1" : unlink $rotated;
}

is($null->output =~ /lost/ ? $null->output : '', '', 'and none is lost');
$s->done;

$t->done;
