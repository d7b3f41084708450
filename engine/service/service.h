
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SERVICE_H_INCLUDED_
#define _DSA_SERVICE_H_INCLUDED_


#include "engine/checkpoint/config.h"
#include "engine/checkpoint/generation_config.h"
#include "engine/service/conf.h"
#include "engine/service/grammars.h"
#include "engine/service/journal.h"
#include "engine/service/link_size.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * The constant data of a replica.  It does not change while the threads of the
 * replica run, so they read it without a lock.  grammars has its own locks.
 */

typedef struct {
    const dsa_conf_t        *conf;
    uint32_t                 replica;        /* number */
    uint32_t                 epoch;          /* random, of this start */
    uint32_t                 context;        /* tokens, prompt and answer */
    dsa_link_size_t          link;           /* of each session */
    uint32_t                 ids;            /* of the model */
    dsa_prompt_family_t      prompt;         /* of the model */
    uint64_t                 page_bytes;     /* 0: not known */
    dsa_tokenizer_t         *tokenizer;
    dsa_generation_config_t  generation;     /* of the model */
    char                     fingerprint[36];
    dsa_grammars_t          *grammars;
    dsa_journal_t           *journal;        /* of the I/O thread; NULL: none */
    uint32_t                 rollouts;       /* 1: the backend reports them,
                                                and their rows fit */
} dsa_service_t;


#endif /* _DSA_SERVICE_H_INCLUDED_ */
