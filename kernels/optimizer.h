// One step of AdamW over all parameters in one launch, and the norm of their gradients with the
// scale that clips it: the CUDA version of lib/ops/optim/adamw.h, which has the formula, and of
// lib/ops/optim/sums.h. Nothing here waits for the host.
//
// A parameter is a slot. One block processes a chunk of kOptimizerChunk elements of a slot, which
// it finds in an array on the device, so that the many small parameters of a model need no launches
// of their own. Arithmetic is f32; every element is computed independently.
//
// A weight is either one f32 or a split master: two arrays of 16 bits. The first is the bf16 weight
// with which the network computes, the f32 rounded to nearest, ties away from zero. The second
// holds the remaining bits as a signed number: (high << 16) + low are the bits of the f32. The
// split needs no more memory than the f32 and loses no precision, except that every NaN becomes the
// default NaN.
//
// Moments may be bf16, rounded to nearest, ties to even. The step itself uses the moments before
// rounding. A moment that changes by less than 2^-9 of itself in a step does not change when
// rounded, so beta of a bf16 second moment should be at most 0.99.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Elements of a chunk.
inline constexpr std::int64_t kOptimizerChunk = 8192;
/// Number of partial sums of gradient_squares, fixed so that any GPU gives the same bits.
inline constexpr int kGradientPartials = 1024;

/// Device pointers of one parameter, `count` elements each, without overlap. Set either value, or
/// high and low. Fast if all are aligned to 16 bytes; other cases give correct results.
struct OptimizerSlot {
  float* value = nullptr;         ///< the f32 weight; null if it is split
  std::uint16_t* high = nullptr;  ///< the bf16 weight of a split master
  std::uint16_t* low = nullptr;   ///< its remaining bits
  const float* gradient = nullptr;
  Type moment_type = Type::f32;  ///< of both moments
  void* first_moment = nullptr;
  void* second_moment = nullptr;
  float* ema = nullptr;  ///< null if no average is kept
  std::int64_t count = 0;
  float weight_decay = 0;

  bool operator==(const OptimizerSlot&) const = default;
};

/// Elements part * kOptimizerChunk and following of a slot.
struct OptimizerChunk {
  std::int32_t slot = 0, part = 0;
};

/// Host code: returns the number of chunks of slots with the given element counts, and writes the
/// chunks to `chunks` unless that is null.
inline std::int64_t optimizer_chunks(const std::int64_t* counts, int slots,
                                     OptimizerChunk* chunks) {
  std::int64_t number = 0;
  for (int slot = 0; slot < slots; ++slot)
    for (std::int64_t part = 0; part * kOptimizerChunk < counts[slot]; ++part, ++number)
      if (chunks) chunks[number] = {slot, static_cast<std::int32_t>(part)};
  return number;
}

/// All slots of a model, on the device. optimizer_chunks() makes the chunks on the host.
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
  float gradient_scale = 1;  ///< factor on the gradients
  /// Second factor, on the device; null for none. If it is NaN or infinite, nothing is written.
  const float* device_scale = nullptr;
  float ema_decay = 0.99f;
  std::int64_t step = 1;  ///< number of this step, from 1
};

/// Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a step below 1
/// or more chunks than a grid can have. A call without chunks succeeds.
int adamw(const AdamwCall& call, CUstream_st* stream);

/// *sum = the sum of squares of all gradients, in double; NaN or infinite only if a gradient is.
/// Every block adds its chunks in a fixed order, then one block adds the sums of the blocks.
/// `partial` is kGradientPartials doubles, `sum` one, on the device. Of a slot only gradient and
/// count are used. Writes 0 without chunks.
int gradient_squares(const OptimizerSlots& all, double* partial, double* sum, CUstream_st* stream);

/// Computes norm = factor * sqrt(*sum), the norm of the gradients times `factor` > 0, and
///
///   *scale = factor * min(1, most / norm)
///
/// AdamW then sees gradients times `factor`, scaled down to the norm `most`. *scale is `factor` if
/// `most` is zero or below, or if norm is zero. It is NaN if norm is NaN or infinite: AdamW skips
/// such a step. All pointers are on the device; norm may be null.
struct ClipScale {
  const double* sum = nullptr;
  double factor = 1;
  double most = 0;
  double* norm = nullptr;
  float* scale = nullptr;
};

int clip_scale(const ClipScale& call, CUstream_st* stream);

/// Splits `count` f32 weights, or joins them. `high` and `low` must not overlap; pointers need only
/// the alignment of an element.
int split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low, std::int64_t count,
                  CUstream_st* stream);
int join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                 std::int64_t count, CUstream_st* stream);

}  // namespace vfm::kernels
