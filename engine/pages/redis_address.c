
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "engine/pages/redis_address.h"


#define DSA_REDIS_UNIX      "unix:"
#define DSA_REDIS_IPV6      "0123456789abcdefABCDEF:.%"


static int dsa_redis_address_port(const char *text);


int
dsa_redis_address(dsa_redis_address_t *a, const char *text, dsa_err_t *err)
{
    int          port;
    size_t       len;
    const char  *host, *colon;

    if (strncmp(text, DSA_REDIS_UNIX, sizeof(DSA_REDIS_UNIX) - 1) == 0) {
        host = text + sizeof(DSA_REDIS_UNIX) - 1;
        len = strlen(host);

        if (len == 0 || len >= sizeof(((struct sockaddr_un *) NULL)->sun_path))
        {
            return dsa_error(err, "\"%s\" is not an address of Redis; expected "
                             "a path of 1 to 107 bytes after \"unix:\"", text);
        }

        memcpy(a->host, host, len + 1);
        (void) snprintf(a->text, sizeof(a->text), DSA_REDIS_UNIX "%s", a->host);
        a->port = 0;

        return DSA_OK;
    }

    host = text;
    colon = strrchr(text, ':');
    port = colon != NULL ? dsa_redis_address_port(colon + 1) : -1;
    len = colon != NULL ? (size_t) (colon - host) : 0;

    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;

        if (strspn(host, DSA_REDIS_IPV6) != len) {
            port = -1;
        }

    } else if (memchr(host, ':', len) != NULL || host[0] == '[') {
        port = -1;
    }

    if (port == -1 || len == 0 || len >= DSA_REDIS_HOST) {
        return dsa_error(err, "\"%s\" is not an address of Redis; expected "
                         "HOST:PORT, [IPV6]:PORT or unix:PATH", text);
    }

    return dsa_redis_address_set(a, host, len, port, err);
}


int
dsa_redis_address_set(dsa_redis_address_t *a, const char *host, size_t len,
    int64_t port, dsa_err_t *err)
{
    int     v6;
    size_t  i;

    if (port < 1 || port > 65535) {
        return dsa_error(err, "%lld is not a port; expected 1 to 65535",
                         (long long) port);
    }

    if (len == 0 || len >= DSA_REDIS_HOST) {
        return dsa_error(err, "a host name has %zu bytes; expected 1 to %d",
                         len, DSA_REDIS_HOST - 1);
    }

    for (i = 0; i < len; i++) {
        if (host[i] <= ' ' || host[i] > '~'
            || strchr("[]/=", host[i]) != NULL)
        {
            return dsa_error(err, "byte %zu of a host name is 0x%02x; expected "
                             "printable ASCII without brackets, \"/\" and "
                             "\"=\"", i, (unsigned char) host[i]);
        }
    }

    memcpy(a->host, host, len);
    a->host[len] = '\0';
    a->port = (int) port;

    v6 = strchr(a->host, ':') != NULL;
    (void) snprintf(a->text, sizeof(a->text), "%s%s%s:%d", v6 ? "[" : "",
                    a->host, v6 ? "]" : "", a->port);

    return DSA_OK;
}


/* Returns the port, 1 to 65535; -1 if the text is not a port. */

static int
dsa_redis_address_port(const char *text)
{
    int     port;
    size_t  i;

    port = 0;

    for (i = 0; text[i] >= '0' && text[i] <= '9' && i < 5; i++) {
        port = port * 10 + (text[i] - '0');
    }

    return (text[i] == '\0' && port >= 1 && port <= 65535) ? port : -1;
}
