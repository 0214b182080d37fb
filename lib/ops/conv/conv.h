// Convolutions of videos: conv_video() with any kernel, and the three of a causal network whose
// every convolution goes along one direction: (1,3,3) in space, (3,1,1) in time, and 1x1x1 at a
// point.
//
// Videos are channels last: x[T, H, W, C], one sample. The three ops pad a picture with zeros, and
// a video only before its start, with its first frame, so that it can be computed in chunks. There
// a convolution in time needs earlier frames: the op before it puts them in front of its own
// result, as the Lead. conv_video() pads with zeros alone, or takes earlier frames.
//
// The bits of a frame of the result do not depend on the number of frames computed at once. A bias
// is f32, or undefined for none.
// Shape letters: T frames, H rows, W columns, I input and O output channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

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

/// Options of a convolution of a video.
struct VideoConv {
  /// Along time, rows and columns.
  std::array<std::int64_t, 3> stride{1, 1, 1};
  /// Zeros in front of the first and behind the last frame, row and column. In time less than the
  /// kernel's frames.
  std::array<std::int64_t, 3> before{}, after{};
  Tensor history;   ///< frames [P, H, W, I] between the zeros and x; gets no gradient
  Tensor residual;  ///< as in SpaceConv
};

/// The zeros with which a result of stride 1 is as large as x, for an odd kernel of w: as many
/// before as after. With padded_before() all those in time come before. `history` then takes the
/// place of as many of these zeros as it has frames, which are at most the kernel's less one.
VideoConv padded_around(const Tensor& w);
VideoConv padded_before(const Tensor& w, const Tensor& history = {});

/// x is [T, H, W, I], w [O, I, A, B, C]. With R = before + P + T + after frames, the result has
/// (R - A) / stride + 1, rounded down, and rows and columns likewise. x, w, history, the residual
/// and the result have the same dtype, f32 or bf16. Memory besides the result: on the CPU what
/// ops/conv/conv2d.h says; a history and x are copied into one tensor, which backward keeps.
Tensor conv_video(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const VideoConv& how = {});

/// For ops that put a lead before their result: fills result[0, lead) once the rest is computed.
void fill_lead(const Tensor& result, const Lead& lead);
/// Backward of fill_lead: returns the gradient of the result without its lead. May overwrite `dy`.
Tensor fold_lead(Tensor dy, const Lead& lead);

}  // namespace vfm::ops
