#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# conf/nginx-front.conf in front of three hosts in network namespaces of their
# own, under 200 streams of all APIs: a restart of an engine, a reload, a host
# that is stopped and started, cut off, or dies, and Redis that dies.  A request
# is lost only by the host that died in it, and each is billed once, with what
# was sent.  Then conversations find their prefixes as on one host that is as
# large as the three, and no host has more than its share of them.

use strict;
use warnings;

use List::Util qw/ max sum /;
use Test::More;
use Time::HiRes qw/ time /;

use lib 't/lib';
use DSA::Hosts;
use DSA::Load;
use DSA::TLS;
use DSA::Test;
use DSA::Torture qw/ cells_used compare_counts read_journals /;

my $why = DSA::Hosts::missing();

if (defined $why) {
    BAIL_OUT("front-hosts.t: $why") if $ENV{DSA_NO_SKIP};
    plan skip_all => $why;
}

DSA::Hosts::isolate();

use constant { STREAMS => 200, RATE => 20, TURNS => 2500,
               PAGES => 600 };     # MB of pages of a host

my $t = DSA::Test->new('front-hosts');
my $redis = $t->start_redis(appendonly => 1, conf => {
    bind => '127.0.0.1 ' . DSA::Hosts::HERE, 'protected-mode' => 'no' });

make_ca($t->dir, 'ca');
make_certificate($t->dir, 'ca', 'host', 'DNS:hosts.internal');

my @host = map { DSA::Hosts->new($t, $_) } 1 .. 4;
my $big = pop @host;


# A host: its engine with pages for so many bytes, its nginx.  Each step of a
# slow engine exceeds a target, which would limit prompts.

sub start_host {
    my ($host, $memory) = @_;

    my $name = $host->{link};

    $host->call('start_engine', name => $name, conf => {
        name => 'null', backend => 'null rate=' . RATE, kv_memory => $memory,
        token_target => 0, drain_timeout => '500ms',
        journal => $t->path("$name.journal") });
    $host->{conf} = {
        workers => 2,
        http => 'dsa_redis ' . DSA::Hosts::HERE . ':' . $redis->port
                . " queue_file=%%DIR%%/queue timeout=2s;
                   keepalive_timeout 75s;
                   log_format host '\$dsa_prompt_tokens \$dsa_cached_tokens';
                   access_log " . $t->path("$name.log") . ' host;',
        server => 'listen ' . $host->address . ':443 ssl;
                   ssl_certificate ' . $t->path('host.pem') . ';
                   ssl_certificate_key ' . $t->path('host.key') . ';
                   add_header X-Worker $pid always;' };
    $host->call('start_nginx', %{ $host->{conf} });

    return;
}


start_host($_, PAGES . 'm') for @host;


# The configuration as it is shipped, with the addresses of these hosts.

sub front {
    my (@address) = @_;

    my $conf = read_file("$DSA::Test::root/conf/nginx-front.conf");
    my @server = $conf =~ /^ *server +(\S+):443 +max_fails=0;$/mg;

    is(scalar @server, 3, 'the configuration has three hosts');

    if (@address == 1) {
        $conf =~ s/^ *server +\Q$_\E:443 .*\n//m for splice @server, 1;
    }

    $conf =~ s/\Q$server[$_]\E/$address[$_]/ for 0 .. $#address;
    $conf =~ s{/etc/ssl/certs/hosts-ca\.pem}{%%DIR%%/ca.pem};
    $conf =~ s/^load_module\s.*\n//m;
    $conf =~ s/^(?:user|worker_processes|worker_rlimit_nofile|pid)\s.*\n//mg;
    $conf =~ s/^error_log\s.*\n//m;
    $conf =~ s{/var/log/nginx/}{%%DIR%%/}g;
    $conf =~ s/listen  80  default_server/listen  127.0.0.1:%%PORT%%/;
    $conf =~ s/^ *listen  \[::\]:80 .*\n//m;
    $conf =~ s/^http \{$/http {\n    %%HTTP%%/m;

    return "%%GLOBALS%%\n$conf";
}


$t->start_nginx(workers => 2, conf => front(map { $_->address } @host));


# The streams: as many of each API.

my @apis = qw/ chat completions responses messages /;
my @load = map {
    my $n = $_;

    $t->daemon("load$n", sub {
        my $api = $apis[$n];

        DSA::Load::run(
            port => $t->port, seed => 5 + $n, number => $n,
            out => $t->path("load$n.json"), tenants => [
                { role => 'light', key => "stream$n", model => 'null',
                  open => STREAMS / @apis, tokens => [10, 60], think => 0.05,
                  retry => 0.5, stream => 90, leave => 0, slow => 0,
                  fresh => 5, api => $api,
                  prompt => "All $api begin with the same words. " x 8 } ]);
    });
} 0 .. $#apis;


# How many requests an engine of a host has.

sub busy {
    my ($host) = @_;

    my $m = eval { $host->call('metrics') } or return -1;

    return sum(0, map { $m->{$_} } grep { /^dsa_engine_requests_/ } keys %$m);
}


sub loaded {
    my @busy;

    eval { wait_until(sub { @busy = map { busy($_) } @host;
                            !grep { $_ < STREAMS / 10 } @busy }, 90, 'load') };
    die "not all hosts have streams: @busy\n" if $@;

    return;
}


sub ready {
    my ($host) = @_;

    wait_until(sub { (eval { $host->call('get', '/readyz') } || {})->{status}
                     == 200 }, 60, 'the host');

    return;
}


my (%killed, @phase);

for my $fault (
    [ 'an engine restarts' => sub {
        $host[0]->call('engine.stop', 'TERM', 30);
        $host[0]->call('engine.restart');
        ready($host[0]);
    } ],
    [ 'nginx of a host is reloaded' => sub { $host[1]->call('reload') } ],
    [ 'a host is stopped and started' => sub {
        $host[2]->call('stop_nginx', 'QUIT');
        $host[2]->call('engine.stop', 'TERM', 30);
        $host[2]->call('engine.restart');
        $host[2]->call('start_nginx', %{ $host[2]{conf} });
    } ],
    [ 'a host is cut off for a time' => sub {
        $host[1]->link('down');
        wait_until(sub { busy($host[1]) == 0 }, 60, 'its engine to be idle');
        $host[1]->link('up');
    } ],
    [ 'Redis dies' => sub { $redis->kill9; $redis->restart } ],
    [ 'a host dies' => sub {
        $killed{$_} = time for $host[0]->kill;
        wait_until(sub { busy($host[1]) + busy($host[2]) >= STREAMS / 2 }, 60,
                   'the other hosts to have the streams');
        $host[0]->call('engine.restart');
        $host[0]->call('start_nginx', %{ $host[0]{conf} });
        ready($host[0]);
    } ])
{
    loaded();

    my ($name, $code) = @$fault;
    my $from = time;

    $code->();
    push @phase, [ $name, $from ];
    pass($name);
}

loaded();
$_->signal('TERM') for @load;
is($_->wait_end(120), 0, 'the clients end') for @load;

my @requests = grep { $_->{kind} }
               map { map { json_decode($_) }
                     split /\n/, read_file($t->path("load$_.json")) }
               0 .. $#load;


# what was not answered, by the fault that was last before it ended

my %lost;

for my $r (grep { $_->{outcome} ne 'ended' } @requests) {
    my ($phase) = map { $_->[0] } grep { $_->[1] <= $r->{end} } reverse @phase;

    push @{ $lost{ $phase // 'none' } },
         $r if !($r->{worker} && $killed{ $r->{worker} });
}

for (@phase, [ 'none' ]) {
    my @bad = @{ $lost{ $_->[0] } || [] };

    is(scalar @bad, 0, "$_->[0]: no request is lost but those of a dead host")
        or diag(join "\n", map { json_encode($_) }
                           @bad > 3 ? @bad[0 .. 2] : @bad);
}

for my $api (@apis) {
    my @of = grep { $_->{api} eq $api && $_->{outcome} eq 'ended' } @requests;

    cmp_ok(scalar @of, '>', 50, "$api: requests ended");
    is(scalar(grep { $_->{usage}{completion_tokens} != $_->{max} } @of), 0,
       "$api: with all of their tokens");
}


# The ledger, when each host has sent what it has.

for my $host (@host) {
    my $file = $host->call('path', 'queue');

    wait_until(sub { cells_used($file) == 0 }, 60, 'the ledger entries');
}

my %ledger;

for my $key ($t->redis->keys('dsa1:*:ledger:*')) {
    my ($tenant) = $key =~ /\{(\w+)\}:ledger:\d{4}-\d\d-\d\d$/ or next;
    my $fields = $t->redis->hgetall($key);

    $ledger{$tenant}{ s/.*\|//r } += $fields->{$_}
        for grep { /^null\|/ } keys %$fields;
}

my ($figures, @wrong) = compare_counts(
    \%ledger, read_journals(map { $t->path("$_->{link}.journal") } @host),
    \@requests, \%killed);

is(scalar @wrong, 0, 'the ledger is within the bounds of the journals')
    or diag(join "\n", @wrong > 5 ? @wrong[0 .. 4] : @wrong);
cmp_ok($figures->{exact}, '>', 0.9 * $figures->{journal},
       'which are exact for nearly all requests');



# Conversations, with the front and with one large host: the share of the
# prompts of their earlier turns that is found in a cache, and how many requests
# each host gets.  There are so few at once that no host has the 32 requests in
# progress from which on dsa_hash may move them, also on a machine that is slow.

sub conversations {
    my ($name, @hosts) = @_;

    $t->reload(conf => front(map { $_->address } @hosts));
    wait_until(sub { $t->workers == 2 }, 60, 'the old workers to leave');

    my %had = map { $_ => lines($_) } @hosts;
    my $out = $t->path("$name.json");
    my $load = $t->daemon($name, sub {
        DSA::Load::run(
            port => $t->port, seed => 11, number => 9, out => $out,
            limit => TURNS, tenants => [
                { role => 'talk', key => $name, model => 'null', open => 60,
                  tokens => [5, 20], think => 0.05, retry => 0.5, stream => 70,
                  leave => 0, slow => 0,
                  prompt => join ' ', map { "word$_" } 1 .. 120 } ]);
    });

    is($load->wait_end(240), 0, "$name: the clients end");

    my @turns = grep { ($_->{kind} || '') eq 'chat' && $_->{outcome} eq 'ended'
                     } map { json_decode($_) } split /\n/, read_file($out);
    my ($before, $cached, %last) = (0, 0);

    for my $r (sort { $a->{sent} <=> $b->{sent} } @turns) {
        my $u = $r->{usage};

        $before += $last{ $r->{conversation} } // 0;
        $cached += $u->{prompt_tokens_details}{cached_tokens};
        $last{ $r->{conversation} } = $u->{prompt_tokens};
    }

    cmp_ok(scalar @turns, '>', 0.6 * TURNS, "$name: turns ended");

    return ($cached / $before, map { lines($_) - $had{$_} } @hosts);
}


sub lines {
    my ($host) = @_;

    return scalar grep { /^[1-9]/ }
                  split /\n/, read_file($t->path("$host->{link}.log")) // '';
}


start_host($big, 3 * PAGES . 'm');

my ($one) = conversations('big', $big);
my ($three, @share) = conversations('three', @host);
my $mean = sum(@share) / @share;

note(sprintf 'hit rates: one host %.4f, three hosts %.4f; requests of hosts: '
             . '%s, the busiest has %.3f times the mean', $one, $three,
             join(' ', @share), max(@share) / $mean);

cmp_ok($one, '>', 0.8, 'one host finds prefixes');
cmp_ok($three, '>=', 0.95 * $one,
       'with the front the hit rate is within 5 % of one large host');

# 300 conversations of 4 to 9 turns: the deviation of a host is 9 % of the mean

cmp_ok(max(@share), '<=', 1.45 * $mean,
       'and no host has more than the mean and five deviations');


for my $host (@host, $big) {
    my @bad = $host->end;

    is(scalar @bad, 0, "$host->{link} has ended well") or diag("@bad");
}

$t->done;
