
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RESPONSES_SCRIPTS_H_INCLUDED_
#define _DSA_RESPONSES_SCRIPTS_H_INCLUDED_


/*
 * The keys of the nodes before the first one are not among KEYS, because only
 * the nodes have the ids.  They have the same hash tag, so that they are in the
 * same slot of a cluster.
 */


/*
 * Stores a node.  It is not changed if it exists.  Nodes before it stay as long
 * as it does.
 *
 *     KEYS[1]  node
 *     ARGV     prefix of keys, most nodes of a chain, ttl, created, parent,
 *              input, before, output, after, conversation
 *
 * Returns 1, or 0 if the node exists.
 */

static const char  dsa_response_save_script[] =
"local t = redis.call('TYPE', KEYS[1]).ok\n"
"if t == 'hash' then return 0 end\n"
"if t ~= 'none' then\n"
"  return redis.error_reply("
"'DSADATA the key of a response has another type')\n"
"end\n"
"redis.call('HSET', KEYS[1], 'created', ARGV[4], 'parent', ARGV[5],"
" 'input', ARGV[6], 'before', ARGV[7], 'output', ARGV[8],"
" 'after', ARGV[9])\n"
"if ARGV[10] ~= '' then\n"
"  redis.call('HSET', KEYS[1], 'conversation', ARGV[10])\n"
"end\n"
"redis.call('EXPIRE', KEYS[1], ARGV[3])\n"
"local id = ARGV[5]\n"
"for i = 1, tonumber(ARGV[2]) do\n"
"  local key = ARGV[1] .. id\n"
"  if id == '' or redis.call('TYPE', key).ok ~= 'hash' then break end\n"
"  redis.call('EXPIRE', key, ARGV[3])\n"
"  id = redis.call('HGET', key, 'parent') or ''\n"
"end\n"
"return 1\n";


/*
 * Reads a node and all nodes before it.
 *
 *     KEYS[1]  node
 *     ARGV     prefix of keys, most nodes of a chain, most bytes of it
 *
 * Returns { dsa_response_result_e, input and output of each node, oldest node
 * first }.
 */

static const char  dsa_response_chain_script[] =
"local key, out, bytes = KEYS[1], {}, 0\n"
"repeat\n"
"  local t = redis.call('TYPE', key).ok\n"
"  if t == 'none' then return { #out == 0 and 1 or 2 } end\n"
"  if t ~= 'hash' then return { 5 } end\n"
"  if #out >= 2 * tonumber(ARGV[2]) then return { 3 } end\n"
"  bytes = bytes + redis.call('HSTRLEN', key, 'input')"
" + redis.call('HSTRLEN', key, 'output')\n"
"  if bytes > tonumber(ARGV[3]) then return { 4 } end\n"
"  local v = redis.call('HMGET', key, 'parent', 'input', 'output',"
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
"local left, bytes, out = tonumber(ARGV[1]), tonumber(ARGV[2]), {}\n"
"for i, key in ipairs(KEYS) do\n"
"  local v, all = {}, {}\n"
"  if redis.call('TYPE', key).ok == 'hash' then\n"
"    if i % 2 == 1 then\n"
"      v = redis.call('HMGET', key, 'input', 'output')\n"
"      if not (v[1] and v[2]) then v = {} end\n"
"    else\n"
"      all = redis.call('HGETALL', key)\n"
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
