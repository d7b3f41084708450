#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A worker that starts while an engine is away has not seen the name of its
# model: a request for it is refused for now, and not as a mistake.

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('unseen');

$t->start_fake('model=one');
my $two = $t->start_fake('model=two');

$two->stop;
$t->start_nginx();


sub status { $t->post($chat, ask('x', model => $_[0]))->{status} }


is(status('one'), 200, 'an engine that is there');

my $r = $t->post($chat, ask('x', model => 'two'));
is($r->{status}, 503, 'one that the worker has not seen');
like($r->{json}{error}{message}, qr/^No engine of pool "v32" is available/,
     'is not there now');

$two->restart;
wait_until(sub { status('two') == 200 }, 20, 'the second engine');
pass('it serves when it is back');

is(status('three'), 400, 'a name that no engine has');

$two->stop;
wait_until(sub { status('two') == 503 }, 20, 'its end');
is(status('three'), 400, 'nor one that the worker has seen');
is(status('one'), 200, 'the other one serves');

$t->done;
