#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The figures of dsa_status are those of the ledger and of the engines' own
# journals: by tenant and in total, with clients that leave, several choices,
# summaries, counts, refusals, answers that move to another engine, and workers
# that are killed.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Ledger;
use DSA::Process;
use DSA::Test;
use DSA::Wait qw/ slow pause /;

my $chat = '/v1/chat/completions';
my $seed = $ENV{STATUS_SEED} || 1 + int rand 1_000_000;

my $t = DSA::Test->new('status-exact');
my %nginx = (
    workers => 2, redis => 'timeout=1s',
    http => 'dsa_price null miss=0.280007 hit=0.028001 output=0.420013;
             dsa_price deepseek-chat miss=1 hit=1 output=1;',
    server => 'location = /status { dsa_status; }');

$t->start_redis();

my ($left, $right) = map { $t->start_engine(name => $_, conf => {
    name => 'null', backend => 'null rate=200', token_budget => 256,
    context_length => 8000, log_level => 'warn', kv_memory => '200m',
    host_memory => '4m', journal => $t->path("$_.journal") }) }
    qw/ left right /;

$t->start_nginx(%nginx);


sub tenant { substr sha256_hex($_[0]), 0, 32 }
sub key { (headers => ['Authorization', "Bearer $_[0]"]) }
sub status { $_[0]->get('/status')->{json} }


# The rows of the table by tenant, as the ledger has them, and what they cost in
# 10^-12.

sub rows {
    my ($t) = @_;

    return { map { $_->{tenant} => {
                       prompt_tokens => $_->{prompt},
                       cached_tokens => $_->{cached},
                       completion_tokens => $_->{completion},
                       requests => $_->{requests},
                       cost => sprintf('%.0f', 1e12 * $_->{cost}) } }
             @{ status($t)->{tenants} } };
}


sub ledger { ledger_tenants($_[0]->redis) }


# What the engines have reported at the end of each call: the sums of a tenant.
# The prompt of a request is that of its first choice; a summary is a request of
# its own to the engine.

sub journal {
    my (%tenant, %call, %sum);

    for my $name (qw/ left right /) {
        for my $text (split /\n/, read_file($t->path("$name.journal"))) {
            my %line = $text =~ /"(\w+)":"?([^",}]*)/g;
            my $call = $call{"$line{engine} $line{worker} $line{slot}"} ||= {};

            $tenant{ $line{request} } = substr $line{tenant}, 0, 32
                if $line{tenant};

            $call->{request} = $line{request};
            $call->{begun} //= $line{time};
            $call->{done} = \%line if $line{event} eq 'done';
        }
    }

    my %first;

    for my $call (sort { $a->{begun} <=> $b->{begun} } values %call) {
        my $tenant = $tenant{ $call->{request} } or next;
        my $done = $call->{done} or next;
        my $sum = $sum{$tenant} ||= {};

        $sum->{completion_tokens} += $done->{completion};

        if (!$first{ $call->{request} }++ || $tenant eq tenant('summary')) {
            $sum->{prompt_tokens} += $done->{prompt};
            $sum->{cached_tokens} += $done->{cached};
        }
    }

    return \%sum;
}


sub settled {
    my ($t) = @_;

    wait_until(sub {
        my $s = status($t);
        $s->{requests}{in_flight} == 0 && $s->{redis}{queue} == 0
            && !grep { $_->{running} || $_->{waiting} } @{ $s->{tenants} }
    }, slow(60), 'the end of all requests');
}


my @tokens = qw/ prompt_tokens cached_tokens completion_tokens /;

sub compare {
    my ($name, $got, $want, @names) = @_;

    my @bad = ledger_differences($got, $want, @names);

    is(scalar @bad, 0, $name) or diag(join "\n", splice @bad, 0, 10);
}


# the load: clients of some tenants, each with its way to ask and to leave

my @tools = ({ type => 'function', function => { name => 'look',
               parameters => { type => 'object', properties => {} } } });

sub body {
    my ($who, $i) = @_;

    my %more;

    if ($who eq 'summary') {
        %more = (tools => \@tools,
                 context_management => { strategy => 'summary' },
                 messages => [
            { role => 'user', content => "Find $i." },
            (map { ({ role => 'assistant', content => '', tool_calls => [
                        { id => "call_$_", type => 'function', function => {
                          name => 'look', arguments => '{}' } } ] },
                    { role => 'tool', tool_call_id => "call_$_",
                      content => join ' ', map { $_ % 90 } 1 .. 180 }) }
             1 .. 20),
            { role => 'user', content => 'Go on.' } ]);

    } else {
        %more = (messages => [ { role => 'user', content =>
                     'The same words begin. ' x 30 . "$who $i" } ]);
    }

    return json_encode({
        model => $who eq 'refused' && $i % 2 ? 'unknown' : 'null',
        max_tokens => $who eq 'refused' ? 0 : 1 + int rand 30,
        stream => rand 4 < 3 ? JSON::PP::true : JSON::PP::false,
        $who eq 'choices' ? (n => 3) : (), %more });
}


sub client {
    my ($who, $i) = @_;

    my $s = $t->connect;
    my $uri = $who eq 'counts' ? '/v1/messages/count_tokens' : $chat;

    $s->send_request('POST', $uri, body => body($who, $i), key($who));

    # the first one of "summary" stays, so that one summary ends in any case

    if ($who =~ /leaves|choices|summary/ && rand 2 < 1
        && ($who ne 'summary' || $i != 1))
    {
        pause(rand 0.3);
        return $s->close;
    }

    $s->read_head;
    $s->read_body;
}


note("STATUS_SEED=$seed");

my %n = (plain => 30, leaves => 60, choices => 40, summary => 12, counts => 10,
         refused => 10);

is(clients_died(map { my $who = $_;
                      [ $seed + ord $who, sub {
                          client($who, $_) for 1 .. $n{$who} } ] }
                sort keys %n), 0, 'the clients did what they had to');
settled($t);

my ($rows, $ledger, $journal) = (rows($t), ledger($t), journal());

compare('the table has what the ledger has', $rows, $ledger, @tokens, 'cost');
compare('and nothing else', $ledger, $rows, @tokens, 'cost');
compare('the same as the engines have counted', $rows, $journal, @tokens);
compare('and nothing else', $journal, $rows, @tokens);

for my $who (qw/ counts refused /) {
    is($rows->{tenant($who)}, undef, "$who: not in the table");
    is($ledger->{tenant($who)}, undef, "$who: nor in the ledger");
}

is($rows->{tenant('plain')}{requests}, 30, 'requests');
is($ledger->{tenant('plain')}{requests}, 30, 'as in the ledger');
cmp_ok($rows->{tenant('summary')}{requests}, '>', 0, 'some with summaries');
cmp_ok($t->metrics->{'dsa_context_summary_tokens_total{type="prompt"}'}, '>', 0,
       'which were made');

# the totals are the sums of the tenants, in /status and /metrics

sub totals {
    my ($t) = @_;

    my $m = $t->metrics;
    my $s = status($t);

    return {
        prompt_tokens => $s->{tokens}{prompt},
        cached_tokens => $s->{tokens}{cached}{gpu}
                         + $s->{tokens}{cached}{host}
                         + $s->{tokens}{cached}{redis},
        completion_tokens => $s->{tokens}{completion},
        cost => sprintf('%.0f', 1e12 * ($s->{money}{miss} + $s->{money}{hit}
                                        + $s->{money}{output})) };
}

sub sums {
    my ($of) = @_;

    return { map { my $name = $_; my $n = 0;
                   $n += $_->{$name} || 0 for values %$of;
                   ($name => $n) } @tokens, 'cost' };
}

is_deeply(totals($t), sums($ledger), 'the totals are those of the ledger');


# Answers that move to another engine: the counts of both are added, and the
# prompt is charged once.  The engine that is killed is the one that has most of
# them, because the other one may have none; and the answers are so long that
# a machine that is busy for some seconds does not end them before.

{
    my $length = 2000;
    my %engine = (left => $left, right => $right);
    my @s = map { $t->connect } 1 .. 8;

    $_->send_request('POST', $chat, key('moved'), body => json_encode({
        model => 'null', max_tokens => $length, stream => JSON::PP::true,
        messages => [ { role => 'user', content => 'Words. ' x 50 } ] }))
        for @s;

    for my $s (@s) {
        $s->read_head;
        $s->next_event for 1 .. 3;
    }

    my ($most) = sort { $b->{running} <=> $a->{running} }
                 grep { defined $_->{running} } @{ status($t)->{engines} };
    my ($name) = $most->{engine} =~ /(left|right)/;

    cmp_ok($most->{running}, '>', 0, "$name has some");
    kill 'KILL', DSA::Process::children($engine{$name}->pid);
    is((grep { DSA::HTTP->gather($_->events)->{done} } @s), 8,
       'all answers go on');
    settled($t);
    cmp_ok($t->metrics->{dsa_resumed_answers_total}, '>', 0, 'some moved');

    my $tenant = tenant('moved');

    compare('they are in the table as in the ledger', rows($t),
            { $tenant => ledger($t)->{$tenant} }, @tokens, 'cost', 'requests');
    is(rows($t)->{$tenant}{completion_tokens}, 8 * $length, 'with all tokens');
}


# A worker is killed: its requests in flight count no more, and are in the
# ledger only, as documented.

{
    my @s = map { $t->connect } 1 .. 8;

    $_->send_request('POST', $chat, key('killed'), body => json_encode({
        model => 'null', max_tokens => 4000, stream => JSON::PP::true,
        messages => [ { role => 'user', content => 'Words. ' x 50 } ] }))
        for @s;

    for my $s (@s) {
        $s->read_head;
        $s->next_event for 1 .. 3;
    }

    my %of;
    push @{ $of{$t->worker_of($_)} }, $_ for @s;
    my ($victim) = sort { @{ $of{$b} } <=> @{ $of{$a} } } keys %of;
    my $left = 8 - @{ $of{$victim} };

    my $row = sub { (grep { $_->{tenant} eq tenant('killed') }
                     @{ status($t)->{tenants} })[0] };

    is($row->()->{running}, 8, 'eight run');
    $t->allow_alert(qr/worker process $victim exited on signal 9/);
    kill 'KILL', $victim;
    wait_until(sub { $row->()->{running} == $left }, slow(30),
               'the requests of the worker');
    $_->close for map { @{ $of{$_} } } grep { $_ != $victim } keys %of;
    settled($t);

    wait_until(sub { (ledger($t)->{tenant('killed')}{requests} || 0) == 8 },
               slow(30), 'the ledger');
    is($row->()->{requests}, $left, 'the table has those of the other worker');
}


# A summary is in flight for its tenant: the engine has one request, as the
# table has.

my $f = DSA::Test->new('status-summary');
my $fake = $f->start_fake('context=20000');

$f->start_redis();
$f->start_nginx(%nginx, workers => 1);

{
    my $script = $f->path('script');
    my $row = sub {
        my ($r) = @{ status($f)->{tenants} };
        return $r ? join ' ', map { $r->{$_} } qw/ running waiting requests
                                                   prompt completion / : '';
    };

    write_file($script, "prompt 9000\nwait\nt a\nwait\nt b\n"
                        . "completion 20\ndone stop\n");
    ctl($fake, "script $script");

    my $s = $f->stream({
        model => 'deepseek-chat', max_tokens => 50, tools => \@tools,
        context_management => { strategy => 'summary' },
        messages => [
            { role => 'user', content => 'Find it.' },
            (map { ({ role => 'assistant', content => '', tool_calls => [
                        { id => "call_$_", type => 'function', function => {
                          name => 'look', arguments => '{}' } } ] },
                    { role => 'tool', tool_call_id => "call_$_",
                      content => 'x' x 1000 }) } 1 .. 19),
            { role => 'user', content => "!fake\nprompt 300\nt c\nwait\n"
                                         . "completion 5\ndone stop" } ] },
        head => 0);

    wait_until(sub { $row->() eq '0 1 0 0 0' }, slow(30), 'it waits');
    is(ctl($fake, 'live'), '1', 'the summary is submitted');
    ctl($fake, 'go');
    wait_until(sub { $row->() eq '1 0 0 0 0' }, slow(30), 'it runs');
    ctl($fake, 'go');
    wait_until(sub { $fake->output =~ /max=50 / }, slow(30), 'the chat');
    is($row->(), '1 0 0 0 0', 'one request, which still runs');
    ctl($fake, 'go');
    $s->read_head;
    is(DSA::HTTP->gather($s->events)->{content}, 'c', 'its answer');
    wait_until(sub { $row->() =~ /^0 0 1 / }, slow(30), 'its end');
    is($row->(), '0 0 1 9300 25', 'with the tokens of both');
    settled($f);
    compare('as in the ledger', rows($f), ledger($f), @tokens, 'cost');
}

$f->done;
$t->done;
