#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Constrained answers through nginx, with the null backend, which chooses at
# random among the permitted tokens, and with the demonstration model on the
# CPU: each response_format and tool_choice, with and without stream and
# thinking; and what is refused.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

my %t = map { $_ => DSA::Test->new("structured $_") }
            qw/ null cpu apis refused fields final compiled /;
my $chat = '/v1/chat/completions';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

# Short answers: whatever a model samples, it ends within max_tokens.

my $weather = {
    type => 'object',
    properties => {
        city => { enum => [ 'Paris', 'Oslo', 'a "b"' ] },
        days => { type => 'integer', minimum => 1, maximum => 14 },
        wind => { type => 'boolean' },
    },
    required => [qw/ city days wind /],
    additionalProperties => $false,
};

my $list = {
    type => 'object',
    properties => {
        sum  => { type => 'integer', minimum => -9, maximum => 9 },
        rows => { type => 'array', maxItems => 2,
                  items => { anyOf => [ { type => 'null' },
                                        { '$ref' => '#/$defs/x' } ] } },
    },
    required => [qw/ rows sum /],
    additionalProperties => $false,
    '$defs' => { x => { const => 'x' } },
};


sub tool {
    my ($name, $schema, %more) = @_;

    return { type => 'function',
             function => { name => $name, parameters => $schema, %more } };
}


sub schema {
    my ($schema, %more) = @_;

    return response_format => {
        type => 'json_schema',
        json_schema => { name => 'answer', schema => $schema, %more } };
}


# Whether a value, decoded by JSON::PP, is what the schemas above describe.

sub is_weather {
    my ($v) = @_;

    return ref $v eq 'HASH' && join(' ', sort keys %$v) eq 'city days wind'
           && grep({ $v->{city} eq $_ } 'Paris', 'Oslo', 'a "b"')
           && $v->{days} =~ /^\d+$/ && $v->{days} >= 1 && $v->{days} <= 14
           && JSON::PP::is_bool($v->{wind});
}


sub is_list {
    my ($v) = @_;

    return ref $v eq 'HASH' && join(' ', sort keys %$v) eq 'rows sum'
           && $v->{sum} =~ /^-?\d$/ && @{ $v->{rows} } <= 2
           && !grep { defined && $_ ne 'x' } @{ $v->{rows} };
}


sub decoded { eval { JSON::PP->new->utf8(0)->allow_nonref->decode($_[0]) } }

sub content_is {
    my ($check) = @_;

    return sub {
        my ($m) = @_;
        return !$m->{tool_calls} && $check->(decoded($m->{content}));
    };
}


# Calls of tools: each name has the check of its arguments.

sub calls_are {
    my ($min, $max, %check) = @_;

    return sub {
        my ($m) = @_;
        my @calls = @{ $m->{tool_calls} || [] };

        return ($m->{content} // '') eq ''
               && @calls >= $min && @calls <= $max
               && !grep {
                   my $f = $_->{function};
                   my $check = $check{$f->{name}};
                   !($check && $check->(decoded($f->{arguments})))
               } @calls;
    };
}


my @tools = (tool('weather', $weather, strict => $true),
             tool('rows', $list, strict => $true));
my @loose = tool('loose', { type => 'object', unevaluatedProperties => {} });

# name, fields, check, finish_reason

my @cases = (
    [ 'a strict schema', { schema($weather, strict => $true) },
      content_is(\&is_weather), 'stop' ],
    [ 'a schema with $ref, anyOf and arrays',
      { schema($list, strict => $true) }, content_is(\&is_list), 'stop' ],
    [ 'a schema that is not strict', { schema($weather) },
      content_is(\&is_weather), 'stop' ],
    [ 'a schema beside tools that must not be called',
      { schema($weather, strict => $true), tools => \@tools,
        tool_choice => 'none' }, content_is(\&is_weather), 'stop' ],
    [ 'a required call',
      { tools => [ $tools[0] ], tool_choice => 'required',
        parallel_tool_calls => $false },
      calls_are(1, 1, weather => \&is_weather), 'tool_calls' ],
    [ 'one of two tools',
      { tools => \@tools, tool_choice => 'required',
        parallel_tool_calls => $false },
      calls_are(1, 1, weather => \&is_weather, rows => \&is_list),
      'tool_calls' ],
    [ 'a required call of a tool that is not strict',
      { tools => [ tool('weather', $weather) ], tool_choice => 'required',
        parallel_tool_calls => $false },
      calls_are(1, 1, weather => \&is_weather), 'tool_calls' ],
    [ 'a named tool that is not strict',
      { tools => [ @tools, tool('list', { %$list,
                                          unevaluatedProperties => {} }) ],
        tool_choice => { type => 'function',
                         function => { name => 'list' } } },
      calls_are(1, 1, list => \&is_list), 'tool_calls' ],
    [ 'a named tool',
      { tools => \@tools, tool_choice => { type => 'function',
                                          function => { name => 'rows' } } },
      calls_are(1, 1, rows => \&is_list), 'tool_calls' ],
);

# Tools that are not strict have arguments of any length where their schemas
# cannot be enforced.

my @open = (
    [ 'a JSON object', { response_format => { type => 'json_object' } },
      sub { $_[0]{content} =~ /^\s*\{/ } ],
    [ 'a schema that is optional and cannot be enforced',
      { schema({ type => 'object', unevaluatedProperties => {} }) },
      sub { $_[0]{content} =~ /^\s*\{/ } ],
    [ 'several calls', { tools => \@tools, tool_choice => 'required' },
      sub {
          my @calls = @{ $_[0]{tool_calls} || [] };
          return @calls && !grep { $_->{function}{name} !~ /^(weather|rows)$/ }
                                 @calls;
      } ],
    [ 'a call of a tool that is not strict',
      { tools => \@loose, tool_choice => 'required' },
      sub { ($_[0]{tool_calls} || [])->[0]{function}{name} eq 'loose' } ],
);


# A schema or an object beside tools that may be called; how long the calls and
# the object are is up to the model.

sub called {
    my @calls = @{ $_[0]{tool_calls} || [] };

    return @calls && ($_[0]{content} // '') eq ''
           && !grep { $_->{function}{name} !~ /^(?:weather|rows|loose)$/ }
                    @calls;
}


sub is_object { ref $_[0] eq 'HASH' }

my @either = (
    [ 'a schema or a strict call',
      { tools => \@tools, parallel_tool_calls => $false,
        schema($weather, strict => $true) }, content_is(\&is_weather),
      calls_are(1, 1, weather => \&is_weather, rows => \&is_list) ],
    [ 'a schema or calls',
      { tools => [ @tools, @loose ], tool_choice => 'auto',
        schema($list, strict => $true) }, content_is(\&is_list), \&called ],
    [ 'an object or calls',
      { tools => \@loose, response_format => { type => 'json_object' } },
      content_is(\&is_object), \&called ],
    [ 'an object, in place of a schema that is optional, or calls',
      { tools => \@loose, schema({ type => 'object',
                                   unevaluatedProperties => {} }) },
      content_is(\&is_object), \&called ],
);


sub body {
    my ($fields, %more) = @_;

    return ask('Answer in json.', max_tokens => 300, %$fields, %more);
}


# The answer with and without stream.

sub both {
    my ($t, $body) = @_;

    my $r = $t->post($chat, $body);

    return { error => "$r->{status} $r->{body}" } if $r->{status} != 200;

    my $m = $r->{json}{choices}[0]{message};
    my $s = DSA::HTTP->gather($t->stream($body)->events);
    my @texts = qw/ content reasoning_content /;

    my @calls = map { [ @{ $_->{function} }{qw/ name arguments /} ] }
                    @{ $m->{tool_calls} || [] };
    my @streamed = map { [ @$_{qw/ name arguments /} ] }
                       @{ $s->{tool_calls} };

    # the stream as a message

    my $joined = { %$s };
    delete $joined->{tool_calls};
    $joined->{tool_calls} = [ map { { function => $_ } }
                                  @{ $s->{tool_calls} } ] if @streamed;

    return {
        message => $m,
        stream  => $joined,
        finish  => $r->{json}{choices}[0]{finish_reason},
        same    => $r->{json}{choices}[0]{finish_reason}
                   eq $s->{finish_reason}
                   && !grep({ ($m->{$_} // '') ne $s->{$_} } @texts)
                   && json_encode(\@calls) eq json_encode(\@streamed),
    };
}


for my $backend (qw/ null cpu /) {
    my $t = $t{$backend};

    $t->start_engine(conf => { model   => "$DSA::Test::root/demo/model",
                               backend => $backend eq 'null' ? 'null rate=0'
                                                         : $backend });
    $t->start_nginx(workers => 1);

    # the demonstration model needs 10 ms for a token, and thinks

    my $seeds = $backend eq 'null' ? 40 : 1;

    for my $thinking (0, 1) {
        my %thinking = (thinking => { type => $thinking ? 'enabled'
                                                        : 'disabled' });
        my $mode = $backend . ($thinking ? ', thinking' : '');

        for ($thinking && $backend eq 'cpu' ? @cases[0, 5] : @cases) {
            my ($name, $fields, $check, $finish) = @$_;
            my ($cut, @wrong) = (0);

            for my $seed (1 .. $seeds) {
                my $answer = both($t, body($fields, %thinking,
                                           seed => $seed));

                # the demonstration model may think until max_tokens

                if (($answer->{finish} // '') eq 'length' && $thinking
                    && $backend eq 'cpu')
                {
                    $cut++;
                    next;
                }

                # the second prompt is a hit of the first one, whose steps
                # had other sizes, so that a model may round otherwise

                push @wrong, $answer
                    if (!$answer->{same} && $backend eq 'null')
                       || $answer->{finish} ne $finish
                       || grep { !$check->($answer->{$_}) }
                               qw/ message stream /;
            }

            is(scalar @wrong, 0, "$mode: $name")
                or diag(explain($wrong[0]));
            note("$cut of $seeds answers were cut") if $cut;
        }

        # calls or a value of the schema, whichever the model samples

        for (@either) {
            my ($name, $fields, $text, $calls) = @$_;
            my (%n, @wrong);

            for my $seed (1 .. $seeds) {
                my $answer = both($t, body($fields, %thinking,
                                           seed => $seed));
                my $finish = $answer->{finish} // '';

                $n{$finish}++;
                push @wrong, $answer
                    if (!$answer->{same} && $backend eq 'null')
                       || !($finish eq 'stop'
                            ? $text->($answer->{message})
                            : $finish eq 'tool_calls'
                            ? $calls->($answer->{message})
                            : $finish eq 'length');
            }

            is(scalar @wrong, 0, "$mode: $name")
                or diag(explain($wrong[0]));
            ok($n{stop} && $n{tool_calls}, "$mode: $name: both occur")
                if $backend eq 'null';
            note(join ' ', map { "$_ $n{$_}" } sort keys %n);
        }

        next if $thinking;

        for (@open) {
            my ($name, $fields, $check) = @$_;
            my $r = $t->post($chat, body($fields, %thinking, seed => 1));

            is($r->{status}, 200, "$mode: $name: status") or diag($r->{body});
            ok($check->($r->{json}{choices}[0]{message}), "$mode: $name")
                or diag($r->{body});
        }
    }

    $t->done;
}


# The other APIs, with the null backend: what an answer is, as a message of chat
# completions.

sub of_anthropic {
    my ($r) = @_;
    my %text;

    return undef if $r->{status} != 200;

    push @{ $text{$_->{type}} }, $_ for @{ $r->{json}{content} };

    return {
        finish => $r->{json}{stop_reason},
        reasoning => join('', map { $_->{thinking} } @{ $text{thinking} }),
        message => {
            content => join('', map { $_->{text} } @{ $text{text} }),
            tool_calls => $text{tool_use} && [ map { { function => {
                name => $_->{name}, arguments => json_encode($_->{input}) } } }
                @{ $text{tool_use} } ],
        },
    };
}


sub of_response {
    my ($r) = @_;
    my %item;

    return undef if $r->{status} != 200;

    push @{ $item{$_->{type}} }, $_ for @{ $r->{json}{output} };

    return {
        finish => $r->{json}{status} ne 'completed' ? 'cut'
                  : $item{function_call} ? 'tool_use' : 'end_turn',
        reasoning => join('', map { $_->{content}[0]{text} }
                              @{ $item{reasoning} }),
        message => {
            content => join('', map { $_->{text} } map { @{ $_->{content} } }
                                @{ $item{message} }),
            tool_calls => $item{function_call}
                          && [ map { { function => $_ } }
                                   @{ $item{function_call} } ],
        },
    };
}


my $t = $t{apis};
$t->start_engine(conf => { model   => "$DSA::Test::root/demo/model",
                           backend => 'null rate=0' });
$t->start_nginx(workers => 1, server =>
                'location /anthropic/ { dsa_pass v32; }');

my $of_schema = { type => 'json_schema', schema => $weather };
my $of_text = { type => 'json_schema', name => 'x', strict => $true,
                schema => $weather };
my @theirs = (
    { name => 'weather', input_schema => $weather, strict => $true },
    { name => 'rows', input_schema => $list, strict => $true });
my @items = map { { type => 'function', name => $_->{name}, strict => $true,
                    parameters => $_->{input_schema} } } @theirs;
my $one = { disable_parallel_tool_use => $true };
my ($is_text, $is_call) = (content_is(\&is_weather),
                           calls_are(1, 1, weather => \&is_weather,
                                     rows => \&is_list));
my $is_rows = calls_are(1, 1, rows => \&is_list);

for (
    # name, URI, fields, check of a text, check of calls: undef if there is none

    [ 'any tool', 'messages', { tools => \@theirs,
                                tool_choice => { type => 'any', %$one } },
      undef, $is_call ],
    [ 'one tool', 'messages',
      { tools => \@theirs, tool_choice => { type => 'tool',
                                            name => 'rows' } },
      undef, $is_rows ],
    [ 'a format', 'messages', { output_config => { format => $of_schema } },
      $is_text, undef ],
    [ 'a beta format', 'messages', { output_format => $of_schema },
      $is_text, undef ],
    [ 'a format or a call', 'messages',
      { tools => \@theirs, output_config => { format => $of_schema },
        tool_choice => { type => 'auto', %$one } }, $is_text, $is_call ],
    [ 'a required call', 'responses',
      { tools => \@items, tool_choice => 'required',
        parallel_tool_calls => $false }, undef, $is_call ],
    [ 'a named call', 'responses',
      { tools => \@items, tool_choice => { type => 'function',
                                           name => 'rows' } },
      undef, $is_rows ],
    [ 'a format', 'responses', { text => { format => $of_text } },
      $is_text, undef ],
    [ 'a format or a call', 'responses',
      { tools => \@items, text => { format => $of_text },
        parallel_tool_calls => $false }, $is_text, $is_call ])
{
    my ($name, $api, $fields, $text, $calls) = @$_;

    my $forms = $text && $calls ? 2 : 1;

    for my $thinking (0, 1) {
        my (%n, @wrong);

        # the answers have no seed, so that a form may be missing for long

        for my $i (1 .. 200) {
            last if $i > 20 && keys %n >= $forms;

            my $a = $api eq 'messages'
                ? of_anthropic($t->post('/anthropic/v1/messages', {
                      model => 'deepseek-chat', max_tokens => 2000,
                      messages => [{ role => 'user', content => 'x' }],
                      thinking => $thinking ? { type => 'adaptive' } : undef,
                      %$fields }))
                : of_response($t->post('/v1/responses', {
                      model => 'deepseek-chat', input => 'x', store => $false,
                      max_output_tokens => 2000,
                      reasoning => { effort => $thinking ? 'high' : 'none' },
                      %$fields }));
            my $finish = $a->{finish} // '';
            my $check = $finish eq 'tool_use' ? $calls
                      : $finish eq 'end_turn' ? $text : undef;

            $n{$finish}++;
            push @wrong, $a if !$check || !$check->($a->{message})
                               || (!$thinking && $a->{reasoning} ne '');
        }

        is(scalar @wrong, 0, "$api, thinking $thinking: $name")
            or diag(explain($wrong[0]));
        is(scalar(keys %n), $forms, 'and each form occurs');
    }
}

# the path of what cannot be enforced is that of the API

my $no = { type => 'object', properties => { a => { contains => {} } } };

for ([ '/anthropic/v1/messages',
       { output_format => { type => 'json_schema', schema => $no } },
       qr/^output_format\.schema\.properties\.a: / ],
     [ '/anthropic/v1/messages',
       { tools => [{ name => 'f', input_schema => $no, strict => $true }] },
       qr/^tools\[0\]\.input_schema\.properties\.a: / ],
     [ '/v1/responses', { text => { format => { %$of_text, schema => $no } } },
       qr/^text\.format\.schema\.properties\.a: / ],
     [ '/v1/responses', { tools => [{ type => 'function', name => 'f',
                                      parameters => $no, strict => $true }] },
       qr/^tools\[0\]\.parameters\.properties\.a: / ])
{
    my ($uri, $fields, $like) = @$_;
    my $r = $t->post($uri, { model => 'deepseek-chat', $uri =~ /messages/
        ? (max_tokens => 9, messages => [{ role => 'user', content => 'x' }])
        : (input => 'x'), %$fields });

    is($r->{status}, 400, "$uri: a keyword") or diag($r->{body});
    like($r->{json}{error}{message}, $like, "$uri: its path");
}

$t->done;


# What is refused: param and text.

$t = $t{refused};
$t->start_engine(conf => { model   => "$DSA::Test::root/demo/model",
                           backend => 'null rate=0' });
$t->start_nginx(workers => 1);

my $bad = { type => 'object', additionalProperties => $false,
            properties => { a => { type => 'object', properties => {},
                                   unevaluatedProperties => {} } },
            required => ['a'] };

for ([ 'a keyword', { schema($bad, strict => $true) },
       'response_format.json_schema.schema.properties.a',
       qr/unevaluatedProperties/ ],
     [ 'a keyword of a strict tool',
       { tools => [ @loose, tool('b', $bad, strict => $true) ] },
       'tools[1].function.parameters.properties.a', qr/unevaluatedProperties/ ],
     [ 'a keyword of a named tool',
       { tools => [ @tools, tool('b', $bad, strict => $true) ],
         tool_choice => { type => 'function',
                          function => { name => 'b' } } },
       'tools[2].function.parameters.properties.a', qr/unevaluatedProperties/ ],
     [ 'a schema of 2 MB',
       { schema({ enum => [ map { 'x' x 1000 . $_ } 1 .. 2000 ] },
                strict => $true) },
       'response_format.json_schema.schema', qr/at most 1048576/ ],
     [ 'a keyword of a schema beside tools that may be called',
       { tools => \@loose, schema($bad, strict => $true) },
       'response_format.json_schema.schema.properties.a',
       qr/unevaluatedProperties/ ],
     [ 'a keyword of a tool beside a schema',
       { tools => [ @loose, tool('b', $bad, strict => $true) ],
         schema($weather) },
       'tools[1].function.parameters.properties.a', qr/unevaluatedProperties/ ],
     [ 'required without tools', { tool_choice => 'required' },
       'tool_choice', qr/without tools/ ],
     [ 'a name that no tool has',
       { tools => \@loose, tool_choice => { type => 'function',
                                            function => { name => 'b' } } },
       'tool_choice.function.name', qr/no tool has the name "b"/ ],
     [ 'an id beyond the vocabulary', { logit_bias => { 100000 => 1 } },
       'logit_bias', qr/^logit_bias:\ token\ id\ 100000\ is\ not\ in\ the
                        \ vocabulary;\ expected\ less\ than\ \d+$/x ])
{
    my ($name, $fields, $param, $text) = @$_;
    my $r = $t->post($chat, body($fields));
    my $e = ($r->{json} || {})->{error} || {};

    is($r->{status}, 400, "$name: status") or diag($r->{body});
    is($e->{param}, $param, "$name: param");
    like($e->{message}, $text, "$name: text");
    is($e->{code}, 'invalid_request_error', "$name: code");
}

is($t->post($chat, body({ tools => \@loose }))->{status}, 200,
   'any schema of a tool that is not strict is accepted');

# logit_bias: the answer repeats the prompt, except for an id that is banned.

my $plain = $t->post($chat, body({ logprobs => $true, max_tokens => 8 }));
my @ids = map { $_->{token} }
              @{ $plain->{json}{choices}[0]{logprobs}{content} };

ok(@ids > 0, 'an answer of the null backend') or diag($plain->{body});

my $forced = $t->post($chat, body({ logit_bias => { 100 => 100 },
                                    max_tokens => 4 }));
my $text = $forced->{json}{choices}[0]{message}{content};
like($text, qr/^(.+)\1{3}$/s, 'an id that is forced is repeated');

$t->done;


# What the engine gets.

$t = $t{fields};
my $fake = $t->start_fake();
$t->start_nginx(workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 1 }, 10, 'the session');

$t->post($chat, body({ response_format => { type => 'json_object' },
                       thinking => { type => $_ } }))
    for qw/ enabled disabled /;

my @sent = submitted($fake);
like($_, qr/ grammar=\{"type":"json_object"\}$/, 'the spec') for @sent;
like($sent[0], qr/ flags=8 /, 'with thinking, the flag THINKING');
like($sent[1], qr/ flags=0 /, 'without, no such flag');

$t->done;


# What an engine refuses is final: no other engine is asked.

$t = $t{final};
my @fakes = ($t->start_fake(), $t->start_fake());
$t->start_nginx(workers => 1, server =>
                'location /anthropic/ { dsa_pass v32; }
                 location /window/ { dsa_pass v32;
                                     dsa_context_strategy summary; }');
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 10, 'the sessions');

sub asked { scalar map { grep { /^(?:submit|count) / } split /\n/,
                                                      $_->output } @fakes }

for ([ 'a text', { schema($weather, strict => $true) }, 'properties.city',
       'response_format.json_schema.schema.properties.city' ],
     [ 'several answers', { schema($weather, strict => $true), n => 3 }, '',
       'response_format.json_schema.schema' ],
     [ 'a path with an index', { schema($weather, strict => $true) },
       '[2].x', 'response_format.json_schema.schema[2].x' ],
     [ 'a tool', { tools => [ @loose, $tools[1] ] },
       'tools[1].function.parameters.properties.rows',
       'tools[1].function.parameters.properties.rows' ],
     [ 'the named tool', { tools => \@tools, tool_choice => {
           type => 'function', function => { name => 'rows' } } },
       'tools[0].function.parameters', 'tools[1].function.parameters' ])
{
    my ($name, $fields, $path, $param) = @$_;

    for my $stream ($false, $true) {
        my $n = asked();
        my $r = $t->post($chat, {
            %{ script("noaccept\nerror grammar $path it\\nis\\x01 wrong\n") },
            %$fields, stream => $stream });
        my $e = ($r->{json} || {})->{error} || {};

        is($r->{status}, 400, "$name: status") or diag($r->{body});
        is($e->{param}, $param, "$name: param");
        is($e->{message}, "$param: it is  wrong", "$name: message");
        is(asked(), $n + 1, "$name: one engine is asked");
    }
}

# A structure that is refused is refused before a summary is computed for the
# request, which would be billed.

my $r = $t->post('/window/v1/chat/completions', {
    model => 'deepseek-chat', schema($weather, strict => $true), messages => [
        map({ { role => 'user', content => "round $_ " . 'x ' x 9000 },
              { role => 'assistant', content => 'y' } } 1 .. 20),
        script("error grammar x it is wrong\n")->{messages}[0] ] });

is($r->{status}, 400, 'a long history: status') or diag($r->{body});
like($r->{json}{error}{message}, qr/schema\.x: it is wrong/, 'its message');
is(scalar(map { submitted($_) } @fakes), 10, 'and no summary is computed');
is(scalar(grep { / grammar=\{"type":"json_schema"/ }
          map { grep { /^count / } split /\n/, $_->output } @fakes), 1,
   'because the count has the structure');

$t->done;


# Each structure is compiled once, by the engine.

$t = $t{compiled};
my $engine = $t->start_engine(conf => { log_level => 'debug',
    model => "$DSA::Test::root/demo/model", backend => 'null rate=0' });
$t->start_nginx(workers => 2, server =>
                'location /anthropic/ { dsa_pass v32; }');

# How often the engine compiles while the code runs.

sub compiled {
    my ($code) = @_;

    my $before = () = $engine->output =~ /compiled a structure/g;
    $code->();
    my $after = () = $engine->output =~ /compiled a structure/g;

    return $after - $before;
}


sub numbered { return { type => 'object', additionalProperties => $false,
                        required => [ 'a' ], properties => {
                            a => { enum => [ map { "v$_" } @_ ] } } } }


# The status of each request, all of them sent before the first is answered.

sub together {
    my (@bodies) = @_;

    my @http = map {
        my $http = $t->connect();
        $http->send_request('POST', $chat, body => json_encode($_));
        $http;
    } @bodies;

    return map { $_->response()->{status} } @http;
}


my $odd = { type => 'object', unevaluatedProperties => {} };

for ([ 'a structure', { schema(numbered(1), strict => $true) }, 200 ],
     [ 'one that is refused', { schema($odd, strict => $true) }, 400 ],
     [ 'one that is optional', { schema(numbered(2)) }, 200 ],
     [ 'an optional one that cannot be enforced', { schema($odd) }, 200 ],
     [ 'one with tools', { tools => \@tools, tool_choice => 'required',
                           parallel_tool_calls => $false }, 200 ],
     [ 'a tool that is refused',
       { tools => [ tool('b', $odd, strict => $true) ] }, 400 ])
{
    my ($name, $fields, $status) = @$_;

    for my $times (1, 0) {
        is(compiled(sub {
            is($t->post($chat, body($fields, max_tokens => 9))->{status},
               $status, $name) for 1 .. 5;
        }), $times, "$name: five requests, $times compilations");
    }

    is(compiled(sub {
        is_deeply([ together(map { body($fields, max_tokens => 9) } 1 .. 8) ],
                  [ ($status) x 8 ], "$name: eight at once");
    }), 0, "$name: eight at once, no compilation");
}

is(compiled(sub {
    is_deeply([ together(map { body({ schema(numbered($_), strict => $true) },
                                    max_tokens => 9) } 11 .. 18) ],
              [ (200) x 8 ], 'eight structures at once');
}), 8, 'are compiled once each');

is(compiled(sub {
    is_deeply([ together(map { body({ schema(numbered(20), strict => $true) },
                                    max_tokens => 9) } 1 .. 8) ],
              [ (200) x 8 ], 'eight requests with a new structure');
}), 1, 'compile it once');

# counts check it as well

for ([ numbered(30), 200 ], [ $odd, 400 ]) {
    my ($schema, $status) = @$_;

    is(compiled(sub {
        is($t->post("/anthropic/v1/messages/$_", {
            model => 'deepseek-chat',
            messages => [{ role => 'user', content => 'x' }],
            output_format => { type => 'json_schema', schema => $schema }
        })->{status}, $status, 'a count') for ('count_tokens') x 3;
    }), $status == 200 ? 1 : 0, 'three counts of a structure');
}

$t->done;
