#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Two tenants with the same prompts: no prefix of one is a hit of the other in
# any tier, and the time of an answer does not show whether the other tenant has
# sent the prompt before.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $rounds = 15;

my $t = DSA::Test->new('isolation');
my $redis = $t->start_redis();

$t->start_engine(conf => {
    model       => "$DSA::Test::root/demo/model",
    backend     => 'cpu',
    kv_memory   => '12m',
    host_memory => '256m',
    redis_cache => "127.0.0.1:$redis->{port}",
});
$t->start_nginx();


# The seconds of an answer of one token, and its cached tokens.

sub chat {
    my ($tenant, $text) = @_;

    my $begin = time;
    my $r = $t->post('/v1/chat/completions',
                     ask($text, max_tokens => 1, temperature => 0),
                     headers => [ Authorization => "Bearer $tenant" ]);
    my $seconds = time - $begin;

    die "$r->{status}: $r->{body}\n" if $r->{status} != 200;

    return ($seconds,
            json_decode($r->{body})->{usage}{prompt_tokens_details}
            {cached_tokens});
}


sub median { (sort { $a <=> $b } @_)[@_ / 2] }


sub prompt { "$_[0] " . 'cat dog ' x 300 }


# Each round measures a prompt that another tenant has sent, a new prompt, and a
# prompt that this tenant has sent, in an order that changes.  In every second
# round the first one is no longer on the rank.

my %seconds;
my %cached;
my $n = 0;

for my $round (1 .. $rounds) {
    my %prompt = map { $_ => prompt(++$n) } qw/ other nobody own /;

    chat('alice', $prompt{other});
    chat('mallory', $prompt{own});

    if ($round % 2) {
        chat('bob', prompt(++$n)) for 1 .. 4;
    }

    my @order = qw/ other nobody own /;
    push @order, splice @order, 0, $round % 3;

    for my $which (@order) {
        my ($s, $cached) = chat('mallory', $prompt{$which});
        push @{ $seconds{$which} }, $s;
        push @{ $cached{$which} }, $cached;
    }
}

is("@{ $cached{other} }", join(' ', (0) x $rounds),
   'prompts of another tenant are no hits');
is("@{ $cached{nobody} }", join(' ', (0) x $rounds), 'nor are new ones');
is(scalar(grep { $_ > 500 } @{ $cached{own} }), $rounds, 'its own ones are');

my ($other, $nobody, $own) = map { median(@{ $seconds{$_} }) }
                             qw/ other nobody own /;

note(sprintf 'medians: sent by another tenant %.1f ms, by nobody %.1f ms, by '
     . 'the tenant itself %.1f ms', map { 1000 * $_ } $other, $nobody, $own);

# the noise of the medians of 15 times on a busy machine is below a quarter of
# what a hit saves

cmp_ok($own, '<', 0.7 * $nobody, 'a hit can be measured');
cmp_ok(abs($other - $nobody), '<', 0.25 * ($nobody - $own),
       'whether another tenant has sent a prompt cannot');

$t->done;
