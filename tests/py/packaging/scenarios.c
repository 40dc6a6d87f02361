/* What happens with several contexts, streams and threads, under capture, and when the driver fails. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_cuda.h"
#include "xgpu/driven.h"

#define REQUIRE(condition)                                                                          \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, driven_error_message());   \
      exit(1);                                                                                      \
    }                                                                                               \
  } while (0)

enum { KERNELS = 3, WORK = KERNELS + 2 };

static void *at(uintptr_t number) { return (void *)(number << 28); }

/* Runs on addresses that nobody reads, as there is no GPU. */
static driven_status run(CUstream stream) {
  driven_extents extents;
  REQUIRE(driven_get_extents(&extents) == DRIVEN_OK);
  return driven_run(at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), extents.scratch_bytes, stream);
}

static int says(const char *text) { return strstr(driven_error_message(), text) != NULL; }

static void launches(void) {
  CUcontext context = fake_make_context(90);
  CUstream stream = fake_make_stream(context);
  REQUIRE(run(stream) == DRIVEN_OK);
  REQUIRE(fake_work_count() == WORK && fake_loaded_modules() == KERNELS && fake_get_current() == NULL);
  int kernels = 0, large = 0;
  for (int n = 0; n < WORK; n++) {
    const fake_work *work = fake_work_at(n);
    REQUIRE(work->stream == stream && work->context == context);
    if (strcmp(work->what, "copy") == 0) {
      REQUIRE(work->pointers[0] == (uintptr_t)at(6) && work->pointers[1] == (uintptr_t)at(1));
      REQUIRE(work->bytes == 4000 * 60 * 4);
    } else if (strcmp(work->what, "zero") == 0) {
      REQUIRE(work->pointers[0] >= (uintptr_t)at(9) && work->pointers[0] < (uintptr_t)at(10) && work->bytes == 112);
    } else {
      REQUIRE(strncmp(work->what, "driven_fusion_", 14) == 0 && work->block[0] >= 32);
      large += work->shared_bytes > 48 * 1024;
      kernels++;
    }
  }
  REQUIRE(kernels == KERNELS && large == 1 && fake_count("cuFuncSetAttribute") == 1);
  REQUIRE(run(stream) == DRIVEN_OK && fake_count("cuModuleLoadDataEx") == KERNELS);
}

static void in_place(void) {
  fake_set_current(fake_make_context(90));
  driven_extents extents;
  REQUIRE(driven_get_extents(&extents) == DRIVEN_OK);
  size_t bytes = extents.scratch_bytes;
  void *offset = (char *)at(1) + 16;
  REQUIRE(driven_run(at(1), at(2), at(3), at(4), at(5), at(1), at(7), at(8), at(9), bytes, NULL) == DRIVEN_OK);
  REQUIRE(fake_work_count() == WORK - 1 && fake_count("cuMemcpyDtoDAsync") == 0);
  REQUIRE(driven_run(at(1), at(2), at(3), at(4), at(5), offset, at(7), at(8), at(9), bytes, NULL) ==
          DRIVEN_OVERLAP);
}

static void contexts(void) {
  CUcontext first = fake_make_context(90), second = fake_make_context(90), other = fake_make_context(86);
  CUstream streams[] = {fake_make_stream(first), fake_make_stream(second), fake_make_stream(first)};
  fake_set_current(other);
  for (int n = 0; n < 3; n++) REQUIRE(run(streams[n]) == DRIVEN_OK && fake_get_current() == other);
  REQUIRE(fake_loaded_modules() == 2 * KERNELS);
  for (int n = 0; n < 3 * WORK; n++) REQUIRE(fake_work_at(n)->context == (n / WORK == 1 ? second : first));
  /* The default streams are those of the current context. */
  fake_set_current(second);
  fake_clear_work();
  REQUIRE(run(NULL) == DRIVEN_OK && run((CUstream)(uintptr_t)1) == DRIVEN_OK && run((CUstream)(uintptr_t)2) == DRIVEN_OK);
  REQUIRE(fake_work_at(0)->context == second && fake_loaded_modules() == 2 * KERNELS);
  fake_set_current(NULL);
  REQUIRE(run(NULL) == DRIVEN_NO_CONTEXT && says("no CUDA context is current"));
}

static void contexts_of_one_address(void) {
  CUcontext first = fake_make_context(90);
  fake_set_current(first);
  REQUIRE(run(NULL) == DRIVEN_OK && fake_loaded_modules() == KERNELS);
  fake_destroy_context(first);
  REQUIRE(fake_loaded_modules() == 0);
  REQUIRE(fake_make_context(90) == first);
  REQUIRE(run(NULL) == DRIVEN_OK && fake_loaded_modules() == KERNELS);
}

static void capture(void) {
  CUcontext context = fake_make_context(90);
  CUstream captured = fake_make_stream(context), other = fake_make_stream(context);
  fake_capture(captured, 1);
  REQUIRE(run(captured) == DRIVEN_NOT_PREPARED && says("call driven_prepare before that"));
  REQUIRE(driven_prepare(captured) == DRIVEN_NOT_PREPARED && fake_count("cuModuleLoadDataEx") == 0);
  /* While one stream is captured, kernels can be loaded by way of another one. */
  REQUIRE(driven_prepare(other) == DRIVEN_OK && fake_loaded_modules() == KERNELS && fake_work_count() == 0);
  REQUIRE(driven_prepare(other) == DRIVEN_OK && fake_count("cuModuleLoadDataEx") == KERNELS);
  REQUIRE(fake_count("cuThreadExchangeStreamCaptureMode") == 2);
  REQUIRE(run(captured) == DRIVEN_OK && fake_work_count() == WORK);
}

static void unload(void) {
  CUcontext context = fake_make_context(90);
  CUstream stream = fake_make_stream(context);
  REQUIRE(driven_unload(stream) == DRIVEN_OK);
  REQUIRE(driven_prepare(stream) == DRIVEN_OK && fake_loaded_modules() == KERNELS);
  REQUIRE(driven_unload(stream) == DRIVEN_OK && fake_loaded_modules() == 0);
  REQUIRE(driven_unload(stream) == DRIVEN_OK && fake_get_current() == NULL);
  REQUIRE(run(stream) == DRIVEN_OK && fake_loaded_modules() == KERNELS);
}

static void targets(void) {
  static const struct { int capability; const char *target; } cases[] = {
      {80, "sm_80"}, {86, "sm_80"}, {89, "sm_80"}, {90, "sm_90a"}, {100, "sm_80"}, {120, "sm_120"}, {121, "sm_120"}};
  fake_refuse_cubins(209);
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    fake_set_current(fake_make_context(cases[n].capability));
    REQUIRE(driven_prepare(NULL) == DRIVEN_OK);
    if (strcmp(fake_last_target(), cases[n].target) != 0) {
      fprintf(stderr, "%d: %s\n", cases[n].capability, fake_last_target());
      exit(1);
    }
  }
  fake_set_current(fake_make_context(75));
  REQUIRE(driven_prepare(NULL) == DRIVEN_UNSUPPORTED_DEVICE);
  REQUIRE(says("compute capability 7.5; the package has kernels for sm_80, sm_90a, sm_120"));
}

static void failures(void) {
  static const char *const names[] = {
      "cuCtxGetCurrent", "cuStreamGetCtx", "cuCtxPushCurrent", "cuCtxGetId", "cuStreamIsCapturing", "cuCtxGetDevice",
      "cuThreadExchangeStreamCaptureMode", "cuDeviceGetAttribute", "cuModuleLoadDataEx", "cuModuleGetFunction",
      "cuFuncSetAttribute", "cuFuncLoad", "cuLaunchKernel", "cuMemcpyDtoDAsync", "cuMemsetD8Async", "cuCtxPopCurrent"};
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    if (strcmp(names[n], "cuFuncLoad") == 0 && getenv("OLD_DRIVER") != NULL) continue;
    for (int later = 0; later < (strncmp(names[n], "cuModule", 8) == 0 ? KERNELS : 1); later++) {
      CUcontext context = fake_make_context(90);
      CUstream stream = fake_make_stream(context);
      int before = fake_loaded_modules();
      fake_fail(names[n], 999, later);
      REQUIRE(run(stream) == DRIVEN_DRIVER_ERROR);
      const char *said = strcmp(names[n], "cuCtxGetDevice") == 0 ? "cuDeviceGetAttribute" : names[n];
      REQUIRE(says(said) && says("failed: CUDA_ERROR_OF_A_TEST (999) as the test asked"));
      REQUIRE(fake_get_current() == NULL || strcmp(names[n], "cuCtxPopCurrent") == 0);
      REQUIRE(fake_loaded_modules() == before || fake_loaded_modules() == before + KERNELS);
      fake_set_current(NULL);
      REQUIRE(run(stream) == DRIVEN_OK && fake_loaded_modules() == before + KERNELS);
    }
  }
  fake_refuse_cubins(200);
  fake_set_current(fake_make_context(90));
  REQUIRE(run(NULL) == DRIVEN_OK);
  fake_set_current(fake_make_context(90));
  fake_refuse_ptx(1);
  REQUIRE(run(NULL) == DRIVEN_DRIVER_ERROR && says("CUDA_ERROR_INVALID_IMAGE (200)") && says(": ptxas says why"));
}

static CUcontext shared_contexts[3];
static pthread_barrier_t start;

static void *thread(void *number) {
  CUstream stream = fake_make_stream(shared_contexts[(uintptr_t)number % 3]);
  pthread_barrier_wait(&start);
  /* Some come while others load. */
  if ((uintptr_t)number >= 6) nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
  for (int n = 0; n < 20; n++) REQUIRE(run(stream) == DRIVEN_OK && fake_get_current() == NULL);
  REQUIRE(run(NULL) == DRIVEN_NO_CONTEXT && says("no CUDA context"));
  return NULL;
}

static void threads(void) {
  pthread_t ids[9];
  REQUIRE(pthread_barrier_init(&start, NULL, 9) == 0);
  for (int n = 0; n < 3; n++) shared_contexts[n] = fake_make_context(90);
  for (uintptr_t n = 0; n < 9; n++) REQUIRE(pthread_create(&ids[n], NULL, thread, (void *)n) == 0);
  for (int n = 0; n < 9; n++) REQUIRE(pthread_join(ids[n], NULL) == 0);
  REQUIRE(fake_loaded_modules() == 3 * KERNELS && fake_count("cuModuleLoadDataEx") == 3 * KERNELS);
  REQUIRE(fake_work_count() == 9 * 20 * WORK && driven_error_message()[0] == '\0');
}

int main(int count, char **arguments) {
  static const struct { const char *name; void (*run)(void); } scenarios[] = {
      {"launches", launches}, {"in_place", in_place}, {"contexts", contexts},
      {"contexts_of_one_address", contexts_of_one_address}, {"capture", capture}, {"unload", unload},
      {"targets", targets}, {"failures", failures}, {"threads", threads}};
  for (size_t n = 0; n < sizeof scenarios / sizeof scenarios[0]; n++) {
    if (count < 2 || strcmp(arguments[1], scenarios[n].name) != 0) continue;
    scenarios[n].run();
    return 0;
  }
  return 2;
}
