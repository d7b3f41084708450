# Copyright (C) The nginx-dsa authors
#
# "dsa_metrics POOL": the names of the Gateway API Inference Extension and of
# OpenTelemetry, with the buckets of its conventions; labels are bounded.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Fake;
use DSA::Prometheus;
use DSA::Test;

my $t = DSA::Test->new('others');
my @fake = map { $t->start_fake('model=m"\\1') } 1, 2;

$t->start_nginx(workers => 2,
                server => 'location = /pool { dsa_metrics v32; }');
wait_until(sub { $t->metrics->{dsa_sessions} == 4 }, 10, 'all sessions');


sub text { $t->get('/pool')->{body} }

# The samples of the pool's metrics, by name and labels.

sub samples {
    return { map { /^((?:vllm:|gen_ai_)\S+?(?:\{.*\})?) (\S+)$/ ? ($1, $2)
                                                                : () }
             split /\n/, text() };
}

# The samples of a name, as [{ LABEL => VALUE }, VALUE].

sub rows {
    my ($name) = @_;
    my $all = samples();

    return map { my $value = $all->{$_};
                 [ { /(\w+)="((?:[^"\\]|\\.)*)"/g }, $value ] }
           grep { /^\Q$name\E\{/ } sort keys %$all;
}

sub total {
    my ($name, %labels) = @_;
    my $n = 0;

    for (rows($name)) {
        my ($has, $value) = @$_;

        $n += $value if !grep { ($has->{$_} // '') ne $labels{$_} }
                         keys %labels;
    }

    return $n;
}

my $duration = 'gen_ai_server_request_duration_seconds';
my $first = 'gen_ai_server_time_to_first_token_seconds';
my $each = 'gen_ai_server_time_per_output_token_seconds';

sub counted {
    my ($n, %labels) = @_;

    ok(eval { wait_until(sub { total("${duration}_count", %labels) == $n },
                         slow(20), 'all') },
       "$n requests " . join ' ', %labels)
        or diag total("${duration}_count", %labels);
}


# the gauges: one sample each, the sum over both engines

ctl($fake[0], 'load 5 3');
ctl($fake[1], 'load 2 0');

my $model = 'model_name="m\\"\\\\1"';
my %gauge = ("vllm:num_requests_waiting{$model}" => 3,
             "vllm:num_requests_running{$model}" => 7,
             "vllm:kv_cache_usage_perc{$model}" => '0.250000',
             "vllm:cache_config_info{$model,block_size=\"64\","
             . 'num_gpu_blocks="200"}' => 1);

ok(eval { wait_until(sub { (samples()->{"vllm:num_requests_running{$model}"}
                            // 0) == 7 }, 10, 'the load') }, 'the load');

my $got = samples();
is_deeply({ map { $_ => $got->{$_} } grep { /^vllm/ } keys %$got }, \%gauge,
          'the gauges of the protocol');


# durations: each endpoint, with the buckets of the conventions

my %body = (
    'chat/completions' => script("T a|b|c\n"),
    'v1/messages' => { %{ script("T a|b|c\n") }, max_tokens => 9 },
    completions => { model => 'm"\\1', prompt => "!fake\nT a|b|c\n" },
    responses => { model => 'deepseek-chat', input => "!fake\nT a|b|c\n" });

for my $endpoint (sort keys %body) {
    my $path = '/v1/' . $endpoint =~ s{^v1/}{}r;

    is($t->post($path, $body{$endpoint},
                headers => ['Authorization', 'Bearer anna'])->{status}, 200,
       $path);
    counted(1, endpoint => $endpoint, tenant => substr(sha256_hex('anna'),
                                                       0, 32));
}

my ($row) = map { $_->[0] } grep { $_->[0]{endpoint} eq 'completions' }
            rows("${duration}_count");
is_deeply($row, { gen_ai_operation_name => 'text_completion',
                  gen_ai_provider_name => 'nginx-dsa', pool => 'v32',
                  gen_ai_request_model => 'm\\"\\\\1',
                  endpoint => 'completions',
                  tenant => substr(sha256_hex('anna'), 0, 32) },
          'the labels of completions');
is(total("${duration}_count", gen_ai_operation_name => 'chat',
         gen_ai_request_model => 'deepseek-chat'), 3, 'the others are chats');

my %bounds = (
    $duration => '0.01 0.02 0.04 0.08 0.16 0.32 0.64 1.28 2.56 5.12 10.24
                  20.48 40.96 81.92',
    $first => '0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5
               7.5 10',
    $each => '0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5');

for my $name (sort keys %bounds) {
    my %le = map { $_->[0]{le} => 1 } rows("${name}_bucket");

    is(join(' ', sort { $a <=> $b } grep { $_ ne '+Inf' } keys %le),
       $bounds{$name} =~ s/\s+/ /gr, "the buckets of $name");
    is(total("${name}_count"), 4, 'its count');
    is(total("${name}_bucket", le => '+Inf'), 4, 'and its last bucket');
}


# time to the first token, and for each token after it: the least and the most
# are what the test has measured from outside

my $sent = time;
my $s = $t->stream(script("wait\nt a\nwait\nt b\nt c\n"),
                   headers => ['Authorization', 'Bearer slow'], head => 0);
my %slow = (tenant => substr(sha256_hex('slow'), 0, 32));

wait_until(sub { (grep { ctl($_, 'live') eq '1' } @fake) == 1 }, 10, 'it');
$s->read_head;                          # nginx has seen that it is accepted

my $waits = time;

$t->metrics for 1 .. 5;

my $least = time - $waits;

ctl($_, 'go') for @fake;
$s->next_event for 1, 2;

my $most = time - $sent;

ctl($_, 'go') for @fake;
$s->events;
counted(1, %slow);

# nginx measures in milliseconds

my $took = total("${first}_sum", %slow);

ok($took >= $least - 0.002 && $took <= $most + 0.002,
   'the time to the first token')
    or diag("$took, expected $least to $most");

for my $le (split ' ', $bounds{$first}) {
    is(total("${first}_bucket", %slow, le => $le), $le < $took ? 0 : 1,
       "is in its buckets: $le") if abs($le - $took) > 0.0005;
}

cmp_ok(abs(total("${duration}_sum", %slow) - total("${first}_sum", %slow)
           - 3 * total("${each}_sum", %slow)), '<', 0.00001,
       'the rest belongs to two tokens and the end token');


# errors: a status, and an answer that ends with one; no first token is counted

my $before = total("${first}_count");

is($t->post('/v1/chat/completions', script("error internal\n"),
            headers => ['Authorization', 'Bearer bad'])->{status}, 500,
   'an error of the engine');
counted(1, error_type => '500');

$s = $t->stream(script("t a\nwait\nerror internal\n"),
                headers => ['Authorization', 'Bearer bad']);
$s->next_event;
ctl($_, 'go') for @fake;
$s->events;
counted(1, error_type => 'error');

$s = $t->stream(script("t a\nhold\n"),
                headers => ['Authorization', 'Bearer bad']);
$s->next_event;
$s->close;
counted(1, error_type => 'cancelled');
is(total("${first}_count"), $before, 'none of them has a first token');


# a model that no engine has is no label

is($t->post('/v1/chat/completions', { model => "no-$_", messages => [
                { role => 'user', content => 'x' } ] })->{status}, 404,
   'an unknown model') for 1 .. 3;
counted(3, error_type => '404');
is(total("${duration}_count", error_type => '404', gen_ai_request_model => ''),
   3, 'has no label');


# more tenants than there are rows: 300 of them, and then a second model

$t->post('/v1/chat/completions', script("T a|b\n"),
         headers => ['Authorization', "Bearer t$_"]) for 1 .. 300;
counted(4 + 1 + 3 + 3 + 300);

my @rows = rows("${duration}_count");
is(scalar @rows, 193, '192 rows, and one of the others');
cmp_ok(total("${duration}_count", tenant => 'other'), '>', 100,
       'which has the rest');
is(prometheus_errors(text()), '', 'well-formed');

SKIP: {
    skip('promtool is not installed (package prometheus)', 1) if !promtool();

    is(promtool_errors(text()), '', 'promtool accepts it');
}

$t->reload;
is(scalar rows("${duration}_count"), 193, 'a reload keeps them');


# docs/metrics.md has all of these names

my %type = text() =~ /^# TYPE ((?:vllm|gen_ai)\S*) (\w+)$/mg;
my %doc = docs('metrics') =~ /^\| `((?:vllm|gen_ai)\S*)` \| (\w+) \|/mg;
is_deeply(\%doc, \%type, 'docs/metrics.md has these metrics');


# without an engine there is no load to report

$_->kill9 for @fake;
wait_until(sub { $t->metrics->{dsa_sessions} == 0 }, 10, 'no sessions');
ok(!(grep { /^vllm/ } keys %{ samples() }), 'no gauges without an engine');
is(prometheus_errors(text()), '', 'well-formed');

$t->done;


sub docs { read_file("$DSA::Test::root/docs/$_[0].md") }
