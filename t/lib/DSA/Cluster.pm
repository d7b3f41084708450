package DSA::Cluster;

# Copyright (C) The nginx-dsa authors
#
# A Redis Cluster of the test: masters on ports of loopback, whose cluster slots
# are moved by hand, step by step.

use strict;
use warnings;

use DSA::Wait qw/ wait_until /;


# new(TEST, masters => N, replicas => N, conf => sub): the sub returns more
# configuration, { name => value }, for a node by its index.  Each master
# has an equal range of cluster slots, and the replicas are those of the last
# master, or with spread => 1 of each master in turn.  No node fails over by
# itself: a busy machine may stop one for seconds.

sub new {
    my ($class, $t, %opt) = @_;

    my $masters = $opt{masters} || 3;
    my $self = bless { t => $t, masters => $masters, nodes => [], bus => [] },
                     $class;

    for my $i (0 .. $masters + ($opt{replicas} || 0) - 1) {
        my $bus = $t->free_port();
        my %more = $opt{conf} ? %{ $opt{conf}->($i) } : ();

        push @{ $self->{bus} }, $bus;
        push @{ $self->{nodes} }, $t->start_redis(
            appendonly => 1, password => $opt{password}, conf => {
                'cluster-enabled' => 'yes', 'cluster-port' => $bus,
                'cluster-node-timeout' => 600_000,
                'cluster-require-full-coverage' => 'no',
                'cluster-allow-replica-migration' => 'no',
                'repl-diskless-sync-delay' => 0, 'shutdown-timeout' => 0,
                %more });

        # the port that nodes have for each other

        push @{ $self->{ports} }, $more{'tls-cluster'} ? $more{'tls-port'}
                                : $self->{nodes}[$i]->port;

        next if $i >= $masters;

        $self->cmd($i, 'CLUSTER', 'ADDSLOTSRANGE', int($i * 16384 / $masters),
                   int(($i + 1) * 16384 / $masters) - 1);
        $self->cmd($i, 'CLUSTER', 'SET-CONFIG-EPOCH', $i + 1);
    }

    my @nodes = 0 .. $#{ $self->{nodes} };

    $self->{id} = [ map { $self->cmd($_, 'CLUSTER', 'MYID') } @nodes ];

    $self->cmd($_, 'CLUSTER', 'MEET', '127.0.0.1', $self->{ports}[0],
               $self->{bus}[0]) for 1 .. $#nodes;

    wait_until(sub {
        @nodes == grep { $self->cmd($_, 'CLUSTER', 'INFO')
                         =~ /^cluster_state:ok/m
                         && $self->cmd($_, 'CLUSTER', 'INFO')
                            =~ /^cluster_known_nodes:${\ scalar @nodes}\r?$/m
                         && 16384 == $self->assigned($_) } @nodes
    }, 60, 'the cluster');

    for my $i ($masters .. $#nodes) {
        my $of = $opt{spread} ? $i % $masters : $masters - 1;

        wait_until(sub { eval { $self->cmd($i, 'CLUSTER', 'REPLICATE',
                                           $self->{id}[$of]) } },
                   20, 'a replica');
    }

    wait_until(sub { @nodes - $masters == grep { $self->follows($_) } @nodes },
               60, 'the replicas');

    return $self;
}


# Starts two nodes of a cluster, of which the second has all cluster slots.
# Returns their processes.  By default the port of a node's bus is 10000 more,
# which may be in use.

sub pair {
    my ($class, $t) = @_;

    my @bus = map { $t->free_port() } 1, 2;
    my ($empty, $full) = map {
        $t->start_redis(conf => { 'cluster-enabled' => 'yes',
                                  'cluster-port' => $_ })
    } @bus;

    $t->redis($full)->cmd(qw/ CLUSTER ADDSLOTSRANGE 0 16383 /);
    $t->redis($empty)->cmd(qw/ CLUSTER MEET 127.0.0.1 /, $full->port, $bus[1]);
    wait_until(sub {
        2 == grep { $t->redis($_)->cmd(qw/ CLUSTER INFO /)
                    =~ /^cluster_state:ok/m } $empty, $full
    }, 60, 'the cluster');

    return ($empty, $full);
}


# Whether a node is a replica that is connected, and each node has it as one of
# its master: until then the master gives it no failover, and the others no vote
# for one.

sub follows {
    my ($self, $i) = @_;

    my $role = eval { $self->cmd($i, 'ROLE') } || [ '' ];

    return 0 if $role->[0] ne 'slave' || $role->[3] ne 'connected';

    my ($of) = grep { $self->{ports}[$_] == $role->[2] } 0 .. $#{ $self->{id} };
    my $line = qr/^$self->{id}[$i] \S+ (?:myself,)?slave $self->{id}[$of] /m;

    return !grep { (eval { $self->cmd($_, 'CLUSTER', 'NODES') } || '') !~ $line
                 } 0 .. $#{ $self->{id} };
}


sub node { $_[0]{nodes}[$_[1]] }
sub address { '127.0.0.1:' . $_[0]->node($_[1])->port }
sub client { $_[0]{t}->redis($_[0]->node($_[1])) }
sub cmd { my ($self, $i, @words) = @_; $self->client($i)->cmd(@words) }


sub assigned {
    my ($self, $i) = @_;

    my ($n) = $self->cmd($i, 'CLUSTER', 'INFO')
              =~ /^cluster_slots_assigned:(\d+)/m;

    return $n;
}


# The masters, by the view of a node that runs.

sub masters {
    my ($self) = @_;

    return grep { (eval { $self->cmd($_, 'ROLE')->[0] } || '') eq 'master' }
           0 .. $#{ $self->{nodes} };
}


# Waits until each node serves, and each replica has its master.

sub settle {
    my ($self) = @_;

    wait_until(sub {
        !grep {
            my $role = eval { $self->cmd($_, 'ROLE') } || [ '' ];

            (eval { $self->cmd($_, 'CLUSTER', 'INFO') } || '')
                !~ /^cluster_state:ok/m
            || $role->[0] eq 'slave' && $role->[3] ne 'connected'
        } 0 .. $#{ $self->{nodes} }
    }, 60, 'the nodes of the cluster');

    return;
}


# A replica takes over from its master, which has sent it all writes: that with
# the index, or any.  Returns its index, or -1 if there is none that can.

sub failover {
    my ($self, $which) = @_;

    my @can = grep { $self->follows($_) }
              defined $which ? $which : 0 .. $#{ $self->{nodes} };

    return -1 if !@can;

    my $replica = $can[rand @can];

    $self->cmd($replica, 'CLUSTER', 'FAILOVER');

    # a master that does not answer makes it end without a change

    return eval {
        wait_until(sub { $self->cmd($replica, 'ROLE')->[0] eq 'master' }, 10,
                   'the failover');
        $replica;
    } // -1;
}


# The node that serves a key, and its cluster slot.

sub owner {
    my ($self, $key) = @_;

    for my $i ($self->masters) {
        my $slot = $self->cmd($i, 'CLUSTER', 'KEYSLOT', $key);

        return ($i, $slot) if grep {
            $_->[0] <= $slot && $slot <= $_->[1]
            && $_->[2][1] == $self->node($i)->port
        } @{ $self->cmd($i, 'CLUSTER', 'SLOTS') };
    }

    die "no node has $key\n";
}


# Moves a cluster slot: begin(), keys() as often as needed, end().

sub begin {
    my ($self, $slot, $from, $to) = @_;

    $self->cmd($to, 'CLUSTER', 'SETSLOT', $slot, 'IMPORTING',
               $self->{id}[$from]);
    $self->cmd($from, 'CLUSTER', 'SETSLOT', $slot, 'MIGRATING',
               $self->{id}[$to]);

    return;
}


# Moves the keys that match, one at a time; returns how many.

sub keys {
    my ($self, $slot, $from, $to, $match) = @_;

    my $n = 0;
    my $client = $self->client($from);

    for my $key (@{ $client->cmd('CLUSTER', 'GETKEYSINSLOT', $slot, 10000) }) {
        next if defined $match && $key !~ $match;

        my $reply = $client->cmd('MIGRATE', '127.0.0.1',
                                 $self->{ports}[$to], $key, 0, 20000,
                                 defined $self->node($to)->{password}
                                 ? ('AUTH', $self->node($to)->{password}) : ());
        $n++ if $reply eq 'OK';
    }

    return $n;
}


sub end {
    my ($self, $slot, $from, $to) = @_;

    # a script may have written a key since the last look

    1 while $self->keys($slot, $from, $to);

    $self->cmd($_, 'CLUSTER', 'SETSLOT', $slot, 'NODE', $self->{id}[$to])
        for $to, $from, grep { $_ != $to && $_ != $from } $self->masters;

    return;
}


sub move {
    my ($self, $slot, $from, $to) = @_;

    $self->begin($slot, $from, $to);
    $self->end($slot, $from, $to);

    return;
}


# All keys with their values, as texts; a key that two nodes have is an error.

sub everything {
    my ($self, $pattern) = @_;

    my %all;

    for my $i ($self->masters) {
        my $client = $self->client($i);

        for my $key ($client->keys($pattern)) {
            die "two nodes have $key\n" if exists $all{$key};

            my $type = $client->cmd('TYPE', $key);

            $all{$key} = $type eq 'hash' ? $client->hgetall($key)
                       : $type eq 'string' ? $client->cmd('GET', $key)
                       : $type;
        }
    }

    return \%all;
}


1;
