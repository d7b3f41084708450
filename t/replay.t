# Copyright (C) The nginx-dsa authors
#
# bench/agents and bench/replay.  The best hit rate that the generator prints
# is checked by comparing each request with all before it, and the hits that
# the replay measures by the same numbers, rounded to pages.  Times at which
# requests are due follow from those at which others ended, and are compared
# with these; tokens are compared with usages and with the engine's times.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use List::Util qw/ max min sum /;
use Test::More;
use Time::HiRes qw/ time /;

use constant {
    BLOCK => 512,
    PAGE  => 64,
};

chdir $DSA::Test::root or die "chdir: $!\n";

my $t = DSA::Test->new('replay');
my $replay = $t->build . '/bench/replay';
my $tokenizer = $t->model . '/tokenizer.json';


# (exit status, stdout, stderr) of a program.

sub run {
    my (@argv) = @_;

    my $file = $t->path('stderr');

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>"$0"', $file, @argv
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, defined $out ? $out : '', read_file($file));
}


# The requests of a trace, and what is printed about it.

sub agents {
    my (@options) = @_;

    my ($rc, $out, $err) = run('bench/agents', @options);

    die "bench/agents: $err\n" if $rc != 0;

    return ([ map { json_decode($_) } split /\n/, $out ], $err, $out);
}


# The longest common prefix in tokens with any of the requests before.  A last
# block that is not full is as long as the shorter prompt.

sub common {
    my ($all, $n) = @_;

    my $r = $all->[$n];
    my @same = grep { ($_->{tenant} // '') eq ($r->{tenant} // '') }
               @$all[0 .. $n - 1];

    return max(0, map {
        my $other = $_;
        my $k = 0;

        $k++ while $k < @{ $r->{hash_ids} } && $k < @{ $other->{hash_ids} }
                   && $r->{hash_ids}[$k] == $other->{hash_ids}[$k];

        min($k * BLOCK, $r->{input_length}, $other->{input_length});
    } @same);
}


sub commons { my ($all) = @_; return map { common($all, $_) } 0 .. $#$all }


# The share, in per cent, of prompts behind the first of a conversation that is
# in the prompt before.

sub turns {
    my ($all) = @_;

    my ($prompt, $kept, %last) = (0, 0);

    for my $r (@$all) {
        my $last = $last{$r->{conversation}};
        $last{$r->{conversation}} = $r;
        next if !$last;

        $prompt += $r->{input_length};
        $kept += common([ $last, $r ], 1);
    }

    return 100 * $kept / $prompt;
}


# The lines of a file that --list wrote.

sub listed {
    my ($name, @line) = split /\n/, read_file($t->path('list'));
    my @name = split /,/, $name;

    return map { my %r; @r{@name} = split /,/, $_, -1; \%r } @line;
}


# Replays requests; returns (exit status, rows of cells, stderr).

sub replay {
    my ($trace, @options) = @_;

    my $file = ref $trace ? write_trace($trace) : $trace;
    my ($rc, $out, $err) = run($replay, '--port', $t->port, '--tokenizer',
                               $tokenizer, '--label', 'a | b', '--list',
                               $t->path('list'), @options, $file);
    my @rows = map { [ map { s/^\s+|\s+$//gr } split /\|/ ] }
               split /\n/, $out;

    return ($rc, \@rows, $err);
}


sub write_trace {
    my ($requests) = @_;

    return write_file($t->path('trace'),
                      join '', map { json_encode($_) . "\n" } @$requests);
}


sub request {
    my ($input, $output, $ids, %more) = @_;

    return { timestamp => 0, input_length => $input,
             output_length => $output, hash_ids => $ids, %more };
}


# the generator

for ([ qw/ --tenants 3 --conversations 5 --system 1500 --tool 400 / ],
     [ qw/ --tenants 1 --conversations 3 --context 4000 --system 2000 / ],
     [ qw/ --conversations 6 --system 300 --user 60 --tool 90 --seed 7 / ],
     [ qw/ --tenants 2 --turns 2 --rounds 1 --start 0 --system 5000 / ])
{
    my ($all, $err) = agents(@$_);
    my $prompt = sum(map { $_->{input_length} } @$all);
    my $hits = sum(commons($all));
    my (%last, @wrong);

    is($err, sprintf("%d requests, %d prompt tokens, at best %d hits, "
                     . "%.2f %%\n%.2f %% of the prompts behind a "
                     . "conversation's first were in the prompt before\n",
                     scalar @$all, $prompt, $hits, 100 * $hits / $prompt,
                     turns($all)), "agents @$_");

    for my $i (0 .. $#$all) {
        my $r = $all->[$i];
        my $last = $last{$r->{conversation}};

        push @wrong, "$i: ids" if @{ $r->{hash_ids} }
            != int(($r->{input_length} + BLOCK - 1) / BLOCK);
        push @wrong, "$i: time"
            if $i && $r->{timestamp} < $all->[$i - 1]{timestamp};
        push @wrong, "$i: the answer is not in the next prompt"
            if $last && $r->{input_length}
               <= $last->{input_length} + $last->{output_length};
        push @wrong, "$i: tenant" if $last && $r->{tenant} ne $last->{tenant};
        push @wrong, "$i: pause" if defined $r->{pause_ms} != defined $last;

        # with 50 tokens/s; both times are whole ms

        push @wrong, "$i: the time is not that of the answer and the pause"
            if $last && abs($r->{timestamp} - $last->{timestamp}
                            - $last->{output_length} * 20 - $r->{pause_ms}) > 2;
        $last{$r->{conversation}} = $r;
    }

    is_deeply(\@wrong, [], 'the requests fit together');
}

is((agents('--seed', 5))[2], (agents('--seed', 5))[2],
   'equal seeds make equal traces');
isnt((agents('--seed', 5))[2], (agents('--seed', 6))[2],
     'other seeds make other traces');
is((agents(qw/ --context 3000 --system 2000 /))[0]
   ->[-1]{input_length} <= 3000, 1, 'no prompt exceeds the context');
# the options of bench/README.md

my ($load) = agents(qw/ --conversations 100 --turns 1 --rounds 8 --run 5
                        --system 47000 --user 2500 --tool 2500
                        --answer 400 /);
my @pauses = grep { defined } map { $_->{pause_ms} } @$load;

cmp_ok(abs(turns($load) - 95), '<', 0.3, 'turns share 95 % of their prompt');
cmp_ok(abs(sum(@pauses) / @pauses / 5000 - 1), '<', 0.1,
       'tools run for 5 seconds');
cmp_ok(abs(sum(map { $_->{output_length} } @$load) / @$load / 400 - 1), '<',
       0.1, 'answers have 400 tokens');
like((run('bench/agents', '--tenants', 0))[2],
     qr/^bench\/agents: --tenants is 0; expected at least 1$/m,
     'a wrong number');
like((run('bench/agents', '--nothing', 1))[2], qr/^usage: /m,
     'a wrong option');


# what is wrong with a trace, and in which line

my $good = '{"timestamp":3,"input_length":600,"output_length":2,'
           . '"hash_ids":[1,2]}';

for ([ '{"timestamp":3,', qr/:2: .*(?:parse error|premature)/i ],
     [ '[1]', qr/:2: expected a JSON object$/ ],
     [ $good =~ s/"output_length":2,//r, qr/:2: "output_length" is missing$/ ],
     [ $good =~ s/"timestamp":3,//r, qr/:2: "timestamp" is missing$/ ],
     [ $good =~ s/,"hash_ids".*/}/r, qr/:2: "hash_ids" is missing$/ ],
     [ $good =~ s/600/-600/r,
       qr/:2: "input_length" must be an integer from 1 to \d+$/ ],
     [ $good =~ s/600/600.5/r, qr/:2: "input_length" must be an integer/ ],
     [ $good =~ s/:2,/:0,/r, qr/:2: "output_length" must be an integer/ ],
     [ $good =~ s/:3,/:-3,/r, qr/:2: "timestamp" must be a number of ms/ ],
     [ $good =~ s/:3,/:2,/r,
       qr/:2: "timestamp" is 2, less than 3 in the line before; / ],
     [ $good =~ s/\[1,2\]/[1]/r,
       qr/:2: "hash_ids" must be an array with 2 numbers, one for each 512 / ],
     [ $good =~ s/\[1,2\]/[1,-2]/r,
       qr/:2: "hash_ids" must contain integers from 0 / ],
     [ $good =~ s/\}/,"pause_ms":-1}/r,
       qr/:2: "pause_ms" must be a number of ms from 0 / ],
     [ $good =~ s/\}/,"tenant":"a b"}/r, qr/:2: "tenant" must consist of / ],
     [ $good =~ s/\}/,"conversation":7}/r,
       qr/:2: "conversation" must be a string of 1 to 64 bytes$/ ])
{
    my ($line, $error) = @$_;
    my $file = write_file($t->path('bad'), "$good\n$line\n");
    my ($rc, $out, $err) = run($replay, '--port', 1, '--tokenizer',
                               $tokenizer, $file);

    is($rc, 1, "an error: $line");
    like($err, qr/^replay: \Q$file\E$error/m, 'with the file and the line');
}

like((replay(write_file($t->path('empty'), '')))[2],
     qr/^replay: .*empty: has no request$/m, 'an empty file');
like((replay($t->path('absent')))[2],
     qr/^replay: .*absent: cannot be read: No such file/m, 'no file');
like((replay(write_file($t->path('bad.xz'), "no xz\n")))[2],
     qr/^replay: .*bad\.xz: xz -dc failed$/m, 'a file that xz rejects');
like((replay([], '--speed', 'fast'))[2],
     qr/^replay: the speed is "fast"; expected a number .*, or max$/m,
     'a wrong speed');
like((replay([], '--prices', '1,2'))[2],
     qr/^replay: the prices are "1,2"; expected three numbers/m,
     'wrong prices');
like((replay([], '--drafts', '0.95'))[2],
     qr/^replay: the share of drafts is "0\.95"; expected a number above 0 /m,
     'a share of drafts that no temperature has');
like((replay([ request(10, 1, [ 1 ]) ], '--agents', 2))[2],
     qr/^replay: --agents is 2, but the trace has 1 conversations; /m,
     'more agents than conversations');
like((replay([], '--agents', 2, '--concurrency', 2))[2],
     qr/^replay: --agents and --concurrency: expected one of them$/m,
     'agents and requests at a time');
like((replay([], '--requests', '-1'))[2],
     qr/^replay: "-1" is not a number; expected an integer from 1 /m,
     'a wrong number');


# one replica: the hits are the generator's, request by request

$t->start_engine(conf => { backend => 'null rate=0' });
$t->start_nginx();

my @small = qw/ --tenants 2 --conversations 4 --turns 2 --system 1500
                --tool 400 --answer 40 /;
my ($all) = agents(@small);
my @common = commons($all);
my ($rc, $rows, $err) = replay($all, '--concurrency', 1);
my @list = listed();

is($rc, 0, 'the replay succeeds') or diag($err);
is_deeply([ map { $_->{output} } @list ],
          [ map { $_->{output_length} } @$all ],
          'the answers have the lengths of the trace');

# the tokens that the template adds to a prompt, and those before the text

my $text = (run('sh', '-c', 'echo \'{"messages":[{"role":"user",'
                . '"content":"MARK"}]}\' | "$0" encode',
                $t->build . '/dsa'))[1];
my ($head) = $text =~ /^(.*)MARK/s or die "no text in the prompt\n";
my $before = () = $head =~ /<\x{ef}\x{bd}\x{9c}.*?>/g;

cmp_ok($before, '>', 0, 'tokens precede the text');
is_deeply([ grep { $_ != $list[0]{prompt} - $list[0]{input} }
            map { $_->{prompt} - $_->{input} } @list ], [],
          'each prompt has its length and the tokens of the template');


sub pages { my ($n) = @_; return int(($before + $n) / PAGE) * PAGE }


is_deeply([ map { $_->{cached} } @list ], [ map { pages($_) } @common ],
          'the hits of each request are the pages of its common prefix');
is($rows->[0][5], sprintf('%.2f', 100 * sum(map { pages($_) } @common)
                                  / sum(map { $_->{prompt} } @list)),
   'their share is printed');
is($rows->[0][9], sprintf('%.2f', 100 * sum(@common)
                                  / sum(map { $_->{input_length} } @$all)),
   'so is the best share');
is($rows->[0][11], 0, 'and that no request failed');

# the rates are in the ratio of the usages, and of each GPU

my %sum = map { my $k = $_; ($k => sum(map { $_->{$k} } @list)) }
          qw/ prompt cached output /;


# Compares the tokens that rates are of with what is expected; the time of a
# run is printed with a digit only, so that ratios are compared.

sub rates {
    my ($row, $gpus, $want, $what) = @_;

    my ($n, @rate) = @$row[4 .. 8];
    my ($output, $all, $cached, $computed) = @rate;
    my $tokens = $want->{prompt} + $want->{output};

    is($n, $gpus, "$what: GPUs");

    for ([ output => $output, $want->{output} ],
         [ cached => $cached, $want->{cached} ],
         [ computed => $computed, $want->{prompt} - $want->{cached} ])
    {
        my ($name, $is, $tokens_of) = @$_;

        cmp_ok(abs($is / $all - $tokens_of / $tokens), '<', 0.001,
               "$what: $name") or diag("@$row");
    }
}

rates($rows->[2], 1, \%sum, 'rates of one GPU');

# the rounding to pages, where a common prefix ends within one

my @odd = (request(12 * PAGE - $before - 1, 1, [ 911, 912 ]),
           request(1000, 1, [ 911, 912 ]),
           request(12 * PAGE - $before, 1, [ 921, 922 ]),
           request(1000, 1, [ 921, 922 ]));
replay(\@odd, '--concurrency', 1);
is_deeply([ map { $_->{cached} } listed() ], [ 0, 11 * PAGE, 0, 12 * PAGE ],
          'a page that is not full is not found');

# tenants

my @tenants = map { request(1024, 1, [ 931, 932 ], tenant => $_) }
              qw/ a b a /;
$tenants[2] = request(1500, 1, [ 931, 932, 933 ], tenant => 'a');
replay(\@tenants, '--concurrency', 1);
is_deeply([ map { $_->{cached} } listed() ], [ 0, 0, 1024 ],
          'tenants share nothing');
is_deeply([ map { $_->{best} } listed() ], [ 0, 0, 1024 ],
          'nor does the best cache');

# prices

($rc, $rows) = replay(\@tenants, '--prices', '1000,100,10000',
                      '--concurrency', 1);
@list = listed();

my $cached = sum(map { $_->{cached} } @list);
my $prompt = sum(map { $_->{prompt} } @list);

is_deeply([ @{ $rows->[1] }[6, 7] ],
          [ map { sprintf '%.4f', $_ / 1e6 }
            ($prompt - $cached) * 1000 + $cached * 100 + 3 * 10000,
            $prompt * 1000 + 3 * 10000 ], 'the costs');

# a conversation is in order, also on several connections

my @turns = map { request($_ * BLOCK, 3, [ 1000 .. 999 + $_ ],
                          conversation => 'c') } 1 .. 20;
replay(\@turns, '--concurrency', 20);
is_deeply([ map { $_->{cached} } listed() ],
          [ map { pages($_ * BLOCK) } 0 .. 19 ],
          'a request waits for the one before it in its conversation');

# Requests are due when the one before them has ended, and after a pause if the
# trace has one, whatever the time of arrival.


sub end_ms { my ($r) = @_; return $r->{due_ms} + $r->{total_ms} }


# 1 if two times are the same; each was rounded to 0.01 ms.

sub same_ms { my ($a, $b) = @_; return abs($a - $b) < 0.04 }

my @paused = map { request(10, 30, [ 1900 ], conversation => 'p',
                           timestamp => $_->[0],
                           defined $_->[1] ? (pause_ms => $_->[1]) : ()) }
             [ 0, 5000 ], [ 1, 300 ], [ 2 ], [ 40_000, 200 ];

for my $speed (1, 2) {
    ($rc, $rows, $err) = replay(\@paused, '--speed', $speed);
    is($rc, 0, "pauses, speed $speed") or diag($err);
    @list = listed();
    is_deeply([ grep { !same_ms($list[$_]{due_ms}, end_ms($list[$_ - 1])
                                + ($paused[$_]{pause_ms} // 0) / $speed) }
                1 .. 3 ], [], 'they begin when the request before has ended');
    ok(same_ms($list[0]{due_ms}, 0), 'the first one is due when it arrives');
}

my @late = map { request(10, 1, [ 1901 ], conversation => 'l',
                         timestamp => 500 * $_) } 0, 1;
replay(\@late, '--speed', 1);
@list = listed();
ok(same_ms($list[1]{due_ms}, max(500, end_ms($list[0]))),
   'without a pause the time of arrival counts');

$_->{pause_ms} = 3_600_000 for @paused;
is((replay(\@paused))[0], 0, 'without a speed pauses are ignored');

# So many agents are active, also in their pauses: a conversation begins when
# another one has ended.  The run ends when none is left, before the end of the
# ninth, which is long.

for my $agents (1, 3) {
    my $pause = 20;
    my @active = map { my $n = $_; map {
        request(10, 10, [ 1910 + $n ], conversation => "a$n", timestamp => 0,
                pause_ms => $_ == 1 ? $pause : 40)
    } 1 .. ($n == 9 ? 10 : 2 + $n % 3) } 1 .. 9;

    ($rc, $rows, $err) = replay(\@active, '--agents', $agents, '--speed', 1);
    is($rc, 0, "$agents agents") or diag($err);

    my (%first, %last, %left);
    my @r = listed();

    for my $i (0 .. $#r) {
        my $name = $active[$i]{conversation};

        $left{$name} += !$r[$i]{ok};
        next if $r[$i]{due_ms} == 0;
        $first{$name} //= $r[$i]{due_ms};
        $last{$name} = end_ms($r[$i]);
    }

    my @begun = sort { $a <=> $b } values %first;
    my @ended = sort { $a <=> $b } map { $last{$_} }
                grep { !$left{$_} } keys %last;

    # the last ones may be in their pauses when the run ends

    cmp_ok(scalar @begun, '>', 9 - $agents, 'conversations began');
    is_deeply([ grep { !same_ms($begun[$_], $pause
                                + ($_ < $agents ? 0
                                                : $ended[$_ - $agents])) }
                0 .. $#begun ], [],
              'each one after its pause, when another one has ended');
    cmp_ok(scalar @ended, '>=', 9 - $agents + 1,
           'the run ends when an agent finds no other');
    cmp_ok(scalar @ended, '<', 9, 'and not later') if $agents == 3;
    is($rows->[2][3], $agents, 'their number is printed');
}

# times of arrival

my @times = map { request(10, 1, [ 2000 + $_ ], timestamp => 40_000 * $_) }
            0 .. 2;
my $start = time;
($rc, $rows) = replay(\@times, '--speed', 100);
cmp_ok(time - $start, '>=', 0.8, 'times of arrival are divided by the speed');
$start = time;
replay(\@times);
cmp_ok(time - $start, '<', 60, 'and are ignored without one');

# the second request would begin after ten seconds

($rc, $rows) = replay(\@times, '--speed', 4, '--seconds', 8);
is("$rc $rows->[0][3] $rows->[0][11]", '0 1 0',
   'a run that has ended counts the requests that have');
is(join(' ', map { $_->{ok} } listed()), '1 0 0', 'and lists them');

($rc, $rows, $err) = replay(\@times, '--warm', 600);
is($rc, 1, 'a trace that ends before the measurement');
like($err, qr/^replay: the trace ended before the 600 s of --warm$/m,
     'is an error');

# --requests, and a packed trace

write_file($t->path('more'), "$good\n$good\nwrong\n");
($rc, $rows) = replay($t->path('more'), '--requests', 2);
is("$rc $rows->[0][3]", '0 2', 'lines after the last request are not read');

system('xz', '-f', write_file($t->path('packed'), "$good\n")) == 0
    or die "xz failed\n";
($rc, $rows) = replay($t->path('packed.xz'));
is("$rc $rows->[0][3]", '0 1', 'a packed trace');

# errors of the server

($rc, $rows, $err) = replay(\@times, '--uri', '/v1/nothing');
is($rc, 1, 'failed requests are an error');
like($err, qr/^replay: request 1: status 404: \{/m, 'and are reported');

my $long = request(200000, 1, [ 3000 .. 3390 ]);
($rc, $rows, $err) = replay([ $times[0], $long ], '--concurrency', 1);
is($rc, 1, 'so is one of several');
like($err, qr/^replay: request 2: status 4\d\d: \{/m, 'with its number');
is($rows->[0][11], 1, 'and they are counted');
is($rows->[0][3], 1, 'the others too');


# the tokens of tiers, from a server that sends them in small pieces

my $port = $t->free_port();
my $bodies = $t->path('bodies');
my $usage = '{"choices":[],"usage":{"prompt_tokens":110,'
            . '"completion_tokens":1,"prompt_tokens_details":'
            . '{"cached_tokens":99,"gpu_tokens":55,"host_tokens":33,'
            . '"redis_tokens":11}}}';

$t->daemon('tiers', sub {
    my $listen = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port",
                                       Listen => 8, ReuseAddr => 1)
        or die "listen: $!\n";

    while (my $s = $listen->accept) {
        my ($in, $length) = ('');

        while (!defined $length || length $in < $length) {
            sysread $s, $in, 65536, length $in or last;
            $length = $+[0] + $1
                if $in =~ /Content-Length: (\d+)\r\n.*?\r\n\r\n/s;
            $length = $+[0] if $in =~ /^GET .*?\r\n\r\n/s;
        }

        if ($in !~ /^POST /) {
            print $s "HTTP/1.1 404 Not Found\r\n\r\n" if $in ne '';
            close $s;
            next;
        }

        open my $to, '>>', $bodies or die "open: $!\n";
        print $to $in =~ s/^.*?\r\n\r\n//sr, "\n";
        close $to;

        my $events = join '', map { "data: $_\n\n" }
                     '{"choices":[{"delta":{"content":"x"}}],"usage":null}',
                     $usage, '[DONE]';

        print $s "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                 map({ sprintf "%x\r\n%s\r\n", length, $_ }
                     $events =~ /(.{1,29})/gs), "0\r\n\r\n";
        close $s;
    }
}, $port);
wait_until(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") }, 10,
           'the server to listen');

($rc, $rows, $err) = replay([ request(100, 1, [ 1 ]) ], '--port', $port);
is($rc, 0, 'a server with tiers') or diag($err);
is_deeply([ @{ $rows->[0] }[5 .. 8] ], [ '90.00', '50.00', '30.00', '10.00' ],
          'the shares of the tiers');
is_deeply([ @{ $rows->[2] }[3 .. 8] ], [ '-', 1, ('-') x 4 ],
          'without /metrics the rates are not known');

# bench/draft_share.h: 0.85 at temperature 1, 0.3 at 0.16

replay([ request(100, 1, [ 1 ]) ], '--port', $port, '--drafts', $_)
    for 0.85, 0.3;
is_deeply([ map { sprintf '%.2f', json_decode($_)->{temperature} }
            split /\n/, read_file($bodies) ], [ '1.00', '1.01', '0.16' ],
          'the temperature, and those of shares of drafts');
($rc, $rows, $err) = replay([ request(100, 2, [ 1 ]) ], '--port', $port);
like($err, qr/^replay: request 1: the answer has 1 tokens; expected 2$/m,
     'an answer of another length');
($rc, $rows, $err) = replay([ request(111, 1, [ 1 ]) ], '--port', $port);
like($err, qr/^replay: request 1: the prompt has 110 tokens and .*; expected /m,
     'a prompt that is too short');


# bench/replay itself: two replicas have nearly the hits of one with all the
# memory, and all of them if nginx can choose by the ends of messages

my $file = write_trace($all);
my $svg = $t->path('svg');

%ENV = (%ENV, %{ $t->sanitizer_env('replay') }, DSA_BUILD => $t->build,
        DSA_NGINX => $t->{nginx});

my $out;
my @args = ('--concurrency', 1, '--port', $t->free_port(), '--workers', 1);
($rc, $out, $err) = run('bench/replay', @args, '--plot', $svg, '--messages',
                        'one', $file, '1', '2,1mt');
is($rc, 0, 'bench/replay') or diag($err);



sub cells {
    my ($text) = @_;

    return map { [ map { s/^\s+|\s+$//gr } split /\|/, $_, -1 ] }
           grep { /^\| \d/ } split /\n/, $text;
}


my @cells = cells($out);

is_deeply([ map { "@$_[1, 2]" } @cells ],
          [ ('1 default', '2 1mt') x 4 ], 'rows of all tables');
is_deeply([ map { $_->[3] } @cells[6, 7] ],
          [ (sum(map { $_->{output_length} - 1 } @$all)) x 2 ],
          'the engines have a time for each token but the first of an answer');
rates($cells[$_ + 4], $_ + 1, { prompt => $sum{prompt}, cached =>
                                $cells[$_][5] / 100 * $sum{prompt},
                                output => $sum{output} },
      "rates of " . ($_ + 1) . ' replicas') for 0, 1;

$prompt = sum(map { $_->{input_length} + $list[0]{prompt} - $list[0]{input} }
              @$all);
is($cells[0][5], sprintf('%.2f', 100 * sum(map { pages($_) } @common)
                                 / $prompt), 'one replica');
cmp_ok($cells[1][5], '>=', 0.95 * $cells[0][5], 'two replicas');
is(scalar(() = read_file($svg) =~ /<rect x=/g), 2, 'the plot has two bars');

($rc, $out, $err) = run('bench/replay', @args, $file, '2');
my @routed = cells($out);

is($rc, 0, 'bench/replay with messages') or diag($err);
is("@{ $routed[0] }[5, 10]", "@{ $cells[0] }[5, 10]",
   'two replicas have the hits of one, of prompts of the same length');

# Answers of 50 tokens/s that do not end.  Their tokens are counted, but only
# those of the measurement, and times of tokens are those of the pace.

my $endless = write_trace([ map { request(10, 20000, [ 4000 + $_ ]) } 1, 2 ]);

for my $warm (0, 2) {
    ($rc, $out, $err) = run('bench/replay', '--port', $t->free_port(),
                            '--workers', 1, '--rate', 50, '--gpus', 2,
                            '--seconds', 3, $warm ? ('--warm', $warm) : (),
                            $endless, '1');
    is($rc, 0, "answers that do not end, from $warm s on") or diag($err);

    my ($hits, $times, $rates, $engine) = cells($out);
    my $tokens = $rates->[5] * $rates->[4] * $rates->[9];

    is("@$hits[3, 5] $times->[5]", '0 - -', 'no request has ended');
    cmp_ok($tokens, '>', 0, 'their tokens are counted');
    cmp_ok(abs($tokens - $engine->[3] - ($warm ? 0 : 2)), '<',
           0.03 * $tokens + 2, 'as the engine has times of them');
    cmp_ok($rates->[5] * $rates->[4], '<', 2 * 70,
           'and not those before the measurement');
    cmp_ok((split / /, $times->[4])[0], '>', 5, 'the time between events');
    cmp_ok((split / /, $engine->[4])[0], '>', 5,
           'the time between tokens in the engine') or diag($out);
}

# one answer that does

($rc, $out, $err) = run('bench/replay', '--port', $t->free_port(),
                        '--workers', 1, '--rate', 50,
                        write_trace([ request(10, 50, [ 5000 ]) ]), '1');
cmp_ok((split / /, (cells($out))[1][5])[0], '>', 5,
       'the time per token of a request') or diag($out, $err);

# engines without times of tokens, as those before they had them

my $metrics = write_file($t->path('metrics'),
                         "dsa_engine_prompt_tokens_total{engine=\"a\"} 7\n");
is((run('bench/token_times', $metrics, $t->path('counts'), 'a | b'))[1],
   "| a | b | - | - | - | - | - |\n", 'times that engines do not have');

($rc, $out, $err) = run('bench/replay', $file, 'x');
is($rc, 1, 'a wrong configuration');
like($err, qr/^replay: "x" is not REPLICAS/m, 'is reported');

$t->done;
