
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LUA_H_INCLUDED_
#define _DSA_LUA_H_INCLUDED_


/* Functions that scripts have in common. */


/*
 * How scripts read.  call() is redis.call() with an error that names the
 * command and the key if the ACL of the user does not permit them: the error of
 * Redis does not.  attempt() returns the other errors of a command, for example
 * that the key has another type.  Before version 7 an error can only be a text,
 * so there NOPERM is not its first word.
 */

#define DSA_LUA_CALL                                                          \
"local function refusal(name, key)\n"                                         \
"  return 'NOPERM the user may not run ' .. name"                             \
" .. (key and ' on ' .. key or '')\n"                                         \
"end\n"                                                                       \
"local function denied(err)\n"                                                \
"  return err:find('^%-?NOPERM ') or err:find('user executing the script')"   \
" or err:find('Unknown Redis command')\n"                                     \
"end\n"                                                                       \
"local function fail(err)\n"                                                  \
"  error(redis.acl_check_cmd and { err = err } or err, 0)\n"                  \
"end\n"                                                                       \
"local function attempt(...)\n"                                               \
"  local r = redis.pcall(...)\n"                                              \
"  if type(r) == 'table' and r.err and denied(r.err) then\n"                  \
"    fail(refusal(...))\n"                                                    \
"  end\n"                                                                     \
"  return r\n"                                                                \
"end\n"                                                                       \
"local function call(...)\n"                                                  \
"  local r = attempt(...)\n"                                                  \
"  if type(r) == 'table' and r.err then fail(r.err) end\n"                    \
"  return r\n"                                                                \
"end\n"


/*
 * How scripts write.  Redis does not undo what a script has written before an
 * error.  Therefore write() only notes a command.  commit() checks whether the
 * user may run each of these commands on its key, and returns an error if not;
 * then it runs them in their order.  It is the last thing that a script does,
 * as in "return commit() or 1": all reading and deciding comes before, and
 * a call() never sees what a write() has noted.
 *
 * Redis 7 has redis.acl_check_cmd().  Before it, each command is run with words
 * that it rejects, or with which it changes nothing: Redis checks the
 * permission before the words.  At that time Redis also checks whether it has
 * memory and may write at all, but not again later in the same script, so such
 * an error is returned as well.
 *
 * words has the commands that can be written, and the number of empty words
 * after the key with which nothing changes.  DEL is not among them, because
 * there is none for it; EXPIRE with -1 removes a key, too.
 */

#define DSA_LUA_WRITE                                                         \
"local words = { HSET = 3, HDEL = 1, HINCRBY = 2, SET = 2, EXPIRE = 1,"       \
" ZADD = 2 }\n"                                                               \
"local writes = {}\n"                                                         \
"local function write(...)\n"                                                 \
"  writes[#writes + 1] = { ... }\n"                                           \
"end\n"                                                                       \
"local function check(name, key)\n"                                           \
"  local w = { name, key }\n"                                                 \
"  for i = 1, words[name] do w[2 + i] = '' end\n"                             \
"  if redis.acl_check_cmd then\n"                                             \
"    local known, may = pcall(redis.acl_check_cmd, unpack(w))\n"              \
"    return not (known and may) and refusal(name, key)\n"                     \
"  end\n"                                                                     \
"  local r = redis.pcall(unpack(w))\n"                                        \
"  local err = type(r) == 'table' and r.err or 'ERR '\n"                      \
"  if denied(err) then return refusal(name, key) end\n"                       \
"  if err:find('^ERR ') then return false end\n"                              \
"  return err:match('^%u+ .*') or err:match(': %-(%u+ .*)') or err\n"         \
"end\n"                                                                       \
"local function commit()\n"                                                   \
"  local last = {}\n"                                                         \
"  for _, w in ipairs(writes) do\n"                                           \
"    local same = w[1] == last[1] and w[2] == last[2]\n"                      \
"    local err = not same and check(w[1], w[2])\n"                            \
"    if err then return redis.error_reply(err) end\n"                         \
"    last = w\n"                                                              \
"  end\n"                                                                     \
"  for _, w in ipairs(writes) do redis.call(unpack(w)) end\n"                 \
"end\n"


/*
 * Whether another turn has the lease of a conversation.  A lease that has no
 * lifetime, or whose key has another type, was not written by these scripts,
 * and would hold back every turn for ever.
 */

#define DSA_LUA_HELD                                                          \
"local function held(key, owner)\n"                                           \
"  if call('TYPE', key).ok ~= 'string' then return false end\n"               \
"  return call('GET', key) ~= owner and call('PTTL', key) > 0\n"              \
"end\n"


/* A field that has a count, as a number; nil or false: it is something else. */

#define DSA_LUA_COUNT                                                         \
"local function count(s)\n"                                                   \
"  return s and s:find('^%d+$') and #s <= 15 and tonumber(s)\n"               \
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
DSA_LUA_COUNT                                                                 \
"local function role(m, want)\n"                                              \
"  return m and m:find('^{%s*\"role\"%s*:%s*\"' .. want .. '\"')\n"           \
"end\n"                                                                       \
"local function look(conv)\n"                                                 \
"  local t = call('TYPE', conv).ok\n"                                         \
"  if t == 'none' then return { code = 3 } end\n"                             \
"  if t ~= 'hash' then return { code = 5 } end\n"                             \
"  local c = call('HMGET', conv, 'version', 'count', 'bytes', 'first',"       \
" 'next')\n"                                                                  \
"  local p = { code = 1, version = c[1], count = count(c[2]),"                \
" bytes = count(c[3]), first = count(c[4]), next = count(c[5]),"              \
" drop = {} }\n"                                                              \
"  if not (count(c[1]) and c[1]:find('^[1-9]') and p.count and p.bytes"       \
" and p.first and p.next) then\n"                                             \
"    p.code = 5\n"                                                            \
"  end\n"                                                                     \
"  return p\n"                                                                \
"end\n"                                                                       \
"local function fit(conv, p, from, max, maxbytes)\n"                          \
"  local fields = p.count + 5 + call('HEXISTS', conv, 'created')"             \
" + call('HEXISTS', conv, 'metadata') + call('HEXISTS', conv, 'stored')\n"    \
"  if call('HLEN', conv) ~= fields then p.code = 5 return end\n"              \
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
"      m = call('HGET', conv, p.first)\n"                                     \
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
"local function append(conv, p, from, ttl, share)\n"                          \
"  write('HINCRBY', conv, 'version', 1)\n"                                    \
"  for _, i in ipairs(p.drop) do write('HDEL', conv, i) end\n"                \
"  for i = from, #ARGV do\n"                                                  \
"    write('HSET', conv, p.next, ARGV[i])\n"                                  \
"    p.next = p.next + 1\n"                                                   \
"  end\n"                                                                     \
"  write('HSET', conv, 'count', p.count, 'bytes', p.bytes,"                   \
" 'first', p.first, 'next', p.next, 'stored', share)\n"                       \
"  write('EXPIRE', conv, ttl)\n"                                              \
"end\n"


/*
 * What a tenant has stored: a hash, with a field for each time at which objects
 * expire, whose value is the number of the objects and of their bytes.  So what
 * expires leaves the account without a command, and a call that touches the
 * account removes the fields of the past.
 *
 * A time is rounded up to a power of two of seconds, so that a lifetime has at
 * most 65 fields, and an object is counted for at most a thirty-second part of
 * its lifetime, or two seconds, after it has expired.  It is never counted for
 * a shorter time.
 *
 * The object has its share of the account, "TIME BYTES": the field in which it
 * is counted, and for how many bytes.
 *
 * size() is what an object counts, with the memory that Redis needs for it
 * besides its text.  account() reads the account: the fields that are not in
 * the past, the latest of them, and the sums.  Fields are parsed again only if
 * they change, because most do not.  take() removes a share and give() adds
 * one, which the caller stores in the object.  over() returns an error if the
 * account grows and is then above the quota; what does not grow it is never
 * refused.  settle() writes.  Its writes come last, because HDEL and EXPIRE are
 * not refused for memory, and nothing is refused after them.
 */

#define DSA_LUA_STORED                                                        \
"local function size(entries, bytes)\n"                                       \
"  return 768 + 64 * entries + bytes\n"                                       \
"end\n"                                                                       \
"local function account(key)\n"                                               \
"  local a = { key = key, now = tonumber(call('TIME')[1]),\n"                 \
"    objects = 0, bytes = 0, last = 0, live = {}, is = {}, gone = {} }\n"     \
"  local t = call('TYPE', key).ok\n"                                          \
"  a.clear = t ~= 'hash' and t ~= 'none'\n"                                   \
"  local all = t == 'hash' and call('HGETALL', key) or {}\n"                  \
"  for i = 1, #all, 2 do\n"                                                   \
"    local at, v = count(all[i]), all[i + 1]\n"                               \
"    local n, b = v:match('^(%d+) (%d+)$')\n"                                 \
"    if at and at >= a.now and n and #v <= 30 then\n"                         \
"      a.live[all[i]] = v\n"                                                  \
"      a.last = math.max(a.last, at)\n"                                       \
"      a.objects, a.bytes = a.objects + n, a.bytes + b\n"                     \
"    else\n"                                                                  \
"      a.gone[#a.gone + 1] = all[i]\n"                                        \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  a.had, a.held = a.objects, a.bytes\n"                                      \
"  return a\n"                                                                \
"end\n"                                                                       \
"local function field(a, at)\n"                                               \
"  if not a.is[at] then\n"                                                    \
"    local n, b = (a.live[at] or '0 0'):match('^(%d+) (%d+)$')\n"             \
"    a.is[at] = { tonumber(n), tonumber(b) }\n"                               \
"  end\n"                                                                     \
"  return a.is[at]\n"                                                         \
"end\n"                                                                       \
"local function book(a, at, n, b)\n"                                          \
"  local f = field(a, at)\n"                                                  \
"  f[1], f[2] = f[1] + n, f[2] + b\n"                                         \
"  a.objects, a.bytes = a.objects + n, a.bytes + b\n"                         \
"end\n"                                                                       \
"local function take(a, share)\n"                                             \
"  local at, b = (share or ''):match('^(%d+) (%d+)$')\n"                      \
"  local f = at and field(a, at)\n"                                           \
"  if f and f[1] > 1 then\n"                                                  \
"    book(a, at, -1, -math.min(count(b) or 0, f[2]))\n"                       \
"  elseif f then\n"                                                           \
"    book(a, at, -f[1], -f[2])\n"                                             \
"  end\n"                                                                     \
"end\n"                                                                       \
"local function give(a, ttl, b)\n"                                            \
"  local width = 1\n"                                                         \
"  while ttl >= 64 * width do width = 2 * width end\n"                        \
"  local at = math.ceil((a.now + ttl + 1) / width) * width\n"                 \
"  a.last = math.max(a.last, at)\n"                                           \
"  at = string.format('%.0f', at)\n"                                          \
"  book(a, at, 1, b)\n"                                                       \
"  return at .. ' ' .. string.format('%.0f', b)\n"                            \
"end\n"                                                                       \
"local function over(a, bytes, objects)\n"                                    \
"  if a.bytes > a.held and a.bytes > tonumber(bytes)\n"                       \
"    or a.objects > a.had and a.objects > tonumber(objects)\n"                \
"  then\n"                                                                    \
"    return redis.error_reply(string.format(\n"                               \
"      'DSAQUOTA %.0f %.0f', a.held, a.had))\n"                               \
"  end\n"                                                                     \
"end\n"                                                                       \
"local function settle(a)\n"                                                  \
"  if a.clear then write('EXPIRE', a.key, -1) end\n"                          \
"  for at, f in pairs(a.is) do\n"                                             \
"    local v = string.format('%.0f %.0f', f[1], f[2])\n"                      \
"    if f[1] < 1 then\n"                                                      \
"      a.gone[#a.gone + 1] = a.live[at] and at\n"                             \
"    elseif v ~= a.live[at] then\n"                                           \
"      write('HSET', a.key, at, v)\n"                                         \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  for _, at in ipairs(a.gone) do write('HDEL', a.key, at) end\n"             \
"  if a.objects > 0 then write('EXPIRE', a.key, a.last - a.now + 1) end\n"    \
"end\n"


/* The share of a conversation whose entries will be those that p counts. */

#define DSA_LUA_CHANGE                                                        \
"local function change(a, conv, p, ttl)\n"                                    \
"  take(a, call('HGET', conv, 'stored'))\n"                                   \
"  return give(a, tonumber(ttl),"                                             \
" size(p.count, p.bytes + call('HSTRLEN', conv, 'metadata')))\n"              \
"end\n"


/*
 * Counts of the ledger, as strings: a number of Lua is a double, which is exact
 * up to 2^53, and only sums of short numbers are one.  plus() is what HINCRBY
 * of add to old makes, or false if it fails or leaves 64 bits: Redis reads no
 * other form of a number than this.  A negative one is an amount that an
 * operator has set.
 */

#define DSA_LUA_PLUS                                                          \
"local function plus(old, add)\n"                                             \
"  if not old or old == '0' then return add end\n"                            \
"  if #old <= 15 and #add <= 15 and old:find('^[1-9]%d*$') then\n"            \
"    return old + add\n"                                                      \
"  end\n"                                                                     \
"  local sign, digits = old:match('^(%-?)([1-9]%d*)$')\n"                     \
"  if not digits then return false end\n"                                     \
"  if sign == '-' and #digits > 18 then return false end\n"                   \
"  local low = tonumber(digits:sub(-9))\n"                                    \
"  local high = tonumber(digits:sub(1, -10)) or 0\n"                          \
"  if sign == '-' then low, high = -low, -high end\n"                         \
"  low = low + add:sub(-9)\n"                                                 \
"  high = high + (tonumber(add:sub(1, -10)) or 0) + math.floor(low / 1e9)\n"  \
"  low = low % 1e9\n"                                                         \
"  if high > 9223372036 or high == 9223372036 and low > 854775807 then\n"     \
"    return false\n"                                                          \
"  end\n"                                                                     \
"  sign = high < 0 and '-' or ''\n"                                           \
"  if sign == '-' then\n"                                                     \
"    high = low > 0 and -high - 1 or -high\n"                                 \
"    low = low > 0 and 1e9 - low or 0\n"                                      \
"  end\n"                                                                     \
"  return sign .. (high > 0 and string.format('%.0f%09.0f', high, low)\n"     \
"    or string.format('%.0f', low))\n"                                        \
"end\n"


/*
 * Days of the ledger become a part of the sums of their month.  date() is the
 * day, YYYY-MM-DD, that is n days after 1970-01-01.  fold() adds the fields of
 * a day to those of the month and removes the day; a day whose sums would not
 * fit, or that has something else than counts, stays as it is.  The sums of
 * that day in spend, of the keys that have fields in it, are removed as well.
 *
 * roll() folds the first day before the last `keep` ones.  One day in each call
 * bounds what a call costs; the days that the ledger lacks are skipped.  The
 * key rolled has the first day that is not folded.  Without it roll() begins
 * 400 days before, to find the days of an earlier version.
 *
 * It returns whether an entry of the day `of` belongs to the sum of its month,
 * because that day is folded or old enough for it.  Then it folds nothing: two
 * writes of a call never add to the same field, so plus() is right for both.
 * had is the value of rolled.
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
"  local month, gone = day:sub(1, -4), {}\n"                                  \
"  local t = call('TYPE', month).ok\n"                                        \
"  if t ~= 'hash' and t ~= 'none' then return end\n"                          \
"  local all = call('HGETALL', day)\n"                                        \
"  for i = 1, #all, 2 do\n"                                                   \
"    if not all[i + 1]:find('^%d+$') or not plus(all[i + 1], '0')"            \
" or not plus(call('HGET', month, all[i]), all[i + 1]) then\n"                \
"      return\n"                                                              \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  for i = 1, #all, 2 do\n"                                                   \
"    write('HINCRBY', month, all[i], all[i + 1])\n"                           \
"    local key = all[i]:match('^(key_%x+)|')\n"                               \
"    if key then gone[key] = true end\n"                                      \
"  end\n"                                                                     \
"  for key in pairs(gone) do\n"                                               \
"    write('HDEL', spend, key .. '|' .. day:sub(-10))\n"                      \
"  end\n"                                                                     \
"  write('EXPIRE', day, -1)\n"                                                \
"end\n"                                                                       \
"local function roll(ledger, rolled, had, spend, keep, of)\n"                 \
"  local last = math.floor(tonumber(call('TIME')[1]) / 86400) - keep\n"       \
"  local n = had\n"                                                           \
"  n = n and n:find('^%d+$') and #n <= 7 and tonumber(n) or last - 400\n"     \
"  if of < math.max(n, last) then return true end\n"                          \
"  local first = n\n"                                                         \
"  while n < last do\n"                                                       \
"    local day = ledger:sub(1, -11) .. date(n)\n"                             \
"    n = n + 1\n"                                                             \
"    if call('TYPE', day).ok == 'hash' then\n"                                \
"      fold(day, spend)\n"                                                    \
"      break\n"                                                               \
"    end\n"                                                                   \
"  end\n"                                                                     \
"  if n ~= first then write('SET', rolled, n) end\n"                          \
"  return false\n"                                                            \
"end\n"


#endif /* _DSA_LUA_H_INCLUDED_ */
