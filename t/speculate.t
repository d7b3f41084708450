#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Speculation through nginx: answers of all kinds are the same with drafts as
# without, also for prompts of which pages are found, and beside one another.

use strict;
use warnings;

use List::Util qw/ min /;
use MIME::Base64;
use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::Fake qw/ ask /;
use DSA::Rollout qw/ rows /;
use DSA::Test;

use constant { DRAFTS => [ 1, 2, 3, 5, 'auto' ], BESIDE => 6 };

my $chat = '/v1/chat/completions';
my $completions = '/v1/completions';
my $messages = '/v1/messages';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $off = DSA::Test->new('speculate off');
my $model = with_drafts("$DSA::Test::root/demo/model", $off->path('model'));

my $object = {
    type => 'object',
    properties => { a => { type => 'integer', minimum => 0, maximum => 99 },
                    b => { enum => [ 'one', 'two', 'three' ] } },
    required => [qw/ a b /],
    additionalProperties => $false,
};

my $tool = { type => 'function',
             function => { name => 'add', parameters => $object,
                           strict => $true } };

my $turns = [ { role => 'system', content => 'You count. ' x 20 },
              { role => 'user', content => 'one two' },
              { role => 'assistant', content => 'three four ' x 11 },
              { role => 'user', content => 'five' } ];

# What a request may have, each beside one of the temperatures.  Some go to
# other paths.

my @kinds = (
    {},
    { top_p => 0.7 },
    { top_p => 0.95, max_tokens => 70 },
    { max_tokens => 100, ignore_eos => $true },
    { messages => $turns },
    { messages => [ @$turns, { role => 'assistant', content => 'Six',
                               prefix => $true } ] },
    { n => 3, max_tokens => 16 },
    { n => 2, stop => [ 'o', 'th' ] },
    { uri => $completions, prompt => 'Once upon a time ' x 9 },
    { uri => $completions, prompt => 'The end', suffix => ' of it',
      echo => $true },
    { uri => $messages, temperature => 0, stop_sequences => [ 'the' ] },
    { presence_penalty => 1.5 },
    { frequency_penalty => 1 },
    { logit_bias => { 100 => 5, 101 => -100 } },
    { presence_penalty => -0.5, frequency_penalty => 0.5 },
    { stop => [ 'e', ' a' ] },
    { stop => [ 'there', 'answer', '.' ], max_tokens => 70 },
    { logprobs => $true, top_logprobs => 4 },
    { logprobs => $true, top_logprobs => 20, top_p => 0.8, n => 2 },
    { thinking => { type => 'enabled' } },
    { thinking => { type => 'enabled' }, max_thinking_tokens => 5 },
    { thinking => { type => 'enabled' }, max_thinking_tokens => 18,
      logprobs => $true },
    { rollout => { mask => $true, experts => $true, prompt => $true },
      ignore_eos => $true },
    { rollout => {}, top_p => 0.5 },
    { response_format => { type => 'json_object' },
      messages => [ { role => 'user', content => 'Some json' } ] },
    { response_format => { type => 'json_schema', json_schema => {
          name => 'word', strict => $true, schema => {
              type => 'string', pattern => '^[a-z]{3,20}( [0-9]+)?$' } } } },
    { response_format => { type => 'json_schema', json_schema => {
          name => 'answer', schema => $object } } },
    { tools => [ $tool ], tool_choice => 'required' },
    { tools => [ $tool ], tool_choice => 'auto' },
    { max_tokens => 1 },
    { max_tokens => 2 },
);

my @words = qw/ What is 7 plus 5 times the number of words in this sentence /;
my $seed = 0;
my $loaded = 0;
my $drafts = 0;
my @requests = map {
    my $temperature = $_;
    map {
        my $n = 1 + ($seed * 7) % 90;

        my $text = join ' ', map { $words[($seed + $_) % @words] } 1 .. $n;
        my $r = ask($text, max_tokens => 30, temperature => $temperature,
                    seed => ++$seed, thinking => { type => 'disabled' }, %$_);
        my $uri = delete $r->{uri} // $chat;

        delete @{$r}{qw/ messages thinking /} if $uri eq $completions;
        delete $r->{seed} if $uri eq $messages;

        { uri => $uri, body => json_encode($r) }
    } @kinds
} 0, 0.6, 1;


sub start {
    my ($t, $speculate) = @_;

    $t->start_engine(conf => { model => $model, name => 'demo',
                               backend => 'cpu', speculate => $speculate,
                               kv_memory => '9m', host_memory => '64m' });
    $t->start_nginx(location => 'dsa_rollout 4m;');

    return $t;
}


# What a rollout has for any cut of the tokens into steps: the experts of the
# prompt are reported as far as it was computed.

sub drawn {
    my ($rows) = @_;

    my $all = rows(decode_base64($rows));
    my $n = $all->{samples}[0]{position};

    is($all->{again}, 0, 'the experts of a position once');

    delete $all->{experts}{$_} for grep { $_ < $n } keys %{$all->{experts}};

    return $all;
}


# What the client sees of an answer, without what is new in each.

sub seen {
    my ($r) = @_;

    my $body = json_decode($r->{body});
    my $usage = $body->{usage};

    delete @{$body}{qw/ id created system_fingerprint /};

    for my $choice (@{$body->{choices} // []}) {
        delete $_->{id} for @{$choice->{message}{tool_calls} // []};

        $choice->{rollout} = drawn($choice->{rollout}{rows})
            if $choice->{rollout};
    }

    # what is found in the cache depends on the requests before

    $loaded += $usage->{prompt_tokens_details}{host_tokens} // 0;

    delete @{$usage}{qw/ prompt_tokens_details prompt_cache_hit_tokens
                         prompt_cache_miss_tokens /};

    # as the number of drafts does; what they give is the same

    if (my $details = $usage->{completion_tokens_details}) {
        $drafts += delete $details->{draft_tokens};
        delete $details->{accepted_draft_tokens};
    }

    if (defined $usage->{input_tokens}) {
        $usage->{input_tokens} += delete $usage->{cache_read_input_tokens};
    }

    return { status => $r->{status}, body => $body };
}


# All answers, of so many requests at a time.

sub answers {
    my ($t, $beside) = @_;

    my @seen;

    for (my $i = 0; $i < @requests; $i += $beside) {
        my $last = min($i + $beside, scalar @requests) - 1;
        my @c = map { $t->connect } $i .. $last;

        $c[$_ - $i]->send_request('POST', $requests[$_]{uri},
                                  body => $requests[$_]{body})
            for $i .. $last;

        push @seen, map { seen($_->response) } @c;
    }

    return @seen;
}


# The engine's counters have what its first answers report.  The first token of
# an answer comes with its prompt.  No answer ends with a stop string: after one
# the engine may go on for a few steps, which only the counters have.

sub counters_ok {
    my ($t, $most, $name) = @_;
    my %want = (decode_tokens => 0, draft_tokens => 0,
                accepted_draft_tokens => 0);
    my ($got, $at);

    for my $request (@requests[map { $_ * @kinds } 0 .. 2]) {
        my $r = $t->post($request->{uri}, json_decode($request->{body}));
        my $usage = $r->{json}{usage};
        my $details = $usage->{completion_tokens_details};

        $want{decode_tokens} += $usage->{completion_tokens} - 1;
        $want{$_} += $details->{$_} for qw/ draft_tokens
                                            accepted_draft_tokens /;
    }

    my $reached = sub {
        my $m = $t->metrics;

        ($got, $at) = ({}, []);

        for (keys %$m) {
            my ($metric) = /^dsa_engine_(\w+)_total\{/ or next;

            $got->{$metric} += $m->{$_};
            $at->[$1] = $m->{$_} if /,position="([0-6])"\}\z/;
        }

        return $got->{decode_tokens} == $want{decode_tokens};
    };

    wait_until($reached, 30, "$name: all tokens are counted");
    is_deeply({ map { $_ => $got->{$_} } keys %want }, \%want,
              "$name: the engine counts what the answers report");

    # an answer whose last token is an accepted draft has none of its step

    my $more = $got->{decodes} + $got->{accepted_draft_tokens}
               - $got->{decode_tokens};

    ok($more >= 0 && $more <= 3,
       "$name: a step gives one token, and the accepted drafts")
        or diag("$more more than tokens");

    is(scalar(@$at), 7, "$name: seven positions");
    is_deeply([ @$at[$most .. 6] ], [ (0) x (7 - $most) ],
              "$name: none beyond the most");
    is_deeply($at, [ sort { $b <=> $a } @$at ],
              "$name: a draft needs those before it");

    cmp_ok($got->{draft_tokens}, $most ? '>' : '==', 0, "$name: drafts");
    cmp_ok($got->{draft_tokens}, '<=', $most * $got->{decodes},
           "$name: at most $most in a step");
}


start($off, 'off');
counters_ok($off, 0, 'off');

my @want = answers($off, 1);
my $compared = 0;

is(scalar(grep { $_->{status} != 200 } @want), 0, 'all are answered')
    or diag explain [ grep { $_->{status} != 200 } @want ];

for my $n (@{(DRAFTS)}) {
    my $t = start(DSA::Test->new("speculate $n"), $n);

    counters_ok($t, $n, "$n drafts") if $n ne 'auto';
    $drafts = 0;

    for my $beside (1, BESIDE) {
        my @got = answers($t, $beside);

        for my $i (0 .. $#want) {
            is_deeply($got[$i], $want[$i],
                      "$n drafts, $beside at a time: request $i")
                or diag explain $requests[$i];
            $compared++;
        }
    }

    # the memory of the GPU holds less than all prompts

    ok($loaded > 0, "$n drafts: pages were loaded from host memory");
    $loaded = 0;

    # trials have drafts also where none pays

    cmp_ok($drafts, '>', 0, "$n drafts: some were verified");

    $t->done;
}

cmp_ok($compared, '>=', 900, 'answers that were compared');
$off->done;
