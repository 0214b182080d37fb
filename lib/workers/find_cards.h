// Finds the devices ("cards") that --device names: GPUs of this machine, or the processor as one or
// more workers.
//
// The calling process never touches a GPU: a separate process (workers/worker.h) lists them, and
// ends. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "share/card_board.h"
#include "tensor/tensor.h"

namespace vfm::workers {

/// Opens the service that lists GPUs, which every program with workers has.
inline constexpr std::string_view kGpuList = "gpus";

/// Returns the cards that `devices` name, in this order. {"all"} are all GPUs; {"0", "2"} are GPUs
/// by CUDA's numbers, which count in CUDA_VISIBLE_DEVICES; {"cpu", "cpu"} are two workers on the
/// processor. Card::memory is all memory of the GPU, or of the machine for a worker on the
/// processor. Throws Error{usage} for any other word, for GPUs and cpu together (results would
/// differ), for a GPU twice, and for what choose_gpus() refuses.
std::vector<share::Card> find_cards(const std::vector<std::string>& devices);

/// GPUs as CUDA lists them.
struct FoundGpus {
  std::string why_none;
  std::vector<share::Card> cards;   ///< named by globally unique UUIDs
  std::vector<std::string> models;  ///< of `cards`: "NVIDIA H200"
};
/// Chooses the GPUs of find_cards(). Throws Error{usage} for a missing GPU, with a list of the GPUs
/// found, and for a GPU instance (MIG), since CUDA shows a process only one instance.
std::vector<share::Card> choose_gpus(const std::vector<std::string>& devices,
                                     const FoundGpus& found);

/// Returns the kind of device of these cards.
Device device_of(const std::vector<share::Card>& cards);

}  // namespace vfm::workers
