// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patchify.h"

#include "base/error.h"
#include "ops/conv/conv_kernels.h"
#include "ops/run.h"

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

}  // namespace vfm::ops
