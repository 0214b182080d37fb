// The three convolutions of a causal video network, each along one direction: (1,3,3) in space,
// (3,1,1) in time, and 1x1x1 at a point.
//
// Videos are channels last: x[T, H, W, C], one sample. In space the picture is padded with zeros.
// In time it is padded only before the start, with its first frame, so that a video can be computed
// in chunks. A convolution in time needs earlier frames: the op before it puts them in front of its
// own result, as the Lead.
// The bits of a frame of the result do not depend on the number of frames computed at once.
// Shape letters: T frames, H rows, W columns, I input and O output channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// `frames` frames in front of a result. They come from `history`, which has this number of frames
/// and gets no gradient. Without `history` the result's first frame is repeated.
struct Lead {
  std::int64_t frames = 0;
  Tensor history;
};

/// Options of a convolution in space.
struct SpaceConv {
  int stride = 1;
  /// The first (last) row of x belongs to a neighbour and replaces the zero padding above (below)
  /// the picture.
  bool halo_above = false, halo_below = false;
  Tensor residual;  ///< added to the result without its lead; may be undefined
  Lead lead;
};

/// x is [T, H, W, I], w [O, I, 1, 3, 3], bias [O] f32. With stride 1 the result is [T, H, W, O],
/// padded by one on each side; H does not count halos. With stride 2 it is [T, H / 2, W / 2, O],
/// padded at the lower and right side only; H and W must then be even, and halo_above must be
/// false. x, w, the residual and the result have the same dtype, f32 or bf16. The frames of the
/// lead come before the result.
Tensor conv_space(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const SpaceConv& how = {});

/// Options of a convolution in time.
struct TimeConv {
  int stride = 1;
  Tensor residual;        ///< as in SpaceConv
  bool add_last = false;  ///< adds the last of the three input frames; needs O = I, stride 1
};

/// x is [2 + T, H, W, I] with its lead, w [O, I, 3, 1, 1]. Frame t of the result is computed from
/// frames t * stride to t * stride + 2 of x; the result has every frame for which x has all three.
/// With stride 2 the lead is 2 frames at the start of a video, and later 1 frame: the last frame of
/// the chunk before.
Tensor conv_time(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const TimeConv& how = {});

/// Returns [T, H, W, O] for x [T, H, W, I] and w [O, I, 1, 1, 1]. `residual` as in SpaceConv.
Tensor conv_point(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const Tensor& residual = {});

/// For ops that put a lead before their result: fills result[0, lead) once the rest is computed.
void fill_lead(const Tensor& result, const Lead& lead);
/// Backward of fill_lead: returns the gradient of the result without its lead. May overwrite `dy`.
Tensor fold_lead(Tensor dy, const Lead& lead);

}  // namespace vfm::ops
