
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_H_INCLUDED_
#define _DSA_BENCH_H_INCLUDED_


/*
 * dsa bench: tables in Markdown on stdout.  The result is the exit status: 0, 1
 * a failure that was reported on stderr, 2 bad usage.  All but the first four
 * are in dsa-cuda only.
 */

int dsa_bench_cache(int argc, char **argv, const char *usage);
int dsa_bench_skew(int argc, char **argv, const char *usage);
int dsa_bench_hosts_engine(int argc, char **argv, const char *usage);
int dsa_bench_hosts_comm(int argc, char **argv, const char *usage);
int dsa_bench_kernels(int argc, char **argv, const char *usage);
int dsa_bench_engine(int argc, char **argv, const char *usage);
int dsa_bench_comm(int argc, char **argv, const char *usage);
int dsa_bench_bits(int argc, char **argv, const char *usage);
int dsa_bench_node(int argc, char **argv, const char *usage);


#endif /* _DSA_BENCH_H_INCLUDED_ */
