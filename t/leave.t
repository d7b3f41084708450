#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A client that leaves while its prompt is computed, on the real model: the
# sequence is freed between two chunks, with all its pages, and the prompt is
# never finished.  (That it takes one step is in t/unit/test_session_end.c,
# where steps can be counted one by one.)

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

use constant CHUNK => 4;

my $t = DSA::Test->new('leave');

$t->start_engine(conf => { token_budget => CHUNK, max_running => 4,
                           kv_memory => '256m' });
$t->start_nginx();

sub engine {
    my $m = $t->metrics;
    my %is;

    for (keys %$m) {
        $is{$1} = $m->{$_} if /^dsa_engine_(\w+)\{/;
    }

    return \%is;
}

# the length of the prompt, and that it is computed in several steps

my $text = join(' ', map { "part $_ of it" } 1 .. 700);
my $whole = $t->post('/v1/chat/completions', ask($text, max_tokens => 1));
my $tokens = $whole->{json}{usage}{prompt_tokens};
my $before = engine();

is($whole->{status}, 200, 'an answer');
is($before->{steps_total}, int(($tokens + CHUNK - 1) / CHUNK),
   'the prompt was computed in chunks');
cmp_ok($before->{steps_total}, '>', 100, 'in many');
is($before->{pages_used}, 0, 'no page is in use');

# another prompt of that length, without a cached prefix

my $s = $t->stream(ask("Now $text", max_tokens => 1));

ok(wait_until(sub { engine()->{steps_total} >= $before->{steps_total} + 3 },
              20, 'some chunks'),
   'it is being computed');
cmp_ok(engine()->{pages_used}, '>', 0, 'and has pages');
$s->close();

ok(wait_until(sub { engine()->{requests_running} == 0 }, 20,
              'the sequence to be freed'),
   'the client leaves: the sequence is freed');

my $after = engine();

is($after->{pages_used}, 0, 'with its pages');
cmp_ok($after->{steps_total}, '<', 2 * $before->{steps_total},
       'before the prompt was finished');
is($after->{completion_tokens_total}, $before->{completion_tokens_total},
   'no token was sampled');
is($t->metrics->{'dsa_cancelled_total{reason="client"}'}, 1, 'it is counted');

$t->done;
