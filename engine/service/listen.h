
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LISTEN_H_INCLUDED_
#define _DSA_LISTEN_H_INCLUDED_


#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"


/*
 * The unix socket of a replica, with mode 0660.  Only processes of its owner,
 * its group or root are accepted.
 */

typedef struct {
    int             fd;
    char            path[108];
    struct stat     file;           /* identifies this socket, so that only
                                       it is removed */
} dsa_listen_t;


/*
 * Listens at path, non-blocking.  A socket on which no process listens is
 * replaced; a socket that is in use, or another file, is an error.  With group
 * (gid_t) -1 the group is not changed.
 */
int dsa_listen_open(dsa_listen_t *l, const char *path, gid_t group,
    dsa_err_t *err);

/*
 * Checks, without listening, that the directory of path exists, and that no
 * other file than a socket has its name.
 */
int dsa_listen_check(const char *path, dsa_err_t *err);

/* Stops listening, and removes the socket unless another one replaced it. */
void dsa_listen_close(dsa_listen_t *l);

/*
 * Returns the next connection, or -1 with errno.  EAGAIN: there is none;
 * EPERM: the connection of a process that is not permitted was closed.
 */
int dsa_listen_accept(dsa_listen_t *l);


#endif /* _DSA_LISTEN_H_INCLUDED_ */
