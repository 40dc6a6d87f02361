/* ---- On the processor: the same kernels, whose blocks run one after the other. ---- */

/* Runs blocks of a kernel, of the clusters `first` to `last - 1`. */
typedef void blocks_function(void *const *buffers, int64_t first, int64_t last, void *context);
/* Makes a thread's coroutine, or returns the bytes that one takes if there is no frame for it. */
typedef size_t make_function(void *const *buffers, int32_t x, int32_t y, int32_t z, void *context, void *frame);

typedef struct kernel {
  const char *name;
  blocks_function *blocks;
  make_function *make; /* NULL if its threads never wait for each other. */
  int64_t clusters;
  size_t cluster_blocks;
  size_t threads;
  size_t frames;       /* Where in a context frames begin; 0 if it has no context. */
  size_t shared_bytes; /* Of shared memory, which is in it from SHARED on. */
} kernel;

@HOST_TABLES@

enum { CONTEXT_ALIGNMENT = @CONTEXT_ALIGNMENT@, SHARED = @SHARED@, UNWRITTEN = @UNWRITTEN@, DIVERGED = @DIVERGED@ };

struct session {
  char unused;
};

static @P@_status machine_prepare(@P@_stream stream) {
  (void)stream;
  return @U@_OK;
}

static @P@_status machine_unload(@P@_stream stream) { return machine_prepare(stream); }

static @P@_status machine_enter(session *s, @P@_stream stream) {
  s->unused = 0;
  return machine_prepare(stream);
}

static @P@_status machine_leave(session *s, @P@_status status) {
  (void)s;
  return status;
}

static unsigned machine_target(const session *s) {
  (void)s;
  return 0;
}

static size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/* The bytes that the threads of a cluster need besides the arrays. */
static size_t context_bytes(const kernel *of, void *const *buffers) {
  size_t bytes = of->frames;
  if (of->make != NULL)
    bytes += of->threads * round_up(of->make(buffers, 0, 0, 0, NULL, NULL), @FRAME_ALIGNMENT@);
  return of->cluster_blocks > 1 ? of->cluster_blocks * round_up(bytes, CONTEXT_ALIGNMENT) : bytes;
}

static @P@_status machine_launch(session *s, unsigned number, void **pointers, unsigned count) {
  const kernel *of = &kernels[number];
  size_t bytes = context_bytes(of, pointers);
  void *context = NULL;
  int32_t has_diverged = 0;
  (void)s;
  (void)count;
  if (bytes > 0) {
    if (posix_memalign(&context, CONTEXT_ALIGNMENT, bytes) != 0)
      return fail(@U@_OUT_OF_MEMORY, "no memory for the %zu bytes that threads of kernel %s need", bytes, of->name);
    memset(context, 0, SHARED);
    memset((char *)context + SHARED, UNWRITTEN, of->shared_bytes);
  }
  of->blocks(pointers, 0, of->clusters, context);
  if (bytes > 0) memcpy(&has_diverged, (char *)context + DIVERGED, sizeof has_diverged);
  free(context);
  if (has_diverged) return fail(@U@_INTERNAL_ERROR, "threads of kernel %s did not meet", of->name);
  return @U@_OK;
}

static @P@_status machine_copy(session *s, void *to, const void *from, size_t bytes) {
  (void)s;
  memcpy(to, from, bytes);
  return @U@_OK;
}

static @P@_status machine_zero(session *s, void *at, size_t bytes) {
  (void)s;
  memset(at, 0, bytes);
  return @U@_OK;
}

static @P@_status machine_can_wait(session *s) {
  (void)s;
  return @U@_OK;
}

static @P@_status machine_read(session *s, void *into, const void *from, size_t bytes) {
  return machine_copy(s, into, from, bytes);
}
