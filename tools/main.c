
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "tools/dsa.h"


typedef struct {
    const char     *name;
    int           (*run)(int argc, char **argv);
    const char     *usage;
} dsa_command_t;


static const dsa_command_t  dsa_commands[] = {

    { "tokenize", dsa_cmd_tokenize,
      "  dsa tokenize --tokenizer FILE [--special] [--jsonl]\n"
      "      print the token ids of a text\n" },

    { "detokenize", dsa_cmd_detokenize,
      "  dsa detokenize --tokenizer FILE [--jsonl]\n"
      "      print the text of token ids\n" },

    { "encode", dsa_cmd_encode,
      "  dsa encode [--segments]\n"
      "      print the prompt of a chat request\n" },

    { "parse", dsa_cmd_parse,
      "  dsa parse [--thinking] [--stream N]\n"
      "      print the message that a completion contains\n" },

    { "logits", dsa_cmd_logits,
      "  dsa logits --model DIR --tokens FILE --out FILE [--exact]\n"
      "             [--backend cpu|cuda] [--trace]\n"
      "      write the logits of a model for each position of a text\n" },

    { "generate", dsa_cmd_generate,
      "  dsa generate --model DIR [--prompt TEXT | --ids \"0 5 7\"] -n N\n"
      "               [--greedy] [--backend cpu|cuda]\n"
      "      continue a prompt\n" },

    { "fingerprint", dsa_cmd_fingerprint,
      "  dsa fingerprint --model DIR\n"
      "      print a hash of config.json and every byte of the weights\n" },

    { "key", dsa_cmd_key,
      "  dsa key create | list | show | set | revoke | rotate\n"
      "      manage API keys in Redis or in a file\n" },

    { "usage", dsa_cmd_usage,
      "  dsa usage [--key ID] [--tenant NAME] [--from DATE] [--to DATE]\n"
      "            [--json | --csv]\n"
      "      print tokens and costs from the ledger\n" },

    { "status", dsa_cmd_status,
      "  dsa status [ADDRESS] [--json] [--once]\n"
      "      show the requests, engines and tenants of a server\n" },

    { "bench", dsa_cmd_bench,
      "  dsa bench cache | kernels | engine | bits | comm | node\n"
      "      measure pages in Redis, the ops of a GPU, and whole steps\n" }
};


#define DSA_N_COMMANDS  (sizeof(dsa_commands) / sizeof(dsa_commands[0]))


static void dsa_usage(FILE *out);


int
main(int argc, char **argv)
{
    size_t  i;

    if (argc < 2) {
        dsa_usage(stderr);
        return 2;
    }

    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0
        || strcmp(argv[1], "-h") == 0)
    {
        dsa_usage(stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }

    for (i = 0; i < DSA_N_COMMANDS; i++) {
        if (strcmp(argv[1], dsa_commands[i].name) == 0) {
            return dsa_commands[i].run(argc - 1, argv + 1);
        }
    }

    (void) fprintf(stderr, "dsa: \"%s\" is not a command\n", argv[1]);
    dsa_usage(stderr);

    return 2;
}


static void
dsa_usage(FILE *out)
{
    size_t  i;

    (void) fprintf(out, "usage: dsa COMMAND ...\n"
                   "       dsa COMMAND --help\n");

    for (i = 0; i < DSA_N_COMMANDS; i++) {
        (void) fprintf(out, "\n%s", dsa_commands[i].usage);
    }
}
