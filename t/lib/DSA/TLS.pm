package DSA::TLS;

# Copyright (C) The nginx-dsa authors
#
# Certificates of the test, made by openssl.

use strict;
use warnings;

use Exporter qw/ import /;

use DSA::Test;

our @EXPORT = qw/ make_ca make_certificate /;


sub run {
    my ($dir, @argv) = @_;

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>>', "$dir/openssl.out";
        open STDERR, '>&', \*STDOUT;
        exec @argv or die "exec $argv[0]: $!\n";
    }

    waitpid $pid, 0;
    $? == 0 or die "@argv failed: ", read_file("$dir/openssl.out"), "\n";

    return;
}


# NAME.pem and NAME.key in the directory: a CA.

sub make_ca {
    my ($dir, $name) = @_;

    run($dir, qw/ openssl req -x509 -newkey ec -pkeyopt
                  ec_paramgen_curve:prime256v1 -nodes -days 30 /,
        '-subj', "/CN=$name", '-keyout', "$dir/$name.key",
        '-out', "$dir/$name.pem");

    return "$dir/$name.pem";
}


# The same: a certificate of a CA for names, as "DNS:redis.test,IP:127.0.0.1".
# It has ended if days is not positive.

sub make_certificate {
    my ($dir, $ca, $name, $names, $days) = @_;

    $days = 30 if !defined $days;

    write_file("$dir/$name.ext", "subjectAltName = $names\n");

    run($dir, qw/ openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1
                  -nodes /, '-subj', "/CN=$name", '-keyout', "$dir/$name.key",
        '-out', "$dir/$name.csr");
    run($dir, qw/ openssl x509 -req -CAcreateserial -days /, $days,
        '-in', "$dir/$name.csr", '-CA', "$dir/$ca.pem", '-CAkey',
        "$dir/$ca.key", '-extfile', "$dir/$name.ext", '-out',
        "$dir/$name.pem");

    return "$dir/$name.pem";
}


1;
