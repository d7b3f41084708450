# Copyright (C) The nginx-dsa authors
#
# The Responses API with OpenAI's own client (the npm package): created,
# streamed, read, listed, deleted, continued, and loops with tools.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('responses-client');
my $dir = installed($t, 't/openai', 'client.mjs', 'responses.mjs');

my $call = '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
           . '<｜DSML｜parameter name="place" string="true">Köln'
           . '</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
           . '</｜DSML｜function_calls>';
my $lines = "t thought\nt </think>\nt text\n" . tokens($call) . "\n";

utf8::encode($lines);
$t->start_redis();
my $fake = $t->start_fake('script=' . DSA::Test::write_file(
                                          $t->path('script'), $lines));
$t->start_nginx(workers => 2);

my $base = 'http://127.0.0.1:' . $t->port . '/v1';
my $tool = { type => 'function', name => 'weather', strict => JSON::PP::false,
             parameters => { type => 'object' } };
my %request = (model => 'deepseek-chat', tools => [$tool],
               reasoning => { effort => 'high' });

wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis') for 1 .. 8;


sub client {
    my ($command, $args) = @_;

    open my $fh, '-|', 'node', "$dir/responses.mjs", $base, $command,
         json_encode($args) or die "node: $!\n";
    local $/;
    my $out = <$fh>;
    close $fh;

    return json_decode($out);
}


my $o = client(create => { %request, input => 'Hello' });
is($o->{status}, 'completed', 'created') or diag(json_encode($o));
is($o->{output_text}, 'text', 'output_text');
is_deeply([ map { $_->{type} } @{ $o->{output} } ],
          [ qw/ reasoning message function_call / ], 'items');
is($o->{output}[0]{content}[0]{text}, 'thought', 'reasoning');
is($o->{output}[2]{arguments}, '{"place": "Köln"}', 'arguments');

my $s = client(stream => { %request, input => 'Hello' });
is($s->{final}{status}, 'completed', 'streamed') or diag(json_encode($s));
is($s->{final}{output_text}, 'text', 'output_text');
is($s->{deltas}, 'text', 'the same in deltas');
is($s->{types}[0], 'response.created', 'the first event');
is($s->{types}[-1], 'response.completed', 'the last one');
is_deeply([ map { $_->{type} } @{ $s->{final}{output} } ],
          [ map { $_->{type} } @{ $o->{output} } ], 'the same items');

my $got = client(retrieve => { id => $o->{id} });
is_deeply($got, $o, 'retrieved');

my @input = map { { role => 'user', content => "q$_" } } 1 .. 5;
my $many = client(create => { %request, input => \@input });
is_deeply([ map { $_->{content}[0]{text} }
            @{ client(items => { id => $many->{id} }) } ],
          [ map { "q$_" } 1 .. 5 ], 'input items, in pages of two');

is(client(retrieve => { id => $many->{id} })->{id}, $many->{id}, 'it is there');
client(delete => { id => $many->{id} });
my $e = client(retrieve => { id => $many->{id} });
is($e->{failed}, 'NotFoundError', 'it is gone');

$e = client(create => { %request, input => 'x', temperature => 'hot' });
is($e->{failed}, 'BadRequestError', 'a bad field: exception');
is($e->{param}, 'temperature', 'a bad field: its name');
$e = client(stream => { %request, input => 'x', tools => [ {
                        type => 'local_shell' } ] });
is($e->{failed}, 'BadRequestError', 'a wrong tool, streaming: exception');
is($e->{param}, 'tools[0].type', 'a wrong tool: its name');


# Three rounds of tools: the last prompt has all reasoning and all results, and
# is the same however the client keeps them.

my %prompts;

for my $mode (1, 0) {
    my $name = $mode ? 'stored' : 'encrypted';
    my $o = client(loop => { %request, stored => $mode,
                             input => [ $input[0] ] });

    is($o->{status}, 'completed', "$name: a loop") or diag(json_encode($o));

    ($prompts{$name}) = (submitted($fake))[-1] =~ / prompt=(.*?)(?: stop=|$)/;

    is(() = $prompts{$name} =~ /thought/g, 3, "$name: reasoning is back");
    is(() = $prompts{$name} =~ /result \d of weather/g, 3,
       "$name: so are results");
    is(() = $prompts{$name} =~ /invoke name="weather"/g, 3,
       "$name: and calls");
}

is($prompts{stored}, $prompts{encrypted}, 'both have the same prompt');

$t->done;
