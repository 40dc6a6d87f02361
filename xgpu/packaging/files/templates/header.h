/* @TITLE@
 *
 * Made by xgpu @VERSION@. Build it from src/@P@.c alone, or with CMakeLists.txt. It needs no header but those of C, and
 * finds the CUDA driver when it first runs. @HOST_NOTE@
 *
 * All functions may be called from several threads at once, from any CUDA context, and on any stream. None ends the
 * process, and @WAITS@.
 */
#ifndef XGPU_@U@_H
#define XGPU_@U@_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define @U@_API __attribute__((visibility("default")))
#else
#define @U@_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. @P@_error_message says more of the last one that failed on this thread. */
typedef enum @P@_status {
  @U@_OK = 0,
  @U@_NULL_POINTER = 1,       /* An array that has elements is at address 0. */
  @U@_MISALIGNED = 2,         /* An array, or scratch, is not aligned as stated. */
  @U@_OVERLAP = 3,            /* A result, or scratch, shares memory with another array. */
  @U@_SCRATCH_TOO_SMALL = 4,  /* Scratch has fewer bytes than the program needs. */
  @U@_UNKNOWN_SIZE = 5,       /* The package has no kernels for these sizes. */
  @U@_WRONG_EXTENT = 6,       /* An array has another length: said by the interfaces of C++ and Rust. */
  @U@_NO_DRIVER = 7,          /* The CUDA driver, libcuda.so.1, was not found, or is too old. */
  @U@_NO_CONTEXT = 8,         /* No CUDA context is current, and the stream names none. */
  @U@_UNSUPPORTED_DEVICE = 9, /* The package has no kernels for this GPU. */
  @U@_NOT_PREPARED = 10,      /* The stream is being captured, and @P@_prepare was not called before. */
  @U@_OUT_OF_MEMORY = 11,     /* There is no memory on the host for what a call needs. */
  @U@_DRIVER_ERROR = 12,      /* A function of the CUDA driver failed. */
  @U@_INTERNAL_ERROR = 13,    /* The package is damaged, or its compiler at fault. */
  @U@_CANNOT_CAPTURE = 14     /* The stream is being captured, and the program must read values to go on. */
} @P@_status;

/* A stream: a CUstream or cudaStream_t, or NULL for the default stream of the current context. */
typedef void *@P@_stream;

@TYPES@/* How many of its pointer's type each array has, and the bytes of scratch. */
typedef struct @P@_extents {
@EXTENTS@
  size_t scratch_bytes;
} @P@_extents;

/* Scratch must begin at a multiple of this. */
#define @U@_SCRATCH_ALIGNMENT @SCRATCH_ALIGNMENT@

/* Says how large arrays and scratch are@FOR_SIZES@. It needs no GPU. */
@U@_API @P@_status @P@_get_extents(@SIZES@@P@_extents *extents);

/* Loads the kernels for the context of a stream: of NULL, the current one. To run does it if need be, but
 * takes long then, and cannot while the stream is being captured. To prepare again does nothing. */
@U@_API @P@_status @P@_prepare(@P@_stream stream);

/* Unloads the kernels of the context of a stream. Work of this package must have ended there. */
@U@_API @P@_status @P@_unload(@P@_stream stream);

/* @ADDS@ Arrays are in row-major order, in memory that the context can access, and stay there
 * until the work has ended; so does scratch, which calls that may run at the same time must not share.
 *
@ARRAYS@
 *
@ALIASES@ */
@U@_API @P@_status @P@_run(
@PARAMETERS@    void *scratch, size_t scratch_bytes, @P@_stream stream);

/* Returns a short text for what a call returned. It is there for ever. */
@U@_API const char *@P@_status_text(@P@_status status);

/* Returns what went wrong in the last call that failed on this thread; it is there until the next one fails. */
@U@_API const char *@P@_error_message(void);

#ifdef __cplusplus
}
#endif

#endif
