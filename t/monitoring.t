# Copyright (C) The nginx-dsa authors
#
# The rules for Prometheus and the dashboard of Grafana use metrics and labels
# that /metrics has.  docs/operate/alarms.md explains each alert.

use strict;
use warnings;

use CPAN::Meta::YAML;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('monitoring');
my $conf = "$DSA::Test::root/conf";
my $file = "$conf/prometheus/dsa.rules.yml";

my ($yaml) = @{ CPAN::Meta::YAML->read($file) };
my @rules = map { @{ $_->{rules} } } @{ $yaml->{groups} };
my @records = grep { defined $_->{record} } @rules;
my @alerts = grep { defined $_->{alert} } @rules;
my $board = json_decode(read_file("$conf/grafana/dsa.json"));
my @targets = map { @{ $_->{targets} || [] } } @{ $board->{panels} };
my @queries = map { $_->{definition} // () } @{ $board->{templating}{list} };

cmp_ok(scalar @records, '>', 5, 'there are recording rules');
cmp_ok(scalar @alerts, '>', 10, 'there are alerts');
cmp_ok(scalar @targets, '>', 20, 'the dashboard has queries');
is(scalar @records + @alerts, scalar @rules, 'each rule is one of both');


# /metrics with all that can be in it: the labels of each name

$t->start_redis();
$t->start_fake() for 1, 2;
write_keys($t->path('keys'), key_entry('anna'));
$t->start_nginx(http => 'dsa_keys file=%%DIR%%/keys zone=keys:1m;',
                server => 'location = /all { dsa_metrics v32; }',
                workers => 2);
wait_until(sub { exists $t->metrics->{dsa_redis_memory_used_bytes} }, 20,
           'the memory of Redis');
is($t->post('/v1/chat/completions', ask('x'), bearer(key_text('anna')))
   ->{status}, 200, 'a chat');

my $failed = $t->stream(script("error internal\n"),
                        bearer(key_text('anna')), head => 0);

$failed->read_head;
is($failed->status, 500, 'and one that fails');
wait_until(sub { $t->get('/all')->{body} =~ /error_type="500"/ }, 20,
           'its error');

my $text = $t->get('/all')->{body};
my %type = $text =~ /^# TYPE ([\w:]+) (\w+)$/mg;
my %labels;

for ($text =~ /^([\w:]+(?:\{.*\})?) \S+$/mg) {
    my ($name, $list) = /^([\w:]+)(?:\{(.*)\})?$/;
    $labels{$name}{$_} = 1 for ($list // '') =~ /(\w+)="/g;
}

# a family may have no sample here; its metrics have the labels of the others

for my $family (keys %type) {
    my @names = $type{$family} eq 'histogram'
                ? map { "${family}_$_" } qw/ bucket sum count / : $family;

    for (@names) {
        $labels{$_} ||= $family =~ /^dsa_engine_tier_/
                        ? { pool => 1, engine => 1, tier => 1 } : {};
    }
}

# Prometheus adds these to what it reads

my %added = map { $_ => 1 } qw/ instance job /;
my %recorded = map { $_->{record} => 1 } @records;


# The memory of Redis, which one worker reads for all

my $redis = $t->redis;

sub memory { $t->metrics->{"dsa_redis_memory_$_[0]"} }

$redis->cmd(qw/ CONFIG SET maxmemory 50mb /);
wait_until(sub { memory('limit_bytes') == 50 * 1024 * 1024 }, 20, 'its limit');

my ($used) = $redis->cmd(qw/ INFO memory /) =~ /^used_memory:(\d+)/m;

cmp_ok(abs($used - memory('used_bytes')), '<', 1_000_000, 'what is used of it');
is(memory('evicts'), 0, 'and nothing is evicted');

$redis->cmd(qw/ CONFIG SET maxmemory-policy allkeys-lru /);
wait_until(sub { memory('evicts') == 1 }, 20, 'a policy that evicts');

my $evicts = qr/\[warn\].*removes data.*noeviction/;
my $lossy = qr/\[warn\].*no append-only file.*appendonly yes/;
my $unknown = qr/\[warn\].*memory of Redis is not known: .*NOPERM.*info/;

wait_until(sub { $t->logged($lossy) }, 20, 'a warning that it is not durable');
wait_until(sub { $t->logged($evicts) }, 20, 'a warning');

$redis->cmd(qw/ ACL SETUSER default -info /);
wait_until(sub { $t->logged($unknown) }, 20, 'INFO to be refused');
ok(!(grep { /_memory_/ } keys %{ $t->metrics }), 'none of its metrics');
wait_until(sub { $redis->cmd(qw/ ACL LOG /)->[0][1] >= 2 }, 30,
           'a second refusal');

$redis->cmd(qw/ ACL SETUSER default +info /);
wait_until(sub { exists $t->metrics->{dsa_redis_memory_used_bytes} }, 20,
           'the memory again');

# each of the workers could read it, but they do so in turn

my ($calls) = $redis->cmd(qw/ INFO commandstats /)
              =~ /^cmdstat_info:calls=(\d+)/m;
my ($uptime) = $redis->cmd(qw/ INFO server /)
               =~ /^uptime_in_seconds:(\d+)/m;

is($t->logged($lossy), 1, 'one of them logged that it is not durable');
is($t->logged($evicts), 1, 'and one the policy');
is($t->logged($unknown), 1, 'and the refusal, once');
cmp_ok($calls, '<=', 3 + $uptime / 5, "$calls INFO in $uptime seconds");


# Reports the metrics and labels of a query that /metrics does not have.

sub unknown {
    my ($expr) = @_;

    my $rest = $expr =~ s/"[^"]*"/""/gr;
    my @bad = grep { /^dsa:/ ? !$recorded{$_} : !$labels{$_} }
              $rest =~ /\b((?:dsa[_:]|gen_ai_server_|vllm:)[\w:]+)/g;

    while ($expr =~ /\b((?:dsa|gen_ai_server)_\w+|vllm:\w+)\{(.*?)\}/g) {
        my ($name, $selectors) = ($1, $2);

        push @bad, map { "$name\{$_\}" }
                   grep { !$labels{$name}{$_} && !$added{$_} }
                   $selectors =~ /(\w+)\s*(?:=~?|!~|!=)/g;

        # a value that is compared exactly is in /metrics

        push @bad, map { "$name\{$_\}" } grep { $text !~ /\Q$name\E\{.*$_/ }
                   $selectors =~ /((?:code|type|tier|reason|result)="\w+")/g;
    }

    for my $group ($rest =~ /\b(?:by|without) \((.*?)\)/g) {
        push @bad, map { "label $_" }
                   grep { my $l = $_;
                          !$added{$l} && !grep { $_->{$l} } values %labels }
                   $group =~ /(\w+)/g;
    }

    return @bad;
}


is_deeply([ unknown('sum by (colour) (rate(dsa_none{x="1"}[5m]))') ],
          [ 'dsa_none', 'dsa_none{x}', 'label colour' ],
          'the check finds what does not exist');
is_deeply([ unknown('rate(gen_ai_server_none_count[5m]) + vllm:none{y="1"}') ],
          [ 'gen_ai_server_none_count', 'vllm:none', 'vllm:none{y}' ],
          'also under the names of others');
is_deeply([ unknown($_->{expr}) ], [], $_->{record} // $_->{alert})
    for @rules;
is_deeply([ unknown($_->{expr}) ], [], "dashboard: $_->{expr}") for @targets;
is_deeply([ unknown($_) ], [], "dashboard: $_") for @queries;


# rules that are not used, and alerts that the guide does not describe

for my $name (sort keys %recorded) {
    ok((grep { index($_->{expr}, $name) >= 0 } @alerts, @targets),
       "$name is used");
}

for my $alert (@alerts) {
    ok($alert->{annotations}{summary} && $alert->{annotations}{description}
       && $alert->{labels}{severity} =~ /^(?:warning|critical)$/,
       "$alert->{alert} is described");
}

my $guide = read_file("$DSA::Test::root/docs/operate/alarms.md");

is_deeply([ sort $guide =~ /^\| `(Dsa\w+)`/mg ],
          [ sort map { $_->{alert} } @alerts ],
          'docs/operate/alarms.md explains each alert');

# panels of the dashboard have ids of their own and do not overlap

my (%id, %at, @twice);

for my $panel (@{ $board->{panels} }) {
    my $g = $panel->{gridPos};

    push @twice, "id $panel->{id}" if $id{ $panel->{id} }++;

    for my $x ($g->{x} .. $g->{x} + $g->{w} - 1) {
        for my $y ($g->{y} .. $g->{y} + $g->{h} - 1) {
            push @twice, "$panel->{title} at $x, $y" if $at{$x, $y}++;
        }
    }
}

is_deeply(\@twice, [], 'the panels of the dashboard do not overlap');

# experts that are not equally popular are seen as docs/metrics.md says

is((grep { $_->{expr} =~ m{^rate\(dsa_engine_fullest_expert_rows_total\{.*?\}
                           .*\ /\ \(rate\(dsa_engine_expert_rows_total\{.*
                           \ >\ 0\)$}x } @targets), 1,
   'the dashboard has the multiple of the mean of the fullest GPU');


# promtool checks the whole syntax, and what the rules make of samples

SKIP: {
    skip 'no promtool', 2 if system('command -v promtool > /dev/null') != 0;

    my $out = `promtool check rules $file 2>&1`;
    is($?, 0, 'promtool check rules') or diag($out);

    my $samples = "$DSA::Test::root/t/data/prometheus/rules-test.yml";

    $out = `promtool test rules $samples 2>&1`;
    is($?, 0, 'promtool test rules') or diag($out);
}

$t->done;
