# Copyright (C) The nginx-dsa authors
#
# Replicas of several ranks behind nginx: "gpus" and "attention" of engine.conf,
# on the CPU.  In exact precision their greedy answers are those of one rank.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;
use DSA::Widen;
use Test::More;

my $t = DSA::Test->new('gpus');

# experts of the small model are one block wide; two GPUs need two of them

my $model = widen($t->model, $t->path('wide'), 2);
my %conf = (model => $model, backend => 'cpu', precision => 'exact',
            max_running => 4, kv_memory => '64m');

my %engine = (
    one    => {},
    data   => { gpus => 2, attention => 'data' },
    tensor => { gpus => 2, attention => 'tensor' },
);

for my $name (sort keys %engine) {
    my $proc = $t->start_engine(name => $name, conf => {
        %conf, name => $name, %{ $engine{$name} } });

    my $ranks = $name eq 'data' ? ' on each of 2 ranks' : '';

    # it listens before it logs this

    my $line = qr/ replica 0: model $name, \d+ pages of 64 tokens$ranks, /;

    ok(eval { wait_until(sub { $proc->output =~ $line }, 30, 'its line') },
       "$name: the log has its pages") or diag($proc->output);
}

$t->start_nginx();
wait_until(sub { $t->metrics->{dsa_sessions} >= 3 }, 20, 'all sessions');


# The answers of an engine to some concurrent requests.  The second half of
# them has the same prefixes as the first half.

sub answers {
    my ($name) = @_;

    my @streams = map {
        $t->stream({ %{ ask("Tell me about number $_. " . 'And more. ' x 30,
                            max_tokens => 12, temperature => 0) },
                     model => $name }, head => 0)
    } 1 .. 6, 1 .. 6;

    return [ map {
        $_->read_head();
        my $m = DSA::HTTP->gather($_->events);
        join '|', $m->{done}, $m->{usage}{completion_tokens}, $m->{content};
    } @streams ];
}


my $want = answers('one');

like($want->[0], qr/^1\|\d+\|./, 'one rank answers');

for my $name (qw/ data tensor /) {
    is_deeply(answers($name), $want, "$name: two ranks give the same answers");
}

$t->done;
