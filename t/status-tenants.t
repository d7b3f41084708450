#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# dsa_status: the use of the server by tenant.  Figures of tenants are those of
# their requests, the running and waiting ones are exact after a worker was
# killed, and the table is bounded.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP;
use DSA::Keys;
use DSA::Test;

my $chat = '/v1/chat/completions';
my %status = (server => 'location = /status { dsa_status; }
                         location /none/ { dsa_pass v32; dsa_tenant ""; }');
my $t = DSA::Test->new('status-tenants');
my $fake = $t->start_fake();

$t->start_nginx(%status, workers => 2);


sub status { return $t->get('/status')->{json} }
sub tenant { return substr sha256_hex($_[0]), 0, 32 }
sub key { return (headers => ['Authorization', "Bearer $_[0]"]) }


# The row of the tenant with such a key, without the others.

sub row {
    my ($key) = @_;

    my ($row) = grep { $_->{tenant} eq tenant($key) } @{ status()->{tenants} };

    return $row;
}


sub in_flight {
    my ($key) = @_;

    my $row = row($key) || {};

    return [ @$row{qw/ running waiting /} ];
}


is_deeply(status()->{tenants}, [], 'nobody at first');


# known requests

my %mine = (a => 3, b => 7);

for my $key (sort keys %mine) {
    $t->post($chat, script("T r|r|</think>|c\ncached 9\nprompt 100\n",
                           model => 'deepseek-reasoner'), key($key))
        for 1 .. $mine{$key};
}

# requests that were not submitted to an engine are not in the table

$t->post($chat, '{', key('bad'));
$t->post($chat, ask('x', model => 'unknown'), key('bad'));
$t->get('/v1/models', key('bad'));
$t->post('/none/chat/completions', ask('x'), key('bad'));

my $s;

wait_until(sub { $s = status(); $s->{requests}{total} >= 14 }, 10,
           'all are counted');

is_deeply([ sort map { $_->{tenant} } @{ $s->{tenants} } ],
          [ sort map { tenant($_) } keys %mine ], 'who was served');

for my $key (sort keys %mine) {
    my $n = $mine{$key};

    is_deeply(row($key),
              { tenant => tenant($key), running => 0, waiting => 0,
                requests => $n, prompt => 100 * $n, cached => 9 * $n,
                completion => 5 * $n, tokens => 105 * $n, cost => '0' },
              "the figures of $key");
}


# in flight

my @waiting = map { $t->stream(script("wait\n"), key('w'), head => 0) } 1 .. 3;
my @running = map { $t->stream(script("t a\nhold\n"), key('w')) } 1 .. 4;

wait_until(sub { is_in(in_flight('w'), 4, 3) }, 10, 'four run, three wait');
pass('running and waiting');
is(status()->{tenants}[0]{tenant}, tenant('w'), 'the busiest is first');
is(status()->{requests}{in_flight}, 7, 'all are in flight');

sub is_in {
    my ($got, @want) = @_;

    return ($got->[0] // -1) == $want[0] && ($got->[1] // -1) == $want[1];
}

ctl($fake, 'go 3');
$_->read_head for @waiting;
wait_until(sub { is_in(in_flight('w'), 4, 0) }, 10, 'the end of three');
is(row('w')->{requests}, 3, 'three have ended');
$_->close for splice @running, 0, 2;
wait_until(sub { is_in(in_flight('w'), 2, 0) }, 10, 'two clients to leave');
is(row('w')->{requests}, 5, 'and two were left');


# A worker is killed: what it had in flight no longer counts.  The other worker
# keeps its requests.  The master is stopped meanwhile, because a worker that it
# starts in the place of the other would release the requests, too.

$t->allow_alert(qr/exited on signal 9/);

my @many = map { $t->stream(script("t a\nhold\n"), key('w')) } 1 .. 20;
my %of;

push @{ $of{$t->worker_of($_)} }, $_ for @running, @many;
ok(!$of{0}, 'each stream has a worker');
wait_until(sub { is_in(in_flight('w'), 22, 0) }, 10, '22 run');

my ($victim) = sort { @{ $of{$a} } <=> @{ $of{$b} } } keys %of;
my $left = 22 - @{ $of{$victim} };

my $master = $t->nginx_pid;

kill 'STOP', $master;
kill 'KILL', $victim;

# until it has ended, the kernel may wake it for a new connection

DSA::Process::wait_gone($victim, 10) or die "worker $victim does not end\n";

wait_until(sub { is_in(in_flight('w'), $left, 0) }, 10,
           "$left of 22 to be left");
kill 'CONT', $master;
pass("$left of 22 run after a worker was killed");
wait_until(sub { my @w = $t->workers; @w == 2 && !grep { $_ == $victim } @w },
           10, 'a worker in its place');


# A reload: the old worker's requests count until they end.

$t->reload(%status);
ok(is_in(in_flight('w'), $left, 0), 'requests of old workers count');
is(row('a')->{requests}, 3, 'counters outlive a reload');

$_->close for map { @{ $of{$_} } } grep { $_ != $victim } keys %of;
wait_until(sub { is_in(in_flight('w'), 0, 0) }, 10, 'the end of all');


# 5,000 tenants: the table is bounded, and tenants in flight stay in it.

# an old worker closes connections without an answer

wait_until(sub { $t->workers == 2 }, 10, 'the old workers to end');

my $stay = $t->stream(script("t a\nhold\n"), key('stay'));
my $body = json_encode(script("t a\nprompt 1\n"));
my @http = map { $t->connect() } 1 .. 20;
my $bad = 0;

for my $first (map { 1 + 20 * $_ } 0 .. 249) {
    for my $i (0 .. 19) {
        $http[$i]->send_request('POST', $chat, body => $body,
                                key('many' . ($first + $i)));
    }

    $bad += $_->response->{status} != 200 for @http;
}

is($bad, 0, '5,000 tenants are served');
$s = status();
is(scalar @{ $s->{tenants} }, 100, 'at most 100 are shown');
is($s->{tenants}[0]{tenant}, tenant('stay'), 'the busiest first');

my %last = map { tenant("many$_") => 1 } 4961 .. 5000;
ok($last{ $s->{tenants}[1]{tenant} }, 'then one of the last');
$stay->close;
wait_until(sub { row('stay') && row('stay')->{requests} == 1 }, 10,
           'the stream to end');
pass('a tenant in flight is not evicted');

$t->post($chat, script("t a\nprompt 1\n"), key('many1'));
is(row('many1')->{requests}, 1, 'an evicted tenant begins again at zero');


# with keys: id, name and what was spent

my $keys = DSA::Test->new('status-keys');
my $name = '"}</script>\\[31m';

$keys->start_fake();
write_keys($keys->path('keys'), key_entry('one', name => $name,
                                           tenant => 'acme'),
           key_entry('two', tenant => 'acme'));
$keys->start_nginx(
    http => 'dsa_keys file=%%DIR%%/keys zone=keys:8m;
             dsa_price currency=EUR;
             dsa_price fake-model miss=1 hit=0.1 output=2;',
    server => 'location = /status { dsa_status; }');

wait_until(sub {
    $keys->get('/v1/models', bearer(key_text('one')))->{status} == 200
}, 10, 'the keys to be read');

$keys->post($chat, script("t a\nprompt 100\ncached 10\n",
                          model => 'fake-model'), bearer(key_text('one')))
    for 1 .. 2;
$keys->post($chat, script("t a\n", model => 'fake-model'),
            bearer(key_text('two')));

my $rows;

wait_until(sub {
    $s = $keys->get('/status')->{json};
    $rows = { map { $_->{key} => $_ } @{ $s->{tenants} } };
    3 == ($s->{requests}{by_status}{200} - 1)
        && keys %$rows == 2
}, 10, 'two keys of one tenant');

my $one = $rows->{key_entry('one')->{id}};

is($one->{name}, $name, 'a hostile name is text');
is($one->{tenant}, $rows->{key_entry('two')->{id}}{tenant}, 'one tenant');
is($one->{tokens}, 204, 'tokens of the key');

# 90 tokens at 1, 10 at 0.1 and 2 at 2 for a million, twice

is($one->{cost}, '0.00019', 'what they cost');
is_deeply($one->{spent}, { map { $_ => '0.00019' } qw/ day month total / },
          'what the key has spent');
is($s->{money}{currency}, 'EUR', 'the currency');
is($s->{money}{hit}, '0.000002', 'what cached tokens cost');
unlike($keys->get('/status')->{body}, qr/sk-dsa|[^\x20-\x7e\n]/,
       'no text of a key, and nothing but text');

$keys->done;
$t->done;
