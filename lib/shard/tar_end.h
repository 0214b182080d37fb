// Finds out whether a tar is cut off, or has data after its end. Only lib/shard uses this header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/file.h"

namespace vfm::shard {

/// Returns an error message if `tar`, an io::File or a TarFile, has data in the 16 MiB after its
/// end. `end` is the offset of the end, and `name` the tar's name in the message. Returns "" if
/// only zeros follow, which are padding.
template <class Tar>
std::string behind_end(const Tar& tar, std::uint64_t end, const std::string& name);

/// The end of a tar according to its index. If a tar was cut off between two members, only the
/// index shows it.
enum class TarEnding {
  whole,          ///< The tar is whole, or has end blocks, or has no index.
  behind_sample,  ///< The tar is cut off after a sample.
  within_sample   ///< The tar is cut off within a sample.
};
/// Checks the end of a `tar` whose readable part ends at the offset `end`.
TarEnding ending_by_index(const io::File& tar, std::uint64_t end);

}  // namespace vfm::shard
