# Copyright (C) The nginx-dsa authors
#
# Runs dsa encode and dsa parse on the published pairs and worked examples of
# t/data/encoding.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('context');
my $data = "$DSA::Test::root/t/data/encoding";
my $eos = "<\xef\xbd\x9cend\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>";
my $dsml = "\xef\xbd\x9cDSML\xef\xbd\x9c";


# Runs dsa with that input.  Returns (exit status, stdout, stderr).

sub dsa {
    my ($in, @args) = @_;

    my ($from, $out, $err) = map { $t->path("dsa.$_") } qw/ in out err /;

    write_file($from, $in);

    my $rc = system 'sh', '-c',
                    'from=$1 out=$2 err=$3; shift 3;'
                    . ' exec "$@" < "$from" > "$out" 2> "$err"',
                    '-', $from, $out, $err, $t->build . '/dsa', @args;

    return ($rc >> 8, read_file($out), read_file($err));
}


sub encode {
    my ($request, @args) = @_;

    my ($rc, $out, $err) = dsa($request, 'encode', @args);
    diag($err) if $rc;

    return $out;
}


sub parse {
    my ($text, @args) = @_;

    my ($rc, $out, $err) = dsa($text, 'parse', @args);
    diag($err) if $rc;

    return $out;
}


# Joins the deltas of a stream into a message.

sub gather {
    my ($deltas) = @_;

    my $m = { role => 'assistant', content => '' };

    for (map { json_decode($_) } split /\n/, $deltas) {
        $m->{content} .= $_->{content} if defined $_->{content};
        $m->{reasoning_content} .= $_->{reasoning_content}
            if defined $_->{reasoning_content};

        for (@{ $_->{tool_calls} || [] }) {
            my $call = $m->{tool_calls}[$_->{index}] ||= $_;
            next if $call == $_;
            $call->{function}{arguments} .= $_->{function}{arguments};
        }
    }

    return $m;
}


for (['test_input.json', 'test_output.txt', 1],
     ['test_input_search_wo_date.json', 'test_output_search_wo_date.txt', 0])
{
    my ($in, $out, $newline) = @$_;

    my $request = read_file("$data/$in");
    my $expected = read_file("$data/$out");

    $expected =~ s/\n\z// if $newline;

    ok(encode($request) eq $expected, "$in: encode");

    my $segments = json_decode(encode($request, '--segments'));
    my $joined = join '', map { values %$_ } @$segments;
    utf8::encode($joined);

    ok($joined eq $expected, "$in: encode --segments");

    # the last answer, after the token that begins it

    my ($answer) = $expected =~ /<think>((?:(?!<think>).)*)\z/s;
    my $message = json_decode(parse($answer, '--thinking'));
    my $last = json_decode($request)->{messages}[-1];

    is($message->{content}, $last->{content}, "$in: parse: content");
    is($message->{reasoning_content}, $last->{reasoning_content},
       "$in: parse: reasoning");
    is_deeply(gather(parse($answer, '--thinking', '--stream', 5)), $message,
              "$in: parse --stream");
}

for (@{ json_decode(read_file("$data/worked_examples.json"))->{examples} }) {
    my $prompt = $_->{prompt};
    utf8::encode($prompt);

    my $out = encode(json_encode({
        messages => $_->{messages},
        thinking => { type => $_->{thinking_mode} eq 'thinking'
                              ? 'enabled' : 'disabled' } }));

    # the order of the keys of tools is not preserved in these examples

    s/^(\{"(?:name|desc|param).*)$/join '', sort split m{}, $1/gem
        for $out, $prompt;
    is($out, $prompt, $_->{name});
}

my $segments = json_decode(encode('{"messages":[{"role":"user","content":'
                                  . '"</think>"}],"model":"deepseek-chat"}',
                                  '--segments'));
is(join(' ', map { keys %$_ } @$segments),
   'control control text control control',
   'a text that spells a token stays text');

my $call = "\n\n<${dsml}function_calls>\n<${dsml}invoke name=\"f\">\n"
           . "<${dsml}parameter name=\"city\" string=\"true\">Paris";
my $end = "</${dsml}parameter>\n</${dsml}invoke>\n</${dsml}function_calls>";

my $message = json_decode(parse("Wait.$call$end$eos\n"));
is($message->{content}, 'Wait.', 'content before a call');
is($message->{tool_calls}[0]{function}{name}, 'f', 'name');
is($message->{tool_calls}[0]{function}{arguments}, '{"city": "Paris"}',
   'arguments');
ok(!exists $message->{reasoning_content}, 'no reasoning in chat mode');

for my $n (1 .. 7, 1000) {
    is_deeply(gather(parse("Wait.$call$end$eos", '--stream', $n)), $message,
              "in pieces of $n");
}

is(json_decode(parse("$call</${dsml}param"))
   ->{tool_calls}[0]{function}{arguments}, '{"city": "Paris',
   'an unfinished call stays unfinished');

# an answer with a truncated or malformed call is history like any other

for (["$call</${dsml}param", "$call$end"], ["$call$end", "$call$end"],
     ["$call</${dsml}parameter>\n<${dsml}parameter name=\"city\" string="
      . "\"false\">[1}$end"])
{
    my ($sampled, $expected) = @$_;
    $expected //= $sampled;

    my $prompt = encode(json_encode({
        model => 'deepseek-chat',
        messages => [ { role => 'user', content => 'q' },
                      json_decode(parse($sampled . ($_->[1] ? '' : $eos))),
                      { role => 'user', content => 'q' } ] }));

    ok(index($prompt, "</think>$expected$eos") > 0, 'it is encoded')
        or diag($prompt);
}

for (['encode', '{"messages":[]}', qr/messages: Empty input/],
     ['encode', '{"messages":', qr/stdin: .* at byte 12/],
     ['encode', '[]', qr/expected a chat request object/])
{
    my ($command, $in, $re) = @$_;
    my ($rc, $out, $err) = dsa($in, $command);

    is($rc, 1, "refused: $in");
    is($out, '', 'nothing on stdout');
    like($err, qr/^dsa $command: .*\n\z/, 'one line on stderr');
    like($err, $re, 'the reason');
}

for (['encode', '--nonsense'], ['encode', 'x'], ['parse', '--stream', '0'],
     ['parse', '--stream', '-1'], ['parse', '--stream', '2x'], ['parse', 'x'])
{
    my ($rc) = dsa('', @$_);
    is($rc, 2, "usage: @$_");
}

$t->done;
