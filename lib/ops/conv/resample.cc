// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/resample.h"

#include "base/error.h"
#include "ops/conv/conv_kernels.h"
#include "ops/pointwise/add.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const char* name, const Tensor& x) {
  if (x.dims() != 4 || (x.dtype() != DType::f32 && x.dtype() != DType::bf16))
    fail("{} of {} {}", name, dtype_name(x.dtype()), to_string(x.shape()));
}

std::int64_t frame_size(const Tensor& x) {
  return x.size(1) * x.size(2) * x.size(3);
}

}  // namespace

Tensor pool_space(Tape& tape, const Tensor& x) {
  check("pool_space", x);
  if (x.size(1) % 2 || x.size(2) % 2) fail("pool_space of {}", to_string(x.shape()));
  const Tensor y({x.size(0), x.size(1) / 2, x.size(2) / 2, x.size(3)}, x.dtype(), x.device());
  const std::int64_t rows = y.size(0) * y.size(1), columns = y.size(2), channels = y.size(3);
  VFM_RUN(Touching(x, y), pool_pixels, x.dtype(), x.raw(), y.raw(), rows, columns, channels, 0.25f);
  tape.record(y, {x}, [=](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype()), dx(x.shape(), x.dtype(), x.device());
    VFM_RUN(Touching(dy, dx), repeat_pixels, dy.dtype(), dy.raw(), dx.raw(), rows, columns,
            channels, 0.25f);
    t.accumulate(x, dx);
  });
  return y;
}

Tensor repeat_space(Tape& tape, const Tensor& x) {
  check("repeat_space", x);
  const Tensor y({x.size(0), 2 * x.size(1), 2 * x.size(2), x.size(3)}, x.dtype(), x.device());
  const std::int64_t rows = x.size(0) * x.size(1), columns = x.size(2), channels = x.size(3);
  VFM_RUN(Touching(x, y), repeat_pixels, x.dtype(), x.raw(), y.raw(), rows, columns, channels, 1.f);
  tape.record(y, {x}, [=](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype()), dx(x.shape(), x.dtype(), x.device());
    VFM_RUN(Touching(dy, dx), pool_pixels, dy.dtype(), dy.raw(), dx.raw(), rows, columns, channels,
            1.f);
    t.accumulate(x, dx);
  });
  return y;
}

Tensor pool_time(Tape& tape, const Tensor& x) {
  check("pool_time", x);
  if (x.size(0) < 3 || x.size(0) % 2 == 0) fail("pool_time of {}", to_string(x.shape()));
  const Tensor seen = x.rows(1, x.size(0));
  const Tensor y({seen.size(0) / 2, x.size(1), x.size(2), x.size(3)}, x.dtype(), x.device());
  const std::int64_t size = frame_size(x);
  VFM_RUN(Touching(seen, y), pool_frames, seen.dtype(), seen.raw(), y.raw(), y.size(0), size, 0.5f);
  tape.record(y, {x}, [=](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    const Tensor dx = Tensor::zeros(x.shape(), x.dtype(), x.device());
    const Tensor part = dx.rows(1, x.size(0));
    VFM_RUN(Touching(dy, part), repeat_frames, dy.dtype(), dy.raw(), part.raw(), y.size(0), size,
            0.5f);
    t.accumulate(x, dx);
  });
  return y;
}

Tensor repeat_time(Tape& tape, const Tensor& x, bool start, const Lead& lead) {
  check("repeat_time", x);
  const std::int64_t once = start ? 1 : 0, size = frame_size(x), frames = x.size(0);
  Shape shape = x.shape();
  shape[0] = lead.frames + 2 * frames - once;
  const Tensor y(shape, x.dtype(), x.device());
  if (start) copy(x.rows(0, 1), y.rows(lead.frames, lead.frames + 1));
  const Tensor rest = x.rows(once, frames), pairs = y.rows(lead.frames + once, y.size(0));
  VFM_RUN(Touching(rest, pairs), repeat_frames, rest.dtype(), rest.raw(), pairs.raw(),
          frames - once, size, 1.f);
  fill_lead(y, lead);
  tape.record(y, {x}, [=](Tape& t) {
    const Tensor dy = fold_lead(t.take(y).to(x.dtype()), lead);
    const Tensor dx(x.shape(), x.dtype(), x.device());
    if (start) copy(dy.rows(0, 1), dx.rows(0, 1));
    const Tensor from = dy.rows(once, dy.size(0)), to = dx.rows(once, frames);
    VFM_RUN(Touching(from, to), pool_frames, from.dtype(), from.raw(), to.raw(), frames - once,
            size, 1.f);
    t.accumulate(x, dx);
  });
  return y;
}

namespace {

RegroupArgs args_of(const char* name, const Tensor& fine, const Tensor& coarse,
                    const PatchShape& patch, int frame) {
  const bool fits = fine.dims() == 3 && coarse.dims() == 3 && patch.space >= 1 && frame >= 0 &&
                    frame < patch.frames && fine.size(0) == coarse.size(0) * patch.space &&
                    fine.size(1) == coarse.size(1) * patch.space && coarse.size(2) > 0 &&
                    fine.size(2) * patch.pixels() % coarse.size(2) == 0 &&
                    fine.dtype() == coarse.dtype() && fine.device() == coarse.device() &&
                    (fine.dtype() == DType::f32 || fine.dtype() == DType::bf16);
  if (!fits)
    fail("{}: {} {} and {} {} do not fit frame {} of patches of {} x {} x {}", name,
         dtype_name(fine.dtype()), to_string(fine.shape()), dtype_name(coarse.dtype()),
         to_string(coarse.shape()), frame, patch.frames, patch.space, patch.space);
  RegroupArgs args;
  args.type = fine.dtype();
  args.rows = coarse.size(0), args.columns = coarse.size(1);
  args.fine_channels = fine.size(2), args.coarse_channels = coarse.size(2);
  args.space = patch.space, args.frames = patch.frames, args.frame = frame;
  return args;
}

}  // namespace

void pool_patches(const Tensor& fine, const Tensor& coarse, const PatchShape& patch, int frame) {
  RegroupArgs args = args_of("pool_patches", fine, coarse, patch, frame);
  args.add = frame > 0;
  args.x = fine.raw(), args.y = coarse.raw();
  VFM_RUN(Touching(fine, coarse), pool_patches, args);
}

void repeat_patches(const Tensor& coarse, const Tensor& fine, const PatchShape& patch, int frame) {
  RegroupArgs args = args_of("repeat_patches", fine, coarse, patch, frame);
  args.x = coarse.raw(), args.y = fine.raw();
  VFM_RUN(Touching(fine, coarse), repeat_patches, args);
}

}  // namespace vfm::ops
