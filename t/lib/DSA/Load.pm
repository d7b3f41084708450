package DSA::Load;

# Copyright (C) The nginx-dsa authors
#
# The chat clients of t/soak/run: many connections in one loop.  For each
# request that ends, in whatever way, a line of JSON is written.  DSA::Soak
# decides which outcomes are right.

use strict;
use warnings;

use Errno qw/ EAGAIN EINPROGRESS EINTR /;
use Fcntl qw/ F_GETFL F_SETFL O_NONBLOCK /;
use JSON::PP ();
use List::Util qw/ max min /;
use Socket qw/ AF_INET SOCK_STREAM SOL_SOCKET SO_ERROR SO_RCVBUF
               inet_aton pack_sockaddr_in /;
use Time::HiRes qw/ time /;

use DSA::Wait qw/ slow /;

use constant {
    TICK     => 0.05,       # s, the longest select()
    PAUSE    => 0.15,       # s, a longer iteration of the loop is noted
    SILENCE  => 60,         # s without a byte: the request has timed out
    SLOW_GAP => 0.1,        # s between the reads of a slow reader
    SLOW_LEN => 512,        # bytes of such a read
};

my $json = JSON::PP->new->utf8->canonical;
my $true = JSON::PP::true;
my $false = JSON::PP::false;

# the path of an API, and the body for a text and a number of tokens

my %apis = (
    chat => [ '/v1/chat/completions', sub {
        (max_tokens => $_[1], messages => [ { role => 'user',
                                              content => $_[0] } ]) } ],
    completions => [ '/v1/completions', sub {
        (max_tokens => $_[1], prompt => $_[0]) } ],
    responses => [ '/v1/responses', sub {
        (max_output_tokens => $_[1], input => $_[0]) } ],
    messages => [ '/v1/messages', sub {
        (max_tokens => $_[1], messages => [ { role => 'user',
                                              content => $_[0] } ]) } ],
);


# run(port =>, out => FILE, seed =>, tenants => [ {...} ]) runs until SIGTERM.
# Then no more requests begin, and it returns when the open ones have ended.  A
# tenant has:
#
#   key, model, role    role: flood, light, or talk, which has conversations
#   open                connections at once
#   tokens              [least, most] of an answer
#   think, retry        s between requests, at most; and after a failure
#   stream, leave, slow how many of 100 requests are streamed, are left by the
#                       client, are read slowly
#   within              s after which such a client leaves, at most (2)
#   fresh               that many requests have a key, then there is another one
#   prompt              text in front of that of the request
#   api                 chat, completions, responses or messages (chat)
#
# limit => N ends the run after N requests, as SIGTERM does.

sub run {
    my (%opt) = @_;

    my $stop = 0;

    local $SIG{TERM} = sub { $stop = 1 };
    local $SIG{PIPE} = 'IGNORE';

    srand $opt{seed};

    open my $out, '>', $opt{out} or die "cannot write $opt{out}: $!\n";

    my $self = bless { %opt, log => $out, serial => 0, refused => {} };
    my @clients = map {
        my $tenant = $_;
        map { { tenant => $tenant, wake => time + rand } } 1 .. $tenant->{open}
    } @{ $opt{tenants} };

    my $last = time;

    while (!$stop || grep { $_->{fd} } @clients) {

        $stop = 1 if $opt{limit} && $self->{serial} >= $opt{limit};

        my @more = map { $self->begin($_) }
                   grep { !$_->{fd} && !$stop && time >= $_->{wake} } @clients;

        @clients = grep { !$_->{over} || $_->{fd} } @clients, @more;
        $self->step(\@clients);

        my $now = time;
        $self->note({ lag => [ $last, $now ] }) if $now - $last > slow(PAUSE);
        $last = $now;
    }

    $self->note({ refused => $self->{refused} });

    close $out or die "cannot write $opt{out}: $!\n";

    return;
}


sub note {
    my ($self, $value) = @_;

    print { $self->{log} } $json->encode($value), "\n";

    return;
}


# Begins the next request of a client.  Returns further clients: sometimes a
# second turn of a conversation begins while the first is open.

sub begin {
    my ($self, $c) = @_;

    my $tenant = $c->{tenant};
    my ($least, $most) = @{ $tenant->{tokens} };
    my $tag = sprintf 'turn%d.%d', $self->{number}, ++$self->{serial};

    if ($tenant->{role} eq 'talk' && !$c->{conversation}) {
        $c->{turns} = 4 + int rand 6;
        $self->send($c, '/v1/conversations', { kind => 'create' },
                    { messages => [ { role => 'system',
                                      content => "Story $tag." } ] });
        return;
    }

    my $key = $tenant->{fresh}
              ? "$tenant->{key}-" . int($self->{serial} / $tenant->{fresh})
              : $tenant->{key};
    my $r = { kind => 'chat', key => $key,
              max => $least + int rand $most - $least + 1,
              stream => rand 100 < $tenant->{stream} ? 1 : 0 };

    $r->{leave} = 1 if rand 100 < $tenant->{leave};
    $r->{slow} = 1 if rand 100 < $tenant->{slow};

    my $api = $tenant->{api} || 'chat';
    my ($uri, $fields) = @{ $apis{$api} };
    my %body = (model => $tenant->{model}, ignore_eos => $true,
                stream => $r->{stream} ? $true : $false,
                $fields->(($tenant->{prompt} || '') . "Say $tag, please.",
                          $r->{max}));

    $body{stream_options} = { include_usage => $true }
        if $r->{stream} && ($api eq 'chat' || $api eq 'completions');

    if ($c->{conversation}) {
        $body{conversation} = $r->{conversation} = $c->{conversation};
        $r->{text} = $body{messages}[0]{content};
    }

    $self->send($c, $uri, $r, \%body);

    return if !$c->{conversation} || $c->{once};

    delete $c->{conversation} if --$c->{turns} <= 0;

    return if rand 100 >= 10;

    return { tenant => $tenant, conversation => $r->{conversation},
             once => 1, wake => time };
}


sub send {
    my ($self, $c, $uri, $r, $body) = @_;

    my $tenant = $c->{tenant};
    my $text = $json->encode($body);

    $c->{request} = { key => $tenant->{key}, %$r, role => $tenant->{role},
                      model => $tenant->{model}, sent => time,
                      $tenant->{api} ? (api => $tenant->{api}) : () };
    $c->{in} = '';
    $c->{over} = 1 if $c->{once};
    $c->{connected} = 0;
    $c->{resume} = 0;
    $c->{heard} = time;
    $c->{until} = $r->{leave} ? time + rand($tenant->{within} || 2) : 0;
    $c->{out} = "POST $uri HTTP/1.1\r\nHost: localhost\r\n"
                . "Connection: close\r\n"
                . "Authorization: Bearer $c->{request}{key}\r\n"
                . "Content-Type: application/json\r\n"
                . 'Content-Length: ' . length($text) . "\r\n\r\n$text";

    socket $c->{fd}, AF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
    setsockopt $c->{fd}, SOL_SOCKET, SO_RCVBUF, 2048 if $r->{slow};
    fcntl $c->{fd}, F_SETFL, fcntl($c->{fd}, F_GETFL, 0) | O_NONBLOCK;

    if (!connect($c->{fd}, pack_sockaddr_in($self->{port},
                                            inet_aton('127.0.0.1')))
        && $! != EINPROGRESS)
    {
        $self->finish($c, 'unconnected');
    }

    return;
}


sub step {
    my ($self, $clients) = @_;

    my ($rbits, $wbits) = ('', '');
    my $now = time;

    for my $c (grep { $_->{fd} } @$clients) {
        vec($wbits, fileno $c->{fd}, 1) = 1 if length $c->{out};
        vec($rbits, fileno $c->{fd}, 1) = 1
            if !length $c->{out} && $now >= $c->{resume};
    }

    my $n = select $rbits, $wbits, undef, TICK;

    $rbits = $wbits = '' if $n < 0;

    for my $c (grep { $_->{fd} } @$clients) {
        my $fd = fileno $c->{fd};

        $self->write($c) if vec $wbits, $fd, 1;
        $self->read($c) if $c->{fd} && vec $rbits, $fd, 1;

        next if !$c->{fd};

        if ($c->{until} && time >= $c->{until}) {
            $self->finish($c, 'left');

        } elsif (time - $c->{heard} > slow(SILENCE)) {
            $self->finish($c, 'silent');
        }
    }

    return;
}


sub write {
    my ($self, $c) = @_;

    if (!$c->{connected}) {
        my $error = unpack 'i', getsockopt $c->{fd}, SOL_SOCKET, SO_ERROR;

        return $self->finish($c, 'unconnected') if $error != 0;
        $c->{connected} = 1;
    }

    my $n = syswrite $c->{fd}, $c->{out};

    if (!defined $n) {
        return if $! == EAGAIN || $! == EINTR;
        return $self->finish($c, 'closed');
    }

    substr $c->{out}, 0, $n, '';

    return;
}


sub read {
    my ($self, $c) = @_;

    my $r = $c->{request};
    my $n = sysread $c->{fd}, $c->{in}, $r->{slow} ? SLOW_LEN : 65536,
                    length $c->{in};

    if (!defined $n) {
        return if $! == EAGAIN || $! == EINTR;
        return $self->finish($c, 'closed');
    }

    return $self->finish($c, 'closed') if $n == 0;

    $c->{heard} = time;
    $c->{resume} = time + SLOW_GAP if $r->{slow};

    # the event with the role has an empty content; an event of a token has text

    $r->{first} = time
        if $r->{stream} && !$r->{first}
           && $c->{in} =~ /"(?:content|text|delta)":"[^"]/;

    return;
}


# Records the outcome of a request.  how: closed (by the server), left (by this
# client), silent, unconnected.

sub finish {
    my ($self, $c, $how) = @_;

    my $r = delete $c->{request};
    my $tenant = $c->{tenant};

    close delete $c->{fd};
    $r->{end} = time;
    parse($r, delete $c->{in});

    $r->{outcome} = $r->{status} && $r->{status} != 200 && $r->{body}
                        ? 'refused'
                  : $r->{done} ? 'ended'
                  : $how ne 'closed' ? $how
                  : 'broken';
    delete $r->{body};

    my $ok = $r->{outcome} eq 'ended' || $r->{outcome} eq 'left';

    $c->{wake} = time + ($ok ? rand $tenant->{think}
                             : $tenant->{retry} * (0.5 + rand));

    $c->{conversation} = $r->{id} if $r->{kind} eq 'create' && $r->{done};

    # Most refusals of the flooding tenant are only counted, because there are
    # many.  An engine that died may have begun the answer; then the ledger may
    # have an entry for it.

    $r->{begun} = 1 if ($r->{error} || '') =~ /went away/;

    if ($r->{role} eq 'flood' && $r->{outcome} eq 'refused' && !$r->{begun}) {
        $self->{refused}{"$r->{status} $r->{error}"}++;
        return;
    }

    $self->note($r);

    return;
}


# Parses an answer into status, worker, tenant, id, done, usage, content, claim
# (the member "conversation" at its end), error, texts (events with text).

sub parse {
    my ($r, $text) = @_;

    my ($head, $body) = $text =~ /\A(HTTP.*?)\r\n\r\n(.*)\z/s or return;

    ($r->{status}) = $head =~ m{\AHTTP/1\.\d (\d+)};
    ($r->{worker}) = $head =~ /^X-Worker: (\d+)/mi;
    ($r->{tenant}) = $head =~ /^X-Tenant: (\w+)/mi;
    $body = unchunk($body) if $head =~ /^Transfer-Encoding: chunked/mi;

    if ($head !~ m{^Content-Type: text/event-stream}mi) {
        my $value = eval { $json->decode($body) } or return;

        $r->{body} = 1;
        $r->{id} = $value->{id};
        $r->{error} = $value->{error}{message} if $value->{error};
        $r->{usage} = usage($value);
        $r->{claim} = $value->{conversation};
        $r->{content} = $value->{choices}[0]{message}{content}
            if $r->{conversation};
        $r->{done} = 1 if $r->{status} == 200
                          && ($r->{kind} eq 'create' || $r->{usage});
        return;
    }

    for my $event (split /\n\n/, $body) {
        my $type = $event =~ s/\Aevent: (\S+)\n// ? $1 : '';

        next if $event !~ s/\Adata: //;

        $r->{done} = 1
            if $event eq '[DONE]' || $type eq 'message_stop'
               || $type =~ /^response\.(?:completed|incomplete)$/;

        next if $event eq '[DONE]';

        ($r->{id}) = $event =~ /"id":"([^"]+)"/ if !$r->{id};
        $r->{texts}++ if $event =~ /"(?:content|text|delta)":"[^"]/
                         && ($type !~ /^response\./ || $type =~ /delta$/);

        # there are many events with tokens, so they are matched by a pattern

        next if !$r->{conversation}
                && $event !~ /"error":\{|"usage":\{|"conversation":/;

        my $value = eval { $json->decode($event) } or next;
        my $error = $value->{error} || ($value->{response} || {})->{error};
        my $usage = usage($value) || usage($value->{response} || {});

        $r->{error} = $error->{message} if $error;
        $r->{usage} = $usage if $usage;
        $r->{claim} = $value->{conversation} if $value->{conversation};

        my $delta = ($value->{choices} || [])->[0] or next;
        my $piece = $delta->{delta}{content};

        $r->{content} .= $piece if $r->{conversation} && defined $piece;
    }

    delete $r->{done} if !$r->{usage};

    return;
}


# The usage of an object, with the names of chat completions.

sub usage {
    my ($value) = @_;

    my $u = $value->{usage} or return;

    return { %$u, completion_tokens => $u->{completion_tokens}
                                       // $u->{output_tokens} };
}


sub unchunk {
    my ($text) = @_;

    my $body = '';
    my $at = 0;

    while (substr($text, $at, 16) =~ /\A([0-9a-f]+)\r\n/i) {
        my $len = hex $1;

        last if $len == 0;

        $at += length($1) + 2;
        $body .= substr $text, $at, min($len, max(0, length($text) - $at));
        $at += $len + 2;

        last if $at > length $text;
    }

    return $body;
}


1;
