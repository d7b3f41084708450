
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_IDEMPOTENCY_SCRIPTS_H_INCLUDED_
#define _DSA_IDEMPOTENCY_SCRIPTS_H_INCLUDED_


#include "lua.h"


/*
 * What a tenant has used in the last 24 hours, in a hash with two fields for
 * each hour, so that neither its size nor the time to read it grows.  Fields
 * of hours whose keys have expired are removed.  nil: the key has another type.
 */

#define DSA_LUA_USED                                                          \
DSA_LUA_COUNT                                                                 \
"local function used(key, hour)\n"                                            \
"  local sum = { keys = 0, bytes = 0 }\n"                                     \
"  local t = call('TYPE', key).ok\n"                                          \
"  if t == 'none' then return sum end\n"                                      \
"  if t ~= 'hash' then return nil end\n"                                      \
"  local all = call('HGETALL', key)\n"                                        \
"  for i = 1, #all, 2 do\n"                                                   \
"    local h, what = all[i]:match('^(%d+)|(%l+)$')\n"                         \
"    local n = count(all[i + 1])\n"                                           \
"    if h and tonumber(h) < hour - 24 then\n"                                 \
"      write('HDEL', key, all[i])\n"                                          \
"    elseif n and sum[what] then\n"                                           \
"      sum[what] = sum[what] + n\n"                                           \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  return sum\n"                                                              \
"end\n"                                                                       \
"local function damaged()\n"                                                  \
"  return redis.error_reply('DSADATA the idempotency keys of a tenant"        \
" have another layout')\n"                                                    \
"end\n"


/*
 * Claims an idempotency key for a request, unless another one has it.
 *
 *     KEYS[1]  the idempotency key
 *     KEYS[2]  what the tenant has used
 *     ARGV     digest of the request, its id, seconds of a lease, ttl, most
 *              keys of a tenant, ttl of KEYS[2]
 *
 * Returns { dsa_idempotency_e }, where 5 is followed by the state, the id of a
 * stored object, and the answer.
 */

static const char  dsa_idempotency_claim_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_USED
"local key, now = KEYS[1], tonumber(call('TIME')[1])\n"
"local t = call('TYPE', key).ok\n"
"if t == 'hash' then\n"
"  local v = call('HMGET', key, 'digest', 'state', 'until', 'object',"
" 'answer')\n"
"  if not (v[1] and v[2] and count(v[3])) then return damaged() end\n"
"  if v[1] ~= ARGV[1] then return { 2 } end\n"
"  if v[2] ~= 'running' then\n"
"    return { 5, v[2], v[4] or '', v[5] or '' }\n"
"  end\n"
"  return { tonumber(v[3]) < now and 3 or 1 }\n"
"end\n"
"if t ~= 'none' then return damaged() end\n"
"local hour = math.floor(now / 3600)\n"
"local sum = used(KEYS[2], hour)\n"
"if not sum then return damaged() end\n"
"if sum.keys >= tonumber(ARGV[5]) then return { 4 } end\n"
"write('HSET', key, 'digest', ARGV[1], 'owner', ARGV[2], 'state', 'running',"
" 'until', now + ARGV[3], 'hour', hour)\n"
"write('EXPIRE', key, ARGV[4])\n"
"write('HINCRBY', KEYS[2], hour .. '|keys', 1)\n"
"write('EXPIRE', KEYS[2], ARGV[6])\n"
"return commit() or { 0 }\n";


/*
 * Whether the request ARGV[1] still has the key, and runs.  Then v has the
 * hour in which it claimed the key.
 */

#define DSA_LUA_OWNS                                                          \
"local v = {}\n"                                                              \
"local function owns()\n"                                                     \
"  if call('TYPE', KEYS[1]).ok ~= 'hash' then return false end\n"             \
"  v = call('HMGET', KEYS[1], 'owner', 'state', 'hour')\n"                    \
"  return v[1] == ARGV[1] and v[2] == 'running' and v[3]\n"                   \
"end\n"


/*
 * Renews the lease of a claim.
 *
 *     KEYS[1]  the idempotency key
 *     ARGV     id of the request, seconds of a lease
 *
 * Returns 1, or 0 if the request does not have the key.
 */

static const char  dsa_idempotency_renew_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_OWNS
"if not owns() then return 0 end\n"
"write('HSET', KEYS[1], 'until', call('TIME')[1] + ARGV[2])\n"
"return commit() or 1\n";


/*
 * Stores how a request has ended.
 *
 *     KEYS[1]  the idempotency key
 *     KEYS[2]  what the tenant has used
 *     ARGV     id of the request, state, id of a stored object, answer, most
 *              bytes of a tenant
 *
 * Returns 1, or 0 if the request does not have the key; 2: the answer is left
 * out, because the tenant's answers would exceed the limit.
 */

static const char  dsa_idempotency_finish_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_USED
DSA_LUA_OWNS
"if not owns() then return 0 end\n"
"local hour = math.floor(call('TIME')[1] / 3600)\n"
"local sum = used(KEYS[2], hour)\n"
"if not sum then return damaged() end\n"
"local state, answer, result = ARGV[2], ARGV[4], 1\n"
"if sum.bytes + #answer > tonumber(ARGV[5]) then\n"
"  state, answer, result = 'large', '', 2\n"
"end\n"
"write('HSET', KEYS[1], 'state', state, 'object', ARGV[3],"
" 'answer', answer)\n"
"write('HINCRBY', KEYS[2], v[3] .. '|bytes', #answer)\n"
"return commit() or result\n";


/*
 * Gives a key back, because the request failed and is not charged.
 *
 *     KEYS[1]  the idempotency key
 *     KEYS[2]  what the tenant has used
 *     ARGV     id of the request
 *
 * Returns 1, or 0 if the request does not have the key.
 */

static const char  dsa_idempotency_release_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_OWNS
"if not owns() then return 0 end\n"
"write('EXPIRE', KEYS[1], -1)\n"
"if call('TYPE', KEYS[2]).ok == 'hash' then\n"
"  write('HINCRBY', KEYS[2], v[3] .. '|keys', -1)\n"
"end\n"
"return commit() or 1\n";


#endif /* _DSA_IDEMPOTENCY_SCRIPTS_H_INCLUDED_ */
