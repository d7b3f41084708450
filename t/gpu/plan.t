# Copyright (C) The nginx-dsa authors
#
# The plan of GPU memory on a machine with GPUs: "dsa-engine -t" compares it
# with their memory.  t/plan.t has the rest.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;
use Test::More;

need_gpu();

my $t = DSA::Test->new('gpu plan');
my $gb = qr/\d+\.\d\d/;

mkdir $t->path($_) or die "mkdir: $!\n" for qw/ v32 four /;

my $config = read_file("$DSA::Test::root/bench/v3.2/config.json");
my $tokenizer = read_file($t->model . '/tokenizer.json');

write_file($t->path("$_/tokenizer.json"), $tokenizer) for qw/ v32 four /;
write_file($t->path('v32/config.json'), $config);

# four layers, one with experts, which fit a GPU

$config =~ s/("num_hidden_layers": )61/${1}4/ or die "no layers\n";
write_file($t->path('four/config.json'), $config);


# (exit status, output) of dsa-engine -t

sub check {
    my ($model, $text) = @_;

    my $conf = write_file($t->path('engine.conf'), 'model ' . $t->path($model)
                          . '; listen unix:' . $t->path('%n.sock')
                          . '; backend cuda; weights random; speculate off; '
                          . $text);

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
        $t->build . '/dsa-engine', '-t', '-c', $conf or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


my ($rc, $out) = check('v32', '');
is($rc, 1, 'DeepSeek-V3.2 does not fit one GPU');
like($out, qr{\Adsa-engine:\ GPU\ 0\ has\ $gb\ GB\ of\ memory\ but\ needs\ $gb
              \ =\ weights\ 676\.11\ \+\ .*;
              \ enough\ for\ a\ context\ of\ 163840\ tokens:
              \ (?:8|16)\ such\ GPUs\ with\ "attention\ data",
              \ or\ (?:8|16)\ such\ GPUs\ with\ "attention\ tensor"\n\z}x,
     'the error has the needs and what would be enough');

my $n = gpus();
($rc, $out) = check('four', "gpus 0,$n;");
is($rc, 1, 'a GPU that does not exist');
like($out, qr/: GPU $n does not exist; expected a number below $n /,
     'the reason');


# the parts of each GPU's memory add up, to the rounding of each

for my $text ('', 'kv_memory 4g;', $n > 1 ? ('gpus 2;',
              'gpus 1,0; attention tensor;') : ())
{
    ($rc, $out) = check('four', $text);
    is($rc, 0, "four layers: $text") or diag($out);

    my @plan = $out =~ /^dsa-engine: GPU \d: ($gb GB = .*)$/mg;
    is(scalar @plan, $text =~ /gpus/ ? 2 : 1, 'a line for each GPU');

    for (@plan) {
        my ($sum, @parts) = /($gb)/g;

        $sum -= $_ for @parts;
        cmp_ok(abs($sum), '<', 0.04, 'the parts add up') or diag($_);
    }

    my ($pages, $all) = $out =~ /; (\d+) pages of 64 tokens.*, ($gb) M tokens/;
    my $ranks = $text =~ /gpus 2/ ? 2 : 1;

    cmp_ok(abs($pages * 64 * $ranks * 1e-6 - $all), '<', 0.006,
           'the tokens of KV in all') or diag($out);
}

$t->done;
