
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TEST_CHAT_H_INCLUDED_
#define _DSA_TEST_CHAT_H_INCLUDED_


#include "context/chat.h"


/*
 * Chat requests for tests, in pieces of JSON.  cmocka.h must be included before
 * this file.
 */

#define DEPTH       64
#define MEMORY      (4 * 1024 * 1024)

#define MSG         "\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]"
#define R(x)        "{\"model\":\"deepseek-chat\"," MSG "," x "}"
#define MS(x)       "{\"model\":\"m\",\"messages\":[" x "]}"
#define U           "{\"role\":\"user\",\"content\":\"q\"}"
#define CALL(id)    "{\"id\":\"" id "\",\"type\":\"function\","              \
                    "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define AC(x)       "{\"role\":\"assistant\",\"tool_calls\":[" x "]}"
#define ARGS(x)     AC("{\"id\":\"1\",\"function\":{\"name\":\"f\","         \
                       "\"arguments\":" x "}}")
#define T(id)       "{\"role\":\"tool\",\"tool_call_id\":\"" id "\","        \
                    "\"content\":\"r\"}"
#define TOOL(x)     R("\"tools\":[{\"type\":\"function\",\"function\":" x    \
                      "}]")
#define TYPE        "Failed to deserialize the JSON body into the target "   \
                    "type: "


static const dsa_chat_limits_t  as_api = { 8, 4, 1 };


static inline int
read_chat(dsa_chat_t *chat, dsa_arena_t *arena, const char *text, size_t len,
    const dsa_chat_limits_t *limits, dsa_refusal_t *refusal)
{
    dsa_err_t    err;
    dsa_json_t  *root;

    memset(refusal, 0, sizeof(dsa_refusal_t));

    root = dsa_json_parse(arena, text, len, DEPTH, &err);

    if (root == NULL) {
        fail_msg("%s: %s", text, err.text);
    }

    if (dsa_chat_read(chat, arena, root, limits, refusal) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_chat_check(chat, refusal);
}


static inline void
expect_str(dsa_str_t s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.data, text, s.len);
}


static inline void
must_read(dsa_chat_t *chat, dsa_arena_t *arena, const char *text)
{
    dsa_refusal_t  refusal;

    if (read_chat(chat, arena, text, strlen(text), &as_api, &refusal)
        != DSA_OK)
    {
        fail_msg("%s: %s", text, refusal.message);
    }
}


static inline dsa_json_t *
parse_json(dsa_arena_t *arena, const char *text)
{
    dsa_err_t    err;
    dsa_json_t  *v;

    v = dsa_json_parse(arena, text, strlen(text), DEPTH, &err);
    assert_non_null(v);

    return v;
}


#endif /* _DSA_TEST_CHAT_H_INCLUDED_ */
