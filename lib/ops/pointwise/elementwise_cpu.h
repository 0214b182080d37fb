// The element-by-element CPU kernels behind add.h, adamw.h, gelu.h, low_rank.h,
// silu.h, split_master.h, sum_squares.h, swiglu.h and text_activations.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cpu/isa.h"
#include "ops/optim/adamw.h"

namespace vfm::ops {

VFM_EACH_ISA(
    // y += x
    void add_into(float* y, const float* x, std::int64_t n);
    void add_into(float* y, const std::uint16_t* x, std::int64_t n);
    void add_into(std::uint16_t* y, const float* x, std::int64_t n);
    void add_into(std::uint16_t* y, const std::uint16_t* x, std::int64_t n);
    // sum = a + the first columns of b; db = dsum with zeros beyond: [rows, narrow], [rows, wide]
    void add_columns(const float* a, const float* b, float* sum, std::int64_t rows,
                     std::int64_t narrow, std::int64_t wide);
    void add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                              std::int64_t wide);
    // the first columns of y [rows, wide] += scale x [rows, narrow]
    void add_scaled_columns(float* y, std::int64_t wide, const float* x, std::int64_t narrow,
                            std::int64_t rows, float scale);
    void add_scaled_columns(std::uint16_t* y, std::int64_t wide, const std::uint16_t* x,
                            std::int64_t narrow, std::int64_t rows, float scale);
    // y = f(x), and dx = dy f'(x); dx may be dy
    void gelu_forward(const float* x, float* y, std::int64_t n);
    void gelu_forward(const std::uint16_t* x, std::uint16_t* y, std::int64_t n);
    void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n);
    void gelu_backward(const std::uint16_t* x, const std::uint16_t* dy, std::uint16_t* dx,
                       std::int64_t n);
    void silu_forward(const float* x, float* y, std::int64_t n);
    void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n);
    // x [rows, 2 width], y [rows, width]
    void swiglu_forward(const float* x, float* y, std::int64_t rows, std::int64_t width);
    void swiglu_forward(const std::uint16_t* x, std::uint16_t* y, std::int64_t rows,
                        std::int64_t width);
    void swiglu_backward(const float* x, const float* dy, float* dx, std::int64_t rows,
                         std::int64_t width);
    void swiglu_backward(const std::uint16_t* x, const std::uint16_t* dy, std::uint16_t* dx,
                         std::int64_t rows, std::int64_t width);
    // x = max(x, 0); x = gelu_tanh(x) factor
    void relu(float* x, std::int64_t n); void relu(std::uint16_t* x, std::int64_t n);
    void gated_gelu(float* x, const float* factor, std::int64_t n);
    void gated_gelu(std::uint16_t* x, const std::uint16_t* factor, std::int64_t n);
    // one chunk of a parameter, on the calling thread
    void adamw_chunk(const AdamwSlot& slot, const AdamwStep& step, float correction1,
                     float correction2, std::int64_t begin, std::int64_t end);
    double sum_squares_chunk(const float* x, std::int64_t n);
    // f32 weights to and from split masters
    void split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low,
                       std::int64_t n);
    void join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                      std::int64_t n);)

}  // namespace vfm::ops
