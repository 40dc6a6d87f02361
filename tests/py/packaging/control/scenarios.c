/* What loops and branches add to a stream, when values of the GPU, which a test gives, say how they go on. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"
#include "xgpu/counted.h"
#include "xgpu/given.h"
#include "xgpu/looped.h"

#define REQUIRE(condition)                                                                          \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, looped_error_message());   \
      exit(1);                                                                                      \
    }                                                                                               \
  } while (0)

#define COUNT(values) ((int)(sizeof(values) / sizeof(values)[0]))

static void *at(uintptr_t number) { return (void *)(number << 28); }

static looped_status run(CUstream stream) {
  looped_extents extents;
  REQUIRE(looped_get_extents(&extents) == LOOPED_OK);
  return looped_run(at(1), at(2), at(3), at(4), at(5), extents.scratch_bytes, stream);
}

static counted_status run_counted(CUstream stream) {
  counted_extents extents;
  REQUIRE(counted_get_extents(&extents) == COUNTED_OK);
  return counted_run(at(1), at(3), at(4), at(5), extents.scratch_bytes, stream);
}

static int says(const char *text) { return strstr(looped_error_message(), text) != NULL; }

/* How much of a kind of work was added: "read", "copy", or launches for NULL. */
static int count(const char *what) {
  int found = 0;
  for (int n = 0; n < fake_work_count(); n++) {
    const char *is = fake_work_at(n)->what;
    found += what != NULL ? strcmp(is, what) == 0 : strstr(is, "_fusion_") != NULL;
  }
  return found;
}

static int only_on(CUstream stream) {
  for (int n = 0; n < fake_work_count(); n++)
    if (fake_work_at(n)->stream != stream) return 0;
  return 1;
}

/* Nine steps, each of which reads what the one before has written; the last one writes the result. */
static void counted(void) {
  CUstream stream = fake_make_stream(fake_make_context(90));
  /* PTX says how many parameters a kernel has. */
  fake_refuse_cubins(209);
  REQUIRE(run_counted(stream) == COUNTED_OK && only_on(stream));
  REQUIRE(count(NULL) == 9 && count("copy") == 1 && count("read") == 0 && fake_work_count() == 10);
  uint64_t now = fake_work_at(0)->pointers[0];
  REQUIRE(strcmp(fake_work_at(0)->what, "copy") == 0 && fake_work_at(0)->pointers[1] == (uintptr_t)at(1));
  for (int n = 1; n <= 9; n++) {
    REQUIRE(fake_work_at(n)->pointers[1] == now && fake_work_at(n)->pointers[2] != now);
    now = fake_work_at(n)->pointers[2];
  }
  REQUIRE(now == (uintptr_t)at(4) && fake_count("cuStreamSynchronize") == 0);
}

/* A loop with known trips is captured as all else is. */
static void counted_under_capture(void) {
  CUcontext context = fake_make_context(90);
  CUstream captured = fake_make_stream(context);
  REQUIRE(counted_prepare(captured) == COUNTED_OK);
  fake_capture(captured, 1);
  REQUIRE(run_counted(captured) == COUNTED_OK && count(NULL) == 9);
}

/* How often a loop runs is read once, where it begins. */
static void counted_by_a_value(void) {
  static const int turns[] = {0, 1, 7, -1};
  CUstream stream = fake_make_stream(fake_make_context(90));
  given_extents extents;
  REQUIRE(given_get_extents(&extents) == GIVEN_OK);
  for (int n = 0; n < COUNT(turns); n++) {
    fake_clear_work();
    fake_will_read(&turns[n], 1);
    REQUIRE(given_run(at(1), at(2), at(4), at(5), extents.scratch_bytes, stream) == GIVEN_OK && fake_unread() == 0);
    REQUIRE(count("read") == 1 && count(NULL) == 1 + (turns[n] > 0 ? turns[n] : 0));
  }
  fake_capture(stream, 1);
  REQUIRE(given_run(at(1), at(2), at(4), at(5), extents.scratch_bytes, stream) == GIVEN_CANNOT_CAPTURE);
}

static void values_decide(void) {
  CUstream stream = fake_make_stream(fake_make_context(90));
  /* Launches: one before the loop, in each iteration three, and in branches one, one, or none. */
  static const struct { int values[6], count, launches, copies; } cases[] = {
      {{0, 0}, 2, 3 + 1 + 0 + 1, 1},
      {{0, 1}, 2, 3 + 1 + 0 + 1, 1},
      {{1, 0, 0}, 3, 3 + 1 + 3 + 1, 1},
      {{1, 1, 255, 0, 1}, 5, 3 + 1 + 9 + 1, 1},
      {{1, 0, -5}, 3, 3 + 1 + 3 + 0, 2},
      {{1, 0, 2}, 3, 3 + 1 + 3 + 0, 2},
      {{0, 3}, 2, 3 + 1 + 0 + 0, 2},
  };
  for (int n = 0; n < COUNT(cases); n++) {
    fake_clear_work();
    fake_will_read(cases[n].values, cases[n].count);
    REQUIRE(run(stream) == LOOPED_OK && fake_unread() == 0 && only_on(stream));
    REQUIRE(count("read") == cases[n].count && fake_get_current() == NULL);
    if (count(NULL) != cases[n].launches || count("copy") != cases[n].copies) {
      fprintf(stderr, "case %d: %d launches, %d copies\n", n, count(NULL), count("copy"));
      exit(1);
    }
  }
  REQUIRE(fake_count("cuStreamSynchronize") == fake_count("cuMemcpyDtoHAsync"));
}

static void capture(void) {
  CUcontext context = fake_make_context(90);
  CUstream captured = fake_make_stream(context), other = fake_make_stream(context);
  fake_capture(captured, 1);
  REQUIRE(run(captured) == LOOPED_NOT_PREPARED);
  REQUIRE(looped_prepare(other) == LOOPED_OK);
  REQUIRE(run(captured) == LOOPED_CANNOT_CAPTURE && says("depends on values on the GPU"));
  REQUIRE(strcmp(looped_status_text(LOOPED_CANNOT_CAPTURE), "the program cannot be captured") == 0);
  /* Nothing was added to the capture, and other streams are none of its business. */
  REQUIRE(fake_work_count() == 0 && fake_get_current() == NULL);
  fake_will_read((int[]){1, 0, 0}, 3);
  REQUIRE(run(other) == LOOPED_OK && fake_unread() == 0);
}

static void failures(void) {
  static const struct { const char *name; int calls; } cases[] = {
      {"cuMemcpyDtoHAsync", 3}, {"cuStreamSynchronize", 3}, {"cuLaunchKernel", 3}, {"cuMemcpyDtoDAsync", 1},
      {"cuThreadExchangeStreamCaptureMode", 1}};
  CUcontext context = fake_make_context(90);
  CUstream stream = fake_make_stream(context);
  REQUIRE(looped_prepare(stream) == LOOPED_OK);
  for (int n = 0; n < COUNT(cases); n++) {
    for (int later = 0; later < cases[n].calls; later++) {
      fake_will_read((int[]){1, 1, 0, 0}, 4);
      fake_fail(cases[n].name, 999, later);
      REQUIRE(run(stream) == LOOPED_DRIVER_ERROR && says(cases[n].name));
      REQUIRE(says("failed: CUDA_ERROR_OF_A_TEST (999)") && fake_get_current() == NULL);
      /* The next call begins from the start. */
      fake_will_read((int[]){1, 1, 0, 0}, 4);
      REQUIRE(run(stream) == LOOPED_OK && fake_unread() == 0);
    }
  }
  CUstream captured = fake_make_stream(context);
  fake_fail("cuStreamIsCapturing", 999, 0);
  REQUIRE(run(captured) == LOOPED_DRIVER_ERROR && says("cuStreamIsCapturing"));
}

static CUcontext shared_context;
static pthread_barrier_t start;

static void *thread(void *number) {
  int turns = (int)(uintptr_t)number, values[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  CUstream stream = fake_make_stream(shared_context);
  values[turns] = 0;
  pthread_barrier_wait(&start);
  for (int n = 0; n < 5; n++) {
    fake_will_read(values, turns + 2);
    REQUIRE(run(stream) == LOOPED_OK && fake_unread() == 0 && fake_get_current() == NULL);
  }
  return NULL;
}

static void threads(void) {
  pthread_t ids[6];
  REQUIRE(pthread_barrier_init(&start, NULL, 6) == 0);
  shared_context = fake_make_context(90);
  for (uintptr_t n = 0; n < 6; n++) REQUIRE(pthread_create(&ids[n], NULL, thread, (void *)n) == 0);
  for (int n = 0; n < 6; n++) REQUIRE(pthread_join(ids[n], NULL) == 0);
}

int main(int argument_count, char **arguments) {
  static const struct { const char *name; void (*run)(void); } scenarios[] = {
      {"counted", counted}, {"counted_under_capture", counted_under_capture},
      {"counted_by_a_value", counted_by_a_value}, {"values_decide", values_decide},
      {"capture", capture}, {"failures", failures}, {"threads", threads}};
  for (int n = 0; n < COUNT(scenarios); n++) {
    if (argument_count < 2 || strcmp(arguments[1], scenarios[n].name) != 0) continue;
    scenarios[n].run();
    return 0;
  }
  return 2;
}
