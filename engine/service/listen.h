
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LISTEN_H_INCLUDED_
#define _DSA_LISTEN_H_INCLUDED_


#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"


/*
 * The unix socket at which a replica is found: mode 0660, only for processes
 * of its owner, its group or root.
 */

typedef struct {
    int             fd;
    char            path[108];
    struct stat     file;           /* to remove our own socket only */
} dsa_listen_t;


/*
 * Listens at path, non-blocking.  A socket that nobody answers on is
 * replaced; one that is in use, or any other file, is refused.  group
 * (gid_t) -1 leaves the group as it is.
 */
int dsa_listen_open(dsa_listen_t *l, const char *path, gid_t group,
    dsa_err_t *err);

/* Stops listening; the socket file goes if it is still ours. */
void dsa_listen_close(dsa_listen_t *l);

/*
 * The next connection, or -1 with errno: EAGAIN, none waits; EPERM, a process
 * that may not, whose connection is closed again.
 */
int dsa_listen_accept(dsa_listen_t *l);


#endif /* _DSA_LISTEN_H_INCLUDED_ */
