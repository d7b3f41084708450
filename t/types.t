# Copyright (C) The nginx-dsa authors
#
# Requests, events and objects of the four APIs are values of the types that
# OpenAI's and Anthropic's npm packages publish: what a running server sends is
# written as literals of TypeScript, which its compiler checks, so that a member
# that is missing, unknown or of another type is an error.  What differs from
# the types is in the list below, each with its reason.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('types');
my $dir = installed($t, 't/types');

$t->start_redis();
$t->start_fake();
$t->start_nginx(redis => 'ttl=1h');

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my ($chat, $completions, $responses, $messages, $conversations) =
    map { "/v1/$_" } qw{ chat/completions completions responses messages
                         conversations };

wait_until(sub { $t->get("$responses/resp_" . '0' x 32)->{status} == 404 }, 20,
           'Redis');


# Members that are not as the types have them: [TYPE, PATH, WHAT, REASON].  TYPE
# is matched against the name of a type.  PATH has the names of members, "*" for
# any element, "*X" for one of type X, and "M?X" for a member M of type X.
# "extra" members are no part of the type, "null" ones may have this value,
# those with "=VALUE" may be null in place of a value, and "absent" ones are
# added by the client.

my $deepseek = "DeepSeek's API has it";
my $own = 'an extension of this server';
my $wire = "OpenAI's API sends it, and its types lack it";
my $event = qr/^OpenAI\.Responses\.ResponseStreamEvent$/;
my $response = qr/^OpenAI\.Responses\.Response$/;
my $usage = 'OpenAI\'s API sends null until the usage is known';
my $user = 'OpenAI\'s API sends null for none';
my $text = 'the client computes it from the items';

my @deviations = (
    [ qr/^OpenAI\.Chat\.ChatCompletion$/,
      'choices.*.message.reasoning_content', 'extra', $deepseek ],
    [ qr/^OpenAI\.Chat\.ChatCompletion$/,
      'choices.*.message.tool_calls.*.index', 'extra', $deepseek ],
    [ qr/^OpenAI\.Chat\.ChatCompletionChunk$/,
      'choices.*.delta.reasoning_content', 'extra', $deepseek ],
    [ qr/^OpenAI\.Chat\.ChatCompletion/,
      'choices.*.logprobs.reasoning_content', 'extra', $deepseek ],
    [ qr/^(?:OpenAI\.(?:Chat|Completion)|CompletionEvent)/,
      'usage.prompt_cache_hit_tokens', 'extra', $deepseek ],
    [ qr/^(?:OpenAI\.(?:Chat|Completion)|CompletionEvent)/,
      'usage.prompt_cache_miss_tokens', 'extra', $deepseek ],
    [ qr/^CompletionEvent$/, 'choices.*.finish_reason', '=stop',
      "OpenAI's API sends null until the end" ],
    [ qr/^CompletionEvent$/, 'usage', 'null', $usage ],
    (map { [ qr/^(?:OpenAI\.(?:Chat|Completion)|CompletionEvent)/,
             "usage.prompt_tokens_details.$_", 'extra', $own ] }
         qw/ gpu_tokens host_tokens redis_tokens /),
    (map { [ qr/^(?:OpenAI\.(?:Chat|Completion)|CompletionEvent)/,
             "usage.completion_tokens_details.$_", 'extra', $own ] }
         qw/ draft_tokens accepted_draft_tokens /),
    (map { [ @$_, 'extra', $wire ] }
         [ $response, 'output.*custom_tool_call.status' ],
         [ $event, 'response.output.*custom_tool_call.status' ],
         [ $event, 'item?custom_tool_call.status' ],
         [ qr/^OpenAI\.Responses\.ResponseCreateParams$/,
           'input.*custom_tool_call.status' ]),
    [ $response, 'output_text', 'absent', $text ],
    [ $event, 'response.output_text', 'absent', $text ],
    [ $event, 'response.usage', 'null', $usage ],
    [ $response, 'user', 'null', $user ],
    [ $event, 'response.user', 'null', $user ],
    [ $response, 'output.*compaction.text', 'extra', $own ],
    [ qr/^OpenAI\.Responses\.CompactedResponse$/, 'output.*message', 'item',
      'its documentation has messages of the user there' ],
    [ qr/^Anthropic\.Beta\.BetaRawMessageStreamEvent$/,
      'delta?thinking_delta.estimated_tokens', 'null if absent',
      "Anthropic's API sends it with another beta feature only" ],
    [ $response, 'store', 'extra', $wire ],
    [ $event, 'response.store', 'extra', $wire ]);

my %seen;


# Removes from a value what the list has for its type.

sub without {
    my ($type, $value) = @_;

    for my $d (@deviations) {
        my ($of, $path, $what) = @$d;

        $seen{"$of $path"} += part($value, $what, split /\./, $path)
            if $type =~ $of;
    }

    return $value;
}

sub part {
    my ($v, $what, $name, @rest) = @_;

    if ($name =~ /^\*(.*)/) {
        my $n = 0;

        if ($what eq 'item') {
            $n = @$v;
            @$v = grep { $_->{type} ne $1 } @$v;
            return $n - @$v;
        }

        $n += part($_, $what, @rest)
            for grep { $1 eq '' || ($_->{type} // '') eq $1 }
                ref $v eq 'ARRAY' ? @$v : ();
        return $n;
    }

    return 0 if ref $v ne 'HASH';

    if ($name =~ /^(\w+)\?(.*)/) {
        return 0 if ref $v->{$1} ne 'HASH' || ($v->{$1}{type} // '') ne $2;
        return part($v->{$1}, $what, @rest);
    }

    if (!@rest) {
        if ($what =~ /absent/) {
            return 0 if exists $v->{$name};
            $v->{$name} = $what eq 'absent' ? '' : undef;
            return 1;
        }

        return 0 if !exists $v->{$name}
                    || $what ne 'extra' && defined $v->{$name};
        delete $v->{$name};
        $v->{$name} = $1 if $what =~ /^=(.*)/;
        return 1;
    }

    return part($v->{$name}, $what, @rest);
}


# The literals: [NAME, TYPE, JSON].

my @literals;

sub literal {
    my ($name, $type, $value) = @_;

    # a copy

    push @literals, [ $name, $type,
                      json_encode(without($type,
                                          json_decode(json_encode($value)))) ];
}


# The types of an API: its request, its object, its events, its error.

my %types = (
    $chat => [ map { "OpenAI.Chat.$_" }
                   qw/ ChatCompletionCreateParams ChatCompletion
                       ChatCompletionChunk / ],
    $completions => [ 'OpenAI.CompletionCreateParams', 'OpenAI.Completion',
                      'CompletionEvent' ],
    $responses => [ map { "OpenAI.Responses.$_" }
                        qw/ ResponseCreateParams Response
                            ResponseStreamEvent / ],
    $messages => [ map { "Anthropic.$_" }
                       qw/ MessageCreateParams Message
                           RawMessageStreamEvent / ]);

# Fields that only the beta version of an API has

my @beta = map { "Anthropic.Beta.$_" }
           qw/ MessageCreateParams BetaMessage BetaRawMessageStreamEvent /;


# Both answers to a request.  Returns the object.

sub check {
    my ($name, $uri, $body, $status, @types) = @_;

    my ($params, $object, $event) = @types ? @types : @{ $types{$uri} };

    $name = "$name, $uri";
    literal("$name: the request", $params, $body) if !$status;

    my $r = $t->post($uri, $body);

    is($r->{status}, $status || 200, $name) or diag($r->{body});

    if ($r->{status} == 200) {
        literal("$name: the object", $object, $r->{json});

    } else {
        problem("$name: the error", $uri, $r->{json});
    }

    # the usage of a whole answer, in a stream

    my $s = $t->stream({ %$body, $uri eq $chat || $uri eq $completions
                                 ? (stream_options => {
                                        include_usage => $true }) : () },
                       uri => $uri);
    my $i = 0;

    return $r->{json} if $s->status != 200;

    for ($s->events) {
        $i++;

        if (defined $_->{json} && ($_->{event} // '') eq 'error'
            && $uri eq $messages
            || defined $_->{json} && exists $_->{json}{error}
               && $uri ne $responses)
        {
            problem("$name: event $i", $uri, $_->{json});

        } elsif (defined $_->{json} && ($_->{event} // '') ne 'ping') {
            literal("$name: event $i", $event, $_->{json});
        }
    }

    cmp_ok($i, '>', 0, "$name: events");

    return $r->{json};
}


sub problem {
    my ($name, $uri, $json) = @_;

    return literal($name, 'Anthropic.ErrorResponse', $json)
        if $uri eq $messages;

    is(join(' ', keys %$json), 'error', "$name: an error");
    literal($name, 'OpenAI.ErrorObject', $json->{error});
}


# A request of each API, answered by a script of these lines.

sub body {
    my ($uri, $lines, %more) = @_;

    my $say = "!fake\n$lines";

    return { model => 'deepseek-chat',
             $uri eq $completions ? (prompt => $say)
             : $uri eq $responses ? (input => $say)
             : (messages => [ { role => 'user', content => $say } ]),
             $uri eq $messages ? (max_tokens => 64) : (), %more };
}


my $object = { type => 'object', properties => { a => { type => 'string' } },
               required => [ 'a' ], additionalProperties => $false };
my %function = (type => 'function', name => 'f', parameters => $object,
                strict => $false);
my $why = "prompt 90\ncached 64\nT why|</think>|so| it| is\n";
my $calls = "T I look\n" . tool_calls([ 'f', 'a', 'true', 'x"' ],
                                      [ 'f', 'a', 'true', 'y' ]) . "\n";
my $fail = "t so\nerror internal The engine failed.\n";
my $early = "error internal The engine failed.\n";

# Chat completions

my @tools = ({ type => 'function',
               function => { name => 'f', description => 'F.',
                             parameters => $object } });

check('text', $chat, body($chat, "T so| it| is\n"));
check('reasoning', $chat,
      body($chat, $why, model => 'deepseek-reasoner'));
check('logprobs', $chat, body($chat, "T so| it|<>\\xc3|é<>\\xa9\n",
                              logprobs => $true, top_logprobs => 2));
check('logprobs, reasoning', $chat,
      body($chat, $why, model => 'deepseek-reasoner', logprobs => $true,
           top_logprobs => 1));
check('calls', $chat, body($chat, $calls, tools => \@tools));
check('choices', $chat, body($chat, "T so| it\n", n => 3));
check('length', $chat, body($chat, "t so\ndone length\n"));
check('structured', $chat,
      body($chat, "T {\"a\":|\"b\"}\n", response_format => {
          type => 'json_schema', json_schema => {
              name => 'x', schema => $object, strict => $true } }));
check('fields', $chat,
      body($chat, "t so\n", frequency_penalty => 0, presence_penalty => 0,
           logit_bias => {}, max_completion_tokens => 9, metadata => {},
           modalities => [ 'text' ], n => 1, parallel_tool_calls => $true,
           prompt_cache_key => 'k', prompt_cache_retention => '24h',
           reasoning_effort => 'low', safety_identifier => 's', seed => 1,
           service_tier => 'auto', stop => [ 'x' ], store => $false,
           temperature => 1, top_p => 1, user => 'u', verbosity => 'low'));
check('failure', $chat, body($chat, $fail), 500);
check('early failure', $chat, body($chat, $early), 500);
check('refused', $chat, body($chat, "t so\n", temperature => 3), 400);

# Text completions

check('text', $completions, body($completions, "T so| it| is\n"));
check('logprobs', $completions, body($completions, "T so| it\n",
                                     logprobs => 2, max_tokens => 9));
check('echo', $completions, body($completions, "T so| it\n", echo => $true));
check('choices', $completions, body($completions, "T so| it\n", n => 2));
check('length', $completions, body($completions, "t so\ndone length\n"));
check('failure', $completions, body($completions, $fail), 500);
check('refused', $completions, body($completions, "t so\n", n => 99), 400);

# Responses

my $logprobs = 'message.output_text.logprobs';
my $stored = check('text', $responses, body($responses, "T so| it| is\n"));

check('reasoning', $responses,
      body($responses, $why, reasoning => { effort => 'high',
                                            summary => $_ }, store => $false,
           include => [ 'reasoning.encrypted_content' ]))
    for qw/ auto concise detailed /;
check('verbosity', $responses,
      body($responses, "T so\n", text => { verbosity => $_ }))
    for qw/ low medium high /;
check('logprobs', $responses,
      body($responses, "T so| it|<>\\xc3|é<>\\xa9\n",
           include => [ $logprobs ], top_logprobs => 2));
check('calls', $responses,
      body($responses, $calls, tools => [ \%function ],
           include => [ $logprobs ]));
check('namespaces and custom tools', $responses,
      body($responses,
           tool_calls([ 's.f', 'a', 'true', 'x' ],
                      [ 'patch', 'input', 'true', '*** Begin' ]) . "\n",
           tools => [ { type => 'namespace', name => 's', description => 'S.',
                        tools => [ { %function } ] },
                      { type => 'custom', name => 'patch',
                        description => 'P.',
                        format => { type => 'grammar', syntax => 'regex',
                                    definition => '[^z]*' } },
                      { type => 'web_search' } ]));
check('length', $responses, body($responses, "t so\ndone length\n"));
check('structured', $responses,
      body($responses, "T {\"a\":|\"b\"}\n", text => { format => {
          type => 'json_schema', name => 'x', schema => $object,
          strict => $true } }));
check('fields', $responses,
      body($responses, "t so\n", background => $false, include => [],
           instructions => 'I.', max_output_tokens => 9, max_tool_calls => 3,
           metadata => { a => 'b' }, parallel_tool_calls => $false,
           prompt_cache_key => 'k', prompt_cache_retention => '24h',
           prompt_cache_options => { mode => 'implicit', ttl => '30m' },
           reasoning => { effort => 'none', context => 'auto',
                          mode => 'standard' },
           safety_identifier => 's', service_tier => 'auto', store => $false,
           temperature => 1, top_logprobs => 0, top_p => 1,
           truncation => 'disabled', user => 'u'));
check('failure', $responses, body($responses, $fail), 500);
check('early failure', $responses, body($responses, $early), 500);
check('refused', $responses, body($responses, "t so\n", top_p => 3), 400);

literal('the stored response', 'OpenAI.Responses.Response',
        $t->get("$responses/$stored->{id}")->{json});
literal('its input', 'OpenAI.Responses.ResponseItemList',
        $t->get("$responses/$stored->{id}/input_items")->{json});
literal('a count', 'OpenAI.Responses.InputTokenCountResponse',
        $t->post("$responses/input_tokens", body($responses, "t so\n"))
          ->{json});

# Conversations

my $conversation = $t->post($conversations, { metadata => { a => 'b' }, items =>
    [ { role => 'assistant', content => 'I.', phase => 'commentary' } ] })
    ->{json};

literal('a conversation', 'OpenAI.Conversations.Conversation', $conversation);
check('a turn', $responses, body($responses, $calls, tools => [ \%function ],
                                 conversation => $conversation->{id}));
literal('its items', 'OpenAI.Conversations.ConversationItemList',
        $t->get("$conversations/$conversation->{id}/items")->{json});
literal('deleted', 'OpenAI.Conversations.ConversationDeletedResource',
        $t->request('DELETE', "$conversations/$conversation->{id}")->{json});

# Messages

my %tool = (tools => [ { name => 'f', description => 'F.',
                         input_schema => { type => 'object' } } ]);
my %ephemeral = (type => 'ephemeral');

check('text', $messages, body($messages, "T so| it| is\n"));
check('reasoning', $messages,
      body($messages, $why, thinking => { type => 'adaptive' }));
check('calls', $messages, body($messages, $calls, %tool));
check('length', $messages, body($messages, "t so\ndone length\n"));
check('stop', $messages, body($messages, "T so| it\n",
                              stop_sequences => [ 'it' ]));
check('structured', $messages,
      body($messages, "T {\"a\":|\"b\"}\n", output_config => {
          format => { type => 'json_schema', schema => $object } }));
check('fields', $messages,
      body($messages, "t so\n", cache_control => { %ephemeral, ttl => '5m' },
           metadata => { user_id => 'u' }, service_tier => 'auto',
           speed => 'standard', inference_geo => 'global',
           diagnostics => { previous_message_id => undef },
           system => [ { type => 'text', text => 'S.',
                         cache_control => { %ephemeral, ttl => '1h' } } ],
           tool_choice => { type => 'auto' },
           tools => [ { %{ $tool{tools}[0] }, type => 'custom',
                        cache_control => \%ephemeral } ]));
check('failure', $messages, body($messages, $fail), 500);
check('early failure', $messages, body($messages, $early), 500);
check('refused', $messages, body($messages, "t so\n", temperature => 3), 400);

literal('a count', 'Anthropic.MessageTokensCount',
        $t->post("$messages/count_tokens", body($messages, "t so\n"))
          ->{json});

# each answer as the next input

for (
    [ 'reasoning', $why ], [ 'calls', $calls ],
    [ 'calls of two kinds', tool_calls([ 's.f', 'a', 'true', 'x' ],
                                       [ 'patch', 'input', 'true', 'x' ])
                            . "\n" ])
{
    my ($name, $lines) = @$_;
    my @all = ({ %function }, { type => 'namespace', name => 's',
                                description => 'S.', tools => [ \%function ] },
               { type => 'custom', name => 'patch' });
    my %more = (tools => \@all, store => $false, include => [ $logprobs ],
                reasoning => { effort => 'high' });
    my $first = check("$name, first", $responses,
                      body($responses, $lines, %more));
    my @items = @{ $first->{output} };

    push @items, map { { type => $_->{type} . '_output', output => 'ok',
                         call_id => $_->{call_id} } }
                 grep { $_->{type} =~ /call$/ } @items;

    check("$name, next", $responses,
          { model => 'deepseek-chat', %more,
            input => [ { role => 'user', content => 'x' }, @items,
                       { role => 'assistant', content => 'So.',
                         phase => 'commentary' },
                       { role => 'user', content => "!fake\nt x" } ] });
}

for ([ 'reasoning', $why ], [ 'calls', $calls ]) {
    my ($name, $lines) = @$_;
    my $say = { role => 'user', content => "!fake\nt x" };
    my %more = (tools => \@tools, model => 'deepseek-reasoner');
    my $message = check("$name, first", $chat, body($chat, $lines, %more))
                  ->{choices}[0]{message};

    is($t->post($chat, { %more, messages => [
           $say, $message,
           map({ { role => 'tool', tool_call_id => $_->{id}, content => 'ok' } }
               @{ $message->{tool_calls} || [] }), $say ] })->{status}, 200,
       "$name: a message of a chat goes back");

    %more = (%tool, max_tokens => 64, model => 'deepseek-chat',
             thinking => { type => 'adaptive' });
    my $content = check("$name, first", $messages,
                        body($messages, $lines, %more))->{content};
    my @results = map { { type => 'tool_result', tool_use_id => $_->{id},
                          content => 'ok' } }
                  grep { $_->{type} eq 'tool_use' } @$content;

    check("$name, next", $messages, { %more, messages => [
              { role => 'user', content => 'x' },
              { role => 'assistant', content => $content },
              { role => 'user', content => [
                  @results, { type => 'text', text => $say->{content} } ] }
          ] });
}

# Compactions and edits

my $large = 'x' x 2000;
my $hint = "!fake\nt Brief.\n";
my %over = (compaction => [ context_management => [
    { type => 'compaction', compact_threshold => 1000 } ] ],
            trigger => [ store => $false ]);

for my $name (sort keys %over) {
    my @input = ({ role => 'user', content => $large },
                 { role => 'user', content => $hint });

    push @input, { type => 'compaction_trigger' } if $name eq 'trigger';

    my $first = check("$name, first", $responses,
                      { model => 'deepseek-chat', input => \@input,
                        @{ $over{$name} } });
    my @items = grep { $_->{type} eq 'compaction' } @{ $first->{output} };

    is(scalar @items, 1, "$name: a compaction");
    check("$name, next", $responses,
          { model => 'deepseek-chat',
            input => [ @items, { role => 'user', content => $hint } ] });

    # what is stored

    next if $name eq 'trigger';
    literal("$name: the stored response", 'OpenAI.Responses.Response',
            $t->get("$responses/$first->{id}")->{json});
}

my %compact = (model => 'deepseek-chat', input => $hint);
my $compacted = $t->post("$responses/compact", \%compact);

is($compacted->{status}, 200, 'a compacted response')
    or diag($compacted->{body});
literal('a compacted response: the request',
        'OpenAI.Responses.ResponseCompactParams', \%compact);
literal('a compacted response', 'OpenAI.Responses.CompactedResponse',
        $compacted->{json});

my @long = ({ role => 'user', content => $large },
            map({ ({ role => 'assistant', content => [
                       { type => 'thinking', thinking => 'So.',
                         signature => 's' },
                       { type => 'tool_use', id => "c$_", name => 'f',
                         input => { a => 'x' } } ] },
                   { role => 'user', content => [
                       { type => 'tool_result', tool_use_id => "c$_",
                         content => $large } ] }) } 1 .. 3),
            { role => 'assistant', content => 'Here.' },
            { role => 'user', content => $hint });
my %edit = map { $_->{type} => $_ } (
    { type => 'compact_20260112', trigger => { type => 'input_tokens',
                                               value => 3000 } },
    { type => 'clear_tool_uses_20250919',
      trigger => { type => 'tool_uses', value => 1 },
      keep => { type => 'tool_uses', value => 1 },
      clear_at_least => { type => 'input_tokens', value => 10 },
      exclude_tools => [ 'g' ], clear_tool_inputs => [ 'f' ] },
    { type => 'clear_thinking_20251015',
      keep => { type => 'thinking_turns', value => 1 } });
my $uses = $edit{clear_tool_uses_20250919};

for ([ 'a compaction', [ $edit{compact_20260112} ], 'compaction' ],
     [ 'a pause', [ { %{ $edit{compact_20260112} }, instructions => 'Do.',
                      pause_after_compaction => $true } ], 'compaction' ],
     [ 'cleared tool uses', [ $uses ], 'applied' ],
     [ 'cleared inputs', [ { %$uses, clear_tool_inputs => $true,
                             exclude_tools => undef,
                             clear_at_least => undef } ], 'applied' ],
     [ 'tool uses by tokens',
       [ { type => $uses->{type},
           trigger => { type => 'input_tokens', value => 100 } } ], 'none' ],
     [ 'cleared thinking', [ $edit{clear_thinking_20251015} ], 'none' ],
     [ 'kept thinking', [ { type => 'clear_thinking_20251015',
                            keep => 'all' } ], 'none' ],
     [ 'all edits', [ @edit{qw/ clear_thinking_20251015
                                clear_tool_uses_20250919
                                compact_20260112 / } ], 'compaction' ],
     [ 'no edit', [], 'none' ])
{
    my ($name, $edits, $what) = @$_;
    my %more = (max_tokens => 4000, model => 'deepseek-chat', %tool,
                thinking => { type => 'adaptive' });
    my $o = check($name, $messages,
                  { %more, messages => \@long,
                    context_management => { edits => $edits } }, undef, @beta);

    is((grep { $_->{type} eq 'compaction' } @{ $o->{content} })
       ? 'compaction' : @{ $o->{context_management}{applied_edits} }
       ? 'applied' : 'none', $what, "$name: what happened");

    # a compaction goes back

    check("$name, next", $messages,
          { %more, messages => [ @long,
                                 { role => 'assistant',
                                   content => $o->{content} },
                                 $long[-1] ] }, undef, $beta[0],
          @{ $types{$messages} }[1, 2])
        if $what eq 'compaction';

    literal("$name: a count", 'Anthropic.Beta.BetaMessageTokensCount',
            $t->post("$messages/count_tokens",
                     { model => 'deepseek-chat', messages => \@long, %tool,
                       context_management => { edits => $edits } })->{json});
}

check('a summary', $messages,
      { model => 'deepseek-chat', max_tokens => 64, messages => \@long,
        compaction => { type => 'summarize', instructions => 'Do.' } }, undef,
      @beta);

# the compiler

my $n = 0;

write_file("$dir/values.ts", <<'HEAD' . join '', map {
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
type CompletionEvent = OpenAI.Completion;
HEAD
    'const v' . $n++ . ": $_->[1] = $_->[2];\n" } @literals);

cmp_ok($n, '>', 300, 'values');
is(join("\n", compiled('values.ts')), '', 'they have their types');

# The errors of the compiler, with the name of the value.

sub compiled {
    my ($file) = @_;

    my $out = `cd '$dir' && node_modules/.bin/tsc --noEmit --strict \\
               --skipLibCheck --module nodenext --target es2022 \\
               --pretty false $file`;

    return map { s/^\Q$file\E\((\d+),\d+\): (.*)/
                 ($literals[$1 - 4] || [ $1 ])->[0] . ": $2"/er }
               grep { /^\S/ } split /\n/, $out;
}

# it finds a member that is missing, one too many, and one of another type

write_file("$dir/wrong.ts", <<'WRONG');
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';

const a: Anthropic.RawMessageStreamEvent = {"type":"content_block_stop"};
const b: OpenAI.Responses.ResponseStreamEvent = {"type":"response.created",
    "sequence_number":0,"response":null};
const c: OpenAI.ErrorObject = {"code":null,"message":"","param":null,
    "type":"","x":1};
WRONG

is(scalar(() = compiled('wrong.ts')), 3, 'errors are found');

# each member of the list is there

is(join("\n", grep { !$seen{$_} } map { "$_->[0] $_->[1]" } @deviations), '',
   'no other deviations than these');

$t->done;
