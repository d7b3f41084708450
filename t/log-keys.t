# Copyright (C) The nginx-dsa authors
#
# No API key is in nginx's error log, also at the level info, if a client sends
# two keys.  nginx itself logs a header line that is invalid at info, before any
# module sees it; that remains, so a log without keys has the level notice or
# above.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::HTTP2;
use DSA::Keys;
use DSA::Test;

my $t = DSA::Test->new('log-keys');
my $uri = '/v1/models';
my @keys = map { key_text($_) } qw/ anna bert /;

$t->start_fake();
write_keys($t->path('keys'), key_entry('anna'));

my @conf = (http => 'dsa_keys file=%%DIR%%/keys zone=keys:1m;',
            server => 'location = /other { return 204; }');

$t->start_nginx(@conf);
wait_until(sub { $t->get($uri, bearer($keys[0]))->{status} == 200 }, 20,
           'the keys');


# The status of a request with these headers.

sub asked {
    my ($path, @headers) = @_;

    return $t->get($path, headers => \@headers)->{status};
}

sub logged_keys { grep { $t->error_log =~ /\Q$_\E/ } @keys }


# each form in which two keys can come, to each location

for ([ 400, 'Authorization' => "Bearer $keys[0]",
            'Authorization' => "Bearer $keys[1]" ],
     [ 400, 'Authorization' => "Bearer $keys[0]",
            'authorization' => "Bearer $keys[0]" ],
     [ 400, 'AUTHORIZATION' => $keys[0], 'Authorization' => '' ],
     [ 400, 'x-api-key' => $keys[0], 'x-api-key' => $keys[1] ],
     [ 200, 'x-api-key' => $keys[1], 'Authorization' => "Bearer $keys[0]" ],
     [ 401, 'Authorization' => "Bearer $keys[1]" ],
     [ 401, 'Authorization' => "Basic $keys[1]" ],
     [ 401, 'x-api-key' => $keys[1] ],
     [ 200, 'Authorization' => "Bearer $keys[0]" ],
     [ 200, 'x-api-key' => $keys[0] ])
{
    my ($status, @headers) = @$_;
    my $names = join ' ', @headers[grep { !($_ & 1) } 0 .. $#headers];

    is(asked($uri, @headers), $status, "$status: $names");
}

is(asked('/other', map { ('Authorization', "Bearer $_") } @keys), 400,
   'a location of nginx itself');
is($t->logged(qr/\[info\].*client sent duplicate header line "Author/i), 4,
   'each duplicate is logged');
is_deeply([ logged_keys() ], [], 'without its value');

my $h = DSA::HTTP2->new(port => $t->port(1));
my $id = $h->request('GET', $uri, undef, [
    map { ('authorization', "Bearer $_") } @keys ]);

$h->until(sub { $h->ended($id) });
is($h->status($id), 400, 'HTTP/2');
is($t->logged(qr/\[info\].*client sent duplicate header line "author/i), 5,
   'is logged');
is_deeply([ logged_keys() ], [], 'without its value');


# the handler goes with the configuration that has the module

my $n = sub { $t->logged(qr/previous value: "Authorization: Bearer x1"/) };
my $plain = <<'EOC';
%%GLOBALS%%
events {
}
http {
    %%HTTP%%
    server {
        listen 127.0.0.1:%%PORT%%;
        location / { return 204; }
    }
}
EOC

SKIP: {
    skip 'the module is linked into nginx', 3 if $ENV{DSA_NGINX_STATIC};

    my %old = map { $_ => 1 } $t->workers;

    $t->write_nginx_conf(conf => $plain);
    write_file($t->path('nginx.conf'),
               read_file($t->path('nginx.conf')) =~ s/^load_module .*//mr);
    $t->reload();
    wait_until(sub { !grep { $old{$_} } $t->workers }, 20, 'the old worker');

    is(asked('/', map { ('Authorization', "Bearer x$_") } 1, 2), 400,
       'without the module');
    is($n->(), 1, 'nginx logs both values');
    is(asked('/', 'Authorization', 'Bearer x1'), 204, 'one is served');

    %old = map { $_ => 1 } $t->workers;
    $t->reload(@conf);
    wait_until(sub { !grep { $old{$_} } $t->workers }, 20, 'the old worker');
}

wait_until(sub { $t->get($uri, bearer($keys[0]))->{status} == 200 }, 20,
           'the keys');
is(asked($uri, map { ('Authorization', "Bearer x$_") } 1, 2), 400,
   'with the module again');
is($n->(), $ENV{DSA_NGINX_STATIC} ? 0 : 1, 'no value is logged again');


# what nginx logs before modules is not logged at the level notice

{
    my %old = map { $_ => 1 } $t->workers;
    local $ENV{DSA_LOG_LEVEL} = 'notice';

    $t->reload(@conf);
    wait_until(sub { !grep { $old{$_} } $t->workers }, 20, 'the old worker');
}

wait_until(sub { $t->get($uri, bearer($keys[0]))->{status} == 200 }, 20,
           'the keys');

for my $line ("x_api_key: $keys[1]", "Authorization : Bearer $keys[1]",
              "Authorization: Bearer $keys[1]\0", "Bearer $keys[1]")
{
    my $c = $t->connect;

    $c->send("GET $uri HTTP/1.1\r\nHost: x\r\n$line\r\n\r\n");
    cmp_ok($c->response->{status}, '>=', 400, 'an invalid header');
}

is_deeply([ logged_keys() ], [], 'no key is in the log');

$t->done;
