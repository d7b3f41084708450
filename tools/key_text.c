
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tools/key_text.h"


/*
 * Makes the text of a key: "sk-dsa-" and 32 random bytes as 43 characters of
 * base64url.  Each character has 6 bits, and the last one 4.
 */

int
dsa_key_text_make(dsa_key_text_t *text, uint8_t hash[DSA_KEY_HASH_LEN],
    dsa_err_t *err)
{
    int                i;
    char              *p;
    uint8_t            random[DSA_KEY_RANDOM + 1];
    unsigned           bits;

    static const char  letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "abcdefghijklmnopqrstuvwxyz0123456789-_";

    _Static_assert(DSA_KEY_TEXT_LEN == 7 + (8 * DSA_KEY_RANDOM + 5) / 6,
                   "the length of the text of a key");

    if (dsa_key_random(random, DSA_KEY_RANDOM, err) != DSA_OK) {
        return DSA_ERROR;
    }

    random[DSA_KEY_RANDOM] = 0;
    memcpy(text->line, "sk-dsa-", 7);
    p = text->line + 7;

    for (i = 0; i < 8 * DSA_KEY_RANDOM; i += 6) {
        bits = (unsigned) random[i / 8] << 8 | random[i / 8 + 1];
        *p++ = letters[bits >> (10 - i % 8) & 0x3f];
    }

    explicit_bzero(random, sizeof(random));
    explicit_bzero(&bits, sizeof(bits));

    *p = '\n';
    dsa_key_hash(hash, dsa_str(text->line, DSA_KEY_TEXT_LEN));

    return DSA_OK;
}


int
dsa_key_random(void *bytes, size_t n, dsa_err_t *err)
{
    ssize_t  rc;

    /*
     * Up to 256 bytes come at once.  After a boot the first call may wait for
     * entropy, and a signal may interrupt that.
     */

    do {
        rc = getrandom(bytes, n, 0);
    } while (rc == -1 && errno == EINTR);

    if (rc != (ssize_t) n) {
        return dsa_error(err, "getrandom() failed: %s", strerror(errno));
    }

    return DSA_OK;
}


/*
 * The text goes to stdout by write(), so that there is no copy of it in a
 * buffer of stdio.
 */

int
dsa_key_text_print(const dsa_key_text_t *text, const char *command,
    dsa_str_t id, dsa_err_t *err)
{
    size_t   done;
    ssize_t  n;

    for (done = 0; done < sizeof(text->line); done += (size_t) n) {
        n = write(STDOUT_FILENO, text->line + done, sizeof(text->line) - done);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            return dsa_error(err, "the key %.*s is stored, but its text could "
                             "not be printed: %s; rotate or revoke it",
                             (int) id.len, id.data, strerror(errno));
        }
    }

    (void) fprintf(stderr, "dsa %s: the text of %.*s is on stdout; only its "
                   "hash is stored, so it cannot be printed again\n",
                   command, (int) id.len, id.data);

    return DSA_OK;
}
