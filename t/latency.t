#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# An answer goes on while long prompts are read: a prompt is divided into steps
# of at most token_budget, and each step has a token of the answer.  The
# demonstration model on the CPU; bench/latency measures the times.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $words = 1900;
my $prompts = 4;
my $budget = 64;

my $t = DSA::Test->new('latency');

$t->start_engine(conf => { model => "$DSA::Test::root/demo/model",
                           backend => 'cpu', token_budget => $budget });
$t->start_nginx();


# Reads a stream until the sub is true.  Returns the number of its tokens, which
# the logarithms of the probabilities show, because an event may have several.

sub tokens {
    my ($stream, $until) = @_;

    my $n = 0;

    while (!$until->($n)) {
        my $event = $stream->next_event();
        last if !defined $event;

        $n += @{ $event->{json}{choices}[0]{logprobs}{content} || [] };
    }

    return $n;
}


sub readable {
    my ($http) = @_;

    my $bits = '';
    vec($bits, fileno $http->{socket}, 1) = 1;

    return select $bits, undef, undef, 0;
}


# Whether the stream has sent something that was not read yet.

sub unread {
    my ($http) = @_;

    return ($http->{data} // '') =~ /\n\n/ || $http->{in} ne ''
           || readable($http);
}


# Returns the sum of a counter over all engines.

sub counter {
    my ($name) = @_;

    my $m = $t->metrics;
    my $n = 0;

    $n += $m->{$_} for grep { /^dsa_engine_${name}_total\{/ } keys %$m;

    return $n;
}


# A chat that goes on, and long prompts that arrive in the middle.  Each begins
# with another word, so that none is found in the cache.

my $chat = $t->stream(ask('Count for ever.', max_tokens => 7500, seed => 1,
                          ignore_eos => JSON::PP::true,
                          logprobs => JSON::PP::true));
my $n = tokens($chat, sub { $_[0] >= 20 });

for (1 .. $prompts) {
    my $long = $t->connect();

    $long->send_request('POST', '/v1/chat/completions',
                        body => json_encode(ask("$_ " . 'cat ' x $words,
                                                max_tokens => 1)));

    my $beside = tokens($chat, sub { readable($long) && !unread($chat) });
    my $r = $long->response();

    is($r->{status}, 200, 'a long prompt is answered');
    cmp_ok(json_decode($r->{body})->{usage}{prompt_tokens}, '>', $words,
           'and was a long one');
    cmp_ok($beside, '>=', int($words / $budget) - 2,
           'tokens come while it is read');
    $n += $beside;
}


# Every step has had a token of the chat, but the first ones, which only had its
# prompt.

tokens($chat, sub { $_[0] >= 20 });
$chat->close();

wait_until(sub {
    my $m = $t->metrics;
    return !grep { $m->{$_} } grep { /^dsa_engine_requests_/ } keys %$m;
}, 30, 'the end of the chat');

cmp_ok(counter('steps') - (counter('completion_tokens') - $prompts), '<=', 2,
       'no step leaves the chat out');

$t->done;
