
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LUA_H_INCLUDED_
#define _DSA_LUA_H_INCLUDED_


/* Functions that scripts have in common. */


/*
 * Whether another turn has the lease of a conversation.  A lease that has no
 * lifetime, or whose key has another type, was not written by these scripts,
 * and would hold back every turn for ever.
 */

#define DSA_LUA_HELD                                                          \
"local function held(key, owner)\n"                                           \
"  if redis.call('TYPE', key).ok ~= 'string' then return false end\n"         \
"  return redis.call('GET', key) ~= owner"                                    \
" and redis.call('PTTL', key) > 0\n"                                          \
"end\n"


/*
 * How entries are appended to a conversation.  look() returns its state:
 * code is 1, 3 (it does not exist) or 5 (another layout).  fit() chooses the
 * turns to remove, so that the entries from ARGV[from] on fit: whole turns,
 * oldest first, so that the rest begins with a message of the user; it sets
 * code to 4 if the entries alone exceed the limits.  append() writes.
 *
 * An entry that was deleted leaves its number unused.  Every entry is counted,
 * so a number of fields that does not agree with count means damage.
 */

#define DSA_LUA_APPEND                                                        \
"local function role(m, want)\n"                                              \
"  return m and m:find('^{%s*\"role\"%s*:%s*\"' .. want .. '\"')\n"           \
"end\n"                                                                       \
"local function look(conv)\n"                                                 \
"  local t = redis.call('TYPE', conv).ok\n"                                   \
"  if t == 'none' then return { code = 3 } end\n"                             \
"  if t ~= 'hash' then return { code = 5 } end\n"                             \
"  local c = redis.call('HMGET', conv, 'version', 'count', 'bytes',"          \
" 'first', 'next')\n"                                                         \
"  local p = { code = 1, version = c[1], count = tonumber(c[2]),"             \
" bytes = tonumber(c[3]), first = tonumber(c[4]),"                            \
" next = tonumber(c[5]), drop = {} }\n"                                       \
"  if not (c[1] and p.count and p.bytes and p.first and p.next) then\n"       \
"    p.code = 5\n"                                                            \
"  end\n"                                                                     \
"  return p\n"                                                                \
"end\n"                                                                       \
"local function fit(conv, p, from, max, maxbytes)\n"                          \
"  local fields = p.count + 5 + redis.call('HEXISTS', conv, 'created')"       \
" + redis.call('HEXISTS', conv, 'metadata')\n"                                \
"  if redis.call('HLEN', conv) ~= fields then p.code = 5 return end\n"        \
"  if p.next == 0 then\n"                                                     \
"    while role(ARGV[from + p.first], 'system') do\n"                         \
"      p.first = p.first + 1\n"                                               \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  for i = from, #ARGV do\n"                                                  \
"    p.count, p.bytes = p.count + 1, p.bytes + #ARGV[i]\n"                    \
"  end\n"                                                                     \
"  local m\n"                                                                 \
"  local function oldest()\n"                                                 \
"    m = false\n"                                                             \
"    while p.first < p.next and not m do\n"                                   \
"      m = redis.call('HGET', conv, p.first)\n"                               \
"      if not m then p.first = p.first + 1 end\n"                             \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  while p.count > max or p.bytes > maxbytes do\n"                            \
"    oldest()\n"                                                              \
"    repeat\n"                                                                \
"      if not m then p.code = 4 return end\n"                                 \
"      p.drop[#p.drop + 1] = p.first\n"                                       \
"      p.count, p.bytes, p.first = p.count - 1, p.bytes - #m, p.first + 1\n"  \
"      oldest()\n"                                                            \
"    until role(m or ARGV[from], 'user')\n"                                   \
"  end\n"                                                                     \
"end\n"                                                                       \
"local function append(conv, p, from, ttl)\n"                                 \
"  redis.call('HINCRBY', conv, 'version', 1)\n"                               \
"  for _, i in ipairs(p.drop) do redis.call('HDEL', conv, i) end\n"           \
"  for i = from, #ARGV do\n"                                                  \
"    redis.call('HSET', conv, p.next, ARGV[i])\n"                             \
"    p.next = p.next + 1\n"                                                   \
"  end\n"                                                                     \
"  redis.call('HSET', conv, 'count', p.count, 'bytes', p.bytes,"              \
" 'first', p.first, 'next', p.next)\n"                                        \
"  redis.call('EXPIRE', conv, ttl)\n"                                         \
"end\n"


#endif /* _DSA_LUA_H_INCLUDED_ */
