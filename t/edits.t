# Copyright (C) The nginx-dsa authors
#
# Edits of the context in Anthropic's Messages API: clear_tool_uses_20250919 and
# clear_thinking_20251015.  The engine is scripted; it prints the prompts, and
# counts a token for each byte of text and for each control token, so that the
# tokens which leave with an edit are known from the lengths of the texts.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Encode qw/ decode_utf8 /;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $uri = '/v1/messages';
my $true = JSON::PP::true;
my $false = JSON::PP::false;
my $gone = '[This tool result was cleared to make room.]';
my $uses = 'clear_tool_uses_20250919';
my $thinking = 'clear_thinking_20251015';
my @tools = (tools => [ map { { name => $_, input_schema => {
                                    type => 'object' } } } qw/ look move / ]);

my ($t, $fake);


sub body {
    my ($messages, %more) = @_;

    return { model => 'deepseek-chat', max_tokens => 4000, @tools,
             messages => $messages, %more };
}

sub edits { (context_management => { edits => [ @_ ] }) }
sub by_tokens { (trigger => { type => 'input_tokens', value => $_[0] }) }
sub by_uses { (trigger => { type => 'tool_uses', value => $_[0] }) }
sub keep { (keep => { type => 'tool_uses', value => $_[0] }) }
sub least { (clear_at_least => { type => 'input_tokens', value => $_[0] }) }
sub turns { (keep => { type => 'thinking_turns', value => $_[0] }) }
sub clear { { type => $uses, @_ } }
sub user { { role => 'user', content => $_[0] } }
sub assistant { { role => 'assistant', content => [ @_ ] } }
sub text { { type => 'text', text => $_[0] } }
sub thought { { type => 'thinking', thinking => $_[0], signature => 's' } }

# A use of a tool: the call and its result, of so many bytes.

sub use_of {
    my ($i, $name, $bytes) = @_;
    my $text = "result $i ";

    $text .= '.' x ($bytes - length $text);

    return (assistant({ type => 'tool_use', id => "c$i", name => $name,
                        input => { at => "place $i" } }),
            user([ { type => 'tool_result', tool_use_id => "c$i",
                     content => $text } ]));
}

# Uses of the tool "look", whose results have these lengths.

sub uses {
    my $i = 0;
    return (user('Find it.'), map { use_of(++$i, 'look', $_) } @_);
}

# An answer, its prompt, and the tokens of it.

sub ask_for {
    my ($body) = @_;

    my $r = $t->post($uri, $body);
    my $prompt = decode_utf8((submitted($fake))[-1]) =~ s/ stop=.*//r
                 =~ s/^.* prompt=//r;
    my $usage = $r->{json}{usage};

    is($r->{status}, 200, 'an answer') or diag($r->{body});

    return ($r->{json}, $prompt, ($usage->{input_tokens} // 0)
                                 + ($usage->{cache_read_input_tokens} // 0));
}

sub applied { $_[0]{context_management}{applied_edits} }

# How many prompts the engine has counted.

sub counts { my $n = () = $fake->output =~ /^count /mg; return $n }

# The numbers of the results that a prompt has.

sub results { join ' ', $_[0] =~ /result (\d+) \./g }

sub has {
    my ($text, $re, $name) = @_;

    ok($text =~ $re, $name) or diag(substr($text, -1500));
}

# Checks what an edit does against the prompt without it.  Returns both prompts.

sub check {
    my ($name, $messages, $edit, $left, $n, %more) = @_;

    my (undef, $plain, $before) = ask_for(body($messages, %more));
    my ($o, $prompt, $after) = ask_for(body($messages, %more, edits($edit)));

    is(results($prompt), $left, "$name: the results that stay");
    is((() = $prompt =~ /\Q$gone\E/g), $n, "$name: those that leave")
        if defined $n;
    is_deeply(applied($o), $n ? [ { type => $uses, cleared_tool_uses => $n,
                                    cleared_input_tokens => $before - $after } ]
                              : [], "$name: applied_edits");
    is($prompt, $plain, "$name: the same prompt") if !$n;

    return ($prompt, $plain);
}


sub test_uses {
    my ($family) = @_;

    my @five = uses((200) x 5);

    check('the default trigger', \@five, clear(keep(0)), '1 2 3 4 5', 0);
    check('the default trigger, exceeded', [ uses(99000, (600) x 4) ], clear(),
          '3 4 5', 2);
    check('tool_uses', \@five, clear(by_uses(4), keep(2)), '4 5', 3);
    check('tool_uses, as many', \@five, clear(by_uses(5), keep(2)),
          '1 2 3 4 5', 0);
    check('three stay', \@five, clear(by_uses(1)), '3 4 5', 2);
    check('all stay', \@five, clear(by_uses(1), keep(5)), '1 2 3 4 5', 0);
    check('none stays', \@five, clear(by_uses(1), keep(0)), '', 5);

    my (undef, undef, $n) = ask_for(body(\@five));

    check('input_tokens', \@five, clear(by_tokens($n - 1)), '3 4 5', 2);
    check('input_tokens, as many', \@five, clear(by_tokens($n)),
          '1 2 3 4 5', 0);

    # a result that is shorter than what would replace it

    check('a short result', [ uses(200, 20, 200, 200) ],
          clear(by_uses(1), keep(1)), '2 4', 2);

    # the calls stay, and their arguments

    my ($prompt) = check('the calls', \@five, clear(by_uses(1), keep(0)), '',
                         5);

    is(join(' ', $prompt =~ /(place \d)/g),
       'place 1 place 2 place 3 place 4 place 5', 'the arguments stay');

    for ([ 'all inputs', $true, 'place 4 place 5' ],
         [ 'those of this tool', [ 'move' ],
           'place 1 place 2 place 4 place 5' ],
         [ 'those of no tool', [], 'place 1 place 2 place 3 place 4 place 5' ],
         [ 'no inputs', $false, 'place 1 place 2 place 3 place 4 place 5' ],
         [ 'null', undef, 'place 1 place 2 place 3 place 4 place 5' ])
    {
        my @all = (@five[0 .. 4], use_of(3, 'move', 200), @five[7 .. 10]);

        ($prompt) = check($_->[0], \@all,
                          clear(by_uses(1), keep(2),
                                clear_tool_inputs => $_->[1]), '4 5', 3);
        is(join(' ', $prompt =~ /(place \d)/g), $_->[2], "$_->[0]: inputs");
    }

    # tools that are excluded; they count for what stays

    my @all = (@five[0 .. 4], use_of(3, 'move', 200), @five[7 .. 10]);

    check('an excluded tool', \@all,
          clear(by_uses(1), keep(1), exclude_tools => [ 'move', 'x' ]), '3 5',
          3);
    check('excluded by null', \@all,
          clear(by_uses(1), keep(1), exclude_tools => undef,
                clear_at_least => undef), '5', 4);

    # several calls in a message, and what is not of the tool

    my $note = "<system-reminder>\nMind this.\n</system-reminder>";
    my $long = 'x' x 100;

    ($prompt) = check('parallel calls', [
        user('Find it.'),
        assistant(map { { type => 'tool_use', id => "c$_", name => 'look',
                          input => {} } } 1 .. 3),
        user([ map({ { type => 'tool_result', tool_use_id => "c$_",
                       content => "result $_ .$long" } } 2, 1, 3),
               text($note) ]) ], clear(by_uses(1), keep(1)), '3', 2);
    ($prompt) = check('all of them', [
        user('Find it.'),
        assistant(map { { type => 'tool_use', id => "c$_", name => 'look',
                          input => {} } } 1 .. 3),
        user([ map({ { type => 'tool_result', tool_use_id => "c$_",
                       content => "result $_ .$long" } } 2, 1, 3),
               text($note) ]) ], clear(by_uses(1), keep(0)), '', 3);
    has($prompt, qr/\Q$gone\E\\n\\n<system-reminder>\\nMind this\./,
        'a reminder beside a result stays');

    # the user's text, and text that only looks like a result

    ($prompt) = check('other text', [ @five, assistant(text('It is here.')),
                                      user('Thanks. ' . 'y' x 200) ],
                      clear(by_uses(1), keep(0)), '', 5);
    has($prompt, qr/It is here\..*Thanks\. y{200}/, 'text stays');

    return;
}


# Groups: what leaves is the same until another group is complete.

sub test_groups {
    my @lengths = map { 60 + 37 * ($_ * $_ % 11) } 1 .. 24;
    my @weight = map { $_ - length $gone } @lengths;

    check('clear_at_least, too much', [ uses(@lengths[0 .. 5]) ],
          clear(by_uses(1), keep(1), least(100000)), '1 2 3 4 5 6', 0);

    for my $least (1, 300, 700) {
        my ($same, $changed, $last) = (0, 0);

        for my $n (4 .. 24) {
            my $may = 0;
            $may += $weight[$_] for 0 .. $n - 3;

            my ($want, $k, $sum) = ($may - $may % $least, 0, 0);
            $sum += $weight[$k++] while $sum < $want;

            my ($o, $prompt) = ask_for(body([ uses(@lengths[0 .. $n - 1]) ],
                edits(clear(by_uses(1), keep(2), least($least)))));

            is(results($prompt), join(' ', $k + 1 .. $n),
               "at least $least, $n uses: $k leave");
            is(applied($o)->[0]{cleared_input_tokens} // 0, $sum, 'tokens');
            is(applied($o)->[0]{cleared_tool_uses} // 0, $k, 'uses');

            # the prompt continues the last one up to the cue of its answer

            if (defined $last && $last->[0] == $k) {
                my $cue = $last->[1] =~ s/\[[^\[]*\](?:\[[^\[]*\])?$//r;
                $same++;
                ok(substr($prompt, 0, length $cue) eq $cue,
                   'the prompt before is a prefix');

            } elsif (defined $last) {
                $changed++;
            }

            $last = [ $k, $prompt ];
        }

        cmp_ok($same, '>', 5, "at least $least: most prompts continue")
            if $least > 1;
        cmp_ok($changed, '>', 1, "at least $least: and some change");
    }

    # few prompts are counted

    my $n = counts();
    my ($o) = ask_for(body([ uses(map { 50 + 7919 * $_ % 500 } 1 .. 400) ],
                           edits(clear(by_uses(1), least(20000)))));
    cmp_ok(applied($o)->[0]{cleared_tool_uses}, '>', 100, '400 tool uses');
    cmp_ok(counts() - $n, '<=', 2 + 4 + 9, 'few prompts are counted');

    return;
}


# Several edits, in their order.

sub test_order {
    my @all = (uses((200) x 3), map { use_of($_, 'move', 300) } 4 .. 6);
    my ($o, $prompt);
    my (undef, undef, $before) = ask_for(body(\@all));
    my $n = counts();

    ($o, $prompt) = ask_for(body(\@all, edits(
        clear(by_uses(1), keep(0), exclude_tools => [ 'move' ]),
        clear(by_uses(1), keep(1)))));
    is(counts() - $n, 3, 'the prompt between two edits is counted once');
    is(results($prompt), '6', 'two edits');
    is_deeply([ map { $_->{cleared_tool_uses} } @{ applied($o) } ], [ 3, 2 ],
              'each clears what the one before it has left');
    is_deeply([ map { $_->{cleared_input_tokens} } @{ applied($o) } ],
              [ 3 * (200 - length $gone), 2 * (300 - length $gone) ],
              'and its tokens');

    # the trigger counts what the edit before it has left

    ($o, $prompt) = ask_for(body(\@all, edits(
        clear(by_uses(1), keep(3)), clear(by_tokens($before - 1), keep(0)))));
    is(results($prompt), '4 5 6', 'the second one is not triggered');
    is(scalar @{ applied($o) }, 1, 'and is not applied');

    # a compaction between them

    my @compact = ({ type => 'compact_20260112', by_tokens($before - 200) });

    ($o, $prompt) = ask_for(body(\@all, edits(
        clear(by_uses(1), keep(0)), @compact)));
    is(results($prompt), '', 'cleared before the compaction');
    is_deeply([ map { $_->{type} } @{ $o->{usage}{iterations} } ],
              [ 'message' ], 'which is not needed any more');

    ($o, $prompt) = ask_for(body(\@all, edits(
        @compact, clear(by_uses(1), keep(0)))));
    is_deeply([ map { $_->{type} } @{ $o->{usage}{iterations} } ],
              [ qw/ compaction message / ], 'compacted first');
    is_deeply(applied($o), [], 'nothing is left to clear');

    ($o, $prompt) = ask_for(body(\@all, edits(
        { type => 'compact_20260112', by_tokens($before) },
        clear(by_uses(1), keep(0)))));
    is(results($prompt), '', 'a compaction that is not needed');
    is(applied($o)->[0]{cleared_tool_uses}, 6, 'and an edit behind it');

    return;
}


# Streams and counts.

sub test_answers {
    my @all = uses((200) x 5);
    my %edits = edits(clear(by_uses(1)));
    my ($o) = ask_for(body(\@all, %edits));

    my %event = map { $_->{type} => $_ } map { $_->{json} || () }
                $t->stream(body(\@all, %edits), uri => $uri)->events;

    is(scalar @{ applied($o) }, 1, 'an edit is applied');
    is_deeply($event{message_start}{message}{context_management},
              $o->{context_management}, 'in message_start');
    is_deeply($event{message_delta}{context_management},
              $o->{context_management}, 'in message_delta');

    my %count = (model => 'deepseek-chat', messages => \@all, @tools);
    my $plain = $t->post("$uri/count_tokens", \%count)->{json};
    my $edited = $t->post("$uri/count_tokens", { %count, %edits })->{json};

    is_deeply($edited->{context_management},
              { original_input_tokens => $plain->{input_tokens} },
              'count_tokens: original_input_tokens');
    is($edited->{input_tokens},
       $plain->{input_tokens} - 2 * (200 - length $gone),
       'count_tokens: input_tokens of the edited prompt');
    ok(!exists $plain->{context_management}, 'no context_management');

    return;
}


# Reasoning in front of the last question.

sub test_thinking {
    my ($family) = @_;

    my @talk = map { (user("Question $_."),
                      assistant(thought("Thought $_ " . 'z' x 50),
                                text("Answer $_."))) } 1 .. 4;
    my %on = (thinking => { type => 'adaptive' });

    push @talk, user('And now?');

    my $see = sub {
        my ($edit) = @_;
        my ($o, $prompt, $n) = ask_for(body(\@talk, %on,
                                            $edit ? edits($edit) : ()));

        return (join(' ', $prompt =~ /Thought (\d)/g), applied($o), $n);
    };

    my ($none, undef, $least) = $see->();
    my ($all, $applied, $most) = $see->({ type => $thinking, keep => 'all' });

    is_deeply($applied, [], 'keep all: nothing is cleared');

    if ($family eq 'deepseek') {
        is($_, '', 'the format has no reasoning before the last question')
            for $none, $all;

        my ($kept, $edits, $n) = $see->({ type => $thinking });

        is($kept, '', 'which an edit does not change');
        is_deeply($edits, [], 'and it is not applied');
        is($n, $least, 'the same prompt');

        # the running turn keeps its reasoning

        my @round = (user('Go.'), assistant(thought('Thought 1 x'), {
            type => 'tool_use', id => 'c1', name => 'look', input => {} }),
            user([ { type => 'tool_result', tool_use_id => 'c1',
                     content => 'x' } ]));
        my (undef, $prompt) = ask_for(body(\@round, %on,
                                           edits({ type => $thinking })));
        has($prompt, qr/Thought 1 x/, 'the running turn keeps it');

        return;
    }

    is($none, $family eq 'glm-5.3' ? '1 2 3 4' : '',
       'without an edit: as the family does');
    is($all, '1 2 3 4', 'keep all');

    for ([ 'the default', {}, '4', 3 ],
         [ 'one turn', { turns(1) }, '4', 3 ],
         [ 'two turns', { turns(2) }, '3 4', 2 ],
         [ 'more turns than there are', { turns(9) }, '1 2 3 4', 0 ],
         [ 'an object', { keep => { type => 'all' } }, '1 2 3 4', 0 ],
         [ 'null', { keep => undef }, '4', 3 ])
    {
        my ($name, $keep, $kept, $turns) = @$_;
        my ($is, $edits, $n) = $see->({ type => $thinking, %$keep });

        is($is, $kept, "$name: what is kept");
        is_deeply($edits, $turns ? [ { type => $thinking,
                                       cleared_thinking_turns => $turns,
                                       cleared_input_tokens => $most - $n } ]
                                 : [], "$name: applied_edits");
        cmp_ok($most - $n, '>=', $turns * 60, "$name: tokens");
    }

    # all of a turn, which may have several messages; the count is of turns

    my @rounds = map { (use_of($_, 'look', 200)) } 1 .. 2;
    unshift @{ $rounds[0]{content} }, thought('Thought 5 x');
    unshift @{ $rounds[2]{content} }, thought('Thought 6 x');

    my ($o, $prompt) = ask_for(body(
        [ user('Find it.'), @rounds, assistant(text('Found.')), @talk ], %on,
        edits({ type => $thinking, turns(4) })));

    is(join(' ', $prompt =~ /Thought (\d)/g), '1 2 3 4', 'a turn with calls');
    is(applied($o)->[0]{cleared_thinking_turns}, 1, 'is one turn');

    # the running turn

    ($o, $prompt) = ask_for(body([ @talk, @rounds ], %on,
                                 edits({ type => $thinking })));
    is(join(' ', $prompt =~ /Thought (\d)/g), '5 6', 'the running turn');
    is(applied($o)->[0]{cleared_thinking_turns}, 4, 'stays');

    # with an edit of tool uses

    ($o, $prompt, my $n) = ask_for(body([ @talk, @rounds ], %on, edits(
        { type => $thinking }, clear(by_uses(1), keep(1)))));
    (undef, undef, $most) = ask_for(body([ @talk, @rounds ], %on, edits(
        { type => $thinking, keep => 'all' })));
    is(results($prompt), '2', 'both edits');
    is_deeply([ map { $_->{type} } @{ applied($o) } ], [ $thinking, $uses ],
              'both are applied');
    is(applied($o)->[0]{cleared_input_tokens}
       + applied($o)->[1]{cleared_input_tokens}, $most - $n, 'their tokens');

    my $count = $t->post("$uri/count_tokens", { model => 'deepseek-chat',
        messages => [ @talk, @rounds ], @tools, %on, edits(
            { type => $thinking }, clear(by_uses(1), keep(1))) })->{json};
    is_deeply($count, { input_tokens => $n, context_management => {
                            original_input_tokens => $most } },
              'count_tokens has both');

    return;
}


# Reasoning that the client leaves out, and arguments as the model wrote them:
# a call whose arguments are cleared is not the text that the model sampled, but
# its reasoning stays.

sub test_restored {
    my $script = "T Weigh it.|</think>|I call."
                 . tool_calls([ 'look', 'at', 'true', 'place 1' ],
                              [ 'move', 'to', 'false', '[1,  2]' ])
                   =~ s/^T //r;
    my @talk = (user("!fake\n$script"));
    my %on = (thinking => { type => 'adaptive' });
    my $r = $t->post($uri, body(\@talk, %on));
    my @calls = grep { $_->{type} eq 'tool_use' } @{ $r->{json}{content} };

    is(scalar @calls, 2, 'two calls') or diag($r->{body});

    push @talk, assistant(text('I call.'), @calls), user([
        map({ { type => 'tool_result', tool_use_id => $_->{id},
                content => "result 1 ." . 'x' x 100 } } @calls) ]);

    my (undef, $prompt) = ask_for(body(\@talk, %on));
    has($prompt, qr/Weigh it\.\[<\/think>\]I call\..*\[1,  2\]/,
        'as it was sampled');

    (undef, $prompt) = ask_for(body(\@talk, %on, edits(clear(by_uses(1),
        keep(1), clear_tool_inputs => [ 'look' ]))));
    has($prompt, qr/Weigh it\.\[<\/think>\]I call\..*\]parameter name="to"/,
        'with an argument cleared');
    ok($prompt !~ /\]parameter name="at"/, 'without it');

    return;
}


# An engine that does not count.

sub test_faults {
    my @hold = (uses((200) x 4), assistant(text('So.')),
                user("!fake\nhold"));
    my %edits = edits(clear(by_uses(1)));

    for my $at ($uri, "$uri/count_tokens") {
        my $n = () = cancelled($fake);
        my $k = counts();
        my $s = $t->connect;

        $s->send_request(POST => $at, body => json_encode(
                             body(\@hold, %edits)));
        wait_until(sub { counts() > $k }, 20,
                   "$at: the count is submitted");
        $s->close;
        wait_until(sub { my $now = () = cancelled($fake); $now > $n }, 20,
                   "$at: and cancelled");
    }

    my $r = $t->post("/short$uri", body(\@hold, %edits));
    cmp_ok($r->{status}, '>=', 500, 'a count that is late: an error');

    return;
}


# A history of which an engine does not count all tokens: groups by bytes, and
# the prompt is the one of a client that clears the same results itself.

sub test_long {
    $t = DSA::Test->new('edits-long');
    $t->start_engine(conf => { backend => 'null rate=0', kv_memory => '64m',
                               context_length => 4000 });
    $t->start_nginx(workers => 1);

    my ($bytes, $least, %groups) = (20000, 20000);
    my $result = 'word ' x ($bytes / 5);

    for my $n (38 .. 56) {
        my @all = map { ref $_->{content} eq 'ARRAY'
                        && $_->{content}[0]{type} eq 'tool_result'
                        ? user([ { %{ $_->{content}[0] },
                                   content => $result } ]) : $_ }
                  uses(($bytes) x $n);
        my ($lost, $k) = ($bytes - length $gone, 0);

        $k++ while $k * $lost < $n * $lost - $n * $lost % ($least * 8);

        my @cleared = @all;
        $cleared[2 * $_] = user([ { %{ $all[2 * $_]{content}[0] },
                                    content => $gone } ]) for 1 .. $k;

        my %body = (model => 'deepseek-chat', @tools);
        my $want = $t->post("$uri/count_tokens",
                            { %body, messages => \@cleared })->{json};
        my $r = $t->post("$uri/count_tokens", { %body, messages => \@all,
            edits(clear(by_uses(1), keep(0), least($least))) })->{json};

        is($r->{input_tokens}, $want->{input_tokens},
           "$n uses of a long history: $k leave");
        is($r->{context_management}{original_input_tokens}, 131072,
           'a lower bound');
        $groups{$k} = 1;
    }

    is(scalar keys %groups, 3, 'groups');
    $t->done;

    return;
}


for my $family (qw/ deepseek glm-5 glm-5.2 glm-5.3 /) {
    subtest $family => sub {
        $t = DSA::Test->new("edits-$family");
        $t->start_redis() if $family eq 'deepseek';
        $fake = $t->start_fake("family=$family", 'context=500000');
        $t->start_nginx(workers => 1, server => '
            location /short/ { dsa_pass v32; dsa_timeout 2s; }');

        test_uses($family);
        test_thinking($family) if $family ne 'glm-5';

        if ($family eq 'deepseek') {
            test_groups();
            test_order();
            test_answers();
            test_restored();
            test_faults();
        }

        $t->done;
    };
}

subtest long => \&test_long;


# Fields.

$t = DSA::Test->new('edits');
$fake = $t->start_fake();
$t->start_nginx(workers => 1);

my $range = qr/\.value: out of range; the valid range is/;
my $at = qr/(?:^|type: )context_management\.edits\[0\]/;

for ([ { type => 'clear_tool_uses_20240101' }, qr/$at: this edit is not/ ],
     [ { type => 'clear_thinking_20240101' }, qr/$at: this edit is not/ ],
     [ clear(trigger => 5), qr/$at\.trigger: expected an object/ ],
     [ clear(trigger => { type => 'x', value => 1 }), qr/$at\.trigger:/ ],
     [ clear(trigger => { type => 'tool_uses' }), qr/trigger\.value: the/ ],
     [ clear(by_uses(0)), qr/$range \[1, / ],
     [ clear(by_tokens(0)), qr/$range \[1, / ],
     [ clear(by_tokens(1e30)), qr/out of range/ ],
     [ clear(by_tokens('5')), qr/$at\.trigger\.value: invalid type/ ],
     [ clear(keep => { type => 'input_tokens', value => 3 }),
       qr/$at\.keep: expected an object of the type `tool_uses`/ ],
     [ clear(keep(-1)), qr/$range \[0, / ],
     [ clear(keep => 3), qr/$at\.keep/ ],
     [ clear(clear_at_least => { type => 'tool_uses', value => 3 }),
       qr/$at\.clear_at_least: expected/ ],
     [ clear(exclude_tools => 'look'), qr/$at\.exclude_tools: invalid type/ ],
     [ clear(exclude_tools => [ 5 ]),
       qr/$at\.exclude_tools\[0\]: invalid type/ ],
     [ clear(exclude_tools => [ ('x') x 129 ]),
       qr/$at\.exclude_tools: 129 names; at most 128/ ],
     [ clear(clear_tool_inputs => 'x'),
       qr/$at\.clear_tool_inputs: invalid type.*a boolean or an array/ ],
     [ clear(clear_tool_inputs => [ {} ]), qr/clear_tool_inputs\[0\]/ ],
     [ { type => $thinking, keep => 'some' }, qr/$at\.keep: expected `all`/ ],
     [ { type => $thinking, keep => 1 }, qr/$at\.keep: expected `all`/ ],
     [ { type => $thinking, turns(0) }, qr/$range \[1, / ],
     [ { type => $thinking, keep => { type => 'thinking_turns' } },
       qr/keep\.value: the number is required/ ])
{
    my $r = $t->post($uri, body([ user('Hi') ], edits($_->[0])));
    my $name = substr(json_encode($_->[0]), 0, 100);

    is($r->{status}, 400, "$name: refused") or diag($r->{body});
    like($r->{json}{error}{message}, $_->[1], "$name: why");
}

my $r = $t->post($uri, body([ user('Hi') ], edits((clear()) x 9)));
is($r->{status}, 400, 'nine edits: refused');
like($r->{json}{error}{message},
     qr/^context_management\.edits: 9 edits; at most 8 are accepted/, 'why');

$r = $t->post($uri, body([ user('Hi') ], edits((clear()) x 8)));
is($r->{status}, 200, 'eight edits') or diag($r->{body});

$t->done;
