# Copyright (C) The nginx-dsa authors
#
# What the packages are made of: which programs the Makefile links with NVIDIA's
# libraries, the versions of packages for several distributions, and the
# packages that an engine with CUDA depends on.  "make deb-install" tries the
# packages themselves.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Test;

my $t = DSA::Test->new('packages');

chdir $DSA::Test::root or die "chdir: $!\n";


# (exit status, stdout and stderr)

sub run {
    my (@argv) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', @argv
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> } // '';
    close $fh;

    return ($? >> 8, $out);
}


# The link lines of a build with a CUDA toolkit, which is not run: a directory
# with a header and with an nvcc that reports where it is.

my $toolkit = $t->path('cuda');

mkdir "$toolkit$_" or die "mkdir: $!\n" for '', qw{ /bin /include /lib64 };
write_file("$toolkit/include/cublasLt.h", '');
write_file("$toolkit/bin/nvcc", <<"END");
#!/bin/sh
case \$1 in
--version) echo "Cuda compilation tools, release 13.2, V13.2.5" ;;
*)         echo "#\\\$ TOP=$toolkit" >&2 ;;
esac
END
chmod 0755, "$toolkit/bin/nvcc" or die "chmod: $!\n";

my $build = $t->path('build');

sub links {
    my ($nvcc, @targets) = @_;

    # the directories of a make that runs this test are not those of this one

    local @ENV{qw/ MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES /};
    delete @ENV{qw/ MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES /};

    my ($rc, $out) = run('make', '-n', "BUILD=$build", "NVCC=$nvcc", @targets);

    is($rc, 0, "make -n @targets") or diag($out);

    my %link = map { (/ -o \Q$build\E\/(\S+)/)[0] => $_ }
               grep { / -o \Q$build\E\/\S+/ && !/ -c / } split /\n/, $out;

    return \%link;
}

sub cuda {
    my ($links) = @_;

    return [ grep { $links->{$_} =~ / -lcu|libdsa-cuda|\/cuda\/\S+\.o / }
             sort keys %$links ];
}

my $with = links("$toolkit/bin/nvcc", qw/ engine tools tests /);
my @test = map { s{.*/(\w+)\.c}{t/$1}r } glob 't/gpu/test_*.c';

is_deeply(cuda($with), [ sort qw{ dsa-cuda dsa-engine t/gpu_speculate
                                     t/test_conf }, @test ],
          'with CUDA are linked: the engine, the tools for the GPU, tests');
like($with->{$_}, qr/ -lcublasLt /, "$_: with cuBLASLt")
    for qw{ dsa-cuda dsa-engine };
ok($with->{dsa}, 'the command line is linked');
unlike($with->{$_}, qr/\Q$toolkit\E/, "$_: without the toolkit")
    for qw{ dsa t/hang_engine t/test_link };

my $without = links('', qw/ engine tools tests /);

is_deeply(cuda($without), [], 'a build without nvcc links none of it');
ok(!$without->{'dsa-cuda'}, 'and has no tools for the GPU');


# what was built here

my ($rc, $out) = run('readelf', '-d', $t->build . '/dsa');

is($rc, 0, 'dsa: its libraries');
like($out, qr/\(NEEDED\)/, 'it has some');
unlike($out, qr/lib(?:cu|nv)\w*\.so/, 'none is of NVIDIA');


# versions

sub version {
    my (@lines) = @_;

    my $file = write_file($t->path('os-release'), join "\n", @lines, '');
    my ($rc, $out) = run('debian/version', $file);

    is($rc, 0, "a version for @lines");
    chomp $out;

    return $out;
}

my ($source) = read_file('debian/changelog') =~ /^\S+ \((\S+)\)/
    or die "debian/changelog has no version\n";

my @rising = (version('ID=debian', 'VERSION_ID="9"'),
              version('ID=debian', 'VERSION_ID="12"'),
              version('PRETTY_NAME="Debian GNU/Linux 13 (trixie)"',
                      'ID=debian', 'VERSION_ID="13"'),
              version('ID=debian'));

is($rising[1], "$source~deb12", 'the release is in the version');
is($rising[3], $source, 'unstable has no release');
is(version('ID=ubuntu', 'VERSION_ID="24.04"'), "$source~ubuntu24.04",
   'another distribution');

for my $i (1 .. $#rising) {
    is((run('dpkg', '--compare-versions', $rising[$i], 'gt',
            $rising[$i - 1]))[0], 0,
       "$rising[$i] upgrades $rising[$i - 1]");
}

# the next version of the source is above all of this one

(my $next = $source) =~ s/(\d+)$/$1 + 1/e;

is((run('dpkg', '--compare-versions', "$next~deb12", 'gt', $rising[3]))[0], 0,
   "$next~deb12 upgrades $rising[3]");


# what the package of an engine with CUDA depends on

# An executable with these libraries: a program that ld would make is enough for
# readelf.

sub program {
    my ($name, @libraries) = @_;

    my $file = $t->path($name);

    for (@libraries) {
        next if -e "$toolkit/lib64/$_";
        is((run('cc', '-shared', '-o', "$toolkit/lib64/$_", "-Wl,-soname,$_",
                '-x', 'c', '/dev/null'))[0], 0, "a library $_");
    }

    my ($rc, $out) = run('cc', '-shared', '-o', $file, '-Wl,--no-as-needed',
                         '-x', 'c', '/dev/null', '-x', 'none',
                         map { "$toolkit/lib64/$_" } @libraries);

    is($rc, 0, "a program with @libraries") or diag($out);

    return $file;
}

sub depends { run('debian/cuda-depends', program(@_), $toolkit) }

($rc, $out) = depends('engine', 'libcublasLt.so.13');
is($rc, 0, 'cuBLASLt');
like($out, qr/^cuda:Depends=libcublas-13-2 \| .*\| libcublaslt13\n\z/,
     'the package of this toolkit, of a later one, or of Debian');
unlike($out, qr/libcublas-13-[01]\b/, 'but of no earlier one');

($rc, $out) = depends('none');
is($rc, 1, 'a program without CUDA');
like($out, qr/^cuda-depends: \S+ needs nothing of /, 'is an error');

for my $other ('libcublasLt.so.12', 'libnvrtc.so.13') {
    ($rc, $out) = depends('other', 'libcublasLt.so.13', $other);
    is($rc, 1, "a program with $other");
    like($out, qr/ needs \Q$other\E of CUDA 13\.2; expected /,
         'is an error, because its package is not known');
}

$t->done;
