# Copyright (C) The nginx-dsa authors
#
# Compressed bodies (Content-Encoding): they are read as what they unpack to,
# within the same limit as other bodies and not on the event loop.  What is not
# supported is a 415, what is broken a 400.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Compress::Zlib qw/ compress memGzip /;
use Test::More;

use constant LIMIT => 256 * 1024;

my $t = DSA::Test->new('packed');
my $chat = '/v1/chat/completions';
my $small = '/small/chat/completions';

$t->start_redis();
my $fake = $t->start_fake('context=1000000');

$t->start_nginx(preload => 1,
    server => 'location /small/ { dsa_pass v32; client_max_body_size '
              . LIMIT . '; }
               location /file/ { dsa_pass v32; client_max_body_size 0;
                   client_body_buffer_size 16k; }
               location /mirror/ { dsa_pass v32; mirror /copy; }
               location = /copy { internal;
                   proxy_pass http://127.0.0.1:%%PORT%%/v1/chat/completions; }
               ');

wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis');


sub sent {
    my ($uri, $coding, $bytes, %opt) = @_;
    my @headers = (@{ $opt{headers} || [] },
                   map { ('Content-Encoding', $_) } ref $coding ? @$coding
                                                                : $coding);

    return $t->request('POST', $uri, body => $bytes, %opt,
                       headers => \@headers);
}

sub content { $_[0]{json}{choices}[0]{message}{content} }

sub refused {
    my ($r, $status, $message, $name) = @_;

    is($r->{status}, $status, $name) or diag($r->{body});
    like($r->{json}{error}{message}, $message, "$name: the error");
    is($r->{json}{error}{type}, 'invalid_request_error', "$name: its type");
}


# what is supported

my $text = json_encode(ask('hello'));

for (['gzip', memGzip($text)], ['x-gzip', memGzip($text)],
     ['GZip', memGzip($text)], ['deflate', compress($text)],
     ['identity', $text], ['', $text],
     ['gzip', memGzip(substr $text, 0, 20) . memGzip('')
              . memGzip(substr $text, 20)])
{
    my ($coding, $bytes) = @$_;
    my $name = "coding \"$coding\", " . length($bytes) . ' bytes';

    is(content(sent($chat, $coding, $bytes)), 'echo: hello', $name);
    is(content(sent($chat, $coding, undef, chunked => [ split //, $bytes ])),
       'echo: hello', "$name, a chunk a byte");
}

# what gzip(1) writes has a name and a time

my $file = $t->path('body.json');

write_file($file, $text);
is(system('gzip', '-9', $file), 0, 'gzip(1)');
is(content(sent($chat, 'gzip', read_file("$file.gz"))), 'echo: hello',
   'its file');

for my $uri (qw{ /v1/messages /v1/responses /v1/messages/count_tokens
                 /v1/completions })
{
    my %body = (model => 'deepseek-chat', max_tokens => 9);

    $body{messages} = [ { role => 'user', content => 'hi' } ]
        if $uri =~ /messages/;
    $body{input} = 'hi' if $uri =~ /responses/;
    $body{prompt} = 'hi' if $uri =~ /completions/;
    delete $body{max_tokens} if $uri =~ /responses|count/;

    my $r = sent($uri, 'gzip', memGzip(json_encode(\%body)));

    is($r->{status}, 200, $uri) or diag($r->{body});
}

my $r = sent('/v1/conversations', 'gzip', memGzip(json_encode({
    items => [ { type => 'message', role => 'user', content => 'kept' } ] })));
is($r->{status}, 200, 'a conversation') or diag($r->{body});
is($t->get("/v1/conversations/$r->{json}{id}/items")->{json}{data}[0]{content}
     [0]{text}, 'kept', 'has its item');
is(sent('/v1/conversations', 'gzip', memGzip(''))->{status}, 200,
   'a conversation of an empty text');
refused(sent('/v1/conversations', 'gzip', substr memGzip('{}'), 0, 9), 400,
        qr/ends too early, after 9 bytes/, 'a conversation that is cut');
refused(sent('/v1/conversations', 'br', '{}'), 415,
        qr/"Content-Encoding: gzip"/, 'a conversation of another coding');

is(sent('/mirror/chat/completions', 'gzip', memGzip(json_encode(
    ask('mirrored'))))->{status}, 200, 'with a mirror');
wait_until(sub { 2 == grep { /mirrored/ } submitted($fake) }, 10, 'the copy');
pass('the copy is unpacked as well');


# what is not

for my $coding ('zstd', 'br', 'compress', 'gzip, gzip', 'gzip,', 'gzi', '*',
                "gzip\xff", ['gzip', 'identity'], ['identity', 'identity'])
{
    my $n = submitted($fake);
    my $name = 'Content-Encoding: ' . (ref $coding ? "@$coding" : $coding);

    for my $uri ($chat, '/v1/messages') {
        $r = sent($uri, $coding, memGzip($text));
        refused($r, 415, qr/"Content-Encoding: gzip" or "deflate"/,
                "$uri: $name");
        is($r->{headers}{'accept-encoding'}, 'gzip, deflate',
           "$uri: $name: the header");
    }

    is(scalar submitted($fake), $n, "$name: nothing is computed");
}

my $packed = memGzip($text);
my %broken = (
    'a text' => [ $text, qr/invalid at byte \d+: incorrect header check/ ],
    'a zlib stream' => [ compress($text), qr/incorrect header check/ ],
    'nothing' => [ '', qr/ends too early, after 0 bytes/ ],
    'cut' => [ substr($packed, 0, -1), qr/ends too early/ ],
    'cut in a header' => [ "$packed\x1f", qr/ends too early/ ],
    'another checksum' => [ substr($packed, 0, -8) . "\0" x 8,
                            qr/incorrect data check/ ],
    'another length' => [ substr($packed, 0, -4) . "\0" x 4,
                          qr/incorrect length check/ ],
    'garbage behind it' => [ "${packed}x" x 2, qr/is not another member/ ],
    'padding behind it' => [ $packed . "\0" x 100, qr/is not another member/ ]);

for my $name (sort keys %broken) {
    my ($bytes, $message) = @{ $broken{$name} };

    refused(sent($chat, 'gzip', $bytes), 400, $message, $name);
}

refused(sent($chat, 'gzip', memGzip('{"model":')), 400, qr/JSON/,
        'a text that is not JSON');
is(sent($chat, 'gzip', $packed, type => 'text/plain')->{status}, 415,
   'another type');

my @bad = grep { my $r = sent($chat, 'gzip', substr $packed, 0, $_);
                 $r->{status} != 400 } 0 .. length($packed) - 1;

is("@bad", '', 'cut at every byte');


# limits

my $frame = length json_encode(ask(''));
my $most = json_encode(ask('x' x (LIMIT - $frame)));

is(content(sent($small, 'gzip', memGzip($most))),
   'echo: ' . 'x' x (LIMIT - $frame), 'as long as the limit');
is($t->post($small, $most)->{status}, 200, 'as without compression');

my %long = ('a byte more' => memGzip(json_encode(ask('x' x (LIMIT + 1
                                                            - $frame)))),
            'ten members' => memGzip(' ' x 30_000) x 10,
            'a bomb' => memGzip(' ' x 200_000_000),
            'a bomb of JSON' => memGzip('[' x 100 . '0,' x 100_000_000));

for my $name (sort keys %long) {
    cmp_ok(length $long{$name}, '<', LIMIT, "$name: short enough to be read");
    $r = sent($small, 'gzip', $long{$name});
    refused($r, 413, qr/more than the limit of @{[ LIMIT ]} bytes/, $name);
    is($r->{json}{error}{code}, 'request_too_large', "$name: the code");
}

refused(sent('/file/chat/completions', 'gzip', $long{'a bomb of JSON'}
             =~ s/(.{9000}).*/$1/sr), 413, qr/limit of 16384 bytes/,
        'a bomb where client_max_body_size is off');
is(content(sent('/file/chat/completions', 'gzip', $packed)), 'echo: hello',
   'and what fits there');

my ($values) = sent($small, 'gzip', memGzip('[' . '1,' x 120_000 . '1]'));

is($values->{status}, $t->post($small, '[' . '1,' x 120_000 . '1]')->{status},
   'many values, as without compression');


# the event loop

$t->turn;

for my $body (memGzip($most), $long{'a bomb'}) {
    my $before = $t->metrics;
    sent($small, 'gzip', $body);
    my $after = $t->metrics;
    my $runs = 'dsa_work_total{stage="parse",where="%s"}';

    is($after->{sprintf $runs, 'loop'}, $before->{sprintf $runs, 'loop'},
       length($body) . ' bytes: not unpacked on the loop');
    is($after->{sprintf $runs, 'thread'}, $before->{sprintf $runs, 'thread'}
       + 1, length($body) . ' bytes: in a thread');
}

cmp_ok($t->turn, '<=', 128 * 1024, 'no long turn of the loop');


# the same body in another form is the same request

my @key = (headers => [ 'Idempotency-Key', 'k1', 'Authorization',
                        'Bearer sk-1' ]);
my $n = submitted($fake);
my $one = sent($chat, 'gzip', $packed, @key);
my $two = $t->request('POST', $chat, body => $text, @key);

is($one->{status}, 200, 'with an Idempotency-Key');
is($two->{json}{id}, $one->{json}{id}, 'repeated without compression');
is(submitted($fake) - $n, 1, 'computed once');

is($t->logged(qr/\[(?:error|crit|alert|emerg)\]/), 0,
   'clients\' mistakes are no errors of the log');

$t->done;
