
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hosts/door.h"


int
dsa_hosts_address(dsa_hosts_address_t *address, const char *text,
    dsa_err_t *err)
{
    long         port;
    size_t       i, len, digits;
    const char  *host, *colon;

    host = text;
    colon = strrchr(text, ':');
    len = colon != NULL ? (size_t) (colon - text) : 0;
    digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    port = digits >= 1 && digits <= 5 && colon[1 + digits] == '\0'
           ? strtol(colon + 1, NULL, 10) : -1;

    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;

    } else if (len == 0 || memchr(host, ':', len) != NULL || host[0] == '[') {
        port = -1;
    }

    for (i = 0; i < len; i++) {
        if (host[i] <= ' ' || host[i] > '~' || host[i] == '/') {
            port = -1;
        }
    }

    if (port < 0 || port > 65535 || len >= sizeof(address->host)) {
        return dsa_error(err, "\"%.256s\" is not an address; expected "
                         "HOST:PORT or [IPV6]:PORT", text);
    }

    memcpy(address->host, host, len);
    address->host[len] = '\0';
    (void) snprintf(address->port, sizeof(address->port), "%ld", port);

    return DSA_OK;
}
