#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# A package replaces the module's file and reloads nginx, which goes on with the
# module that it has open.  An upgrade of the program (USR2) runs the new one,
# and the streams of the old one are finished.  The new module is a copy with
# another text of an error.

use strict;
use warnings;

use File::Copy;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

plan skip_all => 'nginx has the module built in' if $ENV{DSA_NGINX_STATIC};

my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('replace');
my $module = "$t->{build}/ngx_http_dsa_module.so";
my $fake = $t->start_fake();

# only what nginx looks up is visible

my @symbols = sort map { (split)[2] } `nm -D --defined-only $module`;

is_deeply(\@symbols, [qw/ ngx_module_names ngx_module_order ngx_modules /],
          'no other symbol is visible');

$t->{module} = $t->path('module.so');
copy($module, $t->{module}) or die "copy: $!\n";

$t->start_nginx(workers => 1);

my $message = "The model does not exist.";
my $other = $message =~ tr/a-z/A-Z/r;

my $s = $t->stream(script("t begun\nwait\nr 50 x\n"));
$s->next_event() for 1 .. 2;

my $new = read_file($module);

ok($new =~ s/\Q$message\E/$other/g, 'the text is in the file');
write_file($t->path('module.new'), $new);
rename $t->path('module.new'), $t->{module} or die "rename: $!\n";

# The first words of the error for a model that does not exist, from a worker
# that has reached the engine.

sub error {
    my $r;

    wait_until(sub { $r = $t->get('/v1/models/none'); $r->{status} != 503 }, 20,
               'the worker to reach the engine');

    return substr $r->{json}{error}{message}, 0, length $message;
}


$t->reload();
is(error(), $message, 'a reload goes on with the old module');

my $old = $t->upgrade();

is(wait_until(sub { my $e = error(); $e eq $other && $e }, 10,
              'the new module'), $other, 'an upgrade runs the new module');
is($t->post($chat, ask('x'))->{status}, 200, 'which serves');

ctl($fake, 'go');

my $m = DSA::HTTP->gather($s->events);

is($m->{content}, 'x' x 50, 'a stream of the old module is complete');
is($m->{done}, 1, 'with its end');

wait_until(sub { !kill 0, $old }, 20, 'the old nginx to end');

$t->done;
