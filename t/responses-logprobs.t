# Copyright (C) The nginx-dsa authors
#
# Logprobs of the Responses API: those that a chat with the same seed has, and
# each with the text that it belongs to.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('responses-logprobs');
my $engine = DSA::Test->new('responses-logprobs-engine');
my ($chat, $responses) = qw{ /v1/chat/completions /v1/responses };
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my @include = (include => [ 'message.output_text.logprobs' ]);

$t->start_redis();
$t->start_fake();
$t->start_nginx(redis => 'ttl=1h');
$engine->start_engine();
$engine->start_nginx();

wait_until(sub { $t->get("$responses/resp_" . '0' x 32)->{status} == 404 }, 20,
           'Redis');


# The text and the logprobs of a message of an object; all deltas and the end of
# a text in a stream.

sub part {
    my ($message) = grep { $_->{type} eq 'message' } @{ $_[0]{output} };

    return $message->{content}[0];
}

sub streamed {
    my ($server, $body) = @_;

    my @events = map { $_->{json} || () }
                 $server->stream($body, uri => $responses)->events;
    my @deltas = grep { $_->{type} eq 'response.output_text.delta' } @events;
    my ($done) = grep { $_->{type} eq 'response.output_text.done' } @events;
    my ($item) = grep { $_->{type} eq 'response.output_item.done'
                        && $_->{item}{type} eq 'message' } @events;

    return { deltas => \@deltas, done => $done, item => $item->{item},
             part => part($events[-1]{response}) };
}

# Without the bytes, which events do not have.

sub plain {
    my ($list) = @_;

    return [ map { my %e = %$_; delete $e{bytes};
                   $e{top_logprobs} = plain($e{top_logprobs})
                       if $e{top_logprobs};
                   \%e } @$list ];
}

sub tokens_of { join '|', map { $_->{token} } @{ $_[0]{logprobs} } }


# the same request of a chat, by the demonstration model

for my $top (0, 3) {
    my %more = (model => ($engine->get('/v1/models')->{json}{data}[0]{id}),
                temperature => 1, seed => 7);
    my $c = $engine->post($chat, { %more, max_tokens => 12,
        messages => [ { role => 'user', content => 'Once upon a time' } ],
        logprobs => $true, top_logprobs => $top });
    my $body = { %more, max_output_tokens => 12, input => 'Once upon a time',
                 store => $false, top_logprobs => $top, @include };
    my $r = $engine->post($responses, $body);
    my @want = @{ $c->{json}{choices}[0]{logprobs}{content} || [] };
    my $part = part($r->{json});

    cmp_ok(scalar @want, '>', 3, "top $top: tokens of a chat");

    is($part->{text}, $c->{json}{choices}[0]{message}{content},
       "top $top: the same text") or diag($r->{body});
    is_deeply($part->{logprobs}, \@want, "top $top: the same logprobs");
    is($r->{json}{top_logprobs}, $top, "top $top: repeated");
    is(scalar(grep { @{ $_->{top_logprobs} } != $top } @want), 0,
       "top $top: alternatives");

    my $s = streamed($engine, $body);

    is_deeply($s->{part}, $part, "top $top: streamed");
    is_deeply($s->{item}{content}[0], $part, "top $top: the item");
    is_deeply($s->{done}{logprobs}, plain($part->{logprobs}),
              "top $top: the end of the text");
    is_deeply([ map { @{ $_->{logprobs} } } @{ $s->{deltas} } ],
              plain($part->{logprobs}), "top $top: the deltas");
}


# what has a logprob: tokens whose text is in a message

my $call = tool_calls([ 'f', 'a', 'true', 'x' ]);
my @tools = (tools => [ { type => 'function', name => 'f' } ]);

for (
    [ 'text', "T a|b|c\n", 'a|b|c' ],
    [ 'several records', "t a\nT b|c\nt d\n", 'a|b|c|d' ],
    [ 'pieces of a character', "T a|<>\\xc3|é<>\\xa9|b\n",
      "a|\x{fffd}|\x{fffd}|b" ],
    [ 'reasoning', "T why|because|</think>|so|it\n", 'so|it',
      reasoning => { effort => 'high' } ],
    [ 'a call', "T look|here\n$call\n", 'look|here', @tools ],
    [ 'a beginning that is no call', "T a|\\n\\n|b\n", "a|\n\n|b", @tools ],
    [ 'cut', "T a|b\ndone length\n", 'a|b' ])
{
    my ($name, $lines, $want, %more) = @$_;

    my $body = { model => 'deepseek-chat', input => "!fake\n$lines", @include,
                 top_logprobs => 1, %more };
    my $r = $t->post($responses, $body);
    my $part = part($r->{json});

    is(tokens_of($part), $want, "$name: its tokens") or diag($r->{body});

    my $s = streamed($t, $body);

    is(tokens_of($s->{part}), $want, "$name: streamed");
    is(tokens_of($s->{done}), $want, "$name: the end of the text");

    # each delta has the logprobs of its text

    for my $d (@{ $s->{deltas} }) {
        my $text = join '', map { $_->{token} } @{ $d->{logprobs} };

        is($d->{delta}, $text, "$name: a delta and its tokens")
            if $text !~ /\x{fffd}/;
    }

    # what is stored

    my $stored = $t->get("$responses/$r->{json}{id}")->{json};
    is(tokens_of(part($stored)), $want, "$name: stored");
}


# an answer that is not asked for them

my $r = $t->post($responses, { model => 'deepseek-chat', input => 'x',
                               top_logprobs => 5 });
is_deeply(part($r->{json})->{logprobs}, [], 'none without include');
is($r->{json}{top_logprobs}, 5, 'but what the request had');

# a whole turn as the next input

$r = $t->post($responses, { model => 'deepseek-chat', @include, @tools,
                            input => "!fake\nT look|here\n$call\n" });
my @output = @{ $r->{json}{output} };
my ($item) = grep { $_->{type} eq 'function_call' } @output;
my $next = $t->post($responses, {
    model => 'deepseek-chat', @include, @tools, store => $false,
    input => [ { role => 'user', content => 'x' }, @output,
               { type => 'function_call_output', output => 'ok',
                 call_id => $item->{call_id} } ] });
is($next->{status}, 200, 'the output is an input') or diag($next->{body});

$next = $t->post($responses, { model => 'deepseek-chat', @include,
    previous_response_id => $r->{json}{id}, input => [
        { type => 'function_call_output', output => 'ok',
          call_id => $item->{call_id} } ] });
is($next->{status}, 200, 'and continues a stored response')
    or diag($next->{body});

my $list = $t->get("$responses/$next->{json}{id}/input_items?include%5B%5D="
                   . 'message.output_text.logprobs');
is($list->{status}, 200, 'lists accept the name') or diag($list->{body});

# a client that leaves before the end of its text

for my $n (1, 2) {             # tokens may be one event
    my $s = $t->stream({ model => 'deepseek-chat', @include,
                         input => "!fake\nT a|b\nt c\nhold\n" },
                       uri => $responses);
    $s->next_event for 1 .. 3 + $n;
    $s->reset;
}

is($t->post($responses, { model => 'deepseek-chat', @include,
                          input => 'x' })->{status}, 200,
   'clients that leave');

$engine->done;
$t->done;
