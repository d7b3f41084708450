# Copyright (C) The nginx-dsa authors
#
# demo/agent plans a trip.  The model is replaced by a server that plays the
# gold policy; the agent must report whether the answer was verified.

use strict;
use warnings;

use lib 't/lib';
use DSA::Node qw/ installed /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('agent');
my $root = $DSA::Test::root;
my $dir = installed($t, 'demo/agent', 'agent.mjs');
my $seed = 7;
my $n = 0;

$ENV{PYTHONPATH} = "$root/demo";
$ENV{PYTHONDONTWRITEBYTECODE} = 1;


# Runs the agent with a model that has this fault.  Returns (exit status,
# output, the numbers of choices of all requests).

sub agent {
    my ($fault, @args) = @_;

    my $model = DSA::Process->start(
        name => 'gold' . $n++, dir => $t->dir,
        argv => [ 'python3', "$root/t/demo/gold_server.py", 'trip', $seed,
                  $fault ]);

    push @{ $t->{procs} }, $model;

    wait_until(sub {
        die $model->output if !$model->alive;
        $model->output =~ /\n/;
    }, 20, 'the model');

    my ($port) = $model->output =~ /^(\d+)$/m;

    my $proc = DSA::Process->start(
        name => "agent$n", dir => $t->dir,
        argv => [ 'node', "$dir/agent.mjs", '--url',
                  "http://127.0.0.1:$port/v1", '--seed', $seed, @args ]);

    push @{ $t->{procs} }, $proc;

    my $status = $proc->wait_end(300);

    my (undef, @choices) = split /\n/, $model->output;

    return (defined $status ? $status >> 8 : 'it runs on', $proc->output,
            "@choices");
}


# The conversation that the agent must have had.

my $gold = json_decode(scalar `python3 -c '
import json
from tasks.mix import task_of
from tasks.task import RETAIN, play

print(json.dumps(play(task_of("trip", $seed), RETAIN)))'`);

my ($rc, $out) = agent('');

is($rc, 0, 'a right answer: exit status') or diag($out);
like($out, qr/\n\nverified\n\n\z/, 'the output ends with "verified"');

my $at = 0;
my @missed;

for my $m (grep { $_->{role} ne 'system' } @$gold) {
    my @parts = $m->{role} eq 'user' ? "> $m->{content}"
              : $m->{role} eq 'tool' ? ": $m->{content}"
              : ($m->{reasoning_content}, $m->{content},
                 map { "$_->{function}{name} $_->{function}{arguments}" }
                     @{ $m->{tool_calls} || [] });

    # the results of a message's calls are in the order of the calls

    for my $part (map { utf8::encode(my $s = $_); $s }
                  grep { defined && $_ ne '' } @parts)
    {
        my $found = index $out, $part, $at;

        if ($found < 0) {
            push @missed, $part;
            next;
        }

        $at = $found + length $part;
    }
}

is_deeply(\@missed, [], 'reasoning, calls and results are shown, in order')
    or diag($out);
cmp_ok(scalar(grep { $_->{role} eq 'tool' } @$gold), '>', 3,
       'there were tool calls');

unlike($out, qr/\e\[/, 'no colours without a terminal');

my $steps = grep { $_->{role} eq 'assistant' } @$gold;

my $choices;

($rc, $out, $choices) = agent('detour', '--sampling-seed', 100, '--parallel',
                              3);

is($rc, 0, 'three rollouts: exit status') or diag($out);
like($out, qr/\n\nverified\n\nrollout 2 of 3, $steps steps\n\z/,
     'the one with the fewest steps is used');
is(scalar(() = $out =~ /verified/g), scalar(grep { $_->{role} eq 'user' }
                                            @$gold), 'no other is printed');

like($choices, qr/^3(?: 1)+$/,
     'the first messages are the choices of one request');

($rc, $out, $choices) = agent('', '--parallel', 10);

is($rc, 0, 'ten rollouts: exit status') or diag($out);
like($out, qr/\nrollout \d+ of 10, $steps steps\n\z/, 'one of them is used');
is(join(' ', sort { $b <=> $a } grep { $_ > 1 } split / /, $choices), '8 2',
   'ten first messages are those of two requests');

($rc, $out) = agent('cut', '--parallel', 3);

is($rc, 2, 'no rollout ends: exit status');
like($out, qr{^agent: http://127\S+/v1: \S}m, 'with the error');

for my $n (qw/ 0 65 x 1.5 /) {
    ($rc, $out) = agent('', '--parallel', $n);

    is($rc, 2, "--parallel $n: exit status");
    like($out, qr/^agent: --parallel "$n" is not .* expected 1 to 64$/m,
         'with the error');
}

($rc, $out) = agent('wrong');

is($rc, 1, 'a wrong answer: exit status');
like($out, qr/I do not know\.\n\nnot verified: \S.*\n\n\z/,
     'with the reason');

($rc, $out) = agent('cut');

is($rc, 2, 'no answer: exit status');
like($out, qr{^agent: http://127\S+/v1: \S}m, 'with the error');

($rc, $out) = agent('', '--family', 'none');

is($rc, 2, 'no such family: exit status');
like($out, qr/^agent: python3 -m tasks\.serve ended$/m, 'with the error');

$t->done;
