// SPDX-License-Identifier: Apache-2.0
#include "tensor/device_cuda.h"

#include <cuda_runtime.h>

#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "kernels/elementwise.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"
#include "tensor/staging_cuda.h"

namespace vfm {
namespace {

std::string probe() {
  int count = 0, driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  cudaGetLastError();
  if (status == cudaSuccess || status == cudaErrorNoDevice) return "no GPU is visible";
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) return "no NVIDIA driver";
  return cudaGetErrorString(status);
}

cudaStream_t make_stream() {
  if (!why_no_gpu().empty()) fail("cannot use a GPU: {}", why_no_gpu());
  cudaStream_t made = nullptr;
  check_gpu(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "make a stream");
  return made;
}

std::atomic<int> chosen_gpu = 0;

cudaDeviceProp properties_of_gpu() {
  if (!why_no_gpu().empty()) fail("cannot use a GPU: {}", why_no_gpu());
  int index = 0;
  cudaDeviceProp properties{};
  check_gpu(cudaGetDevice(&index), "name the GPU");
  check_gpu(cudaGetDeviceProperties(&properties, index), "describe the GPU");
  return properties;
}

std::string uuid_of(const cudaDeviceProp& properties) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}

}  // namespace

void check_gpu(int status, const char* what) {
  if (status != cudaSuccess)
    throw GpuError(
        vfm::format("cannot {}: {}", what, cudaGetErrorString(static_cast<cudaError_t>(status))));
}

std::string why_no_gpu() {
  static const std::string why = probe();
  return why;
}

int gpu_count() {
  int count = 0;
  if (why_no_gpu().empty()) check_gpu(cudaGetDeviceCount(&count), "count the GPUs");
  return count;
}

void use_gpu(int index) {
  if (!why_no_gpu().empty()) fail("cannot use a GPU: {}", why_no_gpu());
  const int count = gpu_count();
  if (index < 0 || index >= count) fail("there is no GPU {}; this machine has {}", index, count);
  chosen_gpu = index;
  use_this_gpu();
}

void use_this_gpu() {
  check_gpu(cudaSetDevice(chosen_gpu), "choose the GPU");
}

std::string describe_cuda() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  const std::string why = why_no_gpu();
  return vfm::format("runtime {}.{}; {}", version / 1000, version % 1000 / 10,
                     why.empty() ? describe_gpu() : "no usable GPU: " + why);
}

std::string describe_gpu() {
  const cudaDeviceProp properties = properties_of_gpu();
  return vfm::format("{}, {}, compute capability {}.{}", properties.name,
                     format_bytes(properties.totalGlobalMem), properties.major, properties.minor);
}

std::string gpu_uuid() {
  return uuid_of(properties_of_gpu());
}

std::vector<GpuFacts> list_gpus() {
  std::vector<GpuFacts> gpus;
  for (int i = 0; i < gpu_count(); ++i) {
    cudaDeviceProp properties{};
    check_gpu(cudaGetDeviceProperties(&properties, i), "describe a GPU");
    gpus.push_back({properties.name, uuid_of(properties), properties.totalGlobalMem});
  }
  return gpus;
}

CUstream_st* compute_stream() {
  static const cudaStream_t stream = make_stream();
  return stream;
}

CUstream_st* copy_stream() {
  static const cudaStream_t stream = make_stream();
  return stream;
}

void synchronize_gpu() {
  refuse_recording("wait for the GPU");
  check_gpu(cudaStreamSynchronize(compute_stream()), "finish the GPU's work");
}

void copy_bytes_gpu(void* to, Device to_device, const void* from, Device from_device,
                    std::size_t bytes) {
  if (to_device == Device::cuda && from_device == Device::cuda) {
    check_gpu(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute_stream()),
              "copy on the GPU");
  } else if (to_device == Device::cuda) {
    refuse_recording("copy to the GPU");
    static Staging staging;
    staging.copy_in(to, from, bytes, compute_stream());
  } else {
    refuse_recording("copy from the GPU");
    check_gpu(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, compute_stream()),
              "copy from the GPU");
    synchronize_gpu();
  }
}

void zero_bytes_gpu(void* at, std::size_t bytes) {
  check_gpu(cudaMemsetAsync(at, 0, bytes, compute_stream()), "clear memory of the GPU");
}

void copy_rows_gpu(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                   std::size_t bytes, std::int64_t rows) {
  check_gpu(
      cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, static_cast<std::size_t>(rows),
                        cudaMemcpyDeviceToDevice, compute_stream()),
      "copy rows on the GPU");
}

kernels::Type kernel_type(DType dtype) {
  if (dtype == DType::f32) return kernels::Type::f32;
  if (dtype == DType::bf16) return kernels::Type::bf16;
  fail("no kernel for {} on the GPU", dtype_name(dtype));
}

void convert_gpu(const Tensor& from, const Tensor& to) {
  check_gpu(kernels::convert(kernel_type(from.dtype()), from.raw(), kernel_type(to.dtype()),
                             to.raw(), from.elements(), compute_stream()),
            "convert");
}

}  // namespace vfm
