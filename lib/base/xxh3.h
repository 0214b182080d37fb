// XXH3 of short text: the 64-bit names of parameters, samples and words.
//
// Our own, from the published algorithm, so that names (and the random numbers that hang on them)
// are the same in every build, the compute core's without libxxhash too. A unit test holds it to
// that library at every length. One lane at a time: files and streams are for base/hash.h.
// Source: Collet, "XXH3 specification" (xxHash's doc/xxhash_spec.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace vfm {

/// XXH3, 64 bits, seed 0, the algorithm's own secret. Thread-safe.
std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept;

}  // namespace vfm
