// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "common/modulate.cuh"
#include "modulate.h"

namespace vfm::kernels {
namespace {

// One block a token.
template <class T, int kQuads, bool kWide>
__global__ void __launch_bounds__(kModulateThreads) modulate_kernel(const ModulateForward c) {
  __shared__ float shared[kModulateThreads / 32];
  T* const normed = static_cast<T*>(c.normed) + std::int64_t{blockIdx.x} * c.width;
  modulate_token<T, kQuads, kWide>(c, c.normed != nullptr, shared,
                                   [&](int at, float4 y) { store4(normed + at, y); });
}

template <class T>
int dispatch(const ModulateForward& c, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(c.tokens));
  return for_row(c.width, [&](auto cut) {
    return launch(modulate_kernel<T, cut.kQuads, cut.kWide>, blocks, kModulateThreads, 0, stream,
                  c);
  });
}

}  // namespace

int modulate_forward(const ModulateForward& call, CUstream_st* stream) {
  if (call.tokens == 0) return cudaSuccess;
  if (!modulate_takes(call)) return cudaErrorInvalidValue;
  return call.type == Type::bf16 ? dispatch<__nv_bfloat16>(call, stream)
                                 : dispatch<float>(call, stream);
}

}  // namespace vfm::kernels
