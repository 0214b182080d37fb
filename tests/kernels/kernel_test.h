// What the tests of the kernels share: arrays on the device, made-up numbers, comparison with a
// reference in double, timing. Compiled by nvcc for the GPU, and by the host's compiler for the
// emulation (tests/kernels/emulation), where nothing is timed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#ifdef VFM_EMULATION_WATCHES
#include "accesses.h"
#include "watch.h"
#endif

namespace vfm::test {

#ifdef VFM_EMULATION
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

/// What is asked for by the environment's VFM_KERNEL_TESTS: "untimed" (every case, nothing timed),
/// or "small" (few cases too: for compute-sanitizer, under which all takes long, and in the
/// emulation).
inline bool asked(const char* for_what) {
  const char* const value = std::getenv("VFM_KERNEL_TESTS");
  return value != nullptr && std::strcmp(value, for_what) == 0;
}
inline bool small() {
  return kEmulated || asked("small");
}
inline bool timed() {
  return !small() && !asked("untimed");
}

/// Ends the program if `status` is an error; as skipped, if it is that this GPU has no FP8.
inline void need(int status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(static_cast<cudaError_t>(status)));
  std::exit(status == cudaErrorNotSupported ? 77 : 1);
}

/// Memory on the device. Without values it is filled with NaN patterns, so that what a kernel
/// forgets to write shows.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    void* data = nullptr;
    need(cudaMalloc(&data, std::max<std::size_t>(count, 1) * sizeof(T)), "cudaMalloc");
    need(cudaMemset(data, 0xff, count * sizeof(T)), "cudaMemset");
    data_ = static_cast<T*>(data);
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    need(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "copy in");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }
  /// Waits for what was launched before.
  std::vector<T> host() const {
    need(cudaDeviceSynchronize(), "kernel");
    std::vector<T> result(count_);
    need(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy out");
    return result;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Normal numbers, a function of the seed.
inline std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(count);
  for (float& v : result)
    v = normal(engine);
  return result;
}

inline float value(float v) {
  return v;
}
inline float value(__nv_bfloat16 v) {
  return __bfloat162float(v);
}

template <class T>
std::vector<T> as(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    result[i] = T(values[i]);
  return result;
}

/// Counts what is wrong.
class Checker {
 public:
  /// The largest difference must be within `tolerance` of the largest expected value (of 1, if
  /// that is smaller); NaN and infinity must stand where they are expected.
  template <class T>
  void close(const std::string& name, const std::vector<T>& got,
             const std::vector<double>& expected, double tolerance) {
    double worst = 0, largest = 1;
    bool same_places = got.size() == expected.size();
    for (std::size_t i = 0; same_places && i < got.size(); ++i) {
      const double v = value(got[i]), e = expected[i];
      if (std::isfinite(e)) {
        largest = std::max(largest, std::abs(e));
        same_places = std::isfinite(v);
        worst = std::max(worst, std::abs(v - e));
      } else {
        same_places = std::isnan(e) ? std::isnan(v) : v == e;
      }
    }
    check(name + " (error " + std::to_string(worst / largest) + ")",
          same_places && worst <= tolerance * largest);
  }
  /// A distance that was measured, a part of what is measured, must be within `tolerance`.
  void apart(const std::string& name, double distance, double tolerance) {
    check(name + ": " + std::to_string(distance) + " apart", distance < tolerance);
  }
  void check(const std::string& name, bool good) {
    ++checks_;
    if (good) return;
    ++failures_;
    std::printf("FAILED: %s\n", name.c_str());
  }
  /// One part of a test: what it throws is a failure, and keeps no other part from running.
  template <class Part, class... Arguments>
  void part(Part run, Arguments&&... arguments) {
    try {
      run(*this, std::forward<Arguments>(arguments)...);
    } catch (const std::exception& error) {
      check(error.what(), false);
    }
  }
  /// Prints the totals; the exit status.
  int finish() const {
    std::printf("%d checks, %d failed\n", checks_, failures_);
    return failures_ == 0 && checks_ > 0 ? 0 : 1;
  }

 private:
  int checks_ = 0, failures_ = 0;
};

/// Prints the time of a launch and what it moves (GB/s) or computes (TFLOP/s); 0 leaves one out.
inline void time_launch(const std::string& name, double bytes, double flops,
                        const std::function<int()>& launch) {
  if (!timed()) return;
  cudaEvent_t begin, end;
  need(cudaEventCreate(&begin), "event");
  need(cudaEventCreate(&end), "event");
  constexpr int kRuns = 50;
  for (int i = -5; i < kRuns; ++i) {
    if (i == 0) need(cudaEventRecord(begin), "record");
    need(launch(), "launch");
  }
  need(cudaEventRecord(end), "record");
  need(cudaEventSynchronize(end), "wait");
  float milliseconds = 0;
  need(cudaEventElapsedTime(&milliseconds, begin, end), "time");
  const double seconds = 1e-3 * milliseconds / kRuns;
  std::printf("%s: %.1f us", name.c_str(), 1e6 * seconds);
  if (bytes > 0) std::printf(", %.0f GB/s", 1e-9 * bytes / seconds);
  if (flops > 0) std::printf(", %.1f TFLOP/s", 1e-12 * flops / seconds);
  std::printf("\n");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

/// The body of main: exit status 77, "skipped", without a GPU.
inline int run(const std::function<void(Checker&)>& tests) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no GPU\n");
    return 77;
  }
  Checker checker;
#ifdef VFM_EMULATION_WATCHES
  vfm::emulation::watch(true);
#endif
  tests(checker);
#ifdef VFM_EMULATION_WATCHES
  for (const std::string& wrong : vfm::emulation::compare_accesses())
    checker.check(wrong, false);
#endif
  return checker.finish();
}

}  // namespace vfm::test
