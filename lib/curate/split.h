// Cutting a dataset into train and validation so that no source stands in both.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::curate {

struct SplitPart {
  std::string name;
  double share = 1;  ///< of all samples
};

/// Parses "train=0.95,val=0.05": names of lower-case letters, digits, '_' and '-', shares that are
/// positive and sum to 1. Throws Error{usage}.
std::vector<SplitPart> parse_split(std::string_view text);

/// A source: everything that must stay together.
struct SplitSource {
  std::uint64_t key = 0;  ///< names it: two sources have two keys
  std::uint64_t samples = 0;
  /// Where it stands already, an index into the parts; nothing: it is to be shared out.
  std::optional<std::size_t> part = std::nullopt;
};

/// The part of each source, an index into `parts`. Those that have one keep it. The others are
/// walked in an order drawn by Random(seed, Purpose::split, 0, key), each going where most samples
/// are still wanted; then, while a part is empty and another has two sources or more, the part with
/// most samples gives the smallest of these to the empty one. So at least as many new sources as
/// parts leave none empty. The result does not depend on the order of `sources`.
std::vector<std::size_t> assign_split(const std::vector<SplitSource>& sources,
                                      const std::vector<SplitPart>& parts, std::uint64_t seed);

}  // namespace vfm::curate
