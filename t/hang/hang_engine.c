
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa-engine with a null backend that can hang, like a GPU that does not
 * respond.  It hangs in the wait for a step while the file DIR/step.PID exists,
 * and while the model is opened if DIR/start exists.  DIR is HANG_DIR in the
 * environment, PID is the replica's process id.  The program is linked with
 * -Wl,--wrap=dsa_backend_null_open.
 */


#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/backend.h"


dsa_backend_t *__real_dsa_backend_null_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);
dsa_backend_t *__wrap_dsa_backend_null_open(const dsa_backend_conf_t *conf,
    dsa_err_t *err);


static int  (*hang_real_wait)(dsa_backend_t *b, dsa_err_t *err);


static void
hang_while(const char *name)
{
    char         path[4096];
    const char  *dir;

    dir = getenv("HANG_DIR");

    if (dir == NULL) {
        return;
    }

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    while (access(path, F_OK) == 0) {
        (void) poll(NULL, 0, 10);
    }
}


static int
hang_wait(dsa_backend_t *b, dsa_err_t *err)
{
    char  name[32];

    (void) snprintf(name, sizeof(name), "step.%d", (int) getpid());
    hang_while(name);

    return hang_real_wait(b, err);
}


dsa_backend_t *
__wrap_dsa_backend_null_open(const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_t  *b;

    hang_while("start");

    b = __real_dsa_backend_null_open(conf, err);

    if (b != NULL) {
        hang_real_wait = b->wait;
        b->wait = hang_wait;
    }

    return b;
}
