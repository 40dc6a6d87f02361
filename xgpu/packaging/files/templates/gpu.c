/* ---- On a GPU, by the CUDA driver's interface, which is found when it is first needed. ---- */

#include <dlfcn.h>
#include <pthread.h>

typedef int CUresult;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
  SHARED_BYTES_FOR_ALL = 48 * 1024,
  LOG_BYTES = 512
};

/* Addresses of the default streams, which name no context; the first two, NULL and this, are one that is never captured. */
#define CU_STREAM_LEGACY 1
#define CU_STREAM_PER_THREAD 2

typedef struct kernel {
  const char *name;
  const unsigned char *ptx;   /* Text that ends in a zero. */
  const unsigned char *cubin; /* NULL where it was exported without ptxas. */
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
} kernel;

/* The kernels for GPUs of a compute capability (times ten), and later ones; ANY, for those of it alone (ALONE),
 * or of its family (FAMILY). */
enum suits { ANY, ALONE, FAMILY };
typedef struct target {
  const char *name;
  int capability;
  enum suits suits;
  unsigned kernel_count;
  const kernel *kernels;
} target;

#include "@P@_kernels.h"

/* The driver's functions; `library` is not NULL once all are there. */
static struct {
  void *library;
  CUresult (*cuCtxGetCurrent)(CUcontext *);
  CUresult (*cuCtxGetId)(CUcontext, unsigned long long *);
  CUresult (*cuCtxGetDevice)(CUdevice *);
  CUresult (*cuCtxPushCurrent)(CUcontext);
  CUresult (*cuCtxPopCurrent)(CUcontext *);
  CUresult (*cuDeviceGetAttribute)(int *, int, CUdevice);
  CUresult (*cuStreamGetCtx)(CUstream, CUcontext *);
  CUresult (*cuStreamIsCapturing)(CUstream, int *);
  CUresult (*cuThreadExchangeStreamCaptureMode)(int *);
  CUresult (*cuModuleLoadDataEx)(CUmodule *, const void *, unsigned, int *, void **);
  CUresult (*cuModuleGetFunction)(CUfunction *, CUmodule, const char *);
  CUresult (*cuModuleUnload)(CUmodule);
  CUresult (*cuFuncSetAttribute)(CUfunction, int, int);
  CUresult (*cuFuncLoad)(CUfunction); /* NULL before CUDA 12.4. */
  CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             CUstream, void **, void **);
  CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
  CUresult (*cuMemcpyDtoHAsync)(void *, CUdeviceptr, size_t, CUstream);
  CUresult (*cuMemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);
  CUresult (*cuStreamSynchronize)(CUstream);
  CUresult (*cuGetErrorName)(CUresult, const char **);
  CUresult (*cuGetErrorString)(CUresult, const char **);
} cuda;

/* The kernels in one context. Contexts are known by their ids, which the driver never gives twice; an entry stays in the
 * list when its context is gone. `is_loaded` is written last, so that others need no lock to read an entry. */
typedef struct loaded {
  struct loaded *next;
  unsigned long long context;
  unsigned target;
  int is_loaded;
  CUmodule modules[MOST_KERNELS];
  CUfunction functions[MOST_KERNELS];
} loaded;

static loaded *all_loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* Of what writes to the list, its entries, and `cuda`. */

struct session {
  CUstream stream;
  const loaded *kernels;
  unsigned long long context;
  bool is_pushed;
};

static @P@_status driver_failed(CUresult result, const char *function, const char *what) {
  const char *name = NULL, *text = NULL;
  if (cuda.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "unknown error";
  if (cuda.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == NULL) text = "";
  return fail(@U@_DRIVER_ERROR, "%s%s%s failed: %s (%d) %s", function, *what ? " of " : "", what, name, result, text);
}

/* Finds a function by its name in the driver, where it may be NULL; pointers to functions are no `void *` in C. */
static bool find_function(void *library, const char *name, void *into, bool is_needed) {
  void *found = dlsym(library, name);
  memcpy(into, &found, sizeof found);
  if (found != NULL || !is_needed) return true;
  fail(@U@_NO_DRIVER, "the CUDA driver has no %s: it is older than CUDA 12", name);
  return false;
}

static bool find_functions(void *from) {
  return find_function(from, "cuCtxGetCurrent", &cuda.cuCtxGetCurrent, true) &&
         find_function(from, "cuCtxGetId", &cuda.cuCtxGetId, true) &&
         find_function(from, "cuCtxGetDevice", &cuda.cuCtxGetDevice, true) &&
         find_function(from, "cuCtxPushCurrent_v2", &cuda.cuCtxPushCurrent, true) &&
         find_function(from, "cuCtxPopCurrent_v2", &cuda.cuCtxPopCurrent, true) &&
         find_function(from, "cuDeviceGetAttribute", &cuda.cuDeviceGetAttribute, true) &&
         find_function(from, "cuStreamGetCtx", &cuda.cuStreamGetCtx, true) &&
         find_function(from, "cuStreamIsCapturing", &cuda.cuStreamIsCapturing, true) &&
         find_function(from, "cuThreadExchangeStreamCaptureMode", &cuda.cuThreadExchangeStreamCaptureMode, true) &&
         find_function(from, "cuModuleLoadDataEx", &cuda.cuModuleLoadDataEx, true) &&
         find_function(from, "cuModuleGetFunction", &cuda.cuModuleGetFunction, true) &&
         find_function(from, "cuModuleUnload", &cuda.cuModuleUnload, true) &&
         find_function(from, "cuFuncSetAttribute", &cuda.cuFuncSetAttribute, true) &&
         find_function(from, "cuFuncLoad", &cuda.cuFuncLoad, false) &&
         find_function(from, "cuLaunchKernel", &cuda.cuLaunchKernel, true) &&
         find_function(from, "cuMemcpyDtoDAsync_v2", &cuda.cuMemcpyDtoDAsync, true) &&
         find_function(from, "cuMemcpyDtoHAsync_v2", &cuda.cuMemcpyDtoHAsync, true) &&
         find_function(from, "cuMemsetD8Async", &cuda.cuMemsetD8Async, true) &&
         find_function(from, "cuStreamSynchronize", &cuda.cuStreamSynchronize, true) &&
         find_function(from, "cuGetErrorName", &cuda.cuGetErrorName, true) &&
         find_function(from, "cuGetErrorString", &cuda.cuGetErrorString, true);
}

static @P@_status find_driver(void) {
  if (__atomic_load_n(&cuda.library, __ATOMIC_ACQUIRE) != NULL) return @U@_OK;
  @P@_status status = @U@_OK;
  pthread_mutex_lock(&lock);
  if (cuda.library == NULL) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      const char *reason = dlerror();
      status = fail(@U@_NO_DRIVER, "the CUDA driver cannot be loaded: %s", reason ? reason : "libcuda.so.1");
    } else if (find_functions(library)) {
      __atomic_store_n(&cuda.library, library, __ATOMIC_RELEASE);
    } else {
      dlclose(library);
      status = @U@_NO_DRIVER;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* Makes the context of a stream current, and says which it is. */
static @P@_status enter_context(session *s, @P@_stream stream) {
  CUcontext current = NULL, wanted;
  @P@_status status = find_driver();
  if (status != @U@_OK) return status;
  s->stream = (CUstream)stream;
  s->is_pushed = false;
  CUresult result = cuda.cuCtxGetCurrent(&current);
  if (result != CUDA_SUCCESS) return driver_failed(result, "cuCtxGetCurrent", "");
  wanted = current;
  if ((uintptr_t)stream > CU_STREAM_PER_THREAD) {
    result = cuda.cuStreamGetCtx(s->stream, &wanted);
    if (result != CUDA_SUCCESS) return driver_failed(result, "cuStreamGetCtx", "the stream");
  }
  if (wanted == NULL)
    return fail(@U@_NO_CONTEXT, "no CUDA context is current on this thread, and the stream is a default stream");
  if (wanted != current) {
    result = cuda.cuCtxPushCurrent(wanted);
    if (result != CUDA_SUCCESS) return driver_failed(result, "cuCtxPushCurrent", "the stream's context");
    s->is_pushed = true;
  }
  result = cuda.cuCtxGetId(wanted, &s->context);
  return result == CUDA_SUCCESS ? @U@_OK : machine_leave(s, driver_failed(result, "cuCtxGetId", ""));
}

static @P@_status machine_leave(session *s, @P@_status status) {
  CUcontext popped;
  if (!s->is_pushed) return status;
  s->is_pushed = false;
  CUresult result = cuda.cuCtxPopCurrent(&popped);
  return result == CUDA_SUCCESS || status != @U@_OK ? status : driver_failed(result, "cuCtxPopCurrent", "");
}

static loaded *find_loaded(unsigned long long context) {
  loaded *each = __atomic_load_n(&all_loaded, __ATOMIC_ACQUIRE);
  while (each != NULL && each->context != context) each = each->next;
  return each;
}

/* The target for a GPU: one for it alone before one for its family, and that before the last one that it has all of. */
static @P@_status choose_target(unsigned *chosen) {
  int major = 0, minor = 0, best = -1;
  CUdevice device;
  CUresult result = cuda.cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS)
    result = cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result == CUDA_SUCCESS)
    result = cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (result != CUDA_SUCCESS) return driver_failed(result, "cuDeviceGetAttribute", "the context's device");
  for (unsigned t = 0; t < TARGETS; t++) {
    int given = 10 * major + minor, needed = targets[t].capability, worth = needed * 4;
    bool is_family = needed / 10 == major && needed <= given;
    if (targets[t].suits == ALONE ? needed != given : targets[t].suits == FAMILY ? !is_family : needed > given) continue;
    worth += targets[t].suits == ALONE ? 2 : targets[t].suits == FAMILY ? 1 : 0;
    if (worth > best) {
      best = worth;
      *chosen = t;
    }
  }
  if (best >= 0) return @U@_OK;
  return fail(@U@_UNSUPPORTED_DEVICE, "the GPU has compute capability %d.%d; the package has kernels for %s", major,
              minor, target_names);
}

/* Loads a kernel as machine code. Where that is for another generation of GPUs, or of a newer CUDA than the driver
 * knows, the driver compiles its PTX. */
static @P@_status load_module(const kernel *of, CUmodule *module) {
  char log[LOG_BYTES] = "";
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (of->cubin != NULL) result = cuda.cuModuleLoadDataEx(module, of->cubin, 0, NULL, NULL);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE)
    result = cuda.cuModuleLoadDataEx(module, of->ptx, 2, options, values);
  if (result == CUDA_SUCCESS) return @U@_OK;
  log[sizeof log - 1] = '\0';
  driver_failed(result, "cuModuleLoadDataEx", of->name);
  if (log[0] != '\0') {
    char before[sizeof last_message];
    memcpy(before, last_message, sizeof before);
    snprintf(last_message, sizeof last_message, "%.*s: %s", (int)(sizeof before - LOG_BYTES - 3), before, log);
  }
  return @U@_DRIVER_ERROR;
}

/* Makes a kernel ready, so that nothing is left to load when it is launched. */
static @P@_status load_kernel(const kernel *of, CUmodule *module, CUfunction *function) {
  @P@_status status = load_module(of, module);
  if (status != @U@_OK) return status;
  CUresult result = cuda.cuModuleGetFunction(function, *module, of->name);
  if (result != CUDA_SUCCESS) {
    status = driver_failed(result, "cuModuleGetFunction", of->name);
  } else if (of->shared_bytes > SHARED_BYTES_FOR_ALL) {
    result = cuda.cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)of->shared_bytes);
    if (result != CUDA_SUCCESS) status = driver_failed(result, "cuFuncSetAttribute", of->name);
  }
  if (status == @U@_OK && cuda.cuFuncLoad != NULL) {
    result = cuda.cuFuncLoad(*function);
    if (result != CUDA_SUCCESS) status = driver_failed(result, "cuFuncLoad", of->name);
  }
  if (status != @U@_OK) cuda.cuModuleUnload(*module);
  return status;
}

/* Loads all kernels for the current context into an entry; all or none. The caller has the lock. */
static @P@_status load_all(loaded *into) {
  @P@_status status = choose_target(&into->target);
  if (status != @U@_OK) return status;
  const target *of = &targets[into->target];
  for (unsigned k = 0; k < of->kernel_count; k++) {
    status = load_kernel(&of->kernels[k], &into->modules[k], &into->functions[k]);
    if (status == @U@_OK) continue;
    while (k-- > 0) cuda.cuModuleUnload(into->modules[k]);
    return status;
  }
  __atomic_store_n(&into->is_loaded, 1, __ATOMIC_RELEASE);
  return @U@_OK;
}

/* Loads the kernels for the session's context, unless another thread just has. */
static @P@_status load_for(session *s) {
  @P@_status status = @U@_OK;
  pthread_mutex_lock(&lock);
  loaded *entry = find_loaded(s->context);
  if (entry == NULL) {
    entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
      entry->context = s->context;
      entry->next = all_loaded;
      __atomic_store_n(&all_loaded, entry, __ATOMIC_RELEASE);
    }
  }
  if (entry == NULL) {
    status = fail(@U@_OUT_OF_MEMORY, "no memory for %zu bytes", sizeof *entry);
  } else if (!entry->is_loaded) {
    /* Another thread, or this one, may be capturing some other stream; to load does not disturb that. */
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = cuda.cuThreadExchangeStreamCaptureMode(&mode);
    if (result != CUDA_SUCCESS) {
      status = driver_failed(result, "cuThreadExchangeStreamCaptureMode", "");
    } else {
      status = load_all(entry);
      cuda.cuThreadExchangeStreamCaptureMode(&mode);
    }
  }
  s->kernels = entry;
  pthread_mutex_unlock(&lock);
  return status;
}

/* Whether the stream is being captured; the default stream of old never is. */
static @P@_status is_captured(const session *s, bool *found) {
  int capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = CUDA_SUCCESS;
  if ((uintptr_t)s->stream > CU_STREAM_LEGACY) result = cuda.cuStreamIsCapturing(s->stream, &capture);
  if (result != CUDA_SUCCESS) return driver_failed(result, "cuStreamIsCapturing", "the stream");
  *found = capture != CU_STREAM_CAPTURE_STATUS_NONE;
  return @U@_OK;
}

static @P@_status machine_enter(session *s, @P@_stream stream) {
  bool found = false;
  @P@_status status = enter_context(s, stream);
  if (status != @U@_OK) return status;
  s->kernels = find_loaded(s->context);
  if (s->kernels != NULL && __atomic_load_n(&s->kernels->is_loaded, __ATOMIC_ACQUIRE)) return @U@_OK;
  status = is_captured(s, &found);
  if (status == @U@_OK && found)
    status = fail(@U@_NOT_PREPARED, "the stream is being captured: call @P@_prepare before that");
  else if (status == @U@_OK)
    status = load_for(s);
  return status == @U@_OK ? status : machine_leave(s, status);
}

static @P@_status machine_prepare(@P@_stream stream) {
  session s;
  @P@_status status = machine_enter(&s, stream);
  return status == @U@_OK ? machine_leave(&s, status) : status;
}

static @P@_status machine_unload(@P@_stream stream) {
  session s;
  @P@_status status = enter_context(&s, stream);
  if (status != @U@_OK) return status;
  pthread_mutex_lock(&lock);
  loaded *entry = find_loaded(s.context);
  if (entry != NULL && entry->is_loaded) {
    __atomic_store_n(&entry->is_loaded, 0, __ATOMIC_RELEASE);
    for (unsigned k = 0; k < targets[entry->target].kernel_count; k++) {
      CUresult result = cuda.cuModuleUnload(entry->modules[k]);
      if (result != CUDA_SUCCESS) status = driver_failed(result, "cuModuleUnload", "");
    }
  }
  pthread_mutex_unlock(&lock);
  return machine_leave(&s, status);
}

static unsigned machine_target(const session *s) { return s->kernels->target; }

static @P@_status machine_launch(session *s, unsigned number, void **pointers, unsigned count) {
  const kernel *of = &targets[s->kernels->target].kernels[number];
  void *parameters[MOST_PLACES];
  for (unsigned p = 0; p < count; p++) parameters[p] = &pointers[p];
  CUresult result = cuda.cuLaunchKernel(s->kernels->functions[number], of->grid[0], of->grid[1], of->grid[2],
                                        of->block[0], of->block[1], of->block[2], of->shared_bytes, s->stream,
                                        parameters, NULL);
  return result == CUDA_SUCCESS ? @U@_OK : driver_failed(result, "cuLaunchKernel", of->name);
}

static @P@_status machine_copy(session *s, void *to, const void *from, size_t bytes) {
  CUresult result = cuda.cuMemcpyDtoDAsync((uintptr_t)to, (uintptr_t)from, bytes, s->stream);
  return result == CUDA_SUCCESS ? @U@_OK : driver_failed(result, "cuMemcpyDtoDAsync", "");
}

static @P@_status machine_zero(session *s, void *at, size_t bytes) {
  CUresult result = cuda.cuMemsetD8Async((uintptr_t)at, 0, bytes, s->stream);
  return result == CUDA_SUCCESS ? @U@_OK : driver_failed(result, "cuMemsetD8Async", "");
}

static @P@_status machine_can_wait(session *s) {
  bool found = false;
  @P@_status status = is_captured(s, &found);
  if (status != @U@_OK || !found) return status;
  return fail(@U@_CANNOT_CAPTURE, "the stream is being captured, and what the program does depends on values on the GPU");
}

static @P@_status machine_read(session *s, void *into, const void *from, size_t bytes) {
  /* Another stream may be captured; to wait for this one does not disturb that. */
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result = cuda.cuThreadExchangeStreamCaptureMode(&mode);
  if (result != CUDA_SUCCESS) return driver_failed(result, "cuThreadExchangeStreamCaptureMode", "");
  const char *function = "cuMemcpyDtoHAsync";
  result = cuda.cuMemcpyDtoHAsync(into, (uintptr_t)from, bytes, s->stream);
  if (result == CUDA_SUCCESS) {
    function = "cuStreamSynchronize";
    result = cuda.cuStreamSynchronize(s->stream);
  }
  cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return result == CUDA_SUCCESS ? @U@_OK : driver_failed(result, function, "");
}
