
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Runs a program with the system calls that a unit of systemd leaves to it.
 *
 *     seccomp FILTER... -- PROGRAM ARGS...
 *
 *     family=N       permits sockets of this family; without any, of all
 *     namespaces     RestrictNamespaces=yes
 *     personality    LockPersonality=yes
 *     suid           RestrictSUIDSGID=yes, of files that exist
 *     native         SystemCallArchitectures=native
 *
 * The errors are those of systemd's filters.  The caller has set no_new_privs.
 */


#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>


#if defined(__x86_64__)
#define SANDBOX_ARCH    AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH    AUDIT_ARCH_AARCH64
#else
#error "the number of this architecture is not known"
#endif

#define SANDBOX_MAX     256             /* instructions */

#define SANDBOX_NAMESPACES                                                    \
    (CLONE_NEWCGROUP|CLONE_NEWIPC|CLONE_NEWNET|CLONE_NEWNS|CLONE_NEWPID       \
     |CLONE_NEWUSER|CLONE_NEWUTS)


typedef struct {
    struct sock_filter  code[SANDBOX_MAX];
    unsigned short      n;
} sandbox_t;


static void sandbox_add(sandbox_t *s, uint16_t code, uint32_t k, uint8_t jt,
    uint8_t jf);
static void sandbox_load(sandbox_t *s, size_t offset);
static void sandbox_arch(sandbox_t *s, int native);
static void sandbox_families(sandbox_t *s, const uint32_t *family, uint32_t n);
static void sandbox_refuse(sandbox_t *s, uint32_t call, uint32_t error);
static void sandbox_refuse_bits(sandbox_t *s, uint32_t call, uint32_t arg,
    uint32_t bits);
static void sandbox_namespaces(sandbox_t *s);
static void sandbox_suid(sandbox_t *s);


int
main(int argc, char **argv)
{
    int                i, native;
    uint32_t           n, family[64];
    sandbox_t          s;
    struct sock_fprog  program;

    s.n = 0;
    n = 0;
    native = 0;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        native |= strcmp(argv[i], "native") == 0;
    }

    sandbox_arch(&s, native);

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {

        if (strncmp(argv[i], "family=", 7) == 0 && n < 64) {
            family[n++] = (uint32_t) strtoul(argv[i] + 7, NULL, 10);

        } else if (strcmp(argv[i], "namespaces") == 0) {
            sandbox_namespaces(&s);

        } else if (strcmp(argv[i], "personality") == 0) {
            sandbox_refuse(&s, SYS_personality, EPERM);

        } else if (strcmp(argv[i], "suid") == 0) {
            sandbox_suid(&s);

        } else if (strcmp(argv[i], "native") != 0) {
            (void) fprintf(stderr, "seccomp: what is \"%s\"?\n", argv[i]);
            return 2;
        }
    }

    if (n != 0) {
        sandbox_families(&s, family, n);
    }

    sandbox_add(&s, BPF_RET|BPF_K, SECCOMP_RET_ALLOW, 0, 0);

    program.len = s.n;
    program.filter = s.code;

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1) {
        perror("seccomp: prctl()");
        return 1;
    }

    if (i + 1 < argc) {
        (void) execv(argv[i + 1], argv + i + 1);
        perror(argv[i + 1]);
    }

    return 127;
}


static void
sandbox_add(sandbox_t *s, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    if (s->n == SANDBOX_MAX) {
        (void) fprintf(stderr, "seccomp: the filter is too long\n");
        exit(1);
    }

    s->code[s->n].code = code;
    s->code[s->n].k = k;
    s->code[s->n].jt = jt;
    s->code[s->n].jf = jf;
    s->n++;
}


static void
sandbox_load(sandbox_t *s, size_t offset)
{
    sandbox_add(s, BPF_LD|BPF_W|BPF_ABS, (uint32_t) offset, 0, 0);
}


/* Calls of another architecture end the process, or have no filter. */

static void
sandbox_arch(sandbox_t *s, int native)
{
    sandbox_load(s, offsetof(struct seccomp_data, arch));
    sandbox_add(s, BPF_JMP|BPF_JEQ|BPF_K, SANDBOX_ARCH, 1, 0);
    sandbox_add(s, BPF_RET|BPF_K,
                native ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW, 0, 0);
}


static void
sandbox_families(sandbox_t *s, const uint32_t *family, uint32_t n)
{
    uint32_t  i;

    sandbox_load(s, offsetof(struct seccomp_data, nr));
    sandbox_add(s, BPF_JMP|BPF_JEQ|BPF_K, SYS_socket, 0, (uint8_t) (n + 2));
    sandbox_load(s, offsetof(struct seccomp_data, args[0]));

    for (i = 0; i < n; i++) {
        sandbox_add(s, BPF_JMP|BPF_JEQ|BPF_K, family[i], (uint8_t) (n - i), 0);
    }

    sandbox_add(s, BPF_RET|BPF_K, SECCOMP_RET_ERRNO|EAFNOSUPPORT, 0, 0);
}


static void
sandbox_refuse(sandbox_t *s, uint32_t call, uint32_t error)
{
    sandbox_load(s, offsetof(struct seccomp_data, nr));
    sandbox_add(s, BPF_JMP|BPF_JEQ|BPF_K, call, 0, 1);
    sandbox_add(s, BPF_RET|BPF_K, SECCOMP_RET_ERRNO|error, 0, 0);
}


/* Refuses a call if its argument has one of these bits. */

static void
sandbox_refuse_bits(sandbox_t *s, uint32_t call, uint32_t arg, uint32_t bits)
{
    sandbox_load(s, offsetof(struct seccomp_data, nr));
    sandbox_add(s, BPF_JMP|BPF_JEQ|BPF_K, call, 0, 3);
    sandbox_load(s, offsetof(struct seccomp_data, args)
                    + arg * sizeof(uint64_t));
    sandbox_add(s, BPF_JMP|BPF_JSET|BPF_K, bits, 0, 1);
    sandbox_add(s, BPF_RET|BPF_K, SECCOMP_RET_ERRNO|EPERM, 0, 0);
}


/* A filter cannot read the flags of clone3(); without it, libc uses clone(). */

static void
sandbox_namespaces(sandbox_t *s)
{
    sandbox_refuse(s, SYS_setns, EPERM);
    sandbox_refuse(s, SYS_clone3, ENOSYS);
    sandbox_refuse_bits(s, SYS_clone, 0, SANDBOX_NAMESPACES);
    sandbox_refuse_bits(s, SYS_unshare, 0, SANDBOX_NAMESPACES);
}


static void
sandbox_suid(sandbox_t *s)
{
#ifdef SYS_chmod
    sandbox_refuse_bits(s, SYS_chmod, 1, S_ISUID|S_ISGID);
#endif
    sandbox_refuse_bits(s, SYS_fchmod, 1, S_ISUID|S_ISGID);
    sandbox_refuse_bits(s, SYS_fchmodat, 2, S_ISUID|S_ISGID);
}
