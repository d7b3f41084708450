
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/service/conf_parts.h"


/* Directives that exist no longer, and what to write instead. */

typedef struct {
    const char  *name;
    const char  *instead;
} dsa_conf_old_t;


static const dsa_conf_old_t  dsa_conf_olds[] = {

    { "max_waiting_per_tenant",
      "use \"max_waiting N per_tenant=N\" instead" },

    { "step_target",
      "use \"token_target TIME\" for the time between tokens, and "
      "\"first_token_target TIME\" for the time to the first one" },

    { "slots",
      "remove it, because the number follows from max_running and "
      "max_waiting" },

    { "submit_ring",
      "remove it, because the size follows from the context of the model and "
      "context_length" },

    { "event_ring",
      "remove it, because the size follows from max_running" }
};


#define DSA_N_OLDS  (sizeof(dsa_conf_olds) / sizeof(dsa_conf_olds[0]))


int
dsa_conf_old(dsa_conf_reader_t *r)
{
    size_t  i;

    for (i = 0; i < DSA_N_OLDS; i++) {
        if (strcmp(r->arg[0], dsa_conf_olds[i].name) == 0) {
            return dsa_conf_fail(r, "\"%s\" is obsolete; %s", r->arg[0],
                                 dsa_conf_olds[i].instead);
        }
    }

    return DSA_OK;
}
