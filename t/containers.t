# Copyright (C) The nginx-dsa authors
#
# The configurations in containers/ are accepted, and what several of its files
# have in common is the same.  "make containers" runs them.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use DSA::Weights;
use Test::More;

my $t = DSA::Test->new('containers');
my $dir = $t->dir;
my $from = "$DSA::Test::root/containers";
my %file = map { m{([^/]+)$} ? ($1, read_file($_)) : () } glob "$from/*";


# nginx and the engines accept their configurations

my $conf = $file{'nginx.conf'};
my $module = $t->build . '/ngx_http_dsa_module.so';

ok($conf =~ s{modules/ngx_http_dsa_module\.so}{$module}, 'loads the module');
ok($conf =~ s{redis:6379}{127.0.0.1:6379}, 'a server named redis');
$conf =~ s{/run/nginx/|/var/lib/nginx/ledger/|/dev/(?=stdout)}{$dir/}g;
$conf = "user root root;\n$conf" if $> == 0;

my ($status, $out) = $t->nginx_test(conf => $conf);

is($status, 0, 'nginx.conf is accepted') or diag($out);
unlike($out, qr/\[(?:warn|error|emerg)\]/, 'without a warning');

my $v32 = $t->path('v32');

mkdir $v32 or die "mkdir: $!\n";
write_file("$v32/config.json",
           read_file("$DSA::Test::root/bench/v3.2/config.json"));
write_file("$v32/tokenizer.json", read_file($t->model . '/tokenizer.json'));
sparse_weights($v32);

for ([ 'engine.conf', $t->model ], [ 'engine-cuda.conf', $v32 ]) {
    my ($name, $model) = @$_;
    my $text = $file{$name} =~ s{/model;}{$model;}r =~ s{/run/dsa/}{$dir/}r;

    write_file($t->path($name), $text);

    $out = qx{${\ $t->build }/dsa-engine -t -c ${\ $t->path($name) } 2>&1};

    SKIP: {
        skip("$name needs a build with CUDA", 1)
            if $out =~ /"backend" is "cuda"|without CUDA/;
        like($out, qr/ is valid$/m, "$name is accepted");
    }
}


# the socket

my ($sock) = $file{'nginx.conf'} =~ /engine\s+(unix:\S+);/;

for my $name ('engine.conf', 'engine-cuda.conf') {
    like($file{$name}, qr/^listen\s+\Q$sock\E;$/m, "$name: nginx's socket");
}

my @images = map { "Containerfile.$_" } qw/ nginx engine engine-cuda /;

like($file{$_}, qr/install -d -o 10001 -g 33 -m 2770 \/run\/dsa$/m,
     "$_: its directory") for @images;


# users that are not root, and signals that let answers finish

for (@images, 'Containerfile.redis') {
    my ($user) = $file{$_} =~ /^USER ([\d:]+)$/m;

    like($user // '', qr/^[1-9]\d*:[1-9]\d*$/, "$_: a user by number");
    like($file{$_}, qr/^FROM docker\.io\/library\/debian:bookworm-slim$/m,
         "$_: from Debian");
}

like($file{'Containerfile.nginx'}, qr/^STOPSIGNAL SIGQUIT$/m,
     'nginx finishes its streams');
like($file{'Containerfile.engine'}, qr/^STOPSIGNAL SIGTERM$/m,
     'an engine its answers');

my ($worker) = $file{'nginx.conf'} =~ /worker_shutdown_timeout\s+(\d+)m;/;
my ($drain) = $file{'engine-cuda.conf'} =~ /drain_timeout\s+(\d+)m;/;
my ($pod) = $file{'kubernetes.yaml'} =~ /GracePeriodSeconds: (\d+)$/m;
my @sleep = $file{'kubernetes.yaml'} =~ /\[sleep, "(\d+)"\]/g;
my @grace = $file{'compose.yaml'} =~ /stop_grace_period: (\d+)m/g;

is(scalar @sleep, 2, 'both containers wait for the service');
cmp_ok($pod, '>', 60 * $worker + $_, 'a pod has time for streams') for @sleep;
cmp_ok($pod, '>', 60 * $drain + $_, 'and for answers') for @sleep;
cmp_ok($_, '>', $worker, 'compose gives time') for @grace;
is(scalar @grace, 2, 'to both');


# what probes and mounts name exists

my %location = map { $_ => 1 } $file{'nginx.conf'} =~ /location = (\S+) \{/g;
my %port = map { $_ => 1 } $file{'nginx.conf'} =~ /listen\s+(\d+);/g;

for ($file{'kubernetes.yaml'} =~ /path: (\/\w+), port/g,
     $file{'compose.yaml'} =~ m{127\.0\.0\.1:8080(/\w+)"})
{
    ok($location{$_}, "a probe of $_");
}

for ($file{'kubernetes.yaml'} =~ /(?:containerPort|port): (\d{4})\b/g,
     $file{'Containerfile.nginx'} =~ /EXPOSE (\d+)/)
{
    ok($port{$_}, "port $_");
}

for ($file{'kubernetes.yaml'} =~ /subPath: (\S+) \}/g,
     $file{'kustomization.yaml'} =~ /([\w-]+\.(?:conf|yaml))/g,
     $file{'compose.yaml'} =~ m{dockerfile: containers/(\S+) \}}g,
     (map { $file{$_} =~ m{^COPY containers/(\S+) }mg } @images))
{
    ok(exists $file{$_}, "$_ is here");
}

$t->done;
