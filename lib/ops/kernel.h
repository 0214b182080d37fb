// Macros with which x_kernels.h declares the kernels of an op x.
//
// A kernel is the part of an op that computes. It is a function with a version for each device, of
// the same name and arguments, in the namespace of the device: cpu:: and cuda:: (x_cuda.cc, or that
// of the folder). x.cc checks the arguments, makes the results and calls the kernel with VFM_RUN
// (ops/run.h). The CPU version stands in x.cc, too, if it is compiled once, and in x_cpu.cc if it
// is compiled for each instruction set or with oneDNN. Element types are given as a DType; kernels
// have f32 and bf16.
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

/// Declares a kernel whose x_cpu.cc is compiled once for each instruction set, into a namespace of
/// its name. cpu::name calls the best version that the machine supports.
#define VFM_ISA_KERNEL(result, name, ...) \
  namespace cuda {                        \
  result name(__VA_ARGS__);               \
  }                                       \
  VFM_CPU_KERNEL(result, name, __VA_ARGS__)

/// Declares a kernel of the CPU alone, compiled once for each instruction set.
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
