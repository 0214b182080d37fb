// What the GPU benchmarks share: records as JSON Lines on standard output, time on the compute
// stream, random numbers on the GPU. scripts/gpu-report makes a table of the records.
//
// A record is one measurement, {"bench", "case", "impl", "value", "unit", ...}, or says why there
// is none: {"bench", "case", "impl", "error"}. Everything is flat.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "rehearsal.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace vfm::bench {

/// What is measured: which benchmark, on what, and whose code.
struct Name {
  std::string bench, what, impl = "vfm";
};

/// As a JSON string; what would have to be escaped is replaced.
inline std::string quoted(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32; },
      ' ');
  return '"' + text + '"';
}

inline std::string head(const Name& name) {
  return "{\"bench\": " + quoted(name.bench) + ", \"case\": " + quoted(name.what) +
         ", \"impl\": " + quoted(name.impl);
}

/// `more`: further numbers, as they are to stand in the record.
inline void print(const Name& name, double value, const std::string& unit,
                  const std::vector<std::pair<std::string, double>>& more = {}) {
  std::printf("%s, \"value\": %.6g, \"unit\": %s", head(name).c_str(), value, quoted(unit).c_str());
  for (const auto& [key, number] : more)
    std::printf(", %s: %.6g", quoted(key).c_str(), number);
  std::printf("}\n");
  std::fflush(stdout);
}

inline void print_error(const Name& name, const std::string& why) {
  std::printf("%s, \"error\": %s}\n", head(name).c_str(), quoted(why).c_str());
  std::fflush(stdout);
}

/// Runs `measure`, which prints its record; if it throws (no memory, say), that is the record.
inline void attempt(const Name& name, const std::function<void()>& measure) {
  if (rehearsal()) return print_error(name, kRehearsed);
  try {
    measure();
  } catch (const std::exception& error) {
    print_error(name, error.what());
  }
}

/// Two events around work of the compute stream.
class Stopwatch {
 public:
  Stopwatch() {
    check_gpu(cudaEventCreate(&begin_), "make an event");
    check_gpu(cudaEventCreate(&end_), "make an event");
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  double seconds(const std::function<void()>& launch) {
    check_gpu(cudaEventRecord(begin_, compute_stream()), "record an event");
    launch();
    check_gpu(cudaEventRecord(end_, compute_stream()), "record an event");
    check_gpu(cudaEventSynchronize(end_), "finish what is timed");
    float milliseconds = 0;
    check_gpu(cudaEventElapsedTime(&milliseconds, begin_, end_), "time the GPU");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// The median of five batches of calls that together take about `budget` seconds, after a warm-up.
inline double seconds_per_call(const std::function<void()>& launch, double budget = 0.3) {
  Stopwatch watch;
  watch.seconds([&] { launch(), launch(); });
  const double once = watch.seconds(launch);
  const int calls = static_cast<int>(std::clamp(budget / 5 / once, 1.0, 100.0));
  std::vector<double> times;
  for (int batch = 0; batch < 5; ++batch)
    times.push_back(watch.seconds([&] {
      for (int i = 0; i < calls; ++i)
        launch();
    }) / calls);
  std::ranges::nth_element(times, times.begin() + 2);
  return times[2];
}

/// Where the tensors of benchmarks are; in a rehearsal they have no memory.
inline Device place() {
  return rehearsal() ? Device::meta : Device::cuda;
}

/// Normal numbers on the GPU, a million different ones over and over: products of random numbers
/// take more power, and so more time, than those of zeros.
inline Tensor random_tensor(Shape shape, DType dtype, std::uint64_t key, float scale = 1) {
  constexpr std::int64_t kDifferent = 1 << 20;
  const Tensor numbers({kDifferent}), result(std::move(shape), dtype, place());
  if (rehearsal()) return result;
  Random(1, Purpose::test, 0, key).fill_normal(numbers.floats());
  for (float& v : numbers.floats())
    v *= scale;
  const Tensor piece = numbers.to(dtype).to(Device::cuda);
  for (std::size_t done = 0; done < result.bytes(); done += piece.bytes())
    copy_bytes(result.data<std::byte>() + done, Device::cuda, piece.raw(), Device::cuda,
               std::min(piece.bytes(), result.bytes() - done));
  return result;
}

/// A whole number above zero, which is all of `text`; throws Error{usage}.
inline std::int64_t positive(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 1)
    fail_usage("'{}' is no number above zero", text);
  return number;
}

/// The body of main: exit status 77, "skipped", without a GPU; 2 for Error{usage}, which
/// `benchmarks` throws before it measures anything.
inline int run(const std::function<void()>& benchmarks) {
  if (const std::string why = why_no_gpu(); !why.empty() && !rehearsal()) {
    std::fprintf(stderr, "no GPU: %s\n", why.c_str());
    return 77;
  }
  try {
    benchmarks();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace vfm::bench
