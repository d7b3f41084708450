# Copyright (C) The nginx-dsa authors
#
# Chats on two GPUs from end to end, with "attention data": nginx, the link, the
# engine.  Answers do not depend on the GPU, nor on the requests beside them.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;
use Test::More;

need_gpu();

my $t = DSA::Test->new('gpu serving ranks');

if (gpus() < 2) {
    plan skip_all => 'this machine has one GPU';
}

my $chat = '/v1/chat/completions';

$t->start_engine(conf => { backend => 'cuda', gpus => 2, max_running => 16,
                           token_budget => 512, kv_memory => '256m' });
$t->start_nginx(http => 'client_max_body_size 8m;');


sub request {
    my ($text, %more) = @_;

    return { model => 'model', max_tokens => 48, ignore_eos => JSON::PP::true,
             messages => [ { role => 'user', content => $text } ], %more };
}


sub streamed {
    my ($s) = @_;

    my $m = DSA::HTTP->gather($s->events);

    die "a stream did not end\n" if !$m->{done};

    return $m->{content};
}


sub stream { $t->stream({ %{$_[0]}, stream => JSON::PP::true }) }


my $long = join ' ', map { "Part $_ of a story." } 1 .. 300;

for my $prompt ('Hello', $long) {
    for my $case ([ 'greedy', temperature => 0 ],
                  [ 'seeded', temperature => 1, seed => 7 ])
    {
        my ($name, %args) = @$case;
        my $what = "$name, a prompt of " . length($prompt) . ' bytes';
        my $r = $t->post($chat, request($prompt, %args));

        is($r->{status}, 200, "$what: answered");
        is($r->{json}{usage}{completion_tokens}, 48, "$what: whole");

        # eight at once are on both GPUs, beside others that come and go

        my @others = map { stream(request("Other $_ $long", temperature => 1,
            seed => $_, max_tokens => 16 + 8 * $_)) } 1 .. 6;
        my @same = map { stream(request($prompt, %args)) } 1 .. 8;

        $others[$_]->close() for 0, 2;

        is_deeply([ map { streamed($_) } @same ],
                  [ ($r->{json}{choices}[0]{message}{content}) x 8 ],
                  "$what: the same on both GPUs");
        streamed($_) for @others[1, 3 .. 5];
    }
}

ok(wait_until(sub { my $m = $t->metrics;
                    !grep { /^dsa_engine_requests_running\{/ && $m->{$_} != 0 }
                     keys %$m }, 20, 'the sequences to be freed'),
   'all sequences are freed');

$t->done;
