// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patchify.h"

#include "base/error.h"
#include "ops/conv/conv_kernels.h"
#include "ops/run.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

using Patch = std::array<int, 3>;

struct Counts {
  std::int64_t tokens = 0, positions = 0;
};

Counts count(const std::vector<PatchGrid>& grids, const Patch& p) {
  Counts counts;
  for (const PatchGrid& g : grids) {
    if (g.frames <= 0 || g.height <= 0 || g.width <= 0 || g.frames % p[0] || g.height % p[1] ||
        g.width % p[2])
      fail("a latent of {}x{}x{} is not made of patches of {}x{}x{}", g.frames, g.height, g.width,
           p[0], p[1], p[2]);
    const std::int64_t positions = std::int64_t{g.frames} * g.height * g.width;
    counts.positions += positions;
    counts.tokens += positions / (p[0] * p[1] * p[2]);
  }
  return counts;
}

// The CPU's version works in f32.
std::int64_t wide_tokens(const Tensor& tokens) {
  return tokens.dtype() == DType::f32 ? 0 : tokens.elements();
}

}  // namespace

Tensor patchify(Tape& tape, const Tensor& latents, const std::vector<PatchGrid>& grids,
                int channels, int zero_channels, Patch patch, DType out) {
  const PatchLayout layout{grids, channels, zero_channels, patch};
  const Counts counts = count(grids, patch);
  if (latents.dtype() != DType::f32 || latents.elements() != counts.positions * channels)
    fail("patchify: latents {} do not hold {} positions of {} channels", to_string(latents.shape()),
         counts.positions, channels);
  const Tensor tokens({counts.tokens, layout.token_width()}, out, latents.device());
  VFM_RUN(Touching(latents, tokens).cpu_scratch([&] { return wide_tokens(tokens); }),
          patchify_forward, layout, latents, tokens);
  tape.record(tokens, {latents}, [=](Tape& t) {
    const Tensor dtokens = t.take(tokens).to(out);
    const Tensor dlatents(latents.shape(), DType::f32, latents.device());
    VFM_RUN(Touching(dtokens, dlatents).cpu_scratch([&] { return wide_tokens(dtokens); }),
            patchify_backward, layout, dtokens, dlatents);
    t.accumulate(latents, dlatents);
  });
  return tokens;
}

Tensor unpatchify(Tape& tape, const Tensor& tokens, const std::vector<PatchGrid>& grids,
                  int channels, Patch patch) {
  const PatchLayout layout{grids, channels, 0, patch};
  const Counts counts = count(grids, patch);
  if (tokens.dtype() != DType::f32 || tokens.shape() != Shape{counts.tokens, layout.token_width()})
    fail("unpatchify: tokens {} are not [{}, {}]", to_string(tokens.shape()), counts.tokens,
         layout.token_width());
  const Tensor latents({counts.positions * channels}, DType::f32, tokens.device());
  VFM_RUN(Touching(tokens, latents), unpatchify_forward, layout, tokens, latents);
  tape.record(latents, {tokens}, [=](Tape& t) {
    const Tensor dlatents = t.take(latents).to(DType::f32);
    const Tensor dtokens(tokens.shape(), DType::f32, tokens.device());
    VFM_RUN(Touching(dlatents, dtokens), unpatchify_backward, layout, dlatents, dtokens);
    t.accumulate(tokens, dtokens);
  });
  return latents;
}

// The CPU version has plain loops: both ends of the network together are under a percent of a step.
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
