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

like($next->output, qr/^offer 3,$last version $last$/m,
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
             \ and\ nginx\ accepts\ 3\ to\ $last/x;

is($t->logged(qr/\[error\].*$why/), 1, 'both ranges are logged, once');
cmp_ok($t->logged(qr/\[info\].*$why/), '>=', 2, 'and then at a lower level');

$r = $t->post($chat, ask('hello'));
is($r->{status}, 503, 'there is no engine');
is($t->metrics->{dsa_sessions}, 0, 'and no session');

$t->done;


# An engine of version 3, whose DONE ends before the tiers of cached tokens: its
# other figures are used.

$t = DSA::Test->new('version 3');
my $old = $t->start_fake('model=old', 'versions=3,3');

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

like($old->output, qr/^offer 3,$last version 3$/m, 'version 3 is in use');

for my $tiers ('', "tiers 128 64\n") {
    $r = $t->post($chat, script("prompt 1000\ncached 640\n$tiers"
                                . "completion 7\nt x\n", model => 'old'));
    is($r->{status}, 200, 'a chat with an engine of version 3');
    is(join(' ', map { $r->{json}{usage}{$_} }
            qw/ prompt_tokens prompt_cache_hit_tokens completion_tokens /),
       '1000 640 7', 'its usage');
    is_deeply($r->{json}{usage}{prompt_tokens_details},
              { cached_tokens => 640, gpu_tokens => 640, host_tokens => 0,
                redis_tokens => 0 }, 'all cached tokens are of the GPU');
}

# what is in its segment, where version 4 has the tiers, is not read

ctl($old, 'page 4096');
ctl($old, "tier $_ 10 5 100") for 0 .. 2;
my $m = $t->metrics;
is(scalar(grep { /^dsa_engine_pages\{/ } keys %$m), 1, 'its pages');
is(scalar(grep { /^dsa_engine_tier_/ } keys %$m), 0, 'but not by tier');

$t->done;


# Engines before version 5 cannot constrain an answer: the request goes to
# another engine, or is refused.

$t = DSA::Test->new('version 4');
my @four = map { $t->start_fake('model=old', 'versions=3,4') } 1 .. 2;

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

is($t->post($chat, ask('x', model => 'old'))->{status}, 200,
   'a chat with an engine of version 4');

my @bias = (model => 'old', logit_bias => { 17 => -100, 3 => 2.5 });

$r = $t->post($chat, ask('x', @bias));
is($r->{status}, 503, 'but not with logit_bias');
like($r->{json}{error}{message},
     qr/No engine of pool "v32" .* can constrain .* its version is too old/,
     'the reason');
is($r->{json}{error}{type}, 'server_error', 'its type');
is(scalar(map { submitted($_) } @four), 1, 'no engine has the request');

$t->done;

$t = DSA::Test->new('versions 4 and 5');
my $four = $t->start_fake('model=old', 'versions=3,4');
my $five = $t->start_fake('model=old', 'versions=3,5');

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

for (1 .. 3) {
    is($t->post($chat, ask('x', @bias))->{status}, 200,
       'an engine of version 5 serves it');
}

is(scalar(submitted($four)), 0, 'the one of version 4 has none');
like((submitted($five))[0], qr/ bias 3=2\.5 bias 17=-100/, 'the biases');

$t->done;


# Engines before version 6 cannot limit the reasoning, and have no structure for
# a text beside calls.

$t = DSA::Test->new('version 5');
$five = $t->start_fake('model=old', 'versions=3,5');

$t->start_nginx(workers => 1, server =>
                'location /anthropic/ { dsa_pass v32; }');
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

my %budget = (model => 'old',
              thinking => { type => 'enabled', budget_tokens => 1024 });
my %either = (model => 'old', response_format => { type => 'json_object' },
              tools => [{ type => 'function', function => { name => 'f' } }]);
my %message = (%budget, max_tokens => 4096,
               messages => [{ role => 'user', content => 'x' }]);

for ([ $chat, ask('x', %budget), $why = qr/its version is too old/ ],
     [ $chat, ask('json', %either), $why ],
     [ '/v1/responses', { model => 'old', input => 'x',
                          max_thinking_tokens => 9, store => JSON::PP::false,
                          reasoning => { effort => 'high' } }, $why ],
     [ '/anthropic/v1/messages', \%message, $why ])
{
    my ($uri, $body, $text) = @$_;

    $r = $t->post($uri, $body);
    is($r->{status}, 503, "$uri: a request of version 6");
    like($r->{json}{error}{message}, $text, "$uri: the reason");
}

is($t->post($chat, ask('x', %$_))->{status}, 200, 'a request of version 5')
    for { model => 'old', thinking => { type => 'enabled' } },
        { model => 'old', max_thinking_tokens => 5 },
        { %either, response_format => undef, tool_choice => 'required' };

delete $message{max_tokens};
is($t->post('/anthropic/v1/messages/count_tokens', \%message)->{status}, 200,
   'a count does not think');
is(scalar(submitted($five)), 3, 'the engine has the others only');

$t->done;


# Engines that contradict themselves: the session ends, and a new one begins.

$t = DSA::Test->new('contradictions');
my @versions = map { $t->start_fake("model=v$_", "versions=$_,$_") } 3, 4;

$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

for ([ 3, 'more cached tokens than prompt tokens', 'cached 101' ],
     [ 4, 'more cached tokens than prompt tokens', 'cached 101' ],
     [ 4, 'more tokens of the host than cached ones', "cached 64\ntiers 65 0" ],
     [ 4, 'more tokens of Redis than cached ones', "cached 64\ntiers 0 65" ],
     [ 4, 'more of both', "cached 64\ntiers 32 33" ],
     [ 4, 'a sum of more than 32 bits', "cached 64\ntiers 4294967295 1" ],
     [ 3, 'a DONE of version 4', 'corrupt other' ],
     [ 4, 'a DONE of version 3', 'corrupt other' ])
{
    my ($version, $name, $lines) = @$_;

    my $lost = $t->metrics->{dsa_sessions_lost_requests_total};
    my $s = $t->stream(script("prompt 100\nt part\nwait\n$lines\n",
                              model => "v$version"));

    $s->next_event() for 1 .. 2;
    ctl($versions[$version - 3], 'go');

    my $m = DSA::HTTP->gather($s->events);

    is(scalar(@{ $m->{errors} }), 1, "version $version, $name: an error");
    is($t->metrics->{dsa_sessions_lost_requests_total}, $lost + 1,
       'the request is lost');
    wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the session');
}

$r = $t->post($chat, script("prompt 100\ncached 100\ntiers 60 40\nt x\n",
                            model => 'v4'));
is_deeply($r->{json}{usage}{prompt_tokens_details},
          { cached_tokens => 100, gpu_tokens => 0, host_tokens => 60,
            redis_tokens => 40 },
          'all of the prompt in slower tiers is no contradiction');

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
            @{ $t->get('/healthz')->{json}{engines} })[0]{up};
}


$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

is(up($hung), 1, 'the engine is up');

ctl($good, 'load 5 0');
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
    skip 'nginx is built without --with-debug', 2
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

    my (@session, %request, @request);
    wait_until(sub {
        my $log = read_file($t->path('debug.log'));
        my $n = 0;

        @session = $log =~ /dsa engine "[^"]*": (\w+)/g;
        @request = ();
        %request = ();

        while ($log =~ /dsa request (\S+): (\w+ ?(?:token)?)/g) {
            $request{$1} //= $n++;
            push @{ $request[$request{$1}] }, $2 =~ s/ $//r;
        }

        grep { /lost/ } @session }, 10, 'the end of the session');

    is("@session[0 .. 2]", 'connecting ready submit', 'a session');
    is_deeply(\@request, [
        [ qw/ received parsed submitted accepted /, 'first token',
          qw/ done finished finalized / ],
        [ qw/ received parsed submitted retried finalized / ],
        [ qw/ received parsed submitted accepted /, 'first token',
          'cancelled' ] ], 'requests') or diag(explain(\@request));
}

$t->done;
