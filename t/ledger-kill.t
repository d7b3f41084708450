#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The comparison of t/torture/run finds the faults that it is made for. Then it
# runs for a short time: the ledger has each request once, to the token and to
# the last unit of money, while workers, engines and Redis are ended by kill -9.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use DSA::Torture qw/ compare report /;
use Test::More;


# Lines of a journal for one request: its events, and what they have.

sub journal {
    my ($id, @events) = @_;

    my ($time, $sent) = (100, 0);

    return ($id => [ map {
        my ($event, %more) = @$_;

        $sent += $more{tokens} || 0;
        { request => $id, time => $time++, round => $time, replica => 0,
          engine => 5, worker => 7, slot => '0.1', event => $event,
          sent => $sent,
          $event eq 'accepted' ? (tenant => 'ab' x 32, prompt => 20,
                                  cached => 8) : (),
          $event eq 'done' ? (prompt => 20, cached => 8, host => 3, redis => 2)
                           : (), %more }
    } @events ]);
}


# A line of a later round of an engine, so that the records of all others were
# committed.

sub later { return (later => [ { request => 'later', engine => $_[0],
                                 worker => 7, slot => '0.2', round => 1000,
                                 event => 'left' } ]) }


sub ledger {
    my ($completion, %more) = @_;

    my %counts = (requests => 1, prompt_tokens => 20, cached_tokens => 8,
                  cached_host_tokens => 3, cached_redis_tokens => 2,
                  completion_tokens => $completion, %more);

    return { 'ab' x 16 => { %counts, DSA::Torture::prices(\%counts) } };
}


sub finds {
    my ($name, $re, @args) = @_;

    my (undef, @bad) = compare(@args);

    return is_deeply(\@bad, [], $name) if !$re;

    ok(@bad == 1 && $bad[0] =~ $re, $name) or diag(join "\n", @bad);
}


my %ended = journal(a => ['accepted'], ['tokens', tokens => 2],
                    ['tokens', tokens => 1], ['done', completion => 4]);
%ended = (%ended, later(5));
my %cut = journal(a => ['accepted'], ['tokens', tokens => 2],
                  ['tokens', tokens => 1]);
my %gpu = (cached_host_tokens => 0, cached_redis_tokens => 0);
my $got = { id => 'a', outcome => 'broken', texts => 2 };

finds('a request that ended', undef, ledger(4), \%ended, [], {});
finds('a token too few', qr/has 3 completion_tokens .* expected 4 \.\. 4/,
      ledger(3), \%ended, [], {});
finds('a request that is charged twice', qr/has 2 requests .* 1 \.\. 1/,
      ledger(4, requests => 2), \%ended, [], {});
finds('an entry that no engine has worked for', qr/not in the journal/,
      ledger(4), {}, [], {});
finds('an answer that no engine has sent', qr/a ended and is not in/,
      {}, {}, [ { id => 'a', outcome => 'ended' } ], {});
finds('an answer that was refused without its id', undef, {}, \%cut, [], {});
finds('the last record of an engine that was killed', undef,
      ledger(2, %gpu), \%cut, [], {});
finds('and not more', qr/has 4 completion_tokens .* expected 2 \.\. 3/,
      ledger(4, %gpu), \%cut, [$got], {});
finds('a worker that was killed has read less', undef,
      ledger(2), \%ended, [ $got ], { 7 => 103.5 });
finds('but not less than its client', qr/has 1 completion_tokens .* 2 \.\. 4/,
      ledger(1), \%ended, [ $got ], { 7 => 103.5 });
finds('a worker that was killed later', qr/has 3 completion_tokens .* 4 \.\. 4/,
      ledger(3), \%ended, [ $got ], { 7 => 110 });
finds('a cost of a wrong price', qr/has cost_output \d+ .* expected/,
      { map { my $l = $_; $_->{cost_output}++; ('ab' x 16 => $l) }
        values %{ ledger(4) } }, \%ended, [], {});

# An answer that another replica continues: the prompt is that of the first
# replica with a token.

my %rest = journal(a => ['accepted', engine => 6, cached => 16],
                   ['tokens', tokens => 2, engine => 6],
                   ['done', completion => 3, engine => 6, cached => 16]);
my %moved = (a => [ @{ $cut{a} }, @{ $rest{a} } ], later(6));
my %early = (a => [ $cut{a}[0], @{ $rest{a} } ], later(6));

finds('an answer that moved', undef, ledger(5, %gpu), \%moved, [], {});
finds('not with two prompts', qr/has 40 prompt_tokens .* expected 20 \.\. 20/,
      ledger(5, %gpu, prompt_tokens => 40), \%moved, [], {});
finds('not with the hits of the second replica',
      qr/has 16 cached_tokens .* expected 8 \.\. 8/,
      ledger(5, %gpu, cached_tokens => 16), \%moved, [], {});
finds('with the tokens of both', qr/has 7 completion_tokens .* 5 \.\. 6/,
      ledger(7, %gpu), \%moved, [], {});
finds('one that moved before its first token', undef,
      ledger(3, cached_tokens => 16), \%early, [], {});


my $t = DSA::Test->new('ledger-kill');
my $seed = 1 + int rand 1_000_000;
my $run = DSA::Torture->new($t, requests => 2500, clients => 80, processes => 2,
                            seed => $seed);

$run->run;

my ($figures, @bad) = compare($run->results);

is(@bad + 0, 0, 'the ledger has what was sent')
    or diag(join "\n", splice @bad, 0, 20);
cmp_ok($figures->{exact}, '>', 400, "$figures->{exact} requests to the token");
diag("seed $seed, ", $run->kills, "\n", report($figures));

$t->done;
