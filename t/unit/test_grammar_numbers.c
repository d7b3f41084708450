
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Bounds and multiples of numbers, against arithmetic with hundredths.
 */


#include "base/buf.h"
#include "grammar.h"


#define SCHEMAS     300
#define LARGEST     1300            /* hundredths that are checked */


typedef struct {
    int     present;
    int     value;                  /* hundredths */
} bound_t;


static void check_bounds(dsa_vocabulary_t *v);
static void check_value(dsa_grammar_t *g, dsa_vocabulary_t *v,
    const char *spec, int value, uint32_t digits, int expected);
static void hundredths(dsa_buf_t *b, int value, uint32_t digits);


static uint64_t  seed = 20260104;


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static void
check_bounds(dsa_vocabulary_t *v)
{
    int                   integer, x, ok, any;
    uint32_t              i, digits;
    bound_t               bound[5];
    dsa_buf_t             spec;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const char *const  names[] = {
        "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum",
        "multipleOf"
    };

    memset(bound, 0, sizeof(bound));
    memset(&spec, 0, sizeof(dsa_buf_t));

    integer = (int) dice(2);

    dsa_buf_printf(&spec, "{\"type\":\"json_schema\",\"schema\":{\"type\":"
                   "\"%s\"", integer ? "integer" : "number");

    for (i = 0; i < 5; i++) {

        if (dice(3) != 0) {
            continue;
        }

        x = (int) dice(i == 4 ? 60 : 2 * LARGEST) + 1;
        x = i == 4 ? x * (integer ? 25 : 1) : x - LARGEST;

        bound[i].present = 1;
        bound[i].value = x;

        dsa_buf_printf(&spec, ",\"%s\":", names[i]);
        hundredths(&spec, x, x % 100 == 0 ? dice(2) * 2 : 2);
    }

    dsa_buf_addz(&spec, "}}");
    dsa_buf_add(&spec, "", 1);

    if (dsa_grammar_compile(&g, dsa_str(spec.data, spec.len - 1),
                            dsa_strz(DSML), &error)
        != 0)
    {
        g = NULL;

        if (strstr(error.message, "no value") == NULL) {
            fail_msg("%s: \"%s\": %s", spec.data, error.path, error.message);
        }
    }

    any = 0;

    for (x = -LARGEST; x <= LARGEST; x++) {
        ok = (!bound[0].present || x >= bound[0].value)
             && (!bound[1].present || x > bound[1].value)
             && (!bound[2].present || x <= bound[2].value)
             && (!bound[3].present || x < bound[3].value)
             && (!bound[4].present || x % bound[4].value == 0)
             && (!integer || x % 100 == 0);

        /* an integer is written without a fraction */

        digits = integer ? 0 : x % 100 == 0 ? dice(3) : x % 10 == 0
                 ? 1 + dice(2) : 2;

        if (integer && x % 100 != 0) {
            continue;
        }

        any |= ok;

        if (g != NULL) {
            check_value(g, v, spec.data, x, digits, ok);
        }
    }

    if (g == NULL && any) {
        fail_msg("%s is refused", spec.data);
    }

    dsa_grammar_free(g);
    dsa_buf_free(&spec);
}


static void
check_value(dsa_grammar_t *g, dsa_vocabulary_t *v, const char *spec,
    int value, uint32_t digits, int expected)
{
    dsa_buf_t  text;

    memset(&text, 0, sizeof(dsa_buf_t));

    hundredths(&text, value, digits);

    if (grammar_accepts(g, v, 1, dsa_str(text.data, text.len)) != expected) {
        fail_msg("%s: %.*s: expected %d", spec, (int) text.len, text.data,
                 expected);
    }

    dsa_buf_free(&text);
}


static void
hundredths(dsa_buf_t *b, int value, uint32_t digits)
{
    int  magnitude;

    magnitude = value < 0 ? -value : value;

    dsa_buf_printf(b, "%s%d", value < 0 ? "-" : "", magnitude / 100);

    if (digits == 1) {
        dsa_buf_printf(b, ".%d", magnitude / 10 % 10);

    } else if (digits == 2) {
        dsa_buf_printf(b, ".%02d", magnitude % 100);
    }
}


static void
test_numbers(void **state)
{
    uint32_t           i;
    dsa_vocabulary_t  *v;

    v = vocabulary_bytes(1);

    for (i = 0; i < SCHEMAS; i++) {
        check_bounds(v);
    }

    dsa_vocabulary_free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_numbers)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
