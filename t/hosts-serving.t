#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Chats on a replica over two hosts from end to end: nginx, the link, the leader
# and its follower.  Answers and their probabilities are those of two ranks in
# one process, on either host, whatever requests are beside them, come and go.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('hosts-serving');
my $secret = write_file($t->path('secret'), 'f' x 64 . "\n");
my $port = $t->free_port();
my %conf = (backend => 'cpu', max_running => 16, token_budget => 256,
            kv_memory => '64m', speculate => 'off');

chmod 0600, $secret or die "chmod: $!\n";

my $file = write_file($t->path('follower.conf'), join '', map { "$_;\n" }
                      'model ' . $t->model, 'backend cpu',
                      "listen 127.0.0.1:$port", "host_secret $secret");
my $follower = $t->spawn('follower', $t->build . '/dsa-engine', '-c', $file);

$follower->{ready} = sub { $follower->output =~ /waits for the leader/ };
$follower->wait_ready(60);

$t->start_engine(name => 'one', conf => { %conf, name => 'one', gpus => 2 });
my $leader = $t->start_engine(name => 'two', conf => {
    %conf, name => 'two', hosts => "127.0.0.1:$port", host_secret => $secret,
    log_level => 'debug' });
$t->start_nginx(http => 'client_max_body_size 8m;');
wait_until(sub { ($t->metrics->{dsa_sessions} // 0) == 2 }, 60,
           'all sessions');


sub stream {
    my ($model, $text, %more) = @_;

    return $t->stream({ model => $model, max_tokens => 24, stream =>
                        JSON::PP::true, ignore_eos => JSON::PP::true,
                        logprobs => JSON::PP::true, top_logprobs => 5,
                        messages => [ { role => 'user', content => $text } ],
                        %more });
}


# The tokens of a stream with all of their probabilities.

sub streamed {
    my ($s) = @_;

    my @events = $s->events;
    my $m = DSA::HTTP->gather(@events);

    die "a stream did not end\n" if !$m->{done};

    return join "\n", map {
        my $token = $_;

        join ' ', map { "$_->{token} $_->{logprob}" }
                  $token, @{ $token->{top_logprobs} };
    } map { @{ $_->{json}{choices}[0]{logprobs}{content} || [] } }
      grep { $_->{json} && @{ $_->{json}{choices} } } @events;
}


my $long = join ' ', map { "Part $_ of a story." } 1 .. 40;

for my $prompt ('Hello', $long) {
    for my $case ([ 'greedy', temperature => 0 ],
                  [ 'seeded', temperature => 1, seed => 7 ])
    {
        my ($name, %args) = @$case;
        my $what = "$name, a prompt of " . length($prompt) . ' bytes';
        my $want = streamed(stream('one', $prompt, %args));

        is(scalar(split /\n/, $want), 24, "$what: two ranks answer");

        # six at once are on both hosts, beside others that come and go

        my @others = map { stream('two', "Other $_ $long", temperature => 1,
            seed => $_, max_tokens => 8 + 8 * $_) } 1 .. 4;
        my @same = map { stream('two', $prompt, %args) } 1 .. 6;

        $others[$_]->close() for 0, 2;

        is_deeply([ map { streamed($_) } @same ], [ ($want) x 6 ],
                  "$what: the same on both hosts");
        streamed($_) for @others[1, 3];
    }
}

like($leader->output, qr/published on rank $_\n/, "rank $_ had requests")
    for 0, 1;

ok(wait_until(sub { my $m = $t->metrics;
                    !grep { /^dsa_engine_requests_running\{/ && $m->{$_} != 0 }
                     keys %$m }, 60, 'the sequences to be freed'),
   'all sequences are freed');
ok($follower->alive && $leader->alive, 'both hosts run');

$t->done;
