
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCRIPTS_H_INCLUDED_
#define _DSA_SCRIPTS_H_INCLUDED_


#include "lua.h"


/*
 * Redis does not roll back a script that fails.  Therefore each script first
 * reads and decides, and only then writes, so that no error can leave half of
 * its writes behind.  Its first write is a command that Redis refuses when its
 * memory is full.
 */


/*
 * Creates a conversation.  The role of a message is found at the beginning of
 * its JSON.  "first" counts the leading system messages, which are never
 * trimmed.
 *
 *     KEYS[1]  conversation
 *     ARGV     created, ttl, metadata, then the entries
 *
 * Returns 1, or 0 if the conversation exists.
 */

static const char  dsa_schema_create_script[] =
"if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end\n"
"local n, bytes, first = #ARGV - 3, 0, 0\n"
"for i = 4, #ARGV do bytes = bytes + #ARGV[i] end\n"
"while first < n"
" and ARGV[4 + first]:find('^{%s*\"role\"%s*:%s*\"system\"') do\n"
"  first = first + 1\n"
"end\n"
"redis.call('HSET', KEYS[1], 'version', 1, 'created', ARGV[1],"
" 'count', n, 'bytes', bytes, 'first', first, 'next', n,"
" 'metadata', ARGV[3])\n"
"for i = 1, n do\n"
"  redis.call('HSET', KEYS[1], i - 1, ARGV[3 + i])\n"
"end\n"
"redis.call('EXPIRE', KEYS[1], ARGV[2])\n"
"return 1\n";


/*
 * Writes the ledger entry of a request, appends its entries to a conversation,
 * and ends the lease of the turn, so that the next one may begin as soon as the
 * client has this answer.  The owner of a lease is the id of the request, with
 * which the marker's key ends.  Before that it folds a day of the ledger that
 * is old enough, which is complete in itself.
 *
 *     KEYS     done marker, ledger of the day, ledger of the month, the first
 *              day that is not folded, spend and, if there is one, conversation
 *              and its lease
 *     ARGV     ttl of the marker; how many days the ledger keeps; the day, in
 *              days since 1970; model; API key (empty: none); prompt and cached
 *              tokens, of these host and Redis tokens, completion and reasoning
 *              tokens; cost of missed and cached tokens and of the output, and
 *              their sum; with a conversation: version, ttl, limit of entries,
 *              limit of bytes, then the entries
 *
 * Returns { dsa_schema_result_e, 1 if an earlier call wrote the entry }.
 */

static const char  dsa_schema_record_script[] =
DSA_LUA_APPEND
DSA_LUA_ROOM
DSA_LUA_ROLL
"local done, ledger, month, rolled, spend, conv = KEYS[1], KEYS[2],"
" KEYS[3], KEYS[4], KEYS[5], KEYS[6]\n"
"local function is(key, want)\n"
"  local t = redis.call('TYPE', key).ok\n"
"  return t == want or t == 'none'\n"
"end\n"
"if not is(done, 'string') or not is(ledger, 'hash')"
" or not is(month, 'hash') or not is(rolled, 'string')"
" or not is(spend, 'hash') then\n"
"  return redis.error_reply("
"'DSADATA a key of the ledger has another type')\n"
"end\n"
"\n"
"local code = redis.call('GET', done)\n"
"if code then return { tonumber(code), 1 } end\n"
"\n"
"local date = ledger:sub(-10)\n"
"if tonumber(ARGV[3]) < roll(ledger, rolled, spend, tonumber(ARGV[2])) then\n"
"  ledger = month\n"
"end\n"
"\n"
"local sums = {}\n"
"local function add(hash, field, n)\n"
"  sums[#sums + 1] = { hash, field, n }\n"
"end\n"
"local key = ARGV[5]\n"
"for i, f in ipairs({ 'requests', 'prompt_tokens', 'cached_tokens',"
" 'cached_host_tokens', 'cached_redis_tokens', 'completion_tokens',"
" 'reasoning_tokens', 'cost_miss', 'cost_hit', 'cost_output' }) do\n"
"  local n = i == 1 and '1' or ARGV[4 + i]\n"
"  f = ARGV[4] .. '|' .. f\n"
"  add(ledger, f, n)\n"
"  if key ~= '' then add(ledger, key .. '|' .. f, n) end\n"
"end\n"
"if key ~= '' then\n"
"  add(spend, key, ARGV[15])\n"
"  add(spend, key .. '|' .. date:sub(1, 7), ARGV[15])\n"
"  if ledger ~= month then add(spend, key .. '|' .. date, ARGV[15]) end\n"
"end\n"
"for _, s in ipairs(sums) do\n"
"  if not room(redis.call('HGET', s[1], s[2]), s[3]) then\n"
"    return redis.error_reply("
"'DSADATA a field of the ledger is not a count, or too large')\n"
"  end\n"
"end\n"
"\n"
"code = 0\n"
"local p\n"
"if conv then\n"
"  p = look(conv)\n"
"  if p.code == 1 and p.version ~= ARGV[16] then\n"
"    p.code = 2\n"
"  elseif p.code == 1 then\n"
"    fit(conv, p, 20, tonumber(ARGV[18]), tonumber(ARGV[19]))\n"
"  end\n"
"  code = p.code\n"
"end\n"
"local leased = KEYS[7] and redis.call('TYPE', KEYS[7]).ok == 'string'"
" and ':' .. redis.call('GET', KEYS[7])\n"
"\n"
"for _, s in ipairs(sums) do\n"
"  redis.call('HINCRBY', s[1], s[2], s[3])\n"
"end\n"
"if code == 1 then append(conv, p, 20, ARGV[17]) end\n"
"if leased and done:sub(-#leased) == leased then\n"
"  redis.call('DEL', KEYS[7])\n"
"end\n"
"redis.call('SET', done, code, 'EX', ARGV[1])\n"
"return { code, 0 }\n";


/*
 * Reads the records of several answers.
 *
 *     KEYS     one for each answer
 *     ARGV     the most bytes of all records together
 *
 * Returns one element for each key: the record, or nil if the key does not
 * exist or has another type, or if the record exceeds the rest of the bytes.
 * STRLEN does not read the value, so a script never reads more than the limit.
 */

static const char  dsa_schema_retained_script[] =
"local left, out = tonumber(ARGV[1]), {}\n"
"for i, key in ipairs(KEYS) do\n"
"  local n = redis.pcall('STRLEN', key)\n"
"  out[i] = false\n"
"  if type(n) == 'number' and n > 0 and n <= left then\n"
"    out[i] = redis.call('GET', key)\n"
"    left = left - n\n"
"  end\n"
"end\n"
"return out\n";


/*
 * Reads the record of the last request that has one.
 *
 *     KEYS     one for each request of a history, oldest first
 *     ARGV     the most bytes of a record
 *
 * Returns the index of its key and the record, or nil.  A key of another type
 * or with a longer value has none; STRLEN does not read the value.
 */

static const char  dsa_schema_summary_script[] =
"for i = #KEYS, 1, -1 do\n"
"  local n = redis.pcall('STRLEN', KEYS[i])\n"
"  if type(n) == 'number' and n > 0 and n <= tonumber(ARGV[1]) then\n"
"    return { i, redis.call('GET', KEYS[i]) }\n"
"  end\n"
"end\n"
"return false\n";


#endif /* _DSA_SCRIPTS_H_INCLUDED_ */
