// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/softmax.h"
#include "kernels/time_attention.h"
#include "ops/attention/video_attention_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void softmax_rows(const float* s, DType type, void* p, std::int64_t rows, std::int64_t columns,
                  float scale) {
  check_gpu(kernels::softmax_rows(s, kernel_type(type), p, rows, columns, scale, compute_stream()),
            "run softmax");
}

void softmax_rows_backward(DType type, const void* p, const float* dp, void* ds, std::int64_t rows,
                           std::int64_t columns, float scale) {
  check_gpu(kernels::softmax_rows_backward(kernel_type(type), p, dp, ds, rows, columns, scale,
                                           compute_stream()),
            "run softmax backward");
}

namespace {

// The pointers of one call, and where their lists are.
struct Described {
  kernels::TimeAttention call;
  Tensor keys, values;
};

Described describe(const TimeAttentionArgs& a) {
  if (a.channels > kernels::kTimeAttentionChannels)
    fail("time_attention on cuda has at most {} channels, not {}", kernels::kTimeAttentionChannels,
         a.channels);
  Described d;
  kernels::TimeAttention& call = d.call;
  call.type = kernel_type(a.type);
  call.queries = a.queries, call.frames = a.frames, call.pixels = a.pixels;
  call.channels = static_cast<int>(a.channels);
  call.scale = a.scale;
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  call.vector = a.channels % (a.type == DType::bf16 ? 8 : 4) == 0 && aligned(a.q) &&
                aligned(a.out) && aligned(a.dout) && aligned(a.dq) && aligned(a.dk) &&
                aligned(a.dv);
  const auto list = [&](const void* const* frames) {
    const std::vector<const void*> pointers(frames, frames + a.frames);
    call.vector = call.vector && std::all_of(pointers.begin(), pointers.end(), aligned);
    return upload(pointers);
  };
  d.keys = list(a.keys), d.values = list(a.values);
  call.q = a.q;
  call.keys = d.keys.data<const void*>();
  call.values = d.values.data<const void*>();
  call.out = a.out;
  call.dout = a.dout, call.dq = a.dq, call.dk = a.dk, call.dv = a.dv;
  return d;
}

}  // namespace

void time_attention_forward(const TimeAttentionArgs& args) {
  const Described d = describe(args);
  check_gpu(kernels::time_attention_forward(d.call, compute_stream()), "run attention along time");
}

void time_attention_backward(const TimeAttentionArgs& args) {
  Described d = describe(args);
  const std::int64_t square = args.queries * args.queries;
  const std::int64_t at_once = time_attention_pixels_at_once(args);
  const Tensor scratch({2, at_once, square}, DType::f32, Device::cuda);
  d.call.p = scratch.data<float>(), d.call.ds = d.call.p + at_once * square;
  for (std::int64_t first = 0; first < args.pixels; first += at_once) {
    d.call.first_pixel = first, d.call.some_pixels = std::min(at_once, args.pixels - first);
    check_gpu(kernels::time_attention_backward(d.call, compute_stream()),
              "run attention along time backward");
  }
}

}  // namespace vfm::ops::cuda
