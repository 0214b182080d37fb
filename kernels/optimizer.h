// One step of AdamW over all parameters in one launch, and the norm of their gradients with the
// scale that clips it: the CUDA version of lib/ops/optim/adamw.h, where the formula is, and of
// lib/ops/optim/sum_squares.h. Nothing here waits for the host.
//
// A parameter is a slot; a slot is worked on in chunks of kOptimizerChunk elements, one block each,
// which find their slot in an array on the device. So a model's hundreds of small parameters cost
// no launches. Arithmetic is f32; every element is computed alone.
//
// A weight is one f32, or a split master: 16 bits in each of two arrays, of which the first is also
// the bf16 weight that the network computes with. It is the f32 rounded to nearest, ties away from
// zero; the second is what is left, as a signed number: (high << 16) + low are the f32's bits. So
// the split costs no memory beside the f32's and no precision. A NaN becomes the plain one.
//
// Moments may be bf16, rounded to nearest, ties to even. The step itself computes with the moments
// as they were before rounding. A moment that changes by less than 2^-9 of itself in a step stays
// what it is: with bf16, a second moment's beta should not be above 0.99.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Elements of a chunk.
inline constexpr std::int64_t kOptimizerChunk = 8192;
/// Partial sums of gradient_squares: the number is fixed, for the same bits on any GPU.
inline constexpr int kGradientPartials = 1024;

/// Device pointers of one parameter, `count` elements each; they overlap nothing. Either value, or
/// high and low. Fast where all are aligned to 16 bytes; right otherwise.
struct OptimizerSlot {
  float* value = nullptr;         ///< the f32 weight, or null: it is split
  std::uint16_t* high = nullptr;  ///< the bf16 weight
  std::uint16_t* low = nullptr;   ///< what it lacks to the f32
  const float* gradient = nullptr;
  Type moment_type = Type::f32;  ///< of both moments
  void* first_moment = nullptr;
  void* second_moment = nullptr;
  float* ema = nullptr;  ///< null: no average is kept
  std::int64_t count = 0;
  float weight_decay = 0;

  bool operator==(const OptimizerSlot&) const = default;
};

/// Elements part * kOptimizerChunk and following of a slot.
struct OptimizerChunk {
  std::int32_t slot = 0, part = 0;
};

/// On the host: writes the chunks of slots of the given element counts to `chunks`, unless that is
/// null, and returns their number.
inline std::int64_t optimizer_chunks(const std::int64_t* counts, int slots,
                                     OptimizerChunk* chunks) {
  std::int64_t number = 0;
  for (int slot = 0; slot < slots; ++slot)
    for (std::int64_t part = 0; part * kOptimizerChunk < counts[slot]; ++part, ++number)
      if (chunks) chunks[number] = {slot, static_cast<std::int32_t>(part)};
  return number;
}

/// All slots of a model, on the device; the host's side of the arrays is optimizer_chunks.
struct OptimizerSlots {
  const OptimizerSlot* slots = nullptr;
  const OptimizerChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
};

struct AdamwCall {
  OptimizerSlots all;
  float learning_rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.99f;
  float epsilon = 1e-8f;
  float gradient_scale = 1;  ///< the gradients' factor,
  /// times this one on the device, unless null; if it is NaN or infinite, nothing is written
  const float* device_scale = nullptr;
  float ema_decay = 0.99f;
  std::int64_t step = 1;  ///< counts from 1
};

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a step below
/// 1 or a number of chunks that no grid has. No chunks are no error.
int adamw(const AdamwCall& call, CUstream_st* stream);

/// *sum = the sum of squares of all gradients, in double: NaN or infinite if one of them is, and
/// for nothing else. Every block adds its chunks in a fixed order, then one block their sums.
/// `partial` is kGradientPartials doubles, `sum` one, on the device. Uses of a slot only gradient
/// and count. Writes 0 without chunks.
int gradient_squares(const OptimizerSlots& all, double* partial, double* sum, CUstream_st* stream);

/// With the norm factor * sqrt(*sum), which is that of the gradients times `factor` > 0:
///
///   *scale = factor * min(1, most / norm)
///
/// so that AdamW sees gradients times `factor`, but at most of norm `most`; factor itself if `most`
/// is zero or below, or norm is zero. NaN if norm is NaN or infinite: AdamW skips such a step. All
/// on the device; norm may be null.
struct ClipScale {
  const double* sum = nullptr;
  double factor = 1;
  double most = 0;
  double* norm = nullptr;
  float* scale = nullptr;
};

int clip_scale(const ClipScale& call, CUstream_st* stream);

/// A split master of `count` f32 weights, and back. `high` and `low` are apart; pointers need no
/// more than the alignment of an element.
int split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low, std::int64_t count,
                  CUstream_st* stream);
int join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                 std::int64_t count, CUstream_st* stream);

}  // namespace vfm::kernels
