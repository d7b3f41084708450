# Copyright (C) The nginx-dsa authors
#
# Serves demo/model, the demonstration model: it thinks, calls tools, and solves
# the share of its tasks that its model card reports.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

# of each family; few under sanitizers, because they are slow

use constant TASKS => $ENV{DSA_SANITIZED} ? 1 : 4;

my $t = DSA::Test->new('model');
my $root = $DSA::Test::root;
my $model = "$root/demo/model";
my $chat = '/v1/chat/completions';


# the files of the model

my @shards = glob "$model/*.safetensors";
my $bytes = 0;

$bytes += -s for glob "$model/*";

is(scalar @shards, 2, 'two shards');
cmp_ok($bytes, '<=', 20_000_000, 'at most 20 MB');

my $vocabulary = json_decode(read_file("$model/tokenizer.json"));
my %ids = (%{ $vocabulary->{model}{vocab} },
           map { $_->{content} => $_->{id} } @{ $vocabulary->{added_tokens} });

is(scalar keys %ids, 4096, 'a tokenizer of 4,096 entries');

my $config = json_decode(read_file("$model/config.json"));

is_deeply([ @$config{qw/ kv_lora_rank qk_rope_head_dim v_head_dim
                         index_head_dim /} ],
          [ 512, 64, 128, 128 ], 'the published head geometry');


# its answers

$t->start_redis();
$t->start_engine(conf => { model => $model });
$t->start_nginx(redis => 'ttl=1h', http => 'client_max_body_size 4m;');

wait_until(sub { $t->get('/v1/conversations/conv_' . '0' x 32)->{status}
                 == 404 }, 10, 'Redis');


# Sends a chat.  Returns the answer's message and the usage.

sub ask {
    my ($thinking, @texts) = @_;

    my $i = 0;
    my $r = $t->post($chat, {
        model => 'model',
        seed => 1,
        thinking => { type => $thinking ? 'enabled' : 'disabled' },
        messages => [ map { { role => $i++ % 2 ? 'assistant' : 'user',
                              content => $_ } } @texts ] });

    die "$r->{status}: $r->{body}\n" if $r->{status} != 200;

    return ($r->{json}{choices}[0]{message}, $r->{json}{usage});
}


for my $thinking (1, 0) {
    my $how = $thinking ? 'thinking' : 'not thinking';
    my ($m, $usage) = ask($thinking, 'What is 48 times 27?');

    like($m->{content}, qr/\b1296\b/, "$how: the product");

    if ($thinking) {
        like($m->{reasoning_content}, qr/48\*27=1296/,
             'the calculation is in the reasoning');
        cmp_ok($usage->{completion_tokens_details}{reasoning_tokens}, '>', 40,
               'reasoning tokens are counted');
    } else {
        is($m->{reasoning_content}, undef, "$how: no reasoning");
    }
}

my ($m) = ask(0, 'What is 31 plus 45?', 'The answer is 76.',
              'What is nginx-dsa?');

like($m->{content}, qr/nginx module/, 'it describes the project');


# Runs demo/eval on some tasks of each family.

sub evaluate {
    my $out = $t->path('eval.json');
    my $log = $t->path('eval.log');

    local $ENV{PYTHONPATH} = "$root/demo";
    local $ENV{PYTHONDONTWRITEBYTECODE} = 1;

    my $rc = system 'sh', '-c', 'exec python3 -m eval.run "$@" 2> ' . $log,
                    '-', '--url', 'http://127.0.0.1:' . $t->port . '/v1',
                    '--tasks', TASKS, '--seed', 9, '--mode', 'retain',
                    '--out', $out;

    is($rc, 0, 'the evaluation ran all conversations') or diag(read_file($log));

    return $rc == 0 ? json_decode(read_file($out))->{results} : [];
}


sub sum {
    my ($key, @results) = @_;

    my $sum = 0;
    $sum += $_->{$key} for @results;

    return $sum;
}


my $results = evaluate();

# lower than in the model card, because the share of so few tasks varies

my %least = (talk => 0.25, single => 0.75, multi => 0.6, plan => 0.5,
             daily => 0.3);

%least = (single => 0.5, multi => 0.3) if TASKS == 1;

for my $kind (sort keys %least) {
    my @of = grep { ($_->{family} =~ /^daily_/ ? 'daily' : $_->{kind})
                    eq $kind } @$results;
    my @wrong = grep { !$_->{right} } @of;

    cmp_ok(@of - @wrong, '>=', $least{$kind} * @of,
           sprintf '%s: %d of %d are right', $kind, @of - @wrong,
                   scalar @of)
        or diag(map { "$_->{family} $_->{seed}: $_->{why}\n" } @wrong);
}

my $calls = sum('calls', @$results);

cmp_ok($calls, '>', 20 * TASKS, 'tools were called');
cmp_ok(sum('parsed', @$results), '>=', 0.95 * $calls,
       'the calls can be parsed');
cmp_ok(sum('cached_tokens', @$results), '>',
       sum('prompt_tokens', @$results) / 2,
       'most prompt tokens came from the cache');

$t->done;
