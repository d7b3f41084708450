
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_KEYS_SCRIPTS_H_INCLUDED_
#define _DSA_KEYS_SCRIPTS_H_INCLUDED_


#include "lua.h"


/*
 * As the scripts of scripts.h, these read and decide before they commit.
 * Counts remain strings: a number of Lua is a double, which is exact up to
 * 2^53.
 */


/* Whether KEYS have the types that these scripts give them. */

#define DSA_LUA_KEY_TYPES                                                     \
"local types = { 'hash', 'string', 'zset', 'hash' }\n"                        \
"for i, key in ipairs(KEYS) do\n"                                             \
"  local t = call('TYPE', key).ok\n"                                          \
"  if t ~= types[i] and t ~= 'none' then\n"                                   \
"    return redis.error_reply('DSADATA ' .. key .. ' has another type')\n"    \
"  end\n"                                                                     \
"end\n"                                                                       \
"local version = call('GET', KEYS[2]) or '0'\n"                               \
"if not version:find('^%d+$') or #version > 15 then\n"                        \
"  return redis.error_reply('DSADATA ' .. KEYS[2] .. ' is not a version')\n"  \
"end\n"


/*
 * Stores the entry of a key.  In an entry, a text that contains "hash": has
 * its quotes escaped, so the pattern finds the members alone.
 *
 *     KEYS     entries, version, changes, hashes
 *     ARGV     id, entry, the entry before (empty: none), hash, old hash
 *              (empty: none)
 *
 * Returns dsa_key_put_e.
 */

static const char  dsa_key_put_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_KEY_TYPES
"local id = ARGV[1]\n"
"local now = call('HGET', KEYS[1], id)\n"
"if ARGV[3] == '' then\n"
"  if now then return 1 end\n"
"elseif now ~= ARGV[3] then\n"
"  return 2\n"
"end\n"
"for i = 4, 5 do\n"
"  local owner = call('HGET', KEYS[4], ARGV[i])\n"
"  if owner and owner ~= id then return 3 end\n"
"end\n"
"\n"
"write('HSET', KEYS[1], id, ARGV[2])\n"
"write('HSET', KEYS[4], ARGV[4], id)\n"
"if ARGV[5] ~= '' then write('HSET', KEYS[4], ARGV[5], id) end\n"
"for h in (now or ''):gmatch('\"hash\"%s*:%s*\"(%x+)\"') do\n"
"  if h ~= ARGV[4] and h ~= ARGV[5] and call('HGET', KEYS[4], h) == id then\n"
"    write('HDEL', KEYS[4], h)\n"
"  end\n"
"end\n"
"version = string.format('%.0f', tonumber(version) + 1)\n"
"write('SET', KEYS[2], version)\n"
"write('ZADD', KEYS[3], version, id)\n"
"return commit() or 0\n";


/*
 * Reads changed entries.
 *
 *     KEYS     entries, version, changes
 *     ARGV     the version that the reader has, most entries, most bytes of a
 *              entry
 *
 * Returns { version, and for each entry: version, id, entry }.  An entry that
 * is missing or too long is empty.
 */

static const char  dsa_key_sync_script[] =
DSA_LUA_CALL
DSA_LUA_KEY_TYPES
"local out = { version }\n"
"local list = call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[1], '+inf',"
" 'WITHSCORES', 'LIMIT', 0, ARGV[2])\n"
"for i = 1, #list, 2 do\n"
"  local id, entry = list[i], ''\n"
"  if call('HSTRLEN', KEYS[1], id) <= tonumber(ARGV[3]) then\n"
"    entry = call('HGET', KEYS[1], id) or ''\n"
"  end\n"
"  out[#out + 1] = list[i + 1]\n"
"  out[#out + 1] = id\n"
"  out[#out + 1] = entry\n"
"end\n"
"return out\n";


/*
 * Adds the use of a key on one host to what is missing from its buckets, after
 * these were refilled, and renews the lease on what runs there.  A lease is
 * "RUNNING UNTIL" with a time in milliseconds.  One that has ended is removed,
 * because its host stopped.  So is one that ends later than a lease that begins
 * now: the clock of Redis was set back, and a host that runs renews its lease.
 * What is missing is a double here, because it is exact below 2^53 parts, and
 * refilling makes up for its rounding above that.
 *
 *     KEYS[1]  what the hosts share
 *     ARGV     host, running, ttl of the lease in milliseconds, least ttl of
 *              the key in seconds, and for requests and tokens each: rate, used
 *              parts, parts that are missing on this host at least
 *
 * Returns { parts of requests that are missing, parts of tokens, what runs on
 * other hosts }.
 */

static const char  dsa_key_share_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
"local key, me = KEYS[1], 'h:' .. ARGV[1]\n"
"local t = call('TYPE', key).ok\n"
"if t ~= 'hash' and t ~= 'none' then\n"
"  return redis.error_reply('DSADATA ' .. key .. ' has another type')\n"
"end\n"
"local time = call('TIME')\n"
"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
"local all, ended, running = call('HGETALL', key), {}, 0\n"
"local had = { time = now, requests = 0, tokens = 0 }\n"
"for i = 1, #all, 2 do\n"
"  local field, value = all[i], all[i + 1]\n"
"  if field:sub(1, 2) == 'h:' then\n"
"    local n, last = value:match('^(%d+) (%d+)$')\n"
"    if not n or tonumber(last) <= now"
" or tonumber(last) > now + ARGV[3] then\n"
"      ended[#ended + 1] = field\n"
"    elseif field ~= me then\n"
"      running = running + tonumber(n)\n"
"    end\n"
"  elseif not value:find('^%d+$') or #value > 18 then\n"
"    return redis.error_reply('DSADATA a field of ' .. key"
" .. ' is not a count')\n"
"  else\n"
"    had[field] = tonumber(value)\n"
"  end\n"
"end\n"
"\n"
"local ms, ttl, out = math.max(now - had.time, 0), tonumber(ARGV[4]), {}\n"
"for i, field in ipairs({ 'requests', 'tokens' }) do\n"
"  local rate, used, least = tonumber(ARGV[2 + 3 * i]),"
" tonumber(ARGV[3 + 3 * i]), tonumber(ARGV[4 + 3 * i])\n"
"  local missing = math.max(had[field] - rate * ms, 0) + used\n"
"  missing = math.min(math.max(missing, least), 6e17)\n"
"  if rate > 0 then\n"
"    ttl = math.min(math.max(ttl, math.ceil(missing / rate / 1000)), 1e9)\n"
"  end\n"
"  out[i] = string.format('%.0f', missing)\n"
"  write('HSET', key, field, out[i])\n"
"end\n"
"write('HSET', key, 'time', string.format('%.0f', now))\n"
"for _, field in ipairs(ended) do write('HDEL', key, field) end\n"
"if ARGV[2] == '0' then\n"
"  write('HDEL', key, me)\n"
"else\n"
"  write('HSET', key, me, ARGV[2] .. ' '"
" .. string.format('%.0f', now + ARGV[3]))\n"
"end\n"
"write('EXPIRE', key, string.format('%.0f', ttl))\n"
"out[3] = string.format('%.0f', running)\n"
"return commit() or out\n";


#endif /* _DSA_KEYS_SCRIPTS_H_INCLUDED_ */
