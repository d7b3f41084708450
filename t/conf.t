# Copyright (C) The nginx-dsa authors
#
# The shipped configurations are accepted by nginx, dsa-engine and redis-server.
# Only paths, ports and the user are changed here.  The numbers in
# docs/operate/deepseek-v3.2.md and deepseek-v3.2-int4.md are those that
# dsa-engine prints.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;

use lib 't/lib';
use DSA::Keys;
use DSA::Test;
use DSA::Weights;
use Test::More;

my $t = DSA::Test->new('conf');

my $dir = $t->dir;
my $module = $t->build . '/ngx_http_dsa_module.so';
my $root = $DSA::Test::root;

my $text = read_file("$root/conf/nginx.conf");

ok($text =~ s{modules/ngx_http_dsa_module\.so}{$module}, 'loads the module');
$text =~ s{/var/log/(?:nginx|dsa)/|/run/(?=nginx\.pid)}{$dir/}g;
$text =~ s{/etc/dsa/}{$dir/}g;

# the keys of a new installation: none

write_file($t->path('keys'), '');

# only root can change the user, or write to the directories of Debian's nginx

$text =~ s{^user .*}{}m if $> != 0;
my $temp = join '', map { "    ${_}_temp_path  $dir/tmp.$_;\n" }
           qw/ client_body proxy fastcgi uwsgi scgi /;

$text =~ s/^http \{\n/http {\n$temp/m;

my ($status, $out) = $t->nginx_test(conf => $text);

is($status, 0, 'nginx.conf is accepted') or diag($out);
unlike($out, qr/\[(?:warn|error|emerg)\]/, 'without a warning');

# values that two files have in common are the same

my ($sock) = $text =~ /engine\s+(unix:\S+);/;
my $engine = read_file("$root/conf/engine.conf");

# every configuration of an engine is accepted, with the config.json of its
# model

$ENV{CUDA_VISIBLE_DEVICES} = '';

my $v32 = $t->path('v32');
my $list = read_file("$root/conf/README.md");
my $guide = read_file("$root/docs/operate/deepseek-v3.2.md");
my ($stop) = read_file("$root/conf/systemd/dsa-engine@.service")
             =~ /^TimeoutStopSec=(\d+)$/m;

mkdir $v32 or die "mkdir: $!\n";
write_file("$v32/config.json", read_file("$root/bench/v3.2/config.json"));
write_file("$v32/tokenizer.json", read_file($t->model . '/tokenizer.json'));
sparse_weights($v32);

# the same model as "dsa quantize" makes it

my $int4 = $t->path('v32-int4');
my $config = json_decode(read_file("$v32/config.json"));

$config->{quantization_config} = {
    quant_method => 'w4afp8', fmt => 'e4m3', group_size => 128,
    scale_fmt => 'ue8m0', weight_block_size => [ 128, 128 ],
    activation_scheme => 'dynamic', moe_activation_scheme => 'dynamic' };

mkdir $int4 or die "mkdir: $!\n";
write_file("$int4/config.json", json_encode($config));
write_file("$int4/tokenizer.json", read_file($t->model . '/tokenizer.json'));
sparse_weights($int4);

my ($machine) = map { $_ * 1024 }
                read_file('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB$/m;


# (exit status, output) of dsa-engine -t with more arguments

sub engine_test {
    my ($conf, @args) = @_;

    $conf =~ s{unix:/run/dsa/}{unix:$dir/}g;

    write_file($t->path('test.conf'), $conf);

    open my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', '-',
        $t->build . '/dsa-engine', '-t', @args, '-c', $t->path('test.conf')
        or die "sh: $!\n";
    my $out = do { local $/; <$fh> };
    close $fh;

    return ($? >> 8, $out);
}


my @engines = map { s{.*/}{}r } glob "$root/conf/engine*.conf";

cmp_ok(scalar @engines, '>', 1, 'there are configurations of engines');

for my $name (@engines) {
    my $conf = read_file("$root/conf/$name");

    like($list, qr/^\| `\Q$name\E` \|/m, "$name is in the README");
    like($conf, qr/^listen\s+\Q$sock\E;/m, "$name: nginx names its socket");

    my ($drain) = $conf =~ /^drain_timeout\s+(\d+)s;/m;
    cmp_ok($drain, '<', $stop, "$name: the unit lets answers finish");

    my $dir = $name =~ /int4/ ? $int4 : $v32;

    $conf =~ s{^model\s.*}{model $dir;}m;
    $conf =~ s{^socket_group\s.*}{}m if $> != 0;

    # a machine for tests has less memory than one for this model

    $conf =~ s{^(host_memory|kv_memory)\s.*}{$1 64m;}m;

    my ($rc, $out) = engine_test($conf);

    if ($out =~ /built without nvcc/) {
        like($conf, qr/^backend\s+cuda;/m, "$name needs a GPU");
        next;
    }

    is($rc, 0, "$name is accepted") or diag($out);
}


# The tiers of the cache in the example, with the directive that is a comment
# there.  The CPU has pages of the same size.

my $tiers = read_file("$root/conf/engine-v3.2-8gpu.conf");
my ($size, $million) = $tiers =~ /^# .*: (\d+)g\n# holds ([\d.]+) million/m;

write_file($t->path('cache.pw'), "secret-of-the-cache\n");

$tiers =~ s{^model\s.*}{model $v32;}m;
$tiers =~ s{^socket_group\s.*}{}m;
$tiers =~ s{^backend\s.*}{backend cpu; speculate off;}m;
$tiers =~ s{^# (?=redis_cache )}{}m;
$tiers =~ s{password_file=\S+(?= )}{"password_file=" . $t->path('cache.pw')}e;

like($tiers, qr/^redis_cache /m, 'the example has a cache in Redis');
like($tiers, qr/^host_memory\s+${size}g;/m, 'and the host memory it describes');

{
    my ($rc, $out) = engine_test($tiers);

    if ($machine > ($size + 1) * 2**30) {
        is($rc, 0, 'both are accepted') or diag($out);

    } else {
        is($rc, 1, 'this machine has less memory');
        like($out, qr/^dsa-engine:\ "host_memory"\ is\ too\ large:
                      .*;\ expected\ at\ most\ \d+m$/mx, 'the reason');
    }

    is(sprintf('%.1f', $size * 2**30 / (64 * 788 * 61) * 64e-6), $million,
       "$million million tokens");
    like($out, qr/host memory: .*, \Q$million\E\d M tokens of KV$/m,
         'which -t prints, too');
    unlike($out, qr/secret-of-the-cache/, 'without the password');

    ($rc, $out) = engine_test($tiers =~ s/^host_memory.*//mr);
    is($rc, 1, 'no cache without host memory');
    like($out, qr/pages pass through host memory/, 'the reason');

    unlink $t->path('cache.pw');
    ($rc, $out) = engine_test($tiers);
    is($rc, 1, 'the password cannot be read');
    like($out, qr/test\.conf:\d+: "password_file" of "redis_cache": /,
         'the reason');
}


# the table of memory: weights, workspace, buffers, reserve and pages of one of
# eight GPUs, of which 149.5 GB are free, and tokens in all pages

my $eight = read_file("$root/conf/engine-v3.2-8gpu.conf");

$eight =~ s{^(?:model|socket_group)\s.*\n}{}mg;

my %column = (data => 0, tensor => 1);

for my $attention (sort keys %column) {
    my ($rc, $out) = engine_test(
        $eight =~ s{^attention\s.*}{attention $attention;}mr
        . "model $v32;");

    last if $out =~ /built without nvcc/;

    my ($sum, @want) = $out =~ /:\ ([\d.]+)\ GB\ =\ weights\ ([\d.]+)
        \ \+\ workspace\ ([\d.]+)\ \+\ exchange\ ([\d.]+)
        \ \+\ graphs\ and\ driver\ ([\d.]+),/x;
    my $pages = int((149.5e9 - $sum * 1e9) / (61 * 64 * 788));
    my $tokens = $pages * 64 * ($attention eq 'data' ? 8 : 1);

    push @want, sprintf('%.1f', 149.5 - $sum),
                sprintf('%.1f million', $tokens * 1e-6);

    my @have = map { (split / \| /)[$column{$attention} + 1] }
               map { s/ \|$//r }
               ($guide =~ /^(\|\ (?:weights|workspace|buffers|graphs|pages
                             |tokens)\ [^|]*\|\ [\d.].*)$/mgx)[0 .. 5];

    is_deeply(\@have, \@want, "the table of memory: $attention")
        or diag($out);
}


# The tables of memory with INT4 experts: the numbers of a host with GPUs of
# this size.  The first column is one of four H200, then eight H100 and H200.

my $pages = read_file("$root/docs/operate/deepseek-v3.2-int4.md");
my $column = 1;

for (['4xh200', '139g'], ['8xh100', '79g'], ['8xh200', '139g']) {
    my ($name, $memory) = @$_;
    my $conf = read_file("$root/conf/engine-v3.2-int4-$name.conf");

    $conf =~ s{^(?:model|socket_group|host_memory)\s.*\n}{}mg;

    my ($rc, $out) = engine_test("$conf model $int4;", '--gpu-memory', $memory);

    last if $out =~ /built without nvcc/;

    my ($sum, @want) = $out =~ /:\ ([\d.]+)\ GB\ =\ weights\ ([\d.]+)
        \ \+\ workspace\ ([\d.]+)\ \+\ exchange\ ([\d.]+)
        \ \+\ graphs\ and\ driver\ ([\d.]+)\ \+\ pages\ ([\d.]+)\ /x;
    my ($n, $all) = $out =~ /(\d+) pages of 64 tokens on each GPU, ([\d.]+) M/;

    is($rc, 0, "$name fits") or diag($out);
    push @want, sprintf('%.2f million', $n * 64e-6), "$all million";

    my @have = map { (split / *\| */)[$column + 1] }
               map { s/ \|$//r }
               ($pages =~ /^(\|\ (?:weights|workspace|buffers|graphs|pages
                             |tokens)\ [^|]*\|\ [\d.].*)$/mgx)[0 .. 6];

    is_deeply(\@have, \@want, "the table of memory: $name") or diag($out);
    $column++;
}


my ($redis) = $text =~ /dsa_redis\s+127\.0\.0\.1:(\d+);/;

like(read_file("$root/conf/redis.conf"), qr/^port $redis$/m,
     'nginx and redis name one port');

my ($max) = $text =~ /client_max_body_size\s+(\S+);/;

like($text, qr/client_body_buffer_size\s+$max;/, 'no body goes to a file');

# the engine starts with a model, and nginx connects to it

my $socket = $t->path('v32.sock');
my $model = $t->model;

$engine =~ s{^model\s.*}{model $model;}m;
$engine =~ s{^listen\s.*}{listen unix:$socket;}m;
$engine =~ s{^socket_group\s.*}{}m if $> != 0;
$engine =~ s{^kv_memory\s.*}{kv_memory 16m;}m;

write_file($t->path('engine.conf'), $engine);

my $proc = $t->spawn('engine', $t->build . '/dsa-engine', '-c',
                     $t->path('engine.conf'));

ok(eval {
    wait_until(sub {
        die $proc->output if !$proc->alive;
        DSA::Test::unix_listening($socket);
    }, 60, 'the engine');
}, 'engine.conf is accepted') or diag($@);

# nginx serves the API with this configuration, below any base URL

my $live = $text;

$live =~ s{^load_module .*\n}{%%GLOBALS%%}m;
$live =~ s{^(?:user|worker_processes|worker_rlimit_nofile|pid|error_log)\s.*\n}
          {}mgx;
$live =~ s{unix:/run/dsa/v32\.sock}{unix:$socket};
$live =~ s{listen  80  default_server}{listen  127.0.0.1:%%PORT%%};
$live =~ s{^ *listen  \[::\]:80 .*\n}{}m;

$t->start_nginx(conf => $live);
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, '/readyz');

my $id = key_entry('anna')->{id};
my @key = bearer(key_text('anna'));
my $ask = { model => 'deepseek-chat', max_tokens => 4,
            ignore_eos => JSON::PP::true,
            messages => [ { role => 'user', content => 'my private text' } ] };

for my $base ('', '/v1', '/beta') {
    is($t->get("$base/models", @key)->{status}, 401, "base '$base': no key");
}

write_keys($t->path('keys'), key_entry('anna'));
wait_until(sub { $t->get('/v1/models', @key)->{status} == 200 }, 20, 'a key');

for my $base ('', '/v1', '/beta') {
    is($t->get("$base/models", @key)->{json}{object}, 'list', "base '$base'");
}

is($t->post('/v1/chat/completions', $ask, @key)->{status}, 200, 'a chat');
is($t->post('/v1/chat/completions', $ask)->{status}, 401, 'a key is needed');
like($t->get('/')->{body}, qr/<html/, 'a page is at /');
is($t->get('/status')->{json}{engines}[0]{up}, JSON::PP::true, '/status');
is($t->get('/v1/models/anna@example.org', @key)->{status}, 404, 'no model');

# gzip: JSON of some size, but no stream

my @gzip = (headers => [ @{ $key[1] }, 'Accept-Encoding' => 'gzip' ]);
my $stream = $t->stream({ %$ask, max_tokens => 64 }, @gzip);

is($stream->header('Content-Encoding'), undef, 'streams are not compressed');
is(DSA::HTTP->gather($stream->events)->{done}, 1, 'and are complete');
is($t->get('/', @gzip)->{head} =~ /^Content-Encoding: gzip\r?$/mi, 1,
   'the page is compressed');

# the access log has the key's id, and nothing of the client or of texts

my $log = sub { read_file($t->path('chat.log')) // '' };

wait_until(sub { (() = $log->() =~ /"GET page"/g) == 2 }, 20, 'the log');

# what has no answer: a caller without a key, a request without a version, and
# lines that are no request

for my $bytes ("GET /v1/models\r\n\r\n", "GARBAGE\r\n\r\n",
               "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
               . "Authorization: Bearer a\r\nContent-Length: x\r\n\r\n",
               "GET /\"\\\x01 HTTP/1.1\r\nHost: x\r\n\r\n")
{
    my $n = () = $log->() =~ /\n/g;
    my $c = $t->connect;

    $c->send($bytes);
    wait_until(sub { (() = $log->() =~ /\n/g) > $n }, 20, 'its line');
    $c->close;
}

my @lines = map { eval { json_decode($_) } // fail("no JSON: $_") }
            split /\n/, $log->();
my @numbers = qw/ status bytes seconds prompt_tokens cached_tokens
                  cached_host_tokens cached_redis_tokens completion_tokens
                  reasoning_tokens cost first_token_seconds /;

for my $name (@numbers) {
    is((grep { !/"$name":(?:(?:0|[1-9]\d*)(?:\.\d+)?|null)[,}]/ }
        split /\n/, $log->()), 0, "each line: $name is a number");
}

is_deeply([ sort grep { my $n = $_; grep { !defined $_->{$n} } @lines }
            @numbers ], [ 'first_token_seconds' ],
          'only a time that is not known is null');

is((grep { $_->{key} eq $id && $_->{status} == 200
           && $_->{request} eq 'POST chat/completions' } @lines)[0]{model},
   'deepseek-chat', 'the log has the id of the key, and the model');

my ($chat) = grep { $_->{completion_tokens} == 4 } @lines;

cmp_ok($chat->{prompt_tokens}, '>', 0, 'the tokens of the prompt');
cmp_ok($chat->{first_token_seconds}, '>=', 0, 'the time of the first token');
is($chat->{tenant}, substr(sha256_hex("\0dsa_tenant\0anna"), 0, 32),
   'the tenant');
is($chat->{reasoning_tokens}, 0, 'the tokens of reasoning');
unlike($log->(), qr/127\.0\.0\.1|private|example\.org|@{[ key_text('anna') ]}/,
       'the log has no address, no text and no key');

# the example of TLS is accepted, in the form of this version of nginx

my $tls = $text;
my @pair = ('-keyout', $t->path('chat.key'), '-out', $t->path('chat.pem'));

is(system("openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost"
          . " @pair 2> /dev/null"), 0, 'a certificate');

$tls =~ s{^ *listen  (?:80|\[::\]:80) .*\n}{}mg;
$tls =~ s{^( +)\# (listen .*?always;\n)}{ "$1$2" =~ s/^( +)\# +/$1/mgr }mse;
$tls =~ s{/etc/ssl/(?:certs|private)/}{$dir/}g;
$tls =~ s{(listen +)443}{${1}127.0.0.1:%%PORT2%%};
$tls =~ s{\[::\]:443}{127.0.0.1:%%PORT3%%};

if ($t->nginx_version < 1.025001) {
    $tls =~ s{  ssl  so_}{  ssl  http2  so_}g;
    $tls =~ s{^ *http2 +on;\n}{}m;
}

($status, $out) = $t->nginx_test(conf => $tls);
like($tls, qr/^ +ssl_session_cache/m, 'nginx.conf has an example of TLS');
is($status, 0, 'it is accepted') or diag($out);
unlike($out, qr/\[(?:warn|error|emerg)\]/, 'without a warning');

# directives with a parameter: what is accepted and what is refused, and the
# directives that they have replaced

my $pool = 'engine unix:/a;';

for my $case (
    [ 'dsa_price currency=EUR;' ],
    [ 'dsa_price m miss=1 hit=1 output=1; dsa_price currency=EUR;' ],
    [ 'dsa_price currency=eur;', qr/invalid currency "eur"; expected three/ ],
    [ 'dsa_price currency=EUR; dsa_price currency=USD;',
      qr/duplicate parameter "currency=USD"/ ],
    [ 'dsa_price m miss=1 hit=1 output=1 currency=EUR;',
      qr/"currency=EUR" is beside .*; expected .* "dsa_price currency=EUR;"/ ],
    [ 'dsa_currency EUR;',
      qr/the "dsa_currency" .* obsolete, use "dsa_price currency=NAME" / ],

    [ 'dsa_keepalive 0;' ],
    [ 'dsa_keepalive 5s json=on;' ],
    [ 'dsa_keepalive 5s json=off;' ],
    [ 'dsa_keepalive 5s json=1;',
      qr/invalid value "1" of "json="; expected off or on in / ],
    [ 'dsa_keepalive 5s on;',
      qr/invalid parameter "on" of "dsa_keepalive"; expected "json="/ ],
    [ 'dsa_keepalive json=on;',
      qr/invalid value "json=on" of "dsa_keepalive"; expected a time/ ],
    [ 'dsa_keepalive 5s json=on json=on;', qr/invalid number of arguments/ ],
    [ 'dsa_keepalive 5s; dsa_keepalive 5s json=on;', qr/is duplicate/ ],
    [ 'dsa_keepalive_json on;',
      qr/"dsa_keepalive_json" .* use "dsa_keepalive TIME json=on\|off" / ],

    [ 'dsa_context_strategy summary;' ],
    [ 'dsa_context_strategy none threshold=1%;' ],
    [ 'dsa_context_strategy discard_all threshold=100%;' ],
    [ 'dsa_context_strategy summary threshold=0%;',
      qr/"0%" is not a threshold; expected .* from "1%" to "100%"/ ],
    [ 'dsa_context_strategy summary 50%;',
      qr/invalid parameter "50%" of "dsa_context_strategy"; expected "thr/ ],
    [ 'dsa_context_strategy threshold=50%;',
      qr/invalid value "threshold=50%" .*; expected none, discard_75, / ],
    [ 'dsa_context_threshold 50%;',
      qr/use "dsa_context_strategy STRATEGY threshold=PERCENT" instead/ ],

    [ 'dsa_retention off;' ],
    [ 'dsa_retention on ttl=1d;' ],
    [ 'dsa_retention on ttl=0;',
      qr/"ttl=0" of "dsa_retention" must be more than 0/ ],
    [ 'dsa_retention on ttl=;', qr/invalid value "" of "ttl="; expected a t/ ],
    [ 'dsa_retention on tt=1h;',
      qr/invalid parameter "tt=1h" of "dsa_retention"; expected "ttl="/ ],
    [ 'dsa_retention ttl=1h;', qr/"ttl=1h" .*; expected off, on or strict/ ],
    [ 'dsa_retention_ttl 1h;', qr/use "dsa_retention MODE ttl=TIME" instead/ ])
{
    my ($line, $error) = @$case;

    ($status, $out) = $t->nginx_test(http => $line, pool => $pool);

    is($status, $error ? 1 : 0, ($error ? 'refused: ' : 'accepted: ') . $line)
        or diag($out);
    like($out, $error, 'its error') if $error;
}

($status, $out) = $t->nginx_test(
    pool => $pool,
    server => 'location /x/ { if ($args) { dsa_retention_ttl 1h soon; } }');
is($status, 1, 'an obsolete directive in a location, with any values');
like($out, qr/the "dsa_retention_ttl" directive is obsolete/, 'its error');

# the same for the engine

for my $case (
    [ 'max_waiting 0;' ],
    [ 'max_waiting 100 per_tenant=100;' ],
    [ 'max_waiting 100 per_tenant=101;',
      qr/"per_tenant" of "max_waiting" is "101"; expected a number from 0 to 1/
    ],
    [ 'max_waiting 100 100;', qr/"100" .*; expected per_tenant=N/ ],
    [ 'max_waiting per_tenant=100;',
      qr/"max_waiting" is "per_tenant=100"; expected a number from 0 to 1/ ],
    [ 'max_waiting 100; max_waiting 100 per_tenant=1;', qr/is repeated/ ],
    [ 'max_waiting_per_tenant 100;',
      qr/:3: .* is obsolete; use "max_waiting N per_tenant=N" instead/ ],
    [ 'slots 16384;', qr/"slots" is obsolete; remove it, because / ],
    [ 'submit_ring 16m;', qr/"submit_ring" is obsolete; remove it, because / ],
    [ 'event_ring 4m;', qr/"event_ring" is obsolete; remove it, because / ])
{
    my ($line, $error) = @$case;

    ($status, $out) = engine_test("model $model; listen unix:$dir/x.sock;\n"
                                  . "kv_memory 16m;\n$line");

    is($status, $error ? 1 : 0, ($error ? 'refused: ' : 'accepted: ') . $line)
        or diag($out);
    like($out, $error, 'its error') if $error;
}

# redis-server starts with conf/redis.conf

my $port = $t->free_port();
my $conf = read_file("$root/conf/redis.conf");

$conf =~ s{^port .*}{port $port}m;
$conf =~ s{^dir .*}{dir $dir}m;
$conf =~ s{^bind .*}{bind 127.0.0.1}m;

write_file($t->path('redis.conf'), $conf);

my $server = $t->spawn('redis', 'redis-server', $t->path('redis.conf'));

$server->{port} = $port;

ok(eval {
    wait_until(sub {
        die $server->output if !$server->alive;
        eval { $t->redis($server)->cmd('PING') };
    }, 20, 'redis-server');
}, 'redis.conf is accepted') or diag($@);

is($t->redis($server)->cmd('CONFIG', 'GET', 'maxmemory-policy')->[1],
   'noeviction', 'redis forgets nothing by itself');

$t->done;
