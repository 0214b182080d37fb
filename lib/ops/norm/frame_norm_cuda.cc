// The CUDA versions of the kernels of frame_norm_kernels.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/frame_norm.h"
#include "ops/norm/frame_norm_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {
namespace {

static_assert(kFrameNormChunks == kernels::kFrameNormChunks);

kernels::FrameNorm describe(const FrameNormArgs& args) {
  kernels::FrameNorm call;
  call.type = kernel_type(args.type);
  call.frames = args.frames, call.pixels = args.pixels, call.channels = args.channels;
  call.silu = args.silu;
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.moments = args.moments;
  call.weight = args.weight;
  call.bias = args.bias;
  call.y = args.y;
  call.dy = args.dy;
  call.dx = args.dx;
  call.dweight = args.dweight;
  call.dbias = args.dbias;
  return call;
}

}  // namespace

void frame_moments(const FrameNormArgs& args) {
  const Tensor scratch({args.frames, frame_norm_gpu_sums(args, false)}, DType::f32, Device::cuda);
  kernels::FrameNorm call = describe(args);
  call.scratch = scratch.data<float>();
  check_gpu(kernels::frame_moments(call, compute_stream()), "take moments of frames");
}

void frame_norm_forward(const FrameNormArgs& args) {
  check_gpu(kernels::frame_norm_forward(describe(args), compute_stream()), "run frame norm");
}

void frame_norm_backward(const FrameNormArgs& args) {
  const Tensor scratch({args.frames, frame_norm_gpu_sums(args, true)}, DType::f32, Device::cuda);
  kernels::FrameNorm call = describe(args);
  call.scratch = scratch.data<float>();
  check_gpu(kernels::frame_norm_backward(call, compute_stream()), "run frame norm backward");
}

}  // namespace vfm::ops::cuda
