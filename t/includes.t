# Copyright (C) The nginx-dsa authors
#
# The #include lines of the sources: folders use only the folders that they may,
# and no two files include one another.  A function that is declared in one
# folder's header and defined in another folder would be a use that no #include
# line has, so calls are checked, too.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

# What each folder or header may include besides its own folder.  The longest
# entry that the name of a file begins with applies.  A file without an entry
# may include anything: tests.

my @interface = ('engine/backend.', 'engine/forward.h');

my @engine = (@interface, 'engine/quantize', 'engine/link',
              'engine/checkpoint/',
              'engine/tokenizer/', 'engine/pages/redis', 'engine/cuda/group.h');

my %may_include = (
    'base/'              => [],

    # the link, the module, the engine and the kernels share this struct, so
    # that it depends on nothing, not even in base/

    'base/sampling.h'    => [],

    'context/'           => [ 'base/' ],
    'redis_schema/'      => [ 'base/' ],
    'grammar/'           => [ 'base/' ],
    # each room of kernels/ and of ngx_module/ uses only rooms above it in this
    # list, so that there is no circle between rooms

    room('kernels/', [ 'base/' ],
         [ qw/ core row gemm index attention moe exchange sample draft
               init / ]),
    'kernels/'           => [],

    # both ends compile the wire format, so that it depends on nothing but the
    # sampling parameters, the numbers of the tiers and the classes of times
    # between tokens: engine/link.h and engine/link_*.h

    'engine/link'        => [ 'engine/link', 'base/sampling.h',
                              'base/tiers.h', 'base/token_times.h' ],
    'engine/forward.h'   => [],
    'engine/backend.'    => [ 'base/', 'engine/checkpoint/',
                              'engine/backend.' ],

    'engine/quantize.'   => [ 'base/', 'kernels/', 'engine/checkpoint/',
                              'engine/quantize.' ],
    'engine/quantize_'   => [ 'base/', 'kernels/', 'engine/checkpoint/',
                              'engine/quantize_' ],
    'engine/tokenizer/'  => [ 'base/' ],
    'engine/checkpoint/' => [ 'base/' ],
    'engine/pages/'      => [ 'base/', 'redis_schema/', @interface ],
    'engine/schedule/'   => [ 'base/', 'engine/pages/', @interface ],


    # a follower has host memory and the tiers behind it, and no index of pages

    'engine/hosts/'      => [ 'base/', 'engine/pages/host.',
                              'engine/pages/tier.h', @interface ],
    'engine/cpu/'        => [ 'base/', 'kernels/', 'engine/checkpoint/',
                              'engine/quantize.', @interface ],
    'engine/cuda/'       => [ 'base/', 'kernels/', 'engine/checkpoint/',
                              'engine/quantize.', @interface ],

    # its tokens are those of the vocabulary

    'engine/null/'       => [ 'base/', 'engine/checkpoint/',
                              'engine/tokenizer/', @interface ],

    'engine/service/'    => [ 'base/', 'engine/', 'grammar/' ],
    room('ngx_module/', [ 'base/', 'context/', 'redis_schema/', 'engine/link' ],
         [ qw/ core api http front ledger redis engine store account submission
               objects request responses observe / ]),
    'ngx_module/ngx_http_dsa_module.c' => [ 'base/', 'context/',
                                            'redis_schema/', 'ngx_module/' ],
    'ngx_module/'        => [],

    # programs beside the engine use its folders through the headers that they
    # have for other folders

    'tools/'             => [ @engine, 'base/', 'bench/bench.h', 'context/',
                              'redis_schema/', 'engine/cpu/model.h',
                              'engine/schedule/scheduler.h' ],

    # a measurement over hosts leads and follows as the service does, with the
    # same configuration

    'bench/'             => [ @engine, 'base/', 'context/', 'grammar/',
                              'kernels/', 'engine/cpu/model.h',
                              'engine/cuda/nccl.h', 'engine/cuda/preview.h',
                              'engine/cuda/rank.h', 'engine/cuda/weights.h',
                              'engine/hosts/door.h', 'engine/hosts/follower.h',
                              'engine/hosts/leader.h',
                              'engine/service/conf.h' ],
);


# The entries of the rooms of a folder: each may use what the folder may, and
# the rooms before it.

sub room {
    my ($folder, $outside, $names) = @_;

    my (@before, @entries);

    for (map { "$folder$_/" } @$names) {
        push @entries, $_ => [ @$outside, @before ];
        push @before, $_;
    }

    return @entries;
}

chdir $DSA::Test::root or die "chdir: $!\n";

my @files = grep { -f && /\.(?:c|h|cu|cuh)$/ }
            split /\0/,
            `git ls-files -z --cached --others --exclude-standard`;

if (!@files) {
    BAIL_OUT('includes.t: not a git checkout') if $ENV{DSA_NO_SKIP};
    plan skip_all => 'not a git checkout';
}

my %is_file = map { $_ => 1 } @files;


# The file that a quoted name means, as the compiler searches it, or undef.

sub resolve {
    my ($from, $name) = @_;

    my $here = $from =~ s{[^/]*$}{}r . $name;

    1 while $here =~ s{[^/]+/\.\./}{};

    return (grep { $is_file{$_} } $here, $name)[0];
}


# (line, file) of each include of a file of this project.

sub includes {
    my ($file) = @_;

    my ($n, @found) = (0);

    for (split /\n/, read_file($file)) {
        $n++;
        push @found, [ $n, $1, resolve($file, $1) ]
            if /^\s*#\s*include\s+"([^"]+)"/;
    }

    return @found;
}


# The entry of %may_include for a file, or undef.

sub rule {
    my ($file) = @_;

    return (sort { length $b <=> length $a }
            grep { index($file, $_) == 0 } keys %may_include)[0];
}


sub allowed {
    my ($from, $to) = @_;

    # A folder of context/ is a prompt family.  Its headers are for its own
    # files, the table of families, and tests; all others use
    # context/family.h.

    if ($to =~ m{^(context/\w+/)}) {
        return index($from, $1) == 0 || $from eq 'context/family.c'
               || $from =~ m{^t/};
    }

    my $rule = rule($from);

    return 1 if !defined $rule;

    # a folder may include itself; a header of engine/ has no folder

    return 1 if $rule =~ m{/$} && index($to, $rule) == 0;

    return scalar grep { index($to, $_) == 0 } @{ $may_include{$rule} };
}


# In engine/ and ngx_module/ a .c file and its header are one unit.  A header
# without a .c file is none: it declares what several files share, and it may
# include the public header of one of them.

sub unit {
    my ($file) = @_;

    return if $file !~ m{^(?:engine|ngx_module)/};

    my $stem = $file =~ s/\.\w+$//r;

    return $stem if grep { $is_file{"$stem.$_"} } qw/ c cu /;
    return;
}


my (@unknown, @forbidden, %edge);

for my $file (@files) {
    for (includes($file)) {
        my ($line, $name, $to) = @$_;

        if (!defined $to) {
            push @unknown, "$file:$line: $name is not a file of the project";
            next;
        }

        push @forbidden, "$file:$line: " . rule($file)
                         . " may not include $to" if !allowed($file, $to);

        # headers of CUDA may include one another

        $edge{$file}{$to} ||= "$file:$line"
            if "$file $to" !~ /\.cuh .*\.cuh$/;
    }
}

cmp_ok(scalar keys %edge, '>', 100, 'there are includes to look at');

# a file outside of the rooms would be under no rule of theirs

my @homeless = grep { m{^(?:kernels|ngx_module)/} && rule($_) !~ m{/\w+/$}
                      && $_ ne 'ngx_module/ngx_http_dsa_module.c' } @files;

ok(!@homeless, 'every file is in a room') or diag(join "\n", @homeless);
ok(!@unknown, 'every quoted name is a file') or diag(join "\n", @unknown);
ok(!@forbidden, 'every folder includes what it may')
    or diag(join "\n", @forbidden);


# The files that define a function with external linkage, and a text without
# comments, strings and the functions that are local to it.

my (%defined, %code);

for my $file (grep { /\.(?:c|cu)$/ } @files) {
    my $text = read_file($file);

    $text =~ s{/\*.*?\*/|"(?:\\.|[^"\\\n])*"}{}gs;

    while ($text =~ /^([^\n;{}#]*[\w*])\n(\w*dsa_\w+)\(/gm) {
        my ($type, $name) = ($1, $2);

        if ($type !~ /\bstatic\b|__global__/) {
            $defined{$name}{$file} = 1 if $file !~ m{^t/};

        } else {
            $code{$file}{local}{$name} = 1;
        }
    }

    $code{$file}{names} = { map { $_ => 1 } $text =~ /\b\w*dsa_\w+\b/g };
}

cmp_ok(scalar keys %defined, '>', 500, 'there are functions to look at');


# A call reaches the file that defines the function, or the header beside it.
# Programs that nothing depends on cannot be in a circle.

my @calls;

for my $file (grep { !m{^(?:t|tools|bench)/} } sort keys %code) {
    for my $name (sort keys %{ $code{$file}{names} }) {
        my @at = keys %{ $defined{$name} || {} };

        next if @at != 1 || $code{$file}{local}{$name}
                || allowed($file, $at[0])
                || allowed($file, $at[0] =~ s/\.\w+$/.h/r);

        push @calls, "$file: " . (rule($file) // '?')
                     . " may not call $name() of $at[0]";
    }
}

ok(!@calls, 'every folder calls what it may') or diag(join "\n", @calls);


# The sets of nodes that reach one another (Tarjan's algorithm), each as a text
# with a line for every include within the set.

sub cycles {
    my ($edge) = @_;

    my ($next, @stack, %index, %low, %on_stack, @found, $search) = (1);

    $search = sub {
        my ($node) = @_;

        $index{$node} = $low{$node} = $next++;
        $on_stack{$node} = 1;
        push @stack, $node;

        for my $to (keys %{ $edge->{$node} || {} }) {
            if (!$index{$to}) {
                $search->($to);
                $low{$node} = $low{$to} if $low{$to} < $low{$node};

            } elsif ($on_stack{$to} && $index{$to} < $low{$node}) {
                $low{$node} = $index{$to};
            }
        }

        return if $low{$node} != $index{$node};

        my %set;

        for ( ;; ) {
            my $member = pop @stack;

            delete $on_stack{$member};
            $set{$member} = 1;

            last if $member eq $node;
        }

        push @found, join "\n", map {
            my $from = $_;
            map { "$edge->{$from}{$_}: $from includes $_" }
                grep { $set{$_} } sort keys %{ $edge->{$from} }
        } sort keys %set if keys %set > 1;
    };

    no warnings 'recursion';

    $index{$_} || $search->($_) for sort keys %$edge;

    return @found;
}


my @headers = cycles(\%edge);

ok(!@headers, 'no header includes itself by way of others')
    or diag(join "\n\n", @headers);


# The units that a file includes: directly, or by headers that belong to none.

sub units {
    my ($file, $seen) = @_;

    my %found;

    for my $to (sort keys %{ $edge{$file} || {} }) {
        my $unit = unit($to);

        if (defined $unit) {
            $found{$unit} ||= $edge{$file}{$to};

        } elsif (!$seen->{$to}++) {
            my %more = units($to, $seen);

            $found{$_} ||= $edge{$file}{$to} for keys %more;
        }
    }

    return %found;
}


my %unit_edge;

for my $file (grep { defined unit($_) } @files) {
    my %found = units($file, {});

    delete $found{unit($file)};
    $unit_edge{unit($file)}{$_} ||= $found{$_} for keys %found;
}

my @units = cycles(\%unit_edge);

ok(!@units, 'no two units include one another')
    or diag(join "\n\n", @units);

done_testing();
