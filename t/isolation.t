#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Two tenants with the same prompts: no prefix of one is a hit of the other in
# any tier, and the work that a prompt causes does not depend on whether the
# other tenant has sent it before.  What is counted is all that takes time:
# steps, computed tokens, pages that are read, keys that Redis has.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $rounds = 15;
my @counts = qw/ steps cached host redis keys /;

my $t = DSA::Test->new('isolation');
my (undef, $cache) = map { $t->start_redis() } 1 .. 2;

my $engine = $t->start_engine(conf => {
    model       => "$DSA::Test::root/demo/model",
    backend     => 'cpu',
    kv_memory   => '12m',
    host_memory => '256m',
    redis_cache => "127.0.0.1:$cache->{port}",
});
$t->start_nginx();


# What the engine has done, and how often its Redis has found a key.

sub counters {
    my $m = $t->metrics;
    my %sum;

    for my $name (keys %$m) {
        $sum{$1 . ($2 || '')} += $m->{$name}
            if $name =~ /^dsa_engine_(\w+?)_total\{(?:.*tier="(\w+)")?/;
    }

    my ($hits) = $t->redis($cache)->cmd('INFO', 'stats')
                 =~ /^keyspace_hits:(\d+)/m;

    return { steps  => $sum{steps},
             prompt => $sum{prompt_tokens},
             cached => $sum{cached_tokens},
             tokens => $sum{completion_tokens},
             host   => $sum{tier_read_pageshost},
             redis  => $sum{tier_read_pagesredis},
             keys   => $hits,
             writes => $sum{tier_written_pagesredis} };
}


# Returns the work of an answer of one token.  The engine publishes its counters
# a moment after the answer, and Redis finds the keys of the pages that were
# cached, which live longer then, at any time: otherwise these could count for
# the next answer.  The engine drops these commands if Redis takes long, as on a
# busy machine, so that fewer keys are no error.

sub chat {
    my ($tenant, $text) = @_;

    my $before = counters();
    my $r = $t->post('/v1/chat/completions',
                     ask($text, max_tokens => 1, temperature => 0),
                     headers => [ Authorization => "Bearer $tenant" ]);

    die "$r->{status}: $r->{body}\n" if $r->{status} != 200;

    my $tokens = $r->{json}{usage}{prompt_tokens};
    my $cached = $r->{json}{usage}{prompt_tokens_details}{cached_tokens};
    my $after;

    wait_until(sub {
        $after = counters();
        return $after->{tokens} == $before->{tokens} + 1
               && $after->{prompt} == $before->{prompt} + $tokens;
    }, 30, 'the counters of an answer');

    eval {
        wait_until(sub {
            $after = counters();
            return $after->{keys} >= $before->{keys} + $cached / 64;
        }, 30, 'the keys of its pages');
    } or diag($@);

    my %work = map { $_ => $after->{$_} - $before->{$_} } @counts;

    is($work{cached},
       $cached, 'cached tokens of engine and answer');

    return \%work;
}


sub prompt { "$_[0] " . 'cat dog ' x 300 }


# The different rows of counts of several answers, as text.

sub distinct {
    my %seen;

    for my $work (@_) {
        $seen{join ' ', map { "$_ $work->{$_}" } @counts}++;
    }

    return join ', ', sort keys %seen;
}


# Each round measures a prompt that another tenant has sent, a new prompt, and a
# prompt that this tenant has sent, in an order that changes.  In every second
# round the first one is no longer on the rank.

my %work;
my $n = 100;

for my $round (1 .. $rounds) {
    my %prompt = map { $_ => prompt(++$n) } qw/ other nobody own /;

    chat('alice', $prompt{other});
    chat('mallory', $prompt{own});

    if ($round % 2) {
        chat('bob', prompt(++$n)) for 1 .. 4;
    }

    my @order = qw/ other nobody own /;
    push @order, splice @order, 0, $round % 3;

    push @{ $work{$_} }, chat('mallory', $prompt{$_}) for @order;
}

my $new = $work{nobody}[0];

is($new->{cached} + $new->{host} + $new->{redis} + $new->{keys}, 0,
   'a new prompt is in no tier') or diag(distinct($new));
is(distinct(@{ $work{nobody} }), distinct($new),
   'each new one causes the same work');
is(distinct(@{ $work{other} }), distinct($new),
   'and so does each that another tenant has sent');
cmp_ok(scalar(grep { $_->{cached} > 500 } @{ $work{own} }), '>', $rounds / 2,
       'its own ones are found, if reading them is fast enough');
cmp_ok(scalar(grep { $_->{host} > 0 } @{ $work{own} }), '>', 0,
       'some of them in host memory');


# The same in Redis, when nothing else has the pages: after a start of the
# engine.  Pages are lost if Redis takes long to write them, and those that do
# not come in time are computed: several attempts.

my %again;

for (1 .. 10) {
    my %prompt = map { $_ => prompt(++$n) } qw/ other nobody own /;
    my $pages = counters()->{writes};

    chat('alice', $prompt{other});
    chat('mallory', $prompt{own});
    eval { wait_until(sub { counters()->{writes} >= $pages + 18 }, 30,
                      'the pages to be in Redis') } or next;

    $engine->restart;
    wait_until(sub { $t->metrics->{dsa_sessions} == $t->workers }, 30,
               'the sessions');
    $t->wait_cache;

    %again = map { $_ => chat('mallory', $prompt{$_}) } qw/ other nobody own /;

    last if $again{own}{redis} != 0;
}

is(distinct($again{nobody}), distinct($new), 'a new prompt');
is(distinct($again{other}), distinct($new), 'one of another tenant');
cmp_ok($again{own}{redis}, '>', 0, 'its own is found in Redis');

$t->done;
