// The kernel behind newest_query.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace vfm::ops {

struct NewestText {
  const void* kv;
  std::int64_t seen;
};
struct NewestQueryArgs {
  const float* q;        // [texts, heads head_dim]
  const NewestText* of;  // [texts]
  DType type;            // of keys and values
  std::int64_t texts;
  int heads, key_heads, head_dim;
  float scale;
  float* scores;      // [texts, heads, most]; null on a GPU
  std::int64_t most;  // the largest number of keys
  float* out;         // [texts, heads head_dim]
};
VFM_ISA_KERNEL(void, newest_query, const NewestQueryArgs& args)

}  // namespace vfm::ops
