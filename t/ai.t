# Copyright (C) The nginx-dsa authors
#
# Vercel's AI SDK (the npm package) with its providers for DeepSeek and
# Anthropic: texts, objects, forced tools, a tool loop in thinking mode, errors
# and an abort.  The demonstration model answers; where the answer matters, the
# engine is one that the test dictates.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed service /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('ai');
my $dir = installed($t, 't/ai', 'client.mjs');

$t->start_engine();
my $fake = $t->start_fake('model=fake', 'context=100000');

$t->start_nginx(
    conf => '%%GLOBALS%%
             events { }
             http { %%HTTP%%
                 dsa_pool small { engine unix:%%SOCK%%; }
                 dsa_pool fake { engine unix:%%SOCK1%%; }
                 dsa_model_alias claude-* deepseek-chat;
                 server { listen 127.0.0.1:%%PORT%%;
                     location /small/ { dsa_pass small; }
                     location /fake/ { dsa_pass fake; } } }');

my $base = 'http://127.0.0.1:' . $t->port;
my $node = service("$dir/client.mjs");
my $schema = { type => 'object', properties => { a => { type => 'integer' } },
               required => ['a'], additionalProperties => JSON::PP::false };
my @tools = (tools => [ [ get => { type => 'object', properties =>
                                   { city => { type => 'string' } } } ] ]);


sub client { return @{ $node->("$base/$_[0]/v1", $_[1]) } }


# A script in which the engine calls a tool.

sub city { return tool_calls([ 'get', 'city', 'true', @_ ]) }


# the small model: both ways of an answer are the same

my $model = wait_until(sub { $t->get('/small/models')->{json}{data}[0]{id} },
                       20, 'the engine to be reached');
my @providers = qw/ deepseek anthropic /;

my @small = client(small => [ map {
    my $provider = $_;
    map { [ $provider, $_, { model => $model, prompt => 'Once upon a time',
                             system => 'You answer in rhymes.',
                             temperature => 0, maxOutputTokens => 30 } ]
    } qw/ generate stream / } @providers ]);

for my $provider (@providers) {
    my ($whole, $stream) = splice @small, 0, 2;

    is($whole->{error}, undef, "$provider: an answer of the small model")
        or diag(json_encode($whole));

    # GLM thinks unless a request switches it off, and takes more tokens for it

    ok(length $whole->{text} > 0, "$provider: it has text")
        if DSA::Test::family() ne 'glm';

    is($stream->{got}{deltas}, $whole->{text}, "$provider: the same in deltas");

    my $n = $whole->{usage}{outputTokens};

    cmp_ok($n, '<=', 30, "$provider: no more than maxOutputTokens");
    is($whole->{finish}, $n < 30 ? 'stop' : 'length', "$provider: finish");
    is($stream->{$_}, $whole->{$_}, "$provider: $_, streamed")
        for qw/ text finish /;
    is($stream->{usage}{$_}, $whole->{usage}{$_}, "$provider: $_, streamed")
        for qw/ inputTokens outputTokens totalTokens /;
}


# Without a setting the provider for Anthropic sends a max_tokens of 4,096, all
# of this model's context, or of a known name more.

for my $name ($model, 'claude-sonnet-4-5') {
    for my $got (client(small => [ map {
        [ anthropic => $_, { model => $name, prompt => 'Say hello.',
                             temperature => 0, stopSequences => [ '.' ] } ]
    } qw/ generate stream / ]))
    {
        is($got->{error}, undef, "$name: max_tokens by default")
            or diag(json_encode($got));
        like($got->{finish}, qr/^(?:stop|length)$/, "$name: its end");
    }
}


# Objects.  The providers constrain them differently: DeepSeek's by JSON mode,
# Anthropic's by a tool that it forces, or by the schema.

my @objects = qw/ object streamObject oldObject oldStreamObject /;
my %object = (
    deepseek => [ "!fake\nT {\"a\"|: |4|2}", '{"type":"json_object"}' ],
    anthropic => [ "!fake\n" . tool_calls([ 'json', 'a', 'false', '42' ]),
                   '{"type":"tools","syntax":"dsml","calls":"one","text":false,'
                   . '"tools":[{"name":"json","strict":false,"parameters":'
                   . '{"additionalProperties": false, "properties": {"a": '
                   . '{"type": "integer"}}, "required": ["a"], "type": '
                   . '"object"}}]}' ]);

my ($by_schema) = client(fake => [ [ 'anthropic', 'object', {
    model => 'fake', schema => $schema, prompt => $object{deepseek}[0],
    providerOptions => { anthropic => {
        structuredOutputMode => 'outputFormat' } } } ] ]);
is_deeply($by_schema->{object}, { a => 42 }, 'anthropic: by the schema')
    or diag(json_encode($by_schema));
like((submitted($fake))[-1], qr/ grammar=\{"type":"json_schema",.*"a"/,
     'anthropic: constrained by the schema');

my @got = client(fake => [ map {
    my $provider = $_;
    map { [ $provider, $_, { model => 'fake', schema => $schema,
                             prompt => $object{$provider}[0] } ] } @objects
} @providers ]);
my @sent = submitted($fake);

shift @sent;
is(scalar @sent, @providers * @objects, 'the engine got the requests');

for my $provider (@providers) {
    for my $command (@objects) {
        my $got = shift @got;
        my ($grammar) = shift(@sent) =~ / grammar=(.*)/;

        is_deeply($got->{object}, { a => 42 }, "$provider: $command")
            or diag(json_encode($got));
        cmp_ok($got->{partial}, '>', 0, "$provider: $command, in parts")
            if $command =~ /stream/i;
        is($grammar, $object{$provider}[1], "$provider: $command, constrained");
    }
}


# forced tools

my @forced = map { my $p = $_; map { [ $p, $_ ] } 'required',
                   { type => 'tool', toolName => 'get' } } @providers;

@got = client(fake => [ map {
    [ $_->[0], 'generate', { model => 'fake', toolChoice => $_->[1], @tools,
                             results => ['x'],
                             prompt => "!fake\n" . city('Oslo') } ]
} @forced ]);
@sent = (submitted($fake))[-@forced .. -1];

for (@forced) {
    my ($provider, $choice) = @$_;
    my $name = $provider . ': ' . (ref $choice ? 'a named tool' : $choice);
    my $got = shift @got;

    is_deeply($got->{steps}[0]{calls}, [ [ get => { city => 'Oslo' } ] ], $name)
        or diag(json_encode($got));
    is($got->{finish}, 'tool-calls', "$name: finish");
    like(shift @sent, qr/ grammar=\{"type":"tools",.*"name":"get"/,
         "$name: constrained");
}


# three rounds of tools in thinking mode

my %loop = (
    model => 'fake', steps => 4, reasoning => 'high', @tools,
    prompt => "!fake\nT first|</think>\n" . city('Oslo'),
    results => [ "!fake\nT second|</think>\n" . city('Bergen'),
                 "!fake\nT third|</think>\n" . city('Bodo'),
                 "!fake\nT last|</think>|Cold." ]);
my @loops = map { my $p = $_; map { [ $p, $_, \%loop ] } qw/ generate stream / }
                @providers;

@got = client(fake => \@loops);
@sent = (submitted($fake))[ map { $_ * 4 - @loops * 4 + 3 } 0 .. $#loops ];

my %prompts;

for (@loops) {
    my $name = "$_->[0], $_->[1]: a tool loop";
    my $got = shift @got;

    is_deeply([ map { [ $_->{reasoning}, @{ $_->{calls} }
                        ? $_->{calls}[0][1]{city} : $_->{text},
                        $_->{finish} ] } @{ $got->{steps} } ],
              [ [qw/ first Oslo tool-calls /], [qw/ second Bergen tool-calls /],
                [qw/ third Bodo tool-calls /], [qw/ last Cold. stop /] ], $name)
        or diag(json_encode($got));

    my ($prompt) = shift(@sent) =~ / prompt=(.*)$/;

    is(join('', $prompt =~ m{>(Oslo|Bergen|Bodo)</\[}g), 'OsloBergenBodo',
       "$name: the last prompt has all calls");
    is(join('', $prompt =~ /(first|second|third)\[<\/think>\]/g),
       'firstsecondthird', "$name: and the reasoning before each of them");
    $prompts{$prompt} = 1;
}

is(scalar keys %prompts, 1, 'both providers have the same prompt');


# errors, before the answer and within it

my @errors = (
    [ 'a bad value', 400, 0, 'deepseek', prompt => 'x', temperature => 9 ],
    [ 'no such model', 404, 0, 'both', prompt => 'x', model => 'none' ],
    [ 'an engine that fails', 500, 1, 'both', ctl => $fake->sock . '.ctl',
      prompt => "!fake\nt a\nwait\nerror internal x" ],
    [ 'a busy engine', 503, 1, 'both',
      prompt => "!fake\nnoaccept\nerror overloaded x" ]);

for (@errors) {
    my ($name, $status, $retryable, $of, %more) = @$_;
    my @jobs = map { my $p = $_; map { [ $p, $_, { model => 'fake', %more } ] }
                     $status == 500 ? 'stream' : qw/ generate stream / }
                   $of eq 'both' ? @providers : $of;
    my @got = client(fake => \@jobs);

    for (@jobs) {
        my $got = shift @got;

        is($got->{error}, $status == 500 ? 'AI_StreamProviderError'
                                         : 'AI_APICallError',
             "$_->[0], $_->[1], $name: exception") or diag(json_encode($got));
        is($got->{status}, $status, "$_->[0], $_->[1], $name: status");
        ok(!$got->{retryable} == !$retryable,
           "$_->[0], $_->[1], $name: may be repeated or not");
    }
}


# a client that leaves

for my $provider (@providers) {
    my $before = () = cancelled($fake);
    my ($got) = client(fake => [ [ $provider, 'abort', { model => 'fake',
        prompt => "!fake\nt a\ncancel\nt b" } ] ]);

    is($got->{text}, 'a', "$provider: the text before an abort")
        or diag(json_encode($got));
    ok($got->{aborted}, "$provider: an abort");
    ok(wait_until(sub { cancelled($fake) > $before }, 20, 'the cancel'),
       "$provider: the engine gets a cancel");
}

$t->done;
