
/*
 * Copyright (C) The nginx-dsa authors
 *
 * All scripts for Redis, with states in which they use their commands: those of
 * script_stored.h, and here those of idempotency keys, API keys and responses
 * in progress.
 */


#ifndef _SCRIPT_CASES_H_INCLUDED_
#define _SCRIPT_CASES_H_INCLUDED_


#include "redis_schema/idempotency.h"
#include "redis_schema/idempotency_scripts.h"
#include "redis_schema/keys_redis.h"
#include "redis_schema/keys_scripts.h"
#include "redis_schema/progress.h"
#include "redis_schema/progress_scripts.h"
#include "t/unit/script_stored.h"


#define RESPONSE   "resp_00000000000000000000000000000001"
#define PROGRESS   "dsa1:{" TENANT "}:p:" RESPONSE
#define HEX64      "0123456789abcdef0123456789abcdef"                         \
                   "0123456789abcdef0123456789abcdef"
#define CLAIM      "dsa1:{" TENANT "}:i:" HEX64
#define USED       "dsa1:{" TENANT "}:i"


/*
 * A script, and a state of Redis in which it uses its commands.  Several cases
 * of a script together use all of them.
 */

typedef struct {
    const char   *name;
    const char   *text;
    void        (*seed)(void);
    void        (*build)(dsa_schema_command_t *cmd);
} script_case_t;


/* Hours before are removed. */

static inline void
seed_used(void)
{
    assert_int_equal(number(&server, "HSET " USED " 5|keys 2 5|bytes 7"), 2);
}


static inline void
seed_claim(void)
{
    seed_used();
    assert_int_equal(number(&server, "HSET " CLAIM " digest " HEX64 " owner "
                            "r1 state running until 1 hour 5"), 5);
}


static inline dsa_idempotency_t
idempotency(void)
{
    dsa_idempotency_t  id;

    id.tenant = dsa_strz(TENANT);
    id.key = HEX64;
    id.owner = dsa_strz("r1");

    return id;
}


static inline void
build_claim(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t  id;

    id = idempotency();
    assert_int_equal(dsa_idempotency_claim(cmd, arena, &id, HEX64), DSA_OK);
}


static inline void
build_renew_claim(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t  id;

    id = idempotency();
    assert_int_equal(dsa_idempotency_renew(cmd, arena, &id), DSA_OK);
}


static inline void
build_finish(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t         id;
    dsa_idempotency_result_t  result;

    id = idempotency();
    result.state = DSA_IDEMPOTENCY_ANSWER_KEPT;
    result.object = dsa_strz("resp_1");
    result.answer = dsa_strz("{}");

    assert_int_equal(dsa_idempotency_finish(cmd, arena, &id, &result), DSA_OK);
}


static inline void
build_release_claim(dsa_schema_command_t *cmd)
{
    dsa_idempotency_t  id;

    id = idempotency();
    assert_int_equal(dsa_idempotency_release(cmd, arena, &id), DSA_OK);
}


/* A key whose hash has bytes of this value. */

static inline dsa_key_t
make_key(int hash)
{
    dsa_key_t  key;

    memset(&key, 0, sizeof(dsa_key_t));
    dsa_key_limits_default(&key.limits);

    key.id = dsa_strz(API_KEY);
    key.name = dsa_strz("anna");
    key.tenant = dsa_strz("t");
    key.created = 1;
    memset(key.hash, hash, DSA_KEY_HASH_LEN);

    return key;
}


static inline void
build_put(dsa_schema_command_t *cmd)
{
    dsa_key_t  key;

    key = make_key(1);
    assert_int_equal(dsa_key_put(cmd, arena, &key, dsa_strz("")), DSA_OK);
}


static inline void
seed_key(void)
{
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    build_put(&cmd);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 0);
    freeReplyObject(reply);
}


/* A rotation: the hash of before is removed. */

static inline void
build_rotate(dsa_schema_command_t *cmd)
{
    dsa_key_t  key;

    key = make_key(3);
    key.old_until = 99;
    memset(key.old_hash, 2, DSA_KEY_HASH_LEN);

    assert_int_equal(dsa_key_put(cmd, arena, &key,
                                 dsa_strz(text("HGET dsa1:{keys}:id "
                                               API_KEY))), DSA_OK);
}


static inline void
build_sync(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_key_sync(cmd, arena, 0, 10, 1), DSA_OK);
}


static inline void
build_share(dsa_schema_command_t *cmd)
{
    const dsa_key_use_t  use[DSA_KEY_RATES] = { { 60, 1, 0 }, { 60, 5, 0 } };

    assert_int_equal(dsa_key_share(cmd, arena, dsa_strz(API_KEY),
                                   dsa_strz("me"), use, 1, 1000, 1), DSA_OK);
}


static inline void
build_share_none(dsa_schema_command_t *cmd)
{
    const dsa_key_use_t  use[DSA_KEY_RATES] = { { 0, 0, 0 }, { 60, 5, 0 } };

    assert_int_equal(dsa_key_share(cmd, arena, dsa_strz(API_KEY),
                                   dsa_strz("old"), use, 0, 1000, 1), DSA_OK);
}


static inline dsa_progress_t
in_progress(unsigned background)
{
    dsa_progress_t  p;

    memset(&p, 0, sizeof(dsa_progress_t));

    p.tenant = dsa_strz(TENANT);
    p.id = dsa_strz(RESPONSE);
    p.before = dsa_strz("{");
    p.after = dsa_strz("}");
    p.background = background;
    p.streams = background;

    return p;
}


static inline void
build_attached(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(0);
    assert_int_equal(dsa_progress_begin(cmd, arena, &p, &storage), DSA_OK);
}


static inline void
build_background(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_begin(cmd, arena, &p, &storage), DSA_OK);
}


static inline void
build_renew_progress(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_renew(cmd, arena, &p), DSA_OK);
}


static inline void
build_append(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_append(cmd, arena, &p, 0, dsa_strz("data"),
                                         &storage), DSA_OK);
}


static inline void
build_fail(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_end(cmd, arena, &p, dsa_strz("why")),
                     DSA_OK);
}


static inline void
build_forget(dsa_schema_command_t *cmd)
{
    dsa_progress_t  p;

    p = in_progress(1);
    assert_int_equal(dsa_progress_end(cmd, arena, &p, dsa_strz("")), DSA_OK);
}


static inline void
build_read_progress(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_progress_read(cmd, arena, dsa_strz(TENANT),
                                       dsa_strz(RESPONSE)), DSA_OK);
}


static inline void
build_cancel(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_progress_cancel(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(RESPONSE)), DSA_OK);
}


static inline void
build_delete_progress(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_response_delete(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(RESPONSE)), DSA_OK);
}


static inline void
build_follow(dsa_schema_command_t *cmd)
{
    assert_int_equal(dsa_progress_follow(cmd, arena, dsa_strz(TENANT),
                                         dsa_strz(RESPONSE), 0), DSA_OK);
}


/* Runs a command that returns 1. */

static inline void
progress_runs(void (*build)(dsa_schema_command_t *cmd))
{
    redisReply            *reply;
    dsa_schema_command_t   cmd;

    build(&cmd);
    reply = run(&cmd);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}


static inline void
seed_background(void)
{
    seed_account();
    progress_runs(build_background);
}


/* The account has a share that has expired, too. */

static inline void
seed_background_late(void)
{
    seed_background();
    seed_account();
}


/* Chunk 0 is there. */

static inline void
seed_events(void)
{
    seed_background();
    progress_runs(build_append);
    seed_account();
}


/* As many events as are kept. */

static inline void
seed_large(void)
{
    seed_events();
    assert_int_equal(number(&server, "HSET " PROGRESS " bytes 8388608"), 0);
}


#define script(name)  #name, name

static const script_case_t  cases[] = {
    { script(dsa_schema_create_script), seed_account, build_create },
    { script(dsa_schema_delete_script), seed_two, build_delete },
    { script(dsa_schema_record_script), seed_turn, build_turn },
    { script(dsa_schema_record_script), seed_ledger, build_entry },
    { script(dsa_schema_retain_script), seed_account, build_retain },
    { script(dsa_schema_retained_script), seed_answer, build_retained },
    { script(dsa_schema_summary_script), seed_summary, build_summary },
    { script(dsa_schema_begin_script), seed_conversation, build_begin },
    { script(dsa_schema_begin_script), seed_lease, build_begin_other },
    { script(dsa_schema_renew_script), seed_lease, build_renew },
    { script(dsa_schema_renew_script), seed_lease, build_renew_other },
    { script(dsa_schema_release_script), seed_lease, build_release },
    { script(dsa_schema_release_script), seed_lease, build_release_other },
    { script(dsa_schema_add_script), seed_conversation, build_add },
    { script(dsa_schema_add_script), seed_lease, build_add },
    { script(dsa_schema_edit_script), seed_conversation, build_replace },
    { script(dsa_schema_edit_script), seed_conversation, build_remove },
    { script(dsa_schema_edit_script), seed_lease, build_remove },
    { script(dsa_schema_metadata_script), seed_conversation, build_metadata },
    { script(dsa_response_save_script), seed_stored_nodes, build_save },
    { script(dsa_response_withdraw_script), seed_stored_nodes,
      build_withdraw },
    { script(dsa_response_delete_script), seed_stored_nodes,
      build_delete_node },
    { script(dsa_response_delete_script), seed_events,
      build_delete_progress },
    { script(dsa_response_chain_script), seed_nodes, build_chain },
    { script(dsa_response_items_script), seed_items, build_items },
    { script(dsa_progress_begin_script), seed_account, build_attached },
    { script(dsa_progress_background_script), seed_account,
      build_background },
    { script(dsa_progress_renew_script), seed_background,
      build_renew_progress },
    { script(dsa_progress_append_script), seed_background_late,
      build_append },
    { script(dsa_progress_append_script), seed_large, build_append },
    { script(dsa_progress_end_script), seed_events, build_fail },
    { script(dsa_progress_end_script), seed_events, build_forget },
    { script(dsa_progress_read_script), seed_events, build_read_progress },
    { script(dsa_progress_cancel_script), seed_events, build_cancel },
    { script(dsa_progress_follow_script), seed_events, build_follow },
    { script(dsa_idempotency_claim_script), seed_used, build_claim },
    { script(dsa_idempotency_claim_script), seed_claim, build_claim },
    { script(dsa_idempotency_renew_script), seed_claim, build_renew_claim },
    { script(dsa_idempotency_finish_script), seed_claim, build_finish },
    { script(dsa_idempotency_release_script), seed_claim,
      build_release_claim },
    { script(dsa_key_put_script), seed_nothing, build_put },
    { script(dsa_key_put_script), seed_key, build_rotate },
    { script(dsa_key_sync_script), seed_key, build_sync },
    { script(dsa_key_share_script), seed_limits, build_share },
    { script(dsa_key_share_script), seed_limits, build_share_none }
};

#undef script

#define N_CASES  (sizeof(cases) / sizeof(cases[0]))


#endif /* _SCRIPT_CASES_H_INCLUDED_ */
