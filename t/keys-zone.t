# Copyright (C) The nginx-dsa authors
#
# The zone of keys: a zone that is too small, memory of keys that are removed,
# a single process, and the text of keys in logs and in shared memory.

use strict;
use warnings;

use Digest::SHA qw/ sha256 sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::HTTP2;
use DSA::Keys;
use DSA::Process;
use DSA::Test;
use DSA::Wait;

my $t = DSA::Test->new('keys-zone');
my $file = $t->path('keys');
my $fake = $t->start_fake();


# the zone has room for some hundred keys

sub conf {
    my ($more, $main) = @_;

    return "%%GLOBALS%%
        $main
        events { worker_connections 512; }
        http { %%HTTP%%
            dsa_pool v32 { engine unix:%%SOCK%%; }
            dsa_keys file=%%DIR%%/keys zone=keys:512k;
            $more
            server { listen 127.0.0.1:%%PORT%%;
                listen 127.0.0.1:%%PORT1%% http2;
                location /v1/ { dsa_pass v32; }
                location = /readyz { dsa_health v32; } } }";
}

sub status { $t->post('/v1/chat/completions', ask('x'),
                      bearer(key_text($_[0])))->{status} }

sub settles {
    my ($name, $status, $what) = @_;

    wait_until(sub { status($name) == $status }, 10, $what);
    pass($what);
}

my @known = map { key_entry($_) } qw/ anna otto /;
my @many = map { key_entry("many$_") } 1 .. 600;

write_keys($file, @known);
$t->start_nginx(conf => conf('', ''));
wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, '/readyz');

is(status('anna'), 200, 'a key');
is(status('many1'), 401, 'a key that is not in the file');


# more keys than fit

write_keys($file, @known, @many);
settles('many600', 503, 'a key that does not fit');
is(status('many1'), 200, 'a new key that fits');
is(status($_), 200, "a key that was there before: $_") for qw/ anna otto /;
is(status('unknown'), 503, 'any other key may be one that does not fit');
is($t->logged(qr/zone "keys" of "dsa_keys" is full: key "key_\w+" and /), 1,
   'it is logged once');
is($t->get('/v1/models')->{status}, 401, 'a request without a key');

# changes of those that are there

write_keys($file, key_entry('anna', state => 'disabled'), $known[1], @many);
settles('anna', 401, 'a change in a full zone');
is(status('otto'), 200, 'the other one');

# a list of models needs memory that the zone does not have: the key must not be
# served with the old list

write_keys($file, $known[0],
           key_entry('otto', models => [map { "model$_" . 'x' x 120 }
                                         1 .. 16]), @many);
settles('anna', 200, 'another change');
is(status('otto'), 503, 'a list of models that does not fit');


# the file is read again for keys that did not fit; if it is malformed by then,
# that is logged once

write_keys($file, key_entry('anna', expires => time + 5), $known[1],
           @many[20 .. 599], map { key_entry("more$_") } 1 .. 20);
settles('many1', 503, 'keys are replaced in a full zone');
write_keys($file, @known, @many, '{');
wait_until(sub { $t->logged(qr/keys" of "dsa_keys", line 603: /) }, 10,
           'the log line');
settles('anna', 401, 'a key expires after that');
is($t->logged(qr/line 603: /), 1, 'the malformed file is not read again');
write_keys($file, $known[0], key_entry('otto', state => 'disabled'), @many);
settles('otto', 401, 'the next file');


# removed keys leave their memory to others

write_keys($file, @known);
settles('many1', 401, 'many keys are removed');
is(status('unknown'), 401, 'all keys fit again');

my $n = $t->logged(qr/is full/);    # once a minute while it is full

for my $round (1 .. 5) {
    write_keys($file, @known, map { key_entry("round$round.$_") } 1 .. 150);
    settles("round$round.150", 200, "other keys, $round");
}

is($t->logged(qr/is full/), $n, 'they fit in the memory of earlier ones');


# a request keeps its key until its end, also after the key is removed

my $stream = $t->stream(script("T a\nwait\nT b\ndone"),
                        bearer(key_text('round5.1')));
$stream->next_event;

for my $round (6 .. 9) {
    write_keys($file, @known, map { key_entry("round$round.$_") } 1 .. 150);
    settles("round$round.150", 200, "other keys, $round");
}

ctl($fake, 'go');
my $text = join '', map { $_->{data} // '' } $stream->events;
like($text, qr/"b"/, 'the answer to the request of a removed key');
is($t->logged(qr/is full/), $n, 'and there was room for others');


# the holder of a reference is killed

$stream = $t->stream(script("T a\nhold"), bearer(key_text('round9.1')));
$stream->next_event;

my ($pid) = $t->workers;
kill 'KILL', $pid;
$t->allow_alert(qr/worker process $pid exited on signal 9/);
wait_until(sub { my @w = $t->workers; @w == 1 && $w[0] != $pid }, 10,
           'another worker');

for my $round (10 .. 13) {
    write_keys($file, @known, map { key_entry("round$round.$_") } 1 .. 150);
    settles("round$round.150", 200, "other keys, $round");
}

is($t->logged(qr/is full/), $n, 'its keys are freed');


# the text of a key: at the level debug, only nginx's own lines of the headers
# have it

my $log = $t->path('debug.log');
my $format = "log_format keys '\$uri [\$dsa_key] \$http_authorization|"
             . "\$http_x_api_key|\$remote_user';
             access_log %%DIR%%/keys.log keys;
             error_log %%DIR%%/debug.log debug;";

$t->reload(conf => conf($format, ''));
wait_until(sub { $t->workers == 1 }, 20, 'the end of the old worker');
is(status('anna'), 200, 'a key');

is($t->post('/v1/chat/completions', ask('x'), headers =>
            ['Authorization', 'Basic YW5uYTph', 'x-api-key',
             key_text('anna')])->{status}, 200, 'x-api-key beside Basic');
is(status('unknown'), 401, 'an unknown key');

my $h = DSA::HTTP2->new(port => $t->port(1));
my @ids = map { $h->request('POST', '/v1/chat/completions',
                            json_encode(ask('x')), $_) }
    ['authorization', 'Bearer ' . key_text('otto')],
    ['x-api-key', key_text('otto')];
$h->until(sub { !grep { !$h->ended($_) } @ids });
is($h->status($_), 200, 'HTTP/2') for @ids;

# a refusal of nginx itself

my $http = $t->connect;
$http->send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
            . 'Authorization: Bearer ' . key_text('late') . "\r\n"
            . "Content-Length: 99999999999\r\n\r\n");
is($http->response->{status}, 413, 'a body that is too long');
$http->close;

wait_until(sub { (() = (read_file($t->path('keys.log')) // '') =~ /^\/v1/mg)
                 >= 6 }, 10, 'the access log');

my $access = read_file($t->path('keys.log'));
my @lines = grep { !/http2? header: / } split /\n/, read_file($log);

like($access, qr/\[$known[0]{id}\] Basic \S+\|-?\|anna$/m,
     'Basic remains for $remote_user');
cmp_ok(scalar @lines, '>', 100, 'the debug log has lines');

for my $name (qw/ anna otto unknown late /) {
    my $text = key_text($name);

    is(index($access, $text), -1, "the access log does not have $name");
    is(scalar(grep { index($_, $text) >= 0 } @lines), 0,
       'nor do lines of the debug log besides those of nginx');
}


# and shared memory has its hash only

sub shared_memory {
    my ($pid) = @_;

    no warnings 'portable';     # addresses have more than 32 bits

    open my $mem, '<:raw', "/proc/$pid/mem" or return;

    return join '', map {
        my ($from, $to) = map { hex } /^(\w+)-(\w+) /;
        my $bytes = '';
        sysseek $mem, $from, 0;
        sysread $mem, $bytes, $to - $from;
        $bytes
    } grep { m{ rw-s .*/dev/zero} } split /\n/, read_file("/proc/$pid/maps");
}

my $memory = shared_memory(($t->workers)[0]);

SKIP: {
    skip 'the memory of nginx cannot be read', 5
        if !defined $memory && !$ENV{DSA_NO_SKIP};

    cmp_ok(index($memory, sha256(key_text('anna'))), '>', 0,
           'the zone has the hash');
    is(index($memory, key_text($_)), -1, "and not the text of $_")
        for qw/ anna otto unknown late /;
}


# a single process

$t->stop_nginx();
$t->write_nginx_conf(conf => conf('', 'daemon off; master_process off;'));

my $single = $t->spawn('single', @{ $t->nginx_argv() });

wait_until(sub { my $r = eval { $t->get('/readyz') };
                 $r && $r->{status} == 200 }, 20, 'a single process');
is(status('anna'), 200, 'a key');
is(status('new'), 401, 'another one');
write_keys($file, @known, key_entry('new'));
settles('new', 200, 'a change');
ok($single->stop('QUIT', 20), 'it stops');

$t->done;
