# Copyright (C) The nginx-dsa authors
#
# Retention with the demonstration model: a client that drops the reasoning, or
# writes the arguments of calls anew, gets the same prompts and the same cache
# hits as one that keeps all, in each round of tools.  Without retention it does
# not.  Tenants do not share a cache, so each client is a tenant of its own.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use IPC::Open2;
use Test::More;

my $t = DSA::Test->new('retention_hits');
my $root = $DSA::Test::root;
my $chat = '/v1/chat/completions';
my $rounds = 4;

$t->start_redis();
$t->start_engine(conf => { model => "$root/demo/model" });
$t->start_nginx(server => 'location /off/ { dsa_pass v32;
                                            dsa_retention off; }');
$t->wait_redis(1);

$ENV{PYTHONPATH} = "$root/demo";
$ENV{PYTHONDONTWRITEBYTECODE} = 1;


# Plays the beginning of a task.  Returns what each round reported: tokens of
# the prompt, cached ones among them, and what the model answered.

sub play {
    my ($who, $at, $edit) = @_;

    my $pid = open2(my $out, my $in, 'python3', '-m', 'tasks.serve', 'trip',
                    7);
    my $task = json_decode(scalar <$out>);
    my @messages = ({ role => 'system', content => $task->{system} },
                    { role => 'user', content => $task->{turns}[0] });
    my @seen;

    for my $round (1 .. $rounds) {
        my $r = $t->post("$at$chat", {
            model => 'deepseek-reasoner', tools => $task->{tools},
            messages => \@messages, seed => 1, max_tokens => 1000 },
            headers => [ Authorization => "Bearer $who" ]);

        die "$who: $r->{body}\n" if $r->{status} != 200;

        my $usage = $r->{json}{usage};
        my $m = $r->{json}{choices}[0]{message};

        push @seen, { prompt => $usage->{prompt_tokens},
                      cached => $usage->{prompt_cache_hit_tokens},
                      reasoning => $m->{reasoning_content},
                      calls => [ map { $_->{function} }
                                     @{ $m->{tool_calls} || [] } ] };

        my @results = map {
            print $in json_encode({ call => $_->{function}{name},
                                    arguments => $_->{function}{arguments} }),
                      "\n";
            $in->flush;
            +{ role => 'tool', tool_call_id => $_->{id},
               content => json_decode(scalar <$out>)->{result} }
        } @{ $m->{tool_calls} || [] };

        last if !@results;

        push @messages, $edit->($m), @results;
    }

    close $in;
    waitpid $pid, 0;

    return \@seen;
}


sub cached { join ' ', map { $_->{cached} } @{ $_[0] } }

sub drops {
    my %m = %{ $_[0] };
    delete $m{reasoning_content};
    return \%m;
}

sub rewrites {
    my ($m) = @_;

    return { %$m, tool_calls => [ map {
        +{ %$_, function => { %{ $_->{function} }, arguments =>
           json_encode(json_decode($_->{function}{arguments})) } }
    } @{ $m->{tool_calls} } ] };
}


my $kept = play('keeps', '', sub { $_[0] });

is(scalar @$kept, $rounds, 'the model calls tools in each round');
ok($_->{reasoning} ne '' && @{ $_->{calls} }, 'with reasoning') for @$kept;

my $hits = 0;

for my $i (1 .. $rounds - 1) {
    $hits++ if $kept->[$i]{cached}
               >= 64 * int $kept->[$i - 1]{prompt} / 64;
}

is($hits, $rounds - 1, 'each round finds the one before it in the cache')
    or diag(explain($kept));

is_deeply(play('drops', '', \&drops), $kept,
          'without reasoning: the same prompts, hits and answers');
is_deeply(play('rewrites', '', \&rewrites), $kept, 'other arguments');
is_deeply(play('both', '', sub { rewrites(drops($_[0])) }), $kept, 'both');

cmp_ok($t->metrics->{dsa_retention_cached_tokens_total}, '>=',
       3 * $kept->[-1]{cached}, 'the hits are counted');

my $off = play('off', '/off', \&drops);

isnt(cached($off), cached($kept), 'without retention the cache is missed');
cmp_ok($off->[2]{prompt}, '<', $kept->[2]{prompt},
       'and the model sees less of what it thought');
diag("cached: kept or restored " . cached($kept) . ", dropped "
     . cached($off)) if $ENV{DSA_KEEP};

$t->done;
