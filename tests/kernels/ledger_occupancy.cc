// Blocks that a multiprocessor holds, by NVIDIA's own calculation (cuda_occupancy.h of the CUDA
// toolkit), against the ledger's. Standard input: a line a kernel, "NAME ARCHITECTURE REGISTERS
// THREADS STATIC DYNAMIC BLOCKS". What differs goes to standard output, then how many agreed.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_occupancy.h>

#include <iostream>
#include <string>

int main() {
  std::string name, architecture;
  int registers = 0, threads = 0, fixed = 0, dynamic = 0, blocks = 0, same = 0;
  while (std::cin >> name >> architecture >> registers >> threads >> fixed >> dynamic >> blocks) {
    const bool hopper = architecture != "sm_80";
    cudaOccDeviceProp gpu{};
    gpu.computeMajor = hopper ? 9 : 8;
    gpu.maxThreadsPerBlock = 1024;
    gpu.maxThreadsPerMultiprocessor = 2048;
    gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
    gpu.warpSize = 32;
    gpu.sharedMemPerBlock = 48 << 10;
    gpu.sharedMemPerMultiprocessor = (hopper ? 228 : 164) << 10;
    gpu.sharedMemPerBlockOptin = (hopper ? 227 : 163) << 10;
    gpu.reservedSharedMemPerBlock = 1 << 10;
    gpu.numSms = 1;
    cudaOccFuncAttributes kernel{};
    kernel.maxThreadsPerBlock = threads;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = static_cast<std::size_t>(fixed);
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = static_cast<std::size_t>(dynamic);
    cudaOccDeviceState state{};
    state.cacheConfig = CACHE_PREFER_SHARED;
    state.carveoutConfig = 100;
    cudaOccResult result{};
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
        &result, &gpu, &kernel, &state, threads, static_cast<std::size_t>(dynamic));
    if (error == CUDA_OCC_SUCCESS && result.activeBlocksPerMultiprocessor == blocks)
      ++same;
    else
      std::cout << name << " for " << architecture << ": " << blocks << " blocks, "
                << result.activeBlocksPerMultiprocessor << " by NVIDIA (error " << error << ")\n";
  }
  std::cout << same << " agree\n";
}
