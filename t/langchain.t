# Copyright (C) The nginx-dsa authors
#
# LangChain (the npm packages): ChatDeepSeek, and ChatOpenAI with the chat and
# with the Responses API.  Texts, tool loops in thinking mode, structured output
# in each mode, forced tools, errors and an abort.  The demonstration model
# answers; where the answer matters, the engine is one that the test dictates.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed service /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('langchain');
my $dir = installed($t, 't/langchain', 'client.mjs');

$t->start_redis();
$t->start_engine();
my $fake = $t->start_fake('model=fake', 'context=100000');

$t->start_nginx(
    conf => '%%GLOBALS%%
             events { }
             http { %%HTTP%%
                 dsa_redis %%REDIS%% timeout=10s;
                 dsa_pool small { engine unix:%%SOCK%%; }
                 dsa_pool fake { engine unix:%%SOCK1%%; }
                 server { listen 127.0.0.1:%%PORT%%;
                     location /small/ { dsa_pass small; }
                     location /fake/ { dsa_pass fake; }
                     location /off/ { dsa_pass fake; dsa_retention off; } } }');

wait_until(sub { $t->get('/fake/responses/resp_' . '0' x 32)->{status}
                 == 404 }, 20, 'Redis');

my $base = 'http://127.0.0.1:' . $t->port;
my $node = service("$dir/client.mjs");
my @classes = qw/ deepseek openai responses /;
my @tools = (tools => [ { type => 'function', function => {
                          name => 'get', description => 'D', parameters => {
                              type => 'object', properties => {
                                  city => { type => 'string' } } } } } ]);


sub client { return @{ $node->("$base/$_[0]/v1", $_[1]) } }


# A script in which the engine calls a tool.

sub city { return tool_calls([ 'get', 'city', 'true', @_ ]) }


# the small model: both ways of an answer are the same

my $model = wait_until(sub { $t->get('/small/models')->{json}{data}[0]{id} },
                       20, 'the engine to be reached');

my @small = client(small => [ map {
    my $class = $_;
    map { [ $class, $_, { model => $model, input => 'Once upon a time',
                          temperature => 0, maxTokens => 30 } ]
    } qw/ invoke stream / } @classes ]);

for my $class (@classes) {
    my ($whole, $stream) = splice @small, 0, 2;

    is($whole->{error}, undef, "$class: an answer of the small model")
        or diag(json_encode($whole));

    # GLM thinks unless a request switches it off, and takes more tokens for it

    ok(length $whole->{text} > 0, "$class: it has text")
        if DSA::Test::family() ne 'glm';

    cmp_ok($whole->{usage}{output_tokens}, '<=', 30,
           "$class: no more than maxTokens");
    cmp_ok($stream->{chunks}, '>', 1, "$class: a stream");
    is($stream->{$_}, $whole->{$_}, "$class: $_, streamed")
        for qw/ text finish /;
    is($stream->{usage}{$_}, $whole->{usage}{$_}, "$class: $_, streamed")
        for qw/ input_tokens output_tokens total_tokens /;
}


# structured output: which grammar each mode leads to

my $json = '"type": "object", "properties": {"a": {"type": "integer"';
my %modes = (
    jsonSchema => [ "!fake\nT {\"a\"|: |4|2}",
                    qr/^\{"type":"json_schema","strict":\w+,
                       "schema":\{.*\Q$json\E/x ],
    functionCalling => [ "!fake\n"
                         . tool_calls([ 'answer', 'a', 'false', '42' ]),
                         qr/^\{"type":"tools",.*"tools":\[\{"name":"answer"/ ],
    jsonMode => [ "!fake\nT {\"a\"|: |4|2}", qr/^\{"type":"json_object"\}$/ ]);

my @structured = map {
    my $class = $_;
    map {
        my $mode = $_;
        map { [ $class, structured => {
            model => 'fake', method => $mode, input => $modes{$mode}[0], %$_ } ]
        } {}, { zod => 1 }, $mode eq 'jsonMode' ? ()
                            : { strict => JSON::PP::true }
    } sort keys %modes
} @classes;

my @got = client(fake => \@structured);
my @sent = submitted($fake);

is(scalar @sent, @structured, 'the engine got the requests');

for (@structured) {
    my ($class, undef, $args) = @$_;
    my $got = shift @got;
    my ($grammar) = shift(@sent) =~ / grammar=(.*)/;
    my $name = "$class, $args->{method}" . ($args->{zod} ? ', zod' : '')
               . ($args->{strict} ? ', strict' : '');

    is_deeply($got->{object}, { a => 42 }, $name) or diag(json_encode($got));
    like($grammar, $modes{$args->{method}}[1], "$name: constrained");
    like($grammar, qr/"strict":true,"parameters":\{\Q$json\E/,
         "$name: with the schema")
        if $args->{strict} && $args->{method} eq 'functionCalling';
}


# forced tools; with the Responses API, LangChain sends no tool_choice that is a
# string

my @forced = map { my $class = $_; map { [ $class, $_ ] } 'get',
                   $class eq 'responses' ? () : 'required' } @classes;

@got = client(fake => [ map {
    [ $_->[0], 'invoke', { model => 'fake', bind => { tool_choice => $_->[1] },
                           @tools, input => "!fake\n" . city('Oslo') } ]
} @forced ]);
@sent = (submitted($fake))[-@forced .. -1];

for (@forced) {
    my $name = "$_->[0]: a forced tool, $_->[1]";
    my $got = shift @got;

    is_deeply($got->{calls}, [ [ get => { city => 'Oslo' } ] ], $name)
        or diag(json_encode($got));
    like(shift @sent, qr/ grammar=\{"type":"tools",.*"name":"get"/,
         "$name: constrained");
}


# Three rounds of tools in thinking mode.  With the chat API, LangChain does not
# send the reasoning back; it is restored unless that is off.  With the
# Responses API, it sends the items back, but shows only summaries of reasoning.

my %thinking = map {
    ($_ => { modelKwargs => $_ eq 'responses'
             ? { reasoning => { effort => 'high' } }
             : { thinking => { type => 'enabled' } } })
} @classes;
my @loops = map {
    my $class = $_;
    map { [ $class, $_, {
        model => 'fake', %{ $thinking{$class} }, @tools,
        input => "!fake\nT first|</think>\n" . city('Oslo'),
        results => [ "!fake\nT second|</think>\n" . city('Bergen'),
                     "!fake\nT third|</think>\n" . city('Bodo'),
                     "!fake\nT last|</think>|Cold." ] } ]
    } qw/ loop streamLoop /
} @classes;

my %prompts;

for my $where (qw/ fake off /) {
    my @got = client($where => \@loops);
    my @sent = (submitted($fake))[ map { $_ * 4 - @loops * 4 + 3 }
                                   0 .. $#loops ];

    for (@loops) {
        my $name = "$_->[0], $_->[1], $where: a tool loop";
        my $got = shift @got;
        my ($prompt) = shift(@sent) =~ m{</functions>\\n(.*)$};
        my $kept = $where eq 'fake' || $_->[0] eq 'responses';

        is_deeply([ map { @{ $_->{calls} } ? $_->{calls}[0][1]{city}
                                           : $_->{text} }
                        @{ $got->{rounds} } ],
                  [qw/ Oslo Bergen Bodo Cold. /], $name)
            or diag(json_encode($got));
        is_deeply([ map { $_->{reasoning} } @{ $got->{rounds} } ],
                  [qw/ first second third last /], "$name: reasoning")
            if $_->[0] ne 'responses';
        is(join('', $prompt =~ m{>(Oslo|Bergen|Bodo)</\[}g), 'OsloBergenBodo',
           "$name: the last prompt has all calls");
        is(join('', $prompt =~ /(first|second|third)\[<\/think>\]/g),
           $kept ? 'firstsecondthird' : '',
           "$name: and the reasoning before each of them, or none");
        $prompts{$prompt} = 1 if $kept;
    }
}

is(scalar keys %prompts, 1, 'kept or restored, the prompt is the same');


# Errors, before the answer and within it.  LangChain ignores the event
# response.failed, so that it reports no error of such a stream.

my @errors = (
    [ 'a bad value', 400, qr/temperature/, input => 'x', temperature => 9 ],
    [ 'no such model', 404, qr/does not exist/, input => 'x',
      model => 'none' ],
    [ 'an engine that fails', 500, qr/The engine failed/,
      input => "!fake\nerror internal x" ],
    [ 'an engine that fails later', undef, qr/The engine failed/,
      input => "!fake\nt a\nwait\nerror internal x",
      ctl => $fake->sock . '.ctl' ],
    [ 'a busy engine', 503, qr/are busy/,
      input => "!fake\nnoaccept\nerror overloaded x" ]);
my @jobs = map {
    my ($name, $status, $message, %more) = @$_;
    map {
        my $class = $_;
        map { [ $class, $_, { model => 'fake', %more }, $name, $message,
                $status ] } defined $status ? qw/ invoke stream / : 'stream'
    } defined $status ? @classes : qw/ deepseek openai /;
} @errors;

@got = client(fake => [ map { [ @$_[0 .. 2] ] } @jobs ]);

for (@jobs) {
    my ($class, $command, undef, $what, $message, $status) = @$_;
    my $name = "$class, $command, $what";
    my $got = shift @got;

    like($got->{message}, $message, "$name: exception")
        or diag(json_encode($got));
    is($got->{status}, $status, "$name: status");
}


# a client that leaves

for my $class (@classes) {
    my $before = () = cancelled($fake);
    my ($got) = client(fake => [ [ $class, 'abort', { model => 'fake',
        input => "!fake\nt a\ncancel\nt b" } ] ]);

    is($got->{text}, 'a', "$class: the text before an abort")
        or diag(json_encode($got));
    is($got->{error}, 'AbortError', "$class: an abort");
    ok(wait_until(sub { cancelled($fake) > $before }, 20, 'the cancel'),
       "$class: the engine gets a cancel");
}

$t->done;
