// The CPU kernels behind frame_attention.h: softmax over rows of scores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cpu/isa.h"

namespace vfm::ops {

VFM_EACH_ISA(
    // p = softmax(scale * s) of each row of `columns`
    void softmax_rows(const float* s, float* p, std::int64_t rows, std::int64_t columns,
                      float scale);
    void softmax_rows(const float* s, std::uint16_t* p, std::int64_t rows, std::int64_t columns,
                      float scale);
    // ds = scale * p (dp - the row's sum of p dp); ds may be where dp is
    void softmax_rows_backward(const float* p, const float* dp, float* ds, std::int64_t rows,
                               std::int64_t columns, float scale);
    void softmax_rows_backward(const std::uint16_t* p, const float* dp, std::uint16_t* ds,
                               std::int64_t rows, std::int64_t columns, float scale);)

}  // namespace vfm::ops
