# Copyright (C) The nginx-dsa authors
#
# The context strategy "summary" on random conversations of agents that resend
# everything.  The test reads the prompts that the engine got; it computes from
# the conversation alone what must be in them.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake qw/ ctl submitted /;
use DSA::Test;
use Encode qw/ decode_utf8 encode_utf8 /;
use Test::More;

# an eighth of the threshold, 80 % of the window, is for a summary

use constant { WINDOW => 20000, MOST => 2000, CONVERSATIONS => 8,
               STEPS => 30 };

my $cue = 'This conversation is about to exceed the model';
my $tools = [ { type => 'function', function => { name => 'look',
                parameters => { type => 'object', properties => {} } } } ];

my $t = DSA::Test->new('summary-random');

$t->start_redis();

my $fake = $t->start_fake('context=' . WINDOW);

$t->start_nginx(http => 'dsa_tenant $http_x_tenant;');


# A number below n; the sequence of a seed is the same everywhere.

my $state = $ENV{DSA_SEED} || 20251;

note("DSA_SEED=$state");

sub draw {
    $state = ($state * 1103515245 + 12345) % 2 ** 31;

    return int($state / 2 ** 16) % $_[0];
}


# The messages of a step, where a letter and numbers name each text: an
# assistant's calls (C) and their results (R), and sometimes a user (U).

sub step {
    my ($i) = @_;

    my @calls = map { "$i.$_" } 1 .. 1 + draw(3);
    my @messages = ({ role => 'assistant', content => '', tool_calls => [
        map { { id => "call_$_", type => 'function', function =>
                { name => 'look', arguments => qq/{"at": "#C$_;"}/ } } }
        @calls ] });

    push @messages, { role => 'tool', tool_call_id => "call_$_",
                      content => "#R$_;" . 'x' x draw(1500) } for @calls;

    push @messages, { role => 'assistant', content => "#A$i;" },
                    { role => 'user', content => "#U$i;" . 'y' x draw(300) }
        if draw(4) == 0;

    return @messages;
}


# Sends the conversation.  Returns the answer and the prompts of the engine.

sub send_all {
    my ($tenant, $messages, $summary) = @_;

    my $n = () = submitted($fake);
    my $file = write_file($t->path('script'), "t $summary\n");

    ctl($fake, "script $file") eq 'ok' or die "no script\n";

    my $r = $t->post('/v1/chat/completions',
                     { model => 'deepseek-chat', tools => $tools,
                       max_tokens => 50, messages => $messages,
                       context_management => { strategy => 'summary' } },
                     headers => [ 'X-Tenant' => $tenant ]);
    my @all = submitted($fake);

    return ($r, map { my $line = decode_utf8($_);
                      $line =~ s/^.*? prompt=//; $line } @all[$n .. $#all]);
}


# A control token is one token, and a byte of text is one.  A line feed is
# printed as two bytes.

sub tokens_of { length encode_utf8($_[0] =~ s/\[<[^\[\]]*>\]|\\n/x/gr) }


# The names in a text that begin with one of these letters, in their order.

sub names { my ($letters, $text) = @_;
            return "@{[ $text =~ /#([$letters][\d.]+);/g ]}" }


# Returns the fault of the prompts for a summary of these calls.  The first one
# has all of them.  If the engine rejects it, because there is no room for the
# summary, the next one has fewer of the last calls.

sub asked {
    my ($summary, $calls, @prompts) = @_;

    my @odd;
    my $all = join ' ', map { "C$_" } @$calls;
    my $expected = qr/^\Q$all\E\z/;

    while (my $prompt = shift @prompts) {
        my $names = names('C', $prompt);

        push @odd, "summarized: $names" if $names !~ $expected;
        push @odd, 'results: ' . names('R', $prompt)
            if names('R', $prompt) ne $names =~ s/C/R/gr;
        push @odd, 'no instruction' if $prompt !~ /\Q$cue\E/;
        push @odd, 'without the last summary'
            if names('M', $prompt) ne $summary;
        push @odd, 'another prompt after ' . tokens_of($prompt) . ' tokens'
            if @prompts && tokens_of($prompt) + MOST <= WINDOW;

        my (undef, @fewer) = split / /, $names;
        my $ends = join '|', map { quotemeta "@fewer[$_ .. $#fewer]" }
                             0 .. $#fewer;

        $expected = qr/^(?:$ends)\z/;
    }

    return @odd;
}


# What is wrong with the prompts of a step; $talk is what earlier steps did.

sub check {
    my ($talk, $messages, $r, @prompts) = @_;

    my $c = $r->{json}{context_management} || { dropped_tool_calls => 0,
                                                dropped_messages => 0 };
    my $prompt = $prompts[-1];
    my @calls = map { $_->{function}{arguments} =~ /#C([\d.]+);/ }
                map { @{ $_->{tool_calls} || [] } } @$messages;
    my @left = @calls[$c->{dropped_tool_calls} .. $#calls];
    my $status = $c->{summary}{status} || 'none';
    my @odd;

    # the calls that leave are the first ones, with their results

    push @odd, 'calls: ' . names('C', $prompt)
        if names('C', $prompt) ne join ' ', map { "C$_" } @left;
    push @odd, 'results: ' . names('R', $prompt)
        if names('R', $prompt) ne join ' ', map { "R$_" } @left;

    # whole messages of calls leave, and their results are messages

    my ($dropped, $n) = (0, 0);

    for my $m (grep { $_->{tool_calls} } @$messages) {
        last if $n >= $c->{dropped_tool_calls};
        $n += @{ $m->{tool_calls} };
        $dropped += 1 + @{ $m->{tool_calls} };
    }

    push @odd, "$n calls are whole messages" if $n != $c->{dropped_tool_calls};
    push @odd, "$c->{dropped_messages} messages, not $dropped"
        if $c->{dropped_messages} != $dropped;

    # all other messages stay

    my $others = join ' ', map { ($_->{content} // '') =~ /^#([SAU][\d.]+);/ }
                 @$messages;

    push @odd, 'others: ' . names('SAU', $prompt)
        if names('SAU', $prompt) ne $others;

    # no prompt exceeds the window, unless the engine refused it

    push @odd, map { tokens_of($_) . ' tokens' }
               grep { tokens_of($_) > WINDOW }
               @prompts[(@prompts > 1 ? -2 : ()), -1];

    # a summary is made exactly when more leaves

    my @asked = @prompts[0 .. $#prompts - 1];

    push @odd, "$status: " . @prompts . ' prompts'
        if ($status eq 'made') != (@asked != 0);
    push @odd, "$status: $c->{dropped_tool_calls} after $talk->{dropped}"
        if ($status eq 'made') != ($c->{dropped_tool_calls}
                                   > $talk->{dropped})
           || $c->{dropped_tool_calls} < $talk->{dropped};

    push @odd, asked($talk->{summary},
                     [ @calls[$talk->{dropped} .. $#calls] ], @asked);

    # the prompt has the last summary, and goes on from the last prompt

    my $summary = $status eq 'made' ? "M$talk->{step}" : $talk->{summary};

    push @odd, 'summary: ' . names('M', $prompt)
        if names('M', $prompt) ne $summary;
    push @odd, 'another prefix'
        if $status ne 'made' && index($prompt, $talk->{prompt}) != 0;

    return { step => $talk->{step} + 1, dropped => $c->{dropped_tool_calls},
             summary => $summary, odd => \@odd,
             prompt => $prompt =~ s/\[<｜Assistant｜>\].{0,40}\z//sr
                              =~ s/\n*\[<\/think>\]\z//r };
}


for my $conversation (1 .. CONVERSATIONS) {
    my $tenant = 'tenant' . $conversation % 3;
    my @messages = ({ role => 'system', content => "#S$conversation;" },
                    { role => 'user', content => "#U0;" });
    my $talk = { step => 1, dropped => 0, summary => '', prompt => '' };
    my ($made, @odd) = (0);

    for my $i (1 .. STEPS) {
        push @messages, step($i);

        my ($r, @prompts) = send_all($tenant, \@messages, "#M$i;");

        if ($r->{status} != 200 || !@prompts) {
            push @odd, "$i: $r->{status} $r->{body}";
            last;
        }

        my $dropped = $talk->{dropped};

        $talk = check($talk, \@messages, $r, @prompts);
        $made += $talk->{dropped} > $dropped;
        push @odd, map { "$i: $_" } @{ $talk->{odd} };
    }

    is_deeply(\@odd, [], "conversation $conversation: " . @messages
                         . " messages, $made summaries");
    cmp_ok($made, '>', 1, 'more than one summary');
}

$t->done;
