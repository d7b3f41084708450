# Copyright (C) The nginx-dsa authors
#
# One table of the fields of a request, for each of the APIs that has them: the
# values at the edges of what is accepted, with what the engine gets, and the
# values next to them, which are refused by name before the engine gets
# anything.  Values of another JSON type are refused for each field, null and
# unknown fields are accepted.  The table has every name that the readers have.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('fields');

$t->start_redis();
my $fake = $t->start_fake('context=8192');
$t->start_nginx();

wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis');


# The APIs, by the letters of the table: chat completions, text completions,
# Anthropic's Messages, Responses.

my $user = '[{"role":"user","content":"Answer in json."}]';

my %api = (
    c => { name => 'chat', uri => '/v1/chat/completions',
           base => { messages => $user } },
    t => { name => 'completions', uri => '/v1/completions',
           base => { prompt => '"x"' } },
    a => { name => 'anthropic', uri => '/v1/messages',
           base => { messages => $user, max_tokens => 4096 } },
    r => { name => 'responses', uri => '/v1/responses',
           base => { input => '"Answer in json."', store => 'false' } },
);

$_->{base}{model} = '"deepseek-chat"' for values %api;

sub list { '[' . join(',', @_) . ']' }
sub repeated { my ($json, $n) = @_; return list(($json) x $n) }
sub text { '"' . 'x' x $_[0] . '"' }

my $function = '{"type":"function","function":{"name":"f"}}';
my $tool = '{"type":"function","name":"f"}';
my $custom = '{"name":"f","input_schema":{}}';
my $schema = '{"type":"object","properties":{"a":{"type":"null"}},"required":'
             . '["a"],"additionalProperties":false}';
my $think = '"thinking":{"type":"enabled"}';
my $at_max = "1.7976931348623157e308";


# Each row: field, APIs, JSON types that it has (s: string, n: number, b:
# boolean, a: array, o: object; none: the types are not tested), values that are
# accepted, values that are refused.  A value that is accepted may have a
# pattern of the line in which the engine prints the request; one that is
# refused has a pattern of the message.  Both may have other members of the
# request.

my $unsupported = qr/not supported|is not a field of/;
my $range_02 = qr/valid range of temperature is \[0, 2\]/;
my $limit = qr/is too small; expected 1 or more/;
my $int = qr/expected an integer/;

my @table = (

    # the model, and what it is to answer

    [ 'model', 'ctar', 's', [ '"deepseek-chat"' ],
      [ [ '""', qr/name of a model/ ], [ 'null', qr/name of a model/ ] ] ],
    [ 'messages', 'c', 'a',
      [ $user,
        map({ [ list('{"role":"user","content":"x"}',
                     '{"role":"assistant",' . $_->[0] . '}',
                     '{"role":"user","content":"y"}'), $_->[1] ] }
            [ '"content":null,"refusal":"Never."', qr/\]Never\.\[/ ],
            [ '"content":"So.","refusal":null', qr/\]So\.\[/ ],
            [ '"content":"So.","refusal":"Never."', qr/\]So\.\[/ ],
            [ '"content":"So.","annotations":[],"audio":null', qr/\]So\.\[/ ],
            [ '"content":[{"type":"refusal","refusal":"Never."},'
              . '{"type":"text","text":"So."}]', qr/\]Never\.So\.\[/ ]) ],
      [ [ '[{"role":"assistant","refusal":1}]', qr/refusal: invalid type/ ],
        [ '[{"role":"assistant","content":[{"type":"refusal","text":"x"}]}]',
          qr/refusal: missing field/ ],
        [ '[]', qr/at least one message/ ], [ 'null', qr/messages/ ],
        [ repeated('{"role":"user","content":"x"}', 8193),
          qr/at most 8192/ ] ] ],
    [ 'messages', 'a', 'a', [ $user ],
      [ [ '[]', qr/at least one message/ ], [ 'null', qr/messages/ ] ] ],
    [ 'messages', 't', '', [], [ [ $user, qr/use prompt/ ] ] ],
    [ 'messages', 'r', '', [], [ [ $user, qr/use input/ ] ] ],
    [ 'prompt', 't', 'sa', [ '""', '["x"]' ],
      [ [ '[]', qr/array of 0 prompts/ ], [ '["x","y"]', qr/of 2 prompts/ ],
        [ '[1]', qr/ids of tokens/ ], [ 'null', qr/a string/ ],
        [ text(9000), qr/maximum context length is 8192 tokens/ ] ] ],
    [ 'prompt', 'r', '', [], [ [ '{"id":"x"}', qr/use instructions/ ] ] ],
    [ 'suffix', 't', 's', [ '""', [ '"z"', qr/fim/ ] ], [] ],
    [ 'suffix', 'c', '', [ '""' ], [ [ '"z"', $unsupported ] ] ],
    [ 'echo', 't', 'b', [ 'false', 'true' ],
      [ [ 'true', qr/either echo or logprobs/, '"logprobs":1' ] ] ],
    [ 'echo', 'cr', '', [ 'false' ], [ [ 'true', $unsupported ] ] ],
    [ 'input', 'r', 'sa', [ '"x"', '[{"role":"user","content":"x"}]',
        map({ [ "[{\"role\":\"assistant\",\"content\":\"So.\",\"phase\":$_},"
                . '{"role":"user","content":"x"}]', qr/\]So\.\[/ ] }
            '"commentary"', '"final_answer"', 'null') ],
      [ [ '[{"role":"user","content":"x","phase":"x"}]',
          qr/phase: unknown variant `x`/ ],
        [ '[{"role":"user","content":"x","phase":1}]',
          qr/phase: invalid type/ ],
        [ '[]', qr/no message/ ], [ 'null', qr/a string or an array/ ] ] ],
    [ 'instructions', 'r', 's', [ '""', [ '"Be brief."', qr/Be brief\./ ] ],
      [] ],
    [ 'system', 'a', 'sa', [ '""', '[]', [ '"Be brief."', qr/Be brief\./ ] ],
      [] ],

    # sampling

    [ 'temperature', 'ctar', 'n',
      [ [ '0', qr/ temperature=0 / ], [ '2', qr/ temperature=2 / ],
        [ '2.0', qr/ temperature=2 / ], [ '5e-1', qr/ temperature=0\.5 / ],
        [ '-0.0', qr/ temperature=-?0 / ] ],
      [ [ '-0.001', $range_02 ], [ '2.001', $range_02 ],
        [ $at_max, $range_02 ], [ '-1', $range_02 ], [ '3', $range_02 ] ] ],
    [ 'top_p', 'ctar', 'n',
      [ [ '1', qr/ top_p=1 / ], [ '1e-9', qr/ top_p=1e-09 / ] ],
      [ [ '0', qr/\(0, 1\.0\]/ ], [ '1.001', qr/\(0, 1\.0\]/ ],
        [ '-0.5', qr/\(0, 1\.0\]/ ] ] ],
    (map { [ "${_}_penalty", 'ctr', 'n',
             [ [ '-2', qr/ $_=-2 / ], [ '2', qr/ $_=2 / ] ],
             [ [ '-2.001', qr/\[-2, 2\]/ ], [ '2.001', qr/\[-2, 2\]/ ] ] ],
           [ "${_}_penalty", 'a', '', [], [ [ '0', $unsupported ] ] ]
     } qw/ frequency presence /),
    [ 'seed', 'ctr', 'n',
      [ [ '0', qr/ seed=0 / ], [ '-1', qr/ seed=18446744073709551615 / ],
        [ '-9223372036854775808', qr/ seed=9223372036854775808 / ],
        [ '18446744073709551615', qr/ seed=18446744073709551615 / ] ],
      [ [ '-9223372036854775809', qr/valid range of seed/ ],
        [ '18446744073709551616', qr/valid range of seed/ ],
        [ '1.5', $int ] ] ],
    [ 'max_tokens', 'cta', 'n',
      [ [ '1', qr/ max=1 / ], [ '8000', qr/ max=8000 / ],
        [ '2.0', qr/ max=2 / ], [ '8193', qr/ max=8193 / ],
        [ '99999999999999999999', qr/ max=4294967295 / ] ],
      [ [ '0', $limit ], [ '-1', $limit ], [ '-99999999999999999999', $limit ],
        [ '1.5', $int ] ] ],
    [ 'max_tokens', 'a', '', [], [ [ 'null', $int ] ] ],
    [ 'max_tokens', 'r', '', [], [ [ '5', qr/use max_output_tokens/ ] ] ],
    [ 'max_completion_tokens', 'ct', 'n', [ [ '9', qr/ max=9 / ],
        [ '9', qr/ max=9 /, '"max_tokens":9' ],
        [ '8193', qr/ max=8193 / ] ],
      [ [ '0', $limit ],
        [ '9', qr/differs from that of max_tokens/, '"max_tokens":8' ] ] ],
    [ 'max_completion_tokens', 'r', '', [],
      [ [ '5', qr/use max_output_tokens/ ] ] ],
    [ 'max_output_tokens', 'r', 'n',
      [ [ '1', qr/ max=1 / ], [ '1e9', qr/ max=1000000000 / ] ],
      [ [ '0', $limit ], [ '1.5', $int ] ] ],
    [ 'stop', 'ctr', 'sa',
      [ '""', '[]', [ '"x"', qr/ stop=x$/ ], [ '["a","","b"]',
                                               qr/ stop=a\|b$/ ],
        repeated('"x"', 16), text(1024) ],
      [ [ repeated('"x"', 17), qr/17 stop strings; at most 16/ ],
        [ text(1025), qr/of 1025 bytes/ ], [ '[1]', qr/a string/ ] ] ],
    [ 'stop_sequences', 'a', 'a',
      [ '[]', [ '["a","b"]', qr/ stop=a\|b$/ ], repeated('"x"', 16),
        list(text(1024)) ],
      [ [ repeated('"x"', 17), qr/17 stop sequences; at most 16/ ],
        [ list(text(1025)), qr/of 1025 bytes/ ], [ '[""]', qr/0 bytes/ ] ] ],
    [ 'logit_bias', 'ctr', 'o',
      [ '{}', [ '{"7":-100,"0":100}', qr/ bias 0=100 bias 7=-100/ ],
        '{"4294967295":0.5}' ],
      [ [ '{"7":-100.5}', qr/not a number in/ ],
        [ '{"7":101}', qr/not a number in/ ], [ '{"x":1}', qr/token id/ ],
        [ '{"4294967296":1}', qr/token id/ ], [ '{"-1":1}', qr/token id/ ],
        [ '{"1":1,"01":1}', qr/occurs twice/ ] ] ],
    [ 'n', 'ct', 'n', [ '1', '8', '2.0' ],
      [ [ '0', qr/\[1, 8\]/ ], [ '9', qr/\[1, 8\]/ ], [ '1.5', $int ] ] ],
    [ 'n', 'r', '', [ '1' ], [ [ '2', $unsupported ] ] ],
    [ 'ignore_eos', 'ctr', 'b', [ 'false', [ 'true', qr/ flags=[1-9]/ ] ],
      [] ],
    [ 'logprobs', 'c', 'b', [ 'false', [ 'true', qr/ top=0 / ] ], [] ],
    [ 'logprobs', 't', 'n', [ [ '0', qr/ top=0 / ], [ '20', qr/ top=20 / ] ],
      [ [ '-1', qr/\[0, 20\]/ ], [ '21', qr/\[0, 20\]/ ],
        [ '0.5', $int ] ] ],
    [ 'logprobs', 'r', '', [ 'false' ], [ [ 'true', $unsupported ] ] ],
    [ 'top_logprobs', 'c', 'n',
      [ '0', [ '20', qr/ top=20 /, '"logprobs":true' ] ],
      [ [ '21', qr/\[0, 20\]/, '"logprobs":true' ],
        [ '-1', qr/\[0, 20\]/, '"logprobs":true' ],
        [ '1', qr/along with logprobs = true/ ] ] ],
    [ 'top_logprobs', 't', '', [], [ [ '1', qr/use logprobs/ ] ] ],
    [ 'top_logprobs', 'r', 'n', [ '0', '20' ],
      [ [ '21', qr/\[0, 20\]/ ], [ '-1', qr/\[0, 20\]/ ] ] ],

    [ 'rollout', 'ct', 'o', [],
      [ [ '{"x":1}', qr/expected mask, experts or prompt/ ],
        (map { [ "{\"$_\":1}", qr/expected a boolean/ ] }
         qw/ mask experts prompt /) ] ],
    [ 'rollout', 'ar', '', [], [ [ '{}', $unsupported ] ] ],

    # thinking

    [ 'thinking', 'cr', 'o',
      [ [ '{"type":"enabled"}', qr/\[<think>\]$/ ],
        [ '{"type":"disabled"}', qr/\[<\/think>\]$/ ],
        [ '{"type":"enabled","budget_tokens":1}', qr/ budget=1 / ] ],
      [ [ '{}', qr/`enabled` or `disabled`/ ],
        [ '{"type":"on"}', qr/unknown variant `on`/ ],
        [ '{"type":1}', qr/`enabled` or `disabled`/ ],
        [ '{"type":"enabled","budget_tokens":0}', qr/\[1, / ],
        [ '{"type":"disabled","budget_tokens":9}', qr/switched off/ ],
        [ '{"type":"enabled","x":1}', qr/not supported/ ] ] ],
    [ 'thinking', 'a', 'o',
      [ [ '{"type":"adaptive"}', qr/\[<think>\]$/ ],
        [ '{"type":"disabled"}', qr/\[<\/think>\]$/ ],
        [ '{"type":"enabled","budget_tokens":1024}', qr/ budget=1024 / ],
        [ '{"type":"enabled","budget_tokens":4095}', qr/ budget=4095 / ] ],
      [ [ '{"type":"enabled"}', qr/missing/ ],
        [ '{"type":"enabled","budget_tokens":1023}', qr/equal to 1024/ ],
        [ '{"type":"enabled","budget_tokens":4096}', qr/must be greater/ ],
        [ '{"type":"adaptive","budget_tokens":2048}', qr/no budget/ ],
        [ '{"type":"adaptive","display":"omitted"}', qr/not supported/ ] ] ],
    [ 'thinking', 't', 'o', [ '{"type":"disabled"}' ],
      [ [ '{"type":"enabled"}', qr/cannot think/ ] ] ],
    [ 'reasoning_effort', 'c', 's',
      [ [ '"none"', qr/\[<\/think>\]$/ ],
        map { [ "\"$_\"", qr/\[<think>\]$/ ] }
            qw/ minimal low medium high xhigh max / ],
      [ [ '"huge"', qr/unknown variant `huge`/ ], [ '""', qr/variant/ ] ] ],
    [ 'reasoning_effort', 'r', '', [], [ [ '"low"',
                                           qr/use reasoning\.effort/ ] ] ],
    [ 'reasoning', 'c', 'o',
      [ '{}', [ '{"effort":"high"}', qr/\[<think>\]$/ ],
        [ '{"enabled":true}', qr/\[<think>\]$/ ],
        [ '{"max_tokens":5}', qr/ budget=5 / ] ],
      [ [ '{"effort":"huge"}', qr/unknown variant/ ],
        [ '{"enabled":1}', qr/boolean/ ], [ '{"max_tokens":0}', qr/\[1, / ],
        [ '{"enabled":false,"max_tokens":5}', qr/switched off/ ],
        [ '{"x":1}', qr/not supported/ ] ] ],
    [ 'reasoning', 'r', 'o',
      [ '{}', [ '{"effort":"high"}', qr/\[<think>\]$/ ],
        '{"context":"auto"}', '{"context":"current_turn"}',
        '{"mode":"standard"}',
        map({ ("{\"summary\":\"$_\"}", "{\"generate_summary\":\"$_\"}") }
            qw/ auto concise detailed /) ],
      [ [ '{"effort":"huge"}', qr/unknown variant/ ],
        [ '{"summary":"long"}', qr/unknown variant `long`/ ],
        [ '{"summary":true}', qr/summary: invalid type/ ],
        [ '{"context":"all_turns"}', qr/unknown variant/ ],
        [ '{"mode":"pro"}', qr/unknown variant/ ],
        [ '{"x":1}', qr/not supported/ ] ] ],
    [ 'enable_thinking', 'cr', 'b',
      [ [ 'true', qr/\[<think>\]$/ ], [ 'false', qr/\[<\/think>\]$/ ] ], [] ],
    [ 'chat_template_kwargs', 'cr', 'o',
      [ '{}', [ '{"thinking":true}', qr/\[<think>\]$/ ],
        [ '{"enable_thinking":true}', qr/\[<think>\]$/ ] ],
      [ [ '{"thinking":1}', qr/boolean/ ], [ '{"x":1}', qr/not supp/ ] ] ],
    [ 'max_thinking_tokens', 'cr', 'n',
      [ '1', [ '7', qr/ budget=7 /, $think ] ],
      [ [ '0', qr/\[1, / ], [ '1.5', $int ] ] ],
    [ 'max_thinking_tokens', 'a', '', [], [ [ '7', $unsupported ] ] ],
    [ 'output_config', 'a', 'o',
      [ '{}', '{"effort":"max"}', '{"format":null}',
        [ "{\"format\":{\"type\":\"json_schema\",\"schema\":$schema}}",
          qr/ grammar=\{"type":"json_schema",/ ] ],
      [ [ '{"effort":1}', qr/a string/ ], [ '{"effort":"x"}', qr/`x`/ ],
        [ '{"format":{"type":"text"}}', qr/`text`/ ],
        [ '{"format":{"type":"json_schema"}}', qr/schema: missing/ ] ] ],
    [ 'output_format', 'a', 'o',
      [ [ "{\"type\":\"json_schema\",\"schema\":$schema}",
          qr/ grammar=\{"type":"json_schema",/ ] ],
      [ [ "{\"type\":\"json_schema\",\"schema\":$schema}", qr/as well/,
          "\"output_config\":{\"format\":{\"type\":\"json_schema\","
          . "\"schema\":$schema}}" ] ] ],

    # the form of an answer

    [ 'response_format', 'c', 'o',
      [ '{"type":"text"}',
        [ '{"type":"json_object"}', qr/ grammar=\{"type":"json_object"\}$/ ],
        [ '{"type":"json_schema","json_schema":{"name":"x","strict":true,'
          . "\"schema\":$schema}}", qr/ grammar=\{"type":"json_schema",/ ] ],
      [ [ '{}', qr/response_format/ ], [ '{"type":"xml"}', qr/`xml`/ ],
        [ '{"type":"json_schema"}', qr/json_schema/ ],
        [ '{"type":"json_object"}', qr/the word 'json'/,
          '"messages":[{"role":"user","content":"x"}]' ] ] ],
    [ 'response_format', 't', '', [], [ [ '{"type":"text"}', $unsupported ]
                                      ] ],
    [ 'response_format', 'r', '', [], [ [ '{"type":"text"}',
                                          qr/use text\.format/ ] ] ],
    [ 'text', 'r', 'o',
      [ '{}', map({ "{\"verbosity\":\"$_\"}" } qw/ low medium high /),
        '{"format":{"type":"text"}}',
        [ '{"format":{"type":"json_schema","name":"x","strict":true,'
          . "\"schema\":$schema}}", qr/ grammar=\{"type":"json_schema",/ ] ],
      [ [ '{"verbosity":"none"}', qr/unknown variant `none`/ ],
        [ '{"format":{"type":"xml"}}', qr/`xml`/ ],
        [ '{"format":1}', qr/"text"/ ] ] ],

    # tools

    [ 'tools', 'c', 'a', [ '[]', list($function),
        list(map { $function =~ s/"f"/"f$_"/r } 1 .. 128) ],
      [ [ list(map { $function =~ s/"f"/"f$_"/r } 1 .. 129), qr/129 tools/ ],
        [ '[{}]', qr/tools/ ], [ list($function =~ s/"f"/"a b"/r),
                                 qr/pattern/ ],
        [ list($function, $function), qr/unique/ ],
        [ list($function =~ s/"f"/text(129)/er), qr/pattern/ ] ] ],
    [ 'tools', 'r', 'a', [ '[]', list($tool), '[{"type":"web_search"}]' ],
      [ [ list(map { $tool =~ s/"f"/"f$_"/r } 1 .. 129),
          qr/more than 128 tools/ ],
        [ '[{"type":"local_shell"}]', qr/runs no tools/ ],
        [ list($tool =~ s/"f"/"a b"/r), qr/'tools\[\]\.name'/ ] ] ],
    [ 'tools', 'a', 'a', [ '[]', list($custom) ],
      [ [ list(map { $custom =~ s/"f"/"f$_"/r } 1 .. 129), qr/129 tools/ ],
        [ '[{"name":"f"}]', qr/input_schema: missing/ ],
        [ list($custom =~ s/"f"/"a b"/r),
          qr/^tools\[0\]\.name: Invalid 'tools\[\]\.name'/ ] ] ],
    [ 'tools', 't', '', [], [ [ '[]', $unsupported ] ] ],
    [ 'tool_choice', 'c', 'so',
      [ '"none"', '"auto"', map({ [ $_, qr/ grammar=\{"type":"tools"/,
            "\"tools\":[$function]" ] } '"required"', $function) ],
      [ [ '"always"', qr/unknown variant `always`/ ],
        [ '"required"', qr/`required` without tools/ ],
        [ $function, qr/no tool has the name "f"/ ] ] ],
    [ 'tool_choice', 'r', 'so',
      [ '"none"', '"auto"', map({ [ $_, qr/ grammar=\{"type":"tools"/,
            "\"tools\":[$tool]" ] } '"required"', $tool) ],
      [ [ '"always"', qr/unknown variant `always`/ ],
        [ '"required"', qr/`required` without tools/ ],
        [ $tool, qr/no tool has the name "f"/ ] ] ],
    [ 'tool_choice', 'a', 'o',
      [ '{"type":"none"}', '{"type":"auto"}',
        map({ [ $_, qr/ grammar=\{"type":"tools"/, "\"tools\":[$custom]" ] }
            '{"type":"any"}', '{"type":"tool","name":"f"}') ],
      [ [ '{"type":"some"}', qr/unknown variant `some`/ ],
        [ '{"type":"any"}', qr/"tools" is empty/ ], [ '{}', qr/missing/ ] ] ],
    [ 'tool_choice', 't', '', [], [ [ '"none"', $unsupported ] ] ],
    [ 'parallel_tool_calls', 'c', 'b', [ 'true',
        [ 'false', qr/"calls":"one"/, "\"tools\":[$function]" ] ], [] ],
    [ 'parallel_tool_calls', 'r', 'b', [ 'true', 'false' ], [] ],

    # how the answer comes, and where it is stored

    [ 'stream', 'ctar', 'b', [ 'false', 'true' ], [] ],
    [ 'stream_options', 'ct', 'o',
      [ map { [ $_, undef, '"stream":true' ] } '{}',
        '{"include_usage":true}', '{"include_usage":null}' ],
      [ [ '{}', qr/along with stream = true/ ],
        [ '{"include_usage":1}', qr/boolean/, '"stream":true' ] ] ],
    [ 'usage', 'ct', 'o',
      [ '{}', '{"include":true}', '{"include":null}' ],
      [ [ '{"include":1}', qr/boolean/ ] ] ],
    [ 'stream_options', 'r', 'o',
      [ [ '{"include_obfuscation":false}', undef, '"stream":true' ] ],
      [ [ '{}', qr/along with stream = true/ ],
        [ '{"include_obfuscation":true}', $unsupported, '"stream":true' ] ] ],
    [ 'store', 'r', 'b', [ 'true', 'false' ], [] ],
    [ 'conversation', 'c', 's', [],
      [ [ '""', qr/is not a conversation id/ ],
        [ text(65), qr/is not a conversation id/ ],
        [ '"a.b"', qr/is not a conversation id/ ],
        [ '"conv_1"', qr/not a conversation id; expected "conv_" and 32 / ]
      ] ],
    [ 'conversation', 'ta', '', [], [ [ '"a"', $unsupported ] ] ],
    [ 'conversation', 'r', 'so', [], [ [ '"a b"', qr/conversation/ ] ] ],
    [ 'previous_response_id', 'r', 's', [],
      [ [ '""', qr/empty/ ] ] ],
    [ 'include', 'r', 'a', [ '[]', '["reasoning.encrypted_content"]',
        [ '["message.output_text.logprobs"]', qr/ logprobs=1 top=3 /,
          '"top_logprobs":3' ] ],
      [ [ '["x"]', qr/`x` is not supported/ ], [ '[1]', qr/a string/ ] ] ],
    [ 'metadata', 'r', 'o', [ '{}', '{' . join(',', map {
            sprintf '"%s%02d":%s', 'k' x 62, $_, text(512) } 1 .. 16) . '}' ],
      [ [ '{' . join(',', map { "\"$_\":\"x\"" } 1 .. 17) . '}', qr/17 pairs/ ],
        [ '{"' . 'k' x 65 . '":"x"}', qr/at most 64 bytes/ ],
        [ '{"a":' . text(513) . '}', qr/at most 512 bytes/ ],
        [ '{"a":1}', qr/strings/ ] ] ],
    [ 'metadata', 'a', 'o', [ '{}', '{"user_id":"u"}' ],
      [ [ '{"user_id":1}', qr/a string/ ] ] ],
    [ 'context_management', 'c', 'o',
      [ map { "{\"strategy\":\"$_\"}" } qw/ none discard_75 discard_all / ],
      [ [ '{"strategy":"x"}', qr/unknown variant `x`/ ],
        [ '{"edits":[]}', qr/not supported/ ], [ '{}', qr/strategy/ ] ] ],
    [ 'context_management', 'a', 'o',
      [ '{}', '{"edits":[]}',
        map { "{\"edits\":[{\"type\":\"$_\"}]}" }
            qw/ clear_thinking_20251015 clear_tool_uses_20250919
                compact_20260112 / ],
      [ [ '{"edits":1}', qr/an array/ ],
        [ '{"edits":[{"type":"clear_all"}]}', qr/not supported/ ] ] ],
    [ 'context_management', 'r', 'o',
      [ '[]', '[{"type":"compaction","compact_threshold":100000}]' ],
      [ [ '{}', qr/an array/ ], [ '[{}]', qr/not supported/ ],
        [ '[{"type":"compaction","compact_threshold":0}]', qr/range/ ] ] ],
    [ 'background', 'r', '', [ 'false', 'null' ],
      [ [ '1', qr/boolean/ ] ] ],
    [ 'truncation', 'r', '', [ '"disabled"' ], [ [ '"auto"', $unsupported ] ] ],
    [ 'service_tier', 'r', '', [ '"auto"', '"default"' ],
      [ [ '"flex"', $unsupported ] ] ],
    [ 'top_k', 'ctr', '', [ '0', '-1', '-1.0' ],
      [ [ '1', $unsupported ], [ '"other"', $unsupported ] ] ],
    [ 'top_k', 'a', 'n', [ '0', '40', '-1.0' ], [] ],
    [ 'cache_control', 'a', 'o',
      [ '{"type":"ephemeral"}', '{"type":"ephemeral","ttl":null}',
        map { "{\"type\":\"ephemeral\",\"ttl\":\"$_\"}" } qw/ 5m 1h / ],
      [ [ '{"type":"x"}', qr/unknown variant `x`/ ],
        [ '{"type":"ephemeral","ttl":"2h"}', qr/`5m` or `1h`/ ] ] ],
    [ 'diagnostics', 'a', 'o', [ '{}' ], [] ],
    [ 'container', 'a', 'so', [ '"x"', '{}' ], [] ],
    [ 'service_tier', 'a', '', [ '"auto"', '"standard_only"' ],
      [ [ '"priority"', $unsupported ] ] ],
    [ 'speed', 'a', '', [ '"standard"' ], [ [ '"fast"', $unsupported ] ] ],
    [ 'inference_geo', 'a', '', [ '"global"', '"not_available"' ],
      [ [ '"us"', $unsupported ] ] ],
    (map { [ $_, 'a', '', [], [ [ '"x"', $unsupported ] ] ] }
     qw/ billing_policy fallback_credit_token /),
    (map { [ $_, 'r', '', [], [ [ '{}', $unsupported ] ] ] }
     qw/ access_programs image /),
    [ 'prompt_cache_options', 'r', 'o', [ '{}' ], [] ],
    [ 'max_tool_calls', 'r', 'n', [ '0', '9223372036854775807' ],
      [ [ '-1', qr/\[0, / ], [ '1.5', $int ] ] ],
    [ 'mcp_servers', 'a', '', [ '[]' ], [ [ '[{}]', qr/no other servers/ ] ] ],
    (map { [ $_, 'r', 's', [ '""', '"x"' ], [] ] }
     qw/ prompt_cache_key prompt_cache_retention safety_identifier user /),

    # what other APIs have in place of it

    (map { [ $_, 'a', '', [], [ [ '1', $unsupported ] ] ] }
     qw/ stop max_completion_tokens response_format logprobs n thread /),

    # what would change an answer, and is not served by any API: the values
    # that change nothing are accepted

    (map { [ $_->[0], 'ctar', '', [ @$_[1 .. $#$_] ],
             [ [ '"other"', $unsupported ], [ '{"a":1}', $unsupported ] ] ] }
     [ 'audio' ], [ 'function_call', '"none"', '"auto"' ],
     [ 'functions', '[]' ], [ 'modalities', '["text"]' ], [ 'prediction' ],
     [ 'verbosity', '"low"', '"medium"', '"high"' ], [ 'moderation' ],
     [ 'web_search_options' ],
     [ 'allowed_token_ids', '[]' ], [ 'bad_words', '[]' ],
     [ 'best_of', '1', '1.0' ], [ 'custom_logit_processor' ],
     [ 'dry_multiplier', '0' ], [ 'length_penalty', '1', '1.0' ],
     [ 'logits_processors', '[]' ], [ 'min_p', '0', '0.0' ],
     [ 'min_tokens', '0' ], [ 'mirostat', '0' ],
     [ 'repetition_penalty', '1', '1.0' ], [ 'stop_token_ids', '[]' ],
     [ 'stop_regex', '[]' ], [ 'tfs_z', '1' ], [ 'max_reasoning_tokens' ],
     [ 'thinking_budget' ], [ 'thinking_token_budget' ], [ 'top_a', '0' ],
     [ 'typical_p', '1' ],
     [ 'use_beam_search', 'false' ], [ 'xtc_probability', '0' ], [ 'ebnf' ],
     [ 'grammar' ], [ 'guided_choice' ], [ 'guided_grammar' ],
     [ 'guided_json' ], [ 'guided_regex' ], [ 'json_schema' ], [ 'regex' ],
     [ 'structural_tag' ], [ 'structured_outputs' ],
     [ 'add_generation_prompt', 'true' ], [ 'add_special_tokens', 'false' ],
     [ 'chat_template' ], [ 'continue_final_message', 'false' ],
     [ 'documents', '[]' ], [ 'lora_path' ], [ 'mm_processor_kwargs', '{}' ],
     [ 'response_prefix' ], [ 'session_params' ],
     [ 'truncate_prompt_tokens' ], [ 'include_reasoning', 'true' ],
     [ 'include_stop_str_in_output', 'false' ], [ 'no_stop_trim', 'false' ],
     [ 'prompt_logprobs' ], [ 'return_hidden_states', 'false' ],
     [ 'return_token_ids', 'false' ],
     [ 'return_tokens_as_token_ids', 'false' ],
     [ 'separate_reasoning', 'true' ], [ 'skip_special_tokens', 'true' ],
     [ 'spaces_between_special_tokens', 'true' ]),

    # what changes nothing here

    (map { [ $_, 'ctar', '', [ '1', '"x"', '[{}]', '{"a":[]}' ], [] ] }
     qw/ unknown betas /),
);


my %sample = (s => '"other"', n => '7.25', b => 'true', a => '[true]',
              o => '{"x":true}');
my @required = qw/ model messages prompt input max_tokens /;

sub post {
    my ($api, $field, $value, $more) = @_;
    my %body = %{ $api->{base} };

    $more //= '';
    delete @body{ $more =~ /"(\w+)":/g };
    $body{$field} = $value;

    return $t->post($api->{uri}, '{' . join(',', map({ "\"$_\":$body{$_}" }
                                       sort keys %body), $more || ()) . '}');
}


# What is wrong with an answer that must be a refusal of this field; '' if it is
# one.

sub refusal {
    my ($api, $field, $r, $message) = @_;
    my $e = $r->{json}{error} || {};
    my $anthropic = $api->{letter} eq 'a';

    return "$r->{status} $r->{body}" if $r->{status} != 400;
    return "it does not say $message: $e->{message}"
        if $message && ($e->{message} // '') !~ $message;
    return "another shape: $r->{body}"
        if join(' ', sort grep { $_ ne 'details' } keys %$e)
           ne ($anthropic ? 'message type' : 'code message param type')
           || $e->{type} ne 'invalid_request_error';
    return "it does not name the field: $r->{body}"
        if $anthropic ? $e->{message} !~ /\b\Q$field\E\b/
           : ($e->{param} // '') !~ /^\Q$field\E(?:\[\d+\]|\.\w+)*$/;

    return '';
}


my %seen;

for my $letter (sort keys %api) {
    my $api = $api{$letter};
    $api->{letter} = $letter;

    my (@wrong, $accepted, $refused);
    my $is = sub {
        my ($what, $why) = @_;
        push @wrong, substr("$what: $why", 0, 600) if $why ne '';
    };

    for my $row (grep { index($_->[1], $letter) >= 0 } @table) {
        my ($field, undef, $types, $good, $bad) = @$row;

        $seen{$field} = 1;

        # what is required cannot be null

        my @null = grep({ $_ eq $field } @required)
                   && exists $api->{base}{$field} ? () : 'null';

        for (@$good, @null) {
            my ($value, $line, $more) = ref $_ ? @$_ : $_;
            my $r = post($api, $field, $value, $more);

            $accepted++;
            $is->("$field $value", $r->{status} == 200 ? ''
                                   : "$r->{status} $r->{body}");

            my $sent = (submitted($fake))[-1] // '';

            $is->("$field $value", "the engine got $sent")
                if $line && $sent !~ $line;
        }

        my @other = map { [ $sample{$_} ] }
                    grep { $types ne '' && index($types, $_) < 0 }
                    sort keys %sample;

        for (@$bad, @other) {
            my ($value, $message, $more) = @$_;
            my $before = () = submitted($fake);
            my $r = post($api, $field, $value, $more);

            $refused++;
            $is->("$field $value", refusal($api, $field, $r, $message));
            $is->("$field $value", 'the engine got it')
                if submitted($fake) != $before
                   && $message ne qr/maximum context length is 8192 tokens/;
        }
    }

    is(join("\n", @wrong), '', "$api->{name}: $accepted values are accepted, "
                               . "$refused are refused");
}


# names in the tables of the readers, and those that they read from the root

my @names;

for my $file (glob "$DSA::Test::root/context/*.c") {
    my $text = read_file($file);

    push @names, $text =~ /\b(?:root|body), "([a-z_]+)"/g;

    for my $table ($text =~ /^(?:static\ const\ [^\n]*|\}\ )dsa_(?:fields|
                             fields_openai|sampling_unsupported|
                             sampling_top_k_unsupported|
                             sampling_numbers|completion_chat_fields|
                             responses_(?:absent|own)|
                             anthropic_(?:fields|unused_fields|absent))
                             \[\]\ =\ \{\n(.*?)^\};/gmsx)
    {
        push @names, $table =~ /^ {4}\{ "(\w+)"/gm;
        push @names, $table =~ /"(\w+)"/g if $table !~ /\{/;
    }
}

my %names = map { $_ => 1 } @names;

cmp_ok(scalar keys %names, '>', 90, 'the readers have names of fields');
is(join(' ', grep { !$seen{$_} } sort keys %names), '',
   'each of them is in the table');

$t->done;
