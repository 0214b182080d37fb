// One element at a time: both ends of the network together are under a percent of a step.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "common/launch.cuh"
#include "patchify.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kTokens = kThreads / 32;  // of a block: a warp has one

__device__ __forceinline__ float read(const float* p) {
  return *p;
}
__device__ __forceinline__ float read(const __nv_bfloat16* p) {
  return __bfloat162float(*p);
}
__device__ __forceinline__ void write(float* p, float value) {
  *p = value;
}
__device__ __forceinline__ void write(__nv_bfloat16* p, float value) {
  *p = __float2bfloat16_rn(value);
}

// The last sample that does not begin behind the token.
__device__ __forceinline__ PatchSample sample_of(const PatchLayout& l, std::int64_t token) {
  int low = 0, high = l.sample_count;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (l.samples[middle].first_token <= token) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return l.samples[low];
}

// An element of a token: its channel, and where it is in the patch.
struct Place {
  int channel, t, y, x;
};

template <bool kChannelFirst>
__device__ __forceinline__ Place place_of(const PatchLayout& l, int element) {
  const int pt = l.patch[0], ph = l.patch[1], pw = l.patch[2];
  if constexpr (kChannelFirst) {
    const int x = element % pw, above = element / pw, y = above % ph, rest = above / ph;
    return {rest / pt, rest % pt, y, x};
  } else {
    const int channels = l.channels + l.zero_channels;
    const int channel = element % channels, place = element / channels;
    const int t = place % pt, rest = place / pt;
    return {channel, t, rest / pw, rest % pw};
  }
}

// A warp walks along one token. To the tokens or back, which is all that a gradient is.
template <class T, bool kChannelFirst, bool kToTokens>
__global__ void __launch_bounds__(kThreads)
    move_kernel(const PatchLayout l, const void* from, void* to) {
  const std::int64_t token = std::int64_t{blockIdx.x} * kTokens + threadIdx.x / 32;
  if (token >= l.tokens) return;
  const PatchSample s = sample_of(l, token);
  const int columns = s.width / l.patch[2], rows = s.height / l.patch[1];
  const std::int64_t local = token - s.first_token, line = local / columns;
  const std::int64_t x = local % columns * l.patch[2], y = line % rows * l.patch[1],
                     t = line / rows * l.patch[0];
  const int width = (l.channels + l.zero_channels) * l.patch[0] * l.patch[1] * l.patch[2];
  for (std::int64_t element = threadIdx.x % 32; element < width; element += 32) {
    const Place p = place_of<kChannelFirst>(l, static_cast<int>(element));
    const std::int64_t in_tokens = token * width + element;
    const std::int64_t frame = std::int64_t{p.channel} * s.frames + t + p.t;
    const std::int64_t in_latents =
        s.first_latent + (frame * s.height + y + p.y) * s.width + x + p.x;
    const bool real = p.channel < l.channels;
    if constexpr (kToTokens) {
      write(static_cast<T*>(to) + in_tokens,
            real ? static_cast<const float*>(from)[in_latents] : 0.f);
    } else if (real) {
      static_cast<float*>(to)[in_latents] = read(static_cast<const T*>(from) + in_tokens);
    }
  }
}

template <bool kChannelFirst, bool kToTokens>
int move(const PatchLayout& l, const void* from, void* to, cudaStream_t stream) {
  std::int64_t width = std::int64_t{l.channels} + l.zero_channels;
  bool refused = l.tokens < 0 || l.channels < 0 || l.zero_channels < 0 || l.sample_count < 0 ||
                 (l.tokens > 0 && l.sample_count == 0) || width > 0x7fffffff;
  for (const int size : l.patch) {
    refused = refused || size < 1 || width * size > 0x7fffffff;
    width = refused ? 0 : width * size;
  }
  const std::int64_t blocks = (l.tokens + kTokens - 1) / kTokens;
  if (refused || blocks > 0x7fffffff) return cudaErrorInvalidValue;
  const auto kernel = l.type == Type::bf16 ? move_kernel<__nv_bfloat16, kChannelFirst, kToTokens>
                                           : move_kernel<float, kChannelFirst, kToTokens>;
  return launch(kernel, dim3(static_cast<unsigned>(blocks)), kThreads, 0, stream, l, from, to);
}

}  // namespace

int patchify_forward(const PatchLayout& layout, const float* latents, void* tokens,
                     CUstream_st* stream) {
  return move<true, true>(layout, latents, tokens, stream);
}

int patchify_backward(const PatchLayout& layout, const void* dtokens, float* dlatents,
                      CUstream_st* stream) {
  return move<true, false>(layout, dtokens, dlatents, stream);
}

int unpatchify_forward(const PatchLayout& layout, const void* tokens, float* latents,
                       CUstream_st* stream) {
  return move<false, false>(layout, tokens, latents, stream);
}

int unpatchify_backward(const PatchLayout& layout, const float* dlatents, void* dtokens,
                        CUstream_st* stream) {
  return move<false, true>(layout, dlatents, dtokens, stream);
}

}  // namespace vfm::kernels
