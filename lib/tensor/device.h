// The devices of this process: the CPU, and one GPU.
//
// All work on the GPU is queued on one compute stream, in the order of the calls; the host waits
// only where it reads results (copy to the host, synchronize). tensor/upload.h has a second stream
// for data, tensor/graph_cache.h work that is queued as a whole. A build without CUDA has the same
// functions, and no usable GPU. Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

struct CUstream_st;  // cudaStream_t

namespace vfm {

/// Whether this build has the CUDA versions of the ops.
inline constexpr bool kHaveCuda = VFM_HAVE_CUDA;

/// "cpu" or "cuda"; throws Error{usage} for anything else.
Device parse_device(std::string_view name);
std::string_view device_name(Device device);

/// What the option --device asks for: "cpu", "cuda", or "auto", which is cuda where there is a
/// usable GPU. Says with log_info which it is. Throws Error{usage} for another name, and, saying
/// why, for "cuda" without a usable GPU.
Device choose_device(std::string_view name);

/// Empty if this process can compute on a GPU, else why it cannot ("built without CUDA", "no NVIDIA
/// driver", ...). Asks the driver once.
std::string why_no_gpu();
/// The GPUs that this process sees; 0 where why_no_gpu() has a reason.
int gpu_count();
/// Chooses the GPU of this process, before anything was put on it: ranks of one machine take one
/// each. Throws Error if there are not that many.
void use_gpu(int index);
/// The runtime's version, and the GPU or why there is none: "runtime 13.0; no usable GPU: ...". For
/// people.
std::string describe_cuda();
/// "NVIDIA H200, 139.8 GiB, compute capability 9.0". Throws Error without a GPU.
std::string describe_gpu();
/// A name that no other GPU anywhere has, "GPU-5e6b...", as nvidia-smi has it. Throws Error without
/// a GPU.
std::string gpu_uuid();
/// A GPU that this process sees, as CUDA numbers them.
struct GpuFacts {
  std::string name, uuid;  ///< "NVIDIA H200"; as gpu_uuid()
  std::size_t memory = 0;  ///< all of it, in bytes
};
/// None where why_no_gpu() has a reason. Nothing is put on them.
std::vector<GpuFacts> list_gpus();
/// What the data sheet of a GPU, named as by describe_gpu(), says of dense products of bf16, in
/// TFLOP/s; 0 for models that are not known here.
double peak_tflops(std::string_view gpu);
/// That of this process's GPU. Throws Error without one.
inline double gpu_peak_tflops() {
  return peak_tflops(describe_gpu());
}
/// Memory of the GPU that nobody uses, and all of it, in bytes.
struct GpuMemory {
  std::size_t free = 0, total = 0;
};
GpuMemory gpu_memory();

/// What this process has of it: tensors, uploads (tensor/upload.h), and all that recordings keep
/// (tensor/gpu_graph.h). The peak counts the most of the uploads as if it were at the same time.
/// Zeros in a build without CUDA.
MemoryStats cuda_memory();
/// Forgets the peak: from now on it is what is in use now.
void reset_cuda_peak();

/// One thread at a time drives the GPU: where several may, each holds this while it does, also
/// twice. For the CPU the lock holds nothing.
using DeviceTurn = std::unique_lock<std::recursive_mutex>;
DeviceTurn take_turn(Device device);

CUstream_st* compute_stream();
/// Waits until everything queued is done; errors of kernels appear here at the latest.
void synchronize_gpu();

/// Copies between or within devices, after what was queued before. From the GPU to the CPU it
/// waits; from the CPU to the GPU the source may be changed at return.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device,
                std::size_t bytes);
void zero_bytes(void* at, Device device, std::size_t bytes);
/// Copies `rows` rows of `bytes` each, whose first bytes are a stride apart, on one device.
void copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
               std::size_t bytes, std::int64_t rows, Device device);

/// A copy of `values` on the GPU, as bytes: a kernel's lists.
template <class T>
Tensor upload(const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  return Tensor::borrow(values.data(), {bytes}, DType::u8, nullptr).to(Device::cuda);
}

/// For tensor.cc: at least `bytes` bytes on the GPU, reused in stream order.
std::shared_ptr<void> allocate_gpu(std::size_t bytes);

/// For device.cc: the same where the GPU has a part in it.
void copy_bytes_gpu(void* to, Device to_device, const void* from, Device from_device,
                    std::size_t bytes);
void zero_bytes_gpu(void* at, std::size_t bytes);
void copy_rows_gpu(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                   std::size_t bytes, std::int64_t rows);

/// For tensor.cc: a copy that belongs to what the GPU is recording (tensor/gpu_graph.h); undefined
/// while nothing is recorded.
Tensor recorded_constant(const Tensor& host);

/// For tensor.cc: between f32 and bf16.
void convert_gpu(const Tensor& from, const Tensor& to);

/// A failure of the GPU or its driver, not of the input that was worked on: jobs that record a bad
/// input and go on let this one end the run.
class GpuError : public Error {
 public:
  explicit GpuError(const std::string& message) : Error(message, ErrorKind::device) {}
};

/// Throws GpuError{what and why} if `status`, a cudaError_t, is not success.
void check_gpu(int status, const char* what);

}  // namespace vfm
