
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "engine/hosts/secret.h"


#define DSA_HOSTS_SECRET_FILE   4096    /* most bytes of the file */
#define DSA_HOSTS_LABEL         16      /* bytes of a label */


static int dsa_hosts_secret_set(dsa_hosts_secret_t *secret, const char *path,
    const dsa_buf_t *text, dsa_err_t *err);


int
dsa_hosts_secret_read(dsa_hosts_secret_t *secret, const char *path,
    dsa_err_t *err)
{
    int          rc;
    dsa_buf_t    text;
    struct stat  st;

    memset(&text, 0, sizeof(text));

    if (stat(path, &st) == 0 && (st.st_mode & (S_IROTH|S_IWOTH)) != 0) {
        return dsa_error(err, "%s: all users can %s the file (its mode is "
                         "%03o); expected a secret of its owner and group: "
                         "\"chmod o= %s\"", path,
                         (st.st_mode & S_IROTH) != 0 ? "read" : "write",
                         (unsigned) st.st_mode & 0777, path);
    }

    rc = dsa_file_read(path, DSA_HOSTS_SECRET_FILE, &text, err);

    if (rc == DSA_OK) {
        rc = dsa_hosts_secret_set(secret, path, &text, err);
    }

    if (text.data != NULL) {
        OPENSSL_cleanse(text.data, text.len);
    }

    dsa_buf_free(&text);

    return rc;
}


/* Copies the first line, without its newline. */

static int
dsa_hosts_secret_set(dsa_hosts_secret_t *secret, const char *path,
    const dsa_buf_t *text, dsa_err_t *err)
{
    size_t       len;
    const char  *end;

    end = text->len != 0 ? memchr(text->data, '\n', text->len) : NULL;
    len = end != NULL ? (size_t) (end - text->data) : text->len;

    if (len > 0 && text->data[len - 1] == '\r') {
        len--;
    }

    if (len < DSA_HOSTS_SECRET_LEAST || len > DSA_HOSTS_SECRET_MOST) {
        return dsa_error(err, "%s: the first line has %zu bytes; expected a "
                         "random secret of %d to %d bytes, such as \"openssl "
                         "rand -hex 32\" prints", path, len,
                         DSA_HOSTS_SECRET_LEAST, DSA_HOSTS_SECRET_MOST);
    }

    memcpy(secret->text, text->data, len);
    secret->len = len;

    return DSA_OK;
}


void
dsa_hosts_secret_clear(dsa_hosts_secret_t *secret)
{
    OPENSSL_cleanse(secret, sizeof(dsa_hosts_secret_t));
}


int
dsa_hosts_proof(uint8_t *proof, const dsa_hosts_secret_t *secret,
    dsa_hosts_side_e side, const void *leader, const void *follower, size_t n)
{
    int        rc;
    unsigned   len;
    dsa_buf_t  text;

    static const char  labels[][DSA_HOSTS_LABEL] = {
        [DSA_HOSTS_LEADER] = "dsa leader",
        [DSA_HOSTS_FOLLOWER] = "dsa follower"
    };

    memset(&text, 0, sizeof(text));
    dsa_buf_add(&text, labels[side], DSA_HOSTS_LABEL);
    dsa_buf_add(&text, leader, n);
    dsa_buf_add(&text, follower, n);

    rc = DSA_ERROR;
    len = 0;

    if (!text.failed
        && HMAC(EVP_sha256(), secret->text, (int) secret->len,
                (const unsigned char *) text.data, text.len, proof, &len)
           != NULL
        && len == DSA_HOSTS_PROOF)
    {
        rc = DSA_OK;
    }

    dsa_buf_free(&text);

    return rc;
}


int
dsa_hosts_proof_equal(const uint8_t *a, const uint8_t *b)
{
    return CRYPTO_memcmp(a, b, DSA_HOSTS_PROOF) == 0;
}
