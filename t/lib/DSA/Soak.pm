package DSA::Soak;

# Copyright (C) The nginx-dsa authors
#
# The checks after t/soak/run.  They compare the answers that clients got
# (DSA::Load), the faults that were injected and the contents of Redis.  Each
# function returns lines that name a request and what was wrong with it.

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ max min sum0 /;

use DSA::Wait qw/ slow /;

our @EXPORT_OK = qw/ check_outcomes check_refusals check_turns check_ledger
                     check_shares /;

use constant {
    GRACE   => 1,       # s between a signal and its effect on clients
    RESTART => 5,       # s until a replica, or Redis, serves again
    SETTLE  => 2,       # s until new workers have their sessions
    LEASE   => 30,      # s for which a turn is still held if Redis did not get
                        # the command that ends it
    MARGIN  => 0.15,    # s, see check_shares()
    SLOTS   => 2,       # free slots that a tenant may wait for
};


# Names a request in messages.

sub name {
    my ($r) = @_;

    return join ' ', map { defined $_ ? $_ : () }
           $r->{id} && $r->{kind} eq 'chat' ? $r->{id} : "a $r->{kind}",
           "of $r->{key} to $r->{model},", $r->{text},
           $r->{conversation} && "in $r->{conversation},",
           sprintf('sent at %.3f, %s at %.3f', $r->{sent}, $r->{outcome},
                   $r->{end}),
           $r->{worker} && "by worker $r->{worker}",
           $r->{error} && "with \"$r->{error}\"";
}


# Returns the faults of these kinds between two times.  Faults of replicas count
# only if the replica serves this model.  A fault has kind, at, to, and spare if
# its replica drained and another one serves the model.

sub faults {
    my ($faults, $from, $to, $model, @kinds) = @_;

    my %is = map { $_ => 1 } @kinds;

    return grep { $is{ $_->{kind} } && $_->{at} <= $to && $_->{to} >= $from
                  && (!defined $_->{model} || !defined $model
                      || $_->{model} eq $model) }
           @$faults;
}


# A request may break only if its worker or its replica was ended, or nginx was
# stopped, in its lifetime.  A stream of the flooding tenant may also be dropped
# from the full queue.  A replica that drains while another one serves its model
# breaks no request, except of the flooding tenant, for which the other one may
# have no room.  Returns also how many broken requests were explained.

sub check_outcomes {
    my ($requests, $faults) = @_;

    my @bad;
    my $explained = 0;
    my $grace = slow(GRACE);

    for my $r (@$requests) {
        my $outcome = $r->{outcome};

        if ($outcome eq 'silent') {
            push @bad, 'stuck: ' . name($r);
            next;
        }

        next if $outcome ne 'broken' && $outcome ne 'unconnected';

        # if the queue is full, requests of the tenant with most of them are
        # dropped

        next if $outcome eq 'broken' && $r->{role} eq 'flood'
                && ($r->{error} // '') =~ /^Too many of your requests/;

        my @why = grep { $r->{role} eq 'flood' || !moves($_, $faults) }
                  grep { $_->{kind} ne 'worker' || !$r->{worker}
                         || $_->{pid} == $r->{worker} }
                  faults($faults, $r->{sent} - $grace, $r->{end} + $grace,
                         $r->{model}, $outcome eq 'unconnected' ? 'stop'
                         : qw/ worker replica stop /);

        @why ? $explained++ : push @bad, 'broken without a cause: ' . name($r);
    }

    return ($explained, @bad);
}


# Whether the answers of a replica that drains move to another one, which was
# not ended itself, and to which each worker has a session.

sub moves {
    my ($fault, $faults) = @_;

    return 0 if !$fault->{spare};

    my ($from, $to) = ($fault->{at}, $fault->{to} + slow(GRACE));

    return 1 == faults($faults, $from - slow(RESTART), $to, $fault->{model},
                       'replica')
           && !faults($faults, $from - slow(SETTLE), $to, undef,
                      qw/ worker stop reload upgrade /);
}


# The flooding tenant may be refused at any time.  Another tenant may be refused
# only while no replica of its model serves, while a worker has no session yet,
# or, with a conversation, while Redis fails or another turn of it runs.

sub check_refusals {
    my ($requests, $faults) = @_;

    my (@bad, %turns);

    push @{ $turns{ $_->{conversation} } }, $_
        for grep { $_->{conversation} && ($_->{status} || 0) != 409 }
                 @$requests;

    for my $r (grep { $_->{outcome} eq 'refused' } @$requests) {

        if ($r->{status} == 409) {
            push @bad, 'no other turn runs: ' . name($r)
                if !held($r, $turns{ $r->{conversation} || '' }, $faults);
            next;
        }

        if (!grep { $r->{status} == $_ } 429, 503, 507) {
            push @bad, "status $r->{status}: " . name($r);
            next;
        }

        next if $r->{role} eq 'flood';

        my ($from, $to) = ($r->{sent}, $r->{end} + slow(GRACE));

        # Redis is nearly full: the workers read that every five seconds

        next if $r->{status} == 507 && $r->{role} eq 'talk'
            && faults($faults, $from - slow(RESTART), $to, '', 'redis');

        next if $r->{status} == 503 && (
            faults($faults, $from - slow(RESTART), $to, $r->{model},
                   'replica')
            || faults($faults, $from - slow(SETTLE), $to, $r->{model},
                      qw/ worker stop reload upgrade /)
            || $r->{role} eq 'talk'
               && faults($faults, $from - slow(RESTART), $to, '', 'redis'));

        push @bad, "refused without a cause: $r->{status}, " . name($r);
    }

    return @bad;
}


# Whether a turn may hold the conversation of a request: one that is open, that
# has just ended, or whose worker or Redis failed before it could release it.

sub held {
    my ($r, $turns, $faults) = @_;

    my $kept = faults($faults, $r->{sent} - LEASE, $r->{end}, '',
                      qw/ worker stop redis /);

    return grep { $_->{sent} <= $r->{end}
                  && $_->{end} + ($kept ? LEASE : slow(GRACE)) >= $r->{sent} }
                @{ $turns || [] };
}


# Checks the turns of conversations.  conversations: id => { status, json } of
# GET.

sub check_turns {
    my ($requests, $conversations) = @_;

    my (@bad, %turns);

    push @{ $turns{ $_->{conversation} } }, $_
        for grep { $_->{conversation} } @$requests;

    for my $id (sort keys %turns) {
        my $got = $conversations->{$id};

        if (!$got || $got->{status} != 200) {
            push @bad, "$id cannot be read: " . ($got ? $got->{status} : '');
            next;
        }

        push @bad, map { "$id: $_" } check_story($turns{$id}, $got->{json});
    }

    return @bad;
}


sub check_story {
    my ($turns, $got) = @_;

    my (@bad, %at, @stored);
    my $messages = $got->{messages};
    my @user = grep { $messages->[$_]{role} eq 'user' } 0 .. $#$messages;

    for my $n (0 .. $#user) {
        push @{ $at{ $messages->[ $user[$n] ]{content} } }, $n;
    }

    push @bad, "version is $got->{version} after " . @user . ' turns'
        if $got->{version} != 1 + @user;

    for my $r (@$turns) {
        my $found = @{ $at{ $r->{text} } || [] };
        my $claim = $r->{claim};

        push @bad, "stored $found times: " . name($r) if $found > 1;

        next if $r->{outcome} ne 'ended';

        # an answer without a statement about its turn means that it is stored

        $claim ||= { stored => 1 };

        if (!$claim->{stored}) {
            push @bad, "stored although reported as not stored "
                       . "($claim->{reason}): " . name($r)
                if $found && $claim->{reason} !~ /did not confirm/;
            next;
        }

        if (!$found) {
            push @bad, 'lost: ' . name($r);
            next;
        }

        my $n = $at{ $r->{text} }[0];
        my $answer = $messages->[ $user[$n] + 1 ] || {};

        push @bad, 'stored with another answer: ' . name($r)
            if ($answer->{role} || '') ne 'assistant'
               || $answer->{content} ne $r->{content};
        push @bad, "version $claim->{version} is turn $n: " . name($r)
            if defined $claim->{version} && $claim->{version} != $n + 2;

        $stored[$n] = $r;
    }

    # a turn builds on the ones that were stored before it was sent: its prompt
    # is longer, and it comes later in the conversation

    for my $r (grep { $_->{outcome} eq 'ended' } @$turns) {
        my @before = grep { $_ && $_->{end} < $r->{sent} } @stored;

        push @bad, 'answered without ' . name($_) . ': ' . name($r)
            for grep { $_->{usage}{prompt_tokens}
                       >= $r->{usage}{prompt_tokens} } @before;
    }

    for my $n (0 .. $#stored) {
        my $r = $stored[$n] or next;

        push @bad, 'stored before ' . name($_) . ': ' . name($r)
            for grep { $_ && $_->{end} < $r->{sent} }
                @stored[$n + 1 .. $#stored];

        push @bad, 'answered without the turn before it: ' . name($r)
            if $n > 0 && $stored[$n - 1]
               && $r->{usage}{prompt_tokens}
                  <= $stored[$n - 1]{usage}{prompt_tokens};
    }

    return @bad;
}


# The ledger must have each request that ended.  It may also have requests that
# an engine may have begun, but no others.  ledgers is tenant => { field =>
# count } over all days.  Models with a journal are left out: DSA::Torture
# compares them.

sub check_ledger {
    my ($requests, $ledgers, @journaled) = @_;

    my (@bad, %least, %most, %tenant);
    my %left_out = map { $_ => 1 } @journaled;

    for my $r (@$requests) {
        next if $r->{kind} ne 'chat' || $r->{outcome} eq 'unconnected'
                || $r->{outcome} eq 'refused' && !$r->{begun}
                || $left_out{ $r->{model} };

        my $key = "$r->{key}|$r->{model}";

        $most{$key}{requests}++;
        $most{$key}{completion_tokens} += $r->{max};

        next if $r->{outcome} ne 'ended';

        $least{$key}{requests}++;
        $least{$key}{completion_tokens} += $r->{usage}{completion_tokens};
        $tenant{$key} ||= $r->{tenant};
    }

    for my $key (sort keys %least) {
        my ($model) = $key =~ /\|(.*)/;
        my $ledger = $ledgers->{ $tenant{$key} } || {};

        for my $name (qw/ requests completion_tokens /) {
            my $has = $ledger->{"$model|$name"} || 0;

            push @bad, "$key has $has $name in the ledger; expected "
                       . "$least{$key}{$name} .. $most{$key}{$name}"
                if $has < $least{$key}{$name} || $has > $most{$key}{$name};
        }
    }

    return @bad;
}


# Counts, for each request of a tenant with few requests, how many requests of
# other tenants began on the same replica while it waited.  One client process
# sees all tokens of a replica, so their times are comparable.  The time at
# which a request is queued is not known.  It is assumed to be MARGIN after the
# request was sent, because a replica that paces its steps accepts it within a
# step, and the first tokens of earlier requests may need as long to reach their
# clients.  A request that begins in the same step does not count as begun
# before.  A request that was ended before its first token counts, too, up to
# its end.
#
# Not counted are requests whose replica was ended, requests that were sent when
# workers were new and perhaps had no session yet, and requests during which the
# client process was not scheduled for longer than MARGIN.
#
# Returns (counts, seconds of the first tokens, lines).

sub check_shares {
    my ($requests, $faults, $lags, $models, $step) = @_;

    my (@counts, @waits, @bad);
    my $margin = slow(MARGIN);

    for my $model (@$models) {
        my @began = sort { $a->{first} <=> $b->{first} }
                    grep { $_->{model} eq $model && $_->{first}
                           && !$_->{slow} } @$requests;
        my $low = 0;

        for my $r (sort { $a->{sent} <=> $b->{sent} }
                   grep { $_->{model} eq $model && $_->{role} eq 'light'
                          && $_->{stream} && $_->{outcome} ne 'refused' }
                   @$requests)
        {
            my $from = $r->{sent} + $margin;
            my $end = $r->{first} || $r->{end};

            next if faults($faults, $r->{sent} - 2 * slow(GRACE),
                           $end + $step, $model, qw/ replica stop /)
                 || faults($faults, $r->{sent} - slow(GRACE), $from, $model,
                           qw/ worker reload upgrade /)
                 || grep { $_->[0] <= $end && $_->[1] >= $r->{sent} - $margin }
                    @$lags;

            $low++ while $low < @began && $began[$low]{first} <= $from;

            my $n = 0;
            my $i = $low;

            for ( ; $i < @began; $i++) {
                last if $began[$i]{first} >= $end - $step / 2;
                $n++ if $began[$i]{key} ne $r->{key};
            }

            push @counts, $n;
            push @waits, $end - $r->{sent};
            push @bad, "$n requests of others began before " . name($r)
                       . sprintf(', which waited %.3f s', $end - $r->{sent})
                if $n > SLOTS;
        }
    }

    return (\@counts, \@waits, @bad);
}


1;
