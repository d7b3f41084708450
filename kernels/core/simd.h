
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SIMD_H_INCLUDED_
#define _DSA_SIMD_H_INCLUDED_


/*
 * The CPU ops run on any x86-64 or arm64.  A function that is marked with
 * DSA_CLONES is compiled for plain x86-64, AVX2 and AVX-512, and the loader
 * chooses one.  All of them return the same bits: the compiler keeps the order
 * of floating-point additions, and KERNEL_OPT in the Makefile has
 * -ffp-contract=off, because otherwise only some of them would fuse a product
 * and a sum.  Only gemm.c uses fused operations, explicitly.
 *
 * There are no clones with ThreadSanitizer, because it is not initialized yet
 * when the loader runs the resolver, and with Clang, because Clang 14 leaves
 * the symbols of clones undefined when they are linked from another file.
 */

#if defined(__SANITIZE_THREAD__) || defined(__clang__)                        \
    || !defined(__x86_64__)
#define DSA_NO_CLONES  1
#endif

#if (DSA_NO_CLONES)
#define DSA_CLONES
#else
#define DSA_CLONES                                                            \
    __attribute__((target_clones("default", "avx2", "avx512f")))
#endif


/* Within a function with clones, so that it is compiled with each of them. */
#define DSA_INLINE  inline __attribute__((always_inline))


#if defined(__x86_64__)

/*
 * For a function that uses intrinsics, and may be called only if the processor
 * supports them.  A processor with AVX2 and FMA also has F16C.
 */

#define DSA_AVX2    __attribute__((target("avx2,fma,f16c")))
#define DSA_AVX512  __attribute__((target("avx512f,avx512bw,fma")))

#define dsa_has_avx2()                                                        \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define dsa_has_avx512()                                                      \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))

#endif


#endif /* _DSA_SIMD_H_INCLUDED_ */
