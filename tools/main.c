
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/version.h"
#include "tools/dsa.h"


/* A name of two words has a group first: "key" has create, list and others. */

typedef struct {
    const char     *name;
    int           (*run)(int argc, char **argv);
    const char     *does;
} dsa_command_t;


static const dsa_command_t  dsa_commands[] = {

    { "key create", dsa_cmd_key, "make an API key" },
    { "key list", dsa_cmd_key, "print all keys" },
    { "key show", dsa_cmd_key, "print one key" },
    { "key set", dsa_cmd_key, "change limits, budgets and others of a key" },
    { "key revoke", dsa_cmd_key, "end a key" },
    { "key rotate", dsa_cmd_key, "give a key another text" },
    { "usage", dsa_cmd_usage, "print tokens and costs from the ledger" },
    { "status", dsa_cmd_status,
      "show the requests, engines and tenants of a server" },
    { "check", dsa_cmd_check,
      "check the configurations of a host and what they need" },
    { "drain", dsa_cmd_drain, "end an engine after its answers" },
    { "tenant delete", dsa_cmd_tenant, "delete the data of a tenant" },
    { "fingerprint", dsa_cmd_fingerprint,
      "print a hash of config.json and the weights" },
    { "quantize", dsa_cmd_quantize, "make a checkpoint with INT4 experts" },
    { "tokenize", dsa_cmd_tokenize, "print the token ids of a text" },
    { "detokenize", dsa_cmd_detokenize, "print the text of token ids" },
    { "encode", dsa_cmd_encode, "print the prompt of a chat request" },
    { "parse", dsa_cmd_parse, "print the message that a completion contains" },
    { "generate", dsa_cmd_generate, "continue a prompt" },
    { "logits", dsa_cmd_logits, "write the logits of each position of a text" },
    { "bench cache", dsa_cmd_bench, "measure pages in Redis" },
    { "bench routing", dsa_cmd_bench, "compute what skewed routing costs" },
    { "bench kernels", dsa_cmd_bench, "measure the ops of a GPU (dsa-cuda)" },
    { "bench engine", dsa_cmd_bench,
      "measure whole steps (dsa-cuda, or several hosts)" },
    { "bench bits", dsa_cmd_bench,
      "measure on what bits of a token depend (dsa-cuda)" },
    { "bench comm", dsa_cmd_bench,
      "measure the exchange between GPUs (dsa-cuda) or hosts" },
    { "bench node", dsa_cmd_bench, "project a node of 8 GPUs (dsa-cuda)" }
};


#define DSA_N_COMMANDS  (sizeof(dsa_commands) / sizeof(dsa_commands[0]))
#define DSA_HINT        "\"dsa --help\" prints the commands"


static size_t dsa_first(const dsa_command_t *command);
static const dsa_command_t *dsa_group(const char *name);
static int dsa_run_in_group(const dsa_command_t *group, int argc, char **argv);
static int dsa_unknown(const char *given, const char *group);
static int dsa_is_help(const char *word);
static int dsa_usage(FILE *out, const char *group);


int
main(int argc, char **argv)
{
    size_t                i;
    const dsa_command_t  *group;

    if (argc < 2) {
        (void) dsa_usage(stderr, NULL);
        return 2;
    }

    if (strcmp(argv[1], "help") == 0 || dsa_is_help(argv[1])) {
        return dsa_usage(stdout, NULL);
    }

    if (strcmp(argv[1], "--version") == 0) {
        return printf("%s %s\n", program_invocation_short_name, DSA_VERSION) > 0
               && fflush(stdout) == 0 ? 0 : 1;
    }

    for (i = 0; i < DSA_N_COMMANDS; i++) {
        if (strcmp(argv[1], dsa_commands[i].name) == 0) {
            return dsa_commands[i].run(argc - 1, argv + 1);
        }
    }

    group = dsa_group(argv[1]);

    return group != NULL ? dsa_run_in_group(group, argc - 1, argv + 1)
                         : dsa_unknown(argv[1], NULL);
}


/* The length of the first word of a name. */

static size_t
dsa_first(const dsa_command_t *command)
{
    return strcspn(command->name, " ");
}


/* The first command of a group, or NULL. */

static const dsa_command_t *
dsa_group(const char *name)
{
    size_t  i, len;

    len = strlen(name);

    for (i = 0; i < DSA_N_COMMANDS; i++) {
        if (dsa_first(&dsa_commands[i]) == len
            && memcmp(dsa_commands[i].name, name, len) == 0)
        {
            return &dsa_commands[i];
        }
    }

    return NULL;
}


/*
 * argv[0] is the name of the group.  All commands of a group have the same
 * --help, so any of them can print it.
 */

static int
dsa_run_in_group(const dsa_command_t *group, int argc, char **argv)
{
    size_t                len;
    const dsa_command_t  *command;

    len = dsa_first(group);

    if (argc < 2) {
        (void) dsa_usage(stderr, argv[0]);
        return 2;
    }

    if (dsa_is_help(argv[1])) {
        return group->run(argc, argv);
    }

    for (command = group; command < dsa_commands + DSA_N_COMMANDS; command++) {
        if (dsa_first(command) == len
            && memcmp(command->name, group->name, len) == 0
            && strcmp(command->name + len + 1, argv[1]) == 0)
        {
            return command->run(argc - 1, argv + 1);
        }
    }

    return dsa_unknown(argv[1], argv[0]);
}


/* Reports an unknown command; group: NULL, or the word before it. */

static int
dsa_unknown(const char *given, const char *group)
{
    char            word[2 * DSA_NEAREST_MAX], name[DSA_NEAREST_MAX];
    size_t          i, len;
    dsa_nearest_t   nearest;

    (void) snprintf(word, sizeof(word), "%s%s%.40s", group ? group : "",
                    group ? " " : "", given);

    dsa_nearest_init(&nearest, word, strlen(word));

    for (i = 0; i < DSA_N_COMMANDS; i++) {
        len = group != NULL ? strlen(dsa_commands[i].name)
                            : dsa_first(&dsa_commands[i]);

        (void) snprintf(name, sizeof(name), "%.*s", (int) len,
                        dsa_commands[i].name);

        dsa_nearest_try(&nearest, name);

        if (nearest.name == name) {
            nearest.name = dsa_commands[i].name;
        }
    }

    if (nearest.name == NULL) {
        (void) fprintf(stderr, "dsa: \"%s\" is not a command; " DSA_HINT "\n",
                       word);
        return 2;
    }

    len = group != NULL ? strlen(nearest.name) : strcspn(nearest.name, " ");

    (void) fprintf(stderr, "dsa: \"%s\" is not a command; the nearest one is "
                   "\"dsa %.*s\"\n", word, (int) len, nearest.name);

    return 2;
}


static int
dsa_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}


/* Prints the commands, or those of a group, one on each line. */

static int
dsa_usage(FILE *out, const char *group)
{
    size_t  i;

    if (group != NULL) {
        (void) fprintf(out, "usage: dsa %s COMMAND [OPTION ...]\n"
                       "       dsa %s COMMAND --help\n\n", group, group);

    } else {
        (void) fprintf(out, "usage: dsa COMMAND [OPTION ...]\n"
                       "       dsa COMMAND --help\n"
                       "       dsa --version\n\n");
    }

    for (i = 0; i < DSA_N_COMMANDS; i++) {
        if (group == NULL
            || (dsa_first(&dsa_commands[i]) == strlen(group)
                && memcmp(dsa_commands[i].name, group, strlen(group)) == 0))
        {
            (void) fprintf(out, "  dsa %-14s  %s\n", dsa_commands[i].name,
                           dsa_commands[i].does);
        }
    }

    return fflush(out) == 0 && !ferror(out) ? 0 : 1;
}
