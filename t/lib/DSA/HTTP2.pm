package DSA::HTTP2;

# Copyright (C) The nginx-dsa authors
#
# The part of HTTP/2 (RFC 9113) that the tests need: requests with literal
# header fields, several streams on a connection, windows that the test
# controls, resets.  Of the answer's headers only :status is parsed.  nginx
# sends it first, as an entry of HPACK's static table or as a literal with such
# a name (RFC 7541, A).

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use Socket qw/ SOL_SOCKET SO_RCVBUF inet_aton pack_sockaddr_in /;
use Time::HiRes qw/ time /;

use DSA::Wait qw/ slow /;


my %status = (8 => 200, 9 => 204, 10 => 206, 11 => 304, 12 => 400, 13 => 404,
              14 => 500);


# port, window: of each stream (65535), grant: 0: windows are not enlarged,
# rcvbuf: bytes of the socket's buffer.

sub new {
    my ($class, %opt) = @_;

    my $s = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!\n";

    # the size must be set before the connection is made

    setsockopt $s, SOL_SOCKET, SO_RCVBUF, $opt{rcvbuf} if $opt{rcvbuf};

    connect $s, pack_sockaddr_in($opt{port}, inet_aton('127.0.0.1'))
        or die "cannot connect: $!\n";
    binmode $s;

    my $self = bless { socket => $s, in => '', next => 1, streams => {},
                       grant => $opt{grant} // 1 }, $class;

    $self->write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    $self->frame(4, 0, 0, pack 'nN', 4, $opt{window} // 65535);

    # the connection's window is so large that it never stops a stream

    $self->frame(8, 0, 0, pack 'N', 0x7fffffff - 65535);

    return $self;
}


sub write {
    my ($self, $bytes) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (length $bytes) {
        my $n = syswrite $self->{socket}, $bytes;
        return if !defined $n;
        substr($bytes, 0, $n) = '';
    }
}


sub frame {
    my ($self, $type, $flags, $stream, $payload) = @_;

    $self->write(substr(pack('N', length $payload), 1)
                 . pack('CCN', $type, $flags, $stream) . $payload);
}


sub string {
    my ($s) = @_;

    my $n = length $s;

    return pack('C', $n) . $s if $n < 127;

    # RFC 7541, 5.1: the rest of the number, seven bits per byte

    my $out = pack 'C', 127;

    for ($n -= 127; $n >= 128; $n >>= 7) {
        $out .= pack 'C', $n & 127 | 128;
    }

    return $out . pack('C', $n) . $s;
}


# Opens a stream with these header fields added ([name, value, ...]) and returns
# its number.  A body is sent as JSON.

sub request {
    my ($self, $method, $uri, $body, $headers) = @_;

    my @more = @{ $headers || [] };

    my $id = $self->{next};
    $self->{next} += 2;
    $self->{streams}{$id} = { data => '', status => 0 };

    my $block = join '', map { "\0" . string($_->[0]) . string($_->[1]) }
        [':method', $method], [':scheme', 'http'], [':path', $uri],
        [':authority', 'localhost'],
        defined $body ? (['content-type', 'application/json'],
                         ['content-length', length $body]) : (),
        map { [@more[2 * $_, 2 * $_ + 1]] } 0 .. @more / 2 - 1;

    $self->frame(1, defined $body ? 4 : 5, $id, $block);

    if (defined $body) {
        while (length $body > 16384) {
            $self->frame(0, 0, $id, substr $body, 0, 16384, '');
        }

        $self->frame(0, 1, $id, $body);
    }

    return $id;
}


sub window { $_[0]->frame(8, 0, $_[1], pack 'N', $_[2]) }
sub reset { $_[0]->frame(3, 0, $_[1], pack 'N', 8) }
sub close { close $_[0]{socket} }
sub data { $_[0]{streams}{$_[1]}{data} }
sub status { $_[0]{streams}{$_[1]}{status} }
sub ended { $_[0]{streams}{$_[1]}{ended} }
sub goaway { $_[0]{goaway} }


# Reads frames until the sub returns true, or dies after so many seconds.

sub until {
    my ($self, $done, $seconds) = @_;

    my $end = time + slow($seconds || 30);

    while (!$done->()) {
        while (length $self->{in} >= 9) {
            my ($high, $low, $type, $flags, $id) = unpack 'CnCCN', $self->{in};
            my $len = $high << 16 | $low;

            last if length $self->{in} < 9 + $len;

            my $payload = substr $self->{in}, 9, $len;
            substr($self->{in}, 0, 9 + $len) = '';
            $self->handle($type, $flags, $id & 0x7fffffff, $payload);
        }

        return if $done->();

        my $left = $end - time;
        die "HTTP/2: timed out\n"
            if $left <= 0
               || !IO::Select->new($self->{socket})->can_read($left);

        my $n = sysread $self->{socket}, $self->{in}, 65536,
                        length $self->{in};
        die "HTTP/2: the connection was closed\n" if !$n;
    }
}


sub handle {
    my ($self, $type, $flags, $id, $payload) = @_;

    my $stream = $self->{streams}{$id} || {};

    if ($type == 0) {
        $stream->{data} .= $payload;

        $self->window($id, length $payload)
            if $self->{grant} && length $payload && !($flags & 1);

    } elsif ($type == 1) {
        my ($first) = unpack 'C', $payload;
        $first = unpack 'C', substr $payload, 1 if ($first & 0xe0) == 0x20;

        if ($first & 0x80) {
            $stream->{status} = $status{$first & 0x7f};

        } else {
            my ($n) = unpack 'x C', $payload;
            $stream->{status} = $n & 0x80 ? 'huffman'
                                          : substr $payload, 2, $n;
        }

    } elsif ($type == 3) {
        $stream->{ended} = 'reset';

    } elsif ($type == 4 && !($flags & 1)) {
        $self->frame(4, 1, 0, '');

    } elsif ($type == 7) {
        $self->{goaway} = 1;
    }

    $stream->{ended} ||= 'end' if $type <= 1 && $flags & 1;
}


1;
