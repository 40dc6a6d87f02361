/* How long a kernel takes on a GPU: PATH NAME GRID_X GRID_Y GRID_Z BLOCK_X BLOCK_Y BLOCK_Z, on three matrices. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { TURNS = 51 };

static void must(const char *what, int result) {
  if (result == 0) return;
  fprintf(stderr, "%s failed (%d)\n", what, result);
  exit(2);
}

static void find(const char *name, void *into) {
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
  memcpy(into, &found, sizeof found);
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

int main(int count, char **words) {
  if (count != 9) return 2;
  int (*load)(void **, const char *), (*get)(void **, void *, const char *), (*create)(void **, unsigned);
  int (*record)(void *, void *), (*elapsed)(float *, void *, void *);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
  harness_attach();
  find("cuModuleLoad", &load), find("cuModuleGetFunction", &get), find("cuLaunchKernel", &launch);
  find("cuEventCreate", &create), find("cuEventRecord", &record), find("cuEventElapsedTime_v2", &elapsed);
  if (elapsed == NULL) find("cuEventElapsedTime", &elapsed);
  void *module, *function, *start, *end, *stream = harness_stream();
  must("cuModuleLoad", load(&module, words[1]));
  must("cuModuleGetFunction", get(&function, module, words[2]));
  must("cuEventCreate", create(&start, 0)), must("cuEventCreate", create(&end, 0));
  void *matrices[3], *parameters[3];
  for (int m = 0; m < 3; m++) {
    parameters[m] = &matrices[m], matrices[m] = harness_allocate((size_t)SIZE * SIZE * 4);
    harness_fill(matrices[m], 0x3D, (size_t)SIZE * SIZE * 4, stream);
  }
  unsigned sizes[6];
  for (int n = 0; n < 6; n++) sizes[n] = (unsigned)atoi(words[3 + n]);
  float times[TURNS];
  for (int turn = -3; turn < TURNS; turn++) {
    must("cuEventRecord", record(start, stream));
    must("cuLaunchKernel", launch(function, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], 0, stream, parameters, NULL));
    must("cuEventRecord", record(end, stream));
    harness_wait(stream);
    must("cuEventElapsedTime", elapsed(&times[turn < 0 ? 0 : turn], start, end));
  }
  qsort(times, TURNS, sizeof *times, by_value);
  printf("%s, blocks of %u x %u: %.1f us\n", words[2], sizes[3], sizes[4], times[TURNS / 2] * 1e3);
  return 0;
}
