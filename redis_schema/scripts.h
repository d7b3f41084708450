
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCRIPTS_H_INCLUDED_
#define _DSA_SCRIPTS_H_INCLUDED_


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
 *     ARGV     created, ttl, then the messages
 *
 * Returns 1, or 0 if the conversation exists.
 */

static const char  dsa_schema_create_script[] =
"if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end\n"
"local n, bytes, first = #ARGV - 2, 0, 0\n"
"for i = 3, #ARGV do bytes = bytes + #ARGV[i] end\n"
"while first < n"
" and ARGV[3 + first]:find('^{%s*\"role\"%s*:%s*\"system\"') do\n"
"  first = first + 1\n"
"end\n"
"redis.call('HSET', KEYS[1], 'version', 1, 'created', ARGV[1],"
" 'count', n, 'bytes', bytes, 'first', first, 'next', n)\n"
"for i = 1, n do\n"
"  redis.call('HSET', KEYS[1], i - 1, ARGV[2 + i])\n"
"end\n"
"redis.call('EXPIRE', KEYS[1], ARGV[2])\n"
"return 1\n";


/*
 * Writes the ledger entry of a request and appends its messages.
 *
 *     KEYS     done marker, ledger and, if there is one, conversation
 *     ARGV     ttl of the marker, model, prompt and cached tokens, of these
 *              host and Redis tokens, completion and reasoning tokens; with a
 *              conversation: version, ttl, limit of messages, limit of bytes,
 *              then the messages
 *
 * Returns { dsa_schema_result_e, 1 if an earlier call wrote the entry }.
 */

static const char  dsa_schema_record_script[] =
"local done, ledger, conv = KEYS[1], KEYS[2], KEYS[3]\n"
"local function is(key, want)\n"
"  local t = redis.call('TYPE', key).ok\n"
"  return t == want or t == 'none'\n"
"end\n"
"if not is(done, 'string') or not is(ledger, 'hash') then\n"
"  return redis.error_reply("
"'DSADATA a key of the ledger has another type')\n"
"end\n"
"\n"
"local code = redis.call('GET', done)\n"
"if code then return { tonumber(code), 1 } end\n"
"\n"
"local add = { '1', ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7],"
" ARGV[8] }\n"
"local fields = { 'requests', 'prompt_tokens', 'cached_tokens',"
" 'cached_host_tokens', 'cached_redis_tokens', 'completion_tokens',"
" 'reasoning_tokens' }\n"
"for i, f in ipairs(fields) do\n"
"  fields[i] = ARGV[2] .. '|' .. f\n"
"  local old = redis.call('HGET', ledger, fields[i])\n"
"  if old and (not old:find('^%d+$') or #old > 18) then\n"
"    return redis.error_reply("
"'DSADATA a field of the ledger is not a count')\n"
"  end\n"
"end\n"
"\n"
"local function role(m, want)\n"
"  return m and m:find('^{%s*\"role\"%s*:%s*\"' .. want .. '\"')\n"
"end\n"
"\n"
"code = 0\n"
"local count, bytes, first, next, drop\n"
"if conv and not is(conv, 'hash') then\n"
"  code = 5\n"
"elseif conv then\n"
"  local c = redis.call('HMGET', conv, 'version', 'count', 'bytes',"
" 'first', 'next')\n"
"  count, bytes = tonumber(c[2]), tonumber(c[3])\n"
"  first, next = tonumber(c[4]), tonumber(c[5])\n"
"  if redis.call('EXISTS', conv) == 0 then\n"
"    code = 3\n"
"  elseif not (c[1] and count and bytes and first and next) then\n"
"    code = 5\n"
"  elseif c[1] ~= ARGV[9] then\n"
"    code = 2\n"
"  else\n"
"    code = 1\n"
"    local max, maxbytes = tonumber(ARGV[11]), tonumber(ARGV[12])\n"
"    if next == 0 then\n"
"      while role(ARGV[13 + first], 'system') do first = first + 1 end\n"
"    end\n"
"    for i = 13, #ARGV do\n"
"      count, bytes = count + 1, bytes + #ARGV[i]\n"
"    end\n"
"\n"
"    -- remove whole turns, oldest first: what stays begins with a user\n"
"\n"
"    drop = {}\n"
"    while count > max or bytes > maxbytes do\n"
"      repeat\n"
"        local m = first < next and redis.call('HGET', conv, first)\n"
"        if not m then code = first < next and 5 or 4 break end\n"
"        drop[#drop + 1] = first\n"
"        count, bytes, first = count - 1, bytes - #m, first + 1\n"
"        m = first < next and redis.call('HGET', conv, first)"
" or ARGV[13]\n"
"      until role(m, 'user')\n"
"      if code ~= 1 then break end\n"
"    end\n"
"  end\n"
"end\n"
"\n"
"for i, f in ipairs(fields) do\n"
"  redis.call('HINCRBY', ledger, f, add[i])\n"
"end\n"
"if code == 1 then\n"
"  for _, i in ipairs(drop) do redis.call('HDEL', conv, i) end\n"
"  for i = 13, #ARGV do\n"
"    redis.call('HSET', conv, next, ARGV[i])\n"
"    next = next + 1\n"
"  end\n"
"  redis.call('HSET', conv, 'count', count, 'bytes', bytes,"
" 'first', first, 'next', next)\n"
"  redis.call('HINCRBY', conv, 'version', 1)\n"
"  redis.call('EXPIRE', conv, ARGV[10])\n"
"end\n"
"redis.call('SET', done, code, 'EX', ARGV[1])\n"
"return { code, 0 }\n";


/*
 * Reads the records of several answers.
 *
 *     KEYS     one for each answer
 *     ARGV     the most bytes of all records together
 *
 * Returns one element for each key: the record, or nil if there is none, if
 * the key has another type, or if the record exceeds what is left of the bytes.
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
