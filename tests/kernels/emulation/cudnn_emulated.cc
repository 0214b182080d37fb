// In place of lib/ops/attention/attention_cudnn_cuda.cc and attention_fp8_cudnn_cuda.cc: attention
// in plain double, in the memory that the emulation has for that of the GPU. log_sum_exp is [S, H],
// as cuDNN's. In FP8 it rounds as lib/ops/attention/attention_fp8_graph.h says that cuDNN does.
// SPDX-License-Identifier: Apache-2.0
#include "cudnn_emulated.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/float8.h"
#include "base/half.h"
#include "ops/attention/attention_cudnn_cuda.h"
#include "ops/attention/attention_fp8_cudnn_cuda.h"
#include "ops/attention/attention_shape.h"
#include "ops/conv/conv2d_cudnn_cuda.h"
#include "ops/cudnn/cudnn_cuda.h"

namespace vfm {
namespace {

float read(const void* matrix, std::int64_t at) {
  return bfloat16_to_float(static_cast<const std::uint16_t*>(matrix)[at]);
}

void write(void* matrix, std::int64_t at, double value) {
  static_cast<std::uint16_t*>(matrix)[at] = float_to_bfloat16(static_cast<float>(value));
}

// Calls f(query row, first key row, keys that it sees, head) for each of samples with keys.
template <class F>
void each_query(const ops::AttentionArgs& a, const F& f) {
  for (std::int64_t s = 0; s < a.samples; ++s)
    for (std::int64_t row = a.query_starts[s]; row < a.query_starts[s + 1] && ops::attends(a, s);
         ++row)
      for (int head = 0; head < a.heads; ++head) {
        const std::int64_t keys = a.key_starts[s + 1] - a.key_starts[s];
        f(row, a.key_starts[s], a.causal ? row - a.query_starts[s] + 1 : keys, head);
      }
}

double score(const ops::AttentionArgs& a, std::int64_t row, std::int64_t key, int head) {
  const int key_head = head / (a.heads / a.key_heads);
  double sum = 0;
  for (int d = 0; d < a.head_dim; ++d)
    sum += double{read(a.q, row * a.q_stride + head * a.head_dim + d)} *
           read(a.k, key * a.kv_stride + key_head * a.head_dim + d);
  return sum * a.scale;
}

// Samples that have queries or keys alone are not written; what was there is not known.
void spoil_others(const ops::AttentionArgs& a, const std::int64_t* starts, void* rows,
                  std::int64_t bytes) {
  for (std::int64_t s = 0; s < a.samples; ++s)
    if (!ops::attends(a, s))
      std::memset(static_cast<char*>(rows) + starts[s] * bytes, 0xff,
                  static_cast<std::size_t>((starts[s + 1] - starts[s]) * bytes));
}

}  // namespace

test::EmulatedCudnn& test::emulated_cudnn() {
  static EmulatedCudnn instance;
  return instance;
}

namespace ops {

struct CudnnPack {};

std::string why_no_cudnn() {
  return test::emulated_cudnn().missing;
}

bool cudnn_takes_empty_samples() {
  return test::emulated_cudnn().empty_samples;
}

std::string describe_cudnn() {
  return "emulated";
}
std::shared_ptr<CudnnPack> cudnn_pack() {
  return std::make_shared<CudnnPack>();
}

void attention_forward_cudnn(const AttentionArgs& a, CudnnPack&) {
  test::EmulatedCudnn& state = test::emulated_cudnn();
  ++state.forward_calls;
  if (state.forward_fails) fail("cuDNN has no engine for this graph");
  spoil_others(a, a.query_starts, a.out, 2 * std::int64_t{a.heads} * a.head_dim);
  spoil_others(a, a.query_starts, a.log_sum_exp, 4 * std::int64_t{a.heads});
  each_query(a, [&](std::int64_t row, std::int64_t first, std::int64_t keys, int head) {
    const int column = head / (a.heads / a.key_heads) * a.head_dim;
    double sum = 0;
    std::vector<double> out(static_cast<std::size_t>(a.head_dim), 0.);
    for (std::int64_t key = first; key < first + keys; ++key) {
      const double weight = std::exp(score(a, row, key, head));
      sum += weight;
      for (std::size_t d = 0; d < out.size(); ++d)
        out[d] += weight * read(a.v, key * a.kv_stride + column + static_cast<int>(d));
    }
    a.log_sum_exp[row * a.heads + head] = static_cast<float>(std::log(sum) + state.sums_off);
    for (std::size_t d = 0; d < out.size(); ++d)
      write(a.out, (row * a.heads + head) * a.head_dim + static_cast<int>(d),
            state.out_factor * out[d] / sum);
  });
}

void attention_backward_cudnn(const AttentionArgs& a, CudnnPack&) {
  test::EmulatedCudnn& state = test::emulated_cudnn();
  ++state.backward_calls;
  if (state.backward_fails) fail("cuDNN has no engine for this graph");
  const auto room = [](std::int64_t n) { return std::vector<double>(static_cast<std::size_t>(n)); };
  const std::int64_t width = std::int64_t{a.heads} * a.head_dim;
  const std::int64_t key_width = std::int64_t{a.key_heads} * a.head_dim;
  std::vector<double> dq = room(a.query_starts[a.samples] * width),
                      dk = room(a.key_starts[a.samples] * key_width), dv = dk;
  each_query(a, [&](std::int64_t row, std::int64_t first, std::int64_t keys, int head) {
    const int column = head / (a.heads / a.key_heads) * a.head_dim;
    const std::int64_t at = row * width + std::int64_t{head} * a.head_dim;
    double mean = 0;
    for (int d = 0; d < a.head_dim; ++d)
      mean += double{read(a.dout, at + d)} * read(a.out, at + d);
    for (std::int64_t key = first; key < first + keys; ++key) {
      const double weight =
          std::exp(score(a, row, key, head) - a.log_sum_exp[row * a.heads + head]);
      double dweight = 0;
      for (int d = 0; d < a.head_dim; ++d)
        dweight += double{read(a.dout, at + d)} * read(a.v, key * a.kv_stride + column + d);
      const double dscore = weight * (dweight - mean) * a.scale;
      for (int d = 0; d < a.head_dim; ++d) {
        const auto q_at = static_cast<std::size_t>(at + d),
                   k_at = static_cast<std::size_t>(key * key_width + column + d);
        dq[q_at] += dscore * read(a.k, key * a.kv_stride + column + d);
        dk[k_at] += dscore * read(a.q, row * a.q_stride + head * a.head_dim + d);
        dv[k_at] += weight * read(a.dout, at + d);
      }
    }
  });
  const auto store = [](void* to, const std::vector<double>& from, std::int64_t columns,
                        std::int64_t stride, double factor) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(from.size()); ++i)
      write(to, i / columns * stride + i % columns, factor * from[static_cast<std::size_t>(i)]);
  };
  store(a.dq, dq, width, a.q_stride, 1);
  store(a.dk, dk, key_width, a.kv_stride, state.dk_factor);
  store(a.dv, dv, key_width, a.kv_stride, 1);
  if (a.q_stride == width) spoil_others(a, a.query_starts, a.dq, 2 * width);
  spoil_others(a, a.key_starts, a.dk, 2 * a.kv_stride);
}

std::string why_no_cudnn_fp8() {
  const test::EmulatedCudnn& state = test::emulated_cudnn();
  return state.missing.empty() ? state.fp8_missing : state.missing;
}

bool cudnn_fp8_writes_bf16() {
  return test::emulated_cudnn().fp8_bf16;
}

void attention_fp8_cudnn(const Fp8CudnnCall& call) {
  test::EmulatedCudnn& state = test::emulated_cudnn();
  ++state.fp8_calls;
  if (state.fp8_fails) fail("cuDNN has no engine for this graph");
  const Fp8AttentionShape& s = call.shape;
  if (s.keys == 0) fail("Hopper's kernel would never end");
  const auto code = [](const void* from, std::int64_t at) {
    return double{f8e4m3_to_float(static_cast<const std::uint8_t*>(from)[at])};
  };
  const double factor = double{call.scales[0]} * call.scales[1] / std::sqrt(s.head_dim);
  for (std::int64_t row = 0; row < s.samples * s.queries; ++row)
    for (int head = 0; head < s.heads; ++head) {
      const std::int64_t first = row / s.queries * s.keys, q = row * s.q_stride + head * s.head_dim,
                         column = std::int64_t{head / (s.heads / s.key_heads)} * s.head_dim;
      double top = -HUGE_VAL, total = 0;
      std::vector<double> scores, sums(static_cast<std::size_t>(s.head_dim), 0.);
      for (std::int64_t key = 0; key < s.keys; ++key) {
        scores.push_back(0);
        for (int d = 0; d < s.head_dim; ++d)
          scores.back() +=
              code(call.q, q + d) * code(call.k, (first + key) * s.kv_stride + column + d) * factor;
      }
      for (std::int64_t begin = 0; begin < s.keys; begin += kFp8KeyBlock) {
        const std::int64_t end = std::min(begin + kFp8KeyBlock, s.keys);
        const double most = std::max(
                         top, *std::max_element(scores.begin() + begin, scores.begin() + end)),
                     before = std::exp(top - most);
        top = most, total *= before;
        for (double& sum : sums)
          sum *= before;
        for (std::int64_t key = begin; key < end; ++key) {
          const double weight = std::exp(scores[static_cast<std::size_t>(key)] - top);
          const double rounded = f8e4m3_to_float(
              float_to_f8e4m3(static_cast<float>(weight * double{kFp8WeightScale})));
          total += weight;
          for (int d = 0; d < s.head_dim; ++d)
            sums[static_cast<std::size_t>(d)] +=
                rounded * code(call.v, (first + key) * s.kv_stride + column + d);
        }
      }
      for (int d = 0; d < s.head_dim; ++d) {
        const double of_codes = sums[static_cast<std::size_t>(d)] / kFp8WeightScale / total,
                     value = state.fp8_factor * of_codes * call.scales[2];
        const std::int64_t at = (row * s.heads + head) * s.head_dim + d;
        if (s.wide)
          write(call.out, at, value);
        else
          static_cast<std::uint8_t*>(call.out)[at] =
              float_to_f8e4m3(static_cast<float>(value * call.scales[3]));
      }
    }
}

// Of one image after the other, in double: weights are [out, taps, in].
void conv2d_cudnn(const ConvCall& call) {
  test::EmulatedCudnn& state = test::emulated_cudnn();
  const Conv2d& c = call.shape.conv;
  ++state.convolutions;
  if (state.convolution_fails) fail("cuDNN has no engine for this graph");
  const bool back = call.shape.back;
  const std::int64_t in_size = c.height * c.width * c.in, out_size = c.y_step();
  for (std::int64_t image = 0; image < call.images; ++image) {
    std::vector<double> sums(static_cast<std::size_t>(back ? in_size : out_size), 0.);
    for (std::int64_t at = 0; at < out_size; ++at) {
      const std::int64_t n = at % c.out, column = at / c.out % c.out_width(),
                         row = at / c.out / c.out_width();
      const double dy = read(call.y, image * call.y_step + at);
      for (std::int64_t tap = 0; tap < c.kernel_height * c.kernel_width; ++tap) {
        const std::int64_t y = row * c.stride_y - c.pad_top + tap / c.kernel_width,
                           x = column * c.stride_x - c.pad_left + tap % c.kernel_width;
        if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
        for (std::int64_t i = 0; i < c.in; ++i) {
          const std::int64_t source = (y * c.width + x) * c.in + i;
          const double w =
              read(call.weights, (n * c.kernel_height * c.kernel_width + tap) * c.in + i);
          if (back)
            sums[static_cast<std::size_t>(source)] += dy * w;
          else
            sums[static_cast<std::size_t>(at)] += w * read(call.x, image * call.x_step + source);
        }
      }
      if (back) continue;
      double& sum = sums[static_cast<std::size_t>(at)];
      if (call.bias != nullptr) sum += call.bias[n];
      if (call.residual != nullptr) sum += read(call.residual, image * call.y_step + at);
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      write(back ? call.x : call.y,
            image * (back ? call.x_step : call.y_step) + static_cast<std::int64_t>(i),
            state.convolution_factor * sums[i]);
  }
}

}  // namespace ops
}  // namespace vfm
