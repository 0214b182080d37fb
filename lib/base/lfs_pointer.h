// Git LFS pointers: lines of text that stand for a file until it is fetched. A folder of weights or
// videos cloned without LFS is full of them, and readers take the files for damaged.
// Source: Git LFS, docs/spec.md: the first line, and that a pointer has less than 1024 bytes.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace vfm {

/// A pointer has at most this many bytes.
inline constexpr std::size_t kMostLfsPointer = 1023;

/// Throws Error{missing}, naming the file, if `head`, its first bytes or all, begins a pointer.
void refuse_lfs_pointer(std::string_view name, std::string_view head);

}  // namespace vfm
