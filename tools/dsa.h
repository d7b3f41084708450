
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_H_INCLUDED_
#define _DSA_TOOLS_H_INCLUDED_


#include "base/buf.h"
#include "engine/checkpoint/shard.h"


/*
 * The commands of dsa.  argv[0] is the last word of the command's name, or that
 * of the group if argv[1] is --help.  They return the exit status: 0, 1 after
 * an error on stderr, 2 after wrong usage.
 */

int dsa_cmd_tokenize(int argc, char **argv);
int dsa_cmd_detokenize(int argc, char **argv);
int dsa_cmd_encode(int argc, char **argv);
int dsa_cmd_parse(int argc, char **argv);
int dsa_cmd_logits(int argc, char **argv);
int dsa_cmd_generate(int argc, char **argv);
int dsa_cmd_fingerprint(int argc, char **argv);
int dsa_cmd_quantize(int argc, char **argv);
int dsa_cmd_bench(int argc, char **argv);
int dsa_cmd_key(int argc, char **argv);
int dsa_cmd_usage(int argc, char **argv);
int dsa_cmd_status(int argc, char **argv);
int dsa_cmd_check(int argc, char **argv);
int dsa_cmd_drain(int argc, char **argv);
int dsa_cmd_tenant(int argc, char **argv);

/*
 * input.c.  Appends all of stdin to out, which the caller frees in any case.
 * Returns the exit status: 0, or 1 after an error on stderr.
 */
int dsa_read_stdin(const char *command, dsa_buf_t *out);

/*
 * gpus.c.  The values of --gpus and --attention.  DSA_ERROR after an error on
 * stderr.
 */
int dsa_gpus_option(uint32_t *gpus, const char *command, const char *text);
int dsa_attention_option(dsa_attention_e *attention, const char *command,
    const char *text);


#endif /* _DSA_TOOLS_H_INCLUDED_ */
