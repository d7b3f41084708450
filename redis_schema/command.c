
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <inttypes.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>

#include "command.h"


int
dsa_command_start(dsa_schema_command_t *cmd, dsa_arena_t *arena, uint32_t max)
{
    cmd->argc = 0;
    cmd->argv = dsa_arena_alloc(arena, max * sizeof(dsa_str_t));

    return cmd->argv != NULL ? DSA_OK : DSA_ERROR;
}


void
dsa_command_eval(dsa_schema_command_t *cmd, const char *script,
    const char *keys)
{
    dsa_command_word(cmd, dsa_strz("EVAL"));
    dsa_command_word(cmd, dsa_strz(script));
    dsa_command_word(cmd, dsa_strz(keys));
}


int
dsa_command_script(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *script, const char *keys, int text)
{
    char     *hash;
    size_t    i;
    uint8_t   sha1[SHA_DIGEST_LENGTH];

    if (text) {
        dsa_command_eval(cmd, script, keys);
        return DSA_OK;
    }

    hash = dsa_arena_alloc(arena, 2 * SHA_DIGEST_LENGTH + 1);
    if (hash == NULL) {
        return DSA_ERROR;
    }

    SHA1((const uint8_t *) script, strlen(script), sha1);

    for (i = 0; i < SHA_DIGEST_LENGTH; i++) {
        (void) snprintf(&hash[2 * i], 3, "%02x", sha1[i]);
    }

    dsa_command_word(cmd, dsa_strz("EVALSHA"));
    dsa_command_word(cmd, dsa_strz(hash));
    dsa_command_word(cmd, dsa_strz(keys));

    return DSA_OK;
}


void
dsa_command_word(dsa_schema_command_t *cmd, dsa_str_t word)
{
    cmd->argv[cmd->argc++] = word;
}


int
dsa_command_wordf(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const char *fmt, ...)
{
    int      n;
    char     buf[320], *word;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= sizeof(buf)) {
        return DSA_ERROR;
    }

    word = dsa_arena_dup(arena, dsa_str(buf, n));
    if (word == NULL) {
        return DSA_ERROR;
    }

    dsa_command_word(cmd, dsa_str(word, n));

    return DSA_OK;
}


int
dsa_command_ttl(dsa_schema_command_t *cmd, dsa_arena_t *arena, int64_t ttl)
{
    if (ttl < 1 || ttl > DSA_SCHEMA_TTL_MAX) {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "%" PRId64, ttl);
}


int
dsa_command_account(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant)
{
    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:stored",
                             (int) tenant.len, tenant.data);
}


int
dsa_command_absent(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    dsa_str_t tenant)
{
    return dsa_command_wordf(cmd, arena, "dsa1:{%.*s}:absent",
                             (int) tenant.len, tenant.data);
}


int
dsa_command_quota(dsa_schema_command_t *cmd, dsa_arena_t *arena,
    const dsa_schema_storage_t *storage)
{
    if (storage->max_bytes < 1 || storage->max_bytes > DSA_SCHEMA_QUOTA_MAX
        || storage->max_objects < 1
        || storage->max_objects > DSA_SCHEMA_QUOTA_MAX
        || dsa_command_wordf(cmd, arena, "%" PRId64, storage->max_bytes)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_command_wordf(cmd, arena, "%" PRId64, storage->max_objects);
}
