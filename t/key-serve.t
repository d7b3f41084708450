# Copyright (C) The nginx-dsa authors
#
# dsa key and dsa usage beside a server: keys that the command makes are served,
# changes arrive within seconds, and the ledger has what the keys used.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('key-serve');
my $dsa = $t->build . '/dsa';

$t->start_fake();

my $server = $t->start_redis();
my $redis = $t->redis();
my @where = ('--redis', '127.0.0.1:' . $server->port);

$t->start_nginx(http => 'dsa_keys redis zone=keys:2m;
                         dsa_price fake-model miss=1 hit=0.1 output=2;');


# The stdout of dsa.

sub run {
    my (@args) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>/dev/null', '-', $dsa, @args
        or die "sh: $!\n";

    my $out = do { local $/; <$fh> };
    close $fh or die "dsa @args failed\n";

    return $out;
}


sub key { return run('key', @_, @where) =~ s/\n\z//r }

sub usage {
    return json_decode(run('usage', '--json', @_, @where));
}


# The status of a chat with a key.

sub chat {
    my ($text) = @_;

    return $t->post('/v1/chat/completions', ask('x', model => 'fake-model'),
                    headers => [ Authorization => "Bearer $text" ])->{status};
}


sub becomes {
    my ($want, $text, $name) = @_;

    ok(wait_until(sub { chat($text) == $want }, 10, $name), $name);
}


my $first = key('create', '--name', 'ci', '--tenant', 'acme');
my ($record) = @{ json_decode(key('list', '--json')) };
my $id = $record->{id};

becomes(200, $first, 'a new key is served');

my $second = key('rotate', $id);
becomes(200, $second, 'the key of a rotation is served');
is(chat($first), 200, 'and the old one');

my $third = key('rotate', $id, '--grace', '0');
becomes(200, $third, 'the key of another rotation is served');
becomes(401, $second, 'without grace the old one is not');
becomes(401, $first, 'nor is the one before');

# the tenant of dsa_tenant has the same digits, and the ledger has the use

$redis->cmd('DEL', $_) for $redis->keys('dsa1:*:ledger:*');
is(chat($third), 200, 'a request');

my $report;
wait_until(sub { $report = usage('--key', $id);
                 $report->{total}{requests} == 1 }, 20, 'the ledger');

my ($row) = @{ $report->{usage} };

is("$row->{tenant} $row->{model}", 'acme fake-model', 'the report of a key');
ok($row->{prompt_tokens} > 0 && $row->{completion_tokens} > 0, 'has tokens');
is($row->{cost_output} * 1e6, 2 * $row->{completion_tokens},
   'what the output costs');
is_deeply(usage('--tenant', 'acme')->{usage}, $report->{usage},
          'and the report of its tenant');
is_deeply(usage()->{usage}, $report->{usage}, 'and that of all');

# limits, and the end

key('set', $id, '--models', 'other');
becomes(403, $third, 'a model that the key may not use');
key('set', $id, '--models', 'all', '--state', 'disabled');
becomes(401, $third, 'a key that is disabled');
key('set', $id, '--state', 'active');
becomes(200, $third, 'a key that is active again');
key('revoke', $id);
becomes(401, $third, 'a key that is revoked');

# the text of a key is nowhere but on stdout

my @found;

for my $file (grep { -f } glob $t->path('*')) {
    my $text = read_file($file);
    push @found, $file if grep { index($text, $_) != -1 } $first, $second,
                                                          $third;
}

for my $name ($redis->keys('*')) {
    my $type = $redis->cmd('TYPE', $name);
    my $value = $type eq 'hash' ? join "\n", %{ $redis->hgetall($name) }
                : $type eq 'string' ? $redis->cmd('GET', $name) : '';

    push @found, $name if "$name\n$value" =~ /sk-dsa-/;
}

is_deeply(\@found, [], 'no text of a key in logs or in Redis');

$t->done;
