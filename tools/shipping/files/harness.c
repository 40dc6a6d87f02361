#define _POSIX_C_SOURCE 200809L

#include "harness.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, int number) {
  fprintf(stderr, "harness: %s failed (%d)\n", what, number);
  exit(2);
}

#ifdef HARNESS_HOST

void harness_attach(void) {}

void *harness_allocate(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 256, bytes > 0 ? bytes : 1) != 0) fail("posix_memalign", 0);
  return memory;
}

void harness_free(void *memory) { free(memory); }
void *harness_stream(void) { return NULL; }
void harness_wait(void *stream) { (void)stream; }

void harness_fill(void *memory, unsigned char byte, size_t bytes, void *stream) {
  (void)stream;
  memset(memory, byte, bytes);
}

static void to_device(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static void from_device(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

int harness_can_capture(void) { return 0; }
void harness_capture(void *stream) { (void)stream, fail("to capture on the host", 0); }
void *harness_captured(void *stream) { return (void)stream, fail("to capture on the host", 0), NULL; }
void harness_replay(void *graph, void *stream) { (void)graph, (void)stream, fail("to replay on the host", 0); }

#else

#include <dlfcn.h>
#include <pthread.h>

typedef unsigned long long address;

static struct {
  int (*cuInit)(unsigned);
  int (*cuDeviceGet)(int *, int);
  int (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuCtxSetCurrent)(void *);
  int (*cuMemAlloc)(address *, size_t);
  int (*cuMemFree)(address);
  int (*cuMemsetD8Async)(address, unsigned char, size_t, void *);
  int (*cuMemcpyHtoD)(address, const void *, size_t);
  int (*cuMemcpyDtoH)(void *, address, size_t);
  int (*cuStreamCreate)(void **, unsigned);
  int (*cuStreamSynchronize)(void *);
  int (*cuStreamBeginCapture)(void *, int);
  int (*cuStreamEndCapture)(void *, void **);
  int (*cuGraphInstantiateWithFlags)(void **, void *, unsigned long long);
  int (*cuGraphLaunch)(void *, void *);
} cuda;
static void *context;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void must(const char *what, int result) {
  if (result != 0) fail(what, result);
}

static void find(void *library, const char *name, void *into) {
  void *found = dlsym(library, name);
  if (found == NULL) fail(name, 0);
  memcpy(into, &found, sizeof found);
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) fail("dlopen of libcuda.so.1", 0);
  find(library, "cuInit", &cuda.cuInit);
  find(library, "cuDeviceGet", &cuda.cuDeviceGet);
  find(library, "cuDevicePrimaryCtxRetain", &cuda.cuDevicePrimaryCtxRetain);
  find(library, "cuCtxSetCurrent", &cuda.cuCtxSetCurrent);
  find(library, "cuMemAlloc_v2", &cuda.cuMemAlloc);
  find(library, "cuMemFree_v2", &cuda.cuMemFree);
  find(library, "cuMemsetD8Async", &cuda.cuMemsetD8Async);
  find(library, "cuMemcpyHtoD_v2", &cuda.cuMemcpyHtoD);
  find(library, "cuMemcpyDtoH_v2", &cuda.cuMemcpyDtoH);
  find(library, "cuStreamCreate", &cuda.cuStreamCreate);
  find(library, "cuStreamSynchronize", &cuda.cuStreamSynchronize);
  find(library, "cuStreamBeginCapture_v2", &cuda.cuStreamBeginCapture);
  find(library, "cuStreamEndCapture", &cuda.cuStreamEndCapture);
  find(library, "cuGraphInstantiateWithFlags", &cuda.cuGraphInstantiateWithFlags);
  find(library, "cuGraphLaunch", &cuda.cuGraphLaunch);
  int device = 0;
  must("cuInit", cuda.cuInit(0));
  must("cuDeviceGet", cuda.cuDeviceGet(&device, 0));
  must("cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain(&context, device));
}

void harness_attach(void) {
  pthread_once(&once, open_driver);
  must("cuCtxSetCurrent", cuda.cuCtxSetCurrent(context));
}

void *harness_allocate(size_t bytes) {
  address memory = 0;
  must("cuMemAlloc", cuda.cuMemAlloc(&memory, bytes > 0 ? bytes : 1));
  return (void *)(uintptr_t)memory;
}

void harness_free(void *memory) { must("cuMemFree", cuda.cuMemFree((uintptr_t)memory)); }

void *harness_stream(void) {
  void *stream = NULL;
  must("cuStreamCreate", cuda.cuStreamCreate(&stream, 1));
  return stream;
}

void harness_wait(void *stream) { must("cuStreamSynchronize", cuda.cuStreamSynchronize(stream)); }

void harness_fill(void *memory, unsigned char byte, size_t bytes, void *stream) {
  if (bytes > 0) must("cuMemsetD8Async", cuda.cuMemsetD8Async((uintptr_t)memory, byte, bytes, stream));
  harness_wait(stream);
}

static void to_device(void *to, const void *from, size_t bytes) {
  if (bytes > 0) must("cuMemcpyHtoD", cuda.cuMemcpyHtoD((uintptr_t)to, from, bytes));
  /* The copy may still be on its way, and other streams do not wait for the default one. */
  harness_wait(NULL);
}

static void from_device(void *to, const void *from, size_t bytes) {
  if (bytes > 0) must("cuMemcpyDtoH", cuda.cuMemcpyDtoH(to, (uintptr_t)from, bytes));
}

int harness_can_capture(void) { return 1; }

/* Of this thread alone: the strictest mode in which other threads may go on. */
void harness_capture(void *stream) { must("cuStreamBeginCapture", cuda.cuStreamBeginCapture(stream, 1)); }

void *harness_captured(void *stream) {
  void *graph = NULL, *ready = NULL;
  must("cuStreamEndCapture", cuda.cuStreamEndCapture(stream, &graph));
  must("cuGraphInstantiateWithFlags", cuda.cuGraphInstantiateWithFlags(&ready, graph, 0));
  return ready;
}

void harness_replay(void *graph, void *stream) { must("cuGraphLaunch", cuda.cuGraphLaunch(graph, stream)); }

#endif

static void *load(const char *folder, const char *what, int number, size_t bytes) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s%d", folder, what, number);
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail(path, 0);
  void *data = malloc(bytes > 0 ? bytes : 1);
  if (data == NULL || fread(data, 1, bytes, file) != bytes || fgetc(file) != EOF) fail(path, 0);
  fclose(file);
  return data;
}

void harness_read(void *memory, size_t bytes, const char *folder, int argument) {
  void *data = load(folder, "argument", argument, bytes);
  to_device(memory, data, bytes);
  free(data);
}

static double bits16(const unsigned char *at, char type) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  if (type == 'B') {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
  }
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                : exponent == 0 ? ldexp(fraction, -24)
                                : ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

static size_t bytes_of(char type) { return strchr("dlL", type) ? 8 : strchr("fiI", type) ? 4 : strchr("?bc", type) ? 1 : 2; }

/* An element by the letter of its type: as in NumPy, with B for bf16 and c for a byte without sign. */
static double element(const unsigned char *at, char type) {
  union {
    float f;
    double d;
    int8_t b;
    int16_t h;
    uint16_t H;
    int32_t i;
    uint32_t I;
    int64_t l;
    uint64_t L;
  } value;
  memcpy(&value, at, bytes_of(type));
  switch (type) {
    case 'f': return value.f;
    case 'd': return value.d;
    case 'B':
    case 'e': return bits16(at, type);
    case 'b': return value.b;
    case '?':
    case 'c': return *at;
    case 'h': return value.h;
    case 'H': return value.H;
    case 'i': return value.i;
    case 'I': return value.I;
    case 'l': return (double)value.l;
    case 'L': return (double)value.L;
  }
  fail("to read a type", type);
  return 0;
}

size_t harness_wrong(const void *memory, size_t bytes, char type, const char *folder, int result) {
  size_t size = bytes_of(type), count = bytes / size, wrong = 0;
  unsigned char *found = malloc(bytes + 1);
  if (found == NULL) fail("malloc", 0);
  double *wanted = load(folder, "result", result, count * sizeof *wanted);
  double *tolerance = load(folder, "tolerance", result, sizeof *tolerance), worst = 0;
  from_device(found, memory, bytes);
  for (size_t n = 0; n < count; n++) {
    double value = element(found + n * size, type), off = fabs(value - wanted[n]);
    if (value == wanted[n] || (isnan(value) && isnan(wanted[n]))) continue;
    if (!(off <= *tolerance)) wrong++;
    if (!(off <= worst)) worst = off;
  }
  if (wrong > 0) fprintf(stderr, "result %d: %zu of %zu elements are wrong, by up to %g\n", result, wrong, count, worst);
  free(found), free(wanted), free(tolerance);
  return wrong;
}
