# Copyright (C) The nginx-dsa authors
#
# Chats on the GPU from end to end: nginx, the link, the engine with "backend
# cuda", Redis.  The small model has random weights: what is compared is one
# answer with another.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;
use Test::More;

need_gpu();

my $t = DSA::Test->new('gpu serving');
my $chat = '/v1/chat/completions';

$t->start_redis();
my $engine = $t->start_engine(conf => { backend => 'cuda', max_running => 32,
                                        token_budget => 512,
                                        kv_memory => '512m' });
$t->start_nginx(redis => 'ttl=1h', http => 'client_max_body_size 8m;');

wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                 == 404 }, 10, 'Redis');


sub request {
    my ($text, %more) = @_;

    return { model => 'model', max_tokens => 48, ignore_eos => JSON::PP::true,
             messages => [ { role => 'user', content => $text } ], %more };
}


sub streamed {
    my ($s) = @_;

    my $m = DSA::HTTP->gather($s->events);

    die "a stream did not end\n" if !$m->{done};

    return $m;
}


sub text_of { $_[0]{json}{choices}[0]{message}{content} }


my $long = join ' ', map { "Part $_ of a story." } 1 .. 300;

for my $case ([ 'greedy', temperature => 0 ],
              [ 'seeded', temperature => 1, seed => 7 ],
              [ 'nucleus', temperature => 1, top_p => 0.8, seed => 8 ],
              [ 'penalties', temperature => 1, seed => 9,
                frequency_penalty => 0.5, presence_penalty => 0.5 ])
{
    my ($name, %args) = @$case;

    for my $prompt ('Hello', $long) {
        my $what = $name . ', a prompt of ' . length($prompt) . ' bytes';
        my $alone = $t->post($chat, request($prompt, %args));

        is($alone->{status}, 200, "$what: answered");
        is($alone->{json}{usage}{completion_tokens}, 48, "$what: whole");

        my $stream = streamed($t->stream(
            { %{ request($prompt, %args) }, stream => JSON::PP::true }));

        is($stream->{content}, text_of($alone), "$what: the same in a stream");

        # beside others that come and go

        my @others = map { $t->stream(
            { %{ request("Other $_ $long", temperature => 1, seed => $_,
                         max_tokens => 16 + 8 * $_) },
              stream => JSON::PP::true }) } 1 .. 6;
        my $beside = $t->post($chat, request($prompt, %args));

        is(text_of($beside), text_of($alone), "$what: the same beside others");
        streamed($_) for @others;
    }
}

# a prefix that is found again, in a conversation

my $id = $t->post('/v1/conversations', { messages => [
    { role => 'system', content => $long } ] })->{json}{id};

my $first = $t->post($chat, { model => 'model', conversation => $id,
    temperature => 0, max_tokens => 32, messages => [
    { role => 'user', content => 'Go on.' } ] });

is($first->{status}, 200, 'a first turn');

my $second = $t->post($chat, { model => 'model', conversation => $id,
    temperature => 0, max_tokens => 32, messages => [
    { role => 'user', content => 'And then?' } ] });
my $usage = $second->{json}{usage};

is($second->{status}, 200, 'a second turn');
cmp_ok($usage->{prompt_tokens_details}{cached_tokens}, '>=', 1024,
       'its prefix was in the cache');

# logprobs: of the most probable, in falling order

my $r = $t->post($chat, request('Hello', temperature => 0, max_tokens => 4,
                                logprobs => JSON::PP::true,
                                top_logprobs => 5));
my @content = @{ $r->{json}{choices}[0]{logprobs}{content} };

is(scalar @content, 4, 'logprobs of every token');

for my $token (@content) {
    my @top = map { $_->{logprob} } @{ $token->{top_logprobs} };

    is(scalar @top, 5, 'five alternatives');
    is($top[0], $token->{logprob}, 'greedy is the most probable');
    is_deeply(\@top, [ sort { $b <=> $a } @top ], 'in falling order');
}

# a client that leaves

my $s = $t->stream({ %{ request($long, max_tokens => 4000) },
                     stream => JSON::PP::true });
$s->next_event() for 1 .. 5;
$s->close();

ok(wait_until(sub { my $m = $t->metrics;
                    !grep { /^dsa_engine_requests_running\{/ && $m->{$_} != 0 }
                     keys %$m }, 20, 'the sequence to be freed'),
   'a client leaves: its sequence is freed');

$t->done;
