
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/money.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_price.h"


#define NGX_HTTP_DSA_PRICE_DAY    (24 * 60)     /* minutes */
#define NGX_HTTP_DSA_PRICE_WEEK   0x7f          /* a bit for each day */
#define NGX_HTTP_DSA_PRICE_UNSET  -1

/* 1970-01-01 was a Thursday; the days of a week begin with Sunday */

#define NGX_HTTP_DSA_PRICE_EPOCH  4


/*
 * A price of a model, with the window of time in which it is valid, in UTC.
 * All prices are of one token.  A window ends before the minute "to", on the
 * next day if from is not less than to; its days are those on which it begins.
 */

struct ngx_http_dsa_price_s {
    ngx_str_t                 model;
    int64_t                   miss;
    int64_t                   hit[DSA_TIERS];
    int64_t                   output;
    ngx_int_t                 from;         /* minutes of a day; UNSET: the
                                               whole day */
    ngx_int_t                 to;
    ngx_uint_t                days;         /* bit 0 is Sunday; 0: not given */
};


struct ngx_http_dsa_prices_s {
    ngx_array_t               elts;         /* ngx_http_dsa_price_t; the first
                                               match is the price */
    ngx_array_t               unpriced;     /* ngx_str_t: models without a
                                               price that were logged */
};


static char *ngx_http_dsa_price_currency(ngx_conf_t *cf,
    ngx_http_dsa_main_conf_t *mcf);
static char *ngx_http_dsa_price_alone(ngx_conf_t *cf, ngx_str_t *arg);
static ngx_http_dsa_prices_t *ngx_http_dsa_price_create(ngx_conf_t *cf);
static char *ngx_http_dsa_price_parameter(ngx_conf_t *cf,
    ngx_http_dsa_price_t *price, ngx_str_t *arg);
static ngx_uint_t ngx_http_dsa_price_tier(const ngx_str_t *name,
    const char *tier);
static char *ngx_http_dsa_price_amount(ngx_conf_t *cf, int64_t *amount,
    ngx_str_t *value, ngx_str_t *arg);
static char *ngx_http_dsa_price_window(ngx_conf_t *cf,
    ngx_http_dsa_price_t *price);
static ngx_int_t ngx_http_dsa_price_minute(ngx_str_t *value);
static ngx_uint_t ngx_http_dsa_price_days(ngx_str_t *value);
static ngx_int_t ngx_http_dsa_price_weekday(u_char *p, size_t len);
static ngx_uint_t ngx_http_dsa_price_always(const ngx_http_dsa_price_t *price);
static ngx_uint_t ngx_http_dsa_price_valid(const ngx_http_dsa_price_t *price,
    time_t when);
static void ngx_http_dsa_price_missing(ngx_http_dsa_prices_t *prices,
    ngx_str_t *model);
static int64_t ngx_http_dsa_price_add(int64_t sum, uint64_t tokens,
    int64_t price);


char *
ngx_http_dsa_price_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_main_conf_t *mcf = conf;

    char                  *rv;
    ngx_str_t             *value;
    ngx_uint_t             i;
    ngx_http_dsa_price_t  *price, *other;

    value = cf->args->elts;

    if (ngx_strncmp(value[1].data, "currency=", sizeof("currency=") - 1) == 0) {
        return ngx_http_dsa_price_currency(cf, mcf);
    }

    if (mcf->prices == NULL) {
        mcf->prices = ngx_http_dsa_price_create(cf);
        if (mcf->prices == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    other = mcf->prices->elts.elts;

    for (i = 0; i < mcf->prices->elts.nelts; i++) {

        if (other[i].model.len == value[1].len
            && ngx_memcmp(other[i].model.data, value[1].data, value[1].len)
               == 0
            && ngx_http_dsa_price_always(&other[i]))
        {
            return "is never used, because an earlier one of the same model "
                   "has no \"from\" and \"days\"; the first one that matches "
                   "is used";
        }
    }

    price = ngx_array_push(&mcf->prices->elts);
    if (price == NULL) {
        return NGX_CONF_ERROR;
    }

    price->model = value[1];
    price->miss = NGX_HTTP_DSA_PRICE_UNSET;
    price->output = NGX_HTTP_DSA_PRICE_UNSET;
    price->from = NGX_HTTP_DSA_PRICE_UNSET;
    price->to = NGX_HTTP_DSA_PRICE_UNSET;
    price->days = 0;

    for (i = 0; i < DSA_TIERS; i++) {
        price->hit[i] = NGX_HTTP_DSA_PRICE_UNSET;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_dsa_price_parameter(cf, price, &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (price->miss < 0 || price->hit[DSA_TIER_GPU] < 0
        || price->output < 0)
    {
        return "needs \"miss\", \"hit\" and \"output\", each for a million "
               "tokens";
    }

    for (i = 0; i < DSA_TIERS; i++) {
        if (price->hit[i] < 0) {
            price->hit[i] = price->hit[DSA_TIER_GPU];
        }
    }

    return ngx_http_dsa_price_window(cf, price);
}


/* "currency=NAME", the only value of a dsa_price */

static char *
ngx_http_dsa_price_currency(ngx_conf_t *cf, ngx_http_dsa_main_conf_t *mcf)
{
    ngx_str_t   *value, name;
    ngx_uint_t   i;

    value = cf->args->elts;
    name.data = value[1].data + sizeof("currency=") - 1;
    name.len = value[1].len - (sizeof("currency=") - 1);

    if (cf->args->nelts != 2) {
        return ngx_http_dsa_price_alone(cf, &value[1]);
    }

    if (mcf->currency.len != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate parameter \"%V\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < name.len; i++) {
        if (name.data[i] < 'A' || name.data[i] > 'Z') {
            break;
        }
    }

    if (i != 3 || name.len != 3) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid currency \"%V\"; "
                           "expected three capital letters as in ISO 4217, "
                           "for example USD", &name);
        return NGX_CONF_ERROR;
    }

    mcf->currency = name;

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_price_alone(ngx_conf_t *cf, ngx_str_t *arg)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is beside other values, "
                       "but the prices of all models have one currency; "
                       "expected a line of its own, \"dsa_price %V;\"", arg,
                       arg);

    return NGX_CONF_ERROR;
}


static ngx_http_dsa_prices_t *
ngx_http_dsa_price_create(ngx_conf_t *cf)
{
    ngx_http_dsa_prices_t  *prices;

    prices = ngx_palloc(cf->pool, sizeof(ngx_http_dsa_prices_t));

    if (prices == NULL
        || ngx_array_init(&prices->elts, cf->pool, 4,
                          sizeof(ngx_http_dsa_price_t))
           != NGX_OK
        || ngx_array_init(&prices->unpriced, cf->pool, 4, sizeof(ngx_str_t))
           != NGX_OK)
    {
        return NULL;
    }

    return prices;
}


static char *
ngx_http_dsa_price_parameter(ngx_conf_t *cf, ngx_http_dsa_price_t *price,
    ngx_str_t *arg)
{
    u_char      *eq;
    ngx_str_t    name, value;
    ngx_uint_t   i, duplicate;

    eq = ngx_strlchr(arg->data, arg->data + arg->len, '=');

    if (eq == NULL) {
        goto invalid;
    }

    name.data = arg->data;
    name.len = eq - arg->data;
    value.data = eq + 1;
    value.len = arg->data + arg->len - value.data;

#define is(literal)                                                           \
    (name.len == sizeof(literal) - 1                                          \
     && ngx_strncmp(name.data, literal, sizeof(literal) - 1) == 0)

    if (is("miss")) {
        return ngx_http_dsa_price_amount(cf, &price->miss, &value, arg);
    }

    if (is("hit")) {
        return ngx_http_dsa_price_amount(cf, &price->hit[DSA_TIER_GPU],
                                         &value, arg);
    }

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        if (ngx_http_dsa_price_tier(&name, dsa_tier_names[i].name)) {
            return ngx_http_dsa_price_amount(cf, &price->hit[i], &value, arg);
        }
    }

    if (is("output")) {
        return ngx_http_dsa_price_amount(cf, &price->output, &value, arg);
    }

    if (is("currency")) {
        return ngx_http_dsa_price_alone(cf, arg);
    }

    if (is("from")) {
        duplicate = (price->from >= 0);
        price->from = ngx_http_dsa_price_minute(&value);

        if (price->from < 0 || price->from == NGX_HTTP_DSA_PRICE_DAY) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value in "
                               "\"%V\"; expected a time of UTC from 00:00 to "
                               "23:59", arg);
            return NGX_CONF_ERROR;
        }

    } else if (is("to")) {
        duplicate = (price->to >= 0);
        price->to = ngx_http_dsa_price_minute(&value);

        if (price->to < 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value in "
                               "\"%V\"; expected a time of UTC from 00:00 to "
                               "24:00", arg);
            return NGX_CONF_ERROR;
        }

    } else if (is("days")) {
        duplicate = (price->days != 0);
        price->days = ngx_http_dsa_price_days(&value);

        if (price->days == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value in "
                               "\"%V\"; expected days of a week, for example "
                               "mon-fri or sat,sun", arg);
            return NGX_CONF_ERROR;
        }

    } else {
        goto invalid;
    }

#undef is

    if (duplicate) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate parameter \"%V\"",
                           arg);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"; "
                       "expected miss=, hit=, hit_host=, hit_redis=, output=, "
                       "from=, to= or days=", arg);

    return NGX_CONF_ERROR;
}


/* Returns 1 if name is "hit_" and the name of a tier. */

static ngx_uint_t
ngx_http_dsa_price_tier(const ngx_str_t *name, const char *tier)
{
    size_t  len;

    len = sizeof("hit_") - 1;

    return name->len == len + ngx_strlen(tier)
           && ngx_strncmp(name->data, "hit_", len) == 0
           && ngx_strncmp(name->data + len, tier, name->len - len) == 0;
}


static char *
ngx_http_dsa_price_amount(ngx_conf_t *cf, int64_t *amount, ngx_str_t *value,
    ngx_str_t *arg)
{
    dsa_err_t  err;

    if (*amount != NGX_HTTP_DSA_PRICE_UNSET) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate parameter \"%V\"",
                           arg);
        return NGX_CONF_ERROR;
    }

    if (dsa_money_price(dsa_str(value->data, value->len), amount, &err)
        != DSA_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value in \"%V\": %s",
                           arg, err.text);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_price_window(ngx_conf_t *cf, ngx_http_dsa_price_t *price)
{
    if ((price->from < 0) != (price->to < 0)) {
        return "needs both \"from\" and \"to\", or neither";
    }

    if (price->from >= 0 && price->from == price->to) {
        return "has the same time as \"from\" and \"to\"; without both it is "
               "valid all day";
    }

    return NGX_CONF_OK;
}


/* "HH:MM" as minutes, up to 24:00; NGX_ERROR: it is something else. */

static ngx_int_t
ngx_http_dsa_price_minute(ngx_str_t *value)
{
    ngx_int_t  hour, minute;

    if (value->len != sizeof("HH:MM") - 1 || value->data[2] != ':') {
        return NGX_ERROR;
    }

    hour = ngx_atoi(value->data, 2);
    minute = ngx_atoi(value->data + 3, 2);

    if (hour < 0 || minute < 0 || minute > 59
        || hour * 60 + minute > NGX_HTTP_DSA_PRICE_DAY)
    {
        return NGX_ERROR;
    }

    return hour * 60 + minute;
}


/*
 * Days and ranges of days, separated by commas, as bits; a range may go on in
 * the next week, as "fri-mon" does.  0: it is something else.
 */

static ngx_uint_t
ngx_http_dsa_price_days(ngx_str_t *value)
{
    u_char      *p, *last;
    ngx_int_t    first, end;
    ngx_uint_t   days;

    p = value->data;
    last = value->data + value->len;
    days = 0;

    for ( ;; ) {
        first = ngx_http_dsa_price_weekday(p, last - p);

        if (first < 0) {
            return 0;
        }

        p += 3;
        end = first;

        if (p < last && *p == '-') {
            p++;
            end = ngx_http_dsa_price_weekday(p, last - p);

            if (end < 0) {
                return 0;
            }

            p += 3;
        }

        for ( ;; ) {
            days |= (ngx_uint_t) 1 << first;

            if (first == end) {
                break;
            }

            first = (first + 1) % 7;
        }

        if (p == last) {
            return days;
        }

        if (*p++ != ',') {
            return 0;
        }
    }
}


/* The day that a text of len bytes begins with: 0 is Sunday. */

static ngx_int_t
ngx_http_dsa_price_weekday(u_char *p, size_t len)
{
    ngx_int_t  i;

    static const char  days[] = "sunmontuewedthufrisat";

    for (i = 0; i < 7 && len >= 3; i++) {
        if (ngx_memcmp(p, &days[3 * i], 3) == 0) {
            return i;
        }
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_http_dsa_price_check(ngx_conf_t *cf, const ngx_http_dsa_prices_t *prices)
{
    ngx_uint_t             i, k, n;
    ngx_http_dsa_price_t  *price;

    if (prices == NULL) {
        return NGX_OK;
    }

    price = prices->elts.elts;
    n = prices->elts.nelts;

    for (i = 0; i < n; i++) {

        for (k = i; k < n; k++) {
            if (price[k].model.len == price[i].model.len
                && ngx_memcmp(price[k].model.data, price[i].model.data,
                              price[i].model.len)
                   == 0
                && ngx_http_dsa_price_always(&price[k]))
            {
                break;
            }
        }

        if (k == n) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "model \"%V\" has no "
                               "\"dsa_price\" without \"from\" and \"days\", "
                               "which is the price of all other hours",
                               &price[i].model);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_dsa_price_always(const ngx_http_dsa_price_t *price)
{
    return price->from < 0
           && (price->days == 0 || price->days == NGX_HTTP_DSA_PRICE_WEEK);
}


const ngx_http_dsa_price_t *
ngx_http_dsa_price_find(ngx_http_dsa_prices_t *prices, ngx_str_t *model,
    time_t when)
{
    ngx_uint_t             i;
    ngx_http_dsa_price_t  *price;

    if (prices == NULL) {
        return NULL;
    }

    price = prices->elts.elts;

    for (i = 0; i < prices->elts.nelts; i++) {

        if (price[i].model.len == model->len
            && ngx_memcmp(price[i].model.data, model->data, model->len) == 0
            && ngx_http_dsa_price_valid(&price[i], when))
        {
            return &price[i];
        }
    }

    ngx_http_dsa_price_missing(prices, model);

    return NULL;
}


static ngx_uint_t
ngx_http_dsa_price_valid(const ngx_http_dsa_price_t *price, time_t when)
{
    time_t      day;
    ngx_int_t   minute;
    ngx_uint_t  days, today, yesterday;

    day = when / (24 * 60 * 60);
    minute = when / 60 % NGX_HTTP_DSA_PRICE_DAY;

    days = price->days != 0 ? price->days : NGX_HTTP_DSA_PRICE_WEEK;
    today = days >> ((day + NGX_HTTP_DSA_PRICE_EPOCH) % 7) & 1;
    yesterday = days >> ((day + NGX_HTTP_DSA_PRICE_EPOCH + 6) % 7) & 1;

    if (price->from < 0) {
        return today;
    }

    if (price->from < price->to) {
        return today && minute >= price->from && minute < price->to;
    }

    return (today && minute >= price->from)
           || (yesterday && minute < price->to);
}


/* Without memory for the name of the model it is logged again. */

static void
ngx_http_dsa_price_missing(ngx_http_dsa_prices_t *prices, ngx_str_t *model)
{
    ngx_str_t   *logged;
    ngx_uint_t   i;

    logged = prices->unpriced.elts;

    for (i = 0; i < prices->unpriced.nelts; i++) {
        if (logged[i].len == model->len
            && ngx_memcmp(logged[i].data, model->data, model->len) == 0)
        {
            return;
        }
    }

    logged = ngx_array_push(&prices->unpriced);

    if (logged != NULL) {
        logged->len = model->len;
        logged->data = ngx_pstrdup(prices->unpriced.pool, model);

        if (logged->data == NULL) {
            logged->len = 0;
        }
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "dsa: model \"%V\" has no \"dsa_price\"; its requests cost "
                  "0", model);
}


ngx_int_t
ngx_http_dsa_price_cost(const ngx_http_dsa_price_t *price,
    const ngx_http_dsa_usage_t *usage, ngx_http_dsa_cost_t *cost)
{
    ngx_uint_t  i;

    ngx_memzero(cost, sizeof(ngx_http_dsa_cost_t));

    if (price == NULL) {
        return NGX_OK;
    }

    cost->miss = ngx_http_dsa_price_add(0, usage->prompt - usage->cached,
                                        price->miss);
    cost->output = ngx_http_dsa_price_add(0, usage->completion,
                                          price->output);

    for (i = 0; i < DSA_TIERS; i++) {
        cost->hit = ngx_http_dsa_price_add(cost->hit, usage->tier[i],
                                           price->hit[i]);
    }

    return cost->miss == NGX_HTTP_DSA_COST_MAX
           || cost->hit == NGX_HTTP_DSA_COST_MAX
           || cost->output == NGX_HTTP_DSA_COST_MAX
           ? NGX_DECLINED : NGX_OK;
}


/* sum + tokens * price, or the maximum if it is less. */

static int64_t
ngx_http_dsa_price_add(int64_t sum, uint64_t tokens, int64_t price)
{
    int64_t  v;

    if (__builtin_mul_overflow(tokens, price, &v)
        || __builtin_add_overflow(sum, v, &v))
    {
        return NGX_HTTP_DSA_COST_MAX;
    }

    return ngx_min(v, NGX_HTTP_DSA_COST_MAX);
}


int64_t
ngx_http_dsa_price_sum(const ngx_http_dsa_cost_t *cost)
{
    return cost->miss + cost->hit + cost->output;
}


_Static_assert(NGX_HTTP_DSA_COST_MAX <= INT64_MAX / 3,
               "the sum of a cost fits");
