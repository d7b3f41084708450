package DSA::Hosts;

# Copyright (C) The nginx-dsa authors
#
# Hosts of a test: each is a process with a network namespace of its own, in
# which a DSA::Test runs nginx and an engine.  The test itself is in another
# namespace, with a link to each host, which can be cut.

use strict;
use warnings;

use IO::Socket::UNIX;

use DSA::Process;
use DSA::Test;
use DSA::Wait qw/ wait_until slow /;

# the address of the test, for all hosts
use constant HERE => '10.213.0.1';


# Returns why hosts cannot be made here; undef: they can.

sub missing {
    return 'needs root for network namespaces' if $> != 0;
    return 'needs ip and unshare'
        if system('unshare --net ip link add probe type veth peer name other '
                  . '2> /dev/null') != 0;

    return undef;
}


# Starts the test again in a network namespace of its own, with only loopback
# and the address for the hosts.

sub isolate {
    if (!$ENV{DSA_ISOLATED}) {
        $ENV{DSA_ISOLATED} = 1;
        exec 'unshare', '--net', $^X, $0, @ARGV or die "exec: $!\n";
    }

    delete $ENV{DSA_ISOLATED};
    command(qw/ ip link set lo up /);
    command(qw/ ip address add dev lo /, HERE . '/32');

    return;
}


sub command {
    my (@argv) = @_;

    system(@argv) == 0 or die "@argv failed\n";

    return;
}


# new(TEST, N) starts host N, from 1 on.

sub new {
    my ($class, $t, $n) = @_;

    my $self = bless { n => $n, address => "10.213.$n.2", link => "host$n",
                       sock => $t->path("host$n.control") }, $class;

    $self->{proc} = $t->spawn("host$n", 'unshare', '--net', $^X, '-It/lib',
                              '-MDSA::Hosts', '-e', 'DSA::Hosts::serve(@ARGV)',
                              $self->{sock}, "host$n");

    wait_until(sub { -S $self->{sock} }, 30, "host $n");

    my @inside = ('nsenter', '--net=/proc/' . $self->{proc}->pid . '/ns/net');

    command(qw/ ip link add /, $self->{link}, qw/ type veth peer name eth0 netns
            /, $self->{proc}->pid);
    command(qw/ ip address add dev /, $self->{link}, "10.213.$n.1/30");
    command(qw/ ip link set /, $self->{link}, 'up');
    command(@inside, qw/ ip link set lo up /);
    command(@inside, qw/ ip address add dev eth0 /, "$self->{address}/30");
    command(@inside, qw/ ip link set eth0 up /);
    command(@inside, qw/ ip route add default via /, "10.213.$n.1");

    return $self;
}


sub address { $_[0]{address} }


# Cuts the link, or joins it again.

sub link {
    my ($self, $state) = @_;

    command(qw/ ip link set /, $self->{link}, $state);

    return;
}


# Calls a method of the host's DSA::Test, or of its engine if the name begins
# with "engine.".  Returns its result in scalar context, as JSON can have it.

sub call {
    my ($self, $method, @args) = @_;

    my $s = IO::Socket::UNIX->new(Peer => $self->{sock})
        or die "host $self->{n} has ended: " . $self->{proc}->output . "\n";

    print $s json_encode([ $method, @args ]), "\n";
    $s->shutdown(1);

    my $line = <$s>;

    die "host $self->{n} did not answer: " . $self->{proc}->output . "\n"
        if !defined $line;

    my $reply = json_decode($line);

    die "host $self->{n}: $method: $reply->{error}" if exists $reply->{error};

    return $reply->{result};
}


# Ends everything at once, as a host without power.  Returns the process ids of
# the workers.

sub kill {
    my ($self) = @_;

    return @{ $self->call('host.kill') };
}


# Stops everything.  Returns what the host's DSA::Test has found, as texts.

sub end {
    my ($self) = @_;

    my $bad = $self->call('host.end');

    $self->{proc}->wait_end(30);

    return @$bad;
}


# The process of a host.

sub serve {
    my ($sock, $name) = @_;

    chdir $DSA::Test::root or die "chdir: $!\n";

    # a test that dies ends its hosts, which end their programs

    my $host = { t => DSA::Test->new($name) };

    local $SIG{TERM} = sub { $host->{over} = 1; die "$name ends\n" };

    my $listen = IO::Socket::UNIX->new(Local => $sock, Listen => 5)
        or die "$sock: $!\n";

    while (!$host->{over}) {
        my $c = $listen->accept or next;
        my ($method, @args) = @{ json_decode(scalar <$c>) };
        my $result = eval { answer($host, $method, @args) };

        print $c json_encode($@ ? { error => "$@" }
                                : { result => $result }), "\n";
        close $c;
    }

    return;
}


sub answer {
    my ($host, $method, @args) = @_;

    my $t = $host->{t};

    if ($method eq 'start_engine') {
        $host->{engine} = $t->start_engine(@args);
        return $host->{engine}->sock;
    }

    if ($method =~ /^engine\.(\w+)$/) {
        my $name = $1;
        my $r = $host->{engine}->$name(@args);

        return ref $r ? undef : $r;
    }

    if ($method eq 'host.kill') {
        my @workers = $t->workers;

        CORE::kill 'KILL', $t->nginx_pid, @workers,
                   DSA::Process::children($host->{engine}->pid);
        $host->{engine}->kill9;
        wait_until(sub { !$t->nginx_pid }, 20, 'nginx to end');
        unlink $t->path('nginx.pid');

        return \@workers;
    }

    if ($method eq 'host.end') {
        $host->{over} = 1;

        my @bad = ($t->stop_all, $t->alerts, $t->sanitizer_reports);

        $t->{done} = !@bad;

        return \@bad;
    }

    if ($method eq 'workers') {
        return [ $t->workers ];
    }

    my $r = $t->$method(@args);

    return ref $r && ref $r !~ /^(?:HASH|ARRAY)$/ ? undef : $r;
}


1;
