# Copyright (C) The nginx-dsa authors
#
# The scales of activations, at each place that quantizes some.  If only one
# activation of a token is not 0, it is 448 times a scale in float32, and
# nothing is lost; a scale that is a power of two loses up to 6 %.  So with such
# activations a model computes the same if the weights of the next products are
# in BF16, which are not multiplied with quantized activations, or in FP8,
# unless its scale_fmt is "ue8m0".  All weights are powers of two or 0, so that
# rounding of the scale does not move a product from one BF16 to the next.

use strict;
use warnings;

use List::Util qw/ max /;

use lib 't/lib';
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;
use Test::More;

use constant BLOCK => 128;

my $t = DSA::Test->new('scales');
my $source = "$DSA::Test::root/t/data/golden/glm-5.2";
my $config = json_decode(read_file("$source/config.json"));
my $tokens = $t->path('tokens');

# as many as index_topk, so that each position attends to all before it

write_tensors($tokens, tokens => [ 'I32', [ 64 ],
                                   map { 5 + 41 * $_ % 377 } 0 .. 63 ]);


# Returns the weights of a tensor and their scales as powers of two, and their
# products as BF16.

sub powers {
    my ($w, $s) = @_;

    my ($rows, $cols) = @{$w->{shape}};
    my @exponent = map { int(log($_) / log(2)) } unpack 'f<*', $s->{data};
    my @code = map { $_ & 0xf8 } unpack 'C*', $w->{data};

    my @bf16 = map {
        my $row = $_;
        my $first = int($row / BLOCK) * $s->{shape}[1];

        map {
            my $code = $code[$row * $cols + $_];
            my $exponent = ($code >> 3 & 15) - 7 + 127
                           + $exponent[$first + int($_ / BLOCK)];

            $code & 0x78 ? ($code & 0x80) << 8 | $exponent << 7 : 0
        } 0 .. $cols - 1;
    } 0 .. $rows - 1;

    return { %$w, data => pack 'C*', @code },
           { %$s, data => pack 'f<*', map { 2 ** $_ } @exponent },
           { %$w, dtype => 'BF16', data => pack 'v*', @bf16 };
}


# A tensor in which all elements of a vector, or rows of a matrix, are 0 but
# some.

sub keep {
    my ($w, @kept) = @_;

    my $size = length($w->{data}) / $w->{shape}[0];
    my $data = "\0" x length $w->{data};

    substr $data, $_ * $size, $size, substr $w->{data}, $_ * $size, $size
        for @kept;

    return { %$w, data => $data };
}


my %bf16 = DSA::Widen::read_tensors($source);
my %fp8;

for my $name (map { s/_scale_inv\z//r } grep { /_scale_inv\z/ } keys %bf16) {
    my $scale = delete $bf16{"${name}_scale_inv"};

    (@fp8{$name, "${name}_scale_inv"}, $bf16{$name})
        = powers($bf16{$name}, $scale);
}


# The distances between the logits of two models, in BF16 and with the weights
# of some products in FP8.

sub apart {
    my ($name, $thin, $kept, $next, %fields) = @_;

    my %thin = map { $_ => keep($bf16{$_}, @$kept) } grep { /$thin/ }
               keys %bf16;
    my %next = map { $_ => $fp8{$_} } grep { /$next\.weight/ } keys %fp8;
    my @logits;

    for my $part ({}, \%next) {
        my $dir = $t->path("$name-" . keys %$part);

        DSA::Widen::write_model($source, $dir, 1, { %bf16, %thin, %$part });
        write_file("$dir/config.json", json_encode({
                       %$config, quantization_config => {
                           %{$config->{quantization_config}}, %fields } }));

        my ($got, $log) = dsa_logits($t->build . '/dsa', $t->path('out'),
                                     $dir, $tokens);

        die "dsa logits $dir: $log\n" if !$got;
        push @logits, $got->{logits};
    }

    return distances(@logits);
}


# What makes the activations, which of them are not 0 (the first 192 rows of
# kv_b_proj are keys, the next 256 values), and the products that quantize them.

my %place = (
    norm => [ qr/\.(?:input|post_attention)_layernorm\./, [ 77 ],
              qr/\b(?:q_a_proj|kv_a_proj_with_mqa|wk|gate_proj|up_proj)/ ],
    query => [ qr/\.q_a_layernorm\./, [ 19 ], qr/\.(?:q_b_proj|wq_b)/ ],
    values => [ qr/\.kv_b_proj\./, [ 0 .. 191, 201 ], qr/\.o_proj/ ],
    dense => [ qr/\.mlp\.up_proj\./, [ 5 ], qr/\.mlp\.down_proj/ ],
    experts => [ qr/experts\.(?:\d+\.)?up_proj\./, [ 99 ],
                 qr/experts\.(?:\d+\.)?down_proj/ ],
);

for my $name (sort keys %place) {
    my @rounded = apart($name, @{$place{$name}}, scale_fmt => 'ue8m0');

    is(max(apart($name, @{$place{$name}})), 0, "$name: scales in float32");
    cmp_ok(quantile(0.5, @rounded), '>', 1e-3, "$name: powers of two");
    note(sprintf '%s: %.2g with powers of two', $name,
         quantile(0.5, @rounded));
}

$t->done;
