
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Automata of JSON schemas: what they accept and refuse, and drafts.
 */


#include "base/buf.h"
#include "t/unit/grammar.h"


#define CLOSED(p)   "{\"type\":\"object\",\"properties\":{" p "},"             \
                    "\"additionalProperties\":false}"


typedef struct {
    const char  *schema;
    const char  *accepted[12];
    const char  *rejected[12];
} schema_case_t;


static void check_cases(const schema_case_t *c, size_t n);


static const schema_case_t  cases[] = {
    { "{\"type\":\"null\"}",
      { "null" },
      { "", "nul", "null ", "true" } },
    { "{\"type\":[\"boolean\",\"null\"]}",
      { "true", "false", "null" },
      { "1", "\"true\"" } },
    { "{\"type\":\"integer\"}",
      { "0", "-7", "123" },
      { "01", "1.0", "1e3", "-", "+1", "" } },
    { "{\"type\":\"number\"}",
      { "0", "-7.25", "1e3", "2E-7", "0.5" },
      { ".5", "1.", "00", "1e", "NaN" } },
    { "{\"type\":\"string\"}",
      { "\"\"", "\"a b\"", "\"\\n\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\"",
        "\"\\/\"" },
      { "\"", "a", "\"\n\"", "\"\\x\"", "\"\\ud83d\"", "\"\xc3\"",
        "\"\\ude00\"", "\"\xff\"" } },
    { "{\"enum\":[\"a\",\"ab\",3,null,{\"x\":[1]}]}",
      { "\"a\"", "\"ab\"", "3", "null", "{\"x\":[1]}" },
      { "\"b\"", "\"\"", "4", "33" } },
    { "{\"const\":\"q\\\"\"}",
      { "\"q\\\"\"" },
      { "\"q\"" } },
    { "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
      { "[]", "[1]", "[1,2, 3]", "[ 1 ]", "[\n  1,\n  2\n]" },
      { "[1,]", "[,1]", "[1 2]", "[\"a\"]", "[\n\n1]", "[  1]" } },
    { "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,"
      "\"maxItems\":3}",
      { "[1,2]", "[1,2,3]" },
      { "[]", "[1]", "[1,2,3,4]" } },
    { "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},"
      "{\"type\":\"string\"}],\"items\":false}",
      { "[]", "[1]", "[1,\"a\"]" },
      { "[\"a\"]", "[1,2]", "[1,\"a\",2]" } },
    { "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}],"
      "\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
      { "[1,null]", "[1,null,null]" },
      { "[1]", "[1,2]", "[1,null,null,null]" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
      "\"b\":{\"type\":\"null\"}},\"required\":[\"b\"],"
      "\"additionalProperties\":false}",
      { "{\"a\":1,\"b\":null}", "{\"b\":null}", "{ \"a\": 1, \"b\": null }",
        "{\n  \"b\": null\n}" },
      { "{}", "{\"a\":1}", "{\"b\":null,\"a\":1}", "{\"b\":null,\"c\":1}",
        "{\"b\" :null}", "{\"b\":null,}" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}",
      { "{}", "{\"a\":1}", "{\"a\":1,\"b\":2,\"ab\":[]}", "{\"c\":{}}",
        "{\"\":1}" },
      { "{\"a\":\"x\"}", "{\"c\":1,\"a\":2}", "{\"a\":1,\"a\":2}",
        "{\"\\u0061\":\"x\"}" } },
    { "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},"
      "\"required\":[\"z\"]}",
      { "{\"z\":1}", "{\"z\":1,\"y\":2}" },
      { "{}", "{\"z\":\"\"}", "{\"z\":1,\"y\":\"\"}" } },
    { "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}",
      { "1", "\"1\"" },
      { "null", "[]" } },
    { "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\","
      "\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":["
      "{\"$ref\":\"#/$defs/node\"},{\"type\":\"null\"}]}},\"required\":"
      "[\"v\",\"next\"],\"additionalProperties\":false}}}",
      { "{\"v\":1,\"next\":null}",
        "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}" },
      { "{\"v\":1}", "{\"v\":1,\"next\":{}}" } },
    { "{}",
      { "1", "\"\"", "{\"a\":[1,{\"b\":null}]}", "[[[]]]", "true" },
      { "", "[", "tru" } },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
      { "\"ab\"", "\"\\u00e9\\n\\\"\"", "\"\xf0\x9f\x98\x80""a\"" },
      { "\"a\"", "\"abcd\"", "\"\xf0\x9f\x98\x80\"" } },
    { "{\"type\":\"string\",\"pattern\":\"^[a-c]{2,3}$\"}",
      { "\"ab\"", "\"abc\"" },
      { "\"a\"", "\"abca\"", "\"xab\"" } },
    { "{\"type\":\"string\",\"pattern\":\"ab|\\\\d$\"}",
      { "\"xxabxx\"", "\"x1\"", "\"1ab\"" },
      { "\"1a\"", "\"\"" } },
    { "{\"type\":\"string\",\"pattern\":\"^(a|\\\"|\\\\\\\\)+$\"}",
      { "\"a\"", "\"\\\"\"", "\"\\\\a\"" },
      { "\"\"", "\"\\n\"" } },
    { "{\"type\":\"string\",\"pattern\":\"^x\",\"minLength\":3,"
      "\"maxLength\":4}",
      { "\"xab\"", "\"x\xc3\xa9""ab\"" },
      { "\"xa\"", "\"xabcd\"", "\"aaa\"" } },
    { "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":12}",
      { "-5", "0", "9", "10", "12", "-1" },
      { "-6", "13", "100", "-50", "-0", "05" } },
    { "{\"type\":\"integer\",\"exclusiveMinimum\":99,\"maximum\":1000}",
      { "100", "1000", "999" },
      { "99", "1001", "-100", "9" } },
    { "{\"type\":\"number\",\"minimum\":0.5,\"exclusiveMaximum\":2.25}",
      { "0.5", "0.50", "1", "2", "2.2", "2.249", "0.51" },
      { "0", "0.49", "2.25", "2.3", "2.250", "3", "-1", "1e0" } },
    { "{\"type\":\"number\",\"minimum\":0,\"maximum\":9007199254740991}",
      { "0", "10.5", "999999999.999999", "123456789012345" },
      { "-1", "-0.5", "1234567890.5" } },
    { "{\"type\":\"number\",\"exclusiveMinimum\":-0.5,\"maximum\":0}",
      { "-0.4", "0", "0.0", "-0.49" },
      { "-0.5", "-1", "0.1", "-0.51" } },
    { "{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":10,\"maximum\":30}",
      { "14", "21", "28" },
      { "7", "35", "15", "0" } },
    { "{\"type\":\"number\",\"multipleOf\":0.25}",
      { "0", "1.5", "-0.75", "3.250", "10" },
      { "0.1", "1.26", "0.125" } },
    { "{\"type\":\"integer\",\"minimum\":1e2,\"maximum\":1.5e2}",
      { "100", "150" },
      { "99", "151" } },
    { "{\"type\":\"string\",\"format\":\"date\"}",
      { "\"2024-02-29\"", "\"1999-12-31\"", "\"2000-02-29\"" },
      { "\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"",
        "\"2024-04-31\"" } },
    { "{\"type\":\"string\",\"format\":\"date-time\"}",
      { "\"2024-02-29T23:59:59Z\"", "\"2024-01-01T00:00:00.5+01:30\"" },
      { "\"2024-02-29 23:59:59Z\"", "\"2024-02-29T24:00:00Z\"",
        "\"2024-01-01T00:00:00\"" } },
    { "{\"type\":\"string\",\"format\":\"time\"}",
      { "\"12:30:00Z\"" }, { "\"12:60:00Z\"", "\"12:30Z\"" } },
    { "{\"type\":\"string\",\"format\":\"duration\"}",
      { "\"P1D\"", "\"PT5M\"", "\"P1Y2M3DT4H5M6S\"", "\"P3W\"" },
      { "\"P\"", "\"PT\"", "\"P1W1D\"", "\"1D\"" } },
    { "{\"type\":\"string\",\"format\":\"email\"}",
      { "\"a@b.cc\"", "\"first.last+x@mail.example.com\"" },
      { "\"a\"", "\"@b.cc\"", "\"a@\"", "\"a..b@c.dd\"" } },
    { "{\"type\":\"string\",\"format\":\"hostname\"}",
      { "\"localhost\"", "\"a-b.example.com\"" },
      { "\"-a\"", "\"a-\"", "\"a..b\"", "\"\"" } },
    { "{\"type\":\"string\",\"format\":\"ipv4\"}",
      { "\"0.0.0.0\"", "\"255.199.10.1\"" },
      { "\"256.1.1.1\"", "\"1.1.1\"", "\"01.1.1.1\"" } },
    { "{\"type\":\"string\",\"format\":\"ipv6\"}",
      { "\"::\"", "\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::1:2\"",
        "\"1:2:3:4:5:6:1.2.3.4\"", "\"1::\"", "\"1:2:3:4:5:6:7::\"" },
      { "\"1:2:3:4:5:6:7\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\"",
        "\"12345::\"", "\":1\"" } },
    { "{\"type\":\"string\",\"format\":\"uuid\"}",
      { "\"123e4567-e89b-12d3-a456-426614174000\"" },
      { "\"123e4567e89b12d3a456426614174000\"" } },
    { "{\"type\":[\"string\",\"integer\"],\"maximum\":3,\"maxLength\":1}",
      { "3", "\"a\"" },
      { "4", "\"ab\"", "null" } },
    { "{\"title\":\"t\",\"description\":\"d\",\"default\":1,\"examples\":[],"
      "\"$schema\":\"s\",\"$id\":\"i\",\"$comment\":\"c\",\"deprecated\":true,"
      "\"readOnly\":true,\"writeOnly\":false,\"type\":\"null\"}",
      { "null" }, { "1" } },

    /* annotations, unknown names, and keywords of other types */

    { "{\"type\":\"integer\",\"id\":\"i\",\"definitions\":7,\"x-a\":{},"
      "\"contentEncoding\":\"base64\",\"then\":false,\"maxLength\":0,"
      "\"contains\":false,\"required\":[\"a\"]}",
      { "1" }, { "\"\"", "null" } },
    { "{\"type\":\"string\",\"format\":\"colour\",\"maxLength\":3}",
      { "\"red\"" }, { "\"blue\"" } },
    { "{\"type\":\"string\",\"format\":\"uri\"}",
      { "\"http://u:p@a.b:80/c/d?e=/f#g?\"", "\"urn:isbn:1\"", "\"file:///a\"",
        "\"a:///%c3\"", "\"m:/a\"", "\"mailto:a@b.c\"" },
      { "\"\"", "\"a\"", "\"/a/b\"", "\"http://a b\"", "\"http://[1]/\"",
        "\"a://[::1]/\"", "\"x:\"", "\"1:a\"", "\"a:%g0\"",
        "\"http://a:1b\"" } },

    /* all that is demanded of one value */

    { "{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":3},{\"type\":"
      "[\"number\",\"null\"],\"maximum\":5}]}",
      { "3", "5" }, { "2", "6", "null", "3.5" } },
    { "{\"$ref\":\"#/$defs/s\",\"maxLength\":3,\"$defs\":{\"s\":{\"type\":"
      "\"string\",\"minLength\":2,\"$ref\":\"#/$defs/p\"},\"p\":{\"pattern\":"
      "\"^a\"}}}",
      { "\"ab\"", "\"abc\"" }, { "\"a\"", "\"abcd\"", "\"bb\"" } },
    { "{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"],"
      "\"allOf\":[{\"properties\":{\"a\":{\"minimum\":2},\"b\":{\"const\":1}},"
      "\"required\":[\"b\"]}],\"type\":\"object\"}",
      { "{\"a\":2,\"b\":1}", "{\"a\":2,\"b\":1,\"c\":[]}" },
      { "{\"a\":1,\"b\":1}", "{\"a\":2}", "{\"a\":2.5,\"b\":1}" } },
    { "{\"allOf\":[{\"items\":{\"type\":\"integer\"}},{\"prefixItems\":["
      "{\"minimum\":5}],\"maxItems\":2}],\"type\":\"array\"}",
      { "[]", "[5]", "[6,1]" }, { "[4]", "[5,\"\"]", "[5,1,1]" } },
    { "{\"enum\":[1,\"ab\",\"abc\",null,7],\"minimum\":3,\"allOf\":[{"
      "\"maxLength\":2},{\"not\":{\"const\":null}}]}",
      { "\"ab\"", "7" }, { "1", "\"abc\"", "null" } },
    { "{\"enum\":[{\"a\":1},{\"b\":1}],\"properties\":{\"a\":{\"$ref\":"
      "\"#\"}}}",
      { "{\"b\":1}" }, { "{\"a\":1}" } },
    { "{\"type\":\"string\",\"anyOf\":[{\"maxLength\":1},{\"pattern\":\"^b\"}],"
      "\"minLength\":1}",
      { "\"a\"", "\"bcd\"" }, { "\"\"", "\"aa\"", "1" } },
    { "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"object\","
      "\"properties\":{\"l\":{\"allOf\":[{\"$ref\":\"#/$defs/t\"},{"
      "\"required\":[\"k\"]}]}},\"patternProperties\":{\"^k$\":{\"type\":"
      "\"null\"}},\"additionalProperties\":false}}}",
      { "{}", "{\"l\":{\"k\":null}}", "{\"l\":{\"l\":{\"k\":null},"
        "\"k\":null}}" },
      { "{\"l\":{}}", "{\"l\":{\"k\":1}}", "{\"x\":1}" } },

    /* alternatives that exclude each other */

    { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\","
      "\"minimum\":2}]}",
      { "1", "2.5", "0" }, { "2", "3", "2.0", "1.5" } },
    { "{\"type\":\"object\",\"oneOf\":[{\"required\":[\"a\"]},{\"required\":"
      "[\"b\"]}]}",
      { "{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"c\":1}" },
      { "{}", "{\"a\":1,\"b\":1}", "{\"b\":1,\"a\":1}" } },
    { "{\"oneOf\":[{\"properties\":{\"t\":{\"const\":\"x\"},\"v\":{\"type\":"
      "\"integer\"}},\"required\":[\"t\",\"v\"]},{\"properties\":{\"t\":{"
      "\"enum\":[\"y\",\"z\"]},\"v\":{\"type\":\"null\"}},\"required\":[\"t\","
      "\"v\"]}],\"type\":\"object\"}",
      { "{\"t\":\"x\",\"v\":1}", "{\"t\":\"z\",\"v\":null}" },
      { "{\"t\":\"x\",\"v\":null}", "{\"t\":\"y\",\"v\":1}",
        "{\"t\":\"x\"}" } },

    /* closed objects: what they have in common satisfies several of them */

    { "{\"oneOf\":[" CLOSED("\"a\":{},\"c\":{}") ","
      CLOSED("\"b\":{},\"c\":{}") "]}",
      { "{\"a\":1}", "{\"a\":1,\"c\":2}", "{\"b\":1,\"c\":2}" },
      { "{}", "{\"c\":1}", "{\"a\":1,\"b\":1}" } },
    { "{\"oneOf\":[" CLOSED("\"a\":{},\"b\":{}") ","
      CLOSED("\"b\":{},\"c\":{}") "," CLOSED("\"a\":{},\"c\":{}") "]}",
      { "{\"a\":1,\"b\":2}", "{\"b\":1,\"c\":2}", "{\"a\":1,\"c\":2}" },
      { "{}", "{\"a\":1}", "{\"b\":1}" } },
    { "{\"oneOf\":[" CLOSED("\"a\":{}") "," CLOSED("\"a\":{},\"b\":{}")
      "]}",
      { "{\"b\":1}", "{\"a\":1,\"b\":1}" }, { "{}", "{\"a\":1}" } },
    { "{\"oneOf\":[" CLOSED("\"a\":{\"type\":\"null\"},\"b\":{}") ","
      CLOSED("\"a\":{\"type\":\"integer\"}") "]}",
      { "{\"a\":null}", "{\"a\":1}", "{\"b\":1}" }, { "{}", "{\"a\":\"\"}" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{}},\"not\":"
      CLOSED("\"b\":{}") "}",
      { "{\"a\":1}", "{\"a\":1,\"b\":1}", "{\"c\":1}" },
      { "{}", "{\"b\":1}", "1" } },
    { "{\"oneOf\":[" CLOSED("\"x\":{},\"y\":{}") ",{\"type\":\"object\","
      "\"patternProperties\":{\"^x\":{}},\"additionalProperties\":false}]}",
      { "{\"y\":1}", "{\"x\":1,\"y\":1}" }, { "{}", "{\"x\":1}" } },
    { "{\"oneOf\":[" CLOSED("\"a\":{},\"b\":{}") "," CLOSED("\"c\":{}")
      "],\"maxProperties\":1}",
      { "{\"a\":1}", "{\"b\":1}", "{\"c\":1}" },
      { "{}", "{\"a\":1,\"b\":1}" } },
    { "{\"enum\":[{\"a\":1},{\"b\":null}],\"not\":{\"additionalProperties\":{"
      "\"type\":\"null\"}}}",
      { "{\"a\":1}" }, { "{\"b\":null}" } },
    { "{\"type\":\"string\",\"not\":{\"enum\":[\"a\",\"b.\"]}}",
      { "\"\"", "\"aa\"", "\"bc\"" }, { "\"a\"", "\"b.\"", "1" } },
    { "{\"type\":[\"integer\",\"boolean\"],\"not\":{\"anyOf\":[{\"const\":5.0},"
      "{\"const\":true}]}}",
      { "4", "55", "false" }, { "5", "true" } },
    { "{\"not\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\"},"
      "{\"maxLength\":2,\"type\":\"string\"}]}}",
      { "1", "{}" }, { "\"abc\"", "[]" } },
    { "{\"type\":\"number\",\"not\":{\"multipleOf\":0.5}}",
      { "0.25", "-567151668.06" }, { "0.5", "2", "-567151668291882.06" } },
    { "{\"type\":\"string\",\"not\":{\"pattern\":\"x\",\"minLength\":3}}",
      { "\"x\"", "\"abc\"" }, { "\"axb\"" } },
    { "{\"type\":\"object\",\"not\":{\"properties\":{\"a\":{\"type\":"
      "\"integer\"}}}}",
      { "{\"a\":\"\"}" }, { "{}", "{\"a\":1}", "{\"b\":1}" } },
    { "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"x\",\"y\"]}},"
      "\"required\":[\"k\"],\"if\":{\"properties\":{\"k\":{\"const\":\"x\"}}},"
      "\"then\":{\"required\":[\"v\"]},\"else\":{\"properties\":{\"v\":"
      "false}}}",
      { "{\"k\":\"x\",\"v\":1}", "{\"k\":\"y\"}", "{\"k\":\"y\",\"w\":1}" },
      { "{\"k\":\"x\"}", "{\"k\":\"y\",\"v\":1}" } },
    { "{\"type\":\"object\",\"dependentRequired\":{\"a\":[\"b\"]},"
      "\"properties\":{\"a\":{},\"b\":{}}}",
      { "{}", "{\"b\":1}", "{\"a\":1,\"b\":1}" }, { "{\"a\":1}" } },
    { "{\"type\":\"object\",\"dependencies\":{\"a\":{\"properties\":{\"b\":{"
      "\"type\":\"null\"}}}},\"properties\":{\"a\":{},\"b\":{}}}",
      { "{}", "{\"b\":1}", "{\"a\":1,\"b\":null}", "{\"a\":1}" },
      { "{\"a\":1,\"b\":1}" } },

    /* names */

    { "{\"type\":\"object\",\"properties\":{\"ab\":{\"minimum\":2}},"
      "\"patternProperties\":{\"^a\":{\"type\":\"integer\"},\"b$\":{"
      "\"maximum\":9}},\"additionalProperties\":{\"type\":\"null\"}}",
      { "{\"ab\":2}", "{\"ab\":9,\"ax\":10,\"xb\":1.5}", "{\"x\":null}",
        "{\"aab\":9}" },
      { "{\"ab\":1}", "{\"ab\":10}", "{\"ab\":2.5}", "{\"ax\":\"\"}",
        "{\"aab\":10}", "{\"x\":1}" } },
    { "{\"type\":\"object\",\"propertyNames\":{\"anyOf\":[{\"pattern\":\"^[a-c]"
      "{2}$\"},{\"const\":\"x\"}]},\"properties\":{\"y\":{}}}",
      { "{}", "{\"ab\":1,\"x\":1}" }, { "{\"a\":1}", "{\"y\":1}" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},"
      "\"minProperties\":2,\"maxProperties\":2,\"additionalProperties\":false}",
      { "{\"a\":1,\"b\":1}", "{\"a\":1,\"c\":1}", "{\"b\":1,\"c\":1}" },
      { "{}", "{\"b\":1}", "{\"a\":1,\"b\":1,\"c\":1}" } },
    { "{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":2}",
      { "{\"a\":1}", "{\"a\":1,\"b\":1}" },
      { "{}", "{\"a\":1,\"b\":1,\"c\":1}" } },

    /* integers */

    { "{\"type\":\"integer\",\"minimum\":-120,\"maximum\":98}",
      { "-120", "-99", "-1", "0", "7", "98", "89" },
      { "-121", "-200", "99", "100", "-0", "00", "1000", "-" } },
    { "{\"type\":\"integer\",\"exclusiveMinimum\":-1.5,\"maximum\":1e3}",
      { "-1", "1000", "999", "12" }, { "-2", "1001", "-10" } },
    { "{\"type\":\"integer\",\"maximum\":-9999999999999999998}",
      { "-9999999999999999998", "-9999999999999999999" },
      { "-9999999999999999997", "0", "1", "-10000000000000000000" } },
    { "{\"type\":\"integer\",\"multipleOf\":9999}",
      { "0", "9999", "-19998", "99990000000000000000000000" },
      { "1", "9998", "-0", "09999" } },
    { "{\"type\":\"integer\",\"multipleOf\":9999,\"minimum\":-10000,"
      "\"maximum\":1000000}",
      { "-9999", "0", "999900" }, { "-19998", "1009899", "1" } },

    /* draft 4 */

    { "{\"type\":\"integer\",\"minimum\":1,\"exclusiveMinimum\":true,"
      "\"maximum\":4,\"exclusiveMaximum\":false}",
      { "2", "4" }, { "1", "5" } },
    { "{\"type\":\"array\",\"items\":[{\"type\":\"integer\"},{\"type\":"
      "\"null\"}],\"additionalItems\":{\"type\":\"boolean\"}}",
      { "[]", "[1,null,true]" }, { "[null]", "[1,null,1]" } }
};


typedef struct {
    const char  *schema;
    const char  *path;
    const char  *text;          /* is in the message */
} refused_t;


static const refused_t  refused[] = {
    { "{\"$dynamicRef\":\"#\"}", "", "\"$dynamicRef\" is not supported" },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\","
      "\"items\":{\"contains\":{}}}}}", "properties.a.items",
      "\"contains\"" },
    { "{\"type\":\"strin\"}", "type", "unknown" },
    { "{\"type\":[]}", "type", "no types" },
    { "{\"enum\":[]}", "enum", "1 to" },
    { "{\"enum\":[1],\"minimum\":2}", "", "no value" },
    { "{\"enum\":[1],\"type\":\"string\"}", "", "no value" },
    { "{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", "minItems",
      "greater" },
    { "{\"type\":\"array\",\"minItems\":1,\"items\":false}", "", "no value" },
    { "{\"type\":\"array\",\"minItems\":-1}", "minItems", "count" },
    { "{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "minLength",
      "greater" },
    { "{\"type\":\"string\",\"pattern\":\"(?=a)\"}", "pattern", "lookahead" },
    { "{\"type\":\"string\",\"pattern\":\"(?<!a)\"}", "pattern",
      "lookbehind" },
    { "{\"type\":\"string\",\"pattern\":\"(a)\\\\1\"}", "pattern",
      "backreference" },
    { "{\"type\":\"string\",\"pattern\":\"\\\\bx\"}", "pattern", "\\b" },
    { "{\"type\":\"string\",\"pattern\":\"a$b\"}", "", "no value" },
    { "{\"type\":\"string\",\"pattern\":\"(\"}", "pattern", "without" },
    { "{\"type\":\"string\",\"pattern\":\"(a{1000}){1000}\"}", "pattern",
      "complex" },
    { "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "", "no value" },
    { "{\"type\":\"integer\",\"minimum\":0.1,\"maximum\":0.9}", "",
      "no value" },
    { "{\"type\":\"integer\",\"minimum\":1e30}", "", "no value" },
    { "{\"type\":\"integer\",\"multipleOf\":0}", "multipleOf", "above 0" },
    { "{\"type\":\"integer\",\"multipleOf\":99999}", "multipleOf", "digits" },
    { "{\"$ref\":\"#\"}", "", "" },
    { "{\"$ref\":\"#/$defs/a\"}", "$ref", "nothing" },
    { "{\"$ref\":\"http://x\"}", "$ref", "into this schema" },
    { "{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "", "itself" },
    { "{\"anyOf\":[]}", "anyOf", "at least one" },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},"
      "\"required\":[\"a\"]}", "", "no value" },
    { "{\"type\":\"object\",\"required\":[\"a\"],"
      "\"additionalProperties\":false}", "required", "not in" },
    { "false", "", "no value" },
    { "3", "", "not an object" }
};


static void
check_cases(const schema_case_t *c, size_t n)
{
    char               spec[4096];
    size_t             i, k;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    v = vocabulary_bytes(1);

    for (i = 0; i < n; i++) {
        (void) snprintf(spec, sizeof(spec),
                        "{\"type\":\"json_schema\",\"schema\":%s}",
                        c[i].schema);
        g = grammar_of(spec);

        for (k = 0; c[i].accepted[k] != NULL; k++) {
            if (!grammar_accepts(g, v, 1, dsa_strz(c[i].accepted[k]))) {
                fail_msg("%s rejects %s", c[i].schema, c[i].accepted[k]);
            }
        }

        for (k = 0; c[i].rejected[k] != NULL; k++) {
            if (grammar_accepts(g, v, 1, dsa_strz(c[i].rejected[k]))) {
                fail_msg("%s accepts %s", c[i].schema, c[i].rejected[k]);
            }
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


static void
test_schemas(void **state)
{
    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
test_refused(void **state)
{
    char                  spec[4096];
    size_t                i;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        (void) snprintf(spec, sizeof(spec),
                        "{\"type\":\"json_schema\",\"schema\":%s}",
                        refused[i].schema);

        if (dsa_grammar_compile(&g, dsa_strz(spec),
                                dsa_strz(DSML), &error) == 0)
        {
            fail_msg("%s is accepted", refused[i].schema);
        }

        if (strcmp(error.path, refused[i].path) != 0
            || strstr(error.message, refused[i].text) == NULL)
        {
            fail_msg("%s: \"%s\": %s", refused[i].schema, error.path,
                     error.message);
        }

        assert_int_equal(error.no_memory, 0);
    }
}


/*
 * With a pattern, each control character has one spelling: a short escape, or
 * \u00XX in lower case.
 */

static void
test_controls(void **state)
{
    char               longer[16], upper[16], shorter[8];
    uint32_t           c;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char  codes[] = "\b\f\n\r\t";
    static const char  letters[] = "bfnrt";

    v = vocabulary_bytes(0);
    g = grammar_of("{\"type\":\"json_schema\",\"schema\":{\"type\":\"string\","
                   "\"pattern\":\"^[^x]$\"}}");

    for (c = 0; c < 0x20; c++) {
        (void) snprintf(longer, sizeof(longer), "\"\\u00%02x\"", c);
        (void) snprintf(upper, sizeof(upper), "\"\\u00%02X\"", c);
        (void) snprintf(shorter, sizeof(shorter), "\"\\%c\"",
                        c != 0 && strchr(codes, (int) c) != NULL
                        ? letters[strchr(codes, (int) c) - codes] : 'x');

        assert_int_equal(grammar_accepts(g, v, 0, dsa_strz(longer)),
                         shorter[2] == 'x');
        assert_int_equal(grammar_accepts(g, v, 0, dsa_strz(shorter)),
                         shorter[2] != 'x');

        if (strcmp(longer, upper) != 0) {
            assert_int_equal(grammar_accepts(g, v, 0, dsa_strz(upper)), 0);
        }
    }

    assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("\"\\u0020\"")), 0);

    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


/*
 * What is not supported is left out of a schema that is not strict, and the
 * rest is enforced.
 */

static void
test_lenient(void **state)
{
    char                  spec[600];
    uint32_t              i, k;
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v;
    dsa_grammar_error_t   error;

    static const struct {
        const char  *schema;
        const char  *accepted;
        const char  *rejected[2];
    } t[] = {
        { "{\"type\":\"array\",\"contains\":{\"const\":1},\"maxItems\":1}",
          "[2]", { "[1,2]", "{}" } },
        { "{\"type\":\"integer\",\"multipleOf\":99999,\"minimum\":5}",
          "6", { "4", "\"\"" } },
        { "{\"type\":\"string\",\"pattern\":\"(?=a)\",\"maxLength\":2}",
          "\"bb\"", { "\"bbb\"", "1" } },
        { "{\"type\":\"string\",\"pattern\":\"(a|b)*a(a|b){15}\"}",
          "\"\"", { "1", "{}" } },
        { "{\"type\":\"array\",\"not\":{\"items\":{}},\"maxItems\":1}",
          "[1]", { "[1,1]", "1" } },
        { "{\"type\":\"array\",\"maxItems\":1,\"not\":{\"items\":{},"
          "\"uniqueItems\":true}}",
          "[1]", { "[1,1]", "1" } },
        { "{\"type\":\"array\",\"items\":{\"$ref\":\"other.json\"},"
          "\"maxItems\":1}",
          "[{}]", { "[1,2]", "1" } },
        { "{\"type\":\"object\",\"required\":[\"a\"],\"minProperties\":3}",
          "{\"a\":1}", { "{}", "{\"b\":1}" } },
        { "{\"type\":\"object\",\"maxProperties\":300,\"properties\":"
          "{\"a\":{\"type\":\"null\"}}}",
          "{\"a\":null}", { "{\"a\":1}", "[]" } }
    };

    v = vocabulary_bytes(0);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        (void) snprintf(spec, sizeof(spec), "{\"type\":\"json_schema\","
                        "\"strict\":true,\"schema\":%s}", t[i].schema);

        if (dsa_grammar_compile(&g, dsa_strz(spec), dsa_strz(DSML), &error)
            == 0)
        {
            fail_msg("%s is strict", t[i].schema);
        }

        (void) snprintf(spec, sizeof(spec), "{\"type\":\"json_schema\","
                        "\"strict\":false,\"schema\":%s}", t[i].schema);

        g = grammar_of(spec);
        assert_int_equal(dsa_grammar_skipped(g), 1);
        assert_int_equal(grammar_accepts(g, v, 0, dsa_strz(t[i].accepted)), 1);

        for (k = 0; k < 2; k++) {
            if (grammar_accepts(g, v, 0, dsa_strz(t[i].rejected[k]))) {
                fail_msg("%s accepts %s", t[i].schema, t[i].rejected[k]);
            }
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


static void
test_begin_and_drafts(void **state)
{
    uint32_t           i, mask[(BYTES_SIZE + 31) / 32];
    dsa_matcher_t     *m;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    v = vocabulary_bytes(1);
    g = grammar_of("{\"type\":\"json_object\"}");
    m = dsa_matcher_create(g, v, dsa_strz("</think>"));
    assert_non_null(m);

    memset(mask, 0xff, sizeof(mask));
    dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));

    for (i = 0; i < BYTES_SIZE; i++) {
        assert_int_equal(mask[i / 32] >> i % 32 & 1, i != BYTES_END);
    }

    assert_int_equal(dsa_matcher_accept(m, 'x'), 0);
    assert_int_equal(dsa_matcher_accept(m, BYTES_END), -1);
    assert_int_equal(dsa_matcher_accept(m, BYTES_THINK), 0);
    assert_int_equal(dsa_matcher_complete(m), 0);

    memset(mask, 0xff, sizeof(mask));
    dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));

    for (i = 0; i < BYTES_SIZE; i++) {
        assert_int_equal(mask[i / 32] >> i % 32 & 1, i == '{');
    }

    assert_int_equal(dsa_matcher_accept(m, '['), -1);

    /* a whole answer and its end as drafts */

    assert_int_equal(dsa_matcher_draft(m, '['), -1);
    assert_int_equal(dsa_matcher_draft(m, '{'), 0);
    assert_int_equal(dsa_matcher_draft(m, '}'), 0);
    assert_int_equal(dsa_matcher_complete(m), 1);
    assert_int_equal(dsa_matcher_draft(m, '}'), -1);
    assert_int_equal(dsa_matcher_draft(m, BYTES_END), 0);
    assert_int_equal(dsa_matcher_complete(m), 1);

    /* more of them than there was room for at first */

    for (i = 0; i < 20; i++) {
        assert_int_equal(dsa_matcher_draft(m, BYTES_END), 0);
    }

    dsa_matcher_undo(m);
    assert_int_equal(dsa_matcher_complete(m), 0);
    assert_int_equal(dsa_matcher_accept(m, '}'), -1);
    assert_int_equal(dsa_matcher_accept(m, '{'), 0);
    assert_int_equal(dsa_matcher_accept(m, '"'), 0);
    dsa_matcher_free(m);

    /* drafts that begin before the grammar does */

    m = dsa_matcher_create(g, v, dsa_strz("</think>"));
    assert_non_null(m);
    assert_int_equal(dsa_matcher_draft(m, 'x'), 0);
    assert_int_equal(dsa_matcher_draft(m, BYTES_THINK), 0);
    assert_int_equal(dsa_matcher_draft(m, '{'), 0);
    assert_int_equal(dsa_matcher_draft(m, '['), -1);
    dsa_matcher_undo(m);
    assert_int_equal(dsa_matcher_accept(m, '['), 0);

    dsa_matcher_free(m);
    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_schemas),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_begin_and_drafts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
