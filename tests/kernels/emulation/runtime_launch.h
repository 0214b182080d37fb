// CUDA's runtime header for the emulation: kernels and what is asked of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>

#include "emulation.h"
#include "runtime_types.h"
#include "streams.h"

template <class F>
cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
struct cudaFuncAttributes {
  int binaryVersion;
};
// The emulation has every instruction that it has a function for.
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F*) {
  attributes->binaryVersion = 90;
  return cudaSuccess;
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
template <class... Expected, class... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...),
                               Actual&&... arguments) {
  // As they are now: the work may be done later, and more than once.
  const std::tuple<Expected...> values{Expected(arguments)...};
  return vfm::emulation::submit(
      config->stream,
      [launch = *config, kernel, values] {
        auto* const function = kernel;  // on the stack, as what the threads find it by
        const void* const at = &values;
        vfm::emulation::run({reinterpret_cast<const void*>(kernel),
                             launch.gridDim,
                             launch.blockDim,
                             launch.dynamicSmemBytes,
                             {static_cast<unsigned char*>(const_cast<void*>(at)), sizeof values}},
                            [&] { std::apply(function, values); });
      },
      true);
}
