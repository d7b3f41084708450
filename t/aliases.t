#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# Names of models: dsa_model_alias, the list of models in the formats of both
# APIs, and the errors for models and paths that do not exist.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Keys;
use DSA::Test;
use DSA::Wait;

my $t = DSA::Test->new('aliases');

$t->start_redis();
my $big = $t->start_fake('model=big', 'context=9000');
my $small = $t->start_fake('model=small', 'context=5000');

write_keys($t->path('keys'), key_entry('all'),
           key_entry('few', models => [ 'small', 'deepseek-chat' ]));

my $http = "dsa_model_alias  claude-*        big;
    dsa_model_alias  claude-haiku-*  small;
    dsa_model_alias  claude-opus     deepseek-reasoner;
    dsa_model_alias  mini            small;
    dsa_model_alias  gone            none;
    dsa_model_alias  keep            keep;
    dsa_model_alias  ke*             big;
    dsa_model_alias  b*              small;
    dsa_price  big    miss=1 hit=1 output=1;
    dsa_price  small  miss=2 hit=2 output=2;
    log_format alias '\$dsa_model';
    access_log %%DIR%%/alias.log alias;";

$t->start_nginx(http => $http, workers => 1);
wait_until(sub { $t->metrics->{dsa_sessions} == 2 }, 20, 'the sessions');


# The path, and the body that says X, for each API.

my %api = (
    chat => [ '/v1/chat/completions',
              { messages => [{ role => 'user', content => 'X' }] } ],
    text => [ '/v1/completions', { prompt => 'X' } ],
    responses => [ '/v1/responses', { input => 'X' } ],
    messages => [ '/v1/messages',
                  { max_tokens => 9, messages => [{ role => 'user',
                                                    content => 'X' }] } ]);

# The name of the engine that has got the last request.

my %seen = (big => 0, small => 0);

sub served {
    my @served;

    for ([ big => $big ], [ small => $small ]) {
        my $n = submitted($_->[1]);

        push @served, $_->[0] if $n != $seen{$_->[0]};
        $seen{$_->[0]} = $n;
    }

    return "@served";
}


for my $case ([ 'claude-sonnet-4-5', 'big' ], [ 'claude-', 'big' ],
              [ 'claude-haiku-9', 'small' ], [ 'mini', 'small' ],
              [ 'small', 'small' ], [ 'big', 'big' ], [ 'bigger', 'small' ])
{
    my ($asked, $model) = @$case;

    for my $name (sort keys %api) {
        my ($uri, $body) = @{ $api{$name} };

        my $r = $t->post($uri, { %$body, model => $asked });

        is($r->{status}, 200, "$name, $asked") or diag($r->{body});
        is($r->{json}{model}, $asked, 'the answer has its name');
        is(served(), $model, "$model serves it");

        my @events = $t->stream({ %$body, model => $asked, stream => \1 },
                                uri => $uri)->events;
        my %named = map { $_ => 1 } grep { defined }
                    map { my $j = $_->{json}; map { $_->{model} }
                          $j, $j->{message} // {}, $j->{response} // {} }
                    grep { $_->{json} } @events;

        is(join(' ', keys %named), $asked, 'each event of a stream has it');
        is(served(), $model, "$model serves the stream");
    }
}

my $chat = $api{chat}[0];

# an alias of the name that thinks

$t->post($chat, { %{ $api{chat}[1] }, model => 'claude-opus' });
my @lines = map { submitted($_) } $big, $small;
is(scalar(grep { /\[<think>\]$/ } @lines), 1, 'an alias of the thinking mode');
served();

# a stored answer

my $r = $t->post('/v1/responses', { input => 'X', model => 'mini' });
my $id = $r->{json}{id};
$r = wait_until(sub {
    my $r = $t->get("/v1/responses/$id");
    $r->{status} == 200 && $r;
}, 20, 'the stored answer');
is($r->{json}{model}, 'mini', 'a stored answer has the name');

# the log and the ledger have the model

my %logged = map { $_ => 1 } grep { $_ ne '-' }
             split /\n/, read_file($t->path('alias.log'));
is(join(' ', sort keys %logged), 'big deepseek-reasoner small',
   'the log has the model');
is(scalar(grep { /claude|mini/ } keys %{ $t->metrics }), 0,
   'and so do metrics');

# which the ledger charges

my %ledger;
my $redis = $t->redis;

wait_until(sub {
    %ledger = ();

    for my $key ($redis->keys('dsa1:*:ledger:*')) {
        my $fields = $redis->hgetall($key);

        $ledger{ s/\|.*//r }++ for grep { /\|cost/ && $fields->{$_} } keys
                                        %$fields;
    }

    keys %ledger >= 2;
}, 20, 'the ledger');

is(join(' ', sort keys %ledger), 'big small', 'and the ledger');


# what does not exist

served();

for my $name (sort keys %api) {
    my ($uri, $body) = @{ $api{$name} };

    for my $model ('nothing', 'gone', 'keep', "claude-\n", 'claude-' . 'x' x 60,
                   'mini*')
    {
        my $r = $t->post($uri, { %$body, model => $model });
        my $e = $r->{json}{error};

        is($r->{status}, 404, "$name: no such model");
        like($e->{message}, qr/model (".+" )?does not exist/, 'its text');

        if ($name eq 'messages') {
            is($r->{json}{type}, 'error', 'the format of an error');
            is($e->{type}, 'not_found_error', 'its type');

        } else {
            is($e->{code}, 'model_not_found', 'its code');
            is($e->{type}, 'invalid_request_error', 'its type');
            is($e->{param}, 'model', 'its field');
        }
    }
}

is(served(), '', 'no engine was asked');


# lists

my @names = qw/ big small deepseek-chat deepseek-reasoner claude-opus mini /;
my @anthropic = (headers => [ 'anthropic-version' => '2023-06-01' ]);

sub ids { map { $_->{id} } @{ $_[0]{json}{data} } }

$r = $t->get('/v1/models');
is($r->{json}{object}, 'list', 'a list of OpenAI');
is_deeply([ sort(ids($r)) ], [ sort @names ], 'its models and aliases');
is((ids($r))[0], 'big', 'the models of engines are in front');

for my $m (@{ $r->{json}{data} }) {
    is(join(' ', sort keys %$m), 'context_length created id max_model_len '
       . 'object owned_by', "$m->{id}: the fields");
    is($m->{owned_by}, 'deepseek', "$m->{id}: who made it");
    is($m->{context_length}, $m->{id} =~ /small|mini/ ? 5000 : 9000,
       "$m->{id}: the context");
}

$r = $t->get('/v1/models', @anthropic);
is_deeply([ sort(ids($r)) ], [ sort @names ], 'the same for Anthropic');
is($r->{json}{has_more}, JSON::PP::false, 'all of it');
is($r->{json}{first_id}, (ids($r))[0], 'the first');
is($r->{json}{last_id}, (ids($r))[-1], 'the last');
ok(!exists $r->{json}{object}, 'and nothing of OpenAI');
my @order = ids($r);

for my $m (@{ $r->{json}{data} }) {
    is($m->{type}, 'model', "$m->{id}: its type");
    is($m->{display_name}, $m->{id}, "$m->{id}: the name");
    like($m->{created_at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'a time');
}

for my $case ([ 'limit=2', [ 0, 1 ], 1 ], [ 'limit=6', [ 0 .. 5 ], 0 ],
              [ "limit=2&after_id=$order[1]", [ 2, 3 ], 1 ],
              [ "limit=2&after_id=$order[3]", [ 4, 5 ], 0 ],
              [ "after_id=$order[5]", [], 0 ],
              [ "limit=2&before_id=$order[4]", [ 2, 3 ], 1 ],
              [ "limit=2&before_id=$order[2]", [ 0, 1 ], 0 ],
              [ "before_id=$order[0]", [], 0 ],
              [ 'after_id=deepseek%2Dchat&limit=1',
                [ 1 + (grep { $order[$_] eq 'deepseek-chat' } 0 .. 5)[0] ],
                1 ])
{
    my ($args, $want, $more) = @$case;

    my $r = $t->get("/v1/models?$args", @anthropic);
    my @want = @order[@$want];

    is_deeply([ ids($r) ], \@want, $args);
    is($r->{json}{has_more}, $more ? JSON::PP::true : JSON::PP::false,
       'whether there are more');
    is($r->{json}{first_id}, $want[0], 'the first');
    is($r->{json}{last_id}, $want[-1], 'the last');
}

for my $args ('limit=0', 'limit=1001', 'limit=x', 'limit=', 'after_id=none',
              'before_id=', "after_id=$order[0]&before_id=$order[1]")
{
    my $r = $t->get("/v1/models?$args", @anthropic);

    is($r->{status}, 400, "$args is refused");
    is($r->{json}{error}{type}, 'invalid_request_error', 'its type');
    like($r->{json}{error}{message},
         qr/^(limit|after_id|before_id): .*expected limit from 1 to 1000/,
         'its text');
}

for my $name (qw/ mini big claude-sonnet-7 deepseek-chat /) {
    my $r = $t->get("/v1/models/$name");
    is($r->{json}{id}, $name, "$name alone");
    is($r->{json}{object}, 'model', 'for OpenAI');

    $r = $t->get("/v1/models/$name", @anthropic);
    is($r->{json}{id}, $name, "$name alone");
    is($r->{json}{type}, 'model', 'for Anthropic');
}

for my $name (qw/ gone none mini2 /) {
    is($t->get("/v1/models/$name")->{json}{error}{code}, 'model_not_found',
       "$name does not exist");

    $r = $t->get("/v1/models/$name", @anthropic);
    is($r->{status}, 404, "$name does not exist");
    is($r->{json}{error}{type}, 'not_found_error', 'for Anthropic');
}

$r = $t->post('/v1/models', {}, @anthropic);
is($r->{status}, 405, 'POST of models');
is($r->{headers}{allow}, 'GET, HEAD', 'what is allowed');
is($r->{json}{type}, 'error', 'in the format of Anthropic');


# paths that do not exist

for my $case ([ GET => '/v1/x', 0 ], [ POST => '/v1/embeddings', 0 ],
              [ DELETE => '/v1/chat', 0 ], [ POST => '/v1/x%0a%ff"', 0 ],
              [ POST => '/v1/' . 'x' x 2000, 0 ],
              [ POST => '/v1/messages/batches', 1 ],
              [ GET => '/v1/messages/batches/msgbatch_1/results', 1 ],
              [ GET => '/v1/files', 1, @anthropic ])
{
    my ($method, $uri, $anthropic, %opt) = @$case;

    my $r = $t->request($method, $uri, %opt);
    my $e = $r->{json}{error};
    my $path = substr($uri =~ s/%.*//r, 0, 200);

    is($r->{status}, 404, "$method $path");
    like($e->{message}, qr/^Unknown request URL: $method \Q$path\E/, 'its URL');
    is($e->{type}, $anthropic ? 'not_found_error' : 'invalid_request_error',
       'its type');
    is($e->{code}, $anthropic ? undef : 'unknown_url', 'its code');
    is($r->{json}{type}, $anthropic ? 'error' : undef, 'its format');
    like($e->{message}, $anthropic ? qr{POST /v1/messages,.* batches, are not}
                                   : qr{POST /chat/completions}, 'what exists');
}

for my $case ([ GET => '/v1/messages', 'POST' ], [ PUT => '/v1/responses',
              'POST' ], [ DELETE => '/v1/models/mini', 'GET, HEAD' ],
              [ DELETE => '/v1/chat/completions', 'POST' ])
{
    my ($method, $uri, $allow) = @$case;

    my $r = $t->request($method, $uri);

    is($r->{status}, 405, "$method $uri");
    is($r->{headers}{allow}, $allow, 'what is allowed');
}


# keys permit models, not aliases

$t->stop_nginx();
$t->start_nginx(http => "dsa_keys file=%%DIR%%/keys zone=keys:1m; $http",
                workers => 1);
wait_until(sub { $t->get('/v1/models', bearer(key_text('all')))->{status}
                 == 200 }, 20, 'the keys');
wait_until(sub { ids($t->get('/v1/models', bearer(key_text('all')))) == 6 },
           20, 'both engines');

my @few = bearer(key_text('few'));

is_deeply([ sort(ids($t->get('/v1/models', @few))) ],
          [ qw/ deepseek-chat mini small / ], 'a list of what a key permits');

is_deeply([ sort(ids($t->get('/v1/models', headers =>
                             [ @{ $few[1] }, @{ $anthropic[1] } ]))) ],
          [ qw/ deepseek-chat mini small / ], 'also for Anthropic');

for my $case ([ mini => 200 ], [ 'claude-haiku-1' => 200 ],
              [ 'claude-sonnet' => 403 ], [ big => 403 ])
{
    my ($model, $status) = @$case;

    is($t->post($chat, { %{ $api{chat}[1] }, model => $model }, @few)
       ->{status}, $status, "a request for $model");
    is($t->get("/v1/models/$model", @few)->{status},
       $status == 200 ? 200 : 404, "GET of $model");
}

$t->done;
