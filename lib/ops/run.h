// Running the kernels of an op (ops/kernel.h) on a device: the one place that chooses.
//
// On Device::meta none runs: what it would do is noted (tensor/meta.h). So each call says what its
// kernel touches, and where that is something, what it computes and how much scratch it has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "tensor/device.h"
#include "tensor/kernel_log.h"
#include "tensor/meta.h"

namespace vfm::ops {

/// Where a kernel runs, and its work.
struct Touching {
  /// A kernel that reads or writes these tensors (one that is overwritten is named twice, an
  /// undefined one is nothing), all on one device. Lists of what goes where are too little to
  /// count.
  template <class... Others>
  explicit Touching(const Tensor& first, const Others&... others)
      : Touching(Touching(first.device()).and_of(first, others...)) {}
  Touching(Device where, const Work& what = {}) : device(where), work(what) {}  // NOLINT

  /// And these tensors.
  template <class... Tensors>
  Touching and_of(const Tensors&... tensors) const {
    Touching more = *this;
    if (device != Device::meta) return more;
    more.work.bytes += static_cast<double>((tensors.bytes() + ...));
    // An undefined tensor is of f32.
    if (((tensors.dtype() == DType::bf16) || ...)) more.work.type = DType::bf16;
    return more;
  }
  /// And so many columns of a matrix, or none if it is undefined.
  Touching columns(const Tensor& matrix, std::int64_t count) const {
    Touching more = *this;
    if (device != Device::meta || !matrix.defined()) return more;
    more.work.bytes += static_cast<double>(matrix.size(0)) * static_cast<double>(count) *
                       static_cast<double>(dtype_size(matrix.dtype()));
    if (matrix.dtype() == DType::bf16) more.work.type = DType::bf16;
    return more;
  }
  /// Its time is that of another kind of work than of elementwise kernels: of operands of `type`.
  Touching kind(WorkKind kind, DType type) const {
    Touching more = *this;
    more.work.kind = kind;
    more.work.type = type;
    return more;
  }
  /// Products: `m` x `n` elements, each a sum of `k`.
  Touching products(double m, double n, double k) const {
    Touching more = *this;
    more.work.flops += 2 * m * n * k;
    return more;
  }
  /// Floats that the CPU's version has for itself: a function that the one who makes them asks too.
  template <class Floats>
  Touching cpu_scratch(Floats floats) const {
    Touching more = *this;
    if (device == Device::meta && layout_device(device) == Device::cpu)
      more.work.scratch += static_cast<std::size_t>(floats()) * sizeof(float);
    return more;
  }

  /// Bytes that the GPU's version has for itself.
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

/// Calls function(...) of the namespace of the device: cuda:: or cpu::. `what` is a Touching, or a
/// Device where nothing is known of the work. In a build without CUDA there are no tensors on a
/// GPU, and nothing of cuda:: is needed.
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

/// The same of a kernel that answers, which is `otherwise` where none runs.
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
