// Finds the cards that --device names: GPUs of this machine, or the processor as one or more
// workers.
//
// The calling process never touches a GPU: a separate process (workers/worker.h) lists them and
// ends. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "share/card_board.h"
#include "tensor/tensor.h"

namespace vfm::workers {

/// The service that lists GPUs, which every program with workers has.
inline constexpr std::string_view kGpuList = "gpus";

/// The cards of a choice, in its order: {"all"} are all GPUs, {"0", "2"} those with CUDA's numbers
/// (among those of CUDA_VISIBLE_DEVICES, in its order), {"cpu", "cpu"} two workers on the
/// processor. A GPU's card has all of its memory, a worker on the processor all of the machine's.
/// Throws Error{usage} for another word; GPUs and cpu together, which would not compute the same; a
/// GPU twice; and what choose_gpus() refuses.
std::vector<share::Card> find_cards(const std::vector<std::string>& devices);

/// GPUs as CUDA lists them.
struct FoundGpus {
  std::string why_none;
  std::vector<share::Card> cards;   ///< by their UUIDs, which no two of any machines share
  std::vector<std::string> models;  ///< of these: "NVIDIA H200"
};
/// The GPUs of find_cards(). Throws Error{usage} for a missing one, listing those there; and for a
/// GPU instance (MIG), since CUDA shows a process only one.
std::vector<share::Card> choose_gpus(const std::vector<std::string>& devices,
                                     const FoundGpus& found);

/// The kind of device of the cards of find_cards().
Device device_of(const std::vector<share::Card>& cards);

}  // namespace vfm::workers
