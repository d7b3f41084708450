
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Prices and amounts: which texts are read, and how amounts are printed.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/money.h"


typedef struct {
    const char  *text;
    int64_t      value;             /* -1: it is refused */
} sample_t;


static const sample_t  prices[] = {
    { "0.28", 280000 },
    { "0.028", 28000 },
    { "3", 3000000 },
    { "0", 0 },
    { "0.000001", 1 },
    { "1000000", 1000000000000LL },
    { "1000000.000001", -1 },
    { "1000001", -1 },
    { "0.0000001", -1 },
    { "", -1 }, { ".", -1 }, { "1.", -1 }, { ".5", -1 }, { "-1", -1 },
    { "1,5", -1 }, { "1e3", -1 }, { " 1", -1 }, { "1.2.3", -1 },
    { "99999999999999999999999999", -1 }
};


static const sample_t  amounts[] = {
    { "10", 10 * DSA_MONEY_UNIT },
    { "0.000000000001", 1 },
    { "0.0000000000001", -1 },
    { "1000000", 1000000 * DSA_MONEY_UNIT },
    { "1000000.1", -1 },
    { "9223372036854775808", -1 },
    { "1.x", -1 }
};


static void
test_read(void **state)
{
    int        rc;
    size_t     i;
    int64_t    v;
    dsa_err_t  err;

    (void) state;

    for (i = 0; i < sizeof(prices) / sizeof(prices[0]); i++) {
        rc = dsa_money_price(dsa_str(prices[i].text, strlen(prices[i].text)),
                             &v, &err);
        assert_int_equal(rc == DSA_OK ? v : -1, prices[i].value);
    }

    for (i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
        rc = dsa_money_amount(dsa_str(amounts[i].text,
                                      strlen(amounts[i].text)), &v, &err);
        assert_int_equal(rc == DSA_OK ? v : -1, amounts[i].value);
    }
}


static void
printed(int64_t amount, int least, const char *want)
{
    char    text[DSA_MONEY_LEN];
    size_t  n;

    n = dsa_money_print(text, amount, least);

    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, n);
}


static void
test_print(void **state)
{
    (void) state;

    printed(0, 0, "0");
    printed(0, 2, "0.00");
    printed(1, 0, "0.000000000001");
    printed(-1, 0, "-0.000000000001");
    printed(DSA_MONEY_UNIT, 0, "1");
    printed(DSA_MONEY_UNIT * 3 / 2, 2, "1.50");
    printed(DSA_MONEY_UNIT * 3 / 2, 0, "1.5");
    printed(110 * DSA_MONEY_UNIT, 2, "110.00");
    printed(4200000000, 0, "0.0042");
    printed(4200000000, 12, "0.004200000000");
    printed(INT64_MAX, 0, "9223372.036854775807");
    printed(INT64_MIN, 0, "-9223372.036854775808");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_print)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
