// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_cudnn_cuda.h"

#include <map>
#include <utility>

#include "base/log.h"
#include "ops/attention/attention_graph.h"
#include "ops/attention/attention_rooms.h"
#include "ops/attention/attention_shape.h"
#include "ops/cudnn/cudnn_plan_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

struct CudnnPack {
  enum class List { query_lengths, key_lengths, query_offsets, key_offsets };
  struct Key {
    List what;
    std::int64_t first, stride;  // of the part's samples; of rows
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Tensor> lists;
};

namespace {

using Memory = CudnnPlan::Memory;
using List = CudnnPack::List;

void* list(CudnnPack& pack, List what, const AttentionArgs& args, const AttentionPart& part,
           std::int64_t stride = 0) {
  Tensor& made = pack.lists[{what, part.first, stride}];
  if (!made.defined()) {
    const bool queries = what == List::query_lengths || what == List::query_offsets;
    const auto starts = part.starts(queries ? args.query_starts : args.key_starts);
    made = stride == 0 ? upload(padded_lengths(starts, part.shape.samples))
                       : upload(ragged_offsets(starts, part.shape.samples, stride));
  }
  return made.raw();
}

// Never destroyed: the driver may be gone before static objects are.
const CudnnPlan& plan_for(const AttentionShape& shape, bool backward) {
  static auto* const plans =
      new std::map<std::pair<AttentionShape, bool>, std::unique_ptr<CudnnPlan>>;
  std::unique_ptr<CudnnPlan>& plan = (*plans)[{shape, backward}];
  if (!plan) {
    plan = std::make_unique<CudnnPlan>(backward ? attention_backward_graph(shape)
                                                : attention_forward_graph(shape));
    log_debug("cuDNN plan for attention{} of {}: {} bytes of scratch", backward ? " backward" : "",
              text_of(shape), plan->workspace());
  }
  return *plan;
}

// What forward and backward have in common. All is that of the pack: a part has its own offsets.
Memory memory_of(const AttentionArgs& args, CudnnPack& pack, const AttentionPart& part) {
  return {
      {kQ, const_cast<void*>(args.q)},
      {kK, const_cast<void*>(args.k)},
      {kV, const_cast<void*>(args.v)},
      {kOut, args.out},
      {kStatistics, args.log_sum_exp},
      {kQueryLengths, list(pack, List::query_lengths, args, part)},
      {kKeyLengths, list(pack, List::key_lengths, args, part)},
      {kQOffsets, list(pack, List::query_offsets, args, part, args.q_stride)},
      {kKvOffsets, list(pack, List::key_offsets, args, part, args.kv_stride)},
      {kOutOffsets,
       list(pack, List::query_offsets, args, part, std::int64_t{args.heads} * args.head_dim)},
      {kRowOffsets, list(pack, List::query_offsets, args, part, args.heads)},
  };
}

void run(const CudnnPlan& plan, const Memory& memory, bool clear = false) {
  const Tensor workspace({plan.workspace()}, DType::u8, Device::cuda);
  if (clear) zero_bytes(workspace.raw(), Device::cuda, workspace.bytes());
  plan.run(memory, workspace.raw());
}

// Before 9.18 the backward pass reads uninitialised memory: rows behind the pack, its workspace.
// Source: NVIDIA's answer in TransformerEngine's issue 2186.
bool reads_unwritten() {
  return cudnn_version_number() < 91800;
}

void clear_scratch(const AttentionArgs& args, const CudnnBackwardRoom& room) {
  for (const Tensor& sums : {room.row_sums, room.dq_sum})
    zero_bytes(sums.raw(), Device::cuda, sums.bytes());
  const std::int64_t rows = args.query_starts[args.samples];
  zero_bytes(args.log_sum_exp + rows * args.heads, Device::cuda,
             static_cast<std::size_t>(kAttentionSpareRows * args.heads) * sizeof(float));
}

}  // namespace

bool cudnn_takes_empty_samples() {
  return cudnn_version_number() >= 92500;
}

std::shared_ptr<CudnnPack> cudnn_pack() {
  return std::make_shared<CudnnPack>();
}

void attention_forward_cudnn(const AttentionArgs& args, CudnnPack& pack) {
  for (const AttentionPart& part : attention_parts(args, cudnn_takes_empty_samples()))
    run(plan_for(part.shape, false), memory_of(args, pack, part));
}

void attention_backward_cudnn(const AttentionArgs& args, CudnnPack& pack) {
  const CudnnBackwardRoom room(args, Device::cuda);
  if (reads_unwritten()) clear_scratch(args, room);
  // In order: rows that a part touches behind its own belong to the next one, which writes them.
  for (const AttentionPart& part : attention_parts(args, cudnn_takes_empty_samples())) {
    const CudnnPlan& plan = plan_for(part.shape, true);
    Memory memory = memory_of(args, pack, part);
    memory[kDout] = const_cast<void*>(args.dout);
    memory[kDq] = args.dq;
    memory[kDk] = args.dk;
    memory[kDv] = args.dv;
    memory[kRowSums] = room.row_sums.raw();
    memory[kDqSum] = room.dq_sum.raw();
    if (room.dk_heads.defined()) {
      memory[kDkHeads] = room.dk_heads.raw();
      memory[kDvHeads] = room.dv_heads.raw();
    }
    run(plan, memory, reads_unwritten());
  }
}

}  // namespace vfm::ops
