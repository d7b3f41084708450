package DSA::GLM;

# Copyright (C) The nginx-dsa authors
#
# A small model of GLM-5's architecture: the weights of demo/make-model with a
# config.json of the kind glm_moe_dsa, and its tokenizer with the names, flags
# and features of GLM-5's: a pattern for all text, merges as pairs,
# ignore_merges, and control tokens that are not "special".  Its answers end
# with <|user|>.

use strict;
use warnings;
use utf8;

use DSA::Test;
use Exporter 'import';
use JSON::PP;

our @EXPORT_OK = qw/ glm_model /;


# Names by their id in the tokenizer of demo/make-model, whose rows of the head
# decide how often a token is sampled.

my @first = ('[gMASK]', '<|user|>', '<|endoftext|>');

my %last = (
    '<think>' => '<think>', '</think>' => '</think>',
    '<|EOT|>' => '<|observation|>',
);

my @others = qw{ <sop> <|system|> <|assistant|> <tool_call> </tool_call>
                 <tool_response> </tool_response> <arg_key> </arg_key>
                 <arg_value> </arg_value> /nothink <|image|> <|video|> <eop>
                 [MASK] [sMASK] };

my %special = map { $_ => 1 } qw{ <|endoftext|> [MASK] [gMASK] [sMASK] <sop>
    <eop> <|system|> <|user|> <|assistant|> <|observation|> };

# the pattern of GLM-5's tokenizer

my $pattern = q{(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+}
    . q{|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+};


# Makes the model in the test's directory, and returns its path.  more: fields
# of config.json.

sub glm_model {
    my ($t, %more) = @_;

    my ($from, $dir) = ($t->deepseek_model, $t->path('glm'));

    mkdir $dir or die "cannot make $dir: $!\n";

    for my $path (glob "$from/*.safetensors $from/model.safetensors.*") {
        my $name = $path =~ s{.*/}{}r;

        symlink $path, "$dir/$name" or die "cannot link $dir/$name: $!\n";
    }

    my $json = JSON::PP->new->utf8;
    my $c = $json->decode(read_file("$from/config.json"));
    my $tok = $json->decode(read_file("$from/tokenizer.json"));

    delete @$c{qw/ bos_token_id rope_scaling rope_theta topk_group /};
    delete $c->{quantization_config}{scale_fmt};

    %$c = (%$c, architectures => ['GlmMoeDsaForCausalLM'],
           model_type => 'glm_moe_dsa', n_group => 1, topk_group => 1,
           eos_token_id => [2, 1, 2013], rms_norm_eps => 1e-5,
           indexer_rope_interleave => JSON::PP::true,
           indexer_types => [qw/ full full full /],
           rope_parameters => { rope_theta => 8000000,
                                rope_type => 'default' }, %more);

    my ($vocab, $n) = ($tok->{model}{vocab}, 0);

    for my $added (@{ $tok->{added_tokens} }) {
        my $old = $added->{content};

        $added->{content} = $added->{id} < @first ? $first[$added->{id}]
                            : $last{$old} // $others[$n++];
        $added->{special} = $special{ $added->{content} }
                            ? JSON::PP::true : JSON::PP::false;

        $vocab->{ $added->{content} } = delete $vocab->{$old}
            if exists $vocab->{$old};

        $c->{eos_token_id}[2] = $added->{id} + 0
            if $added->{content} eq '<|observation|>';
    }

    die "the tokenizer of demo/make-model has other tokens\n" if $n != @others;

    my $stages = $tok->{pre_tokenizer}{pretokenizers};

    splice @$stages, 0, @$stages - 1,
           { type => 'Split', pattern => { Regex => $pattern },
             behavior => 'Isolated', invert => JSON::PP::false };

    $tok->{model}{merges} = [ map { [ split / / ] }
                              @{ $tok->{model}{merges} } ];
    $tok->{model}{ignore_merges} = JSON::PP::true;
    $tok->{post_processor} = undef;

    write_file("$dir/tokenizer.json", $json->encode($tok));
    write_file("$dir/generation_config.json",
               $json->encode({ eos_token_id => $c->{eos_token_id},
                               temperature => 1.0, top_p => 0.95 }));
    write_file("$dir/config.json", $json->encode($c));

    return $dir;
}


1;
