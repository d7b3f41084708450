package DSA::Redis;

# Copyright (C) The nginx-dsa authors
#
# A Redis client for assertions.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;

use DSA::Wait qw/ slow /;


sub new {
    my ($class, %opt) = @_;

    my $s = IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $opt{port}, Proto => 'tcp',
        Timeout => 5) or die "cannot connect to redis: $@\n";

    binmode $s;

    my $self = bless { socket => $s, in => '' }, $class;

    $self->cmd('AUTH', $opt{password}) if defined $opt{password};

    return $self;
}


# Sends a command and returns its reply: strings and numbers, nil as undef,
# arrays as references.  Dies with the text of an error reply.

sub cmd {
    my ($self, @words) = @_;

    my $text = '*' . @words . "\r\n";
    $text .= '$' . length($_) . "\r\n$_\r\n" for @words;

    local $SIG{PIPE} = 'IGNORE';

    syswrite($self->{socket}, $text) == length $text
        or die "cannot write to redis\n";

    my $reply = $self->reply();

    die "$$reply\n" if ref $reply eq 'SCALAR';

    return $reply;
}


# Returns a hash as a reference.

sub hgetall {
    my ($self, $key) = @_;

    return { @{ $self->cmd('HGETALL', $key) } };
}


# Returns all keys that match, sorted.

sub keys {
    my ($self, $pattern) = @_;

    return sort @{ $self->cmd('KEYS', defined $pattern ? $pattern : '*') };
}


sub fill {
    my ($self) = @_;

    IO::Select->new($self->{socket})->can_read(slow(30))
        or die "timed out waiting for redis\n";

    sysread $self->{socket}, $self->{in}, 65536, length $self->{in}
        or die "redis closed the connection\n";

    return;
}


sub line {
    my ($self) = @_;

    $self->fill() while $self->{in} !~ /\r\n/;
    $self->{in} =~ s/\A(.*?)\r\n//s;

    return $1;
}


sub reply {
    my ($self) = @_;

    my ($type, $rest) = $self->line() =~ /\A(.)(.*)\z/s;

    return $rest if $type eq '+' || $type eq ':';
    return \$rest if $type eq '-';

    if ($type eq '$') {
        return undef if $rest < 0;

        $self->fill() while length $self->{in} < $rest + 2;

        my $value = substr $self->{in}, 0, $rest;
        substr($self->{in}, 0, $rest + 2) = '';

        return $value;
    }

    if ($type eq '*') {
        return undef if $rest < 0;
        return [map { $self->reply() } 1 .. $rest];
    }

    die "not a reply: $type$rest\n";
}


1;
