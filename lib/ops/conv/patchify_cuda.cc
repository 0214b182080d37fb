// SPDX-License-Identifier: Apache-2.0
#include "kernels/patchify.h"
#include "ops/conv/patchify_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {
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
