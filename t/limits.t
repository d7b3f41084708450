# Copyright (C) The nginx-dsa authors
#
# The limits of keys on one host with several workers: requests and tokens per
# minute, concurrent requests, workers that are killed, and budgets.

use strict;
use warnings;

use Fcntl qw/ :flock /;
use POSIX ();
use Test::More;
use Time::HiRes qw/ time sleep /;
use Time::Local qw/ timegm /;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

my $t = DSA::Test->new('limits');
my $file = $t->path('keys');
my $fake = $t->start_fake();

my @records = (
    key_entry('burst', rpm => 30),
    key_entry('retry', rpm => 60),
    key_entry('tokens', rpm => 6000, tpm => 600),
    key_entry('debt', tpm => 60000),
    key_entry('abort', tpm => 100),
    key_entry('refused', rpm => 3, tpm => 10, concurrency => 1),
    key_entry('many', concurrency => 5),
    key_entry('killed', concurrency => 8),
    key_entry('both', rpm => 600, tpm => 600),
    key_entry('paid', budget => { day => { soft => '0.0001',
                                            hard => '0.00025' } }),
    (map { key_entry($_, budget => { $_ => { soft => '0.0001',
                                              hard => '0.0002' } }) }
         qw/ month total /),
    key_entry('several', rpm => 6,
               budget => { map { $_ => { hard => '0.0001' } }
                           qw/ day month total / }),
    key_entry('free'),
);

my ($paid) = grep { $_->{name} eq 'paid' } @records;
my ($abort) = grep { $_->{name} eq 'abort' } @records;

write_keys($file, @records);

$t->start_nginx(
    workers => 4,
    http => 'dsa_keys file=%%DIR%%/keys zone=keys:1m;
             dsa_price deepseek-chat miss=1 hit=1 output=1;');


# An answer with so many tokens.

sub uses {
    my ($prompt, $completion) = @_;

    return script(($completion ? "t a\n" : "rate 0\n")
                  . "prompt $prompt\ncompletion $completion\ndone stop",
                  max_tokens => $completion + 2);
}


sub chat {
    my ($key, $value, %more) = @_;

    return $t->post('/v1/chat/completions', $value || uses(1, 1),
                    bearer(key_text($key)), %more);
}


# The same request for each API, which is refused: the answers by name.

sub refusals {
    my ($key) = @_;

    my $message = [ { role => 'user', content => 'x' } ];
    my %body = (
        'chat/completions' => { messages => $message },
        completions        => { prompt => 'x' },
        messages           => { messages => $message, max_tokens => 5 },
        responses          => { input => 'x' });

    return map {
        $_ => $t->post("/v1/$_", { model => 'deepseek-chat', %{ $body{$_} } },
                       bearer(key_text($key)))
    } sort keys %body;
}


# A refusal in the shape of each API.

sub shapes {
    my ($key, $status, $type, $code, $anthropic, $message) = @_;

    my %r = refusals($key);

    for my $api (sort keys %r) {
        my ($r, $json) = ($r{$api}, $r{$api}{json});

        is($r->{status}, $status, "$api: $status");
        like($json->{error}{message}, $message, "$api: why");

        if ($api eq 'messages') {
            is($json->{type}, 'error', "$api: an error");
            is($json->{error}{type}, $anthropic, "$api: its type");
            next;
        }

        is($json->{error}{type}, $type, "$api: the type");
        is($json->{error}{code}, $code, "$api: the code");
    }

    return %r;
}


# A duration as Go prints it, in seconds.

sub seconds {
    my ($text) = @_;

    return $1 / 1000 if $text =~ /^(\d+)ms$/;

    $text =~ /^(?:(\d+)h)?(?:(\d+)m)?(\d+(?:\.\d{1,3})?)s$/
        or die "\"$text\" is not a duration\n";

    return ($1 || 0) * 3600 + ($2 || 0) * 60 + $3;
}


# Runs the sub in so many processes at the same time; returns the lines that
# they print.

sub parallel {
    my ($n, $sub) = @_;

    my $out = $t->path('parallel');
    my $gate = $t->path('gate');
    my @pids;

    DSA::Test::write_file($out, '');
    DSA::Test::write_file($gate, '');

    open my $shut, '<', $gate or die;
    flock $shut, LOCK_EX or die;

    for my $i (1 .. $n) {
        my $pid = fork // die "fork: $!\n";

        if ($pid == 0) {
            close $shut;
            open my $mine, '<', $gate or die;
            flock $mine, LOCK_SH or die;

            my @lines = eval { $sub->($i) };

            open my $to, '>>', $out or die;
            syswrite $to, join '', map { "$_\n" } ($@ ? "died: $@" : @lines);
            close $to;
            POSIX::_exit(0);
        }

        push @pids, $pid;
    }

    close $shut;
    waitpid $_, 0 for @pids;

    return split /\n/, DSA::Test::read_file($out);
}


# requests per minute

my $start = time;
my @lines = parallel(10, sub {
    map {
        my $r = chat('burst');
        join ' ', $r->{status},
                  $r->{headers}{'x-ratelimit-remaining-requests'} // '-',
                  $r->{headers}{'retry-after'} // '-'
    } 1 .. 12
});
my $span = time - $start;

my @admitted = grep { /^200/ } @lines;
my @refused = grep { /^429/ } @lines;
my $most = 30 + int($span * 30 / 60);

is(@admitted + @refused, 120, 'ten clients and four workers');
ok(@admitted >= 30 && @admitted <= $most,
   '30 of 120 requests are admitted, and what was refilled')
    or diag(scalar(@admitted) . " in $span s");
is_deeply([ sort { $a <=> $b } map { (split)[1] } @admitted[0 .. 29] ],
          [ 0 .. 29 ], 'and each of them took one') if @admitted == 30;
is((grep { (split)[1] ne '0' } @refused), 0, 'none remains for the others');
is((grep { my $s = (split)[2]; $s !~ /^\d+$/ || $s < 1 || $s > 2 } @refused),
   0, 'Retry-After is that of one request in two seconds');

# the next request is admitted when Retry-After has passed, and not before

my ($r, $last);

for (1 .. 200) {
    $r = chat('retry');
    $last = time;
    last if $r->{status} != 200;
}

is($r->{status}, 429, 'a client without pause');
is($r->{headers}{'retry-after'}, 1, 'waits for a second');
like($r->{json}{error}{message}, qr/limit reached for requests: .* 60 /,
     'and can read why');
is($r->{json}{error}{code}, 'rate_limit_exceeded', 'with the code');

sleep $last + 1 - time if $last + 1 > time;
sleep 0.01;
is(chat('retry')->{status}, 200, 'after it the client is served');


# the headers

$r = chat('both', uses(100, 200));
my %h = %{ $r->{headers} };
is($h{'x-ratelimit-limit-requests'}, 600, 'limit of requests');
is($h{'x-ratelimit-remaining-requests'}, 599, 'and what remains');
is($h{'x-ratelimit-reset-requests'}, '100ms', 'until it is full');
is($h{'x-ratelimit-limit-tokens'}, 600, 'limit of tokens');
is($h{'x-ratelimit-remaining-tokens'}, 600, 'and what remains');
is($h{'x-ratelimit-reset-tokens'}, '0s', 'it is full');
ok(!exists $h{'anthropic-ratelimit-requests-limit'}, 'not for Anthropic');

$r = chat('both');
cmp_ok($r->{headers}{'x-ratelimit-remaining-tokens'}, '>=', 300,
       'the first request was charged');
cmp_ok($r->{headers}{'x-ratelimit-remaining-tokens'}, '<', 600,
       'with its tokens');

$start = int time;
$r = $t->post('/v1/messages',
              { max_tokens => 5, %{ uses(1, 200) } },
              bearer(key_text('both')));
%h = %{ $r->{headers} };
is($r->{status}, 200, 'the API of Anthropic');

for my $what (qw/ requests tokens /) {
    is($h{"anthropic-ratelimit-$what-limit"}, 600, "limit of $what");
    is($h{"anthropic-ratelimit-$what-remaining"},
       $h{"x-ratelimit-remaining-$what"}, 'and what remains');

    my @t = $h{"anthropic-ratelimit-$what-reset"}
            =~ /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z$/;
    is(@t, 6, 'and the time when it is full');

    my $at = timegm(@t[5, 4, 3, 2], $t[1] - 1, $t[0]);
    my $wait = seconds($h{"x-ratelimit-reset-$what"});
    ok($at >= int($start + $wait) && $at <= int(time + $wait) + 2,
       'which is now and what x-ratelimit-reset says');
}

$r = chat('free');
is((grep { /ratelimit/ } keys %{ $r->{headers} }), 0,
   'a key without limits has none of these');


# Tokens per minute: a long answer leaves a debt of 6,000 tokens, 10 of which
# are paid each second.  The headers show a time between that of the whole debt
# and that of what is left of it at the end.

$start = time;
is(chat('tokens', uses(600, 6000))->{status}, 200, 'a long answer');

my %refused = shapes('tokens', 429, 'rate_limit_error', 'rate_limit_exceeded',
                     'rate_limit_error',
                     qr/limit reached for tokens: .* 600 /);
my $elapsed = time - $start;

for my $api (sort keys %refused) {
    my %h = %{ $refused{$api}{headers} };
    my $reset = seconds($h{'x-ratelimit-reset-tokens'});

    ok($h{'retry-after'} <= 601 && $h{'retry-after'} >= 600 - $elapsed,
       "$api: 6,000 tokens at 10 each second") or diag($h{'retry-after'});
    is($h{'x-ratelimit-limit-tokens'}, 600, "$api: the limit");
    is($h{'x-ratelimit-remaining-tokens'}, 0, "$api: nothing remains");
    ok($reset <= 660 && $reset >= 660 - $elapsed,
       "$api: and it is full a minute later") or diag($reset);
    is($h{'x-ratelimit-limit-requests'}, 6000, "$api: the other limit");
    is($h{'anthropic-ratelimit-tokens-remaining'},
       $api eq 'messages' ? 0 : undef, "$api: headers of Anthropic");
}

$start = time;
is(chat('debt', uses(1500, 60000))->{status}, 200, 'a debt of 1,500 tokens');
$r = chat('debt');
ok($r->{status} == 200
   || $r->{headers}{'retry-after'} >= 1.5 - (time - $start),
   'Retry-After is not too short');
wait_until(sub { chat('debt')->{status} == 200 }, slow(20), 'the next one');
cmp_ok(time - $start, '>=', 1.5, 'is paid at 1,000 tokens each second');

# what a client that leaves has used

my $s = $t->stream(script("prompt 40\nt a\nt b\nt c\nhold"),
                   bearer(key_text('abort')));

# tokens that come together are one event

my $text = '';

$text .= $s->next_event->{json}{choices}[0]{delta}{content} // ''
    while length $text < 3;

$start = time;
$s->close;
wait_until(sub { ctl($fake, 'live') =~ /^0\b/ }, slow(10), 'cancel');
my $left;
wait_until(sub {
    $r = chat('abort', uses(0, 0));
    $left = $r->{headers}{'x-ratelimit-remaining-tokens'};
    $left < 99;
}, slow(10), 'the charge');
ok($left >= 57 && $left <= 58 + (time - $start) * 2,
   'a client that leaves pays for 43 tokens') or diag($left);


# requests that never reach an engine

for (['not JSON', '{', 400], ['an unknown model',
                             { %{ uses(1, 1) }, model => 'x' }, 404])
{
    my ($what, $body, $status) = @$_;

    $r = chat('refused', $body);
    is($r->{status}, $status, $what);
    is($r->{headers}{'x-ratelimit-remaining-tokens'}, 10,
       'costs no tokens');
}

$r = chat('refused');
is($r->{status}, 200, 'and runs no longer');
is($r->{headers}{'x-ratelimit-remaining-requests'}, 0, 'and was a request');


# concurrent requests

my @open;

sub hold {
    my ($key, %more) = @_;

    my $s = $t->stream(script("t a\nhold", %more), bearer(key_text($key)));
    my $e = $s->status == 200 ? $s->next_event : undef;

    push @open, $s if $s->status == 200;

    return $s;
}

@lines = parallel(20, sub {
    my $s = hold('many');
    my $line = $s->status . ' ' . ($s->header('Retry-After') // '-');

    # until all requests have been sent

    if ($s->status == 200) {
        wait_until(sub {
            my $m = $t->metrics;
            $m->{'dsa_limited_requests_total{limit="concurrency"}'} == 15
        }, slow(20), 'the others');
    }

    $line
});
is((grep { /^200 -$/ } @lines), 5, 'five of twenty run at the same time');
is((grep { /^429 1$/ } @lines), 15, 'the others try again')
    or diag("@lines");

wait_until(sub { ctl($fake, 'live') =~ /^0\b/
                 && $t->metrics->{dsa_requests_in_flight} == 0 }, slow(10),
           'cancel');
@open = ();
hold('many', n => 3);
hold('many') for 1 .. 4;
is(scalar @open, 5, 'a request with three choices is one request');
is(hold('many')->status, 429, 'and that is all');
(shift @open)->close;
wait_until(sub { hold('many')->status == 200 }, slow(10), 'the end of one');
is(hold('many')->status, 429, 'one has left, one has come');
$_->close for @open;
wait_until(sub { ctl($fake, 'live') =~ /^0\b/ }, slow(10), 'cancel');


# A worker is killed.  The master is stopped meanwhile, because a worker that it
# starts in the place of the other would release the requests, too.

@open = ();
hold('killed') for 1 .. 8;
is(scalar @open, 8, 'eight requests');
is(hold('killed')->status, 429, 'and no more');

my $master = $t->nginx_pid;
my $victim = $t->worker_of($open[0]);
my @alive = grep { $t->worker_of($_) != $victim } @open;

$t->allow_alert(qr/worker process $victim exited on signal 9/);
kill 'STOP', $master;
kill 'KILL', $victim;

# until it has ended, the kernel may wake it for a new connection

DSA::Process::wait_gone($victim, 10) or die "worker $victim does not end\n";

my @before = @alive;
@open = @alive;

wait_until(sub {
    hold('killed');
    return @open == 8;
}, slow(10), 'the permits of the worker');

pass('its requests have ended');
kill 'CONT', $master;
is(hold('killed')->status, 429, 'and those of the others still run');
is((grep { $_->closed_within(0.1) } @before), 0, 'undisturbed');
$_->close for @open;


# budgets

$r = chat('paid', uses(60, 39));
is($r->{status}, 200, 'a budget');
is($r->{headers}{'x-dsa-budget-warning'}, undef, 'without a warning');
is(chat('paid', uses(0, 1))->{headers}{'x-dsa-budget-warning'}, undef,
   '0.000099 of 0.0001');
is(chat('paid', uses(100, 49))->{headers}{'x-dsa-budget-warning'},
   'day 0.0001 of 0.0001', '0.0001 of 0.0001 is a warning');
$r = chat('paid', uses(0, 1));
is($r->{status}, 200, 'below the hard limit by a token');
is($r->{headers}{'x-dsa-budget-warning'}, 'day 0.000249 of 0.0001',
   'another warning');
$r = chat('paid');
is($r->{status}, 402, 'at the hard limit');
is($r->{json}{error}{code}, 'insufficient_quota', 'with the code');
like($r->{json}{error}{message},
     qr/the day budget of this API key is 0\.00025, and 0\.00025 is spent/,
     'and the amounts');
is($r->{headers}{'retry-after'}, undef, 'and no Retry-After');
is($t->logged(qr/key "key_\w+" has reached the soft limit .*\(day\)/), 1,
   'the soft limit is logged once');

# the other periods

for my $period (qw/ month total /) {
    is(chat($period, uses(50, 50))->{headers}{'x-dsa-budget-warning'}, undef,
       "$period: no warning");
    is(chat($period, uses(50, 50))->{headers}{'x-dsa-budget-warning'},
       "$period 0.0001 of 0.0001", "$period: the soft limit");
    $r = chat($period);
    is($r->{status}, 402, "$period: the hard limit");
    is($r->{headers}{'x-dsa-budget-warning'}, "$period 0.0002 of 0.0001",
       "$period: is a warning, too");
    like($r->{json}{error}{message},
         qr/the $period budget of this API key is 0\.0002, and 0\.0002 is/,
         "$period: and the amounts");
    is($t->logged(qr/has reached the soft limit .*\($period\)/), 1,
       "$period: one line in the log");
}

# all of them: the error names the one that stays reached for longest

is(chat('several', uses(100, 50))->{status}, 200, 'three budgets');
%refused = shapes('several', 402, 'insufficient_quota', 'insufficient_quota',
                  'billing_error', qr/the total budget of this API key is/);

for my $api (sort keys %refused) {
    my %h = %{ $refused{$api}{headers} };

    is($h{'retry-after'}, undef, "$api: no Retry-After");
    cmp_ok($h{'x-ratelimit-remaining-requests'}, '>=', 5,
           "$api: a refusal takes no request");
    is($h{'anthropic-ratelimit-requests-remaining'}, $api eq 'messages'
       ? $h{'x-ratelimit-remaining-requests'} : undef,
       "$api: headers of Anthropic");
}

my $m = $t->metrics;

is($m->{"dsa_budget_warnings_total{period=\"$_\"}"}, 1,
   "one warning is counted ($_)") for qw/ day month total /;
is($m->{'dsa_limited_requests_total{limit="budget"}'}, 3 + keys %refused,
   'refusals of budgets');
is($m->{'dsa_limited_requests_total{limit="requests"}'}, @refused + 1,
   'refusals of requests');
cmp_ok($m->{'dsa_limited_requests_total{limit="tokens"}'}, '>=', 4,
       'of tokens');
is($m->{'dsa_limited_requests_total{limit="server"}'}, 0, 'of the server');


# a changed limit: what was used stays used

$paid->{budget}{day}{hard} = '1';
$abort->{tpm} = 1000;
write_keys($file, @records);
wait_until(sub { chat('paid')->{status} == 200 }, slow(15), 'a new budget');
is(chat('abort')->{headers}{'x-ratelimit-limit-tokens'}, 1000, 'a new limit');

$t->done;
