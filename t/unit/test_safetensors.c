
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Reading images of safetensors files, valid ones and one for each error.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/checkpoint/safetensors_write.h"


/* An image from malloc(): length, header and n bytes 0, 1, 2, ... */

static uint8_t *
image(const char *header, size_t n, uint64_t *size)
{
    size_t    i;
    uint8_t  *p;
    uint64_t  len;

    len = strlen(header);
    *size = 8 + len + n;

    p = malloc(*size);
    assert_non_null(p);

    memcpy(p, &len, 8);
    memcpy(p + 8, header, len);

    for (i = 0; i < n; i++) {
        p[8 + len + i] = (uint8_t) i;
    }

    return p;
}


/* Three tensors of 4 + 6 + 5 bytes, and one of no bytes. */

static const char  good[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
    "\"c\":{\"shape\":[5,1,1,1],\"data_offsets\":[10,15],"
    "\"dtype\":\"F8_E4M3\"},"
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[1,3],\"data_offsets\":[4,10]},"
    "\"\\u00e9/\\\"\":{\"dtype\":\"I64\",\"shape\":[7,0],"
    "\"data_offsets\":[0,0]}}   ";


static void
test_good(void **state)
{
    uint8_t                  *p;
    uint64_t                  size, len;
    dsa_st_t                 *st;
    dsa_err_t                 err;
    dsa_str_t                 header;
    const dsa_st_tensor_t    *t;

    p = image(good, 15, &size);
    len = strlen(good);
    assert_int_equal(len % 8, 0);

    st = dsa_st_read("i", p, size, &err);
    assert_non_null(st);
    assert_int_equal(dsa_st_count(st), 4);

    header = dsa_st_header(st);
    assert_int_equal(header.len, len);
    assert_memory_equal(header.data, good, len);

    t = dsa_st_find(st, dsa_strz("a"));
    assert_non_null(t);
    assert_true(dsa_str_eqz(t->name, "a"));
    assert_true(dsa_str_eqz(t->dtype, "F32"));
    assert_int_equal(t->n_dims, 0);
    assert_int_equal(t->size, 4);
    assert_ptr_equal(t->data, p + 8 + len);

    t = dsa_st_find(st, dsa_strz("b"));
    assert_non_null(t);
    assert_true(dsa_str_eqz(t->dtype, "BF16"));
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->shape[0], 1);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->size, 6);
    assert_memory_equal(t->data, "\4\5\6\7\10\11", 6);

    t = dsa_st_find(st, dsa_strz("c"));
    assert_non_null(t);
    assert_true(dsa_str_eqz(t->dtype, "F8_E4M3"));
    assert_int_equal(t->n_dims, 4);
    assert_int_equal(t->size, 5);
    assert_memory_equal(t->data, "\12\13\14\15\16", 5);

    t = dsa_st_find(st, dsa_strz("\xc3\xa9/\""));
    assert_non_null(t);
    assert_int_equal(t->size, 0);
    assert_int_equal(t->shape[0], 7);

    assert_ptr_equal(t, dsa_st_at(st, 3));
    assert_null(dsa_st_at(st, 4));
    assert_null(dsa_st_find(st, dsa_strz("__metadata__")));
    assert_null(dsa_st_find(st, dsa_strz("")));

    dsa_st_close(st);
    free(p);

    /* no tensors */

    p = image("{}", 0, &size);
    st = dsa_st_read("i", p, size, &err);
    assert_non_null(st);
    assert_int_equal(dsa_st_count(st), 0);
    assert_null(dsa_st_find(st, dsa_strz("a")));
    dsa_st_close(st);
    free(p);

    dsa_st_close(NULL);
}


#define tensor(name, dtype, shape, offsets)                                   \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],"            \
    "\"data_offsets\":[" offsets "]}"


static void
test_rejected(void **state)
{
    size_t      i;
    uint8_t    *p;
    uint64_t    size;
    dsa_st_t   *st;
    dsa_err_t   err;

    static const char  form[] =
        "the header has another form; expected { name: { \"dtype\": string, "
        "\"shape\": [ integers ], \"data_offsets\": [ two integers ] } }";

    static const struct {
        const char  *header;
        size_t       n;
        const char  *error;
    } t[] = {
        { "", 0, NULL },
        { "      ", 0, NULL },
        { "[]", 0, form },
        { "1", 0, form },
        { "null", 0, form },
        { "true", 0, form },
        { "\"a\"", 0, form },
        { "{\"a\":1}", 0, NULL },
        { "{\"a\":[]}", 0, NULL },
        { "{\"a\":null}", 0, NULL },
        { "{\"a\":{\"dtype\":{}}}", 0, NULL },
        { "{\"a\":{\"dtype\":4}}", 0, NULL },
        { "{\"a\":{\"shape\":\"x\"}}", 0, NULL },
        { "{\"a\":{\"shape\":[[1]]}}", 0, NULL },
        { "{\"a\":{\"shape\":[false]}}", 0, NULL },
        { "{\"a\":{\"shape\":[{}]}}", 0, NULL },
        { "{\"__metadata__\":{\"a\":1}}", 0, form },
        { "{\"__metadata__\":{\"a\":{}}}", 0, form },
        { "{\"__metadata__\":[]}", 0, form },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0,
          "\"__metadata__\" is repeated" },
        { "{\"a\":{}}", 0, "tensor \"a\": a field is missing; expected "
          "dtype, shape and two data_offsets" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
          "tensor \"a\": a field is missing; expected dtype, shape and two "
          "data_offsets" },
        { "{" tensor("a", "U8", "1", "0") "}", 1,
          "tensor \"a\": a field is missing; expected dtype, shape and two "
          "data_offsets" },
        { "{" tensor("a", "U8", "1", "0,1,1") "}", 1,
          "tensor \"a\": data_offsets has more than two numbers" },
        { "{" tensor("a", "U8", "1,1,1,1,1", "0,1") "}", 1,
          "tensor \"a\": the shape has more than four dimensions" },
        { "{" tensor("a", "U8", "-1", "0,1") "}", 1,
          "tensor \"a\": a number is negative, not an integer or beyond "
          "63 bits" },
        { "{" tensor("a", "U8", "1.0", "0,1") "}", 1,
          "tensor \"a\": a number is negative, not an integer or beyond "
          "63 bits" },
        { "{" tensor("a", "U8", "1e0", "0,1") "}", 1,
          "tensor \"a\": a number is negative, not an integer or beyond "
          "63 bits" },
        { "{" tensor("a", "U8", "9223372036854775808", "0,1") "}", 1,
          "tensor \"a\": a number is negative, not an integer or beyond "
          "63 bits" },
        { "{" tensor("a", "U8", "18446744073709551617", "0,1") "}", 1,
          "tensor \"a\": a number is negative, not an integer or beyond "
          "63 bits" },
        { "{" tensor("a", "U8", "4294967296,4294967296", "0,0") "}", 0,
          "tensor \"a\": the size is beyond 63 bits" },
        { "{" tensor("a", "F64", "1152921504606846976", "0,0") "}", 0,
          "tensor \"a\": the size is beyond 63 bits" },
        { "{" tensor("a", "F4", "2", "0,1") "}", 1,
          "tensor \"a\": the dtype is not supported; expected F32, BF16, "
          "F8_E4M3, I32 or another dtype of whole bytes" },
        { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0,
          "tensor \"a\": a field is unknown or repeated; expected dtype, "
          "shape and data_offsets, each once" },
        { "{\"a\":{\"stride\":[1]}}", 0,
          "tensor \"a\": a field is unknown or repeated; expected dtype, "
          "shape and data_offsets, each once" },
        { "{" tensor("a", "U8", "1", "0,1") "," tensor("a", "U8", "1", "1,2")
          "}", 2, "tensor \"a\": the name is repeated" },
        { "{" tensor("", "U8", "1", "0,1") "}", 1,
          "a tensor's name is empty or longer than 256 bytes" },
        { "{" tensor("a\\u0000", "U8", "1", "0,1") "}", 1,
          "a tensor's name has control characters" },
        { "{" tensor("a\\n", "U8", "1", "0,1") "}", 1,
          "a tensor's name has control characters" },
        { "{" tensor("a", "F32", "2", "0,7") "}", 8,
          "tensor \"a\": data_offsets are 0 and 7; expected 8 bytes, as "
          "dtype and shape require" },
        { "{" tensor("a", "U8", "1", "1,0") "}", 8,
          "tensor \"a\": data_offsets are 1 and 0; expected 1 bytes, as "
          "dtype and shape require" },
        { "{" tensor("a", "U8", "8", "0,8") "}", 7,
          "truncated: tensor \"a\" ends at byte 8 of the data, but the file "
          "has 7 bytes of it" },
        { "{" tensor("a", "U8", "1", "9223372036854775806,"
                     "9223372036854775807") "}", 7,
          "truncated: tensor \"a\" ends at byte 9223372036854775807 of the "
          "data, but the file has 7 bytes of it" },
        { "{" tensor("a", "U8", "8", "0,8") "}", 9,
          "the file has 1 bytes after the last tensor; expected none" },
        { "{}", 9,
          "the file has 9 bytes after the last tensor; expected none" },
        { "{" tensor("a", "U8", "4", "1,5") "}", 5,
          "tensor \"a\" starts at byte 1 of the data; expected byte 0, "
          "where \"the header\" ends" },
        { "{" tensor("a", "U8", "4", "0,4") "," tensor("b", "U8", "4", "5,9")
          "}", 9,
          "tensor \"b\" starts at byte 5 of the data; expected byte 4, "
          "where \"a\" ends" },
        { "{" tensor("b", "U8", "4", "3,7") "," tensor("a", "U8", "4", "0,4")
          "}", 7,
          "tensor \"b\" starts at byte 3 of the data; expected byte 4, "
          "where \"a\" ends" },
        { "{" tensor("a", "U8", "4", "0,4") "," tensor("b", "U8", "4", "0,4")
          "}", 4, NULL },
        { "{" tensor("a", "U8", "1", "0,1") "} x", 1, NULL },
        { "{" tensor("a", "U8", "1", "0,1") "} {}", 1, NULL },
        { "{" tensor("a", "U8", "1", "0,1") ",}", 1, NULL },
        { "{" tensor("a", "U8", "01", "0,1") "}", 1, NULL },
        { "{a:1}", 0, NULL },
        { "/**/{}", 0, NULL }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        p = image(t[i].header, t[i].n, &size);

        memset(&err, 0, sizeof(dsa_err_t));
        st = dsa_st_read("i", p, size, &err);
        free(p);

        if (st != NULL) {
            fail_msg("accepted: %s", t[i].header);
        }

        assert_true(strncmp(err.text, "i: ", 3) == 0);
        assert_null(strchr(err.text, '\n'));

        if (t[i].error != NULL) {
            assert_string_equal(err.text + 3, t[i].error);
        }
    }
}


static void
test_alignment(void **state)
{
    uint8_t    *p;
    uint64_t    size;
    dsa_st_t   *st;
    dsa_err_t   err;

    /* the header has 59 bytes: data starts at byte 67 */

    p = image("{" tensor("a", "F32", "1", "0,4") "}     ", 4, &size);
    assert_int_equal((size - 4) % 4, 3);
    assert_null(dsa_st_read("i", p, size, &err));
    assert_string_equal(err.text, "i: tensor \"a\": the data is not aligned "
                        "to its elements; expected a file of safetensors 0.3 "
                        "or newer");
    free(p);

    p = image("{" tensor("a", "U8", "4", "0,4") "}     ", 4, &size);
    st = dsa_st_read("i", p, size, &err);
    assert_non_null(st);
    dsa_st_close(st);
    free(p);
}


/* Files that end early, at every byte, and with each byte changed. */

static void
test_broken(void **state)
{
    uint8_t    *p, *copy;
    uint64_t    size, n, len;
    dsa_st_t   *st;
    dsa_err_t   err;

    static const char  pointer[] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
        "size 4987202208\n";

    p = image(good, 15, &size);

    for (n = 0; n < size; n++) {
        copy = malloc(n != 0 ? n : 1);
        assert_non_null(copy);
        memcpy(copy, p, n);

        assert_null(dsa_st_read("i", copy, n, &err));
        assert_non_null(strstr(err.text, "truncated: "));

        free(copy);
    }

    for (n = 0; n < size; n++) {
        p[n] ^= 0x15;
        st = dsa_st_read("i", p, size, &err);
        p[n] ^= 0x15;

        assert_true(st != NULL || strncmp(err.text, "i: ", 3) == 0);
        dsa_st_close(st);
    }

    len = 100000001;
    memcpy(p, &len, 8);
    assert_null(dsa_st_read("i", p, size, &err));
    assert_string_equal(err.text, "i: not a safetensors file: its first 8 "
                        "bytes are 100000001; expected the length of a "
                        "header, at most 100000000");

    len = UINT64_MAX;
    memcpy(p, &len, 8);
    assert_null(dsa_st_read("i", p, size, &err));
    assert_string_equal(err.text, "i: not a safetensors file: its first 8 "
                        "bytes are 18446744073709551615; expected the length "
                        "of a header, at most 100000000");

    /* what a clone without Git LFS has in place of the file */

    assert_null(dsa_st_read("i", pointer, strlen(pointer), &err));
    assert_string_equal(err.text, "i: the file is a pointer of Git LFS, not "
                        "the contents; \"git lfs pull\" in its repository gets "
                        "them");

    free(p);
}


/* If the time were quadratic in the names, this would take minutes. */

static void
test_many(void **state)
{
    char       *header;
    size_t      len;
    uint8_t    *p;
    clock_t     start;
    uint32_t    i;
    uint64_t    size;
    dsa_st_t   *st;
    dsa_err_t   err;

    header = malloc(92425 * 128);
    assert_non_null(header);

    len = 0;

    for (i = 0; i < 92425; i++) {
        len += (size_t) sprintf(header + len, "%c\"model.layers.%u.mlp.experts"
                                ".%u.up_proj.weight\":{\"dtype\":\"BF16\","
                                "\"shape\":[0,7168],\"data_offsets\":[0,0]}",
                                i == 0 ? '{' : ',', i / 256, i % 256);
    }

    header[len++] = '}';
    header[len] = '\0';

    p = image(header, 0, &size);

    start = clock();
    st = dsa_st_read("i", p, size, &err);
    assert_non_null(st);
    assert_int_equal(dsa_st_count(st), 92425);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 10);

    assert_non_null(dsa_st_find(st,
                       dsa_strz("model.layers.360.mlp.experts.200.up_proj."
                                "weight")));
    dsa_st_close(st);
    free(p);
    free(header);
}


static void
test_files(void **state)
{
    int                       n;
    char                      path[256], bytes[512];
    FILE                     *f;
    float                     value[3] = { 1.5f, -2, 0 };
    int32_t                   id[1] = { 0x01020304 };
    dsa_st_t                 *st;
    dsa_err_t                 err;
    const char               *tmp;
    dsa_st_tensor_t           t[3];
    const dsa_st_tensor_t    *found;

    static const char  expected[] =
        "\250\0\0\0\0\0\0\0"
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]},"
        "\"i\\\"\":{\"dtype\":\"I32\",\"shape\":[1],"
        "\"data_offsets\":[12,16]},"
        "\"e\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}"
        "\0\0\300\77" "\0\0\0\300" "\0\0\0\0" "\4\3\2\1" "abc";

    tmp = getenv("TMPDIR");
    (void) snprintf(path, sizeof(path), "%s/dsa-st-%d",
                    tmp != NULL ? tmp : "/tmp", (int) getpid());
    (void) unlink(path);

    assert_null(dsa_st_open(path, &err));
    assert_non_null(strstr(err.text, "No such file"));

    assert_null(dsa_st_open("/tmp", &err));
    assert_string_equal(err.text, "/tmp: not a regular file");

    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_null(dsa_st_open(path, &err));
    assert_non_null(strstr(err.text, ": truncated: the file has 0 bytes; "
                           "expected at least 8"));

    memset(t, 0, sizeof(t));

    t[0].name = dsa_strz("e");
    t[0].dtype = dsa_strz("U8");
    t[0].n_dims = 1;
    t[0].shape[0] = 3;
    t[0].size = 3;
    t[0].data = "abc";

    t[1].name = dsa_strz("w");
    t[1].dtype = dsa_strz("F32");
    t[1].n_dims = 2;
    t[1].shape[0] = 3;
    t[1].shape[1] = 1;
    t[1].size = 12;
    t[1].data = value;

    t[2].name = dsa_strz("i\"");
    t[2].dtype = dsa_strz("I32");
    t[2].n_dims = 1;
    t[2].shape[0] = 1;
    t[2].size = 4;
    t[2].data = id;

    assert_int_equal(dsa_st_write(path, t, 3, &err), DSA_OK);

    f = fopen(path, "r");
    assert_non_null(f);
    n = (int) fread(bytes, 1, sizeof(bytes), f);
    assert_int_equal(fclose(f), 0);

    assert_int_equal(n, sizeof(expected) - 1);
    assert_memory_equal(bytes, expected, n);

    st = dsa_st_open(path, &err);
    assert_non_null(st);
    found = dsa_st_find(st, dsa_strz("w"));
    assert_non_null(found);
    assert_memory_equal(found->data, value, sizeof(value));
    dsa_st_close(st);

    t[2].size = 8;
    assert_int_equal(dsa_st_write(path, t, 3, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "tensor \"i\"\" cannot be written: its "
                           "dtype is unknown or its size does not follow"));
    t[2].size = 4;

    assert_int_equal(dsa_st_write("/nonexistent/x", t, 3, &err), DSA_ERROR);
    assert_string_equal(err.text, "/nonexistent/x: No such file or "
                        "directory");

    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(dsa_st_write("/dev/full", t, 3, &err), DSA_ERROR);
        assert_string_equal(err.text, "/dev/full: No space left on device");
    }

    (void) unlink(path);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_files)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
