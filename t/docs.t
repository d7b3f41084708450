# Copyright (C) The nginx-dsa authors
#
# The pages of docs/ list what the programs have, in both directions:
# directives with their contexts and defaults, variables, options of engines,
# metrics, commands.  The configurations in them are accepted, and links lead
# somewhere.

use strict;
use warnings;

use lib 't/lib';
use DSA::Docs;
use DSA::Keys;
use DSA::Test;
use DSA::TLS;
use DSA::Weights;
use Test::More;

my $t = DSA::Test->new('docs');
my $root = $DSA::Test::root;
my $source = join '', map { read_file($_) } glob "$root/ngx_module/{*,*/*}.c";


sub set { my %h = map { $_ => 1 } @_; return [ sort keys %h ] }

sub page { read_file("$root/$_[0]") }


# (exit status, stdout and stderr) of a program.

sub output {
    my (@argv) = @_;

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-', @argv
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, defined $out ? $out : '');
}


# The first column's name and the rest of the rows of a table.

sub table {
    my ($text, $name) = @_;

    return map { my @c = @$_; $c[0] =~ $name ? ($1 => [ @c[1 .. $#c] ]) : () }
           doc_rows($text);
}


# nginx's directives: a section with syntax, default and context for each

my ($commands) = $source =~ /ngx_http_dsa_commands\[\] = \{(.*?)^\};/ms;
my %where = $commands =~ /ngx_string\("(dsa_\w+)"\),\s*([A-Z_|\s]+?)
                          \|NGX_CONF_/gsx;
my %context = (MAIN => 'http', SRV => 'server', LOC => 'location',
               UPS => 'upstream');

my @pool = $source =~ /ngx_strcmp\(value\[0\]\.data, "(\w+)"\) == 0/g;

cmp_ok(scalar keys %where, '>', 15, 'there are directives');
is_deeply(set(@pool), [qw/ engine prefix_zone /], 'and those of dsa_pool');

my %section = map { $_ => doc_section('docs/directives.md', "### $_") }
              page('docs/directives.md') =~ /^### (\w+)$/mg;

is_deeply(set(keys %section), set(keys %where, @pool),
          'docs/directives.md has all directives');

for my $name (sort keys %section) {
    my ($syntax, $default, $in) = map { $_->[1] }
                                  (doc_rows($section{$name}))[0 .. 2];
    my @want = map { /NGX_HTTP_(\w+?)_CONF/ ? $context{$1} : () }
               split /\|/, $where{$name} // '';

    @want = ('dsa_pool') if !exists $where{$name};

    like($syntax, qr/^`\Q$name\E[ ;]/, "$name: syntax");
    is($in, join(', ', @want), "$name: context");
    like($default, qr/^(?:[a-z]|`\Q$name\E .*;`$)/, "$name: default");
}

# defaults: the numbers in the code

sub bytes { $_[0] =~ /^(\d+)([kmg]?)$/ or die;
            $1 * { '' => 1, k => 2**10, m => 2**20, g => 2**30 }->{$2} }
sub ms { $_[0] =~ /^(\d+)(s|m|h|d)$/ or die;
         $1 * { s => 1e3, m => 6e4, h => 3.6e6, d => 8.64e7 }->{$2} }

sub default {
    my ($name) = @_;

    return (doc_rows($section{$name}))[1][1] =~ s/^`\Q$name\E (.*);`$/$1/r;
}

sub merged {
    my ($field) = @_;

    my ($value) = $source =~ /conf->\Q$field\E,\s+prev->\Q$field\E,\s+
                              ([^;]*)\);/sx;
    $value =~ s/NGX_HTTP_DSA_CONTEXT_THRESHOLD/80/;

    return $value =~ /^[\d* ]+$/ ? eval $value : $value;
}

is(default('dsa_keepalive'), '15s json=off', 'dsa_keepalive');
is(merged('keepalive'), ms('15s'), 'is its default');
is(merged('keepalive_json'), 0, 'json=off as well');
is(merged('timeout'), ms(default('dsa_timeout')), 'dsa_timeout');
is(merged('output_limit'), bytes(default('dsa_output_limit')),
   'dsa_output_limit');
is(merged('rollout'), bytes(default('dsa_rollout')), 'dsa_rollout');
is(merged('ignore_client_abort'), 0, 'dsa_ignore_client_abort');
is(default('dsa_ignore_client_abort'), 'off', 'is off');
is(default('dsa_context_strategy'), 'none threshold=80%',
   'dsa_context_strategy');
is(merged('context_strategy'), 'DSA_WINDOW_NONE', 'is its default');
like($source, qr/^#define NGX_HTTP_DSA_CONTEXT_THRESHOLD  80$/m, '80%');
is(default('dsa_retention'), 'on ttl=1h', 'dsa_retention');
is(merged('retention'), 'NGX_HTTP_DSA_RETENTION_ON', 'is its default');
like(read_file("$root/redis_schema/retained.h"),
     qr/^#define DSA_SCHEMA_RETAINED_TTL\s+\(?3600\b/m, 'for an hour');
is(default('prefix_zone'), '4m', 'prefix_zone');
like($source, qr/^#define NGX_HTTP_DSA_POOL_ZONE +\(4 \* 1024 \* 1024\)$/m,
     'is its default');

# parameters of dsa_redis, dsa_price and dsa_keys

my ($known) = $source =~ /"expected (user=[^;]*)", arg\)/;

is_deeply(set(map { /^`(\w+)=/ ? $1 : () } map { $_->[0] }
              doc_rows($section{dsa_redis})),
          set($known =~ /(\w+)=/g), 'parameters of dsa_redis');

my ($prices) = $source =~ /"expected (miss=.*?)", arg\)/s;

is_deeply(set(map { /`(\w+)=[A-Z]+(?::MM)?`/g } map { $_->[0] }
              doc_rows($section{dsa_price})),
          set($prices =~ /(\w+)=/g), 'parameters of dsa_price');


# variables

my ($variables) = $source =~ /ngx_http_dsa_vars\[\] = \{(.*?)^\};/ms;
my %variable = table(doc_section('docs/directives.md', '## Variables'),
                     qr/^`\$(dsa_\w+)`$/);

is_deeply(set(keys %variable), set($variables =~ /ngx_string\("(dsa_\w+)"\)/g),
          'variables');


# options of an engine

my ($table) = read_file("$root/engine/service/conf.c")
              =~ /dsa_directives\[\] = \{(.*?)^\};/ms;
my %option = table(doc_section('docs/engine.md', '## Options'),
                   qr/^`(\w+) [^`]+`$/);
my %cache = table(doc_section('docs/engine.md', '## redis_cache'),
                  qr/^`(\w+)=[A-Z]+`$/);

is_deeply(set(keys %option), set($table =~ /\{ "(\w+)", dsa_conf_/g),
          'docs/engine.md has all options');
is_deeply(set(keys %cache), set(read_file("$root/engine/service/conf_cache.c")
                                =~ /^    \{ "(\w+)=", /mg),
          'and the parameters of redis_cache');


# no text names a directive that exists no longer

my @old = (read_file("$root/ngx_module/core/ngx_http_dsa_old.h")
           =~ /NGX_HTTP_DSA_OLD\("(\w+)"/g,
           map { "`$_\\b" } read_file("$root/engine/service/conf_old.c")
                            =~ /^    \{ "(\w+)",/mg);
my $old = join '|', @old;

cmp_ok(scalar @old, '>=', 8, 'there are former directives');

my @texts = grep { -f }
            map { glob "$root/$_" }
            qw{ README.md */README.md */*/README.md docs/*.md docs/*/*.md
                conf/* conf/*/* debian/* demo/*.in };

cmp_ok(scalar @texts, '>', 70, 'there are texts');
is(join(' ', grep { read_file($_) =~ /$old/ } @texts), '',
   'no text has one of them');


# commands of dsa: all have a section with all options of their --help

my ($rc, $help) = output($t->build . '/dsa', '--help');

is($rc, 0, 'dsa --help');

my @names = do { my %n; grep { !$n{$_}++ } $help =~ /^  dsa (\w+)/mg };
my $cli = page('docs/cli.md');

is_deeply(set($cli =~ /^## dsa (\w+)$/mg), set(@names),
          'docs/cli.md has all commands');
is_deeply(set((join '', grep { /^\| \[dsa / } split /^/, $cli)
              =~ /\[dsa (\w+)\]/g), set(@names), 'and its list, too');

# and so has the manual page

my $manual = page('debian/dsa.1') =~ s/\\f[A-Z]|\\//gr;

is(join(' ', grep { $manual !~ /\bdsa $_\b|^\.B .*\b$_\b/m } @names), '',
   'debian/dsa.1 has all commands');


# commands in quotes are others

sub options {
    my ($text) = @_;

    return set(($text =~ s/"dsa [^"]*"//gr)
               =~ /(?<![\w-])(--?[a-z][a-z-]*)/g);
}

for my $name (@names) {
    my ($rc, $usage) = output($t->build . '/dsa', $name, '--help');
    my $rows = join "\n", map { $_->[0] }
               doc_rows(doc_section('docs/cli.md', "## dsa $name"));

    is($rc, 0, "dsa $name --help");
    like($usage, qr/^usage: dsa $name /m, 'prints its usage');

    my @of = grep { !/^--help$/ } @{ options($rows) };

    # what other commands have is repeated by reference

    push @of, '--user', '--password-file', '--db' if $rows =~ /as for/;

    is_deeply(set(@of), set(grep { !/^--help$/ } @{ options($usage) }),
              "docs/cli.md: the options of dsa $name");
}


# metrics: names, types and labels

$t->start_redis();
$t->start_fake();
$t->start_engine(conf => { name => 'null', backend => 'null',
                           kv_memory => '16m', host_memory => '16m' });
write_keys($t->path('keys'),
           key_entry('anna', budget => { day => { hard => '10' } }));
$t->start_nginx(http => 'dsa_keys file=%%DIR%%/keys zone=keys:2m;
                         dsa_price null miss=1 hit=1 output=1;',
                server => 'location = /status { dsa_status; }',
                );

$t->wait_sessions(2);

my $text;

wait_until(sub {
    $text = $t->get('/metrics')->{body};
    $text =~ /^dsa_redis_memory_limit_bytes /m
}, 20, 'the memory of Redis');

my (%type, %labels) = $text =~ /^# TYPE (\w+) (\w+)$/mg;

for ($text =~ /^(dsa_\w+(?:\{[^}\n]*\})?) /mg) {
    my ($name, $labels) = /^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})?$/;

    $name = (/^(\w+)/)[0] if !exists $type{$name};
    $labels{$name}{$_} = 1 for grep { $_ ne 'le' }
                               ($labels // '') =~ /(\w+)="/g;
}

my %metric = table(page('docs/metrics.md'), qr/^`(dsa_\w+)`$/);

is_deeply(set(keys %metric), set(keys %type),
          'docs/metrics.md has all metrics');

for my $name (sort keys %metric) {
    my ($type, $labels) = @{ $metric{$name} };

    is($type, $type{$name}, "$name: type");
    is_deeply(set($labels =~ /`(\w+)`/g), set(keys %{ $labels{$name} || {} }),
              "$name: labels");
}

# the example of the status has the members that it has

sub members {
    my ($value) = @_;

    return ref $value eq 'ARRAY' ? map { members($_) } @$value
         : ref $value eq 'HASH' ? map { ($_, members($value->{$_})) }
                                  keys %$value
         : ();
}

my $ask = { model => 'null', max_tokens => 2,
            messages => [ { role => 'user', content => 'Hello' } ] };

is($t->post('/v1/chat/completions', $ask, bearer(key_text('anna')))->{status},
   200, 'a chat');

my $status;

wait_until(sub {
    $status = $t->get('/status')->{json};
    ($status->{tenants}[0] || {})->{spent} && $status->{engines}[1]{tiers}
}, 20, 'the status of the tenant');

my ($example) = map { $_->{text} } grep { $_->{text} =~ /^\{"time"/ }
                doc_blocks('docs/metrics.md');

# of lists with a member for each status and reason the example has the first

delete $status->{requests}{$_} for qw/ by_status cancelled /;

is_deeply(set(grep { !/^(?:by_status|cancelled|200|other|client)$/ }
              ($example // '') =~ /"(\w+)":/g),
          set(members($status)), 'docs/metrics.md: the members of the status');


# every fenced block has a known language and mark

my $known_info = qr/^(?:sh\ (?:run|example)|nginx(?:\ (?:http|server))?|engine
                    |text|js|ini)$/x;
my @blocks = map { my $p = $_; map { { %$_, page => $p } } doc_blocks($p) }
             doc_pages();

cmp_ok(scalar @blocks, '>', 60, 'there are blocks');

is(join(' ', grep { page($_) =~ /^[ \t>]+```/m } doc_pages()), '',
   'no block is indented, where doc_blocks() would not find it');

for (grep { $_->{info} !~ $known_info } @blocks) {
    fail("$_->{page}:$_->{line}: ```$_->{info} is not in docs/README.md");
}


# nginx's configurations

write_file($t->path($_), $_ x 32)
    for qw/ redis.pw cache.pw secret secret.new hosts.secret /;
chmod 0600, map { $t->path($_) }
            qw/ redis.pw cache.pw secret secret.new hosts.secret /;
make_ca($t->dir, 'ca');
make_certificate($t->dir, 'ca', 'nginx', 'DNS:nginx.test');
write_file($t->path("$_.crt"), read_file($t->path("$_.pem")))
    for qw/ ca nginx /;

for my $block (grep { $_->{info} =~ /^nginx/ } @blocks) {
    my $name = "$block->{page}:$block->{line}";
    my $dir = $t->dir;
    my $conf = $block->{text};

    if ($block->{info} eq 'nginx server') {
        $conf = "server { listen 80;\n$conf }\n";
    }

    if ($block->{info} ne 'nginx') {
        my $pool = $conf =~ /dsa_pool v32/ ? ''
                   : "dsa_pool v32 { engine unix:/run/dsa/v32.sock; }\n";

        my $redis = $conf =~ /dsa_keys redis/ && $conf !~ /dsa_redis/
                    ? "dsa_redis 127.0.0.1;\n" : '';

        $conf = "load_module x;\nevents {}\nhttp {\n$pool$redis$conf\n}\n";
    }

    ok($conf =~ s{^load_module .*\n}{%%GLOBALS%%\n}m, "$name loads the module");
    $conf =~ s/^http \{\n/http {\n%%HTTP%%\n/m;
    $conf =~ s{^(?:user|worker_processes)\s.*\n}{}mg;
    $conf =~ s{/etc/dsa/|/var/lib/nginx/}{$dir/}g;
    $conf =~ s{listen \d+}{listen 127.0.0.1:%%PORT2%%};

    my ($status, $out) = $t->nginx_test(conf => $conf);

    is($status, 0, "$name: nginx accepts it") or diag($out);
    unlike($out, qr/\[(?:warn|error|emerg)\]/, 'without a warning');
}


# The engines' configurations.  Those for the published model need a build with
# CUDA; no GPU is visible to it, also where there are some.

my $small = $t->model;
my $v32 = $t->path('v32');

mkdir $v32 or die "mkdir: $!\n";
write_file("$v32/config.json", read_file("$root/bench/v3.2/config.json"));
write_file("$v32/tokenizer.json", read_file("$small/tokenizer.json"));
sparse_weights($v32);
$ENV{CUDA_VISIBLE_DEVICES} = '';

for my $block (grep { $_->{info} eq 'engine' } @blocks) {
    my $name = "$block->{page}:$block->{line}";
    my $dir = $t->dir;
    my $engine = $block->{text};
    my $model = $engine =~ /^backend\s+cuda;/m ? $v32 : $small;

    $engine =~ s{^model\s.*}{model $model;}m;
    $engine =~ s{^socket_group .*\n}{}m if $> != 0;
    $engine =~ s{unix:/run/dsa/}{unix:$dir/};
    $engine =~ s{/etc/dsa/}{$dir/}g;
    $engine =~ s{^(listen\s+)10\.[\d.]+:\d+}{${1}127.0.0.1:0}m;
    $engine =~ s{^(host_memory|kv_memory)(\s+)\w+;}{$1${2}64m;}mg;

    my ($rc, $out) = output($t->build . '/dsa-engine', '-t', '-c',
                            write_file($t->path('engine.conf'), $engine));

    ok($rc == 0 || ($model eq $v32 && $out =~ /built without nvcc/),
       "$name: the engine accepts it") or diag($out);
}


# README.md is a front page, each folder has a README, and every link leads to
# a file and a heading

cmp_ok((() = page('README.md') =~ /\n/g), '<=', 150,
       'README.md has at most 150 lines');

chdir $root or die "chdir: $!\n";

for my $dir (grep { !/^build/ } map { s{/$}{}r } glob '*/') {
    ok(-e "$dir/README.md", "$dir has a README.md");
}

for my $file (doc_pages(), doc_readmes()) {
    my $at = $file =~ m{^(.*/)} ? $1 : '';
    my @dead;

    for my $link (doc_links($file)) {
        my ($path, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
        my $to = $path eq '' ? $file : "$at$path";

        $to .= $to =~ m{/$} ? 'README.md' : '/README.md' if -d $to;

        push @dead, $link
            if !-e $to || defined $anchor && $to =~ /\.md$/
                          && !doc_anchors($to)->{$anchor};
    }

    is("@dead", '', "$file: links");
}

$t->done;
