#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The checks of t/soak/run find the faults that they are made for.  Then it runs
# for a short time with a fixed seed: the choices of faults and requests are the
# same each time, the times are not.

use strict;
use warnings;

use lib 't/lib';
use DSA::Soak qw/ check_outcomes check_refusals check_turns check_ledger
                  check_shares /;
use DSA::Test;
use Test::More;

my $slow = $ENV{DSA_SLOW};
$ENV{DSA_SLOW} = 1;


# A request with defaults; a test overrides what it is about.

sub request {
    return { kind => 'chat', role => 'light', key => 'k', tenant => 'aa',
             model => 'm', id => 'chatcmpl-1', sent => 100, end => 102,
             first => 101, worker => 7, outcome => 'ended', stream => 1,
             max => 9, usage => { prompt_tokens => 10,
                                  completion_tokens => 5 }, @_ };
}


sub fault { return { at => 101, to => 101, @_ } }


# Expects one failure that matches, or none if re is undef.

sub finds {
    my ($name, $re, @bad) = @_;

    return is_deeply(\@bad, [], $name) if !$re;

    ok(@bad == 1 && $bad[0] =~ $re, $name) or diag(join "\n", @bad);
}


# streams

my $broken = request(outcome => 'broken');
my $left = request(outcome => 'broken', role => 'light',
                   error => 'Too many of your requests wait already; try again '
                            . 'later.');
my (undef, @left) = check_outcomes([$left], []);

finds('a stream of a light tenant is dropped from the queue',
      qr/^broken without a cause: chatcmpl-1 of k to m/, @left);
(undef, @left) = check_outcomes([{ %$left, role => 'flood' }], []);
is(scalar @left, 0, 'a stream of the flooding tenant may be dropped');

for (['no fault', qr/^broken without a cause: chatcmpl-1 of k to m/],
     ['its worker', undef, kind => 'worker', pid => 7],
     ['another worker', qr/without a cause/, kind => 'worker', pid => 8],
     ['its replica', undef, kind => 'replica', model => 'm'],
     ['another replica', qr/without a cause/, kind => 'replica', model => 'n'],
     ['its replica, before', qr/without a cause/, kind => 'replica',
      model => 'm', at => 90, to => 91],
     ['a stop', undef, kind => 'stop'],
     ['a reload', qr/without a cause/, kind => 'reload'],
     ['Redis', qr/without a cause/, kind => 'redis'])
{
    my ($name, $re, @fault) = @$_;
    my (undef, @bad) = check_outcomes([$broken],
                                      @fault ? [ fault(@fault) ] : []);

    finds("a broken stream, $name", $re, @bad);
}

my %drain = (kind => 'replica', model => 'm', spare => 1);

for (['', qr/without a cause/, 'light'],
     [', the flooding tenant', undef, 'flood'],
     [', and the other replica ends', undef, 'light',
      { kind => 'replica', model => 'm', at => 99 }],
     [', and the worker is new', undef, 'light',
      { kind => 'reload', at => 100 }])
{
    my ($name, $re, $role, @more) = @$_;
    my (undef, @bad) = check_outcomes([ { %$broken, role => $role } ],
                                      [ map { fault(%$_) } \%drain, @more ]);

    finds("a broken stream, one of two replicas drains$name", $re, @bad);
}

finds('a stuck request', qr/^stuck:/,
      (check_outcomes([ request(outcome => 'silent') ], []))[1 .. 1]);


# refusals

my @refused = (outcome => 'refused', status => 503);

finds('a refusal', qr/^refused without a cause: 503/,
      check_refusals([ request(@refused) ], []));
finds('a refusal of the flooding tenant', undef,
      check_refusals([ request(@refused, role => 'flood') ], []));
finds('status 500', qr/^status 500/,
      check_refusals([ request(@refused, status => 500, role => 'flood') ],
                     []));
finds('Redis is no cause without a conversation', qr/without a cause/,
      check_refusals([ request(@refused) ], [ fault(kind => 'redis') ]));
finds('Redis is a cause with a conversation', undef,
      check_refusals([ request(@refused, role => 'talk') ],
                     [ fault(kind => 'redis') ]));


my @second = (@refused, status => 409, role => 'talk', conversation => 'c',
              sent => 110, end => 110.1);

finds('a second turn at the same time', undef,
      check_refusals([ request(@second), request(conversation => 'c',
                                                 sent => 109, end => 112) ],
                     []));
finds('a second turn without a first', qr/^no other turn runs: /,
      check_refusals([ request(@second), request(conversation => 'd',
                                                 sent => 109, end => 112) ],
                     []));
finds('a second turn long after the first', qr/^no other turn runs: /,
      check_refusals([ request(@second), request(conversation => 'c',
                                                 end => 102) ], []));
finds('Redis failed before it was released', undef,
      check_refusals([ request(@second), request(conversation => 'c',
                                                 end => 102) ],
                     [ fault(kind => 'redis') ]));


# turns: a story is a stored conversation, a turn is what a client got

sub story {
    my ($version, @turns) = @_;

    return { c => { status => 200, json => { version => $version, messages => [
        { role => 'system', content => 's' },
        map { my ($text, $answer) = split /:/;
              ({ role => 'user', content => $text },
               { role => 'assistant', content => $answer }) } @turns ] } } };
}


sub turn {
    my ($text, $version, %more) = @_;

    return request(conversation => 'c', text => $text, content => uc $text,
                   id => "chatcmpl-$text", claim => {
                       stored => 1, version => $version }, %more);
}


my %late = (sent => 110, end => 112, usage => { prompt_tokens => 20 });
my $story = story(3, 'a:A', 'b:B');
my $a = turn('a', 2);
my $b = turn('b', 3, %late);

for (['two turns', undef, $story, $a, $b],
     ['a lost one', qr/^c: lost: chatcmpl-b/, story(2, 'a:A'), $a, $b],
     ['a lost one without a statement', qr/^c: lost: chatcmpl-b/,
      story(2, 'a:A'), $a, { %$b, claim => undef }],
     ['a repeated one', qr/^c: stored 2 times: chatcmpl-b/,
      story(4, 'a:A', 'b:B', 'b:B'), $a, $b],
     ['another answer', qr/^c: stored with another answer: chatcmpl-b/,
      story(3, 'a:A', 'b:C'), $a, $b],
     ['another version', qr/^c: version 4 is turn 1: chatcmpl-b/,
      $story, $a, turn('b', 4, %late)],
     ['a version that does not count turns', qr/^c: version is 4 after 2/,
      story(4, 'a:A', 'b:B'), $a, $b],
     ['not stored', undef, story(2, 'a:A'), $a,
      { %$b, claim => { stored => 0, reason => 'no' } }],
     ['not stored, but in the conversation',
      qr/^c: stored although reported as not stored \(no\): /,
      $story, $a, { %$b, claim => { stored => 0, reason => 'no' } }],
     ['not confirmed, but stored', undef, $story, $a,
      { %$b, claim => { stored => 0, reason => 'Redis did not confirm' } }],
     ['broken, but stored', undef, $story, $a, { %$b, outcome => 'broken' }],
     ['without an earlier one', qr/^c: answered without chatcmpl-a .*: chat/,
      story(2, 'a:A'), $a, turn('b', 3, sent => 110, end => 112, claim => {
          stored => 0, reason => 'no' })],
     ['an unreadable conversation', qr/^c cannot be read: 500/,
      { c => { status => 500 } }, $a])
{
    my ($name, $re, $conversation, @turns) = @$_;

    finds("turns: $name", $re, check_turns(\@turns, $conversation));
}

my @bad = check_turns([ turn('a', 3), turn('b', 2, %late) ],
                      story(3, 'b:B', 'a:A'));
ok((grep { /^c: stored before chatcmpl-a .*: chatcmpl-b/ } @bad),
   'turns: in another order') or diag(join "\n", @bad);


# the ledger

for (['', undef, 1, 5],
     ['a lost one', qr/^k\|m has 0 requests in the ledger/, 0, 5],
     ['twice', qr/^k\|m has 2 requests in the ledger/, 2, 5],
     ['too few tokens', qr/has 4 completion_tokens in the ledger/, 1, 4],
     ['a model with a journal', undef, 7, 7, 'm'])
{
    my ($name, $re, $n, $tokens, @journaled) = @$_;

    finds("ledger: $name", $re, check_ledger([ request() ],
          { aa => { 'm|requests' => $n, 'm|completion_tokens' => $tokens } },
          @journaled));
}

finds('ledger: a broken request may be in it', undef, check_ledger(
      [ request(), request(outcome => 'broken', id => 'chatcmpl-2') ],
      { aa => { 'm|requests' => 2, 'm|completion_tokens' => 14 } }));


# shares

sub shares {
    my ($faults, @first) = @_;

    my (undef, undef, @bad) = check_shares(
        [ request(), map { request(key => "o$_", role => 'flood', sent => 90,
                                   first => $_) } @first ],
        $faults, [], ['m'], 0.05);

    return @bad;
}


finds('shares: two began before', undef, shares([], 99, 100.1, 100.3, 100.5,
                                                100.99));
finds('shares: three began before',
      qr/^3 requests of others began before chatcmpl-1/,
      shares([], 100.3, 100.4, 100.5));
finds('shares: while the replica was new', undef,
      shares([ fault(kind => 'replica', model => 'm') ], 100.3, 100.4, 100.5));


# the program itself

$ENV{DSA_SLOW} = 3 * ($slow || 1);      # other programs may have the CPUs
local $ENV{SOAK_TIME} = 20;
local $ENV{SOAK_SEED} = 5;

my $out = `$^X $DSA::Test::root/t/soak/run -v 2>&1`;
my $status = $?;

note($out);
is($status, 0, "SOAK_SEED=$ENV{SOAK_SEED} SOAK_TIME=$ENV{SOAK_TIME}")
    or diag($out =~ s/\n# -- .*//sr);

done_testing();
