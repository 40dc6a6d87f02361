// The same as check.c by the interface of C++. package.hpp is made for each package.
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"
#include "package.hpp"

namespace {

constexpr int threads = 4, calls = 10, replays = 3;

class arrays {
 public:
  explicit arrays(const std::string &folder)
      : stream(harness_stream()), scratch(package::scratch_bytes(), harness_allocate, harness_free), folder_(folder) {
    for (int a = 0; a < package::array_count; a++) {
      memory.push_back(harness_allocate(package::array_bytes[a]));
      if (a < package::argument_count) harness_read(memory[a], package::array_bytes[a], folder.c_str(), a);
    }
  }
  void forget() const {
    for (int a = package::argument_count; a < package::array_count; a++)
      harness_fill(memory[a], 0xA5, package::array_bytes[a], stream);
  }
  std::size_t wrong() const {
    std::size_t found = 0;
    harness_wait(stream);
    for (int a = package::argument_count; a < package::array_count; a++)
      found += harness_wrong(memory[a], package::array_bytes[a], package::array_types[a], folder_.c_str(),
                             a - package::argument_count);
    return found;
  }
  std::vector<void *> memory;
  void *stream;
  package::scratch_memory scratch;

 private:
  std::string folder_;
};

std::size_t wrong_in_threads(const std::string &folder) {
  std::vector<std::size_t> wrong(threads, 1);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; t++)
    all.emplace_back([&, t] {
      harness_attach();
      arrays own(folder);
      wrong[t] = 0;
      for (int n = 0; n < calls; n++) {
        own.forget();
        package::run(own.memory, own.scratch, own.stream);
        wrong[t] += own.wrong();
      }
    });
  std::size_t sum = 0;
  for (int t = 0; t < threads; t++) all[t].join(), sum += wrong[t];
  return sum;
}

std::size_t wrong_when_captured(const arrays &own) {
  own.forget();
  harness_capture(own.stream);
  int status = 0;
  try {
    package::run(own.memory, own.scratch, own.stream);
  } catch (const package::error &error) {
    status = error.status();
  }
  void *graph = harness_captured(own.stream);
  if (package::waits) return status != package::cannot_capture;
  if (status != 0) return 1;
  std::size_t wrong = 0;
  for (int n = 0; n < replays; n++) {
    own.forget();
    harness_replay(graph, own.stream);
    wrong += own.wrong();
  }
  return wrong;
}

}  // namespace

int main(int count, char **words) try {
  if (count != 2) return 2;
  harness_attach();
  std::size_t wrong = wrong_in_threads(words[1]);
  const arrays own(words[1]);
  const package::loaded kernels(own.stream);
  own.forget();
  package::run(own.memory, own.scratch, own.stream);
  wrong += own.wrong();
  if (harness_can_capture()) wrong += wrong_when_captured(own);
  harness_wait(own.stream);
  std::puts(wrong == 0 ? "right" : "WRONG");
  return wrong != 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
