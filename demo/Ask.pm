# Copyright (C) The nginx-dsa authors
#
# Requests of the demonstration's programs.

package Ask;

use strict;
use warnings;

use Exporter qw/ import /;
use HTTP::Tiny;
use JSON::PP;

our @EXPORT = qw/ completion $json /;

our $json = JSON::PP->new->utf8->canonical;


# A chat completion.

sub completion {
    my ($url, %request) = @_;

    my $r = HTTP::Tiny->new(timeout => 60)->post(
        "$url/v1/chat/completions", {
            headers => { 'Content-Type' => 'application/json' },
            content => $json->encode({ max_tokens => 512, %request }) });

    die "$0: status $r->{status}: $r->{content}\n" if !$r->{success};

    return $json->decode($r->{content});
}


1;
