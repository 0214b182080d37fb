// XXH3 of short text: the 64-bit names of parameters, samples and words.
//
// This is our own code, from the published algorithm, so that names (and the random numbers that
// depend on them) are the same in every build, also in the compute core's without libxxhash. A unit
// test compares it with that library at every length. One lane at a time: files and streams are for
// base/hash.h.
// Source: Collet, "XXH3 specification" (xxHash's doc/xxhash_spec.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vfm {

/// XXH3, 64 bits, seed 0, the algorithm's own secret. Thread-safe.
std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept;

}  // namespace vfm
