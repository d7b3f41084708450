# Copyright (C) The nginx-dsa authors
#
# Keys of a file: which requests are served, the refusals in the format of each
# API, changes while nginx runs, and a file that is malformed.

use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

my $t = DSA::Test->new('keys');
my $file = $t->path('keys');
my $fake = $t->start_fake();
my $now = time;

my @entries = (
    key_entry('anna'),
    key_entry('otto', tenant => 'acme'),
    key_entry('emma', tenant => 'acme', models => ['deepseek-chat',
                                                   'deepseek-reasoner-2']),
    key_entry('off', state => 'disabled'),
    key_entry('gone', state => 'revoked'),
    key_entry('late', expires => $now - 10),
    key_entry('moved', old => { hash => sha256_hex(key_text('before')),
                                 until => $now + 3600 }),
    key_entry('rotated', old => { hash => sha256_hex(key_text('lost')),
                                   until => $now - 5 }),
    key_entry('slow', rpm => 1),
    key_entry('single', concurrency => 1),
);

my $zone = "dsa_keys file=%%DIR%%/keys zone=keys:1m;";
my $http = "$zone
    log_format keys '\$uri [\$dsa_key] [\$dsa_tenant] \$http_authorization|'
                    '\$http_x_api_key|';
    access_log %%DIR%%/keys.log keys;";
my $server = "location /any/ { satisfy any; deny all; dsa_pass v32; }
    location /near/ { satisfy any; allow 127.0.0.1; deny all; dsa_pass v32; }
    location /all/ { satisfy all; deny all; dsa_pass v32; }
    location /named/ { error_page 418 = \@key; return 418; }
    location \@key { dsa_pass v32; }";


# configurations that are refused

sub refused {
    my ($what, $re, %conf) = @_;

    my ($status, $out) = $t->nginx_test(%conf);

    isnt($status, 0, "refused: $what");
    like($out, $re, "and the error has the reason: $what");
}

refused('no file', qr/"\S+\/keys" failed \(2:/, http => $zone);

write_keys($file, '# a comment', '', @entries);
is(($t->nginx_test(http => $zone))[0], 0, 'a file of keys is accepted');

my ($code, $out) = $t->nginx_test(http => "$zone dsa_tenant x;");
isnt($code, 0, 'dsa_keys and dsa_tenant exclude each other');
like($out, qr/"dsa_tenant" and "dsa_keys" exclude each other/, 'and why');
is(($t->nginx_test(http => $zone,
                   server => 'location /x/ { dsa_tenant y; return 204; }'))[0],
   0, 'but not in a location without dsa_pass');

refused('no zone', qr/"file=\S+" is not a parameter .* or it is repeated/,
        http => 'dsa_keys file=%%DIR%%/keys file=%%DIR%%/keys;');
refused('a small zone', qr/zone "keys:64k" .* at least 128k/,
        http => 'dsa_keys file=%%DIR%%/keys zone=keys:64k;');
refused('a zone without a size', qr/zone "keys" .* not valid/,
        http => 'dsa_keys file=%%DIR%%/keys zone=keys;');
refused('twice', qr/"dsa_keys" directive is duplicate/,
        http => "$zone $zone");
refused('another source', qr/"mysql" is not a parameter of "dsa_keys"/,
        http => "dsa_keys mysql zone=keys:1m;");

for (['not JSON', qr/line 2: /, key_entry('anna'), '{"id"'],
     ['an unknown member', qr/line 1: /, key_entry('anna', salt => 1)],
     ['the text of a key', qr/line 1: /,
      key_entry('anna', hash => key_text('anna'))],
     ['the id twice', qr/line 4: the id is also in line 1/,
      key_entry('anna'), '', '#',
      key_entry('otto', id => key_entry('anna')->{id})],
     ['the hash twice', qr/line 2: the hash is also in line 1/,
      key_entry('anna'),
      key_entry('otto', hash => sha256_hex(key_text('anna')))],
     ['an old hash twice', qr/line 2: the hash is also in line 1/,
      key_entry('anna'),
      key_entry('otto', old => { hash => sha256_hex(key_text('anna')),
                                  until => $now })])
{
    my ($what, $re, @lines) = @$_;

    write_keys($file, @lines);
    refused($what, qr/"\S+\/keys" of "dsa_keys", $re/, http => $zone);
}

my $text = key_text('anna');
write_keys($file, key_entry('anna', hash => $text));
unlike(($t->nginx_test(http => $zone))[1], qr/\Q$text/,
       'a key in place of its hash is not logged');

write_keys($file, @entries);
$t->start_nginx(http => $http, server => $server, workers => 2);


# which requests are served

my $n = 0;

sub chat {
    my ($key, %more) = @_;

    my $prefix = delete $more{prefix} || '/v1';
    my $mark = 'chat' . $n++ . 'x';
    my $r = $t->post("$prefix/chat/completions", ask($mark),
                     ($key ? bearer($key) : ()), %more);

    ($r->{submit}) = grep { /\b$mark\b/ } submitted($fake);

    return $r;
}

sub status { chat(@_)->{status} }

my $anna = key_text('anna');

is(status($anna), 200, 'a key');
is(status('', headers => ['x-api-key', $anna]), 200, 'as x-api-key');
is(status('', headers => ['Authorization', $anna]), 200, 'without a scheme');
is(status('', headers => ['Authorization', 'Basic YTpi', 'x-api-key', $anna]),
   200, 'x-api-key beside Basic');
is(status('', headers => ['Authorization', "Bearer $anna", 'x-api-key', 'x']),
   200, 'Bearer comes first');
is(status(key_text('before')), 200, 'the old key until its end');
is(status(key_text('moved')), 200, 'and the new one');
is(status($anna, prefix => '/named'), 200, 'in a named location');

like(chat($anna)->{submit},
     qr/tenant=\Q${\ sha256_hex("\0dsa_tenant\0anna") }\E /,
     'the tenant is that of dsa_tenant');
like(chat(key_text('otto'))->{submit},
     qr/tenant=\Q${\ sha256_hex("\0dsa_tenant\0acme") }\E /,
     'keys can have one tenant');


# refusals, in the format of each API

my %message = (
    none => [401, 'The request has no API key; expected "Authorization: '
                  . 'Bearer KEY" or "x-api-key: KEY".', ''],
    empty => [401, 'The request has no API key; expected "Authorization: '
                   . 'Bearer KEY" or "x-api-key: KEY".', ' '],
    unknown => [401, 'The API key is not valid.', 'sk-dsa-unknown'],
    id => [401, 'The API key is not valid.', $entries[0]{id}],
    hash => [401, 'The API key is not valid.', $entries[0]{hash}],
    disabled => [401, 'The API key is disabled.', key_text('off')],
    revoked => [401, 'The API key was revoked.', key_text('gone')],
    expired => [401, 'The API key has expired.', key_text('late')],
    rotated => [401, 'The API key was replaced by a new one.',
                key_text('lost')],
    model => [403, 'The API key does not permit this model. GET /models '
                   . 'lists those that it permits.', key_text('emma')],
);

for my $name (sort keys %message) {
    my ($status, $text, $key) = @{ $message{$name} };
    my $model = 'deepseek-reasoner';
    my @headers = $key ne '' ? ('Authorization', "Bearer $key") : ();

    my $r = $t->post('/v1/chat/completions', { %{ ask('x') },
                     model => $model }, headers => \@headers);

    is($r->{status}, $status, "$name: chat");
    is_deeply($r->{json}, { error => {
        message => $text, param => $status == 403 ? 'model' : undef,
        type => $status == 401 ? 'authentication_error' : 'permission_error',
        code => $status == 401 ? 'invalid_api_key' : 'model_not_found' } },
        "$name: its error");
    is($r->{headers}{'www-authenticate'}, $status == 401 ? 'Bearer' : undef,
       "$name: WWW-Authenticate");

    $r = $t->post('/v1/responses', { model => $model, input => 'x' },
                  headers => \@headers);

    is($r->{status}, $status, "$name: Responses");
    is($r->{json}{error}{message}, $text, "$name: its error");
    is($r->{json}{error}{code}, $status == 401 ? 'invalid_api_key'
                                               : 'model_not_found',
       "$name: and code");

    $r = $t->post('/v1/messages', { model => $model, max_tokens => 5,
                  messages => [{ role => 'user', content => 'x' }] },
                  headers => [@headers ? ('x-api-key', $key) : ()]);

    is($r->{status}, $status, "$name: Anthropic");
    is($r->{json}{type}, 'error', "$name: its shape");
    is($r->{json}{error}{type}, $status == 401 ? 'authentication_error'
                                               : 'permission_error',
       "$name: its type");
    is($r->{json}{error}{message}, $status == 401 ? $text : "model: $text"
       =~ s/^model: (?=.*model)//r, "$name: and message");
}

is(status('', headers => ['x-api-key', 'a', 'x-api-key', 'b']), 400,
   'repeated headers');

for my $path ('/v1/models', '/v1/models/deepseek-chat', '/v1/conversations',
              '/v1/responses/resp_1', '/v1/nowhere')
{
    is($t->get($path)->{status}, 401, "$path without a key");
    isnt($t->get($path, bearer($anna))->{status}, 401, "and with a key");
}

is($t->get('/readyz')->{status}, 200, 'dsa_health needs no key');


# models

sub models { [ sort map { $_->{id} }
               @{ $t->get('/v1/models', bearer($_[0]))->{json}{data} } ] }

is_deeply(models(key_text('emma')), ['deepseek-chat'],
          'the list has the permitted models');
cmp_ok(@{ models($anna) }, '>', 1, 'and all without a restriction');
is($t->get('/v1/models/deepseek-reasoner', bearer(key_text('emma')))
     ->{json}{error}{code}, 'model_not_found', 'other models do not exist');
is(status(key_text('emma')), 200, 'the permitted model');


# satisfy

is(status($anna, prefix => '/any'), 200, 'satisfy any: a key');
is(status('x', prefix => '/any'), 401, 'satisfy any: another key');
is(chat('x', prefix => '/any')->{json}{error}{code}, 'invalid_api_key',
   'in the shape of the API');
is(status('x', prefix => '/near'), 401, 'satisfy any: an address is no key');
is(status('', prefix => '/near'), 401, 'nor without a key');
is(status($anna, prefix => '/near'), 200, 'a key is needed');
is(status($anna, prefix => '/all'), 403, 'satisfy all: the address counts');


# limits are reserved before the body is read

is($t->get('/v1/models', bearer(key_text('slow')))->{status}, 200,
   'the list of models takes no request');
is(status(key_text('slow')), 200, 'the only request of a minute');

my $http1 = $t->connect;
$http1->send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
             . "Content-Type: application/json\r\nContent-Length: 1000\r\n"
             . 'Authorization: Bearer ' . key_text('slow') . "\r\n\r\n");
my $early = $http1->response;
is($early->{status}, 429, 'the second one, before it sends its body');
like($early->{headers}{'retry-after'}, qr/^[1-9]\d?$/, 'with Retry-After');
is($early->{json}{error}{code}, 'rate_limit_exceeded', 'and the code');
is($early->{headers}{'x-ratelimit-limit-requests'}, 1, 'and the limit');

is($t->post('/v1/messages', { model => 'deepseek-chat', max_tokens => 5,
            messages => [{ role => 'user', content => 'x' }] },
            bearer(key_text('slow')))->{json}{error}{type},
   'rate_limit_error', 'in the shape of Anthropic');

for my $n (1 .. 3) {
    is($t->post('/v1/chat/completions', '{', bearer(key_text('single')))
         ->{status}, 400, "a body that is not JSON, $n");
    is($t->post('/v1/chat/completions', '{}', type => 'text/plain',
                bearer(key_text('single')))->{status}, 415,
       'another content type');
}

is(status(key_text('single')), 200, 'these no longer count as running');

my $open = $t->stream(script("T a\nhold"), bearer(key_text('single')));
$open->next_event;
is(status(key_text('single')), 429, 'a second request at the same time');
$open->close;
wait_until(sub { status(key_text('single')) == 200 }, 10, 'the end of it');


# changes, on both workers

sub settles {
    my ($key, $status, $what) = @_;

    my $same = 0;

    # so many in a row that a worker without the change is very unlikely

    wait_until(sub { $same = status($key) == $status ? $same + 1 : 0;
                     $same >= 10 }, 20, $what);
    pass($what);
}

is(status(key_text('new')), 401, 'a key that is not there yet');
write_keys($file, @entries, key_entry('new'));
settles(key_text('new'), 200, 'a new key');
write_keys($file, @entries, key_entry('new', state => 'disabled'));
settles(key_text('new'), 401, 'a key that is disabled');

sub rotated {
    my ($until) = @_;

    return key_entry('new', hash => sha256_hex(key_text('newer')),
                      old => { hash => sha256_hex(key_text('new')),
                               until => time + $until });
}

write_keys($file, @entries, rotated(3600));
settles(key_text('newer'), 200, 'a key that is rotated');
is(status(key_text('new')), 200, 'the old text during the grace time');
write_keys($file, @entries, rotated(1));
wait_until(sub { status(key_text('new')) == 401 }, 10,
           'the end of the grace time');
is(status(key_text('newer')), 200, 'the new text afterwards');

write_keys($file, @entries, key_entry('new', expires => time + 3600));
settles(key_text('new'), 200, 'a key that expires');
write_keys($file, @entries, key_entry('new', expires => time + 1));
wait_until(sub { status(key_text('new')) == 401 }, 10, 'its end');

write_keys($file, @entries);
settles(key_text('newer'), 401, 'a key that is removed');


# a malformed file changes nothing, also in part

write_keys($file, $entries[1], key_entry('new'), '{');
wait_until(sub { $t->logged(qr/\[error\] .*keys" of "dsa_keys", line 3: /) },
           10, 'the log line');
is(status($anna), 200, 'a key that is missing in a malformed file');
is(status(key_text('new')), 401, 'a key that is only there');

unlink $file;
wait_until(sub { $t->logged(qr/file of "dsa_keys": stat\(\)/) }, 10,
           'the log line');
is(status($anna), 200, 'the file is gone');
is(status('x'), 401, 'other keys are refused as before');
is($t->logged(qr/line 3: /), 1, 'the malformed file was logged once');

write_keys($file, '# nothing');
wait_until(sub { $t->logged(qr/\[error\] .*keys" of "dsa_keys" has no keys/) },
           10, 'the log line');
is(status($anna), 200, 'a file without entries');

write_keys($file, @entries, key_entry('new'));
settles(key_text('new'), 200, 'the next file');


# a reload keeps the zone; a malformed file refuses the reload

$t->reload();
is(status(key_text('new')), 200, 'after a reload');

write_keys($file, @entries, '{');
wait_until(sub { $t->workers == 2 }, 20, 'the old workers to end');
my @workers = sort $t->workers;
kill 'HUP', $t->nginx_pid;
wait_until(sub { $t->logged(qr/\[emerg\] .*keys" of "dsa_keys", line 11: /) },
           10, 'the refused reload');
is_deeply([sort $t->workers], \@workers, 'the workers remain');
is(status(key_text('new')), 200, 'with their keys');
$t->allow_alert(qr/\[emerg\] .*keys" of "dsa_keys", line 11: /);

write_keys("$file.2", key_entry('other'));
write_keys($file, @entries);
$t->reload(http => $http =~ s{/keys zone}{/keys.2 zone}r,
           server => $server);
settles(key_text('other'), 200, 'a reload with another file');
is(status($anna), 401, 'the keys of the first are gone');

write_keys("$file.3", '# none yet');
$t->reload(http => $http =~ s{/keys zone}{/keys.3 zone}r,
           server => $server);
settles(key_text('other'), 401, 'a reload with another file without entries');

$t->reload(http => $http, server => $server);
settles($anna, 200, 'and back');
is(status(key_text('other')), 401, 'without those of the other');


# the process that reads the file is killed

my $old = $t->nginx_pid;

for my $pid ($t->workers) {
    kill 'KILL', $pid;
    wait_until(sub { my @w = $t->workers; @w == 2 && !grep { $_ == $pid } @w },
               10, 'another worker');
}

$t->allow_alert(qr/worker process \d+ exited on signal 9/);
write_keys($file, @entries, key_entry('new'));
settles(key_text('new'), 200, 'a change after the death of both workers');


# another binary

$t->upgrade();
is(status($anna), 200, 'after USR2');
write_keys($file, @entries, key_entry('newest'));
settles(key_text('newest'), 200, 'and a change');


# the text of a key is nowhere

my $log = read_file($t->path('keys.log'));
like($log, qr/^\S+ \[$entries[0]{id}\] \[[0-9a-f]{32}\] -?\|-?\|$/m,
     '$dsa_key is the id, and the headers are empty');

for my $name (qw/ anna otto emma off late lost new newer /) {
    my $text = key_text($name);

    unlike($log, qr/\Q$text/, "the access log does not have the key $name");
    unlike($t->error_log, qr/\Q$text/, 'nor the error log');
}

$t->done;
