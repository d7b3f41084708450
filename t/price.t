#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# What requests cost, to the last 10^-12 of a unit, against sums that
# Math::BigInt makes from the tokens and the text of the configuration.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Math::BigInt;
use Test::More;
use Time::HiRes qw/ time /;

my $seed = $ENV{DSA_SEED} || int time;
srand $seed;
diag("DSA_SEED=$seed");

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('price');
my $redis = $t->start_redis();
my $fake = $t->start_fake('context=4000000000');
my %sum = map { $_ => Math::BigInt->new(0) } qw/ miss hit output /;

my $log = 'log_format dsa "$status $dsa_model $dsa_prompt_tokens '
          . '$dsa_cached_tokens $dsa_completion_tokens $dsa_cost"; '
          . 'access_log %%DIR%%/dsa.log dsa;';


# The price of one token in 10^-12 of a unit.

sub parts {
    my ($price) = @_;
    my ($whole, $rest) = split /\./, $price;

    return Math::BigInt->new($whole . substr(($rest // '') . '0' x 6, 0, 6));
}


# A number of 10^-12 of a unit as nginx writes it.

sub amount {
    my ($n) = @_;

    my $s = sprintf '%013s', "$n";
    $s =~ s/ /0/g;
    $s =~ s/(\d{12})$/.$1/;
    $s =~ s/\.?0+$//;

    return $s;
}


# { miss, hit, output } in 10^-12 of a unit.

sub cost {
    my ($price, $prompt, $host, $redis, $cached, $completion) = @_;
    my $hit = $price->{hit};

    return {
        miss => parts($price->{miss}) * ($prompt - $cached),
        hit => parts($hit) * ($cached - $host - $redis)
               + parts($price->{hit_host} // $hit) * $host
               + parts($price->{hit_redis} // $hit) * $redis,
        output => parts($price->{output}) * $completion,
    };
}


sub sum { my ($c) = @_; return $c->{miss} + $c->{hit} + $c->{output} }


# The cost in the usage of an answer, as the text that it is, or "none".

sub cost_in {
    my ($r) = @_;

    return $r->{body} =~ /"usage":\{[^}]*(?:\{[^}]*\}[^}]*)*"cost":([\d.]+)\}/
           ? $1 : 'none';
}


sub directive {
    my ($model, $price) = @_;

    return "dsa_price $model "
           . join(' ', map { "$_=$price->{$_}" } sort keys %$price) . ';';
}


# The next line of the access log that is of a chat.

my $lines = 0;

sub logged {
    my @lines;

    wait_until(sub {
        @lines = grep { !/^\d+ - / }
                 split /\n/, read_file($t->path('dsa.log')) // '';
        @lines > $lines;
    }, 10, 'the access log');

    return $lines[$lines++];
}


sub idle {
    wait_until(sub { ctl($fake, 'live') eq '0' }, 10, 'the engine to be idle');
    wait_until(sub { $t->metrics->{dsa_requests_in_flight} == 0 }, 10,
               'nothing in flight');
}


# The counter of each part, as integers.

sub counters {
    my $m = $t->metrics;

    return map {
        my ($whole, $rest) = split /\./, $m->{"dsa_cost_total{part=\"$_\"}"};
        $_ => Math::BigInt->new($whole . substr(($rest // '') . '0' x 12,
                                                0, 12));
    } qw/ miss hit output /;
}


# Runs code, and checks that the counters have grown by that cost.

sub charged {
    my ($name, $want, $code) = @_;

    my %before = counters();
    $code->();
    idle();
    my %after;

    eval { wait_until(sub { %after = counters();
                            sum(\%after) - sum(\%before) == sum($want) }, 5,
                      'the cost') };

    is(join(' ', map { $after{$_} - $before{$_} } sort keys %after),
       join(' ', map { $want->{$_} } sort keys %$want), $name);

    $sum{$_} += $want->{$_} for keys %sum;
}


# Checks that Redis has the sum of everything that was charged.

sub settled {
    my ($name) = @_;

    my %have;
    my $want = join ' ', map { "$_=$sum{$_}" } sort keys %sum;

    eval { wait_until(sub {
        my $r = $t->redis($redis);

        %have = map { $_ => Math::BigInt->new(0) } keys %sum;

        for my $key ($r->keys('dsa1:*:ledger:*')) {
            my $fields = $r->hgetall($key);

            for my $field (keys %$fields) {
                my ($part) = $field =~ /\|cost_(\w+)$/ or next;
                $have{$part} += Math::BigInt->new($fields->{$field});
            }
        }

        return $want eq join ' ', map { "$_=$have{$_}" } sort keys %have;
    }, 20, 'the ledger') };

    is(join(' ', map { "$_=$have{$_}" } sort keys %have), $want,
       "$name: the ledger");
}


# Configurations

for my $case (
    [ 'm miss=1', qr/needs "miss", "hit" and "output"/ ],
    [ 'm miss=1 hit=1', qr/needs "miss", "hit" and "output"/ ],
    [ 'm miss=1 hit=1 output=1.0000001', qr/"1\.0000001" is not a price; / ],
    [ 'm miss=-1 hit=1 output=1', qr/"-1" is not a price; expected / ],
    [ 'm miss= hit=1 output=1', qr/"" is not a price; expected / ],
    [ 'm miss=1 miss=1 hit=1 output=1', qr/duplicate parameter "miss=1"/ ],
    [ 'm miss=1 hit=1 hit_host=1000001 output=1', qr/expected a number up to/ ],
    [ 'm miss=1 hit=1 output=1 from=10:00', qr/needs both "from" and "to"/ ],
    [ 'm miss=1 hit=1 output=1 to=10:00', qr/needs both "from" and "to"/ ],
    [ 'm miss=1 hit=1 output=1 from=24:00 to=10:00', qr/00:00 to 23:59/ ],
    [ 'm miss=1 hit=1 output=1 from=1:00 to=10:00', qr/00:00 to 23:59/ ],
    [ 'm miss=1 hit=1 output=1 from=01:60 to=10:00', qr/00:00 to 23:59/ ],
    [ 'm miss=1 hit=1 output=1 from=01:00 to=24:01', qr/00:00 to 24:00/ ],
    [ 'm miss=1 hit=1 output=1 from=01:00 to=01:00', qr/has the same time/ ],
    [ 'm miss=1 hit=1 output=1 from=01:00 from=02:00 to=03:00',
      qr/duplicate parameter "from=02:00"/ ],
    [ 'm miss=1 hit=1 output=1 days=mon-', qr/expected days of a week/ ],
    [ 'm miss=1 hit=1 output=1 days=monday', qr/expected days of a week/ ],
    [ 'm miss=1 hit=1 output=1 days=', qr/expected days of a week/ ],
    [ 'm miss=1 hit=1 output=1 day=mon', qr/invalid parameter "day=mon"/ ],
    [ 'm miss=1 hit=1 output=1 mon', qr/invalid parameter "mon"/ ],
    [ 'm miss=1 hit=1 output=1 days=mon',
      qr/model "m" has no "dsa_price" without "from" and "days"/ ],
    [ 'm miss=1 hit=1 output=1; dsa_price m miss=1 hit=1 output=1',
      qr/is never used, because an earlier one/ ],
    [ 'm miss=1 hit=1 output=1; dsa_price currency=usd',
      qr/invalid currency/ ],
    [ 'currency=EURO', qr/invalid currency/ ],
    [ 'currency=', qr/invalid currency ""/ ],
    [ 'currency=EUR; dsa_price currency=EUR',
      qr/duplicate parameter "currency=EUR"/ ],
    [ 'm miss=1 hit=1 output=1 currency=EUR',
      qr/expected a line of its own, "dsa_price currency=EUR;"/ ],
    [ 'currency=EUR miss=1 hit=1 output=1',
      qr/expected a line of its own, "dsa_price currency=EUR;"/ ])
{
    my ($text, $want) = @$case;
    my ($status, $out) = $t->nginx_test(http => "dsa_price $text;");

    ok($status != 0 && $out =~ $want, "refused: $text") or diag($out);
}

for my $text ('currency=EUR', 'm miss=0 hit=0 output=0',
              'm miss=1000000 hit=0.000001 output=1',
              'm miss=1 hit=1 output=1 days=mon-fri; '
              . 'dsa_price m miss=1 hit=1 output=1 from=23:00 to=00:00; '
              . 'dsa_price m miss=1 hit=1 output=1 days=sat,sun,fri-mon; '
              . 'dsa_price m miss=1 hit=1 output=1 days=tue-mon; '
              . 'dsa_price currency=CNY')
{
    my ($status, $out) = $t->nginx_test(http => "dsa_price $text;");

    is($status, 0, "accepted: $text") or diag($out);
}


# Random usages of two models, with prices by tier and without.

my %price = (
    'deepseek-chat' => { miss => '0.28', hit => '0.028', output => '0.42' },
    'deepseek-reasoner' => { miss => '999.999999', hit => '0.000001',
                             hit_host => '0.07', hit_redis => '1',
                             output => '12.345678' });

$t->start_nginx(http => $log . join ' ',
                        map { directive($_, $price{$_}) } sort keys %price);

for my $i (1 .. 60) {
    my $model = (sort keys %price)[$i % 2];
    my $prompt = 1 + int rand($i % 3 ? 1000 : 2000000);
    my $cached = int rand($prompt + 1);
    my $host = int rand($cached + 1);
    my $redis = int rand($cached - $host + 1);
    my $completion = 1 + int rand 9;
    my $want = cost($price{$model}, $prompt, $host, $redis, $cached,
                    $completion);

    charged("$model $prompt $cached $host $redis $completion", $want, sub {
        my @usage = $i % 4 ? () : (usage => { include => \1 });
        my $r = $t->post($chat, script("prompt $prompt\ncached $cached\n"
                         . "tiers $host $redis\n"
                         . "completion $completion\nt a\n", model => $model,
                         @usage));
        is($r->{status}, 200, 'answered') or diag($r->{body});
        is(cost_in($r), @usage ? amount(sum($want)) : 'none',
           'the cost in usage');
    });

    is(logged(), "200 $model $prompt $cached $completion "
                 . amount(sum($want)), 'logged');
}


# The cost in the last chunk of a stream, and in a legacy completion.

my $one = cost($price{'deepseek-chat'}, 10, 0, 0, 0, 2);

my @last = (stream => \1, stream_options => { include_usage => \1 });

for my $case ([ $chat, @last ], [ $chat, stream => \1 ], [ '/v1/completions' ],
              [ '/v1/completions', stream => \1 ])
{
    my ($uri, @more) = @$case;
    my %body = %{ script("prompt 10\nt a\n", usage => { include => \1 },
                         @more) };

    $body{prompt} = (delete $body{messages})->[0]{content}
        if $uri ne $chat;

    charged("$uri @more", $one, sub {
        is(cost_in($t->post($uri, \%body)), amount(sum($one)),
           'the cost in usage');
    });
    logged();
}

settled('random usages');


# However the request ends, what was computed is charged.

my $price = $price{'deepseek-chat'};

# The end of a choice is a token, too.

charged('three choices', cost($price, 1000, 0, 0, 640, 9), sub {
    $t->post($chat, script("prompt 1000\ncached 640\nt a\nt b\n", n => 3));
});
is(logged(), '200 deepseek-chat 1000 640 9 0.0001225', 'logged');

charged('a client that leaves', cost($price, 500, 0, 0, 100, 2), sub {
    my $s = $t->stream(script("noaccept\nprompt 500\ncached 100\naccept\n"
                              . "t a\nt b\nhold\n"));
    my $n = 0;
    $n += length($s->next_event()->{json}{choices}[0]{delta}{content} // '')
        while $n < 2;
    $s->close();
});
logged();

charged('the engine fails after two tokens', cost($price, 500, 0, 0, 0, 2),
        sub {
    my $s = $t->stream(script("noaccept\nprompt 500\naccept\nt a\nt b\nwait\n"
                              . "error internal x\n"));
    my $n = 0;
    $n += length($s->next_event()->{json}{choices}[0]{delta}{content} // '')
        while $n < 2;
    ctl($fake, 'go');
    $s->read_body();
});
logged();

charged('refused by the engine', { miss => 0, hit => 0, output => 0 }, sub {
    is($t->post($chat, script("noaccept\nerror context too long"))->{status},
       400, 'refused');
});
like(logged(), qr/^400 .* -?$/, 'no cost is logged');

settled('however they end');

# a worker is killed: what the request has cost until then is in the ledger

my ($worker) = $t->workers;
my $killed = $t->stream(script("noaccept\nprompt 500\ncached 100\naccept\n"
                               . "t a\nt b\nhold\n"));
my $letters = 0;
$letters += length($killed->next_event()->{json}{choices}[0]{delta}{content}
                   // '') while $letters < 2;

$t->allow_alert(qr/exited on signal 9/);
kill 'KILL', $worker;
wait_until(sub { my @now = $t->workers; @now == 1 && $now[0] != $worker }, 10,
           'a new worker');
$killed->close();

my $cut = cost($price, 500, 0, 0, 100, 2);
$sum{$_} += $cut->{$_} for keys %sum;
settled('a killed worker');


# A model without a price costs nothing, which is logged once.

charged('without a price', { miss => 0, hit => 0, output => 0 }, sub {
    $t->post($chat, script("prompt 10\ncompletion 1\nt a\n",
                              model => 'fake-model'))
        for 1 .. 2;
});
is(logged(), '200 fake-model 10 0 1 0', 'costs 0') for 1 .. 2;
is($t->logged(qr/\[warn\].*model "fake-model" has no "dsa_price"/), 1,
   'logged once');

# nginx remembers these models, so it must not remember what clients make up

for my $model ('made-up', 'v' x 63) {
    charged("no engine serves $model", { miss => 0, hit => 0, output => 0 },
            sub {
        is($t->post($chat, script('t a', model => $model))->{status}, 404,
           'refused');
    });
    like(logged(), qr/^404 $model/, 'in the access log');
    is($t->logged(qr/model "$model" has no "dsa_price"/), 0,
       'its price was not searched');
}


# More than can be counted.

$t->allow_alert(qr/which cost more than can be counted/);
$t->reload(http => $log . directive('deepseek-chat', { miss => 1000000,
                                    hit => 1, output => 1 }));
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
my $most = Math::BigInt->new('9' x 18);

charged('too much', { miss => $most, hit => 0, output => 1000000 }, sub {
    $t->post($chat, script("prompt 3000000000\ncompletion 1\nt a\n"));
});
is(logged(), '200 deepseek-chat 3000000000 0 1 ' . amount($most + 1000000),
   'logged');
ok($t->logged(qr/\[alert\].*3000000000 tokens of a prompt.*limited to a m/),
   'as an alert');

charged('the most', { miss => Math::BigInt->new('999999000000000000'),
                      hit => 0, output => 1000000 }, sub {
    $t->post($chat, script("prompt 999999\ncompletion 1\nt a\n"));
});
logged();

settled('as the counters');


# Windows of time: random lines of one model, and the first that matches.

sub day { (qw/ sun mon tue wed thu fri sat /)[$_[0] % 7] }


sub window {
    my @now = gmtime;
    my $minute = $now[2] * 60 + $now[1];
    my %w;

    # times near this one, so that the borders are tested

    if (rand() < 0.8) {
        my ($from, $to) = map { ($minute + $_) % 1440 }
                          (int(rand 4) - 2, int(rand 4) - 1);
        ($from, $to) = (int rand 1440, int rand 1440) if rand() < 0.3;
        $to = 1440 if $to == 0 && rand() < 0.5;

        if ($from != $to) {
            $w{from} = sprintf '%02d:%02d', int($from / 60), $from % 60;
            $w{to} = sprintf '%02d:%02d', int($to / 60), $to % 60;
        }
    }

    if (!$w{from} || rand() < 0.5) {
        my $from = int rand 7;
        $w{days} = day($from);
        $w{days} .= '-' . day($from + int rand 6) if rand() < 0.6;
        $w{days} .= ',' . day(int rand 7) if rand() < 0.3;
        delete $w{days} if days($w{days}) == 7;
    }

    return %w ? \%w : window();
}


# The days of a text, as a hash of their names.

sub days {
    my %days;

    for my $range (split /,/, $_[0]) {
        my ($from, $to) = split /-/, $range;
        my ($i) = grep { day($_) eq $from } 0 .. 6;

        for ( ;; $i++) {
            $days{ day($i) } = 1;
            last if day($i) eq ($to // $from);
        }
    }

    return wantarray ? %days : scalar keys %days;
}


# Whether a minute of a week (0: Sunday 00:00) is in a window: it is, if the
# window that began on some day covers it.

sub within {
    my ($w, $minute) = @_;

    my %on = days($w->{days} // 'sun-sat');
    my ($from, $to) = map { /(\d+):(\d+)/; $1 * 60 + $2 }
                      ($w->{from} // '00:00', $w->{to} // '24:00');

    $to += 1440 if $to <= $from;

    for my $d (grep { $on{ day($_) } } 0 .. 6) {
        for my $week (0, 1) {
            my $at = $minute + $week * 7 * 1440;
            return 1 if $at >= $d * 1440 + $from && $at < $d * 1440 + $to;
        }
    }

    return 0;
}


my %seen;

for my $round (1 .. 40) {
    my @lines = map { window() } 1 .. 3;
    my $conf = '';

    for my $i (0 .. 2) {
        $conf .= directive('deepseek-chat', { miss => $i + 1, hit => 0,
                                              output => 0, %{ $lines[$i] } });
    }

    $conf .= directive('deepseek-chat', { miss => 9, hit => 0, output => 0 });

    $t->reload(http => $log . $conf);
    wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');

    # with the clock of nginx: that of core time() is a few milliseconds late

    my ($before, $after);

    do {
        $before = int(time / 60);
        $t->post($chat, script("prompt 1000000\nt a\n"));
        $after = int(time / 60);
        logged() if $before != $after;
    } while ($before != $after);

    my @now = gmtime($before * 60);
    my $minute = $now[6] * 1440 + $now[2] * 60 + $now[1];
    my ($want) = grep { $_ == 9 || within($lines[$_ - 1], $minute) }
                 1, 2, 3, 9;

    $seen{$want}++;
    is((split ' ', logged())[-1], $want, "round $round") or diag($conf);
}

cmp_ok(scalar keys %seen, '>', 2, 'several lines were used');


# The price is that of the beginning: a request begins before the next minute,
# in which another price is valid, and ends in it.

my $minute = int(time / 60) + 1;
my $at = sub { my @m = gmtime($_[0] * 60);
               sprintf '%02d:%02d', $m[2], $m[1] };

$t->reload(http => $log . directive('deepseek-chat', {
               miss => 7, hit => 0, output => 0, from => $at->($minute),
               to => $at->($minute + 30) })
           . directive('deepseek-chat', { miss => 2, hit => 0, output => 0 }));
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');

SKIP: {
    my $s = $t->stream(script("prompt 1000000\nt a\nwait\nt b\n"));
    skip 'the minute has ended before the request began', 2
        if time >= $minute * 60;

    my %two = (miss => Math::BigInt->new('2000000000000'), hit => 0,
               output => 0);

    charged('the price of the beginning', \%two, sub {
        $s->next_event();
        wait_until(sub { time > $minute * 60 }, 70, 'the next minute');
        ctl($fake, 'go');
        $s->read_body();
    });
    is((split ' ', logged())[-1], 2, 'in the log, too');
}

$t->post($chat, script("prompt 1000000\nt a\n"));
is((split ' ', logged())[-1], 7, 'a later request has the other');

$t->done;
