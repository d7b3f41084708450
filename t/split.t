# Copyright (C) The nginx-dsa authors
#
# However an answer is split into tokens, and the tokens into records: what a
# client adds up from a stream is the object that it gets without one, and both
# have the reasoning, the text and the calls that the engine sent.  For each
# API, random answers that are split at random characters.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $answers = 50;               # for each API
my $json = JSON::PP->new->canonical->allow_nonref;      # of characters
my $seed = 20261122;
my $t = DSA::Test->new('split');

$t->start_redis();
my $fake = $t->start_fake('context=1000000');
$t->start_nginx();

wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis');

srand $seed;


# The pieces of an answer: texts that begin like a control token, or that are
# longer in JSON or UTF-8.

my @pieces = ('a', ' word', "line\n", "\n\n", '  ', 'é', '中文', "\x{1f600}",
              '"', '\\', "\t", "\x01", '<', '</', '</thin', '<｜', '<｜DSML',
              '｜', '<｜DSML ｜', '{"a": [1]}', '</script>', '$', '|', '%',
              "\x{e000}", "e\x{301}", 'x' x 40);

sub pick { $_[ int rand @_ ] }

# Random text without the name of a control token.

sub words {
    my ($most) = @_;
    my $text;

    do {
        $text = join '', 'w', map({ pick(@pieces) } 1 .. int rand $most), 'z';
    } while ($text =~ /｜DSML｜|<\/think>/);

    return $text;
}


# A random answer.

sub answer {
    my (%has) = @_;
    my $answer = { content => pick('', words(12), words(12), words(40)) };

    $answer->{reasoning} = pick('', words(20)) if $has{reasoning};

    if ($has{calls} && rand() < 0.5) {
        $answer->{calls} = [ map {
            [ pick(qw/ get put /), { map {
                ("k$_" => pick(words(6), [ 1, words(4) ], 7, { x => words(3) },
                               JSON::PP::true, undef))
            } 1 .. int rand 4 } ]
        } 1 .. 1 + int rand 3 ];
    }

    return $answer;
}


# The text that a model would sample for it.

sub sampled {
    my ($answer) = @_;
    my $text = ($answer->{reasoning} // '')
               . (defined $answer->{reasoning} ? '</think>' : '')
               . $answer->{content};

    if ($answer->{calls}) {
        $text .= "\n\n<｜DSML｜function_calls>\n";

        for my $call (@{ $answer->{calls} }) {
            my ($name, $args) = @$call;

            $text .= "<｜DSML｜invoke name=\"$name\">\n" . join('', map {
                my $string = defined $args->{$_} && !ref $args->{$_}
                             && $args->{$_} ne '7';

                "<｜DSML｜parameter name=\"$_\" string=\""
                . ($string ? 'true' : 'false') . '">'
                . ($string ? $args->{$_} : $json->encode($args->{$_}))
                . "</｜DSML｜parameter>\n"
            } sort keys %$args) . (%$args ? '' : "\n")
            . "</｜DSML｜invoke>\n";
        }

        $text .= '</｜DSML｜function_calls>';
    }

    return $text;
}


# A script that sends a text in random tokens and records.  As the link demands,
# the bytes of a character count to the token that completes it, so that other
# tokens have no text.

sub script_of {
    my ($text) = @_;
    my $most = pick(1, 5, 20);
    my @tokens;

    for my $part (split /(｜DSML｜|<\/think>)/, $text) {
        if ($part eq '｜DSML｜' || $part eq '</think>') {
            push @tokens, $part;
            next;
        }

        while (length $part) {
            push @tokens, substr $part, 0, 1 + int rand $most, '';
            push @tokens, '' if rand() < 0.1;
        }
    }

    my @lines = pick('rate 0', 'rate 1');

    while (@tokens) {
        push @lines, 'T ' . join '|', map {
            utf8::encode(my $bytes = $_);
            $bytes =~ s/(.)/sprintf '\\x%02x', ord $1/gers
        } splice @tokens, 0, 1 + int rand 6;
    }

    return join "\n", "!fake", @lines;
}


# What each API has: how a request is made, and how an answer and a stream are
# read as { reasoning, content, calls, finish, usage }.

my @names = qw/ get put /;
my %schema = (type => 'object');

sub plain_calls {
    return [ map { [ $_->{name}, $json->decode($_->{arguments} || '{}') ] }
                 @_ ];
}

my %api = (

    chat => {
        has => [ reasoning => 1, calls => 1 ],
        uri => '/v1/chat/completions',
        request => sub {
            my ($script) = @_;
            return { messages => [{ role => 'user', content => $script }],
                     thinking => { type => 'enabled' },
                     tools => [ map { { type => 'function', function =>
                                        { name => $_ } } } @names ] };
        },
        whole => sub {
            my $c = $_[0]{choices}[0];
            my $m = $c->{message};
            return { reasoning => $m->{reasoning_content} // '',
                     content => $m->{content} // '',
                     calls => plain_calls(map { $_->{function} }
                                          @{ $m->{tool_calls} || [] }),
                     finish => $c->{finish_reason}, usage => $_[0]{usage} };
        },
        stream => sub {
            my $m = DSA::HTTP->gather(@_);
            return { reasoning => $m->{reasoning_content},
                     content => $m->{content},
                     calls => plain_calls(@{ $m->{tool_calls} }),
                     finish => $m->{finish_reason}, usage => $m->{usage} };
        },
        finish => sub { $_[0]{calls} ? 'tool_calls' : 'stop' },
    },

    completions => {
        has => [],
        uri => '/v1/completions',
        request => sub {
            my ($script) = @_;
            return { prompt => $script };
        },
        whole => sub {
            return { content => $_[0]{choices}[0]{text},
                     finish => $_[0]{choices}[0]{finish_reason},
                     usage => $_[0]{usage} };
        },
        stream => sub {
            my @c = map { $_->{json} // () } @_;
            return { content => join('', map { $_->{choices}[0]{text} } @c),
                     finish => $c[-1]{choices}[0]{finish_reason},
                     usage => $c[-1]{usage} };
        },
        finish => sub { 'stop' },
    },

    anthropic => {
        has => [ reasoning => 1, calls => 1 ],
        uri => '/v1/messages',
        request => sub {
            my ($script) = @_;
            return { messages => [{ role => 'user', content => $script }],
                     max_tokens => 32000,
                     thinking => { type => 'enabled', budget_tokens => 31000 },
                     tools => [ map { { name => $_, input_schema => \%schema } }
                                    @names ] };
        },
        whole => sub { of_blocks($_[0], @{ $_[0]{content} }) },
        stream => sub {
            my (%m, @blocks, $usage);

            for my $j (map { $_->{json} // () } @_) {
                my $b = $blocks[ $j->{index} // 0 ];

                if ($j->{type} eq 'message_start') {
                    $usage = $j->{message}{usage};

                } elsif ($j->{type} eq 'content_block_start') {
                    push @blocks, $j->{content_block};

                } elsif ($j->{type} eq 'content_block_delta') {
                    my $d = $j->{delta};
                    $b->{$_} .= $d->{$_} for grep { defined $d->{$_} }
                                             qw/ text thinking signature /;
                    $b->{json} .= $d->{partial_json} // '';

                } elsif ($j->{type} eq 'content_block_stop') {
                    my $input = delete $b->{json};
                    $b->{input} = $json->decode($input || '{}')
                        if $b->{type} eq 'tool_use';

                } elsif ($j->{type} eq 'message_delta') {
                    %m = (%{ $j->{delta} },
                          usage => { %$usage, %{ $j->{usage} } });
                }
            }

            return of_blocks(\%m, @blocks);
        },
        finish => sub { $_[0]{calls} ? 'tool_use' : 'end_turn' },
    },

    responses => {
        has => [ reasoning => 1, calls => 1 ],
        uri => '/v1/responses',
        request => sub {
            my ($script) = @_;
            return { input => $script, reasoning => { effort => 'high' },
                     store => JSON::PP::false,
                     tools => [ map { { type => 'function', name => $_,
                                        strict => JSON::PP::false,
                                        parameters => \%schema } } @names ] };
        },
        whole => sub { of_items($_[0]) },
        stream => sub {
            my (%sum, $final);

            for my $j (map { $_->{json} // () } @_) {
                my ($kind) = $j->{type} =~ /^response\.(\w+)\.delta$/;

                $sum{$kind} .= $j->{delta} if $kind;
                $final = $j->{response} if $j->{type} eq 'response.completed';
            }

            my $got = of_items($final);

            # the deltas, and the items at the end

            return ({ %$got, reasoning => $sum{reasoning_text} // '',
                      content => $sum{output_text} // '',
                      raw => $sum{function_call_arguments} // '' }, $got);
        },
        finish => sub { 'completed' },
    },
);


sub of_blocks {
    my ($m, @blocks) = @_;
    my %of = map { my $k = $_; ($k => [ grep { $_->{type} eq $k } @blocks ]) }
             qw/ thinking text tool_use /;

    return { reasoning => join('', map { $_->{thinking} } @{ $of{thinking} }),
             content => join('', map { $_->{text} } @{ $of{text} }),
             calls => [ map { [ $_->{name}, $_->{input} ] }
                            @{ $of{tool_use} } ],
             finish => $m->{stop_reason}, usage => $m->{usage} };
}


sub of_items {
    my ($r) = @_;
    my %of = map { my $k = $_; ($k => [ grep { $_->{type} eq $k }
                                             @{ $r->{output} } ]) }
             qw/ reasoning message function_call /;
    my $text = sub { join '', map { map { $_->{text} } @{ $_->{content} } }
                                  @_ };

    return { reasoning => $text->(@{ $of{reasoning} }),
             content => $text->(@{ $of{message} }),
             calls => plain_calls(@{ $of{function_call} }),
             raw => join('', map { $_->{arguments} } @{ $of{function_call} }),
             finish => $r->{status}, usage => $r->{usage} };
}


sub encoded { my ($h, @keys) = @_; return $json->encode([ @$h{@keys} ]) }

for my $name (sort keys %api) {
    my $api = $api{$name};
    my @wrong;

    for (1 .. $answers) {
        my $answer = answer(@{ $api->{has} });
        my $body = $api->{request}->(script_of(sampled($answer)));

        $body->{model} = 'deepseek-chat';

        my $r = $t->post($api->{uri}, $body);
        my $whole = $r->{status} == 200 ? $api->{whole}->($r->{json})
                                        : { status => $r->{body} };
        my @streamed = $api->{stream}->($t->stream($body, uri => $api->{uri})
                                          ->events);
        my $want = { reasoning => $answer->{reasoning} // '',
                     content => $answer->{content},
                     calls => $answer->{calls} || [],
                     finish => $api->{finish}->($answer) };

        for my $got ($whole, @streamed) {
            my @keys = $name eq 'completions' ? qw/ content finish /
                                              : sort keys %$want;
            push @wrong, [ $got == $whole ? 'whole' : 'streamed', $got, $want ]
                if encoded($got, @keys) ne encoded($want, @keys)
                   || encoded($got, qw/ usage raw /)
                      ne encoded($whole, qw/ usage raw /);
        }
    }

    is(scalar @wrong, 0, "$name: $answers answers, whole and streamed")
        or diag(explain(@wrong[0 .. ($#wrong < 2 ? $#wrong : 2)]));
}

$t->done;
