// Plain loops: both ends of the network together are under a percent of a step.
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patchify.h"

#include "base/error.h"
#include "ops/conv/patchify_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

using Patch = std::array<int, 3>;

struct Layout {
  int channels = 0;        // of the latents
  int token_channels = 0;  // of a token; those beyond `channels` are padding
  Patch patch{};
  bool channel_first = true;  // (c, pt, ph, pw), else (ph, pw, pt, c)

  std::int64_t token_width() const {
    return std::int64_t{token_channels} * patch[0] * patch[1] * patch[2];
  }
};

// Calls move(index in the token array, index in the latents) for every latent element.
template <class Move>
void for_each_element(const std::vector<PatchGrid>& grids, const Layout& l, Move move) {
  const auto [pt, ph, pw] = l.patch;
  std::int64_t first_token = 0, first_latent = 0;
  for (const PatchGrid& g : grids) {
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
            const int place = l.channel_first ? ((c * pt + a) * ph + b) * pw + d
                                              : ((b * pw + d) * pt + a) * l.token_channels + c;
            move((token_row + x / pw) * l.token_width() + place, latent_row + x);
          }
        }
    first_token += g.frames / pt * rows * columns;
    first_latent += std::int64_t{l.channels} * g.frames * g.height * g.width;
  }
}

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

}  // namespace

Tensor patchify(Tape& tape, const Tensor& latents, const std::vector<PatchGrid>& grids,
                int channels, int zero_channels, Patch patch, DType out) {
  const Layout layout{channels, channels + zero_channels, patch, true};
  const Counts counts = count(grids, patch);
  if (latents.dtype() != DType::f32 || latents.elements() != counts.positions * channels)
    fail("patchify: latents {} do not hold {} positions of {} channels", to_string(latents.shape()),
         counts.positions, channels);
  if constexpr (kHaveCuda)
    if (latents.device() == Device::cuda)
      return patchify_cuda(tape, latents, grids, channels, zero_channels, patch,
                           {counts.tokens, layout.token_width()}, out);
  const Tensor tokens = Tensor::zeros({counts.tokens, layout.token_width()});
  const float* from = latents.data<float>();
  float* to = tokens.data<float>();
  for_each_element(grids, layout, [&](std::int64_t t, std::int64_t l) { to[t] = from[l]; });
  const Tensor result = tokens.to(out);
  tape.record(result, {latents}, [=](Tape& tp) {
    const Tensor dy = tp.take(result).to(DType::f32);
    const Tensor dx(latents.shape());
    for_each_element(grids, layout, [&](std::int64_t t, std::int64_t l) {
      dx.data<float>()[l] = dy.data<float>()[t];
    });
    tp.accumulate(latents, dx);
  });
  return result;
}

Tensor unpatchify(Tape& tape, const Tensor& tokens, const std::vector<PatchGrid>& grids,
                  int channels, Patch patch) {
  const Layout layout{channels, channels, patch, false};
  const Counts counts = count(grids, patch);
  if (tokens.dtype() != DType::f32 || tokens.shape() != Shape{counts.tokens, layout.token_width()})
    fail("unpatchify: tokens {} are not [{}, {}]", to_string(tokens.shape()), counts.tokens,
         layout.token_width());
  if constexpr (kHaveCuda)
    if (tokens.device() == Device::cuda)
      return unpatchify_cuda(tape, tokens, grids, channels, patch, counts.positions * channels);
  const Tensor latents({counts.positions * channels});
  const float* from = tokens.data<float>();
  float* to = latents.data<float>();
  for_each_element(grids, layout, [&](std::int64_t t, std::int64_t l) { to[l] = from[t]; });
  tape.record(latents, {tokens}, [=](Tape& tp) {
    const Tensor dy = tp.take(latents);
    const Tensor dx(tokens.shape());
    for_each_element(grids, layout, [&](std::int64_t t, std::int64_t l) {
      dx.data<float>()[t] = dy.data<float>()[l];
    });
    tp.accumulate(tokens, dx);
  });
  return latents;
}

}  // namespace vfm::ops
