package DSA::Widen;

# Copyright (C) The nginx-dsa authors
#
# Writes a copy of a model that is wider and computes the same function.  The
# small models have experts of 128 columns, one FP8 block, and two pairs of
# heads, which several GPUs cannot share ("attention tensor"); those of the copy
# can be shared.
#
#     widen($from, $to, $n)       experts N times as wide, with the same sums
#     widen_all($from, $to, $n)   N times the heads, MLPs and experts N times as
#                                 wide; every part of them contributes
#
# grow($from, $to, $factor, $eps) writes a copy whose residual stream and
# latents are larger.
#
# dense($from, $to, $type) writes a copy without indexers, whose layers attend
# to all positions; $type is its model_type.
#
# A test in C calls perl -It/lib -MDSA::Widen -e 'widen_all(@ARGV)' FROM TO N.

use strict;
use warnings;

use Exporter qw/ import /;
use JSON::PP ();

use DSA::Test qw/ read_file write_file /;

use constant BLOCK => 128;

our @EXPORT = qw/ widen widen_all grow dense /;

my $json = JSON::PP->new->canonical;
my %bytes = (F8_E4M3 => 1, BF16 => 2, F32 => 4);


# Returns name => { dtype, shape, data } of all tensors of a model.

sub read_tensors {
    my ($dir) = @_;

    my %tensor;

    for my $file (sort glob "$dir/model*.safetensors") {
        my $text = read_file($file);
        my $len = unpack 'Q<', $text;
        my $head = $json->decode(substr $text, 8, $len);

        for my $name (grep { $_ ne '__metadata__' } keys %$head) {
            my ($dtype, $shape, $at) =
                @{$head->{$name}}{qw(dtype shape data_offsets)};

            $tensor{$name} = { dtype => $dtype, shape => $shape,
                               data => substr $text, 8 + $len + $at->[0],
                                              $at->[1] - $at->[0] };
        }
    }

    return %tensor;
}


# Writes the model of $from with other tensors, and with the fields of
# config.json in @fields multiplied by $n.

sub write_model {
    my ($from, $to, $n, $tensor, @fields) = @_;

    my %head;
    my $body = '';

    mkdir $to or -d $to or die "$to: $!\n";

    for my $name (sort keys %$tensor) {
        my ($dtype, $shape, $data) =
            @{$tensor->{$name}}{qw(dtype shape data)};
        my $start = length $body;

        $body .= $data;
        $head{$name} = { dtype => $dtype, shape => $shape,
                         data_offsets => [ $start, length $body ] };
    }

    my $head = $json->encode(\%head);
    $head .= ' ' x (-length($head) % 8);
    write_file("$to/model.safetensors",
               pack('Q<', length $head) . $head . $body);

    for my $name (qw/ tokenizer.json tokenizer_config.json
                      generation_config.json /)
    {
        write_file("$to/$name", read_file("$from/$name"))
            if -e "$from/$name";
    }

    my $config = $json->decode(read_file("$from/config.json"));

    $config->{$_} *= $n for @fields;
    write_file("$to/config.json", $json->encode($config));

    return $to;
}


sub dense {
    my ($from, $to, $type) = @_;

    my %tensor = read_tensors($from);

    delete @tensor{grep { /\.indexer\./ } keys %tensor};
    write_model($from, $to, 1, \%tensor);

    my $config = $json->decode(read_file("$to/config.json"));

    write_file("$to/config.json",
               $json->encode({ %$config, model_type => $type }));

    return $to;
}


# widen(): each of N equal parts of the old width is followed by zeros, so that
# all sums are the same.

# The rows [$rows, $size bytes] in $n parts, each filled with zeros.

sub tall {
    my ($data, $n, $rows, $size) = @_;

    my $part = $rows / $n * $size;

    return join '', map { substr($data, $_ * $part, $part)
                          . "\0" x ($part * ($n - 1)) } 0 .. $n - 1;
}


sub wider {
    my ($n, $name, $t) = @_;

    my ($dtype, $shape, $data) = @$t{qw(dtype shape data)};
    my $size = $bytes{$dtype};

    return $t if $name !~ /\.mlp\.(?:experts\.\d+|shared_experts)\./;

    my ($rows, $cols) = @$shape;

    if ($name =~ /\.down_proj\.weight$/) {
        return { dtype => $dtype, shape => [ $rows, $cols * $n ],
                 data => join '', map { tall(substr($data, $_ * $cols * $size,
                                                    $cols * $size),
                                             $n, $cols, $size) }
                                  0 .. $rows - 1 };
    }

    if ($name =~ /\.weight$/) {
        return { dtype => $dtype, shape => [ $rows * $n, $cols ],
                 data => tall($data, $n, $rows, $cols * $size) };
    }

    # the blocks of the copy have the scales of the blocks that they came from

    if ($name =~ /\.down_proj\.weight_scale_inv$/) {
        die "$name: $cols columns\n" if $cols != 1;

        return { dtype => $dtype, shape => [ $rows, $n ],
                 data => join '', map { substr($data, $_ * 4, 4) x $n }
                                  0 .. $rows - 1 };
    }

    die "$name: $rows rows\n" if $rows != 1;

    return { dtype => $dtype, shape => [ $n, $cols ], data => $data x $n };
}


sub widen {
    my ($from, $to, $n) = @_;

    my %tensor = read_tensors($from);

    $n += 0;                    # an argument of a program is a string
    $tensor{$_} = wider($n, $_, $tensor{$_}) for keys %tensor;

    return write_model($from, $to, $n, \%tensor, 'moe_intermediate_size');
}


# widen_all(): every pair of heads and every column of an MLP occurs N times.
# The copies are added up with weights whose sum is 1, which differ between
# neighbors, so that a result with a missing, repeated or exchanged part is
# wrong.  All weights are powers of two, which multiply exactly in each dtype.
# The copies are also in different orders: heads change their places by pairs,
# because two heads are the least that begin at a block of FP8, and columns
# within their block.

my %weights = (2 => [ 2, -1 ], 4 => [ 4, -2, -2, 1 ]);


sub widen_all {
    my ($from, $to, $n) = @_;

    my %tensor = read_tensors($from);
    my $config = $json->decode(read_file("$from/config.json"));
    my $pairs = $config->{num_attention_heads} / 2;

    die "widen_all: $n times; expected 2 or 4\n" if !$weights{$n};
    die "$from: an odd number of heads\n" if $pairs != int $pairs;

    widen_tensor(\%tensor, $_, $pairs, $weights{$n})
        for grep { /\.weight\z/ } keys %tensor;

    return write_model($from, $to, $n, \%tensor,
                       qw/ num_attention_heads num_key_value_heads
                           intermediate_size moe_intermediate_size /);
}


sub widen_tensor {
    my ($tensor, $name, $pairs, $weights) = @_;

    my $t = $tensor->{$name};
    my $scale = $tensor->{"${name}_scale_inv"};
    my ($rows, $cols) = @{$t->{shape}};
    my @copies = 0 .. $#$weights;

    if ($name =~ /\.(?:q_proj|q_b_proj|kv_b_proj)\.weight\z/) {
        more_rows($t, $scale,
                  map { [ heads($_, $pairs, $rows / $pairs) ] } @copies);

    } elsif ($name =~ /\.o_proj\.weight\z/) {
        more_cols($t, $scale, $weights,
                  map { [ heads($_, $pairs, $cols / $pairs) ] } @copies);

    } elsif ($name =~ /\.(?:gate_proj|up_proj)\.weight\z/) {
        more_rows($t, $scale, map { [ columns($_, $rows) ] } @copies);

    } elsif ($name =~ /\.down_proj\.weight\z/) {
        more_cols($t, $scale, $weights,
                  map { [ columns($_, $cols) ] } @copies);
    }
}


# The order of a copy: the pairs of heads, of size elements each, rotated.

sub heads {
    my ($copy, $pairs, $size) = @_;

    return map {
        my $pair = ($_ + $copy) % $pairs;
        $pair * $size .. ($pair + 1) * $size - 1;
    } 0 .. $pairs - 1;
}


# The order of a copy: the n columns, rotated within each block.

sub columns {
    my ($copy, $n) = @_;

    return map {
        my $start = $_ - $_ % BLOCK;
        my $size = $n - $start < BLOCK ? $n - $start : BLOCK;

        $start + ($_ - $start + 37 * $copy) % $size;
    } 0 .. $n - 1;
}


# Replaces the rows by those of all copies, each a list of rows.

sub more_rows {
    my ($t, $scale, @copies) = @_;

    my $width = $t->{shape}[1] * $bytes{$t->{dtype}};

    $t->{data} = join '', map { substr $t->{data}, $_ * $width, $width }
                          map { @$_ } @copies;
    $t->{shape}[0] *= @copies;

    if ($scale) {
        more_rows($scale, undef, map { [ blocks(@$_) ] } @copies);
    }
}


# The same for columns, multiplied with the weights of the copies.

sub more_cols {
    my ($t, $scale, $weights, @copies) = @_;

    my $size = $bytes{$t->{dtype}};
    my $width = $t->{shape}[1] * $size;
    my $data = '';

    for my $row (0 .. $t->{shape}[0] - 1) {
        my $old = substr $t->{data}, $row * $width, $width;

        for my $i (0 .. $#copies) {
            my $new = join '', map { substr $old, $_ * $size, $size }
                               @{$copies[$i]};

            $data .= scaled($t->{dtype}, $weights->[$i], $new);
        }
    }

    $t->{data} = $data;
    $t->{shape}[1] *= @copies;

    if ($scale) {
        more_cols($scale, undef, [ map { abs } @$weights ],
                  map { [ blocks(@$_) ] } @copies);
    }
}


# The blocks of a list of whole blocks of rows or columns.

sub blocks {
    my (@list) = @_;

    return map { int($list[$_ * BLOCK] / BLOCK) } 0 .. @list / BLOCK - 1;
}


# FP8 has the sign of the weight, and its scales have the rest.

sub scaled {
    my ($dtype, $weight, $data) = @_;

    if ($dtype eq 'F8_E4M3') {
        return $weight < 0 ? $data ^ "\x80" x length $data : $data;
    }

    return pack 'f<*', map { $_ * $weight } unpack 'f<*', $data
        if $dtype eq 'F32';

    # BF16 is the upper half of float32

    return pack 'v*', map { unpack('L<', pack 'f<', $_ * $weight) >> 16 }
                      map { unpack 'f<', pack 'L<', $_ << 16 }
                      unpack 'v*', $data;
}


# grow(): the residual stream and the latents are a power of two times as large.
# If eps is rms_norm_eps times the square of that, and the epsilon of each
# RMSNorm, the copy computes the same function, bit by bit.

sub grow {
    my ($from, $to, $factor, $eps) = @_;

    my %tensor = read_tensors($from);
    my $config = $json->decode(read_file("$from/config.json"));

    for my $name (grep { /^model\.embed_tokens\.weight\z/
                         || /\.(?:o|down|q_a)_proj\.weight\z/
                         || /\.kv_a_proj_with_mqa\.weight\z/ } keys %tensor)
    {
        my $t = $tensor{"${name}_scale_inv"} // $tensor{$name};
        my $size = $t->{shape}[1] * $bytes{$t->{dtype}};

        # the part of the key that is rotated has no norm

        my $rows = $name !~ /kv_a/ ? $t->{shape}[0]
                   : $t == $tensor{$name} ? $config->{kv_lora_rank}
                   : $config->{kv_lora_rank} / BLOCK;

        substr($t->{data}, 0, $rows * $size)
            = scaled($t->{dtype}, $factor, substr $t->{data}, 0, $rows * $size);
    }

    write_model($from, $to, 1, \%tensor);

    $config->{rms_norm_eps} = $eps;
    write_file("$to/config.json", $json->encode($config));
}


1;
