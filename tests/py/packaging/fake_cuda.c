/* A CUDA driver without a GPU, for tests of what calls one: it checks that calls fit together, and records work. */
#define _POSIX_C_SOURCE 200809L

#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400, NOT_FOUND = 500, CAPTURE_UNSUPPORTED = 900 };
enum { MOST = 512, RELAXED = 2, MAX_SHARED = 8, SHARED_FOR_ALL = 48 * 1024 };

struct CUctx_st { unsigned long long id; int capability; };
struct CUstream_st { CUcontext context; int capture; };
typedef struct module { CUcontext context; unsigned long long id; int is_loaded; int parameters; } module;
typedef struct function { module *of; char name[64]; int shared_allowed; int is_loaded; } function;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext stack[16];
static __thread int depth;
static __thread int capture_mode; /* 0 is global. */
static unsigned long long next_id = 1;
static CUcontext free_context;
static module modules[MOST];
static int module_count;
static fake_work work[MOST];
static int work_count;
static int captures;
static int refuses_cubins, refuses_ptx;
static char last_target[16];
static __thread int values[64], value_count;
static __thread long long pending;
static __thread const int *next_value;
static __thread void *pending_into;
static __thread size_t pending_bytes;
static struct { char name[48]; int calls; int result; int left; } functions[64];
static int function_count;

#define FAKE __attribute__((visibility("default")))

static int number_of(const char *name) {
  for (int n = 0; n < function_count; n++)
    if (strcmp(functions[n].name, name) == 0) return n;
  snprintf(functions[function_count].name, sizeof functions[0].name, "%s", name);
  functions[function_count].left = -1;
  return function_count++;
}

/* Counts a call, and returns with what it was asked to fail. */
static int called(const char *name) {
  pthread_mutex_lock(&lock);
  int n = number_of(name), result = SUCCESS;
  functions[n].calls++;
  if (functions[n].left >= 0 && functions[n].left-- == 0) result = functions[n].result;
  pthread_mutex_unlock(&lock);
  return result;
}

#define BEGIN(name) do { int asked = called(name); if (asked != SUCCESS) return asked; } while (0)

/* ---- What tests call. ---- */

FAKE CUcontext fake_make_context(int capability) {
  CUcontext made = free_context != NULL ? free_context : malloc(sizeof *made);
  free_context = NULL;
  made->id = next_id++;
  made->capability = capability;
  return made;
}

FAKE void fake_destroy_context(CUcontext context) {
  for (int m = 0; m < module_count; m++)
    if (modules[m].id == context->id) modules[m].is_loaded = 0;
  context->id = 0;
  free_context = context;
}

FAKE CUstream fake_make_stream(CUcontext context) {
  CUstream made = calloc(1, sizeof *made);
  made->context = context;
  return made;
}

FAKE void fake_set_current(CUcontext context) {
  depth = 1;
  stack[0] = context;
}

FAKE CUcontext fake_get_current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

FAKE void fake_capture(CUstream stream, int status) {
  captures += (status != 0) - (stream->capture != 0);
  stream->capture = status;
}

FAKE void fake_fail(const char *name, int result, int calls) {
  int n = number_of(name);
  functions[n].result = result;
  functions[n].left = calls;
}

FAKE void fake_refuse_cubins(int result) { refuses_cubins = result; }
FAKE void fake_refuse_ptx(int refuse) { refuses_ptx = refuse; }
FAKE const char *fake_last_target(void) { return last_target; }

FAKE int fake_count(const char *name) {
  pthread_mutex_lock(&lock);
  int calls = functions[number_of(name)].calls;
  pthread_mutex_unlock(&lock);
  return calls;
}

FAKE int fake_loaded_modules(void) {
  int found = 0;
  for (int m = 0; m < module_count; m++) found += modules[m].is_loaded;
  return found;
}

FAKE int fake_work_count(void) { return work_count; }
FAKE const fake_work *fake_work_at(int number) { return &work[number]; }
FAKE void fake_clear_work(void) { work_count = 0; }

FAKE void fake_will_read(const int *given, int count) {
  memcpy(values, given, (size_t)count * sizeof *given);
  next_value = values;
  value_count = count;
}

FAKE int fake_unread(void) { return value_count; }

/* ---- The driver. ---- */

FAKE int cuCtxGetCurrent(CUcontext *current) {
  BEGIN("cuCtxGetCurrent");
  *current = fake_get_current();
  return SUCCESS;
}

FAKE int cuCtxGetId(CUcontext context, unsigned long long *id) {
  BEGIN("cuCtxGetId");
  if (context == NULL || context->id == 0) return INVALID_CONTEXT;
  *id = context->id;
  return SUCCESS;
}

FAKE int cuCtxGetDevice(int *device) {
  BEGIN("cuCtxGetDevice");
  if (fake_get_current() == NULL) return INVALID_CONTEXT;
  *device = fake_get_current()->capability;
  return SUCCESS;
}

FAKE int cuCtxPushCurrent_v2(CUcontext context) {
  BEGIN("cuCtxPushCurrent");
  stack[depth++] = context;
  return SUCCESS;
}

FAKE int cuCtxPopCurrent_v2(CUcontext *context) {
  BEGIN("cuCtxPopCurrent");
  if (depth == 0) return INVALID_CONTEXT;
  *context = stack[--depth];
  return SUCCESS;
}

FAKE int cuDeviceGetAttribute(int *value, int attribute, int device) {
  BEGIN("cuDeviceGetAttribute");
  if (attribute != 75 && attribute != 76) return INVALID_VALUE;
  *value = attribute == 75 ? device / 10 : device % 10;
  return SUCCESS;
}

FAKE int cuStreamGetCtx(CUstream stream, CUcontext *context) {
  BEGIN("cuStreamGetCtx");
  *context = stream->context;
  return SUCCESS;
}

FAKE int cuStreamIsCapturing(CUstream stream, int *status) {
  BEGIN("cuStreamIsCapturing");
  *status = (uintptr_t)stream > 2 ? stream->capture : 0;
  return SUCCESS;
}

FAKE int cuThreadExchangeStreamCaptureMode(int *mode) {
  BEGIN("cuThreadExchangeStreamCaptureMode");
  int old = capture_mode;
  capture_mode = *mode;
  *mode = old;
  return SUCCESS;
}

/* How many parameters the kernel of a PTX text has; at most as many as are recorded. */
static int parameters_of(const char *ptx) {
  const char *entry = strstr(ptx, ".entry"), *end = strchr(entry, ')');
  int found = 0;
  for (const char *at = entry; (at = strstr(at + 1, ".param")) != NULL && at < end;) found++;
  return found < 8 ? found : 8;
}

FAKE int cuModuleLoadDataEx(module **made, const void *image, unsigned count, int *options, void **values) {
  BEGIN("cuModuleLoadDataEx");
  if (fake_get_current() == NULL) return INVALID_CONTEXT;
  if (captures > 0 && capture_mode != RELAXED) return CAPTURE_UNSUPPORTED;
  int is_cubin = memcmp(image, "\177ELF", 4) == 0;
  if (is_cubin && refuses_cubins) return refuses_cubins;
  if (!is_cubin && refuses_ptx) {
    for (unsigned o = 0; o < count; o++)
      if (options[o] == 5) strcpy(values[o], "ptxas says why");
    return INVALID_IMAGE;
  }
  /* To load takes long, so that others come to the same place meanwhile. */
  nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  pthread_mutex_lock(&lock);
  module *found = &modules[module_count++];
  found->context = fake_get_current();
  found->id = found->context->id;
  found->is_loaded = 1;
  found->parameters = is_cubin ? 2 : parameters_of(image);
  if (!is_cubin) sscanf(strstr(image, ".target "), ".target %15s", last_target);
  pthread_mutex_unlock(&lock);
  *made = found;
  return SUCCESS;
}

FAKE int cuModuleGetFunction(function **found, module *of, const char *name) {
  BEGIN("cuModuleGetFunction");
  if (!of->is_loaded || of->context != fake_get_current()) return INVALID_HANDLE;
  if (*name == '\0') return NOT_FOUND;
  *found = calloc(1, sizeof **found);
  (*found)->of = of;
  snprintf((*found)->name, sizeof (*found)->name, "%s", name);
  (*found)->shared_allowed = SHARED_FOR_ALL;
  return SUCCESS;
}

FAKE int cuModuleUnload(module *of) {
  BEGIN("cuModuleUnload");
  if (!of->is_loaded || of->context != fake_get_current()) return INVALID_HANDLE;
  of->is_loaded = 0;
  return SUCCESS;
}

FAKE int cuFuncSetAttribute(function *of, int attribute, int value) {
  BEGIN("cuFuncSetAttribute");
  if (attribute != MAX_SHARED || value > 227 * 1024) return INVALID_VALUE;
  of->shared_allowed = value;
  return SUCCESS;
}

#ifndef OLD
FAKE int cuFuncLoad(function *of) {
  BEGIN("cuFuncLoad");
  of->is_loaded = 1;
  return SUCCESS;
}
#endif

static int check_stream(CUstream stream) {
  if (fake_get_current() == NULL) return INVALID_CONTEXT;
  return (uintptr_t)stream > 2 && stream->context != fake_get_current() ? INVALID_HANDLE : SUCCESS;
}

static fake_work *add_work(const char *what, CUstream stream) {
  pthread_mutex_lock(&lock);
  fake_work *added = &work[work_count++ % MOST];
  memset(added, 0, sizeof *added);
  added->what = what;
  added->context = fake_get_current();
  added->stream = stream;
  pthread_mutex_unlock(&lock);
  return added;
}

FAKE int cuLaunchKernel(function *of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared_bytes, CUstream stream, void **parameters, void **extra) {
  BEGIN("cuLaunchKernel");
  if (check_stream(stream) != SUCCESS) return check_stream(stream);
  if (!of->of->is_loaded || of->of->id != fake_get_current()->id) return INVALID_HANDLE;
  if ((int)shared_bytes > of->shared_allowed || extra != NULL || gx * gy * gz * bx * by * bz == 0) return INVALID_VALUE;
  if ((uintptr_t)stream > 2 && stream->capture && fake_count("cuFuncLoad") > 0 && !of->is_loaded)
    return CAPTURE_UNSUPPORTED;
  fake_work *added = add_work(of->name, stream);
  unsigned numbers[] = {gx, gy, gz, bx, by, bz};
  memcpy(added->grid, numbers, sizeof added->grid);
  memcpy(added->block, numbers + 3, sizeof added->block);
  added->shared_bytes = shared_bytes;
  for (int p = 0; p < of->of->parameters; p++) memcpy(&added->pointers[p], parameters[p], 8);
  return SUCCESS;
}

FAKE int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, CUstream stream) {
  BEGIN("cuMemcpyDtoDAsync");
  if (check_stream(stream) != SUCCESS) return check_stream(stream);
  fake_work *added = add_work("copy", stream);
  added->pointers[0] = to;
  added->pointers[1] = from;
  added->bytes = bytes;
  return SUCCESS;
}

FAKE int cuMemsetD8Async(unsigned long long at, unsigned char value, size_t bytes, CUstream stream) {
  BEGIN("cuMemsetD8Async");
  if (check_stream(stream) != SUCCESS || value != 0) return check_stream(stream);
  fake_work *added = add_work("zero", stream);
  added->pointers[0] = at;
  added->bytes = bytes;
  return SUCCESS;
}

FAKE int cuMemcpyDtoHAsync_v2(void *into, unsigned long long from, size_t bytes, CUstream stream) {
  BEGIN("cuMemcpyDtoHAsync");
  if (check_stream(stream) != SUCCESS) return check_stream(stream);
  if ((uintptr_t)stream > 2 && stream->capture) return CAPTURE_UNSUPPORTED;
  fake_work *added = add_work("read", stream);
  added->pointers[0] = from;
  added->bytes = bytes;
  if (value_count == 0 || bytes > sizeof pending) return INVALID_VALUE;
  /* The value is there once somebody has waited for it. */
  pending_into = into;
  pending_bytes = bytes;
  pending = *next_value++;
  value_count--;
  return SUCCESS;
}

FAKE int cuStreamSynchronize(CUstream stream) {
  BEGIN("cuStreamSynchronize");
  if (check_stream(stream) != SUCCESS) return check_stream(stream);
  if (captures > 0 && capture_mode != RELAXED) return CAPTURE_UNSUPPORTED;
  if (pending_into != NULL) memcpy(pending_into, &pending, pending_bytes);
  pending_into = NULL;
  return SUCCESS;
}

FAKE int cuGetErrorName(int result, const char **name) {
  *name = result == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR_OF_A_TEST";
  return SUCCESS;
}

#ifndef VERY_OLD
FAKE int cuGetErrorString(int result, const char **text) {
  (void)result;
  *text = "as the test asked";
  return SUCCESS;
}
#endif
