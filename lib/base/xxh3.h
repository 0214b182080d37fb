// XXH3 hashes of short text, used as 64-bit names of parameters, samples and words.
//
// Names are the same also in builds without libxxhash, since this code needs no library. It is not
// vectorised; use base/hash.h for files and streams.
// Source: Collet, "XXH3 specification" (xxHash's doc/xxhash_spec.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vfm {

/// Returns the XXH3 of 64 bits, with seed 0 and the algorithm's own secret. Thread-safe.
std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept;

}  // namespace vfm
