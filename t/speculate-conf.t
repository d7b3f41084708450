#!/usr/bin/perl

# Copyright (C) The nginx-dsa authors
#
# "speculate" and checkpoints with and without a draft layer: what the engine
# logs when it starts, and whether it drafts.

use strict;
use warnings;

use Test::More;

use lib 't/lib';
use DSA::Drafts;
use DSA::Fake qw/ ask /;
use DSA::Test;

my $t = DSA::Test->new('speculate conf');
my $small = $t->model;


# A copy of the small model, which has no draft layer, with this
# num_nextn_predict_layers.

sub copy {
    my ($name, $layers) = @_;

    my $dir = $t->path($name);
    my $config = json_decode(read_file("$small/config.json"));

    mkdir $dir or die "$dir: $!\n";

    for (grep { !/config\.json\z/ } glob "$small/*") {
        symlink $_, $dir . '/' . s{.*/}{}r or die "$dir: $!\n";
    }

    write_file("$dir/config.json", json_encode({
                   %$config, num_nextn_predict_layers => $layers }));

    return $dir;
}


# Starts an engine and asks it.  Returns its log and the drafts of the answer.

sub served {
    my ($name, $model, %conf) = @_;

    my $s = DSA::Test->new("speculate conf $name");
    my $engine = $s->start_engine(conf => { model => $model, name => 'demo',
                                            backend => 'cpu', %conf });

    $s->start_nginx();

    my $r = $s->post('/v1/chat/completions',
                     ask('Count', max_tokens => 40, ignore_eos => \1, seed => 1,
                         thinking => { type => 'disabled' }));

    is($r->{status}, 200, "$name: an answer") or diag($r->{body});
    $s->done;

    return $engine->output,
           $r->{json}{usage}{completion_tokens_details}{draft_tokens};
}


my $lacking = copy('lacking', 1);
my ($log, $drafts) = served('the layer lacks', $lacking);

like($log, qr/\[notice\]\ \d+:\ "speculate\ auto"\ makes\ no\ drafts,
              \ because\ config\.json\ has\ "num_nextn_predict_layers"\ 1\ and
              \ the\ checkpoint\ no\ usable\ draft\ layer:
              \ tensor\ "model\.layers\.3\.input_layernorm\.weight"\ is
              \ missing;
              \ expected\ the\ tensors\ of\ model\.layers\.3,
              \ or\ "speculate\ off"$/mx, 'a notice has the reason');
is(() = $log =~ /draft/g, 2, 'once');
is($drafts, 0, 'and there are no drafts');

# no one expects drafts there

for my $case ([ 'off', $lacking, speculate => 'off' ],
              [ 'no layer', copy('none', 0) ])
{
    ($log, $drafts) = served(@$case);

    unlike($log, qr/draft/, "$case->[0]: no notice");
    is($drafts, 0, "$case->[0]: no drafts");
}

($log, $drafts) = served('a layer', with_drafts($small, $t->path('whole')),
                         speculate => 2);

unlike($log, qr/draft/, 'a layer: no notice');
cmp_ok($drafts, '>', 0, 'a layer: drafts');


# a number demands the layer

for my $case ([ $lacking, qr/"model\.layers\.3\.input_layernorm\.weight"/ ],
              [ $t->path('none'), qr/"num_nextn_predict_layers"\ of
                                     \ config\.json\ is\ 0;\ expected\ 1/x ])
{
    my ($model, $why) = @$case;
    my $engine = $t->start_engine(conf => { model => $model, backend => 'cpu',
                                            speculate => 1 }, wait => 0);

    isnt($engine->wait_end(30), 0, 'the engine does not start');
    like($engine->output, qr/the checkpoint has no usable draft layer: .*$why/,
         'with the reason');
}

$t->done;
