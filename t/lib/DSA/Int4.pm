package DSA::Int4;

# Copyright (C) The nginx-dsa authors
#
# Checkpoints with INT4 experts, made and read by the definition of the format:
# a byte has two numbers -8 .. 7 in two's complement, the even column in its low
# half, and 128 columns of a row have a scale in BF16 or F32.

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ max min /;

use DSA::Golden;
use DSA::Tensors;

our @EXPORT = qw/ is_expert int4_numbers int4_bytes int4_config int4_twins
                  int4_in_f32 int4_of_script fp8_numbers /;

my @value = DSA::Golden::e4m3();


sub is_expert {
    return $_[0] =~ /\.mlp\.experts\.\d+\.(?:gate|up|down)_proj\.weight$/;
}


sub int4_config {
    my (%fields) = @_;

    return { quant_method => 'w4afp8', scale_fmt => 'ue8m0',
             moe_activation_scheme => 'dynamic', %fields };
}


# The numbers of a matrix, without scales.

sub int4_numbers {
    my ($bytes) = @_;

    return map { my $n = $_;
                 map { $_ < 8 ? $_ : $_ - 16 } $n & 15, $n >> 4 }
           unpack 'C*', $bytes;
}


sub int4_bytes {
    my (@numbers) = @_;

    return pack 'C*', map { ($numbers[2 * $_] & 15)
                            | ($numbers[2 * $_ + 1] & 15) << 4 }
                      0 .. @numbers / 2 - 1;
}


# The weights of an FP8 matrix of raw_tensors().

sub fp8_numbers {
    my ($raw, $name) = @_;

    my ($dtype, $shape, $codes) = @{$raw->{$name}};
    my @scale = unpack 'f<*', $raw->{"${name}_scale_inv"}[2];
    my ($rows, $cols) = @$shape;
    my $blocks = int(($cols + 127) / 128);
    my @w = @value[unpack 'C*', $codes];

    for my $i (0 .. $#w) {
        my ($row, $col) = (int($i / $cols), $i % $cols);
        $w[$i] *= $scale[int($row / 128) * $blocks + int($col / 128)];
    }

    return @w;
}


# Makes two models from the FP8 model in $from, which are the same one: experts
# have numbers that both formats have, with scales that are equal for 128 x 128
# weights.  edit->(tensors) may change the one in INT4; $fp8 may be undef.

my %twins;
my %other_name = (gate_proj => 'w1', down_proj => 'w2', up_proj => 'w3');

sub int4_twins {
    my ($from, $fp8, $int4, $config, $edit) = @_;

    my ($one, $other) = @{$twins{$from} //= make_twins($from)};

    # the tensors of the copy are others

    my %copy = map { my ($dtype, $shape, $data) = @{$other->{$_}};
                     $_ => [ $dtype, [ @$shape ], $data ] } keys %$other;

    $edit->(\%copy) if $edit;

    DSA::Golden::raw_model($from, $fp8, $one,
                           { quant_method => 'fp8', fmt => 'e4m3',
                             activation_scheme => 'dynamic',
                             scale_fmt => 'ue8m0',
                             weight_block_size => [ 128, 128 ] }) if $fp8;
    DSA::Golden::raw_model($from, $int4, \%copy, $config);
}


sub make_twins {
    my ($from) = @_;

    my $raw = DSA::Golden::raw_tensors($from);
    my %other = %$raw;
    my %code;

    @code{@value} = 0 .. 255;

    my @q = map { max(-8, min(7, sprintf '%.0f', ($_ & 127) == 127 ? 0
                                                 : $value[$_] / 56)) }
            0 .. 255;

    for my $name (grep { is_expert($_) } keys %$raw) {
        my ($dtype, $shape, $codes) = @{$raw->{$name}};
        my ($rows, $cols) = @$shape;
        my @numbers = @q[unpack 'C*', $codes];
        my @scale = map { $_ * 64 } unpack 'f<*',
                        $raw->{"${name}_scale_inv"}[2];
        my $blocks = $cols / 128;

        $raw->{$name} = [ 'F8_E4M3', $shape,
                          pack 'C*', map { $code{$_ + 0} } @numbers ];
        $raw->{"${name}_scale_inv"} = [ 'F32',
                                        $raw->{"${name}_scale_inv"}[1],
                                        pack 'f<*', @scale ];

        my @groups = map { my $row = int($_ / 128) * $blocks;
                           @scale[$row .. $row + $blocks - 1] }
                     0 .. $rows - 1;

        $other{$name} = [ 'I8', [ $rows, $cols / 2 ], int4_bytes(@numbers) ];
        $other{"${name}_scale_inv"}
            = [ 'BF16', [ $rows, $blocks ],
                DSA::Tensors::to_bytes('BF16', @groups) ];
    }

    return [ $raw, \%other ];
}


# Changes tensors to the layout of TensorRT-LLM's script: scales in F32, after
# change->(scale, its number in the tensor), and those of activations, if there
# are any, under other names.

sub int4_of_script {
    my ($raw, $change) = @_;

    $change //= sub { $_[0] };

    for my $name (grep { is_expert($_) } keys %$raw) {
        my $scale = $raw->{"${name}_scale_inv"};
        my @value = DSA::Tensors::from_bytes('BF16', $scale->[2]);

        $raw->{"${name}_scale_inv"}
            = [ 'F32', $scale->[1],
                pack 'f<*', map { $change->($value[$_], $_) } 0 .. $#value ];

        my $input = delete $raw->{$name =~ s/weight$/input_scale/r} or next;

        $raw->{$name =~ s/(\w+_proj)\.weight$/$other_name{$1}.input_scale/r}
            = $input;
    }
}


# Makes a directory $to with the model in $from, its experts in float32, which
# has each product of a number and its scale.

sub int4_in_f32 {
    my ($from, $to) = @_;

    my $raw = DSA::Golden::raw_tensors($from);

    for my $name (grep { is_expert($_) } keys %$raw) {
        my ($dtype, $shape, $bytes) = @{$raw->{$name}};
        my @scale = DSA::Tensors::from_bytes(
                        'BF16', (delete $raw->{"${name}_scale_inv"})->[2]);
        my @q = int4_numbers($bytes);

        $raw->{$name} = [ 'F32', [ $shape->[0], 2 * $shape->[1] ],
                          pack 'f<*', map { $q[$_] * $scale[$_ >> 7] }
                                      0 .. $#q ];
    }

    return DSA::Golden::raw_model($from, $to, $raw,
                                  { quant_method => 'fp8', fmt => 'e4m3',
                                    activation_scheme => 'dynamic',
                                    scale_fmt => 'ue8m0',
                                    weight_block_size => [ 128, 128 ] });
}


1;
