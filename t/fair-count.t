#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Counts of one tenant, however long and many they are, leave room for those of
# others: for their count_tokens, and for the counts of context strategies.

use strict;
use warnings;

use IO::Handle;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;

use constant { FLOOD => 12, BYTES => 5 << 20, ROUNDS => 3 };

my $t = DSA::Test->new('fair-count');
my $count = '/anthropic/v1/messages/count_tokens';

$t->start_engine(conf => { backend => 'null rate=0', context_length => 4000,
                           kv_memory => '64m' });
$t->start_nginx(workers => 2, http => 'dsa_tenant $http_x_tenant;',
                server => 'location /anthropic/ { dsa_pass v32; }');

# The flood delays an answer for seconds, and on a busy machine for many.

sub tenant { return timeout => 120, headers => [ 'X-Tenant' => $_[0] x 64 ] }
sub user { return { role => 'user', content => $_[0] } }


# Letters that the tokenizer cannot merge: a count of them takes 0.1 s.

srand 1;
my $letters = join '', map { chr(97 + rand 26) } 1 .. BYTES;
my $flood = { model => 'deepseek-chat', messages => [ user($letters) ] };

pipe my $in, my $out or die "pipe: $!\n";
$in->blocking(0);

my @children = map {
    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        while (1) {
            my $r = $t->post($count, $flood, tenant('a'));
            syswrite $out, '.' if $r->{status} == 200;
        }
    }

    $pid;
} 1 .. FLOOD;

# The number of counts of the flood so far.

my $answered = 0;
sub answered { return $answered += sysread($in, my $dots, 4096) // 0 }

wait_until(sub { answered() >= 2 }, 60, 'the flood');


# Another tenant: counts that are long for the tokenizer threads, and histories
# that exceed the context.

my $text = 'word ' x 600_000;
my @history = (user('Look.'), map {
    ({ role => 'assistant', content => '', tool_calls => [
         { id => "call_$_", type => 'function',
           function => { name => 'look', arguments => '{}' } } ] },
     { role => 'tool', tool_call_id => "call_$_",
       content => 'word ' x 20_000 }) } 1 .. 30);
my $tool = { type => 'function', function => {
                 name => 'look', parameters => { type => 'object' } } };
my $before = answered();

for (1 .. ROUNDS) {
    my $r = $t->post($count, { model => 'deepseek-chat',
                               messages => [ user($text) ] }, tenant('b'));
    is($r->{status}, 200, "count $_") or diag($r->{body});

    $r = $t->post('/v1/chat/completions',
                  { model => 'deepseek-chat', max_tokens => 1,
                    context_management => { strategy => 'discard_all' },
                    tools => [ $tool ], messages => \@history },
                  tenant('b'));
    is($r->{status}, 200, "context strategy $_") or diag($r->{body});
}

wait_until(sub { answered() > $before }, 60, 'the flood to go on');
ok(1, 'the flood is served as well');

kill TERM => @children;
waitpid $_, 0 for @children;

is($t->logged(qr/no engine could count the prompt/), 0,
   'each history is counted');


# A count has the tenant and the weight of its key, as an answer has: that of
# count_tokens, and that of a context strategy.

my $k = DSA::Test->new('fair-count-key');

my $fake = $k->start_fake('context=200');
my @key = bearer(key_text('heavy'));

write_keys($k->path('keys'), key_entry('heavy', weight => 300));
$k->start_nginx(http => 'dsa_keys file=%%DIR%%/keys zone=keys:8m;',
                server => 'location /anthropic/ { dsa_pass v32; }');
wait_until(sub { $k->get('/v1/models', @key)->{status} == 200 }, 10,
           'the keys and the engine');

$k->post($count, ask('Hello'), @key);
$k->post('/v1/chat/completions',
         { %{ ask('x') }, context_management => { strategy => 'discard_all' },
           tools => [ $tool ], messages => \@history }, @key);
$k->post('/v1/chat/completions', ask('Hello'), @key);

my @tenants = $fake->output =~ /^(\w+) .* (tenant=\w+ weight=\d+)/mg;
my @of = map { $tenants[2 * $_] } 0 .. $#tenants / 2;
my %of = map { $tenants[2 * $_ + 1] => 1 } 0 .. $#tenants / 2;

cmp_ok((grep { $_ eq 'count' } @of), '>=', 2, 'the counts of both')
    or diag("@of");
is($of[-1], 'submit', 'and an answer');
is(join(' ', keys %of) =~ s/\w{64}//r, 'tenant= weight=300',
   'have one tenant and the weight of the key');
unlike((keys %of)[0], qr/=e3b0c44298fc/, 'not the tenant of no key');

$k->done;
$t->done;
