// Attention in FP8 on a GPU: cuDNN's, or none (attention_fp8.h).
//
// The first call of a shape is compared with attention in bf16 over the same rounded heads. cuDNN
// stays only if the two differ by no more than its rounding of weights and results: 10 % of the
// result, Euclidean norms, where 4 % are usual.
// Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "kernels/head_codes.h"
#include "ops/attention/attention_fp8_cudnn_cuda.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/matmul/check_fp8_cuda.h"
#include "tensor/device.h"
#include "tensor/gpu_graph.h"

namespace vfm::ops {
namespace {

/// Neighbouring samples of equal lengths.
struct Fp8Run {
  Fp8AttentionShape shape;
  std::int64_t query = 0, key = 0;  // first rows
};

std::vector<Fp8Run> fp8_runs(const Fp8AttentionCall& call, const AttentionPack& pack) {
  std::vector<Fp8Run> runs;
  std::int64_t query = 0, key = 0;
  for (std::size_t i = 0; i < pack.query_lengths.size(); ++i) {
    const std::int64_t queries = pack.query_lengths[i], keys = pack.key_lengths[i];
    if (!runs.empty() && runs.back().shape.queries == queries && runs.back().shape.keys == keys)
      ++runs.back().shape.samples;
    else
      runs.push_back({{1, queries, keys, pack.heads, pack.key_heads, pack.head_dim, call.q.size(1),
                       call.kv.size(1), cudnn_fp8_writes_bf16()},
                      query,
                      key});
    query += queries, key += keys;
  }
  std::erase_if(runs, [](const Fp8Run& run) { return run.shape.queries == 0; });
  return runs;
}

void run_fp8(const Fp8AttentionCall& call, const std::vector<Fp8Run>& runs) {
  const Tensor scales({4}, DType::f32, Device::cuda);
  check_fp8_gpu(kernels::head_scales(call.largest.data<std::uint32_t>(), scales.data<float>(),
                                     compute_stream()),
                "compute scales of heads");
  for (const auto& [shape, query, key] : runs) {
    const std::int64_t width = call.codes.size(1);
    const std::int64_t values = call.k_column + std::int64_t{shape.key_heads} * shape.head_dim;
    void* const out = shape.wide
                          ? static_cast<void*>(call.out.data<std::uint16_t>() + query * width)
                          : call.codes.data<std::uint8_t>() + query * width;
    const auto size = static_cast<std::size_t>(shape.samples * shape.queries * width);
    if (shape.keys == 0) {
      zero_bytes(out, Device::cuda, size * (shape.wide ? 2 : 1));
      continue;
    }
    const std::uint8_t* const kv = call.kv.data<std::uint8_t>() + key * call.kv.size(1);
    attention_fp8_cudnn({shape, call.q.data<std::uint8_t>() + query * call.q.size(1),
                         kv + call.k_column, kv + values, scales.data<float>(), out});
  }
}

struct Fp8Trust : CudnnTrust {
  bool checked = false;
};

// Never destroyed, as it needs no destruction.
Fp8Trust& fp8_trust_in(const std::vector<Fp8Run>& runs) {
  static auto* const known = new std::map<std::vector<Fp8AttentionShape>, Fp8Trust>;
  std::vector<Fp8AttentionShape> shapes;
  for (const Fp8Run& run : runs)
    shapes.push_back(run.shape);
  Fp8Trust& trust = (*known)[shapes];
  trust.instead = "in bf16";
  return trust;
}

bool refuse_fp8_here() {
  const std::string why = why_no_fp8_attention(Device::cuda);
  static auto* const said = new std::set<std::string>;
  if (!why.empty() && said->insert(why).second)
    log_info("attention in FP8 runs in bf16 over the rounded heads: {}", why);
  return !why.empty();
}

}  // namespace

Fp8AttentionResult cuda::attention_fp8(const Fp8AttentionCall& call, const AttentionPack& pack) {
  if (refuse_fp8_here()) return Fp8AttentionResult::refused;
  const std::vector<Fp8Run> runs = fp8_runs(call, pack);
  Fp8Trust& trust = fp8_trust_in(runs);
  if (trust.refused) return Fp8AttentionResult::refused;
  const std::string name = "attention in FP8 of " + text_of(runs.front().shape);
  try {
    run_fp8(call, runs);
  } catch (const Error& error) {
    if (GpuGraph::recording()) throw;  // plainly, it runs perhaps
    trust.refuse(name, error.what());
    return Fp8AttentionResult::refused;
  }
  const bool wide = runs.front().shape.wide;
  if (!trust.checked) {
    const HeadKinds kinds{.values = pack.heads, .head_dim = pack.head_dim};
    const Tensor got = wide ? call.out : restore_heads(call.codes, kinds, call.largest),
                 expected = attention_over_codes(call, pack);
    const std::int64_t rows = got.size(0), width = got.size(1);
    if (!trust.agree(
            trust.checked, name,
            {{{"output", got.raw(), rows, width, width}, {"", expected.raw(), rows, width, width}}},
            0.1))
      return Fp8AttentionResult::refused;
  }
  return wide ? Fp8AttentionResult::out : Fp8AttentionResult::codes;
}

namespace {

kernels::HeadCodes describe_heads(const Tensor& x, const HeadKinds& kinds,
                                  const Tensor& largest = {}) {
  return {x.size(0),      kinds.queries,
          kinds.keys,     kinds.values,
          kinds.head_dim, largest.defined() ? largest.data<std::uint32_t>() : nullptr};
}

}  // namespace

void cuda::largest_of_kinds(const Tensor& x, const HeadKinds& kinds, const Tensor& largest) {
  check_fp8_gpu(kernels::largest_of_kinds(describe_heads(x, kinds), x.raw(),
                                          largest.data<std::uint32_t>(), compute_stream()),
                "find the largest magnitudes of heads");
}

void cuda::largest_of_parts(const Tensor& largest, const Tensor& all) {
  check_fp8_gpu(
      kernels::largest_of_parts(largest.data<std::uint32_t>(), static_cast<int>(largest.size(0)),
                                all.data<std::uint32_t>(), compute_stream()),
      "find the largest magnitudes of parts");
}

void cuda::quantize_heads(const Tensor& x, const HeadKinds& kinds, const Tensor& largest,
                          const Tensor& codes) {
  check_fp8_gpu(kernels::quantize_heads(describe_heads(x, kinds, largest), x.raw(),
                                        codes.data<std::uint8_t>(), compute_stream()),
                "round heads to FP8");
}

void cuda::restore_heads(const Tensor& codes, const HeadKinds& kinds, const Tensor& largest,
                         const Tensor& x) {
  check_fp8_gpu(kernels::restore_heads(describe_heads(codes, kinds, largest),
                                       codes.data<std::uint8_t>(), x.raw(), compute_stream()),
                "restore heads from FP8");
}

}  // namespace vfm::ops
