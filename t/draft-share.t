# Copyright (C) The nginx-dsa authors
#
# Random weights whose drafts are right as often as a load wants them to be
# (bench/draft_share.h): a small model of GLM-4.7-Flash's architecture with
# random head and draft layer, in BF16, on the CPU.  "bench/serve -d" and
# "bench/replay --drafts" get that share, the tokens of a step follow from it,
# and each request is billed for the tokens that it has.

use strict;
use warnings;

use List::Util qw/ sum /;
use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::GLM qw/ glm_model /;
use DSA::Golden;
use DSA::Ledger;
use DSA::Test;
use DSA::Widen ();

use constant {
    DEVIATION => 0.2,           # of random logits: DSA_RANDOM_LOGITS
    DRAFTS    => 3,
    ANSWER    => 80,
    CHATS     => 12,
};

my $t = DSA::Test->new('draft-share');
my $nginx = $ENV{DSA_NGINX} || '/usr/sbin/nginx';

srand 7;

my $model = random_model($t);


# Normally distributed numbers in BF16.

sub normal {
    my ($n, $deviation) = @_;

    return join '', map {
        my $x = $deviation * sqrt(-2 * log(1 - rand))
                * cos(2 * 3.14159265358979 * rand);

        substr pack('f<', $x), 2
    } 1 .. $n;
}


# The small model, whose layers attend to all positions.  The draft layer gets
# another direction for each token and hidden state, so that its logits have
# nothing to do with those of the model.

sub random_model {
    my ($t) = @_;

    my $from = with_drafts(glm_model($t), $t->path('drafts'));
    my $to = $t->path('random');
    my %tensor = DSA::Widen::read_tensors($from);

    delete @tensor{grep { /\.indexer\./ } keys %tensor};

    # sorted, because the order decides which random numbers a tensor gets

    for my $name (sort keys %tensor) {
        my $w = $tensor{$name};
        my ($rows, $cols) = @{$w->{shape}};

        if ($name =~ /^(?:lm_head|.*\.eh_proj)\.weight$/) {
            my $deviation = $name =~ /head/ ? DEVIATION : 1;

            @$w{qw/ dtype data /} = ('BF16', normal($rows * $cols, $deviation
                                                    / sqrt($cols)));

        } elsif ($name =~ /^model\.norm\.|shared_head\.norm\./) {
            @$w{qw/ dtype data /} = ('F32', pack 'f<*', (1) x $rows);
        }
    }

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


# ------------------------------------------------------- the share of a load

my %env = (%{ $t->sanitizer_env('serve') }, DSA_BUILD => $t->build,
           DSA_NGINX => $nginx);

$ENV{$_} = $env{$_} for keys %env;

for my $share (0.5, 0.85) {
    my $load = sprintf '6,%d,20,%d', CHATS, ANSWER;
    my $run = $t->spawn("serve$share", "$DSA::Test::root/bench/serve", '-k',
                        'cpu', '-p', $t->free_port, '-g', 1, '-c', 2048, '-m',
                        $model, '-d', $share, '-e',
                        'prompt_format glm-4.7-flash; speculate '
                        . DRAFTS . ';', $load);

    is($run->wait_end(120), 0, "share $share: the load has ended")
        or diag($run->output);

    my ($row) = grep { /^\| \Q$load\E \|/ } split /\n/, $run->output;
    my (undef, undef, $tokens, undef, $step, $drafts, $right) =
        split / *\| */, $row // '';
    my @right = split m{ / }, $right // '';

    is($tokens, CHATS * (ANSWER - 1), "share $share: all tokens")
        or diag($run->output);
    is(scalar @right, DRAFTS, "share $share: drafts of each position");

    # of 350 to 650 drafts

    cmp_ok(abs($right[$_ - 1] - $share ** $_), '<', 0.07,
           "share $share: draft $_ is right") for 1 .. DRAFTS;
    cmp_ok(abs($step - 1 - sum @right), '<', 0.02,
           "share $share: the tokens of a step are those and one more");
    cmp_ok($drafts, '>', DRAFTS - 0.2, "share $share: drafts of a step");
}

my $bad = $t->spawn('high', $t->build . '/bench/chat', '-p', 1, '-a', 0.95);

is($bad->wait_end(20) >> 8, 2, 'a share that no temperature has is refused');


# --------------------------------------------------------------- the bill

$t->start_redis();
$t->start_engine(conf => { model => $model, prompt_format => 'glm-4.7-flash',
                           name => 'random', backend => 'cpu',
                           speculate => DRAFTS });
$t->start_nginx(workers => 1, redis => 'timeout=5s');
ledger_change($t);

my $before = $t->metrics;
my @usage;

for my $i (1 .. CHATS) {
    my $r = $t->post('/v1/chat/completions', {
        model => 'random', seed => $i, temperature => 1, max_tokens => 40 + $i,
        ignore_eos => JSON::PP::true,
        messages => [ { role => 'user', content => 'word ' x $i } ] });

    is($r->{status}, 200, "chat $i") or diag($r->{body});
    is($r->{json}{usage}{completion_tokens}, 40 + $i, "chat $i: its tokens");
    push @usage, $r->{json}{usage};
}

my $all = ledger_change($t);
my %want = (completion => sum(map { 40 + $_ } 1 .. CHATS),
            prompt => sum(map { $_->{prompt_tokens} } @usage));

is($all->{requests}, CHATS, 'the ledger has each request');
is($all->{"${_}_tokens"}, $want{$_}, "the ledger: $_ tokens")
    for sort keys %want;

my $after = $t->metrics;


# What a counter of the engine has grown by, over all its labels.

sub grown {
    my ($name) = @_;

    return sum map { $after->{$_} - ($before->{$_} // 0) }
               grep { /^\Q$name\E\{/ } keys %$after;
}

my @details = map { $_->{completion_tokens_details} } @usage;

is(sum(map { $_->{draft_tokens} } @details),
   grown('dsa_engine_draft_tokens_total'), 'drafts of requests and engine');
is(sum(map { $_->{accepted_draft_tokens} } @details),
   grown('dsa_engine_accepted_draft_tokens_total'), 'those that were right');
is(grown('dsa_engine_completion_tokens_total'), $want{completion},
   'the engine has generated what was billed');

# a step has a token that is no draft, and the first token of an answer none

is(grown('dsa_engine_decodes_total')
   + grown('dsa_engine_accepted_draft_tokens_total') + CHATS,
   $want{completion}, 'drafts that are wrong are not billed');


# ------------------------------------------------- the share of a replay

my $file = write_file($t->path('trace'), join '', map {
    json_encode({ timestamp => 0, input_length => 20, output_length => ANSWER,
                  hash_ids => [ $_ ] }) . "\n" } 1 .. CHATS);

for my $share (0.5, 0.85) {
    $before = $t->metrics;

    my $run = $t->spawn("replay$share", $t->build . '/bench/replay', '--port',
                        $t->port, '--tokenizer', "$model/tokenizer.json",
                        '--model', 'random', '--concurrency', 6, '--drafts',
                        $share, $file);

    is($run->wait_end(120), 0, "a replay with share $share has ended")
        or diag($run->output);
    wait_until(sub {
        $after = $t->metrics;
        grown('dsa_engine_completion_tokens_total') == CHATS * ANSWER;
    }, 30, 'the counters of the engine');

    my ($first) = map { $after->{$_} - $before->{$_} }
                  grep { /accepted_draft_tokens_total\{.*position="0"/ }
                  keys %$after;

    cmp_ok(abs($first / grown('dsa_engine_decodes_total') - $share), '<',
           0.07, "the first draft is right in a share of $share");
}

$t->done;
