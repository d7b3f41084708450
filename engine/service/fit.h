
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FIT_H_INCLUDED_
#define _DSA_FIT_H_INCLUDED_


#include "base/error.h"
#include "engine/service/conf.h"


/*
 * "dsa-engine -t --gpu-memory": whether a model fits GPUs that this machine
 * need not have.  Only config.json of the model is read.
 */

/*
 * Sets conf to the defaults of "backend cuda" with so many GPUs, for a model:
 * its directory, or the path of its config.json.  gpus is a number as in
 * engine.conf.  DSA_ERROR with err.  The caller frees conf in any case.
 */
int dsa_fit_conf(dsa_conf_t *conf, const char *model, const char *gpus,
    dsa_err_t *err);

/*
 * Prints to stdout, for each format of the KV cache that conf and the model
 * permit, how GPUs of size bytes (a size as in engine.conf) would be used and
 * how many tokens they hold, or why they do not suffice.  DSA_ERROR with err:
 * no format fits, or the model cannot be planned.
 */
int dsa_fit(const dsa_conf_t *conf, const char *size, dsa_err_t *err);


#endif /* _DSA_FIT_H_INCLUDED_ */
