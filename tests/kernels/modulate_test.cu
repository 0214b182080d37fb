// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "modulate.h"

using vfm::kernels::ModulateForward;
using vfm::kernels::Type;

namespace {

void need(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    need(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    need(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "copy in");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> result(count_);
    need(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy out");
    return result;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(count);
  for (float& v : result)
    v = normal(engine);
  return result;
}

float value(float v) {
  return v;
}
float value(__nv_bfloat16 v) {
  return __bfloat162float(v);
}

template <class T>
std::vector<T> as(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    result[i] = T(values[i]);
  return result;
}

// Returns the number of failures. The tolerance is of the largest normed value.
template <class T>
int compare(int tokens, int width, int row_count, bool branch, bool extra, double tolerance) {
  const auto size = static_cast<std::size_t>(tokens) * width;
  const std::int64_t gate_stride = 3 * width, modulation_stride = 3 * width;
  const auto x = noise(size, 1), plus = noise(size, 2), table = noise(3ul * width * row_count, 3);
  const auto side = as<T>(noise(size, 4));
  std::vector<std::int32_t> rows(tokens);
  for (int i = 0; i < tokens; ++i)
    rows[i] = (i * 7 / 5) % row_count;
  const DeviceArray<float> dx(x), dplus(plus), dtable(table), stream(size), moments(2ul * tokens);
  const DeviceArray<T> dside(side), normed(size);
  const DeviceArray<std::int32_t> drows(rows);
  ModulateForward call;
  call.tokens = tokens;
  call.width = width;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.x = dx.get();
  if (branch) call.branch = dside.get(), call.gate = dtable.get() + 2 * width;
  call.gate_stride = gate_stride;
  if (extra) call.extra = dplus.get();
  call.modulation = dtable.get();
  call.modulation_stride = modulation_stride;
  call.rows = drows.get();
  call.stream = stream.get();
  call.normed = normed.get();
  call.moments = moments.get();
  need(static_cast<cudaError_t>(modulate_forward(call, nullptr)), "launch");
  need(cudaDeviceSynchronize(), "kernel");
  const auto got_stream = stream.host(), got_moments = moments.host();
  const auto got = normed.host();
  double worst = 0, largest = 0;
  for (int t = 0; t < tokens; ++t) {
    const float* row = table.data() + rows[t] * 3l * width;
    std::vector<double> v(width);
    double mean = 0, variance = 0;
    for (int i = 0; i < width; ++i) {
      const std::size_t at = static_cast<std::size_t>(t) * width + i;
      v[i] = x[at] + (branch ? double{row[2 * width + i]} * value(side[at]) : 0) +
             (extra ? plus[at] : 0);
      mean += v[i] / width;
    }
    for (double u : v)
      variance += (u - mean) * (u - mean) / width;
    const double rstd = 1 / std::sqrt(variance + call.epsilon);
    worst = std::max(worst, std::abs(got_moments[2 * t] - mean));
    worst = std::max(worst, std::abs(got_moments[2 * t + 1] - rstd));
    for (int i = 0; i < width; ++i) {
      const std::size_t at = static_cast<std::size_t>(t) * width + i;
      const double expected = (v[i] - mean) * rstd * (1 + double{row[width + i]}) + row[i];
      const double error = std::abs(value(got[at]) - expected);
      worst = std::isnan(error) ? 1e30 : std::max(worst, error);
      worst = std::max(worst, std::abs(got_stream[at] - v[i]));
      largest = std::max(largest, std::abs(expected));
    }
  }
  const bool good = worst <= tolerance * largest;
  std::printf("%s %d x %d rows %d branch %d extra %d: error %.2g of %.2g %s\n",
              sizeof(T) == 2 ? "bf16" : "f32", tokens, width, row_count, branch, extra, worst,
              largest, good ? "ok" : "FAILED");
  return good ? 0 : 1;
}

// Bytes that must move, over the time they take.
void time_bf16(int tokens, int width) {
  const auto size = static_cast<std::size_t>(tokens) * width;
  const DeviceArray<float> x(size), table(3ul * width), stream(size), moments(2ul * tokens);
  const DeviceArray<__nv_bfloat16> branch(size), normed(size);
  const DeviceArray<std::int32_t> rows(tokens);
  need(cudaMemset(x.get(), 0, size * 4), "memset");
  need(cudaMemset(branch.get(), 0, size * 2), "memset");
  need(cudaMemset(table.get(), 0, 3ul * width * 4), "memset");
  need(cudaMemset(rows.get(), 0, 4ul * tokens), "memset");
  ModulateForward call;
  call.tokens = tokens;
  call.width = width;
  call.type = Type::bf16;
  call.x = x.get(), call.branch = branch.get(), call.gate = table.get() + 2 * width;
  call.modulation = table.get(), call.rows = rows.get();
  call.gate_stride = call.modulation_stride = 3 * width;
  call.stream = stream.get(), call.normed = normed.get(), call.moments = moments.get();
  cudaEvent_t begin, end;
  need(cudaEventCreate(&begin), "event");
  need(cudaEventCreate(&end), "event");
  constexpr int kRuns = 50;
  for (int i = -5; i < kRuns; ++i) {
    if (i == 0) need(cudaEventRecord(begin), "record");
    need(static_cast<cudaError_t>(modulate_forward(call, nullptr)), "launch");
  }
  need(cudaEventRecord(end), "record");
  need(cudaEventSynchronize(end), "wait");
  float milliseconds = 0;
  need(cudaEventElapsedTime(&milliseconds, begin, end), "time");
  std::printf("bf16 %d x %d: %.1f us, %.0f GB/s\n", tokens, width, 1e3 * milliseconds / kRuns,
              12.0 * static_cast<double>(size) * kRuns / (1e6 * milliseconds));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no GPU\n");
    return 77;
  }
  int failures = 0;
  for (const int width : {4, 192, 768, 1024, 1028, 4096, 5120, 12288}) {
    failures += compare<float>(33, width, 5, true, true, 1e-5);
    failures += compare<float>(3, width, 1, false, true, 1e-5);
    failures += compare<__nv_bfloat16>(33, width, 5, true, false, 8e-3);
    failures += compare<__nv_bfloat16>(2, width, 2, false, false, 8e-3);
  }
  ModulateForward odd;
  odd.tokens = 1;
  odd.width = 6;
  failures += modulate_forward(odd, nullptr) == cudaErrorInvalidValue ? 0 : 1;
  failures += modulate_forward(ModulateForward{}, nullptr) == cudaSuccess ? 0 : 1;
  time_bf16(8192, 4096);
  return failures == 0 ? 0 : 1;
}
