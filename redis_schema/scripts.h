
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCRIPTS_H_INCLUDED_
#define _DSA_SCRIPTS_H_INCLUDED_


#include "lua.h"


/*
 * Each script reads and decides, notes its writes, and commits them at its end:
 * see lua.h.  Nothing can fail after its first write, which is a command that
 * Redis refuses when its memory is full.
 */


/*
 * Creates a conversation.  The role of a message is found at the beginning of
 * its JSON.  "first" counts the leading system messages, which are never
 * trimmed.
 *
 *     KEYS     conversation, account of the tenant
 *     ARGV     created, ttl, most bytes and most objects of the account,
 *              metadata, then the entries
 *
 * Returns 1, or 0 if the conversation exists.
 */

static const char  dsa_schema_create_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"if call('EXISTS', KEYS[1]) == 1 then return 0 end\n"
"local n, bytes, first = #ARGV - 5, 0, 0\n"
"for i = 6, #ARGV do bytes = bytes + #ARGV[i] end\n"
"while first < n"
" and ARGV[6 + first]:find('^{%s*\"role\"%s*:%s*\"system\"') do\n"
"  first = first + 1\n"
"end\n"
"local a = account(KEYS[2])\n"
"local share = give(a, tonumber(ARGV[2]), size(n, bytes + #ARGV[5]))\n"
"local err = over(a, ARGV[3], ARGV[4])\n"
"if err then return err end\n"
"write('HSET', KEYS[1], 'version', 1, 'created', ARGV[1],"
" 'count', n, 'bytes', bytes, 'first', first, 'next', n,"
" 'metadata', ARGV[5], 'stored', share)\n"
"for i = 1, n do write('HSET', KEYS[1], i - 1, ARGV[5 + i]) end\n"
"write('EXPIRE', KEYS[1], ARGV[2])\n"
"settle(a)\n"
"return commit() or 1\n";


/*
 * Writes the ledger entry of a request, appends its entries to a conversation,
 * and ends the lease of the turn, so that the next one may begin as soon as the
 * client has this answer.  The owner of a lease is the id of the request.  It
 * also folds a day of the ledger that is old enough.
 *
 * An entry has a number, in a cell of its sender.  A cell has one entry at
 * a time, and the next one has a higher number.  The marker of the cell is that
 * of the last entry which was written: 8 times its number, and the result.  So
 * an entry with a lower number was written before, or was given up.
 *
 *     KEYS     markers of the sender, ledger of the day, ledger of the month,
 *              the first day that is not folded, spend and, if there is one,
 *              conversation, its lease and the account of the tenant; at the
 *              end the absent key, because the days that are folded, and their
 *              months, are not declared
 *     ARGV     ttl of the markers; cell; number; how many days the ledger
 *              keeps; the day, in days since 1970; model; API key (empty:
 *              none); prompt and cached tokens; the fields of the tiers that
 *              had the cached tokens, each with its count; completion and
 *              reasoning tokens; cost of missed and cached
 *              tokens and of the output, and their sum; with a conversation:
 *              request, version, ttl, most bytes and most objects of the
 *              account, limit of entries, limit of bytes, then the entries
 *
 * Returns { dsa_schema_result_e, 1 if an earlier call wrote the entry }.
 */

static const char  dsa_schema_record_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_APPEND
DSA_LUA_STORED
DSA_LUA_CHANGE
DSA_LUA_PLUS
DSA_LUA_ROLL
"local done, ledger, month, rolled, spend, conv = KEYS[1], KEYS[2],"
" KEYS[3], KEYS[4], KEYS[5], KEYS[9] and KEYS[6]\n"
"local number, key, date, other = tonumber(ARGV[3]), ARGV[7],"
" ledger:sub(-10), false\n"
"local function read(...)\n"
"  local r = attempt(...)\n"
"  other = other or type(r) == 'table' and r.err\n"
"  return r\n"
"end\n"
"local function is(key)\n"
"  local t = call('TYPE', key).ok\n"
"  return t == 'hash' or t == 'none'\n"
"end\n"
"local had, first = read('HGET', done, ARGV[2]), read('GET', rolled)\n"
"local own = { key, key .. '|' .. date:sub(1, 7), key .. '|' .. date }\n"
"local spent = key ~= '' and read('HMGET', spend, unpack(own))\n"
"if other or not is(ledger) or not is(month)"
" or key == '' and not is(spend) then\n"
"  return redis.error_reply('DSADATA a key of the ledger has another type')\n"
"end\n"
"\n"
"if had then\n"
"  had = had:find('^%d+$') and #had <= 16 and tonumber(had)\n"
"  if not had or had % 8 > 6 then\n"
"    return redis.error_reply('DSADATA a marker of the ledger is damaged')\n"
"  end\n"
"  local last = math.floor(had / 8)\n"
"  if number == last then return { had % 8, 1 } end\n"
"  if number < last then return { 0, 1 } end\n"
"end\n"
"\n"
"if roll(ledger, rolled, first, spend, tonumber(ARGV[4]), tonumber(ARGV[5]))"
" then\n"
"  ledger, own[3] = month, nil\n"
"end\n"
"\n"
"local function add(hash, fields, had, n)\n"
"  local set = {}\n"
"  for i, f in ipairs(fields) do\n"
"    local sum = plus(had[i], n[i])\n"
"    if not sum then return false end\n"
"    set[2 * i - 1], set[2 * i] = f, sum\n"
"  end\n"
"  write('HSET', hash, unpack(set))\n"
"  return true\n"
"end\n"
"local names = { 'requests', 'prompt_tokens', 'cached_tokens' }\n"
"local counts = { '1', ARGV[8], ARGV[9] }\n"
"for f, count in ARGV[10]:gmatch('(%S+) (%S+)') do\n"
"  names[#names + 1], counts[#counts + 1] = f, count\n"
"end\n"
"for i, f in ipairs({ 'completion_tokens', 'reasoning_tokens', 'cost_miss',"
" 'cost_hit', 'cost_output' }) do\n"
"  names[#names + 1], counts[#counts + 1] = f, ARGV[10 + i]\n"
"end\n"
"local sum, fields, n = ARGV[16], {}, {}\n"
"for _, of in ipairs({ '', key ~= '' and key .. '|' or nil }) do\n"
"  for i, f in ipairs(names) do\n"
"    fields[#fields + 1] = of .. ARGV[6] .. '|' .. f\n"
"    n[#n + 1] = counts[i]\n"
"  end\n"
"end\n"
"local fits = add(ledger, fields, call('HMGET', ledger, unpack(fields)), n)\n"
"if key ~= '' then\n"
"  fits = add(spend, own, spent, { sum, sum, sum }) and fits\n"
"end\n"
"if not fits then\n"
"  return redis.error_reply("
"'DSADATA a field of the ledger is not a count, or too large')\n"
"end\n"
"\n"
"local code = 0\n"
"if conv then\n"
"  local p = look(conv)\n"
"  if p.code == 1 and p.version ~= ARGV[18] then\n"
"    p.code = 2\n"
"  elseif p.code == 1 then\n"
"    fit(conv, p, 24, tonumber(ARGV[22]), tonumber(ARGV[23]))\n"
"  end\n"
"  code = p.code\n"
"  if code == 1 then\n"
"    local a = account(KEYS[8])\n"
"    local share = change(a, conv, p, ARGV[19])\n"
"    if over(a, ARGV[20], ARGV[21]) then\n"
"      code = 6\n"
"    else\n"
"      append(conv, p, 24, ARGV[19], share)\n"
"      settle(a)\n"
"    end\n"
"  end\n"
"  if call('TYPE', KEYS[7]).ok == 'string'"
" and call('GET', KEYS[7]) == ARGV[17] then\n"
"    write('EXPIRE', KEYS[7], -1)\n"
"  end\n"
"end\n"
"write('HSET', done, ARGV[2], string.format('%.0f', number * 8 + code))\n"
"write('EXPIRE', done, ARGV[1])\n"
"return commit() or { code, 0 }\n";


/*
 * Stores an answer.
 *
 *     KEYS     answer, account of the tenant
 *     ARGV     milliseconds, most bytes and most objects of the account,
 *              answer
 *
 * Returns 1, or 0 if an earlier call has stored it.
 */

static const char  dsa_schema_retain_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"if call('EXISTS', KEYS[1]) == 1 then return 0 end\n"
"local a = account(KEYS[2])\n"
"give(a, math.ceil(tonumber(ARGV[1]) / 1000), size(0, #ARGV[4]))\n"
"local err = over(a, ARGV[2], ARGV[3])\n"
"if err then return err end\n"
"write('SET', KEYS[1], ARGV[4], 'PX', ARGV[1])\n"
"settle(a)\n"
"return commit() or 1\n";


/*
 * Reads several retained answers.
 *
 *     KEYS     one for each answer
 *     ARGV     the most bytes of all answers together
 *
 * Returns one element for each key: the answer, or nil if the key does not
 * exist or has another type, or if the answer exceeds the rest of the bytes.
 * STRLEN does not read the value, so a script never reads more than the limit.
 */

static const char  dsa_schema_retained_script[] =
DSA_LUA_CALL
"local left, out = tonumber(ARGV[1]), {}\n"
"for i, key in ipairs(KEYS) do\n"
"  local n = attempt('STRLEN', key)\n"
"  out[i] = false\n"
"  if type(n) == 'number' and n > 0 and n <= left then\n"
"    out[i] = call('GET', key)\n"
"    left = left - n\n"
"  end\n"
"end\n"
"return out\n";


/*
 * Reads the summary of the last request that has one.
 *
 *     KEYS     one for each request of a history, oldest first
 *     ARGV     the most bytes of a value
 *
 * Returns the index of its key and the value, or nil.  A key of another type
 * or with a longer value has none; STRLEN does not read the value.
 */

static const char  dsa_schema_summary_script[] =
DSA_LUA_CALL
"for i = #KEYS, 1, -1 do\n"
"  local n = attempt('STRLEN', KEYS[i])\n"
"  if type(n) == 'number' and n > 0 and n <= tonumber(ARGV[1]) then\n"
"    return { i, call('GET', KEYS[i]) }\n"
"  end\n"
"end\n"
"return false\n";


#endif /* _DSA_SCRIPTS_H_INCLUDED_ */
