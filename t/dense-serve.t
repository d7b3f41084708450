# Copyright (C) The nginx-dsa authors
#
# Small models whose layers attend to all positions, through nginx on the CPU.
# Of GLM-4.7-Flash's architecture: how its version is found, chats with and
# without thinking, tools, completions, prompts that are found in the cache, and
# that drafts change no answer.  Of DeepSeek-V3's and JoyAI's: which requests
# are answered, and calls of DeepSeek-V3.1.  The weights are random: this test
# asserts on structure, and that equal requests have equal answers.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::GLM qw/ glm_model /;
use DSA::Golden;
use DSA::Test;
use DSA::Widen ();

my $t = DSA::Test->new('dense-serve');
my ($chat, $completions) = map { "/v1/$_" } qw{ chat/completions completions };
my %off = (thinking => { type => 'disabled' });
my $dir = flash($t);


# GLM's small model with a draft layer, without the indexers, and in BF16, as
# GLM-4.7-Flash is published.

sub flash {
    my ($t) = @_;

    my $from = with_drafts(glm_model($t), $t->path('drafts'));
    my $to = $t->path('dense');
    my %tensor = DSA::Widen::read_tensors($from);

    delete @tensor{grep { /\.indexer\./ } keys %tensor};
    DSA::Widen::write_model($from, $to, 1, \%tensor);

    my $config = json_decode(read_file("$to/config.json"));

    delete @$config{grep { /^index/ } keys %$config};
    delete $config->{rope_parameters};

    write_file("$to/config.json", json_encode({
        %$config, architectures => [ 'Glm4MoeLiteForCausalLM' ],
        model_type => 'glm4_moe_lite', rope_theta => 1000000 }));

    my $bf16 = in_bf16($to, $t->path('bf16'));

    for my $name (qw/ tokenizer.json generation_config.json /) {
        my $text = read_file("$to/$name");

        write_file("$bf16/$name", $text) if defined $text;
    }

    return $bf16;
}


sub question {
    my ($text, %more) = @_;

    return { model => 'flash', seed => 5, max_tokens => 60,
             messages => [ { role => 'user', content => $text } ], %more };
}


# What is the same in equal answers.

sub text {
    my ($r) = @_;

    my $choice = $r->{json}{choices}[0];

    delete $_->{id} for @{$choice->{message}{tool_calls} // []};

    return json_encode([ $choice->{message} // $choice->{text},
                         $choice->{finish_reason},
                         $r->{json}{usage}{completion_tokens} ]);
}


# ---------------------------------------------------------------- version

sub refused {
    my ($conf, $like, $name) = @_;

    write_file($t->path('bad.conf'), "model $dir;\nlisten unix:"
               . $t->path('bad.sock') . ";\nbackend cpu;\n$conf");

    my $out = `$t->{build}/dsa-engine -c ${\ $t->path('bad.conf') } -t 2>&1`;

    isnt($?, 0, "$name: refused");
    like($out, $like, "$name: the error");
}

refused('', qr/does not exist, .* "prompt_format" with glm-4\.7-flash$/m,
        'no template');
refused("prompt_format glm-5;\n",
        qr/"prompt_format" is "glm-5"; expected glm-4\.7-flash for this model/,
        'the format of another model');


# ---------------------------------------------------------------- serving

$t->start_redis();
$t->start_engine(conf => { model => $dir, prompt_format => 'glm-4.7-flash',
                           name => 'flash', speculate => 'off' });
$t->start_nginx(workers => 1, redis => 'timeout=5s');

my $tool = { type => 'function', function => {
    name => 'add', parameters => {
        type => 'object', properties => { a => { type => 'integer' } },
        required => [ 'a' ] } } };

my @requests = (
    [ $chat, question('one two three') ],
    [ $chat, question('one two three', %off) ],
    [ $chat, question('one two three', %off, temperature => 0) ],
    [ $chat, question('a call', %off, tools => [ $tool ],
                      tool_choice => 'required') ],
    [ $chat, question(join(' ', map { "word $_" } 1 .. 90), %off) ],
    [ $completions, { model => 'flash', seed => 5, max_tokens => 30,
                      prompt => 'Once upon a time ' x 20 } ]
);

my @answers = map {
    my $r = $t->post(@$_);

    is($r->{status}, 200, "$_->[0]: answered") or diag($r->{body});
    $r;
} @requests;

my ($thought, $plain, undef, $called) =
    map { $_->{json}{choices}[0]{message} } @answers;

ok(length $thought->{reasoning_content}, 'it thinks unless it is switched off');
ok(!length($plain->{reasoning_content} // '') && length $plain->{content},
   'an answer without thinking');
is($called->{tool_calls}[0]{function}{name}, 'add', 'a call');
like($called->{tool_calls}[0]{function}{arguments}, qr/^\{"a": ?-?\d/,
     'with its argument');

# the same again, from pages that are found

for my $i (0 .. $#requests) {
    my $r = $t->post(@{$requests[$i]});
    my $found = $r->{json}{usage}{prompt_tokens_details}{cached_tokens};

    is(text($r), text($answers[$i]), "request $i: the same answer again");
    is($found, int(($r->{json}{usage}{prompt_tokens} - 1) / 64) * 64,
       "request $i: from the cache");
}

ok($answers[4]{json}{usage}{prompt_tokens} > 128, 'a prompt of three pages');

my $answers = join "\n", map { text($_) } @answers;


# ------------------------------------------------------------ weights fp8

# Another model: some of its answers are others.

{
    my $s = DSA::Test->new('dense-serve weights fp8');

    $s->start_engine(conf => { model => $dir, prompt_format => 'glm-4.7-flash',
                               name => 'flash', speculate => 'off',
                               weights => 'fp8' });
    $s->start_nginx(workers => 1);

    my @fp8 = map { $s->post(@$_) } @requests;

    is(join(' ', map { $_->{status} } @fp8), join(' ', (200) x @fp8),
       'weights fp8: answered');
    isnt(join("\n", map { text($_) } @fp8), $answers,
         'weights fp8: with other answers');
    $s->done;
}


# ------------------------------------------- DeepSeek-V3.1, V3 and JoyAI

# DeepSeek's small model without the indexers.  JoyAI's prompts begin with a
# token of another name.

sub older {
    my ($t, $type) = @_;

    my $from = $t->deepseek_model;
    my $to = $t->path($type);
    my %tensor = DSA::Widen::read_tensors($from);

    delete @tensor{grep { /\.indexer\./ } keys %tensor};
    DSA::Widen::write_model($from, $to, 1, \%tensor);

    my $config = json_decode(read_file("$to/config.json"));

    delete @$config{grep { /^index/ } keys %$config};
    write_file("$to/config.json", json_encode({ %$config,
                                                model_type => $type }));

    if ($type =~ /joyai/) {
        my $text = read_file("$to/tokenizer.json");
        my $bar = "\xef\xbd\x9c";
        my $n = $text =~ s/<$bar(begin[^"]{1,40}?)$bar>/<|$1|>/g;

        die "no token to rename\n" if !$n;
        write_file("$to/tokenizer.json", $text);
    }

    return $to;
}

# A round of a call that the grammar enforces, and tools beside thinking.

sub calls {
    my ($s, $name) = @_;

    my $strict = { type => 'function', function => {
        %{$tool->{function}}, strict => JSON::PP::true,
        parameters => { %{$tool->{function}{parameters}},
                        additionalProperties => JSON::PP::false } } };

    my $body = question('a call', tools => [ $strict ], max_tokens => 400,
                        tool_choice => 'required',
                        parallel_tool_calls => JSON::PP::false);

    my $r = $s->post($chat, $body);
    my $choice = $r->{json}{choices}[0];
    my ($call, @others) = @{$choice->{message}{tool_calls} // []};

    is($r->{status}, 200, "$name: a call") or diag($r->{body});
    is($choice->{finish_reason}, 'tool_calls', "$name: ends the answer");
    is($call->{function}{name}, 'add', "$name: names the tool");
    like($call->{function}{arguments}, qr/^\{\s*"a": ?-?\d+\s*\}$/,
         "$name: with its argument");
    is(scalar @others, 0, "$name: no other call");
    is($choice->{message}{content} // '', '', "$name: no content");

    # the text of the answer to a streamed request

    my $events = $s->post($chat, { %$body, stream => JSON::PP::true });
    my $streamed = join '', map {
        my $c = $_->{choices}[0]{delta}{tool_calls};

        $c ? $c->[0]{function}{arguments} // '' : ();
    } map { json_decode($_) } grep { $_ ne '[DONE]' }
        $events->{body} =~ /^data: (.*)$/mg;

    is($streamed, $call->{function}{arguments}, "$name: the same in a stream");

    # the result

    my @round = (@{$body->{messages}}, $choice->{message},
                 { role => 'tool', tool_call_id => $call->{id},
                   content => '3' });

    $r = $s->post($chat, question('', tools => [ $strict ],
                                  messages => \@round));
    is($r->{status}, 200, "$name: its result") or diag($r->{body});
    is($r->{json}{choices}[0]{message}{reasoning_content}, undef,
       "$name: is answered without reasoning");

    # thinking

    for my $more ([ tools => [ $strict ] ], [ messages => \@round ]) {
        $r = $s->post($chat, question('a call', @$more,
                                      thinking => { type => 'enabled' }));

        is($r->{status}, 400, "$name: $more->[0] with thinking");
        like($r->{json}{error}{message}, qr/^thinking:\ this\ model\ calls
             \ tools\ without\ thinking\ only;\ expected\ thinking\ off/x,
             "$name: the reason");
    }
}

for (
    [ 'deepseek_v3', 'deepseek-v3.1', qr/^$/ ],
    [ 'deepseek_v3', 'deepseek-v3', qr/^messages: chats with DeepSeek-V3/ ],
    [ 'joyai_llm_flash', undef, qr/^messages:\ chats\ with\ JoyAI-LLM-Flash\ are
                                   \ refused,\ because\ this\ server\ does\ not
                                   \ have\ its\ chat\ template;\ expected\ a
                                   \ text\ completion,/x ]
) {
    my ($type, $format, $chats) = @$_;

    my $name = $format // $type;
    my $s = DSA::Test->new("dense-serve $name");

    $s->start_engine(conf => { model => older($s, $type), name => 'flash',
                               prompt_format => $format });
    $s->start_nginx(workers => 1);

    for my $thinking (qw/ enabled disabled /) {
        my $r = $s->post($chat, question('one two three',
                                         thinking => { type => $thinking }));

        my $error = $r->{json}{error};

        like($error ? $error->{message} : '', $chats,
             "$name: a chat with thinking $thinking");
        is($r->{status}, $error ? 400 : 200, "$name: its status");
        next if $error;

        my $tokens = $r->{json}{usage}{completion_tokens_details};

        is($tokens->{reasoning_tokens} > 0, $thinking eq 'enabled',
           "$name: reasoning");
    }

    if ($name eq 'deepseek-v3.1') {
        calls($s, $name);

    } else {
        my $r = $s->post($chat, question('a call', %off, tools => [ $tool ]));

        is($r->{status}, 400, "$name: tools are refused");
        like($r->{json}{error}{message}, qr/^messages: /,
             "$name: with the reason");
    }

    my $r = $s->post($completions, $requests[-1][1]);
    is($r->{status}, 200, "$name: a completion") or diag($r->{body});
    ok(length $r->{json}{choices}[0]{text}, "$name: has text");

    $s->done;
}


# ----------------------------------------------------------------- drafts

for my $speculate (1, 3) {
    my $s = DSA::Test->new("dense-serve speculate $speculate");
    my $drafts = 0;

    $s->start_engine(conf => { model => $dir, name => 'flash',
                               prompt_format => 'glm-4.7-flash',
                               speculate => $speculate });
    $s->start_nginx(workers => 1);

    is(join("\n", map { text($_) } map {
        my $r = $s->post(@$_);

        $drafts += $r->{json}{usage}{completion_tokens_details}{draft_tokens};
        $r;
    } @requests), $answers, "speculate $speculate: the same answers");

    ok($drafts > 0, "speculate $speculate: with drafts");
    $s->done;
}

$t->done;
