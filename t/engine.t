#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The module and the real engine, with paced tokens in place of a model:
# many chats at once, cancels, reloads, an engine that is killed.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('engine');
my $engine = $t->start_engine(conf => { backend => 'null' });

$t->start_nginx();

sub running {
    my $m = $t->metrics;
    my ($run) = grep { /^dsa_engine_requests_running/ } keys %$m;
    my ($wait) = grep { /^dsa_engine_requests_waiting/ } keys %$m;
    return $m->{$run} + $m->{$wait};
}


# the same in one piece and in a stream

my $request = ask('Tell me of the sea.', max_tokens => 40, seed => 7,
                  ignore_eos => JSON::PP::true);
my $whole = $t->post($chat, $request)->{json};
is($whole->{choices}[0]{finish_reason}, 'length', 'an answer');
is($whole->{usage}{completion_tokens}, 40, 'of as many tokens');
cmp_ok($whole->{usage}{prompt_tokens}, '>', 4, 'the prompt is counted');

my $m = DSA::HTTP->gather($t->stream($request)->events);
is($m->{content}, $whole->{choices}[0]{message}{content},
   'a stream says the same');
is($m->{done}, 1, 'to the end');
is($m->{usage}{completion_tokens}, 40, 'with its usage');


# many at the same time: each answer is the same as alone

my %alone;
my @texts = map { "Story number $_ of " . ($_ * 7919) } 1 .. 20;

for my $text (@texts) {
    $alone{$text} = $t->post($chat, ask($text, max_tokens => 30, seed => 1,
                             ignore_eos => JSON::PP::true))
                      ->{json}{choices}[0]{message}{content};
}

is(scalar(keys %{{ reverse %alone }}), 20, '20 different texts');

my @streams = map { [$texts[$_ % 20], $t->stream(
    ask($texts[$_ % 20], max_tokens => 30, seed => 1,
        ignore_eos => JSON::PP::true), head => 0)] } 0 .. 199;
my (%wrong, $complete);

for (@streams) {
    my ($text, $s) = @$_;
    $s->read_head();
    my $m = DSA::HTTP->gather($s->events);
    $complete++ if $m->{done} == 1 && $m->{usage}{completion_tokens} == 30;
    $wrong{$text}++ if $m->{content} ne $alone{$text};
}

is($complete, 200, '200 chats at once are complete');
is(join(',', keys %wrong), '', 'each with its own text');


# a client that leaves

my $long = ask('On and on.', max_tokens => 2000,
               ignore_eos => JSON::PP::true);
my $s = $t->stream($long);
$s->next_event() for 1 .. 3;
$s->close();
ok(wait_until(sub { running() == 0 }, 5, 'it to be freed'),
   'a client that leaves frees its sequence');


# a reload in the middle of a stream

$s = $t->stream(ask('Go on.', max_tokens => 60, seed => 3,
                    ignore_eos => JSON::PP::true));
$s->next_event() for 1 .. 3;
$t->reload();
$m = DSA::HTTP->gather($s->events);
is("$m->{done} $m->{usage}{completion_tokens}", '1 60',
   'no token is lost by a reload');


# over the context

my $r = $t->post($chat, ask('word ' x 200000, max_tokens => 1));
is($r->{status}, 400, 'a prompt over the context');
like($r->{json}{error}{message}, qr/^This model's maximum context length is /,
     'is told');


# killed, and back

$s = $t->stream($long);
$s->next_event() for 1 .. 3;
$engine->kill9();
DSA::Process::wait_gone($_, 10) for DSA::Process::children($engine->pid);
$m = DSA::HTTP->gather($s->events);
is(scalar(@{ $m->{errors} }), 1, 'killed: an error in the stream');
is($m->{done}, 0, 'and no [DONE]');

$engine->restart();
wait_until(sub { $t->post($chat, ask('x', max_tokens => 1))->{status} == 200 },
           30, 'service');

is(running(), 0, 'nothing is left');

$t->done;
