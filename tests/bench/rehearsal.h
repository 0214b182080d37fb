// A rehearsal of the benchmarks of scripts/gpu-report, on a machine without a GPU: every argument
// is read and every case named, as a record that has no value; ops run on Device::meta, where they
// check shapes and compute nothing. So an option that is misspelt in the script is found before a
// GPU is waited for.
//
// With VFM_REHEARSAL=GIB in the environment a benchmark is rehearsed, as if for a GPU with so much
// memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace vfm::bench {

/// Of the GPU that is pretended, in GiB; 0: this is no rehearsal.
inline double rehearsal_gib() {
  const char* const value = std::getenv("VFM_REHEARSAL");
  return value == nullptr ? 0 : std::atof(value);
}
inline bool rehearsal() {
  return rehearsal_gib() > 0;
}
inline constexpr const char* kRehearsed = "a rehearsal";

}  // namespace vfm::bench
