#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Several engines in a pool: a request goes to the one that has its prefix,
# unless that one is too busy or cannot serve it.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';
my $echo = 'add_header x-route "$dsa_route" always;';
my $none = 'location /none/ { dsa_pass v32; dsa_tenant ""; ' . $echo . ' }';

my %test = map { $_ => DSA::Test->new($_) } qw/ route busy full one real /;
my $t = $test{route};

# without its epoch a restart of the first one would look like no restart

my @engine = ($t->start_fake('pid=7'), map { $t->start_fake() } 1 .. 2);
my %conf = (workers => 2, location => $echo, server => $none);

$t->start_nginx(%conf);
sessions($t, 6);


sub sessions {
    my ($t, $n) = @_;

    wait_until(sub { $t->metrics->{dsa_sessions} == $n }, 20, 'the sessions');
}


# Waits until only the new workers run after a reload.

sub left {
    my ($t) = @_;

    wait_until(sub { $t->workers == 2 }, 20, 'old workers to leave');
    sessions($t, 2 * @{ $t->{engines} });
}


# Sets the running requests of the engines; undef: it is dead.

my @load;

sub load {
    @load = @_;

    for (grep { defined $load[$_] } 0 .. $#load) {
        ctl($engine[$_], "load $load[$_] 0");
    }

    return;
}


# Waits until nginx counts only these requests, and none of the last chat.  An
# engine has published the end of that when it answers the second of two
# commands, because a turn of its loop is between them.

sub settle {
    for my $i (grep { defined $load[$_] } 0 .. $#load) {
        ctl($engine[$i], 'live') for 1, 2;

        my $name = 'dsa_engine_requests_running{pool="v32",engine="unix:'
                   . $engine[$i]->sock . '"}';

        wait_until(sub { ($t->metrics->{$name} // -1) == $load[$i] }, 10,
                   "the load of engine $i");
    }

    return;
}


# Sends a chat.  Returns the engine that got it and how it was chosen, like
# "0 prefix"; without a choice "0 -".

my @seen;

sub sent {
    my ($messages, %opt) = @_;

    my $more = delete $opt{more} || {};
    my $uri = delete $opt{uri} || $chat;

    settle();

    my $r = $t->post($uri, { model => 'deepseek-chat', max_tokens => 10,
                             messages => $messages, %$more }, %opt);

    return "status $r->{status}" if $r->{status} != 200;

    my @to;

    for my $i (0 .. $#engine) {
        my $n = submitted($engine[$i]);

        push @to, $i if $n > ($seen[$i] // 0);
        $seen[$i] = $n;
    }

    return join '+', @to, if @to != 1;
    return "$to[0] " . ($r->{headers}{'x-route'} || '-');
}


# The beginning of a conversation of its own, and what follows in it.

my $conversations = 0;

sub begin {
    my ($system, $text) = @_;

    return [ { role => 'system',
               content => ($system // ++$conversations) . ' rule' x 80 },
             { role => 'user', content => $text // 'question' } ];
}

sub more {
    my ($messages, $text) = @_;

    return [ @$messages, { role => 'assistant', content => 'an answer' },
             { role => 'user', content => $text // 'question' } ];
}

# A conversation whose first turn is at engine 0.

sub placed {
    my $c = begin();

    load(0, 30, 30);
    is(sent($c), '0 none', 'a first turn goes to the least busy engine');

    return $c;
}


# the turns of a conversation return

my $c = placed();

load(4, 0, 0);

for my $turn (2 .. 4) {
    $c = more($c);
    is(sent($c), '0 prefix', "turn $turn returns");
}

is(sent(more([ @$c[0 .. 4] ], 'edited')), '0 prefix', 'an edited one as well');
is(sent(begin($conversations, 'x')), '0 prefix', 'the system message alone');
like(sent([ { role => 'user', content => 'short' } ]), qr/[12] none/,
     'a short prompt goes anywhere');
like(sent([ { role => 'user', content => 'short' } ]), qr/[12] none/,
     'and so does its repetition');


# thinking and tools: a new question removes the reasoning before it

my %thinking = (more => { model => 'deepseek-reasoner' });

$c = [ { role => 'user', content => 'long ' x 80 } ];
load(0, 30, 30);
is(sent($c, %thinking), '0 none', 'thinking');
load(4, 0, 0);

for my $round (1 .. 12) {
    push @$c, { role => 'assistant', content => '',
                reasoning_content => "thought $round",
                tool_calls => [ { id => "c$round", type => 'function',
                    function => { name => 'f', arguments => '{}' } } ] },
              { role => 'tool', tool_call_id => "c$round", content => "r" };

    is(sent($c, %thinking), '0 prefix', "round $round of tools");
}

push @$c, { role => 'assistant', content => 'an answer' },
          { role => 'user', content => 'another question' };
is(sent($c, %thinking), '0 prefix', 'a question after rounds of tools');


# tenants

$c = placed();
load(4, 0, 0);
like(sent($c, headers => [ 'Authorization' => 'Bearer alice' ]),
     qr/[12] none/, 'another tenant with the same text');
is(sent($c), '0 prefix', 'which changes nothing for the first');


# requests without a tenant share nothing

$c = begin();
load(0, 30, 30);
is(sent($c, uri => '/none/chat/completions'), '0 -', 'no tenant: no choice');
load(4, 0, 0);
like(sent($c, uri => '/none/chat/completions'), qr/[12] -/,
     'nor for its repetition');
like(sent($c), qr/[12] none/, 'nor for the tenant of callers without a key');


# the bound

for (['4 more than the lowest', '0 prefix', 4, 0, 0],
     ['5 more', '[12] load', 5, 0, 0],
     ['a quarter more', '0 prefix', 50, 40, 40],
     ['more than a quarter', '[12] load', 51, 40, 40])
{
    my ($name, $want, @load) = @$_;

    $c = placed();
    load(@load);
    like(sent($c), qr/^$want$/, $name);
}

load(30, 0, 0);
like(sent(more($c)), qr/[12] prefix/, 'and then it stays at the other one');

$c = placed();
load(30, 0, 30);
is(sent(begin($conversations, 'x')), '1 load', 'its system message elsewhere');
load(0, 30, 30);
is(sent(more($c)), '0 prefix', 'the longest prefix counts');
load(30, 0, 30);
is(sent(begin($conversations, 'y')), '1 load', 'the system message once more');
load(30, 4, 0);
is(sent(more($c, 'new')), '1 prefix',
   'a shorter prefix, if the engine of the longest is too busy');


# an engine that cannot serve it

$c = placed();
ctl($engine[0], 'drain 1');
load(0, 0, 0);
wait_until(sub { $t->metrics->{'dsa_engine_draining{pool="v32",engine="unix:'
                 . $engine[0]->sock . '"}'} == 1 }, 10, 'draining');
like(sent($c), qr/[12] unavailable/, 'a draining engine is not used');
ctl($engine[0], 'drain 0');


# a dead engine, and a restarted one, whose pages are gone

$c = placed();
$engine[0]->kill9();
sessions($t, 4);
load(undef, 0, 0);
like(sent($c), qr/[12] unavailable/, 'its engine is dead');
$engine[0]->restart();
sessions($t, 6);
$seen[0] = submitted($engine[0]);

$c = placed();
$engine[0]->kill9();
sessions($t, 4);
$engine[0]->restart();
sessions($t, 6);
$seen[0] = submitted($engine[0]);
load(4, 0, 0);
like(sent($c), qr/[12] none/, 'its engine was restarted: forgotten');


# a reload keeps the map; engines are known by their addresses

$c = placed();
$t->reload(%conf);
left($t);
load(4, 0, 0);
is(sent($c), '0 prefix', 'a reload keeps the map');

my @all = @{ $t->{engines} };

@{ $t->{engines} } = ($engine[1], $t->start_fake(), $engine[0]);
@engine = @{ $t->{engines} };
@seen = map { scalar submitted($_) } @engine;
$t->reload(%conf);
left($t);
load(0, 0, 4);
is(sent($c), '2 prefix', 'with one removed, one added and another order');

load(10, 20, 30);
$c = begin();
is(sent($c), '0 none', 'a new turn at what was the second engine');
load(4, 0, 0);
is(sent($c), '0 prefix', 'returns there');

@{ $t->{engines} } = @engine[1, 2];
$t->reload(%conf);
left($t);
load(undef, 0, 0);
like(sent($c), qr/[12] none/, 'not to one that was removed');

@{ $t->{engines} } = @engine;
$t->reload(%conf, pool => 'prefix_zone 1m;');
left($t);
load(0, 0, 4);
like(sent($c), qr/[01] none/, 'another size makes a new map');

my $m = $t->metrics;

cmp_ok($m->{'dsa_route_total{pool="v32",result="none"}'}, '==', 1,
       'counters begin again with it');
is(sent($c) =~ /prefix/, 1, 'and it is used');
is($t->metrics->{'dsa_route_total{pool="v32",result="prefix"}'}, 1,
   'a prefix is counted');

@{ $t->{engines} } = @all;
$t->done();


# an engine that rejects it, before and after it has read it

$t = $test{busy};
@engine = map { $t->start_fake('slots=1') } 1 .. 3;
@seen = ();

$t->start_nginx(location => $echo);
sessions($t, 3);

$c = placed();

my $held = $t->stream(script("t x\nhold\n"));

$held->next_event();
$seen[0] = submitted($engine[0]);
@load = (1, 0, 0);
ctl($engine[$_], 'load 0 0') for 0 .. 2;
like(sent($c), qr/[12] unavailable/, 'no slot is free at its engine');
$held->close();

$c = more(placed(), "!fake\nnoaccept\nerror overloaded too many\n");
load(0, 0, 0);
is(sent($c), 'status 503', 'all engines reject it');
is(submitted($engine[$_]), $seen[$_] + 1, "engine $_ was tried once")
    for 0 .. 2;
like($t->metrics->{'dsa_route_total{pool="v32",result="unavailable"}'},
     qr/^3$/, 'the first one because of its prefix, the others without one');

$t->done();


# a full zone: the least recently used entries are replaced

my $u = $test{full};

$u->start_fake() for 1 .. 2;
$u->start_nginx(pool => 'prefix_zone 32k;', location => $echo);
sessions($u, 2);


sub route {
    my ($t, $messages) = @_;

    my $r = $t->post($chat, { model => 'deepseek-chat',
                             messages => $messages });

    die "status $r->{status}\n" if $r->{status} != 200;
    return $r->{headers}{'x-route'};
}

# Puts 9 keys: behind its system message, and the last 8.  The zone has about
# 1,500 entries in sets of 8, and 800 talks write each set 38 times on average.
# So it is very unlikely that an entry which is not used again remains.

sub talk {
    my ($name) = @_;

    my $talk = begin($name);

    $talk = more($talk, "$name $_") for 1 .. 10;

    return $talk;
}


my ($old, $kept) = map { talk($_) } qw/ old kept /;

is(route($u, $_), 'none', 'a new conversation') for $old, $kept;
is(route($u, $_), 'prefix', 'which is in the map') for $old, $kept;

for my $i (1 .. 800) {
    route($u, talk("x$i"));
    route($u, $kept) if $i % 20 == 0;
}

is(route($u, $kept), 'prefix', 'one that is in use stays');
is(route($u, talk('x800')), 'prefix', 'a new one is there');
is(route($u, $old), 'none', 'an old one has left');

$u->done();


# one engine: there is nothing to choose

my $one = $test{one};

$one->start_fake();
$one->start_nginx(pool => 'prefix_zone 1m;', location => $echo);
sessions($one, 1);
is(route($one, $old), undef, 'one engine: no choice');
is(route($one, $old), undef, 'again');
is(scalar(grep { /^dsa_route_total/ } keys %{ $one->metrics }), 0,
   'and nothing is counted');


# mistakes in the configuration

for (['prefix_zone;', 'invalid number of arguments in "prefix_zone"'],
     ['prefix_zone 1m 2m;', 'invalid number of arguments in "prefix_zone"'],
     ['prefix_zone much;', 'invalid size "much" of "prefix_zone", expected at '
      . 'least 32k'],
     ['prefix_zone 31k;', 'invalid size "31k"'],
     ['prefix_zone 1m; prefix_zone 2m;',
      'duplicate "prefix_zone" in dsa_pool "v32"'],
     ['zone 1m;', 'unknown directive "zone", expected "engine" or '
      . '"prefix_zone"'])
{
    my ($pool, $message) = @$_;
    my ($status, $out) = $one->nginx_test(pool => $pool);

    ok($status != 0 && index($out, $message) >= 0, $pool) or diag($out);
}

$one->done();


# engines that compute: with their prefixes, turns have cached tokens

my $real = $test{real};

$real->start_engine() for 1 .. 2;
$real->start_nginx(location => $echo);
sessions($real, 2);

$c = begin('a');

for my $turn (1 .. 5) {
    my $r = $real->post($chat, { model => 'deepseek-chat', max_tokens => 4,
                                 messages => $c });
    my $cached = $r->{json}{usage}{prompt_tokens_details}{cached_tokens};

    is($r->{status}, 200, "turn $turn of engines that compute");
    cmp_ok($cached, $turn == 1 ? '==' : '>', 0, 'its cached tokens');

    push @$c, { role => 'assistant',
                content => $r->{json}{choices}[0]{message}{content} },
              { role => 'user', content => "more $turn" };
}

$real->done();
