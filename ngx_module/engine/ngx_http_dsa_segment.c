
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include <sys/mman.h>

#include "ngx_http_dsa_segment.h"


const char *
ngx_http_dsa_segment_map(void **segment, dsa_link_t *link, ngx_fd_t fd,
    const dsa_link_hello_t *hello)
{
    int               seals;
    void             *p;
    ngx_file_info_t   fi;

    /*
     * Without seals the engine could shrink the file, and the worker would get
     * SIGBUS.
     */

    seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || (seals & F_SEAL_SHRINK) == 0
        || (seals & F_SEAL_GROW) == 0)
    {
        return "it sent a segment without seals";
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR
        || hello->segment_size == 0
        || (uint64_t) ngx_file_size(&fi) != hello->segment_size)
    {
        return "its segment does not have the size in its hello";
    }

    p = mmap(NULL, hello->segment_size, PROT_READ|PROT_WRITE, MAP_SHARED, fd,
             0);

    if (p == MAP_FAILED) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "mmap(%uL) failed", hello->segment_size);
        return "its segment cannot be mapped";
    }

    if (dsa_link_attach(link, p, hello->segment_size, hello) != 0) {
        ngx_http_dsa_segment_unmap(p, hello);
        return "its hello is malformed, or has a version of the link that "
               "nginx did not offer";
    }

    *segment = p;

    return NULL;
}


void
ngx_http_dsa_segment_unmap(void *segment, const dsa_link_hello_t *hello)
{
    if (segment != NULL && munmap(segment, hello->segment_size) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "munmap() failed");
    }
}
