# Copyright (C) The nginx-dsa authors
#
# Items of a Responses request that refer to stored items by their ids: of
# responses and of conversations, of this tenant only, and what cannot be found.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('references');
my $server = $t->start_redis();
my $redis = $t->redis;
my $fake = $t->start_fake();
my $false = JSON::PP::false;

$t->start_nginx(redis => 'ttl=1h', workers => 2,
                http => 'client_max_body_size 8m;');

my $uri = '/v1/responses';
my @alice = (headers => [ Authorization => 'Bearer alice' ]);
my @bob = (headers => [ Authorization => 'Bearer bob' ]);
my $tool = { type => 'function', name => 'weather',
             parameters => { type => 'object' } };
my $call = '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
           . '<｜DSML｜parameter name="place" string="true">Köln'
           . '</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
           . '</｜DSML｜function_calls>';

wait_for_redis();


sub wait_for_redis {
    wait_until(sub { $t->get("$uri/resp_" . '0' x 32)->{status} == 404 }, 20,
               'Redis') for 1 .. 8;
}

sub respond {
    my ($input, %more) = @_;
    my $as = delete $more{as} || \@alice;

    return $t->post($uri, { model => 'deepseek-chat', tools => [$tool],
                            reasoning => { effort => 'high' },
                            input => $input, %more }, @$as);
}

sub ref_to { { type => 'item_reference', id => ref $_[0] ? $_[0]{id} : $_[0] } }
sub user { { role => 'user', content => $_[0] } }

sub prompt {
    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: stop=.*)?$/;
    utf8::decode($prompt);

    return $prompt;
}


# A tool round: reasoning, a message and a call, then its result.

my $script = "!fake\nt Let me look.\nt </think>\nt I look.\n" . tokens($call);
my $r = respond([ user($script) ]);
is($r->{status}, 200, 'a round') or diag($r->{body});
my $first = $r->{json};
my @output = @{ $first->{output} };
is_deeply([ map { $_->{type} } @output ],
          [ qw/ reasoning message function_call / ], 'its items');

my $result = { type => 'function_call_output', output => '22',
               call_id => $output[2]{call_id} };
my @input = @{ $t->get("$uri/$first->{id}/input_items", @alice)->{json}{data} };

is(respond([ @input, @output, $result ])->{status}, 200, 'items sent whole');
my $want = prompt();
like($want, qr/Let me look\..*I look\..*Köln.*22/, 'all of them');

$r = respond([ map({ ref_to($_) } @input, @output), $result ]);
is($r->{status}, 200, 'references in place of them') or diag($r->{body});
is(prompt(), $want, 'give the same prompt');

my $listed = $t->get("$uri/$r->{json}{id}/input_items?order=asc", @alice)
             ->{json}{data};
is_deeply([ map { $_->{type} } @$listed ],
          [ 'message', ( map { $_->{type} } @output ),
            'function_call_output' ], 'the items themselves are stored');
is_deeply([ map { $_->{id} } @$listed[0 .. 3] ],
          [ map { $_->{id} } @input, @output ], 'with their ids');

is(respond([ @input, map({ { id => $_->{id} } } @output), $result ])->{status},
   200, 'without a type');
is(prompt(), $want, 'the same');

is(respond([ ref_to($input[0]), ref_to($output[1]), ref_to($output[1]),
             user('and') ])->{status}, 200, 'one item twice');

# the copy of an item, under its old id, is found by the response it is from

$t->request('DELETE', "$uri/$r->{json}{id}", @alice);
is(respond([ ref_to($output[1]), user('x') ])->{status}, 200,
   'another response that had it was deleted');

# streamed

my $s = respond([ ref_to($input[0]), ref_to($output[1]), user('and') ],
                stream => JSON::PP::true);
like($s->{body}, qr/response\.completed/, 'in a stream');


# Items of a conversation, of either form.

my $c = $t->post('/v1/conversations', { items => [ user('from items') ] },
                 @alice)->{json}{id};
is($t->post('/v1/chat/completions',
            { model => 'deepseek-chat', conversation => $c,
              messages => [ user('from a chat') ] }, @alice)->{status}, 200,
   'a chat');
is(respond('from a response', conversation => $c,
           reasoning => { effort => 'none' })->{status}, 200,
   'and a response continue it');
my @items = @{ $t->get("/v1/conversations/$c/items?order=asc", @alice)
               ->{json}{data} };
is(scalar @items, 5, 'five items');

is(respond([ map({ ref_to($_) } @items), user('end') ])->{status}, 200,
   'references to them');
like(prompt(), qr/from\ items.*from\ a\ chat.*echo:\ from\ a\ chat
                  .*from\ a\ response.*echo:\ from\ a\ response.*end/x,
     'are all in the prompt');


# What is not found.  The answer is the same if another tenant has the item.

my $unsaved = respond([ user('x') ], store => $false)->{json}{output}[0]{id};

for my $case (
    [ 'unknown', ref_to('msg_' . '0' x 48) ],
    [ 'not stored', ref_to($unsaved) ],
    [ 'a response', ref_to($first->{id}) ],
    [ 'cut off', ref_to(substr $output[0]{id}, 0, -1) ],
    [ 'longer', ref_to("$output[0]{id}0") ],
    [ 'of another item', ref_to($output[0]{id} =~ s/^rs_/msg_/r) ],
    map({ [ "'$_'", ref_to($_) ] } '', 'x', '_', 'msg_', '_' . 'a' x 32,
        'msg_' . 'A' x 48, '*', "msg_" . '0' x 32 . "\0", '../' x 20,
        '{x}:r:' . '0' x 40, 'msg_' . 'é' x 48, 'x' x 100_000))
{
    my ($name, $ref) = @$case;
    my $n = submitted($fake);
    my $r = respond([ user('x'), $ref ]);

    is($r->{status}, 404, substr $name, 0, 40) or diag($r->{body});
    is($r->{json}{error}{param}, 'input', 'names the field');
    like($r->{json}{error}{message}, qr/^input\[1\]\.id: there is no item/,
         'and the item');
    is(scalar submitted($fake), $n, 'nothing is computed');
}

my $unknown = respond([ ref_to('msg_' . '0' x 48) ])->{body};

for my $item ($output[1], $items[0], $items[1]) {
    my $body = respond([ ref_to($item) ], as => \@bob)->{body};

    is($body =~ s/`[^`]*`//r, $unknown =~ s/`[^`]*`//r,
       'of another tenant: as if there were none');
}

for my $bad ({ type => 'item_reference' },
             { type => 'item_reference', id => 5 }, { id => [] },
             { type => 'item_reference', id => undef })
{
    is(respond([ user('x'), $bad ])->{status}, 400, json_encode($bad));
}

is(respond([ map { ref_to('msg_' . sprintf '%048x', $_) } 1 .. 1025 ])
   ->{status}, 400, 'too many references');
is(respond([ map { ref_to(sprintf 'msg_%032x%016x', $_, $_) } 1 .. 257 ])
   ->{status}, 400, 'to too many responses');
is(respond([ map { ref_to(sprintf 'msg_%032x%016x', $_, $_) } 1 .. 256 ])
   ->{status}, 404, 'to as many as may be');

is($t->request('DELETE', "$uri/$first->{id}", @alice)->{status}, 200,
   'the response is deleted');
is(respond([ ref_to($output[1]), user('x') ])->{status}, 404,
   'and its items with it');


# What is in Redis is not what it should be, or too large.

my $id = respond([ user('x') ])->{json}{output}[0]{id};
my ($key) = $redis->keys('*:r:resp_' . substr($id =~ s/.*_//r, 0, 32));

for my $case (
    [ 'no array', 404, HSET => $key, 'output', '{}' ],
    [ 'an array of others', 404, HSET => $key, 'output', '[1,[],{"id":5}]' ],
    [ 'no JSON', 503, HSET => $key, 'output', '[{' ],
    [ 'empty', 404, HSET => $key, 'output', '' ],
    [ 'no such field', 404, HDEL => $key, 'output' ],
    [ 'a large one', 400, HSET => $key, 'output', 'x' x 5_000_000 ],
    [ 'another type', 404, 'RPUSH', $key, 'x' ])
{
    my ($name, $status, @cmd) = @$case;

    $redis->cmd('DEL', $key) if $cmd[0] eq 'RPUSH';
    $redis->cmd(@cmd);
    is(respond([ ref_to($id), user('x') ])->{status}, $status, $name);
}

($key) = $redis->keys("*:c:$c");
$redis->cmd('HSET', $key, 0, 'garbage');
is(respond([ ref_to($items[0]), user('x') ])->{status}, 503,
   'a damaged conversation');
$redis->cmd('HDEL', $key, 0);
is(respond([ ref_to($items[0]), user('x') ])->{status}, 404,
   'an entry that is gone');


# Redis hangs or is away; none is configured.

$server->signal('STOP');
is(respond([ ref_to($items[1]), user('x') ])->{status}, 503, 'Redis hangs');
$server->signal('CONT');
wait_for_redis();
$server->stop;
wait_until(sub { $t->get("$uri/resp_" . '0' x 32)->{status} == 503 }, 20,
           'the loss') for 1 .. 8;
is(respond([ ref_to($items[1]), user('x') ])->{status}, 503, 'Redis is away');
is(respond([ user('x') ])->{status}, 200, 'items sent whole need none');

$t->done;
