// Finds the GPUs that --device names. The processor is regarded as a GPU if --device names it for a
// worker.
//
// A separate process (workers/worker.h) lists the GPUs, so the calling process never uses a GPU.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "share/gpu_board.h"
#include "tensor/tensor.h"

namespace vfm::workers {

/// Name of the service that lists GPUs.
inline constexpr std::string_view kGpuList = "gpus";

/// Returns the GPUs that `devices` name, in the order of `devices`. {"all"} means all GPUs. {"0",
/// "2"} means the GPUs with CUDA's numbers 0 and 2 within CUDA_VISIBLE_DEVICES. {"cpu", "cpu"}
/// means two workers on the processor. SharedGpu::memory is the GPU's whole memory, or for cpu the
/// machine's. Throws Error{usage} for an unknown word, for a GPU that is named twice, and for a mix
/// of GPUs and cpu. Also throws what choose_gpus() throws.
std::vector<share::SharedGpu> find_gpus(const std::vector<std::string>& devices);

struct FoundGpus {
  std::string why_none;
  std::vector<share::SharedGpu> gpus;  ///< GPUs named by globally unique UUIDs.
  std::vector<std::string> models;     ///< Models of `gpus`, such as "NVIDIA H200".
};
/// Returns the GPUs of `found` that `devices` name. Throws Error{usage}, which lists the GPUs
/// found, if a GPU is missing. Also throws Error{usage} for a GPU instance (MIG), since CUDA shows
/// only one GPU instance to a process.
std::vector<share::SharedGpu> choose_gpus(const std::vector<std::string>& devices,
                                          const FoundGpus& found);

/// Returns Device::cuda if `gpus` are GPUs, and Device::cpu if `gpus` are the processor.
Device device_of(const std::vector<share::SharedGpu>& gpus);

}  // namespace vfm::workers
