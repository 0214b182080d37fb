// Cutting a dataset into train and validation so that no source is in both.
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
  /// Its present part, an index into the parts; nothing: still to be assigned.
  std::optional<std::size_t> part = std::nullopt;
};

/// Most parts of a split.
inline constexpr std::size_t kMostParts = 255;

/// A source's draw: sources are assigned in order of draws, then of keys.
std::uint32_t split_draw(std::uint64_t seed, std::uint64_t key);

/// Calls its argument with each source in that order, and with a number of the source, below the
/// size of `part_of`. Called several times.
using SplitWalk = std::function<void(
    const std::function<void(std::size_t number, const SplitSource& source)>& use)>;

/// Writes each source's part, an index into `parts`, to `part_of` at its number; other elements
/// stay. Sources with a part keep it. Each other source, in order of draws, goes where most samples
/// are still wanted. Then, while a part is empty and another has two or more of these sources, the
/// part with most samples gives its smallest to the empty one. So if there are at least as many new
/// sources as parts, none is empty.
void assign_split(const SplitWalk& walk, const std::vector<SplitPart>& parts,
                  std::span<std::uint8_t> part_of);

}  // namespace vfm::curate
