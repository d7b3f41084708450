#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The time between the tokens of an answer while a long prompt is read: the
# demonstration model on the CPU, with the default step_target.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $words = 1900;

my $t = DSA::Test->new('latency');

$t->start_engine(conf => { model => "$DSA::Test::root/demo/model",
                           backend => 'cpu' });
$t->start_nginx();


# The times between the tokens of a stream, until the sub is true.  An event may
# have several tokens, because a token is held back while its text is a part of
# a character; the logarithms of the probabilities show how many there are.

sub gaps {
    my ($stream, $until) = @_;

    my @gaps;
    my $last;

    while (!$until->(scalar @gaps)) {
        my $event = $stream->next_event();
        last if !defined $event;

        my $now = time;
        my $choice = $event->{json}{choices}[0];
        my $n = @{ $choice->{logprobs}{content} || [] } || 1;

        push @gaps, (($now - $last) / $n) x $n if defined $last;
        $last = $now;
    }

    return sort { $a <=> $b } @gaps;
}


sub quantile {
    my ($p, @sorted) = @_;

    return $sorted[int($p * $#sorted)];
}


sub readable {
    my ($http) = @_;

    my $bits = '';
    vec($bits, fileno $http->{socket}, 1) = 1;

    return select $bits, undef, undef, 0;
}


# a chat that goes on, and long prompts that arrive in the middle

my $chat = $t->stream(ask('Count for ever.', max_tokens => 3500, seed => 1,
                          ignore_eos => JSON::PP::true,
                          logprobs => JSON::PP::true));
my $alone = quantile(0.5, gaps($chat, sub { $_[0] >= 100 }));

my @beside;

# Enough prompts for a 99th percentile that is not the maximum.  How many that
# takes depends on the machine, because a faster one reads a prompt in fewer
# steps.  Each begins with another word, so that none is found in the cache.

for my $n (1 .. 40) {
    last if @beside >= 120;

    my $long = $t->connect();

    $long->send_request('POST', '/v1/chat/completions',
                        body => DSA::Test::json_encode(
                            ask("$n " . 'cat ' x $words,
                                max_tokens => 1)));

    # without the first tokens, whose steps have no part of the prompt yet

    push @beside, grep { $_ > 5 * $alone } gaps($chat,
                                                sub { readable($long) });

    my $r = $long->response();
    is($r->{status}, 200, 'a long prompt is answered');
    cmp_ok(DSA::Test::json_decode($r->{body})->{usage}{prompt_tokens}, '>',
           $words, 'and was a long one');
}

$chat->close();
@beside = sort { $a <=> $b } @beside;

cmp_ok(scalar @beside, '>=', 120, 'tokens come while the prompts are read');

my $median = quantile(0.5, @beside);
my $late = quantile(0.99, @beside);

note(sprintf '%d gaps: median %.1f ms, 99th percentile %.1f ms; alone %.1f ms',
     scalar @beside, map { 1000 * $_ } $median, $late, $alone);

cmp_ok($late, '<=', 3 * $median,
       'the 99th percentile of their gaps is at most three medians');

$t->done;
