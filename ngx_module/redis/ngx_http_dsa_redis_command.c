
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <assert.h>

#include "ngx_http_dsa_redis_command.h"


/* Limits for one worker: commands without a reply, and their bytes. */

#define NGX_HTTP_DSA_REDIS_MAX_COMMANDS  4096
#define NGX_HTTP_DSA_REDIS_MAX_BYTES     (64 * 1024 * 1024)

/* commands that are passed to the kernel in one write */

#define NGX_HTTP_DSA_REDIS_PIECES        64


static void ngx_http_dsa_redis_commands_sent(
    ngx_http_dsa_redis_commands_t *commands, off_t n);


/* of all commands of this worker */

static ngx_uint_t  ngx_http_dsa_redis_n;
static size_t      ngx_http_dsa_redis_bytes;


ngx_http_dsa_redis_command_t *
ngx_http_dsa_redis_command_create(const dsa_schema_command_t *cmd)
{
    int                            len;
    size_t                        *lens;
    uint32_t                       i;
    const char                   **words;
    ngx_http_dsa_redis_command_t  *command;

    command = ngx_calloc(sizeof(ngx_http_dsa_redis_command_t), ngx_cycle->log);
    if (command == NULL) {
        return NULL;
    }

    words = ngx_alloc(cmd->argc * (sizeof(char *) + sizeof(size_t)),
                      ngx_cycle->log);
    if (words == NULL) {
        ngx_free(command);
        return NULL;
    }

    lens = (size_t *) &words[cmd->argc];

    for (i = 0; i < cmd->argc; i++) {
        words[i] = cmd->argv[i].data;
        lens[i] = cmd->argv[i].len;
    }

    len = redisFormatCommandArgv(&command->text, cmd->argc, words, lens);

    ngx_free(words);

    if (len < 0) {
        ngx_free(command);
        return NULL;
    }

    command->len = len;
    command->slot = -1;

    ngx_http_dsa_redis_n++;
    ngx_http_dsa_redis_bytes += len;

    ngx_memcpy(command->name, cmd->argv[0].data,
               ngx_min(cmd->argv[0].len, sizeof(command->name) - 1));

    return command;
}


void
ngx_http_dsa_redis_command_free(ngx_http_dsa_redis_command_t *command)
{
    assert(ngx_http_dsa_redis_n != 0
           && ngx_http_dsa_redis_bytes >= command->len);

    ngx_http_dsa_redis_n--;
    ngx_http_dsa_redis_bytes -= command->len;

    redisFreeCommand(command->text);

    if (command->refusal != NULL) {
        freeReplyObject(command->refusal);
    }

    ngx_free(command);
}


ngx_uint_t
ngx_http_dsa_redis_commands_full(void)
{
    return ngx_http_dsa_redis_n >= NGX_HTTP_DSA_REDIS_MAX_COMMANDS
           || ngx_http_dsa_redis_bytes >= NGX_HTTP_DSA_REDIS_MAX_BYTES;
}


void
ngx_http_dsa_redis_commands_init(ngx_http_dsa_redis_commands_t *commands)
{
    ngx_queue_init(&commands->sent);
    ngx_queue_init(&commands->unsent);

    commands->n = 0;
}


void
ngx_http_dsa_redis_commands_put(ngx_http_dsa_redis_commands_t *commands,
    ngx_http_dsa_redis_command_t *command, ngx_msec_t timeout)
{
    command->pos = 0;
    command->deadline = ngx_current_msec + timeout;

    if (command->setup) {
        ngx_queue_insert_head(&commands->unsent, &command->queue);

    } else {
        ngx_queue_insert_tail(&commands->unsent, &command->queue);
    }

    commands->n++;
}


ngx_int_t
ngx_http_dsa_redis_commands_send(ngx_http_dsa_redis_commands_t *commands,
    ngx_connection_t *c, ngx_uint_t setup)
{
    off_t                          before;
    ngx_buf_t                      bufs[NGX_HTTP_DSA_REDIS_PIECES];
    ngx_uint_t                     n;
    ngx_queue_t                   *q;
    ngx_chain_t                    chain[NGX_HTTP_DSA_REDIS_PIECES];
    ngx_http_dsa_redis_command_t  *command;

    while (c->write->ready) {

        n = 0;

        for (q = ngx_queue_head(&commands->unsent);
             q != ngx_queue_sentinel(&commands->unsent)
             && n < NGX_HTTP_DSA_REDIS_PIECES;
             q = ngx_queue_next(q))
        {
            command = ngx_queue_data(q, ngx_http_dsa_redis_command_t, queue);

            if (setup && !command->setup) {
                break;
            }

            ngx_memzero(&bufs[n], sizeof(ngx_buf_t));
            bufs[n].pos = (u_char *) command->text + command->pos;
            bufs[n].last = (u_char *) command->text + command->len;
            bufs[n].memory = 1;

            chain[n].buf = &bufs[n];
            chain[n].next = NULL;

            if (n > 0) {
                chain[n - 1].next = &chain[n];
            }

            n++;
        }

        if (n == 0) {
            return NGX_OK;
        }

        before = c->sent;

        if (c->send_chain(c, chain, 0) == NGX_CHAIN_ERROR) {
            return NGX_ERROR;
        }

        ngx_http_dsa_redis_commands_sent(commands, c->sent - before);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_redis_commands_sent(ngx_http_dsa_redis_commands_t *commands,
    off_t n)
{
    size_t                         part;
    ngx_queue_t                   *q;
    ngx_http_dsa_redis_command_t  *command;

    while (n > 0) {
        assert(!ngx_queue_empty(&commands->unsent));

        q = ngx_queue_head(&commands->unsent);
        command = ngx_queue_data(q, ngx_http_dsa_redis_command_t, queue);

        part = command->len - command->pos;

        if (n < (off_t) part) {
            part = n;
        }

        command->pos += part;
        n -= part;

        if (command->pos == command->len) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&commands->sent, q);
        }
    }
}


ngx_http_dsa_redis_command_t *
ngx_http_dsa_redis_commands_next(ngx_http_dsa_redis_commands_t *commands)
{
    if (ngx_queue_empty(&commands->sent)) {
        return NULL;
    }

    return ngx_queue_data(ngx_queue_head(&commands->sent),
                          ngx_http_dsa_redis_command_t, queue);
}


ngx_http_dsa_redis_command_t *
ngx_http_dsa_redis_commands_oldest(ngx_http_dsa_redis_commands_t *commands)
{
    if (ngx_queue_empty(&commands->sent)
        && !ngx_queue_empty(&commands->unsent))
    {
        return ngx_queue_data(ngx_queue_head(&commands->unsent),
                              ngx_http_dsa_redis_command_t, queue);
    }

    return ngx_http_dsa_redis_commands_next(commands);
}


void
ngx_http_dsa_redis_commands_take(ngx_http_dsa_redis_commands_t *commands,
    ngx_http_dsa_redis_command_t *command)
{
    assert(commands->n != 0);

    ngx_queue_remove(&command->queue);

    commands->n--;
}


void
ngx_http_dsa_redis_commands_remove(ngx_http_dsa_redis_commands_t *commands,
    ngx_http_dsa_redis_command_t *command)
{
    ngx_http_dsa_redis_commands_take(commands, command);
    ngx_http_dsa_redis_command_free(command);
}


void
ngx_http_dsa_redis_commands_fail(ngx_http_dsa_redis_commands_t *commands,
    const char *why)
{
    void                          *data;
    ngx_queue_t                    failed;
    ngx_http_dsa_redis_pt          handler;
    ngx_http_dsa_redis_command_t  *command;

    ngx_queue_init(&failed);

    if (!ngx_queue_empty(&commands->sent)) {
        ngx_queue_add(&failed, &commands->sent);
    }

    if (!ngx_queue_empty(&commands->unsent)) {
        ngx_queue_add(&failed, &commands->unsent);
    }

    ngx_http_dsa_redis_commands_init(commands);

    while (!ngx_queue_empty(&failed)) {
        command = ngx_queue_data(ngx_queue_head(&failed),
                                 ngx_http_dsa_redis_command_t, queue);

        handler = command->handler;
        data = command->data;

        ngx_queue_remove(&command->queue);
        ngx_http_dsa_redis_command_free(command);

        if (handler != NULL) {
            handler(data, NULL, why);
        }
    }
}
