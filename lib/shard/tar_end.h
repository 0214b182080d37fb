// Inside lib/shard only: finds out whether a tar is cut off, or has data after its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/file.h"

namespace vfm::shard {

/// Returns a message if `tar` has data after its end, `end`, or "" if only zeros follow, with which
/// programs pad. The first 16 MiB are checked.
std::string behind_end(const io::File& tar, std::uint64_t end, const std::string& name);

/// The end of a tar according to its index. If a program wrote no end blocks, the tar itself does
/// not show that it was cut off between two members.
enum class TarEnding {
  whole,          ///< also if there are end blocks, or no index
  behind_sample,  ///< it was cut off after a sample
  within_sample   ///< the last sample lacks members
};
/// Checks a `tar` whose readable part ends at `end`.
TarEnding ending_by_index(const io::File& tar, std::uint64_t end);

}  // namespace vfm::shard
