# Copyright (C) The nginx-dsa authors
#
# bench/serve with the null backend: it starts an engine and nginx, runs loads
# through both, reports errors, and leaves no process and no file behind.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('serve');
my $nginx = $ENV{DSA_NGINX} || '/usr/sbin/nginx';

if (!-x $nginx && !$ENV{DSA_NO_SKIP}) {
    plan skip_all => "there is no $nginx";
}

my $tmp = $t->path('tmp');
mkdir $tmp or die "mkdir: $!\n";
$t->model;

my %env = (%{ $t->sanitizer_env('serve') }, DSA_BUILD => $t->build,
           DSA_NGINX => $nginx, TMPDIR => $tmp);

$ENV{$_} = $env{$_} for keys %env;

my $n = 0;


sub serve {
    my (@args) = @_;

    return $t->spawn('serve' . $n++, "$DSA::Test::root/bench/serve", '-k',
                     'null', '-p', $t->free_port, @args);
}


# Waits for the end of a run and checks its exit status and what is left of it.

sub ended {
    my ($proc, $status, $what) = @_;

    my $rc = $proc->wait_end(60);

    is(defined $rc ? $rc >> 8 : 'still running', $status,
       "$what: exit status");
    is_deeply([ glob "$tmp/*" ], [], "$what: no files are left");

    my @left = grep { (read_file($_) // '') =~ /\Q$tmp\E/ }
                    glob '/proc/[0-9]*/cmdline';
    is_deeply(\@left, [], "$what: no processes are left");

    return $proc->output;
}


# The rows of the table that the clients measure, and of the engine's, which
# begin with a load.

sub rows { cells(grep { /^\| \d+ \|/ } split /\n/, $_[0]) }
sub engine_rows { cells(grep { /^\| \d+,/ } split /\n/, $_[0]) }
sub cells { map { [ split / *\| */ ] } @_ }


my $out = ended(serve('3,6,40,8', '2,4,30,6,l'), 0, 'two loads');
my @rows = rows($out);

is(scalar @rows, 2, 'a row for each load') or diag($out);
is_deeply([ map { [ @{$_}[1, 2, 10] ] } @rows ], [ [ 3, 6, 0 ], [ 2, 4, 0 ] ],
          'streams, requests, and no failed request') or diag($out);
like($rows[0][3], qr{^\d\d+ / 8$}, 'tokens of the prompts and the answers');
cmp_ok((split ' ', $rows[0][3])[0], '<=', 55,
       'a token for each of 40 words, and what a chat adds');
cmp_ok($rows[0][4], '>', 0, 'tokens per second');

# a time for each token but the first of six answers

is_deeply([ map { $_->[1] } engine_rows($out) ], [ '3,6,40,8', '2,4,30,6,l' ],
          'the engine has a row for each load, too') or diag($out);
is((engine_rows($out))[0][2], 6 * 7, 'its times between tokens') or diag($out);
unlike($out, qr/\[(?:error|alert|emerg)\]/, 'no errors in the logs');

# Steady arrivals: the null backend computes 200 tokens/s, so that 30 requests
# at once take 0.1 s, and those that arrive 20 times a second more than a
# second.  The time per token of a request is a part of that of the row.

$out = ended(serve('30,30,40,20,,20', '1,2,40,50'), 0, 'steady arrivals');
@rows = rows($out);
is_deeply([ map { [ @{$_}[1, 2, 10] ] } @rows ],
          [ [ 30, 30, 0 ], [ 1, 2, 0 ] ], 'all requests') or diag($out);
cmp_ok($rows[0][9], '>', 0.5, 'they take the time of their arrivals')
    or diag($out);

for (@rows) {
    my ($median, $most) = $_->[8] =~ m{^([\d.]+) / ([\d.]+)$};
    my ($answer) = $_->[3] =~ m{/ (\d+)$};

    cmp_ok($median, '>', 0, 'the time per token') or diag($out);
    cmp_ok($most, '>=', $median, 'the 99th percentile');
    cmp_ok($most * ($answer - 1), '<=', 1000 * $_->[9] + 100,
           'tokens take no longer than the row') or diag($out);
}

# Loads that end before their requests: what was generated until then counts,
# and the next load finds the engine free.  The engine's times are of all tokens
# but the first of each answer, and were read later.

$out = ended(serve('-s', 5, '4,4,40,20000', '2,4,40,8'), 0,
             'loads with a limit of time');
@rows = rows($out);
is_deeply([ map { [ @{$_}[1, 2, 10] ] } @rows ],
          [ [ 4, '0 of 4', 0 ], [ 2, 4, 0 ] ], 'requests that have ended')
    or diag($out);
is($rows[0][3], '0 / 0', 'no request is whole');
cmp_ok($rows[0][9], '>=', 5, 'the time of the first load') or diag($out);
cmp_ok($rows[0][4], '>', 0, 'tokens are counted') or diag($out);
cmp_ok($rows[0][4] * $rows[0][9], '<=',
       1.05 * ((engine_rows($out))[0][2] + 4), 'and not more than there were')
    or diag($out);
cmp_ok($rows[0][5], '>', $rows[0][4], 'and those of prompts');
like($rows[1][3], qr{^\d\d / 8$}, 'the next load has whole requests');

# The public loads, with fewer tokens.

$out = ended(serve('-s', 2, '8k1k/1024', 'chats/32', 'steady/32'), 0,
             'public loads');
is_deeply([ map { $_->[1] } engine_rows($out) ],
          [ '1,4,8,1', '16,64,8,1', '64,256,8,1', '256,1024,8,1',
            '1024,1024,6,6,l', '1024,1024,6,6,l,8' ], 'each has its rows')
    or diag($out);
is($_->[10], 0, "$_->[1] streams: no failed request") for rows($out);

# Models of other families, whose control tokens the tokenizer gets, and text
# completions.

for (
    [ 'glm-4.7-flash', '-e', 'prompt_format glm-4.7-flash;' ],
    [ 'glm-5.2', '-e', 'prompt_format glm-5.2;' ],
    [ 'joyai-llm-flash', '-x' ],
    [ 'moonlight', '-x', '-c', 8192, '-e', 'prompt_format deepseek-v3;' ]
) {
    my ($model, @args) = @$_;

    $out = ended(serve('-g', 1, '-m', "$DSA::Test::root/bench/$model", @args,
                       '2,4,30,8'), 0, $model);

    my ($row) = rows($out);

    like($row ? $row->[3] : '', qr{^\d\d / 8$}, "$model: its answers")
        or diag($out);
}

$out = ended(serve('-g', 1, '-m', "$DSA::Test::root/bench/glm-4.7-flash",
                   '-t', $t->deepseek_model . '/tokenizer.json', '-e',
                   'prompt_format glm-4.7-flash;', '1,1,30,8'), 1,
             'the tokenizer of another model');
like($out, qr/has no control token "\[gMASK\]"/, 'the error of the engine');

$out = ended(serve('-c', 1024, '1,2,3000,8'), 1, 'prompts that do not fit');
like($out, qr/^chat: status 400, 0 tokens, cut: .*context/m,
     'the error of nginx') or diag($out);
is((rows($out))[0][10], 2, 'the failed requests are counted');

$out = ended(serve('-m', '/nonexistent', '1,1,30,8'), 1, 'no model');
like($out, qr/^serve: the model's files cannot be copied$/m, 'the error');

my $proc = serve(('1,1,30,100') x 20);
wait_until(sub { $proc->output =~ /^\|---/m }, 20, 'the first load');
$proc->signal('TERM');
$out = ended($proc, 1, 'a run that is ended');
cmp_ok(scalar(rows($out)), '<', 20, 'later loads are not run');

$t->done;
