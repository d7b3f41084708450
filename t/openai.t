# Copyright (C) The nginx-dsa authors
#
# OpenAI's own client (the npm package), streaming and not, and plain curl:
# all get the same answer, and errors as the client's own exceptions.

use strict;
use warnings;

use lib 't/lib';
use DSA::Node qw/ installed service /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('openai');
my $dir = installed($t, 't/openai', 'client.mjs');

$t->start_engine();
$t->start_nginx();

my $base = 'http://127.0.0.1:' . $t->port . '/v1';
my $node = service("$dir/client.mjs", $base);

my $list = client('models')->{list};

ok($list && @$list > 0, 'models are listed');

my $model = $list->[0];
my @messages = ({ role => 'system', content => 'You answer in rhymes.' },
                { role => 'user', content => 'Once upon a time, caf' .
                                             chr(0xe9) });

for my $case (
    [ 'greedy', { temperature => 0, max_tokens => 40 } ],
    [ 'seeded', { temperature => 0.9, seed => 8, max_tokens => 40 } ],
    [ 'one token', { temperature => 0, max_tokens => 1 } ],
    [ 'thinking', { seed => 8, max_tokens => 24,
                    thinking => { type => 'enabled' } } ])
{
    my ($name, $args) = @$case;

    my $request = { model => $model, messages => \@messages, %$args };

    my $whole = client('chat', $request);
    my $stream = client('stream', $request);
    my $curl = curl($request);
    my $events = curl({ %$request, stream => JSON::PP::true });

    is($whole->{error}, undef, "$name: answered")
        or diag($whole->{message});
    is($whole->{object}, 'chat.completion', "$name: object");
    is($stream->{object}, 'chat.completion.chunk', "$name: chunk's object");
    is($whole->{role}, 'assistant', "$name: role");
    is($stream->{role}, 'assistant', "$name: role in the stream");

    my $n = $whole->{usage}{completion_tokens};

    ok($n > 0 && $n <= $args->{max_tokens}, "$name: no more than max_tokens");
    is($whole->{finish}, $n < $args->{max_tokens} ? 'stop' : 'length',
       "$name: finish_reason");
    ok(length(($whole->{content} || '') . ($whole->{reasoning} || '')) > 0,
       "$name: there is text");

    my $message = json_decode($curl)->{choices}[0]{message};
    my $sum = sum($events);

    for my $key (qw/ content reasoning /) {
        my $field = $key eq 'content' ? $key : "${key}_content";
        my $want = defined $whole->{$key} ? $whole->{$key} : '';

        for ([ 'the stream', $stream->{$key} ],
             [ 'curl', $message->{$field} ],
             [ 'curl, streaming', $sum->{$field} ])
        {
            is(defined $_->[1] ? $_->[1] : '', $want,
               "$name: $key is the same by $_->[0]");
        }
    }

    is($stream->{finish}, $whole->{finish}, "$name: finish_reason, streamed");
    is($stream->{usage}{total_tokens}, $whole->{usage}{total_tokens},
       "$name: usage, streamed");
    is($sum->{done}, 1, "$name: one [DONE]");
}

# Several choices, which the client's helper joins from the chunks of a stream.
# It leaves out reasoning, which GLM begins with.

my @plain = DSA::Test::family() eq 'glm'
            ? (thinking => { type => 'disabled' }) : ();

for my $command (qw/ choices choicesStream /) {
    my $got = client($command, { model => $model, messages => \@messages,
                                 @plain, n => 3, seed => 7, temperature => 0.9,
                                 max_tokens => 12,
                                 ignore_eos => JSON::PP::true });
    my @choices = @{ $got->{choices} || [] };

    is_deeply([ map { $_->{index} } @choices ], [ 0 .. 2 ],
              "$command: three choices") or diag(json_encode($got));
    is_deeply([ map { $_->{finish_reason} } @choices ], [ ('length') x 3 ],
              "$command: finish_reason");
    is($got->{usage}{completion_tokens}, 36, "$command: usage");

    my %texts = map { $_->{message}{content} => 1 } @choices;

    is(scalar keys %texts, 3, "$command: three texts");
}

# text completions

for my $case (
    [ 'greedy', { temperature => 0, max_tokens => 30 } ],
    [ 'seeded', { temperature => 0.9, seed => 7, max_tokens => 20 } ],
    [ 'logprobs', { seed => 7, max_tokens => 8, logprobs => 3 } ],
    [ 'echo', { seed => 7, max_tokens => 8, echo => JSON::PP::true } ],

    # GLM has no tokens for this

    DSA::Test::family() eq 'glm' ? ()
    : [ 'fill in the middle', { seed => 7, max_tokens => 8,
                                suffix => ' the end.' } ])
{
    my ($name, $args) = @$case;

    my $request = { model => $model, prompt => 'Once upon a time, caf'
                                               . chr(0xe9), %$args };

    my $whole = client('completion', $request);
    my $stream = client('completionStream', $request);

    is($whole->{object}, 'text_completion', "$name: a completion")
        or diag(json_encode($whole));
    is_deeply($stream, $whole, "$name: streamed");
    ok(length $whole->{text} > 0, "$name: there is text");

    my $n = $whole->{usage}{completion_tokens};

    is($whole->{finish}, $n < $args->{max_tokens} ? 'stop' : 'length',
       "$name: finish_reason");

    if ($args->{echo}) {
        is(index($whole->{text}, $request->{prompt}), 0,
           "$name: the prompt stands first");
    }

    my $l = $whole->{logprobs} or next;

    is(scalar @{ $l->{$_} }, $n, "$name: $_ of every token") for sort keys %$l;
    is(join('', grep { !/^bytes:/ } @{ $l->{tokens} }),
       $whole->{text}, "$name: the tokens are the text")
        if !grep { /^bytes:/ } @{ $l->{tokens} };
    is(scalar(grep { keys %$_ < 3 || keys %$_ > 4 } @{ $l->{top_logprobs} }),
       0, "$name: 3 alternatives and the sampled one");
    is_deeply([ map { substr $whole->{text}, $l->{text_offset}[$_],
                             length $l->{tokens}[$_] } 0 .. $n - 1 ],
              $l->{tokens}, "$name: text_offset")
        if !grep { /^bytes:/ } @{ $l->{tokens} };
}

my $one = client('model', { id => $model });

is($one->{id}, $model, 'models.retrieve');
ok($one->{context_length} > 0, 'its context length');

my $e = client('model', { id => "no-$model" });

is($e->{error}, 'NotFoundError', 'unknown model: exception')
    or diag(json_encode($e));

$e = client('completion', { model => $model, prompt => [1, 2] });

is($e->{error}, 'BadRequestError', 'token ids: exception');
is($e->{param}, 'prompt', 'token ids: the field');

$e = client('chat', { model => "no-$model", messages => \@messages });

is($e->{error}, 'NotFoundError', 'unknown model: exception')
    or diag(json_encode($e));
is($e->{param}, 'model', 'unknown model: the field');

for my $command (qw/ chat stream /) {
    $e = client($command, { model => $model, messages => \@messages,
                            temperature => 'hot' });

    is($e->{error}, 'BadRequestError', "$command, bad field: exception");
    is($e->{param}, 'temperature', "$command, bad field: its name");
}

$t->done;


sub client {
    my ($command, $args) = @_;

    return $node->($command, $args || {});
}


sub curl {
    my ($args) = @_;

    open my $fh, '-|', 'curl', '-sSN', '-m', '120', '-H',
         'Content-Type: application/json', '-d', json_encode($args),
         "$base/chat/completions" or die "curl: $!\n";
    local $/;
    my $out = <$fh>;
    close $fh;

    return $out;
}


# The events of a stream that curl has saved.

sub sum {
    my ($text) = @_;

    return DSA::HTTP->gather(map {
        my $data = $_ =~ s/^data: //r;
        { data => $data, json => $data =~ /^\{/ ? json_decode($data) : undef }
    } grep { /^data: / } split /\n\n/, $text);
}
