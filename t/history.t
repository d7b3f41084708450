# Copyright (C) The nginx-dsa authors
#
# An answer of the API is accepted as the history of the next turn, in a stored
# conversation and from a client, also if max_tokens cut a call.  If calls are
# off, no client gets their markup.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('history');
my $redis = $t->start_redis();
my $fake = $t->start_fake();

$t->start_nginx();

my ($chat, $uri) = ('/v1/chat/completions', '/v1/conversations');
my $tool = { type => 'function', function => { name => 'f' } };

my $dsml = "\x{ff5c}DSML\x{ff5c}";
my $open = "\\n\\n<${dsml}function_calls>\\n<${dsml}invoke name=\"f\">\\n"
           . "<${dsml}parameter name=\"a\" string=\"true\">Par";
my $end = "</${dsml}parameter>\\n</${dsml}invoke>\\n"
          . "</${dsml}function_calls>";

wait_until(sub { $t->get("$uri/conv_" . '0' x 32)->{status} == 404 }, 10,
           'Redis');


# The prompt of the last request at the engine.

sub prompt { ((submitted($fake))[-1] =~ /prompt=(.*) stop=/)[0] }

sub user { { role => 'user', content => $_[0] } }


for (['a call that was cut', "t ok\n" . tokens($open) . "\ndone length\n",
      '{"a": "Par'],
     ['a call that is no JSON', "t ok\n"
      . tokens(($open =~ s/"true">Par/"false">[/r) . "}$end") . "\n",
      '{"a": [}}'],
     ['a call without arguments', "t ok\n" . tokens($open =~ s/\\n<[^<]*$//sr)
                                  . "\ndone length\n", ''])
{
    my ($name, $script, $arguments) = @$_;

    for my $model (qw/ deepseek-chat deepseek-reasoner /) {
        my $sampled = $model eq 'deepseek-chat' ? $script
                                                : "t why</think>\n$script";
        my $r = $t->post($uri, {});
        my $id = $r->{json}{id};

        $r = $t->post($chat, { model => $model, conversation => $id,
                               tools => [$tool],
                               messages => [ user("!fake\n$sampled") ] });
        is($r->{status}, 200, "$name: $model");

        my $m = $r->{json}{choices}[0]{message};
        is($m->{tool_calls}[0]{function}{arguments}, $arguments,
           'the answer has the call');

        $r = $t->post($chat, { model => $model, conversation => $id,
                               tools => [$tool], messages => [ user('x') ] });
        is($r->{status}, 200, 'the next turn of the conversation')
            or diag($r->{body});

        my $prompt = prompt();

        $r = $t->post($chat, { model => $model, tools => [$tool],
                               messages => [ user("!fake\n$sampled"), $m,
                                             user('x') ] });
        is($r->{status}, 200, 'a client that sends the history')
            or diag($r->{body});
        is(prompt(), $prompt, 'both have the same prompt');
    }
}


# calls are off: the client gets the text around the block of calls, but not
# the block

for my $pieces (1, 3, 7, 1000) {
    my $text = "one$open$end two";
    my @parts = map { $_ eq $dsml ? $_ : /((?:\\n|.){1,$pieces})/g }
                    split /($dsml)/, $text;
    my $script = "!fake\n" . join '', map { "t $_\n" } @parts;

    for my $stream (0, 1) {
        my $request = { model => 'deepseek-chat', tools => [$tool],
                        tool_choice => 'none',
                        messages => [ user($script) ] };

        my $m = $stream ? DSA::HTTP->gather($t->stream($request)->events)
              : $t->post($chat, $request)->{json}{choices}[0]{message};

        is($m->{content}, 'one two', "calls off, $pieces, stream $stream");
        ok(!@{ $m->{tool_calls} || [] }, 'no calls');
    }
}

$t->done;
