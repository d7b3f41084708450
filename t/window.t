# Copyright (C) The nginx-dsa authors
#
# dsa_context_strategy: tool calls leave a prompt that exceeds its share of the
# model's context, and successive requests of an agent keep one prefix.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

use constant { WINDOW => 4000, PAGE => 64 };

my $chat = '/v1/chat/completions';
my $threshold = WINDOW * 80 / 100;
my $tools = [ { type => 'function', function => { name => 'look',
                parameters => { type => 'object', properties => {} } } } ];

my $t = DSA::Test->new('window');

$t->start_engine(conf => { backend => 'null', context_length => WINDOW,
                           kv_memory => '64m' });

my %nginx = (workers => 2,
    http => 'log_format dsa "$dsa_context $dsa_prompt_tokens"; '
            . 'access_log %%DIR%%/dsa.log dsa;'
            . 'dsa_tenant $http_x_tenant;');

$t->start_nginx(%nginx);


sub user { { role => 'user', content => $_[0] } }


# Round i of an agent: a call and its result.

sub round {
    my ($i, $size) = @_;

    return ({ role => 'assistant', content => '', tool_calls => [
                { id => "call_$i", type => 'function',
                  function => { name => 'look',
                                arguments => qq/{"at": "place $i"}/ } } ] },
            { role => 'tool', tool_call_id => "call_$i",
              content => join ' ', map { "result $i-$_" } 1 .. $size || 30 });
}


sub history {
    my ($rounds, $name) = @_;

    return ({ role => 'system', content => 'You look ' . ($name || 'around') },
            user('Find the place.'), map { round($_) } 1 .. $rounds);
}


sub ask {
    my ($strategy, $messages, %more) = @_;
    my $tenant = delete $more{tenant} || 'a' x 64;

    return $t->post($chat, { model => 'deepseek-chat', max_tokens => 1,
        tools => $tools, messages => $messages, %more,
        $strategy ? (context_management => { strategy => $strategy }) : () },
        headers => [ 'X-Tenant' => $tenant ]);
}


sub prompt { $_[0]{json}{usage}{prompt_tokens} }
sub cached { $_[0]{json}{usage}{prompt_tokens_details}{cached_tokens} }
sub dropped {
    my $c = $_[0]{json}{context_management} or return 0;

    return $c->{dropped_tool_calls};
}


# nothing happens without a strategy, or below the threshold

my $n = 2;
my ($half, $r);

for ( ;; $n++) {
    $r = ask(undef, [ history($n) ]);
    last if $r->{status} != 200 || prompt($r) > $threshold;

    $half ||= $n if prompt($r) > WINDOW / 2;

    my $same = ask('discard_75', [ history($n) ]);
    is_deeply([ prompt($same), dropped($same),
                $same->{headers}{'x-dsa-context'} ],
              [ prompt($r), 0, undef ], "$n rounds fit");
}

is($r->{status}, 200, 'a prompt between the threshold and the window');
cmp_ok($n, '>', 8, 'enough rounds');
ok(!exists $r->{json}{context_management}, 'nothing is reported');


# the first overflow: exactly the rounds that should leave

for my $case ([ 'discard_75', int((3 * $n + 3) / 4) ], [ 'discard_all', $n ]) {
    my ($strategy, $leave) = @$case;
    my @left = (history(0), map { round($_) } $leave + 1 .. $n);

    $r = ask($strategy, [ history($n) ]);
    is($r->{status}, 200, "$strategy: answered") or diag($r->{body});
    is(prompt($r), prompt(ask(undef, \@left)), 'the prompt of what is left');
    is_deeply($r->{json}{context_management},
              { applied => $strategy, dropped_messages => 2 * $leave,
                dropped_tool_calls => $leave }, 'the report');
    is($r->{headers}{'x-dsa-context'}, $strategy, 'the header');

    my $s = $t->stream({ model => 'deepseek-chat', max_tokens => 1,
                         tools => $tools, messages => [ history($n) ],
                         context_management => { strategy => $strategy } });
    my @events = grep { $_->{json} } $s->events;
    is_deeply($events[-1]{json}{context_management},
              $r->{json}{context_management}, 'the last chunk has it');
    is(scalar(grep { $_->{json}{context_management} } @events), 1,
       'no other chunk has it');
}

is(ask('none', [ history($n) ])->{json}{context_management}, undef, 'none');


# an agent that resends everything: the cut stays until the next overflow, and
# every request between two overflows finds the one before it in the cache

sub agent {
    my ($strategy, $name, $rounds, @more) = @_;
    my ($last, $prompt, $cuts, $hits) = (0, 0, 0, 0);
    my @report;

    for my $i (1 .. $rounds) {
        my $r = ask($strategy, [ history($i, $name) ], @more);

        $r->{status} == 200 && prompt($r) <= $threshold
            or push @report, "$i: $r->{status} $r->{body}";

        if (dropped($r) != $last) {
            push @report, "$i: " . dropped($r) . " after $last"
                if dropped($r) < $last;
            $cuts++;

        } elsif ($i > 1) {
            my $pages = int($prompt / PAGE) * PAGE;

            cached($r) >= $pages - PAGE
                or push @report, "$i: " . cached($r) . " of $prompt cached";
            $hits++;
        }

        ($last, $prompt) = (dropped($r), prompt($r));
    }

    return ($cuts, $hits, @report);
}

for my $strategy (qw/ discard_75 discard_all /) {
    my ($cuts, $hits, @report) = agent($strategy, "for $strategy", 4 * $n);

    cmp_ok($cuts, '>', 2, "$strategy: the agent's prompt is cut $cuts times");
    cmp_ok($hits, '>', 2 * $n, 'it grows in between');
    is_deeply(\@report, [], 'each prompt is within the threshold and has the '
              . 'prefix of the one before it');
}


# a cut that is not enough

$r = ask('discard_all', [ history(2), user('x ' x (3 * WINDOW)) ]);
is($r->{status}, 400, 'too long without any call');
is($r->{json}{error}{code}, 'context_length_exceeded', 'its code');


# the field

for my $case (
    [ { strategy => 'discard_50' }, 400, 'context_management.strategy',
      qr/unknown variant `discard_50`, expected one of `none`, .* `summary`/ ],
    [ { strategy => 75 }, 400, 'context_management.strategy', qr/integer/ ],
    [ { strategy => undef }, 400, 'context_management.strategy', qr/null/ ],
    [ {}, 400, 'context_management.strategy', qr/missing field/ ],
    [ { strategy => 'none', edits => [] }, 400, 'context_management.edits',
      qr/not supported; expected strategy only/ ],
    [ 'discard_75', 400, 'context_management', qr/expected \{"strategy"/ ],
    [ [], 400, 'context_management', qr/expected \{"strategy"/ ],
    [ undef, 200 ],
    [ { strategy => 'none' }, 200 ],
    [ { strategy => 'discard_75' }, 200 ],
    [ { strategy => 'discard_all' }, 200 ],
    [ { strategy => 'summary' }, 200 ])
{
    my ($value, $status, $param, $message) = @$case;
    my $name = json_encode($value);

    $r = ask(undef, [ user('x') ], context_management => $value);
    is($r->{status}, $status, "$name: $status") or diag($r->{body});

    next if $status == 200;

    is($r->{json}{error}{param}, $param, "$name: the field");
    like($r->{json}{error}{message}, $message, "$name: the message");
}


# the directives, the log and the metrics

$t->reload(%nginx, http => $nginx{http} . 'dsa_context_strategy discard_all '
                           . 'threshold=50%;');

# the old workers serve requests for 100 ms more

wait_until(sub { $t->workers == 2 && dropped(ask(undef, [ history($half) ])) },
           10, 'the new workers');

my $logged = length read_file($t->path('dsa.log'));
my $before = $t->metrics;

$r = ask(undef, [ history($half) ]);
is(dropped($r), $half, 'the strategy and the threshold of the server');
is(dropped(ask('none', [ history($half) ])), 0, 'a request has precedence');

# a worker logs a request after its answer, when another worker may already have
# logged the next one

wait_until(sub {
    my $new = substr read_file($t->path('dsa.log')), $logged;

    return $new =~ /^discard_all \d+\n/m && $new =~ /^- \d+\n/m;
}, 10, '$dsa_context');

# the other APIs have the strategy of the server, and the header

my @blocks = map { my $i = $_;
    ({ role => 'assistant', content => [
         { type => 'tool_use', id => "toolu_$i", name => 'look',
           input => { at => "place $i" } } ] },
     { role => 'user', content => [
         { type => 'tool_result', tool_use_id => "toolu_$i",
           content => (round($i))[1]{content} } ] }) } 1 .. 2 * $half;

my $after = $t->metrics;

$r = $t->post('/v1/messages', { model => 'deepseek-chat', max_tokens => 1,
    messages => [ user('Find the place.'), @blocks ] },
    headers => [ 'X-Tenant' => 'a' x 64, 'Anthropic-Version' => '2023-06-01' ]);
is($r->{status}, 200, 'Anthropic') or diag($r->{body});
is($r->{headers}{'x-dsa-context'}, 'discard_all', 'has the header');
cmp_ok($r->{json}{usage}{input_tokens}, '<', WINDOW / 2, 'and a short prompt');

my $cuts = 'dsa_context_cuts_total{strategy="discard_all"}';

is($after->{$cuts} - $before->{$cuts}, 1, $cuts);
is($after->{dsa_context_dropped_calls_total}
   - $before->{dsa_context_dropped_calls_total}, $half, 'dropped calls');
cmp_ok($after->{dsa_context_counts_total}, '>',
       $before->{dsa_context_counts_total}, 'counts');

for my $bad ([ 'dsa_context_strategy discard_50',
               qr/invalid value "discard_50"/ ],
             [ 'dsa_context_strategy none threshold=0%',
               qr/"0%" is not a threshold/ ],
             [ 'dsa_context_strategy none threshold=101%',
               qr/from "1%" to "100%"/ ],
             [ 'dsa_context_strategy none threshold=80',
               qr/"80" is not a threshold/ ],
             [ 'dsa_context_strategy none threshold=8.5%',
               qr/"8.5%" is not/ ])
{
    my ($rc, $out) = $t->nginx_test(http => "$bad->[0];");

    isnt($rc, 0, $bad->[0]);
    like($out, $bad->[1], 'its error');
}

$t->done;
