# Copyright (C) The nginx-dsa authors
#
# A replica over two hosts, which are two engines of this machine: its answers
# are those of one rank.  When any of its processes dies, the supervisors start
# it again on all hosts.  "dsa-engine -t" of both kinds of hosts.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('hosts');

my $secret = write_file($t->path('secret'), 'f' x 64 . "\n");
my %own = (model => $t->model, backend => 'cpu');
my %conf = (%own, precision => 'exact', max_running => 4, kv_memory => '64m',
            speculate => 'off');

chmod 0600, $secret or die "chmod: $!\n";


# A host that follows; it is ready when it listens.

sub follower {
    my ($name) = @_;

    my $port = $t->free_port();
    my $file = write_file($t->path("$name.conf"), join '', map { "$_;\n" }
                          "model $own{model}", 'backend cpu',
                          "listen 127.0.0.1:$port", "host_secret $secret");
    my $proc = $t->spawn($name, $t->build . '/dsa-engine', '-c', $file);

    $proc->{port} = $port;
    $proc->{file} = $file;
    $proc->{ready} = sub { $proc->output =~ /waits for the leader/ };
    $proc->wait_ready(60);

    return $proc;
}


# The only child of a supervisor, or 0 while it starts another one.

sub answer {
    my ($name, $number, %more) = @_;

    my $s = $t->stream({ %{ ask("Tell me about number $number. "
                                . 'And more. ' x 30, max_tokens => 12,
                                temperature => 0, %more) },
                         model => $name }, head => 0);
    return $s;
}

sub text {
    my ($s) = @_;

    $s->read_head();
    my $m = DSA::HTTP->gather($s->events);

    return join '|', map { $_ // '' } $m->{done},
                                      $m->{usage}{completion_tokens},
                                      $m->{content};
}

my @follower = map { follower("follower$_") } 1, 2;
my $one = $t->start_engine(name => 'one', conf => { %conf, name => 'one' });

my %hosts = (hosts => "127.0.0.1:$follower[0]{port}", host_secret => $secret,
             step_timeout => slow(8) . 's');
my $leader = $t->start_engine(name => 'leader', conf => {
    %conf, name => 'leader', %hosts });

# it listens before it logs this

my $line = qr/ model leader, \d+ pages of 64 tokens on each of 2 ranks, /;

ok(eval { wait_until(sub { $leader->output =~ $line }, 30, 'its line') },
   'the leader starts') or diag($leader->output);
like($follower[0]->output, qr/host 1 of 2: follows the leader 127\.0\.0\.1:\d/,
     'and its follower reports it');

$t->start_nginx();
wait_until(sub { $t->metrics->{dsa_sessions} >= 2 }, 20, 'all sessions');

my @want = map { text($_) } map { answer('one', $_) } 1 .. 6;

like($want[0], qr/^1\|\d+\|./, 'one rank answers');
is_deeply([ map { text($_) } map { answer('leader', $_) } 1 .. 6 ], \@want,
          'two hosts give the same answers');
is_deeply([ map { text($_) } map { answer('leader', $_) } 1 .. 6 ], \@want,
          'and again, with prefixes of the other host');


# Any process may die: both supervisors start theirs again.

for my $who ($follower[0], $leader) {
    my %before = map { $_->{name} => $_->replica } $follower[0], $leader;

    $who->signal_replica('KILL');

    wait_until(sub {
        !grep { my $pid = $_->replica; !$pid || $pid == $before{$_->{name}} }
              $follower[0], $leader
    }, 30, "both processes after that of $who->{name} was killed");

    wait_until(sub { text(answer('leader', 3)) eq $want[2] }, 60,
               'an answer of the new processes');
    pass("$who->{name}: both hosts start again, and answer");
}

my $where = "host 127\\.0\\.0\\.1:$follower[0]{port}";

like($leader->output,
     qr/error\] \d+: the replica fails: $where has closed the connection/,
     'the leader names its follower');


# One that hangs is named, and killed by its own supervisor.

my $hung = $follower[0]->replica;
kill 'STOP', $hung;

my $stream = answer('leader', 2);

wait_until(sub {
    $leader->output =~ /a step failed: host [\d.:]+ has sent nothing for/
}, 60, 'the leader to name the follower that hangs');

kill 'KILL', $hung;
$stream->read_head();

wait_until(sub { text(answer('leader', 1)) eq $want[0] }, 60, 'a new start');
pass('a follower that hangs is named, and the replica starts again');


# Leaders that cannot start say which host is the reason.

sub run_engine {
    my ($how, $text) = @_;

    my $file = write_file($t->path('run.conf'), $text);

    open my $fh, '-|', 'sh', '-c', 'exec timeout 60 "$@" 2>&1', '-',
        $t->build . '/dsa-engine', @$how, '-c', $file or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}

sub leader_conf {
    my (%change) = @_;

    my %all = (%own, listen => 'unix:' . $t->path('run.sock'),
               hosts => "127.0.0.1:$follower[1]{port}",
               host_secret => $secret, %change);

    return join '', map { "$_ $all{$_};\n" } sort keys %all;
}

my $other = write_file($t->path('other'), 'e' x 64);
chmod 0600, $other or die "chmod: $!\n";

$where = "host 127\\.0\\.0\\.1:$follower[1]{port}";

my ($rc, $out) = run_engine([], leader_conf(host_secret => $other));

is($rc, 1, 'another secret');
like($out, qr/$where: the secret of the leader is not that of this host/,
     'is named');

my $port = $t->free_port();

($rc, $out) = run_engine([], leader_conf(hosts => "127.0.0.1:$port",
                                         start_timeout => '8s'));

is($rc, 1, 'a host that is not there');
like($out, qr/dsa-engine: host 127\.0\.0\.1:$port: Connection refused/,
     'is named when start_timeout ends');

($rc, $out) = run_engine([], leader_conf(
    hosts => "127.0.0.1:$follower[0]{port}", start_timeout => '8s'));

is($rc, 1, 'a host that follows another leader');
like($out, qr/dsa-engine: host 127\.0\.0\.1:$follower[0]{port}: Connection/,
     'refuses a second one');
is(text(answer('leader', 4)), $want[3], 'and its own leader still answers');

($rc, $out) = run_engine([], leader_conf(gpus => 2));

is($rc, 1, 'another number of GPUs');
like($out, qr/$where: the leader has "gpus" 2, and this host 1/, 'is named');

($rc, $out) = run_engine(['-t'], leader_conf());

is($rc, 0, '-t of a leader');
like($out, qr/leads 1 other host, 2 GPUs in all/, 'prints its hosts');

($rc, $out) = run_engine(['-t'], read_file($follower[1]{file}));

is($rc, 0, '-t of a follower that runs');
like($out, qr/follows the leader that connects to 127\.0\.0\.1:/,
     'prints its address');

($rc, $out) = run_engine(['-t'], read_file($follower[1]{file})
                                 =~ s/listen 127\.0\.0\.1/listen 192.0.2.1/r);

is($rc, 1, '-t of an address of another machine');
like($out, qr/"listen" is 192\.0\.2\.1:\d+: .*expected an address of this host/,
     'is rejected');

ok($_->alive, "$_->{name} runs") for @follower;

$t->done;
