#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Weights that are replaced in a running engine: SIGHUP loads what the symbolic
# link "model" names now.  What an answer was drawn from is compared with logits
# that "dsa logits" computes from the weights of the version that its rows name.
# Checkpoints that cannot be loaded leave the old weights serving.

use strict;
use warnings;

use File::Path qw/ make_path /;
use JSON::PP;
use List::Util qw/ min sum0 uniq /;
use MIME::Base64;
use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Rollout;
use DSA::Test;

my %t = map { $_ => DSA::Test->new("weights $_") } qw/ one two redis null /;
my $t = $t{one};
my $true = JSON::PP::true;
my $uri = '/v1/completions';
my $model = $t->model;
my @files = map { s{.*/}{}r } glob "$model/*";
my ($shard) = grep { /00001-of/ } @files;
my %dir = (a => $model, b => $t->path('b'));

rolled($dir{b});
link_to($t, 'a');

my %conf = (model => $t->path('model'), precision => 'exact',
            kv_memory => '16m', token_budget => 128, max_running => 8);

my $engine = $t->start_engine(conf => { %conf, host_memory => '16m' });
$t->start_nginx(location => 'dsa_rollout 4m;');


# A copy of the model with the rows of lm_head moved by one: other weights of
# the same shape, whose logits are those of the neighbour.

sub rolled {
    my ($dir, %but) = @_;

    make_path($dir);

    for my $name (@files) {
        my $text = read_file("$model/$name");

        if ($name =~ /\.safetensors$/) {
            my $n = unpack 'Q<', $text;
            my $head = decode_json(substr $text, 8, $n);

            if (my $at = $head->{'lm_head.weight'}) {
                my ($from, $to) = map { $_ + 8 + $n } @{ $at->{data_offsets} };
                my $row = 2 * $at->{shape}[1];
                my $rows = substr $text, $from, $to - $from;

                substr $text, $from, $to - $from,
                       substr($rows, $row) . substr($rows, 0, $row);
            }
        }

        $text = $but{$name}->($text) if $but{$name};
        write_file("$dir/$name", $text) if defined $text;
    }

    return $dir;
}


# Points "model" to a directory, as a whole.

sub link_to {
    my ($t, $name) = @_;

    symlink $dir{$name} // $name, $t->path('next') or die "symlink: $!\n";
    rename $t->path('next'), $t->path('model') or die "rename: $!\n";
}


sub lines { scalar(() = $_[0]->output =~ /$_[1]/g) }


# Sends SIGHUP and waits for so many further lines of the log.

sub hup {
    my ($engine, $re, $n) = @_;

    my $before = lines($engine, $re);

    kill HUP => $engine->pid;
    wait_until(sub { lines($engine, $re) >= $before + ($n // 1) }, 60,
               "$re in the log");
}


sub body {
    my (%more) = @_;

    return { model => 'deepseek-chat', max_tokens => 12, temperature => 1,
             prompt => join(' ', map { "word$_" } 1 .. 60), top_p => 1,
             seed => 7, ignore_eos => $true,
             rollout => { mask => $true, experts => $true, prompt => $true },
             %more };
}


sub rollout {
    my ($t, %more) = @_;

    my $r = $t->post($uri, body(%more));

    is($r->{status}, 200, 'an answer') or diag($r->{body});

    return (rows(decode_base64($r->{json}{choices}[0]{rollout}{rows})),
            $r->{json}{usage}{prompt_cache_hit_tokens});
}


# Compares the log-probabilities of samples from..to with those of a model.

sub check {
    my ($name, $rows, $dir, $from, $to) = @_;

    my @answer = map { $_->{id} } @{ $rows->{samples} };
    my $n = @{ $rows->{prompt} };
    my $want = reference($t, $dir, [ @{ $rows->{prompt} }, @answer ]);
    my $wrong = 0;

    for my $i ($from .. $to) {
        my ($draws) = draws($want->{logits}[$n + $i - 1],
                            scalar(vocabulary($dir)), temperature => 1,
                            top_p => 1);
        my %p = map { @$_ } @$draws;

        $wrong++ if abs(log($p{$answer[$i]}) - $rows->{samples}[$i]{logprob})
                    > 1e-4;
    }

    is($wrong, 0, "$name: logprobs of the weights");
}


sub versions { join ' ', uniq(map { $_->{version} } @{ $_[0]{samples} }) }


# the weights, the caches and the versions

my $was;

for my $case ([ 'a', 1 ], [ 'b', 2 ], [ 'a', 3 ]) {
    my ($name, $version) = @$case;

    if ($version != 1) {
        link_to($t, $name);
        hup($engine, qr/weights of version $version were loaded/);
    }

    my ($rows, $cached) = rollout($t);

    is($cached, 0, "$name: no page of other weights is found");
    is(versions($rows), $version, "$name: version $version");
    is(join(' ', keys %{ $rows->{versions} }), $version,
       "$name: version of the experts");
    check($name, $rows, $dir{$name}, 0, 11);

    ($rows, $cached) = rollout($t);
    cmp_ok($cached, '>', 0, "$name: its own pages are found");

    $was = $rows;
}


# the same weights again: their pages are still those of these bytes

hup($engine, qr/weights of version 4 were loaded/);
is(versions((rollout($t))[0]), 4, 'the same weights, another version');


# an answer that runs goes on with the new weights

{
    link_to($t, 'a');

    my $s = $t->stream(body(max_tokens => 1000, prompt => 'Once upon a time'),
                       uri => $uri);
    my $bytes = '';
    my $sent = 0;

    while (defined(my $e = $s->next_event)) {
        next if ref $e->{json} ne 'HASH';

        my $rollout = $e->{json}{choices}[0]{rollout} or next;
        $bytes .= decode_base64($rollout->{rows});

        if (!$sent++) {
            link_to($t, 'b');
            kill HUP => $engine->pid;
        }
    }

    my $rows = rows($bytes);
    my @versions = map { $_->{version} } @{ $rows->{samples} };
    my $first = grep { $_ == 4 } @versions;

    is(scalar @versions, 1000, 'the answer is complete');
    is(versions($rows), '4 5', 'its first samples, and then the others');
    is($rows->{again}, 0, 'experts of a position once');
    check('before', $rows, $dir{a}, 0, $first - 1);
    check('after', $rows, $dir{b}, $first, min($first + 100, 999));
}


# checkpoints that cannot be loaded

my $number = 0;

sub but {
    my ($name, $change) = @_;

    return rolled($t->path('bad' . $number++), $name => $change);
}

sub config {
    my ($edit) = @_;

    return but('config.json', sub {
        my $json = decode_json($_[0]);
        $edit->($json);
        return encode_json($json);
    });
}

sub scale {
    my ($text) = @_;

    my $n = unpack 'Q<', $text;
    my $head = decode_json(substr $text, 8, $n);
    my ($name) = grep { /scale_inv$/ } sort keys %$head;

    substr $text, 8 + $n + $head->{$name}{data_offsets}[0], 4,
           pack('f<', 'nan');

    return $text;
}

my ($before) = rollout($t, prompt => 'One', rollout => { mask => $true });

for my $case (
    [ 'no directory', $t->path('none'), qr/model: No such file/ ],
    [ 'no shard', but($shard, sub { undef }), qr/$shard/ ],
    [ 'half a shard', but($shard, sub { substr $_[0], 0, 300_000 }),
      qr/$shard/ ],
    [ 'a shard without its last byte', but($shard,
      sub { substr $_[0], 0, -1 }), qr/$shard/ ],
    [ 'a header of garbage', but($shard, sub { "\xff" x length $_[0] }),
      qr/$shard/ ],
    [ 'an empty shard', but($shard, sub { '' }), qr/$shard/ ],
    [ 'a tensor of another name', but($shard,
      sub { $_[0] =~ s/input_layernorm/input_layerxorm/r }),
      qr/input_layernorm/ ],
    [ 'a scale that is no number', but($shard, \&scale), qr/scale/ ],
    [ 'another theta', config(sub { $_[0]{rope_theta}++ }),
      qr/config\.json is another one/ ],
    [ 'fewer layers', config(sub { $_[0]{num_hidden_layers}-- }),
      qr/is unknown/ ],
    [ 'no config', but('config.json', sub { undef }), qr/config\.json/ ])
{
    my ($name, $dir, $reason) = @$case;

    link_to($t, $dir);
    hup($engine, qr/weights of version 5 stay: .*$reason/);

    my ($rows) = rollout($t, prompt => 'One', rollout => { mask => $true });

    is_deeply($rows, $before, "$name: the old weights serve");
}


# many signals while answers run

{
    my @streams = map { $t->stream(body(seed => $_, prompt => "Number $_.",
                                        max_tokens => 60), uri => $uri,
                                   head => 0) } 1 .. 6;

    for my $i (1 .. 30) {
        link_to($t, $i % 2 ? 'b' : 'a');
        kill HUP => $engine->pid;
    }

    $_->read_head() for @streams;

    for my $s (@streams) {
        my $bytes = join '', map { decode_base64($_->{rollout}{rows}) }
                             grep { $_->{rollout} }
                             map { @{ $_->{json}{choices} } }
                             grep { ref $_->{json} eq 'HASH' } $s->events;
        my $rows = rows($bytes);
        my @versions = map { $_->{version} } @{ $rows->{samples} };

        is(scalar @versions, 60, 'many signals: an answer is complete');
        is("@versions", join(' ', sort { $a <=> $b } @versions),
           'versions rise');
    }

    link_to($t, 'a');
    hup($engine, qr/weights of version \d+ were loaded/);

    my ($rows) = rollout($t, prompt => 'Twice');
    check('after many signals', $rows, $dir{a}, 0, 11);
}


# all replicas, also one that starts meanwhile

{
    my $t = $t{two};

    link_to($t, 'a');

    my $engine = $t->start_engine(conf => { %conf, replicas => 2,
                                            model => $t->path('model') });
    $t->start_nginx(location => 'dsa_rollout 4m;');

    link_to($t, 'b');
    hup($engine, qr/weights of version 2 were loaded/, 2);

    my @streams = map { $t->stream(body(seed => $_, prompt => "Number $_."),
                                   uri => $uri, head => 0) } 1 .. 6;
    my %versions;

    for my $s (@streams) {
        $s->read_head();
        my $rows = rows(join '', map { decode_base64($_->{rollout}{rows}) }
                                 grep { $_->{rollout} }
                                 map { @{ $_->{json}{choices} } }
                                 grep { ref $_->{json} eq 'HASH' }
                                 $s->events);
        $versions{versions($rows)}++;
    }

    is(join(' ', keys %versions), 2, 'both replicas have version 2');

    my ($first) = DSA::Process::children($engine->pid);

    kill KILL => $first;
    wait_until(sub {
        my @now = DSA::Process::children($engine->pid);
        return @now == 2 && !grep { $_ == $first } @now;
    }, 30, 'another replica');
    hup($engine, qr/weights of version \d+ were loaded/, 2);
    pass('a replica that starts replaces its weights when it is ready');
    $t->allow_alert(qr/session|engine|replica/);
}


# what has no weights, and what shares pages with others

for my $case ([ 'null', { backend => 'null rate=0' }, qr/has no weights/ ],
              [ 'redis', { %conf, host_memory => '16m' },
                qr/weights cannot be replaced with "redis_cache"/ ])
{
    my ($name, $conf, $reason) = @$case;
    my $t = $t{$name};

    if ($name eq 'redis') {
        my $redis = $t->start_redis;
        link_to($t, 'a');
        $conf = { %$conf, model => $t->path('model'),
                  redis_cache => '127.0.0.1:' . $redis->port };
    }

    my $engine = $t->start_engine(conf => $conf);
    $t->start_nginx();

    hup($engine, qr/weights of version 1 stay: .*$reason/);
    is($t->post($uri, body(rollout => undef))->{status}, 200,
       "$name: it serves");
}

$_->done for values %t;
