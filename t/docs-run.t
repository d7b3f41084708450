# Copyright (C) The nginx-dsa authors
#
# The commands of the pages for users that are marked "sh run" succeed: against
# the demonstration's model, with keys and prices in the shipped configuration,
# and for a backup of Redis that is restored while nginx runs.  Only ports and
# directories are changed.

use strict;
use warnings;

use lib 't/lib';
use DSA::Docs;
use DSA::Keys;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('docs-run');
my $root = $DSA::Test::root;
my $dir = $t->dir;
my $build = $t->build;

my $redis = $t->start_redis(appendonly => 1);
my $n = 0;

$t->start_engine(conf => { model => "$root/demo/model",
                           name => 'nginx-dsa-demo' });

# The commands of a page find these programs before those of the system.  curl
# fails if the server answers with an error, redis-cli uses the port of the
# test, sudo runs a command as this user, and systemctl starts and stops the
# programs of the test.

my %program = (
    'curl' => 'exec /usr/bin/env PATH="$REST" curl --fail-with-body "$@"',
    'redis-cli' => "exec /usr/bin/env PATH=\"\$REST\" redis-cli -p "
                   . $redis->port . ' "$@"',
    'sudo' => 'exec "$@"',
    'systemctl' => "echo \"\$*\" > $dir/service.new\n"
                   . "mv $dir/service.new $dir/service\n"
                   . "while [ -e $dir/service ]; do sleep 0.1; done");

mkdir "$dir/$_" or die "mkdir: $!\n" for qw/ bin work backups /;

for my $name (keys %program) {
    write_file("$dir/bin/$name", "#!/bin/sh\n$program{$name}\n");
    chmod 0755, "$dir/bin/$name";
}


# Runs blocks as one script; $services has what the service manager does.
# Returns what they print.

sub run_blocks {
    my ($name, $services, @blocks) = @_;

    my $text = join '', map { "echo '== $name:$_->{line}'\n$_->{text}" }
                        @blocks;
    my $port = $t->port;
    my $address = '127.0.0.1:' . $redis->port;

    for ($text) {
        s{http://127\.0\.0\.1(?::8080)?/}{http://127.0.0.1:$port/}g;
        s{127\.0\.0\.1:6379}{$address}g;
        s{/etc/dsa/}{$dir/}g;
        s{/var/lib/redis/}{$dir/redis0/}g;
        s{/var/backups/}{$dir/backups/}g;
        s{\bbuild/}{$build/}g;
    }

    my $script = write_file("$dir/script" . $n++,
                            "cd $dir/work\nREST=\$PATH\nexport REST\n"
                            . "PATH=$dir/bin:$build:\$PATH\n$text");
    my $proc = $t->spawn("commands$n", 'bash', '-eu', '-o', 'pipefail',
                         $script);

    ok(eval {
        wait_until(sub {
            my $service = read_file("$dir/service");

            if (defined $service) {
                chomp $service;
                ($services->{$service} || sub {
                    die "$name: systemctl $service\n" })->();
                unlink "$dir/service";
            }

            !$proc->alive;
        }, 120, "$name to end");
        1;
    } && $proc->{status} == 0, "$name: the commands succeed")
        or diag($@ || '', $proc->output);

    return $proc->output;
}

sub runs { grep { $_->{info} eq 'sh run' } doc_blocks($_[0]) }


# The requests that the ledger has of a tenant with a key.

sub requests {
    my ($tenant) = @_;

    my $address = '127.0.0.1:' . $redis->port;
    my $usage = `"$build/dsa" usage --redis $address --tenant $tenant --json`;

    return json_decode($usage)->{total}{requests};
}


# Reloads nginx, and waits until the workers with the old configuration have
# left: they would answer as well.

sub reload {
    my ($conf) = @_;

    my %old = map { $_ => 1 } $t->workers;

    $t->reload(conf => $conf);
    wait_until(sub { !grep { $old{$_} } $t->workers }, 20, 'the old workers');

    return;
}


# a server like that of the demonstration

my $open = read_file("$root/demo/nginx.conf.in");
my $sock = $t->{engines}[0]->sock;

for ($open) {
    s{^load_module .*\n}{%%GLOBALS%%\n};
    s{^(?:\@USER\@|worker_processes .*|pid .*|error_log .*)\n}{}mg;
    s/^http \{.*?(?=^    dsa_pool)/http {\n%%HTTP%%\n/ms;
    s{unix:\@RUN\@/engine\.sock}{unix:$sock};
    s{unix:\@RUN\@/redis\.sock}{%%REDIS%%};
    s{\@PORT\@}{%%PORT%%};
}

$t->start_nginx(conf => $open);
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'service');
wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis');

my %own = map { $_ => 1 } qw{ docs/operate/keys.md docs/operate/backup.md };
my %out;

for my $page (grep { !$own{$_} && runs($_) } doc_pages()) {
    $out{$page} = run_blocks($page, {}, runs($page));
}

like($out{'README.md'}, qr/"reasoning_content":"[^"]+"/,
     'README.md: an answer with reasoning');
like($out{'docs/api/errors.md'}, qr/^Idempotent-Replayed: true\r?$/mi,
     'a repeated request gets the answer of the first');
like($out{'docs/api/structured-output.md'},
     qr/"content":"\{(?:\\n| )*\\"result\\": ?-?\d+(?:\\n| )*\}"/,
     'JSON of a schema');
like($out{'docs/cli.md'}, qr/Requests|requests/, 'dsa status has requests');


# the shipped configuration, with its prices

my $conf = read_file("$root/conf/nginx.conf");

for ($conf) {
    s{^load_module .*\n}{%%GLOBALS%%\n}m;
    s{^(?:user|worker_processes|worker_rlimit_nofile|pid|error_log)\s.*\n}{}mg;
    s/^http \{\n/http {\n%%HTTP%%\n/m;
    s{^ *access_log +/var/log/dsa.*\n}{}m;
    s{/etc/dsa/}{$dir/}g;
    s{unix:/run/dsa/v32\.sock}{unix:$sock};
    s{listen  80  default_server}{listen  127.0.0.1:%%PORT%%};
    s{^ *listen  \[::\]:80 .*\n}{}m;
    s{127\.0\.0\.1:6379}{%%REDIS%%};
    s{^( +)\# (dsa_price )}{$1$2}mg;
}

write_file($t->path('keys'), '');
reload($conf);

# The first request of a key with a budget waits for what the key has spent, but
# only for a second.  curl repeats it if that is too short for a busy machine.

write_file($t->path('.curlrc'), "retry = 5\n");
$ENV{CURL_HOME} = $t->dir;

my $bill = run_blocks('docs/operate/keys.md', {},
                      runs('docs/operate/keys.md'));

delete $ENV{CURL_HOME};

like($bill, qr/\bacme +deepseek-chat +1 .* 0\.0000\d+ /,
     'the bill has a cost') or diag($bill);


# A backup, and its restore while nginx runs: the ledger has what it had then
# and what nginx could not write while Redis was away.

my $chat = '/v1/chat/completions';
my $ask = { model => 'deepseek-chat', max_tokens => 4,
            messages => [ { role => 'user', content => 'Hello' } ] };

$conf =~ s{dsa_keys\s+file=\S+}{dsa_keys redis};
put_keys($t->redis, key_entry('kept'));
reload($conf);

my @kept = bearer(key_text('kept'));
my @lost = bearer(key_text('lost'));
my $use = sub { is($t->post($chat, $ask, @_)->{status}, 200, 'a chat') };
my $settle = sub {
    my ($tenant, $want) = @_;

    wait_until(sub { requests($tenant) == $want }, 20,
               "$want requests of $tenant in the ledger");
};

wait_until(sub { $t->get('/v1/models', @kept)->{status} == 200 }, 20,
           'the key');
$use->(@kept);
$settle->('kept', 1);

my ($backup, $restore) = runs('docs/operate/backup.md');

run_blocks('docs/operate/backup.md', {}, $backup);

put_keys($t->redis, key_entry('lost'));
wait_until(sub { $t->get('/v1/models', @lost)->{status} == 200 }, 20,
           'a key that is not in the backup');
$use->(@kept) for 1 .. 2;
$use->(@lost);
$settle->('kept', 3);
$settle->('lost', 1);

my $after = run_blocks('docs/operate/backup.md', {
    'stop redis-server' => sub {
        $redis->stop();
        $use->(@kept);
    },
    'start redis-server' => sub { $redis->restart() },
}, $restore);

like($after, qr/^kept\b/m, 'dsa usage prints the ledger of the backup');
$settle->('kept', 2);
is(requests('lost'), 0, 'what came after the backup is missing');
wait_until(sub { $t->get('/v1/models', @lost)->{status} == 401 }, 20,
           'the end of a key that is not in the backup');
$use->(@kept);
$settle->('kept', 3);

$t->done;
