// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/haar.h"
#include "kernels/patchify.h"
#include "kernels/regroup.h"
#include "kernels/resample.h"
#include "ops/conv/conv2d_cudnn_cuda.h"
#include "ops/conv/conv_kernels.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "tensor/device.h"
#include "tensor/gpu_graph.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {

namespace {

using kernels::Type;

static_assert(kConvBiasParts == kernels::kConvBiasParts && kConvChunk == kernels::kConvChunk);

int narrow(std::int64_t size) {
  if (size < 0 || size > std::numeric_limits<int>::max())
    fail("no convolution on cuda of {}", size);
  return static_cast<int>(size);
}

Type type_of(DType dtype) {
  return dtype == DType::bf16 ? Type::bf16 : Type::f32;
}

kernels::ConvGather gather_of(const Conv2d& c) {
  kernels::ConvGather g;
  g.images = c.images;
  g.step = c.x_step;
  g.height = narrow(c.height), g.width = narrow(c.width), g.channels = narrow(c.in);
  g.out_height = narrow(c.out_height()), g.out_width = narrow(c.out_width());
  g.kernel_height = narrow(c.kernel_height), g.kernel_width = narrow(c.kernel_width);
  g.stride_y = narrow(c.stride_y), g.stride_x = narrow(c.stride_x);
  g.pad_top = narrow(c.pad_top), g.pad_left = narrow(c.pad_left);
  g.frames = narrow(c.frames), g.out_frames = narrow(c.out_frames());
  g.kernel_frames = narrow(c.kernel_frames), g.stride_t = narrow(c.stride_t);
  g.pad_front = narrow(c.pad_front);
  return g;
}

struct ConvTrust : CudnnTrust {
  bool checked = false;
};

// Never destroyed, as it needs no destruction.
ConvTrust& trust_in(const ConvShape& shape) {
  static auto* const known = new std::map<ConvShape, ConvTrust>;
  return (*known)[shape];
}

bool aligned(const void* data, std::int64_t step) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && step % 8 == 0;
}

// Runs it by cuDNN, with the tensor weights(), compared with run_own(result) if that was not done.
// False if cuDNN is not to be used: then the result has to be made again.
template <class Weights, class RunOwn>
bool ran_on_cudnn(ConvCall call, DType dtype, const Weights& weights, const RunOwn& run_own) {
  Conv2d& c = call.shape.conv;
  call.images = c.images, call.x_step = c.x_step, call.y_step = c.y_step();
  c.images = 1, c.x_step = 0;
  if (!why_not_cudnn(c, dtype).empty() || !why_no_cudnn().empty()) return false;
  ConvTrust& trust = trust_in(call.shape);
  if (trust.refused || (!trust.checked && GpuGraph::recording())) return false;
  const Tensor factors = weights();
  call.weights = factors.raw();
  if (!aligned(call.x, call.x_step) || !aligned(call.y, call.y_step) || !aligned(call.weights, 0) ||
      !aligned(call.residual, 0))
    return false;
  const bool back = call.shape.back;
  const std::int64_t width = back ? c.in : c.out;
  const std::int64_t rows =
      call.images * (back ? c.height * c.width : c.out_height() * c.out_width());
  Tensor own;
  if (!trust.checked) {
    own = Tensor({rows, width}, dtype, Device::cuda);
    run_own(own.raw());
  }
  try {
    conv2d_cudnn(call);
  } catch (const Error& error) {
    if (GpuGraph::recording()) throw;  // plainly, it runs perhaps
    trust.refuse("a convolution " + text_of(call.shape), error.what());
    return false;
  }
  if (trust.checked) return true;
  return trust.agree(trust.checked, "a convolution " + text_of(call.shape),
                     {{{"result", back ? call.x : call.y, rows, width, width},
                       {"", own.raw(), rows, width, width}}});
}

// The weights as a product takes them.
Tensor arranged(const Conv2d& c, DType dtype, const void* w, bool back) {
  const int taps = narrow(c.taps());
  const Tensor given = Tensor::borrow(w, {c.out, taps * c.in}, dtype, nullptr, Device::cuda);
  if (!conv2d_arranges(c, back)) return given;
  const Tensor made(given.shape(), dtype, Device::cuda);
  check_gpu(kernels::conv_arrange(type_of(dtype), w, made.raw(), narrow(c.out), narrow(c.in), taps,
                                  back, compute_stream()),
            "arrange the weights of a convolution");
  return made;
}

}  // namespace

void cuda::conv2d(const Conv2d& conv, DType dtype, const void* x, const void* w, const float* bias,
                  const void* residual, void* y) {
  const Tensor weights = arranged(conv, dtype, w, false);
  kernels::ConvProduct call;
  call.gather = gather_of(conv);
  call.type = type_of(dtype);
  call.columns = narrow(conv.out);
  call.source = x;
  call.weights = weights.raw();
  call.bias = bias;
  call.residual = residual;
  const auto run_own = [&](void* result) {
    call.y = result;
    check_gpu(kernels::conv_product(call, compute_stream()), "run a convolution");
  };
  if (!ran_on_cudnn(
          {.shape = {conv, bias != nullptr, residual != nullptr},
           .x = const_cast<void*>(x),
           .bias = bias,
           .residual = residual,
           .y = y},
          dtype, [&] { return weights; }, run_own))
    run_own(y);
}

void cuda::conv2d_backward_data(const Conv2d& conv, DType dtype, const void* dy, const void* w,
                                void* dx) {
  if (conv.images > 1 && conv.x_step != conv.x_size())
    fail("no gradient of a convolution of images that are apart");
  kernels::ConvProduct call;
  kernels::ConvGather& g = call.gather = gather_of(conv);
  std::swap(g.height, g.out_height);
  std::swap(g.width, g.out_width);
  std::swap(g.frames, g.out_frames);
  g.channels = narrow(conv.out);
  g.step = conv.y_step();
  g.back = true;
  call.type = type_of(dtype);
  call.columns = narrow(conv.in);
  call.source = dy;
  const auto run_own = [&](void* result) {
    const Tensor turned = arranged(conv, dtype, w, true);
    call.weights = turned.raw();
    call.y = result;
    check_gpu(kernels::conv_product(call, compute_stream()), "run a convolution backward");
  };
  if (!ran_on_cudnn(
          {.shape = {conv, false, false, true}, .x = dx, .y = const_cast<void*>(dy)}, dtype,
          [&] { return arranged(conv, dtype, w, false); }, run_own))
    run_own(dx);
}

void cuda::conv2d_backward_weights(const Conv2d& conv, DType dtype, const void* x, const void* dy,
                                   float* dw, float* dbias) {
  const int out = narrow(conv.out), taps = narrow(conv.taps());
  kernels::ConvWeights call;
  call.gather = gather_of(conv);
  const std::int64_t rows = call.gather.rows(), depth = call.gather.depth();
  if (dbias != nullptr) {
    const Tensor partial({kConvBiasParts, out}, DType::f32, Device::cuda);
    check_gpu(kernels::conv_bias(type_of(dtype), dy, rows, out, partial.data<float>(), dbias,
                                 compute_stream()),
              "sum the gradient of a convolution's bias");
  }
  if (dw == nullptr) return;
  const std::int64_t chunks = (rows + kConvChunk - 1) / kConvChunk;
  const std::int64_t at_once = conv2d_chunks_at_once(conv);
  const Tensor partial({at_once, conv.out, depth}, DType::f32, Device::cuda);
  call.type = type_of(dtype);
  call.columns = out;
  call.source = x;
  call.dy = dy;
  call.partial = partial.data<float>();
  for (call.first_chunk = 0; call.first_chunk < chunks; call.first_chunk += at_once) {
    call.chunks = static_cast<int>(std::min(at_once, chunks - call.first_chunk));
    check_gpu(kernels::conv_weights(call, compute_stream()),
              "run a convolution's weights backward");
    check_gpu(kernels::conv_add_weights(call.partial, call.chunks, dw, out, narrow(conv.in), taps,
                                        compute_stream()),
              "add the gradients of a convolution's weights");
  }
}

namespace {

// The level whose fine side has patches of `size` pixels: the first (last) where that is p.
kernels::HaarLevel level_of(const Tensor& bands, int patch, int size, bool start, float scale,
                            bool last_only) {
  const std::int64_t p = patch;
  kernels::HaarLevel level;
  level.frames = bands.size(0) * size;
  level.height = bands.size(1) * size, level.width = bands.size(2) * size;
  const std::int64_t times = p / size;
  level.channels = bands.size(3) / (p * p * p) * times * times * times;
  level.scale = scale;
  if (size != patch || !start) return level;
  level.repeated = p;
  level.last_only = last_only;
  return level;
}

// Where a level writes that is not the last.
Tensor room_like(const Tensor& bands) {
  return Tensor(bands.shape(), DType::f32, Device::cuda);
}

}  // namespace

void cuda::haar_split(const Tensor& pixels, const Tensor& bands, int patch, bool start, float scale,
                      bool last_only) {
  Tensor from = pixels;
  for (int size = patch; size > 1; size /= 2) {
    const Tensor to = size == 2 ? bands : room_like(bands);
    check_gpu(kernels::haar_split(level_of(bands, patch, size, start, scale, last_only),
                                  from.data<float>(), to.data<float>(), compute_stream()),
              "run a wavelet");
    from = to;
  }
}

void cuda::haar_merge(const Tensor& bands, const Tensor& pixels, int patch, bool start, float scale,
                      bool last_only) {
  Tensor from = bands;
  for (int size = 2; size <= patch; size *= 2) {
    const Tensor to = size == patch ? pixels : room_like(bands);
    check_gpu(kernels::haar_merge(level_of(bands, patch, size, start, scale, last_only),
                                  from.data<float>(), to.data<float>(), compute_stream()),
              "run a wavelet back");
    from = to;
  }
}

namespace {

// A layout, and the list on the GPU that it points to.
struct Placed {
  Tensor samples;
  kernels::PatchLayout layout;
};

Placed place(const PatchLayout& from, DType dtype) {
  std::vector<kernels::PatchSample> samples;
  std::int64_t token = 0, latent = 0;
  for (const PatchGrid& g : from.grids) {
    samples.push_back({token, latent, g.frames, g.height, g.width});
    const std::int64_t positions = std::int64_t{g.frames} * g.height * g.width;
    token += positions / (from.patch[0] * from.patch[1] * from.patch[2]);
    latent += positions * from.channels;
  }
  Placed placed;
  placed.samples = upload(samples);
  kernels::PatchLayout& layout = placed.layout;
  layout.samples = reinterpret_cast<const kernels::PatchSample*>(placed.samples.raw());
  layout.sample_count = static_cast<std::int32_t>(samples.size());
  layout.tokens = token;
  layout.channels = from.channels;
  layout.zero_channels = from.zero_channels;
  for (std::size_t i = 0; i < 3; ++i)
    layout.patch[i] = from.patch[i];
  layout.type = kernel_type(dtype);
  return placed;
}

}  // namespace

void cuda::patchify_forward(const PatchLayout& layout, const Tensor& latents,
                            const Tensor& tokens) {
  const Placed placed = place(layout, tokens.dtype());
  check_gpu(kernels::patchify_forward(placed.layout, latents.data<float>(), tokens.raw(),
                                      compute_stream()),
            "run patchify");
}

void cuda::patchify_backward(const PatchLayout& layout, const Tensor& dtokens,
                             const Tensor& dlatents) {
  const Placed placed = place(layout, dtokens.dtype());
  check_gpu(kernels::patchify_backward(placed.layout, dtokens.raw(), dlatents.data<float>(),
                                       compute_stream()),
            "run patchify backward");
}

void cuda::unpatchify_forward(const PatchLayout& layout, const Tensor& tokens,
                              const Tensor& latents) {
  const Placed placed = place(layout, DType::f32);
  check_gpu(kernels::unpatchify_forward(placed.layout, tokens.raw(), latents.data<float>(),
                                        compute_stream()),
            "run unpatchify");
}

void cuda::unpatchify_backward(const PatchLayout& layout, const Tensor& dlatents,
                               const Tensor& dtokens) {
  const Placed placed = place(layout, DType::f32);
  check_gpu(kernels::unpatchify_backward(placed.layout, dlatents.data<float>(), dtokens.raw(),
                                         compute_stream()),
            "run unpatchify backward");
}

}  // namespace vfm::ops

namespace vfm::ops::cuda {

namespace {

kernels::Regroup describe(const RegroupArgs& args) {
  kernels::Regroup call;
  call.type = kernel_type(args.type);
  call.rows = args.rows, call.columns = args.columns;
  call.fine_channels = args.fine_channels, call.coarse_channels = args.coarse_channels;
  call.space = args.space, call.frames = args.frames, call.frame = args.frame;
  call.add = args.add;
  call.x = args.x;
  call.y = args.y;
  return call;
}

}  // namespace

void pool_patches(const RegroupArgs& args) {
  check_gpu(kernels::pool_patches(describe(args), compute_stream()), "take means of patches");
}

void repeat_patches(const RegroupArgs& args) {
  check_gpu(kernels::repeat_patches(describe(args), compute_stream()), "repeat patches");
}

void pool_pixels(DType type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                 std::int64_t channels, float scale) {
  check_gpu(kernels::pool_pixels(kernel_type(type), x, y, rows, columns, channels, scale,
                                 compute_stream()),
            "halve pixels");
}

void repeat_pixels(DType type, const void* x, void* y, std::int64_t rows, std::int64_t columns,
                   std::int64_t channels, float scale) {
  check_gpu(kernels::repeat_pixels(kernel_type(type), x, y, rows, columns, channels, scale,
                                   compute_stream()),
            "repeat pixels");
}

void pool_frames(DType type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                 float scale) {
  check_gpu(kernels::pool_frames(kernel_type(type), x, y, frames, size, scale, compute_stream()),
            "halve frames");
}

void repeat_frames(DType type, const void* x, void* y, std::int64_t frames, std::int64_t size,
                   float scale) {
  check_gpu(kernels::repeat_frames(kernel_type(type), x, y, frames, size, scale, compute_stream()),
            "repeat frames");
}

}  // namespace vfm::ops::cuda
