#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Limits of the reasoning through nginx, with the null backend, which repeats
# the prompt, and with the demonstration model on the CPU: each API, with and
# without stream, beside a schema, and what the engine gets.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my %t = map { $_ => DSA::Test->new("thinking $_") } qw/ null cpu fields /;
my ($chat, $messages, $responses) =
    ('/v1/chat/completions', '/v1/messages', '/v1/responses');
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my %on = (thinking => { type => 'enabled' });


sub limited {
    my ($n, %more) = @_;

    return ask('one two three four five six', max_tokens => 60, seed => 1,
               thinking => { type => 'enabled', budget_tokens => $n }, %more);
}


# The tokens of the reasoning of an answer with logprobs.

sub reasoning { map { $_->{token} }
                    @{ $_[0]{choices}[0]{logprobs}{reasoning_content} || [] } }


for my $backend (qw/ null cpu /) {
    my $t = $t{$backend};

    $t->start_engine(conf => { model   => "$DSA::Test::root/demo/model",
                               backend => $backend eq 'null' ? 'null rate=0'
                                                             : $backend });
    $t->start_nginx(workers => 1, server =>
                    'location /anthropic/ { dsa_pass v32; }');

    # the reasoning without a limit

    my $free = $t->post($chat, limited(1000, logprobs => $true));
    my @free = reasoning($free->{json});

    cmp_ok(scalar @free, '>', 6, "$backend: a reasoning that can be limited")
        or diag($free->{body});

    # the demonstration model ends by itself

    my @budgets = (1, 2, 5, ($backend eq 'null' ? 20 : ()));
    my $over = limited(scalar(@free) + 1, logprobs => $true);

    is(json_encode([ reasoning($t->post($chat, $over)->{json}) ]),
       json_encode(\@free), "$backend: a limit that is not reached")
        if $backend eq 'cpu';

    for my $n (@budgets) {
        my $body = limited($n, logprobs => $true);
        my $r = $t->post($chat, $body);
        my @tokens = reasoning($r->{json});
        my $message = $r->{json}{choices}[0]{message};
        my $usage = $r->{json}{usage};

        is(scalar @tokens, $n + 1, "$backend, $n: tokens and the end")
            or diag($r->{body});
        is($tokens[$n], '</think>', 'the end is the last one');
        is(scalar(grep { $_ eq '</think>' } @tokens), 1, 'and only there');
        is($usage->{completion_tokens_details}{reasoning_tokens}, $n + 1,
           'reasoning_tokens counts the end, too');
        ok(length $message->{content}, 'the answer follows');

        if ($backend eq 'null') {
            is(join('', @tokens[0 .. $n - 1]), join('', @free[0 .. $n - 1]),
               'the reasoning is the beginning of the longer one');
            is($message->{reasoning_content},
               join('', @tokens[0 .. $n - 1]), 'as a text');
        }

        my $s = DSA::HTTP->gather($t->stream($body)->events);
        is(length $s->{reasoning_content} ? 1 : 0, 1, 'a stream has both');

        if ($backend eq 'null') {
            is($s->{$_}, $message->{$_}, "the $_ of a stream is the same")
                for qw/ reasoning_content content /;
        }

        is($s->{usage}{completion_tokens_details}{reasoning_tokens}, $n + 1,
           'and its usage');
    }

    # other fields for the same

    for ({ max_thinking_tokens => 5, %on },
         { reasoning => { max_tokens => 5 } },
         { max_thinking_tokens => 5, thinking => { type => 'enabled',
                                                   budget_tokens => 9 } })
    {
        my $r = $t->post($chat, { %{ limited(1) }, thinking => undef, %$_ });
        is($r->{json}{usage}{completion_tokens_details}{reasoning_tokens}, 6,
           "$backend: " . join ' ', sort keys %$_) or diag($r->{body});
    }

    # the schema begins behind the end

    my %schema = (response_format => { type => 'json_schema', json_schema => {
        name => 'x', strict => $true,
        schema => { enum => [ 'left', 'right' ] } } });
    my @wrong;

    for my $seed (1 .. ($backend eq 'null' ? 30 : 1)) {
        my $r = $t->post($chat, limited(3, seed => $seed, %schema));
        my $c = $r->{json}{choices}[0];
        my $n = $r->{json}{usage}{completion_tokens_details}{reasoning_tokens};

        push @wrong, $r->{body}
            if $c->{message}{content} !~ /^\s*"(left|right)"\s*$/ || $n > 4
               || $c->{finish_reason} ne 'stop';
    }

    is(scalar @wrong, 0, "$backend: a schema") or diag($wrong[0]);

    # Responses

    my $r = $t->post($responses, { model => 'deepseek-chat', input => 'one two',
                                   reasoning => { effort => 'low' },
                                   max_thinking_tokens => 5, store => $false,
                                   max_output_tokens => 30 });
    is($r->{json}{usage}{output_tokens_details}{reasoning_tokens}, 6,
       "$backend: a response") or diag($r->{body});
    is_deeply([ map { $_->{type} } @{ $r->{json}{output} } ],
              [qw/ reasoning message /], 'its items');

    next if $backend eq 'cpu';

    # Anthropic's least budget is 1024: the answer repeats the same prompt

    my %budget = (model => 'deepseek-chat', max_tokens => 1100,
                  thinking => { type => 'enabled', budget_tokens => 1024 },
                  messages => [{ role => 'user', content => 'one two' }]);
    my $want = $t->post($chat, \%budget)->{json}{choices}[0]{message};

    $r = $t->post("/anthropic$messages", \%budget);
    my @blocks = @{ $r->{json}{content} };

    is(scalar @blocks, 2, 'a message has two blocks') or diag($r->{body});
    is($blocks[0]{thinking}, $want->{reasoning_content}, 'its reasoning');
    is($blocks[1]{text}, $want->{content}, 'its answer');
    is($r->{json}{usage}{output_tokens}, 1100, 'its tokens');
}

$t{$_}->done for qw/ null cpu /;


# What the engine gets.

my $t = $t{fields};
my $fake = $t->start_fake();
$t->start_nginx(workers => 1, server =>
                'location /anthropic/ { dsa_pass v32; }');
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

my %prefix = (%{ ask('x', max_thinking_tokens => 9, %on) });
my @prefix = (@{ $prefix{messages} }, { role => 'assistant', prefix => $true,
                                        reasoning_content => 'r',
                                        content => '' });

for ([ 'no limit', ask('x', %on), undef ],
     [ 'a limit', ask('x', max_thinking_tokens => 9, %on), 9 ],
     [ 'a limit of nothing', ask('x', max_thinking_tokens => 9), undef ],
     [ 'the reasoning of a prefix', { %prefix, messages => \@prefix }, 9 ],
     [ 'the content of a prefix',
       { %prefix, messages => [ $prefix[0], { %{ $prefix[1] },
                                              content => 'c' } ] }, undef ],
     [ 'a tool round', { %prefix, messages => [
           $prefix[0],
           { role => 'assistant', content => '', reasoning_content => 'r',
             tool_calls => [{ id => 'a', type => 'function', function => {
                              name => 'f', arguments => '{}' } }] },
           { role => 'tool', tool_call_id => 'a', content => '7' } ] }, 9 ])
{
    my ($name, $body, $budget) = @$_;
    my $r = $t->post($chat, $body);

    is($r->{status}, 200, $name) or diag($r->{body});

    my ($sent) = (submitted($fake))[-1] =~ / budget=(\d+) /;
    my ($flags) = (submitted($fake))[-1] =~ / flags=(\d+) /;

    is($sent, $budget, "$name: the budget");
    is($flags, defined $budget ? 8 : 0, "$name: the flag THINKING");
}

# A prefix that has content is continued behind the reasoning.

for my $content ('', 'c') {
    my %body = (%prefix, messages => [ $prefix[0], { %{ $prefix[1] },
                                                     content => $content } ]);
    my ($in, $not) = $content eq '' ? qw/ reasoning_content content /
                                    : qw/ content reasoning_content /;
    my $echo = 'echo: ' . ($content || 'r');
    my $m = $t->post($chat, \%body)->{json}{choices}[0]{message};

    is($m->{$in}, $echo, "after a prefix of \"$content\" the $in");
    is($m->{$not} // '', '', "and no $not");

    my $s = DSA::HTTP->gather($t->stream(\%body)->events);

    is($s->{$in}, $echo, 'in a stream');
    is($s->{$not}, '', 'as well');
}

# What is refused.

for ([ 0, 'budget_tokens' ], [ -1, 'budget_tokens' ], [ 'x', 'budget_tokens' ])
{
    my $r = $t->post($chat, limited($_->[0]));

    is($r->{status}, 400, "a budget of $_->[0]") or diag($r->{body});
    is($r->{json}{error}{param}, 'thinking.budget_tokens', 'its name');
}

for ([ $chat, ask('x', thinking => { type => 'disabled',
                                     budget_tokens => 9 }) ],
     [ "/anthropic$messages",
       { model => 'deepseek-chat', max_tokens => 2000,
         messages => [{ role => 'user', content => 'x' }],
         thinking => { type => 'disabled', budget_tokens => 1024 } } ],
     [ "/anthropic$messages",
       { model => 'deepseek-chat', max_tokens => 2000,
         messages => [{ role => 'user', content => 'x' }],
         max_thinking_tokens => 1024 } ],
     [ '/v1/completions', { model => 'deepseek-chat', prompt => 'x',
                            reasoning => { max_tokens => 9 } } ])
{
    my ($uri, $body) = @$_;
    my $r = $t->post($uri, $body);

    is($r->{status}, 400, "$uri: a budget that cannot be honoured")
        or diag($r->{body});
}

$t->done;
