#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A response whose storage Redis does not confirm in time is reported as not
# stored, and is not there later either.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('withdrawn');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();

$t->start_nginx(redis => 'timeout=2s', workers => 2);

my $uri = '/v1/responses';
my $true = JSON::PP::true;
my $false = JSON::PP::false;

wait_for_redis();


sub wait_for_redis {
    wait_until(sub { $t->get("$uri/resp_" . '0' x 32)->{status} == 404 }, 60,
               'Redis') for 1 .. 8;
    $t->wait_redis(2);
}

# The status of a GET, or of a POST with a body, when Redis is there.

sub status {
    my ($uri, $body) = @_;

    return wait_until(sub {
        my $r = $body ? $t->post($uri, $body) : $t->get($uri);

        $r->{status} != 503 && $r->{status};
    }, 60, 'Redis');
}

# The answer to a request during whose end Redis hangs.

sub hung {
    my ($stream, %more) = @_;

    my $s = $t->connect;

    $s->send_request(POST => $uri, body => json_encode(
        { model => 'deepseek-chat', stream => $stream ? $true : $false,
          input => "!fake\nt a\nwait\nt b", %more }));
    wait_until(sub { ctl($fake, 'live') eq '1' }, 60, 'the engine');
    $server->signal('STOP');
    ctl($fake, 'go 1');

    my $o;

    if ($stream) {
        $s->read_head;
        $o = (map { $_->{json} || () } $s->events)[-1]{response};

    } else {
        $o = $s->response->{json};
    }

    return $o;
}

my @gone;

for my $stream (0, 1) {
    for my $n (1 .. 2) {
        my $name = ($stream ? 'streamed' : 'in one piece') . " $n";
        my $o = hung($stream);

        is($o->{store}, $false, "$name: reported as not stored");
        like($o->{store_error}, qr/Redis/, "$name: because of Redis");

        $server->signal('CONT');
        wait_for_redis();

        ok(eval { wait_until(sub { $t->get("$uri/$o->{id}")->{status} == 404 },
                             30, 'the withdrawal'); 1 },
           "$name: is not stored");
        push @gone, $o->{id};
    }
}

for my $id (@gone) {
    is(status("$uri/$id"), 404, 'cannot be read');
    is(status("$uri/$id/input_items"), 404, 'nor its input');
    is(status($uri, { model => 'deepseek-chat', input => 'x',
                      previous_response_id => $id }), 404, 'nor continued');
}

for my $key ($redis->keys('dsa1:*:r:resp_*')) {
    my $id = $key =~ s/.*://r;

    next if !grep { $_ eq $id } @gone;

    is_deeply($redis->hgetall($key), { withdrawn => 1 }, 'nothing is left');
    cmp_ok($redis->cmd('TTL', $key), '>', 0, 'and that expires');
}


# Redis executes the command that stores a response after its withdrawal: the
# command is delayed, and arrives when all is over

{
    my $words = save_command();
    my $id = $words->[3] =~ s/.*://r;

    is(status("$uri/$id"), 404, 'withdrawn before it is stored');
    is($redis->cmd(@$words), 0, 'the command arrives');
    is(status("$uri/$id"), 404, 'it is not stored');
}


# The command that stores a response, as nginx has sent it, of one that was
# withdrawn.

sub save_command {
    my $monitor = $t->redis;

    $monitor->cmd('MONITOR');

    my $o = hung(0);

    $server->signal('CONT');
    wait_for_redis();
    wait_until(sub { $t->get("$uri/$o->{id}")->{status} == 404 }, 30,
               'the withdrawal');
    $redis->cmd('PING', 'end');

    for (;;) {
        my $line = $monitor->line();

        last if $line =~ /"PING" "end"/;
        next if $line !~ /\ "4"\ "[^"]*:r:\Q$o->{id}\E"\ "[^"]*:stored"
                          \ "[^"]*:p:\Q$o->{id}\E"
                          \ "[^"]*:e:\Q$o->{id}\E"
                          \ "[^"]*:r:"\ "1000"/x;

        my @words = $line =~ /"((?:[^"\\]|\\.)*)"/g;

        s/\\(n|t|r|x(..)|.)/ $1 eq 'n' ? "\n" : $1 eq 't' ? "\t"
                             : $1 eq 'r' ? "\r" : defined $2 ? chr hex $2
                             : $1 /ge for @words;

        return \@words;
    }

    die "nginx did not send the command\n";
}


# at once, when Redis refuses: nothing is withdrawn, because nothing was stored

$redis->cmd(qw/ CONFIG SET maxmemory 1 /);
my $o = $t->post($uri, { model => 'deepseek-chat', input => 'x' })->{json};
is($o->{store}, $false, 'Redis is full: not stored');
$redis->cmd(qw/ CONFIG SET maxmemory 0 /);
wait_for_redis();
wait_until(sub { $t->post($uri, { model => 'deepseek-chat', input => 'x' })
                 ->{json}{store} }, 30, 'responses to be stored');
pass('then responses are stored');

$t->done;
