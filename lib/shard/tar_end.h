// Inside lib/shard only: what stands behind the end of a tar.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/file.h"

namespace vfm::shard {

/// `tar` ends at `end`, where its end blocks begin: why that is not all of it, or nothing. Zeros
/// are nothing, however many: programs pad. Of those the first 16 MiB are looked at.
std::string behind_end(const io::File& tar, std::uint64_t end, const std::string& name);

/// What the index beside a tar says of its end. Some programs write no end blocks: then the tar
/// itself does not tell where it was cut off between two members.
enum class TarEnding {
  whole,          ///< or there are end blocks, or no index
  behind_sample,  ///< it was cut there
  within_sample   ///< the last sample lacks members
};
/// Of a `tar` in which what can be read ends at `end`.
TarEnding ending_by_index(const io::File& tar, std::uint64_t end);

}  // namespace vfm::shard
