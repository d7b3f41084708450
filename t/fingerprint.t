# Copyright (C) The nginx-dsa authors
#
# dsa fingerprint beside the documented hash, computed here from the files.

use strict;
use warnings;

use Digest::SHA qw/ sha256 sha256_hex /;

use lib 't/lib';
use DSA::Test;
use Test::More;

use constant LEAF => 8 << 20;

my $t = DSA::Test->new('fingerprint');
my $dsa = $t->build . '/dsa';

chdir $DSA::Test::root or die "chdir: $!\n";


sub fingerprint {
    my (@args) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', $dsa, 'fingerprint',
         @args
        or die "sh: $!\n";

    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


sub expected {
    my ($dir) = @_;

    my @files = sort glob "$dir/model*.safetensors";
    my $text = sha256(read_file("$dir/config.json")) . pack 'Q<', scalar @files;

    for my $path (@files) {
        my $data = read_file($path);
        my ($name) = $path =~ m{([^/]+)\z};

        $text .= pack 'Q</a* Q<', $name, length $data;

        for (my $at = 0; $at < length $data; $at += LEAF) {
            $text .= sha256(substr $data, $at, LEAF);
        }
    }

    return sha256_hex($text);
}


# here each file has one leaf; t/unit/test_scan.c has files with several

for my $dir (qw{ t/data/golden/a-fp8 t/data/golden/b-bf16 demo/model },
             $t->build . '/model')
{
    next if !(() = glob "$dir/model*.safetensors");

    my ($rc, $out) = fingerprint('--model', $dir);
    my $expected = expected($dir);

    is($rc, 0, "$dir: exit status");
    like($out, qr/^\Q$expected\E$/m, "$dir: its fingerprint");
}

for ([ 2, qr/^usage: dsa fingerprint/ ],
     [ 2, qr/^usage: dsa fingerprint/, '--model', 'x', 'more' ],
     [ 0, qr/^usage: dsa fingerprint/, '--help' ],
     [ 1, qr{^dsa fingerprint: /nonexistent/config.json: No such file},
       '--model', '/nonexistent' ])
{
    my ($status, $text, @args) = @$_;
    my ($rc, $out) = fingerprint(@args);

    is($rc, $status, "exit status of \"@args\"");
    like($out, $text, "output of \"@args\"");
}

$t->done;
