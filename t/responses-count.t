# Copyright (C) The nginx-dsa authors
#
# POST .../responses/input_tokens: the tokens of the prompt that the same
# request has as a response.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('responses-count');
my $server = $t->start_redis();
my $fake = $t->start_fake();

$t->start_nginx(redis => 'ttl=1h');

my $uri = '/v1/responses';
my $false = JSON::PP::false;
my @alice = (headers => [ Authorization => 'Bearer alice' ]);

wait_until(sub { $t->get("$uri/resp_" . '0' x 32)->{status} == 404 }, 20,
           'Redis');

# Compares a count with the tokens that a response has, which it returns.

sub counted {
    my ($name, $body) = @_;

    my $r = $t->post("$uri/input_tokens", $body, @alice);
    is($r->{status}, 200, "$name: counted") or diag($r->{body});
    is_deeply([ sort keys %{ $r->{json} } ], [ 'input_tokens', 'object' ],
              "$name: the object");
    is($r->{json}{object}, 'response.input_tokens', "$name: its type");

    my $o = $t->post($uri, $body, @alice);
    is($o->{status}, 200, "$name: a response") or diag($o->{body});
    is($r->{json}{input_tokens}, $o->{json}{usage}{input_tokens},
       "$name: the same tokens");

    return $o->{json};
}

my $tool = { type => 'function', name => 'f',
             parameters => { type => 'object' } };
my $first = counted('text', { model => 'deepseek-chat', input => 'Hello' });

counted('all', { model => 'deepseek-chat', instructions => 'Be brief.',
                 tools => [ $tool, { type => 'web_search' } ],
                 reasoning => { effort => 'high' }, stream => undef,
                 input => [ { role => 'user', content => 'One' },
                            { role => 'assistant', content => 'Two' },
                            { role => 'user', content => 'Three' } ] });
counted('a chain', { model => 'deepseek-chat', input => 'Again',
                     previous_response_id => $first->{id} });

my $redis = $t->redis;
my $keys = join ' ', sort $redis->keys;
my $r = $t->post("$uri/input_tokens", { model => 'deepseek-chat',
                                        input => 'x', stream => $false },
                 @alice);
is($r->{status}, 200, 'not streamed');
$r = $t->post("$uri/input_tokens", { model => 'deepseek-chat',
                                     input => 'x', stream => JSON::PP::true },
              @alice);
is($r->{json}{object}, 'response.input_tokens', 'nor if it should be');
is(join(' ', sort $redis->keys), $keys,
   'nothing is stored');

# A conversation stays as it is, and is free afterwards.

my $c = $t->post('/v1/conversations', {}, @alice)->{json}{id};
$t->post($uri, { model => 'deepseek-chat', input => 'One',
                 conversation => $c }, @alice);
my $before = $t->get("/v1/conversations/$c/items", @alice)->{body};
$r = $t->post("$uri/input_tokens", { model => 'deepseek-chat',
                                     input => 'Two', conversation => $c },
              @alice);
is($r->{status}, 200, 'with a conversation') or diag($r->{body});
is($t->get("/v1/conversations/$c/items", @alice)->{body}, $before,
   'it is not changed');
is($t->post($uri, { model => 'deepseek-chat', input => 'Two',
                    conversation => $c }, @alice)->{json}{usage}{input_tokens},
   $r->{json}{input_tokens}, 'the next response has so many tokens');

for my $case (
    [ { model => 'deepseek-chat' }, 400, 'input' ],
    [ { input => 'x' }, 400, 'model' ],
    [ { model => 'deepseek-chat', input => 'x', previous_response_id =>
        'resp_' . '0' x 32 }, 404, 'previous_response_id' ])
{
    my ($body, $status, $param) = @$case;
    my $r = $t->post("$uri/input_tokens", $body, @alice);
    is($r->{status}, $status, "refused: $param") or diag($r->{body});
    is($r->{json}{error}{param}, $param, 'its name');
}

is($t->get("$uri/input_tokens", @alice)->{status}, 405, 'only POST');

$t->done;
