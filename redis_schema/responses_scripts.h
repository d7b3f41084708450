
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RESPONSES_SCRIPTS_H_INCLUDED_
#define _DSA_RESPONSES_SCRIPTS_H_INCLUDED_


#include "lua.h"


/*
 * The keys of the nodes before the first one are not among KEYS, because only
 * the nodes have the ids.  They have the same hash tag, so that they are in the
 * same cluster slot.  While that is moved, the absent key keeps a script
 * from running that would not find all nodes; a node that is saved is such a
 * key itself, because it does not exist before.
 */


/*
 * Stores a node.  It is not changed if it exists, or if it was withdrawn.
 * Nodes before it stay as long as it does.
 *
 *     KEYS     node, account of the tenant, progress, events
 *     ARGV     prefix of keys, most nodes of a chain, ttl, most bytes and most
 *              objects of the account, created, parent, input, before, output,
 *              after, conversation, ttl of the events if the response was in
 *              the background and empty otherwise
 *
 * Returns 1, or 0 if the node exists or was withdrawn; 2 if it was in the
 * background, and was cancelled or deleted.
 */

static const char  dsa_response_save_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"local t = call('TYPE', KEYS[1]).ok\n"
"if t == 'hash' then return 0 end\n"
"if t ~= 'none' then\n"
"  return redis.error_reply("
"'DSADATA the key of a response has another type')\n"
"end\n"
"local p, back = {}, ARGV[13] ~= ''\n"
"if call('TYPE', KEYS[3]).ok == 'hash' then\n"
"  p = call('HMGET', KEYS[3], 'state', 'stored', 'bytes')\n"
"end\n"
"if back and p[1] ~= 'running' then return 2 end\n"
"local a, ttl = account(KEYS[2]), tonumber(ARGV[3])\n"
"if back then\n"
"  take(a, p[2])\n"
"  if count(p[3]) then\n"
"    give(a, tonumber(ARGV[13]), size(0, count(p[3])))\n"
"  end\n"
"end\n"
"local share = give(a, ttl, size(0, #ARGV[8] + #ARGV[9] + #ARGV[10]"
" + #ARGV[11]))\n"
"local err = over(a, ARGV[4], ARGV[5])\n"
"if err then return err end\n"
"write('HSET', KEYS[1], 'created', ARGV[6], 'parent', ARGV[7],"
" 'input', ARGV[8], 'before', ARGV[9], 'output', ARGV[10],"
" 'after', ARGV[11], 'stored', share)\n"
"if ARGV[12] ~= '' then\n"
"  write('HSET', KEYS[1], 'conversation', ARGV[12])\n"
"end\n"
"write('EXPIRE', KEYS[1], ttl)\n"
"if p[1] then write('EXPIRE', KEYS[3], -1) end\n"
"if back then write('EXPIRE', KEYS[4], ARGV[13]) end\n"
"local id, seen = ARGV[7], {}\n"
"for i = 1, tonumber(ARGV[2]) do\n"
"  local key = ARGV[1] .. id\n"
"  if id == '' or seen[id] or call('TYPE', key).ok ~= 'hash' then"
" break end\n"
"  seen[id] = true\n"
"  local v = call('HMGET', key, 'parent', 'stored')\n"
"  local b = count(v[2] and v[2]:match('^%d+ (%d+)$'))\n"
"  if b then\n"
"    take(a, v[2])\n"
"    share = give(a, ttl, b)\n"
"    if share ~= v[2] then write('HSET', key, 'stored', share) end\n"
"  end\n"
"  write('EXPIRE', key, ttl)\n"
"  id = v[1] or ''\n"
"end\n"
"settle(a)\n"
"return commit() or 1\n";


/*
 * Removes a response: what is stored of it, or, if it is in the background,
 * what it is until then.
 *
 *     KEYS     node, account of the tenant, progress, events
 *
 * Returns 1, or 0 if there is no such response.
 */

static const char  dsa_response_delete_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"local a, n = account(KEYS[2]), 0\n"
"local function remove(key)\n"
"  n = 1\n"
"  write('EXPIRE', key, -1)\n"
"  if call('TYPE', key).ok == 'hash' then\n"
"    take(a, call('HGET', key, 'stored'))\n"
"  end\n"
"end\n"
"if call('TYPE', KEYS[1]).ok ~= 'none' then remove(KEYS[1]) end\n"
"if call('TYPE', KEYS[3]).ok == 'hash'"
" and call('HGET', KEYS[3], 'background') then\n"
"  remove(KEYS[3])\n"
"end\n"
"if n == 0 then return 0 end\n"
"write('EXPIRE', KEYS[4], -1)\n"
"settle(a)\n"
"return commit() or 1\n";


/*
 * Withdraws a node that may be stored, or may be stored later, because the
 * command is on its way.  The key then has the field withdrawn alone, which a
 * reader takes for a key that does not exist.
 *
 *     KEYS     node, account of the tenant, absent key
 *     ARGV     ttl
 *
 * Returns 1.
 */

static const char  dsa_response_withdraw_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"local t = call('TYPE', KEYS[1]).ok\n"
"local a = t == 'hash' and account(KEYS[2])\n"
"if a then take(a, call('HGET', KEYS[1], 'stored')) end\n"
"write('EXPIRE', KEYS[1], -1)\n"
"write('HSET', KEYS[1], 'withdrawn', '1')\n"
"write('EXPIRE', KEYS[1], ARGV[1])\n"
"if a then settle(a) end\n"
"return commit() or 1\n";


/*
 * Reads a node and all nodes before it.
 *
 *     KEYS     node, absent key
 *     ARGV     prefix of keys, most nodes of a chain, most bytes of it
 *
 * Returns { dsa_response_result_e, input and output of each node, oldest node
 * first }.
 */

static const char  dsa_response_chain_script[] =
DSA_LUA_CALL
"local key, out, bytes = KEYS[1], {}, 0\n"
"repeat\n"
"  local t = call('TYPE', key).ok\n"
"  if t ~= 'hash' and t ~= 'none' then return { 5 } end\n"
"  if t == 'none' or call('HEXISTS', key, 'withdrawn') == 1 then\n"
"    return { #out == 0 and 1 or 2 }\n"
"  end\n"
"  if #out >= 2 * tonumber(ARGV[2]) then return { 3 } end\n"
"  bytes = bytes + call('HSTRLEN', key, 'input')"
" + call('HSTRLEN', key, 'output')\n"
"  if bytes > tonumber(ARGV[3]) then return { 4 } end\n"
"  local v = call('HMGET', key, 'parent', 'input', 'output',"
" 'conversation')\n"
"  if not (v[1] and v[2] and v[3]) then return { 5 } end\n"
"  if v[4] then return { 6 } end\n"
"  out[#out + 1] = v[3]\n"
"  out[#out + 1] = v[2]\n"
"  key = v[1] ~= '' and ARGV[1] .. v[1]\n"
"until not key\n"
"local chain = { 0 }\n"
"for i = #out, 1, -1 do chain[#chain + 1] = out[i] end\n"
"return chain\n";

/*
 * Reads the nodes and conversations whose items a request refers to.
 *
 *     KEYS     for each id, the node and the conversation with its digits
 *     ARGV     most elements of the reply, most bytes of it
 *
 * Returns for each key the number of strings, and the strings: input and output
 * of a node, or numbers and entries of a conversation; -1 in place of the whole
 * if it exceeds the limits.  A key with another layout has no items.
 */

static const char  dsa_response_items_script[] =
DSA_LUA_CALL
"local left, bytes, out = tonumber(ARGV[1]), tonumber(ARGV[2]), {}\n"
"for i, key in ipairs(KEYS) do\n"
"  local v, all = {}, {}\n"
"  if call('TYPE', key).ok == 'hash' then\n"
"    if i % 2 == 1 then\n"
"      v = call('HMGET', key, 'input', 'output')\n"
"      if not (v[1] and v[2]) then v = {} end\n"
"    else\n"
"      all = call('HGETALL', key)\n"
"    end\n"
"  end\n"
"  for j = 1, #all, 2 do\n"
"    if all[j]:find('^%d+$') and #all[j] <= 18 then\n"
"      v[#v + 1] = all[j]\n"
"      v[#v + 1] = all[j + 1]\n"
"    end\n"
"  end\n"
"  left = left - 1 - #v\n"
"  for _, s in ipairs(v) do bytes = bytes - #s end\n"
"  if left < 0 or bytes < 0 then return { -1 } end\n"
"  out[#out + 1] = #v\n"
"  for _, s in ipairs(v) do out[#out + 1] = s end\n"
"end\n"
"return out\n";


#endif /* _DSA_RESPONSES_SCRIPTS_H_INCLUDED_ */
