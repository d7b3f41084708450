
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Reading generation_config.json: its values, the defaults of missing fields,
 * and an error for each wrong value.
 */


#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/checkpoint/generation_config.h"


#define T   "\"temperature\" is "
#define P   "\"top_p\" is "
#define TE  "; expected a number from 0 to 2"
#define PE  "; expected a number above 0 and up to 1"


static char  dir[] = "/tmp/dsa-test-XXXXXX";


static int
setup(void **state)
{
    return mkdtemp(dir) != NULL ? 0 : -1;
}


static int
teardown(void **state)
{
    return rmdir(dir);
}


static void
test_values(void **state)
{
    size_t                   i;
    dsa_err_t                err;
    dsa_generation_config_t  g;

    static const struct {
        const char  *json;
        float        temperature;
        float        top_p;
    } t[] = {
        { "{}", 1, 1 },
        { "{\"temperature\": null, \"top_p\": null, \"do_sample\": null}",
          1, 1 },
        { "{\"temperature\": 0.6}", 0.6f, 1 },
        { "{\"top_p\": 0.95}", 1, 0.95f },

        /* as published with DeepSeek-V3.2 */

        { "{\"_from_model_config\": true, \"bos_token_id\": 0, "
          "\"eos_token_id\": 1, \"do_sample\": true, \"temperature\": 1.0, "
          "\"top_p\": 0.95, \"transformers_version\": \"4.44.2\"}",
          1, 0.95f },

        { "{\"temperature\": 0, \"top_p\": 1}", 0, 1 },
        { "{\"temperature\": 2, \"top_p\": 1.0}", 2, 1 },
        { "{\"temperature\": 0.5, \"do_sample\": true}", 0.5f, 1 },
        { "{\"do_sample\": false}", 0, 1 },
        { "{\"do_sample\": false, \"temperature\": 0.7, \"top_p\": 0.8}",
          0, 0.8f },

        /* not 0, which would exclude every token */

        { "{\"top_p\": 1e-300}", 1, FLT_MIN },
        { "{\"temperature\": 1e-300}", 0, 1 },

        { "{\"eos_token_id\": [1, 2], \"top_k\": {\"top_p\": 7}, "
          "\"Temperature\": 9}", 1, 1 }
    };

    static const dsa_ends_t  published = { { 154820, 154827, 154829 }, 3 };
    static const char        glm[] = "{\"temperature\": 1.0, \"eos_token_id\": "
                                     "[154820, 154827, 154829]}";

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        if (dsa_generation_config_parse(&g, "g", t[i].json, strlen(t[i].json),
                                        &err)
            != DSA_OK)
        {
            fail_msg("%s: %s", t[i].json, err.text);
        }

        if (g.temperature != t[i].temperature || g.top_p != t[i].top_p) {
            fail_msg("%s: %g and %g", t[i].json, (double) g.temperature,
                     (double) g.top_p);
        }
    }

    assert_int_equal(dsa_generation_config_parse(&g, "g", "{}", 2, &err),
                     DSA_OK);
    assert_int_equal(g.ends.n, 0);

    assert_int_equal(dsa_generation_config_parse(&g, "g", glm, strlen(glm),
                                                 &err), DSA_OK);
    assert_memory_equal(&g.ends.n, &published.n, sizeof(g.ends.n));
    assert_memory_equal(g.ends.id, published.id, sizeof(uint32_t) * 3);
}


static void
test_rejected(void **state)
{
    size_t                   i;
    dsa_err_t                err;
    dsa_generation_config_t  g;

    static const struct {
        const char  *json;
        const char  *want;
    } t[] = {
        { "{\"temperature\": -0.1}", T "-0.1" TE },
        { "{\"temperature\": 2.01}", T "2.01" TE },
        { "{\"temperature\": 1e999}", T "1e999" TE },
        { "{\"temperature\": 99999999999999999999}",
          T "99999999999999999999" TE },
        { "{\"temperature\": 1234567890123456789012345678901234567890123456789"
          "01234567890123456789}",
          T "123456789012345678901234567890123456789012345678901234567890..."
          TE },
        { "{\"temperature\": \"1\"}", T "\"1\"" TE },
        { "{\"temperature\": true}", T "true" TE },
        { "{\"temperature\": [1]}", T "[1]" TE },
        { "{\"eos_token_id\": [1, \"2\"]}", "\"eos_token_id\" is [1, \"2\"]; "
          "expected an integer from 0 to 16777215, or a list of 1 to 16 of "
          "them" },
        { "{\"top_p\": 0}", P "0" PE },
        { "{\"top_p\": -1}", P "-1" PE },
        { "{\"top_p\": 1.0001}", P "1.0001" PE },
        { "{\"top_p\": {}}", P "{}" PE },
        { "{\"do_sample\": 1}", "\"do_sample\" is 1; expected true or "
                                "false" },
        { "{\"do_sample\": \"false\"}", "\"do_sample\" is \"false\"; " },

        /* the temperature is unused here, but checked */

        { "{\"do_sample\": false, \"temperature\": 3}", T "3" TE },

        { "", "" },
        { "{", "" },
        { "{\"temperature\": 1,}", "" },
        { "{\"temperature\": NaN}", "" },
        { "{} {}", "" },
        { "{\"x\": \"\xff\"}", "" },
        { "[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]", "" },
        { "[]", "the text is not a JSON object" },
        { "null", "the text is not a JSON object" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        err.text[0] = '\0';

        if (dsa_generation_config_parse(&g, "g.json", t[i].json,
                                        strlen(t[i].json), &err)
            != DSA_ERROR)
        {
            fail_msg("accepted: %s", t[i].json);
        }

        if (strncmp(err.text, "g.json: ", 8) != 0 || err.text[8] == '\0'
            || strncmp(err.text + 8, t[i].want, strlen(t[i].want)) != 0)
        {
            fail_msg("%s: %s", t[i].json, err.text);
        }
    }
}


static void
test_file(void **state)
{
    char                     path[64], *far;
    FILE                    *f;
    dsa_err_t                err;
    dsa_generation_config_t  g;

    (void) snprintf(path, sizeof(path), "%s/generation_config.json", dir);

    assert_int_equal(dsa_generation_config_read(&g, dir, &err), DSA_OK);
    assert_true(g.temperature == 1 && g.top_p == 1);

    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("{\"temperature\": 0.25, \"top_p\": 0.5}", f) >= 0);
    assert_int_equal(fclose(f), 0);

    assert_int_equal(dsa_generation_config_read(&g, dir, &err), DSA_OK);
    assert_true(g.temperature == 0.25f && g.top_p == 0.5f);

    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("{\"top_p\": 2}", f) >= 0);
    assert_int_equal(fclose(f), 0);

    assert_int_equal(dsa_generation_config_read(&g, dir, &err), DSA_ERROR);
    assert_memory_equal(err.text, path, strlen(path));
    assert_string_equal(err.text + strlen(path), ": " P "2" PE);
    assert_int_equal(unlink(path), 0);

    /* a file that cannot be read is an error, unlike one that is missing */

    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(dsa_generation_config_read(&g, dir, &err), DSA_ERROR);
    assert_memory_equal(err.text, path, strlen(path));
    assert_int_equal(unlink(path), 0);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(dsa_generation_config_read(&g, dir, &err), DSA_ERROR);
    assert_memory_equal(err.text, path, strlen(path));
    assert_int_equal(rmdir(path), 0);

    far = malloc(5001);
    assert_non_null(far);
    memset(far, 'x', 5000);
    far[5000] = '\0';
    assert_int_equal(dsa_generation_config_read(&g, far, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "5000 bytes"));
    free(far);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_file)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
