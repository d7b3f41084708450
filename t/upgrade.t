# Copyright (C) The nginx-dsa authors
#
# Another module is installed while 50 streams run, as dpkg does it: the new
# file replaces the old one, and USR2 and QUIT replace nginx.  No stream loses
# an event, and the new module serves new requests.

use strict;
use warnings;

use File::Copy qw/ copy /;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $streams = 50;
my $chat = '/v1/chat/completions';
my $t = DSA::Test->new('upgrade');
my $so = $t->path('dsa.so');
my $old_text = q(From the request's arrival to its first token.);
my $new_text = q(FROM THE REQUEST'S ARRIVAL TO ITS FIRST TOKEN.);

plan skip_all => 'nginx has the module in it' if $ENV{DSA_NGINX_STATIC};

copy($t->build . '/ngx_http_dsa_module.so', $so) or die "$so: $!\n";
$t->{module} = $so;

my $fake = $t->start_fake();

$t->start_redis();
$t->start_nginx(workers => 2);


# A module of another version: a help text of /metrics differs.  dpkg renames a
# new file to the name of the old one.

sub install {
    my $code = read_file($so);

    is($code =~ s/\Q$old_text\E/$new_text/, 1, 'the module has the text');
    rename write_file("$so.dpkg-new", $code), $so or die "rename: $!\n";
}


sub served_by {
    my ($help) = $t->get('/metrics')->{body}
                 =~ /^# HELP dsa_time_to_first_token_seconds (.*)$/m;

    return $help // '';
}


# which of the workers have the file open that was deleted

sub with_old { grep { (read_file("/proc/$_/maps") // '')
                      =~ /dsa\.so \(deleted\)/ } @_ }


is(served_by(), $old_text, 'the old module serves');

# half of the streams have events, the others wait for their first one

my @s = map { $t->stream(script($_ % 2 ? "t begun\nwait\nr 40 x\n"
                                       : "wait\nt begun\nr 40 x\n")) }
        1 .. $streams;

$_->next_event() for map { ($s[$_], $s[$_]) } grep { $_ % 2 == 0 } 0 .. $#s;
wait_until(sub { ctl($fake, 'live') eq $streams }, 20, 'the streams');

# a worker without a stream ends at the reload

my %serves = map { $t->worker_of($_) => 1 } @s;
my @old_workers = keys %serves;

install();
$t->reload();

# dlopen() returns the module that has this name already

is(served_by(), $old_text, 'a reload goes on with the old module');

my $old = $t->upgrade();

is(served_by(), $new_text, 'the new module serves after USR2');
is($t->post($chat, ask('new'))->{status}, 200, 'chats as well');
is(scalar with_old($t->workers), 0, 'new workers have the new file');
is(scalar with_old(@old_workers), scalar @old_workers,
   'old ones still have the old file');
is(ctl($fake, 'live'), $streams, 'all streams are still open');

ctl($fake, "go $streams");

my @ends = map {
    my $m = DSA::HTTP->gather($_->events);
    join ':', length $m->{content}, $m->{done}, $m->{finish_reason},
              $_->truncated ? 'cut' : 'whole';
} @s;
my @odd = map { $ends[$_] } grep { $_ % 2 != 0 } 0 .. $#s;
my @even = map { $ends[$_] } grep { $_ % 2 == 0 } 0 .. $#s;

# "begun" was read from the even ones before

is_deeply(\@even, [ ('40:1:stop:whole') x ($streams / 2) ],
          'streams that had begun are complete');
is_deeply(\@odd, [ ('45:1:stop:whole') x ($streams / 2) ],
          'streams that had not are complete');

wait_until(sub { !kill 0, $old }, 20, 'the old master to leave');
wait_until(sub { $t->workers == 2 }, 20, 'the old workers to leave');

is($t->post($chat, ask('later'))->{status}, 200, 'served when it has left');
is(served_by(), $new_text, 'by the new module');


# the ledger has each of them once, whichever module wrote it

my $redis = $t->redis;
my $entries = sub {
    my $n = 0;

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $sums = $redis->hgetall($key);
        $n += $sums->{$_} for grep { m{^[^|]+\|requests$} } keys %$sums;
    }

    return $n;
};

is(wait_until(sub { my $n = $entries->(); $n >= $streams + 2 && $n }, 20,
              'the ledger'), $streams + 2, 'the ledger has each request once');

$t->done;
