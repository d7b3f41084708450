package DSA::Test;

# Copyright (C) The nginx-dsa authors
#
# The test harness: a temporary directory with its own redis-server, engine,
# fake engine and nginx.  It needs core Perl only.  t/README.md describes how to
# use it.

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

use DSA::HTTP;
use DSA::Process;
use DSA::Redis;
use DSA::Wait qw/ wait_until pause slow /;

our @EXPORT = qw/ wait_until slow json_encode json_decode read_file
                  write_file /;

our $root = abs_path(dirname(__FILE__) . '/../../..');

my @live;
my $json = JSON::PP->new->utf8->canonical->allow_nonref;


sub json_encode { $json->encode($_[0]) }
sub json_decode { $json->decode($_[0]) }


sub read_file {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return undef;
    local $/;
    my $text = <$fh>;

    return defined $text ? $text : '';
}


sub write_file {
    my ($path, $text) = @_;

    open my $fh, '>:raw', $path or die "cannot write $path: $!\n";
    print $fh $text;
    close $fh or die "cannot write $path: $!\n";

    return $path;
}


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


# start_nginx(%opt):
#   conf      a whole nginx.conf; without it one is made from the others:
#   http, server, location, pool    directives to add to that block
#   redis     parameters after the address in dsa_redis
#   workers   worker_processes, by default 1
#   events, main                    directives to add to that block
#   wait      0: do not wait for /readyz
#
# These are replaced in the configuration: %%GLOBALS%%, %%HTTP%%, %%PORT%%,
# %%PORT1%%.., %%SOCK%%, %%SOCK1%%.. (of engines in the order of starting),
# %%REDIS%%, %%REDIS1%%.. (host:port), %%DIR%%.

sub start_nginx {
    my ($self, %opt) = @_;

    $self->write_nginx_conf(%opt);

    system(@{ $self->nginx_argv() }) == 0
        or die "nginx did not start: " . $self->error_log . "\n";

    my $pid = wait_until(sub { $self->nginx_pid }, 10, 'nginx.pid');

    wait_until(sub {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                              PeerPort => $self->port, Timeout => 1)
    }, 10, 'nginx to listen');

    wait_until(sub { $self->workers == $self->{workers} }, 10, 'workers');

    return $pid if exists $opt{wait} ? !$opt{wait} : exists $opt{conf};

    wait_until(sub { $self->get('/readyz')->{status} == 200 }, 20,
               '/readyz to say 200') if @{ $self->{engines} };

    return $pid;
}


sub write_nginx_conf {
    my ($self, %opt) = @_;

    # see t/preload/nginx_preload.c

    if ($opt{preload}) {
        $self->{preload} = $self->path('preload');
        mkdir $self->{preload};
    }

    my $text = exists $opt{conf} ? $opt{conf} : $self->default_conf(%opt);

    $self->{workers} = $opt{workers} || $self->{workers} || 1;

    return write_file($self->path("$self->{conf}.conf"),
                      $self->expand($text));
}


sub default_conf {
    my ($self, %opt) = @_;

    $opt{$_} = '' for grep { !defined $opt{$_} }
                      qw/ main events http server location pool redis /;

    my $engines = join "\n        ",
                  map { map { "engine unix:$_;" } @{ $_->{socks} } }
                  @{ $self->{engines} };
    my $redis = @{ $self->{redises} } ? "dsa_redis %%REDIS%% $opt{redis};"
                                      : '';

    # nginx 1.25.1 has a directive and warns of the parameter

    my $http2 = $self->nginx_version >= 1.025
                ? 'listen  127.0.0.1:%%PORT1%%; http2 on;'
                : 'listen  127.0.0.1:%%PORT1%% http2;';

    return <<"EOC";
%%GLOBALS%%
$opt{main}

events {
    worker_connections  4096;
    $opt{events}
}

http {
    %%HTTP%%

    dsa_pool v32 {
        $engines
        $opt{pool}
    }

    $redis
    $opt{http}

    server {
        listen  127.0.0.1:%%PORT%%;
        $http2

        client_max_body_size     8m;
        client_body_buffer_size  8m;

        $opt{server}

        location /v1/ {
            dsa_pass  v32;
            $opt{location}
        }

        location = /readyz {
            dsa_health  v32;
        }

        location = /livez {
            dsa_health  v32  live;
        }

        location = /metrics {
            dsa_metrics;
        }
    }
}
EOC
}


sub expand {
    my ($self, $text) = @_;

    my $d = $self->{dir};
    my $user = $> == 0 ? "user  root root;\n" : '';
    my $temp = join "\n    ", map { "${_}_temp_path  $d/tmp.$_;" }
               qw/ client_body proxy fastcgi uwsgi scgi /;
    my $module = $self->{module} || "$self->{build}/ngx_http_dsa_module.so";
    my $load = $ENV{DSA_NGINX_STATIC} ? '' : "load_module  $module;\n";
    my $workers = $self->{workers} || 1;
    my $level = $ENV{DSA_LOG_LEVEL} || 'info';

    my $globals = "$load${user}worker_processes  $workers;\n"
                  . join('', map { "env  ${_}_OPTIONS;\n" }
                                 qw/ ASAN UBSAN LSAN TSAN /)
                  . (defined $self->{preload} ? "env  DSA_PRELOAD;\n" : '')
                  . "pid  $d/nginx.pid;\n"
                  . "error_log  $d/$self->{log}  $level;\n";
    my $http = "access_log  $d/access.log;\n    $temp";

    $text =~ s/%%GLOBALS%%/$globals/g;
    $text =~ s/%%HTTP%%/$http/g;
    $text =~ s/%%DIR%%/$d/g;
    $text =~ s/%%PORT(\d*)%%/$self->port($1 || 0)/ge;
    $text =~ s/%%SOCK(\d*)%%/$self->{engines}[$1 || 0]{sock}/ge;
    $text =~ s/%%REDIS(\d*)%%/"127.0.0.1:$self->{redises}[$1 || 0]{port}"/ge;

    return $text;
}


# Returns the version of nginx as a number: 1.022001 is nginx 1.22.1.

sub nginx_version {
    my ($self) = @_;

    return $self->{version} ||= do {
        my @numbers = `$self->{nginx} -v 2>&1` =~ m{/(\d+)\.(\d+)\.(\d+)}
            or die "$self->{nginx} -v prints no version\n";

        sprintf '%d.%03d%03d', @numbers;
    };
}


sub nginx_argv {
    my ($self, @more) = @_;

    my $env = $self->sanitizer_env('nginx');

    # a sanitizer's library need not come first

    if (defined $self->{preload}) {
        $env->{LD_PRELOAD} = "$self->{build}/t/nginx_preload.so";
        $env->{DSA_PRELOAD} = $self->{preload};
        $env->{ASAN_OPTIONS} .= ':verify_asan_link_order=0';
    }

    return ['env', (map { "$_=$env->{$_}" } sort keys %$env),
            $self->{nginx}, '-p', "$self->{dir}/", '-c',
            "$self->{dir}/$self->{conf}.conf", '-e',
            "$self->{dir}/$self->{log}", @more];
}


# Returns (exit status, output) of `nginx -t` with such a configuration.  It
# uses a configuration file and a log of its own, so a running server is not
# affected.

sub nginx_test {
    my ($self, %opt) = @_;

    local $self->{conf} = 'test';
    local $self->{log} = 'test.log';

    $self->write_nginx_conf(%opt);

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
         @{ $self->nginx_argv('-t') } or die "nginx -t: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


sub nginx_pid {
    my ($self) = @_;

    my $pid = read_file($self->path('nginx.pid'));

    return defined $pid && $pid =~ /^(\d+)/ && kill(0, $1) ? $1 + 0 : undef;
}


# Returns the process ids of the workers of this master or the given one,
# including workers that are shutting down.

sub workers {
    my ($self, $master) = @_;

    $master ||= $self->nginx_pid or return;

    return grep {
        my $cmd = read_file("/proc/$_/cmdline");
        defined $cmd && $cmd =~ /worker process/
    } DSA::Process::children($master);
}


# Returns the process id of the worker that has this DSA::HTTP's connection, or
# 0.  The port of the connection finds its other end.

sub worker_of {
    my ($self, $http) = @_;

    my ($port, %inode) = $http->socket->sockport;

    for (split /\n/, read_file('/proc/net/tcp')) {
        my @f = split ' ';
        $inode{$f[9]} = 1 if $f[2] =~ /:(\w+)$/ && hex $1 == $port;
    }

    for my $pid ($self->workers) {
        return $pid if grep { /^socket:\[(\d+)\]$/ && $inode{$1} }
                            sockets($pid);
    }

    return 0;
}


# Reloads nginx, with a new configuration if there are options.  Returns when
# new workers run; old ones may still be finishing.

sub reload {
    my ($self, %opt) = @_;

    my %old = map { $_ => 1 } $self->workers;

    $self->write_nginx_conf(%opt) if %opt;
    kill 'HUP', $self->nginx_pid;

    wait_until(sub {
        my $new = grep { !$old{$_} } $self->workers;
        $new >= $self->{workers};
    }, 20, 'new workers');

    return;
}


# Upgrades the binary: USR2, then QUIT to the old master.  Returns the old
# master's id when only new workers accept connections; the old master ends
# when its streams have ended.

sub upgrade {
    my ($self) = @_;

    my $old = $self->nginx_pid;

    kill 'USR2', $old;

    my $new = wait_until(sub {
        my $pid = $self->nginx_pid;
        $pid && $pid != $old && -e $self->path('nginx.pid.oldbin') && $pid;
    }, 20, 'the new nginx');

    wait_until(sub { $self->workers($new) == $self->{workers} }, 20,
               'the workers of the new nginx');

    my @workers = $self->workers($old);

    kill 'QUIT', $old;
    push @{ $self->{masters} }, $old;

    # until they have closed the sockets that both masters listen on, old
    # workers accept requests

    my %listening = map { $_ => 1 } sockets($new);

    wait_until(sub { !grep { $listening{$_} } map { sockets($_) } @workers },
               20, 'the old workers to stop listening');

    return $old;
}


# Returns the names of the sockets that a process has open.

sub sockets {
    my ($pid) = @_;

    return grep { defined && /^socket:/ }
               map { readlink } glob "/proc/$pid/fd/*";
}


sub stop_nginx {
    my ($self, $signal) = @_;

    my $pid = $self->nginx_pid or return;

    kill $signal || 'QUIT', $pid;
    DSA::Process::wait_gone($pid, 20)
        or die "nginx $pid does not stop\n";

    return;
}


sub error_log { my $s = read_file("$_[0]{dir}/error.log");
                return defined $s ? $s : '' }
sub access_log { my $s = read_file("$_[0]{dir}/access.log");
                 return defined $s ? $s : '' }


# Returns how many lines of error.log match.

sub logged {
    my ($self, $re) = @_;

    return scalar grep { /$re/ } split /\n/, $self->error_log;
}


# With preload => 1 of start_nginx.  hold("before") or hold("after") makes
# threads wait there at each task, held returns whether one has waited since
# then, and release lets them go on.  turn returns the most bytes that an event
# loop has handled in one turn.

sub hold {
    my ($self, $when) = @_;

    unlink "$self->{preload}/held.$when";
    write_file("$self->{preload}/$when", '');

    return;
}

sub held { -e "$_[0]{preload}/held.$_[1]" }

sub release {
    my ($self, @when) = @_;

    unlink map { "$self->{preload}/$_" } @when ? @when : qw/ before after /;

    return;
}

sub turn {
    my ($self) = @_;

    my ($most) = sort { $b <=> $a } 0, map { read_file($_) || 0 }
                 glob "$self->{preload}/turn.*";

    return $most + 0;
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


# Stops nginx first, and then the others in the reverse order of their start, so
# that no process logs errors about one that was stopped before it.

sub stop_all {
    my ($self) = @_;

    my @failed;

    $self->release() if defined $self->{preload};

    if (-d $self->{dir}) {
        my $pid = $self->nginx_pid;

        for my $old (grep { $_ } $pid, @{ $self->{masters} || [] }) {
            kill 'TERM', $old;

            if (!DSA::Process::wait_gone($old, 10)) {
                push @failed, "nginx $old did not stop";
                kill 'KILL', DSA::Process::children($old), $old;
            }
        }
    }

    for my $proc (reverse @{ $self->{procs} }) {
        next if !$proc->alive;
        push @failed, "$proc->{name} did not stop" if !$proc->stop('TERM', 10);
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

    my @failed = $self->stop_all();
    $tb->ok(!@failed, 'everything stopped') or $tb->diag(join "\n", @failed);

    my @alerts = $self->alerts();
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
