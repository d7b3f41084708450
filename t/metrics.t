#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# /metrics has the text format of Prometheus and counts right; and the errors of
# nginx -t for mistakes in the configuration.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Prometheus;
use DSA::Test;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('metrics');
my $fake = $t->start_fake();

$t->start_nginx(workers => 2);
$t->wait_sessions(2);


my $r = $t->get('/metrics');
is($r->{status}, 200, '/metrics');
is($r->{headers}{'content-type'}, 'text/plain; version=0.0.4; charset=utf-8',
   'its type');
is(prometheus_errors($r->{body}), '', 'well-formed');


# numbers

$t->post($chat, script("T r|r|</think>|c\ncached 9\nprompt 100\ntiers 4 2\n",
                       model => 'deepseek-reasoner')) for 1 .. 10;
$t->post($chat, '{') for 1 .. 3;
$t->get('/v1/none');

# a worker counts a request after it has sent the answer, and another worker
# may serve the next request

my $m;

wait_until(sub {
    $m = $t->metrics;
    my $n = 0;
    $n += $m->{$_} for grep { /^dsa_requests_total/ } keys %$m;
    return $n >= 14;
}, 10, 'all are counted');

is($m->{'dsa_requests_total{code="200"}'}, 10, 'answered, by all workers');
is($m->{'dsa_requests_total{code="400"}'}, 3, 'bad requests');
is($m->{'dsa_requests_total{code="404"}'}, 1, 'not found');
is($m->{'dsa_tokens_total{type="prompt"}'}, 1000, 'prompt tokens');
is($m->{'dsa_tokens_total{type="cached"}'}, 90, 'cached tokens');
is($m->{'dsa_cached_tokens_total{tier="gpu"}'}, 30, 'of the GPU');
is($m->{'dsa_cached_tokens_total{tier="host"}'}, 40, 'of the host');
is($m->{'dsa_cached_tokens_total{tier="redis"}'}, 20, 'of Redis');
is($m->{'dsa_tokens_total{type="completion"}'}, 50, 'completion tokens');
is($m->{'dsa_tokens_total{type="reasoning"}'}, 30, 'reasoning tokens');
is($m->{dsa_time_to_first_token_seconds_count}, 10, 'first tokens');
is($m->{dsa_inter_token_seconds_count}, 30, 'times between tokens');
is($m->{dsa_queue_seconds_count}, 10, 'queue times');
is($m->{'dsa_queue_seconds_bucket{le="0.001"}'}, 10, 'in their bucket');
is($m->{'dsa_request_duration_seconds_bucket{le="+Inf"}'},
   $m->{dsa_request_duration_seconds_count}, 'the last bucket has all');
is($m->{dsa_sessions}, 2, 'a session a worker');
cmp_ok($m->{dsa_doorbells_total}, '>', 0, 'doorbells');

my @buckets = map { $m->{$_} } sort {
    ($a =~ /"([\d.]+)"/)[0] <=> ($b =~ /"([\d.]+)"/)[0]
} grep { /^dsa_request_duration_seconds_bucket\{le="\d/ } keys %$m;
is(join(' ', @buckets), join(' ', sort { $a <=> $b } @buckets),
   'buckets add up');

my $engine = '{pool="v32",engine="unix:' . $fake->sock . '"}';
is($m->{"dsa_engine_up$engine"}, 1, 'the engine is up');
is($m->{"dsa_engine_pages$engine"}, 100, 'pages');
is($m->{"dsa_engine_pages_used$engine"}, 25, 'pages in use');


# times between tokens in the engine: 1, 2, ... 33 tokens of each class

my %times = map { /^dsa_engine_token_seconds_(\w+)\{pool="v32",engine="[^"]*"
                   (?:,le="([^"]*)")?\}$/x
                  ? ($2 // $1 => $m->{$_}) : () } keys %$m;
is(scalar(keys %times), 35, 'a bounded number of series');
is(join(' ', @times{qw/ 0.001 5 +Inf count sum /}), '0 0 0 0 0.000000',
   'no token yet');

ctl($fake, join ' ', 'times', 1 .. 33, 12345678);
$m = $t->metrics;
is($m->{"dsa_engine_token_seconds_bucket{pool=\"v32\",engine=\"unix:"
        . $fake->sock . "\",le=\"$$_[0]\"}"}, $$_[1], "within $$_[0] s")
    for [ '0.001', 1 ], [ '0.0015', 3 ], [ '0.1', 231 ], [ 5, 528 ],
        [ '+Inf', 561 ];
is($m->{"dsa_engine_token_seconds_sum$engine"}, '12.345678', 'their sum');
is($m->{"dsa_engine_token_seconds_count$engine"}, 561, 'and number');
is($m->{"dsa_engine_expert_rows_total$engine"}, 0, 'no rows of experts');
is($m->{"dsa_engine_fullest_expert_rows_total$engine"}, 0, 'on no GPU');

ctl($fake, 'rows 1000 1250');
$m = $t->metrics;
is($m->{"dsa_engine_expert_rows_total$engine"}, 1000, 'rows of experts');
is($m->{"dsa_engine_fullest_expert_rows_total$engine"}, 1250,
   'and of the fullest GPU');
is(prometheus_errors($t->get('/metrics')->{body}), '', 'well-formed');


# the tiers of an engine's cache, as its control block has them

my @words = qw/ pages used_pages hit_tokens_total read_pages_total
                read_bytes_total read_seconds_total written_pages_total
                written_bytes_total write_seconds_total abandoned_pages_total
                invalid_pages_total failed_operations_total lost_pages_total
                servers servers_on /;
my @tiers = qw/ gpu host redis /;

for my $i (0 .. 2) {
    ctl($fake, join ' ', 'tier', $i, map { ($i * 15 + $_) * 100 } 1 .. 15);
}

sub tiers {
    my ($m) = @_;
    my %got;

    for (keys %$m) {
        $got{$2}{$1} = $m->{$_} if /^dsa_engine_tier_(\w+)\{pool="v32",
                                    engine="[^"]*",tier="(\w+)"\}$/x;
    }

    return \%got;
}

my %tiers;

for my $i (0 .. 2) {
    for my $n (0 .. $#words) {
        my $value = ($i * 15 + 1 + $n) * 100;
        $value = sprintf '%.6f', $value / 1e6 if $words[$n] =~ /seconds/;
        $tiers{$tiers[$i]}{$words[$n]} = $value;
    }
}

delete @{ $tiers{redis} }{qw/ pages used_pages /};
delete @{ $tiers{$_} }{qw/ servers servers_on /} for qw/ gpu host /;
is_deeply(tiers($t->metrics), \%tiers, 'tiers of pages of unknown size');

ctl($fake, 'page 3080192');
$tiers{gpu}{bytes} = 100 * 3080192;
$tiers{gpu}{used_bytes} = 200 * 3080192;
$tiers{host}{bytes} = 1600 * 3080192;
$tiers{host}{used_bytes} = 1700 * 3080192;
is_deeply(tiers($t->metrics), \%tiers, 'and of a known size');
is(prometheus_errors($t->get('/metrics')->{body}), '', 'well-formed with them');

my @s = map { $t->stream(script("t a\nhold\n")) } 1 .. 5;
is($t->metrics->{dsa_requests_in_flight}, 5, 'in flight');
$_->close() for @s;
wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10, 'the end');

# versions

my ($version) = read_file("$DSA::Test::root/base/version.h")
                =~ /DSA_VERSION\s+"(.*)"/;
my ($build) = grep { /^dsa_build_info/ } keys %{ $t->metrics };
like($build, qr/\{version="\Q$version\E",nginx="[\d.]+",link="\d+"\}$/,
     'the versions');
ok(!(grep { /^vllm:|^gen_ai/ } keys %{ $t->metrics }),
   'no names of others without a pool');

is($t->request('POST', '/metrics', body => '')->{status}, 405,
   'nothing to POST');
is($t->request('HEAD', '/metrics')->{body}, '', 'HEAD');


$fake->kill9();
wait_until(sub { $t->metrics->{dsa_sessions} == 0 }, 10,
           'all workers to see the end of the session');
is(prometheus_errors($t->get('/metrics')->{body}), '',
   'well-formed without an engine');
is($t->metrics->{"dsa_engine_up$engine"}, 0, 'the engine is down');


# mistakes in the configuration

my @mistakes = (
    [{ http => 'dsa_pool { engine unix:/a; }' }, 'number of arguments'],
    [{ http => 'dsa_pool p { }' }, 'no engines are in dsa_pool "p"'],
    [{ http => 'dsa_pool p { engine unix:/a; } dsa_pool p { engine unix:/b; }'
       }, 'duplicate dsa_pool "p"'],
    [{ http => 'dsa_pool p { engine 127.0.0.1:80; }' },
       'invalid engine address "127.0.0.1:80", expected "unix:"'],
    [{ http => 'dsa_pool p { engine unix:relative; }' },
       'invalid engine address "unix:relative"'],
    [{ http => 'dsa_pool p { engine unix:/' . 'x' x 108 . '; }' },
       'is longer than 107 bytes'],
    [{ http => 'dsa_pool p { engine unix:/a; engine unix:/a; }' },
       'duplicate engine "unix:/a"'],
    [{ http => 'dsa_pool p { engine; }' },
       'invalid number of arguments in "engine"'],
    [{ http => 'dsa_pool p { motor unix:/a; }' },
       'unknown directive "motor", expected "engine"'],
    [{ http => 'dsa_pool p { ' . join(' ', map { "engine unix:/$_;" } 0 .. 64)
       . '}' }, 'more than 64 engines in dsa_pool "p"'],
    [{ location => 'dsa_pass other;' }, '"dsa_pass" directive is duplicate'],
    [{ server => 'location /x/ { dsa_pass nowhere; }' },
       'dsa_pool "nowhere" is not defined in'],
    [{ server => 'location /x/ { dsa_health nowhere; }' },
       'dsa_pool "nowhere" is not defined in'],
    [{ server => 'location /x/ { dsa_health v32 dead; }' },
       'invalid parameter "dead" of "dsa_health"; expected "live" or none in'],
    [{ server => 'location /x/ { dsa_health v32; dsa_health v32 live; }' },
       '"dsa_health" directive is duplicate'],
    [{ server => 'dsa_pass v32;' }, '"dsa_pass" directive is not allowed'],
    [{ server => 'dsa_timeout 0;' }, 'must be more than 0'],
    [{ server => 'dsa_timeout soon;' }, 'invalid value'],
    [{ server => 'dsa_keepalive;' }, 'number of arguments'],
    [{ server => 'dsa_output_limit lots;' }, 'invalid value'],
    [{ server => 'dsa_keepalive 1s; dsa_keepalive 2s;' }, 'is duplicate'],
    [{ server => 'location /x/ { dsa_metrics on; }' },
       'dsa_pool "on" is not defined in'],
    [{ server => 'location /x/ { dsa_metrics v32 on; }' },
       'number of arguments'],
    [{ http => 'dsa_pool ' . 'p' x 64 . ' { engine unix:/a; }',
       server => 'location /x/ { dsa_metrics ' . 'p' x 64 . '; }' },
       'has 64 bytes; expected a name of at most 63'],
);

for (@mistakes) {
    my ($conf, $message) = @$_;
    my ($status, $out) = $t->nginx_test(%$conf);

    ok($status != 0 && index($out, $message) >= 0,
       (%$conf)[1] =~ s/(.{60}).*/$1.../r) or diag($out);
}

my ($status, $out) = $t->nginx_test(
    http => 'dsa_keepalive 1m; dsa_timeout 10m; dsa_output_limit 1m;',
    server => 'location /x/ { dsa_pass v32; dsa_keepalive 0; }');
is($status, 0, 'and a good one') or diag($out);

# Workers that start at the same time: the block of each is counted.

my $many = DSA::Test->new('metrics-many');

$t->done;
$many->start_fake();
$many->start_nginx(workers => 24);

ok(eval { wait_until(sub { $many->metrics->{dsa_sessions} == 24 }, 10,
                     'every session') },
   'a session of each of 24 workers is counted')
    or diag('dsa_sessions ' . $many->metrics->{dsa_sessions});

is(scalar(grep { $many->get('/v1/models')->{status} != 200 } 1 .. 200), 0,
   '200 requests');
ok(eval { wait_until(sub {
              $many->metrics->{'dsa_requests_total{code="200"}'} == 200
          }, 10, 'the sum') }, 'are counted');

# No process reuses the block of an old worker that is killed after a reload:
# its gauges are no longer counted.

my %old = map { $_ => 1 } $many->workers;
my $stream = $many->stream(script("t a\nhold\n"));

$many->reload;
wait_until(sub { 1 == grep { $old{$_} } $many->workers }, 10,
           'the old worker without the stream to end');
is($many->metrics->{dsa_requests_in_flight}, 1,
   'the stream of an old worker is in flight');

$many->allow_alert(qr/exited on signal 9/);
kill 'KILL', grep { $old{$_} } $many->workers;
ok(eval { wait_until(sub { $many->metrics->{dsa_requests_in_flight} == 0 }, 10,
                     'the gauge') }, 'and is not when that worker was killed');

$many->done;
