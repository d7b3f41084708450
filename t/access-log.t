#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The access log has what is billed: token counts and costs of each request are
# those of its ledger entry, and those of the engine's journal, at whatever
# moment a client leaves.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Keys;
use DSA::Ledger;
use DSA::Test;
use DSA::Wait qw/ slow pause /;

my $chat = '/v1/chat/completions';
my $processes = 4;
my $requests = 70;                          # of each process
my $seed = $ENV{LOG_SEED} || 1 + int rand 1_000_000;

my @counts = qw/ prompt_tokens cached_tokens cached_host_tokens
                 cached_redis_tokens completion_tokens reasoning_tokens /;
my $format = 'log_format dsa "$dsa_tenant $dsa_request_id $status '
             . join(' ', map { s/_(host|redis)_/_$1_/r } map { "\$dsa_$_" }
                         @counts)
             . ' $dsa_cost $dsa_finish_reason"; '
             . 'access_log %%DIR%%/dsa.log dsa;
                dsa_price null miss=0.280007 hit=0.028001 output=0.420013;
                dsa_price deepseek-chat miss=0.280007 hit=0.028001
                          output=0.420013;';

my $t = DSA::Test->new('access-log');

$t->start_redis();
$t->start_engine(name => 'engine', conf => {
    name => 'null', backend => 'null rate=100', token_budget => 128,
    max_running => 24, kv_memory => '200m', host_memory => '4m',
    journal => $t->path('journal') });
$t->start_nginx(workers => 2, http => $format, redis => 'timeout=1s',
                server => 'location = /stub { stub_status; }');


sub tenant { substr sha256_hex($_[0]), 0, 32 }
sub key { (headers => ['Authorization', "Bearer $_[0]"]) }


# The lines of the log: by tenant the sums of counts and cost, 10^-12.

sub logged {
    my ($t) = @_;

    my %sum;

    for my $line (split /\n/, read_file($t->path('dsa.log'))) {
        my ($tenant, undef, undef, @n) = split / /, $line;

        next if $tenant eq '-';
        $sum{$tenant}{lines}++;
        $sum{$tenant}{$_} += shift(@n) =~ s/^-$/0/r for @counts;
        $sum{$tenant}{cost} += sprintf '%.0f', 1e12 * ($n[0] =~ s/^-$/0/r);
    }

    return \%sum;
}


sub ledger { ledger_tenants($_[0]->redis) }


sub settled {
    my ($t) = @_;

    wait_until(sub {
        my $m = $t->metrics;
        $m->{dsa_requests_in_flight} == 0
            && $m->{dsa_redis_pending_records} == 0
    }, slow(60), 'the end of all requests');
}


# What the log and the ledger have in common is the same; returns what differs.

sub differences {
    my ($t) = @_;

    my ($log, $ledger) = (logged($t), ledger($t));

    return map { "the log: $_" }
           ledger_differences($log, { (map { $_ => {} } keys %$log),
                                      %$ledger }, @counts, 'cost');
}


# 280 requests with a tenant each, whose clients leave at random moments.

my $words = 'All prompts begin with the same words. ' x 20;

sub body {
    my ($i, %more) = @_;

    my $own = join ' ', map { int rand 100 } 1 .. rand 400;

    return json_encode({
        model => 'null', max_tokens => 1 + int rand 40,
        stream => rand 5 < 4 ? JSON::PP::true : JSON::PP::false,
        rand 5 < 1 ? (n => 3) : (),
        messages => [ { role => 'user', content => "$words $i $own" } ] });
}


sub client {
    my ($c, $i) = @_;

    my $way = int rand 6;

    if ($way == 5) {
        my $h = DSA::HTTP2->new(port => $t->port(1));

        # a stream is reset, and others of its connection go on

        my @s = map { $h->request('POST', $chat, body("$i-$_"),
                                  [ authorization => "Bearer $i-$_" ]) } 1 .. 3;
        pause(rand 0.4);
        $h->reset($s[rand @s]);
        $h->until(sub { grep { $h->ended($s[$_]) } 0 .. 2 }, slow(60))
            if rand 2 < 1;
        $h->close;
        return;
    }

    my $s = $t->connect;

    $s->send_request('POST', $chat, body => body($i), key($i));

    if ($way == 0) {
        $s->close;
        return;
    }

    if ($way < 3) {
        pause(rand 0.5);
        rand 2 < 1 ? $s->close : $s->reset;
        return;
    }

    if ($way == 3) {
        $s->read_head;
        my $n = int rand 40;
        while ($n-- > 0 && ($s->header('Content-Type') // '') =~ /event/) {
            last if !$s->next_event;
        }
        $s->close;
        return;
    }

    # to the end, and the connection is used again

    $s->read_head;
    $s->read_body;
    $s->send_request('POST', $chat, body => body($i), key($i));
    pause(rand 0.2);
    $s->close;
}


note("LOG_SEED=$seed");

is(clients_died(map { my $p = $_;
                      [ $seed + $p, sub {
                          client($_, "p$p-$_") for 1 .. $requests } ] }
                1 .. $processes), 0, 'the clients did what they had to');

# Only then all have been accepted and have ended: a worker counts a request in
# flight when it has read its header.

wait_until(sub {
    $t->get('/stub')->{body} =~ /^Active connections: 1 $/m
}, slow(60), 'the end of all connections but this one');
settled($t);

my @bad = differences($t);

is(scalar @bad, 0, 'the log has what is billed')
    or diag(join "\n", splice @bad, 0, 10);


# what the engine has reported is what is billed

{
    my (%tenant, %done);
    my $log = logged($t);

    for my $line (split /\n/, read_file($t->path('journal'))) {
        my %line = $line =~ /"(\w+)":"?([^",}]*)/g;

        $tenant{ $line{request} } = substr $line{tenant}, 0, 32
            if $line{tenant};
        $done{ $line{request} } += $line{completion}
            if $line{event} eq 'done';
    }

    my %sum;
    $sum{ $tenant{$_} } += $done{$_} for grep { $tenant{$_} } keys %done;

    my @odd = grep { $sum{$_} != ($log->{$_}{completion_tokens} || 0) }
              keys %sum;

    cmp_ok(scalar keys %sum, '>', 100, 'many reached the engine');
    is(scalar @odd, 0, 'they are billed as the engine has counted')
        or diag("@odd[0 .. 2]");

    my %ends;
    my @lines = split /\n/, read_file($t->path('dsa.log'));
    $ends{ (split / /)[-1] }++ for @lines;
    note(join ', ', map { "$ends{$_} $_" } sort keys %ends);
    cmp_ok($ends{cancelled} || 0, '>', 70, 'many were cancelled');
    cmp_ok(scalar @lines, '>', 280, 'and all of them are logged');
}

$_->stop for @{ $t->{engines} };


# Each way to end, one after the other, with an engine that does as it is told.
# It accepts 500 tokens of a prompt, 64 of them cached, and ends a request that
# was cancelled when its script says so.

my $f = DSA::Test->new('access-log-ends');
my $fake = $f->start_fake('context=20000');
my $begin = "prompt 500\ncached 64\naccept\n";
my $n = 0;

my %nginx = (
    workers => 1, http => $format, redis => 'timeout=1s',
    server => 'location /short/ { dsa_pass v32; dsa_timeout 4s; }
               location /small/ { dsa_pass v32; dsa_output_limit 16k; }
               location /stay/ { dsa_pass v32; dsa_ignore_client_abort on; }
               location /late/ { dsa_pass v32; send_timeout 200ms;
                                 dsa_output_limit 64m; }');

$f->start_redis();
$f->start_nginx(%nginx);


sub live { ctl($fake, 'live') }

# Sends a request of a tenant of its own.

sub begin {
    my ($lines, %opt) = @_;

    my $tokens = delete $opt{tokens};
    my $deaf = delete $opt{heed} ? '' : "deaf\n";
    my $tenant = 'f' . ++$n;
    my %more = %{ delete $opt{more} || {} };
    my $s = $f->stream(script("noaccept\n$deaf$begin$lines", %more),
                       key($tenant), head => 0, %opt);

    if ($tokens) {
        $s->read_head;

        # a token is a letter; tokens that come together are one event

        for (my $got = 0; $got < $tokens; ) {
            $got += length($s->next_event->{json}{choices}[0]{delta}{content}
                           // '');
        }
    }

    return ($s, tenant($tenant));
}


# Waits for the line of the log, and compares it with the ledger.

sub ends {
    my ($name, $tenant, $prompt, $cached, $completion) = @_;

    wait_until(sub { logged($f)->{$tenant} && ledger($f)->{$tenant} },
               slow(30), "$name: its end");

    my $line = logged($f)->{$tenant};

    is(join(' ', map { $line->{$_} } qw/ lines prompt_tokens cached_tokens
                                         completion_tokens /),
       "1 $prompt $cached $completion", "$name: logged once");
    is_deeply([ grep { /$tenant/ } differences($f) ], [], "$name: as billed");
}


my ($s, $tenant);

# the engine reports more than what the worker has received

for (['leaves', 'close', {}], ['resets', 'reset', {}],
     ['half-closes', 'half_close', {}])
{
    my ($name, $how, $opt) = @$_;

    ($s, $tenant) = begin("t a\nt b\ncancel\nprompt 480\ncached 60\n"
                          . "completion 9\ndone cancelled\n", tokens => 2);
    $s->$how();
    ends($name, $tenant, 480, 60, 9);
}

($s, $tenant) = begin("prompt 128\ncached 32\ncancel\ndone cancelled\n");
wait_until(sub { live() eq '1' }, slow(30), 'the submit');
$s->close;
ends('in prefill', $tenant, 128, 32, 0);

($s, $tenant) = begin("t a\ncancel\ncompletion 7\ndone cancelled\n",
                      more => { stream => JSON::PP::false });
wait_until(sub { live() eq '1' }, slow(30), 'the submit');
$s->close;
ends('not streamed', $tenant, 500, 64, 7);

# several choices

($s, $tenant) = begin("t a\ncancel\ncompletion 5\ndone cancelled\n",
                      more => { n => 3, seed => 100 }, tokens => 3);
wait_until(sub { live() eq '3' }, slow(30), 'three choices');
$s->close;
ends('three choices', $tenant, 500, 64, 15);

($s, $tenant) = begin("only 100 t a\nonly 100 wait\nonly 100 error internal x\n"
                      . "t b\ncancel\ncompletion 5\ndone cancelled\n",
                      more => { n => 3, seed => 100 }, tokens => 3);
wait_until(sub { live() eq '3' }, slow(30), 'three choices');
ctl($fake, 'go');
is(DSA::HTTP->gather($s->events)->{errors}[0]{message}, 'The engine failed.',
   'the client gets the error of a choice');
ends('one choice fails', $tenant, 500, 64, 11);

# cut by nginx

my $word = 'w' x 1000;

for (['dsa_output_limit', '/small'], ['send_timeout', '/late']) {
    my ($name, $base) = @$_;

    ($s, $tenant) = begin("r 14000 $word\n", heed => 1, rcvbuf => 4096,
                          uri => "$base$chat", more => { max_tokens => 15000 });
    wait_until(sub { logged($f)->{$tenant} }, slow(60), $name);

    my ($sent) = (finished($fake))[-1] =~ /finish=3 sent=(\d+)/;
    ends($name, $tenant, 500, 64, $sent);
}

($s, $tenant) = begin("t a\ncancel\ncompletion 8\ndone cancelled\n",
                      uri => "/short$chat");
$s->read_head;
$s->events;
ends('dsa_timeout', $tenant, 500, 64, 8);

# the client leaves, and its answer goes on

($s, $tenant) = begin("t a\nwait\nr 20 b\ndone stop\n", tokens => 1,
                      uri => "/stay$chat");
$s->close;
ctl($fake, 'go');
ends('dsa_ignore_client_abort', $tenant, 500, 64, 22);

# a stream of HTTP/2, and another one of its connection

{
    my $h = DSA::HTTP2->new(port => $f->port(1));
    my $lines = "noaccept\ndeaf\n${begin}t a\ncancel\ncompletion 6\n"
                . "done cancelled\n";
    my @s = map { $h->request('POST', $chat, json_encode(
                    { %{ script($lines) }, stream => JSON::PP::true }),
                    [ authorization => "Bearer h$_" ]) } 0, 1;

    $h->until(sub { $h->data($s[0]) =~ /content":"a/
                    && $h->data($s[1]) =~ /content":"a/ }, slow(30));
    $h->reset($s[0]);
    ends('HTTP/2: reset', tenant('h0'), 500, 64, 6);
    is(live(), '1', 'the other stream goes on');
    $h->close;
    ends('HTTP/2: closed', tenant('h1'), 500, 64, 6);
}

# A summary of a long history: the client leaves before the chat itself is
# submitted.

{
    my $script = $f->path('script');
    my $key = 'summary';

    write_file($script, "prompt 9000\ncached 100\ndeaf\nt a\ncancel\n"
                        . "completion 40\ndone cancelled\n");
    ctl($fake, "script $script");

    $s = $f->stream({
        model => 'deepseek-chat', max_tokens => 50,
        context_management => { strategy => 'summary' },
        tools => [ { type => 'function', function => { name => 'look',
                     parameters => { type => 'object', properties => {} } } } ],
        messages => [
            { role => 'user', content => 'Find it.' },
            (map { ({ role => 'assistant', content => '', tool_calls => [
                        { id => "call_$_", type => 'function', function => {
                          name => 'look', arguments => '{}' } } ] },
                    { role => 'tool', tool_call_id => "call_$_",
                      content => 'x' x 1000 }) } 1 .. 19),
            { role => 'user', content => 'Go on.' } ] },
        key($key), head => 0);
    wait_until(sub { $f->metrics->{dsa_context_counts_total}
                     && live() eq '1' }, slow(30), 'the summary');
    wait_until(sub { @{[submitted($fake)]} && $fake->output =~ /max=2000/ },
               slow(30), 'its submit');
    $s->close;
    ends('in a summary', tenant($key), 9000, 100, 40);
}

# an engine that dies after its client has left

my $cancelled = $f->metrics->{'dsa_cancelled_total{reason="client"}'};

($s, $tenant) = begin("t a\nhold\n", tokens => 1);
$s->close;
wait_until(sub { $f->metrics->{'dsa_cancelled_total{reason="client"}'}
                 > $cancelled }, slow(30), 'the cancel');
is(logged($f)->{$tenant}, undef, 'a request is not logged before its end');
$fake->kill9;
ends('the engine dies', $tenant, 500, 64, 1);
$fake->restart;
wait_until(sub { $f->get('/readyz')->{status} == 200 }, slow(30), 'service');

# one that does not end a request: what was received counts, and nothing later

($s, $tenant) = begin("t a\nt b\nwait\nt c\ncompletion 99\n"
                      . "done cancelled\n", tokens => 2);
$s->close;
ends('a deaf engine', $tenant, 500, 64, 2);
like($f->error_log, qr/an engine has not ended the cancelled request "chat/,
     'which is logged');
ctl($fake, 'go');
wait_until(sub { live() eq '0' }, slow(30), 'its end');
ends('a deaf engine, later', $tenant, 500, 64, 2);

# workers that shut down: the log has each request

($s, $tenant) = begin("t a\ncancel\nwait\ncompletion 3\ndone cancelled\n",
                      tokens => 1);
my $other;
($other, my $second) = begin("t a\nhold\n", tokens => 1);

my ($worker) = $f->workers;
$f->reload(%nginx, main => 'worker_shutdown_timeout 300ms;');
$s->close;
ctl($fake, 'go');
ends('a worker shuts down', $tenant, 500, 64, 3);
$other->close;
wait_until(sub { !kill 0, $worker }, slow(30), 'the end of the worker');
ends('its last request', $second, 500, 64, 1);

($s, $tenant) = begin("t a\nhold\n", tokens => 1);
$f->reload();
$s->read_body;
ends('worker_shutdown_timeout', $tenant, 500, 64, 1);

settled($f);
is_deeply([ differences($f) ], [], 'all in all');

$f->done;
$t->done;
