# Copyright (C) The nginx-dsa authors
#
# dsa usage with a ledger that the test writes, in the layout that
# redis_schema/README.md describes.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use IO::Socket::INET;
use POSIX qw/ strftime /;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('key-usage');
my $dsa = $t->build . '/dsa';

my $server = $t->start_redis();
my $redis = $t->redis();
my @where = ('--redis', '127.0.0.1:' . $server->port);

my @counts = qw/ requests prompt_tokens cached_tokens cached_host_tokens
                 cached_redis_tokens completion_tokens reasoning_tokens
                 cost_miss cost_hit cost_output /;


# Exit status, stdout and stderr.

sub run {
    my (@args) = @_;

    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        open STDERR, '>', $t->path('err');
        exec $dsa, @args or POSIX::_exit(127);
    }

    my $out = do { local $/; <$fh> } // '';
    close $fh;

    return ($? >> 8, $out, read_file($t->path('err')));
}


sub usage {
    my (@args) = @_;

    my ($rc, $out, $err) = run('usage', @where, @args);

    die "dsa usage @args: $rc, $err" if $rc != 0;

    return $out;
}


sub report {
    my (@args) = @_;

    return json_decode(usage('--json', @args));
}


# "TENANT MODEL COUNT,COUNT,..." of each row.

sub rows {
    my (@args) = @_;

    return [map { my $r = $_;
                  "$r->{tenant} $r->{model} "
                  . join ',', map { $r->{$_} } @counts }
            @{ report(@args)->{usage} }];
}


sub digits { substr sha256_hex("\0dsa_tenant\0$_[0]"), 0, 32 }


# Adds counts to a period of a tenant, for a model, and for a key of it.

sub spend {
    my ($tenant, $period, $model, $key, @n) = @_;

    for my $prefix ($model, defined $key ? "$key|$model" : ()) {
        for my $i (0 .. $#counts) {
            $redis->cmd('HINCRBY', "dsa1:{$tenant}:ledger:$period",
                        "$prefix|$counts[$i]", $n[$i]);
        }
    }
}


sub create {
    my (@args) = @_;

    my ($rc, $out, $err) = run('key', 'create', @where, '--name', 'n', @args);
    my ($id) = $err =~ /(key_[0-9a-f]{16})/ or die "dsa key: $err";

    return $id;
}


my ($rc, $out, $err);

# no keys, no use

is_deeply(report()->{usage}, [], 'no keys');
like(usage(), qr/\ATENANT +MODEL .*\nTOTAL +0 +0 .* 0\.00 +0\.00\n\z/,
     'no keys: a table');
is(usage('--csv'), 'tenant,model,' . join(',', @counts) . ",cost\n",
   'no keys: CSV');

# two keys of a tenant, and one that is a tenant of its own

my $one = create('--tenant', 'acme');
my $two = create('--tenant', 'acme');
my $own = create();
my $acme = digits('acme');

spend($acme, '2026-02-03', 'v3|2', $one, 1, 1000, 640, 128, 64, 20, 7,
      100000000, 20000000, 3000000);
spend($acme, '2026-02-04', 'v3|2', $two, 2, 2000, 0, 0, 0, 40, 0,
      200000000, 0, 6000000);
spend($acme, '2026-02-04', 'r1', $one, 1, 10, 0, 0, 0, 1, 0, 1, 0, 2);
spend(digits($own), '2026-02-28', 'r1', $own, 5, 50, 40, 0, 40, 5, 5,
      5000000000000, 1500000000000, 0);

my @feb = ('--from', '2026-02-01', '--to', '2026-02-28');

is_deeply([sort @{ rows(@feb) }],
          ['acme r1 1,10,0,0,0,1,0,0.000000000001,0,0.000000000002',
           'acme v3|2 3,3000,640,128,64,60,7,0.0003,0.00002,0.000009',
           "$own r1 5,50,40,0,40,5,5,5,1.5,0"], 'a month');

is_deeply(report(@feb)->{total},
          { requests => 9, prompt_tokens => 3060, cached_tokens => 680,
            cached_host_tokens => 128, cached_redis_tokens => 104,
            completion_tokens => 66, reasoning_tokens => 12,
            cost_miss => '5.000300000001', cost_hit => '1.50002',
            cost_output => '0.000009000002', cost => '6.500329000003' },
          'the total, exactly');

is_deeply(rows('--from', '2026-02-03', '--to', '2026-02-03'),
          ['acme v3|2 1,1000,640,128,64,20,7,0.0001,0.00002,0.000003'],
          'one day');
is_deeply(rows('--from', '2026-02-05', '--to', '2026-02-27'), [],
          'days without use');

# a tenant, a key

is_deeply(rows(@feb, '--tenant', $own),
          ["$own r1 5,50,40,0,40,5,5,5,1.5,0"], 'a tenant by its name');
is_deeply(rows(@feb, '--tenant', digits($own)),
          [digits($own) . ' r1 5,50,40,0,40,5,5,5,1.5,0'],
          'a tenant by its digits');
is_deeply([sort @{ rows(@feb, '--key', $one) }],
          ['acme r1 1,10,0,0,0,1,0,0.000000000001,0,0.000000000002',
           'acme v3|2 1,1000,640,128,64,20,7,0.0001,0.00002,0.000003'],
          'a key');
is_deeply(rows(@feb, '--key', $one, '--tenant', $own), [],
          'a key with another tenant');
is(report(@feb, '--key', $one)->{key}, $one, 'the report names the key');

# the table and CSV

is(join(' ', usage(@feb) =~ /^acme +(v3.*)$/m) =~ s/ +/ /gr,
   'v3|2 3 3000 2360 448 128 64 60 7 0.000329 0.00002',
   'the table: tokens by tier');
like(usage(@feb), qr/^TOTAL +9 +3060 .* 6\.500329000003 +1\.50002\n\z/m,
     'the table: the total');
like(usage(@feb, '--csv'),
     qr/^"acme","v3\|2",3,3000,640,128,64,60,7,0\.0003,0\.00002,0\.000009,
        0\.000329$/mx, 'CSV');

spend(digits('a"b,c'), '2026-02-03', 'm', undef, (1) x 10);
like(usage(@feb, '--csv', '--tenant', 'a"b,c'), qr/^"a""b,c","m",1,/m,
     'CSV: quotes');

# an old ledger has no fields for the cost and for tiers

$redis->cmd('HSET', 'dsa1:{' . digits('old') . '}:ledger:2026-02-03',
            'm|requests', 4, 'm|prompt_tokens', 5, 'm|later_count', 9,
            'other', 'x');
is_deeply(rows(@feb, '--tenant', 'old'), ['old m 4,5,0,0,0,0,0,0,0,0'],
          'a ledger of an earlier version');

# today, by default from the first day of the month

my $today = strftime('%Y-%m-%d', gmtime);
spend(digits('now'), $today, 'm', undef, (1) x 10);

my $report = report('--tenant', 'now');
is($report->{total}{requests}, 1, 'this month');
is($report->{from}, substr($today, 0, 8) . '01', 'from its first day')
    if $today eq strftime('%Y-%m-%d', gmtime);

# days that were folded into the sum of their month: 2025-10 and the days before
# 2025-11-21

my $old = digits('folded');
my $rolled = 20413;

is(strftime('%Y-%m-%d', gmtime $rolled * 86400), '2025-11-21', 'the test');
$redis->cmd('SET', "dsa1:{$old}:rolled", $rolled);
spend($old, '2025-10', 'm', undef, (1) x 10);
spend($old, '2025-11', 'm', undef, (10) x 10);
spend($old, '2025-11-21', 'm', undef, (100) x 10);
spend($old, '2025-12-01', 'm', undef, (1000) x 10);

# the ledger keeps a day that could not be folded

spend($old, '2025-11-05', 'm', undef, (10000) x 10);

sub folded {
    my ($from, $to) = @_;

    return report('--tenant', 'folded', '--from', $from, '--to', $to)
           ->{total}{requests};
}

is(folded('2025-10-01', '2025-12-31'), 11111, 'months and days');
is(folded('2025-10-01', '2025-10-31'), 1, 'a month that was folded');
is(folded('2025-11-01', '2025-11-30'), 10110, 'a month that was in part');
is(folded('2025-11-01', '2025-11-20'), 10010, 'the part that was folded');
is(folded('2025-11-21', '2025-12-31'), 1100, 'the part that was not');
is(folded('2025-12-01', '2025-12-31'), 1000, 'a month that was not');
is(folded('2025-09-10', '2025-10-31'), 1, 'before the first use');

for (['2025-11-02', '2025-11-30'], ['2025-11-01', '2025-11-19'],
     ['2025-10-31', '2025-12-31'], ['2025-10-01', '2025-11-01'])
{
    my ($from, $to) = @$_;
    my ($rc, $out, $err) = run('usage', @where, '--tenant', 'folded', '--from',
                               $from, '--to', $to);

    ok($rc == 1 && $out eq ''
       && $err =~ /of the days from 2025-1[01]-01 to 2025-1[01]-\d\d of/
       && $err =~ /the tenant folded, the ledger has only the sum/,
       "a part of a sum: $from to $to") or diag("$rc, $out, $err");
}

# a day that is folded while the program reads: a server that has the day at
# first, and from the moment at which it was read the sum of the month

sub folding {
    my ($port) = @_;

    my $listen = IO::Socket::INET->new(
        LocalAddr => "127.0.0.1:$port", Listen => 5, ReuseAddr => 1)
        or die "cannot listen: $@\n";

    while (my $s = $listen->accept()) {
        my $moved = 0;

        while (defined(my $n = <$s>)) {
            my @words = map { <$s>; scalar <$s> } 1 .. $n =~ s/\D//gr;

            if ($words[0] =~ /^PING/) {
                print $s "+PONG\r\n";
                next;
            }

            my ($period) = $words[1] =~ /:ledger:([\d-]+)/;
            my @fields;

            if (!$period) {
                my $day = 20413 + $moved;
                print $s '$' . length($day) . "\r\n$day\r\n";
                next;
            }

            @fields = ('m|requests', 7) if $period eq '2025-11-21' && !$moved
                                           || $period eq '2025-11' && $moved;
            $moved ||= $period eq '2025-11-21';
            print $s '*' . @fields . "\r\n",
                  map { '$' . length($_) . "\r\n$_\r\n" } @fields;
        }
    }
}

my $port = $t->free_port();
$t->daemon('folding', \&folding, $port);
wait_until(sub { IO::Socket::INET->new("127.0.0.1:$port") }, 20, 'a server');

($rc, $out, $err) = run('usage', '--redis', "127.0.0.1:$port", '--json',
                        '--tenant', 'x', '--from', '2025-11-01', '--to',
                        '2025-11-30');
is(json_decode($out)->{total}{requests}, 7, 'a day that is folded meanwhile')
    or diag($err);

# the digits of a sum beyond 2^53, and one that is too large

my $large = digits('large');
spend($large, '2026-02-03', 'm', undef, (9007199254740993) x 10);
spend($large, '2026-02-04', 'm', undef, (9007199254740994) x 10);
like(usage('--json', @feb, '--tenant', 'large'),
     qr/"requests":18014398509481987,.*"cost_miss":"18014\.398509481987"/,
     'sums beyond 2^53');

spend($large, '2026-02-05', 'm', undef, (9200000000000000000) x 10);
($rc, $out, $err) = run('usage', @where, @feb, '--tenant', 'large');
ok($rc == 1 && $err =~ /exceeds 64 bits/, 'a sum that is too large');

# what is wrong in Redis

my @day = ('--from', '2026-02-06', '--to', '2026-02-06', '--tenant', 'large');

$redis->cmd('HSET', "dsa1:{$large}:ledger:2026-02-06",
            "m\e[31m\nx|requests", 7);
$out = usage(@day);
like($out, qr/ m\\x1b\[31m\\x0ax +7 /, 'a model with control characters');
unlike($out, qr/[^\n\x20-\x7e]/, 'which are not printed');
$redis->cmd('HSET', "dsa1:{$large}:ledger:2026-02-06", "m\e[31m|requests", 'x');
($rc, $out, $err) = run('usage', @where, @day);
ok($rc == 1 && $err =~ /is not a count/, 'not a count');
unlike($err, qr/[^\n\x20-\x7e]/, 'nor are those of an error');

$redis->cmd('HSET', "dsa1:{$large}:ledger:2026-02-03", 'm|requests', '1x');
($rc, $out, $err) = run('usage', @where, @feb, '--tenant', 'large');
ok($rc == 1 && $out eq ''
   && $err =~ /\Qthe ledger 2026-02-03 of the tenant $large: the field\E
               \ \Q"m|requests" is not a count\E/x, 'not a count')
    or diag($err);

$redis->cmd('SET', "dsa1:{$large}:ledger:2026-02-04", 'x');
($rc, $out, $err) = run('usage', @where, '--from', '2026-02-04', '--to',
                                '2026-02-04', '--tenant', 'large');
ok($rc == 1 && $err =~ /WRONGTYPE/, 'a key of another type') or diag($err);

# keys in a file

my $file = $t->path('keys');
run('key', 'create', '--file', $file, '--name', 'n', '--tenant', 'acme');
is_deeply([map { s/ .*//r } @{ rows(@feb, '--file', $file) }],
          ['acme', 'acme'], 'keys in a file');
my ($of_file) = read_file($file) =~ /(key_[0-9a-f]{16})/;
is_deeply(rows(@feb, '--file', $file, '--key', $of_file), [],
          'a key in a file');

# wrong usage

for (['expected --redis', 'usage'],
     ['not the id of a key', 'usage', @where, '--key', 'sk-dsa-secret'],
     ['1 to 64 bytes', 'usage', @where, '--tenant', ''],
     ['not a date', 'usage', @where, '--from', '2026-02-30'],
     ['not a date', 'usage', @where, '--to', '2026-02'],
     ['empty or too long', 'usage', @where, '--from', '2026-02-02', '--to',
      '2026-02-01'],
     ['empty or too long', 'usage', @where, '--from', '2000-01-01', '--to',
      '2026-02-01'],
     ['more than one format', 'usage', @where, '--csv', '--json'],
     ['is not an option', 'usage', @where, '--secret=sk-dsa-secret'],
     ['not an option;', 'usage', @where, 'sk-dsa-secret'])
{
    my ($want, @args) = @$_;
    my ($rc, $out, $err) = run(@args);

    ok($rc == 2 && $out eq '' && $err =~ /\Q$want\E/ && $err !~ /sk-dsa/,
       "usage: $want") or diag("$rc: $err");
}

($rc, $out, $err) = run('usage', @where, '--key', 'key_0000000000000000');
ok($rc == 1 && $err =~ /there is no key key_0000000000000000/,
   'an unknown key');
like((run('usage', '--help'))[1], qr/^usage: dsa usage /, '--help');

$server->stop();
($rc, $out, $err) = run('usage', @where);
ok($rc == 1 && $err =~ /Connection refused/, 'Redis is down');

$t->done;
