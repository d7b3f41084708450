package DSA::HTTP;

# Copyright (C) The nginx-dsa authors
#
# An HTTP/1 client on a plain socket, so that a test can send a request byte by
# byte, read events as they arrive, stop reading, half-close or reset.
#
# Every read has a deadline, after which it dies.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use Socket qw/ SOL_SOCKET SO_LINGER SO_RCVBUF IPPROTO_TCP TCP_NODELAY
               SHUT_WR inet_aton pack_sockaddr_in /;
use Time::HiRes qw/ time /;

use DSA::Wait qw/ slow /;


# port, timeout (seconds for a read, 30), rcvbuf (bytes).

sub new {
    my ($class, %opt) = @_;

    my $address = $opt{host} || '127.0.0.1';
    my $s = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!\n";

    # the size must be set before the connection is made

    setsockopt $s, SOL_SOCKET, SO_RCVBUF, $opt{rcvbuf} if $opt{rcvbuf};

    CORE::connect $s, pack_sockaddr_in($opt{port}, inet_aton($address))
        or die "cannot connect to $address:$opt{port}: $!\n";

    setsockopt $s, IPPROTO_TCP, TCP_NODELAY, 1;
    binmode $s;

    return bless { socket => $s, in => '', timeout => $opt{timeout} || 30 },
           $class;
}


sub socket { $_[0]{socket} }


# Sends all bytes, or dies.  Returns how many were sent before a reset.

sub send {
    my ($self, $bytes) = @_;

    my $sent = 0;

    local $SIG{PIPE} = 'IGNORE';

    while ($sent < length $bytes) {
        IO::Select->new($self->{socket})->can_write(slow($self->{timeout}))
            or die "cannot send: timed out\n";

        my $n = syswrite $self->{socket}, $bytes, length($bytes) - $sent,
                         $sent;
        return $sent if !defined $n;
        $sent += $n;
    }

    return $sent;
}


# Options: body, type (application/json by default if there is a body; undef: no
# such header), version ('1.1'), headers ([name, value, ...]), close (1: with
# Connection: close), chunked (a list of pieces instead of body).

sub format_request {
    my ($self, $method, $uri, %opt) = @_;

    my $version = $opt{version} || '1.1';
    my @headers = (Host => 'localhost', @{ $opt{headers} || [] });
    my $body = '';
    my $type = exists $opt{type} ? $opt{type}
               : $opt{chunked} || defined $opt{body} ? 'application/json'
               : undef;

    push @headers, 'Content-Type', $type if defined $type;
    push @headers, 'Connection', 'close' if $opt{close};

    if ($opt{chunked}) {
        push @headers, 'Transfer-Encoding', 'chunked';
        $body = join '', map { sprintf "%x\r\n%s\r\n", length, $_ }
                         grep { length } @{ $opt{chunked} };
        $body .= "0\r\n\r\n";

    } elsif (defined $opt{body}) {
        $body = $opt{body};
        push @headers, 'Content-Length', length $body;
    }

    my $text = "$method $uri HTTP/$version\r\n";

    while (my ($name, $value) = splice @headers, 0, 2) {
        $text .= "$name: $value\r\n";
    }

    return "$text\r\n$body";
}


sub send_request {
    my ($self, $method, $uri, %opt) = @_;

    $self->{method} = $method;

    return $self->send($self->format_request($method, $uri, %opt));
}


# Sends a request and returns its answer: { status, headers, body }.

sub request {
    my ($self, $method, $uri, %opt) = @_;

    $self->send_request($method, $uri, %opt);

    return $self->response();
}


sub response {
    my ($self) = @_;

    $self->read_head();
    my $body = $self->read_body();

    return { status => $self->{status}, headers => $self->{headers},
             head => $self->{head}, body => $body,
             json => scalar eval { JSON::PP->new->utf8->allow_nonref
                                           ->decode($body) } };
}


# Reads more bytes into the buffer.  Returns false at the end of the stream.

sub fill {
    my ($self, $timeout) = @_;

    $timeout = $self->{timeout} if !defined $timeout;

    return 0 if $self->{eof};

    IO::Select->new($self->{socket})->can_read(slow($timeout))
        or die "nothing to read within $timeout s\n";

    my $n = sysread $self->{socket}, $self->{in}, 65536, length $self->{in};

    if (!$n) {
        $self->{eof} = 1;
        $self->{reset} = "$!" if !defined $n;
    }

    return $n ? 1 : 0;
}


sub status { $_[0]{status} }
sub header { $_[0]{headers}{ lc $_[1] } }


sub read_head {
    my ($self, $timeout) = @_;

    $self->{$_} = undef for qw/ status headers head left chunk /;

    my $end;

    while (($end = index $self->{in}, "\r\n\r\n") == -1) {
        if (!$self->fill($timeout)) {
            $self->{status} = 0;
            $self->{headers} = {};
            return 0;
        }
    }

    $self->{head} = substr $self->{in}, 0, $end + 2;
    substr($self->{in}, 0, $end + 4) = '';

    my ($line, @lines) = split /\r\n/, $self->{head};

    ($self->{status}) = $line =~ m{^HTTP/1\.[01] (\d{3})}
        or die "not a status line: $line\n";

    $self->{headers} = { map { /^([^:]+):\s*(.*)$/ ? (lc $1 => $2) : () }
                         @lines };
    my $h = $self->{headers};

    if ($self->{status} == 204 || $self->{status} == 304
        || ($self->{method} || '') eq 'HEAD')
    {
        $self->{left} = 0;

    } elsif (($h->{'transfer-encoding'} || '') eq 'chunked') {
        $self->{chunk} = 1;

    } elsif (defined $h->{'content-length'}) {
        $self->{left} = $h->{'content-length'};
    }

    delete @$self{qw/ data ended truncated /};

    return $self->{status};
}


# Returns the next piece of the body, or undef at its end.  truncated() is true
# if the end came too early.

sub read_piece {
    my ($self, $timeout) = @_;

    return undef if $self->{ended};

    if ($self->{chunk}) {
        my $end;

        while (($end = index $self->{in}, "\r\n") == -1) {
            if (!$self->fill($timeout)) {
                @$self{qw/ ended truncated /} = (1, 1);
                return undef;
            }
        }

        my ($digits) = $self->{in} =~ /\A([0-9a-fA-F]+)\r\n/
            or die "not a chunk's size: " . substr($self->{in}, 0, 40) . "\n";
        my ($start, $size) = ($end + 2, hex $digits);

        while (length $self->{in} < $start + $size + 2) {
            if (!$self->fill($timeout)) {
                @$self{qw/ ended truncated /} = (1, 1);
                return undef;
            }
        }

        my $piece = substr $self->{in}, $start, $size;
        substr($self->{in}, 0, $start + $size + 2) = '';

        if ($size == 0) {
            $self->{ended} = 1;
            return undef;
        }

        return $piece;
    }

    if (defined $self->{left}) {
        if ($self->{left} == 0) {
            $self->{ended} = 1;
            return undef;
        }

        if ($self->{in} eq '' && !$self->fill($timeout)) {
            @$self{qw/ ended truncated /} = (1, 1);
            return undef;
        }

        my $piece = substr $self->{in}, 0, $self->{left}, '';
        $self->{left} -= length $piece;

        return $piece;
    }

    if ($self->{in} eq '' && !$self->fill($timeout)) {
        $self->{ended} = 1;
        return undef;
    }

    return substr $self->{in}, 0, length $self->{in}, '';
}


sub read_body {
    my ($self, $timeout) = @_;

    my $body = '';

    while (defined(my $piece = $self->read_piece($timeout))) {
        $body .= $piece;
    }

    return $body;
}


sub truncated { $_[0]{truncated} ? 1 : 0 }


# Returns the next event of the stream as { data, json, event, comment, at }, or
# undef at the end.  data is the text after "data: ".  An event that is a
# comment has only comment.  at is the time when it was read.

sub next_event {
    my ($self, $timeout) = @_;

    $self->{data} = '' if !defined $self->{data};

    my $text;

    for ( ;; ) {
        if ($self->{data} =~ s/\A(.*?)\n\n//s) {
            $text = $1;
            last;
        }

        my $piece = $self->read_piece($timeout);

        return undef if !defined $piece;

        $self->{data} .= $piece;
    }

    my $e = { at => time, raw => "$text\n\n" };

    for (split /\n/, $text) {
        if (/^: ?(.*)/) {
            $e->{comment} = $1;
        } elsif (/^(\w+): ?(.*)/) {
            $e->{$1} = defined $e->{$1} ? "$e->{$1}\n$2" : $2;
        }
    }

    $e->{json} = eval { JSON::PP->new->utf8->decode($e->{data}) }
        if defined $e->{data} && $e->{data} =~ /^\{/;

    return $e;
}


# Returns all events to the end of the stream.

sub events {
    my ($self, $timeout) = @_;

    my @events;

    while (my $e = $self->next_event($timeout)) {
        push @events, $e;
    }

    return @events;
}


# Joins the events of a chat: { content, reasoning_content, role, finish_reason,
# usage, done, chunks, errors, tool_calls }.

sub gather {
    my ($class, @events) = @_;

    my $m = { content => '', reasoning_content => '', done => 0, chunks => 0,
              errors => [], tool_calls => [] };

    for my $e (@events) {
        next if !defined $e->{data};

        if ($e->{data} eq '[DONE]') {
            $m->{done}++;
            next;
        }

        my $j = $e->{json};

        if (!$j || $j->{error}) {
            push @{ $m->{errors} }, $j ? $j->{error} : $e->{data};
            next;
        }

        $m->{chunks}++;
        $m->{id} = $j->{id};
        $m->{usage} = $j->{usage} if $j->{usage};

        my $c = $j->{choices}[0] or next;
        my $d = $c->{delta};

        $m->{role} = $d->{role} if defined $d->{role};
        $m->{$_} .= $d->{$_}
            for grep { defined $d->{$_} } qw/ content reasoning_content /;
        $m->{finish_reason} = $c->{finish_reason}
            if defined $c->{finish_reason};

        for my $t (@{ $d->{tool_calls} || [] }) {
            my $call = $m->{tool_calls}[ $t->{index} ] ||= { arguments => '' };

            $call->{id} = $t->{id} if defined $t->{id};
            $call->{name} = $t->{function}{name}
                if defined $t->{function}{name};
            $call->{arguments} .= $t->{function}{arguments}
                if defined $t->{function}{arguments};
        }
    }

    return $m;
}


sub half_close { shutdown $_[0]{socket}, SHUT_WR }


sub close {
    my ($self) = @_;

    CORE::close $self->{socket};

    return;
}


# Closes with a RST.

sub reset {
    my ($self) = @_;

    setsockopt $self->{socket}, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0;
    CORE::close $self->{socket};

    return;
}


# Returns true if the other end closes within so many seconds.

sub closed_within {
    my ($self, $seconds) = @_;

    my $end = time + slow($seconds);

    while (!$self->{eof}) {
        my $left = $end - time;

        return 0 if $left <= 0;

        IO::Select->new($self->{socket})->can_read($left) or return 0;
        $self->fill();
    }

    return 1;
}


1;
