
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The fields of Anthropic's Messages API for the form of the answer:
 * output_config, and output_format, the name of it in the beta of structured
 * outputs.
 */


#include "context/anthropic_read.h"


static int dsa_anthropic_effort(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *config);
static int dsa_anthropic_format(dsa_reader_t *r, const dsa_at_t *at,
    dsa_json_t *v);


/* The names of the members for errors of the schema or of a tool. */

static const dsa_format_names_t  dsa_anthropic_names = {
    "output_config.format", "output_config.format.schema", "", "input_schema"
};

static const dsa_format_names_t  dsa_anthropic_beta_names = {
    "output_format", "output_format.schema", "", "input_schema"
};


int
dsa_anthropic_output(dsa_reader_t *r, const dsa_json_t *root)
{
    dsa_at_t     at = { NULL, "output_config", 0 };
    dsa_at_t     format_at = { &at, "format", 0 };
    dsa_at_t     beta_at = { NULL, "output_format", 0 };
    dsa_json_t  *v, *format;

    r->chat->format_names = &dsa_anthropic_names;

    if (dsa_read_any(root, at.name, &v) == 1) {
        if (v->type != DSA_JSON_OBJECT) {
            return dsa_refuse_type(r->refusal, &at, v, "an object");
        }

        if (dsa_anthropic_effort(r, &at, v) != DSA_OK) {
            return DSA_ERROR;
        }

        if (dsa_read_any(v, "format", &format) == 1
            && dsa_anthropic_format(r, &format_at, format) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    if (dsa_read_any(root, beta_at.name, &format) == 0) {
        return DSA_OK;
    }

    if (r->chat->schema != NULL) {
        return dsa_refuse_at(r->refusal, &beta_at, "the request has "
                             "output_config.format as well; expected one of "
                             "them");
    }

    r->chat->format_names = &dsa_anthropic_beta_names;

    return dsa_anthropic_format(r, &beta_at, format);
}


/* The model has no degrees of effort, and thinking has its own field. */

static int
dsa_anthropic_effort(dsa_reader_t *r, const dsa_at_t *up,
    const dsa_json_t *config)
{
    size_t       i;
    dsa_at_t     at = { up, "effort", 0 };
    dsa_json_t  *v;

    static const char *const  efforts[] = {
        "low", "medium", "high", "xhigh", "max"
    };

    if (dsa_read_any(config, at.name, &v) == 0) {
        return DSA_OK;
    }

    if (v->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &at, v, "a string");
    }

    for (i = 0; i < sizeof(efforts) / sizeof(efforts[0]); i++) {
        if (dsa_str_eqz(v->text, efforts[i])) {
            return DSA_OK;
        }
    }

    return dsa_refuse_variant(r->refusal, &at, v, "one of `low`, `medium`, "
                              "`high`, `xhigh`, `max`");
}


/* {"type": "json_schema", "schema": {...}}; the schema is always enforced. */

static int
dsa_anthropic_format(dsa_reader_t *r, const dsa_at_t *at, dsa_json_t *v)
{
    dsa_at_t     type_at = { at, "type", 0 };
    dsa_at_t     schema_at = { at, "schema", 0 };
    dsa_json_t  *type, *schema;

    if (v->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, at, v, "an object with type and "
                               "schema");
    }

    type = dsa_json_get(v, "type");

    if (type == NULL || type->type != DSA_JSON_STRING) {
        return dsa_refuse_type(r->refusal, &type_at, type, "`json_schema`");
    }

    if (!dsa_str_eqz(type->text, "json_schema")) {
        return dsa_refuse_variant(r->refusal, &type_at, type,
                                  "`json_schema`");
    }

    schema = dsa_json_get(v, "schema");

    if (schema == NULL || schema->type != DSA_JSON_OBJECT) {
        return dsa_refuse_type(r->refusal, &schema_at, schema,
                               "a JSON Schema object");
    }

    r->chat->response_format = v;
    r->chat->schema = schema;
    r->chat->json_strict = 1;

    return dsa_read_finite(r, at, v);
}
