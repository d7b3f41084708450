# Copyright (C) The nginx-dsa authors
#
# An engine dies in the middle of an answer, and another one continues it: the
# client gets the answer that it would have got, and pays for it once.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Ledger;
use DSA::Process;
use DSA::Test;
use DSA::Wait qw/ wait_until /;

my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;
my $gone = 'The engine went away before the answer was complete.';
my $none = 'The engine went away before the answer was complete, and no other '
           . 'engine can continue it.';
my $stopped = 'The engine was stopped before the answer was complete.';


# Backend null.  Where a grammar is in force, its tokens depend on the seed.
# The first engine is slow, and the other one, which joins later, is not.

my $t = DSA::Test->new('null');
my @null = map { $t->start_engine(conf => { backend => "null rate=$_" }) }
           10, 0;

$t->start_redis();
$t->start_nginx(http => 'dsa_price $model miss=2 hit=1 output=4;
                         dsa_price currency=USD;');
$null[1]->stop;

my $model = $t->get('/v1/models')->{json}{data}[0]{id};


sub chat {
    my (%more) = @_;

    return { model => $model, seed => 7, usage => { include => $true },
             messages => [ { role => 'user',
                             content => 'Once upon a time ' x 60 } ], %more };
}


sub schema {
    my ($pattern) = @_;

    return { type => 'json_schema', json_schema => {
        name => 'x', strict => $true, schema => {
            type => 'object', required => [ 'x' ],
            additionalProperties => JSON::PP::false,
            properties => { x => { type => 'string',
                                   pattern => $pattern } } } } };
}


# Brings the prompt into the cache of the engine.

sub warm {
    wait_until(sub { $t->post($chat, chat(max_tokens => 1))
                       ->{json}{usage}{prompt_cache_hit_tokens} > 0 }, 10,
               'the cache');

    return;
}


# Sends a streamed request, ends the slow engine by SIGKILL after some tokens,
# and returns the events by choice.

sub moved {
    my ($request) = @_;

    $t->wait_sessions(1);

    my $s = $t->stream({ %$request, stream => $true,
                         stream_options => { include_usage => $true } });
    my @events = map { $s->next_event() } 1 .. 6;

    $null[1]->restart;
    $t->wait_sessions(2);
    kill 'KILL', DSA::Process::children($null[0]{pid});
    push @events, $s->events;

    my %of = (usage => [ grep { $_->{json} && $_->{json}{usage} } @events ]);

    for my $e (grep { $_->{json} && @{ $_->{json}{choices} || [] } } @events) {
        push @{ $of{ $_->{index} } }, $e for @{ $e->{json}{choices} };
    }

    $null[1]->stop;
    $t->wait_sessions(1);

    return \%of;
}


my %cases = (
    'a schema' => chat(response_format => schema('^[a-z]{300}$')),
    'text' => chat(max_tokens => 300),
    'the end of the context' => chat(max_tokens => 1000000),
    'a stop string' => chat(max_tokens => 300, stop => [ 'neverthere' ]),
    'three choices' => chat(response_format => schema('^[a-z]{300}$'), n => 3),
);

for my $name (sort keys %cases) {
    my $n = $cases{$name}{n} || 1;

    # the same engine computes all choices, and the prompt is in its cache

    $null[1]->restart;
    $t->wait_sessions(2);
    $null[0]->stop;
    $t->wait_sessions(1);
    warm();
    my $want = $t->post($chat, $cases{$name});
    is($want->{status}, 200, "$name: undisturbed");
    $null[0]->restart;
    $t->wait_sessions(2);
    $null[1]->stop;
    $t->wait_sessions(1);
    warm();
    ledger_change($t);

    my $of = moved($cases{$name});

    for my $k (0 .. $n - 1) {
        my $m = DSA::HTTP->gather(@{ $of->{$k} });
        my $choice = $want->{json}{choices}[$k];

        is($m->{content}, $choice->{message}{content}, "$name: the same text");
        is($m->{finish_reason}, $choice->{finish_reason},
           "$name: the same end");
        is_deeply($m->{errors}, [], "$name: no error");
    }

    my $usage = $of->{usage}[-1]{json}{usage};

    is_deeply($usage, $want->{json}{usage}, "$name: the same usage and cost");

    my $ledger = ledger_change($t);

    is($ledger->{requests}, 1, "$name: one request in the ledger");
    is($ledger->{"${_}_tokens"}, $usage->{"${_}_tokens"},
       "$name: $_ tokens in the ledger") for qw/ prompt completion /;
    is($ledger->{cached_tokens}, $usage->{prompt_cache_hit_tokens},
       "$name: cached tokens in the ledger");
}

cmp_ok($t->metrics->{dsa_resumed_answers_total}, '>=', 4, 'they were moved');


# Fake engines: the first one gets every request while it is there.

sub fakes {
    my ($name, @args) = @_;

    my $t = DSA::Test->new($name);
    my @fake = map { $t->start_fake("model=m", @$_) } @args;

    script_of($t, $_, 'error internal unexpected') for 0 .. $#fake;

    $t->start_nginx(server => 'location /short/ { dsa_pass v32;
                                                  dsa_timeout 20s; }
                               location /rollout/ { dsa_pass v32;
                                                    dsa_rollout 1m; }');
    $t->wait_sessions(scalar @fake);
    load($t, $_) for 0 .. $#fake;

    return ($t, @fake);
}


# An engine has as many requests as its number, so the first one is the least
# busy.

sub load {
    my ($t, $i) = @_;

    my $engine = $t->{engines}[$i];
    my $name = 'dsa_engine_requests_running{pool="v32",engine="unix:'
               . $engine->sock . '"}';

    ctl($engine, "load $i 0");
    wait_until(sub { $t->metrics->{$name} == $i }, 10, "the load $i");

    return;
}


# What an engine answers.

sub script_of {
    my ($t, $i, $text) = @_;

    write_file($t->path("script$i"), "$text\n");
    ctl($t->{engines}[$i], 'script ' . $t->path("script$i"));

    return;
}


# Streams an answer whose first engine is killed after N events, or after it
# has the request (0), and returns what the client got.

sub killed {
    my ($t, $n, $request, $uri) = @_;

    my $s = $t->stream({ %$request, stream => $true }, head => 0,
                       uri => $uri || $chat);

    if ($n == 0) {
        wait_until(sub { ctl($t->{engines}[0], 'live') eq '1' }, 10,
                   'the submit');

        # an engine of one process has its ACCEPTED in the ring with it

    } else {
        $s->read_head();
    }

    my @events = map { $s->next_event() } 1 .. $n;

    $t->{engines}[0]->kill9;
    $s->read_head() if $n == 0;

    my $m = DSA::HTTP->gather(@events, $s->events);

    $t->{engines}[0]->restart;
    $t->wait_sessions(scalar @{ $t->{engines} });
    load($t, 0);

    return $m;
}


# The last request of an engine, without its id.

sub last_submit {
    my ($engine) = @_;

    return (submitted($engine))[-1] =~ s/^submit \S+ //r;
}


my ($pair, @pair) = fakes('fake', [], []);

my %ask = %{ ask('x', seed => 5, max_tokens => 50, stop => [ 'end' ],
                 stream_options => { include_usage => $true }) };

script_of($pair, 0, "noaccept\nprompt 100\ncached 60\naccept\nT a|b|c\nhold");
script_of($pair, 1, "prompt 100\ncached 90\nt e\nt f");

my $m = killed($pair, 2, \%ask);
my ($first, $second) = map { last_submit($_) } @pair;

is($m->{content}, 'abcef', 'the text of both engines');
is_deeply($m->{errors}, [], 'no error');
is($m->{done}, 1, 'one end');
is($m->{usage}{completion_tokens}, 6, 'the tokens of both, and the end token');
is($m->{usage}{prompt_tokens}, 100, 'one prompt');
is($m->{usage}{prompt_cache_hit_tokens}, 60, 'with the hits of the first');
is($second =~ s/ resume=0,1,2//r, $first,
   'the same request with the tokens so far');
isnt($second, $first, 'which are sent');
ok($pair->logged(qr/\[warn\].*continues choice 0 of the answer after 3 /),
   'it is logged');
is($pair->metrics->{dsa_resumed_answers_total}, 1, 'and counted');

script_of($pair, 0, 'hold');
$m = killed($pair, 0, \%ask);
is($m->{content}, 'ef', 'without a token: the answer of the second');
unlike(last_submit($pair[1]), qr/resume=/, 'there is nothing to resume from');
is($m->{usage}{prompt_cache_hit_tokens}, 90, 'the hits of the second');
is($m->{usage}{completion_tokens}, 3, 'and the tokens');

# an engine that sends a wrong record is left as one that died

script_of($pair, 0, "noaccept\nprompt 100\ncached 60\naccept\nT a|b|c\n"
                    . "record tokens id 0xffffffff\nhold");
my $r = $pair->post($chat, { map { $_ => $ask{$_} }
                             grep { $_ ne 'stream_options' } keys %ask });
is($r->{json}{choices}[0]{message}{content}, 'abcef', 'a wrong record');
is("@{ $r->{json}{usage} }{qw/ prompt_tokens prompt_cache_hit_tokens
                               completion_tokens /}", '100 60 6', 'its usage');
is($pair->logged(qr/\[error\].* sent TOKENS with id 4294967295, expected 0 /),
   1, 'it is logged');
$pair->wait_sessions(2);
load($pair, 0);

# not streamed; the other APIs; reasoning and tools go on where they were

script_of($pair, 0, "t a\nhold");

for my $case ([ $chat, \%ask, sub { $_[0]{choices}[0]{message}{content} } ],
              [ '/v1/responses', { model => 'm', input => 'x' },
                sub { $_[0]{output}[-1]{content}[0]{text} } ],
              [ '/v1/messages', { model => 'm', max_tokens => 50,
                                  messages => $ask{messages} },
                sub { $_[0]{content}[0]{text} } ],
              [ '/v1/completions', { model => 'm', prompt => 'x' },
                sub { $_[0]{choices}[0]{text} } ])
{
    my ($uri, $request, $text) = @$case;
    my $c = $pair->connect;

    my %plain = %$request;
    delete $plain{stream_options};

    $c->send_request('POST', $uri, body => json_encode(\%plain));
    wait_until(sub { ctl($pair[0], 'live') eq '1' }, 10, 'the submit');
    wait_until(sub { $pair->metrics->{dsa_requests_in_flight} == 1 }, 10, 'it');
    $pair[0]->kill9;
    my $r = $c->response;
    is($r->{status}, 200, "$uri: not streamed");
    like($text->($r->{json}), qr/^a?ef\z/, "$uri: the text");
    $pair[0]->restart;
    $pair->wait_sessions(2);
    load($pair, 0);
    script_of($pair, 0, "t a\nhold");
}


# An engine that stops ends its answers itself.

script_of($pair, 0, "noaccept\nprompt 100\ncached 60\naccept\nT a|b|c\n"
                    . 'error draining stopped');
script_of($pair, 1, "prompt 100\ncached 90\nt e\nt f");
$m = DSA::HTTP->gather($pair->stream({ %ask, stream => $true })->events);
is($m->{content}, 'abcef', 'an engine stops: the text of both');
is_deeply($m->{errors}, [], 'no error');
is($m->{usage}{completion_tokens}, 6, 'the tokens of both, and the end token');
is($m->{usage}{prompt_tokens}, 100, 'one prompt');
is($m->{usage}{prompt_cache_hit_tokens}, 60, 'with the hits of the first');
like(last_submit($pair[1]), qr/ resume=0,1,2/, 'the tokens so far are sent');


# If it dies in the same place, it does not move again.  Engines that reject it
# are left out.

my ($four, @four) = fakes('four', [], [], [], []);

script_of($four, 0, "t a\nhold");
script_of($four, 1, "noaccept\nerror overloaded x");
script_of($four, 2, "noaccept\nerror draining x");
script_of($four, 3, "t b\nhold");

sub twice {
    my $s = $four->stream({ %ask, stream => $true });

    $s->next_event() for 1 .. 2;
    $four[0]->kill9;

    return $s;
}

my $s = twice();
my @events = map { $s->next_event() } 1;

is($events[0]{json}{choices}[0]{delta}{content}, 'b',
   'engines without room: the next one continues');
is(scalar(submitted($four[$_])), 1, "engine $_ was tried") for 1, 2;
$four[3]->kill9;
$m = DSA::HTTP->gather($s->events);
is_deeply([ map { $_->{message} } @{ $m->{errors} } ], [ $gone ],
          'the next one dies in the same place: an error');
is($four->logged(qr/has lost 2 engines, the last two after 1 and 2 tokens/), 1,
   'which is logged');
is($m->{done}, 0, 'and no end');
is(scalar(submitted($four[$_])), 1, "engine $_ is left alone") for 1, 2;

$_->restart for @four[0, 3];
$four->wait_sessions(4);
load($four, $_) for 0, 3;
ctl($four[$_], 'drain 1') for 1 .. 3;
script_of($four, 0, "t a\nhold");
$m = DSA::HTTP->gather(twice()->events);
is_deeply([ map { $_->{message} } @{ $m->{errors} } ], [ $none ],
          'no engine is left');

# engines that accept it and stop are tried once each

$_->kill9 for @four[1 .. 3];
$_->restart for @four;
$four->wait_sessions(4);
load($four, $_) for 0 .. 3;
script_of($four, $_, "t a\nerror draining stopped") for 0 .. 3;

my $tried = map { submitted($_) } @four;

$m = DSA::HTTP->gather($four->stream({ %ask, stream => $true })->events);
is_deeply([ map { $_->{message} } @{ $m->{errors} } ], [ $none =~
          s/went away/was stopped/r ], 'all engines stop: an error');
is($m->{content}, 'aaaa', 'behind the text of all');
is(scalar(map { submitted($_) } @four) - $tried, 4, 'each was tried once');
$_->kill9 for @four;
$_->restart for @four[1 .. 3];
$four->wait_sessions(3);
load($four, $_) for 1 .. 3;
ctl($four[$_], 'drain 1') for 1 .. 2;

# the client leaves

$four[0]->restart;
$four->wait_sessions(4);
load($four, 0);
ctl($four[3], 'drain 0');
script_of($four, 0, "t a\nhold");
script_of($four, 3, "t b\nhold");
$s = twice();
$s->next_event();
is(ctl($four[3], 'live'), 1, 'another engine continues');
$s->close;
wait_until(sub { ctl($four[3], 'live') eq '0' }, 10, 'the cancel');
pass('a client that leaves cancels it there');

# the timeout counts from the start of the request

$four[0]->restart;
$four->wait_sessions(4);
load($four, 0);
script_of($four, 0, "t a\nhold");
$m = killed($four, 2, \%ask, '/short/chat/completions');
is("$m->{content} $m->{finish_reason}", 'ab length',
   'a timeout ends it with the text of both');
is($m->{usage}{completion_tokens}, 2, 'and the tokens of both');


# Deaths in different places: it moves after four of them.

my ($many, @many) = fakes('many', map { [] } 1 .. 6);

for my $i (0 .. 5) {
    script_of($many, $i, 'T ' . join('|', ($i) x 8) . "\nhold");
}

$s = $many->stream({ %ask, stream => $true });

my $texts = '';

for my $i (0 .. 4) {
    my $want = $texts . $i x 8;

    while (length $texts < length $want) {
        my $e = $s->next_event or last;
        $texts .= $e->{json}{choices}[0]{delta}{content} // '';
    }

    is($texts, $want, "the text of engine $i");
    $many[$i]->kill9;
}

$m = DSA::HTTP->gather($s->events);
is_deeply([ map { $_->{message} } @{ $m->{errors} } ], [ $gone ],
          'the fifth engine dies: an error');
is(scalar(submitted($many[5])), 0, 'and the sixth is spared');
is($many->metrics->{dsa_resumed_answers_total}, 4, 'four moves');
$many->done;


# What another engine cannot continue.

for my $case ([ 'another model', [], [ 'model=other' ] ],
              [ 'other weights', [], [ 'fingerprint=other' ] ],
              [ 'another context', [], [ 'context=9999999' ] ],
              [ 'one engine', [] ],
              [ 'a rollout', [], [], rollout => { } ])
{
    my ($name, $a, $b, %more) = @$case;
    my ($t, @fake) = fakes($name =~ tr/ /-/r, $a, $b ? $b : ());

    script_of($t, 0, "t a\nhold");

    my $m = killed($t, 2, { %ask, model => 'm', %more },
                   %more ? '/rollout/chat/completions' : $chat);

    is_deeply([ map { $_->{message} } @{ $m->{errors} } ],
              [ $b && !%more ? $none : $gone ], "$name: an error");
    is($m->{content}, 'a', "$name: behind the text so far");
    is(scalar(submitted($fake[1])), 0, "$name: the other engine gets nothing")
        if $b;
    $t->done;
}

# The same for engines that stop.

for my $case ([ 'stop: another model', 'model=other' ],
              [ 'stop: a rollout', undef, rollout => { } ])
{
    my ($name, $other, %more) = @$case;
    my ($t, @fake) = fakes($name =~ tr/ :/-/dr, [], [ $other || () ]);

    # the client has the text before the engine stops

    script_of($t, 0, "t a\nwait\nerror draining stopped");

    my $s = $t->stream({ %ask, %more, stream => $true },
                       uri => %more ? '/rollout/chat/completions' : $chat);
    my @events = map { $s->next_event } 1 .. 2;

    ctl($fake[0], 'go');

    my $m = DSA::HTTP->gather(@events, $s->events);

    is_deeply([ map { $_->{message} } @{ $m->{errors} } ],
              [ %more ? $stopped : $none =~ s/went away/was stopped/r ],
              "$name: an error");
    is($m->{content}, 'a', "$name: behind the text so far");
    is($m->{done}, 0, "$name: no [DONE]");
    is(scalar(submitted($fake[1])), 0, "$name: the other engine gets nothing");
    $t->done;
}

$four->done;
$pair->done;
$t->done;
