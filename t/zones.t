# Copyright (C) The nginx-dsa authors
#
# Zones of another layout: nginx keeps the configuration that it has.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('zones');

$t->start_redis();
$t->start_fake() for 1, 2;
$t->start_nginx();


# The shared memory of the master: [ address, bytes ] of each mapping.

my $memory;

sub mappings {
    no warnings 'portable';     # addresses have more than 32 bits

    my $pid = $t->nginx_pid;
    my @ranges = map { /^(\w+)-(\w+) rw-s .*\/dev\/zero/
                       ? [ hex $1, hex($2) - hex($1) ] : () }
                 split /\n/, read_file("/proc/$pid/maps");

    open $memory, '+<:raw', "/proc/$pid/mem" or return;

    return map {
        my ($address, $size) = @$_;
        my $bytes;
        sysseek $memory, $address, 0;
        (sysread($memory, $bytes, $size) // -1) == $size
            ? [ $address, $bytes ] : ()
    } @ranges;
}


sub poke {
    my ($address, $bytes) = @_;

    sysseek $memory, $address, 0;

    return (syswrite($memory, $bytes) // -1) == length $bytes;
}


# the addresses of the headers; each is 16 bytes, magic and layout

my @headers = map {
    my ($address, $bytes) = @$_;
    my @at;
    push @at, [ $address + $-[0], substr $bytes, $-[0] + 8, 8 ]
        while $bytes =~ /dsa-zone/g;
    @at
} mappings();

if (!@headers || !poke($headers[0][0] + 8, $headers[0][1])) {
    BAIL_OUT('cannot write to the memory of nginx') if $ENV{DSA_NO_SKIP};
    plan skip_all => 'cannot write to the memory of nginx';
}

# every call adds a zone with a header, or one whose memory is not used again

my $added = 0;

for my $file (glob "$DSA::Test::root/ngx_module/*/*.c") {
    my $text = read_file($file);
    my $n = () = $text =~ /ngx_shared_memory_add\(/g;
    my $without = () = $text =~ /->noreuse = 1/g;
    my $checked = () = $text =~ /ngx_http_dsa_zone_open\(/g;

    is($checked + $without, $n, "$file: $n") if $n;
    $added += $n;
}

cmp_ok($added, '>=', 3, 'there are zones');
cmp_ok(scalar @headers, '>=', 2, 'and headers in memory');

$t->allow_alert(qr/another version of the module made the zone/);

my @workers = $t->workers;

for my $header (@headers) {
    my ($address, $layout) = @$header;

    for (["\0", 'magic', 0, 'd'],
         [pack('Q<', 1 + unpack 'Q<', $layout), 'layout', 8, $layout])
    {
        my ($bytes, $what, $offset, $before) = @$_;
        my $n = $t->logged(qr/\[emerg\]/);

        ok(poke($address + $offset, $bytes), "another $what");
        kill 'HUP', $t->nginx_pid;
        wait_until(sub { $t->logged(qr/\[emerg\]/) > $n }, 20, 'an error');
        poke($address + $offset, $before);
    }

    is_deeply([ $t->workers ], \@workers, 'the workers are the same');
    is($t->post($chat, ask('x'))->{status}, 200, 'and serve');
}

my %names = map { $_ => 1 }
            $t->error_log =~ /the module made the zone "(\S+)", so that/g;

is(scalar keys %names, scalar @headers, 'the error has the name of the zone');
ok($names{$_}, $_) for 'dsa_metrics', 'dsa_pool:v32';

$t->reload();
is($t->post($chat, ask('x'))->{status}, 200, 'a reload with the right layouts');
cmp_ok($t->metrics->{'dsa_requests_total{code="200"}'}, '>', 2,
       'the counters are still there');

$t->done;
