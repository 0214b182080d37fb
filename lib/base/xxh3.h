// XXH3 hashes of short text, used as 64-bit names of parameters, samples and words.
//
// This code needs no library, so builds without libxxhash have the same names. It is slow for files
// and streams; use base/hash.h for them.
// Source: Collet, "XXH3 specification" (xxHash's doc/xxhash_spec.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vfm {

/// Returns the 64-bit XXH3 with seed 0 and the algorithm's own secret. Thread-safety: any thread.
std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept;

}  // namespace vfm
