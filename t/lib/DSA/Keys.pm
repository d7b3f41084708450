package DSA::Keys;

# Copyright (C) The nginx-dsa authors
#
# API keys for tests: their texts, their records, and files of them.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Exporter qw/ import /;
use JSON::PP;

use DSA::Test ();

our @EXPORT = qw/ key_text key_record write_keys put_keys bearer /;

my $json = JSON::PP->new->canonical;


# The text of the key with such a name.  It has the form of a real one.

sub key_text { 'sk-dsa-' . substr sha256_hex("text $_[0]"), 0, 43 }


# The record of the key with such a name, as a hash; members of the same name
# replace its own, and undef removes one.

sub key_record {
    my ($name, %more) = @_;

    my %record = (
        id => 'key_' . substr(sha256_hex("id $name"), 0, 16),
        name => $name, tenant => $name, state => 'active',
        hash => sha256_hex(key_text($name)), created => time() - 60,
        %more);

    delete @record{ grep { !defined $record{$_} } keys %record };

    return \%record;
}


# Replaces a file of keys by rename(); records are hashes or whole lines.

sub write_keys {
    my ($path, @records) = @_;

    DSA::Test::write_file("$path.new", join '', map {
        (ref $_ ? $json->encode($_) : $_) . "\n"
    } @records);

    rename "$path.new", $path or die "rename: $!\n";

    return;
}


# Writes records to Redis, as redis_schema/README.md describes it.

sub put_keys {
    my ($redis, @records) = @_;

    for my $record (@records) {
        my $version = $redis->cmd('INCR', 'dsa1:{keys}:version');

        $redis->cmd('HSET', 'dsa1:{keys}:id', $record->{id},
                    $json->encode($record));
        $redis->cmd('ZADD', 'dsa1:{keys}:changed', $version, $record->{id});
    }

    return;
}


sub bearer { (headers => ['Authorization', "Bearer $_[0]"]) }


1;
