package DSA::Tensors;

# Copyright (C) The nginx-dsa authors
#
# Reads safetensors files and measures the distance between tensors.

use strict;
use warnings;

use Exporter qw/ import /;
use JSON::PP qw/ decode_json /;
use List::Util qw/ min /;
use Test::More;

use DSA::Test;

our @EXPORT = qw/ tensors write_tensors distances quantile at_most
                  differing /;

my %bytes = (F32 => 'f<', I32 => 'l<');



# Reads a safetensors file: tensor name => list of rows.

sub tensors {
    my ($file) = @_;

    my $text = read_file($file);
    my $n = unpack 'Q<', $text;
    my $head = decode_json(substr $text, 8, $n);
    my %out;

    for my $name (grep { $_ ne '__metadata__' } keys %$head) {
        my ($dtype, $shape, $at) =
            @{$head->{$name}}{qw(dtype shape data_offsets)};
        my $width = $shape->[1] // 1;

        $out{$name} = [ map { [ unpack "$bytes{$dtype}*",
            substr $text, 8 + $n + $at->[0] + $_ * $width * 4, $width * 4 ] }
            0 .. $shape->[0] - 1 ];
    }

    return \%out;
}


sub write_tensors {
    my ($file, %tensor) = @_;

    my (%head, $body);
    $body = '';

    for my $name (sort keys %tensor) {
        my ($dtype, $shape, @values) = @{$tensor{$name}};
        my $start = length $body;

        $body .= pack "$bytes{$dtype}*", @values;
        $head{$name} = { dtype => $dtype, shape => $shape,
                         data_offsets => [ $start, length $body ] };
    }

    my $head = JSON::PP->new->canonical->encode(\%head);
    $head .= ' ' x (-length($head) % 8);

    write_file($file, pack('Q<', length $head) . $head . $body);
}


# Returns for each row the norm of the difference, divided by the norm.

sub distances {
    my ($got, $want) = @_;

    die 'rows: ' . @$got . ' and ' . @$want . "\n" if @$got != @$want;

    return map {
        my ($a, $b) = ($got->[$_], $want->[$_]);
        my ($d, $n) = (0, 0);

        for my $i (0 .. $#$b) {
            $d += ($a->[$i] - $b->[$i]) ** 2;
            $n += $b->[$i] ** 2;
        }

        sqrt($d / $n);
    } 0 .. $#$want;
}


sub quantile {
    my ($q, @values) = @_;

    @values = sort { $a <=> $b } @values;

    return $values[min($#values, int($q * @values))];
}


sub at_most {
    my ($value, $bound, $name) = @_;

    ok($value <= $bound, $name) or diag("$value is not at most $bound");
}


# Returns the indices of the rows that have different sets of numbers.  -1 means
# no number.

sub differing {
    my ($got, $want) = @_;

    return grep {
        my $have = join ' ', sort { $a <=> $b } grep { $_ >= 0 } @{$got->[$_]};
        my $need = join ' ', sort { $a <=> $b } grep { $_ >= 0 } @{$want->[$_]};
        $have ne $need;
    } 0 .. $#$want;
}


1;
