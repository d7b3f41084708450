package DSA::Widen;

# Copyright (C) The nginx-dsa authors
#
# Writes a copy of a model whose experts are N times as wide and compute the
# same function: each of N equal parts of the old width is followed by zeros.
# The small models have experts of 128 columns, one FP8 block, which several
# GPUs cannot share ("attention tensor"); those of the copy can be shared.

use strict;
use warnings;

use Exporter qw/ import /;
use JSON::PP qw/ decode_json /;

use DSA::Test;

our @EXPORT = qw/ widen /;

my $json = JSON::PP->new->canonical;
my %bytes = (F8_E4M3 => 1, BF16 => 2, F32 => 4);


# The rows [$rows, $size bytes] in $n parts, each filled with zeros.

sub tall {
    my ($data, $n, $rows, $size) = @_;

    my $part = $rows / $n * $size;

    return join '', map { substr($data, $_ * $part, $part)
                          . "\0" x ($part * ($n - 1)) } 0 .. $n - 1;
}


sub wider {
    my ($n, $name, $t) = @_;

    my ($dtype, $shape, $data) = @$t;
    my $size = $bytes{$dtype};

    return $t if $name !~ /\.mlp\.(?:experts\.\d+|shared_experts)\./;

    my ($rows, $cols) = @$shape;

    if ($name =~ /\.down_proj\.weight$/) {
        return [ $dtype, [ $rows, $cols * $n ],
                 join '', map { tall(substr($data, $_ * $cols * $size,
                                            $cols * $size), $n, $cols, $size) }
                 0 .. $rows - 1 ];
    }

    if ($name =~ /\.weight$/) {
        return [ $dtype, [ $rows * $n, $cols ],
                 tall($data, $n, $rows, $cols * $size) ];
    }

    # the blocks of the copy have the scales of the blocks that they came from

    if ($name =~ /\.down_proj\.weight_scale_inv$/) {
        die "$name: $cols columns\n" if $cols != 1;

        return [ $dtype, [ $rows, $n ],
                 join '', map { substr($data, $_ * 4, 4) x $n }
                 0 .. $rows - 1 ];
    }

    die "$name: $rows rows\n" if $rows != 1;

    return [ $dtype, [ $n, $cols ], $data x $n ];
}


# widen($from, $to, $n): directories; $to is made.

sub widen {
    my ($from, $to, $n) = @_;

    my %head;
    my $body = '';

    mkdir $to or die "$to: $!\n";

    for my $file (sort glob "$from/model*.safetensors") {
        my $text = read_file($file);
        my $len = unpack 'Q<', $text;
        my $old = decode_json(substr $text, 8, $len);

        for my $name (sort grep { $_ ne '__metadata__' } keys %$old) {
            my ($dtype, $shape, $at) =
                @{$old->{$name}}{qw(dtype shape data_offsets)};
            my $new = wider($n, $name,
                            [ $dtype, $shape,
                              substr $text, 8 + $len + $at->[0],
                              $at->[1] - $at->[0] ]);
            my $start = length $body;

            $body .= $new->[2];
            $head{$name} = { dtype => $new->[0], shape => $new->[1],
                             data_offsets => [ $start, length $body ] };
        }
    }

    my $head = $json->encode(\%head);
    $head .= ' ' x (-length($head) % 8);
    write_file("$to/model.safetensors",
               pack('Q<', length $head) . $head . $body);

    my $config = decode_json(read_file("$from/config.json"));
    $config->{moe_intermediate_size} *= $n;
    write_file("$to/config.json", $json->encode($config));

    for my $name (qw/ tokenizer.json tokenizer_config.json
                      generation_config.json /)
    {
        write_file("$to/$name", read_file("$from/$name"))
            if -e "$from/$name";
    }

    return $to;
}

1;
