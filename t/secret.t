# Copyright (C) The nginx-dsa authors
#
# The files of dsa_secret: the first one encrypts reasoning for clients, all are
# accepted, and a file is replaced without refusing what clients keep:
#
#   1. openssl rand 32 > new, with the mode of old, on all hosts
#   2. dsa_secret old new; on all hosts, and a reload: all hosts accept both
#   3. dsa_secret new old; and a reload: the new one encrypts
#   4. dsa_secret new; when clients do not send items of step 2 any more

use strict;
use warnings;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('secret');
my $fake = $t->start_fake();
my $uri = '/v1/responses';
my $false = JSON::PP::false;
my $tool = { type => 'function', name => 'weather', strict => $false,
             parameters => { type => 'object' } };

for my $name (qw/ old new /) {
    write_file($t->path($name), join '', map { chr int rand 256 } 1 .. 32);
}


sub conf { (http => "dsa_secret "
                    . join(' ', map { $t->path($_) } @_) . ';') }

sub reloaded {
    my %old = map { $_ => 1 } $t->workers;

    $t->reload(conf(@_));
    wait_until(sub { !grep { $old{$_} } $t->workers }, 20, 'the old workers');
    wait_until(sub { $t->get('/readyz')->{status} == 200 }, 20, 'the engine');
}

# Returns a reasoning item whose text is only in its encrypted content.

sub reasoned {
    my ($text) = @_;

    my $r = $t->post($uri, {
        model => 'deepseek-chat', store => $false,
        input => "!fake\nt $text\nt </think>\nt I look.",
        reasoning => { effort => 'high' },
        include => [ 'reasoning.encrypted_content' ] });

    is($r->{status}, 200, "$text: answered") or diag($r->{body});

    my ($item) = grep { $_->{type} eq 'reasoning' }
                 @{ $r->{json}{output} || [] };
    delete $item->{content};

    return $item;
}

# Sends an item back.

sub sent_back {
    my ($item) = @_;

    return $t->post($uri, {
        model => 'deepseek-chat', store => $false,
        reasoning => { effort => 'high' }, tools => [$tool],
        input => [ { role => 'user', content => 'q' }, $item,
                   { type => 'function_call', call_id => 'c',
                     name => 'weather', arguments => '{}' },
                   { type => 'function_call_output', call_id => 'c',
                     output => 'r' } ] });
}

sub accepted {
    my ($item, $text, $what) = @_;
    my $r = sent_back($item);

    is($r->{status}, 200, "$what: accepted") or diag($r->{body});
    like((submitted($fake))[-1], qr/\[<think>\]$text/,
         "$what: its text is in the prompt");
}

sub refused {
    my ($item, $what) = @_;
    my $r = sent_back($item);

    is($r->{status}, 400, "$what: refused");
    is($r->{json}{error}{param}, 'input[1].encrypted_content',
       "$what: the error names the field");
}


$t->start_nginx(conf('old'));
my $first = reasoned('First.');
accepted($first, 'First.', 'one file');

# a host that is ahead encrypts with the new file

reloaded('new');
my $ahead = reasoned('Ahead.');
refused($first, 'another file');

reloaded('old', 'new');
accepted($first, 'First.', 'the old file first');
accepted($ahead, 'Ahead.', 'of a host that is ahead');
my $second = reasoned('Second.');

reloaded('new', 'old');
accepted($first, 'First.', 'the new file first');
accepted($second, 'Second.', 'of the time between');
my $third = reasoned('Third.');

reloaded('old');
accepted($second, 'Second.', 'the first of two files has encrypted');
refused($third, 'the first of two files alone has encrypted');

# a restart has nothing but the files

$t->stop_nginx;
$t->start_nginx(conf('new'));
refused($first, 'the old file was removed');
accepted($third, 'Third.', 'the new file alone');

$t->done;
