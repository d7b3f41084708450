#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# An engine is ended by SIGTERM, and some answers take longer than its
# drain_timeout: another engine continues them, as if the first one had died.

use strict;
use warnings;

use List::Util qw/ sum /;
use Test::More;

use lib 't/lib';
use DSA::Ledger;
use DSA::Process;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;
my $stopped = 'The engine was stopped before the answer was complete.';
my $none = 'The engine was stopped before the answer was complete, and no '
           . 'other engine can continue it.';

my $t = DSA::Test->new('drain');
my $journal = $t->path('journal');

# Each step of a slow engine exceeds a target, which would limit prompts.

my %conf = (backend => 'null rate=0', drain_timeout => '200ms', name => 'm',
            journal => $journal, token_target => 0);
my @engine = map { $t->start_engine(name => "null$_", conf => \%conf) } 0 .. 1;

$t->start_redis();
$t->start_nginx();
$t->wait_sessions(2);


# Starts an engine again, with so many steps a second; 0: no limit.

sub restart {
    my ($k, $rate) = @_;

    my $file = $t->path("null$k.conf");

    $engine[$k]->stop if $engine[$k]->alive;
    write_file($file, read_file($file) =~ s/rate=\d+/rate=$rate/r);
    $engine[$k]->restart;
    $t->wait_sessions(2);

    return;
}


# Request I of a run.  Backend null repeats the prompt.  With a grammar, its
# tokens depend on the seed.  A part of a stop string is often held back.

sub request {
    my ($i, %more) = @_;

    my %kind = (
        0 => { max_tokens => 300 },
        1 => { max_tokens => 300, stop => [ "ice $i upon a neverthere",
                                            'me neverthere' ] },
        2 => { max_tokens => 400, response_format => {
                   type => 'json_schema', json_schema => {
                       name => 'x', strict => $true, schema => {
                           type => 'object', required => [ 'x' ],
                           additionalProperties => JSON::PP::false,
                           properties => { x => {
                               type => 'string',
                               pattern => '^[a-z]{250}$' } } } } } },
        3 => { max_tokens => 150, n => 2 },
    );

    return { model => 'm', seed => $i, usage => { include => $true },
             messages => [ { role => 'user',
                             content => "Twice $i upon a time " x 40 } ],
             %{ $kind{$i % 4} }, %more };
}


# Sends 20 requests at once, 16 of them streamed, and calls the sub when each
# stream has had some tokens.  Returns for each request its choices, as "text,
# finish_reason", and its usage.

sub run {
    my ($code) = @_;

    my @open;

    for my $i (0 .. 19) {
        my $stream = $i < 16;
        my $c = $t->connect;

        $c->send_request('POST', $chat, body => json_encode(request($i,
            $stream ? (stream => $true, stream_options => {
                           include_usage => $true }) : ())));
        push @open, { c => $c, stream => $stream };
    }

    for my $o (grep { $_->{stream} } @open) {
        $o->{c}->read_head;
        $o->{events} = [ map { $o->{c}->next_event } 1 .. 5 ];
    }

    $code->();

    return map { $_->{stream} ? streamed($_) : plain($_) } @open;
}


sub streamed {
    my ($o) = @_;

    my @events = (@{ $o->{events} }, $o->{c}->events);
    my ($id) = map { $_->{json}{id} } grep { $_->{json} } @events;
    my ($usage) = map { $_->{json}{usage} }
                  grep { $_->{json} && $_->{json}{usage} } @events;
    my (@text, @finish);

    for my $e (grep { $_->{json} } @events) {
        for my $choice (@{ $e->{json}{choices} || [] }) {
            my $k = $choice->{index};

            $text[$k] .= $choice->{delta}{content} // '';
            $finish[$k] = $choice->{finish_reason}
                if defined $choice->{finish_reason};
        }
    }

    my $m = DSA::HTTP->gather(@events);

    return { choices => [ map { "$text[$_], " . ($finish[$_] // 'none') }
                          0 .. $#text ],
             errors => [ map { $_->{message} } @{ $m->{errors} } ],
             done => $m->{done}, usage => $usage, id => $id };
}


sub plain {
    my ($o) = @_;

    my $r = $o->{c}->response;

    return { choices => [ map { "$_->{message}{content}, $_->{finish_reason}" }
                          @{ $r->{json}{choices} || [] } ],
             errors => [ map { $_->{message} } $r->{json}{error} || () ],
             done => 1, usage => $r->{json}{usage}, id => $r->{json}{id} };
}


# Compares two runs.  Which prompts are in a cache depends on the engines.

sub compare {
    my ($name, $got, $want) = @_;

    my @errors = map { @{ $_->{errors} } } @$got;

    is(scalar(@errors), 0, "$name: no request fails") or diag "@errors";
    is(sum(map { $_->{done} } @$got), 20, "$name: all of them end");
    is_deeply([ map { $_->{choices} } @$got ], [ map { $_->{choices} } @$want ],
              "$name: the same texts and ends");

    for my $field (qw/ prompt_tokens completion_tokens /) {
        is_deeply([ map { $_->{usage}{$field} } @$got ],
                  [ map { $_->{usage}{$field} } @$want ],
                  "$name: the same $field");
    }

    return;
}


# The ledger has what the engines sent of these requests: the tokens of each
# engine that was stopped, and the completion of the last one.

sub billed {
    my ($name, @got) = @_;

    my $ledger = ledger_change($t);
    my %of = map { $_->{id} => 1 } @got;
    my $tokens = 0;

    for my $line (map { json_decode($_) } split /\n/, read_file($journal)) {
        next if !$of{ $line->{request} };

        $tokens += $line->{completion} if $line->{event} eq 'done';
        $tokens += $line->{sent} if $line->{event} eq 'error';
    }

    is($ledger->{requests}, scalar @got, "$name: each request is billed once");
    is($ledger->{completion_tokens}, $tokens,
       "$name: with the tokens that were sent");
    is($ledger->{prompt_tokens}, sum(map { $_->{usage}{prompt_tokens} } @got),
       "$name: and one prompt");

    return;
}


sub resumed { $t->metrics->{dsa_resumed_answers_total} }


my @want = run(sub { });

is(scalar(grep { $_->{usage} && !@{ $_->{errors} } } @want), 20,
   'undisturbed: all complete');
billed('undisturbed', @want);


# SIGTERM to one of two engines, both so slow that they share the answers and
# none ends before

restart($_, 50) for 0, 1;

my @got = run(sub { $engine[0]->signal('TERM') });

compare('SIGTERM', \@got, \@want);
billed('SIGTERM', @got);
cmp_ok(resumed(), '>=', 1, 'answers have moved');
is($engine[0]->wait_end(30), 0, 'the engine ends with status 0');
is($t->metrics->{dsa_sessions_lost_requests_total}, 0, 'no request is lost');


# Each engine in turn.  An answer moves as often as it is necessary, at last to
# an engine that ends it at once.

restart($_, 5) for 0, 1;

my $moved = resumed();

@got = run(sub {
    for ([ 0, 5 ], [ 1, 0 ], [ 0, 5 ]) {
        my ($k, $rate) = @$_;
        my $n = resumed();

        $engine[$k]->signal('TERM');
        wait_until(sub { resumed() > $n }, 30, "answers of engine $k to move");
        $engine[$k]->wait_end(30);
        restart($k, $rate);
    }
});

compare('one after the other', \@got, \@want);
billed('one after the other', @got);
cmp_ok(resumed() - $moved, '>', 25, 'some answers have moved twice');


# SIGTERM to both: there is nothing to move to

restart(1, 5);

@got = run(sub { $_->signal('TERM') for @engine });

is_deeply([ sort { $a cmp $b } map { "@{ $_->{errors} }" } @got ],
          [ ($none) x 20 ], 'both engines: an error');
is(sum(map { $_->{done} } @got[0 .. 15]), 0, 'both engines: no [DONE]');
is($_->wait_end(30), 0, 'both engines: status 0') for @engine;


# the queue of an engine moves as well

my $small = DSA::Test->new('small');
my %few = (%conf, backend => 'null rate=50', max_running => 2);
my @small = map { $small->start_engine(name => "few$_", conf => \%few) } 0 .. 1;

$small->start_nginx();
$small->wait_sessions(2);

my @queue = map { $small->stream({ %{ request(0) }, max_tokens => 100 },
                                 head => 0) } 1 .. 12;

sub engines {
    my ($what) = @_;

    my $m = $small->metrics;

    return sum(map { $m->{$_} } grep { /^dsa_engine_requests_$what\{/ }
               keys %$m);
}

wait_until(sub { engines('running') == 4 && engines('waiting') >= 4 }, 20,
           'the queue');
$small[0]->signal('TERM');
$_->read_head for @queue;
is(sum(map { DSA::HTTP->gather($_->events)->{done} } @queue), 12,
   'requests that waited are served by the other engine');
is($small[0]->wait_end(30), 0, 'and the engine ends with status 0');
$small->done;


# SIGTERM to one of two replicas, then two signals to the supervisor

my $pair = DSA::Test->new('pair');
my $both = $pair->start_engine(conf => {
    backend => 'null rate=20', drain_timeout => '200ms', replicas => 2,
    name => 'm', token_target => 0 });

$pair->start_nginx();
$pair->wait_sessions(2);


sub six {
    my ($tokens) = @_;
    my @s = map { $pair->stream({ %{ request(4 * $_) },
                                  max_tokens => $tokens }) } 1 .. 6;

    $_->next_event for map { ($_) x 3 } @s;

    return @s;
}


my @six = six(200);
my ($first) = sort { $a <=> $b } DSA::Process::children($both->pid);

kill 'TERM', $first;
is(sum(map { DSA::HTTP->gather($_->events)->{done} } @six), 6,
   'SIGTERM to a replica: the other one continues its answers');
cmp_ok($pair->metrics->{dsa_resumed_answers_total}, '>=', 1, 'some of them');
$pair->wait_sessions(2);
pass('and the supervisor starts it again');

@six = six(10000);
$both->signal('TERM');
is_deeply([ map { map { $_->{message} }
                  @{ DSA::HTTP->gather($_->events)->{errors} } } @six ],
          [ ($none) x 6 ], 'SIGTERM to the supervisor: an error');
is($both->wait_end(30), 0, 'and it ends with status 0');
$pair->done;


# Two signals do not wait for drain_timeout, and without requests it ends at
# once.  The only engine of a pool has nothing to move to.

for my $second (qw/ TERM INT /) {
    my $long = DSA::Test->new("again-$second");
    my $engine = $long->start_engine(conf => {
        backend => 'null rate=100', drain_timeout => '10m', name => 'm' });

    $long->start_nginx();

    my $s = $long->stream({ %{ request(0) }, max_tokens => 100000 });
    my $plain = $long->connect;

    $plain->send_request('POST', $chat, body => json_encode(
        { %{ request(0) }, max_tokens => 100000 }));
    $s->next_event for 1 .. 3;

    # one that the engine has not accepted would be refused as by a full pool

    wait_until(sub {
        my $m = $long->metrics;
        my ($name) = grep { /^dsa_engine_requests_running/ } keys %$m;
        $m->{$name} == 2;
    }, 20, 'both requests');
    $engine->signal('TERM');
    wait_until(sub { $long->get('/readyz')->{status} == 503 }, 20, 'draining');
    $engine->signal($second);

    my $m = DSA::HTTP->gather($s->events);
    my $r = $plain->response;

    is_deeply([ map { $_->{message} } @{ $m->{errors} } ], [ $stopped ],
              "SIG$second while it drains: streams end at once");
    is($m->{done}, 0, 'without [DONE]');
    is($r->{status}, 503, 'others get 503');
    is($r->{json}{error}{message}, $stopped, 'with the same text');
    ok($r->{headers}{'retry-after'}, 'and Retry-After');
    is($engine->wait_end(30), 0, 'status 0');

    $engine->restart;
    $engine->signal('TERM');
    is($engine->wait_end(30), 0, 'without requests it ends at once');
    $long->done;
}

$t->done;
