
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Members that an object must have because it must violate the
 * additionalProperties of other schemas.
 */


#include "grammar/schema.h"


#define DSA_DEMAND_NEW      0x80        /* the bit of the part that is added */


static int dsa_demand_add(dsa_schema_t *s, const dsa_part_t *part,
    const dsa_property_t *property, uint32_t n, dsa_demands_t *d, int open);
static int dsa_demand_same(const dsa_demands_t *d, uint32_t n, uint8_t bit);
static int dsa_demand_join(dsa_demands_t *d, uint32_t n, uint8_t bit);
static void dsa_demand_move(dsa_demands_t *d, uint32_t n, uint8_t bit);


int
dsa_schema_demands(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_demands_t *d)
{
    int                rc;
    uint32_t           i;
    const dsa_part_t  *part;

    memset(d, 0, sizeof(dsa_demands_t));
    rc = DSA_OK;

    for (i = 0; i < p->n && rc == DSA_OK; i++) {
        part = &p->part[i];

        /* of a schema that is not strict, what is not supported is left out */

        if (part->kind == DSA_PART_OTHER
            && dsa_part_supported(part, DSA_TYPE_OBJECT))
        {
            rc = dsa_demand_add(s, part, property, n, d,
                                !dsa_parts_closed(p));
        }
    }

    return s->failed ? DSA_ERROR : rc;
}


/* DSA_ERROR: no member meets the demand, or failed. */

static int
dsa_demand_add(dsa_schema_t *s, const dsa_part_t *part,
    const dsa_property_t *property, uint32_t n, dsa_demands_t *d, int open)
{
    int       met;
    uint32_t  i;

    if (d->met == NULL) {
        d->met = dsa_arena_calloc(s->arena, n + 1);
    }

    if (d->met == NULL) {
        dsa_schema_fail(s, NULL, "there is no memory for it");
        return DSA_ERROR;
    }

    d->met[n] &= ~DSA_DEMAND_NEW;
    d->met[n] |= open && !dsa_part_lists_others(part) ? DSA_DEMAND_NEW : 0;
    met = d->met[n] & DSA_DEMAND_NEW;

    for (i = 0; i < n && !s->failed; i++) {
        d->met[i] &= ~DSA_DEMAND_NEW;

        if (dsa_part_lists(s, part, property[i].name)) {
            continue;
        }

        if (property[i].required) {
            return DSA_OK;
        }

        d->met[i] |= DSA_DEMAND_NEW;
        met = 1;
    }

    if (!met) {
        return DSA_ERROR;
    }

    for (i = 0; i < d->n; i++) {
        if (dsa_demand_same(d, n, (uint8_t) (1U << i))) {
            return DSA_OK;
        }
    }

    if (d->n == DSA_SCHEMA_DEMANDS) {
        return dsa_demand_join(d, n, (uint8_t) (1U << (d->n - 1)));
    }

    dsa_demand_move(d, n, (uint8_t) (1U << d->n++));

    return DSA_OK;
}


/* 1: the members that meet the new demand are those that meet another one. */

static int
dsa_demand_same(const dsa_demands_t *d, uint32_t n, uint8_t bit)
{
    uint32_t  i;

    for (i = 0; i <= n; i++) {
        if (((d->met[i] & bit) != 0) != ((d->met[i] & DSA_DEMAND_NEW) != 0)) {
            return 0;
        }
    }

    return 1;
}


/*
 * Replaces a demand by members that meet it and the new one, so that fewer
 * objects are permitted.  DSA_ERROR: there are none.
 */

static int
dsa_demand_join(dsa_demands_t *d, uint32_t n, uint8_t bit)
{
    int       met;
    uint32_t  i;

    met = 0;

    for (i = 0; i <= n; i++) {
        if ((d->met[i] & DSA_DEMAND_NEW) == 0) {
            d->met[i] &= ~bit;
        }

        met |= d->met[i] & bit;
    }

    return met ? DSA_OK : DSA_ERROR;
}


static void
dsa_demand_move(dsa_demands_t *d, uint32_t n, uint8_t bit)
{
    uint32_t  i;

    for (i = 0; i <= n; i++) {
        if ((d->met[i] & DSA_DEMAND_NEW) != 0) {
            d->met[i] |= bit;
        }
    }
}
