package DSA::Nginx;

# Copyright (C) The nginx-dsa authors
#
# The nginx of a DSA::Test, which inherits these methods: its configuration, its
# start and end, its processes and its logs.

use strict;
use warnings;

use IO::Socket::INET;

use DSA::File qw/ read_file write_file /;
use DSA::Process;
use DSA::Wait qw/ wait_until /;


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

    # A busy machine may take seconds for a command.  A timeout= of the test
    # comes after this one and counts.

    my $redis = @{ $self->{redises} }
                ? "dsa_redis %%REDIS%% timeout=10s $opt{redis};" : '';

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


1;
