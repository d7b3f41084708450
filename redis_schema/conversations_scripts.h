
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
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_HELD
"local t = call('TYPE', KEYS[1]).ok\n"
"if t == 'none' then return { 2 } end\n"
"if t ~= 'hash' then return { 4 } end\n"
"if held(KEYS[2], ARGV[1]) then return { 1 } end\n"
"local c = call('HGETALL', KEYS[1])\n"
"table.insert(c, 1, 0)\n"
"write('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])\n"
"return commit() or c\n";


/*
 *     KEYS     lease
 *     ARGV     owner, milliseconds
 */

static const char  dsa_schema_renew_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_HELD
"if held(KEYS[1], ARGV[1]) then return 0 end\n"
"write('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
"return commit() or 1\n";


/*
 *     KEYS     lease
 *     ARGV     owner
 */

static const char  dsa_schema_release_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_HELD
"if held(KEYS[1], ARGV[1]) then return 0 end\n"
"write('EXPIRE', KEYS[1], -1)\n"
"return commit() or 1\n";


/*
 *     KEYS     conversation, lease, account of the tenant
 *     ARGV     ttl, most bytes and most objects of the account, limit of
 *              entries, limit of bytes, then the entries
 */

static const char  dsa_schema_add_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_HELD
DSA_LUA_APPEND
DSA_LUA_STORED
DSA_LUA_CHANGE
"local results = { 0, 5, 2, 3, 4 }\n"
"local p = look(KEYS[1])\n"
"if p.code == 1 then\n"
"  if held(KEYS[2], '') then return 1 end\n"
"  fit(KEYS[1], p, 6, tonumber(ARGV[4]), tonumber(ARGV[5]))\n"
"end\n"
"if p.code == 1 then\n"
"  local a = account(KEYS[3])\n"
"  local share = change(a, KEYS[1], p, ARGV[1])\n"
"  local err = over(a, ARGV[2], ARGV[3])\n"
"  if err then return err end\n"
"  append(KEYS[1], p, 6, ARGV[1], share)\n"
"  settle(a)\n"
"end\n"
"return commit() or results[p.code]\n";


/*
 * What is edited becomes shorter, so that this is not refused for the quota.
 *
 *     KEYS     conversation, lease, account of the tenant
 *     ARGV     version, ttl, number, text
 */

static const char  dsa_schema_edit_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_HELD
DSA_LUA_COUNT
DSA_LUA_STORED
DSA_LUA_CHANGE
"local t = call('TYPE', KEYS[1]).ok\n"
"if t == 'none' then return 2 end\n"
"if t ~= 'hash' then return 4 end\n"
"if held(KEYS[2], '') then return 1 end\n"
"local c = call('HMGET', KEYS[1], 'version', 'count', 'bytes', ARGV[3])\n"
"if c[1] ~= ARGV[1] or not c[4] then return 5 end\n"
"local n, bytes = count(c[2]), count(c[3])\n"
"if not (n and bytes) then return 4 end\n"
"if ARGV[4] ~= '' then\n"
"  write('HSET', KEYS[1], ARGV[3], ARGV[4])\n"
"else\n"
"  write('HDEL', KEYS[1], ARGV[3])\n"
"  n = n - 1\n"
"end\n"
"bytes = bytes - #c[4] + #ARGV[4]\n"
"local a = account(KEYS[3])\n"
"local share = change(a, KEYS[1], { count = n, bytes = bytes }, ARGV[2])\n"
"write('HSET', KEYS[1], 'count', n, 'bytes', bytes, 'stored', share)\n"
"write('HINCRBY', KEYS[1], 'version', 1)\n"
"write('EXPIRE', KEYS[1], ARGV[2])\n"
"settle(a)\n"
"return commit() or 0\n";


/*
 *     KEYS     conversation, account of the tenant
 *     ARGV     most bytes and most objects of the account, metadata
 */

static const char  dsa_schema_metadata_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"if call('EXISTS', KEYS[1]) == 0 then return 0 end\n"
"local c = call('HMGET', KEYS[1], 'created', 'stored')\n"
"local a = account(KEYS[2])\n"
"local at, b = (c[2] or ''):match('^(%d+) (%d+)$')\n"
"local share = at and a.live[at]\n"
"write('HSET', KEYS[1], 'metadata', ARGV[3])\n"
"if share then\n"
"  local more = #ARGV[3] - call('HSTRLEN', KEYS[1], 'metadata')\n"
"  book(a, at, 0, more)\n"
"  local err = over(a, ARGV[1], ARGV[2])\n"
"  if err then return err end\n"
"  write('HSET', KEYS[1], 'stored',"
" at .. ' ' .. string.format('%.0f', b + more))\n"
"  settle(a)\n"
"end\n"
"return commit() or tonumber(c[1]) or 0\n";


#endif /* _DSA_CONVERSATIONS_SCRIPTS_H_INCLUDED_ */
