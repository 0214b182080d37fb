// The members of a zip archive that are stored as they are, in place: what PyTorch's checkpoints
// are. Not here: compressed or encrypted members, archives in several pieces, checksums (a
// checkpoint is mapped, its numbers are read when they are needed).
// Source: PKWARE APPNOTE.TXT 6.3, sections 4.3 and 4.5.3 (zip64).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace vfm::io {

using ZipMembers = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// Member name -> its bytes, which lie in `bytes`. Compressed and encrypted members are left out
/// (PyTorch compresses the source of scripted modules only). Throws Error, naming `what`, on
/// anything that does not fit together, and for a member that is there twice. Pure; fuzzed.
ZipMembers parse_zip(std::span<const std::byte> bytes, std::string_view what);

/// Whether the bytes begin as a zip archive does.
bool looks_like_zip(std::span<const std::byte> bytes);

}  // namespace vfm::io
