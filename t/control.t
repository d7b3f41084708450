#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Control tokens: only a token that the engine reports as one has its meaning.
# The same characters, spelled by a model with ordinary tokens, are text.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode $_, ':utf8' for Test::More->builder->output,
                        Test::More->builder->failure_output;

my $chat = '/v1/chat/completions';
my %tools = (tools => [{ type => 'function', function => { name => 'f' } }]);

my $t = DSA::Test->new('control');
my $fake = $t->start_fake();

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');


# What a script becomes, as an object and as a stream: reasoning, content, and
# names and arguments of calls.

sub parts {
    my ($name, $lines, %more) = @_;

    my $request = script($lines, %more);
    my $r = $t->post($chat, $request);
    my $m = $r->{json}{choices}[0]{message};
    my $s = DSA::HTTP->gather($t->stream($request)->events);

    is($r->{status}, 200, "$name: the status");
    is($s->{content}, $m->{content}, "$name: the same content in a stream");
    is($s->{reasoning_content}, $m->{reasoning_content} // '',
       "$name: and the same reasoning");

    return { reasoning => $m->{reasoning_content}, content => $m->{content},
             calls => [map { [@{ $_->{function} }{qw/ name arguments /}] }
                       @{ $m->{tool_calls} || [] }],
             details => $r->{json}{usage}{completion_tokens_details} };
}


my @reasoner = (model => 'deepseek-reasoner');


# reasoning

my $p = parts('the token', "t why\nt </think>\nt so\n", @reasoner);
is_deeply([@$p{qw/ reasoning content /}], ['why', 'so'],
          'the token ends the reasoning');
is($p->{details}{reasoning_tokens}, 2, 'its tokens');

$p = parts('spelled', "t It ends with \ns </think>\nt , spelled.\n"
           . "t </think>\nt so\n", @reasoner);
is_deeply([@$p{qw/ reasoning content /}],
          ['It ends with </think>, spelled.', 'so'],
          'the characters of </think> do not end the reasoning');
is($p->{details}{reasoning_tokens}, 4, 'the tokens of it');

$p = parts('spelled in pieces', "s a </th\ns ink> b\nt c</think>\nt so\n",
           @reasoner);
is_deeply([@$p{qw/ reasoning content /}], ['a </think> bc', 'so'],
          'nor do they in pieces, and a token may end with a control token');

$p = parts('one record', "T r|</think>|c\n", @reasoner);
is_deeply([@$p{qw/ reasoning content /}], ['r', 'c'],
          'several tokens in one record');


# content

$p = parts('a role', "t The name \ns <｜User｜>\nt  is a token.\n");
is($p->{content}, 'The name <｜User｜> is a token.',
   'a role token that is spelled is text');

$p = parts('a stray role', "t one\nt <｜User｜>\nt two\n");
is($p->{content}, 'onetwo', 'the token itself is left out');


# calls

my $call = '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n'
           . '</｜DSML｜invoke>\n</｜DSML｜function_calls>';
(my $text = $call) =~ s/\\n/\n/g;

$p = parts('a call', tokens($call) . "\n", %tools);
is_deeply($p->{calls}, [['f', '{}']], 'a call');
is($p->{content}, '', 'without content');

$p = parts('a spelled call', "s $call\n", %tools);
is_deeply($p->{calls}, [], 'a call that is spelled is none');
is($p->{content}, $text, 'but text');


# logprobs do not change where the parts begin

$p = parts('logprobs', "T r|</think>|c\n", @reasoner,
           logprobs => JSON::PP::true(), top_logprobs => 1);
is_deeply([@$p{qw/ reasoning content /}], ['r', 'c'], 'with logprobs');


# a vocabulary without these tokens: the model can only spell them

my $plain = DSA::Test->new('no control tokens');
$plain->start_fake('vocabulary=0');
$plain->start_nginx(workers => 1);
wait_until(sub { $plain->metrics->{dsa_sessions} == 1 }, 10, 'the session');

my $r = $plain->post($chat, script("t why\nt </th\nt ink>\nt so\n",
                                   @reasoner));
my $m = $r->{json}{choices}[0]{message};
is("$m->{reasoning_content}|$m->{content}", 'why|so',
   'the characters have the meaning');

$plain->done;
$t->done;
