# Copyright (C) The nginx-dsa authors
#
# Answers that are drawn uniformly from the masks of a schema satisfy it: ajv,
# an independent validator from npm, checks 1,000 for each keyword, and one of
# each of random schemas that have the keyword: 20, or as many as
# DSA_GRAMMAR_SCHEMAS sets.  Answers that are drawn from the whole vocabulary
# do not satisfy it.

use strict;
use warnings;

use lib 't/lib';
use DSA::Node qw/ installed jobs /;
use DSA::Test;
use Test::More;

my $t = DSA::Test->new('grammar');
my $dir = installed($t, 't/ajv', 'validate.mjs', 'random.mjs');

my $string = '{"type":"string","maxLength":4}';
my $node = '{"type":"object","properties":{"v":{"type":"boolean"},"next":'
           . '{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},'
           . '"required":["v","next"],"additionalProperties":false}';

my @schemas = (
    [ 'null', '{"type":"null"}' ],
    [ 'boolean', '{"type":"boolean"}' ],
    [ 'integer', '{"type":"integer"}' ],
    [ 'number', '{"type":"number"}' ],
    [ 'string', '{"type":"string"}' ],
    [ 'several types', '{"type":["string","null","integer"],"maxLength":3}' ],
    [ 'enum', '{"enum":["a","b c",1,2.5,null,{"x":[true]}]}' ],
    [ 'const', '{"const":{"a":"\u00e9\"\\\\"}}' ],
    [ 'anyOf', qq({"anyOf":[{"type":"integer"},$string]}) ],
    [ '$ref', qq({"\$ref":"#/\$defs/node","\$defs":{"node":$node}}) ],
    [ 'properties', qq({"type":"object","properties":{"a":$string,"b":)
                    . qq({"type":"integer"}},"required":["b"],)
                    . qq("additionalProperties":false}) ],
    [ 'required', '{"type":"object","required":["x","y"],"properties":'
                  . '{"y":{"type":"null"}},"additionalProperties":'
                  . '{"type":"boolean"}}' ],
    [ 'additionalProperties', '{"type":"object","properties":{"a":{"type":'
                  . '"string"}},"additionalProperties":{"type":"integer"}}' ],
    [ 'items', qq({"type":"array","items":$string}) ],
    [ 'prefixItems', qq({"type":"array","prefixItems":[$string,)
                     . qq({"type":"null"}],"items":{"type":"integer"}}) ],
    [ 'minItems, maxItems', '{"type":"array","items":{"type":"boolean"},'
                            . '"minItems":2,"maxItems":5}' ],
    [ 'minLength, maxLength', '{"type":"string","minLength":3,'
                              . '"maxLength":6}' ],
    [ 'pattern', '{"type":"string",'
                 . '"pattern":"^(ab|[^a-z\\\\s]{2}){1,3}\\\\d$"}' ],
    [ 'pattern, not anchored', '{"type":"string","pattern":"\\\\d{2}|x.y$",'
                               . '"maxLength":20}' ],
    (map { [ "format $_", qq({"type":"string","format":"$_"}) ] }
     qw/ date-time date time duration email hostname ipv4 ipv6 uri uuid /),
    [ 'minimum, maximum', '{"type":"integer","minimum":-13,"maximum":1200}' ],
    [ 'minimum', '{"type":"number","minimum":-0.75}' ],
    [ 'maximum', '{"type":"number","maximum":-12.5}' ],
    [ 'exclusiveMinimum, exclusiveMaximum',
      '{"type":"number","exclusiveMinimum":-0.3,"exclusiveMaximum":17.25}' ],
    [ 'exclusiveMinimum, integer',
      '{"type":"integer","exclusiveMinimum":7,"exclusiveMaximum":9.5}' ],
    [ 'multipleOf', '{"type":"number","multipleOf":0.05,"minimum":-1,'
                    . '"maximum":40}' ],
    [ 'multipleOf, integer', '{"type":"integer","multipleOf":12}' ],
    [ 'multipleOf, large', '{"type":"integer","multipleOf":9999}' ],
    [ '$ref beside keywords', '{"$ref":"#/$defs/s","minLength":2,"$defs":'
                              . qq({"s":$string}}) ],
    [ 'allOf', qq({"allOf":[{"\$ref":"#/\$defs/node"},{"properties":{"v":)
               . '{"const":true}}},{"properties":{"next":{"minProperties":1}}}'
               . qq(],"\$defs":{"node":$node}}) ],
    [ 'enum beside keywords', '{"enum":[1,"a","abc",null,[1],7.5],"minimum":2,'
                              . '"maxLength":2,"minItems":1}' ],
    [ 'oneOf, types', '{"oneOf":[{"type":"integer"},{"type":"number",'
                      . '"maximum":3},{"type":"string","maxLength":3}]}' ],
    [ 'oneOf, constants', '{"type":"object","oneOf":[{"properties":{"t":'
                          . '{"const":"a"},"v":{"type":"null"}},"required":'
                          . '["t"]},{"properties":{"t":{"enum":["b","c"]},"w":'
                          . '{"type":"integer"}},"required":["t","w"]}]}' ],
    [ 'oneOf, required', '{"type":"object","oneOf":[{"required":["a"]},'
                         . '{"required":["b"]}],"additionalProperties":'
                         . '{"type":"null"}}' ],
    [ 'not, constants', '{"type":["string","integer","boolean"],"not":{"enum":'
                        . '["","a",0,7,true]},"maxLength":2}' ],
    [ 'not, keywords', '{"type":["string","integer"],"not":{"minimum":5,'
                       . '"pattern":"a"},"maxLength":3}' ],
    [ 'if, then, else', '{"type":"object","properties":{"k":{"enum":["a","b"]}'
                        . ',"v":{}},"required":["k"],"if":{"properties":{"k":'
                        . '{"const":"a"}}},"then":{"properties":{"v":{"type":'
                        . '"null"}},"required":["v"]},"else":{"properties":'
                        . '{"v":{"type":"integer"}}}}' ],
    [ 'dependentRequired', '{"type":"object","properties":{"a":{"type":"null"}'
                           . ',"b":{"type":"null"}},"dependentRequired":{"a":'
                           . '["b"],"x":["a"]}}' ],
    [ 'dependentSchemas', '{"type":"object","properties":{"a":{"type":"null"}'
                          . ',"b":{"type":["null","integer"]}},'
                          . '"dependentSchemas":{"a":{"properties":{"b":'
                          . '{"type":"integer"}},"required":["b"]}}}' ],
    [ 'patternProperties', '{"type":"object","properties":{"ab":{"minimum":2}},'
                           . '"patternProperties":{"^a":{"type":"integer"},'
                           . '"b":{"maximum":99}},"additionalProperties":'
                           . '{"type":"null"}}' ],
    [ 'propertyNames', '{"type":"object","propertyNames":{"anyOf":[{"pattern":'
                       . '"^[a-c]{1,2}$"},{"const":"x"}]}}' ],
    [ 'minProperties, maxProperties', '{"type":"object","properties":{"a":'
                                      . '{"type":"null"},"b":{"type":"null"},'
                                      . '"c":{"type":"null"}},"minProperties":'
                                      . '2,"maxProperties":2,'
                                      . '"additionalProperties":false}' ]);

my @found = check(1000, 1);

for my $case (@schemas) {
    my $name = $case->[0];
    my $r = shift @found;

    is($r->{answers}, 1000, "$name: answers");
    is($r->{valid}, 1000, "$name: valid") or diag($r->{first});
}

# random schemas for each keyword

my $count = $ENV{DSA_GRAMMAR_SCHEMAS} || 20;
my @keywords = split /\n/, random('schemas', $t->dir, $count, 20260101);

sample($t->path("$_.schemas"), $t->path("$_.answers"), 1, 1) for @keywords;

@found = @{ json_decode(random('check', $t->dir, @keywords)) };

for my $keyword (@keywords) {
    my $r = shift @found;

    is($r->{schemas}, $count, "$keyword: random schemas");
    is($r->{valid}, $r->{answers}, "$keyword: answers that are valid")
        or diag($r->{first});
    cmp_ok($r->{answers}, '>=', $count * 3 / 5,
           "$keyword: most schemas have an answer");
    note("$keyword: $r->{answers} answers, $r->{refused} schemas refused");
}


my ($answers, $valid) = (0, 0);

for my $r (check(100, 0)) {
    $answers += $r->{answers};
    $valid += $r->{valid};
}

is($answers, 100 * @schemas, 'answers without a mask');
cmp_ok($valid, '<=', $answers / 100, 'answers without a mask are not valid');

$t->done;


# Draws answers for each of the schemas; returns what ajv found.  It takes all
# of them in one process, because loading ajv takes longer than its work.

sub check {
    my ($count, $masked) = @_;

    my @jobs;

    for my $n (0 .. $#schemas) {
        my ($file, $lines) = map { $t->path("$n.$_") } qw/ schema answers /;

        write_file($file, $schemas[$n][1]);
        sample($file, $lines, $count, $masked);
        push @jobs, { schema => $schemas[$n][1], answers => $lines };
    }

    return jobs("$dir/validate.mjs", [], \@jobs);
}


# Draws so many answers for each schema of a file.

sub sample {
    my ($file, $lines, $count, $masked) = @_;

    system('sh', '-c', 'exec "$1" "$2" "$3" "$4" < "$5" > "$6"', '-',
           $t->build . '/t/sample_grammar', $t->model . '/tokenizer.json',
           $count, $masked, $file, $lines) == 0
        or die "sample_grammar failed for $file\n";
    return;
}


# The output of random.mjs.

sub random {
    open my $pipe, '-|', 'node', "$dir/random.mjs", @_ or die "node: $!\n";
    local $/;
    return scalar <$pipe>;
}
