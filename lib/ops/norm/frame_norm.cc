// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/frame_norm.h"

#include "base/error.h"
#include "ops/norm/frame_norm_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

FrameNormArgs arguments(const Tensor& x) {
  if (x.dims() != 4 || x.elements() == 0) fail("frame_norm of {}", to_string(x.shape()));
  if (x.dtype() != DType::f32 && x.dtype() != DType::bf16)
    fail("frame_norm of {}", dtype_name(x.dtype()));
  FrameNormArgs args;
  args.frames = x.size(0);
  args.pixels = x.size(1) * x.size(2);
  args.channels = x.size(3);
  args.type = x.dtype();
  args.x = x.raw();
  return args;
}

std::int64_t gpu_sums(const FrameNormArgs& args, bool backward) {
  return 4 * args.frames * frame_norm_gpu_sums(args, backward);  // bytes
}

}  // namespace

Tensor frame_moments(const Tensor& x) {
  FrameNormArgs args = arguments(x);
  const Tensor moments({x.size(0), 2}, DType::f32, x.device());
  args.moments = moments.data<float>();
  VFM_RUN(Touching(x, moments).gpu_scratch([&] { return gpu_sums(args, false); }), frame_moments,
          args);
  return moments;
}

Tensor combine_moments(const std::vector<Tensor>& parts, const std::vector<double>& weights) {
  if (parts.empty() || parts.size() != weights.size()) fail("combine_moments: no parts");
  const Tensor all(parts.front().shape());
  double count = 0;
  for (const double weight : weights)
    count += weight;
  for (std::int64_t t = 0; t < all.size(0); ++t) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      mean += parts[i].floats()[2 * t] * weights[i] / count;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double off = parts[i].floats()[2 * t] - mean;
      variance += (parts[i].floats()[2 * t + 1] + off * off) * weights[i] / count;
    }
    all.floats()[2 * t] = static_cast<float>(mean);
    all.floats()[2 * t + 1] = static_cast<float>(variance);
  }
  return all;
}

std::int64_t frame_chunk_begin(std::int64_t pixels, std::int64_t chunk) {
  return pixels * chunk / kFrameNormChunks;
}

std::vector<ChunkSums> frame_chunk_sums(const Tensor& x, std::int64_t pixels, std::int64_t begin,
                                        std::int64_t first, std::int64_t chunks) {
  FrameNormArgs args = arguments(x);
  if (x.device() != Device::cpu) fail("sums of chunks of frames are for the CPU");
  if (frame_chunk_begin(pixels, first) < begin ||
      frame_chunk_begin(pixels, first + chunks) > begin + args.pixels)
    fail("frame_chunk_sums: {} pixels from {} on are not all of {} chunks from {} on", args.pixels,
         begin, chunks, first);
  std::vector<ChunkSums> sums(static_cast<std::size_t>(args.frames * chunks));
  args.whole = pixels, args.begin = begin;
  args.chunk = first, args.chunks = chunks, args.sums = sums.data();
  cpu::frame_chunk_sums(args);
  return sums;
}

Tensor join_frame_chunks(std::span<const ChunkSums> sums, std::int64_t pixels,
                         std::int64_t channels) {
  FrameNormArgs args;
  args.frames = static_cast<std::int64_t>(sums.size()) / kFrameNormChunks;
  args.whole = pixels, args.channels = channels;
  args.sums = const_cast<ChunkSums*>(sums.data());
  const Tensor moments({args.frames, 2});
  args.moments = moments.data<float>();
  cpu::join_frame_chunks(args);
  return moments;
}

Tensor frame_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  float epsilon, bool silu, const Tensor& given) {
  FrameNormArgs args = arguments(x);
  const Shape channels{args.channels};
  if (weight.shape() != channels || bias.shape() != channels || weight.dtype() != DType::f32 ||
      bias.dtype() != DType::f32)
    fail("frame_norm: weight {} and bias {} do not fit {}", to_string(weight.shape()),
         to_string(bias.shape()), to_string(x.shape()));
  const Tensor moments = given.defined() ? given : frame_moments(x);
  if (moments.shape() != Shape{args.frames, 2} || moments.device() != x.device())
    fail("frame_norm: moments {} of {}", to_string(moments.shape()), to_string(x.shape()));
  const Tensor y(x.shape(), x.dtype(), x.device());
  args.silu = silu;
  args.epsilon = epsilon;
  args.moments = moments.data<float>();
  args.weight = weight.data<float>();
  args.bias = bias.data<float>();
  args.y = y.raw();
  VFM_RUN(Touching(x, y), frame_norm_forward, args);
  tape.record(y, {x, weight, bias}, [args, x, weight, bias, moments, y](Tape& t) {
    const Tensor dy = t.take(y).to(x.dtype());
    const Tensor dx(x.shape(), x.dtype(), x.device());
    const Tensor dweight = Tensor::zeros(weight.shape(), DType::f32, x.device());
    const Tensor dbias = Tensor::zeros(bias.shape(), DType::f32, x.device());
    // The GPU's version works on all frames at once, and makes its own.
    Tensor scratch;
    if (layout_device(x.device()) == Device::cpu)
      scratch = Tensor({kFrameNormChunks, 2 * args.channels + 2}, DType::f32, x.device());
    FrameNormArgs back = args;
    back.dy = dy.raw();
    back.dx = dx.raw();
    back.dweight = dweight.data<float>();
    back.dbias = dbias.data<float>();
    if (scratch.defined()) back.scratch = scratch.data<float>();
    VFM_RUN(Touching(x, dy, dx).gpu_scratch([&] { return gpu_sums(back, true); }),
            frame_norm_backward, back);
    t.accumulate(weight, dweight);
    t.accumulate(bias, dbias);
    t.accumulate(x, dx);
  });
  return y;
}

}  // namespace vfm::ops
