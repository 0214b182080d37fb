// Runs the kernels of an op (ops/kernel.h) on a device. Only these macros choose the device.
//
// On Device::meta no kernel runs; its work is noted instead (tensor/meta.h). Each call therefore
// says which tensors the kernel touches and, if not negligible, its arithmetic and scratch memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/device.h"
#include "tensor/kernel_log.h"
#include "tensor/meta.h"

namespace vfm::ops {

/// The device and the work of a kernel.
struct Touching {
  /// A kernel that reads or writes these tensors, all on one device. Name a tensor twice if the
  /// kernel reads and overwrites it. An undefined tensor counts nothing. Small lists of addresses
  /// or indices need not be named.
  template <class... Others>
  explicit Touching(const Tensor& first, const Others&... others)
      : Touching(Touching(first.device()).and_of(first, others...)) {}
  Touching(Device where, const Work& what = {}) : device(where), work(what) {}  // NOLINT

  /// Adds these tensors.
  template <class... Tensors>
  Touching and_of(const Tensors&... tensors) const {
    Touching more = *this;
    if (device != Device::meta) return more;
    more.work.bytes += static_cast<double>((tensors.bytes() + ...));
    // An undefined tensor has dtype f32.
    if (((tensors.dtype() == DType::bf16) || ...)) more.work.type = DType::bf16;
    return more;
  }
  /// Adds `count` columns of a matrix; nothing if it is undefined.
  Touching columns(const Tensor& matrix, std::int64_t count) const {
    Touching more = *this;
    if (device != Device::meta || !matrix.defined()) return more;
    more.work.bytes += static_cast<double>(matrix.size(0)) * static_cast<double>(count) *
                       static_cast<double>(dtype_size(matrix.dtype()));
    if (matrix.dtype() == DType::bf16) more.work.type = DType::bf16;
    return more;
  }
  /// Sets the kind of work that determines the kernel's time, and the type of its operands. Without
  /// a call the kind is elementwise.
  Touching kind(WorkKind kind, DType type) const {
    Touching more = *this;
    more.work.kind = kind;
    more.work.type = type;
    return more;
  }
  /// Adds a product of `m` x `n` elements, each a sum of `k` terms.
  Touching products(double m, double n, double k) const {
    Touching more = *this;
    more.work.flops += 2 * m * n * k;
    return more;
  }
  /// Adds temporary memory of the CPU version: `floats` returns the number of floats. The kernel
  /// that allocates them should call the same function.
  template <class Floats>
  Touching cpu_scratch(Floats floats) const {
    Touching more = *this;
    if (device == Device::meta && layout_device(device) == Device::cpu)
      more.work.scratch += static_cast<std::size_t>(floats()) * sizeof(float);
    return more;
  }

  /// Adds temporary memory of the GPU version: `bytes` returns the number of bytes.
  template <class Bytes>
  Touching gpu_scratch(Bytes bytes) const {
    Touching more = *this;
    if (device == Device::meta && layout_device(device) == Device::cuda)
      more.work.scratch += static_cast<std::size_t>(bytes());
    return more;
  }

  Device device;
  Work work;
};

}  // namespace vfm::ops

/// Calls cuda::function(...) or cpu::function(...), by the device. `what` is a Touching, or a
/// Device if nothing is known of the work. A build without CUDA has no tensors on a GPU, so it
/// needs no functions of cuda::.
#define VFM_RUN(what, function, ...)                  \
  do {                                                \
    const ::vfm::ops::Touching touching = what;       \
    if (touching.device == ::vfm::Device::meta)       \
      ::vfm::note_work(#function, touching.work);     \
    else if (touching.device == ::vfm::Device::cpu) { \
      const ::vfm::KernelTimer timer(#function);      \
      cpu::function(__VA_ARGS__);                     \
    } else if constexpr (::vfm::kHaveCuda)            \
      cuda::function(__VA_ARGS__);                    \
  } while (false)

/// Like VFM_RUN for a kernel that returns a value; `otherwise` is the value if no kernel runs.
#define VFM_ASK(otherwise, what, function, ...)                                       \
  [&] {                                                                               \
    const ::vfm::ops::Touching touching = what;                                       \
    if (touching.device == ::vfm::Device::cpu) {                                      \
      const ::vfm::KernelTimer timer(#function);                                      \
      return cpu::function(__VA_ARGS__);                                              \
    }                                                                                 \
    if constexpr (::vfm::kHaveCuda)                                                   \
      if (touching.device == ::vfm::Device::cuda) return cuda::function(__VA_ARGS__); \
    ::vfm::note_work(#function, touching.work);                                       \
    return otherwise;                                                                 \
  }()
