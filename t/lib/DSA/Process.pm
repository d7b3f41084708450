package DSA::Process;

# Copyright (C) The nginx-dsa authors
#
# A child process whose output goes to a file.  It is watched and ended by its
# process id.

use strict;
use warnings;

use POSIX qw/ _exit WNOHANG /;
use Time::HiRes qw/ time /;

use DSA::Wait qw/ wait_until pause slow /;


# name, dir (for NAME.out), and argv (a command) or code and args (a sub).

sub start {
    my ($class, %opt) = @_;

    my $self = bless { %opt, out => "$opt{dir}/$opt{name}.out" }, $class;

    $self->run();

    return $self;
}


sub run {
    my ($self) = @_;

    my $pid = fork;

    die "fork: $!\n" if !defined $pid;

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $self->{out};
        open STDERR, '>&', \*STDOUT;
        $SIG{$_} = 'DEFAULT' for qw/ INT TERM HUP PIPE CHLD /;

        $ENV{$_} = $self->{env}{$_} for keys %{ $self->{env} || {} };

        if ($self->{code}) {
            $| = 1;
            $SIG{PIPE} = 'IGNORE';
            eval { $self->{code}->(@{ $self->{args} || [] }) };
            print STDERR $@ if $@;
            _exit($@ ? 1 : 0);
        }

        { no warnings; exec { $self->{argv}[0] } @{ $self->{argv} }; }

        print STDERR "cannot run $self->{argv}[0]: $!\n";
        _exit(127);
    }

    $self->{pid} = $pid;
    delete $self->{status};

    return;
}


sub pid { $_[0]{pid} }
sub sock { $_[0]{sock} }
sub port { $_[0]{port} }


sub output {
    my ($self) = @_;

    open my $fh, '<:raw', $self->{out} or return '';
    local $/;
    my $text = <$fh>;

    return defined $text ? $text : '';
}


sub alive {
    my ($self) = @_;

    return 0 if defined $self->{status};

    my $rc = waitpid $self->{pid}, WNOHANG;

    return 1 if $rc == 0;

    $self->{status} = $rc == $self->{pid} ? $? : -1;

    return 0;
}


# Waits until the process is ready, as its starter defined it.  Dies if it ends
# before.

sub wait_ready {
    my ($self, $seconds) = @_;

    wait_until(sub {
        die "$self->{name} ended: " . $self->output . "\n" if !$self->alive;
        $self->{ready}->();
    }, $seconds, "$self->{name} to be ready");

    return;
}


sub signal { kill $_[1], $_[0]{pid} if $_[0]->alive }


# Returns the wait status ($?), or undef if it has not ended in time.

sub wait_end {
    my ($self, $seconds) = @_;

    my $end = time + slow($seconds);

    while ($self->alive) {
        return undef if time > $end;
        pause(0.01);
    }

    return $self->{status};
}


# Sends a signal and returns true if the process ended in time; kills it
# otherwise.

sub stop {
    my ($self, $signal, $seconds) = @_;

    $self->signal($signal || 'TERM');

    return 1 if defined $self->wait_end($seconds || 30);

    kill 'KILL', children($self->{pid}), $self->{pid};
    $self->wait_end(10);

    return 0;
}


# Sends SIGKILL to this process only, not to its children.

sub kill9 {
    my ($self) = @_;

    $self->signal('KILL');
    $self->wait_end(10);

    return;
}


# Starts the process again with the same arguments and waits until it is ready.

sub restart {
    my ($self, $seconds) = @_;

    $self->stop() if $self->alive;
    $self->run();
    $self->wait_ready($seconds || 60) if $self->{ready};

    return;
}


# Returns the process ids of the children of a process.

sub children {
    my ($pid) = @_;

    my @found;

    for my $file (glob '/proc/[0-9]*/stat') {
        open my $fh, '<', $file or next;
        my $line = <$fh>;

        next if !defined $line || $line !~ /^(\d+) \(.*\) (\S) (\d+) /;
        push @found, $1 if $3 == $pid && $2 ne 'Z';
    }

    return @found;
}


# The process that a supervisor has started, or 0; and sends it a signal.

sub replica { (children($_[0]{pid}))[0] || 0 }

sub signal_replica {
    my ($self, $signal) = @_;

    # kill() of 0 would be for all processes of this group

    kill $signal, $self->replica || die "$self->{name} has no replica\n";

    return;
}


# Waits for the end of a process that is not our child (a daemon).

sub wait_gone {
    my ($pid, $seconds) = @_;

    my $end = time + slow($seconds);

    while (time < $end) {
        waitpid $pid, WNOHANG;
        return 1 if gone($pid);
        pause(0.01);
    }

    return 0;
}


# Whether a process has ended.  It may be a zombie, but a zombie whose threads
# still end has open files and sockets until the last of them has ended.

sub gone {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/stat" or return 1;
    my $line = <$fh>;

    return 1 if !defined $line;
    return 0 if $line !~ /^\d+ \(.*\) Z /;
    return (() = glob "/proc/$pid/task/*") <= 1;
}


# Stops a process by SIGSTOP, and returns when it has stopped.  The kernel wakes
# one worker of nginx for a connection.  If it wakes one that is about to stop,
# no worker accepts the connection.

sub suspend {
    my ($pid) = @_;

    kill 'STOP', $pid;

    wait_until(sub {
        open my $fh, '<', "/proc/$pid/stat" or die "process $pid has ended\n";
        return <$fh> =~ /^\d+ \(.*\) T /;
    }, 30, "process $pid to stop");

    return;
}


# Returns the microseconds of CPU (user and system) that processes have used.

sub cpu_us {
    my $us = 0;
    my $tick = POSIX::sysconf(POSIX::_SC_CLK_TCK());

    for my $pid (@_) {
        open my $fh, '<', "/proc/$pid/stat" or next;
        my $line = <$fh>;
        $line =~ s/^.*\) //;
        my @f = split ' ', $line;
        $us += ($f[11] + $f[12]) * 1_000_000 / $tick;
    }

    return $us;
}


1;
