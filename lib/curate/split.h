// Splits a dataset into parts, such as train and validation, with no source in two parts.
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

/// Parses up to kMostParts parts, such as "train=0.95,val=0.05". Names consist of lower-case
/// letters, digits, '_' and '-'; shares are positive and sum to 1. Throws Error{usage}.
std::vector<SplitPart> parse_split(std::string_view text);

/// A source: samples that must stay together.
struct SplitSource {
  std::uint64_t key = 0;  ///< unique to the source
  std::uint64_t samples = 0;
  /// The index of the source's present part; no value if the source is new.
  std::optional<std::size_t> part = std::nullopt;
};

inline constexpr std::size_t kMostParts = 255;

/// A random number (draw) for a source. Sources are assigned by rising draw, then key.
std::uint32_t split_draw(std::uint64_t seed, std::uint64_t key);

/// Calls `use` for each source in order of draws. `number` is the source's index in `part_of`.
/// assign_split() calls it several times.
using SplitWalk = std::function<void(
    const std::function<void(std::size_t number, const SplitSource& source)>& use)>;

/// Writes the index of each source's part to part_of[number]; other elements stay. Sources with a
/// part keep that part. Each new source, in order of draws, is added to the part that then lacks
/// most samples. Then, while a part is empty and another part has at least two new sources, the
/// part with most samples gives its smallest new source to the empty part. No part is empty if
/// there are at least as many new sources as parts.
void assign_split(const SplitWalk& walk, const std::vector<SplitPart>& parts,
                  std::span<std::uint8_t> part_of);

}  // namespace vfm::curate
