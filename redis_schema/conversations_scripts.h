
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONVERSATIONS_SCRIPTS_H_INCLUDED_
#define _DSA_CONVERSATIONS_SCRIPTS_H_INCLUDED_


#include "lua.h"


/* These follow the rule of scripts.h: no error leaves half of the writes. */


/*
 *     KEYS     conversation, lease
 *     ARGV     owner, milliseconds
 *
 * Returns { dsa_schema_change_e, fields and values of the hash }.
 */

static const char  dsa_schema_begin_script[] =
DSA_LUA_HELD
"local t = redis.call('TYPE', KEYS[1]).ok\n"
"if t == 'none' then return { 2 } end\n"
"if t ~= 'hash' then return { 4 } end\n"
"if held(KEYS[2], ARGV[1]) then return { 1 } end\n"
"redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])\n"
"local c = redis.call('HGETALL', KEYS[1])\n"
"table.insert(c, 1, 0)\n"
"return c\n";


/*
 *     KEYS     lease
 *     ARGV     owner, milliseconds
 */

static const char  dsa_schema_renew_script[] =
DSA_LUA_HELD
"if held(KEYS[1], ARGV[1]) then return 0 end\n"
"redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
"return 1\n";


/*
 *     KEYS     lease
 *     ARGV     owner
 */

static const char  dsa_schema_release_script[] =
DSA_LUA_HELD
"if held(KEYS[1], ARGV[1]) then return 0 end\n"
"redis.call('DEL', KEYS[1])\n"
"return 1\n";


/*
 *     KEYS     conversation, lease
 *     ARGV     ttl, limit of entries, limit of bytes, then the entries
 */

static const char  dsa_schema_add_script[] =
DSA_LUA_HELD
DSA_LUA_APPEND
"local results = { 0, 5, 2, 3, 4 }\n"
"local p = look(KEYS[1])\n"
"if p.code == 1 then\n"
"  if held(KEYS[2], '') then return 1 end\n"
"  fit(KEYS[1], p, 4, tonumber(ARGV[2]), tonumber(ARGV[3]))\n"
"end\n"
"if p.code == 1 then append(KEYS[1], p, 4, ARGV[1]) end\n"
"return results[p.code]\n";


/*
 *     KEYS     conversation, lease
 *     ARGV     version, ttl, number, text
 */

static const char  dsa_schema_edit_script[] =
DSA_LUA_HELD
"local t = redis.call('TYPE', KEYS[1]).ok\n"
"if t == 'none' then return 2 end\n"
"if t ~= 'hash' then return 4 end\n"
"if held(KEYS[2], '') then return 1 end\n"
"local c = redis.call('HMGET', KEYS[1], 'version', 'count', 'bytes',"
" ARGV[3])\n"
"if c[1] ~= ARGV[1] or not c[4] then return 5 end\n"
"local count, bytes = tonumber(c[2]), tonumber(c[3])\n"
"if not (count and bytes) then return 4 end\n"
"if ARGV[4] ~= '' then\n"
"  redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])\n"
"else\n"
"  redis.call('HDEL', KEYS[1], ARGV[3])\n"
"  count = count - 1\n"
"end\n"
"redis.call('HSET', KEYS[1], 'count', count,"
" 'bytes', bytes - #c[4] + #ARGV[4])\n"
"redis.call('HINCRBY', KEYS[1], 'version', 1)\n"
"redis.call('EXPIRE', KEYS[1], ARGV[2])\n"
"return 0\n";


/*
 *     KEYS     conversation
 *     ARGV     metadata
 */

static const char  dsa_schema_metadata_script[] =
"if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end\n"
"local created = redis.call('HGET', KEYS[1], 'created')\n"
"redis.call('HSET', KEYS[1], 'metadata', ARGV[1])\n"
"return tonumber(created) or 0\n";


#endif /* _DSA_CONVERSATIONS_SCRIPTS_H_INCLUDED_ */
