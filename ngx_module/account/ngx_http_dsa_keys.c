
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_keys.h"


/* ms; when the last complete sync is older than this, new keys may exist */

#define NGX_HTTP_DSA_KEYS_FRESH  5000


static const char *ngx_http_dsa_keys_incomplete(
    ngx_http_dsa_keys_zone_t *zone);
static void ngx_http_dsa_keys_publish(ngx_http_dsa_keys_t *keys);


ngx_int_t
ngx_http_dsa_keys_find(ngx_http_dsa_keys_t *keys,
    const u_char digest[NGX_HTTP_DSA_KEYS_DIGEST],
    ngx_http_dsa_key_ref_t *ref, ngx_http_dsa_key_view_t *view,
    const char **why)
{
    ngx_int_t                  rc;
    ngx_http_dsa_key_t        *key;
    ngx_http_dsa_key_hash_t   *hash;
    ngx_http_dsa_keys_zone_t  *zone;

    zone = keys->zone;

    ngx_shmtx_lock(&keys->shpool->mutex);

    hash = ngx_http_dsa_keys_by_hash(zone, digest);

    if (hash == NULL) {
        *why = ngx_http_dsa_keys_incomplete(zone);
        rc = *why != NULL ? NGX_AGAIN : NGX_DECLINED;
        goto done;
    }

    key = hash->key;

    if (key->blocked) {
        *why = "its key entry does not fit into the zone of dsa_keys";
        rc = NGX_AGAIN;
        goto done;
    }

    ngx_memcpy(view->id, key->id, DSA_KEY_ID_LEN);
    ngx_memcpy(view->tenant, key->tenant, NGX_HTTP_DSA_KEYS_DIGEST);

    view->weight = key->weight;
    view->priority = key->priority;
    view->state = key->state;
    view->expires = key->expires;
    view->old_until = hash == &key->old ? key->old_until : 0;

    ref->key = key;
    ref->clock = zone->clock;

    ngx_queue_insert_tail(&keys->refs, &ref->queue);
    ngx_http_dsa_keys_publish(keys);

    rc = NGX_OK;

done:

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return rc;
}


/* Why a key that is not in the zone may exist; NULL: it does not. */

static const char *
ngx_http_dsa_keys_incomplete(ngx_http_dsa_keys_zone_t *zone)
{
    if (!zone->loaded) {
        return "the keys have not been loaded yet";
    }

    if (zone->missing != 0) {
        return "not all keys fit into the zone of dsa_keys";
    }

    /* the time of the worker that updates the keys may be ahead of ours */

    if ((ngx_msec_int_t) (ngx_current_msec - zone->current)
        > NGX_HTTP_DSA_KEYS_FRESH)
    {
        return "the keys cannot be updated";
    }

    return NULL;
}


void
ngx_http_dsa_keys_unref(ngx_http_dsa_keys_t *keys,
    ngx_http_dsa_key_ref_t *ref)
{
    if (ref->key == NULL) {
        return;
    }

    ngx_queue_remove(&ref->queue);
    ref->key = NULL;

    ngx_http_dsa_keys_publish(keys);
}


/*
 * Writes the clock of this process's oldest reference into the zone.  The clock
 * only grows when references end, so ngx_http_dsa_keys_oldest() may read it at
 * any time.  A reference is added while the zone is locked, so the clock is
 * written before a sweep reads it.
 */

static void
ngx_http_dsa_keys_publish(ngx_http_dsa_keys_t *keys)
{
    uint64_t                 oldest;
    ngx_http_dsa_key_ref_t  *ref;

    oldest = 0;

    if (!ngx_queue_empty(&keys->refs)) {
        ref = ngx_queue_data(ngx_queue_head(&keys->refs),
                             ngx_http_dsa_key_ref_t, queue);
        oldest = ref->clock + 1;
    }

    __atomic_store_n(&keys->zone->processes[ngx_process_slot].oldest, oldest,
                     __ATOMIC_RELEASE);
}


uint64_t
ngx_http_dsa_keys_oldest(ngx_http_dsa_keys_t *keys)
{
    uint64_t                      clock, oldest;
    ngx_uint_t                    i;
    ngx_http_dsa_keys_process_t  *process;

    oldest = keys->zone->clock;

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {
        process = &keys->zone->processes[i];
        clock = __atomic_load_n(&process->oldest, __ATOMIC_ACQUIRE);

        if (clock != 0 && clock - 1 < oldest
            && (kill(process->pid, 0) == 0 || ngx_errno == NGX_EPERM))
        {
            oldest = clock - 1;
        }
    }

    return oldest;
}


ngx_int_t
ngx_http_dsa_keys_read(ngx_http_dsa_keys_t *keys,
    const u_char id[DSA_KEY_ID_LEN], ngx_http_dsa_key_report_t *report)
{
    ngx_http_dsa_key_t  *key;

    ngx_shmtx_lock(&keys->shpool->mutex);

    key = ngx_http_dsa_keys_by_id(keys->zone, dsa_str(id, DSA_KEY_ID_LEN));

    if (key != NULL) {
        report->name_len = key->name_len;
        ngx_memcpy(report->name, key->name, key->name_len);
        ngx_http_dsa_limit_read(keys->zone->limits, &key->limit,
                                &report->limits);
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return key != NULL ? NGX_OK : NGX_DECLINED;
}


ngx_uint_t
ngx_http_dsa_keys_model(ngx_http_dsa_keys_t *keys,
    const ngx_http_dsa_key_t *key, const ngx_str_t *model)
{
    u_char      *p, *last;
    ngx_uint_t   found;

    ngx_shmtx_lock(&keys->shpool->mutex);

    found = (key->models == NULL && !key->blocked);

    if (key->models != NULL) {
        last = key->models + key->models_size;

        for (p = key->models; p < last; p += 1 + p[0]) {
            if (p[0] == model->len
                && ngx_memcmp(p + 1, model->data, model->len) == 0)
            {
                found = 1;
                break;
            }
        }
    }

    ngx_shmtx_unlock(&keys->shpool->mutex);

    return found;
}


ngx_http_dsa_limits_t *
ngx_http_dsa_keys_limits(ngx_http_dsa_keys_t *keys)
{
    return keys->zone->limits;
}
