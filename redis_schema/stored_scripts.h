
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_STORED_SCRIPTS_H_INCLUDED_
#define _DSA_STORED_SCRIPTS_H_INCLUDED_


#include "lua.h"


/* This follows the rule of scripts.h: no error leaves half of the writes. */


/*
 * Removes a conversation or a response.
 *
 *     KEYS     conversation or response, account of the tenant
 *
 * Returns 1, or 0 if the key does not exist.
 */

static const char  dsa_schema_delete_script[] =
DSA_LUA_CALL
DSA_LUA_WRITE
DSA_LUA_COUNT
DSA_LUA_STORED
"local t = call('TYPE', KEYS[1]).ok\n"
"if t == 'none' then return 0 end\n"
"write('EXPIRE', KEYS[1], -1)\n"
"if t == 'hash' then\n"
"  local a = account(KEYS[2])\n"
"  take(a, call('HGET', KEYS[1], 'stored'))\n"
"  settle(a)\n"
"end\n"
"return commit() or 1\n";


#endif /* _DSA_STORED_SCRIPTS_H_INCLUDED_ */
