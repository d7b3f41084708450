# Copyright (C) The nginx-dsa authors
#
# Models whose layers do not have indexers of their own, in "exact": against
# models that have them and compute the same function, which are a-fp8 with
# other weights or another config.json.

use strict;
use warnings;

use JSON::PP ();
use List::Util qw(max);

use lib 't/lib';
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;
use DSA::Widen;
use Test::More;

my $t = DSA::Test->new('layers');
my $dsa = $t->build . '/dsa';
my $source = "$DSA::Test::root/t/data/golden/a-fp8";
my $tokens = "$source/golden.safetensors";
my $json = JSON::PP->new->canonical;


# Writes a-fp8 with changed fields of config.json, undef removing one, and with
# the tensors that $edit has changed.

sub model {
    my ($name, $fields, $edit) = @_;

    my $dir = $t->path($name);
    my %tensor = DSA::Widen::read_tensors($source);

    $edit->(\%tensor) if $edit;
    DSA::Widen::write_model($source, $dir, 1, \%tensor);

    my $config = $json->decode(read_file("$dir/config.json"));

    for my $field (keys %$fields) {
        delete $config->{$field};
        $config->{$field} = $fields->{$field} if defined $fields->{$field};
    }

    write_file("$dir/config.json", $json->encode($config));

    return $dir;
}


sub logits {
    my ($model, @args) = @_;

    my $out = $t->path('out.safetensors');

    system($dsa, 'logits', '--model', $model, '--tokens', $tokens, '--out',
           $out, '--exact', @args) == 0
        or die "dsa logits $model @args: $?\n";

    return tensors($out);
}


# Writes the tokens and the selections of an output, for --select.

sub selections {
    my ($got) = @_;

    my $file = $t->path('select.safetensors');
    my %tensor = (tokens => tensors($tokens)->{tokens},
                  map { $_ => $got->{$_} } grep { /^topk\./ } keys %$got);

    write_tensors($file, map {
        my $rows = $tensor{$_};
        my $width = @{$rows->[0]};
        $_ => [ 'I32', [ scalar @$rows, $width > 1 ? $width : () ],
                map { @$_ } @$rows ];
    } keys %tensor);

    return $file;
}


sub same {
    my ($got, $want, $name) = @_;

    is(max(distances($got->{logits}, $want->{logits})), 0, $name);
}


# The same in chunks and then token by token, where the cache is read.

sub steps {
    my ($model, $whole, $name) = @_;

    same(logits($model, '--chunk', 50, '--decode-from',
                @{$whole->{logits}} - 20),
         $whole, "$name: in chunks, then token by token");
}


my $own = logits($source, '--trace');

# Layer 1 attends to what layer 0 has selected.

{
    my $shared = model('shared',
                       { indexer_types => [ qw(full shared full) ] },
                       sub { delete @{$_[0]}{grep { /\.1\.self_attn\.indexer/ }
                                                   keys %{$_[0]}} });
    my $got = logits($shared, '--trace');

    is(join(' ', differing($got->{'topk.1'}, $got->{'topk.0'})), '',
       'layer 1 has the selection of layer 0');
    ok(differing($own->{'topk.1'}, $own->{'topk.0'}) > 0,
       'which is not what its own indexer selects');
    same(logits($source, '--select', selections($got)), $got,
         'a shared selection');
    steps($shared, $got, 'a shared selection');

    $got = logits(model('freq', { index_topk_freq => 2,
                                  index_skip_topk_offset => 1 },
                        sub { delete @{$_[0]}{
                                  grep { /\.1\.self_attn\.indexer/ }
                                       keys %{$_[0]}} }));
    same($got, logits($shared), 'the same by index_topk_freq');
}


# No layer has an indexer, or each selects everything.

{
    my $dense = model('dense',
                      { model_type => 'deepseek_v3', index_topk => undef,
                        index_n_heads => undef, index_head_dim => undef },
                      sub { delete @{$_[0]}{grep { /indexer/ }
                                                 keys %{$_[0]}} });
    my $got = logits($dense, '--trace');

    ok(!(grep { /^topk/ } keys %$got), 'a dense model has no selections');
    same($got, logits(model('all', { index_topk => 4096 })), 'all positions');
    ok(max(distances($got->{logits}, $own->{logits})) > 0.1,
       'which is not what a selection gives');
    steps($dense, $got, 'all positions');
}


# Interleaved RoPE of permuted index vectors is half-split RoPE of the others.

{
    my @order = ((map { $_, $_ + 32 } 0 .. 31), 64 .. 127);

    my $swapped = model('interleaved', { indexer_rope_interleave =>
                                         JSON::PP::true },
                        sub {
        for my $name (grep { /indexer\.(?:wq_b|wk)\.weight$|k_norm/ }
                           keys %{$_[0]})
        {
            my $tensor = $_[0]{$name};
            my $size = length($tensor->{data}) / $tensor->{shape}[0];
            my $data = '';

            for my $row (0 .. $tensor->{shape}[0] - 1) {
                my $from = $row - $row % 128 + $order[$row % 128];
                $data .= substr $tensor->{data}, $from * $size, $size;
            }

            $tensor->{data} = $data;
        }
    });

    # with the same selections, so that each layer has the same input

    my $select = selections($own);
    my $got = logits($swapped, '--trace', '--select', $select);
    my $plain = logits(model('half', { indexer_rope_interleave =>
                                       JSON::PP::true }),
                       '--trace', '--select', $select);

    for my $l (0 .. 2) {
        my @wrong = grep { $own->{"gap.$l"}[$_][0] > 1e-5 }
                         differing($got->{"topk.$l"}, $own->{"topk.$l"});

        is("@wrong", '', "topk.$l with interleaved RoPE");
        ok(differing($plain->{"topk.$l"}, $own->{"topk.$l"}) > 0,
           "topk.$l differs if the weights are not permuted");
    }
}


done_testing();
