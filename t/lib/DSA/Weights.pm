package DSA::Weights;

# Copyright (C) The nginx-dsa authors
#
# Weights that take no room: a safetensors file with the tensors that a
# config.json of a published DeepSeek-V3.2 implies, in a file without contents
# behind its header.  For checks that read headers and sizes only.  INT4 experts
# with stored scales of activations have the layout of TensorRT-LLM's script,
# and these scales, which are read, are 1.

use strict;
use warnings;

use Exporter qw/ import /;
use JSON::PP ();

our @EXPORT = qw/ sparse_weights /;


# Writes DIR/model.safetensors for DIR/config.json.

sub sparse_weights {
    my ($dir) = @_;

    open my $fh, '<', "$dir/config.json" or die "$dir/config.json: $!\n";
    my $c = JSON::PP->new->decode(do { local $/; <$fh> });
    close $fh;

    # [name, dtype, bytes of an element, shape]; the larger elements first, so
    # that all are aligned

    my %list = (4 => [], 2 => [], 1 => []);
    my $vector = sub { push @{ $list{4} }, [ $_[0], 'F32', $_[1] ] };
    my $matrix = sub {
        push @{ $list{2} }, [ "$_[0].weight", 'BF16', @_[1, 2] ];
    };
    my $linear = sub {
        my ($name, $rows, $cols) = @_;

        push @{ $list{1} }, [ "$name.weight", 'F8_E4M3', $rows, $cols ];
        push @{ $list{4} }, [ "$name.weight_scale_inv", 'F32',
                              map { int(($_ + 127) / 128) } $rows, $cols ];
    };

    my $int4 = sub {
        my ($name, $rows, $cols) = @_;

        push @{ $list{1} }, [ "$name.weight", 'I8', $rows, $cols / 2 ];
        push @{ $list{2} }, [ "$name.weight_scale_inv", 'BF16', $rows,
                              $cols / 128 ];
    };

    my %other = (gate_proj => 'w1', down_proj => 'w2', up_proj => 'w3');
    my $script = sub {
        my ($name, $rows, $cols) = @_;

        push @{ $list{1} }, [ "$name.weight", 'I8', $rows, $cols / 2 ];
        push @{ $list{4} }, [ "$name.weight_scale_inv", 'F32', $rows,
                              $cols / 128 ];
        $vector->($name =~ s/(\w+)$/$other{$1}.input_scale/r, 1);
    };

    my ($hidden, $heads) = @$c{qw/ hidden_size num_attention_heads /};
    my %quantization = %{ $c->{quantization_config} // {} };
    my $experts = ($quantization{quant_method} // '') ne 'w4afp8' ? $linear
                  : ($quantization{moe_activation_scheme} // '') eq 'dynamic'
                  ? $int4 : $script;

    my $mlp = sub {
        my ($name, $inter, $write) = @_;

        $write //= $linear;
        $write->("$name.$_", $inter, $hidden) for qw/ gate_proj up_proj /;
        $write->("$name.down_proj", $hidden, $inter);
    };

    $matrix->($_, $c->{vocab_size}, $hidden)
        for 'model.embed_tokens', 'lm_head';
    $vector->('model.norm.weight', $hidden);

    for my $n (0 .. $c->{num_hidden_layers} - 1) {
        my $layer = "model.layers.$n";
        my $attention = "$layer.self_attn";
        my $indexer = "$attention.indexer";

        $vector->("$layer.${_}_layernorm.weight", $hidden)
            for qw/ input post_attention /;
        $linear->("$attention.q_a_proj", $c->{q_lora_rank}, $hidden);
        $vector->("$attention.q_a_layernorm.weight", $c->{q_lora_rank});
        $linear->("$attention.q_b_proj",
                  $heads * ($c->{qk_nope_head_dim} + $c->{qk_rope_head_dim}),
                  $c->{q_lora_rank});
        $linear->("$attention.kv_a_proj_with_mqa",
                  $c->{kv_lora_rank} + $c->{qk_rope_head_dim}, $hidden);
        $vector->("$attention.kv_a_layernorm.weight", $c->{kv_lora_rank});
        $linear->("$attention.kv_b_proj",
                  $heads * ($c->{qk_nope_head_dim} + $c->{v_head_dim}),
                  $c->{kv_lora_rank});
        $linear->("$attention.o_proj", $hidden, $heads * $c->{v_head_dim});
        $linear->("$indexer.wq_b", $c->{index_n_heads} * $c->{index_head_dim},
                  $c->{q_lora_rank});
        $linear->("$indexer.wk", $c->{index_head_dim}, $hidden);
        $vector->("$indexer.k_norm.$_", $c->{index_head_dim})
            for qw/ weight bias /;
        $matrix->("$indexer.weights_proj", $c->{index_n_heads}, $hidden);

        if ($n < $c->{first_k_dense_replace}) {
            $mlp->("$layer.mlp", $c->{intermediate_size});
            next;
        }

        $matrix->("$layer.mlp.gate", $c->{n_routed_experts}, $hidden);
        $vector->("$layer.mlp.gate.e_score_correction_bias",
                  $c->{n_routed_experts});
        $mlp->("$layer.mlp.shared_experts",
               $c->{n_shared_experts} * $c->{moe_intermediate_size});
        $mlp->("$layer.mlp.experts.$_", $c->{moe_intermediate_size}, $experts)
            for 0 .. $c->{n_routed_experts} - 1;
    }

    my ($at, @entries, @stored) = (0);

    for my $size (4, 2, 1) {
        for my $tensor (@{ $list{$size} }) {
            my ($name, $dtype, @shape) = @$tensor;
            my $end = $at + $size * ($shape[0] * ($shape[1] // 1));
            push @entries, sprintf '"%s":{"dtype":"%s","shape":[%s],'
                                   . '"data_offsets":[%d,%d]}', $name, $dtype,
                                   join(',', @shape), $at, $end;
            push @stored, $at if $name =~ /input_scale$/;
            $at = $end;
        }
    }

    my $header = '{' . join(',', @entries) . '}';

    $header .= ' ' x (-length($header) % 8);

    open my $out, '>:raw', "$dir/model.safetensors"
        or die "$dir/model.safetensors: $!\n";
    print $out pack('Q<', length $header), $header;
    truncate $out, 8 + length($header) + $at or die "truncate: $!\n";

    for (@stored) {
        seek $out, 8 + length($header) + $_, 0 or die "seek: $!\n";
        print $out pack 'f<', 1;
    }

    close $out or die "close: $!\n";

    return $at;
}


1;
