
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CHECK_H_INCLUDED_
#define _DSA_CHECK_H_INCLUDED_


#include "engine/checkpoint/config.h"
#include "engine/service/conf.h"


/*
 * What of a configuration depends on the model, and on the machine.  Errors
 * begin with the name of a directive or with the path of a file.
 */

/*
 * Checks before a start "model", "context_length", "kv_memory" and
 * "host_memory" against the model config and the memory of this machine.
 */
int dsa_check_start(const dsa_conf_t *conf, dsa_err_t *err);

/* Checks that the model has a row for each of the tokenizer's ids. */
int dsa_check_vocabulary(const dsa_conf_t *conf, uint32_t ids, uint32_t vocab,
    dsa_err_t *err);

/*
 * Checks everything that a start would need, as far as it can without memory
 * and GPUs: the values above, all files of the model, of the weights only
 * their headers and sizes, and the directories of the sockets.  Prints how each
 * replica would use memory to stderr before it looks at the weights.
 */
int dsa_check(const dsa_conf_t *conf, dsa_err_t *err);


#endif /* _DSA_CHECK_H_INCLUDED_ */
