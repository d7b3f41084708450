# Copyright (C) The nginx-dsa authors
#
# An engine dies in the middle of an answer, and another one on the same GPU
# continues it.  It computes the tokens so far as a prompt, which rounds in
# another order than decoding, so the rest of the text may differ.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Process;
use DSA::Test;
use Encode qw/ encode_utf8 /;
use Test::More;

need_gpu();

my $t = DSA::Test->new('gpu resume');
my $chat = '/v1/chat/completions';
my $true = JSON::PP::true;
my %conf = (backend => 'cuda', max_running => 8, token_budget => 512,
            kv_memory => '256m');
my @engines = map { $t->start_engine(conf => \%conf) } 0, 1;

$t->start_nginx();
sessions(2);


sub sessions {
    my ($n) = @_;

    wait_until(sub { $t->metrics->{dsa_sessions} == $n }, 60, "$n sessions");

    return;
}


my %request = (model => 'model', max_tokens => 2000, ignore_eos => $true,
               messages => [ { role => 'user', content => 'Once upon a time '
                                                          x 100 } ]);

for my $case ([ 'greedy', temperature => 0 ],
              [ 'seeded', temperature => 1, seed => 7 ])
{
    my ($name, %args) = @$case;

    my $want = $t->post($chat, { %request, %args })->{json};

    my $s = $t->stream({ %request, %args, stream => $true,
                         stream_options => { include_usage => $true } });
    my @events = map { $s->next_event() } 1 .. 20;

    # the other engine has no request

    my ($busy) = grep {
        $t->metrics->{'dsa_engine_requests_running{pool="v32",engine="unix:'
                      . $_->sock . '"}'}
    } @engines;

    ok($busy, "$name: an engine is busy") or last;
    kill 'KILL', DSA::Process::children($busy->pid);

    my $m = DSA::HTTP->gather(@events, $s->events);

    is_deeply($m->{errors}, [], "$name: no error");
    is($m->{finish_reason}, 'length', "$name: the end");
    is($m->{usage}{$_}, $want->{usage}{$_}, "$name: $_")
        for qw/ prompt_tokens completion_tokens /;

    my ($text, $got) = map { encode_utf8($_) }
                       $want->{choices}[0]{message}{content}, $m->{content};
    my $same = ($got ^ $text) =~ /^(\0*)/ ? length $1 : 0;

    diag("$name: $same of ", length $text,
         ' bytes are those of the undisturbed answer');
    cmp_ok($same, '>', 40, "$name: the text before the engine died");
    sessions(2);
}

is($t->metrics->{dsa_resumed_answers_total}, 2, 'both answers have moved');

$t->done;
