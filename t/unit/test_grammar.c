
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/buf.h"
#include "grammar.h"


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


/* A model whose control token has another name, with special characters. */

static void
test_tools_control(void **state)
{
    size_t                i;
    uint32_t              end, mask;
    dsa_matcher_t        *m;
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v, *few;
    dsa_grammar_error_t   error;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":true,"
        "\"parameters\":{\"type\":\"object\",\"properties\":{"
        "\"a\":{\"type\":\"string\"}},\"required\":[\"a\"],"
        "\"additionalProperties\":false}}]}";

#define OTHER   "[C.]"
#define FRONT                                                                 \
    "\n\n<" OTHER "function_calls>\n"                                         \
    "<" OTHER "invoke name=\"f\">\n<" OTHER                                   \
    "parameter name=\"a\" string=\"true\">"
#define BACK                                                                  \
    "</" OTHER "parameter>\n</" OTHER "invoke>\n</" OTHER "function_calls>"

    static const struct {
        const char  *text;
        int          accepted;
    } t[] = {
        { FRONT BACK, 1 },
        { FRONT "C.CC" BACK, 1 },
        { FRONT "[C]" BACK, 1 },
        { FRONT "｜DSML｜" BACK, 1 },
        { FRONT "x" OTHER BACK, 0 },
        { "\n\n<｜DSML｜function_calls>\n", 0 }
    };

    assert_int_equal(dsa_grammar_compile(&g, dsa_strz(spec), dsa_strz(OTHER),
                                         &error), 0);

    v = vocabulary_bytes(0);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        if (grammar_accepts(g, v, 0, dsa_strz(t[i].text)) != t[i].accepted) {
            fail_msg("%s", t[i].text);
        }
    }

    /* the token itself, and not that of another model */

    few = dsa_vocabulary_create(4);
    assert_non_null(few);
    end = 3;
    assert_int_equal(dsa_vocabulary_add(few, 0, dsa_strz("\n\n<")), 0);
    assert_int_equal(dsa_vocabulary_add_control(few, 1, dsa_strz(OTHER)), 0);
    assert_int_equal(dsa_vocabulary_add_control(few, 2, dsa_strz(DSML)), 0);
    assert_int_equal(dsa_vocabulary_add_control(few, 3, dsa_strz("<end>")), 0);
    assert_int_equal(dsa_vocabulary_end(few, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(few), 0);

    m = dsa_matcher_create(g, few, dsa_str(NULL, 0));
    assert_non_null(m);
    assert_int_equal(dsa_matcher_accept(m, 0), 0);
    mask = 0xf;
    dsa_matcher_mask(m, &mask, 1);
    assert_int_equal(mask, 1 << 1);
    assert_int_equal(dsa_matcher_accept(m, 2), -1);
    assert_int_equal(dsa_matcher_accept(m, 1), 0);
    dsa_matcher_free(m);

    dsa_grammar_free(g);
    dsa_vocabulary_free(few);
    dsa_vocabulary_free(v);
}


#define CALLS      "\n\n<｜DSML｜function_calls>\n"
#define CALLS_END  "</｜DSML｜function_calls>"
#define INVOKE(n)  "<｜DSML｜invoke name=\"" n "\">\n"
#define INVOKE_END "</｜DSML｜invoke>\n"
#define PARAM(n, s, v)                                                        \
    "<｜DSML｜parameter name=\"" n "\" string=\"" s "\">" v "</｜DSML｜parameter>\n"

static void
check_tools(int control)
{
    size_t             i;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":true,"
        "\"parameters\":{\"type\":\"object\",\"properties\":{"
        "\"city\":{\"type\":\"string\"},"
        "\"unit\":{\"anyOf\":[{\"enum\":[\"C\",\"F\"]},{\"type\":\"null\"}]},"
        "\"days\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},"
        "\"required\":[\"city\",\"unit\"],\"additionalProperties\":false}},"
        "{\"name\":\"g\",\"strict\":false,\"parameters\":{\"allOf\":[]}}]}";

    static const char  many[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\","
        "\"text\":true,\"tools\":[{\"name\":\"g\"}]}";

    static const char *const  accepted[] = {
        CALLS INVOKE("f") PARAM("city", "true", "a \"b\"\n</x>\xc3\xa9")
        PARAM("unit", "true", "C") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "")
        PARAM("unit", "false", "null") PARAM("days", "false", "[1, 2]")
        INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END CALLS_END,
        CALLS INVOKE("g") PARAM("a", "true", "x") PARAM("b", "false", "{}")
        INVOKE_END CALLS_END
    };

    static const char *const  rejected[] = {
        "", "text",
        CALLS CALLS_END,
        CALLS INVOKE("h") "\n" INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "x") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "x")
        PARAM("unit", "true", "K") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "x")
        PARAM("unit", "false", "\"C\"") INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END,
        CALLS INVOKE("g") PARAM("b", "false", "{") INVOKE_END CALLS_END
    };

    v = vocabulary_bytes(control);
    g = grammar_of(spec);

    for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        if (!grammar_accepts(g, v, control, dsa_strz(accepted[i]))) {
            fail_msg("rejects %s", accepted[i]);
        }
    }

    for (i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (grammar_accepts(g, v, control, dsa_strz(rejected[i]))) {
            fail_msg("accepts %s", rejected[i]);
        }
    }

    dsa_grammar_free(g);

    g = grammar_of(many);

    assert_int_equal(grammar_accepts(g, v, control, dsa_strz("")), 1);
    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz("hello\n\n<b>")), 1);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz(
        "hello" CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END)), 1);
    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz("hello" CALLS)), 0);
    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz(CALLS CALLS_END)), 0);

    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


/* Calls, or one value of a schema; each has its own root of $ref. */

static void
check_union(int control)
{
    size_t             i;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","
        "\"properties\":{\"x\":{\"$ref\":\"#/$defs/d\"}},\"required\":[\"x\"],"
        "\"additionalProperties\":false,\"$defs\":{\"d\":{\"enum\":[1,2]}}}},"
        "\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":{"
        "\"type\":\"object\",\"properties\":{\"y\":{\"$ref\":\"#/$defs/d\"}},"
        "\"required\":[\"y\"],\"additionalProperties\":false,"
        "\"$defs\":{\"d\":{\"enum\":[7]}}}},{\"name\":\"g\"}]}";

    static const char  object[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\","
        "\"text\":{\"type\":\"json_object\"},\"tools\":[{\"name\":\"g\"}]}";

    static const char *const  accepted[] = {
        "{\"x\":1}", "{\"x\": 2}",
        CALLS INVOKE("f") PARAM("y", "false", "7") INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END CALLS_END
    };

    static const char *const  rejected[] = {
        "", "text", "{\"x\":7}", "{}", "[]", "{\"y\":7}",
        CALLS INVOKE("f") PARAM("y", "false", "1") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("x", "false", "1") INVOKE_END CALLS_END,
        "{\"x\":1}" CALLS INVOKE("g") "\n" INVOKE_END CALLS_END,
        "text" CALLS INVOKE("g") "\n" INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END CALLS_END "{\"x\":1}",
        CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END
    };

    v = vocabulary_bytes(control);
    g = grammar_of(spec);

    for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        if (!grammar_accepts(g, v, control, dsa_strz(accepted[i]))) {
            fail_msg("rejects %s", accepted[i]);
        }
    }

    for (i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (grammar_accepts(g, v, control, dsa_strz(rejected[i]))) {
            fail_msg("accepts %s", rejected[i]);
        }
    }

    dsa_grammar_free(g);

    g = grammar_of(object);

    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz("{\"a\":[null]}")), 1);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz(
        CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END)), 1);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz("[]")), 0);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz("")), 0);

    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


/*
 * Parameters that are one of several closed objects, of which the first two
 * have no name in common, and the last ones have.
 */

static void
test_closed_parameters(void **state)
{
    size_t             i, k;
    dsa_buf_t          text;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char *const  specs[] = {
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "false,\"tools\":[{"
        "\"name\":\"f\",\"strict\":true,\"parameters\":{\"oneOf\":["
        CLOSED("\"a\":{\"type\":\"integer\"}") ","
        CLOSED("\"b\":{\"type\":\"integer\"}") "]}}]}",

        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "false,\"tools\":[{"
        "\"name\":\"f\",\"strict\":true,\"parameters\":{\"oneOf\":["
        CLOSED("\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}") ","
        CLOSED("\"b\":{\"type\":\"null\"}") "]}}]}"
    };

    static const struct {
        const char  *call;
        int          accepted[2];
    } t[] = {
        { INVOKE("f") PARAM("a", "false", "1") INVOKE_END, { 1, 0 } },
        { INVOKE("f") PARAM("b", "false", "1") INVOKE_END, { 1, 1 } },
        { INVOKE("f") PARAM("b", "false", "null") INVOKE_END, { 0, 1 } },
        { INVOKE("f") PARAM("a", "false", "1") PARAM("b", "false", "1")
          INVOKE_END, { 0, 1 } },
        { INVOKE("f") "\n" INVOKE_END, { 0, 0 } }
    };

    v = vocabulary_bytes(0);

    for (k = 0; k < 2; k++) {
        g = grammar_of(specs[k]);

        for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
            memset(&text, 0, sizeof(dsa_buf_t));
            dsa_buf_printf(&text, "%s%s%s", CALLS, t[i].call, CALLS_END);

            if (grammar_accepts(g, v, 0, dsa_str(text.data, text.len))
                != t[i].accepted[k])
            {
                fail_msg("%s: %s", specs[k], t[i].call);
            }

            dsa_buf_free(&text);
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


/* What is wrong in a union has the path of the schema that it is in. */

static void
test_union_errors(void **state)
{
    char                  spec[600];
    size_t                i;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const struct {
        const char  *text;
        const char  *parameters;
        const char  *path;
        const char  *message;
    } t[] = {
        { "{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","
          "\"properties\":{\"a\":{\"contains\":{}}}}}", "{\"type\":\"object\"}",
          "properties.a", "\"contains\"" },
        { "{\"type\":\"json_schema\",\"schema\":{\"contains\":{}}}",
          "{\"type\":\"object\"}", "", "\"contains\"" },
        { "{\"type\":\"json_schema\",\"schema\":{\"type\":\"null\"}}",
          "{\"type\":\"object\",\"properties\":{\"a\":{\"contains\":{}}}}",
          "tools[0].function.parameters.properties.a", "\"contains\"" },
        { "{\"type\":\"json_schema\"}", "{\"type\":\"object\"}", "",
          "there is no schema" },
        { "{\"type\":\"tools\"}", "{\"type\":\"object\"}", "text",
          "expected json_object or json_schema" },
        { "7", "{\"type\":\"object\"}", "text",
          "expected a boolean or a spec" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        (void) snprintf(spec, sizeof(spec), "{\"type\":\"tools\",\"syntax\":"
                        "\"dsml\",\"calls\":\"one\",\"text\":%s,\"tools\":[{"
                        "\"name\":\"f\",\"strict\":true,\"parameters\":%s}]}",
                        t[i].text, t[i].parameters);

        assert_int_equal(dsa_grammar_compile(&g, dsa_strz(spec),
                                             dsa_strz(DSML), &error),
                         DSA_ERROR);
        assert_string_equal(error.path, t[i].path);

        if (strstr(error.message, t[i].message) == NULL) {
            fail_msg("%s: %s", spec, error.message);
        }
    }
}


static void
test_union(void **state)
{
    check_union(1);
    check_union(0);
}


/*
 * Of a tool that is not strict, what cannot be enforced is left out, and the
 * rest is enforced; a strict one with the same string is refused.
 */

#define LOOKAHEAD                                                             \
    "\"parameters\":{\"type\":\"object\",\"properties\":{"                   \
    "\"a\":{\"type\":\"string\",\"pattern\":\"(?=x)\"},"                     \
    "\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"],"              \
    "\"additionalProperties\":false}"

static void
test_tools_lenient(void **state)
{
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v;
    dsa_grammar_error_t   error;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":false,"
        LOOKAHEAD "},{\"name\":\"g\",\"strict\":false,\"parameters\":"
        "{\"type\":\"object\",\"properties\":{\"<\":{}}}}]}";

    static const char  one[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":false,"
        LOOKAHEAD "}]}";

    static const char  strict[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":false,"
        LOOKAHEAD "},{\"name\":\"g\",\"strict\":true," LOOKAHEAD "}]}";

    static const char  good[] =
        CALLS INVOKE("f") PARAM("a", "true", "y") PARAM("b", "false", "1")
        INVOKE_END CALLS_END;

    static const char  bad[] =
        CALLS INVOKE("f") PARAM("a", "true", "y") PARAM("b", "false", "true")
        INVOKE_END CALLS_END;

    v = vocabulary_bytes(1);
    g = grammar_of(one);

    assert_int_equal(dsa_grammar_skipped(g), 1);
    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(good)), 1);
    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(bad)), 0);
    dsa_grammar_free(g);

    /* a name that no parameter can have: the arguments are any JSON then */

    g = grammar_of(spec);

    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(good)), 1);
    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(bad)), 1);
    dsa_grammar_free(g);

    assert_int_equal(dsa_grammar_compile(&g, dsa_strz(strict),
                                         dsa_strz("｜DSML｜"), &error),
                     DSA_ERROR);
    assert_string_equal(error.path, "tools[1].function.parameters.properties."
                                    "a.pattern");

    dsa_vocabulary_free(v);
}


static void
test_tools(void **state)
{
    check_tools(1);
}


/* A tokenizer without the control token spells its name. */

static void
test_tools_spelled(void **state)
{
    check_tools(0);
}


/*
 * A schema that is not strict and cannot be enforced, for whatever reason, is
 * any object; a tool is refused nevertheless.
 */

static void
test_optional(void **state)
{
    char                  spec[1000];
    uint32_t              i, k;
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v;
    dsa_grammar_error_t   error;

    /* a type, a name, no value, no end, too deep */

    static const char *const  bad[] = {
        "{\"properties\":{\"a\":{\"type\":7}}}",
        "{\"patternProperties\":{\"(\":{}}}",
        "false",
        "{\"$ref\":\"#\"}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},"
        "\"required\":[\"a\"]}"
    };

    static const char *const  around[] = {
        "%s",
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "%s,\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":{"
        "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}]}"
    };

    v = vocabulary_bytes(0);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (k = 0; k < 2; k++) {
            char  text[500];

            (void) snprintf(text, sizeof(text), "{\"type\":\"json_schema\","
                            "\"strict\":true,\"schema\":%s}", bad[i]);
            (void) snprintf(spec, sizeof(spec), around[k], text);

            if (dsa_grammar_compile(&g, dsa_strz(spec),
                                    dsa_strz(DSML), &error) == 0)
            {

                /* beside tools, a text without a value is no fault */

                assert_int_equal(k, 1);
                dsa_grammar_free(g);

            } else {
                assert_int_equal(error.no_memory, 0);
            }

            (void) snprintf(text, sizeof(text), "{\"type\":\"json_schema\","
                            "\"strict\":false,\"schema\":%s}", bad[i]);
            (void) snprintf(spec, sizeof(spec), around[k], text);

            if (k == 1 && (i == 2 || i == 4)) {
                continue;
            }

            g = grammar_of(spec);
            assert_int_equal(grammar_accepts(g, v, 0,
                                 dsa_strz("{\"x\":[1]}")), 1);
            assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("[1]")), 0);
            assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("\"a\"")), 0);
            assert_int_equal(dsa_grammar_skipped(g), 1);
            dsa_grammar_free(g);
        }
    }

    /* a schema that can be enforced is, and the tool has its path */

    g = grammar_of("{\"type\":\"json_schema\",\"strict\":false,\"schema\":"
                   "{\"const\":7}}");
    assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("7")), 1);
    assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("{}")), 0);
    assert_int_equal(dsa_grammar_skipped(g), 0);
    dsa_grammar_free(g);

    assert_int_equal(dsa_grammar_compile(&g, dsa_strz(
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "{\"type\":\"json_schema\",\"strict\":false,\"schema\":{\"not\":1}},"
        "\"tools\":[{\"name\":\"f\"},{\"name\":\"g\",\"strict\":true,"
        "\"parameters\":{\"properties\":{\"a\":{\"unevaluatedItems\":1}}}}]}"),
        dsa_strz(DSML), &error), -1);
    assert_string_equal(error.path,
                        "tools[1].function.parameters.properties.a");
    assert_non_null(strstr(error.message, "\"unevaluatedItems\""));

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
        cmocka_unit_test(test_tools_control),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_tools_lenient),
        cmocka_unit_test(test_tools_spelled),
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_closed_parameters),
        cmocka_unit_test(test_union_errors),
        cmocka_unit_test(test_optional),
        cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_begin_and_drafts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
