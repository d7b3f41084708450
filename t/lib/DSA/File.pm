package DSA::File;

# Copyright (C) The nginx-dsa authors
#
# Whole files, and JSON.

use strict;
use warnings;

use Exporter qw/ import /;
use JSON::PP ();

our @EXPORT_OK = qw/ json_encode json_decode read_file write_file /;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;


sub json_encode { $json->encode($_[0]) }
sub json_decode { $json->decode($_[0]) }


sub read_file {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return undef;
    local $/;
    my $text = <$fh>;

    return defined $text ? $text : '';
}


sub write_file {
    my ($path, $text) = @_;

    open my $fh, '>:raw', $path or die "cannot write $path: $!\n";
    print $fh $text;
    close $fh or die "cannot write $path: $!\n";

    return $path;
}


1;
