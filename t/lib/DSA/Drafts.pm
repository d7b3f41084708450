package DSA::Drafts;

# Copyright (C) The nginx-dsa authors
#
# Writes a copy of a model with a draft layer: a copy of its last layer behind
# an eh_proj that adds the embedding and the hidden state.  It drafts poorly, so
# that some drafts are right and most are rejected.  A model with a draft layer
# keeps its own.
#
#     with_drafts($from, $to)

use strict;
use warnings;

use Exporter qw/ import /;

use DSA::Test qw/ json_encode json_decode read_file write_file /;

our @EXPORT = qw/ with_drafts /;


# Returns name => [ dtype, shape, bytes ] of the tensors of a file.

sub read_raw {
    my ($file) = @_;

    my $text = read_file($file);
    my $n = unpack 'Q<', $text;
    my $head = json_decode(substr $text, 8, $n);
    my %tensor;

    for my $name (grep { $_ ne '__metadata__' } keys %$head) {
        my ($dtype, $shape, $at) =
            @{$head->{$name}}{qw(dtype shape data_offsets)};

        $tensor{$name} = [ $dtype, $shape, substr $text, 8 + $n + $at->[0],
                                                  $at->[1] - $at->[0] ];
    }

    return %tensor;
}


sub with_drafts {
    my ($from, $to) = @_;

    mkdir $to or die "$to: $!\n";

    my $config = json_decode(read_file("$from/config.json"));
    my $index = json_decode(read_file("$from/model.safetensors.index.json"));
    my $layers = $config->{num_hidden_layers};
    my $hidden = $config->{hidden_size};
    my $last = "model.layers." . ($layers - 1) . '.';
    my $new = "model.layers.$layers.";
    my ($head, $body, %all) = ({}, '');

    if ($config->{num_nextn_predict_layers}) {
        for my $file (glob "$from/*") {
            symlink $file, $to . '/' . $file =~ s{.*/}{}r
                or die "$to: $!\n";
        }

        return $to;
    }

    for my $file (glob "$from/*") {
        my $name = $file =~ s{.*/}{}r;

        %all = (%all, read_raw($file)) if $name =~ /\.safetensors\z/;
        symlink $file, "$to/$name" or die "$to/$name: $!\n"
            if $name !~ /^(?:config|model\.safetensors\.index)\.json\z/;
    }

    my %draft = map { ($new . substr($_, length $last)) => $all{$_} }
                    grep { index($_, $last) == 0 } keys %all;
    my $one = pack 'f<*', (1) x $hidden;

    $draft{"$new$_.weight"} = [ 'F32', [ $hidden ], $one ]
        for qw/ enorm hnorm shared_head.norm /;
    $draft{"${new}eh_proj.weight"}
        = [ 'BF16', [ $hidden, 2 * $hidden ], join '', map {
            my $row = $_;
            pack 'v*', map { $_ % $hidden == $row ? 0x3f80 : 0 }
                           0 .. 2 * $hidden - 1
        } 0 .. $hidden - 1 ];

    # the widest dtype first, so that each tensor is aligned

    my %width = (F32 => 4, BF16 => 2, F8_E4M3 => 1);

    for my $name (sort { $width{$draft{$b}[0]} <=> $width{$draft{$a}[0]}
                         || $a cmp $b } keys %draft)
    {
        my ($dtype, $shape, $data) = @{$draft{$name}};

        $head->{$name} = { dtype => $dtype, shape => $shape,
                           data_offsets => [ length $body,
                                             length($body) + length $data ] };
        $body .= $data;
        $index->{weight_map}{$name} = 'model-drafts.safetensors';
    }

    my $text = json_encode($head);
    $text .= ' ' x (-length($text) % 8);

    write_file("$to/model-drafts.safetensors",
               pack('Q<', length $text) . $text . $body);
    write_file("$to/model.safetensors.index.json", json_encode($index));
    write_file("$to/config.json",
               json_encode({ %$config, num_nextn_predict_layers => 1 }));

    return $to;
}


1;
