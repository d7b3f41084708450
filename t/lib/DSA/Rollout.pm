package DSA::Rollout;

# Copyright (C) The nginx-dsa authors
#
# Reads the rows of a rollout as docs/api/rollout-rows.md documents them, and
# computes from logits the values that they should have.

use strict;
use warnings;

use Exporter qw/ import /;
use JSON::PP;
use List::Util qw/ sum0 /;

use DSA::Tensors;
use DSA::Test;

our @EXPORT = qw/ rows draws reference vocabulary /;


# Rows => { prompt => [ids], samples => [{ position, id, logprob, kept,
#                                          version }],
#           experts => { position => [layers of [experts]] },
#           versions => { version of rows of experts => 1 },
#           again => positions that have several rows of experts }.
# kept is undef, 'all' or a list of ids; form is its form.

sub rows {
    my ($bytes) = @_;

    my %out = (prompt => [], samples => [], experts => {}, again => 0);

    while (length $bytes) {
        my ($length, $type, $form, $position, $n, $version)
            = unpack 'VvvVVV', $bytes;
        my $row = substr $bytes, 0, $length, '';
        my $data = substr $row, 20;

        die "a row of $length bytes" if $length < 20 || $length % 4
                                        || length $row != $length;

        if ($type == 1) {
            die 'a gap in the prompt' if $position != @{ $out{prompt} };
            die "a prompt of version $version" if $version != 0;
            push @{ $out{prompt} }, unpack "V$n", $data;

        } elsif ($type == 2) {
            my ($layers, $k) = unpack 'vv', $data;
            my @all = unpack $form == 1 ? "x4C*" : "x4v*", $data;

            $out{versions}{$version} = 1;

            die "$#all experts" if @all < $n * $layers * $k;

            for my $p ($position .. $position + $n - 1) {
                $out{again} += exists $out{experts}{$p};
                $out{experts}{$p} = [ map { [ splice @all, 0, $k ] }
                                      1 .. $layers ];
            }

        } elsif ($type == 3) {
            my ($id, $logprob) = unpack 'Vf<', $data;

            push @{ $out{samples} }, {
                position => $position, id => $id, logprob => $logprob,
                form => $form, version => $version,
                kept => kept($form, $n, substr $data, 8) };

        } else {
            die "a row of type $type";
        }
    }

    return \%out;
}


sub kept {
    my ($form, $n, $data) = @_;

    return undef if $form == 0;
    return 'all' if $form == 1;

    my @ids;

    if ($form == 2) {
        my ($id, $gap, $shift) = (0, 0, 0);

        for my $byte (unpack 'C*', $data) {
            $gap |= ($byte & 0x7f) << $shift;
            $shift += 7;
            next if $byte & 0x80;

            $id += $gap;
            push @ids, $id;
            ($gap, $shift) = (0, 0);
            last if @ids == $n;
        }

    } else {
        @ids = grep { vec $data, $_, 1 } 0 .. 8 * length($data) - 1;
    }

    die scalar(@ids) . " ids, and not $n" if @ids != $n;

    return \@ids;
}


# The logits and experts of a model for these ids, computed by "dsa logits" in
# one step: { logits => [rows], experts => [positions of layers of experts] }.

sub reference {
    my ($t, $model, $ids) = @_;

    my ($in, $out) = map { $t->path("$_.safetensors") } qw/ ids reference /;

    write_tensors($in, tokens => [ 'I32', [ scalar @$ids ], @$ids ]);

    system($t->build . '/dsa', 'logits', '--exact', '--trace', '--model',
           $model, '--tokens', $in, '--out', $out) == 0
        or die "dsa logits failed\n";

    my $got = tensors($out);
    my @layers = sort { $a <=> $b } map { /^expert\.(\d+)$/ ? $1 : () }
                                        keys %$got;

    return { logits => $got->{logits}, experts => [ map {
        my $p = $_;
        [ map { $got->{"expert.$_"}[$p] } @layers ] } 0 .. $#$ids ] };
}


# What a token is drawn from, by the documented formula: a list of [id, p] in
# falling order of p, over all ids that are possible, and how many of them
# top_p keeps.  opt: temperature, top_p, frequency, presence, history, bias,
# permitted (a hash of ids).

sub draws {
    my ($logits, $n, %opt) = @_;

    my %z = map { $_ => $logits->[$_] } 0 .. $n - 1;
    my %count;

    $count{$_}++ for @{ $opt{history} || [] };
    $z{$_} -= ($opt{presence} || 0) + ($opt{frequency} || 0) * $count{$_}
        for keys %count;

    %z = map { $_ => $z{$_} } grep { $opt{permitted}{$_} } keys %z
        if $opt{permitted};

    for my $id (keys %{ $opt{bias} || {} }) {
        $z{$id} += $opt{bias}{$id};
        delete $z{$id} if $opt{bias}{$id} == -100;
    }

    my @order = sort { $z{$b} <=> $z{$a} || $a <=> $b } keys %z;

    return ([ [ $order[0], 1 ] ], 1) if $opt{temperature} == 0;

    my $max = $z{$order[0]};
    my @w = map { exp(($z{$_} - $max) / $opt{temperature}) } @order;
    my $sum = sum0(@w);
    my ($kept, $mass) = (0, 0);

    while ($kept < @w && ($opt{top_p} == 1 || $mass < $opt{top_p})) {
        $mass += $w[$kept++] / $sum;
    }

    return ([ map { [ $order[$_], $w[$_] / $sum ] } 0 .. $#order ], $kept);
}


# The texts of a tokenizer's ids, as tokenizer.json has them.

sub vocabulary {
    my ($model) = @_;

    my $json = decode_json(read_file("$model/tokenizer.json"));
    my %ids = (%{ $json->{model}{vocab} },
               map { $_->{content} => $_->{id} } @{ $json->{added_tokens} });
    my @texts;

    $texts[$ids{$_}] = $_ for keys %ids;

    return @texts;
}


1;
