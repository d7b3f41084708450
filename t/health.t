# Copyright (C) The nginx-dsa authors
#
# dsa_health: /readyz is 503 while no engine serves, whatever Redis does; /livez
# is 503 only while an engine hangs that its supervisor did not replace.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Process;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('health');
my $kept = DSA::Test->new('health-redis');
my $s = DSA::Test->new('health-stop');


# Waits until /readyz and /livez have these statuses.

sub reaches {
    my ($t, $ready, $live, $name) = @_;

    ok(eval { wait_until(sub { $t->get('/readyz')->{status} == $ready
                               && $t->get('/livez')->{status} == $live },
                         slow(20), $name) }, $name)
        or diag($@, $t->get('/readyz')->{body}, $t->get('/livez')->{body});
}


# what the bodies have

my $fake = $t->start_fake();

$t->start_nginx();

my $r = $t->get('/readyz');
my $engine = $r->{json}{engines}[0];

is($r->{status}, 200, '/readyz');
is($r->{json}{status}, 'ok', 'its status');
is($r->{json}{pool}, 'v32', 'the pool');
is($engine->{engine}, 'unix:' . $fake->sock, 'the engine');
is($engine->{model}, 'fake-model', 'its model');
ok(!exists $r->{json}{ledger}, 'no ledger without Redis');
is($t->request('DELETE', $_)->{status}, 405, "no DELETE of $_")
    for '/readyz', '/livez';
is($t->request('HEAD', '/livez')->{body}, '', 'HEAD');


# an engine that drains, one that is away, and one that is loading

ctl($fake, 'drain 1');
reaches($t, 503, 200, 'an engine that drains is alive and not ready');
is($t->get('/readyz')->{json}{status}, 'unavailable', 'its status');
ctl($fake, 'drain 0');
reaches($t, 200, 200, 'and is ready again');


# the step clock of a supervisor that ends a step after 600 s, and after 60 s

ctl($fake, 'step 59000 600000');
reaches($t, 200, 200, 'a long step');
$engine = $t->get('/livez')->{json}{engines}[0];
cmp_ok($engine->{step_age_ms}, '>=', 59000, 'its age');
ok(!$engine->{hangs}, 'it does not hang');
ctl($fake, 'step 66000 60000');
reaches($t, 200, 503, 'a step that should have ended');
$r = $t->get('/livez');
is($r->{json}{status}, 'unavailable', 'the status');
ok($r->{json}{engines}[0]{hangs}, 'it hangs');
ctl($fake, 'step 66000 0');
reaches($t, 200, 200, 'without step_timeout no step is too long');
ctl($fake, 'step 0 60000');
reaches($t, 200, 200, 'no step runs');
ctl($fake, 'alive 2');
reaches($t, 503, 503, 'a heartbeat that is not one');

$fake->kill9();
reaches($t, 503, 200, 'a restart would not mend an engine that is gone');
$t->done;


# Redis: one that is full or away must not take away every host

my $redis = $kept->start_redis();

$kept->start_fake();
$kept->start_nginx();
reaches($kept, 200, 200, 'with Redis');
ok(wait_until(sub { $kept->get('/readyz')->{json}{status} eq 'ok' }, slow(20),
              'the connection'), 'it is used');
$kept->allow_alert(qr/Redis/);
$redis->stop;

for ('/readyz', '/livez') {
    my $path = $_;

    wait_until(sub { $kept->get($path)->{json}{status} eq 'degraded' },
               slow(20), 'the end of Redis');
    is($kept->get($path)->{status}, 200, "$path without Redis");
}

ok(!$kept->get('/readyz')->{json}{ledger}{writable},
   'the ledger is the reason');
$kept->done;


# an engine whose processes are all stopped: its supervisor cannot replace it

my $real = $s->start_engine(conf => { backend => 'null',
                                      step_timeout => '5s' });

$s->start_nginx();
reaches($s, 200, 200, 'an engine');
is($s->post($chat, ask('x', max_tokens => 4))->{status}, 200, 'a chat');

my @pids = ($real->pid, DSA::Process::children($real->pid));

is(scalar @pids, 2, 'a supervisor and a replica');
kill 'STOP', @pids;
reaches($s, 503, 503, 'which are stopped');
kill 'CONT', @pids;
reaches($s, 200, 200, 'and go on');

$real->signal('TERM');
$real->wait_end(slow(30));
reaches($s, 503, 200, 'the end of the engine');
$s->done;
