
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


/*
 * Counts of the ledger, as strings: a number of Lua is a double, which is exact
 * up to 2^53.  room() is whether HINCRBY of add to old neither fails nor leaves
 * 64 bits: Redis reads no other form of a number than this.  A negative one is
 * an amount that an operator has set.
 */

#define DSA_LUA_ROOM                                                          \
"local function room(old, add)\n"                                             \
"  if not old or old == '0' then return true end\n"                           \
"  if old:find('^%-[1-9]%d*$') then return #old <= 19 end\n"                  \
"  if not old:find('^[1-9]%d*$') then return false end\n"                     \
"  local low = tonumber(old:sub(-9)) + tonumber(add:sub(-9))\n"               \
"  local high = (tonumber(old:sub(1, -10)) or 0)"                             \
" + (tonumber(add:sub(1, -10)) or 0) + math.floor(low / 1000000000)\n"        \
"  return high < 9223372036"                                                  \
" or high == 9223372036 and low % 1000000000 <= 854775807\n"                  \
"end\n"


/*
 * Days of the ledger become a part of the sums of their month.  date() is the
 * day, YYYY-MM-DD, that is n days after 1970-01-01.  fold() adds the fields of
 * a day to those of the month and removes the day; a day whose sums would not
 * fit, or that has something else than counts, stays as it is.  The sums of
 * that day in spend, of the keys that have fields in it, are removed as well.
 *
 * roll() folds the first day before the last `keep` ones, and returns the
 * first day that is not folded, which the key rolled has.  One day in each call
 * bounds what a call costs; the days that the ledger lacks are skipped.
 * Without the key it begins 400 days before, to find the days of an earlier
 * version.
 */

#define DSA_LUA_ROLL                                                          \
"local function date(n)\n"                                                    \
"  local floor = math.floor\n"                                                \
"  local z = n + 719468\n"                                                    \
"  local era = floor(z / 146097)\n"                                           \
"  local doe = z - era * 146097\n"                                            \
"  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524)"           \
" - floor(doe / 146096)) / 365)\n"                                            \
"  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))\n"       \
"  local mp = floor((5 * doy + 2) / 153)\n"                                   \
"  local m = mp < 10 and mp + 3 or mp - 9\n"                                  \
"  return string.format('%04d-%02d-%02d',"                                    \
" yoe + era * 400 + (m <= 2 and 1 or 0), m,"                                  \
" doy - floor((153 * mp + 2) / 5) + 1)\n"                                     \
"end\n"                                                                       \
"local function fold(day, spend)\n"                                           \
"  local month = day:sub(1, -4)\n"                                            \
"  local t = redis.call('TYPE', month).ok\n"                                  \
"  if t ~= 'hash' and t ~= 'none' then return end\n"                          \
"  local all = redis.call('HGETALL', day)\n"                                  \
"  for i = 1, #all, 2 do\n"                                                   \
"    if not all[i + 1]:find('^%d+$') or not room(all[i + 1], '0')"            \
" or not room(redis.call('HGET', month, all[i]), all[i + 1]) then\n"          \
"      return\n"                                                              \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  for i = 1, #all, 2 do\n"                                                   \
"    redis.call('HINCRBY', month, all[i], all[i + 1])\n"                      \
"    local key = all[i]:match('^(key_%x+)|')\n"                               \
"    if key then\n"                                                           \
"      redis.call('HDEL', spend, key .. '|' .. day:sub(-10))\n"               \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  redis.call('UNLINK', day)\n"                                               \
"end\n"                                                                       \
"local function roll(ledger, rolled, spend, keep)\n"                          \
"  local now = math.floor(tonumber(redis.call('TIME')[1]) / 86400)\n"         \
"  local n = tonumber(redis.call('GET', rolled) or '') or now - keep - 400\n" \
"  local first = n\n"                                                         \
"  while n < now - keep do\n"                                                 \
"    local day = ledger:sub(1, -11) .. date(n)\n"                             \
"    n = n + 1\n"                                                             \
"    if redis.call('TYPE', day).ok == 'hash' then\n"                          \
"      fold(day, spend)\n"                                                    \
"      break\n"                                                               \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  if n ~= first then redis.call('SET', rolled, n) end\n"                     \
"  return n\n"                                                                \
"end\n"


#endif /* _DSA_LUA_H_INCLUDED_ */
