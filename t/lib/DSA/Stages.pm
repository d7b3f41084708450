package DSA::Stages;

# Copyright (C) The nginx-dsa authors
#
# A proxy on the connection between a leader and its follower, which is a
# process in the network namespace of the follower.  It knows the messages of
# engine/hosts/wire.h, passes them on, and stops both directions before the
# message at which a test wants to do something.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Socket qw/ IPPROTO_TCP SOL_SOCKET SO_KEEPALIVE /;

use DSA::Test;
use DSA::Wait qw/ wait_until slow /;

# dsa_hosts_type_e, from 1 on
my @TYPES = qw/ HELLO PROOF PLAN READY STEP COPY MOVE MOVED TIER TIERED DATA
                RESULT BYE FAULT /;
my %TYPE = map { $TYPES[$_] => $_ + 1 } 0 .. $#TYPES;

use constant { KEEPIDLE => 4, KEEPINTVL => 5, KEEPCNT => 6 };    # tcp(7)


# new(TEST, HOST, LISTEN, TARGET): between ports of a DSA::Hosts.

sub new {
    my ($class, $t, $host, $listen, $target) = @_;

    my $sock = $t->path("stages.$listen");
    my $self = bless { sock => $sock }, $class;

    $self->{proc} = $t->spawn("stages$listen", inside($host), $^X, '-It/lib',
                              '-MDSA::Stages', '-e',
                              'DSA::Stages::serve(@ARGV)', $sock,
                              $host->address . ":$listen",
                              "127.0.0.1:$target");

    # its socket exists before it listens

    wait_until(sub { $self->{control} = IO::Socket::UNIX->new(Peer => $sock) },
               30, 'the proxy');
    $self->{control}->autoflush(1);

    return $self;
}


# The command that runs a program in the namespace of a host.

sub inside {
    my ($host) = @_;

    return ('nsenter', '--net=/proc/' . $host->{proc}->pid . '/ns/net');
}


# Sends a command and returns the answer.

sub command {
    my ($self, $text) = @_;

    print { $self->{control} } "$text\n";

    return $self->line($text);
}


sub line {
    my ($self, $what) = @_;

    local $SIG{ALRM} = sub { die "the proxy does not answer: $what: "
                                 . $self->{proc}->output . "\n" };

    alarm slow(60);
    my $line = readline $self->{control};
    alarm 0;

    die "the proxy has ended: $what\n" if !defined $line;
    chomp $line;

    return $line;
}


# hold([ FROM, TYPE, N ], ...): stops before the Nth message of this type that
# FROM (leader or follower) sends, counted from now on, then before that of the
# next triple, counted from there, and so on: only the last one is stopped.

sub hold {
    my ($self, @steps) = @_;

    return $self->command('hold ' . join ' ', map { @$_ } @steps);
}


# Waits until it has stopped; passes everything on again.

sub reached { $_[0]->line('the stage') eq 'reached' }
sub go { $_[0]->command('go') }


# Gives the HELLO of the follower another version, or not.

sub alter { $_[0]->command("alter $_[1]") }


# The process of the proxy.

sub serve {
    my ($sock, $address, $target) = @_;

    local $SIG{PIPE} = 'IGNORE';

    my $tcp = IO::Socket::INET->new(LocalAddr => $address, Listen => 8,
                                    ReuseAddr => 1) or die "$address: $!\n";
    my $unix = IO::Socket::UNIX->new(Local => $sock, Listen => 1)
        or die "$sock: $!\n";
    my $self = { control => scalar $unix->accept, target => $target,
                 pairs => [], steps => [], alter => 0 };

    while (1) {
        my $select = IO::Select->new($tcp, $self->{control});

        if (!$self->{held}) {
            $select->add(map { $_->{sock} } grep { !$_->{ended} }
                         map { values %$_ } @{ $self->{pairs} });
        }

        for my $ready ($select->can_read) {
            if ($ready == $self->{control}) {
                my $line = readline $ready;

                return if !defined $line;
                obey($self, split ' ', $line);

            } elsif ($ready == $tcp) {
                connected($self, scalar $tcp->accept);

            } elsif (!$self->{held}) {
                arrived($self, $ready);
            }
        }
    }
}


sub connected {
    my ($self, $leader) = @_;

    my $follower = IO::Socket::INET->new(PeerAddr => $self->{target})
        or return;                      # which closes the other one

    # a leader that is cut off must end the connection here, too

    setsockopt $leader, SOL_SOCKET, SO_KEEPALIVE, 1;
    setsockopt $leader, IPPROTO_TCP, KEEPIDLE, 3;
    setsockopt $leader, IPPROTO_TCP, KEEPINTVL, 1;
    setsockopt $leader, IPPROTO_TCP, KEEPCNT, 5;

    push @{ $self->{pairs} }, {
        leader => { name => 'leader', sock => $leader, buf => '' },
        follower => { name => 'follower', sock => $follower, buf => '' }
    };

    return;
}


sub obey {
    my ($self, $what, @args) = @_;

    if ($what eq 'hold') {
        my @steps;

        push @steps, [ splice @args, 0, 3 ] while @args;
        $self->{steps} = \@steps;

    } elsif ($what eq 'alter') {
        $self->{alter} = $args[0];

    } elsif ($what eq 'go') {
        $self->{held} = 0;

        for my $pair (@{ $self->{pairs} }) {
            pass($self, $pair, $_) for qw/ leader follower /;
        }
    }

    answer($self, $what);

    return;
}


sub answer {
    my ($self, $text) = @_;

    syswrite $self->{control}, "$text\n";

    return;
}


# Something has arrived on a connection, or it has ended.

sub arrived {
    my ($self, $sock) = @_;

    my ($pair) = grep { $_->{leader}{sock} == $sock
                        || $_->{follower}{sock} == $sock } @{ $self->{pairs} }
        or return;
    my $from = $pair->{leader}{sock} == $sock ? 'leader' : 'follower';
    my $side = $pair->{$from};
    my $n = sysread $sock, $side->{buf}, 65536, length $side->{buf};

    $side->{ended} = !$n;
    pass($self, $pair, $from);

    return;
}


# Passes on the whole messages of a side, and its end.

sub pass {
    my ($self, $pair, $from) = @_;

    my $side = $pair->{$from};
    my $to = $pair->{ $from eq 'leader' ? 'follower' : 'leader' }{sock};

    while (!$self->{held} && length $side->{buf} >= 16) {
        my ($type, undef, $bytes) = unpack 'V V Q<', $side->{buf};

        last if length $side->{buf} < 16 + $bytes;
        last if stops($self, $from, $type);

        my $message = substr $side->{buf}, 0, 16 + $bytes, '';

        if ($self->{alter} && $from eq 'follower'
            && $type == $TYPE{HELLO})
        {
            substr $message, 16 + 8, 6, "9.87\0\0";
        }

        while (length $message) {
            my $n = syswrite $to, $message;

            last if !defined $n;
            substr $message, 0, $n, '';
        }
    }

    if ($side->{ended} && !$self->{held} && !$side->{shut}) {
        $side->{shut} = 1;
        shutdown $to, 1;
    }

    if (!grep { !$_->{shut} } values %$pair) {
        @{ $self->{pairs} } = grep { $_ != $pair } @{ $self->{pairs} };
    }

    return;
}


# Returns 1 if the message is the one to stop before.

sub stops {
    my ($self, $from, $type) = @_;

    my $step = $self->{steps}[0] or return 0;

    return 0 if $step->[0] ne $from || $TYPE{ $step->[1] } != $type
                || --$step->[2] != 0;

    shift @{ $self->{steps} };

    return 0 if @{ $self->{steps} };

    $self->{held} = 1;
    answer($self, 'reached');

    return 1;
}


1;
