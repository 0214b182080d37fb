// Refuses Git LFS pointers: lines of text that replace a file until it is fetched. Without this
// check such files would look damaged.
// Source: Git LFS, docs/spec.md (the first line; less than 1024 bytes).
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace vfm {

/// A pointer has at most this many bytes.
inline constexpr std::size_t kMostLfsPointer = 1023;

/// Throws Error{missing}, which names the file, if `head`, the first bytes of the file, is or
/// begins a pointer.
void refuse_lfs_pointer(std::string_view name, std::string_view head);

}  // namespace vfm
