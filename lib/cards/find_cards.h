// Which cards --devices means: GPUs of this machine, or the processor as so many workers.
//
// Whoever asks never touches a GPU: a process of its own (cards/worker.h) lists them and ends.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/card_board.h"
#include "tensor/tensor.h"

namespace vfm::cards {

/// The service that lists GPUs, which every program with workers has.
inline constexpr std::string_view kGpuList = "gpus";

/// The cards of a choice, in its order: {"all"} are all GPUs, {"0", "2"} those that CUDA numbers so
/// (of those that CUDA_VISIBLE_DEVICES leaves, in the order that it names), {"cpu", "cpu"} two
/// workers on the processor. A GPU's memory is all that it has, a worker's on the processor all of
/// the machine. Throws Error{usage}: a word that is none of these; GPUs and cpu together, which
/// would not compute the same; a GPU twice; and what choose_gpus() refuses.
std::vector<Card> find_cards(const std::vector<std::string>& devices);

/// GPUs as CUDA lists them.
struct FoundGpus {
  std::string why_none;
  std::vector<Card> cards;          ///< by their UUIDs, which no two of any machines share
  std::vector<std::string> models;  ///< of these: "NVIDIA H200"
};
/// Those of find_cards(). Throws Error{usage}: one that is not there, with a list of those that
/// are; an instance of a GPU (MIG), as CUDA shows a process one of these, and never another.
std::vector<Card> choose_gpus(const std::vector<std::string>& devices, const FoundGpus& found);

/// What cards of find_cards() compute as.
Device device_of(const std::vector<Card>& cards);

}  // namespace vfm::cards
