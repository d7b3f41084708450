# Copyright (C) The nginx-dsa authors
#
# Rollouts for trainers: what each token of an answer was drawn from and which
# experts computed it, compared with logits and routes that "dsa logits"
# computes over the whole answer in one step, and a sort of the probabilities.

use strict;
use warnings;

use JSON::PP;
use List::Util qw/ sum0 /;
use MIME::Base64;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Rollout;
use DSA::Test;
use DSA::Widen;

my %t = map { $_ => DSA::Test->new("rollout $_") }
            qw/ cpu preempted data tensor off limit /;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $chat = '/v1/chat/completions';
my $completions = '/v1/completions';

my $t = $t{cpu};
my $model = $t->model;
my $ids = vocabulary($model);
my %forms;

$t->start_engine(conf => { precision => 'exact', kv_memory => '16m',
                           token_budget => 128, max_running => 8 });
$t->start_nginx(location => 'dsa_rollout 4m;');


sub body {
    my (%more) = @_;

    return { model => 'deepseek-chat', prompt => 'Once upon a time',
             max_tokens => 12, temperature => 1, top_p => 1, seed => 7,
             ignore_eos => $true,
             rollout => { mask => $true, experts => $true, prompt => $true },
             %more };
}


# The rows of an answer, streamed or not.

sub rollout {
    my ($t, $uri, $body) = @_;

    my $r = $t->post($uri, $body);

    is($r->{status}, 200, 'an answer') or diag($r->{body});

    my $choice = $r->{json}{choices}[0];

    return (rows(decode_base64($choice->{rollout}{rows})), $r->{json});
}


sub streamed {
    my ($t, $uri, $body) = @_;

    my $bytes = '';

    for my $e ($t->stream($body, uri => $uri)->events) {
        next if ref $e->{json} ne 'HASH';

        my $rollout = $e->{json}{choices}[0]{rollout} or next;

        $bytes .= decode_base64($rollout->{rows});
    }

    return $bytes;
}


# What is the same for any cut of the prompt into chunks.

sub drawn {
    my ($rows) = @_;

    return join "\n", map {
        my $kept = ref $_->{kept} ? @{ $_->{kept} } : $_->{kept};
        sprintf '%d: %d of %s', @{$_}{qw/ position id /}, $kept
    } @{ $rows->{samples} };
}


# Compares all rows with the reference; opt as draws() has them.

sub check {
    my ($name, $rows, $completion, %opt) = @_;

    my @prompt = @{ $opt{prompt} || $rows->{prompt} };
    my @answer = map { $_->{id} } @{ $rows->{samples} };
    my $want = reference($t, $model, [ @prompt, @answer ]);
    my ($positions, $logprobs, $kept, $routes) = (0, 0, 0, 0);

    is(scalar @answer, $completion, "$name: a row for each token");

    for my $i (0 .. $#answer) {
        my $s = $rows->{samples}[$i];
        my $at = @prompt + $i;
        my ($draws, $n) = draws($want->{logits}[$at - 1], $ids, %opt,
                                history => [ @answer[0 .. $i - 1] ]);

        $positions++ if $s->{position} != $at;
        $kept++ if !same_set($s->{kept}, $draws, $n, $opt{top_p});

        # the probability among the ids that were in fact kept

        my %p = map { @$_ } @$draws;
        my @set = ref $s->{kept} ? @{ $s->{kept} }
                  : map { $_->[0] } @$draws[0 .. $n - 1];
        my $p = ($p{$s->{id}} || 0) / sum0(map { $p{$_} || 0 } @set);

        $logprobs++ if $p == 0 || abs(log($p) - $s->{logprob}) > 1e-4;
    }

    for my $at (($opt{from} // 0) .. @prompt + @answer - 2) {
        my $got = $rows->{experts}{$at};

        $routes++ if !$got || !eq_array($got, $want->{experts}[$at]);
    }

    is($positions, 0, "$name: positions");
    is($kept, 0, "$name: ids that were kept");
    is($logprobs, 0, "$name: logprobs");
    is($routes, 0, "$name: experts");
    is($rows->{again}, 0, "$name: experts of a position once");
}


# Whether a set is the first n of the draws.  At the edge of top_p the rounding
# of the sum may include or exclude an id.

sub same_set {
    my ($kept, $draws, $n, $top_p) = @_;

    return @$draws == $ids && $n == $ids if $kept eq 'all';
    return 1 if "@$kept" eq join ' ', sort { $a <=> $b }
                                      map { $_->[0] } @$draws[0 .. $n - 1];
    return 0 if $top_p == 1 || abs(@$kept - $n) > 1;

    my %in = map { $_ => 1 } @$kept;
    my @out = grep { !$in{$draws->[$_][0]} } 0 .. @$kept - 1;
    my $mass = sum0(map { $_->[1] } @$draws[0 .. $n - 1]);

    # an id in place of another one has the same probability

    return !grep({ abs($draws->[$_][1] - $draws->[@$kept - 1][1])
                   > 1e-5 * $draws->[$_][1] } @out)
           && (@$kept == $n || abs($mass - $top_p) < 1e-5
               || abs($mass - $draws->[$n - 1][1] - $top_p) < 1e-5);
}


# the documented formula, for each parameter of sampling

for my $case (
    [ 'no truncation', {}, {} ],
    [ 'a large top_p', { top_p => 0.95 }, {} ],
    [ 'a small top_p', { top_p => 0.05 }, {} ],
    [ 'the least top_p', { top_p => 1e-9 }, {} ],
    [ 'a low temperature', { temperature => 0.05, top_p => 0.9 }, {} ],
    [ 'a high temperature', { temperature => 2, top_p => 0.5 }, {} ],
    [ 'temperature 0', { temperature => 0 }, {} ],
    [ 'penalties', { frequency_penalty => 1.5, presence_penalty => -1,
                     temperature => 0.2, top_p => 0.6 },
      { frequency => 1.5, presence => -1 } ],
    [ 'bias', { logit_bias => { 5 => 3, 9 => -100, 11 => 2 },
                top_p => 0.9 }, { bias => { 5 => 3, 9 => -100, 11 => 2 } } ],
    [ 'a ban', { logit_bias => { 9 => -100 } }, { bias => { 9 => -100 } } ])
{
    my ($name, $more, $opt) = @$case;
    my $body = body(%$more);
    my ($rows, $json) = rollout($t, $completions, $body);

    is(scalar @{ $rows->{prompt} }, $json->{usage}{prompt_tokens},
       "$name: ids of the prompt");
    check($name, $rows, $json->{usage}{completion_tokens},
          temperature => $body->{temperature}, top_p => $body->{top_p},
          %$opt);

    is(streamed($t, $completions, $body),
       decode_base64($json->{choices}[0]{rollout}{rows}),
       "$name: the rows of a stream");

    $forms{$_->{form}}++ for @{ $rows->{samples} };
}

is(join(' ', sort keys %forms), '1 2 3', 'all forms of sets');


# what is requested, and no more

for my $case ([ {}, 0, 0, 0 ], [ { mask => $true }, 0, 1, 0 ],
              [ { experts => $true }, 1, 0, 0 ],
              [ { prompt => $true, mask => undef }, 0, 0, 1 ],
              [ { prompt => $true, experts => $true }, 1, 0, 1 ])
{
    my ($rollout, $experts, $mask, $prompt) = @$case;
    my $name = join ' ', 'only', sort keys %$rollout;
    my ($rows) = rollout($t, $completions, body(rollout => $rollout));
    my $first = $rows->{samples}[0]{position};

    is(scalar @{ $rows->{samples} }, 12, "$name: samples");
    is(scalar(grep { defined $_->{kept} } @{ $rows->{samples} }),
       $mask * 12, "$name: sets");
    is(scalar @{ $rows->{prompt} }, $prompt * $first, "$name: prompt");
    is_deeply([ sort { $a <=> $b } keys %{ $rows->{experts} } ],
              [ $experts ? ($prompt ? 0 : $first - 1) .. $first + 10 : () ],
              "$name: experts");
}

unlike($t->post($completions, { %{ body() }, rollout => undef })->{body},
       qr/rollout/, 'null is none');


# stop strings: their tokens have rows, and no token after them

my ($long, $whole) = rollout($t, $completions, body(max_tokens => 30));
my $text = $whole->{choices}[0]{text};

for my $at (3, int(length($text) / 2)) {
    my $body = body(max_tokens => 30, stop => [ substr $text, $at, 4 ]);
    my ($rows, $json) = rollout($t, $completions, $body);
    my $n = $json->{usage}{completion_tokens};

    is($json->{choices}[0]{finish_reason}, 'stop', "stop at $at");
    cmp_ok($n, '<', 30, "stop at $at: a shorter answer");
    is_deeply($rows->{samples}, [ @{ $long->{samples} }[0 .. $n - 1] ],
              "stop at $at: its samples");
    is_deeply($rows->{experts}, { map { $_ => $long->{experts}{$_} }
              0 .. @{ $rows->{prompt} } + $n - 2 }, "stop at $at: experts");
}


# the end token has a row

my ($end, $ended) = rollout($t, $completions, body(
    ignore_eos => $false, logit_bias => { 1 => 100 }));

is($ended->{choices}[0]{text}, '', 'an answer of the end token alone');
is_deeply([ map { [ @{$_}{qw/ id logprob kept /} ] } @{ $end->{samples} } ],
          [ [ 1, 0, [ 1 ] ] ], 'its row');


# a prefix that was found in the cache has no experts

my $prompt = join ' ', map { "word$_" } 1 .. 60;

for my $turn (1, 2) {
    my ($rows, $json) = rollout($t, $completions, body(prompt => $prompt));
    my $cached = $json->{usage}{prompt_cache_hit_tokens};

    is($cached != 0, $turn == 2, "turn $turn: cached tokens");
    is(scalar(grep { $_ < $cached } keys %{ $rows->{experts} }), 0,
       "turn $turn: no experts of them");
    check("turn $turn", $rows, $json->{usage}{completion_tokens},
          temperature => 1, top_p => 1, from => $cached);
}


# each choice has rows of its own, those of a request with its seed

{
    my $body = body(n => 3, rollout => { mask => $true });
    my $r = $t->post($completions, $body);
    my @streams = ('') x 3;

    for my $e ($t->stream($body, uri => $completions)->events) {
        next if ref $e->{json} ne 'HASH';

        $streams[$_->{index}] .= decode_base64($_->{rollout}{rows})
            for grep { $_->{rollout} } @{ $e->{json}{choices} };
    }

    for my $i (0 .. 2) {
        my $rows = decode_base64($r->{json}{choices}[$i]{rollout}{rows});
        my ($alone) = rollout($t, $completions,
                              { %$body, n => 1, seed => 7 + $i });

        is(drawn(rows($rows)), drawn($alone), "choice $i: its rows");
        is(drawn(rows($streams[$i])), drawn($alone),
           "choice $i: in a stream");
    }
}


# chats: reasoning and its end count as any other token; a structure is a mask

my ($thinking, $thought) = rollout($t, $chat, ask(
    'hi', max_tokens => 12, seed => 3, ignore_eos => $true,
    thinking => { type => 'enabled' },
    rollout => { mask => $true, prompt => $true, experts => $true }));

check('thinking', $thinking, 12, temperature => 1, top_p => 0.95);

# unlike those of other requests, the sampling fields count in thinking, too

for my $given ({ temperature => 0.7, top_p => 0.5 }, { temperature => 0 }) {
    my ($rows) = rollout($t, $chat, ask(
        'hi', max_tokens => 12, seed => 3, ignore_eos => $true, %$given,
        thinking => { type => 'enabled' },
        rollout => { mask => $true, prompt => $true, experts => $true }));

    check("thinking, temperature $given->{temperature}", $rows, 12,
          top_p => 0.95, %$given);
}

my $format = ask('json', max_tokens => 12, seed => 3, temperature => 1,
                 top_p => 1, response_format => { type => 'json_object' },
                 rollout => { mask => $true });
my ($object) = rollout($t, $chat, $format);
my $first = $object->{samples}[0];
my @vocabulary = vocabulary($model);

# in the vocabulary a space, a line feed, a carriage return and a tab are these

my $brace = qr/^[\x{120}\x{10a}\x{10d}\x{109}]*(?:\{|$)/;

is_deeply([ grep { $_ !~ $brace } map { $vocabulary[$_] }
            @{ $first->{kept} } ], [], 'a JSON object begins with a brace');
cmp_ok(scalar @{ $first->{kept} }, '>', 0, 'there is such a token');


# several at once, with preemptions

{
    my $t = $t{preempted};

    $t->start_engine(conf => { precision => 'exact', kv_memory => '3m',
                               token_budget => 32, max_running => 4 });
    $t->start_nginx(location => 'dsa_rollout 4m;');

    at_once($t, 'preempted',
            map { body(seed => $_, max_tokens => 280) } 1 .. 4);
    cmp_ok((grep { defined } map { $t->metrics->{$_} }
            grep { /^dsa_engine_preemptions_total/ } keys %{ $t->metrics })[0],
           '>', 0, 'there were preemptions');
}


# ranks: the experts of a token are on several

my $wide = widen($model, $t->path('wide'), 2);

for my $attention (qw/ data tensor /) {
    my $t = $t{$attention};

    $model = $wide;

    $t->start_engine(conf => { model => $wide, name => 'model',
                               precision => 'exact', kv_memory => '16m',
                               attention => $attention, gpus => 2,
                               token_budget => 128, max_running => 4 });
    $t->start_nginx(location => 'dsa_rollout 4m;');

    at_once($t, "attention $attention",
            map { body(prompt => "$_ $prompt", seed => $_) } 1 .. 4);
}

$model = $t->model;


# Streams several completions at the same time and checks each.

sub at_once {
    my ($t, $name, @bodies) = @_;

    my @streams = map { $t->stream({ %$_, stream_options =>
                                     { include_usage => $true } },
                                   uri => $completions, head => 0) } @bodies;

    $_->read_head() for @streams;

    for my $i (0 .. $#streams) {
        my ($bytes, $usage) = ('');

        for my $json (map { $_->{json} } $streams[$i]->events) {
            next if ref $json ne 'HASH';

            $usage = $json->{usage} || $usage;
            $bytes .= decode_base64($_->{rollout}{rows})
                for grep { $_->{rollout} } @{ $json->{choices} };
        }

        check("$name: $i", rows($bytes), $usage->{completion_tokens},
              temperature => 1, top_p => 1,
              from => $usage->{prompt_cache_hit_tokens});
    }
}


# what is refused

for my $case (
    [ 'x', qr/rollout/ ], [ 1, qr/rollout/ ], [ $true, qr/rollout/ ],
    [ [], qr/rollout/ ],
    [ { mask => 1 }, qr/rollout\.mask/ ],
    [ { experts => 'all' }, qr/rollout\.experts/ ],
    [ { prompt => {} }, qr/rollout\.prompt/ ],
    [ { logprobs => $true }, qr/rollout\.logprobs: this member is not/ ])
{
    for my $uri ($chat, $completions) {
        my $body = $uri eq $chat ? ask('x', rollout => $case->[0])
                                 : body(rollout => $case->[0]);
        my $r = $t->post($uri, $body);

        is($r->{status}, 400, json_encode([ $case->[0] ]) . " at $uri");
        like($r->{json}{error}{message}, $case->[1], 'the reason');
    }
}

for my $case ([ '/v1/responses', { model => 'deepseek-chat', input => 'x' } ],
              [ '/v1/messages', { model => 'deepseek-chat', max_tokens => 9,
                messages => [ { role => 'user', content => 'x' } ] } ])
{
    my $r = $t->post($case->[0], { %{ $case->[1] }, rollout => {} });

    is($r->{status}, 400, "rollout at $case->[0]");
    like($r->{json}{error}{message}, qr/rollout/, 'the reason');
}

{
    my $t = $t{off};

    $t->start_engine(conf => { backend => 'null rate=0' });
    $t->start_nginx(server => 'location /on/ { dsa_pass v32;
                                               dsa_rollout 1k; }');

    my $r = $t->post($completions, body());

    is($r->{status}, 403, 'rollouts are off');
    like($r->{json}{error}{message}, qr/dsa_rollout is 0/, 'the reason');
    is($t->post($completions, { %{ body() }, rollout => undef })->{status},
       200, 'other completions are served');

    $r = $t->post("/on$completions", body());

    is($r->{status}, 400, 'the null backend has none');
    like($r->{json}{error}{message}, qr/does not support rollout/,
         'the reason');
}

{
    my $t = $t{limit};

    $t->start_engine(conf => { precision => 'exact', kv_memory => '16m' });
    $t->start_nginx(location => 'dsa_rollout 2k;');

    my $body = body(top_p => 0.95, rollout => { mask => $true });
    my $r = $t->post($completions, $body);

    is($r->{status}, 500, 'more rows than the server holds');
    like($r->{json}{error}{message}, qr/exceed the 2048 bytes/, 'the reason');
}

$_->done for values %t;
