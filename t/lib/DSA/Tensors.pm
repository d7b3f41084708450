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

our @EXPORT = qw/ tensors write_tensors sums distances quantile at_most
                  differing /;

my %bytes = (F32 => 4, I32 => 4, BF16 => 2);
my %pack = (F32 => 'f<*', I32 => 'l<*');
my @signs;


sub from_bytes {
    my ($dtype, $data) = @_;

    return unpack $pack{$dtype}, $data if $dtype ne 'BF16';

    # BF16 is the upper half of float32

    return unpack 'f<*', pack 'L<*', map { $_ << 16 } unpack 'v*', $data;
}


# To BF16 it rounds to nearest even.

sub to_bytes {
    my ($dtype, @values) = @_;

    return pack $pack{$dtype}, @values if $dtype ne 'BF16';

    return pack 'v*', map { ($_ + 0x7fff + ($_ >> 16 & 1)) >> 16 }
                      unpack 'L<*', pack 'f<*', @values;
}


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
        my $size = ($shape->[1] // 1) * $bytes{$dtype};

        $out{$name} = [ map { [ from_bytes($dtype,
            substr $text, 8 + $n + $at->[0] + $_ * $size, $size) ] }
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

        $body .= to_bytes($dtype, @values);
        $head{$name} = { dtype => $dtype, shape => $shape,
                         data_offsets => [ $start, length $body ] };
    }

    my $head = JSON::PP->new->canonical->encode(\%head);
    $head .= ' ' x (-length($head) % 8);

    write_file($file, pack('Q<', length $head) . $head . $body);
}


# Returns for each row 32 sums: sum I is of the values I, I + 32, I + 64 and so
# on, each with a sign that is drawn.  Every value counts, and sums are as far
# apart as the rows: the expected square of the distance is the same, and rows
# have sums at less than half of their distance once in 200,000.

sub sums {
    my ($rows) = @_;

    my $width = @{$rows->[0]};
    my $x = @signs ? $signs[-1] : 0;

    while (@signs < $width) {
        $x = ($x * 1664525 + 1013904223) & 0xffffffff;
        push @signs, $x;
    }

    my @negative = map { $_ >> 31 } @signs[0 .. $width - 1];

    return [ map {
        my $row = $_;
        my @sum = (0) x 32;

        for my $i (0 .. $width - 1) {
            $sum[$i % 32] += $negative[$i] ? -$row->[$i] : $row->[$i];
        }

        \@sum;
    } @$rows ];
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
