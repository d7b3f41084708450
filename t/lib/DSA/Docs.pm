package DSA::Docs;

# Copyright (C) The nginx-dsa authors
#
# Reads the pages of docs/ and the READMEs: fenced blocks, tables, anchors,
# links.  docs/README.md describes the words behind the language of a block.

use strict;
use warnings;

use Exporter qw/ import /;

use DSA::Test;

our @EXPORT = qw/ doc_pages doc_readmes doc_blocks doc_rows doc_section
                  doc_anchors doc_links /;


# The pages for users, and the READMEs of folders, relative to the root.

sub doc_pages {
    return map { s{^\Q$DSA::Test::root\E/}{}r }
           map { glob "$DSA::Test::root/$_" }
           qw{ README.md docs/*.md docs/*/*.md };
}

sub doc_readmes {
    return grep { !m{^(?:build|docs|node_modules)[/.]|/node_modules/} }
           map { s{^\Q$DSA::Test::root\E/}{}r }
           map { glob "$DSA::Test::root/$_" }
           qw{ */README.md */*/README.md t/data/*/README.md };
}


# The fenced blocks of a page: { info, text, line }.

sub doc_blocks {
    my ($page) = @_;

    my ($n, $open, @blocks) = (0);

    for my $line (split /^/, read_file("$DSA::Test::root/$page")) {
        $n++;

        if ($line =~ /^```(.*)$/) {
            if ($open) {
                undef $open;
                next;
            }

            $open = { info => $1, text => '', line => $n };
            push @blocks, $open;
            next;
        }

        $open->{text} .= $line if $open;
    }

    die "$page: a block has no end\n" if $open;

    return @blocks;
}


# The text below a heading, up to the next one of its level or above.

sub doc_section {
    my ($page, $heading) = @_;

    my ($level) = $heading =~ /^(#+)/;
    my $n = length $level;
    my ($text) = read_file("$DSA::Test::root/$page")
                 =~ /^\Q$heading\E\n(.*?)(?=^\#{1,$n}\ |\z)/msx;

    return $text // '';
}


# The rows of all tables of a text, without heads: arrays of cells.  A "|" in a
# cell is written "\|".

sub doc_rows {
    my ($text) = @_;

    my (@rows, $last);

    for my $line (split /\n/, $text) {
        if ($line !~ /^\|(.*)\|\s*$/) {
            undef $last;
            next;
        }

        my $cells = $1;

        if ($cells =~ /^[-|]+$/) {
            pop @rows if $last;
            next;
        }

        push @rows, [ map { s/^\s+|\s+$//gr =~ s/\\\|/|/gr }
                      split /(?<!\\)\|/, $cells, -1 ];
        $last = 1;
    }

    return @rows;
}


# The anchors of a page's headings, as GitHub makes them.

sub doc_anchors {
    my ($page) = @_;

    my ($text, %anchors) = (read_file("$DSA::Test::root/$page"));

    $text =~ s/^```.*?^```//msg;

    for ($text =~ /^#+ (.*)$/mg) {
        my $anchor = lc s/\[([^\]]*)\]\([^)]*\)/$1/gr;

        utf8::decode($anchor);
        $anchor =~ s/[^\w\- ]//g;
        $anchor =~ s/ /-/g;
        $anchors{$anchor} = 1;
    }

    return \%anchors;
}


# The targets of a page's links and pictures, without those to other servers.

sub doc_links {
    my ($page) = @_;

    my $text = read_file("$DSA::Test::root/$page");

    $text =~ s/^```.*?^```//msg;

    return grep { !/^(?:https?|mailto):/ } $text =~ /\]\(([^)\s]+)\)/g;
}


1;
