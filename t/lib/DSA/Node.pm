package DSA::Node;

# Copyright (C) The nginx-dsa authors
#
# Installs programs for Node and their packages into the build directory, and
# runs them.

use strict;
use warnings;

use Exporter qw/ import /;
use Fcntl qw/ :flock /;
use File::Basename qw/ basename /;
use File::Copy qw/ copy /;
use File::Temp;
use IPC::Open2;
use JSON::PP ();
use Test::More;

use DSA::Test;

our @EXPORT_OK = qw/ install installed jobs service /;


# install(FROM, TO, FILES...) copies these files to the directory TO and
# installs the packages of FROM's package-lock.json there.  Packages are fetched
# only once.  Returns the reason if that is not possible.

sub install {
    my ($from, $to, @files) = @_;

    for my $program (qw/ node npm /) {
        return "no $program"
            if system("command -v $program > /dev/null 2>&1") != 0;
    }

    mkdir $to;
    open my $lock, '>', "$to/.lock" or die "$to: $!\n";
    flock $lock, LOCK_EX;

    my $same = (read_file("$to/package-lock.json") || '')
               eq read_file("$from/package-lock.json");

    for ('package.json', 'package-lock.json', @files) {
        copy("$from/$_", "$to/$_") or die "copy $_: $!\n";
    }

    return if $same && -e "$to/node_modules/.package-lock.json";

    my $out = `cd '$to' && npm ci --no-audit --no-fund --omit=peer \\
                   --fetch-retries=1 2>&1`;

    if ($? != 0) {
        unlink "$to/package-lock.json";
        $out = join ' ', $out =~ /^npm (?:ERR!|error) (?:code|request) .*/mg;
        return "npm cannot fetch the package: $out";
    }

    return;
}


# installed(TEST, FROM, FILES...) installs from FROM, a path in this tree, to a
# folder of the build directory and returns that.  If it cannot install, it ends
# the test file: as skipped, or as failed if DSA_NO_SKIP is set.

sub installed {
    my ($t, $from, @files) = @_;

    my $to = $t->build . '/' . basename($from);
    my $why = install("$DSA::Test::root/$from", $to, @files) // return $to;

    plan skip_all => $why if !$ENV{DSA_NO_SKIP};
    fail($why);
    done_testing();
    exit;
}


# jobs(PROGRAM, ARGS, JOBS) runs a program that reads a JSON array of jobs and
# prints one of results, which it returns as a list.

sub jobs {
    my ($program, $args, $jobs) = @_;

    my $file = File::Temp->new();

    write_file($file->filename, json_encode($jobs));

    open my $fh, '-|', 'sh', '-c', 'exec node "$@" < "$0"', $file->filename,
         $program, @$args or die "node: $!\n";
    local $/;
    my $out = <$fh>;
    close $fh or die "$program failed\n";

    return @{ json_decode($out) };
}


# service(PROGRAM, ARGS...) starts a program that reads lines of JSON, and
# answers each by one of its own, until its input ends.  Returns a function that
# sends its arguments as an array and returns the answer.  A start of a program
# takes longer than most requests.

sub service {
    my ($program, @args) = @_;

    open2(my $out, my $in, 'node', $program, @args);

    # Node takes some other characters for the end of a line, too

    my $json = JSON::PP->new->ascii->canonical;

    return sub {
        local $SIG{PIPE} = 'IGNORE';

        print {$in} $json->encode(\@_), "\n" or die "$program: $!\n";
        my $line = <$out> // die "$program failed\n";

        return json_decode($line);
    };
}


1;
