# Copyright (C) The nginx-dsa authors
#
# dsa key with a redis-server and with a file.  The test reads the resulting
# entries itself.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use MIME::Base64 qw/ decode_base64url /;
use POSIX qw/ _exit /;

use lib 't/lib';
use DSA::Cluster;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('key');
my $dsa = $t->build . '/dsa';
our @where;


# Runs "dsa key" and returns its exit status, stdout and stderr.

sub key {
    my (@args) = @_;

    my $out = $t->path("out.$$");
    my $err = $t->path("err.$$");
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        open STDOUT, '>', $out or _exit(126);
        open STDERR, '>', $err or _exit(126);
        { no warnings; exec $dsa, 'key', @args; }
        _exit(127);
    }

    waitpid $pid, 0;

    return ($? == 0 ? 0 : $? >> 8 || -$?, read_file($out), read_file($err));
}


# The same with the place of the keys.  Dies if it fails.

sub good {
    my (@args) = @_;

    my ($rc, $out, $err) = key(@args, @where);

    die "dsa key @args: $rc, $err" if $rc != 0;

    return $out;
}


# A command that is refused with this error and prints nothing.

sub refused {
    my ($want, $name, @args) = @_;

    my ($rc, $out, $err) = key(@args);

    ok($rc != 0 && $out eq '' && $err =~ /^dsa key[^\n]*$want[^\n]*\n\z/,
       $name) or diag("$rc, \"$out\", \"$err\"");
}


# The entries as JSON, by id.

sub entries {
    return { map { $_->{id} => $_ } @{ json_decode(good('list', '--json')) } };
}


sub create {
    my (@args) = @_;

    my $before = entries();
    my $text = good('create', '--name', 'n', @args);
    my ($id) = grep { !$before->{$_} } keys %{ entries() };

    return ($id, $text);
}


# Checks that are the same for keys in Redis and in a file.

sub life {
    my ($name, $stored) = @_;

    is(good('list', '--json'), "[]\n", "$name: no keys at first");

    my $now = time;
    my $text = good('create', '--name', "caf\xc3\xa9 1", '--tenant', 'acme',
                    '--models', 'a,b|c', '--rpm', '60', '--tpm', '1000000',
                    '--concurrency', '3', '--weight', '250', '--priority',
                    'high', '--expires', '2d', '--budget-day', '1.5:1',
                    '--budget-month', '20', '--budget-total', ':100');

    like($text, qr/\Ask-dsa-[A-Za-z0-9_-]{43}\n\z/, "$name: a key is printed");

    my $plain = substr $text, 0, -1;

    is(length decode_base64url(substr $plain, 7), 32, "$name: of 32 bytes");

    my ($entry) = values %{ entries() };
    my $id = $entry->{id};

    like($id, qr/\Akey_[0-9a-f]{16}\z/, "$name: an id");
    ok($entry->{created} >= $now && $entry->{created} <= time,
       "$name: the time of creation");
    is(delete($entry->{expires}) - $entry->{created}, 2 * 86400,
       "$name: the duration until it expires");

    delete $entry->{created};

    is_deeply($entry, {
        id => $id, name => "caf\x{e9} 1", tenant => 'acme',
        hash => sha256_hex($plain), state => 'active', models => ['a', 'b|c'],
        rpm => 60, tpm => 1000000, concurrency => 3, weight => 250,
        priority => 'high',
        budget => { day => { hard => '1.5', soft => '1' },
                    month => { hard => '20' }, total => { soft => '100' } },
    }, "$name: the entry");

    unlike($stored->(), qr/\Q$plain\E/, "$name: the text is not stored");

    # a change affects the named fields only

    good('set', $id, '--rpm', 'none', '--tpm', 'none', '--concurrency', 'none',
         '--models', 'all', '--expires', 'never', '--budget-day', 'none',
         '--budget-total', 'none', '--weight', '100', '--priority', 'normal',
         '--state', 'disabled');

    $entry = entries()->{$id};
    delete $entry->{created};

    is_deeply($entry, { id => $id, name => "caf\x{e9} 1", tenant => 'acme',
                         hash => sha256_hex($plain), state => 'disabled',
                         budget => { month => { hard => '20' } } },
              "$name: limits are removed");

    # what a key must have is replaced, and a limit that was removed comes back

    good('set', $id, '--name', 'second', '--tenant', 'globex', '--models', 'c',
         '--rpm', '1', '--tpm', '2', '--concurrency', '4', '--weight', '5',
         '--priority', 'low', '--budget-day', '6:5', '--budget-month', ':7',
         '--budget-total', '8');

    $entry = entries()->{$id};
    delete $entry->{created};

    is_deeply($entry, {
        id => $id, name => 'second', tenant => 'globex',
        hash => sha256_hex($plain), state => 'disabled', models => ['c'],
        rpm => 1, tpm => 2, concurrency => 4, weight => 5, priority => 'low',
        budget => { day => { hard => '6', soft => '5' },
                    month => { soft => '7' }, total => { hard => '8' } },
    }, "$name: everything is changed");

    good('set', $id, '--name', "caf\xc3\xa9 1", '--tenant', 'acme',
         '--models', 'all', '--priority', 'normal');
    good('set', $id, '--state', 'active', '--expires', '2999-12-31');
    is(entries()->{$id}{state}, 'active', "$name: active again");
    is(entries()->{$id}{expires}, 32503593600, "$name: a date");
    good('set', $id, '--expires', '2999-12-31T23:59:59Z');
    is(entries()->{$id}{expires}, 32503679999, "$name: a time");

    # rotation

    $now = time;
    my $second = substr good('rotate', $id, '--grace', '12h'), 0, -1;
    $entry = entries()->{$id};

    isnt($second, $plain, "$name: another text");
    is($entry->{hash}, sha256_hex($second), "$name: its hash");
    is($entry->{old}{hash}, sha256_hex($plain), "$name: the old hash");
    ok(abs($entry->{old}{until} - $now - 12 * 3600) < 100,
       "$name: until when it is served");
    is($entry->{tenant}, 'acme', "$name: the tenant stays");

    my $third = substr good('rotate', $id, '--grace', '0'), 0, -1;
    $entry = entries()->{$id};
    ok($entry->{hash} eq sha256_hex($third) && !$entry->{old},
       "$name: a rotation without grace");

    $now = time;
    good('rotate', $id);
    ok(abs(entries()->{$id}{old}{until} - $now - 86400) < 100,
       "$name: a day of grace by default");

    # the end

    good('revoke', $id);
    is(entries()->{$id}{state}, 'revoked', "$name: revoked");
    refused('revoked', "$name: a revoked key is not changed", 'set', $id,
            '--state', 'active', @where);
    refused('revoked', "$name: a revoked key is not rotated", 'rotate', $id,
            @where);
    refused('no key key_0000000000000000', "$name: set of an unknown key",
            'set', 'key_0000000000000000', '--rpm', '1', @where);
    refused('no key key_0000000000000000', "$name: show of an unknown key",
            'show', 'key_0000000000000000', @where);
    refused('no key key_0000000000000000', "$name: revoke of an unknown key",
            'revoke', 'key_0000000000000000', @where);

    # a tenant of its own

    my ($other) = create('--state', 'disabled');
    is(entries()->{$other}{tenant}, $other, "$name: the id is the tenant");
    is(entries()->{$other}{state}, 'disabled', "$name: disabled at first");
    is_deeply(json_decode(good('show', $other, '--json')),
              entries()->{$other}, "$name: one entry");

    # only create and rotate print the text of a key, and only once

    my $all = join "\n", good('list'), good('list', '--json'),
                         good('show', $id), good('show', $id, '--json'),
                         $stored->();

    unlike($all, qr/sk-dsa-/, "$name: no text of a key anywhere");
    like(good('list'), qr/^\Q$id\E +revoked .* acme +caf\xc3\xa9 1$/m,
         "$name: the table");
    like(good('show', $id), qr/^tenant +acme$/m, "$name: for people");
}


# Two processes create and change keys at the same time: each change is kept.

sub race {
    my ($name) = @_;

    my ($id) = create('--rpm', '1');
    my $before = keys %{ entries() };
    my @pids;

    for my $writer (1, 2) {
        my $pid = fork // die "fork: $!\n";

        if ($pid == 0) {
            my $ok = eval {
                for my $n (1 .. 20) {
                    good('create', '--name', "$writer $n");
                    good('set', $id, $writer == 1 ? '--rpm' : '--tpm', $n);
                }
                1;
            };

            print STDERR $@ if !$ok;
            _exit($ok ? 0 : 1);
        }

        push @pids, $pid;
    }

    my $failed = 0;

    for my $pid (@pids) {
        waitpid $pid, 0;
        $failed ||= $?;
    }

    my $entries = entries();

    is($failed, 0, "$name: both writers end well");
    is(keys(%$entries) - $before, 40, "$name: no key is lost");
    is("$entries->{$id}{rpm} $entries->{$id}{tpm}", '20 20',
       "$name: no change is lost");
}


# wrong usage

for (['nothing', 'expected either --redis', 'list'],
     ['both', 'expected either --redis', 'list', '--file', 'x', '--redis',
      'localhost:1'],
     ['an option', '"--foo" is not an option', 'list', '--foo'],
     ['a secret option', '"--key" is not an option', 'list', '--key=sk-dsa-x'],
     ['a letter', '"-x" is not an option', 'show', 'sk-dsa-secret', '-xy'],
     ['no value', '--rpm has no value; expected one', 'create', '--rpm'],
     ['a value', '--json has a value; expected none', 'list', '--json=1'],
     ['no id', 'expected the id', 'show', '--file', 'x'],
     ['a text as id', 'not the id of a key', 'show', 'sk-dsa-secret', '--file',
      'x'],
     ['two ids', 'too many', 'show', 'key_0123456789abcdef', 'x', '--file',
      'x'],
     ['no change', 'nothing to change', 'set', 'key_0123456789abcdef',
      '--file', 'x'],
     ['a change', 'with create or set', 'list', '--rpm', '1', '--file', 'x'],
     ['--json', 'list and show', 'create', '--json', '--file', 'x'],
     ['--grace', 'option of rotate', 'create', '--grace', '1d', '--file', 'x'],
     ['--db', 'expected 0 to', 'list', '--redis', 'localhost:1', '--db', 'x'])
{
    my ($name, $want, @args) = @$_;
    my ($rc, $out, $err) = key(@args);

    ok($rc == 2 && $err =~ /\Q$want\E/ && $err !~ /sk-dsa/, "usage: $name")
        or diag("$rc: $err");
}

# an option of another command is not ignored

my %options = (json => ['--json'], grace => ['--grace', '1d'],
               change => ['--rpm', '1']);
my %command = (
    create => [qw/ grace json /], list => [qw/ change grace /],
    show => [qw/ change grace /], set => [qw/ grace json /],
    revoke => [qw/ change grace json /], rotate => [qw/ change json /]);

for my $command (sort keys %command) {
    for my $kind (@{ $command{$command} }) {
        my @id = $command =~ /create|list/ ? () : 'key_0123456789abcdef';
        my ($rc, $out, $err) = key($command, @id, '--file', $t->path('no'),
                                   @{ $options{$kind} });

        ok($rc == 2 && $err =~ /(?:is an option of|expected it with) /,
           "usage: $command $options{$kind}[0]") or diag("$rc: $err");
    }
}

is((key())[0], 2, 'usage: no command');
is((key('delete'))[0], 2, 'usage: an unknown command');
like((key('--help'))[1], qr/^usage: dsa key create/, '--help');
like((key('create', '--help'))[1], qr/^usage: dsa key create/,
     '--help behind a command');


# a file

my $file = $t->path('keys');

@where = ('--file', $file);
write_file($file, "\n");
chmod 0604, $file;

life('file', sub { read_file($file) });

is((stat $file)[2] & 07777, 0604, 'file: the mode stays');

SKIP: {
    skip 'needs root', 1 if $> != 0;

    chown 65534, 65533, $file;
    good('create', '--name', 'n');
    is(join(' ', (stat $file)[4, 5]), '65534 65533', 'file: the owner stays');
}

is_deeply([grep { !/^(?:out|err)\./ && $_ ne 'keys' }
           map { s{.*/}{}r } glob $t->path('*')], [],
          'file: there is no other file');

race('file');

my $new = $t->path('new');
{
    local @where = ('--file', $new);

    umask 022;
    good('create', '--name', 'n');
    is((stat $new)[2] & 07777, 0640, 'file: the mode of a new one');
}

# a symbolic link stays one

symlink $new, $t->path('link') or die "symlink: $!\n";
{
    local @where = ('--file', $t->path('link'));

    good('create', '--name', 'n');
    ok(-l $t->path('link') && 2 == (read_file($new) =~ tr/\n//),
       'file: behind a symbolic link');
}

# comments and other entries keep their bytes

my $line = read_file($new) =~ s/\n.*//sr;
my $spaced = $line =~ s/,"/ , "/gr;
write_file($new, "# one\n$spaced\n\n  # two");
{
    local @where = ('--file', $new);

    good('create', '--name', 'n');
    like(read_file($new), qr/\A# one\n\Q$spaced\E\n\n  # two\n\{[^\n]*\}\n\z/,
         'file: other lines are not changed');

    my ($id) = $line =~ /(key_[0-9a-f]{16})/;
    my $other = (split /\n/, read_file($new))[-1];

    good('set', $id, '--rpm', '7');
    like(read_file($new),
         qr/\A# one\n\{.*"rpm":7.*\}\n\n  # two\n\Q$other\E\n\z/,
         'file: a line is changed');
}

# each invalid option; nothing is written

my $before = read_file($new);

for (['rpm', '0', '1 to 1000000000000, or none'],
     ['rpm', '1000000000001', '1 to 1000000000000'],
     ['rpm', '1.5', '1 to'], ['tpm', '-1', '1 to'], ['tpm', '', '1 to'],
     ['concurrency', '1000001', '1 to 1000000'],
     ['weight', '10001', '1 to 10000'], ['weight', 'none', '1 to 10000'],
     ['priority', 'urgent', 'low, normal or high'],
     ['state', 'revoked', 'active or disabled'],
     ['state', 'on', 'active or disabled'],
     ['models', 'a,,b', '1 to 128 bytes'], ['models', '', '1 to 128 bytes'],
     ['models', 'a,a', 'same model twice'],
     ['models', join(',', 1 .. 17), 'more than 16'],
     ['expires', '2020-01-01', 'not in the future'],
     ['expires', '2999-02-30', 'expected a date'],
     ['expires', '30', 'expected a date'], ['expires', '0', 'expected a date'],
     ['expires', '99999999999999d', 'expected a date'],
     ['name', '', '"name" of a key is invalid; expected 1 to 64'],
     ['name', "a\nb", 'printable'], ['name', "\xff", 'printable'],
     ['tenant', 'x' x 65, '1 to 64'],
     ['budget-day', '', 'HARD:SOFT'], ['budget-day', '1:2', 'SOFT at most'],
     ['budget-month', '1.0000000000001', '12 decimals'],
     ['budget-total', 'x', 'or none'], ['budget-total', ':', 'or none'])
{
    my ($option, $value, $want) = @$_;

    refused(qr/\Q$want\E/, "--$option " . substr($value, 0, 20) =~ s/\n/./r,
            'create', '--name', 'n', "--$option", $value, '--file', $new);
}

refused('has no name', 'a key without a name', 'create', '--file', $new);
is((key('create', '--name', 'n', '--rpm', 'x', '--file',
        $t->path('never')))[0], 2, 'it is wrong usage');
ok(!-e $t->path('never'), 'no file is created');
is((key('rotate', 'key_0123456789abcdef', '--grace', '1', '--file', $new))[0],
   2, 'an invalid --grace');
is(read_file($new), $before, 'nothing was written');

# files that are wrong

refused('No such file', 'list of a file that does not exist', 'list', '--file',
        $t->path('none'));
refused('No such file', 'revoke in a file that does not exist', 'revoke',
        'key_0123456789abcdef', '--file', $t->path('none'));
ok(!-e $t->path('none'), 'it is not created');
refused('Is a directory', 'a directory', 'create', '--name', 'n', '--file',
        $t->dir);

write_file($t->path('bad'), "$line\n\n{\"id\":1}\n");
refused('line 3: ', 'a line that is not a key entry', 'create', '--name', 'n',
        '--file', $t->path('bad'));
is(read_file($t->path('bad')), "$line\n\n{\"id\":1}\n", 'it is kept');

write_file($t->path('bad'), "$line\n" . ($line =~ s/key_..../key_0000/r)
                            . "\n");
refused('same hash', 'two entries with one hash', 'list', '--file',
        $t->path('bad'));
write_file($t->path('bad'), "$line\n"
                            . ($line =~ s/"hash":"..../"hash":"0000/r) . "\n");
refused('same id', 'two entries with one id', 'list', '--file',
        $t->path('bad'));

# a directory that cannot be written, as a user without privileges

SKIP: {
    skip 'needs root', 4 if $> != 0;

    my $dir = $t->path('locked');

    mkdir $dir or die "mkdir: $!\n";
    chmod 0755, $t->dir, $dir;
    my $copy = write_file("$dir/keys", "$line\n");
    chmod 0644, $copy;

    # the program is copied, because its folder may be closed to the user

    system('cp', $dsa, $t->path('dsa')) == 0 or die "cp failed\n";

    my $pid = open(my $fh, '-|') // die "fork: $!\n";

    if ($pid == 0) {
        $) = '65534 65534';
        ($<, $>) = (65534, 65534);
        open STDERR, '>&', \*STDOUT;
        exec $t->path('dsa'), 'key', 'create', '--name', 'n', '--file', $copy
            or _exit(127);
    }

    my $out = do { local $/; <$fh> };
    close $fh;

    isnt($?, 0, 'a directory that is read-only: an error');

    # LeakSanitizer may add lines, because it cannot trace this user's process

    like($out, qr/\Adsa key create: .*Permission denied$/m, 'it is reported');
    unlike($out, qr/sk-dsa-/, 'no key is printed');
    is(read_file($copy), "$line\n", 'the file is kept');
}

# a key that cannot be printed

SKIP: {
    skip 'needs /dev/full', 2 if !-e '/dev/full';

    my $out = `$dsa key create --name n --file $new 2>&1 > /dev/full`;

    is($? >> 8, 1, 'stdout is full');
    like($out, qr/key_[0-9a-f]{16} is stored, but its text could not/,
         'the id is reported');
}


# Redis

my $server = $t->start_redis(conf => { databases => 16 });
my $redis = $t->redis();
my $address = '127.0.0.1:' . $server->port;

# everything that Redis has, as one text

sub dump_redis {
    my $text = '';

    for my $name ($redis->keys('*')) {
        my $type = $redis->cmd('TYPE', $name);
        my $all = $type eq 'hash' ? $redis->cmd('HGETALL', $name)
                  : $type eq 'zset' ? $redis->cmd('ZRANGE', $name, 0, -1)
                  : [$redis->cmd('GET', $name)];

        $text .= join("\n", $name, @$all) . "\n";
    }

    return $text;
}

@where = ('--redis', $address);
life('redis', \&dump_redis);
race('redis');

my $hashes = $redis->hgetall('dsa1:{keys}:hash');
my $entries = entries();
my %expected;

for my $r (values %$entries) {
    $expected{ $r->{hash} } = $r->{id};
    $expected{ $r->{old}{hash} } = $r->{id} if $r->{old};
}

is_deeply($hashes, \%expected, 'redis: the hashes are those of the entries');

# more keys than one page has

my %made = map { sprintf('key_%016x', $_) => 1 } 1 .. 300;

for my $id (keys %made) {
    my $r = json_encode({ id => $id, name => 'n', tenant => 't',
                          hash => sha256_hex($id), state => 'active',
                          created => 1 });

    $redis->cmd('HSET', 'dsa1:{keys}:id', $id, $r);
    $redis->cmd('ZADD', 'dsa1:{keys}:changed',
                $redis->cmd('INCR', 'dsa1:{keys}:version'), $id);
}

is(scalar(grep { $made{$_} } keys %{ entries() }), 300,
   'redis: more keys than one reply has');

# a key entry that is damaged does not hide the others

$redis->cmd('HSET', 'dsa1:{keys}:id', 'key_0000000000000001', '{}');
my ($rc, $out, $err) = key('list', '--json', @where);
ok($rc == 1 && @{ json_decode($out) } == keys(%{ $entries }) + 299
   && $err =~ /key_0000000000000001 is left out: .*no member "id"/,
   'redis: a damaged entry is reported') or diag("$rc, $err");

# commands that Redis rejects

my ($id) = grep { $entries->{$_}{state} eq 'active' } sort keys %$entries;

$redis->cmd('REPLICAOF', '127.0.0.1', '1');
refused('READONLY', 'redis: a replica', 'set', $id, '--rpm', '1', @where);
refused('READONLY', 'redis: a replica, create', 'create', '--name', 'n',
        @where);
$redis->cmd('REPLICAOF', 'NO', 'ONE');

$redis->cmd('FLUSHALL');
$redis->cmd('SET', 'dsa1:{keys}:id', 'x');
refused('DSADATA', 'redis: a key of another type, create', 'create', '--name',
        'n', @where);
refused('DSADATA', 'redis: a key of another type, list', 'list', @where);
refused('WRONGTYPE', 'redis: a key of another type, show', 'show', $id,
        @where);
$redis->cmd('FLUSHALL');

# a password, a user and a database

$redis->cmd('ACL', 'SETUSER', 'admin', 'on', '>secret', '~*', '+@all');
$redis->cmd('CONFIG', 'SET', 'requirepass', 'other');
my $password = write_file($t->path('password'), "secret\n");

refused('NOAUTH', 'redis: no password', 'list', @where);
refused('reply to AUTH is WRONGPASS', 'redis: a wrong password', 'list',
        @where, '--password-file', $password);
refused('expected --password-file', 'redis: a user without password', 'list',
        @where, '--user', 'admin');
refused('No such file', 'redis: no file with a password', 'list', @where,
        '--password-file', $t->path('nothing'));
refused('has no password', 'redis: an empty password', 'list', @where,
        '--password-file', write_file($t->path('empty'), "\n"));
refused('reply to SELECT is "ERR', 'redis: no such database', 'list', @where,
        '--password-file', $password, '--user', 'admin', '--db', '99');

push @where, '--password-file', $password, '--user', 'admin', '--db', '3';
good('create', '--name', 'n');
is(scalar keys %{ entries() }, 1, 'redis: a user, a password, a database');

# a node of a Redis Cluster that has no slots names the one that has them

my ($empty, $full) = DSA::Cluster->pair($t);

{
    local @where = ('--redis', '127.0.0.1:' . $empty->port);

    good('create', '--name', 'n');
    is(scalar keys %{ entries() }, 1, 'redis: a cluster');
    is($t->redis($full)->cmd('HLEN', 'dsa1:{keys}:id'), 1,
       'redis: the key is where its slot is');
}

refused('expected HOST:PORT', 'redis: not an address', 'list', '--redis',
        'localhost');
refused('Connection refused', 'redis: nobody listens', 'list', '--redis',
        '127.0.0.1:' . $t->free_port);
refused('No such file', 'redis: no such socket', 'list', '--redis',
        'unix:' . $t->path('none'));

$t->done;
