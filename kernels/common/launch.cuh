// Launches a kernel on a stream, and checks alignment to choose a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace vfm::kernels {

/// Dynamic shared memory that a kernel may use without a request for more.
inline constexpr std::size_t kPlainShared = 48 << 10;

/// Whether 16 bytes may be read at once from all pointers. Null counts as aligned.
template <class... Types>
__host__ __device__ bool aligned_to_16(const Types*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

/// Returns the launch's error or cudaSuccess; a grid without blocks succeeds.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, int threads, std::size_t shared,
                   cudaStream_t stream, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return cudaSuccess;
  if (shared > kPlainShared) {
    const cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (status != cudaSuccess) return status;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

/// launch() with kShared bytes of dynamic shared memory. A kernel's object does not record that
/// size: tests/kernels/ledger reads it from the name of this function, which is therefore not
/// inlined.
template <auto kKernel, std::size_t kShared, class... Arguments>
[[gnu::noinline]] cudaError_t launch_shared(dim3 grid, int threads, cudaStream_t stream,
                                            const Arguments&... arguments) {
  return launch(kKernel, grid, threads, kShared, stream, arguments...);
}

}  // namespace vfm::kernels
