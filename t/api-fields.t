# Copyright (C) The nginx-dsa authors
#
# The tables of docs/api/ are what the server does: which fields each API uses,
# refuses and ignores, and the types and codes of errors.  Each name that the
# code reads has a row.

use strict;
use warnings;

use lib 't/lib';
use DSA::Docs;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('api-fields');
my $root = $DSA::Test::root;

$t->start_redis();
$t->start_fake();
$t->start_nginx(location => 'dsa_rollout 1m;');

wait_until(sub { $t->get('/v1/responses/resp_' . '0' x 32)->{status} == 404 },
           20, 'Redis');

my $user = [ { role => 'user', content => 'Answer in json.' } ];
my @apis = (
    [ chat => '/v1/chat/completions', { messages => $user } ],
    [ completions => '/v1/completions', { prompt => 'x' } ],
    [ responses => '/v1/responses', { input => 'x', store => \0 } ],
    [ messages => '/v1/messages', { messages => $user, max_tokens => 4096 } ]);


# (status, whether the error is about the field) of a request with a field.

sub ask {
    my ($api, $field, $value) = @_;

    my (undef, $uri, $base) = @$api;
    my $r = $t->post($uri, { model => 'deepseek-chat', %$base,
                             $field => $value });
    my $error = ($r->{json} || {})->{error} || {};
    my $param = $error->{param} // $error->{message} // '';

    return ($r->{status}, $param =~ /\b\Q$field\E\b/ ? 1 : 0);
}


# Values that a field could have.  A field that is used accepts one of them, or
# the one of its own below.

my @values = (JSON::PP::true, JSON::PP::false, 0, 1, 0.5, 'x', 'deepseek-chat',
              'none', {}, [], $user);

my %own = (
    'cache_control' => { type => 'ephemeral' },
    'context_management' => { strategy => 'none' },
    'max_output_tokens' => 64,
    'output_format' => { type => 'json_schema', schema => {} },
    'response_format' => { type => 'json_object' },
    'thinking' => { type => 'disabled' },
    'tool_choice' => { type => 'none' },
    'conversation' => 'conv_' . '0' x 32,
    'previous_response_id' => 'resp_' . '0' x 32);

my @rows = grep { $_->[0] =~ s/^`(\w+)`$/$1/ }
           doc_rows(read_file("$root/docs/api/fields.md"));

cmp_ok(scalar @rows, '>', 90, 'there are rows');

for my $row (@rows) {
    my ($field, @cells) = @$row;

    for my $i (0 .. $#apis) {
        my $api = $apis[$i];
        my $cell = $cells[$i];
        my $name = "$field, $api->[0]: $cell";
        my ($status, $named) = ask($api, $field, [ [] ]);

        # no field that is read accepts this value

        if ($cell eq 'ignored') {
            is($status, 200, $name);
            next;
        }

        is("$status $named", '400 1', $name);

        my @accepted = grep { (ask($api, $field, $_))[0] == 200 } @values;
        my @only = map { json_decode($_) }
                   $cell =~ /^only / ? $cell =~ /`([^`]+)`/g : ();

        if ($cell eq 'refused') {
            is(json_encode(\@accepted), '[]', 'no value is accepted');

        } elsif (@only) {
            is(join(' ', map { (ask($api, $field, $_))[0] } @only),
               join(' ', (200) x @only), 'its values are accepted');

            my %only = map { json_encode($_) => 1 } @only;

            is(json_encode([ grep { !$only{ json_encode($_) } } @accepted ]),
               '[]', 'and no others');

        } elsif ($cell =~ /^(?:used|no effect)$/) {
            if (!@accepted) {
                my ($status, $named) = ask($api, $field, $own{$field});

                # what is not stored is not found

                ok($status == 200 || $status == 404, 'a value is accepted')
                    or diag("$field: $status");
            }

        } else {
            fail("$cell is not a word of the table");
        }
    }
}

# a field that has no row is not read

my %row = map { $_->[0] => 1 } @rows;

is((ask($_, 'no_such_field', [ [] ]))[0], 200, "$_->[0]: other fields")
    for @apis;

# the names that readers have at the root of a request

my %read;

for my $file (map { glob "$root/$_" } qw{ context/*.c }) {
    my $text = read_file($file);

    $read{$_} = 1
        for $text =~ /\broot, "(\w+)"/g, $text =~ /= \{ NULL, "(\w+)", 0 \}/g,
            $text =~ /dsa_str_eqz\(v->key, "(\w+)"\)/g,
            map({ /"(\w+)"/g }
                $text =~ /\bchar \*const  (?:dsa_responses_own|names)\[\] = \{
                          ([^}]*)\}/gx),
            map({ /^    \{ "(\w+)",/mg }
                $text =~ /^(?:static\ const\ dsa_field_t|\}\ dsa_)\s*\w*
                          (?:unsupported|openai|fields|numbers|absent)\[\]
                          \ =\ \{(.*?)^\};/gmsx);
}

# members of objects, and names that are not of a request, which these patterns
# find as well

delete @read{ qw/ strategy name description parameters strict schema type / };

cmp_ok(scalar keys %read, '>', 90, 'readers have names');
is(join(' ', grep { !$row{$_} } sort keys %read), '',
   'each of them has a row');


# the paths of the APIs

my %path = map { $_ => 1 }
           map { read_file($_) =~ /\.path = ngx_string\("([^"]+)"\)/g }
           glob "$root/ngx_module/api/*.c";
my $paths = join ' ', map { $_->[0] }
            doc_rows(doc_section('docs/api/README.md', '## Paths'));

cmp_ok(scalar keys %path, '>', 4, 'there are paths');
is(join(' ', grep { $paths !~ /`POST …\Q$_\E`/ } sort keys %path), '',
   'docs/api/README.md has each of them');


# errors

my @errors = grep { $_->[0] =~ /^\d+$/ }
             doc_rows(doc_section('docs/api/errors.md', '## Errors'));
my ($openai) = read_file("$root/ngx_module/api/ngx_http_dsa_openai_error.c")
               =~ /ngx_http_dsa_openai_statuses\[\] = \{(.*?)^\};/ms;
my ($anthropic) = read_file("$root/ngx_module/api/"
                            . 'ngx_http_dsa_anthropic_error.c')
                  =~ /ngx_http_dsa_anthropic_types\[\] = \{(.*?)^\};/ms;
my %types = map { /\{ (\d+), "(\w+)", "(\w+)" \}/ ? ($1 => [ $2, $3 ]) : () }
            split /\n/, $openai;
my %others = $anthropic =~ /\{ (\d+), "(\w+)" \}/g;

cmp_ok(scalar keys %types, '>', 10, 'there are errors');
is(join(' ', map { $_->[0] } @errors), join(' ', sort 500, keys %types),
   'docs/api/errors.md has each status');

for (@errors) {
    my ($status, @types) = map { s/^`(.*)`$/$1/r } @$_[0 .. 3];
    my $want = $types{$status} || [ 'server_error', 'internal_error' ];

    is("@types", join(' ', @$want, $others{$status}
                      || ($status < 500 ? 'invalid_request_error'
                                        : 'api_error')),
       "$status: types and code");
}

$t->done;
