
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "command.h"
#include "memory.h"
#include "resp.h"


static int dsa_memory_field(dsa_str_t *value, dsa_str_t text,
    const char *name);
static int dsa_memory_bytes(uint64_t *n, dsa_str_t text, const char *name);


int
dsa_schema_memory(dsa_schema_command_t *cmd, dsa_arena_t *arena)
{
    /* several sections in one command need Redis 7: all of them */

    if (dsa_command_start(cmd, arena, 1) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_strz("INFO"));

    return DSA_OK;
}


int
dsa_schema_memory_reply(dsa_schema_memory_t *memory,
    const redisReply *reply, dsa_err_t *err)
{
    char       line[DSA_RESP_TEXT];
    uint64_t   max, machine;
    dsa_str_t  text, policy, aof;

    if (reply->type == REDIS_REPLY_ERROR) {
        return dsa_error(err, "Redis replied \"%s\"",
                         dsa_resp_text(line, reply->str, reply->len));
    }

    if (reply->type != REDIS_REPLY_STRING) {
        return dsa_error(err, "the reply to INFO has the unexpected type %d",
                         reply->type);
    }

    text = dsa_str(reply->str, reply->len);

    if (dsa_memory_bytes(&memory->used, text, "used_memory") != DSA_OK
        || dsa_memory_bytes(&max, text, "maxmemory") != DSA_OK
        || dsa_memory_bytes(&machine, text, "total_system_memory") != DSA_OK
        || dsa_memory_field(&policy, text, "maxmemory_policy") != DSA_OK
        || dsa_memory_field(&aof, text, "aof_enabled") != DSA_OK)
    {
        return dsa_error(err, "the reply to INFO does not have used_memory, "
                         "maxmemory, total_system_memory, maxmemory_policy "
                         "and aof_enabled");
    }

    memory->limit = max != 0 ? max : machine;
    memory->evicts = max != 0 && !dsa_str_eqz(policy, "noeviction");
    memory->durable = dsa_str_eqz(aof, "1");

    return DSA_OK;
}


/* The value of the line "NAME:VALUE". */

static int
dsa_memory_field(dsa_str_t *value, dsa_str_t text, const char *name)
{
    size_t       len;
    const char  *p, *last, *end;

    len = strlen(name);
    last = text.data + text.len;

    for (p = text.data; p < last; p = end + 1) {
        end = memchr(p, '\n', (size_t) (last - p));

        if (end == NULL) {
            end = last;
        }

        if ((size_t) (end - p) <= len || memcmp(p, name, len) != 0
            || p[len] != ':')
        {
            continue;
        }

        p += len + 1;
        *value = dsa_str(p, (size_t) (end - p));

        if (value->len != 0 && value->data[value->len - 1] == '\r') {
            value->len--;
        }

        return DSA_OK;
    }

    return DSA_ERROR;
}


/* 1 to 18 digits. */

static int
dsa_memory_bytes(uint64_t *n, dsa_str_t text, const char *name)
{
    size_t     i;
    dsa_str_t  value;

    if (dsa_memory_field(&value, text, name) != DSA_OK
        || value.len == 0 || value.len > 18)
    {
        return DSA_ERROR;
    }

    *n = 0;

    for (i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            return DSA_ERROR;
        }

        *n = *n * 10 + (uint64_t) (value.data[i] - '0');
    }

    return DSA_OK;
}
