#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# nginx's end of the link: engines of other versions, and engines that stop
# responding.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use JSON::PP ();
use Test::More;

my $chat = '/v1/chat/completions';
my $last = link_version();
my ($after, $beyond) = ($last + 1, $last + 2);


# An engine of the next version, which also accepts this one.  Its hello is
# longer.

my $stale = DSA::Test->new('stale');
my $debug = DSA::Test->new('debug');
my $t = DSA::Test->new('versions');
my $next = $t->start_fake('model=next', "versions=$last,$after");

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

like($next->output, qr/^offer 1,$last version $last$/m,
     'this version is in use');

my $r = $t->post($chat, ask('hello', model => 'next'));
is($r->{status}, 200, 'a chat with an engine of the next version');
is($r->{json}{choices}[0]{message}{content}, 'echo: hello', 'its answer');

$t->done;


# an engine that does not accept this version

$t = DSA::Test->new('no version');
$t->start_fake("versions=$after,$beyond");
$t->start_nginx(workers => 1, wait => 0);

wait_until(sub { $t->logged(qr/cannot be used/) >= 3 }, 10, 'three attempts');

my $why = qr/engine\ "unix:[^"]*"\ cannot\ be\ used:\ it\ accepts\ versions
             \ $after\ to\ $beyond\ of\ the\ link,
             \ and\ nginx\ accepts\ 1\ to\ $last/x;

is($t->logged(qr/\[error\].*$why/), 1, 'both ranges are logged, once');
cmp_ok($t->logged(qr/\[info\].*$why/), '>=', 2, 'and then at a lower level');

$r = $t->post($chat, ask('hello'));
is($r->{status}, 503, 'there is no engine');
is($t->metrics->{dsa_sessions}, 0, 'and no session');

$t->done;


# An engine whose prompt family this nginx does not have.

$t = DSA::Test->new('no family');
$t->start_fake('family=glm');
$t->start_nginx(workers => 1, wait => 0);

wait_until(sub { $t->logged(qr/cannot be used/) >= 3 }, 10, 'three attempts');

$why = qr/engine\ "unix:[^"]*"\ cannot\ be\ used:\ it\ sent\ a\ hello
          \ with\ family\ "glm",\ expected\ "deepseek"/x;

is($t->logged(qr/\[error\].*$why/), 1, 'both families are logged, once');
cmp_ok($t->logged(qr/\[info\].*$why/), '>=', 2, 'and then at a lower level');

$r = $t->post($chat, ask('hello'));
is($r->{status}, 503, 'there is no engine');
is($r->{json}{error}{message},
   'No engine of pool "v32" is available; try again later.', 'the reason');
is($t->metrics->{dsa_sessions}, 0, 'and no session');

$t->done;


# Engines that contradict themselves: the session ends, and a new one begins.

$t = DSA::Test->new('contradictions');
my $fake = $t->start_fake();

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

for ([ 'more cached tokens than prompt tokens', 'cached 101' ],
     [ 'more tokens of the host than cached ones', "cached 64\ntiers 65 0" ],
     [ 'more tokens of Redis than cached ones', "cached 64\ntiers 0 65" ],
     [ 'more of both', "cached 64\ntiers 32 33" ],
     [ 'a sum of more than 32 bits', "cached 64\ntiers 4294967295 1" ],
     [ 'a DONE of another length', 'corrupt other' ])
{
    my ($name, $lines) = @$_;

    my $lost = $t->metrics->{dsa_sessions_lost_requests_total};
    my $s = $t->stream(script("prompt 100\nt part\nwait\n$lines\n"));

    $s->next_event() for 1 .. 2;
    ctl($fake, 'go');

    my $m = DSA::HTTP->gather($s->events);

    is(scalar(@{ $m->{errors} }), 1, "$name: an error");
    is($t->metrics->{dsa_sessions_lost_requests_total}, $lost + 1,
       'the request is lost');
    wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');
}

$r = $t->post($chat, script("prompt 100\ncached 100\ntiers 60 40\nt x\n"));
is_deeply($r->{json}{usage}{prompt_tokens_details},
          { cached_tokens => 100, audio_tokens => 0, gpu_tokens => 0,
            host_tokens => 60, redis_tokens => 40 },
          'all of the prompt in slower tiers is no contradiction');

$t->done;


# Each field of each record, wrong in turn: the session of this engine ends, one
# line of the log names record, field, value and what would be accepted, and the
# worker goes on with the stream of another engine.

$t = DSA::Test->new('fields');
$fake = $t->start_fake('model=bad', 'context=10000');
my $other = $t->start_fake('model=good');
$t->start_nginx(workers => 1, server =>
                'location /anthropic/ { dsa_pass v32; }',
                location => 'dsa_rollout 1m;');
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

my $stream = $t->stream(script("prompt 9\nt a\n" . "wait\nt b\n" x 200,
                               model => 'good'));
$stream->next_event() for 1 .. 2;

my %logprobs = (logprobs => JSON::PP::true);
my %rollout = (rollout => { prompt => JSON::PP::true });
my %grammar = (response_format => { type => 'json_object' });
my %bias = (logit_bias => { 1 => 1 });
my $in = "prompt 100\ncached 50\nt part\n";
my $before = "noaccept\nprompt 100\ncached 50\n";

# What comes before; the record; what the log has; more of the request.

my $queries = '7f';        # as many bits as the family has control tokens
my $submit = 'as the answer to SUBMIT, expected ACCEPTED, TOKENS, ROLLOUT, '
             . 'DONE or ERROR';
my $count = 'as the answer to COUNT, expected COUNTED, DONE or ERROR';
my $inside = 'which is inside a character, expected one between two';
my $gone = 'for a request that it does not have, expected one that was '
           . 'submitted and has not ended';
my $early = 'before ACCEPTED, expected ACCEPTED or ERROR';

# A number of a field, as the log has it.

sub number {
    my ($type, $line, $expected) = @_;
    my ($field, $number) = split ' ', $line;

    $number = oct $number if $number =~ /^0x/;
    return "$type with $field $number, expected $expected";
}

my @wrong = (
    map({ [ $before, "accepted $_->[0]", number('ACCEPTED', @$_) ] }
        [ 'prompt_tokens 0', '1 to 9999' ],
        [ 'prompt_tokens 10000', '1 to 9999' ],
        [ 'cached_tokens 101', '0 to 100' ], [ 'conditions 1', 0 ],
        [ 'conditions 65535', 0 ], [ 'schemas 1', 0 ]),
    map({ [ $before, "accepted $_->[0]", "ACCEPTED with $_->[1]" ] }
        [ 'length 4', 'length 20, expected 16' ],
        [ 'length -4', 'length 12, expected 16' ],
        [ 'vocabulary 0x80000000', "vocabulary 0x80000000, expected bits of "
                                   . "0x$queries" ],
        [ 'vocabulary 0xffffffff', "vocabulary 0xffffffff, expected bits of "
                                   . "0x$queries" ]),
    [ $in, 'accepted length 0', 'ACCEPTED once more, expected one' ],
    [ $before, 'tokens length 0', "TOKENS $early" ],
    map({ [ $in, "tokens $_->[0]", number('TOKENS', @$_) ] }
        [ 'n_tokens 0x40000000', '0 to 63' ], [ 'n_tokens 64', '0 to 63' ],
        [ 'logprobs 1', 0 ], [ 'logprobs 2', 0 ], [ 'n_top 1', 0 ],
        [ 'id 1048576', '0 to 1048575' ], [ 'id 0xffffffff', '0 to 1048575' ],
        [ 'end 5', 4 ], [ 'end 2', 4 ], [ 'end 3', 4 ],
        [ 'control 5', '0 to 4' ], [ 'control 0xffffffff', '0 to 4' ]),
    map({ [ $in, "tokens $_->[0]", "TOKENS with $_->[1]" ] }
        [ 'length 4', 'length 36, expected 32' ],
        [ 'length -30', 'length 2, expected at least 16' ],
        [ 'n_tokens 2', 'length 32, expected 44' ],
        [ 'n_tokens 3', 'length 32, expected 56' ],
        [ 'text_len 5', 'length 32, expected 33' ],
        [ 'text_len 0xffffffff', 'length 32, expected 4294967323' ],
        [ 'text 0xff', 'byte 0xff at 0 of its text, expected UTF-8' ],
        [ 'text 0xc3', 'byte 0xc3 at 0 of its text, expected UTF-8' ],
        [ 'control 2', "control 2, $inside" ]),
    [ "prompt 100\nt a\nrecord tokens length 0\n", 'tokens length 0',
      'TOKENS with n_tokens 1, expected 0', max_tokens => 2 ],
    map({ [ $in, "tokens $_->[0]", number('TOKENS', @$_), %logprobs ] }
        [ 'logprobs 0', 1 ], [ 'n_top 1', 0 ], [ 'n_top 21', 0 ],
        [ 'token 1048576', '0 to 1048575' ]),
    map({ [ $in, "tokens logprob $_", "TOKENS with logprob $_, expected a "
            . 'finite number', %logprobs ] } qw/ nan -inf inf /),
    [ $in, 'tokens n_top 3', 'TOKENS with n_top 3, expected 0 to 2', %logprobs,
      top_logprobs => 2 ],
    [ $in, 'rollout length 24', 'ROLLOUT of type 9 without DSA_LINK_SAMPLES, '
      . 'expected ACCEPTED, TOKENS, DONE or ERROR' ],
    [ $before, 'rollout length 24', "ROLLOUT $early", %rollout ],
    map({ [ $in, "rollout length $_", 'ROLLOUT with rows that do not fill its '
            . 'length 24, expected rows of 20 to 32512 bytes, in multiples of '
            . '4', %rollout ] } 0, 16, 20, 22, 28, 32516),
    map({ [ $in, "rollout $_->[0]", number('ROLLOUT', "row.$_->[0]", $_->[1]),
            %rollout ] }
        [ 'type 0', '1 to 3' ], [ 'type 4', '1 to 3' ], [ 'form 1', 0 ],
        [ 'position 10000', '0 to 9999' ], [ 'n 0', '1 to 10000' ],
        [ 'n 10001', '1 to 10000' ]),
    map({ [ $in, "rollout $_->[0]", "ROLLOUT with row.$_->[1]", %rollout ] }
        [ 'n 2', 'length 24, expected 28' ],
        [ 'type 2', 'form 0, expected 1 to 2' ],
        [ 'type 3', 'n 1, expected 0' ]),
    map({ [ $in, "done $_->[0]", number('DONE', @$_) ] }
        [ 'finish 0', '1 to 4' ], [ 'finish 5', '1 to 4' ],
        [ 'finish 0xffffffff', '1 to 4' ], [ 'prompt_tokens 101', '0 to 100' ],
        [ 'prompt_tokens 0xffffffff', '0 to 100' ],
        [ 'gpu_tokens 101', '0 to 100' ], [ 'host_tokens 51', '0 to 50' ],
        [ 'redis_tokens 51', '0 to 50' ], [ 'completion_tokens 0', '1 to 64' ],
        [ 'completion_tokens 65', '1 to 64' ], [ 'draft_tokens 8', '0 to 7' ],
        [ 'accepted_tokens 1', 0 ], [ 'stop 1', 0 ],
        [ 'stop 0xffffffff', 0 ]),
    [ $in, 'done length 4', 'DONE with length 52, expected 48' ],
    [ $in, 'done length -8', 'DONE with length 40, expected 48' ],
    [ $before, 'done finish 1', "DONE $early" ],
    [ $before, 'done finish 2', "DONE $early" ],
    [ $in, 'done stop 3', 'DONE with stop 3, expected 0 to 2',
      stop => [ 'x', 'y' ] ],
    map({ [ $before, "error $_->[0]", number('ERROR', @$_), %grammar ] }
        [ 'code 0', '1 to 7' ], [ 'code 8', '1 to 7' ], [ 'path_len 1', 0 ],
        [ 'more 2', '0 to 1' ], [ 'reserved 9', 0 ]),
    map({ [ $before, "error $_->[0]", "ERROR with $_->[1]" ] }
        [ 'length 1', 'length 29, expected 28' ],
        [ 'length -8', 'length 20, expected at least 24' ],
        [ 'text_len 5', 'length 28, expected 29' ],
        [ 'text_len 0xffffffff', 'length 28, expected 4294967319' ],
        [ 'code 7', 'code 7, expected 1 to 6' ],
        [ 'code 8', 'code 8, expected 1 to 6' ],
        [ 'code 2', 'prompt_tokens 0, expected at least 1' ]),
    map({ [ $in, "error code $_", "ERROR with code $_ after ACCEPTED, expected "
            . '3 to 6', %grammar, %bias ] } 1, 2, 7, 8),
    [ $before, 'error code 7', 'ERROR with code 7, expected 1 to 6', %bias ],
    [ $before, 'error code 9', 'ERROR with code 9, expected 1 to 6', %bias ],
    [ $in, 'counted more 0', "COUNTED of type 8 $submit" ],
    [ $in, 'submit more 0', "a record of type 2 $submit" ],
    map({ [ undef, @$_ ] }
        [ 'counted length 4', 'COUNTED with length 12, expected 8' ],
        [ 'counted prompt_tokens 0',
          'COUNTED with prompt_tokens 0, expected at least 1' ],
        [ 'counted more 2', 'COUNTED with more 2, expected 0 to 1' ],
        [ 'accepted length 0', "ACCEPTED of type 3 $count" ],
        [ 'done finish 1', 'DONE with finish 1, expected 3' ],
        [ 'done finish 4', 'DONE with finish 4, expected 3' ],
        [ 'error code 0', 'ERROR with code 0, expected 1 to 6' ]),
    [ $in, "done stop 0\nrecord tokens length 0", "TOKENS $gone" ],
    [ $in, "done stop 0\nrecord done stop 0", "DONE $gone" ]);

my (@missing, $stopped);

for (@wrong) {
    my ($lines, $record, $log, %more) = @$_;
    my $text = ($lines // '') . "record $record\nhold\n";

    wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the session');
    my $n = $t->logged(qr/cannot be used/);

    my $r = defined $lines
        ? $t->post($chat, script($text, model => 'bad', max_tokens => 64, %more,
                                 messages => [
              { role => 'user', content => 'json' },
              { role => 'user', content => "!fake\n$text" } ]))
        : $t->post('/anthropic/v1/messages/count_tokens',
                   script($text, model => 'bad'));

    wait_until(sub { $t->logged(qr/cannot be used/) > $n }, 10, $log);

    my @lines = grep { /cannot be used/ } split /\n/, $t->error_log;

    push @missing, "$record: $r->{status}, " . $lines[$n]
        if @lines != $n + 1
           || $lines[$n] !~ /\[error\].* sent \Q$log\E \(slot \d+, epoch \d+\)$/
           || ($r->{status} != 503 && $log !~ /\Q$gone\E$/);

    ctl($other, 'go');
    my $event = $stream->next_event();
    $stopped //= $record
        if !$event || $event->{json}{choices}[0]{delta}{content} ne 'b';
}

is(join("\n", @missing), '', 'each of ' . @wrong . ' wrong records ends its '
   . 'session, with one line of the log');
is($stopped, undef, 'and the stream of another engine goes on');
is($t->logged(qr/exited on signal/), 0, 'in the same worker');
$stream->close();

# the good records pass

wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the session');
my $n = $t->logged(qr/cannot be used/);
$r = $t->post($chat, script(join("\nrecord ", "${in}record tokens length 0",
    'rollout n 1', 'tokens control 1', 'done completion_tokens 3') . "\nend\n",
    model => 'bad', %logprobs, %rollout));
is($r->{json}{choices}[0]{message}{content}, "partt\x{e9}tt\x{e9}t",
   'good records');
$r = $t->post($chat, script("${in}record done stop 2\nend\n", model => 'bad',
                            stop => [ 'x', 'y' ]));
is($r->{json}{choices}[0]{finish_reason}, 'stop', 'a stop string');
is($t->logged(qr/cannot be used/), $n, 'do not end it');

# An engine whose clock is ahead does not count as one that responds.

ctl($fake, 'alive 2');
wait_until(sub { $t->logged(qr/has not responded/) == 1 }, 10, 'the log');
is($t->post($chat, ask('x', model => 'bad'))->{status}, 503,
   'a time to come is no heartbeat');

$t->done;


# An engine that stops responding.  The pool has two, and the first one has
# a single slot.

$t = $stale;
my $hung = $t->start_fake('slots=1');
my $good = $t->start_fake();
my @held = (script("noaccept\nwait\naccept\nt moved\n"), head => 0);

sub up {
    my ($engine) = @_;

    return $t->metrics->{'dsa_engine_up{pool="v32",engine="unix:'
                         . $engine->sock . '"}'};
}

sub health {
    my ($engine) = @_;

    return (grep { $_->{engine} eq 'unix:' . $engine->sock }
            @{ $t->get('/readyz')->{json}{engines} })[0]{up};
}


$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

is(up($hung), 1, 'the engine is up');

ctl($good, 'load 5 0');
wait_until(sub { $t->metrics->{'dsa_engine_requests_running{pool="v32",'
                 . 'engine="unix:' . $good->sock . '"}'} == 5 }, 10,
           'the load');
my $s = $t->stream(@held);
wait_until(sub { ctl($hung, 'live') eq '1' }, 10, 'the submit');
is(scalar(submitted($good)), 0, 'one engine has the request');

ctl($hung, 'alive 0');
wait_until(sub { ctl($good, 'live') eq '1' }, 10, 'the request to move');
ok(1, 'a request that is not accepted moves when the engine does not respond');

ctl($good, 'go');
$s->read_head();
is(DSA::HTTP->gather($s->events)->{content}, 'moved', 'and is answered');
is(up($hung), 0, 'dsa_engine_up is 0');
ok(!health($hung), 'so is its health');
is($t->metrics->{dsa_sessions}, 2, 'the session goes on');
is($t->logged(qr/\[error\].*has not responded for \d+ ms: 1 requests that it/),
   1, 'it is logged once');

is($t->post($chat, ask('x'))->{status}, 200, 'the other one serves');
is(scalar(submitted($hung)), 1, 'the engine gets no request');

# neither responds

$s = $t->stream(@held);
wait_until(sub { ctl($good, 'live') eq '1' }, 10, 'the submit');
ctl($good, 'alive 0');
$s->read_head();
is($s->status, 503, 'none is left for a request');
$s->close();

# They respond again.  The slot of the request that moved is free only when the
# engine has ended it: it was cancelled.

ctl($_, 'alive 1') for $hung, $good;
wait_until(sub { up($hung) && up($good) }, 10, 'the engines to be up');
wait_until(sub { $t->logged(qr/\[notice\].*responds again/) == 2 }, 10,
           'the log');
wait_until(sub { ctl($hung, 'live') eq '0' }, 10, 'the cancel');
is(scalar(cancelled($hung)), 1, 'the request that moved was cancelled');

ctl($good, 'drain 1');
wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 10, 'service');
is($t->post($chat, ask('y'))->{status}, 200, 'its slot is used again');

# A request that is accepted stays.

$s = $t->stream(script("t one\nwait\nt two\n"));
$s->next_event();
ctl($hung, 'alive 0');
wait_until(sub { up($hung) == 0 }, 10, 'the engine to be stale');
wait_until(sub { $t->logged(qr/0 requests that it has not accepted/) == 1 },
           10, 'the log');
ctl($hung, 'alive 1');
ctl($hung, 'go');
is(DSA::HTTP->gather($s->events)->{content}, 'onetwo',
   'a request that is accepted waits for its engine');

$t->done;


# The debug log has each transition of a session and of a request.

$t = $debug;
my $nginx = $ENV{DSA_NGINX} || '/usr/sbin/nginx';

SKIP: {
    skip 'nginx is built without --with-debug', 3
        if `$nginx -V 2>&1` !~ /--with-debug/;

    my $engine = $t->start_fake();
    $t->start_nginx(workers => 1,
                    main => 'error_log %%DIR%%/debug.log debug;');
    wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

    $t->post($chat, ask('x'));

    $s = $t->stream(script("noaccept\nerror draining\n"));
    $s->close();

    $s = $t->stream(script("t a\nhold\n"));
    $s->next_event();
    $s->close();
    wait_until(sub { ctl($engine, 'live') eq '0' }, 10, 'the cancel');
    ctl($engine, 'close');

    my (@session, %request, @request, %stages);
    wait_until(sub {
        my $log = read_file($t->path('debug.log'));
        my $n = 0;

        @session = $log =~ /dsa engine "[^"]*": (\w+)/g;
        @request = ();
        %request = ();
        %stages = ();

        $stages{$1} .= " $2" while $log =~ /dsa request (\S+): stage (\w+)/g;

        while ($log =~ /dsa request (\S+): (?!stage )(\w+ ?(?:token)?)/g) {
            $request{$1} //= $n++;
            push @{ $request[$request{$1}] }, $2 =~ s/ $//r;
        }

        return (grep { /lost/ } @session)
               && 3 == grep { /^finalized$/ } map { @$_ } @request;
    }, 10, 'the end of the session and of the requests');

    is("@session[0 .. 2]", 'connecting ready submit', 'a session');
    is_deeply(\@request, [
        [ qw/ received parsed submitted accepted /, 'first token',
          qw/ done finished finalized / ],
        [ qw/ received parsed submitted retried finalized / ],
        [ qw/ received parsed submitted accepted /, 'first token',
          qw/ cancelled finalized / ] ], 'requests')
        or diag(explain(\@request));
    is_deeply([ values %stages ],
              [ (' parse claim references read history conversation family'
                 . ' apply restore check record edit compact edit_rest'
                 . ' window encode progress submit') x 3 ],
              'each passes the stages in their order')
        or diag(explain(\%stages));
}

$t->done;
