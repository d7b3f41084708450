package DSA::Golden;

# Copyright (C) The nginx-dsa authors
#
# t/data/golden keeps sums of the float32 outputs.  A test that needs the logits
# themselves computes them on the CPU with the oracle's selection and compares
# their sums with the oracle's.

use strict;
use warnings;

use Exporter qw/ import /;
use List::Util qw/ max min /;
use Test::More;

use DSA::Tensors;
use DSA::Test qw/ json_decode json_encode read_file write_file /;

our @EXPORT = qw/ same_sums same_experts exact_logits dsa_logits dsa_same
                  variant_of in_bf16 in_fp8 near /;


# Checks that each row is within $bound, or 1e-4, of the oracle's, by sums.  The
# bound for sums is half of that, because they may be nearer than the rows.
# Returns the largest distance.

sub same_sums {
    my ($got, $want, $name, $bound) = @_;

    my ($most) = sort { $b <=> $a } distances(sums($got), $want);

    at_most($most, 0.5 * ($bound // 1e-4), $name);

    return $most;
}


# Checks that the GPU's logits are about as far from float32 as the CPU's in
# served precision.  Rows with another choice of experts are several times as
# far as the others.  About a tenth of the rows are, so that a quantile there
# would depend on a few of them; their number is compared instead.  It varies
# by its square root, and three times that is allowed.

sub near {
    my ($name, $exact, $cpu, $gpu) = @_;

    my ($got, $twin) = map { [ distances($_, $exact) ] } $gpu, $cpu;
    my $median = quantile(0.5, @$twin);

    for my $q (0.1, 0.5) {
        my ($g, $c) = map { quantile($q, @$_) } $got, $twin;
        my $what = sprintf '%s: %d %% from float32', $name, $q * 100;

        note(sprintf '%s: %.4f (CPU %.4f)', $what, $g, $c);
        at_most($g, 1.1 * $c, $what);
    }

    my ($g, $c) = map { scalar grep { $_ > 2 * $median } @$_ } $got, $twin;

    note("$name: $g rows are far from float32 (CPU $c)");
    at_most($g, $c + 3 * sqrt($c + 1), "$name: rows with other experts");
}


# Checks the experts of each layer and their weights, which have no order.

sub same_experts {
    my ($got, $want, $name) = @_;

    for my $l (map { /^expert\.(\d+)$/ ? $1 : () } sort keys %$want) {
        my @wrong = differing($got->{"expert.$l"}, $want->{"expert.$l"});
        is("@wrong", '', "$name: expert.$l");

        my $off = 0;

        for my $row (0 .. $#{$want->{"expert.$l"}}) {
            my (%w, %g);
            @w{@{$want->{"expert.$l"}[$row]}}
                = @{$want->{"expert_weight.$l"}[$row]};
            @g{@{$got->{"expert.$l"}[$row]}}
                = @{$got->{"expert_weight.$l"}[$row]};
            $off = max($off, map { abs($w{$_} - ($g{$_} // 1e9)) } keys %w);
        }

        at_most($off, 1e-5, "$name: expert_weight.$l");
    }
}


# Runs "dsa logits" of the program $dsa; $out is a file to write.  Returns its
# tensors, or undef after a failure, what it logged, and its exit status.

sub dsa_logits {
    my ($dsa, $out, $model, $tokens, @args) = @_;

    unlink $out;

    my $rc = system 'sh', '-c', 'exec "$@" 2> "$0"', "$out.log", $dsa,
                    'logits', '--model', $model, '--tokens', $tokens, '--out',
                    $out, @args;

    return $rc == 0 ? tensors($out) : undef, read_file("$out.log"), $rc >> 8;
}


# Checks that all outputs of two models have the same bits, and returns those of
# the first one.  The arguments are otherwise those of dsa_logits().

sub dsa_same {
    my ($dsa, $out, $tokens, $one, $two, $what, @args) = @_;

    my ($got, $log) = dsa_logits($dsa, $out, $one, $tokens, @args);
    my ($want, $why) = dsa_logits($dsa, $out, $two, $tokens, @args);

    ok($got && $want, "$what: computed") or return diag("$log$why");

    is(join(' ', grep { max(map { abs } distances($got->{$_}, $want->{$_})) }
                 sort keys %$want), '', "$what: every bit");

    return $got;
}


# Makes a directory $to with the weights of the model in $from and a config.json
# in which these fields are different; those with undef are left out.

sub variant_of {
    my ($from, $to, %fields) = @_;

    my %config = (%{json_decode(read_file("$from/config.json"))}, %fields);

    delete $config{$_} for grep { !defined $config{$_} } keys %fields;

    mkdir $to or die "$to: $!\n";
    write_file("$to/config.json", json_encode(\%config));

    for my $part (glob "$from/model*") {
        symlink $part, $to . '/' . ($part =~ s{.*/}{}r) or die "$part: $!\n";
    }

    return $to;
}


# Makes a directory $to with the FP8 model in $from, its weights in BF16: those
# of scales that are powers of two are the same numbers, others are rounded.

sub in_bf16 {
    my ($from, $to) = @_;

    my $raw = raw_tensors($from);

    for my $name (grep { $raw->{$_}[0] eq 'F8_E4M3' } keys %$raw) {
        my ($dtype, $shape, $data) = @{$raw->{$name}};
        my $scales = delete $raw->{"${name}_scale_inv"};

        $raw->{$name} = [ 'BF16', $shape,
                          decode_fp8($shape, $data, $scales->[2]) ];
    }

    return raw_model($from, $to, $raw, undef);
}


# Makes a directory $to with the BF16 model in $from, its matrices in FP8 as
# "weights fp8" makes them: the layers' but the router, the heads' weights of
# the indexer, and eh_proj.

sub in_fp8 {
    my ($from, $to) = @_;

    my $raw = raw_tensors($from);

    for my $name (grep { /_proj(?:_with_mqa)?\.weight$|indexer\.w(?:q_b|k)\.w/
                         && !/weights_proj|eh_proj/ } keys %$raw)
    {
        my ($dtype, $shape, $data) = @{$raw->{$name}};
        my ($codes, $scales) = encode_fp8($shape, $data);
        my @blocks = map { int(($_ + 127) / 128) } @$shape;

        $raw->{$name} = [ 'F8_E4M3', $shape, $codes ];
        $raw->{"${name}_scale_inv"} = [ 'F32', \@blocks, $scales ];
    }

    return raw_model($from, $to, $raw,
                     { quant_method => 'fp8', fmt => 'e4m3',
                       activation_scheme => 'dynamic',
                       weight_block_size => [ 128, 128 ] });
}


# The tensors of a directory: name => [ dtype, shape, bytes ].

sub raw_tensors {
    my ($dir) = @_;

    my %raw;

    for my $part (glob "$dir/model*.safetensors") {
        my $text = read_file($part);
        my $n = unpack 'Q<', $text;
        my $names = json_decode(substr $text, 8, $n);

        for my $name (grep { $_ ne '__metadata__' } keys %$names) {
            my ($dtype, $shape, $at) =
                @{$names->{$name}}{qw(dtype shape data_offsets)};

            $raw{$name} = [ $dtype, $shape,
                            substr $text, 8 + $n + $at->[0],
                                   $at->[1] - $at->[0] ];
        }
    }

    return \%raw;
}


# Writes such tensors to a new directory, with the config.json of $from and this
# quantization_config; undef: none.

sub raw_model {
    my ($from, $to, $raw, $quantization) = @_;

    my %config = %{json_decode(read_file("$from/config.json"))};
    delete $config{quantization_config};
    $config{quantization_config} = $quantization if $quantization;

    mkdir $to or die "$to: $!\n";
    write_file("$to/config.json", json_encode(\%config));
    raw_file("$to/model.safetensors", $raw);

    return $to;
}


# Writes such tensors to a file.

sub raw_file {
    my ($path, $raw) = @_;

    my %head;
    my $body = '';

    # the longer elements first, so that each is aligned to its size

    my %size = (F32 => 4, BF16 => 2, F16 => 2, F8_E4M3 => 1, I8 => 1);

    for my $name (sort { $size{$raw->{$b}[0]} <=> $size{$raw->{$a}[0]}
                         || $a cmp $b } keys %$raw)
    {
        my ($dtype, $shape, $data) = @{$raw->{$name}};

        $head{$name} = { dtype => $dtype, shape => $shape,
                         data_offsets => [ length $body,
                                           length($body) + length $data ] };
        $body .= $data;
    }

    my $head = json_encode(\%head);
    $head .= ' ' x (-length($head) % 8);

    write_file($path, pack('Q<', length $head) . $head . $body);
}


# The numbers of the codes of e4m3.

sub e4m3 {
    return map {
        my ($e, $m) = ($_ >> 3 & 15, $_ & 7);
        my $v = $e == 0 ? $m * 2 ** -9 : (8 + $m) * 2 ** ($e - 10);

        $_ & 128 ? -$v : $v;
    } 0 .. 255;
}


# Returns a matrix of e4m3 codes and of float32 scales of 128 x 128 blocks in
# BF16.

sub decode_fp8 {
    my ($shape, $codes, $scales) = @_;

    my ($rows, $cols) = @$shape;
    my @scale = unpack 'f<*', $scales;
    my $blocks = int(($cols + 127) / 128);
    my $out = '';
    my @value = e4m3();
    my %table;

    for my $row (0 .. $rows - 1) {
        for my $block (0 .. $blocks - 1) {
            my $s = $scale[int($row / 128) * $blocks + $block];
            my $n = $block * 128 + 128 > $cols ? $cols % 128 : 128;
            my $bf16 = $table{$s} //= [
                unpack '(a2)*', DSA::Tensors::to_bytes('BF16',
                                                       map { $_ * $s }
                                                       @value) ];

            $out .= join '', @{$bf16}[unpack 'C*',
                                      substr $codes,
                                             $row * $cols + $block * 128, $n];
        }
    }

    return $out;
}


sub f32 { unpack 'f<', pack 'f<', $_[0] }


# Returns the codes of a BF16 matrix, and the float32 scales of its blocks: the
# largest magnitude, at least 1e-4, divided by 448.  A code is the nearest one,
# of two as near the even one.

sub encode_fp8 {
    my ($shape, $data) = @_;

    my ($rows, $cols) = @$shape;
    my @x = DSA::Tensors::from_bytes('BF16', $data);
    my @value = (e4m3())[0 .. 126];
    my @code = (0) x @x;
    my @scale;

    for my $top (map { $_ * 128 } 0 .. ($rows - 1) / 128) {
        for my $left (map { $_ * 128 } 0 .. ($cols - 1) / 128) {
            my @at = map {
                my $row = $_ * $cols;
                map { $row + $_ } $left .. min($left + 127, $cols - 1);
            } $top .. min($top + 127, $rows - 1);

            my $s = f32(max(f32(1e-4), map { abs } @x[@at]) / 448);
            my %known;

            push @scale, $s;

            for my $i (@at) {
                $code[$i] = $known{$x[$i]} //= do {
                    my $v = f32(abs($x[$i]) / $s);
                    my ($low, $high) = (0, 126);

                    while ($low < $high) {
                        my $middle = ($low + $high + 1) >> 1;

                        if ($value[$middle] <= $v) {
                            $low = $middle;

                        } else {
                            $high = $middle - 1;
                        }
                    }

                    if ($low < 126) {
                        my $rest = 2 * $v - $value[$low] - $value[$low + 1];
                        $low++ if $rest > 0 || ($rest == 0 && $low & 1);
                    }

                    $low | ($x[$i] < 0 ? 128 : 0);
                };
            }
        }
    }

    return pack('C*', @code), pack 'f<*', @scale;
}


# By the program $dsa and for the model in $dir; $out is a file to write.

sub exact_logits {
    my ($dsa, $dir, $out) = @_;

    my $golden = "$dir/golden.safetensors";
    my ($got, $log) = dsa_logits($dsa, $out, $dir, $golden, '--exact',
                                 '--select', $golden);

    die "dsa logits --exact: $log\n" if !$got;

    my $logits = $got->{logits};

    same_sums($logits, tensors($golden)->{logits},
              'float32 logits and transformers');

    return $logits;
}


1;
