
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_responses_stored.h"


const ngx_http_dsa_chat_stored_t  ngx_http_dsa_responses_stored = {
    .references = ngx_http_dsa_responses_references,
    .history = ngx_http_dsa_responses_history,
    .save = ngx_http_dsa_responses_save
};
