# Copyright (C) The nginx-dsa authors
#
# dsa logits --drafts against an independent implementation of the draft layer
# (t/data/golden/README.md): by row and step, with the tokens of a text and with
# the drafts themselves, and the rounds of a greedy answer.

use strict;
use warnings;

use List::Util qw(max);

use lib 't/lib';
use DSA::Golden;
use DSA::Tensors;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('drafts');
my $dsa = $t->build . '/dsa';
my $data = "$DSA::Test::root/t/data/golden";
my $own = "$data/drafts";
my $tokens = "$own/golden.safetensors";

use constant STEPS => 3;


sub run_dsa { return dsa_logits($dsa, $t->path('out.safetensors'), @_) }


sub drafts {
    my ($out, $log, $rc) = run_dsa(@_, '--drafts', STEPS);

    die "dsa logits @_: $rc: $log\n" if !$out;

    return $out;
}


# Makes a directory with the model and without a tensor of its second file: the
# header has no entry for it, so that its bytes belong to no tensor.

sub without {
    my ($name, $tensor) = @_;

    my $dir = variant_of($own, $t->path($name));
    my $file = 'model-00002-of-00002.safetensors';
    my $index = json_decode(read_file("$own/model.safetensors.index.json"));
    my $data = read_file("$own/$file");
    my $n = unpack 'Q<', $data;
    my $head = json_decode(substr $data, 8, $n);
    my ($at, $end) = @{$head->{$tensor}{data_offsets}};

    delete $index->{weight_map}{$tensor};
    delete $head->{$tensor};

    for my $left (grep { exists $_->{data_offsets} } values %$head) {
        next if $left->{data_offsets}[0] < $end;
        $_ -= $end - $at for @{$left->{data_offsets}};
    }

    my $text = json_encode($head);
    $text .= ' ' x (-length($text) % 8);

    unlink "$dir/$file", "$dir/model.safetensors.index.json";
    write_file("$dir/model.safetensors.index.json", json_encode($index));
    write_file("$dir/$file", pack('Q<', length $text) . $text
               . substr($data, 8 + $n, $at) . substr($data, 8 + $n + $end));

    return $dir;
}


# Compares all outputs of one run.  The largest distance seen is 2.1e-6.

sub exact {
    my ($name, $model, $golden, $want, @args) = @_;

    my $got = drafts($model, $golden, '--exact', '--trace', @args);

    for my $key (sort grep { /^(?:draft_|free_)/ } keys %$want) {
        if ($key =~ /topk|expert|tokens/) {
            my @differ = differing($got->{$key}, $want->{$key});
            is("@differ", '', "$name: $key");

        } else {
            same_sums($got->{$key}, $want->{$key}, "$name: $key", 1e-5);
        }
    }

    same_sums($got->{logits}, $want->{logits}, "$name: logits", 1e-5);

    return $got;
}


# The drafts of each round behind the tokens that are known then, and how many
# of them the answer has.

sub rounds {
    my ($name, $model, $want, @args) = @_;

    my $n = $want->{greedy_prompt_len}[0][0];
    my @known = map { $_->[0] } @{$want->{tokens}}[0 .. $n - 1];
    my @greedy = map { $_->[0] } @{$want->{greedy}};
    my $file = $t->path('known');

    write_tensors($file, tokens => [ 'I32', [ $n + @greedy ], @known,
                                     @greedy ]);

    my $got = drafts($model, $file, '--exact', @args);
    my @logits = @{$got->{logits}}[$n - 1 .. $n + @greedy - 2];

    is_deeply([ map { my $row = $_;
                      (sort { $row->[$b] <=> $row->[$a] } 0 .. $#$row)[0] }
                @logits ], \@greedy, "$name: the greedy answer");

    my (@drafts, @accepted);

    for my $anchor (map { $_->[0] } @{$want->{round_anchor}}) {
        my @d = map { $got->{"free_tokens.$_"}[$anchor][0] } 1 .. STEPS;
        my $right = 0;

        $right++ while $right < @d
                       && $d[$right] == $greedy[$anchor + 2 - $n + $right];

        push @drafts, \@d;
        push @accepted, [ $right ];
    }

    is_deeply(\@drafts, $want->{round_drafts}, "$name: drafts by round");
    is_deeply(\@accepted, $want->{round_accepted}, "$name: accepted drafts");
}


my $want = tensors($tokens);
my $shared_want = { %$want, %{tensors("$own/shared.safetensors")} };
my $shared = variant_of($own, $t->path('shared'),
                        index_share_for_mtp_iteration => \1);

my @dense = map { my $golden = "$data/drafts-$_/golden.safetensors";
                  [ $_, "$data/drafts-$_", $golden, tensors($golden) ] }
                qw/ v3 joyai glm-4.7-flash /;

for ([ 'own', $own, $tokens, $want ],
     [ 'shared', $shared, $tokens, $shared_want ], @dense)
{
    my ($name, $model, $golden, $outputs) = @$_;

    ok((grep { /^draft_logits\./ } keys %$outputs) == STEPS,
       "$name: outputs of each step");
    ok(max(map { $_->[0] } @{$outputs->{round_accepted}}) == STEPS,
       "$name: a round in which all drafts are right");

    my $whole = exact($name, $model, $golden, $outputs);

    rounds($name, $model, $outputs);

    # The bits do not depend on how the rows of a text are cut.

    for my $chunk (1, 7, 64) {
        my $cut = drafts($model, $golden, '--exact', '--chunk', $chunk);

        is(max(map { distances($cut->{$_}, $whole->{$_}) }
                   grep { /^(?:draft|free)_logits/ } keys %$cut),
           0, "$name: in chunks of $chunk");
    }

    exact("$name, 2 GPUs, data", $model, $golden, $outputs, '--gpus', 2);
    exact("$name, 2 GPUs, data, in chunks", $model, $golden, $outputs,
          '--gpus', 2, '--chunk', 13);
}

ok(max(map { distances($shared_want->{"draft_logits.$_"},
                       $want->{"draft_logits.$_"}) } 2 .. STEPS) > 0.01,
   'sharing a selection changes drafts');


# The roundings of serving move the drafts about as far as they move the logits
# of the model itself.

for ([ 'own', $own, $tokens ], [ 'shared', $shared, $tokens ], @dense) {
    my ($name, $model, $golden) = @$_;

    my $exact = drafts($model, $golden, '--exact');
    my $served = drafts($model, $golden);
    my $cut = drafts($model, $golden, '--chunk', 7);
    my $main = quantile(0.5, distances($served->{logits}, $exact->{logits}));

    for my $k (1 .. STEPS) {
        my $median = quantile(0.5, distances($served->{"draft_logits.$k"},
                                             $exact->{"draft_logits.$k"}));

        ok($median > 0, "$name: served: step $k is rounded");
        at_most($median, 2 * $main, "$name: served: step $k");
        note(sprintf '%s: served: step %d: median %.4f, the model %.4f', $name,
             $k, $median, $main);

        is(max(distances($cut->{"draft_logits.$k"},
                         $served->{"draft_logits.$k"})), 0,
           "$name: served: step $k in chunks");
    }
}


# refusals

{
    my $short = $t->path('short');
    my $b = "$DSA::Test::root/t/data/golden/b-bf16";

    # A checkpoint without a tensor of the draft layer is good for all but
    # drafts.

    my $lacking = without('lacking', 'model.layers.2.eh_proj.weight');
    my ($out, $log) = run_dsa($lacking, $tokens, '--exact');

    ok($out, 'a model without eh_proj') or diag($log);
    same_sums($out->{logits}, $want->{logits}, 'and its logits');

    write_tensors($short, tokens => [ 'I32', [ 1 ], 5 ]);

    my @cases = (
        [ 2, qr/--drafts "0" is not a number/, $own, $tokens, 0 ],
        [ 2, qr/--drafts "8" is too large; expected 1 to 7/, $own, $tokens,
          8 ],
        [ 1, qr/--drafts with 1 token; expected 2 or more/, $own, $short, 3 ],
        [ 1, qr/no usable draft layer: "num_nextn_predict_layers" .* is 0/,
          $b, "$b/golden.safetensors", 3 ],
        [ 1, qr/no usable draft layer: tensor "\S+\.eh_proj\.weight" is miss/,
          $lacking, $tokens, 3 ]
    );

    for my $case (@cases) {
        my ($status, $re, $model, $file, $n) = @$case;
        my ($out, $log, $rc) = run_dsa($model, $file, '--drafts', $n);

        is($rc, $status, "refused: $re");
        like($log, $re, 'with the reason');
        ok(!$out && !-e $t->path('out.safetensors'), 'and no file');
    }
}

$t->done;
