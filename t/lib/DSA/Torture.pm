package DSA::Torture;

# Copyright (C) The nginx-dsa authors
#
# What t/torture/run and t/ledger-kill.t have in common: nginx, two null engines
# with a journal and Redis under load, kill -9 of each of them, and the
# comparison of the ledger with the journal.

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ max min /;
use Time::HiRes qw/ time /;

use DSA::Cluster;
use DSA::Load;
use DSA::Process;
use DSA::Test;
use DSA::TLS;
use DSA::Wait qw/ pause slow /;

our @EXPORT_OK = qw/ cells_used compare compare_counts read_journals
                     report /;

# of dsa_price, in 10^-12 of a unit for a token
my %price = (miss => 280_007, hit => 28_001, output => 420_013);

use constant {
    RATE  => 100,           # tokens per second of an answer
    FRESH => 4,             # requests of a tenant
    KNOWN => 5,             # s before a kill: the worker has read what was
                            # sent until then
};

my @counts = qw/ prompt_tokens cached_tokens cached_host_tokens
                 cached_redis_tokens completion_tokens /;


# new(DSA::Test, requests =>, clients =>, processes =>, seed =>) starts all
# programs and the load.  With cluster => 1, Redis is a cluster of six nodes
# with TLS, whose cluster slots are moved and whose replicas take over, and one
# process of clients has conversations.  With least => { FAULT => N, ... }, the
# clients send until each of these faults has happened so often and the requests
# have ended, so that each fault meets requests on a busy machine, too; without
# it they end after the requests.

sub new {
    my ($class, $t, %opt) = @_;

    my $self = bless { t => $t, %opt, killed => {}, kills => {} }, $class;

    srand $opt{seed};

    my $redis = $opt{cluster} ? $self->start_cluster
                              : ($self->{server} = $t->start_redis(
                                                       appendonly => 1), '');

    for my $name (qw/ left right /) {
        push @{ $self->{engines} }, $t->start_engine(name => $name, conf => {
            name => 'null', backend => 'null rate=' . RATE, log_level => 'warn',
            kv_memory => '200m', host_memory => '4m',
            journal => $t->path("$name.journal") });
    }

    my $conf = $t->default_conf(
        redis => 'timeout=1s',
        http => sprintf('dsa_price null miss=%s hit=%s output=%s;',
                        map { sprintf '%.6f', $price{$_} / 1e6 }
                        qw/ miss hit output /),
        server => 'add_header X-Worker $pid always;');

    $conf =~ s/dsa_redis .*;/dsa_redis $redis;/ if $opt{cluster};
    $t->start_nginx(workers => 3, conf => $conf, wait => 1);
    $t->allow_alert(qr/worker process \d+ exited on signal 9/);

    my $n = $opt{processes};

    for my $i (0 .. $n - 1) {
        my %tenant = (role => 'light', key => "torture$i", model => 'null',
                      open => $opt{clients} / $n, tokens => [1, 60],
                      think => 0.02, retry => 0.2, stream => 80, leave => 40,
                      within => 0.6,
                      slow => 0, fresh => FRESH,
                      prompt => 'All tenants begin with the same words. ' x 12);

        if ($opt{cluster} && $i == 0) {
            @tenant{qw/ role leave open /} = ('talk', 0, 20);
            delete $tenant{fresh};
        }

        push @{ $self->{loads} }, $t->daemon("load$i", sub {
            DSA::Load::run(port => $t->port, seed => $opt{seed} + $i,
                           number => $i, tenants => [ \%tenant ],
                           limit => $opt{least} ? 0 : int($opt{requests} / $n),
                           out => $t->path("load$i.json"));
        });
    }

    return $self;
}


# Six nodes, three of them replicas, with a certificate.  Returns the words of
# dsa_redis.

sub start_cluster {
    my ($self) = @_;

    my $t = $self->{t};
    my $dir = $t->dir;
    my @port = map { $t->free_port } 0 .. 5;

    make_ca($dir, 'ca');
    make_certificate($dir, 'ca', 'redis', 'IP:127.0.0.1');

    $self->{cluster} = DSA::Cluster->new(
        $t, masters => 3, replicas => 3, spread => 1, conf => sub { {
            'tls-port' => $port[$_[0]], 'tls-cert-file' => "$dir/redis.pem",
            'tls-key-file' => "$dir/redis.key",
            'tls-ca-cert-file' => "$dir/ca.pem", 'tls-auth-clients' => 'no',
            'tls-cluster' => 'yes', 'tls-replication' => 'yes' } });

    return join ' ', (map { "127.0.0.1:$_" } @port[0 .. 2]),
                     "tls tls_ca=$dir/ca.pem timeout=10s";
}


# What happens to a cluster, in this order.  A node that is killed is back
# later, with what it had.

my @cluster_faults = qw/ worker move failover node move replica /;

sub disturb_cluster {
    my ($self) = @_;

    my $cluster = $self->{cluster};
    my $fault = $cluster_faults[$self->{faults}++ % @cluster_faults];

    if ($fault eq 'worker') {
        $self->kill_worker;

    } elsif ($fault eq 'replica') {
        $self->kill_replica;

    } elsif ($fault eq 'move') {
        $self->move_slot;

    } elsif ($fault eq 'failover') {
        $self->{kills}{failover}++ if $cluster->failover >= 0;

    } else {
        $self->{server} = $cluster->node(rand 6);
        $self->{server}->kill9;
        $self->{kills}{node}++;
        pause(rand 2);
        $self->{server}->restart;
        $cluster->settle;
    }

    return;
}


# Moves the cluster slot of a key to another node.

sub move_slot {
    my ($self) = @_;

    my $cluster = $self->{cluster};
    my @masters = $cluster->masters;
    my $from = $masters[rand @masters];
    my @others = grep { $_ != $from } @masters;
    my $key = $cluster->cmd($from, 'RANDOMKEY') // return;

    $cluster->move($cluster->cmd($from, 'CLUSTER', 'KEYSLOT', $key), $from,
                   $others[rand @others]);
    $self->{kills}{move}++;

    return;
}


# Kills something every 0.3 to 1.5 seconds until the load is over, and then
# waits until nothing is left in the file of ledger entries.

sub run {
    my ($self, $progress) = @_;

    my $t = $self->{t};
    my $back = 0;

    while ($self->goes_on) {
        pause(0.3 + rand 1.2);

        if ($back && time >= $back) {
            $self->{server}->restart;
            $back = 0;
        }

        my $n = rand 10;

        if ($self->{cluster}) {
            $self->disturb_cluster;

        } elsif ($n < 5) {
            $self->kill_worker;

        } elsif ($n < 8) {
            $self->kill_replica;

        } elsif (!$back) {
            $self->{server}->kill9;
            $self->{kills}{Redis}++;
            $back = time + rand 3;
        }

        $progress->($self) if $progress;
    }

    $self->{server}->restart if $back;

    for (@{ $self->{loads} }) {
        $_->signal('TERM') if $self->{least};
    }

    for (@{ $self->{loads} }) {
        my $status = $_->wait_end(90);
        die "$_->{name} failed: " . $_->output . "\n" if $status;
    }

    my $sent = eval {
        wait_until(sub { $self->left == 0 }, 60,
                   'the ledger entries to be sent');
    };

    die $@, map { "state $_->{state}, owner $_->{owner}, tenant $_->{tenant}, "
                  . "first sent $_->{sent}\n" } cells($self->file) if !$sent;

    return;
}


# Whether the load goes on.

sub goes_on {
    my ($self) = @_;

    my @alive = grep { $_->alive } @{ $self->{loads} };
    my $least = $self->{least} or return scalar @alive;

    die "a client has ended\n" if @alive < @{ $self->{loads} };

    my @missing = grep { ($self->{kills}{$_} || 0) < $least->{$_} }
                  sort keys %$least;

    if (@missing) {
        $self->{until} //= time + slow(600);
        die "too few faults: @missing\n" if time > $self->{until};
        return 1;
    }

    my $ended = read_file($self->{t}->path('access.log')) =~ tr/\n//;

    return $ended < $self->{requests};
}


sub kill_worker {
    my ($self) = @_;

    my @pids = $self->{t}->workers or return;
    my $pid = $pids[rand @pids];

    $self->{killed}{$pid} = time;
    $self->{kills}{worker} += kill 'KILL', $pid;

    return;
}


sub kill_replica {
    my ($self) = @_;

    my $engine = $self->{engines}[rand @{ $self->{engines} }];
    my @pids = DSA::Process::children($engine->pid) or return;

    $self->{kills}{replica} += kill 'KILL', $pids[rand @pids];

    return;
}


# The file of ledger entries, and how many of its cells are not free.

sub file {
    return (reverse sort glob $_[0]{t}->path('nginx.pid.ledger*'))[0];
}


sub left { return cells_used($_[0]->file) }
sub cells_used { return scalar cells($_[0]) }


# The cells of a file that are not free: their states and owners as in
# ngx_module/ledger/, their tenants, and when they were first sent.

sub cells {
    my ($file) = @_;

    my $bytes = read_file($file);
    my ($header, $slot) = (4096, unpack 'x12 L', $bytes);
    my @used = grep { ord substr $bytes, $header + $_ * $slot, 1 }
               0 .. (length($bytes) - $header) / $slot - 1;

    return map {
        my $cell = substr $bytes, $header + $_ * $slot, $slot;
        my ($word, $length, $tenant, $sent) = unpack 'Q x5 C x66 a64 @432 Q',
                                                     $cell;

        { state => $word & 255, owner => $word >> 8, sent => $sent,
          tenant => substr $tenant, 0, $length };
    } @used;
}


# What was killed, and how often.

sub kills {
    my ($self) = @_;

    return join ', ', map { "$self->{kills}{$_} x "
                            . (/^(?:move|failover)$/ ? '' : 'kill -9 of a ')
                            . $_ } sort keys %{ $self->{kills} };
}


# The arguments of compare().

sub results {
    my ($self) = @_;

    return ($self->ledgers, $self->journal,
            [ grep { $_->{kind} eq 'chat' } $self->requests ],
            $self->{killed});
}


# The requests of the clients.

sub requests {
    my ($self) = @_;

    return grep { $_->{kind} }
           map { map { json_decode($_) }
                 split /\n/, read_file($self->{t}->path("load$_.json")) }
           0 .. $#{ $self->{loads} };
}


# What GET returns of each conversation, as DSA::Soak::check_turns() needs it.

sub conversations {
    my ($self) = @_;

    my %key = map { $_->{conversation} ? ($_->{conversation} => $_->{key}) : ()
              } $self->requests;

    return { map { $_ => $self->{t}->get("/v1/conversations/$_", headers =>
                       [ Authorization => "Bearer $key{$_}" ]) } keys %key };
}


# The ledger by tenant, summed over days and models.

sub ledgers {
    my ($self) = @_;

    my %sum;
    my $redis = !$self->{cluster} && $self->{t}->redis($self->{server});
    my $all = $redis ? { map { $_ => $redis->hgetall($_) }
                         $redis->keys('dsa1:*:ledger:*') }
                     : $self->{cluster}->everything('dsa1:*:ledger:*');

    for my $key (keys %$all) {
        my ($tenant) = $key =~ /\{(\w+)\}:ledger:\d{4}-\d\d-\d\d$/ or next;
        my $fields = $all->{$key};

        for (grep { /^null\|/ } keys %$fields) {
            $sum{$tenant}{ s/.*\|//r } += $fields->{$_};
        }
    }

    return \%sum;
}


sub journal {
    my ($self) = @_;

    return read_journals(map { $self->{t}->path("$_.journal") }
                         qw/ left right /);
}


# The lines of journals by request, in their order.

sub read_journals {
    my (@paths) = @_;

    my %lines;

    for my $path (@paths) {
        open my $in, '<', $path or die "$path: $!\n";

        while (my $text = <$in>) {

            # there are many lines, and no value needs an escape

            my %line = $text =~ /"(\w+)":"?([^",}]*)/g;

            die "$path: $line{lost} lines are lost\n"
                if $line{event} eq 'gap';

            push @{ $lines{ $line{request} } }, \%line;
        }
    }

    return \%lines;
}


# bounds(LINES, REQUEST, KILLED) returns { exact => 0 or 1, billed => [least,
# most], COUNT => [least, most], ... } for the lines of a request in a journal.
#
# A request that was refused costs nothing, whatever an engine did for it.
# Exact are requests whose worker and replicas lived.  Else the worker may have
# read everything that was sent, or only what the client received.  The records
# of the last round of a replica that was killed may be in its journal and not
# in its ring: lines with a true value of "last".  KILLED has the times at which
# workers were killed by their process ids, and REQUEST is what the client saw
# of it (undef: not even its id).

sub bounds {
    my ($lines, $request, $killed) = @_;

    my (%slot, @order);

    # one journal is read after the other

    for my $line (sort { $a->{time} <=> $b->{time} } @$lines) {
        my $name = "$line->{engine} $line->{worker} $line->{slot}";

        push @order, $name if !$slot{$name};
        push @{ $slot{$name} }, $line;
    }

    my %sum = map { $_ => [0, 0] } qw/ billed /, @counts;
    my $exact = 1;
    my (@first, $begun);
    my $got = $request ? $request->{texts} || 0 : 0;
    my $ended = $request && $request->{outcome} eq 'ended';

    # an error has no id, so a refused request is not found by its id

    my $refused = $request ? $request->{outcome} eq 'refused'
                           : !grep { $_->{event} eq 'done' } @$lines;

    for my $name (@order) {
        my ($least, $most) = instance($slot{$name});
        my $last = $slot{$name}[-1];
        my $died = $killed->{ $last->{worker} };

        if ($refused
            || defined $died && !$ended && $last->{time} > $died - KNOWN)
        {
            $least = { billed => 0, map { $_ => 0 } @counts };
        }

        for (qw/ billed completion_tokens /) {
            $sum{$_}[0] += $least->{$_};
            $sum{$_}[1] += $most->{$_};
        }

        # the prompt is that of the first replica with a token

        push @first, [ $least, $most ] if $most->{billed} && !$begun;
        $begun ||= $least->{billed};
    }

    for my $count (grep { !/^completion/ } @counts) {
        my @least = ($begun ? () : 0, map { $_->[0]{$count} } @first);

        $sum{$count} = [ min(@least) || 0,
                         max(0, map { $_->[1]{$count} } @first) ];
    }

    # whatever happened, the client pays at least for what it received

    $sum{completion_tokens}[0] = max($got, $sum{completion_tokens}[0]);
    $sum{billed}[0] = 1 if $sum{completion_tokens}[0] > 0;
    $_ = min(1, $_) for @{ $sum{billed} };

    $exact &&= $sum{$_}[0] == $sum{$_}[1] for keys %sum;

    return { %sum, exact => $exact };
}


# What one engine was charged with at least and at most if the worker lived.

sub instance {
    my ($lines) = @_;

    return (charged(grep { !$_->{last} } @$lines), charged(@$lines));
}


# What it was charged with for the records of lines.

sub charged {
    my (@lines) = @_;

    my ($accepted) = grep { $_->{event} eq 'accepted' } @lines;
    my $end = $lines[-1];

    return charge() if !$end;
    return charge($accepted, $end->{sent}) if $end->{event} ne 'done';
    return { billed => $end->{prompt} || $end->{completion} ? 1 : 0,
             prompt_tokens => $end->{prompt}, cached_tokens => $end->{cached},
             cached_host_tokens => $end->{host},
             cached_redis_tokens => $end->{redis},
             completion_tokens => $end->{completion} };
}


# Marks the lines of the last round of each replica: if it was killed, it may
# not have committed their records.

sub mark_last {
    my ($journal) = @_;

    my %round;

    for (map { @$_ } values %$journal) {
        $round{ $_->{engine} } = $_->{round}
            if $_->{round} > ($round{ $_->{engine} } // -1);
    }

    $_->{last} = $_->{round} == $round{ $_->{engine} }
        for map { @$_ } values %$journal;
}


# Without a DONE, the prompt is charged as it was accepted, with the first
# token.

sub charge {
    my ($accepted, $sent) = @_;

    return { billed => 0, map { $_ => 0 } @counts } if !$accepted || !$sent;

    return { billed => 1, prompt_tokens => $accepted->{prompt},
             cached_tokens => $accepted->{cached}, cached_host_tokens => 0,
             cached_redis_tokens => 0, completion_tokens => $sent };
}


# What counts of the ledger cost. A price is a multiple of 10^-12 for a token,
# so a cost is a product.

sub prices {
    my ($ledger) = @_;

    my %tokens = map { $_ => $ledger->{"${_}_tokens"} || 0 }
                 qw/ prompt cached completion /;

    return (cost_miss => ($tokens{prompt} - $tokens{cached}) * $price{miss},
            cost_hit => $tokens{cached} * $price{hit},
            cost_output => $tokens{completion} * $price{output});
}


# compare_counts(LEDGERS, JOURNAL, REQUESTS, KILLED) returns (figures, lines of
# what is wrong).  The bounds of all requests of a tenant are added.  Each count
# of the ledger must be within them.

sub compare_counts {
    my ($ledgers, $journal, $requests, $killed) = @_;

    my %by_id = map { $_->{id} ? ($_->{id} => $_) : () } @$requests;
    my (%tenant, @bad);
    my %f = (requests => scalar @$requests, journal => scalar keys %$journal,
             exact => 0, between => 0);

    $f{outcomes}{ $_->{outcome} }++ for @$requests;
    mark_last($journal);

    for my $id (sort keys %$journal) {
        my ($line) = grep { $_->{tenant} } @{ $journal->{$id} } or next;
        my $b = bounds($journal->{$id}, $by_id{$id}, $killed);
        my $sum = $tenant{ substr $line->{tenant}, 0, 32 } ||= {};

        $f{ $b->{exact} ? 'exact' : 'between' }++;

        for my $name (qw/ billed /, @counts) {
            for (0, 1) {
                $sum->{$name}[$_] += $b->{$name}[$_];
                $f{least}{$name} += $b->{$name}[0] if $_ == 0;
                $f{most}{$name} += $b->{$name}[1] if $_ == 1;
            }
        }
    }

    for my $tenant (sort keys %$ledgers) {
        push @bad, "$tenant is in the ledger and not in the journal"
            if !$tenant{$tenant};
    }

    for my $tenant (sort keys %tenant) {
        for my $name (qw/ billed /, @counts) {
            my $field = $name eq 'billed' ? 'requests' : $name;
            my $has = $ledgers->{$tenant}{$field} || 0;
            my ($least, $most) = @{ $tenant{$tenant}{$name} };

            $f{ledger}{$name} += $has;
            push @bad, "$tenant has $has $field in the ledger; expected "
                       . "$least .. $most"
                if $has < $least || $has > $most;
        }
    }

    for my $r (grep { $_->{outcome} eq 'ended' } @$requests) {
        push @bad, "$r->{id} ended and is not in the journal"
            if !$journal->{ $r->{id} };
    }

    return (\%f, @bad);
}


# The same, and the costs of each tenant in the ledger must be those of its
# counts.

sub compare {
    my ($ledgers, $journal, @more) = @_;

    my ($f, @bad) = compare_counts($ledgers, $journal, @more);

    for my $tenant (sort keys %$ledgers) {
        my %want = prices($ledgers->{$tenant});

        for my $name (sort keys %want) {
            my $has = $ledgers->{$tenant}{$name} || 0;

            $f->{cost} += $has;
            push @bad, "$tenant has $name $has in the ledger; expected "
                       . $want{$name} if $has != $want{$name};
        }
    }

    return ($f, @bad);
}


# Lines with the figures of compare().

sub report {
    my ($f) = @_;

    my %o = %{ $f->{outcomes} };
    my $text = "$f->{requests} requests of clients: "
               . join(', ', map { "$o{$_} $_" } sort keys %o)
               . "\n$f->{journal} requests in the journals: $f->{exact} exact, "
               . "$f->{between} between bounds\n"
               . sprintf "%-22s %14s %14s %14s\n", '', 'least', 'ledger',
                         'most';

    for my $name (qw/ billed /, @counts) {
        $text .= sprintf "%-22s %14s %14s %14s\n",
                         $name eq 'billed' ? 'requests' : $name,
                         map { $f->{$_}{$name} || 0 } qw/ least ledger most /;
    }

    return $text . sprintf "%-22s %14s %14s\n", 'cost, 10^-12', '',
                           $f->{cost} || 0;
}


1;
