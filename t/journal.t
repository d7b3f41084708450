#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The journal of a null backend: its lines for requests that end, whose client
# leaves, or whose worker or engine dies.

use strict;
use warnings;

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

my ($c, $id) = stream(1000);
$c->next_event;
$c->close;
wait_until(sub { (events($id))[-1]{event} eq 'done' }, 10, 'the cancel');
is((events($id))[-1]{finish}, 'cancelled', 'a client that leaves');

($c, $id) = stream(1000);
$c->next_event;
kill 'KILL', $t->workers;
wait_until(sub { (events($id))[-1]{event} eq 'left' }, 10, 'the end');
cmp_ok((events($id))[-1]{sent}, '>', 0, 'a worker that is killed');
wait_until(sub { $t->get('/healthz')->{status} == 200 }, 10, 'a worker');

($c, $id) = stream(1000);
$c->next_event for 1 .. 3;
my ($replica) = DSA::Process::children($engine->pid);
kill 'KILL', $replica;
wait_until(sub { !kill 0, $replica }, 10, 'the end of the replica');
is((events($id))[-1]{event}, 'tokens', 'an engine that is killed has no end');
cmp_ok((events($id))[-1]{sent}, '>=', 2, 'but each token that it sent');

is(join(' ', map { $_->{event} } events('')), '', 'all requests have their id');

done_testing();
