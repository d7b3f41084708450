#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# The commands of dsa while a Redis Cluster moves the cluster slot of their
# keys: they follow ASK, wait while the keys are on two nodes, and give up with
# the reason.

use strict;
use warnings;

use lib 't/lib';
use DSA::Cluster;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('cluster-tools');
my $cluster = DSA::Cluster->new($t, masters => 2, replicas => 0);
my $dsa = $t->build . '/dsa';
my ($from, $slot) = $cluster->owner('dsa1:{keys}:id');
my $to = 1 - $from;


sub start {
    my ($name, @args) = @_;

    return $t->daemon($name, sub {
        open STDOUT, '>', $t->path("$name.stdout");
        open STDERR, '>&', \*STDOUT;
        exec $dsa, @args, '--redis', $cluster->address($from)
            or POSIX::_exit(127);
    });
}

sub ended {
    my ($process, $name) = @_;

    $process->wait_end(60);

    return read_file($t->path("$name.stdout"));
}

# Commands to the cluster that were refused so often, of both nodes.

sub refused {
    my ($code) = @_;
    my $n = 0;

    for (0, 1) {
        my $stats = $cluster->cmd($_, 'INFO', 'errorstats');
        $n += $1 if $stats =~ /^errorstat_$code:count=(\d+)/m;
    }

    return $n;
}

# all keys are at the other node already: ASK

like(ended(start('before', qw/ key create --name first /), 'before'),
     qr/sk-dsa-/, 'a key');

$cluster->begin($slot, $from, $to);
cmp_ok($cluster->keys($slot, $from, $to), '>', 2, 'the keys move');

like(ended(start('ask', qw/ key create --name by-ask /), 'ask'), qr/sk-dsa-/,
     'a key is created by ASK');
cmp_ok(refused('ASK'), '>', 0, 'which the node has sent');
is($cluster->cmd($from, 'CLUSTER', 'COUNTKEYSINSLOT', $slot), 0,
   'nothing is at the old node');
cmp_ok($cluster->cmd($to, 'CLUSTER', 'COUNTKEYSINSLOT', $slot), '>', 2,
       'the keys are at the new one');
$cluster->end($slot, $from, $to);

# Some keys are there: the command waits until they are together, for at most
# five seconds.  If the machine needs longer, the keys move back, and this is
# tried again.

my $gives_up = qr/TRYAGAIN|being moved|is moving/;
my ($moved, $waits, $out);

wait_until(sub {
    $cluster->begin($slot, $to, $from);
    $moved = $cluster->keys($slot, $to, $from, qr/:id$/);

    my $refused = refused('TRYAGAIN');
    my $list = start('list', qw/ key create --name second /);

    wait_until(sub { refused('TRYAGAIN') > $refused + 1 || !$list->alive }, 30,
               'TRYAGAIN');
    $waits = $list->alive;
    $cluster->end($slot, $to, $from);
    $out = ended($list, 'list');

    return 1 if $waits && $out !~ $gives_up;

    $cluster->move($slot, $from, $to);
    return 0;
}, 60, 'a command that waits');

is($moved, 1, 'one of the keys moves');
ok($waits, 'the command waits');
like($out, qr/sk-dsa-/, 'and is executed');

my $all = ended(start('all', qw/ key list /), 'all');

like($all, qr/$_/, "$_ is a key") for 'first', 'by-ask', 'second';

# for ever

$cluster->begin($slot, $from, $to);
$cluster->keys($slot, $from, $to, qr/:id$/);
like(ended(start('never', qw/ key create --name third /), 'never'),
     $gives_up, 'it gives up, with the reason');
$cluster->end($slot, $from, $to);
unlike(ended(start('left', qw/ key list /), 'left'), qr/third/,
       'and has done nothing');

$t->done;
