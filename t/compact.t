# Copyright (C) The nginx-dsa authors
#
# Compaction: a summary of the model, which the client keeps encrypted, in place
# of the conversation.  The fake engine counts a byte of text as a token.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Encode qw/ decode_utf8 encode_utf8 /;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('compact');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake('context=20000');

$t->start_nginx(redis => 'ttl=1h', workers => 1,
                http => 'client_max_body_size 8m;',
                server => 'location /none/ { dsa_pass v32; }
                           location /short/ { dsa_pass v32;
                                              dsa_timeout 2s; }');

my $uri = '/v1/responses';
my $head = 'The conversation up to this point has left the context to make '
           . 'room. This is a summary of it:\n\n';
my $cue = "This conversation will leave the model's context";
my $true = JSON::PP::true;
my $false = JSON::PP::false;
my $n_scripts = 0;
my $tool = { type => 'function', name => 'look',
             parameters => { type => 'object', properties => {} } };

wait_until(sub { $t->get("$uri/resp_" . '0' x 32)->{status} == 404 }, 20,
           'Redis');


# What the engine answers to a prompt without a script of its own.

sub answers {
    my ($lines) = @_;
    my $file = $t->path('script' . $n_scripts++);

    DSA::Test::write_file($file, encode_utf8($lines));
    is(ctl($fake, "script $file"), 'ok', 'a script');
}

# The requests that a piece of code submits, and their prompts.

sub heads {
    my ($code) = @_;
    my $n = () = submitted($fake);

    $code->();

    my @all = submitted($fake);
    return map { decode_utf8($_) } @all[$n .. $#all];
}

sub prompts { map { s/ stop=.*//r =~ s/^.* prompt=//r } heads(@_) }

sub as { (headers => [ Authorization => "Bearer $_[0]" ]) }
sub user { { role => 'user', content => $_[0] } }
sub body { my ($input, %more) = @_;
           return { model => 'deepseek-chat', input => $input, %more } }

sub compact {
    my ($input, %more) = @_;
    my $tenant = delete $more{tenant} // 'alice';
    return $t->post("$uri/compact", body($input, %more), as($tenant));
}

sub respond {
    my ($input, %more) = @_;
    my $tenant = delete $more{tenant} // 'alice';
    return $t->post($uri, body($input, %more), as($tenant));
}

# The events of a stream.

sub stream {
    my ($input, %more) = @_;
    my $s = $t->connect;

    $s->send_request(POST => $uri, body => json_encode({
        %{ body($input, %more) }, stream => $true }),
        headers => [ Authorization => 'Bearer alice' ]);
    $s->read_head;

    return map { $_->{json} || () } $s->events;
}

# A text is not printed when it differs: it can be long.

sub has {
    my ($text, $re, $name) = @_;

    ok($text =~ $re, $name) or diag(substr($text, 0, 200) . '...'
                                    . substr($text, -1500));
}

sub refused {
    my ($r, $status, $re, $name) = @_;

    is($r->{status}, $status, "$name: status") or diag($r->{body});
    like($r->{json}{error}{message}, $re, "$name: message");
}

my @round = ({ type => 'reasoning', summary => [],
               content => [ { type => 'reasoning_text', text => 'Hm.' } ] },
             { type => 'function_call', call_id => 'c1', name => 'look',
               arguments => '{"at": "place 1"}' },
             { type => 'function_call_output', call_id => 'c1',
               output => 'result 1' });
my @history = ({ role => 'developer', content => 'You look.' },
               user('Find the place.'), @round);


# POST .../responses/compact.

answers("t They\nt \\sare x.");

my $r;
my @h = heads(sub { $r = compact([ @history ], instructions => 'Be brief.',
                                 tools => [ $tool ], temperature => 0.7) });

is($r->{status}, 200, 'compacted') or diag($r->{body});

my $o = $r->{json};
is_deeply([ sort keys %$o ], [ qw/ created_at id object output usage / ],
          'the members of the object');
is($o->{object}, 'response.compaction', 'object');
like($o->{id}, qr/^resp_[0-9a-f]{32}$/, 'id');
cmp_ok(abs($o->{created_at} - time), '<', 60, 'created_at');
is_deeply([ map { [ $_->{type}, $_->{role} ] } @{ $o->{output} } ],
          [ [ 'message', 'system' ], [ 'message', 'user' ],
            [ 'compaction', undef ] ], 'the messages, and the compaction');
is($o->{output}[1]{content}[0]{text}, 'Find the place.', 'the message');

my $item = $o->{output}[-1];
is_deeply([ sort keys %$item ], [ qw/ encrypted_content id type / ],
          'the members of the item');
like($item->{id}, qr/^cmp_[0-9a-f]{48}$/, 'its id');
unlike($r->{body}, qr/They are x/, 'the summary is encrypted');

is(scalar @h, 1, 'one request to the engine');
my ($p) = map { s/^.* prompt=//r } @h;
has($p, qr/^\Q[<｜begin▁of▁sentence｜>]Be brief.\E/, 'instructions');
has($p, qr/"name": "look"/, 'the tools, so that the prefix is cached');
has($p, qr{result 1.*\Q[</think>][<｜end▁of▁sentence｜>][<｜User｜>]$cue\E}s,
    'the question behind the conversation');
has($p, qr{Summary:$}, 'and the beginning of the summary');
like($h[0], qr/ temperature=0 /, 'greedily');

my %usage = %{ $o->{usage} };
cmp_ok($usage{input_tokens}, '>', 300, 'input_tokens');
is($usage{output_tokens}, 3, 'output_tokens');
is($usage{total_tokens}, $usage{input_tokens} + 3, 'total_tokens');


# The output as the input of the next request.

answers("t Fine.");

($p) = prompts(sub { $r = respond([ @{ $o->{output} }, user('And now?') ],
                                  instructions => 'Be brief.') });
is($r->{status}, 200, 'it goes on') or diag($r->{body});
has($p, qr/Find the place\..*\Q${head}They are x.\E.*And now\?/s,
    'the message, the summary, the new message');
unlike($p, qr/result 1/, 'without the calls');

# with what it replaces still in front of it, and without

my $same = $p;
($p) = prompts(sub { respond([ @history, $item, user('And now?') ],
                             instructions => 'Be brief.') });
ok($p eq $same, 'what is in front leaves the prompt');

($p) = prompts(sub { respond([ $item, user('And now?') ]) });
has($p, qr/^\Q[<｜begin▁of▁sentence｜>][<｜User｜>]${head}They are x.\E/,
    'the item alone');

# its compaction

($p) = prompts(sub { $r = compact([ @{ $o->{output} }, user('More.') ]) });
has($p, qr/They are x\..*More\..*\Q$cue\E/s, 'a compaction of a compaction');
is_deeply([ map { $_->{content} ? $_->{content}[0]{text} : $_->{type} }
            @{ $r->{json}{output} } ],
          [ 'You look.', 'Find the place.', 'More.', 'compaction' ],
          'has one compaction only');

# the conversation ends with an answer

($p) = prompts(sub { $r = compact([ user('Hi'), { role => 'assistant',
                                    content => 'Hello.' } ]) });
is($r->{status}, 200, 'behind an answer') or diag($r->{body});
has($p, qr/Hello\.\Q[<｜end▁of▁sentence｜>][<｜User｜>]$cue\E/,
    'the question is the next message');

$r = compact('Hi');
is($r->{status}, 200, 'the input may be a string') or diag($r->{body});


# An item of another caller, or that was changed, is refused.

my $at = qr/^input\[0\]\.encrypted_content: /;
my $bad = sub { { type => 'compaction', encrypted_content => $_[0] } };

refused(respond([ $item, user('Hi') ], tenant => 'bob'), 400,
        qr/$at.*cannot be decrypted/, 'of another tenant');

my $sealed = $item->{encrypted_content};

for (substr($sealed, 0, -4), substr($sealed, 0, 20), '', 'AAAA', '!',
     $sealed . 'AAAA', substr($sealed, 0, 50) . 'BBBB' . substr($sealed, 54))
{
    refused(respond([ $bad->($_), user('Hi') ]), 400,
            qr/$at.*cannot be decrypted/, 'changed');
}

refused(respond([ { type => 'compaction' }, user('Hi') ]), 400,
        qr/$at.*required/, 'no text');
refused(respond([ $bad->(5), user('Hi') ]), 400,
        qr/encrypted_content/, 'a number');

$r = respond([ user('Think.') ], model => 'deepseek-reasoner',
             include => [ 'reasoning.encrypted_content' ]);
my ($thought) = grep { $_->{type} eq 'reasoning' } @{ $r->{json}{output} };

SKIP: {
    skip 'the engine did not think', 2 if !$thought;
    refused(respond([ $bad->($thought->{encrypted_content}), user('Hi') ]),
            400, qr/$at.*not that of a compaction/, 'reasoning');
}

refused(compact([]), 400, qr/there is nothing to compact/, 'no message');
refused(compact(undef, instructions => 'x'), 400,
        qr/there is nothing to compact/, 'instructions only');
refused(compact([ { role => 'system', content => 'x' } ]), 400,
        qr/there is nothing to compact/, 'a system message only');
refused(respond([ { type => 'compaction_trigger' }, user('Hi') ]), 400,
        qr/input\[0\]: a compaction_trigger is the last item/,
        'a trigger that is not the last item');


# A summary that fails is an error, and costs nothing.

answers("t \\s\\s");
refused(compact([ @history ]), 500, qr/the model wrote no summary/,
        'an empty summary');
answers("error internal");
is(compact([ @history ])->{status} >= 500, 1, 'the engine fails');


# The item compaction_trigger: a response that is a compaction, as Codex
# requests it.

answers("t They\nt \\sare x.");

my @events;
($p) = prompts(sub { @events = stream([ @history,
                                        { type => 'compaction_trigger' } ],
                                      tools => [ $tool ], store => $false) });
has($p, qr/\Q$cue\E.*Summary:$/s, 'a trigger: the question');
is_deeply([ map { $_->{type} } @events ],
          [ map { "response.$_" } qw/ created in_progress output_item.added
              output_item.done completed / ], 'its events');
is_deeply([ map { $_->{sequence_number} } @events ], [ 0 .. 4 ], 'numbers');
is($events[2]{item}{id}, $events[3]{item}{id}, 'the same item');
is_deeply([ sort keys %{ $events[3]{item} } ],
          [ qw/ encrypted_content id type / ], 'its members');
is_deeply($events[4]{response}{output}, [ $events[3]{item} ], 'the output');
is($events[4]{response}{status}, 'completed', 'completed');

($p) = prompts(sub { respond([ @history, $events[3]{item}, user('So?') ]) });
has($p, qr/Find the place\..*\Q$head\EThey are x\..*So\?/s,
    'messages of the user stay');

answers("t \\s");
@events = stream([ @history, { type => 'compaction_trigger' } ]);
is($events[-1]{type}, 'response.failed', 'an empty one fails');


# context_management: above the threshold the server compacts the conversation.

my @manage = (context_management => [ { type => 'compaction',
                                        compact_threshold => 1000 } ]);
my @long = ({ role => 'developer', content => 'You look.' },
            user('Find ' . 'x' x 2000), @round, user('Where is it?'));

answers("t They\nt \\sare x.");

@h = heads(sub { $r = respond([ @history ], @manage) });
is(scalar @h, 1, 'below the threshold: one request');
is($r->{json}{output}[0]{type}, 'message', 'and no compaction');

my @p;
@p = prompts(sub { $r = respond([ @long ], @manage, tools => [ $tool ],
                                store => $false) });
is($r->{status}, 200, 'above it') or diag($r->{body});
is(scalar @p, 2, 'a summary, and the answer');
has($p[0], qr/Where is it\?.*\Q$cue\E.*Summary:$/s, 'the summary');
has($p[1], qr/\Q${head}They are x.\E.*Where is it\?/s,
    'the prompt has the summary and the last message');
unlike($p[1], qr/xxx|result 1/, 'and nothing else');
has($p[1], qr/You look\./, 'but the messages of the system');
is_deeply([ map { $_->{type} } @{ $r->{json}{output} } ],
          [ qw/ compaction message / ], 'the output');
is($r->{json}{usage}{output_tokens}, 6, 'both outputs are in usage');
cmp_ok($r->{json}{usage}{input_tokens}, '>', 2300, 'and both inputs');

# the client appends the output to its input

$same = $p[1];
($p) = prompts(sub { respond([ @long, @{ $r->{json}{output} },
                               user('Thanks.') ], tools => [ $tool ]) });
ok(substr($p, 0, length $same) eq $same,
   'the next prompt begins with the compacted one');
unlike($p, qr/xxx/, 'what is in front of the item leaves');

answers("t Fine.");
@events = stream([ @long ], @manage);
is_deeply([ map { $_->{type} =~ s/^response\.//r } @events ],
          [ qw/ created in_progress output_item.added output_item.done
              output_item.added content_part.added output_text.delta
              output_text.done content_part.done output_item.done
              completed / ], 'the events of a stream')
    or diag(join ' ', map { $_->{type} } @events);
is_deeply([ map { exists $_->{output_index} ? $_->{output_index} : () }
            @events ], [ 0, 0, (1) x 6 ], 'their indices');
is($events[2]{item}{type}, 'compaction', 'the compaction is first');

answers("t \\s");
refused(respond([ @long ], @manage), 500, qr/the summary failed: it is empty/,
        'an empty summary');

for ([ {}, qr/invalid type/ ], [ [ {}, {} ], qr/2 entries/ ], [ [ 5 ],
     qr/this entry/ ], [ [ { type => 'clear' } ], qr/this entry/ ],
     [ [ { type => 'compaction', compact_threshold => 0 } ], qr/valid range/ ],
     [ [ { type => 'compaction', compact_threshold => 1e30 } ], qr/range/ ],
     [ [ { type => 'compaction', compact_threshold => 'x' } ], qr/integer/ ])
{
    refused(respond('Hi', context_management => $_->[0]), 400, $_->[1],
            'context_management ' . json_encode($_->[0]));
}

answers("t Fine.");

for ([], [ { type => 'compaction' } ],
     [ { type => 'compaction', compact_threshold => undef } ])
{
    is(respond('Hi', context_management => $_)->{status}, 200,
       'accepted: ' . json_encode($_));
}


# Stored responses.

answers("t They\nt \\sare x.");

$r = respond([ @long ], @manage);
my $id = $r->{json}{id};
is($r->{json}{store}, $true, 'stored');

answers("t Fine.");

($p) = prompts(sub { $r = respond('Thanks.', previous_response_id => $id) });
is($r->{status}, 200, 'it is continued') or diag($r->{body});
has($p, qr/\Q${head}They are x.\E.*Thanks\./s, 'by the summary');
unlike($p, qr/xxx|result 1/, 'without what it replaces');

my $got = $t->get("$uri/$id", as('alice'))->{json};
is_deeply([ map { $_->{type} } @{ $got->{output} } ],
          [ qw/ compaction message / ], 'it can be read');
my $stored = $got->{output}[0];
($p) = prompts(sub { respond([ $stored, user('Hi') ]) });
has($p, qr/They are x/, 'and its item sent back');

$r = compact(undef, previous_response_id => $id);
is($r->{status}, 200, 'compact with previous_response_id') or diag($r->{body});
refused(compact(undef, previous_response_id => 'resp_' . '1' x 32), 404,
        qr/no stored response/, 'an unknown one');

# the item in the input of a stored response is listed with its text

$r = respond([ $item, user('Hi') ]);
$got = $t->get("$uri/$r->{json}{id}/input_items?order=asc", as('alice'))
       ->{json}{data};
is($got->[0]{type}, 'compaction', 'listed');
($p) = prompts(sub { $r = respond([ $got->[0], user('So?') ]) });
is($r->{status}, 200, 'and accepted') or diag($r->{body});
has($p, qr/They are x/, 'with its summary');

($p) = prompts(sub { $r = respond([ { type => 'item_reference',
                                      id => $stored->{id} }, user('So?') ]) });
is($r->{status}, 200, 'a reference to it') or diag($r->{body});
has($p, qr/They are x/, 'has the same summary');


# Conversations.

my $conv = $t->post('/v1/conversations', { items => [ @history ] },
                    as('alice'))->{json}{id};
like($conv, qr/^conv_/, 'a conversation');

answers("t They\nt \\sare x.");
$r = compact(undef, conversation => $conv);
is($r->{status}, 200, 'is compacted') or diag($r->{body});
($p) = prompts(sub { $r = respond('So?', conversation => $conv) });
is($r->{status}, 200, 'and continued') or diag($r->{body});
has($p, qr/Find the place\..*\Q${head}They are x.\E.*So\?/s,
    'by its messages and the summary');
unlike($p, qr/result 1/, 'without its calls');

$r = respond([ @long ], @manage, conversation => $conv);
is($r->{json}{output}[0]{type}, 'compaction', 'above a threshold, too');
($p) = prompts(sub { $r = respond('And?', conversation => $conv) });
unlike($p, qr/Find the place|xxx/, 'and all in front of it leaves');

my $items = $t->get("/v1/conversations/$conv/items?limit=100", as('alice'))
            ->{json}{data};
is(scalar(grep { $_->{type} eq 'compaction' && $_->{encrypted_content} }
          @$items), 2, 'its list has both items');


# The ledger has the tokens of the summaries.

sub ledger {
    my @sum = (0) x 3;

    for my $key ($redis->keys("dsa1:*:ledger:*")) {
        my %entry = @{ $redis->cmd('HGETALL', $key) };
        my @n = map { $entry{"deepseek-chat|$_"} }
                    qw/ requests prompt_tokens completion_tokens /;
        next if !defined $n[0];
        $sum[$_] += $n[$_] || 0 for 0 .. 2;
    }

    return @sum;
}

answers("t They\nt \\sare x.");

for ([ "$uri/compact", body([ @history ]) ],
     [ $uri, body([ @long ], @manage, store => $false) ])
{
    my @before = ledger();
    $r = $t->post($_->[0], $_->[1], as('alice'));
    my $usage = $r->{json}{usage};
    my @after;

    wait_until(sub { @after = ledger(); $after[0] > $before[0] }, 10,
               'the ledger');
    is_deeply([ map { $after[$_] - $before[$_] } 0 .. 2 ],
              [ 1, @$usage{qw/ input_tokens output_tokens /} ],
              "$_->[0]: the ledger has the tokens of usage");
}


# Anthropic's Messages: the edit compact_20260112.

sub message {
    my ($messages, %more) = @_;
    return { model => 'deepseek-chat', max_tokens => 100,
             messages => $messages, %more };
}

sub edit {
    my ($value, %more) = @_;
    return (context_management => { edits => [
        { type => 'compact_20260112', %more,
          trigger => { type => 'input_tokens', value => $value } } ] });
}

my $messages = '/v1/messages';
my @tools = (tools => [ { name => 'look',
                          input_schema => { type => 'object' } } ]);
my @said = (user('Find ' . 'x' x 2000),
            { role => 'assistant', content => [
                { type => 'tool_use', id => 'c1', name => 'look',
                  input => { at => 'place 1' } } ] },
            { role => 'user', content => [
                { type => 'tool_result', tool_use_id => 'c1',
                  content => 'result 1' },
                { type => 'text', text => 'Where is it?' } ] });

answers("t They\nt \\sare x.");

@p = prompts(sub { $r = $t->post($messages, message(\@said, edit(1000),
                                 @tools, system => 'You look.')) });
is($r->{status}, 200, 'a message is compacted') or diag($r->{body});
is(scalar @p, 2, 'a summary, and the answer');
has($p[0], qr/\Q$cue\E.*Summary:$/s, 'the summary');
has($p[1], qr/You look\..*\Q${head}They are x.\E.*Where is it\?/s,
    'the prompt has it');
unlike($p[1], qr/xxx|result 1/, 'and not what it replaces');

$o = $r->{json};
is_deeply([ map { $_->{type} } @{ $o->{content} } ],
          [ qw/ compaction text / ], 'the blocks');
is_deeply([ sort keys %{ $o->{content}[0] } ],
          [ qw/ content encrypted_content type / ], 'the members of the block');
has($o->{content}[0]{content}, qr/^They are x\..*Where is it\?$/s,
    'the summary and the last message');
is($o->{stop_reason}, 'end_turn', 'stop_reason');
is_deeply($o->{context_management}, { applied_edits => [] },
          'context_management');

my @i = @{ $o->{usage}{iterations} };
is_deeply([ map { $_->{type} } @i ], [ qw/ compaction message / ],
          'iterations');
is($_->{output_tokens}, 3, 'output_tokens of each') for @i;
cmp_ok($i[0]{input_tokens}, '>', 2000, 'the compaction\'s input');
cmp_ok($i[1]{input_tokens}, '<', 2000, 'the message\'s input');
is($o->{usage}{$_}, $i[1]{$_}, "$_ is that of the message")
    for qw/ input_tokens output_tokens /;

my $whole = $o->{content};
my @m = map { $_->{json} || () } $t->stream(
    message(\@said, edit(1000), @tools, system => 'You look.'),
    uri => $messages)->events;
my @types = map { $_->{type} } grep { $_->{type} ne 'ping' } @m;

# how many deltas a text has depends on when its tokens arrive

is_deeply([ map { $types[$_] } grep { !$_ || $types[$_] ne $types[$_ - 1] }
                                    0 .. $#types ],
          [ qw/ message_start content_block_start content_block_delta
                content_block_stop content_block_start content_block_delta
                content_block_stop message_delta message_stop / ],
          'the events of a stream');
is_deeply($m[2]{delta}, { %{ $whole->[0] }, type => 'compaction_delta' },
          'one delta has the whole summary');

# the event message_delta has fewer members

%usage = %{ $o->{usage} };
delete @usage{qw/ cache_creation inference_geo service_tier speed /};
is_deeply($m[-2]{usage}, \%usage, 'the usage of the end');

is_deeply($m[-2]{context_management}, { applied_edits => [] },
          'context_management of the end');

# its answer as history

$same = $p[1];
($p) = prompts(sub { $r = $t->post($messages, message(
    [ @said, { role => 'assistant', content => $whole }, user('Thanks.') ],
    @tools, system => 'You look.')) });
is($r->{status}, 200, 'sent back') or diag($r->{body});
ok(substr($p, 0, length $same) eq $same,
   'the prompt begins with the compacted one');
has($p, qr/They are x\..*They are x\..*Thanks\.\Q[<\E/s, 'and goes on');

($p) = prompts(sub { $r = $t->post($messages, message(
    [ @said, { role => 'assistant', content => [ $whole->[0] ] } ])) });
is($r->{status}, 200, 'the block is the last message') or diag($r->{body});
has($p, qr/\Q[<｜Assistant｜>]\E[^U]*$/, 'which the model answers');

($p) = prompts(sub { $t->post($messages, message(
    [ user('Hi'), { role => 'assistant', content => [
        { type => 'text', text => 'One' },
        { type => 'compaction', content => undef },
        { type => 'text', text => 'Two' } ] }, user('So?') ])) });
has($p, qr/Hi.*OneTwo.*So\?/s, 'a block without a summary is left out');

for ([ '', qr/content\[0\]\.content: empty/ ], [ 5, qr/invalid type/ ],
     [ {}, qr/invalid type/ ])
{
    refused($t->post($messages, message([ user('Hi'), { role => 'assistant',
                content => [ { type => 'compaction', content => $_->[0] } ] },
                user('So?') ])), 400, $_->[1],
            'content ' . json_encode([ $_->[0] ]));
}

# a pause, and instructions

($p) = prompts(sub { $r = $t->post($messages, message(\@said,
    edit(1000, pause_after_compaction => $true, instructions => 'Be terse.'),
    @tools, stop_sequences => [ 'are' ],
    thinking => { type => 'enabled', budget_tokens => 1024 },
    max_tokens => 2000)) });
is($r->{status}, 200, 'a pause') or diag($r->{body});
has($p, qr/Where is it\?.*Be terse\..*Summary:$/s, 'with instructions');
unlike($p, qr/\Q$cue\E/, 'in place of the server\'s');
$o = $r->{json};
is($o->{stop_reason}, 'compaction', 'stop_reason');
is_deeply([ map { $_->{type} } @{ $o->{content} } ], [ 'compaction' ],
          'one block');
has($o->{content}[0]{content}, qr/^They are x\..*Where is it\?$/s,
    'its content');
is_deeply([ @{ $o->{usage} }{ qw/ input_tokens output_tokens / } ], [ 0, 0 ],
          'no tokens of an answer');
is_deeply([ map { [ $_->{type}, $_->{output_tokens} ] }
            @{ $o->{usage}{iterations} } ], [ [ 'compaction', 3 ] ],
          'but those of the compaction');

@m = grep { $_->{type} ne 'ping' } map { $_->{json} || () } $t->stream(
    message(\@said, edit(1000, pause_after_compaction => $true)),
    uri => $messages)->events;
is_deeply([ map { $_->{type} } @m ],
          [ qw/ message_start content_block_start content_block_delta
                content_block_stop message_delta message_stop / ],
          'its stream');
is($m[2]{delta}{content}, $o->{content}[0]{content}, 'the same content');
is($m[4]{delta}{stop_reason}, 'compaction', 'its stop_reason');

# the whole conversation

$r = $t->post($messages, message([ user('Hi') ],
                                 compaction => { type => 'summarize' }));
is($r->{json}{stop_reason}, 'compaction', 'compaction: stop_reason');

# below the trigger

answers("t Fine.");
@h = heads(sub { $r = $t->post($messages, message(\@said, edit(10000))) });
is(scalar @h, 1, 'below the trigger: one request');
is_deeply([ map { $_->{type} } @{ $r->{json}{content} } ], [ 'text' ],
          'no compaction');
is_deeply([ map { $_->{type} } @{ $r->{json}{usage}{iterations} } ],
          [ 'message' ], 'one iteration');

answers("t \\s");
refused($t->post($messages, message(\@said, edit(1000))), 500,
        qr/the summary failed: it is empty/, 'an empty summary');
refused($t->post($messages, message(\@said,
            edit(1000, pause_after_compaction => $true))), 500,
        qr/the model wrote no summary/, 'an empty summary before a pause');

answers("t Fine.");
my $compact = { type => 'compact_20260112' };

for ([ [ $compact, $compact ], qr/edits\[1\]: this is the second/ ],
     [ [ { %$compact, trigger => 5 } ], qr/input_tokens/ ],
     [ [ { %$compact, trigger => { type => 'tool_uses', value => 1 } } ],
       qr/input_tokens/ ],
     [ [ { %$compact, trigger => { type => 'input_tokens' } } ],
       qr/value: the number/ ],
     [ [ { %$compact, trigger => { type => 'input_tokens', value => 0 } } ],
       qr/valid range/ ],
     [ [ { %$compact, pause_after_compaction => 'x' } ], qr/pause_after/ ],
     [ [ { %$compact, instructions => [] } ], qr/instructions/ ],
     [ [ 5 ], qr/edits\[0\]: this edit/ ])
{
    refused($t->post($messages, message([ user('Hi') ],
                context_management => { edits => $_->[0] })), 400, $_->[1],
            'edits ' . json_encode($_->[0]));
}

for ([ 5, qr/summarize/ ], [ { type => 'x' }, qr/summarize/ ],
     [ { type => 'summarize', instructions => 5 }, qr/instructions/ ])
{
    refused($t->post($messages, message([ user('Hi') ], compaction => $_->[0])),
            400, $_->[1], 'compaction ' . json_encode([ $_->[0] ]));
}

refused($t->post($messages, message([ user('Hi') ], edit(1000),
                                    compaction => { type => 'summarize' })),
        400, qr/only one of them/, 'compaction and context_management');

$r = $t->post("$messages/count_tokens", { model => 'deepseek-chat',
              messages => [ user('Hi') ], edit(1) });
is_deeply($r->{json}{context_management},
          { original_input_tokens => $r->{json}{input_tokens} },
          'a count applies no edit');


# A client that leaves while the summary is written: the request ends, and what
# was computed is charged.

answers("t They\nhold");

for my $body ([ $uri, body([ @long ], @manage) ],
              [ "$uri/compact", body([ @history ]) ],
              [ $messages, message(\@said, edit(1000)) ])
{
    my $n = () = cancelled($fake);
    my $k = () = submitted($fake);
    my $s = $t->connect;

    $s->send_request(POST => $body->[0], body => json_encode($body->[1]),
                     headers => [ Authorization => 'Bearer leaves' ]);
    wait_until(sub { my $now = () = submitted($fake); $now > $k }, 20,
               "$body->[0]: the summary is submitted");
    $s->close;
    wait_until(sub { my $now = () = cancelled($fake); $now > $n }, 20,
               "$body->[0]: and cancelled");
    pass("$body->[0]: the client leaves");
}

$r = $t->post("/short$uri", body([ @long ], @manage));
is($r->{status} >= 500, 1, 'a summary that is late: an error');

answers("t They\ndie");
$r = respond([ @long ], @manage);
is($r->{status} >= 500, 1, 'the engine dies');

$t->done;
