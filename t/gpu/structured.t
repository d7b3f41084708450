# Copyright (C) The nginx-dsa authors
#
# Constrained answers and biases with "backend cuda": the small model has random
# weights, so that each answer is what its mask permits and nothing else.
# t/structured.t has the cases of the grammars themselves.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;

need_gpu();

my $t = DSA::Test->new('gpu structured');
my $chat = '/v1/chat/completions';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

my $weather = {
    type => 'object',
    properties => {
        city => { enum => [qw/ Paris Oslo /] },
        days => { type => 'integer', minimum => 1, maximum => 14 },
        wind => { type => 'boolean' },
    },
    required => [qw/ city days wind /],
    additionalProperties => $false,
};

$t->start_engine(conf => { backend => 'cuda', max_running => 32,
                           token_budget => 512, kv_memory => '512m' });
$t->start_nginx();


sub request {
    my ($text, %more) = @_;

    return { model => 'model', max_tokens => 120, temperature => 1,
             messages => [ { role => 'user', content => $text } ], %more };
}


sub weather {
    my ($seed, %more) = @_;

    return request('Answer in json.', seed => $seed, response_format => {
        type => 'json_schema',
        json_schema => { name => 'weather', schema => $weather,
                         strict => $true } }, %more);
}


sub plain {
    my ($seed) = @_;

    return request("Story $seed", seed => $seed, ignore_eos => $true,
                   max_tokens => 40);
}


sub is_weather {
    my $v = eval { decode_json($_[0]) };

    return ref $v eq 'HASH' && join(' ', sort keys %$v) eq 'city days wind'
           && $v->{city} =~ /^(Paris|Oslo)$/ && $v->{days} =~ /^\d+$/
           && $v->{days} >= 1 && $v->{days} <= 14
           && JSON::PP::is_bool($v->{wind});
}


sub streamed { DSA::HTTP->gather($t->stream({ %{ $_[0] },
                                              stream => $true })->events) }

my %alone = map { $_ => streamed(plain($_))->{content} } 1 .. 6;

# without the mask, a random model never writes such an object

ok(!is_weather($_), 'an answer without a mask is no such object')
    for values %alone;

# sixteen constrained streams at once, beside streams without a mask

my @streams = map { $t->stream({ %{ weather($_) }, stream => $true }) } 1 .. 16;
my %beside = map { $_ => $t->stream({ %{ plain($_) }, stream => $true }) }
             1 .. 6;

for my $seed (1 .. 16) {
    my $m = DSA::HTTP->gather($streams[$seed - 1]->events);

    ok(is_weather($m->{content}), "seed $seed: the answer follows its schema")
        or diag($m->{content});
    is($m->{finish_reason}, 'stop', "seed $seed: the answer ends by itself");
}

for my $seed (sort keys %beside) {
    is(DSA::HTTP->gather($beside{$seed}->events)->{content}, $alone{$seed},
       "a stream without a mask is the same beside them, seed $seed");
}

for my $case ([ 'greedy', temperature => 0 ], [ 'nucleus', top_p => 0.5 ],
              [ 'penalties', frequency_penalty => 1, presence_penalty => 1 ],
              [ 'thinking with a budget', max_thinking_tokens => 8,
                thinking => { type => 'enabled' } ])
{
    my ($name, %fields) = @$case;
    my $r = $t->post($chat, weather(3, %fields))->{json};

    ok(is_weather($r->{choices}[0]{message}{content}),
       "$name: follows the schema")
        or diag($r->{choices}[0]{message}{content});

    # 8 tokens and </think>; random weights end their reasoning seldom

    cmp_ok($r->{usage}{completion_tokens_details}{reasoning_tokens}, '<=', 9,
           'the reasoning keeps its budget') if $fields{thinking};
}

# several choices

my @choices = @{ $t->post($chat, weather(7, n => 4))->{json}{choices} };

is(scalar @choices, 4, 'four choices');
is(scalar(grep { is_weather($_->{message}{content}) } @choices), 4,
   'each follows the schema');

my $tools = [ { type => 'function',
                function => { name => 'weather', parameters => $weather,
                              strict => $true } } ];
my $called = $t->post($chat, request('Answer in json.', tools => $tools,
    tool_choice => 'required', parallel_tool_calls => $false,
    max_tokens => 300))->{json}{choices}[0];

is($called->{finish_reason}, 'tool_calls', 'a required call: made');
ok(is_weather($called->{message}{tool_calls}[0]{function}{arguments}),
   'its arguments follow the schema');

# biases: 100 permits only these ids, -100 bans one, others are added

sub biased {
    my ($n, %bias) = @_;

    my $r = $t->post($chat, request('Hello', temperature => 0, max_tokens => $n,
        ignore_eos => $true, logprobs => $true, logit_bias => \%bias));

    return @{ $r->{json}{choices}[0]{logprobs}{content} };
}


my @only = biased(12, 1000 => 100, 1001 => 100);
my ($one) = biased(1, 1000 => 100);
my ($two) = biased(1, 1001 => 100);

isnt($one->{token}, $two->{token}, 'two tokens');
is(scalar @only, 12, 'biases of 100: an answer of the whole length');
ok(!grep({ my $token = $_->{token};
           !grep { $token eq $_->{token} } $one, $two } @only),
   'biases of 100: no other token');

my ($raised) = biased(1, 1000 => 99, 1001 => 60);
my ($banned) = biased(1, 1000 => -100, 1001 => 60);

is_deeply([ @$raised{qw/ token logprob /} ], [ @$one{qw/ token logprob /} ],
          'a bias makes a token the first, and its logprob is the model\'s');
is_deeply([ @$banned{qw/ token logprob /} ], [ @$two{qw/ token logprob /} ],
          'a bias of -100 bans a token');

$t->done;
