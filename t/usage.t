#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The ledger charges a request with the tokens that were computed or found in
# the cache, and with nothing else, however the request ends.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';

my $t = DSA::Test->new('usage');
my $server = $t->start_redis();
my $fake = $t->start_fake();

$t->start_nginx(workers => 1,
    http => 'log_format dsa "$status $dsa_prompt_tokens $dsa_cached_tokens '
            . '$dsa_completion_tokens | $dsa_cached_gpu_tokens '
            . '$dsa_cached_host_tokens $dsa_cached_redis_tokens"; '
            . 'access_log %%DIR%%/dsa.log dsa;');

my @sum = (0, 0, 0, 0);


# All days' ledgers (midnight may pass): requests and tokens.

sub ledger {
    my $redis = $t->redis($server);
    my %sum;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);
        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return join ' ', map { $sum{$_} // 0 }
                     qw/ requests prompt_tokens cached_tokens
                         completion_tokens /;
}


# Checks that the last request added these tokens to the ledger, or no entry.
# Another request, with counts of its own, follows, because its entry is written
# after that of the request before it.

sub charged {
    my ($name, @tokens) = @_;

    my @add = @tokens ? @tokens : (0, 0, 0);

    wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');
    wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'the engine to be idle');

    is($t->post($chat, script("prompt 1000\ncached 10\ncompletion 7\nt x\n"))
         ->{status}, 200, "$name: and another request");

    $sum[0] += @tokens ? 2 : 1;
    $sum[1] += 1000 + $add[0];
    $sum[2] += 10 + $add[1];
    $sum[3] += 7 + $add[2];

    my $want = join ' ', @sum;
    eval { wait_until(sub { ledger() =~ /^$sum[0] / }, 10, 'the ledger') };
    is(ledger(), $want, "$name: the ledger");
}


sub logged {
    my ($line) = @_;

    my $logged = eval { wait_until(sub {
        my @lines = split /\n/, read_file($t->path('dsa.log'));
        return $lines[-1] eq $line;
    }, 10, 'the access log') };

    ok($logged, "logged: $line") or diag(read_file($t->path('dsa.log')));
}


# Starts a stream and reads until that many bytes of content have come.

sub begin {
    my ($lines, $contents) = @_;

    my $s = $t->stream(script($lines), head => 0);
    wait_until(sub { ctl($fake, 'live') eq '1' }, 10, 'the submit');

    $s->read_head() if $contents;

    while ($contents) {
        my $e = $s->next_event();
        my $text = $e->{json}{choices}[0]{delta}{content};
        $contents -= length $text if defined $text;
    }

    return $s;
}


# The engine dies, and the client reads the end of its answer.

sub die_with {
    my ($s) = @_;

    $fake->kill9();
    $s->read_head() if !$s->status;
    $s->read_body();
    $fake->restart();
}


# the engine dies

my $s = begin("noaccept\nprompt 500\naccept\nhold\n");
die_with($s);
logged('200 0 0 0 | 0 0 0');
charged('the engine died while the request was queued');

$s = begin("noaccept\nprompt 500\naccept\nt a\nt b\nhold\n", 2);
die_with($s);
logged('200 500 0 2 | 0 0 0');
charged('the engine died after two tokens', 500, 0, 2);

# only DONE has the tiers, and until then the GPU counts for all of them

$s = begin("noaccept\nprompt 500\ncached 128\ntiers 64 32\naccept\nt a\nhold\n",
           1);
die_with($s);
logged('200 500 128 1 | 128 0 0');
charged('it died after a token, with a part of the prompt cached',
        500, 128, 1);

# tokens of each tier

is($t->post($chat, script("prompt 500\ncached 320\ntiers 128 64\ncompletion 9\n"
                          . "t x\n"))->{status}, 200, 'an answer');
logged('200 500 320 9 | 128 128 64');
charged('an answer with tokens of each tier', 500, 320, 9);


# a hostile engine: it sends tokens for a prompt that it has not accepted, and
# more tokens than were requested

is($t->post($chat, script("noaccept\nt a\nt b\nhold\n"))->{status}, 503,
   'tokens before the accept');
charged('tokens before the accept');

is($t->post($chat, script("noaccept\nprompt 500\naccept\nt a\n"
                          . "record done completion_tokens 9000\nend\n"))
     ->{status}, 503, 'more tokens than were requested');
charged('more tokens than were requested, of which none was sent');


# an error after the accept

is($t->post($chat, script("noaccept\nprompt 500\naccept\n"
                           . "error internal x\n"))->{status}, 500,
   'an error before the first token');
charged('an error before the first token');

is($t->post($chat, script("noaccept\nprompt 500\naccept\nt a\nt b\n"
                           . "error internal x\n"))->{status}, 500,
   'an error after two tokens');
charged('an error after two tokens, which were not sent');


# the client leaves

$s = begin("noaccept\nprompt 500\naccept\nprompt 0\nhold\n");
$s->close();
charged('cancelled while it was queued');

$s = begin("noaccept\nprompt 500\naccept\nprompt 128\ncached 64\nhold\n");
$s->close();
charged('cancelled before the end of its prompt', 128, 64, 0);

$s = begin("noaccept\nprompt 500\naccept\ncached 64\nt a\nt b\nhold\n", 2);
$s->close();
charged('cancelled after two tokens', 500, 64, 2);

$t->done;
