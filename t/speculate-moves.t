#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Speculation where an answer does not stay where it is: pages from Redis, an
# engine that dies in the middle of an answer, and clients that leave.  The text
# is that of an engine without drafts.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::Fake qw/ ask /;
use DSA::Process;
use DSA::Test;
use DSA::Wait qw/ wait_until /;

my $chat = '/v1/chat/completions';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $off = DSA::Test->new('moves off');
my $model = with_drafts("$DSA::Test::root/demo/model", $off->path('model'));

my $schema = { type => 'json_schema', json_schema => {
    name => 'x', strict => $true, schema => {
        type => 'object', required => [ 'x' ], additionalProperties => $false,
        properties => { x => { type => 'string',
                               pattern => '^[a-z]{200,400}$' } } } } };


sub engine {
    my ($t, %conf) = @_;

    return $t->start_engine(conf => { model => $model, name => 'demo',
                                      backend => 'cpu', kv_memory => '9m',
                                      host_memory => '64m', %conf });
}


sub request {
    my ($text, %more) = @_;

    return ask($text, max_tokens => 40, temperature => 0.8, seed => 5,
               thinking => { type => 'disabled' }, logprobs => $true,
               ignore_eos => $true, %more);
}


# The answer, and its usage.

sub answer {
    my ($t, $request) = @_;

    my $r = $t->post($chat, $request);

    is($r->{status}, 200, 'answered') or diag $r->{body};

    return ($r->{json}{choices}[0], $r->{json}{usage});
}


engine($off, speculate => 'off');
$off->start_nginx();


# The pages of a conversation are in Redis.  Another engine continues it.

{
    my $t = DSA::Test->new('moves redis');
    my $redis = $t->start_redis();

    # A fetch may take 1.6 ms for each page before the first one has come
    # (schedule/load.c), so that few pages are computed on a busy machine.

    my @turns = map { { role => 'user', content => $_ } }
                    'one two three ' x 240, 'four five ' x 7;
    my %conf = (speculate => 3, redis_cache => "127.0.0.1:$redis->{port}");
    my $first = engine($t, %conf);
    my $restart = sub {
        $first->stop;
        $first->restart;
        $t->wait_sessions(1);
        $t->wait_cache;
    };

    $t->start_nginx();

    my ($choice, $usage) = answer($t, request('', messages => [ $turns[0] ]));
    my ($want) = answer($off, request('', messages => [ $turns[0] ]));

    is_deeply($choice, $want, 'the first turn');

    my $pages = int(($usage->{prompt_tokens} + $usage->{completion_tokens} - 1)
                    / 64);

    ok($pages > 1, "it has $pages pages");

    # pages are lost if Redis takes long to write them: several attempts

    my $kept = sub { grep { /^dsa1:kv:/ } $t->redis($redis)
                                            ->keys('dsa1:kv:*') };

    for (1 .. 10) {
        last if eval { wait_until(sub { $kept->() >= $pages }, 30,
                                  'the pages') };

        $restart->();
        ($choice) = answer($t, request('', messages => [ $turns[0] ]));
        is_deeply($choice, $want, 'the first turn');
    }

    cmp_ok(scalar $kept->(), '>=', $pages, 'Redis has them');

    # the replica that starts has neither pages on the GPU nor in host memory

    for my $n (1 .. 3) {
        my $r = request('', messages => [ $turns[0], $want->{message},
                                          $turns[1] ], seed => $n);
        my ($next) = answer($off, $r);
        my $found = 0;

        # pages that do not come in time are computed: several attempts

        for (my $i = 0; $i < 10 && $found == 0; $i++) {
            $restart->() if $n == 1;
            ($choice, $usage) = answer($t, $r);
            is_deeply($choice, $next, "the next turn, seed $n");
            $found = $n > 1 || $usage->{prompt_tokens_details}{redis_tokens};
        }

        cmp_ok($found, '>', 0, 'with pages from Redis') if $n == 1;
    }

    $t->done;
}


# An engine dies after some events of a stream, and another one continues.

{
    my $t = DSA::Test->new('moves engines');
    my @engine = map { engine($t, speculate => $_, context_length => 1600) }
                 3, 'off';
    my $moved = 0;

    $t->start_nginx();

    my @cases = (
        request('cat dog ' x 20, max_tokens => 700),
        request('sun ' x 61, max_tokens => 700, temperature => 0),
        request('a schema', max_tokens => 700, response_format => $schema,
                ignore_eos => $false),
        request('penalties', max_tokens => 700, presence_penalty => 1,
                frequency_penalty => 0.5),
    );

    for my $i (0 .. $#cases) {
        my ($want) = answer($off, $cases[$i]);

        $t->wait_sessions(2);

        my $s = $t->stream({ %{$cases[$i]}, stream => $true });
        my @events = map { $s->next_event() } 1 .. 5 + 9 * $i;
        my ($busy) = grep { running($t, $_) } @engine;

        kill 'KILL', DSA::Process::children($busy->{pid}) if $busy;
        push @events, $s->events;

        my $m = DSA::HTTP->gather(@events);

        is($m->{content}, $want->{message}{content}, "case $i: the same text");
        is($m->{finish_reason}, $want->{finish_reason}, "case $i: its end");
        is_deeply($m->{errors}, [], "case $i: no error");
    }

    cmp_ok($t->metrics->{dsa_resumed_answers_total}, '>', 0, 'answers moved');

    # Clients leave in the middle of an answer.  What was computed is found, and
    # the answers of those that stay are the same.

    for my $i (0 .. $#cases) {
        my $r = { %{$cases[$i]}, max_tokens => 150 };
        my ($want) = answer($off, $r);
        my $stays = $t->connect;

        $stays->send_request('POST', $chat, body => json_encode($r));

        for my $n (1, 4, 9) {
            my $s = $t->stream({ %$r, stream => $true });

            $s->next_event() for 1 .. $n;
            $s->close;
        }

        my $choice = $stays->response->{json}{choices}[0];

        is_deeply($choice, $want, "case $i: beside clients that leave");
        ($choice) = answer($t, $r);
        is_deeply($choice, $want, "case $i: after them");
    }

    $t->done;
}

$off->done;


# 1 if the engine runs a request.

sub running {
    my ($t, $engine) = @_;

    return $t->metrics->{'dsa_engine_requests_running{pool="v32",engine="unix:'
                         . $engine->sock . '"}'};
}
