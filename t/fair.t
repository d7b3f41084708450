#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The weight and the priority of a key reach the engine's scheduler: tenants
# that have more to do than the engine can share it by weight, and a request of
# a higher class does not wait for those of a lower one.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Keys;
use DSA::Test;

use constant { SLOTS => 8, TOKENS => 40 };

my $chat = '/v1/chat/completions';


# nginx with these keys and an engine that makes so many tokens of each answer
# per second

sub start {
    my ($name, $rate, @records) = @_;

    my $t = DSA::Test->new("fair-$name");

    write_keys($t->path('keys'), @records);
    $t->start_engine(conf => {
        name => 'null', backend => "null rate=$rate", max_running => SLOTS,
        log_level => 'debug', kv_memory => '200m', host_memory => '4m' });
    $t->start_nginx(http => 'dsa_keys file=%%DIR%%/keys zone=keys:8m;',
                    server => 'location = /status { dsa_status; }');
    wait_until(sub {
        my $key = key_text($records[0]{name});
        return $t->get('/v1/models', bearer($key))->{status} == 200;
    }, 10, 'the keys to be read');

    return $t;
}


sub ask {
    my ($t, $name, $tokens) = @_;

    my $http = $t->connect(timeout => 60);

    $http->send_request('POST', $chat, bearer(key_text($name)),
        body => json_encode({ model => 'null', max_tokens => $tokens,
                              stream => JSON::PP::true, messages => [
                              { role => 'user', content => 'Hello' }] }));

    return $http;
}


# The rows of dsa_status by the names of their keys.

sub rows {
    my ($t) = @_;

    return { map { $_->{name} => $_ }
             @{ $t->get('/status')->{json}{tenants} } };
}


# Two keys with weights 3 and 1 have 80 requests each; half of them have ended
# seconds before one of the keys has nothing to do.

my $t = start('weights', 25, key_entry('heavy', weight => 300),
              key_entry('light', weight => 100));
my @all = map { ask($t, 'heavy', TOKENS), ask($t, 'light', TOKENS) } 1 .. 80;
my $rows;

wait_until(sub {
    $rows = rows($t);
    $rows->{heavy} && $rows->{light}
        && $rows->{heavy}{requests} + $rows->{light}{requests} >= 72;
}, 60, 'half of the requests');

cmp_ok($rows->{heavy}{waiting}, '>', 0, 'the heavy key has more to do');
cmp_ok($rows->{light}{waiting}, '>', 0, 'and the light one');

# the answers that are running at that moment are the error of the ratio

my ($heavy, $light) = map { $rows->{$_}{completion} } qw/ heavy light /;
my $sum = $heavy + $light;

cmp_ok(abs($heavy - 3 / 4 * $sum), '<=', SLOTS * TOKENS,
       'the heavy key has three quarters of the tokens')
    or diag("$heavy and $light");
note("heavy $heavy, light $light tokens");
like($t->{engines}[0]->output, qr/admitted .*, weight 300, priority 1/,
     'the engine logs weight and priority');
undef @all;


# A flood of low requests, each of a tenant of its own, so that none has more
# than its share: they have all batch indices, and do not end.

my $p = start('priority', 20, key_entry('high', priority => 'high'),
              map { key_entry("low$_", priority => 'low') } 1 .. 3 * SLOTS);
my @low = map { ask($p, "low$_", 3000) } 1 .. 3 * SLOTS - 1;

wait_until(sub {
    my $rows = rows($p);
    return SLOTS == grep { $_->{running} } values %$rows;
}, 60, 'the flood');

# another one of the same class waits

push @low, ask($p, 'low' . 3 * SLOTS, 3000);
wait_until(sub { (rows($p)->{ 'low' . 3 * SLOTS } || {})->{waiting} }, 10,
           'the last low request to be submitted');

my $first = ask($p, 'high', 5);

$first->read_head;

my $body = $first->read_body;

like($body, qr/"finish_reason":"length"/, 'a high request is answered');

$rows = rows($p);
is($rows->{high}{requests}, 1, 'as the only one');
is($rows->{high}{completion}, 5, 'with its tokens');
is((grep { $_->{requests} } map { $rows->{"low$_"} } 1 .. 3 * SLOTS), 0,
   'before any low one has ended');
is($rows->{ 'low' . 3 * SLOTS }{waiting}, 1, 'and the last low one waits');
like($p->{engines}[0]->output, qr/preempted with /,
     'because a low one was preempted');
like($p->{engines}[0]->output, qr/admitted .*, weight 100, priority 2/,
     'by the class of its key');
undef @low;

$p->done;
$t->done;
