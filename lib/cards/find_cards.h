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

/// The cards of a choice, in its order: {"all"} are all GPUs, {"0", "2"} those that CUDA numbers
/// so, {"cpu", "cpu"} two workers on the processor. A GPU's memory is all that it has, a worker's
/// on the processor all of the machine. Throws Error{usage}: a word that is none of these; GPUs and
/// cpu together, which would not compute the same; a GPU twice; one that is not there, with a list
/// of those that are.
std::vector<Card> find_cards(const std::vector<std::string>& devices);

/// What cards of find_cards() compute as.
Device device_of(const std::vector<Card>& cards);

}  // namespace vfm::cards
