# Copyright (C) The nginx-dsa authors
#
# The program of `make demo`: it streams a chat, runs the agent that plans a
# trip, constrains two answers, stays up, ends in order, and reports errors.

use strict;
use warnings;

use lib 't/lib';
use DSA::Node qw/ install /;
use DSA::Test;
use File::Spec;
use IO::Socket::INET;
use Test::More;

if ($ENV{DSA_SANITIZED}) {
    plan skip_all => 'the demo is for the stock nginx, which cannot load a '
                     . 'module with sanitizers';
}

my $t = DSA::Test->new('demo');
my $root = $DSA::Test::root;
my $chat = $t->path('demo/chat.sse');

# why the trip is not planned, if it is not

my $no_agent = install("$root/demo/agent", $t->build . '/agent');

# a build directory of its own, so that a demo that runs is left alone

symlink $t->build . "/$_", $t->path($_) or die "symlink $_: $!\n"
    for qw/ dsa-engine ngx_http_dsa_module.so /, $no_agent ? () : 'agent';

my $build = File::Spec->abs2rel($t->dir, $root);
my $n = 0;


# The demo as a process, whose output is one text.

sub demo {
    my (%env) = @_;

    my $proc = DSA::Process->start(
        name => 'demo' . $n++, argv => [ "$root/demo/run" ], dir => $t->dir,
        env => { BUILD => $build, TMPDIR => $t->dir, ONCE => '', PORT => '',
                 MODEL => '', %env });

    push @{ $t->{procs} }, $proc;

    return $proc;
}


sub listens {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                 PeerPort => $_[0]);
}


# Its exit status, when it has ended.

sub status {
    my ($proc) = @_;

    my $status = $proc->wait_end(120);

    return defined $status ? $status >> 8 : 'it runs on';
}


# Nothing runs that it started, and its sockets are gone.

sub clean {
    my ($port, $name) = @_;

    ok(!listens($port), "$name: nobody listens");
    is_deeply([ glob $t->path('dsa-demo.*') ], [], "$name: no sockets");

    # nginx and the engine start side by side, so nginx may be too early, and on
    # a busy machine Redis may need more than a second

    is_deeply([ grep { /\[(?:alert|emerg|crit|error)\]/
                       && !/connect\(\) to engine .* failed/
                       && !/Redis (?:does not answer in time|cannot be reached)/
                     }
                split /\n/, read_file($t->path('demo/error.log')) ], [],
              "$name: no error in nginx's log");
}


my $port = $t->port;
my $once = demo(ONCE => 1, PORT => $port);

is(status($once), 0, 'ONCE=1: exit status') or diag($once->output);
like($once->output,
     qr{^Open http://127\.0\.0\.1:$port/ in a browser.*^> What is 48}ms,
     'the address of the page comes first');
like($once->output, qr/^> What is 48 times 27\?$/m, 'the question');
like($once->output, qr/^\| .*\n\| 48\*27=1296\n\n.*1296/ms,
     'the thought behind a bar, and the answer');
my ($made) = $once->output =~ /^\(\d+ prompt tokens, (\d+) generated\)$/m;
cmp_ok($made || 0, '>', 50, 'in so many tokens');
like(read_file($chat), qr/^data: \{.*\n\ndata: \[DONE\]\n\n\z/s,
     'to its end');
clean($port, 'ONCE=1');

like($once->output, qr/^> What's the weather like in Lisbon\?$/m,
     'an ordinary question');
like($once->output, qr/^get_weather \{"city": ?"Lisbon"\}$/m,
     'which the model answers with a tool');
like($once->output, qr/^=\ \{.*"temperature":17\}\n\n(?:.*\n)*?
                       .*(?:light\ rain|\b17\b).*\n\n\(\d+\ prompt/mx,
     'and its result');

my ($prompt, $cached, $a_step, $cost) = $once->output
    =~ /^\((\d+)\ prompt\ tokens,\ (\d+)\ of\ them\ from\ the\ cache,\ \d+
        \ generated,\ ([\d.]+)\ in\ a\ step,\ ([\d.]+)\ USD\ at/mx;

cmp_ok($cached || 0, '>', 0, 'the second request finds the first one');
cmp_ok($cached || 0, '<', $prompt || 0, 'but not all of its prompt');
cmp_ok($a_step || 0, '>=', 1, 'tokens of a step');
cmp_ok($cost || 0, '>', 0, 'a cost');

SKIP: {
    skip("no agent: $no_agent", 2) if $no_agent && !$ENV{DSA_NO_SKIP};

    like($once->output, qr/^submit_result \{/m, 'a plan was submitted');
    like($once->output, qr/^verified$/m, 'and verified');
}

my ($call) = $once->output
             =~ /^calculate (\{.*\})\nvalid: a call of the tool/m;

is(join(' ', keys %{ json_decode($call || '{}') }), 'input',
   'tool_choice "required": a call with its argument');

my ($object) = $once->output =~ /^(\{[^{}]*\})\nvalid: JSON of the schema$/m;
my $value = json_decode($object || '{}');

is(join(' ', sort keys %$value), 'answer even size', 'JSON of a schema');
like($value->{answer}, qr/^\d{1,4}\z/, 'with a number in its range');
like($value->{size}, qr/^(?:small|large)\z/, 'one of two words');
unlike($once->output, qr/not valid/, 'nothing else');


# it stays up and serves the addresses that it prints

my $up = demo(PORT => $port);

wait_until(sub {
    die $up->output if !$up->alive;
    $up->output =~ /The server listens on/;
}, 120, 'the demo');

like($up->output, qr{^The server listens on http://127\.0\.0\.1:$port;}m,
     'says where');

my ($command) = $up->output =~ /^(  curl -N .*?)\n\n/ms;
my $answer = `$command 2>/dev/null`;

is($?, 0, 'the curl that it shows');
like($answer, qr/^data: \[DONE\]$/m, 'streams a chat');

for my $path ('/v1/models', '/readyz', '/metrics') {
    is($t->get($path)->{status}, 200, $path);
}

is($t->get('/v1/models')->{json}{data}[0]{id}, 'nginx-dsa-demo',
   'the name of its model');
like($command, qr/"model": "nginx-dsa-demo"/, 'which the curl has');

my $nothing = $t->get('/v1/');
is($nothing->{status}, 404, 'nothing is at the base URL');
like($nothing->{json}{error}{message}, qr{POST /chat/completions},
     'and the error says what there is');
like($t->get('/')->{body}, qr/<title>nginx-dsa</, 'the page is at /');
is($t->get('/status')->{json}{engines}[0]{up}, JSON::PP::true,
   'with the figures for its dashboard');
is($t->get('/models')->{status}, 200, 'a base URL without /v1');
is($t->post('/v1/chat/completions', '{}', type => 'text/plain')->{status},
   415, 'no page of another origin can use it');

my $made_by;
wait_until(sub { $made_by = $t->post('/v1/conversations', '{}');
                 $made_by->{status} != 503 }, 30, 'Redis');
is($made_by->{status}, 200, 'conversations, with Redis');

# a second demo reports that the port is in use

my $second = demo(ONCE => 1, PORT => $port);
is(status($second), 1, 'a port in use');
is($second->output, "PORT=$port: the port is in use\n",
   'is reported');

$up->signal('TERM');
is(status($up), 143, 'ended by a signal') or diag($up->output);
clean($port, 'ended');


SKIP: {
    skip("no agent: $no_agent", 6) if $no_agent && !$ENV{DSA_NO_SKIP};

    # an untrained model is served, and the trip is not planned

    my $random = demo(ONCE => 1, PORT => $port, MODEL => $t->model);

    isnt(status($random), 0, 'a model without a plan: exit status');
    unlike($random->output, qr/^verified$/m, 'which it does not hide');
    like($random->output, qr/^valid: a call.*^valid: JSON/ms,
         'but its constrained answers have their form');
    clean($port, 'another model');
}

my $none = demo(MODEL => '/nowhere');
is(status($none), 1, 'no such model');
is($none->output, "MODEL=/nowhere: no such directory\n",
   'is reported');

$t->done;
