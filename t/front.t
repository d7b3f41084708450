# Copyright (C) The nginx-dsa authors
#
# Three hosts, each with an address of its own and TLS, behind
# conf/nginx-front.conf: conversations stay with the host that has their
# prefixes, whichever header has the key; no request is lost and none is billed
# twice while an engine restarts, a host's nginx is reloaded or stopped, or a
# host dies; and a tenant that floods is refused by its own excess.

use strict;
use warnings;

use List::Util qw/ sum /;
use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::HTTP;
use DSA::Keys;
use DSA::Process;
use DSA::TLS;
use DSA::Test;

my $chat = '/v1/chat/completions';
my @names = map { "caller$_" } 1 .. 60;
my @keys = map { key_entry($_) } @names, 'flood';

my $front = DSA::Test->new('front');
my $redis = $front->start_redis();
my (@host, %engine, %address);

make_ca($front->dir, 'ca');
make_certificate($front->dir, 'ca', 'host', 'DNS:hosts.internal');

for my $name ('a', 'b', 'c') {
    my $t = DSA::Test->new("front-$name");

    push @host, $t;
    $address{$t} = '127.0.0.' . (@host + 1);
    write_keys($t->path('keys'), @keys);

    $engine{$t} = $t->start_engine(conf => {
        backend => 'null rate=100', name => 'v32', max_running => 4,
        max_waiting => 12, drain_timeout => '60s' });

    start($t);
}


sub start {
    my ($t) = @_;

    $t->start_nginx(workers => 2, http =>
        'dsa_keys file=%%DIR%%/keys zone=keys:1m;
         dsa_redis 127.0.0.1:' . $redis->port . ' ttl=1h;
         log_format host "$dsa_key $status $dsa_cached_tokens";
         access_log %%DIR%%/host.log host;',
        server => "listen $address{$t}:" . $t->port(2) . ' ssl;
         ssl_certificate ' . $front->path('host.pem') . ';
         ssl_certificate_key ' . $front->path('host.key') . ';');
}


# The configuration, on this machine.  Its hosts are these.

my $conf = read_file("$DSA::Test::root/conf/nginx-front.conf");
my @servers = $conf =~ /^ *server +(\S+) +max_fails=0;$/mg;

is(scalar @servers, 3, 'the configuration has three hosts');
like($conf, qr/proxy_next_upstream_tries +3;/, 'and tries as many');

$conf =~ s/\Q$servers[$_]\E/"$address{$host[$_]}:" . $host[$_]->port(2)/e
    for 0 .. $#host;
$conf =~ s{/etc/ssl/certs/hosts-ca\.pem}{%%DIR%%/ca.pem};
$conf =~ s/^load_module\s.*\n//m;
$conf =~ s/^(?:user|worker_processes|worker_rlimit_nofile|pid)\s.*\n//mg;
$conf =~ s/^error_log\s.*\n//m;
$conf =~ s{/var/log/nginx/}{%%DIR%%/}g;
$conf =~ s/listen  80  default_server/listen  127.0.0.1:%%PORT%%/;
$conf =~ s/^ *listen  \[::\]:80 .*\n//m;
$conf =~ s/^http \{$/http {\n    %%HTTP%%/m;

$front->start_nginx(conf => "%%GLOBALS%%\n$conf");


# The headers with the key of a caller; x-api-key for every other one.

sub key {
    my ($name, $form) = @_;

    $form = $name =~ /[02468]$/ ? 'x-api-key' : 'authorization'
        if !defined $form;

    return (headers => [ $form eq 'x-api-key'
                         ? ('x-api-key' => key_text($name))
                         : (Authorization => 'Bearer ' . key_text($name)) ]);
}

sub id { key_entry($_[0])->{id} }


# What a host has logged: for each key, "STATUS CACHED" of each request.

sub logged {
    my ($t) = @_;
    my %got;

    for (split /\n/, read_file($t->path('host.log')) // '') {
        my ($key, $what) = split / /, $_, 2;
        push @{ $got{$key} }, $what;
    }

    return \%got;
}

sub count {
    my ($t, $name) = @_;

    return scalar @{ logged($t)->{ id($name) } || [] };
}


# A conversation always goes to one host.  There are eight, or as many as it
# takes until each host has one.

my (%home, %on);
my $prompt = join ' ', 'Remember this.', map { "word$_" } 1 .. 200;

for my $name (splice @names) {
    last if @names >= 8 && keys %on == @host;
    push @names, $name;

    my @before = map { count($_, $name) } @host;
    my @hits;

    for my $form ('authorization', 'x-api-key', 'authorization') {
        my $r = $front->post($chat, ask("$name: $prompt", model => 'v32',
                                        max_tokens => 4), key($name, $form));

        is($r->{status}, 200, "$name: $form") or diag($r->{body});
        push @hits, $r->{json}{usage}{prompt_tokens_details}{cached_tokens};
    }

    wait_until(sub { 3 == eval { my $n = 0;
                                 $n += count($host[$_], $name) - $before[$_]
                                     for 0 .. $#host; $n } }, 30, 'the logs');

    my @n = map { count($host[$_], $name) - $before[$_] } 0 .. $#host;

    is(join(' ', sort @n), '0 0 3', "$name: one host, with either header");
    is($hits[0], 0, "$name: the first has no prefix");
    cmp_ok($hits[$_], '>', 100, "$name: the next find it") for 1, 2;

    ($home{$name}) = grep { $n[$_] } 0 .. $#host;
    $on{ $home{$name} }++;
}

is(scalar keys %on, 3, 'all hosts have some') or diag(explain(\%home));


# The load: each caller repeats its prompt, in streams and in one piece.  A
# process writes a line for each answer.

my $stop = $front->path('stop');
my @clients;

sub load {
    my (%opt) = @_;

    unlink $stop;

    @clients = map {
        my $name = $_;
        my $out = $front->path("$opt{name}.$name");

        {
            name => $name, out => $out,
            process => $front->daemon("$opt{name}-$name", sub {
                open my $fh, '>>', $out or die "$out: $!\n";
                my $n = 0;

                while (!-e $stop) {
                    my $stream = $opt{streams} && $n % 2;
                    my $text = one($name, $stream);

                    syswrite $fh, "$text\n";
                    $n++;
                }
            }),
        };
    } @names;

    return;
}


# A request of the load: "STATUS PROMPT COMPLETION", or what went wrong.

sub one {
    my ($name, $stream) = @_;

    my $body = ask("$name: $prompt", model => 'v32', max_tokens => 6,
                   $stream ? (stream => JSON::PP::true, stream_options =>
                              { include_usage => JSON::PP::true }) : ());
    my ($usage, $status);

    eval {
        if ($stream) {
            my $s = $front->stream($body, key($name), timeout => slow(60));

            $status = $s->status;

            if ($status == 200) {
                my $m = DSA::HTTP->gather($s->events);

                $usage = $m->{usage};
                $status = 'cut' if !$m->{done} || @{ $m->{errors} };
            }

        } else {
            my $r = $front->post($chat, $body, key($name),
                                 timeout => slow(60));

            $status = $r->{status};
            $usage = $r->{json}{usage} if $status == 200;
        }

        1;
    } or $status = "failed: $@" =~ s/\s+/ /gr;

    return join ' ', $status, $usage ? @$usage{qw/ prompt_tokens
                                                   completion_tokens /} : ();
}

sub lines { grep { $_ ne '' } split /\n/, read_file($_[0]{out}) // '' }


# Waits until every caller has some more answers.

sub progress {
    my ($what, $more) = @_;
    my %before = map { $_->{name} => scalar lines($_) } @clients;

    wait_until(sub {
        !grep { lines($_) < $before{ $_->{name} } + $more } @clients
    }, 60, "answers $what");

    pass("answers $what");
}

sub loaded {
    write_file($stop, '');

    my %sum;

    for my $client (@clients) {
        $client->{process}->wait_end(60);

        for (lines($client)) {
            my ($status, @tokens) = split / /;

            $sum{status}{$status}++;
            $sum{requests}++;
            $sum{prompt_tokens} += $tokens[0] // 0;
            $sum{completion_tokens} += $tokens[1] // 0;
        }
    }

    return \%sum;
}


# The sums of the ledger, of all hosts together.

sub ledger {
    my $r = $front->redis($redis);
    my %sum = map { $_ => 0 } qw/ requests prompt_tokens completion_tokens /;

    for my $key ($r->keys('dsa1:*:ledger:*')) {
        my $fields = $r->hgetall($key);

        for (grep { !/^key_/ } keys %$fields) {
            my $name = s/.*\|//r;
            $sum{$name} += $fields->{$_} if exists $sum{$name};
        }
    }

    return \%sum;
}

sub billed {
    my ($name, $before, $got) = @_;
    my %want = map { $_ => $before->{$_} + $got->{$_} }
               qw/ requests prompt_tokens completion_tokens /;

    eval {
        wait_until(sub {
            my $now = ledger();
            !grep { $now->{$_} != $want{$_} } keys %want;
        }, 30, 'the ledger');
    };

    is_deeply(ledger(), \%want, "$name: each answer is billed, once");
}

# All processes of a host end where they are.  The engine stops before, and what
# it has ended is in the ledger: nginx bills an answer a moment before it sends
# it, and one that it had billed but not sent would be billed again by the host
# that computes it next.

sub die_at_once {
    my ($t) = @_;

    my $master = $t->nginx_pid;
    my @pids = ($master, $t->workers);

    $engine{$t}->signal_replica('STOP');
    wait_until(sub { $t->metrics->{dsa_redis_pending_records} == 0 }, 30,
               'the entries of answers that are complete');

    kill 'KILL', @pids;
    $engine{$t}->kill9();

    for (@pids) {
        DSA::Process::wait_gone($_, 20) or die "nginx $_ does not end\n";
    }

    return;
}


# Waits until each worker of a host has its engine.

sub ready {
    my ($t) = @_;

    wait_until(sub { (eval { $t->metrics->{dsa_sessions} } // 0) == 2 }, 60,
               'a host');
}


my $before = ledger();

load(name => 'graceful', streams => 1);
progress('at first', 4);

for my $t (@host) {
    $engine{$t}->stop('TERM', 60);
    progress('without an engine', 4);
    $engine{$t}->restart();
    ready($t);

    $t->reload();
    progress('after a reload', 4);

    $t->stop_nginx('QUIT');
    progress('without a host', 4);
    start($t);
    progress('with all', 4);
}

my $got = loaded();

is_deeply([ keys %{ $got->{status} } ], [ 200 ],
          'restarts, reloads and stops: no request is lost')
    or diag(explain($got->{status}));
billed('restarts, reloads and stops', $before, $got);

# each host has its callers again, with their prefixes

for my $name (@names) {
    my $n = count($host[ $home{$name} ], $name);
    my $r = $front->post($chat, ask("$name: $prompt", model => 'v32',
                                    max_tokens => 4), key($name));

    wait_until(sub { count($host[ $home{$name} ], $name) >= $n + 1 }, 30,
               "$name at home");
    is($r->{status}, 200, "$name is at home");
}


# An engine and a host that are killed.  What was streamed is broken; what was
# not is computed by another host, and billed once: a host that died before its
# answer was complete has billed nothing.

$before = ledger();
load(name => 'killed');
progress('at first', 2);

$engine{ $host[0] }->kill9();
progress('without an engine', 4);
$engine{ $host[0] }->restart();
ready($host[0]);
progress('with all', 2);

$host[1]->stop_nginx('TERM');
progress('without a host', 4);
start($host[1]);
progress('with all', 2);

die_at_once($host[2]);
progress('without a host that died', 4);
$engine{ $host[2] }->restart();
start($host[2]);
progress('with all', 2);

$got = loaded();

is_deeply([ keys %{ $got->{status} } ], [ 200 ], 'kills: no request is lost')
    or diag(explain($got->{status}));
billed('kills', $before, $got);


# A tenant that floods: its own excess is 429, which no other host gets, and
# no other is refused.

my %flood;
my @streams;
my @asked = map { count($_, 'flood') } @host;

for (1 .. 60) {
    push @streams, $front->stream(
        ask('flood', model => 'v32', max_tokens => 400, ignore_eos =>
            JSON::PP::true), key('flood'), head => 0);
}

load(name => 'beside');
progress('beside a flood', 3);
$got = loaded();

is_deeply([ keys %{ $got->{status} } ], [ 200 ], 'others are served')
    or diag(explain($got->{status}));

# those that are refused have a status now; the others are ended here

for (@streams) {
    my $status = eval { $_->read_head(0.2); $_->status } // 'waits';

    $flood{$status}++;

    # the value depends on what has ended on the host (t/retry-after.t)

    like($_->header('Retry-After') // 'none', qr/^[1-9]\d*\z/,
         'a refusal has Retry-After') if $status eq '429';
    $_->close();
}

cmp_ok($flood{429} // 0, '>=', 60 - @host * (4 + 12 + 1),
       'the excess is refused');
is_deeply([ grep { !/^(?:200|429|waits)$/ } keys %flood ], [],
          'by nothing else') or diag(explain(\%flood));

sub flooded { sum(map { count($host[$_], 'flood') - $asked[$_] } 0 .. $#host) }

wait_until(sub { (eval { flooded() } // 0) >= 60 }, 30, 'the logs');
is(flooded(), 60, 'each request has had one host');


# nothing is left: an error in the form of the API

$_->stop_nginx('QUIT') for @host;

my $r = $front->post($chat, ask('x'), key('caller1'));

is($r->{status}, 503, 'no host');
is($r->{headers}{'retry-after'}, 1, 'try again');
is($r->{json}{error}{code}, 'service_unavailable', 'in the form of the API');

$_->done for @host;
$front->done;
