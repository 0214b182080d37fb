// Cutting a dataset into train and validation so that no source stands in both.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::curate {

struct SplitPart {
  std::string name;
  double share = 1;  ///< of all samples
};

/// Parses "train=0.95,val=0.05": names of lower-case letters, digits, '_' and '-', shares that are
/// positive and sum to 1; at most kMostParts. Throws Error{usage}.
std::vector<SplitPart> parse_split(std::string_view text);

/// A source: everything that must stay together.
struct SplitSource {
  std::uint64_t key = 0;  ///< names it: two sources have two keys
  std::uint64_t samples = 0;
  /// Where it stands already, an index into the parts; nothing: it is to be shared out.
  std::optional<std::size_t> part = std::nullopt;
};

/// Most parts of a split.
inline constexpr std::size_t kMostParts = 255;

/// What a source draws: they are shared out in the order of this, then of their keys.
std::uint32_t split_draw(std::uint64_t seed, std::uint64_t key);

/// Calls its argument with each source in that order, and with a number of the source, below the
/// size of `part_of`. Called several times.
using SplitWalk = std::function<void(
    const std::function<void(std::size_t number, const SplitSource& source)>& use)>;

/// The part of each source, an index into `parts`, to `part_of` at its number; what else stands
/// there stays. Those that have one keep it. The others are walked in the order that they drew,
/// each going where most samples are still wanted; then, while a part is empty and another has two
/// sources or more, the part with most samples gives the smallest of these to the empty one. So at
/// least as many new sources as parts leave none empty.
void assign_split(const SplitWalk& walk, const std::vector<SplitPart>& parts,
                  std::span<std::uint8_t> part_of);

}  // namespace vfm::curate
