// Refuses Git LFS pointers, which are lines of text that stand for a file that is not yet fetched.
// Source: Git LFS, docs/spec.md.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace vfm {

/// Size limit of a pointer in bytes.
inline constexpr std::size_t kMostLfsPointer = 1023;

/// `head` has the first bytes of the file `name`. If `head` is a pointer or the beginning of a
/// pointer, throws Error{missing}, which names the file.
void refuse_lfs_pointer(std::string_view name, std::string_view head);

}  // namespace vfm
