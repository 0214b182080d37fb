// The kernels behind attention.h, and behind the ops for its newest query and for parts of keys.
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

/// The unit of work of forward: queries begin to end - 1 of a sample, and one head.
struct AttentionItem {
  std::int64_t sample = 0, begin = 0, end = 0;
  int head = 0;
};

/// Rows beyond the pack's that log_sum_exp and cuDNN's scratch have on a GPU: a kernel of cuDNN may
/// work on whole tiles at the end.
inline constexpr std::int64_t kAttentionSpareRows = 128;

/// Plain pointers of one call. Rows of q, k and v have strides, so that they may be columns of one
/// matrix. Element types are `type`.
struct AttentionArgs {
  DType type = DType::f32;
  bool causal = false;
  // Of the keys: forward's `out` is f32, backward's `out`, `dout` and log_sum_exp are of all parts,
  // and log_sum_exp is [H, S] for every body.
  bool part = false;
  int heads = 0, key_heads = 0, head_dim = 0;
  float scale = 0;
  const float* bias = nullptr;  // [H, 2 bias_reach - 1]; forward only, for relative_attention
  std::int64_t bias_reach = 0;
  std::int64_t samples = 0;
  const std::int64_t* query_starts = nullptr;  // [samples + 1]: first row of each sample
  const std::int64_t* key_starts = nullptr;    // [samples + 1]
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  std::int64_t q_stride = 0, kv_stride = 0;
  bool wide = false;                     // forward only: `out` is f32, whatever `type` is
  const AttentionItem* items = nullptr;  // forward only; begin is a multiple of kQueryBlock
  std::int64_t item_count = 0;
  void* out = nullptr;                               // [S, H K]
  float* log_sum_exp = nullptr;  // [H, S]; on a GPU S has spare rows, unless `part`
  const void* dout = nullptr;                        // backward only, like out
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;  // backward only, like q, k, v
  float* scratch = nullptr;                          // scratch_stride floats for each thread
  std::int64_t scratch_stride = 0;
};

/// Number of pairs of a query and a key that it sees, for one head.
double attention_pairs(const AttentionPack& pack);
/// Floats of scratch of the CPU version, for all threads together.
std::int64_t attention_scratch(const AttentionPack& pack, bool backward);

/// Queries and keys of a block. A block of scores, 16 KiB, stays in the first-level cache.
inline constexpr int kQueryBlock = 64, kKeyBlock = 64;

// The work items and the scratch of `args` are not used. Throws Error if the GPU has no kernel for
// the head dimension (above 256).
/// Makes the lists of work items on the device; null on the CPU.
VFM_KERNEL(std::shared_ptr<const AttentionDeviceWork>, attention_work, const AttentionPack& pack)
/// Returns the body that ran. Backward needs it, as our own kernels and cuDNN differ in the order
/// of log_sum_exp. Throws Error if cuDNN was chosen by name and cannot compute the call.
VFM_KERNEL(AttentionBody, attend, const AttentionArgs& args, const AttentionPack& pack)
/// `forward` is the body that attend() returned for these arguments. For a part either body can run
/// backward, whichever ran forward.
VFM_KERNEL(void, attend_backward, const AttentionArgs& args, const AttentionPack& pack,
           AttentionBody forward)

// The inner part of the CPU version.
VFM_CPU_KERNEL(void, attention_forward, const AttentionArgs& args)
VFM_CPU_KERNEL(void, attention_backward, const AttentionArgs& args)

// The inner part for bf16, with instructions for bf16 products (attention_low_cpu.cc).
namespace avx512_bf16 {
void attention_low_forward(const AttentionArgs& args);
void attention_low_backward(const AttentionArgs& args);
}  // namespace avx512_bf16
namespace amx {
void attention_low_forward(const AttentionArgs& args);
void attention_low_backward(const AttentionArgs& args);
}  // namespace amx

// The kernel behind newest_query.h.

struct NewestText {
  const void* kv;
  std::int64_t seen;
};
struct NewestQueryArgs {
  const float* q;        // [texts, heads head_dim]
  const NewestText* of;  // [texts]
  DType type;            // of keys and values
  std::int64_t texts;
  int heads, key_heads, head_dim;
  float scale;
  float* scores;      // [texts, heads, most]; null on a GPU
  std::int64_t most;  // the largest number of keys
  float* out;         // [texts, heads head_dim]
};
VFM_ISA_KERNEL(void, newest_query, const NewestQueryArgs& args)

// The kernel behind partial_attention.h.

/// Plain pointers of one call: rows first to end - 1 of a part's results, and the sum of the
/// earlier parts.
struct MergeAttentionArgs {
  int heads = 0, head_dim = 0;
  std::int64_t queries = 0;  // S
  std::int64_t first = 0, end = 0;
  bool begins = false;                 // true for the first part: no sum yet
  const float* out = nullptr;          // [S, H K]; null if these rows see no key of the part
  const float* log_sum_exp = nullptr;  // [H, S]
  float* out_sum = nullptr;            // [S, H K]
  float* log_sum_exp_sum = nullptr;    // [H, S]
};

VFM_ISA_KERNEL(void, merge_attention, const MergeAttentionArgs& args)

}  // namespace vfm::ops
