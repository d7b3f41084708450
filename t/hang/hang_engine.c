
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa-engine with a null backend that can hang, like a GPU that does not
 * respond, or fail, like one with an error.  It hangs in the wait for a step
 * while the file DIR/step.PID exists, and while the model is opened if
 * DIR/start exists.  If DIR/fail.PID exists, the wait for a step returns an
 * error, and closing the backend then hangs for ever: the error of one GPU
 * leaves another one in a kernel that does not end.  DIR is HANG_DIR in the
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


static int    hang_failed;
static int  (*hang_real_wait)(dsa_backend_t *b, dsa_err_t *err);
static void (*hang_real_close)(dsa_backend_t *b);


static int
hang_exists(const char *name)
{
    char         path[4096];
    const char  *dir;

    dir = getenv("HANG_DIR");

    if (dir == NULL) {
        return 0;
    }

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    return access(path, F_OK) == 0;
}


static void
hang_while(const char *name)
{
    while (hang_exists(name)) {
        (void) poll(NULL, 0, 10);
    }
}


static int
hang_wait(dsa_backend_t *b, dsa_err_t *err)
{
    char  name[32];

    (void) snprintf(name, sizeof(name), "step.%d", (int) getpid());
    hang_while(name);

    (void) snprintf(name, sizeof(name), "fail.%d", (int) getpid());

    if (hang_exists(name)) {
        hang_failed = 1;
        return dsa_error(err, "GPU 3: an illegal memory access");
    }

    return hang_real_wait(b, err);
}


static void
hang_close(dsa_backend_t *b)
{
    while (hang_failed) {
        (void) poll(NULL, 0, 1000);
    }

    hang_real_close(b);
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

        hang_real_close = b->close;
        b->close = hang_close;
    }

    return b;
}
