// @TITLE@
//
// The C++17 interface, of xgpu @VERSION@, over that of C: @P@.h says what the calls do. What C returns as a status is
// thrown here.
#ifndef XGPU_@U@_HPP
#define XGPU_@U@_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "xgpu/@P@.h"

namespace xgpu::@P@ {

/// What a call that failed throws: its status, and what went wrong as `what()`.
class error : public std::runtime_error {
 public:
  error(@P@_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  @P@_status status() const noexcept { return status_; }

 private:
  @P@_status status_;
};

/// Throws unless a call of the C interface did what it should.
inline void check(@P@_status status) {
  if (status != @U@_OK) throw error(status, @P@_error_message());
}

/// Elements one after the other in the memory of somebody else, on the GPU or not.
template <typename T>
class span {
 public:
  constexpr span() noexcept = default;
  constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  /// The elements of a C array, a vector, or what else has `data` and `size`.
  template <typename Range, typename = std::enable_if_t<std::is_convertible_v<
                                decltype(std::data(std::declval<Range &>())), T *>>>
  constexpr span(Range &&range) : data_(std::data(range)), size_(std::size(range)) {}
  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

using stream = @P@_stream;

/// Memory that is given back when this ends: scratch, say, by the functions that allocate it on a GPU or on the host.
class memory {
 public:
  /// Throws `error` if there is none; `allocate` returns NULL then.
  memory(std::size_t bytes, void *(*allocate)(std::size_t), void (*release)(void *))
      : data_(bytes > 0 ? allocate(bytes) : nullptr), bytes_(bytes), release_(release) {
    if (bytes > 0 && data_ == nullptr)
      throw error(@U@_OUT_OF_MEMORY, "@P@: no memory for " + std::to_string(bytes) + " bytes");
  }
  memory(memory &&other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), release_(other.release_) {}
  memory(const memory &) = delete;
  memory &operator=(const memory &) = delete;
  memory &operator=(memory &&other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~memory() {
    if (data_ != nullptr) release_(data_);
  }
  void *data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void *data_;
  std::size_t bytes_;
  void (*release_)(void *);
};

/// Keeps the kernels loaded for the context of a stream, until it ends; then no work of this package may be left there.
class loaded {
 public:
  explicit loaded(stream on = nullptr) : on_(on) { check(@P@_prepare(on)); }
  loaded(const loaded &) = delete;
  loaded &operator=(const loaded &) = delete;
  ~loaded() { @P@_unload(on_); }

 private:
  stream on_;
};

using extents = @P@_extents;

/// Returns how many elements each array has, and the bytes of scratch@FOR_SIZES@.
inline extents get_extents(@SIZE_PARAMETERS@) {
  extents found;
  check(@P@_get_extents(@SIZE_NAMES@&found));
  return found;
}

/// Throws unless an array has as many elements as it must.
inline void check_extent(const char *name, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  throw error(@U@_WRONG_EXTENT, std::string("@P@: '") + name + "' has " + std::to_string(given) +
                                    " elements; it must have " + std::to_string(needed));
}

/// Adds the program to a stream; arrays are of the lengths that `get_extents` returns.
inline void run(@SIZES@@SPANS@void *scratch, std::size_t scratch_bytes, stream on = nullptr) {
  [[maybe_unused]] const extents needed = get_extents(@SIZE_ARGUMENTS@);
@CHECKS@
  check(@P@_run(@SIZE_NAMES@@DATA@scratch, scratch_bytes, on));
}

/// The same with scratch that is memory of this package's.
inline void run(@SIZES@@SPANS@const memory &scratch, stream on = nullptr) {
  run(@SIZE_NAMES@@FORWARDED@scratch.data(), scratch.bytes(), on);
}

}  // namespace xgpu::@P@

#endif
