// Splits a dataset into parts, such as train and validation. All samples of a source are in the
// same part.
// Pure functions. Thread-safety: any thread.
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
  double share = 1;  ///< Share of all samples.
};

/// Parses up to kMostParts parts, such as "train=0.95,val=0.05". Names consist of lower-case
/// letters, digits, '_' and '-'. Shares are positive, and their sum is 1. Throws Error{usage}.
std::vector<SplitPart> parse_split(std::string_view text);

/// A source of samples that must be in the same part.
struct SplitSource {
  std::uint64_t key = 0;  ///< Unique key of the source.
  std::uint64_t samples = 0;
  /// The index of the source's part, or nullopt if the source is new.
  std::optional<std::size_t> part = std::nullopt;
};

inline constexpr std::size_t kMostParts = 255;

/// Returns a random number (draw) for a source. Sources are assigned in order of draw, then key.
std::uint32_t split_draw(std::uint64_t seed, std::uint64_t key);

/// A function that calls `use` for each source, in order of draws. `number` is the index of the
/// source in `part_of`, an argument of assign_split(). assign_split() calls the function several
/// times.
using SplitWalk = std::function<void(
    const std::function<void(std::size_t number, const SplitSource& source)>& use)>;

/// Writes the index of each source's part to part_of[number]. A source that has a part keeps the
/// part. Each new source, in order of draws, is added to the part that lacks the most samples.
/// Afterwards, each empty part gets a new source from a part with several sources. If there are at
/// least as many new sources as parts, no part is empty.
void assign_split(const SplitWalk& walk, const std::vector<SplitPart>& parts,
                  std::span<std::uint8_t> part_of);

}  // namespace vfm::curate
