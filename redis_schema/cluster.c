
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "cluster.h"
#include "resp.h"


/* what every key begins with */

#define DSA_CLUSTER_KEY     "dsa1:"


typedef struct {
    const char           *code;
    dsa_cluster_reply_e   kind;
} dsa_cluster_code_t;


static const dsa_cluster_code_t  dsa_cluster_codes[] = {
    { "MOVED", DSA_CLUSTER_MOVED },
    { "ASK", DSA_CLUSTER_ASK },
    { "TRYAGAIN", DSA_CLUSTER_MOVING },
    { "CLUSTERDOWN", DSA_CLUSTER_DOWN },
    { NULL, DSA_CLUSTER_OTHER }
};


uint32_t
dsa_cluster_slot(const char *key, size_t len)
{
    size_t       i;
    uint8_t      c;
    uint16_t     crc;
    const char  *open, *close;

    /* CRCs of the 4-bit values, for the polynomial 0x1021 */

    static const uint16_t  half[16] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef
    };

    /* an empty hash tag is none */

    open = memchr(key, '{', len);
    close = open != NULL ? memchr(open, '}', (size_t) (key + len - open))
                         : NULL;

    if (close != NULL && close != open + 1) {
        key = open + 1;
        len = (size_t) (close - key);
    }

    crc = 0;

    for (i = 0; i < len; i++) {
        c = (uint8_t) key[i];
        crc = (uint16_t) (crc << 4) ^ half[crc >> 12 ^ c >> 4];
        crc = (uint16_t) (crc << 4) ^ half[crc >> 12 ^ (c & 15)];
    }

    return crc % DSA_CLUSTER_SLOTS;
}


/* The keys of a command come before all words that have other texts. */

int32_t
dsa_cluster_command_slot(const dsa_schema_command_t *cmd)
{
    uint32_t   i;
    dsa_str_t  word;

    for (i = 1; i < cmd->argc; i++) {
        word = cmd->argv[i];

        if (word.len > sizeof(DSA_CLUSTER_KEY) - 1
            && memcmp(word.data, DSA_CLUSTER_KEY, sizeof(DSA_CLUSTER_KEY) - 1)
               == 0)
        {
            return (int32_t) dsa_cluster_slot(word.data, word.len);
        }
    }

    return -1;
}


dsa_cluster_reply_e
dsa_cluster_reply(const redisReply *reply)
{
    const dsa_cluster_code_t  *c;

    for (c = dsa_cluster_codes; c->code != NULL; c++) {
        if (dsa_resp_is_error(reply, c->code)) {
            break;
        }
    }

    return c->kind;
}


int
dsa_cluster_target(dsa_cluster_target_t *to, const char *text, dsa_err_t *err)
{
    int          at;
    char         end, shown[DSA_RESP_TEXT];
    unsigned     port;
    const char  *colon;

    at = 0;

    if (sscanf(text, "%*[A-Z] %5u %n", &to->cluster_slot, &at) != 1 || at == 0
        || to->cluster_slot >= DSA_CLUSTER_SLOTS)
    {
        return dsa_error(err, "protocol error: \"%s\" does not have a cluster "
                         "slot", dsa_resp_text(shown, text, strlen(text)));
    }

    /*
     * An IPv6 address has colons and no brackets here, so search the last
     * colon.
     */

    to->host.data = text + at;
    colon = strrchr(to->host.data, ':');

    if (colon == NULL || colon[1] < '0' || colon[1] > '9'
        || sscanf(colon + 1, "%5u%c", &port, &end) != 1)
    {
        return dsa_error(err, "protocol error: \"%s\" does not have an address",
                         dsa_resp_text(shown, text, strlen(text)));
    }

    to->host.len = (size_t) (colon - to->host.data);
    to->port = (int) port;

    return DSA_OK;
}
