// The kernels behind attention.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/attention/attention_choice.h"
#include "ops/kernel.h"

namespace vfm::ops {

struct AttentionPack;        // attention.h
struct AttentionDeviceWork;  // attention_cuda.h

/// Queries begin..end of a sample, and a head: a unit of work of forward.
struct AttentionItem {
  std::int64_t sample = 0, begin = 0, end = 0;
  int head = 0;
};

/// Rows that log_sum_exp, and cuDNN's scratch, have beyond the pack's on a GPU: a kernel of cuDNN
/// may work on whole tiles at its end.
inline constexpr std::int64_t kAttentionSpareRows = 128;

/// Plain pointers of one call; rows of q, k and v have strides, so that they may be columns of one
/// matrix. T is the type `type`.
struct AttentionArgs {
  DType type = DType::f32;
  bool causal = false;
  bool own = false;  // on a GPU by our own kernels, whatever is chosen
  int heads = 0, key_heads = 0, head_dim = 0;
  float scale = 0;
  const float* bias = nullptr;  // [H, 2 bias_reach - 1], forward only: relative_attention's
  std::int64_t bias_reach = 0;
  std::int64_t samples = 0;
  const std::int64_t* query_starts = nullptr;  // [samples + 1]: first row of each sample
  const std::int64_t* key_starts = nullptr;    // [samples + 1]
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  std::int64_t q_stride = 0, kv_stride = 0;
  // Of attention_fp8_forward alone: bits of the largest |q|, |k| and |v|, [samples, H + 2 G], that
  // scales follow from; null: those of q, k and v.
  const std::uint32_t* largest = nullptr;
  bool wide = false;                     // forward only: `out` is f32, whatever the type
  const AttentionItem* items = nullptr;  // forward only; begin is a multiple of kQueryBlock
  std::int64_t item_count = 0;
  void* out = nullptr;                               // [S, H K]
  float* log_sum_exp = nullptr;                      // [H, S], on a GPU with room behind it
  const void* dout = nullptr;                        // backward only, as out
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;  // backward only, as q, k, v
  float* scratch = nullptr;                          // scratch_stride floats for each thread
  std::int64_t scratch_stride = 0;
};

/// How many queries see how many keys, one by one, of one head.
double attention_pairs(const AttentionPack& pack);
/// Floats of scratch that all threads of the CPU's version have.
std::int64_t attention_scratch(const AttentionPack& pack, bool backward);

/// Queries in a block, and keys: a block of scores, 16 KiB, stays in the first-level cache.
inline constexpr int kQueryBlock = 64, kKeyBlock = 64;

// Of `args` the lists of work and the scratch are not used. Throws Error where a GPU has no kernel
// for the head dimension (above 256).
/// Lists on the device of what there is to do; null on the CPU.
VFM_KERNEL(std::shared_ptr<const AttentionDeviceWork>, attention_work, const AttentionPack& pack)
/// Returns the body that ran: on a GPU own and cudnn have each their own order of log_sum_exp, so
/// backward needs to know which. Throws Error where cuDNN was asked for by name and cannot do it.
VFM_KERNEL(AttentionBody, attend, const AttentionArgs& args, const AttentionPack& pack)
/// `forward` is what attend returned for these arguments.
VFM_KERNEL(void, attend_backward, const AttentionArgs& args, const AttentionPack& pack,
           AttentionBody forward)

// The CPU's inner part.
VFM_CPU_KERNEL(void, attention_forward, const AttentionArgs& args)
VFM_CPU_KERNEL(void, attention_backward, const AttentionArgs& args)

// The same on bf16, with the instructions for it (attention_low_cpu.cc).
namespace avx512_bf16 {
void attention_low_forward(const AttentionArgs& args);
void attention_low_backward(const AttentionArgs& args);
}  // namespace avx512_bf16
namespace amx {
void attention_low_forward(const AttentionArgs& args);
void attention_low_backward(const AttentionArgs& args);
}  // namespace amx

}  // namespace vfm::ops
