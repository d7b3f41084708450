package DSA::Prometheus;

# Copyright (C) The nginx-dsa authors
#
# The text format of Prometheus: what is wrong with a text, and its samples.

use strict;
use warnings;

use Exporter qw/ import /;
use File::Temp;

our @EXPORT = qw/ prometheus_errors promtool promtool_errors /;


# Each family once: HELP, TYPE, and samples of its name with labels and a
# number.  Buckets of a histogram rise, and its last one is its count.  Returns
# a line for each error.

sub prometheus_errors {
    my ($text) = @_;

    my (%type, %seen, %sample, %bucket, $family, @bad);

    push @bad, 'no newline at the end' if $text !~ /\n\z/;

    for (split /\n/, $text) {
        if (/^# HELP ([a-z_:]+) \S/) {
            push @bad, "twice: $1" if $seen{$1}++;
            $family = $1;

        } elsif (/^# TYPE ([a-z_:]+) (counter|gauge|histogram)$/) {
            my ($name, $type) = ($1, $2);

            push @bad, "TYPE of another: $_" if $name ne $family;
            push @bad, "a counter's name: $_"
                if ($type eq 'counter') != ($name =~ /_total$/);
            $type{$name} = $type;

        } elsif (/^([a-z_:]+)((?:\{(?:[a-z_]+="(?:[^"\\]|\\[\\"n])*",?)+\})?)
                 \ (\S+)$/x)
        {
            my ($name, $labels, $value) = ($1, $2, $3);
            my $rest = ($labels =~ s/,?le="[^"]*"//r) =~ s/^\{\}$//r;

            push @bad, "twice: $_" if $sample{"$name$labels"}++;

            if (($type{$family} || '') eq 'histogram') {
                my $of = ($name =~ s/_(bucket|sum|count)$//r) . $rest;

                if ($name =~ /_bucket$/) {
                    push @bad, "a bucket that falls: $_"
                        if $value < ($bucket{$of} // 0);
                    $bucket{$of} = $value;

                } elsif ($name =~ /_count$/) {
                    push @bad, "the count of other buckets: $_"
                        if $value != ($bucket{$of} // -1);
                }

                $name =~ s/_(?:bucket|sum|count)$//;
            }

            push @bad, "a stray sample: $_" if $name ne $family;
            push @bad, "not a number: $_" if $value !~ /^\d+(?:\.\d+)?$/;

        } else {
            push @bad, "not understood: $_";
        }
    }

    return join "\n", @bad;
}


# The path of Prometheus' own checker, or undef.

sub promtool {
    my ($path) = grep { -x } map { "$_/promtool" } split /:/, $ENV{PATH};

    return $path;
}


# What promtool reports about a text, without its opinion about names.

sub promtool_errors {
    my ($text) = @_;

    my $file = File::Temp->new;

    print $file $text;
    close $file;

    my $out = qx{ "${\ promtool() }" check metrics < $file 2>&1 };

    return join '', grep { !/^[\w:]+ metric names? should not / }
                    split /^/, $out;
}

1;
