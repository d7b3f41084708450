
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCAN_H_INCLUDED_
#define _DSA_SCAN_H_INCLUDED_


#include "engine/checkpoint/fingerprint.h"
#include "engine/checkpoint/weights.h"


/*
 * Reads every byte of a checkpoint once.  Each of several threads reads a leaf
 * of a file into its buffer, passes it to the sink, hashes it, and continues
 * with the next leaf.  Host memory is bounded by one buffer for each thread.
 */

#define DSA_SCAN_THREADS    64          /* most */


/* A leaf of a file. */

typedef struct {
    uint32_t            file;           /* of weights->shards */
    uint64_t            offset;         /* in the file */
    size_t              size;
    const uint8_t      *data;
} dsa_scan_block_t;


/*
 * The consumer of the blocks.  Each thread opens and closes a part of the
 * sink; the functions are called by several threads at the same time.  If one
 * of them returns DSA_ERROR with err, the scan fails with that error.
 */

typedef struct {
    void               *data;

    /*
     * Sets *buffer to DSA_LEAF_SIZE bytes that are aligned to
     * DSA_DIRECT_ALIGN and stay valid until close().  Returns the argument of
     * the functions below; NULL with err.
     */
    void             *(*open)(void *data, uint8_t **buffer, dsa_err_t *err);

    /* Consumes a block.  The buffer may still be in use afterwards. */
    int               (*block)(void *part, const dsa_scan_block_t *block,
                               dsa_err_t *err);

    /* Waits until the buffer may be filled again. */
    int               (*wait)(void *part, dsa_err_t *err);
    void              (*close)(void *part);
} dsa_scan_sink_t;


/*
 * Reads all files of w, and writes the full fingerprint to fingerprint.  sink
 * may be NULL; threads is at most DSA_SCAN_THREADS, 0: as many as suit the
 * machine.  Logs the progress.  DSA_ERROR with err, which names the file and
 * the offset: an I/O error, a file that has changed since w was opened, or an
 * error of the sink.  All threads have ended when this returns.
 */
int dsa_scan(const dsa_weights_t *w, const dsa_scan_sink_t *sink,
    uint32_t threads, char fingerprint[DSA_FULL_LEN + 1], dsa_err_t *err);


#endif /* _DSA_SCAN_H_INCLUDED_ */
