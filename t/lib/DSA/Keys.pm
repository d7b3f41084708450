package DSA::Keys;

# Copyright (C) The nginx-dsa authors
#
# API keys for tests: their texts, their entries, and files of them.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Exporter qw/ import /;
use JSON::PP;

use DSA::Test ();

our @EXPORT = qw/ key_text key_entry write_keys put_keys put_key_entry bearer /;

my $json = JSON::PP->new->canonical;


# The text of the key with such a name.  It has the form of a real one.

sub key_text { 'sk-dsa-' . substr sha256_hex("text $_[0]"), 0, 43 }


# The entry of the key with such a name, as a hash; members of the same name
# replace its own, and undef removes one.

sub key_entry {
    my ($name, %more) = @_;

    my %entry = (
        id => 'key_' . substr(sha256_hex("id $name"), 0, 16),
        name => $name, tenant => $name, state => 'active',
        hash => sha256_hex(key_text($name)), created => time() - 60,
        %more);

    delete @entry{ grep { !defined $entry{$_} } keys %entry };

    return \%entry;
}


# Replaces a file of keys by rename(); entries are hashes or whole lines.

sub write_keys {
    my ($path, @entries) = @_;

    DSA::Test::write_file("$path.new", join '', map {
        (ref $_ ? $json->encode($_) : $_) . "\n"
    } @entries);

    rename "$path.new", $path or die "rename: $!\n";

    return;
}


# Writes entries to Redis, as redis_schema/README.md describes it.

sub put_keys {
    my ($redis, @entries) = @_;

    put_key_entry($redis, $_->{id}, $json->encode($_)) for @entries;

    return;
}


# Writes the text of a key entry in one step, as "dsa key" does: a reader that
# got the new version without the id would never read the entry.

sub put_key_entry {
    my ($redis, $id, $text) = @_;

    my @keys = map { "dsa1:{keys}:$_" } qw/ id version changed /;

    $redis->cmd('EVAL', <<'EOC', scalar @keys, @keys, $id, $text);
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        redis.call('ZADD', KEYS[3], redis.call('INCR', KEYS[2]), ARGV[1])
EOC

    return;
}


sub bearer { (headers => ['Authorization', "Bearer $_[0]"]) }


1;
