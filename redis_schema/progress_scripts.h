
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PROGRESS_SCRIPTS_H_INCLUDED_
#define _DSA_PROGRESS_SCRIPTS_H_INCLUDED_


#include "lua.h"


/*
 * A response that is in progress: a hash with its lease.  These scripts follow
 * the rule of scripts.h.
 */


/*
 * Begins a response that is not in the background.
 *
 *     KEYS     progress
 *     ARGV     seconds of a lease, ttl, before, after
 *
 * Returns 1.
 */

static const char  dsa_progress_begin_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
"if call('TYPE', KEYS[1]).ok == 'hash' then return 1 end\n"
"write('HSET', KEYS[1], 'state', 'running',"
" 'until', call('TIME')[1] + ARGV[1], 'before', ARGV[3], 'after', ARGV[4])\n"
"write('EXPIRE', KEYS[1], ARGV[2])\n"
"return commit() or 1\n";


/*
 * The share of a response in the background: its object, and room for its
 * events in steps, so that a chunk seldom changes the account.
 */

#define DSA_LUA_ROOM                                                          \
"local function room(object, events)\n"                                       \
"  return size(0, object + 65536 * math.ceil(events / 65536))\n"              \
"end\n"


/*
 * Begins a response in the background.
 *
 *     KEYS     progress, account of the tenant
 *     ARGV     seconds of a lease, ttl, before, after, most bytes and most
 *              objects of the account, 1 if its events are kept
 *
 * Returns 1.
 */

static const char  dsa_progress_background_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
DSA_LUA_ROOM
"if call('TYPE', KEYS[1]).ok == 'hash' then return 1 end\n"
"local a, object = account(KEYS[2]), #ARGV[3] + #ARGV[4]\n"
"local share = give(a, tonumber(ARGV[2]), room(object, 0))\n"
"local err = over(a, ARGV[5], ARGV[6])\n"
"if err then return err end\n"
"write('HSET', KEYS[1], 'state', 'running', 'background', '1',"
" 'until', a.now + ARGV[1], 'before', ARGV[3], 'after', ARGV[4],"
" 'object', object, 'streams', ARGV[7], 'stored', share)\n"
"write('EXPIRE', KEYS[1], ARGV[2])\n"
"settle(a)\n"
"return commit() or 1\n";


/* How the worker of a response sees its state: dsa_progress_e. */

#define DSA_LUA_RUNS                                                          \
"local function runs(key)\n"                                                  \
"  if call('TYPE', key).ok ~= 'hash' then return 0 end\n"                     \
"  local state = call('HGET', key, 'state')\n"                                \
"  return state == 'running' and 1 or state == 'cancelled' and 2 or 0\n"      \
"end\n"


/*
 * Renews the lease.
 *
 *     KEYS     progress
 *     ARGV     seconds of a lease
 *
 * Returns dsa_progress_e.
 */

static const char  dsa_progress_renew_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_RUNS
"local state = runs(KEYS[1])\n"
"if state ~= 1 then return state end\n"
"write('HSET', KEYS[1], 'until', call('TIME')[1] + ARGV[1])\n"
"return commit() or 1\n";


/*
 * Stores a chunk of events.
 *
 *     KEYS     progress, events, account of the tenant
 *     ARGV     seconds of a lease, ttl, number, text, most bytes of the events,
 *              most bytes and most objects of the account
 *
 * Returns dsa_progress_e.
 */

static const char  dsa_progress_append_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
DSA_LUA_ROOM
DSA_LUA_RUNS
"local state = runs(KEYS[1])\n"
"if state ~= 1 then return state end\n"
"local v = call('HMGET', KEYS[1], 'bytes', 'object', 'stored')\n"
"local old, object = count(v[1]) or 0, count(v[2]) or 0\n"
"local bytes = old + #ARGV[4] - call('HSTRLEN', KEYS[2], ARGV[3])\n"
"local share, a = v[3] or '', false\n"
"if bytes > tonumber(ARGV[5]) then\n"
"  write('HSET', KEYS[1], 'until', call('TIME')[1] + ARGV[1])\n"
"  write('HSET', KEYS[2], 'large', '1')\n"
"  write('EXPIRE', KEYS[2], ARGV[2])\n"
"  return commit() or 3\n"
"end\n"
"if room(object, bytes) ~= room(object, old) then\n"
"  a = account(KEYS[3])\n"
"  take(a, share)\n"
"  share = give(a, tonumber(ARGV[2]), room(object, bytes))\n"
"  local err = over(a, ARGV[6], ARGV[7])\n"
"  if err then return err end\n"
"end\n"
"write('HSET', KEYS[1], 'until', call('TIME')[1] + ARGV[1],"
" 'bytes', bytes, 'stored', share)\n"
"write('HSET', KEYS[2], ARGV[3], ARGV[4])\n"
"write('EXPIRE', KEYS[2], ARGV[2])\n"
"if a then settle(a) end\n"
"return commit() or 1\n";


/*
 * Ends a response without an answer.
 *
 *     KEYS     progress, events, account of the tenant
 *     ARGV     why; empty: nothing is kept; ttl of the events
 *
 * Returns 1, or 0 if it does not run.
 */

static const char  dsa_progress_end_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
DSA_LUA_RUNS
"if runs(KEYS[1]) ~= 1 then return 0 end\n"
"if ARGV[1] ~= '' then\n"
"  write('HSET', KEYS[1], 'state', 'failed', 'error', ARGV[1])\n"
"  write('EXPIRE', KEYS[2], ARGV[2])\n"
"  return commit() or 1\n"
"end\n"
"local share = call('HGET', KEYS[1], 'stored')\n"
"local a = share and account(KEYS[3])\n"
"if a then take(a, share) end\n"
"write('EXPIRE', KEYS[1], -1)\n"
"write('EXPIRE', KEYS[2], -1)\n"
"if a then settle(a) end\n"
"return commit() or 1\n";


/*
 * What a reader gets of a response that is not stored: dsa_progress_state_e
 * and before, after and why it has failed.
 */

#define DSA_LUA_VIEW                                                          \
"local function view(key, stopped)\n"                                         \
"  if call('TYPE', key).ok == 'none' then return { 4 } end\n"                 \
"  local v = call('HMGET', key, 'state', 'until', 'before', 'after',"         \
" 'error')\n"                                                                 \
"  if not (v[1] and v[2] and v[3] and v[4]) then\n"                           \
"    return redis.error_reply('DSADATA a response in progress has another"    \
" layout')\n"                                                                 \
"  end\n"                                                                     \
"  local state = 2\n"                                                         \
"  if v[1] == 'cancelled' or stopped then\n"                                  \
"    state = 3\n"                                                             \
"  elseif v[1] == 'running'"                                                  \
" and (tonumber(v[2]) or 0) >= tonumber(call('TIME')[1]) then\n"              \
"    state = 1\n"                                                             \
"  end\n"                                                                     \
"  return { state, v[3], v[4], v[5] or '' }\n"                                \
"end\n"                                                                       \
"local function node(key)\n"                                                  \
"  if call('TYPE', key).ok == 'none' then return false end\n"                 \
"  local v = call('HMGET', key, 'before', 'output', 'after')\n"               \
"  return v[1] and v[2] and v[3] and { 0, v[1], v[2], v[3] }\n"               \
"end\n"


/*
 * Reads a response.
 *
 *     KEYS     node, progress
 *
 * Returns { 0, before, output, after } if it is stored, or { state, before,
 * after, why }, or { state }.
 */

static const char  dsa_progress_read_script[] =
DSA_LUA_CALL
DSA_LUA_VIEW
"return node(KEYS[1]) or view(KEYS[2])\n";


/*
 * Cancels a response that runs in the background.
 *
 *     KEYS     node, progress, events
 *     ARGV     ttl of the events
 *
 * Returns as the script before.
 */

static const char  dsa_progress_cancel_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_VIEW
"local stored = node(KEYS[1])\n"
"if stored then return stored end\n"
"local v = view(KEYS[2])\n"
"if v.err or v[1] == 4 then return v end\n"
"if call('HGET', KEYS[2], 'background') ~= '1' then return { 5 } end\n"
"if v[1] ~= 1 then return v end\n"
"write('HSET', KEYS[2], 'state', 'cancelled')\n"
"write('EXPIRE', KEYS[3], ARGV[1])\n"
"return commit() or view(KEYS[2], true)\n";


/*
 * Reads events.
 *
 *     KEYS     node, progress, events
 *     ARGV     number of the first chunk, most chunks
 *
 * Returns { exists, runs, kept, large, chunk, ... }.
 */

static const char  dsa_progress_follow_script[] =
DSA_LUA_CALL
DSA_LUA_VIEW
"local v = view(KEYS[2])\n"
"if v.err then return v end\n"
"local stored = v[1] == 4 and node(KEYS[1])\n"
"local hash = call('TYPE', KEYS[3]).ok == 'hash'\n"
"local kept = hash or v[1] ~= 4 and call('HGET', KEYS[2], 'streams') == '1'\n"
"local out = { (stored or v[1] ~= 4) and 1 or 0, v[1] == 1 and 1 or 0,"
" kept and 1 or 0, hash and call('HEXISTS', KEYS[3], 'large') or 0 }\n"
"local first = tonumber(ARGV[1])\n"
"for i = first, first + ARGV[2] - 1 do\n"
"  local chunk = hash and call('HGET', KEYS[3], string.format('%.0f', i))\n"
"  if not chunk then break end\n"
"  out[#out + 1] = chunk\n"
"end\n"
"return out\n";


#endif /* _DSA_PROGRESS_SCRIPTS_H_INCLUDED_ */
