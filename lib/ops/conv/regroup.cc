// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/regroup.h"

#include "base/error.h"
#include "ops/conv/conv_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
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
