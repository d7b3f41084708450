# Copyright (C) The nginx-dsa authors
#
# Anthropic's own client (the npm package): messages, streams, a tool loop in
# thinking mode, the count of tokens, errors, and an abort.  The demonstration
# model answers; where the answer matters, the engine is one that the test
# dictates.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed service /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('anthropic-sdk');
my $dir = installed($t, 't/anthropic', 'client.mjs');

my $engine = $t->start_engine();
my $fake = $t->start_fake('model=fake', 'context=100000');

$t->start_nginx(
    conf => '%%GLOBALS%%
             events { }
             http { %%HTTP%%
                 dsa_pool small { engine unix:%%SOCK%%; }
                 dsa_pool fake { engine unix:%%SOCK1%%; }
                 server { listen 127.0.0.1:%%PORT%%;
                     location /anthropic/ { dsa_pass small; }
                     location /fake/ { dsa_pass fake; }
                     location /models { dsa_pass small; } } }');

my $node = service("$dir/client.mjs", 'http://127.0.0.1:' . $t->port);
my $model = wait_until(sub { $t->get('/models')->{json}{data}[0]{id} }, 20,
                       'the engine to be reached');
my $true = JSON::PP::true;


sub client { return $node->(@_) }


# signatures and ids of calls are random

sub same {
    my ($m) = @_;

    for my $b (@{ $m->{content} }) {
        delete $b->{id};
        like(delete $b->{signature}, qr/^dsa1[0-9a-f]{32}$/, 'a signature')
            if $b->{type} eq 'thinking';
    }

    delete $m->{got};
    delete $m->{usage}{$_} for qw/ input_tokens cache_read_input_tokens /;

    return $m;
}


# the small model

# GLM thinks unless a request switches it off, and takes more tokens for it

my @plain = DSA::Test::family() eq 'glm'
            ? (thinking => { type => 'disabled' }) : ();
my @system = (system => [
    { type => 'text', text => "x-anthropic-billing-header: cch=1;" },
    { type => 'text', text => 'You answer in rhymes.',
      cache_control => { type => 'ephemeral' } } ]);
my @messages = ({ role => 'user', content => 'Once upon a time, caf' .
                                             chr(0xe9) });

for (
    [ 'greedy', temperature => 0, max_tokens => 40 ],
    [ 'one token', temperature => 0, max_tokens => 1 ],
    [ 'nothing sampled', top_p => 0.000001, max_tokens => 30 ])
{
    my ($name, @more) = @$_;

    my %request = (model => $model, messages => \@messages, @system, @plain,
                   @more);

    my $whole = client('anthropic', 'create', \%request);
    my $stream = client('anthropic', 'stream', \%request);
    my $n = client('anthropic', 'count', { model => $model,
                                           messages => \@messages, @system,
                                           @plain });

    is($whole->{error}, undef, "$name: answered") or diag($whole->{message});
    is($whole->{type}, 'message', "$name: type");
    is($whole->{role}, 'assistant', "$name: role");

    for my $m ($whole, $stream) {
        is($m->{usage}{input_tokens} + $m->{usage}{cache_read_input_tokens},
           $n->{input_tokens}, "$name: the count is that of the prompt");
    }

    is($stream->{got}{text}, $whole->{content}[0]{text}, "$name: its text");
    cmp_ok($whole->{usage}{output_tokens}, '<=', $request{max_tokens},
           "$name: no more than max_tokens");
    is($whole->{stop_reason}, $whole->{usage}{output_tokens}
                              < $request{max_tokens} ? 'end_turn'
                                                     : 'max_tokens',
       "$name: stop_reason");
    is_deeply(same($stream), same($whole), "$name: streamed and whole");
}

# a stop sequence, taken from what the model says

my %greedy = (model => $model, messages => \@messages, @system, @plain,
              temperature => 0, max_tokens => 40);
my $said = client('anthropic', 'create', \%greedy)->{content}[0]{text};
my $stop = substr $said, length($said) / 2, 3;

for my $command (qw/ create stream /) {
    my $m = client('anthropic', $command,
                   { %greedy, stop_sequences => [ "no$said", $stop ] });

    is($m->{stop_reason}, 'stop_sequence', "$command: stop_reason");
    is($m->{stop_sequence}, $stop, "$command: the stop sequence");
    is($m->{content}[0]{text} // '', substr($said, 0, index $said, $stop),
       "$command: the text before it");
}


my ($one, $two) = map {
    $system[1][0]{text} = "x-anthropic-billing-header: cch=$_;" x $_;
    client('anthropic', 'count', { model => $model, messages => \@messages,
                                   @system })->{input_tokens}
} 1, 2;
cmp_ok($one, '>', 0, 'a prompt has tokens');
is($two, $one, 'a billing header has none');


# errors

for my $command (qw/ create stream count /) {
    my $e = client('anthropic', $command,
                   { model => "no-$model", max_tokens => 1,
                     messages => \@messages });

    is($e->{error}, 'NotFoundError', "$command, unknown model: exception")
        or diag(json_encode($e));
    is($e->{type}, 'not_found_error', "$command: its type");
    like($e->{request_id}, qr/^(?:msg|req)_[0-9a-f]{32}$/, "$command: an id");
    is($e->{body}{request_id}, $e->{request_id}, "$command: also in the body");

    $e = client('anthropic', $command,
                { model => $model, max_tokens => 1, messages => \@messages,
                  temperature => 'hot' });

    is($e->{error}, 'BadRequestError', "$command, bad field: exception");
    like($e->{message}, qr/temperature/, "$command, bad field: its name");
}

my $e = client('fake', 'create',
               { model => 'fake', max_tokens => 9, messages => [
                 { role => 'user',
                   content => "!fake\nnoaccept\nerror overloaded x" }] });
is($e->{error}, 'ServiceUnavailableError', 'overloaded: exception');
is($e->{type}, 'overloaded_error', 'overloaded: its type');

$e = client('fake', 'stream',
            { model => 'fake', max_tokens => 9, messages => [
              { role => 'user', content => "!fake\nt a\nerror internal x" }] });
is($e->{type}, 'api_error', 'an error within a stream') or
    diag(json_encode($e));


# three rounds of tools in thinking mode

sub call { return tool_calls([ 'get', 'city', 'true', @_ ]) }

my %loop = (
    model => 'fake', max_tokens => 4096,
    thinking => { type => 'enabled', budget_tokens => 2048 },
    tools => [{ name => 'get', description => 'D', input_schema =>
                { type => 'object', properties =>
                  { city => { type => 'string' } } } }],
    messages => [{ role => 'user',
                   content => "!fake\nT first|</think>\n" . call('Oslo') }],
    results => [ "!fake\nT second|</think>\n" . call('Bergen'),
                 "!fake\nT third|</think>\n" . call('Bodo'),
                 "!fake\nT last|</think>|Cold." ]);
my $loop = client('fake', 'tools', \%loop);

is($loop->{error}, undef, 'a tool loop') or diag(json_encode($loop));
is_deeply([ map { [ map { $_->{thinking} // $_->{text} // $_->{input}{city} }
                        @{ $_->{content} } ] } @{ $loop->{rounds} } ],
          [ [qw/ first Oslo /], [qw/ second Bergen /], [qw/ third Bodo /],
            [qw/ last Cold. /] ], 'its rounds');
is(join(' ', map { $_->{stop_reason} } @{ $loop->{rounds} }),
   'tool_use tool_use tool_use end_turn', 'and their ends');

my ($last) = (submitted($fake))[-1];
my ($prompt) = $last =~ / prompt=(.*)/;
my ($cities, $thoughts) = ('', '');
$cities .= $1 while $last =~ m{>(Oslo|Bergen|Bodo)</\[}g;
$thoughts .= $1 while $last =~ /(first|second|third)\[<\/think>\]/g;
is($cities, 'OsloBergenBodo', 'the last prompt has all calls')
    or diag($last);
is($thoughts, 'firstsecondthird', 'and the reasoning before each of them');

# the same by the client's own runner, and an answer by a schema

for my $command (qw/ runner runnerStream /) {
    my $last = client('fake', $command, \%loop);

    is($last->{error}, undef, "$command: a loop") or diag(json_encode($last));
    is(join(' ', map { $_->{city} } @{ $last->{calls} }), 'Oslo Bergen Bodo',
       "$command: its calls");
    is($last->{content}[-1]{text}, 'Cold.', "$command: its last text");
    is((submitted($fake))[-1] =~ s/.* prompt=//r,
       $prompt, "$command: the last prompt is the same");
}

my $parsed = client('fake', 'parse', {
    model => 'fake', max_tokens => 99,
    schema => { type => 'object', properties => { a => { type => 'integer' } },
                required => ['a'], additionalProperties => JSON::PP::false },
    messages => [{ role => 'user', content => "!fake\nT {\"a\"|: |4|2}" }] });
is_deeply($parsed->{parsed}, { a => 42 }, 'parse')
    or diag(json_encode($parsed));
like((submitted($fake))[-1], qr/ grammar=\{"type":"json_schema",.*"a"/,
     'parse: constrained');


# a client that leaves

my $gone = client('fake', 'abort', {
    model => 'fake', max_tokens => 100,
    messages => [{ role => 'user', content => "!fake\nt a\ncancel\nt b" }] });
is($gone->{text}, 'a', 'the text before an abort');
is($gone->{error}, 'APIUserAbortError', 'an abort');
ok(wait_until(sub { scalar cancelled($fake) }, 20, 'the cancel'),
   'the engine gets a cancel');

$t->done;
