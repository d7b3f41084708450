# Copyright (C) The nginx-dsa authors
#
# The context strategy "summary": an engine writes a summary of the tool calls
# that leave a long history, and the prompt has it in their place.  The fake
# engine counts a byte of text as a token.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake qw/ ctl submitted cancelled /;
use DSA::Test;
use Encode qw/ decode_utf8 /;
use Test::More;

use constant { WINDOW => 20000, MOST => 2000 };

my $chat = '/v1/chat/completions';
my $tools = [ { type => 'function', function => { name => 'look',
                parameters => { type => 'object', properties => {} } } } ];
my $head = 'The tool calls up to this point and their results have left the '
           . 'conversation to make room. This is a summary of them:\n\n';
my $cue = 'This conversation is about to exceed the model';

my $t = DSA::Test->new('summary');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake('context=' . WINDOW);
my $alice;
my $n_scripts = 0;

$t->start_nginx(redis => 'timeout=1s', workers => 1,
                http => 'dsa_tenant $http_x_tenant;'
                        . 'log_format dsa "$dsa_context $dsa_prompt_tokens";'
                        . 'access_log %%DIR%%/dsa.log dsa;');


sub user { { role => 'user', content => $_[0] } }


# Round i of an agent: a call and a result of about 1,000 bytes.

sub round {
    my ($i, $size) = @_;

    return ({ role => 'assistant', content => '', tool_calls => [
                { id => "call_$i", type => 'function',
                  function => { name => 'look',
                                arguments => qq/{"at": "place $i"}/ } } ] },
            { role => 'tool', tool_call_id => "call_$i",
              content => "result $i " . 'x' x ($size || 1000) });
}


# The history of an agent, whose last message has the script of the answer.

sub history {
    my ($rounds, %more) = @_;

    return ({ role => 'system', content => 'You look.' },
            user($more{first} || 'Find the place.'),
            (map { round($_) } 1 .. $rounds),
            user("!fake\n" . ($more{answer} || 't the\nt \sanswer')));
}


# What the engine answers to a prompt for a summary.

sub summary {
    my ($lines) = @_;
    my $file = $t->path('script' . $n_scripts++);

    write_file($file, $lines);
    is(ctl($fake, "script $file"), 'ok', 'a script');
}


sub body {
    my ($messages, %more) = @_;

    return { model => 'deepseek-chat', tools => $tools, max_tokens => 50,
             messages => $messages,
             context_management => { strategy => 'summary' }, %more };
}


sub headers { [ 'X-Tenant' => $_[0] || 'alice' ] }


sub post {
    my ($messages, %more) = @_;
    my $tenant = delete $more{tenant};

    return $t->post($chat, body($messages, %more),
                    headers => headers($tenant));
}


# The prompts that were submitted in a piece of code, as texts.

sub prompts {
    my ($code) = @_;
    my $n = () = submitted($fake);

    $code->();

    my @all = submitted($fake);

    return map { my $line = decode_utf8($_);
                 $line =~ s/ stop=.*//;
                 $line =~ s/^.* prompt=//; $line } @all[$n .. $#all];
}


sub heads {
    my ($code) = @_;
    my $n = () = submitted($fake);

    $code->();

    my @all = submitted($fake);

    return @all[$n .. $#all];
}


# A long text is not printed when it differs.

sub has {
    my ($text, $re, $name) = @_;

    ok($text =~ $re, $name) or diag(substr($text, 0, 200) . '...'
                                    . substr($text, -1500));
}


sub metric { $t->metrics->{$_[0]} || 0 }
sub records { return sort $redis->keys("dsa1:{$alice}:w:*") }


# a history that fits

summary("t no");

my ($r, @p);

@p = prompts(sub { $r = post([ history(3) ]) });
is($r->{status}, 200, 'a history that fits') or diag($r->{body});
is(scalar @p, 1, 'no summary is made');
ok(!exists $r->{json}{context_management}, 'nothing is reported');

my $first = $r->{json}{usage};

($alice) = join('', submitted($fake)) =~ /tenant=([0-9a-f]{32})/;


# the first one that does not

my $n = 3;

do {
    $r = post([ history(++$n) ], tenant => 'scout',
              context_management => { strategy => 'discard_all' });
} until $r->{json}{context_management} || $n > 30;

is($r->{json}{context_management}{dropped_tool_calls}, $n, "$n rounds leave");

# the summary is made, stands in the place of the rounds, and is charged

summary("prompt 15000\ncached 14000\nt They\nt \\sare\nt \\sx.\n");

my @h = heads(sub { $r = post([ history($n, answer => "prompt 700\ncached 60\n"
                                                     . "t the\nt \\sanswer") ],
                              seed => 7, temperature => 1.5,
                              stop => [ 'stop here' ]) });
@p = map { my $l = decode_utf8($_); $l =~ s/^.* prompt=//;
           $l =~ s/ stop=.*//; $l } @h;

is($r->{status}, 200, 'a long history') or diag($r->{body});
is($r->{json}{choices}[0]{message}{content}, 'the answer', 'the answer');
is(scalar @p, 2, 'two prompts');

has($p[0], qr/result 1 x.*result $n x/, 'the first one has all rounds');
has($p[0], qr/\Q[<｜end▁of▁sentence｜>][<｜User｜>]$cue\E.*
               \Q[<｜Assistant｜>][<\/think>]\E$/x, 'and the instruction');
has($h[0], qr/ max=2000 temperature=0 /, 'a bounded, greedy summary');
ok($h[0] !~ / stop=/, 'without the stop strings of the answer');
has($p[1], qr/^\Q[<｜begin▁of▁sentence｜>]You look.\E/, 'the second one has '
     . 'the system message');
has($p[1], qr/"name": "look"/, 'the tools');
has($p[1], qr/\Q[<｜User｜>]Find the place.[<｜Assistant｜>][<\/think>]\E
               \Q[<｜User｜>]${head}They are x.[<｜Assistant｜>][<\/think>]\E
               \Q[<｜User｜>]!fake\n\E/x, 'and the summary between the user\'s '
     . 'messages');
ok($p[1] !~ /result \d|place \d/, 'but no call and no result');
has($h[1], qr/ max=50 temperature=1.5 .* seed=7 .* stop=stop here/,
     'and all that the client asked for');

is_deeply($r->{json}{context_management},
          { applied => 'summary', dropped_messages => 2 * $n,
            dropped_tool_calls => $n,
            summary => { status => 'made', prompt_tokens => 15000,
                         cached_tokens => 14000, completion_tokens => 4 } },
          'the report');
is($r->{headers}{'x-dsa-context'}, 'summary', 'the header');
is($r->{json}{usage}{prompt_tokens}, 15700, 'both prompts are charged');
is($r->{json}{usage}{completion_tokens}, 7,
   'and both completions, with their end tokens');
is($r->{json}{usage}{prompt_tokens_details}{cached_tokens}, 14060,
   'and the cached tokens of both');

# the entry of a request may be written after its answer

my @ledger;

wait_until(sub {
    my ($key) = $redis->keys("dsa1:{$alice}:ledger:*") or return 0;
    my %entry = @{ $redis->cmd('HGETALL', $key) };

    @ledger = map { $entry{"deepseek-chat|$_"} }
                  qw/ requests prompt_tokens completion_tokens /;
    return $ledger[1] > 15000;
}, 10, 'the ledger');

is_deeply(\@ledger, [ 2, 15700 + $first->{prompt_tokens},
                      7 + $first->{completion_tokens} ],
          'the ledger has two requests, and the tokens of the summary');

my @records = records();

is(scalar @records, 1, 'the summary is remembered');
like($redis->cmd('GET', $records[0]), qr/^s1 $n They are x\.$/, 'its record');


# the same history again, and one that goes on: the same text, no other call

my $same = $p[1];

summary("t Another");

@p = prompts(sub { $r = post([ history($n, answer => "prompt 700\ncached 60\n"
                                                     . "t the\nt \\sanswer") ])
                 });
is(scalar @p, 1, 'the same history: no summary is made');
ok($p[0] eq $same, 'the same prompt');
is_deeply($r->{json}{context_management}{summary},
          { status => 'remembered', prompt_tokens => 0, cached_tokens => 0,
            completion_tokens => 0 }, 'the report');

$t->done;
