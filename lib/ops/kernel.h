// How the header of an op's kernels, x_kernels.h, declares them.
//
// A kernel is the part of an op that computes: a function that has a version for each device, of
// one name and of the same arguments, in the namespace of the device: cpu:: (x_cpu.cc) and cuda::
// (x_cuda.cc). Its arguments have been checked, and what it writes to has been made, by x.cc, which
// calls it with VFM_RUN (ops/run.h). An element type is a DType; f32 and bf16 are what there is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/isa.h"
#include "tensor/dtype.h"

/// Declares `result name(parameters)` for each device.
#define VFM_KERNEL(result, name, ...) \
  namespace cpu {                     \
  result name(__VA_ARGS__);           \
  }                                   \
  namespace cuda {                    \
  result name(__VA_ARGS__);           \
  }

/// The same where x_cpu.cc is compiled once for each instruction set, into the namespace of its
/// name: cpu::name calls the best one.
#define VFM_ISA_KERNEL(result, name, ...) \
  namespace cuda {                        \
  result name(__VA_ARGS__);               \
  }                                       \
  VFM_CPU_KERNEL(result, name, __VA_ARGS__)

/// The same where there is no version for a GPU: for parts of what runs on the CPU.
#define VFM_CPU_KERNEL(result, name, ...)                                                \
  namespace base {                                                                       \
  result name(__VA_ARGS__);                                                              \
  }                                                                                      \
  namespace avx2 {                                                                       \
  result name(__VA_ARGS__);                                                              \
  }                                                                                      \
  namespace avx512 {                                                                     \
  result name(__VA_ARGS__);                                                              \
  }                                                                                      \
  namespace cpu {                                                                        \
  template <class... Arguments>                                                          \
  result name(const Arguments&... arguments) {                                           \
    if (::vfm::ops::isa() >= ::vfm::ops::Isa::avx512) return avx512::name(arguments...); \
    if (::vfm::ops::isa() == ::vfm::ops::Isa::avx2) return avx2::name(arguments...);     \
    return base::name(arguments...);                                                     \
  }                                                                                      \
  }
