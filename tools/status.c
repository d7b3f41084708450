
/*
 * Copyright (C) The nginx-dsa authors
 *
 * dsa status: the current work of a server, on a screen that is drawn again
 * each second, or as one report.
 */


#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "tools/dsa.h"
#include "tools/options.h"
#include "tools/status.h"


#define DSA_STATUS_PERIOD   1000        /* ms between two reads */
#define DSA_STATUS_ERROR    512         /* bytes of an escaped error */
#define DSA_STATUS_WINDOW   10          /* reads that a rate is over */

/* of conf/nginx.conf, and of the demonstration */

#define DSA_STATUS_SHIPPED  "http://127.0.0.1/status"
#define DSA_STATUS_DEMO     "http://127.0.0.1:8080/status"


static const char  dsa_status_usage[] =
    "usage: dsa status [ADDRESS] [--json] [--once]\n"
    "\n"
    "Shows requests, engines and tenants of the server whose dsa_status is at\n"
    "ADDRESS: http://HOST[:PORT][/PATH] or unix:SOCKET[:/PATH]; by default at\n"
    DSA_STATUS_SHIPPED ", as in the nginx.conf that is shipped, or\n"
    "else at " DSA_STATUS_DEMO ", as in the demonstration.\n"
    "\n"
    "The screen is drawn again each second; q ends it.  Rates and percentiles\n"
    "are those of the last 10 seconds.\n"
    "\n"
    "  --once    print one report, with the rates of one second; the\n"
    "            default if the output is not a terminal\n"
    "  --json    print the document of dsa_status\n";


enum {
    DSA_STATUS_OPT_JSON = DSA_OPTIONS_FIRST,
    DSA_STATUS_OPT_ONCE
};


typedef struct {
    const char            *address;
    int                    json;
    int                    once;
} dsa_status_conf_t;


/* The last reads; at first it is zeroed. */

typedef struct {
    dsa_status_t           read[DSA_STATUS_WINDOW + 1];
    uint32_t               n;           /* the oldest is the first */
    dsa_err_t              err;         /* of the last attempt */
    int                    failed;      /* 1: it failed */
} dsa_status_reads_t;


static int dsa_status_option(void *data, int opt, const char *value,
    dsa_err_t *err);
static int dsa_status_complete(void *data, int n, char **args, dsa_err_t *err);
static const char *dsa_status_default(void);
static int dsa_status_json(const char *address);
static int dsa_status_once(const char *address);
static int dsa_status_end(int rc, const dsa_err_t *err);
static int dsa_status_screen(const char *address);
static void dsa_status_next(dsa_status_reads_t *r, const char *address);
static int dsa_status_take(dsa_status_t *s, const char *address,
    dsa_err_t *err);
static int dsa_status_show(const dsa_status_reads_t *r);
static void dsa_status_error(char text[DSA_STATUS_ERROR],
    const dsa_err_t *err);
static int dsa_status_key(uint64_t end);
static void dsa_status_signal(int signo);


static volatile sig_atomic_t  dsa_status_ends;


static const struct option  dsa_status_table[] = {
    { "json", no_argument, NULL, DSA_STATUS_OPT_JSON },
    { "once", no_argument, NULL, DSA_STATUS_OPT_ONCE },
    DSA_OPTIONS_END
};

static const dsa_options_t  dsa_status_options = {
    "status", dsa_status_usage, dsa_status_table, dsa_status_option,
    dsa_status_complete
};


int
dsa_cmd_status(int argc, char **argv)
{
    int                rc;
    dsa_status_conf_t  conf;

    memset(&conf, 0, sizeof(dsa_status_conf_t));
    rc = dsa_options_read(&dsa_status_options, &conf, argc, argv);

    if (rc != -1) {
        return rc;
    }

    if (conf.address == NULL) {
        conf.address = dsa_status_default();
    }

    if (conf.json) {
        return dsa_status_json(conf.address);
    }

    if (conf.once || !isatty(STDOUT_FILENO)) {
        return dsa_status_once(conf.address);
    }

    return dsa_status_screen(conf.address);
}


static int
dsa_status_option(void *data, int opt, const char *value, dsa_err_t *err)
{
    dsa_status_conf_t  *conf = data;

    if (opt == DSA_STATUS_OPT_JSON) {
        conf->json = 1;

    } else {
        conf->once = 1;
    }

    return DSA_OK;
}


static int
dsa_status_complete(void *data, int n, char **args, dsa_err_t *err)
{
    dsa_status_conf_t  *conf = data;

    if (n > 1) {
        return dsa_error(err, "\"%s\" is a second address; expected one",
                         args[1]);
    }

    if (n == 1) {
        conf->address = args[0];
    }

    return DSA_OK;
}


/*
 * The first address that has a dsa_status, or the first one, whose error is
 * reported then: another server may listen on its port.
 */

static const char *
dsa_status_default(void)
{
    size_t        i;
    dsa_err_t     err;
    dsa_status_t  s;

    static const char *const  addresses[] = {
        DSA_STATUS_SHIPPED, DSA_STATUS_DEMO
    };

    for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        memset(&s, 0, sizeof(dsa_status_t));

        if (dsa_status_take(&s, addresses[i], &err) == DSA_OK) {
            dsa_status_free(&s);
            return addresses[i];
        }

        dsa_status_free(&s);
    }

    return addresses[0];
}


/* The output is JSON, in which control characters are escaped. */

static int
dsa_status_json(const char *address)
{
    int           rc;
    dsa_buf_t     body;
    dsa_err_t     err;
    dsa_status_t  s;

    memset(&body, 0, sizeof(dsa_buf_t));
    memset(&s, 0, sizeof(dsa_status_t));

    rc = dsa_status_get(&body, address, &err);

    if (rc == DSA_OK) {
        rc = dsa_status_read(&s, dsa_str(body.data, body.len), &err);
    }

    if (rc == DSA_OK
        && (fwrite(body.data, 1, body.len, stdout) != body.len
            || fflush(stdout) != 0))
    {
        rc = dsa_error(&err, "cannot write: %s", strerror(errno));
    }

    dsa_status_free(&s);
    dsa_buf_free(&body);

    return dsa_status_end(rc, &err);
}


static int
dsa_status_once(const char *address)
{
    int           rc;
    dsa_buf_t     b;
    dsa_err_t     err;
    dsa_status_t  before, now;

    memset(&b, 0, sizeof(dsa_buf_t));
    memset(&now, 0, sizeof(dsa_status_t));

    rc = dsa_status_take(&before, address, &err);

    if (rc == DSA_OK) {
        (void) poll(NULL, 0, DSA_STATUS_PERIOD);
        rc = dsa_status_take(&now, address, &err);
    }

    if (rc == DSA_OK) {
        dsa_status_print(&b, now.uptime < before.uptime ? &now : &before,
                         &now, UINT32_MAX, 0);

        if (b.failed || fwrite(b.data, 1, b.len, stdout) != b.len
            || fflush(stdout) != 0)
        {
            rc = dsa_error(&err, "cannot write: %s", strerror(errno));
        }
    }

    dsa_status_free(&before);
    dsa_status_free(&now);
    dsa_buf_free(&b);

    return dsa_status_end(rc, &err);
}


/* Prints the error, if there is one, and returns the exit status. */

static int
dsa_status_end(int rc, const dsa_err_t *err)
{
    char  text[DSA_STATUS_ERROR];

    if (rc == DSA_OK) {
        return 0;
    }

    dsa_status_error(text, err);
    (void) fprintf(stderr, "dsa status: %s\n", text);

    return 1;
}


/* Reads one document.  The caller frees s in any case. */

static int
dsa_status_take(dsa_status_t *s, const char *address, dsa_err_t *err)
{
    int        rc;
    dsa_buf_t  body;

    memset(s, 0, sizeof(dsa_status_t));
    memset(&body, 0, sizeof(dsa_buf_t));

    rc = dsa_status_get(&body, address, err);

    if (rc == DSA_OK) {
        rc = dsa_status_read(s, dsa_str(body.data, body.len), err);
    }

    dsa_buf_free(&body);

    return rc;
}


/*
 * If a document cannot be read, the screen has the reason, and the next attempt
 * follows a second later.  If the terminal cannot be written, the screen ends.
 */

static int
dsa_status_screen(const char *address)
{
    int                 rc, raw;
    uint32_t            i;
    uint64_t            next;
    struct termios      old, mode;
    struct sigaction    sa;
    dsa_status_reads_t  reads;

    memset(&reads, 0, sizeof(dsa_status_reads_t));
    memset(&sa, 0, sizeof(sa));

    /* without SA_RESTART, so that poll() ends */

    sa.sa_handler = dsa_status_signal;
    (void) sigaction(SIGINT, &sa, NULL);
    (void) sigaction(SIGTERM, &sa, NULL);
    (void) sigaction(SIGHUP, &sa, NULL);
    (void) sigaction(SIGWINCH, &sa, NULL);

    raw = tcgetattr(STDIN_FILENO, &old) == 0;

    if (raw) {
        mode = old;
        mode.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &mode);
    }

    /* the alternate screen, without a cursor */

    rc = fputs("\033[?1049h\033[?25l", stdout) != EOF ? 0 : 1;

    while (rc == 0 && !dsa_status_ends) {
        next = dsa_clock_ms() + DSA_STATUS_PERIOD;
        dsa_status_next(&reads, address);

        do {
            rc = dsa_status_show(&reads);
        } while (rc == 0 && !dsa_status_ends && dsa_status_key(next));
    }

    (void) fputs("\033[?25h\033[?1049l", stdout);
    (void) fflush(stdout);

    if (raw) {
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &old);
    }

    for (i = 0; i < reads.n; i++) {
        dsa_status_free(&reads.read[i]);
    }

    return rc;
}


static void
dsa_status_next(dsa_status_reads_t *r, const char *address)
{
    dsa_status_t  s;

    r->failed = dsa_status_take(&s, address, &r->err) != DSA_OK;

    if (r->failed) {
        dsa_status_free(&s);
        return;
    }

    /* after a restart of nginx its counters have begun at 0 */

    while (r->n != 0 && (r->n == DSA_STATUS_WINDOW + 1
                         || s.uptime < r->read[r->n - 1].uptime))
    {
        dsa_status_free(&r->read[0]);
        r->n--;
        memmove(&r->read[0], &r->read[1], r->n * sizeof(dsa_status_t));
    }

    r->read[r->n++] = s;
}


static int
dsa_status_show(const dsa_status_reads_t *r)
{
    int             rc;
    char            text[DSA_STATUS_ERROR];
    size_t          i;
    dsa_buf_t       b, screen;
    struct winsize  size;

    memset(&b, 0, sizeof(dsa_buf_t));
    memset(&screen, 0, sizeof(dsa_buf_t));

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_col == 0
        || size.ws_row < 2)
    {
        size.ws_col = 80;
        size.ws_row = 24;
    }

    if (r->failed) {
        dsa_status_error(text, &r->err);
        dsa_buf_printf(&b, "dsa status: %.*s\n", size.ws_col - 12, text);
    }

    /* the last line of the screen stays empty, so that it does not scroll */

    if (r->n != 0 && size.ws_row > 2) {
        dsa_status_print(&b, &r->read[0], &r->read[r->n - 1], size.ws_col,
                         size.ws_row - 1U - (r->failed != 0));
    }

    dsa_buf_addz(&screen, "\033[H");

    for (i = 0; i < b.len; i++) {
        if (b.data[i] == '\n') {
            dsa_buf_addz(&screen, "\033[K\r\n");

        } else {
            dsa_buf_add(&screen, &b.data[i], 1);
        }
    }

    dsa_buf_addz(&screen, "\033[J");

    rc = !b.failed && !screen.failed
         && fwrite(screen.data, 1, screen.len, stdout) == screen.len
         && fflush(stdout) == 0 ? 0 : 1;

    dsa_buf_free(&b);
    dsa_buf_free(&screen);

    return rc;
}


/* An error may quote the answer, which can have control characters. */

static void
dsa_status_error(char text[DSA_STATUS_ERROR], const dsa_err_t *err)
{
    size_t  n;

    n = dsa_escape(text, DSA_STATUS_ERROR - 1, err->text, strlen(err->text));
    text[n] = '\0';
}


/* Waits until end.  1: the size of the terminal changed before that. */

static int
dsa_status_key(uint64_t end)
{
    int            rc;
    char           c;
    uint64_t       now;
    struct pollfd  p = { STDIN_FILENO, POLLIN, 0 };

    for ( ;; ) {
        now = dsa_clock_ms();

        if (now >= end) {
            return 0;
        }

        rc = poll(&p, p.fd == -1 ? 0 : 1, (int) (end - now));

        if (rc == -1) {
            return errno == EINTR;
        }

        if (rc == 0) {
            return 0;
        }

        /* after the end of the input only a signal ends the screen */

        if (read(STDIN_FILENO, &c, 1) != 1) {
            p.fd = -1;

        } else if (c == 'q' || c == 'Q') {
            dsa_status_ends = 1;
            return 0;
        }
    }
}


static void
dsa_status_signal(int signo)
{
    if (signo != SIGWINCH) {
        dsa_status_ends = 1;
    }
}
