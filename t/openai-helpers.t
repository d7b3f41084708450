# Copyright (C) The nginx-dsa authors
#
# The helpers of OpenAI's own client (the npm package): streams that it adds up,
# answers that it parses by a schema, loops in which it runs the tools, errors
# within a stream, and aborts.  The engine is one that the test dictates.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed service /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('openai-helpers');
my $dir = installed($t, 't/openai', 'helpers.mjs');

$t->start_redis();
my $fake = $t->start_fake('context=100000');
$t->start_nginx();

wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis');

my $node = service("$dir/helpers.mjs", 'http://127.0.0.1:' . $t->port . '/v1');
my @tools = (tools => [ { type => 'function', function => {
                          name => 'get', parameters => {
                              type => 'object', properties => {
                                  city => { type => 'string' } } } } } ]);


sub client { return @{ $node->(@_) } }
sub grammar { ((submitted($fake))[-1] // '') =~ / grammar=(.*)/ ? $1 : '' }


# A script in which the engine calls a tool for each of these cities.

sub city { return tool_calls(map { [ 'get', 'city', 'true', $_ ] } @_) }


# a stream that the client adds up

my %two = %{ script("T why|</think>|It |is\\sso.\n" . city('Oslo', 'Bod'),
                    thinking => { type => 'enabled' }, @tools) };
my ($s) = client([ stream => \%two ]);
my $whole = $t->post('/v1/chat/completions', \%two)->{json};

is($s->{error}, undef, 'a stream') or diag($s->{message});
is($s->{$_}, 'It is so.', "its text: $_") for qw/ content snapshot done /;
is_deeply($s->{calls}, [ map { [ $_, 'get',
              '{"city": "' . (qw/ Oslo Bod /)[$_] . '"}' ] } 0, 1 ],
          'its calls');

my ($final, $choice) = ($s->{final}, $s->{final}{choices}[0]);
my $message = $whole->{choices}[0]{message};

is($final->{object}, 'chat.completion', 'the final completion');
is($choice->{finish_reason}, $whole->{choices}[0]{finish_reason},
   'its finish_reason');
is($choice->{message}{$_}, $message->{$_}, "its $_")
    for qw/ role content /;
is_deeply([ map { $_->{function}{arguments} }
                @{ $choice->{message}{tool_calls} } ],
          [ map { $_->{function}{arguments} } @{ $message->{tool_calls} } ],
          'its calls');
is($final->{usage}{$_}, $whole->{usage}{$_}, "its $_")
    for qw/ prompt_tokens completion_tokens total_tokens /;


# answers that are parsed by a schema

my $schema = qr/^\{"type":"json_schema","strict":true,"schema":\{.*"a"/;

for ([ 'parse', $schema ], [ 'parseStream', $schema ],
     [ 'responsesParse', $schema ])
{
    my ($command, $grammar) = @$_;
    my %request = %{ script("T {\"a\"|: |4|2}") };

    $request{input} = (delete $request{messages})->[0]{content}
        if $command eq 'responsesParse';

    my ($got) = client([ $command => \%request ]);

    is_deeply($got->{parsed}, { a => 42 }, $command)
        or diag(json_encode($got));
    like(grammar(), $grammar, "$command: constrained");
}

my ($got) = client([ parseTools => { tool_choice => 'required', %{ script(
    tool_calls([ 'get', 'a', 'false', '42' ])) } } ]);
is_deeply($got->{parsed}, { a => 42 }, 'the arguments of a strict tool')
    or diag(json_encode($got));
like(grammar(), qr/"name":"get","strict":true,"parameters":\{.*"a"/,
     'its schema is enforced');

($got) = client([ parse => { max_tokens => 2, %{ script("T {\"a\"|:\ndone "
                                                        . 'length') } } ]);
is($got->{error}, 'LengthFinishReasonError', 'an answer that is cut')
    or diag(json_encode($got));


# a loop in which the client runs the tools

for my $command (qw/ runTools runToolsStream /) {
    my ($got) = client([ $command => { %{ script(
        "T first|</think>\n" . city('Oslo', 'Bergen'),
        thinking => { type => 'enabled' }) }, results => [
            "!fake\nt wrong", "!fake\nT second|</think>\n" . city('Bod'),
            "!fake\nT third|</think>\n" . city('Moss'),
            "!fake\nT last|</think>|Cold." ] } ]);

    is($got->{final}, 'Cold.', "$command: the last answer")
        or diag(json_encode($got));
    is("@{ $got->{got} }", 'Oslo Bergen Bod Moss', "$command: the calls");
    is("@{ $got->{roles} }", 'user assistant tool tool assistant tool '
       . 'assistant tool assistant', "$command: the messages");

    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*)/;

    is(join('', $prompt =~ /(first|second|third)\[<\/think>\]/g),
       'firstsecondthird', "$command: the last prompt has all reasoning");
    is(join(' ', $prompt =~ m{>(Oslo|Bergen|Bod|Moss)</\[}g),
       'Oslo Bergen Bod Moss', "$command: and all calls");
}


# errors, before the stream and within it; an abort

my @ctl = (ctl => $fake->sock . '.ctl');
my @errors = client([ stream => { %{ ask('x') }, temperature => 9 } ],
                    [ stream => script("t a\nwait\nerror internal x", @ctl) ],
                    [ stream => script("noaccept\nerror overloaded x") ]);

is($errors[0]{error}, 'BadRequestError', 'a bad value: exception');
is($errors[0]{param}, 'temperature', 'a bad value: its name');
is($errors[1]{error}, 'APIError', 'an error within a stream: exception')
    or diag(json_encode(\@errors));
like($errors[1]{message}, qr/The engine failed/, 'its message');
is($errors[2]{error}, 'InternalServerError', 'a busy engine: exception');
is($errors[2]{status}, 503, 'a busy engine: status');

my $before = () = cancelled($fake);
($got) = client([ abort => script("t a\ncancel\nt b") ]);
is($got->{text}, 'a', 'the text before an abort') or diag(json_encode($got));
is($got->{failed}, 'APIUserAbortError', 'an abort');
ok(wait_until(sub { cancelled($fake) > $before }, 20, 'the cancel'),
   'the engine gets a cancel');

$t->done;
