// Inside lib/shard only: checks what follows the end of a tar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/file.h"

namespace vfm::shard {

/// Why `tar` does not really end at `end`, where its end blocks begin; empty if it does. Any number
/// of zeros is allowed, since programs pad; the first 16 MiB are checked.
std::string behind_end(const io::File& tar, std::uint64_t end, const std::string& name);

/// The end of a tar according to its index. Some programs write no end blocks: then the tar itself
/// does not show a cut between two members.
enum class TarEnding {
  whole,          ///< or there are end blocks, or no index
  behind_sample,  ///< it was cut there
  within_sample   ///< the last sample lacks members
};
/// Checks a `tar` whose readable part ends at `end`.
TarEnding ending_by_index(const io::File& tar, std::uint64_t end);

}  // namespace vfm::shard
