package DSA::Test;

# Copyright (C) The nginx-dsa authors
#
# The test harness: a temporary directory with its own redis-server, engine,
# fake engine and nginx, whose methods are in DSA::Nginx.  It needs core Perl
# only.  t/README.md describes how to use it.

use strict;
use warnings;

use Cwd qw/ abs_path getcwd /;
use Exporter qw/ import /;
use Fcntl qw/ :flock /;
use File::Basename qw/ dirname /;
use File::Path qw/ remove_tree /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw/ _exit WNOHANG /;
use Test::More ();
use Time::HiRes qw/ time /;

use DSA::File qw/ json_encode json_decode read_file write_file /;
use DSA::HTTP;
use DSA::Nginx;
use DSA::Process;
use DSA::Redis;
use DSA::Wait qw/ wait_until pause slow /;

our @ISA = qw/ DSA::Nginx /;
our @EXPORT = qw/ wait_until slow json_encode json_decode read_file
                  write_file /;

our $root = abs_path(dirname(__FILE__) . '/../../..');

my @live;


# The name is used only in messages.

sub new {
    my ($class, $name) = @_;

    my $build = $ENV{DSA_BUILD} || 'build';
    $build = "$root/$build" if $build !~ m{^/};

    my $self = bless {
        name    => $name || 'test',
        owner   => $$,
        dir     => tempdir('nginx-dsa-test-XXXXXX', TMPDIR => 1),
        build   => $build,
        conf    => 'nginx',
        log     => 'error.log',
        nginx   => $ENV{DSA_NGINX} || '/usr/sbin/nginx',
        procs   => [],
        engines => [],
        redises => [],
        allow   => [],
        ports   => {},
    }, $class;

    push @live, $self;

    return $self;
}


sub dir { $_[0]{dir} }
sub build { $_[0]{build} }
sub path { "$_[0]{dir}/$_[1]" }


# Returns a port of 127.0.0.1 on which no process listens.  It is below the
# range of client ports of the kernel, and a lock reserves it until this process
# ends.

sub free_port {
    my ($self) = @_;

    for (1 .. 2000) {
        my $port = 10240 + int rand 20000;

        next if $self->{ports}{$port};

        my $name = "/tmp/.dsa-port-$>-$port";

        open my $lock, '>', $name or next;
        flock $lock, LOCK_EX|LOCK_NB or next;

        # the last process may have removed the file after it was opened here

        my ($mine, $there) = map { (stat $_)[1] } $lock, $name;
        next if !defined $there || $mine != $there;

        IO::Socket::INET->new(
            LocalAddr => '127.0.0.1', LocalPort => $port,
            Proto => 'tcp', Listen => 1, ReuseAddr => 1) or next;

        $self->{ports}{$port} = $lock;

        return $port;
    }

    die "no free port\n";
}


# Numbered ports for configurations: port(0) is %%PORT%%, port(1) %%PORT1%%.

sub port {
    my ($self, $n) = @_;

    return $self->{port}[$n || 0] ||= $self->free_port();
}


# Returns the small model of the family that DSA_FAMILY names.

sub model {
    my ($self) = @_;

    return $self->deepseek_model() if family() eq 'deepseek';

    require DSA::GLM;

    return $self->{glm} ||= DSA::GLM::glm_model($self);
}


# "deepseek" by default, or "glm".

sub family {
    my $name = $ENV{DSA_FAMILY} || 'deepseek';

    die "DSA_FAMILY is \"$name\", expected deepseek or glm\n"
        if $name !~ /^(?:deepseek|glm)\z/;

    return $name;
}


# DeepSeek's is made once per build directory.

sub deepseek_model {
    my ($self) = @_;

    my $dir = "$self->{build}/model";

    open my $lock, '>', "$self->{build}/.model.lock"
        or die "cannot write in $self->{build}: $!\n";
    flock $lock, LOCK_EX;

    if (!-e "$dir/config.json") {
        my $out = `perl $root/demo/make-model $dir 2>&1`;
        die "demo/make-model failed: $out\n" if $? != 0;
    }

    return $dir;
}


sub spawn {
    my ($self, $name, @argv) = @_;

    my $proc = DSA::Process->start(
        name => $name, argv => \@argv, dir => $self->{dir},
        env => $self->sanitizer_env($name));

    push @{ $self->{procs} }, $proc;

    return $proc;
}


# Runs a Perl sub as a process of its own; the sub gets the port to listen on.

sub daemon {
    my ($self, $name, $code, $port) = @_;

    my $proc = DSA::Process->start(
        name => $name, code => $code, args => [$port], dir => $self->{dir});

    push @{ $self->{procs} }, $proc;

    return $proc;
}


# Sanitizers report to files that done() checks.  All modules of nginx define
# ngx_modules, so violations of the one-definition rule are not reported.  A
# failing `nginx -t` does not free its memory before it ends, so leaks are not
# reported for it.

sub sanitizer_env {
    my ($self, $name) = @_;

    my $log = "log_path=$self->{dir}/sanitizer.$name";
    my $leaks = $self->{conf} eq 'test' ? 0 : 1;

    return {
        ASAN_OPTIONS  => "$log:detect_leaks=$leaks:detect_odr_violation=0",
        UBSAN_OPTIONS => "$log:print_stacktrace=1",
        TSAN_OPTIONS  => "$log:suppressions=$root/t/lib/tsan.supp:"
                         . 'print_suppressions=0',
        LSAN_OPTIONS  => "suppressions=$root/t/lib/lsan.supp:"
                         . 'print_suppressions=0',
    };
}


# start_redis(password => S, appendonly => 1, conf => { name => value }, port =>
# N) returns a DSA::Process with port(); redis() returns a client of it.

sub start_redis {
    my ($self, %opt) = @_;

    my $n = @{ $self->{redises} };
    my $port = $opt{port} || $self->free_port();
    my $dir = $self->path("redis$n");

    mkdir $dir;

    my %conf = (
        bind => '127.0.0.1', port => $port, dir => $dir, save => '""',
        appendonly => $opt{appendonly} ? 'yes' : 'no',
        appendfsync => 'always', daemonize => 'no', databases => 1,
        $opt{password} ? (requirepass => $opt{password}) : (),
        %{ $opt{conf} || {} });

    write_file("$dir/redis.conf",
               join '', map { "$_ $conf{$_}\n" } sort keys %conf);

    my $proc = $self->spawn("redis$n", 'redis-server', "$dir/redis.conf");

    $proc->{port} = $port;
    $proc->{password} = $opt{password};
    $proc->{ready} = sub {
        my $r = eval { $self->redis($proc) } or return;
        return eval { $r->cmd('PING') eq 'PONG' };
    };

    push @{ $self->{redises} }, $proc;
    $proc->wait_ready(20);

    return $proc;
}


# Returns a client of this redis-server, or of the first.

sub redis {
    my ($self, $proc) = @_;

    $proc ||= $self->{redises}[0];

    return DSA::Redis->new(port => $proc->{port},
                           password => $proc->{password});
}


# start_engine(conf => { backend => 'null' }, name => S, wait => 0) writes
# engine.conf, starts dsa-engine and waits for its socket.  A value may be an
# array, which repeats the directive; undef removes a default.  With several
# replicas each has its own default socket; they are in sock and socks.  The
# default backend is DSA_BACKEND, or else cpu, and the default model that of
# DSA_FAMILY under the name "model".  program names another program of the build
# directory to start instead of dsa-engine.

sub start_engine {
    my ($self, %opt) = @_;

    my $n = @{ $self->{engines} };
    my $name = $opt{name} || "engine$n";
    my $replicas = ($opt{conf} || {})->{replicas} || 1;
    my $file = $self->path($replicas > 1 ? "$name.%n.sock" : "$name.sock");
    my @socks = map { $file =~ s/%n/$_/r } 0 .. $replicas - 1;

    my %conf = (listen => "unix:$file",
                backend => $ENV{DSA_BACKEND} || 'cpu',
                %{ $opt{conf} || {} });

    if (!exists $conf{model}) {
        %conf = (family() eq 'glm' ? (name => 'model',
                                      prompt_format => 'glm-5.2') : (),
                 %conf, model => $self->model());
    }

    write_file($self->path("$name.conf"), join '', map {
        my $key = $_;
        map { "$key $_;\n" }
        ref $conf{$key} ? @{ $conf{$key} } : $conf{$key}
    } grep { defined $conf{$_} } sort keys %conf);

    my $proc = $self->spawn($name, "$self->{build}/"
                            . ($opt{program} || 'dsa-engine'),
                            '-c', $self->path("$name.conf"));

    $proc->{sock} = $socks[0];
    $proc->{socks} = \@socks;
    $proc->{ready} = sub { !grep { !unix_listening($_) } @socks };

    push @{ $self->{engines} }, $proc;
    $proc->wait_ready(60) if !exists $opt{wait} || $opt{wait};

    return $proc;
}


# Starts the fake engine (t/fake/).  Its first argument is the socket; the
# others come from the caller.

sub start_fake {
    my ($self, @args) = @_;

    my $n = @{ $self->{engines} };
    my $sock = $self->path("engine$n.sock");

    my $proc = $self->spawn("engine$n", "$self->{build}/t/fake_engine",
                            $sock, @args);

    $proc->{sock} = $sock;
    $proc->{socks} = [$sock];
    $proc->{ready} = sub { unix_listening($sock) };

    push @{ $self->{engines} }, $proc;
    $proc->wait_ready(20);

    return $proc;
}


# Returns true if a process listens on the socket.  /proc is read instead of
# connecting, because a connection would be a session.

sub unix_listening {
    my ($path) = @_;

    open my $fh, '<', '/proc/net/unix' or return -S $path;

    while (my $line = <$fh>) {
        my @f = split ' ', $line;
        return 1 if @f >= 8 && $f[7] eq $path && $f[3] eq '00010000';
    }

    return 0;
}


# Permits an alert that the test provokes itself, such as that of a killed
# worker.

sub allow_alert {
    my ($self, $re) = @_;

    push @{ $self->{allow} }, $re;

    return;
}


# Sends a request to this nginx; DSA::HTTP describes the options.

sub request {
    my ($self, $method, $uri, %opt) = @_;

    return DSA::HTTP->new(port => $self->port, %opt)
                    ->request($method, $uri, %opt);
}


sub get { my ($self, $uri, %opt) = @_;
          return $self->request('GET', $uri, %opt) }


# Sends a POST with a JSON value, or with a string as it is.

sub post {
    my ($self, $uri, $value, %opt) = @_;

    my $body = ref $value ? json_encode($value) : $value;

    return $self->request('POST', $uri, body => $body, %opt);
}


# Returns a connection to this nginx.

sub connect {
    my ($self, %opt) = @_;

    return DSA::HTTP->new(port => $self->port, %opt);
}


# Sends a POST with a streaming chat and returns the DSA::HTTP to read events
# from.  The status has been read unless head => 0.

sub stream {
    my ($self, $value, %opt) = @_;

    my $http = DSA::HTTP->new(port => $self->port, %opt);

    $value = { stream => JSON::PP::true, %$value } if ref $value;

    $http->send_request('POST', $opt{uri} || '/v1/chat/completions',
                        body => ref $value ? json_encode($value) : $value,
                        %opt);
    $http->read_head() if !exists $opt{head} || $opt{head};

    return $http;
}


# Returns the Prometheus metrics as a hash { 'name{labels}' => value }.

sub metrics {
    my ($self) = @_;

    return { map { /^([^#\s]\S*(?:\{.*\})?) (\S+)$/ ? ($1 => $2) : () }
             split /\n/, $self->get('/metrics')->{body} };
}


# Waits until the workers have so many sessions with engines.

sub wait_sessions {
    my ($self, $n) = @_;

    wait_until(sub { $self->metrics->{dsa_sessions} == $n }, 30,
               "$n sessions");

    return;
}


# Waits until so many workers are connected to Redis.  Requests that succeed
# show this of one worker only, because the kernel may give all of them to it.

sub wait_redis {
    my ($self, $n) = @_;

    wait_until(sub { ($self->metrics->{dsa_redis_connections} // 0) == $n }, 30,
               "$n workers to be connected to Redis");

    return;
}


# Waits until all engines can use the Redis that has their pages.

sub wait_cache {
    my ($self) = @_;

    wait_until(sub {
        my $m = $self->metrics;
        my @on = map { $m->{$_} }
                 grep { /^dsa_engine_tier_servers_on\{.*tier="redis"/ }
                 keys %$m;

        return @on && !grep { $_ == 0 } @on;
    }, 30, 'the cache to be on');

    return;
}


# Stops nginx first, and then the others in the reverse order of their start, so
# that no process logs errors about one that was stopped before it.

sub stop_all {
    my ($self) = @_;

    my @failed;

    $self->release() if defined $self->{preload};

    if (-d $self->{dir}) {
        my $pid = $self->nginx_pid;

        for my $old (grep { $_ } $pid, @{ $self->{masters} || [] }) {

            # on a busy machine a worker may not have ended after 1.5 s, and
            # the master kills it

            $self->allow_alert(qr/worker process \d+ exited on signal 9/);
            kill 'TERM', $old;

            if (!DSA::Process::wait_gone($old, 60)) {
                push @failed, "nginx $old did not stop";
                kill 'KILL', DSA::Process::children($old), $old;
            }
        }
    }

    for my $proc (reverse @{ $self->{procs} }) {
        next if !$proc->alive;
        push @failed, "$proc->{name} did not stop" if !$proc->stop('TERM', 60);
    }

    return @failed;
}


sub alerts {
    my ($self) = @_;

    return grep {
        my $line = $_;
        $line =~ m{^(?:\S+ \S+|nginx:) \[(?:alert|emerg)\]}
        && !grep { $line =~ $_ } @{ $self->{allow} }
    } split /\n/, $self->error_log;
}


sub sanitizer_reports {
    my ($self) = @_;

    my @found;

    for my $file (glob("$self->{dir}/sanitizer.* $self->{dir}/*.out"),
                  $self->path('error.log'))
    {
        my $text = read_file($file);

        next if !defined $text;

        push @found, "$file:\n$text"
            if $text =~ /(?:Address|Leak|Thread)Sanitizer|runtime\ error:/x;
    }

    return @found;
}


# Ends a test file: stops everything, runs the checks that every file has, and
# calls done_testing.

sub done {
    my ($self) = @_;

    my $tb = Test::More->builder;
    my @alerts = $self->alerts();       # stop_all() allows one
    my @failed = $self->stop_all();

    $tb->ok(!@failed, 'everything stopped') or $tb->diag(join "\n", @failed);

    my %seen = map { $_ => 1 } @alerts;

    push @alerts, grep { !$seen{$_} } $self->alerts();
    $tb->ok(!@alerts, 'no alerts') or $tb->diag(join "\n", @alerts);

    my @reports = $self->sanitizer_reports();
    $tb->ok(!@reports, 'no sanitizer reports')
        or $tb->diag(join "\n", @reports);

    $self->{done} = 1;

    Test::More::done_testing() if !grep { !$_->{done} } @live;

    return;
}


END {
    my $status = $?;

    for my $self (grep { $_->{owner} == $$ } @live) {

        $self->stop_all() if !$self->{done};

        my $bad = $status != 0 || !$self->{done}
                  || !Test::More->builder->is_passing;

        if ($bad) {
            for my $file (glob("$self->{dir}/error.log $self->{dir}/*.out")) {
                my $text = read_file($file);

                next if $file =~ m{/redis\d+\.out$};
                next if !defined $text || $text eq '';

                Test::More::diag("-- $file:\n"
                                 . substr($text, -3000));
            }
        }

        if ($ENV{DSA_KEEP}) {
            Test::More::diag("kept: $self->{dir}");

        } else {
            remove_tree($self->{dir}, { safe => 1 });
        }

        unlink map { "/tmp/.dsa-port-$>-$_" } keys %{ $self->{ports} };
    }

    $? = $status;
}


1;
