#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Ends of answers in the middle of accepted drafts: stop strings, max_tokens,
# budgets of reasoning, the end of the context, and the end of a schema; while
# answers are preempted.  The text, its end and its usage are those of an engine
# without drafts.

use strict;
use warnings;

use List::Util qw/ min sum0 /;
use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::Fake qw/ ask /;
use DSA::Test;

use constant { CONTEXT => 320, BESIDE => 5 };

my $chat = '/v1/chat/completions';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my %off = (thinking => { type => 'disabled' });
my ($without, $with) = map { DSA::Test->new("speculate ends $_") }
                           qw/ without with /;
my $model = with_drafts("$DSA::Test::root/demo/model",
                        $without->path('model'));

# many drafts are right in this list, because the model repeats itself

my $list = { type => 'json_schema', json_schema => {
    name => 'list', strict => $true, schema => {
        type => 'array', minItems => 30, maxItems => 30,
        items => { type => 'integer', minimum => 10, maximum => 99 } } } };


sub start {
    my ($t, $speculate, $pages) = @_;

    $t->start_engine(conf => { model => $model, name => 'demo',
                               backend => 'cpu', speculate => $speculate,
                               context_length => CONTEXT,
                               kv_memory => $pages });
    $t->start_nginx();

    return;
}


sub numbers {
    return ask('Numbers', temperature => 0, max_tokens => 250, %off,
               response_format => $list, @_);
}


# Answers of so many requests at a time: the choices and the usage of each.

sub answers {
    my ($t, @requests) = @_;

    my @answers;

    while (my @some = splice @requests, 0, BESIDE) {
        my @c = map { $t->connect } @some;

        $c[$_]->send_request('POST', $chat, body => json_encode($some[$_]))
            for 0 .. $#some;

        push @answers, map { json_decode($_->response->{body}) } @c;
    }

    return @answers;
}


sub without_drafts {
    my ($answer) = @_;

    my $usage = $answer->{usage};

    return { choices => $answer->{choices}, error => $answer->{error},
             tokens => [ @{$usage}{qw/ prompt_tokens completion_tokens /} ],
             reasoning => $usage->{completion_tokens_details}
                                {reasoning_tokens} };
}


# One engine has more pages than five requests need, the other one fewer.

start($without, 'off', '8m');
start($with, 5, '2m');

my ($whole) = answers($without, numbers());
my $text = $whole->{choices}[0]{message}{content};

is(scalar(@{ json_decode($text) }), 30, 'a list of 30 numbers');

my @requests = (
    (map { numbers(max_tokens => $_, logprobs => $true) } 1 .. 60),
    (map { numbers(stop => [ substr $text, 2 * $_, 3 + $_ % 6 ]) }
         1 .. length($text) / 2 - 5),
    (map { numbers(temperature => 0.5, seed => $_, n => 2) } 1 .. 5),
    (map { ask('Think', seed => 1, max_tokens => 40,
               thinking => { type => 'enabled' }, max_thinking_tokens => $_) }
         1 .. 12),
    (map { ask('a ' x $_, temperature => 0, max_tokens => 500, %off,
               ignore_eos => $true) } CONTEXT - 20 .. CONTEXT),
);

my @want = answers($without, @requests);
my @got = answers($with, @requests);
my %ends;

for my $i (0 .. $#requests) {
    my ($want, $got) = map { without_drafts($_) } $want[$i], $got[$i];

    is_deeply($got, $want, "request $i") or diag explain $requests[$i];

    $ends{ $_->{finish_reason} }++ for @{ $got->{choices} // [] };
}

cmp_ok($ends{$_} // 0, '>', 20, "answers that end with $_")
    for qw/ stop length /;
cmp_ok(scalar(grep { $_->{error} } @got), '>', 0, 'prompts over the context');


# A draft that became part of an answer is one of its tokens.

my @usage = map { $_->{usage} // () } @got;
my @wrong = grep {
    my $details = $_->{completion_tokens_details};

    $details->{accepted_draft_tokens} > $details->{draft_tokens}
        || $details->{accepted_draft_tokens} > $_->{completion_tokens}
} @usage;

is_deeply(\@wrong, [], 'no answer has more drafts than tokens');

my $accepted = sum0(map { $_->{completion_tokens_details}
                            {accepted_draft_tokens} } @usage);
my $all = sum0(map { $_->{completion_tokens} } @usage);

note("$accepted of $all tokens were drafts");
cmp_ok($accepted, '>', $all / 5, 'many tokens were drafts');

my ($preempted) = map { $with->metrics->{$_} }
                  grep { /^dsa_engine_preemptions_total/ }
                  keys %{ $with->metrics };

cmp_ok($preempted, '>', 0, 'answers were preempted');

$with->done;
$without->done;
