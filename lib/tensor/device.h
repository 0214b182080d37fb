// The devices of this process: the CPU, and one GPU.
//
// All work on the GPU is queued on one compute stream, in the order of the calls. The host waits
// only where it reads results: at a copy to the host and in synchronize_gpu(). tensor/upload.h has
// a second stream for data, and tensor/graph_cache.h queues recorded work as a whole. A build
// without CUDA has the same functions, and no usable GPU. Thread-safety: one thread drives the GPU.
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

/// Parses "cpu" or "cuda". Throws Error{usage} for anything else.
Device parse_device(std::string_view name);
std::string_view device_name(Device device);

/// Returns the device for the option --device: "cpu", "cuda", or "auto", which is cuda if there is
/// a usable GPU. Logs the choice with log_info. Throws Error{usage} for another name, and for
/// "cuda" without a usable GPU, with the reason.
Device choose_device(std::string_view name);

/// Returns why this process cannot compute on a GPU ("built without CUDA", "no NVIDIA driver",
/// ...). Empty if it can. Asks the driver once.
std::string why_no_gpu();
/// Returns the number of GPUs that this process sees; 0 if why_no_gpu() has a reason.
int gpu_count();
/// Chooses the GPU of this process. Call before anything is put on a GPU. Each rank of a machine
/// takes a GPU of its own. Throws Error if there are not that many.
void use_gpu(int index);
/// Returns a text for people: the runtime's version, and the GPU or why there is none: "runtime
/// 13.0; no usable GPU: ...".
std::string describe_cuda();
/// Returns a text such as "NVIDIA H200, 139.8 GiB, compute capability 9.0". Throws Error without a
/// GPU.
std::string describe_gpu();
/// Returns the GPU's UUID, which is unique among all GPUs, as nvidia-smi prints it: "GPU-5e6b...".
/// Throws Error without a GPU.
std::string gpu_uuid();
/// A GPU that this process sees.
struct GpuFacts {
  std::string name, uuid;  ///< "NVIDIA H200"; as from gpu_uuid()
  std::size_t memory = 0;  ///< total memory in bytes
};
/// Lists the GPUs in CUDA's order; empty if why_no_gpu() has a reason. Allocates nothing on the
/// GPUs.
std::vector<GpuFacts> list_gpus();
/// Free and total memory of the GPU, in bytes.
struct GpuMemory {
  std::size_t free = 0, total = 0;
};
GpuMemory gpu_memory();

/// Returns the GPU memory that this process uses: tensors, uploads (tensor/upload.h), and the
/// memory of recordings (tensor/gpu_graph.h). The peak is an upper bound: it adds the peak of the
/// uploads to the peak of the rest. Zeros in a build without CUDA.
MemoryStats cuda_memory();
/// Starts the peak again from the memory in use now.
void reset_cuda_peak();

/// A lock that a thread holds while it drives the GPU, for programs in which several threads may.
/// One thread may hold it several times. For the CPU the lock holds nothing.
using DeviceTurn = std::unique_lock<std::recursive_mutex>;
DeviceTurn take_turn(Device device);

CUstream_st* compute_stream();
/// Waits until everything queued is done. Errors of kernels are thrown here at the latest.
void synchronize_gpu();

/// Copies between or within devices, after what was queued before. A copy from the GPU to the CPU
/// waits until it is done. After a copy from the CPU to the GPU returns, the source may be changed.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device,
                std::size_t bytes);
void zero_bytes(void* at, Device device, std::size_t bytes);
/// Copies `rows` rows of `bytes` bytes each on one device. The strides between first bytes of rows
/// are in bytes.
void copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
               std::size_t bytes, std::int64_t rows, Device device);

/// Returns a copy of `values` on the GPU as a tensor of bytes, for the lists of kernels.
template <class T>
Tensor upload(const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  return Tensor::borrow(values.data(), {bytes}, DType::u8, nullptr).to(Device::cuda);
}

/// For tensor.cc: returns at least `bytes` bytes on the GPU, reused in stream order.
std::shared_ptr<void> allocate_gpu(std::size_t bytes);

/// For device.cc: the same copies if a GPU takes part.
void copy_bytes_gpu(void* to, Device to_device, const void* from, Device from_device,
                    std::size_t bytes);
void zero_bytes_gpu(void* at, std::size_t bytes);
void copy_rows_gpu(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                   std::size_t bytes, std::int64_t rows);

/// For tensor.cc: returns a copy of `host` that belongs to what the GPU is recording
/// (tensor/gpu_graph.h). Undefined if nothing is being recorded.
Tensor recorded_constant(const Tensor& host);

/// For tensor.cc: converts between f32 and bf16.
void convert_gpu(const Tensor& from, const Tensor& to);

/// A failure of the GPU or its driver, not of the input that was worked on. Jobs that record a bad
/// input and go on end at this error.
class GpuError : public Error {
 public:
  explicit GpuError(const std::string& message) : Error(message, ErrorKind::device) {}
};

/// Throws GpuError with `what` and the reason if `status`, a cudaError_t, is not success.
void check_gpu(int status, const char* what);

}  // namespace vfm
