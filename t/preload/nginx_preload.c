
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A library that tests preload into nginx.  DSA_PRELOAD is a directory:
 *
 *     turn.PID  the most bytes that the event loop of this process has parsed,
 *               hashed or encrypted in one turn, that is between two calls of
 *               epoll_wait()
 *     turn_time.PID  the longest of these turns, in ns of the loop's CPU time;
 *               another process may remove it, and then it begins again
 *     before    while this file exists, threads of nginx's thread pools wait
 *               in front of each task,
 *     after     and behind each task, before they report its end
 *     held.before, held.after  exist as soon as a thread has waited there
 */


#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <yajl/yajl_parse.h>


#define next(name)  ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))


static size_t    turn;
static size_t    most;
static uint64_t  began;
static uint64_t  longest;


static const char *
path(char *buf, size_t size, const char *name)
{
    const char  *dir;

    dir = getenv("DSA_PRELOAD");

    (void) snprintf(buf, size, "%s/%s", dir != NULL ? dir : "/nonexistent",
                    name);

    return buf;
}


static int
on_loop(void)
{
    return syscall(SYS_gettid) == getpid();
}


static void
count(size_t bytes)
{
    if (on_loop()) {
        turn += bytes;
    }
}


static void
hold(const char *name)
{
    int   fd;
    char  file[1024], held[1024];

    if (on_loop()) {
        return;
    }

    path(file, sizeof(file), name);
    (void) snprintf(held, sizeof(held), "%s/held.%s", getenv("DSA_PRELOAD"),
                    name);

    while (access(file, F_OK) == 0) {
        fd = open(held, O_WRONLY|O_CREAT|O_CLOEXEC, 0600);

        if (fd != -1) {
            (void) close(fd);
        }

        (void) usleep(1000);
    }
}


static void
report(const char *what, uint64_t n)
{
    char   file[1024], name[64];
    FILE  *out;

    (void) snprintf(name, sizeof(name), "%s.%d", what, (int) getpid());
    out = fopen(path(file, sizeof(file), name), "we");

    if (out != NULL) {
        (void) fprintf(out, "%llu\n", (unsigned long long) n);
        (void) fclose(out);
    }
}


static uint64_t
cpu_time(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}


static void
end_of_turn(void)
{
    char      file[1024], name[64];
    uint64_t  ns;

    if (turn > most) {
        most = turn;
        report("turn", most);
    }

    turn = 0;
    ns = began != 0 ? cpu_time() - began : 0;

    if (ns > 1000000) {
        (void) snprintf(name, sizeof(name), "turn_time.%d", (int) getpid());

        if (access(path(file, sizeof(file), name), F_OK) != 0) {
            longest = 0;
        }

        if (ns > longest) {
            longest = ns;
            report("turn_time", ns);
        }
    }
}


int
epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
    int  n;

    if (!on_loop()) {
        return next(epoll_wait)(epfd, events, max, timeout);
    }

    end_of_turn();

    n = next(epoll_wait)(epfd, events, max, timeout);

    began = cpu_time();

    return n;
}


/* The thread has taken a task from the queue. */

int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int  rc;

    rc = next(pthread_mutex_unlock)(mutex);

    hold("before");

    return rc;
}


/* The thread reports the end of a task by an eventfd. */

ssize_t
write(int fd, const void *buf, size_t n)
{
    if (n == sizeof(uint64_t)) {
        hold("after");
    }

    return next(write)(fd, buf, n);
}


yajl_status
yajl_parse(yajl_handle hand, const unsigned char *text, size_t len)
{
    count(len);

    return next(yajl_parse)(hand, text, len);
}


int
EVP_DigestUpdate(EVP_MD_CTX *ctx, const void *data, size_t len)
{
    count(len);

    return next(EVP_DigestUpdate)(ctx, data, len);
}


int
EVP_EncryptUpdate(EVP_CIPHER_CTX *ctx, unsigned char *out, int *outl,
    const unsigned char *in, int len)
{
    count((size_t) len);

    return next(EVP_EncryptUpdate)(ctx, out, outl, in, len);
}


int
EVP_DecryptUpdate(EVP_CIPHER_CTX *ctx, unsigned char *out, int *outl,
    const unsigned char *in, int len)
{
    count((size_t) len);

    return next(EVP_DecryptUpdate)(ctx, out, outl, in, len);
}
