// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patchify_cuda.h"

#include "kernels/patchify.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

using Patch = std::array<int, 3>;

// A layout, and the list on the GPU that it points to.
struct Placed {
  Tensor samples;
  kernels::PatchLayout layout;
};

Placed place(const std::vector<PatchGrid>& grids, int channels, int zero_channels,
             const Patch& patch, DType dtype) {
  std::vector<kernels::PatchSample> samples;
  std::int64_t token = 0, latent = 0;
  for (const PatchGrid& g : grids) {
    samples.push_back({token, latent, g.frames, g.height, g.width});
    const std::int64_t positions = std::int64_t{g.frames} * g.height * g.width;
    token += positions / (patch[0] * patch[1] * patch[2]);
    latent += positions * channels;
  }
  Placed placed;
  placed.samples = upload(samples);
  kernels::PatchLayout& layout = placed.layout;
  layout.samples = reinterpret_cast<const kernels::PatchSample*>(placed.samples.raw());
  layout.sample_count = static_cast<std::int32_t>(samples.size());
  layout.tokens = token;
  layout.channels = channels;
  layout.zero_channels = zero_channels;
  for (std::size_t i = 0; i < 3; ++i)
    layout.patch[i] = patch[i];
  layout.type = dtype == DType::bf16 ? kernels::Type::bf16 : kernels::Type::f32;
  return placed;
}

}  // namespace

Tensor patchify_cuda(Tape& tape, const Tensor& latents, const std::vector<PatchGrid>& grids,
                     int channels, int zero_channels, Patch patch, Shape shape, DType out) {
  const Placed placed = place(grids, channels, zero_channels, patch, out);
  const Tensor tokens(std::move(shape), out, Device::cuda);
  check_gpu(kernels::patchify_forward(placed.layout, latents.data<float>(), tokens.raw(),
                                      compute_stream()),
            "run patchify");
  tape.record(tokens, {latents}, [=](Tape& t) {
    const Tensor dy = t.take(tokens).to(out);
    const Tensor dx(latents.shape(), DType::f32, Device::cuda);
    check_gpu(
        kernels::patchify_backward(placed.layout, dy.raw(), dx.data<float>(), compute_stream()),
        "run patchify backward");
    t.accumulate(latents, dx);
  });
  return tokens;
}

Tensor unpatchify_cuda(Tape& tape, const Tensor& tokens, const std::vector<PatchGrid>& grids,
                       int channels, Patch patch, std::int64_t elements) {
  const Placed placed = place(grids, channels, 0, patch, DType::f32);
  const Tensor latents({elements}, DType::f32, Device::cuda);
  check_gpu(kernels::unpatchify_forward(placed.layout, tokens.raw(), latents.data<float>(),
                                        compute_stream()),
            "run unpatchify");
  tape.record(latents, {tokens}, [=](Tape& t) {
    const Tensor dy = t.take(latents).to(DType::f32);
    const Tensor dx(tokens.shape(), DType::f32, Device::cuda);
    check_gpu(
        kernels::unpatchify_backward(placed.layout, dy.data<float>(), dx.raw(), compute_stream()),
        "run unpatchify backward");
    t.accumulate(tokens, dx);
  });
  return latents;
}

}  // namespace vfm::ops
