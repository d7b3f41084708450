# Copyright (C) The nginx-dsa authors
#
# The names and defaults in the READMEs are those of the programs: directives,
# variables, metrics, commands.  The configurations in README.md work.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use DSA::Weights;
use Test::More;

my $t = DSA::Test->new('docs');
my $root = $DSA::Test::root;
my $readme = read_file("$root/README.md");
my $source = join '', map { read_file($_) } glob "$root/ngx_module/{*,*/*}.c";


sub set { my %h = map { $_ => 1 } @_; return [ sort keys %h ] }


# (exit status, stdout and stderr) of a program.

sub output {
    my (@argv) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', @argv
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, defined $out ? $out : '');
}


# nginx's directives and variables

my ($commands) = $source =~ /ngx_http_dsa_commands\[\] = \{(.*?)^\};/ms;
my @directives = $commands =~ /ngx_string\("(dsa_\w+)"\)/g;

cmp_ok(scalar @directives, '>', 5, 'there are directives');

for my $file ('README.md', 'ngx_module/README.md') {
    my $text = read_file("$root/$file");

    is_deeply(set($text =~ /^\| `(dsa_\w+)[^|\n]*\|/mg), set(@directives),
              "$file: directives");

    for (qw/ 15s off 30m 256k /) {
        like($text, qr/^\| `dsa_[^\n]*\| `?$_`? \|/m, "$file: a default, $_");
    }
}

like($source, qr/\Q$_);\E/, "its default: $_")
    for 'conf->keepalive, prev->keepalive, 15000',
        'conf->keepalive_json, prev->keepalive_json, 0',
        'conf->timeout, prev->timeout, 1800000';
like($source, qr/^#define NGX_HTTP_DSA_CONTEXT_THRESHOLD  80$/m,
     'its default: 80%');
like($readme, qr/`dsa_context_strategy [^\n]*`threshold=`, by default `80%`/,
     'README.md has it');
like($source, qr/prev->output_limit,\s+256 \* 1024\);/,
     'its default: 256k');

my ($variables) = $source =~ /ngx_http_dsa_vars\[\] = \{(.*?)^\};/ms;
my @variables = $variables =~ /ngx_string\("(dsa_\w+)"\)/g;

for my $file ('README.md', 'ngx_module/README.md') {
    is_deeply(set(read_file("$root/$file") =~ /`\$(dsa_\w+)`/g),
              set(@variables), "$file: variables");
}

my ($known) = $source =~ /"expected (user=[^;]*)", arg\)/;
is_deeply(set($readme =~ /`([a-z_]+)=(?:FILE|NAME|N|SIZE|TIME)`/g),
          set($known =~ /(\w+)=/g), 'parameters of dsa_redis');


# the engine's directives

my ($table) = read_file("$root/engine/service/conf.c")
              =~ /dsa_directives\[\] = \{(.*?)^\};/ms;
my @engine = $table =~ /\{ "(\w+)", dsa_conf_/g;
my ($listed) = read_file("$root/engine/README.md")
               =~ /^## Directives\n(.*)/ms;

cmp_ok(scalar @engine, '>', 10, 'there are directives of the engine');
is_deeply(set($listed =~ /^\| `(\w+)[ `]/mg), set(@engine),
          'engine/README.md: directives');

my @cache = read_file("$root/engine/service/conf_cache.c")
            =~ /^    \{ "(\w+)=", /mg;

cmp_ok(scalar @cache, '>', 3, 'there are parameters of redis_cache');
is_deeply(set($listed =~ /^\| `(\w+)=/mg), set(@cache),
          'engine/README.md: parameters of redis_cache');


# no text names a directive that exists no longer

my @old = (read_file("$root/ngx_module/core/ngx_http_dsa_old.h")
           =~ /NGX_HTTP_DSA_OLD\("(\w+)"/g,
           map { "`$_\\b" } read_file("$root/engine/service/conf_old.c")
                            =~ /^    \{ "(\w+)",/mg);
my $old = join '|', @old;

cmp_ok(scalar @old, '>=', 8, 'there are former directives');

my @texts = grep { -f } map { glob "$root/$_" }
            qw{ README.md */README.md */*/README.md conf/* conf/*/* debian/*
                demo/*.in };

cmp_ok(scalar @texts, '>', 50, 'there are texts');
is(join(' ', grep { read_file($_) =~ /$old/ } @texts), '',
   'no text has one of them');


# dsa: every list has the same commands, with the options of their usage

my ($rc, $help) = output($t->build . '/dsa', '--help');

is($rc, 0, 'dsa --help');

my @names = do { my %n; grep { !$n{$_}++ } $help =~ /^  dsa (\w+)/mg };

for my $file ('README.md', 'tools/README.md') {
    my ($rows) = join '', grep { /^\| `dsa / }
                          split /^/, read_file("$root/$file");
    is_deeply(set($rows =~ /`dsa (\w+)/g), set(@names), "$file: commands");
}

for my $name (@names) {
    my ($rc, $usage) = output($t->build . '/dsa', $name, '--help');
    my ($short) = $help =~ /^  dsa $name (.*?)\n {6}\w/ms;

    is($rc, 0, "dsa $name --help");
    like($usage, qr/^usage: dsa $name /m, 'prints its usage');

    for my $option (($short || '') =~ /(--[a-z-]+)/g) {
        like($usage, qr/\Q$option\E\b/, "dsa $name: $option");
    }
}


# metrics: every name in README.md exists, and every family has its name or a
# prefix of it there

$t->start_redis();
$t->start_fake();
$t->start_nginx();

my $metrics = $t->get('/metrics')->{body};
my %family = map { $_ => 1 } $metrics =~ /^# TYPE (\w+) /mg;
my ($section) = $readme =~ m{^`/metrics`(.*?)\n\n}ms;
my @named = $section =~ /`(dsa_\w+)/g;

cmp_ok(scalar @named, '>', 10, 'README.md has metrics');

for my $name (@named) {
    ok((grep { $_ eq $name || $name =~ /_$/ && /^\Q$name\E/ } keys %family),
       "README.md: $name exists");
}

is_deeply([ grep { my $f = $_;
                   !grep { $_ eq $f || /_$/ && $f =~ /^\Q$_\E/ } @named }
            sort keys %family ], [], 'README.md: no family is missing');


# the configurations of README.md

my ($conf) = $readme =~ /^```nginx\n(.*?)^```/ms;
my $secret = write_file($t->path('redis.pw'), "secret\n");
my $sock = $t->{engines}[0]->sock;

chmod 0600, $secret;

$conf =~ s{^load_module .*\n}{%%GLOBALS%%\n};
$conf =~ s/^http \{\n/http {\n    %%HTTP%%\n/m;
$conf =~ s{/etc/dsa/redis\.pw}{$secret};

my ($status, $out) = $t->nginx_test(conf => $conf);

is($status, 0, 'nginx accepts it') or diag($out);
unlike($out, qr/\[(?:warn|error|emerg)\]/, 'without a warning');

$conf =~ s{unix:/run/dsa/v32\.sock}{unix:$sock};
$conf =~ s{dsa_redis [^;]*}{dsa_redis %%REDIS%%};
$conf =~ s{listen \d+}{listen 127.0.0.1:%%PORT%%};

my $before = join ' ', $t->workers;

$t->reload(conf => $conf);
wait_until(sub { my @w = $t->workers; @w == 1 && "@w" ne $before }, 20,
           'the new configuration');
wait_until(sub { $t->get('/healthz')->{status} == 200 }, 10, 'service');

my $chat = '/v1/chat/completions';
my $body = { model => 'deepseek-chat',
             messages => [ { role => 'user', content => 'Hello' } ] };

# the command of README.md makes a key

my ($create) = $readme =~ /`dsa (key create [^`]*)`/;
my $address = "127.0.0.1:$t->{redises}[0]{port}";

$create =~ s/127\.0\.0\.1:6379/$address/;

my ($alice) = output($t->build . '/dsa', split / /, $create)
              =~ /^(sk-dsa-\S+)$/m;

ok(defined $alice, "dsa $create") or BAIL_OUT('there is no key');
$alice = "Bearer $alice";

my @alice = (headers => [ Authorization => $alice ]);

wait_until(sub { $t->get('/v1/models', @alice)->{status} == 200 }, 10,
           'the key');

for ([ undef, 401 ], [ 'Bearer sk-bob', 401 ], [ $alice, 200 ]) {
    my ($key, $want) = @$_;
    my $r = $t->post($chat, $body,
                     headers => [ $key ? (Authorization => $key) : () ]);

    is($r->{status}, $want, 'Authorization: '
                            . (!$key ? 'none' : $key eq $alice ? 'the key'
                               : $key));
    ok($r->{json}{error}{message} || $r->{json}{choices}, 'in JSON');
}

for my $base ('', '/beta') {
    is($t->post("$base/chat/completions", $body, @alice)->{status}, 200,
       "base '$base'");
    is($t->post("$base/chat/completions", $body)->{status}, 401,
       'it requires a key as well');
}

is($t->get('/beta/', @alice)->{json}{error}{code}, 'not_found',
   'the root of a base is an error');
is($t->get('/')->{headers}{'content-type'}, 'text/html; charset=utf-8',
   'that of the server is the page, which needs no key');

is($t->request('OPTIONS', $chat, @alice)->{status}, 405, 'no OPTIONS');

# the engine's configurations: the second one is for the published model and
# needs a build with CUDA; no GPU is visible to it, also where there are some

my @confs = $readme =~ /^```\n(model .*?)^```/msg;
my $small = $t->model;
my $v32 = $t->path('v32');

is(scalar @confs, 2, 'README.md has two configurations of engines');

mkdir $v32 or die "mkdir: $!\n";
write_file("$v32/config.json", read_file("$root/bench/v3.2/config.json"));
write_file("$v32/tokenizer.json", read_file("$small/tokenizer.json"));
sparse_weights($v32);
$ENV{CUDA_VISIBLE_DEVICES} = '';

for my $engine (@confs) {
    my $model = $engine =~ /^backend\s+cuda;/m ? $v32 : $small;

    $engine =~ s{^model\s.*}{model $model;}m;
    $engine =~ s{^socket_group .*\n}{}m if $> != 0;
    $engine =~ s{unix:/run/dsa/}{'unix:' . $t->dir . '/'}e;
    $engine =~ s{^(host_memory|kv_memory)\s.*}{$1 64m;}m;

    ($rc, $out) = output($t->build . '/dsa-engine', '-t', '-c',
                         write_file($t->path('engine.conf'), $engine));

    ok($rc == 0 || ($model eq $v32 && $out =~ /built without nvcc/),
       "the engine accepts its configuration for $model") or diag($out);
}

# each folder has a README, and every link leads to a file

chdir $root or die "chdir: $!\n";

my @files = grep { !m{^(?:build|node_modules)|/node_modules/} }
            glob 'README.md */README.md engine/*/README.md t/data/*/README.md';

for my $dir (grep { !/^build/ } map { s{/$}{}r } glob '*/') {
    ok(-e "$dir/README.md", "$dir has a README.md");
}

for my $file (@files) {
    my ($at) = $file =~ m{^(.*/)?};
    my @dead = grep { !/^https?:|^#/ && !-e(($at || '') . $_) }
               read_file($file) =~ /\]\(([^)\s]+)\)/g;

    is("@dead", '', "$file: links");
}

$t->done;
