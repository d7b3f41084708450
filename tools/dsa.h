
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TOOLS_H_INCLUDED_
#define _DSA_TOOLS_H_INCLUDED_


/*
 * The commands of dsa, one file each.  argv[0] is the command's name; the
 * result is the exit status: 0, 1 a failure that was told on stderr, 2 bad
 * usage.
 */

int dsa_cmd_tokenize(int argc, char **argv);
int dsa_cmd_detokenize(int argc, char **argv);
int dsa_cmd_encode(int argc, char **argv);
int dsa_cmd_parse(int argc, char **argv);
int dsa_cmd_logits(int argc, char **argv);
int dsa_cmd_generate(int argc, char **argv);
int dsa_cmd_bench(int argc, char **argv);


#endif /* _DSA_TOOLS_H_INCLUDED_ */
