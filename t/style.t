# Copyright (C) The nginx-dsa authors
#
# Rules of style that a script can check: nginx's for C and CUDA, and some for
# every text.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use Test::More;

chdir $DSA::Test::root or die "chdir: $!\n";

my @files = grep { -f && !m{^t/data/|/corpus/|package-lock\.json$} }
            split /\0/,
            `git ls-files -z --cached --others --exclude-standard`;

if (!@files) {
    BAIL_OUT('style.t: not a git checkout') if $ENV{DSA_NO_SKIP};
    plan skip_all => 'not a git checkout';
}

my @c = grep { /\.(?:c|h|cu|cuh)$/ } @files;
my @text = grep { -T } @files;
my $limit = 1500;
my $function = 120;

# where the lengths of functions and the terms are checked

my $finished = qr{engine/|tools/|base/|context/|grammar/|kernels/|ngx_module/
                  |redis_schema/|bench/}x;

# words that the project replaced by others

my $terms = qr{\b(?:told|tells|whoever|unwelcome|garbled|lingers?|hurry)\b
               |\b(?:heads|absorbed)\ form\b
               |(?<!\b[Tt]here\ )\b(?:is|are)\ no\ (?!longer\b|more\b)\w}x;


# The check returns "LINE: what" for each violation in a text.

sub lint {
    my ($name, $check, @list) = @_;

    my @found = map {
        my $file = $_;
        map { "$file:$_" } $check->(read_file($file));
    } @list;

    ok(!@found, $name) or diag(join "\n", @found);
}


sub lines {
    my ($re, $text) = @_;

    my $n = 0;

    return map { $n++; /$re/ ? "$n: $_" : () } split /\n/, $text;
}


sub matches {
    my ($re, $text) = @_;

    my @found;

    while ($text =~ /$re/g) {
        my $n = 1 + (substr($text, 0, $-[0]) =~ tr/\n//);
        push @found, "$n: " . (split /\n/, $&)[0];
    }

    return @found;
}


# Comments and strings replaced by blanks; lines and columns stay.

sub code {
    my ($text) = @_;

    $text =~ s{(/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')}
              { (my $s = $1) =~ s/[^\n]/ /g; $s }gse;

    return $text;
}


# Lines of more than 80 columns; a character of UTF-8 is one column.

sub columns {
    my $n = 0;

    return map { $n++; (() = /[^\x80-\xbf]/g) > 80 ? "$n: $_" : () }
           split /\n/, $_[0];
}


# Functions that are too long.

sub functions {
    my ($n, $start, @found) = (0);

    for (split /\n/, $_[0]) {
        $n++;
        $start = $n if /^\{/;

        if (/^\}$/ && defined $start) {
            push @found, "$start: " . ($n - $start + 1) . ' lines'
                if $n - $start >= $function;
            undef $start;
        }
    }

    return @found;
}


ok(@c > 0, 'there are C files');

lint('80 columns', \&columns, @c, grep { /\.(?:pm|t|pl)$/ } @files);
lint('no tabs', sub { lines(qr/\t/, $_[0]) },
     grep { !/(?:^|\/)(?:Makefile|\.gitmodules|rules)$/ } @text);
lint('no blanks at the end of a line',
     sub { lines(qr/[ \t\r]$/, $_[0]) }, @text);
lint('a newline at the end of a file',
     sub { $_[0] eq '' || $_[0] =~ /[^\n]\n\z/ ? () : 'end' }, @text);
lint('no notes about unfinished work',
     sub { lines(qr/\b(?:TO\x44O|FIX\x4dE|X\x58X|HA\x43K)\b/, $_[0]) },
     @text);
lint('no path of the machine it was written on',
     sub { lines(qr{(?<![\w.])/(?:home|work|Users)/}, $_[0]) },
     grep { $_ ne 't/style.t' } @text);

lint('C: begins with a blank line and the copyright', sub {
    $_[0] =~ m{\A\n/\*\n \* Copyright \(C\) The nginx-dsa authors\n}
        ? () : '1: does not';
}, @c);
lint("C: a file is under $limit lines", sub {
    my $n = $_[0] =~ tr/\n//;
    return $n >= $limit ? "$n lines" : ();
}, @c);
lint("C: a function is under $function lines", \&functions,
     grep { !/\.cuh?$/ && m{^(?:$finished)} } @c);
lint('C: the terms of the project', sub { lines($terms, $_[0]) },
     grep { m{^(?:$finished)} } @c);
lint('C: comments are /* */',
     sub { lines(qr{//}, code($_[0])) }, @c);
lint('C: the type of a function has its own line', sub {
    matches(qr/^\w[^\n(;={}\#]*[ *]\w+\([^;{}]*\)\n\{/m,
            code($_[0]) =~ s/ __launch_bounds__\(.*\)$//gmr);
}, @c);
lint('C: for ever is for ( ;; )', sub {
    matches(qr/\bwhile\s*\((?:1|true)\)|\bfor\s*\(;;\)/, code($_[0]));
}, @c);
lint('C: braces always', sub {
    matches(qr/^[ ]+(?:\}\ )?(?:else|(?:else\ )?if\ \([^{};]*\)
               |while\ \([^{};]*\)|for\ \([^{}\n]*\))\n[^{}\n]+;$/mx,
            code($_[0]) =~ s/^\#.*?(?<!\\)$//gmsr);
}, @c);

done_testing();
