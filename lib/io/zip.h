// Finds the uncompressed members of a zip archive in memory, for PyTorch's checkpoints. Archives in
// several pieces are not supported. Checksums are not verified. Source: PKWARE APPNOTE.TXT 6.3,
// sections 4.3 and 4.5.3 (zip64).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace vfm::io {

using ZipMembers = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// Returns a map from each member's name to the member's part of `bytes`. The map has no compressed
/// or encrypted members. Throws Error, which names `what`, for an invalid archive and for a
/// repeated member. Pure; fuzzed.
ZipMembers parse_zip(std::span<const std::byte> bytes, std::string_view what);

bool looks_like_zip(std::span<const std::byte> bytes);

}  // namespace vfm::io
