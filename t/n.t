# Copyright (C) The nginx-dsa authors
#
# Several choices of one answer ("n").  Each of them is a request of its own for
# the engine, with the seed of the request plus its index; for the client, the
# ledger and the metrics they are one request.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';
my $text = '/v1/completions';
my $true = JSON::PP::true;

my $t = DSA::Test->new('n');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake('slots=16');

$t->start_nginx(
    http => 'log_format dsa "$status $dsa_prompt_tokens $dsa_cached_tokens '
            . '$dsa_completion_tokens $dsa_reasoning_tokens '
            . '$dsa_finish_reason"; access_log %%DIR%%/dsa.log dsa;',
    server => 'location /short/ { dsa_pass v32; dsa_timeout 4s; }
               location /ignore/ { dsa_pass v32;
                                   dsa_ignore_client_abort on; }
               location /slow/ { dsa_pass v32; dsa_output_limit 32k; }');

my $type = 'Failed to deserialize the JSON body into the target type: n: '
           . 'invalid type:';
my $three = "only 100 T a|b\nonly 101 T c\nonly 102 T d|e|f\n";


sub live { ctl($fake, 'live') }

sub idle {
    my ($what) = @_;
    wait_until(sub { live() eq '0' }, 10, "$what: an idle engine");
    pass("$what: the engine is idle");
}


# The events of a stream as one list for each choice, and those of none.

sub split_choices {
    my %of;

    for my $e (grep { $_->{json} } @_) {
        my $j = $e->{json};

        push @{ $of{ $j->{error} ? 'error' : $j->{choices}[0]{index} } }, $e;
    }

    return \%of;
}


# One choice of a stream in the form that it has in an answer in one piece.

sub whole {
    my ($index, @events) = @_;

    my $m = DSA::HTTP->gather(@events);
    my %message = (role => $m->{role}, content => $m->{content},
                   refusal => undef, annotations => []);

    $message{reasoning_content} = $m->{reasoning_content}
        if grep { exists $_->{json}{choices}[0]{delta}{reasoning_content} }
           @events;
    $message{tool_calls} = [ map { +{
        index => $_, type => 'function', function => {
            name => $m->{tool_calls}[$_]{name},
            arguments => $m->{tool_calls}[$_]{arguments} } }
    } 0 .. $#{ $m->{tool_calls} } ] if @{ $m->{tool_calls} };

    my %choice = (index => $index, message => \%message, logprobs => undef,
                  finish_reason => $m->{finish_reason});

    for my $l (map { $_->{json}{choices}[0]{logprobs} || () } @events) {
        $choice{logprobs} ||= {};
        push @{ $choice{logprobs}{$_} }, @{ $l->{$_} || [] }
            for qw/ content refusal reasoning_content /;
    }

    return \%choice;
}


# Ids of calls are random; an absent list of logprobs is an empty one here.

sub normal {
    my ($choices) = @_;

    for my $c (@$choices) {
        delete $_->{id} for @{ $c->{message}{tool_calls} || [] };

        $c->{logprobs}{$_} ||= [] for $c->{logprobs}
            ? qw/ content refusal reasoning_content / : ();
    }

    return $choices;
}


# Streams a request, and sends it again in one piece.  Both must agree.  Returns
# the choices, the usage and the events.

sub both {
    my ($name, $request, $n) = @_;

    my $s = $t->stream($request);
    my @events = $s->events;
    my $of = split_choices(@events);

    is(join(' ', sort keys %$of), join(' ', 0 .. $n - 1),
       "$name: the indices of a stream");
    is(scalar(grep { ($_->{data} // '') eq '[DONE]' } @events), 1,
       "$name: one [DONE]");

    my @choices = map { whole($_, @{ $of->{$_} }) } 0 .. $n - 1;
    my @usage = map { $_->{json}{usage} || () } @events;

    is(scalar @usage, 1, "$name: one usage");
    ok($events[-2]{json}{usage}, "$name: in the last chunk");

    for my $i (0 .. $n - 1) {
        my @roles = grep { defined $_->{json}{choices}[0]{delta}{role} }
                    @{ $of->{$i} };
        my @ends = grep { defined $_->{json}{choices}[0]{finish_reason} }
                   @{ $of->{$i} };

        is(scalar(@roles) . ($roles[0] == $of->{$i}[0])
           . scalar(@ends) . ($ends[0] == $of->{$i}[-1]), '1111',
           "$name: choice $i begins with a role and ends with a reason");
    }

    my $r = $t->post($chat, $request);

    is($r->{status}, 200, "$name: in one piece");
    is_deeply(normal($r->{json}{choices}), normal(\@choices),
              "$name: both agree");
    is_deeply($r->{json}{usage}, $usage[0], "$name: the same usage");

    return (\@choices, $usage[0], \@events);
}


# the ledger, the access log and the metrics have one request

sub logged {
    my ($line) = @_;

    my $last = sub { (split /\n/, read_file($t->path('dsa.log')))[-1] };

    eval { wait_until(sub { $last->() eq $line }, 10, 'the access log') };
    is($last->(), $line, 'the access log');
}


sub ledger {
    my %sum;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);
        $sum{ s/.*\|//r } += $fields->{$_} for keys %$fields;
    }

    return join ' ', map { $sum{$_} // 0 }
                     qw/ requests prompt_tokens cached_tokens
                         completion_tokens reasoning_tokens /;
}


# Checks what the last request has added to the ledger.

my @sum = (0) x 5;

sub charged {
    my ($name, @add) = @_;

    $sum[$_] += $add[$_] for 0 .. $#add;

    my $want = join ' ', @sum;

    eval { wait_until(sub { ledger() eq $want }, 10, 'the ledger') };
    is(ledger(), $want, "$name: the ledger");
}

my @names = ('dsa_requests_total{code="200"}',
             'dsa_time_to_first_token_seconds_count',
             'dsa_queue_seconds_count', 'dsa_tokens_total{type="prompt"}',
             'dsa_tokens_total{type="completion"}');
my ($r, @events);
my $before = $t->metrics;

$t->post($chat, script("prompt 1000\ncached 640\n$three", n => 3,
                       seed => 100));
logged('200 1000 640 9 0 stop');
charged('an answer', 1, 1000, 640, 9, 0);

my $after = $t->metrics;
is(join(' ', map { $after->{$_} - $before->{$_} } @names), '1 1 1 1000 9',
   'the metrics have one request');
is(scalar(grep { /^submit / } (submitted($fake))[-3 .. -1]), 3,
   'the engine has three');


# The other choices are submitted when the first one has a token.

my $s = $t->stream(script("prompt 500\nwait\nt a\nwait\n", n => 3,
                          seed => 100));

wait_until(sub { live() eq '1' }, 10, 'the first choice');
ctl($fake, 'go');
wait_until(sub { live() eq '3' }, 10, 'the others');
pass('the others follow the first token');
ctl($fake, 'go 5');
is(scalar(grep { ($_->{json}{choices}[0]{delta}{content} // '') eq 'a' }
          $s->events), 3, 'and all are answered');
charged('all', 1, 500, 0, 6);


# The client leaves at each moment.

sub leave {
    my ($name, $lines, $live, $contents, $ends, @tokens) = @_;

    my $cancels = $t->metrics->{'dsa_cancelled_total{reason="client"}'};
    my $s = $t->stream(script("noaccept\nprompt 500\naccept\n$lines", n => 3,
                              seed => 100), head => 0);

    wait_until(sub { live() eq $live }, 10, "$name: $live calls");

    $s->read_head() if $contents;

    while ($contents || $ends) {
        my $j = $s->next_event()->{json}{choices}[0];
        $contents -= length($j->{delta}{content} // '');
        $ends-- if $j->{finish_reason};
    }

    $s->close();
    idle($name);
    is($t->metrics->{'dsa_cancelled_total{reason="client"}'}, $cancels + 1,
       "$name: cancelled once");
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10,
               "$name: nothing in flight");
    charged($name, 1, @tokens);
}

leave('before the first token', "hold\n", 1, 0, 0, 500, 0, 0);
leave('after tokens of all', "t a\nhold\n", 3, 3, 0, 500, 0, 3);
leave('before tokens of the others', "only 100 t a\nhold\n", 3, 1, 0,
      500, 0, 1);
leave('after the end of the first', "t a\nonly 100 done stop\nhold\n", 2, 3, 1,
      500, 0, 4);
leave('after the end of the others', "t a\nonly 100 hold\n", 1, 3, 2,
      500, 0, 5);

$s = $t->connect();
$s->send_request('POST', $chat, body => json_encode(
                 script("prompt 500\nt a\nhold\n", n => 8)));
wait_until(sub { live() eq '8' }, 10, 'all choices');
$s->reset();
idle('not streamed');
charged('not streamed', 1, 500, 0, 8);

$s = $t->stream(script("prompt 500\nt a\nwait\nt b\n", n => 2),
                uri => '/ignore/chat/completions');
$s->next_event() for 1 .. 4;
$s->close();
ctl($fake, 'go 2');
logged('200 500 0 6 0 stop');
idle('dsa_ignore_client_abort');
charged('dsa_ignore_client_abort: the answer goes on', 1, 500, 0, 6);


# One choice fails.

for my $of (100, 101) {
    my $fails = "noaccept\nprompt 500\naccept\nt a\nonly $of wait\n"
                . "only $of error internal x\nhold\n";

    $s = $t->stream(script($fails, n => 3, seed => 100));
    $s->next_event() for 1 .. 6;
    ctl($fake, 'go');
    my $of_choice = split_choices(@events = $s->events);

    is(join(' ', map { $_->{json}{error}{message} }
                 @{ $of_choice->{error} }), 'The engine failed.',
       "$of fails: one error in the stream");
    idle("$of fails");
    charged("$of fails", 1, 500, 0, 3);

    ctl($fake, 'go');
    $r = $t->post($chat, script($fails, n => 3, seed => 100));
    is($r->{status}, 500, "$of fails, in one piece");
    idle("$of fails, in one piece");

    # nothing was sent, so that the client may repeat the request

    logged('500 0 0 0 0 error');
    charged("$of fails, in one piece", 0, 0, 0, 0);
}

$r = $t->post($chat, script("noaccept\nerror invalid x\n", n => 3));
is($r->{status}, 500, 'the first fails before a token');
idle('the first fails before a token');


# the values that are accepted

for my $uri ($chat, $text) {
    my %body = $uri eq $chat ? %{ ask('x') }
                             : (model => 'deepseek-chat', prompt => 'x');

    for ([ 0, 'Invalid n value, the valid range of n is [1, 8]' ],
         [ 9, 'Invalid n value, the valid range of n is [1, 8]' ],
         [ -1, 'Invalid n value, the valid range of n is [1, 8]' ],
         [ '"2"', "$type string \"2\", expected an integer" ],
         [ 1.5, "$type floating point `1.5`, expected an integer" ],
         [ 'true', "$type boolean `true`, expected an integer" ])
    {
        my ($n, $message) = @$_;
        my $r = $t->post($uri, json_encode(\%body) =~ s/\{/{"n":$n,/r);

        is($r->{status}, 400, "$uri: n $n");
        is($r->{json}{error}{param}, 'n', "$uri: n $n: the field");
        is($r->{json}{error}{message}, $message, "$uri: n $n: the message");
    }

    for (1, 8, '2.0') {
        my $r = $t->post($uri, json_encode(\%body) =~ s/\{/{"n":$_,/r);

        is(join(' ', map { $_->{index} } @{ $r->{json}{choices} }),
           join(' ', 0 .. $_ - 1), "$uri: n $_");
    }
}

$r = $t->post('/v1/conversations', {});
my $conversation = $r->{json}{id};

$r = $t->post($chat, ask('x', n => 2, conversation => $conversation));
is($r->{status}, 400, 'n with a conversation');
is($r->{json}{error}{message}, 'n: a conversation stores one answer to each '
   . 'turn; expected 1, or a request without conversation', 'its message');


# streamed and in one piece

my ($c, $usage) = both('three', script("cached 7\n$three", n => 3,
                                       seed => 100), 3);

is(join(' ', map { $_->{message}{content} } @$c), 'ab c def',
   'the seed of each choice is that of the request plus its index');
is_deeply([ @$usage{qw/ completion_tokens prompt_cache_hit_tokens /} ],
          [ 9, 7 ], 'usage: all tokens of choices, and the prompt once');
is($usage->{prompt_tokens}, length("!fake\ncached 7\n$three") + 4,
   'the prompt once');

($c, $usage) = both('thinking', script("only 100 T r1|r2|</think>|c\n"
    . "only 101 T q|</think>|d\n", n => 2, seed => 100,
    model => 'deepseek-reasoner', logprobs => $true, top_logprobs => 2), 2);

is(join(' ', map { "$_->{message}{reasoning_content}:"
                   . $_->{message}{content} } @$c), 'r1r2:c q:d',
   'each choice has its reasoning');
is($usage->{completion_tokens_details}{reasoning_tokens}, 5,
   'reasoning of all choices, with its last tokens');
is(join(' ', map { scalar @{ $_->{logprobs}{reasoning_content} } } @$c), '3 2',
   'logprobs of each');

my $dsml = "\x{ff5c}DSML\x{ff5c}";
my $call = tokens("\\n\\n<${dsml}function_calls>\\n<${dsml}invoke "
                  . "name=\"f\">\\n<${dsml}parameter name=\"a\" "
                  . "string=\"true\">A</${dsml}parameter>\\n"
                  . "</${dsml}invoke>\\n"
                  . "</${dsml}function_calls>");
my @tools = (tools => [ { type => 'function', function => { name => 'f' } } ]);

my ($called, undef, $events) =
    both('tools', script("only 100 $call\nonly 101 T no\n"
                         . "only 102 ${\ ($call =~ s/A/B/r)}\n",
                         n => 3, seed => 100, @tools), 3);

is(join(' ', map { $_->{finish_reason} } @$called),
   'tool_calls stop tool_calls', 'reasons of each choice');

my @ids = map { ($_->{json}{choices}[0]{delta}{tool_calls} || [{}])->[0]{id}
                // () } grep { $_->{json} } @$events;

is(scalar(@ids), 2, 'two calls');
isnt(substr($ids[0], -22), substr($ids[1], -22), 'with ids of their own');

($c) = both('ends', script("T ab\nonly 101 done length\nT cd\n", n => 2,
                           seed => 100, stop => [ 'xyz' ]), 2);
is(join(' ', map { "$_->{message}{content}:$_->{finish_reason}" } @$c),
   'abcd:stop ab:length', 'one choice reaches a limit');

($c) = both('empty', script("done stop\n", n => 2), 2);
is(join(' ', map { $_->{message}{content} } @$c), ' ', 'no text at all');


# include_usage: null until the last chunk

@events = $t->stream(script($three, n => 3, seed => 100,
                        stream_options => { include_usage => $true }))->events;
is(join(' ', map { $_->{json}{usage} ? 'u' : exists $_->{json}{usage} ? 'n'
                   : 'none' } grep { $_->{json} } @events),
   join(' ', ('n') x 8, 'u'), 'include_usage');


# text completions

my %prompt = (model => 'deepseek-chat', prompt => "!fake\n$three", n => 3,
              seed => 100);

$r = $t->post($text, { %prompt, echo => $true });
is_deeply([ map { "$_->{index} " . ($_->{text} =~ s/.*\n//sr) . ' '
                  . $_->{finish_reason} } @{ $r->{json}{choices} } ],
          [ '0 ab stop', '1 c stop', '2 def stop' ], 'a text completion');
is(scalar(grep { index($_->{text}, $prompt{prompt}) == 0 }
          @{ $r->{json}{choices} }), 3, 'echo in each choice');

$r = $t->post($text, { %prompt, logprobs => 1 });
is(join(' ', map { scalar @{ $_->{logprobs}{tokens} } }
             @{ $r->{json}{choices} }), '2 1 3', 'logprobs of each');

for my $more ({}, { echo => $true }) {
    my $s = $t->stream({ %prompt, %$more }, uri => $text);
    my %got;

    @events = $s->events;

    for my $e (map { $_->{json} || () } @events) {
        my $one = $e->{choices}[0];

        $got{ $one->{index} }{text} .= $one->{text};
        $got{ $one->{index} }{end} .= $one->{finish_reason} // '';
    }

    my $echo = $more->{echo} ? $prompt{prompt} : '';

    is_deeply(\%got, { 0 => { text => "${echo}ab", end => 'stop' },
                       1 => { text => "${echo}c", end => 'stop' },
                       2 => { text => "${echo}def", end => 'stop' } },
              'a streamed text completion');
    is($events[-1]{data}, '[DONE]', 'its end');
    is($events[-2]{json}{usage}{completion_tokens}, 9, 'its usage');
}


# Reasoning of each choice is retained with the calls of that choice.

my @sampled = map { "think $_|</think>|" . ($call =~ s/^T //r) } 'a', 'b';
my $user = { role => 'user', content => "!fake\nonly 100 T $sampled[0]\n"
                                        . "only 101 T $sampled[1]\n" };

for my $stream (0, 1) {
    my %request = (model => 'deepseek-reasoner', messages => [ $user ],
                   n => 2, seed => 100, @tools);
    my @got;

    if ($stream) {
        my $of = split_choices($t->stream(\%request)->events);
        @got = map { DSA::HTTP->gather(@{ $of->{$_} })->{tool_calls}[0]{id} }
                   0, 1;
    } else {
        $r = $t->post($chat, \%request);
        @got = map { $_->{message}{tool_calls}[0]{id} }
                   @{ $r->{json}{choices} };
    }

    for my $i (0, 1) {
        $t->post($chat, { %request, n => 1, messages => [
            $user,
            { role => 'assistant', content => '', tool_calls => [
                { id => $got[$i], type => 'function',
                  function => { name => 'f', arguments => '{"a": "A"}' } } ] },
            { role => 'tool', tool_call_id => $got[$i], content => 'x' } ] });

        my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*)/;
        my ($thought) = $prompt =~ /\[<think>\]think (\w)\[<\/think>\]/;

        is($thought, (qw/ a b /)[$i], "the reasoning of choice $i is restored");
    }
}


# dsa_timeout

my $short = '/short/chat/completions';

$r = $t->post($short, script("noaccept\nonly 100 accept\nonly 100 t a\nhold\n",
                             n => 3, seed => 100));
is($r->{status}, 200, 'a timeout with text in one choice');
is_deeply([ map { "$_->{message}{content}:$_->{finish_reason}" }
            @{ $r->{json}{choices} } ], [ 'a:length', ':length', ':length' ],
          'each choice ends with the text that it has');
idle('a timeout');

$r = $t->post($short, script("t a\nonly 101 hold\nt b\n", n => 3,
                             seed => 100));
is_deeply([ map { "$_->{message}{content}:$_->{finish_reason}" }
            @{ $r->{json}{choices} } ], [ 'ab:stop', 'a:length', 'ab:stop' ],
          'a timeout of one choice');

$r = $t->post($short, script("deaf\nt a\nhold\n", n => 2));
is($r->{status}, 200, 'an engine that does not cancel');
is(scalar @{ $r->{json}{choices} }, 2, 'and all choices end');
ctl($fake, 'close');
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 10, 'the session');

$r = $t->post($short, script("hold\n", n => 3));
is($r->{status}, 504, 'a timeout without a token');
idle('a timeout without a token');


# A slow client: its events grow and alternate, and then it is cancelled.

$s = $t->stream(script("r 300 " . 'w' x 100 . "\n", n => 8),
                uri => '/slow/chat/completions', rcvbuf => 4096);
my $of = split_choices($s->events);

is(join(' ', map { length DSA::HTTP->gather(@{ $of->{$_} })->{content} }
             0 .. 7), join(' ', (30000) x 8), 'much text of all choices');

$before = $t->metrics->{'dsa_cancelled_total{reason="slow"}'};
$s = $t->stream(script("r 4000 " . 'w' x 500 . "\nhold\n", n => 8,
                       max_tokens => 9000),
                uri => '/slow/chat/completions', rcvbuf => 4096, head => 0);
wait_until(sub { $t->metrics->{'dsa_cancelled_total{reason="slow"}'}
                 == $before + 1 }, 20, 'the cancel');
idle('a client that does not read');


# Slots: a request needs as many as it has choices.

my @busy = map { $t->stream(script("t a\nhold\n")) } 1 .. 12;
$_->next_event() for @busy;

$r = $t->post($chat, ask('x', n => 5));
is($r->{status}, 503, '5 choices and 4 slots');
is($r->{headers}{'retry-after'}, 1, 'try again');
is($t->post($chat, ask('x', n => 4))->{status}, 200, '4 choices and 4 slots');

# other requests use the slots before the first token

$s = $t->stream(script("wait\nt a\n", n => 4), head => 0);
wait_until(sub { live() eq '13' }, 10, 'the first choice');
push @busy, map { $t->stream(script("hold\n"), head => 0) } 1 .. 3;
wait_until(sub { live() eq '16' }, 10, 'all slots');
ctl($fake, 'go 4');
$s->read_head();
$of = split_choices($s->events);
is(join(' ', map { "$_:" . DSA::HTTP->gather(@{ $of->{$_} })->{content} }
             sort keys %$of), '0:a 1:a 2:a 3:a',
   'choices wait for the end of the first');

$_->close() for @busy;
idle('slots');

# an engine that rejects a choice

my $rejects = "only 100 t a\nonly 100 wait\nonly 102 noaccept\n"
              . "only 102 error overloaded x\nt b\n";

sub ends { scalar grep { /^done/ } finished($fake) }

my $ends = ends();

$s = $t->stream(script($rejects, n => 3, seed => 100));
wait_until(sub { ends() == $ends + 1 }, 10, 'another choice');
ctl($fake, 'go');
@events = $s->events;
$of = split_choices(@events);
is(DSA::HTTP->gather(@{ $of->{0} })->{content}, 'ab',
   'an engine rejects a choice: another one goes on');
like($of->{error}[0]{json}{error}{message}, qr/are busy; try again later/,
     'and at its end there is an error');
is(scalar @{ $of->{error} }, 1, 'once');
idle('an engine rejects a choice');


# The engine dies.

for my $lines ("t a\nhold\n", "only 100 t a\nhold\n",
               "noaccept\nonly 100 accept\nonly 100 t a\nhold\n")
{
    $s = $t->stream(script($lines, n => 3, seed => 100));
    $s->next_event() for 1 .. 2;
    wait_until(sub { live() eq '3' }, 10, 'all choices');
    $fake->kill9();
    $of = split_choices($s->events);
    is(join('|', map { $_->{json}{error}{message} } @{ $of->{error} }),
       'The engine went away before the answer was complete.',
       'the engine dies: one error');
    $fake->restart();
    wait_until(sub { $t->post($chat, ask('x'))->{status} == 200 }, 10,
               'service');
}

wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10,
           'nothing in flight');


# Fewer slots than choices: the choices follow one another.

my $small = DSA::Test->new('few slots');
my $two = $small->start_fake('slots=2');

$small->start_nginx(server => 'location /short/ { dsa_pass v32;
                                                dsa_timeout 4s; }');
$r = $small->post($chat, script($three, n => 8, seed => 100));
is(join(' ', map { $_->{message}{content} } @{ $r->{json}{choices} }),
   'ab c def     ', '8 choices and 2 slots');
is(scalar(submitted($two)), 8, 'each of them is submitted once');

for my $stream (0, 1) {
    my $request = script("t a\nhold\n", n => 4);
    my @choices = $stream
        ? do { my $of = split_choices($small->stream($request,
                                          uri => $short)->events);
               map { whole($_, @{ $of->{$_} }) } sort keys %$of }
        : @{ $small->post($short, $request)->{json}{choices} };

    is(join(' ', map { "$_->{message}{content}:$_->{finish_reason}" } @choices),
       'a:length a:length :length :length',
       'choices that were not submitted before the timeout are empty');
}

$small->done;


# Two engines: a choice that the first engine does not serve goes to the other.

my $pair = DSA::Test->new('two engines');
my @engines = map { $pair->start_fake('model=m') } 0, 1;

$pair->start_nginx();
wait_until(sub { $pair->metrics->{dsa_sessions} == 2 }, 10, 'both sessions');

my $long = 'x' x 5000;
$s = $pair->stream(script("wait\nt a\nwait\nt b\n$long", n => 3), head => 0);
wait_until(sub { (() = map { submitted($_) } @engines) == 1 }, 10,
           'the first choice');

my ($one) = grep { submitted($engines[$_]) } 0, 1;

ctl($engines[$one], 'go');
wait_until(sub { (() = submitted($engines[$one])) == 3 }, 10, 'the others');
pass('the other choices go to the engine that has the prompt');
ctl($engines[$one], 'go 5');
$s->read_head();
$s->events;

$s = $pair->stream(script("wait\nt a\nwait\nt b\n", n => 3), head => 0);
wait_until(sub { (() = map { submitted($_) } @engines) == 4 }, 10,
           'the first choice');
($one) = grep { ctl($engines[$_], 'live') eq '1' } 0, 1;
ctl($engines[$one], 'drain 1');
wait_until(sub { $pair->metrics->{'dsa_engine_draining{pool="v32",engine="unix:'
                 . $engines[$one]->sock . '"}'} == 1 }, 10, 'draining');
ctl($engines[$one], 'go');
wait_until(sub { ctl($engines[1 - $one], 'live') eq '2' }, 10,
           'the other engine');
ctl($engines[$one], 'go');
ctl($engines[1 - $one], 'go 4');
$s->read_head();
$of = split_choices($s->events);
is(join(' ', map { "$_:" . DSA::HTTP->gather(@{ $of->{$_} })->{content} }
             sort keys %$of), '0:ab 1:ab 2:ab',
   'an engine that drains does not get the other choices');

# an engine rejects two choices at once, and so does the other one

ctl($engines[$one], 'drain 0');
ctl($engines[$one], 'load 0 0');
ctl($engines[1 - $one], 'load 100 100');
wait_until(sub { $pair->metrics->{'dsa_engine_draining{pool="v32",engine="unix:'
                 . $engines[$one]->sock . '"}'} == 0 }, 10, 'no draining');
wait_until(sub { $pair->metrics->{'dsa_engine_requests_running{pool="v32",'
                 . 'engine="unix:' . $engines[1 - $one]->sock . '"}'} == 100
               }, 10, 'the load');

$s = $pair->stream(script("only 100 t a\nonly 101 noaccept\n"
    . "only 102 noaccept\nwait\nonly 101 error overloaded x\n"
    . "only 102 error overloaded x\nt b\n", n => 3, seed => 100));
wait_until(sub { ctl($engines[$one], 'live') eq '3' }, 10, 'all choices');
ctl($engines[$one], 'go 3');
wait_until(sub { ctl($engines[1 - $one], 'live') eq '2' }, 10,
           'the other engine');
ctl($engines[1 - $one], 'go 2');
$of = split_choices($s->events);
is(DSA::HTTP->gather(@{ $of->{0} })->{content}, 'ab',
   'engines reject two choices: the first one is complete');
is(scalar @{ $of->{error} }, 1, 'and at its end there is an error');

$pair->done;


# The engine: a choice depends on its seed only, and the prompt is found in the
# cache.  With a grammar, the tokens of backend null depend on the seed, not on
# the batch.

my $real = DSA::Test->new('engine');

$real->start_engine(conf => { backend => 'null' });
$real->start_nginx();

my %request = (model => $real->get('/v1/models')->{json}{data}[0]{id},
               messages => [ { role => 'user',
                               content => 'Once upon a time ' x 60 } ],
               response_format => { type => 'json_schema', json_schema => {
                   name => 'x', strict => $true, schema => {
                       type => 'object', required => [ 'x' ],
                       additionalProperties => JSON::PP::false,
                       properties => { x => {
                           type => 'string',
                           pattern => '^[a-z]{20}$' } } } } });

# Tokens of the prompt that engines have found in the cache.

sub hits {
    my $m = $real->metrics;
    my ($name) = grep { /^dsa_engine_cached_tokens_total/ } keys %$m;
    return $m->{$name};
}

$r = $real->post($chat, { %request, n => 4, seed => 5 });

$usage = $r->{json}{usage};

my $pages = 64 * int(($usage->{prompt_tokens} - 1) / 64);

cmp_ok($pages, '>=', 128, 'the prompt has pages');
is($usage->{prompt_cache_hit_tokens}, 0, 'the first finds nothing');
wait_until(sub { hits() == 3 * $pages }, 10, 'the hits');
pass('and each of the others finds the pages of the prompt');

my %texts = map { $_->{message}{content} => 1 } @{ $r->{json}{choices} };
my $tokens = 0;

is(scalar keys %texts, 4, 'the choices differ');

for my $k (0 .. 3) {
    my $alone = $real->post($chat, { %request, seed => 5 + $k })->{json};

    is($alone->{choices}[0]{message}{content},
       $r->{json}{choices}[$k]{message}{content},
       "choice $k is the answer to its seed");
    $tokens += $alone->{usage}{completion_tokens};
}

is($usage->{completion_tokens}, $tokens, 'tokens of all choices');

$real->done;

$t->done;
