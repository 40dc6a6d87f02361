/* What a call of a package takes on the host, beside cuLaunchKernel of the same kernel. launch.h is made for it. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness.h"
#include "package.h"
#include "launch.h"

enum { TURNS = 101, CALLS = 200 };

static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static void *function;

static void must(const char *what, int result) {
  if (result == 0) return;
  fprintf(stderr, "%s failed (%d)\n", what, result);
  exit(2);
}

static void load_kernel(const char *path) {
  int (*load)(void **, const void *), (*find)(void **, void *, const char *);
  void *module = NULL, *library = dlopen("libcuda.so.1", RTLD_NOW);
  void *found[] = {dlsym(library, "cuModuleLoadData"), dlsym(library, "cuModuleGetFunction"), dlsym(library, "cuLaunchKernel")};
  memcpy(&load, &found[0], sizeof load), memcpy(&find, &found[1], sizeof find), memcpy(&launch, &found[2], sizeof launch);
  FILE *file = fopen(path, "rb");
  static char text[1 << 20];
  if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0) must(path, 1);
  fclose(file);
  must("cuModuleLoadData", load(&module, text));
  must("cuModuleGetFunction", find(&function, module, KERNEL));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void *arrays[ARRAYS + 1], *scratch;

static void call_package(void *stream) { must("run", package_run(arrays, scratch, package_scratch_bytes(), stream)); }

static void call_driver(void *stream) {
  void *parameters[ARRAYS + 1];
  for (int a = 0; a < ARRAYS; a++) parameters[a] = &arrays[a];
  must("cuLaunchKernel", launch(function, GRID, BLOCK, SHARED_BYTES, stream, parameters, NULL));
}

/* Nanoseconds of a call: fewer calls than a stream has room for, and what they launch is waited for in between. */
static double of_a_call(void (*call)(void *), void *stream) {
  double start = now();
  for (int n = 0; n < CALLS; n++) call(stream);
  double taken = (now() - start) / CALLS;
  harness_wait(stream);
  return taken;
}

static void compare(const char *name, void *stream) {
  static double ours[TURNS], bare[TURNS], more[TURNS];
  for (int turn = 0; turn < TURNS; turn++) {
    bare[turn] = of_a_call(call_driver, stream);
    ours[turn] = of_a_call(call_package, stream);
    more[turn] = ours[turn] - bare[turn];
  }
  qsort(ours, TURNS, sizeof *ours, by_value), qsort(bare, TURNS, sizeof *bare, by_value);
  qsort(more, TURNS, sizeof *more, by_value);
  printf("%s: cuLaunchKernel %.0f ns, the package's function %.0f ns, difference %.0f ns (of nine in ten turns: %.0f to %.0f)\n",
         name, bare[TURNS / 2], ours[TURNS / 2], more[TURNS / 2], more[TURNS / 20], more[TURNS - 1 - TURNS / 20]);
}

int main(int count, char **words) {
  if (count != 3) return 2;
  harness_attach();
  for (int a = 0; a < ARRAYS; a++) {
    arrays[a] = harness_allocate(array_bytes[a]);
    if (a < ARGUMENTS) harness_read(arrays[a], array_bytes[a], words[1], a);
  }
  scratch = harness_allocate(package_scratch_bytes());
  load_kernel(words[2]);
  void *stream = harness_stream();
  call_package(stream), call_driver(stream), harness_wait(stream);
  compare("a stream", stream);
  compare("the default stream", NULL);
  return 0;
}
