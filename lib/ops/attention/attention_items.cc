// Attention on the CPU: who does what, with which scratch. attention_cpu.cc and
// attention_low_cpu.cc compute.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/attention_kernels.h"

namespace vfm::ops {
namespace {

std::int64_t padded(std::int64_t n) {
  return (n + 31) / 32 * 32;
}

// Floats of scratch that a thread needs: the sums of what forward_block, backward_block and their
// bf16 counterparts lay out, and room to round each part up to a cache line.
std::int64_t forward_scratch(std::int64_t head_dim, std::int64_t longest_keys) {
  const std::int64_t k = padded(head_dim), queries = kQueryBlock, keys = kKeyBlock;
  return 2 * k * padded(longest_keys) + 3 * k * queries + 2 * keys * queries + 3 * queries + 512;
}

std::int64_t backward_scratch(std::int64_t head_dim, std::int64_t longest_keys) {
  const std::int64_t k = padded(head_dim), queries = kQueryBlock, keys = kKeyBlock;
  return 4 * k * padded(longest_keys) + 6 * k * queries + 4 * keys * queries + 2 * queries + 512;
}

std::int64_t longest_keys(const AttentionPack& pack) {
  std::int64_t longest = 0;
  for (const std::int64_t n : pack.key_lengths)
    longest = std::max(longest, n);
  return longest;
}

// Enough items for the threads to share evenly, each with as many queries as that allows: an item
// may copy its keys and values. What an item computes does not depend on the cut.
std::vector<AttentionItem> items_of(const AttentionPack& pack) {
  std::int64_t blocks = 0;
  for (std::int64_t n : pack.query_lengths)
    blocks += (n + kQueryBlock - 1) / kQueryBlock;
  const std::int64_t share = blocks * pack.heads / (6 * omp_get_max_threads());
  const std::int64_t step = std::clamp<std::int64_t>(share, 1, 64) * kQueryBlock;
  std::vector<AttentionItem> items;
  for (std::size_t s = 0; s < pack.query_lengths.size(); ++s)
    for (int head = 0; head < pack.heads; ++head)
      for (std::int64_t begin = 0; begin < pack.query_lengths[s]; begin += step)
        items.push_back({static_cast<std::int64_t>(s), begin,
                         std::min(pack.query_lengths[s], begin + step), head});
  return items;
}

// On bf16, with this machine's instructions for it; false: it has none.
bool run_low(const AttentionArgs& args, bool back) {
#if defined(VFM_HAVE_X86_LEVELS)
  if (args.type != DType::bf16 || isa() < Isa::avx512_bf16) return false;
  if (isa() == Isa::amx)
    back ? amx::attention_low_backward(args) : amx::attention_low_forward(args);
  else
    back ? avx512_bf16::attention_low_backward(args) : avx512_bf16::attention_low_forward(args);
  return true;
#else
  return (void)args, (void)back, false;
#endif
}

}  // namespace

std::int64_t attention_scratch(const AttentionPack& pack, bool backward) {
  const std::int64_t keys = longest_keys(pack), d = pack.head_dim;
  return omp_get_max_threads() *
         padded(backward ? backward_scratch(d, keys) : forward_scratch(d, keys));
}

std::shared_ptr<const AttentionDeviceWork> cpu::attention_work(const AttentionPack&) {
  return nullptr;
}

AttentionBody cpu::attend(const AttentionArgs& given, const AttentionPack& pack) {
  AttentionArgs args = given;
  const Tensor scratch({attention_scratch(pack, false)});
  args.scratch = scratch.data<float>();
  args.scratch_stride = scratch.elements() / omp_get_max_threads();
  const std::vector<AttentionItem> items = items_of(pack);
  args.items = items.data();
  args.item_count = static_cast<std::int64_t>(items.size());
  if (!run_low(args, false)) attention_forward(args);
  return AttentionBody::own;
}

void cpu::attend_backward(const AttentionArgs& given, const AttentionPack& pack, AttentionBody) {
  AttentionArgs args = given;
  const Tensor scratch({attention_scratch(pack, true)});
  args.scratch = scratch.data<float>();
  args.scratch_stride = scratch.elements() / omp_get_max_threads();
  if (!run_low(args, true)) attention_backward(args);
}

}  // namespace vfm::ops
