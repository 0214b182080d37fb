// The three convolutions of a causal video network, each over one direction only: (1,3,3) in
// space, (3,1,1) in time, 1x1x1 at a point.
//
// Videos are channels last: x[T, H, W, C], one sample. In space the picture goes on with zeros; in
// time it goes on backwards with its first frame (never forwards, so a video can be worked on as
// it comes). Whoever makes the input of a convolution in time puts what it looks back at in front
// of it: the Lead.
// A result of n frames is the same, to the last bit, however many frames are worked on at once.
// Shape letters: T frames, H rows, W columns, I and O channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/tape.h"

namespace vfm::ops {

/// `frames` frames in front of a result: those of `history` (of that number; no gradient flows
/// there), or without it the result's first frame, repeated.
struct Lead {
  std::int64_t frames = 0;
  Tensor history;
};

/// How a convolution in space is done.
struct SpaceConv {
  int stride = 1;
  /// The first (last) row of x is not x's own but a neighbour's, there to be looked at; it stands
  /// where else there are zeros.
  bool halo_above = false, halo_below = false;
  Tensor residual;  ///< laid out as the result without its lead: added to it; or undefined
  Lead lead;
};

/// x [T, H, W, I], w [O, I, 1, 3, 3], bias [O] (f32). With stride 1 the result is [T, H, W, O] (H
/// without halos), each side padded by one; with stride 2 it is [T, H / 2, W / 2, O], padded at the
/// lower and right side alone, and there is no halo above. H and W must be even then. x, w, the
/// residual and the result have one dtype, f32 or bf16. Frames of the lead come before.
Tensor conv_space(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const SpaceConv& how = {});

/// How a convolution in time is done.
struct TimeConv {
  int stride = 1;
  Tensor residual;        ///< as in SpaceConv
  bool add_last = false;  ///< adds the last of the three frames that it sees; O = I, stride 1
};

/// x [2 + T, H, W, I] with its lead, w [O, I, 3, 1, 1]: frame t of the result is of frames t *
/// stride to t * stride + 2 of x; as many as there are. With stride 2 the lead is 2 frames at the
/// start of a video, then one: the last frame of what came before.
Tensor conv_time(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const TimeConv& how = {});

/// x [T, H, W, I], w [O, I, 1, 1, 1]: [T, H, W, O]. `residual` as in SpaceConv.
Tensor conv_point(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const Tensor& residual = {});

/// For ops that put a lead before their result: fills result[0, lead), when the rest is there.
void fill_lead(const Tensor& result, const Lead& lead);
/// Backward of fill_lead: the gradient of the result without its lead. `dy` may be overwritten.
Tensor fold_lead(Tensor dy, const Lead& lead);

}  // namespace vfm::ops
