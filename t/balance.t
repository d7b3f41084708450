#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# GET /user/balance: what is left of the budget of a key.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('balance');
my $file = $t->path('keys');
my $fake = $t->start_fake();

write_keys($file,
    key_entry('rich', budget => { total => { hard => '10' } }),
    key_entry('poor', budget => { total => { hard => '0.001' } }),
    key_entry('daily', budget => { day => { hard => '0.001' },
                                    total => { hard => '5.5' } }),
    key_entry('soft', budget => { total => { soft => '1' } }),
    key_entry('free'),
    key_entry('off', state => 'disabled'));

my $prices = 'dsa_price deepseek-chat miss=1 hit=0.5 output=2;
              dsa_price currency=CNY;';
my $user = 'location /user/ { dsa_pass v32; }';

$t->start_nginx(http => "dsa_keys file=%%DIR%%/keys zone=keys:1m; $prices",
                server => $user);


sub balance {
    my ($key, $path) = @_;

    return $t->get($path || '/user/balance', bearer(key_text($key)));
}


sub chat {
    my ($key, $prompt, $completion) = @_;

    my $r = $t->post('/v1/chat/completions',
                     script("t a\nprompt $prompt\ncompletion $completion\n"
                            . 'done stop'), bearer(key_text($key)));
    is($r->{status}, 200, "$key: a request");
}


sub infos {
    my ($amount) = @_;

    return [ { currency => 'CNY', total_balance => $amount,
               granted_balance => '0.00', topped_up_balance => $amount } ];
}


my $r = balance('rich');

is($r->{status}, 200, 'a balance');
is($r->{body}, '{"is_available":true,"balance_infos":[{"currency":"CNY",'
               . '"total_balance":"10.00","granted_balance":"0.00",'
               . '"topped_up_balance":"10.00"}]}', 'in the shape of DeepSeek');
is(balance('rich', '/v1/user/balance')->{body}, $r->{body},
   'below another prefix');

chat('rich', 1000, 7);
is_deeply(balance('rich')->{json}{balance_infos}, infos('9.998986'),
          'less what a request has cost');
is_deeply(balance('poor')->{json}{balance_infos}, infos('0.001'),
          'of its own key');

chat('poor', 2000, 1);
$r = balance('poor');
is($r->{status}, 200, 'a spent budget is reported');
is_deeply($r->{json}{balance_infos}, infos('0.00'), 'not below 0');
ok(!$r->{json}{is_available}, 'and there is none');
is($t->post('/v1/chat/completions', ask('x'), bearer(key_text('poor')))
     ->{status}, 402, 'as a chat finds');

chat('daily', 999, 1);
$r = balance('daily');
is_deeply($r->{json}{balance_infos}, infos('5.498999'), 'of a total budget');
ok(!$r->{json}{is_available}, 'another one is spent');

for my $key (qw/ soft free /) {
    is(balance($key)->{body}, '{"is_available":true,"balance_infos":[]}',
       "$key: no hard budget, no amount");
}

is(balance('off')->{status}, 401, 'a key that is disabled');
is($t->get('/user/balance')->{status}, 401, 'no key');
is($t->post('/user/balance', {}, bearer(key_text('rich')))->{status}, 405,
   'POST');

$t->reload(http => $prices, server => $user);
wait_until(sub { $t->workers == 1 }, 20, 'the old worker to leave');
is($t->get('/user/balance')->{body},
   '{"is_available":true,"balance_infos":[]}', 'without dsa_keys');

$t->done;
