# Copyright (C) The nginx-dsa authors
#
# OpenAI's conversations with OpenAI's own client (the npm package): created,
# read, changed, deleted, their items, and responses that continue them.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('conversations-client');
my $dir = installed($t, 't/openai', 'conversations.mjs');

$t->start_redis();
my $fake = $t->start_fake();
$t->start_nginx(workers => 2);

my $base = 'http://127.0.0.1:' . $t->port . '/v1';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

$t->wait_redis(2);


sub client {
    my ($command, $args) = @_;

    open my $fh, '-|', 'node', "$dir/conversations.mjs", $base, $command,
         json_encode($args) or die "node: $!\n";
    local $/;
    my $out = <$fh>;
    close $fh;

    return json_decode($out);
}

sub user { { role => 'user', content => $_[0] } }


# "user: Hello | assistant: Hi" of items.

sub story {
    return join ' | ', map {
        my $i = $_;
        my $text = join '', map { $_->{text} } @{ $i->{content} || [] };
        $i->{type} eq 'message' ? "$i->{role}: $text"
        : $i->{type} eq 'reasoning' ? "thinks: $text"
        : $i->{type} eq 'function_call' ? "calls: $i->{name} $i->{arguments}"
        : "result: $i->{output}"
    } @_;
}

sub items { client(listItems => { id => $_[0], order => 'asc' }) }

sub prompt {
    my ($prompt) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: stop=.*)?$/;
    utf8::decode($prompt);

    return $prompt;
}


# The conversation itself.

my $c = client(create => { metadata => { topic => 'demo' },
                           items => [ { type => 'message', %{ user('Hello') } },
                                      { role => 'developer',
                                        content => [ { type => 'input_text',
                                                       text => 'Short.' } ]
                                      } ] });
like($c->{id}, qr/^conv_[0-9a-f]{32}$/, 'created') or diag(json_encode($c));
is($c->{object}, 'conversation', 'object');
cmp_ok(abs($c->{created_at} - time), '<', 60, 'created_at');
is_deeply($c->{metadata}, { topic => 'demo' }, 'metadata');

my $got = client(retrieve => { id => $c->{id} });
is_deeply({ map { $_ => $got->{$_} } keys %$c }, $c, 'retrieved');

my $metadata = { a => "\x{20ac}\"" };
my $up = client(update => { id => $c->{id}, metadata => $metadata });
is_deeply($up, { %$c, metadata => $metadata }, 'updated');
is_deeply(client(retrieve => { id => $c->{id} })->{metadata}, $metadata,
          'and it stays');

my $list = items($c->{id});
is(story(@$list), 'user: Hello | system: Short.', 'its items');
like($_->{id}, qr/^msg_[0-9a-f]{48}$/, 'an id') for @$list;
is($_->{status}, 'completed', 'a status') for @$list;
is($list->[0]{content}[0]{type}, 'input_text', 'the type of its text');


# Items.

my $call = { type => 'function_call', call_id => 'call_1', name => 'f',
             arguments => '{"a": 1}' };
my $added = client(addItems => { id => $c->{id}, items => [
    { type => 'reasoning', id => 'rs_own', summary => [],
      content => [ { type => 'reasoning_text', text => 'hm' } ] },
    $call,
    { type => 'function_call_output', call_id => 'call_1', output => 'one' },
    { type => 'message', role => 'assistant', id => 'msg_own',
      status => 'completed',
      content => [ { type => 'output_text', text => 'So.',
                     annotations => [] } ] } ] });
is($added->{object}, 'list', 'added') or diag(json_encode($added));
is(scalar @{ $added->{data} }, 4, 'four items');
is($added->{first_id}, 'rs_own', 'first_id');
is($added->{last_id}, 'msg_own', 'last_id');
is($added->{has_more}, $false, 'has_more');

$list = items($c->{id});
is(story(@$list), 'user: Hello | system: Short. | thinks: hm | '
   . 'calls: f {"a": 1} | result: one | assistant: So.', 'all of them');
is_deeply([ @$list[2 .. 5] ], $added->{data}, 'as they were added');

is_deeply(client(item => { id => $c->{id}, item => $_->{id} }), $_,
          "one $_->{type}") for @$list;

my $sealed = client(item => { id => $c->{id}, item => 'rs_own',
                              include => [ 'reasoning.encrypted_content' ] });
like($sealed->{encrypted_content}, qr/^[A-Za-z0-9_-]{20,}$/,
     'encrypted, if it is requested');
ok(!exists $list->[2]{encrypted_content}, 'and only then');

is_deeply([ map { $_->{id} }
            @{ client(listItems => { id => $c->{id}, limit => 2 }) } ],
          [ reverse map { $_->{id} } @$list ],
          'all pages, the last item first');

my $pages = client(pages => { id => $c->{id}, limit => 4, order => 'asc' });
is_deeply($pages, [
    { data => [ map { $_->{id} } @$list[0 .. 3] ], has_more => $true,
      last_id => $list->[3]{id} },
    { data => [ map { $_->{id} } @$list[4 .. 5] ], has_more => $false,
      last_id => $list->[5]{id} } ], 'two pages');

my $left = client(deleteItem => { id => $c->{id}, item => $list->[1]{id} });
is_deeply($left, $up, 'an item is deleted; the conversation is returned');
splice @$list, 1, 1;
is_deeply(items($c->{id}), $list, 'the others stay');
is(client(item => { id => $c->{id}, item => 'msg_none' })->{status}, 404,
   'an unknown item');
is(client(deleteItem => { id => $c->{id}, item => 'msg_none' })->{failed},
   'NotFoundError', 'and its error');


# Responses that continue it.

my %request = (model => 'deepseek-chat');
my $o = client(respond => { %request, input => 'And now?',
                            conversation => $c->{id} });
is($o->{status}, 'completed', 'a turn') or diag(json_encode($o));
is_deeply($o->{conversation}, { id => $c->{id} }, 'names its conversation');
like(prompt(), qr/\[<｜User｜>\]Hello.*So\..*\[<｜User｜>\]And now\?/s,
     'with what is there in front');

my $after = items($c->{id});
is(story(@$after), story(@$list) . ' | user: And now? | assistant: '
   . 'echo: And now?', 'the turn is added');
is($after->[-1]{id}, $o->{output}[0]{id}, 'with the ids of the response');

my $s = client(respond => { %request, conversation => { id => $c->{id} },
                            input => [ user('More') ], store => $false });
is($s->{status}, 'completed', 'another, not stored itself');
is($s->{store}, $false, 'as requested');
is(scalar @{ items($c->{id}) }, scalar(@$after) + 2, 'is added');

my $both = client(respond => { %request, input => 'x',
                               conversation => $c->{id},
                               previous_response_id => $o->{id} });
is($both->{status}, 400, 'not with previous_response_id');
is($both->{param}, 'conversation', 'which the error names');

my $chain = client(respond => { %request, input => 'x',
                                previous_response_id => $o->{id} });
is($chain->{status}, 400, 'a turn is not continued as a chain');
like($chain->{message}, qr/conversation/, 'and says why');

my $none = client(respond => { %request, input => 'x',
                               conversation => 'conv_' . '0' x 32 });
is($none->{status}, 404, 'an unknown conversation');


# Deleted.

my $gone = client(delete => { id => $c->{id} });
is_deeply($gone, { id => $c->{id}, object => 'conversation.deleted',
                   deleted => $true }, 'deleted');
is(client(retrieve => { id => $c->{id} })->{failed}, 'NotFoundError',
   'it is gone');
is(client(listItems => { id => $c->{id} })->{failed}, 'NotFoundError',
   'with its items');
is(client(update => { id => $c->{id}, metadata => {} })->{failed},
   'NotFoundError', 'and is not changed');
is(client(addItems => { id => $c->{id}, items => [ user('x') ] })->{failed},
   'NotFoundError', 'nor brought back by items');
is(client(retrieve => { id => $c->{id} })->{failed}, 'NotFoundError',
   'it stays away');

$t->done;
