# Copyright (C) The nginx-dsa authors
#
# What users of other servers complained about, each with the issue: histories
# that clients send back in another form, streams that clients cannot read, and
# calls that were lost.  Other complaints have tests of their own: the billing
# header that changes in each request (vllm#36829, sglang#21064) in
# t/anthropic.t, the cache hits of agents in t/retention_hits.t.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('complaints');
my $chat = '/v1/chat/completions';

$t->start_redis();
my $fake = $t->start_fake('context=100000');
my %conf = (workers => 2);

$t->start_nginx(%conf);
$t->wait_redis(2);


# The prompt that the engine got last, without the tools.

sub prompt {
    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: grammar=.*)?$/;
    utf8::decode($prompt);
    return $prompt =~ s/.*<\/functions>\\n//r;
}


sub user { return { role => 'user', content => $_[0] } }
sub sent { my ($messages, %more) = @_;
           my $r = $t->post($chat, { model => 'deepseek-reasoner',
                                     messages => $messages, %more });
           is($r->{status}, 200, 'answered') or diag($r->{body});
           return $r->{json}{choices}[0]; }

my @tools = (tools => [ map { { type => 'function',
                                function => { name => $_ } } } qw/ f g / ]);

sub invoke { return "<｜DSML｜invoke name=\"$_[0]\">\\n<｜DSML｜parameter "
                    . 'name="a" string="true">x</｜DSML｜parameter>\\n'
                    . '</｜DSML｜invoke>' }
sub block { return '<｜DSML｜function_calls>\\n' . join($_[0], @_[1 .. $#_])
                   . '\\n</｜DSML｜function_calls>' }
sub bytes { my ($text) = @_; utf8::encode($text); return $text }

my ($user, $assistant, $eos) = ('[<｜User｜>]', '[<｜Assistant｜>]',
                                '[<｜end▁of▁sentence｜>]');


# ollama#18431: a system message in the middle stays there

sent([ { role => 'system', content => 'First.' }, user('q1'),
       { role => 'assistant', content => 'a1' },
       { role => 'system', content => 'Now in French.' }, user('q2') ]);
is(prompt(), "[<｜begin▁of▁sentence｜>]First.${user}q1$assistant\[</think>]a1"
             . "${eos}Now in French.${user}q2$assistant\[<think>]",
   'a system message in the middle');

$t->post('/v1/messages', { model => 'deepseek-chat', max_tokens => 9,
    system => 'First.', messages => [ user('q1'),
        { role => 'assistant', content => 'a1' }, user('q2'),
        { role => 'system', content => 'Now in French.' } ] });
like(prompt(), qr/^\[\S+\]First\..*a1.*q2\\n\\nNow in French\.\[/,
     'in Anthropic\'s API, it is appended to the message before it');


# Reasonix#4022: a conversation without its reasoning is continued by a server
# that has been restarted

my $first = sent([ user("!fake\n" . tokens('Hm.</think>\\n\\n'
                                           . block('', invoke('f')))) ],
                 @tools)->{message};
is($first->{reasoning_content}, 'Hm.', 'reasoning before a call');

wait_until(sub { scalar(my @keys = $t->redis->keys('dsa1:*:s:*')) }, 20,
           'what is retained');
$t->stop_nginx('QUIT');
$t->start_nginx(%conf);
$t->wait_redis(2);

my @history = (user('q'), { role => 'assistant', content => '',
                            tool_calls => $first->{tool_calls} },
               { role => 'tool', content => 'r',
                 tool_call_id => $first->{tool_calls}[0]{id} });

sent(\@history, @tools);
like(prompt(), qr/\[<think>\]Hm\.\[<\/think>\]/,
     'reasoning is restored after a restart');


# clients that name reasoning differently, and send arguments as an object

my $call = { id => 'c1', type => 'function', function => {
             name => 'f', arguments => { a => 'x' } } };
my %prompts;

for my $reasoning (qw/ reasoning_content reasoning /) {
    for my $arguments ({ a => 'x' }, '{"a":"x"}', '{"a": "x"}') {
        sent([ user('q'), { role => 'assistant', content => undef,
                            $reasoning => 'Hm.', tool_calls => [ { %$call,
                                function => { name => 'f',
                                    arguments => $arguments } } ] },
               { role => 'tool', tool_call_id => 'c1', content =>
                 [ { type => 'text', text => 'r' } ] } ], @tools);
        $prompts{prompt()}++;
    }
}

is(scalar keys %prompts, 1, 'all of them lead to the same prompt')
    or diag(explain(\%prompts));
like((keys %prompts)[0], qr/\[<think>\]Hm\.\[<\/think>\]/, 'with reasoning');


# results in another order than the calls (vLLM pairs them by position)

for my $order ([ 1, 2 ], [ 2, 1 ]) {
    sent([ user('q'), { role => 'assistant', content => '',
                        reasoning_content => 'Hm.',
                        tool_calls => [ map { { %$call, id => "c$_" } } 1, 2 ]
                      }, map { { role => 'tool', tool_call_id => "c$_",
                                 content => "r$_" } } @$order ], @tools);
    like(prompt(), qr{<result>r1</result>\\n<result>r2</result>},
         "results in the order @$order");
}


# xgrammar#638: several calls with blank lines between them; LM Studio #830: ids

for my $between ('\\n', '\\n\\n', '\\n\\n\\n', ' \\n') {
    my $m = sent([ user("!fake\n" . tokens('</think>\\n\\n'
                   . block($between, map { invoke($_) } qw/ f g f /))) ],
                 @tools)->{message};
    my %ids = map { $_->{id} => 1 } @{ $m->{tool_calls} };

    is(join(' ', map { $_->{function}{name} } @{ $m->{tool_calls} }), 'f g f',
       "three calls with '$between' between them") or diag(json_encode($m));
    is(scalar keys %ids, 3, 'with ids that differ');
    is($m->{content}, '', 'and no text');
}


# Streams.  vllm#27755 and others: reasoning_content is missing; cline#8518,
# autogen#4311: choices[0] is missing; empty deltas after the switch.

for my $usage (0, 1) {
    my @chunks = map { $_->{json} // () } $t->stream({
        model => 'deepseek-reasoner', @tools, messages => [
            user("!fake\n" . tokens('Hm.</think>It is.\\n\\n'
                 . block('\\n', invoke('f'), invoke('g')))) ],
        $usage ? (stream_options => { include_usage => JSON::PP::true })
               : () })->events;
    my @deltas = map { $_->{choices}[0]{delta} } @chunks;
    my @calls = map { @{ $_->{tool_calls} || [] } } @deltas;

    is(scalar(grep { @{ $_->{choices} } != 1 } @chunks), 0,
       'each chunk has one choice');
    ok($chunks[-1]{usage}{total_tokens}, 'usage is in the last one');
    is($chunks[-1]{choices}[0]{finish_reason}, 'tool_calls',
       'as is finish_reason, also with text before the calls');
    is(scalar(grep { defined $_->{role} } @deltas), 1, 'one role');
    is($deltas[0]{role}, 'assistant', 'in the first delta');
    is(join('', map { $_->{reasoning_content} // '' } @deltas), 'Hm.',
       'reasoning_content');

    my ($content) = grep { length($deltas[$_]{content} // '') } 0 .. $#deltas;

    is(scalar(grep { defined $_->{reasoning_content} }
              @deltas[$content .. $#deltas]), 0,
       'no reasoning, not even an empty one, after it');
    is(scalar(grep { !defined $_->{index} || !defined $_->{function}{arguments}
                     || ref $_->{function}{arguments} } @calls), 0,
       'each delta of a call has an index, and arguments as a string');
    is(scalar(grep { defined $_->{id} } @calls), 2, 'ids come once');
    is(scalar(grep { json_encode($_) =~ bytes('DSML|think|▁of▁') } @deltas), 0,
       'no name of a control token is visible');
}


# A model that makes a call with broken JSON: the arguments are passed on as
# they are, and the next turn is not refused.

my $broken = sent([ user("!fake\n" . tokens('</think>\\n\\n<｜DSML｜'
    . 'function_calls>\\n<｜DSML｜invoke name="f">\\n<｜DSML｜parameter '
    . 'name="a" string="false">{"b": [1}</｜DSML｜parameter>\\n'
    . '</｜DSML｜invoke>\\n'
    . '</｜DSML｜function_calls>')) ], @tools)->{message};
is($broken->{tool_calls}[0]{function}{arguments}, '{"a": {"b": [1}}',
   'broken arguments are not repaired');
sent([ user('q'), $broken, { role => 'tool', content => 'no',
                             tool_call_id => $broken->{tool_calls}[0]{id} } ],
     @tools);
like(prompt(), qr/\{"b": \[1\}/, 'and are in the history as they were');


# All of max_tokens is spent on reasoning: no text, and no error.

my $spent = sent([ user("!fake\nT Hm|, well\ndone length") ], max_tokens => 2);
is($spent->{finish_reason}, 'length', 'reasoning that is cut');
is($spent->{message}{content}, '', 'has empty text');
is($spent->{message}{reasoning_content}, 'Hm, well', 'and is itself there');

$t->done;
