# Copyright (C) The nginx-dsa authors
#
# traceparent and X-Request-ID of a client are in the logs of nginx and of the
# engine, in fields of their own, and harm neither.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Fake qw/ ask /;
use DSA::Test;

my $t = DSA::Test->new('trace');
my $format = 'log_format trace escape=json
                  \'{"id":"$dsa_request_id","parent":"$dsa_traceparent",\'
                  \'"client":"$dsa_client_request_id"}\';
              log_format plain "<$dsa_traceparent> <$dsa_client_request_id>";
              access_log %%DIR%%/trace.log trace;
              access_log %%DIR%%/plain.log plain;';
my $engine = $t->start_engine(conf => {
    backend => 'null', name => 'null', journal => $t->path('journal'),
    log_level => 'debug' });

$t->start_nginx(http => $format);


sub lines { return split /\n/, read_file($t->path($_[0])) }


# Sends a chat with these headers, and returns its line in nginx's log, its
# line in the journal, and its line in the plain log.

sub chat {
    my (@headers) = @_;

    my $r = $t->post('/v1/chat/completions', ask('x', max_tokens => 2),
                     headers => \@headers);
    my $id = $r->{json}{id};
    my (@lines, @plain, $n);

    is($r->{status}, 200, 'a chat') or diag $r->{body};
    wait_until(sub {
        @lines = lines('trace.log');
        @plain = lines('plain.log');
        ($n) = grep { $lines[$_] =~ /"\Q$id\E"/ } 0 .. $#lines;
        defined $n && @plain > $n;
    }, slow(20), 'its lines');

    my $line = json_decode($lines[$n]);
    my ($entry) = grep { $_->{request} eq $id
                         && $_->{event} eq 'accepted' }
                  map { json_decode($_) }
                  lines('journal');

    is($line->{id}, $id, 'the id is the one of the answer');
    is($entry->{traceparent}, $line->{parent}, 'nginx and engine: traceparent');
    is($entry->{client}, $line->{client}, "nginx and engine: the client's id");

    return ($line, $plain[$n], $id);
}


my $trace = '4bf92f3577b34da6a3ce929d0e0e4736';
my $span = '00f067aa0ba902b7';
my $good = "00-$trace-$span-01";

my ($line, $plain, $id) = chat(traceparent => $good,
                               'X-Request-ID' => 'order-17/b');
is($line->{parent}, $good, 'traceparent');
is($line->{client}, 'order-17/b', 'X-Request-ID');
is($plain, "<$good> <order-17/b>", 'in a log that is no JSON');
wait_until(sub { $engine->output =~ /\Q$id\E: finished/ }, slow(20), 'the log');
my ($logged) = $engine->output =~ /\Q$id\E: finished, (.*)/;
like($logged, qr{traceparent "\Q$good\E", client's id "order-17/b"$},
     "the engine's log");

($line) = chat();
is("$line->{parent}$line->{client}", '', 'a client without them');


# W3C Trace Context, section 3.2: what is not valid is ignored

my %parents = (
    "cc-$trace-$span-01-what-the-future-will-be-like" => "cc-$trace-$span-01",
    "cc-$trace-$span-01.what-the-future-will-be-like" => '',
    "$good-more" => '',
    "ff-$trace-$span-01" => '',
    '00-' . '0' x 32 . "-$span-01" => '',
    "00-$trace-" . '0' x 16 . '-01' => '',
    '00-' . uc($trace) . "-$span-01" => '',
    "00-$trace-$span-0" => '',
    "00-$trace-$span" . 'x01' => '',
    "00-${trace}0-$span-01" => '',
    "\xff" x 55 => '',
    '"' x 55 => '');

for my $value (sort keys %parents) {
    ($line) = chat(traceparent => $value);
    is($line->{parent}, $parents{$value}, 'traceparent '
       . $value =~ s/[^ -~]/?/gr);
}

($line) = chat(traceparent => $good, traceparent => $good);
is($line->{parent}, '', 'two of them');


# an id is cut, and no byte of it ends a field or a line

my %ids = ('a b' => 'a?b', '"},{"x":"' => '?},{?x?:?', 'a\\"b' => 'a??b',
           "a\tb" => 'a?b', "a\xc3\xa9\xffb" => 'a???b', "a\x01\x7f" => 'a??',
           '> <x' => '>?<x', '%s%n$dsa_key' => '%s%n$dsa_key',
           'x' x 4000 => 'x' x 128);

for my $value (sort keys %ids) {
    ($line, $plain) = chat('X-Request-ID' => $value);
    is($line->{client}, $ids{$value}, 'X-Request-ID '
       . substr($value, 0, 20) =~ s/[^ -~]/?/gr);
    is($plain, "<-> <$ids{$value}>", 'in a log that is no JSON');
}


# requests that are no chats

my $n = lines('trace.log');

$t->get('/v1/models', headers => [traceparent => $good, 'X-Request-ID' => 7]);
wait_until(sub { lines('trace.log') > $n }, slow(20), 'its line');
$line = json_decode((lines('trace.log'))[-1]);
is("$line->{parent} $line->{client}", "$good 7", 'a list of models');

$t->done;
