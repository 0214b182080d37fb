// Plain loops: both ends of the network together are under a percent of a step.
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

// Calls move(index in the token array, index in the latents) for every latent element.
template <class Move>
void for_each_element(const PatchLayout& l, bool channel_first, Move move) {
  const auto [pt, ph, pw] = l.patch;
  const int token_channels = l.channels + l.zero_channels;
  std::int64_t first_token = 0, first_latent = 0;
  for (const PatchGrid& g : l.grids) {
    const std::int64_t rows = g.height / ph, columns = g.width / pw;
    for (int c = 0; c < l.channels; ++c)
      for (int t = 0; t < g.frames; ++t)
        for (int y = 0; y < g.height; ++y) {
          const std::int64_t token_row = first_token + (t / pt * rows + y / ph) * columns;
          const std::int64_t latent_row =
              first_latent + ((std::int64_t{c} * g.frames + t) * g.height + y) * g.width;
          const int a = t % pt, b = y % ph;
          for (int x = 0; x < g.width; ++x) {
            const int d = x % pw;
            const int place = channel_first ? ((c * pt + a) * ph + b) * pw + d
                                            : ((b * pw + d) * pt + a) * token_channels + c;
            move((token_row + x / pw) * l.token_width() + place, latent_row + x);
          }
        }
    first_token += g.frames / pt * rows * columns;
    first_latent += std::int64_t{l.channels} * g.frames * g.height * g.width;
  }
}

}  // namespace

void cpu::patchify_forward(const PatchLayout& layout, const Tensor& latents, const Tensor& tokens) {
  const Tensor wide = tokens.dtype() == DType::f32 ? tokens : Tensor(tokens.shape());
  zero_bytes(wide.raw(), Device::cpu, wide.bytes());
  const float* from = latents.data<float>();
  float* to = wide.data<float>();
  for_each_element(layout, true, [&](std::int64_t t, std::int64_t l) { to[t] = from[l]; });
  if (wide.id() != tokens.id()) convert(wide, tokens);
}

void cpu::patchify_backward(const PatchLayout& layout, const Tensor& dtokens,
                            const Tensor& dlatents) {
  const Tensor wide = dtokens.to(DType::f32);
  const float* from = wide.data<float>();
  float* to = dlatents.data<float>();
  for_each_element(layout, true, [&](std::int64_t t, std::int64_t l) { to[l] = from[t]; });
}

void cpu::unpatchify_forward(const PatchLayout& layout, const Tensor& tokens,
                             const Tensor& latents) {
  const float* from = tokens.data<float>();
  float* to = latents.data<float>();
  for_each_element(layout, false, [&](std::int64_t t, std::int64_t l) { to[l] = from[t]; });
}

void cpu::unpatchify_backward(const PatchLayout& layout, const Tensor& dlatents,
                              const Tensor& dtokens) {
  const float* from = dlatents.data<float>();
  float* to = dtokens.data<float>();
  for_each_element(layout, false, [&](std::int64_t t, std::int64_t l) { to[t] = from[l]; });
}

}  // namespace vfm::ops
