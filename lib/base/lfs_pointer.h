// What Git LFS leaves in a file's place until it is fetched: some lines of text that name it. A
// folder of weights or videos that was cloned without LFS is full of such, and what they stand for
// is damaged to whoever reads them.
// Source: Git LFS, docs/spec.md: the first line, and that a pointer has less than 1024 bytes.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace vfm {

/// A file with more bytes is none.
inline constexpr std::size_t kMostLfsPointer = 1023;

/// Throws Error of cause missing, naming the file, if `head`, its first bytes or all, begins a
/// pointer.
void refuse_lfs_pointer(std::string_view name, std::string_view head);

}  // namespace vfm
