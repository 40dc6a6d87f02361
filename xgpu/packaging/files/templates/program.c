/* @TITLE@
 *
 * Made by xgpu @VERSION@; @P@.h says what the functions do. With @U@_HOST defined they run on the processor, by kernels
 * in an object file.
 */
#define _POSIX_C_SOURCE 200809L

#include "xgpu/@P@.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the program is. ---- */

/* Memory that a step uses: an argument or result by its number, scratch by its offset, or what a slot points to. */
enum base { ARGUMENT, RESULT, SCRATCH, SLOT };
typedef struct place {
  enum base base;
  size_t number;
} place;

/* LAUNCH: a kernel on places. COPY: from the first place to the second one. ZERO: zeros for a place. SWAP: two slots
 * exchange what they point to. The steps of which there are `inside` come right after their own: REPEAT runs them
 * `amount` times, or as often as the int64_t at its place says, and WHILE as long as the byte at its place is not 0.
 * Those of CHOOSE are BRANCHes, with steps of their own: it runs the one whose number is the int32_t at its place, or the
 * last one; of a byte, the first one for all but 0. */
enum what { LAUNCH, COPY, ZERO, SWAP, REPEAT, WHILE, CHOOSE, BRANCH };
typedef struct step {
  enum what what;
  unsigned number; /* Of the kernel; of CHOOSE, how many branches it has. */
  unsigned first_place;
  unsigned places;
  unsigned inside;
  size_t amount; /* Bytes to copy, to set to zero or to read; of REPEAT, how often it runs. */
} step;

typedef struct variant {
  const step *steps;
  unsigned step_count;
  const place *places;
  const place *slots; /* What slots point to at first. */
  unsigned slot_count;
  bool waits; /* Whether values that the host reads say which steps come next. */
} variant;

typedef struct array {
  size_t bytes;
  size_t alignment;
  size_t extent;
} array;

/* A result that may be the memory of an argument. */
typedef struct in_place {
  int result;
  int argument;
} in_place;

typedef struct signature {
  int64_t sizes[@SIZE_ROOM@];
  const array *arrays; /* Arguments, then results. */
  const in_place *pairs;
  unsigned pair_count;
  size_t scratch_bytes;
  const variant *variants; /* By target. */
} signature;

enum {
  ARGUMENTS = @ARGUMENTS@,
  RESULTS = @RESULTS@,
  ARRAYS = ARGUMENTS + RESULTS,
  SIZES = @SIZE_COUNT@,
  SIGNATURES = @SIGNATURE_COUNT@,
  TARGETS = @TARGET_COUNT@,
  MOST_PLACES = @MOST_PLACES@,
  MOST_SLOTS = @MOST_SLOTS@
};

@TABLES@

/* ---- Errors. ---- */

static __thread char last_message[1024];

const char *@P@_error_message(void) { return last_message; }

const char *@P@_status_text(@P@_status status) {
  switch (status) {
    case @U@_OK: return "no error";
    case @U@_NULL_POINTER: return "an array is at address 0";
    case @U@_MISALIGNED: return "an array is not aligned as stated";
    case @U@_OVERLAP: return "a result or scratch shares memory with another array";
    case @U@_SCRATCH_TOO_SMALL: return "scratch is too small";
    case @U@_UNKNOWN_SIZE: return "no kernels for these sizes";
    case @U@_WRONG_EXTENT: return "an array has another length";
    case @U@_NO_DRIVER: return "no CUDA driver, or one that is too old";
    case @U@_NO_CONTEXT: return "no CUDA context";
    case @U@_UNSUPPORTED_DEVICE: return "no kernels for this GPU";
    case @U@_NOT_PREPARED: return "not prepared before the stream was captured";
    case @U@_OUT_OF_MEMORY: return "no memory";
    case @U@_DRIVER_ERROR: return "a function of the CUDA driver failed";
    case @U@_INTERNAL_ERROR: return "internal error";
    case @U@_CANNOT_CAPTURE: return "the program cannot be captured";
  }
  return "unknown status";
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static @P@_status fail(@P@_status status, const char *format, ...) {
  va_list values;
  int length = snprintf(last_message, sizeof last_message, "@P@: ");
  va_start(values, format);
  vsnprintf(last_message + length, sizeof last_message - (size_t)length, format, values);
  va_end(values);
  return status;
}

/* ---- The machine: one of the two parts below. ---- */

/* What a call holds while it adds steps to a stream. */
typedef struct session session;
static @P@_status machine_prepare(@P@_stream stream);
static @P@_status machine_unload(@P@_stream stream);
static @P@_status machine_enter(session *s, @P@_stream stream);
static @P@_status machine_leave(session *s, @P@_status status);
static unsigned machine_target(const session *s);
static @P@_status machine_launch(session *s, unsigned kernel, void **pointers, unsigned count);
static @P@_status machine_copy(session *s, void *to, const void *from, size_t bytes);
static @P@_status machine_zero(session *s, void *at, size_t bytes);
/* Whether the host may wait for what is added to the stream; then it may read from there. */
static @P@_status machine_can_wait(session *s);
static @P@_status machine_read(session *s, void *into, const void *from, size_t bytes);

#ifdef @U@_HOST
@HOST@
#else
@GPU@
#endif

/* ---- What a call does. ---- */

@FIND@

static @P@_status check_pointer(const char *name, const void *pointer, size_t bytes, size_t alignment) {
  if (bytes > 0 && pointer == NULL)
    return fail(@U@_NULL_POINTER, "'%s' is at address 0; it has %zu bytes", name, bytes);
  if (bytes > 0 && (uintptr_t)pointer % alignment != 0)
    return fail(@U@_MISALIGNED, "'%s' at %p is not at a multiple of %zu bytes", name, pointer, alignment);
  return @U@_OK;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
  return a_bytes > 0 && b_bytes > 0 && first < second + b_bytes && second < first + a_bytes;
}

/* Whether a result is the memory of an argument that it may be in place of. */
static bool is_in_place(const signature *of, int argument, int result, const void *const *arrays) {
  for (unsigned p = 0; p < of->pair_count; p++)
    if (of->pairs[p].argument == argument && of->pairs[p].result == result)
      return arrays[argument] == arrays[ARGUMENTS + result];
  return false;
}

static @P@_status check_arrays(const signature *of, const void *const *arrays, const void *scratch, size_t bytes) {
  for (int a = 0; a < ARRAYS; a++) {
    @P@_status status = check_pointer(array_names[a], arrays[a], of->arrays[a].bytes, of->arrays[a].alignment);
    if (status != @U@_OK) return status;
  }
  if (bytes < of->scratch_bytes)
    return fail(@U@_SCRATCH_TOO_SMALL, "scratch has %zu bytes; %zu are needed", bytes, of->scratch_bytes);
  @P@_status status = check_pointer("scratch", scratch, of->scratch_bytes, @U@_SCRATCH_ALIGNMENT);
  if (status != @U@_OK) return status;
  for (int a = 0; a < ARRAYS; a++) {
    if (overlap(arrays[a], of->arrays[a].bytes, scratch, of->scratch_bytes))
      return fail(@U@_OVERLAP, "'%s' shares memory with scratch", array_names[a]);
    for (int r = a < ARGUMENTS ? ARGUMENTS : a + 1; r < ARRAYS; r++) {
      if (!overlap(arrays[a], of->arrays[a].bytes, arrays[r], of->arrays[r].bytes)) continue;
      if (a < ARGUMENTS && is_in_place(of, a, r - ARGUMENTS, arrays)) continue;
      return fail(@U@_OVERLAP, "'%s' shares memory with '%s'", array_names[r], array_names[a]);
    }
  }
  return @U@_OK;
}

/* What a call works on. */
typedef struct call {
  session *s;
  const variant *of;
  const void *const *arrays;
  void *scratch;
  void *slots[MOST_SLOTS];
} call;

static void *address(const call *c, const place *at) {
  if (at->base == SCRATCH) return (char *)c->scratch + at->number;
  if (at->base == SLOT) return c->slots[at->number];
  /* Nothing is written to arguments, but those that a result is in place of. */
  return (void *)(uintptr_t)c->arrays[at->base == RESULT ? ARGUMENTS + at->number : at->number];
}

static @P@_status add_steps(call *c, unsigned first, unsigned end);

/* Runs the steps inside a loop again and again. */
static @P@_status add_loop(call *c, unsigned number) {
  const step *loop = &c->of->steps[number];
  const place *read = &c->of->places[loop->first_place];
  @P@_status status = @U@_OK;
  int64_t turns = (int64_t)loop->amount;
  if (loop->what == REPEAT && loop->places > 0) status = machine_read(c->s, &turns, address(c, read), sizeof turns);
  for (int64_t turn = 0; status == @U@_OK && (loop->what == WHILE || turn < turns); turn++) {
    if (loop->what == WHILE) {
      uint8_t goes_on = 0;
      status = machine_read(c->s, &goes_on, address(c, read), sizeof goes_on);
      if (status != @U@_OK || !goes_on) break;
    }
    status = add_steps(c, number + 1, number + 1 + loop->inside);
  }
  return status;
}

/* Runs the steps of one branch. */
static @P@_status add_choice(call *c, unsigned number) {
  const step *choice = &c->of->steps[number];
  uint8_t is_true = 0;
  int32_t index = 0;
  bool is_byte = choice->amount == sizeof is_true;
  void *into = is_byte ? (void *)&is_true : (void *)&index;
  @P@_status status = machine_read(c->s, into, address(c, &c->of->places[choice->first_place]), choice->amount);
  if (status != @U@_OK) return status;
  if (is_byte) index = is_true ? 0 : 1;
  unsigned chosen = (uint32_t)index < choice->number ? (unsigned)index : choice->number - 1, at = number + 1;
  for (; chosen > 0; chosen--) at += 1 + c->of->steps[at].inside;
  return add_steps(c, at + 1, at + 1 + c->of->steps[at].inside);
}

static @P@_status add_step(call *c, unsigned number) {
  const step *next = &c->of->steps[number];
  const place *places = &c->of->places[next->first_place];
  void *pointers[MOST_PLACES];
  for (unsigned p = 0; p < next->places; p++) pointers[p] = address(c, &places[p]);
  switch (next->what) {
    case LAUNCH: return machine_launch(c->s, next->number, pointers, next->places);
    case COPY: return pointers[0] == pointers[1] ? @U@_OK : machine_copy(c->s, pointers[1], pointers[0], next->amount);
    case ZERO: return machine_zero(c->s, pointers[0], next->amount);
    case SWAP:
      c->slots[places[0].number] = pointers[1];
      c->slots[places[1].number] = pointers[0];
      return @U@_OK;
    case REPEAT:
    case WHILE: return add_loop(c, number);
    case CHOOSE: return add_choice(c, number);
    case BRANCH: break;
  }
  return fail(@U@_INTERNAL_ERROR, "a step is of no kind");
}

static @P@_status add_steps(call *c, unsigned first, unsigned end) {
  @P@_status status = @U@_OK;
  for (unsigned n = first; n < end && status == @U@_OK; n += 1 + c->of->steps[n].inside) status = add_step(c, n);
  return status;
}

static @P@_status add_all(session *s, const variant *of, const void *const *arrays, void *scratch) {
  call c = {.s = s, .of = of, .arrays = arrays, .scratch = scratch};
  @P@_status status = of->waits ? machine_can_wait(s) : @U@_OK;
  if (status != @U@_OK) return status;
  for (unsigned n = 0; n < of->slot_count; n++) c.slots[n] = address(&c, &of->slots[n]);
  return add_steps(&c, 0, of->step_count);
}

@P@_status @P@_get_extents(@SIZES@@P@_extents *extents) {
@COLLECT_SIZES@
  const signature *of;
  @P@_status status = find_signature(sizes, &of);
  if (status != @U@_OK) return status;
  if (extents == NULL) return fail(@U@_NULL_POINTER, "'extents' is at address 0");
@FILL_EXTENTS@
  extents->scratch_bytes = of->scratch_bytes;
  return @U@_OK;
}

@P@_status @P@_prepare(@P@_stream stream) { return machine_prepare(stream); }

@P@_status @P@_unload(@P@_stream stream) { return machine_unload(stream); }

@P@_status @P@_run(
@UNNAMED_PARAMETERS@    void *scratch, size_t scratch_bytes, @P@_stream stream) {
  const void *const arrays[ARRAYS + 1] = {@POINTERS@NULL};
@COLLECT_SIZES@
  const signature *of;
  session s;
  @P@_status status = find_signature(sizes, &of);
  if (status == @U@_OK) status = check_arrays(of, arrays, scratch, scratch_bytes);
  if (status == @U@_OK) status = machine_enter(&s, stream);
  if (status != @U@_OK) return status;
  return machine_leave(&s, add_all(&s, &of->variants[machine_target(&s)], arrays, scratch));
}
