// SPDX-License-Identifier: Apache-2.0

#include "kernels/frame_norm.h"
#include "kernels/heads_norm.h"
#include "kernels/layer_norm.h"
#include "kernels/modulate.h"
#include "kernels/modulate_backward.h"
#include "kernels/modulate_fp8.h"
#include "kernels/pixel_norm.h"
#include "kernels/rmsnorm.h"
#include "ops/matmul/check_fp8_cuda.h"
#include "ops/matmul/quantize.h"
#include "ops/norm/frame_norm_kernels.h"
#include "ops/norm/modulate_kernels.h"
#include "ops/norm/norm_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"
#include "tensor/tensor.h"

namespace vfm::ops {

namespace {

void describe_heads_norm(const HeadsNormArgs& args, kernels::HeadsNorm& call) {
  call.tokens = args.tokens, call.width = args.width, call.stride = args.stride;
  call.all = args.all;
  call.step = args.step;
  call.type = kernel_type(args.type);
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.weight = args.weight;
}

kernels::HeadsNormBackward heads_norm_back(const HeadsNormArgs& args) {
  kernels::HeadsNormBackward call;
  describe_heads_norm(args, call);
  call.sums = args.sums;
  call.dy = args.dy;
  call.products = args.products;
  call.dx = args.dx;
  call.dweight = args.dweight;
  call.partial = args.partial;
  return call;
}

}  // namespace

void cuda::heads_norm_forward(const HeadsNormArgs& args) {
  kernels::HeadsNormForward call;
  describe_heads_norm(args, call);
  call.sums = args.sums;
  call.summed = args.summed;
  call.y = args.y;
  check_gpu(kernels::heads_norm_forward(call, compute_stream()), "run heads_norm");
}

void cuda::heads_norm_products(const HeadsNormArgs& args) {
  check_gpu(kernels::heads_norm_products(heads_norm_back(args), compute_stream()),
            "run heads_norm's products");
}

void cuda::heads_norm_gradients(const HeadsNormArgs& args) {
  static_assert(kHeadsNormChunk == kernels::kHeadsNormChunk);
  check_gpu(kernels::heads_norm_gradients(heads_norm_back(args), compute_stream()),
            "run heads_norm backward");
}

void cuda::layer_norm_forward(const LayerNormArgs& args) {
  kernels::LayerNorm call;
  call.tokens = args.rows;
  call.width = static_cast<int>(args.width);
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.weight = args.weight;
  call.bias = args.bias;
  call.y = args.y;
  check_gpu(kernels::layer_norm(call, compute_stream()), "run layer norm");
}

void cuda::layer_norm_backward(const LayerNormArgs& args) {
  static_assert(kLayerNormChunk == kernels::kLayerNormChunk);
  static_assert(kLayerNormNumbers == kernels::kLayerNormNumbers);
  kernels::LayerNormBackward call;
  call.tokens = args.rows;
  call.width = static_cast<int>(args.width);
  call.epsilon = args.epsilon;
  call.x = args.x;
  call.weight = args.weight;
  call.dy = args.dy;
  call.dx = args.dx;
  call.dboth = args.dboth;
  call.partial = args.partial;
  const Tensor numbers({args.rows, kLayerNormNumbers}, DType::f32, Device::cuda);
  call.numbers = numbers.data<float>();
  check_gpu(kernels::layer_norm_backward(call, compute_stream()), "run layer norm backward");
}

void cuda::pixel_norm(const PixelNormArgs& args) {
  kernels::PixelNorm call;
  call.pixels = args.pixels, call.channels = args.channels;
  call.type = kernel_type(args.type);
  call.silu = args.silu;
  call.x = args.x;
  call.weight = args.weight;
  call.y = args.y;
  check_gpu(kernels::pixel_norm(call, compute_stream()), "run the norm of pixels");
}

void cuda::rmsnorm_forward(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& y) {
  kernels::RmsnormForward call;
  call.tokens = x.size(0);
  call.width = static_cast<int>(x.size(1));
  call.epsilon = epsilon;
  call.x = x.data<float>();
  call.weight = weight.data<float>();
  call.y = y.data<float>();
  check_gpu(kernels::rmsnorm_forward(call, compute_stream()), "run rmsnorm");
}

void cuda::rmsnorm_backward(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& dy,
                            const Tensor& dx, const Tensor& dweight) {
  kernels::RmsnormBackward call;
  call.tokens = x.size(0);
  call.width = static_cast<int>(x.size(1));
  call.epsilon = epsilon;
  call.x = x.data<float>();
  call.weight = weight.data<float>();
  call.dy = dy.data<float>();
  call.dx = dx.data<float>();
  Tensor partial;
  if (dweight.defined()) {
    static_assert(kRmsnormChunk == kernels::kRmsnormChunk);
    const std::int64_t chunks = (x.size(0) + kRmsnormChunk - 1) / kRmsnormChunk;
    partial = Tensor({chunks, x.size(1)}, DType::f32, Device::cuda);
    call.dweight = dweight.data<float>();
    call.partial = partial.data<float>();
  }
  check_gpu(kernels::rmsnorm_backward(call, compute_stream()), "run rmsnorm backward");
}

}  // namespace vfm::ops

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

namespace {

static_assert(sizeof(RowRun) == sizeof(kernels::ModulateRun) &&
              offsetof(RowRun, row) == offsetof(kernels::ModulateRun, row));

/// What forward and backward both have.
template <class Call>
Call describe(const ModulateArgs& args) {
  Call call;
  call.width = static_cast<int>(args.width);
  call.type = kernel_type(args.type);
  call.centred = args.centred;
  call.stream = args.stream, call.moments = args.moments;
  call.branch = args.branch;
  call.gate = args.gate, call.gate_stride = args.gate_stride;
  call.modulation = args.modulation, call.modulation_stride = args.modulation_stride;
  return call;
}

kernels::ModulateBackward describe_backward(const ModulateBackwardArgs& args) {
  auto call = describe<kernels::ModulateBackward>(args.forward);
  call.dnormed = args.dnormed, call.dstream = args.dstream;
  call.dx = args.dx, call.dbranch = args.dbranch;
  call.runs = reinterpret_cast<const kernels::ModulateRun*>(args.runs);
  call.run_count = args.run_count;
  call.partial = args.partial;
  return call;
}

kernels::ModulateForward describe_forward(const ModulateArgs& args) {
  auto call = describe<kernels::ModulateForward>(args);
  call.tokens = args.tokens, call.rows = args.rows;
  call.epsilon = args.epsilon;
  call.x = args.x, call.extra = args.extra;
  if (args.stream == args.x) call.stream = nullptr;  // it is written already
  call.normed = args.normed;
  return call;
}

}  // namespace

void modulate_forward(const ModulateArgs& args) {
  check_gpu(kernels::modulate_forward(describe_forward(args), compute_stream()), "run modulate");
}

void modulate_fp8(const ModulateArgs& args, const Quantized& normed) {
  const Tensor maxima({args.tokens}, DType::i32, Device::cuda);
  const Tensor largest({kernels::kQuantizeParts}, DType::i32, Device::cuda);
  kernels::ModulateFp8 call;
  call.forward = describe_forward(args);
  call.values = normed.values.data<std::uint8_t>();
  call.scale = normed.scale.data<float>();
  call.maxima = maxima.data<std::uint32_t>();
  call.largest = largest.data<std::uint32_t>();
  check_fp8_gpu(kernels::modulate_fp8(call, compute_stream()), "run modulate to FP8");
}

void modulate_backward(const ModulateBackwardArgs& args) {
  check_gpu(kernels::modulate_backward(describe_backward(args), args.dextra, compute_stream()),
            "run modulate backward");
}

void modulate_reduce(const ModulateBackwardArgs& args, std::int64_t rows, float* sums) {
  check_gpu(kernels::modulate_reduce(describe_backward(args), rows, sums, compute_stream()),
            "add the sums of modulate");
}

}  // namespace vfm::ops::cuda
