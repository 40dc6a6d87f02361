/* What a test asks the CUDA driver that stands in for the real one. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;

/* A launch, a copy, zeros or what the host reads, in the order in which they were added: on which stream, in which context. */
typedef struct fake_work {
  const char *what; /* The kernel's name, "copy", "zero" or "read". */
  CUcontext context;
  CUstream stream;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  uint64_t pointers[8];
  size_t bytes;
} fake_work;

CUcontext fake_make_context(int capability); /* 90 for 9.0. */
void fake_destroy_context(CUcontext context); /* Its address is that of the next one that is made. */
CUstream fake_make_stream(CUcontext context);
void fake_set_current(CUcontext context);
CUcontext fake_get_current(void);
void fake_capture(CUstream stream, int status);
/* Has a function fail from its n-th next call on, once; 0 is the next one. */
void fake_fail(const char *function, int result, int calls);
void fake_refuse_cubins(int result); /* With this result; 0 takes them. */
void fake_refuse_ptx(int refuse);
int fake_count(const char *function);
int fake_loaded_modules(void);
const char *fake_last_target(void); /* Of the last PTX that was loaded. */
int fake_work_count(void);
const fake_work *fake_work_at(int number);
void fake_clear_work(void);
void fake_will_read(const int *values, int count); /* One for each copy to the host, from its lowest byte on. */
int fake_unread(void);

#endif
