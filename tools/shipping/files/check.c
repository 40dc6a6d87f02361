/* Calls a package: once, from several threads, and under graph capture. package.h is made for each package. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness.h"
#include "package.h"

enum { THREADS = 4, CALLS = 10, REPLAYS = 3 };

typedef struct memory {
  void *arrays[ARRAYS + 1];
  void *scratch;
  size_t scratch_bytes;
  void *stream;
  const char *folder;
} memory;

static memory make(const char *folder) {
  memory m = {.scratch_bytes = package_scratch_bytes(), .stream = harness_stream(), .folder = folder};
  for (int a = 0; a < ARRAYS; a++) {
    m.arrays[a] = harness_allocate(array_bytes[a]);
    if (a < ARGUMENTS) harness_read(m.arrays[a], array_bytes[a], folder, a);
  }
  m.scratch = harness_allocate(m.scratch_bytes);
  return m;
}

static void forget_results(memory *m) {
  for (int a = ARGUMENTS; a < ARRAYS; a++) harness_fill(m->arrays[a], 0xA5, array_bytes[a], m->stream);
}

static size_t wrong_results(memory *m) {
  size_t wrong = 0;
  harness_wait(m->stream);
  for (int a = ARGUMENTS; a < ARRAYS; a++)
    wrong += harness_wrong(m->arrays[a], array_bytes[a], array_types[a], m->folder, a - ARGUMENTS);
  return wrong;
}

static int call(memory *m) {
  int status = package_run(m->arrays, m->scratch, m->scratch_bytes, m->stream);
  if (status != 0) fprintf(stderr, "status %d: %s\n", status, package_message());
  return status;
}

static void *calls(void *folder) {
  harness_attach();
  memory m = make(folder);
  size_t wrong = 0;
  for (int n = 0; n < CALLS && wrong == 0; n++) {
    forget_results(&m);
    wrong = call(&m) != 0 ? 1 : wrong_results(&m);
  }
  return (void *)wrong;
}

static size_t wrong_in_threads(const char *folder) {
  pthread_t threads[THREADS];
  size_t wrong = 0;
  for (int t = 0; t < THREADS; t++)
    if (pthread_create(&threads[t], NULL, calls, (void *)folder) != 0) exit(2);
  for (int t = 0; t < THREADS; t++) {
    void *of_one = NULL;
    pthread_join(threads[t], &of_one);
    wrong += (size_t)of_one;
  }
  return wrong;
}

static size_t wrong_when_captured(memory *m) {
  forget_results(m);
  harness_capture(m->stream);
  int status = package_run(m->arrays, m->scratch, m->scratch_bytes, m->stream);
  void *graph = harness_captured(m->stream);
  if (package_waits) return status != package_cannot_capture;
  if (status != 0) return fprintf(stderr, "captured: status %d: %s\n", status, package_message()), 1;
  size_t wrong = 0;
  for (int n = 0; n < REPLAYS; n++) {
    forget_results(m);
    harness_replay(graph, m->stream);
    wrong += wrong_results(m);
  }
  return wrong;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Prints how long a call takes, of calls that follow each other, until all they launch is done. */
static int measure(const char *folder) {
  enum { TURNS = 21, EACH = 10 };
  double times[TURNS];
  memory m = make(folder);
  for (int turn = -1; turn < TURNS; turn++) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int n = 0; n < EACH; n++)
      if (call(&m) != 0) return 1;
    harness_wait(m.stream);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double taken = (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) * 1e-3;
    if (turn >= 0) times[turn] = taken / EACH;
  }
  qsort(times, TURNS, sizeof *times, by_value);
  printf("%.1f us\n", times[TURNS / 2]);
  return 0;
}

/* The folder of the data, and any second word to measure. */
int main(int count, char **words) {
  if (count != 2 && count != 3) return 2;
  harness_attach();
  if (count == 3) return measure(words[1]);
  /* The threads come first: they load the kernels together. */
  size_t wrong = wrong_in_threads(words[1]);
  memory m = make(words[1]);
  forget_results(&m);
  wrong += call(&m) != 0 ? 1 : wrong_results(&m);
  if (harness_can_capture()) wrong += wrong_when_captured(&m);
  harness_wait(m.stream);
  wrong += package_unload(m.stream) != 0;
  puts(wrong == 0 ? "right" : "WRONG");
  return wrong != 0;
}
