// What is bound by memory: a copy on the GPU, and the fused element-wise kernels against it. Bytes
// are those that must be read and written once.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>

#include "gpu.h"
#include "kernels/elementwise.h"
#include "kernels/modulate.h"
#include "kernels/modulate_backward.h"
#include "kernels/optimizer.h"
#include "kernels/qk_norm_rope.h"
#include "tensor/upload.h"

using namespace vfm;
using namespace vfm::kernels;

namespace {

constexpr std::int64_t kTokens = 8192;
constexpr int kWidth = 4096, kHeads = 32, kHeadDim = 128;
constexpr double kSize = static_cast<double>(kTokens) * kWidth;

void report(const char* what, double bytes, const std::function<void()>& launch) {
  const bench::Name name{"memory", what};
  bench::attempt(
      name, [&] { bench::print(name, 1e-9 * bytes / bench::seconds_per_call(launch), "GB/s"); });
}

// Nothing is there in a rehearsal.
template <class T>
Tensor list_on_gpu(const std::vector<T>& list) {
  return bench::rehearsal() ? Tensor({1}, DType::u8, Device::meta) : upload(list);
}

void need(int status) {
  check_gpu(status, "launch the kernel");
}

void time_copy() {
  constexpr std::int64_t kBytes = std::int64_t{2} << 30;
  const Tensor from = Tensor::zeros({kBytes}, DType::u8, bench::place());
  const Tensor to({kBytes}, DType::u8, bench::place());
  report("copy", 2.0 * kBytes, [&] { copy(from, to); });
}

// Data for the next step go to the GPU while it computes: how much of their time that hides.
void time_uploads() {
  const bench::Name alone{"memory", "copy to the GPU"}, beside{"memory", "copy beside kernels"};
  if (bench::rehearsal()) bench::print_error(alone, bench::kRehearsed);
  bench::attempt(beside, [&] {
    const Tensor host = Tensor::zeros({std::int64_t{256} << 20}, DType::u8);
    const Tensor x = bench::random_tensor({kTokens, 4 * kWidth}, DType::bf16, 1);
    const Tensor y(x.shape(), DType::bf16, bench::place());
    const auto seconds = [&](bool copies, int launches) {
      synchronize_gpu();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < launches; ++i)
        need(activation_forward(Type::bf16, ActivationKind::gelu, x.raw(), y.raw(), x.elements(),
                                compute_stream()));
      Upload upload;
      if (copies) upload.copy(host);
      upload.await();
      synchronize_gpu();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    seconds(true, 10);
    const double copy = seconds(true, 0), kernel = seconds(false, 100) / 100;
    bench::print(alone, 1e-9 * static_cast<double>(host.bytes()) / copy, "GB/s");
    const int launches = static_cast<int>(1 + 1.5 * copy / kernel);
    const double compute = seconds(false, launches), both = seconds(true, launches);
    bench::print(beside, 100 * (copy + compute - both) / copy, "%");
  });
}

void time_modulate_forward() {
  const Tensor x = bench::random_tensor({kTokens, kWidth}, DType::f32, 1);
  const Tensor branch = bench::random_tensor({kTokens, kWidth}, DType::bf16, 2);
  const Tensor table = bench::random_tensor({3 * kWidth}, DType::f32, 3);
  const Tensor rows = Tensor::zeros({kTokens}, DType::i32, bench::place());
  const Tensor stream(x.shape(), DType::f32, bench::place());
  const Tensor normed(x.shape(), DType::bf16, bench::place());
  const Tensor moments({kTokens, 2}, DType::f32, bench::place());
  ModulateForward call;
  call.tokens = kTokens, call.width = kWidth, call.type = Type::bf16;
  call.x = x.data<float>(), call.branch = branch.raw(), call.rows = rows.data<std::int32_t>();
  call.modulation = table.data<float>(), call.gate = table.data<float>() + 2 * kWidth;
  call.gate_stride = call.modulation_stride = 3 * kWidth;
  call.stream = stream.data<float>(), call.normed = normed.raw();
  call.moments = moments.data<float>();
  report("modulate forward", 12 * kSize, [&] { need(modulate_forward(call, compute_stream())); });
}

void time_modulate_backward() {
  const Tensor stream = bench::random_tensor({kTokens, kWidth}, DType::f32, 1);
  const Tensor moments = bench::random_tensor({kTokens, 2}, DType::f32, 2);
  const Tensor branch = bench::random_tensor({kTokens, kWidth}, DType::bf16, 3);
  const Tensor table = bench::random_tensor({3 * kWidth}, DType::f32, 4);
  const Tensor dnormed = bench::random_tensor({kTokens, kWidth}, DType::bf16, 5);
  const Tensor dstream = Tensor::zeros({kTokens, kWidth}, DType::f32, bench::place());
  const Tensor dbranch({kTokens, kWidth}, DType::bf16, bench::place());
  std::vector<ModulateRun> list;
  for (std::int64_t begin = 0; begin < kTokens; begin += 64)
    list.push_back({begin, begin + 64, 0});
  const Tensor runs = list_on_gpu(list);
  const auto count = static_cast<std::int64_t>(list.size());
  const Tensor partial({count, 3 * kWidth}, DType::f32, bench::place());
  const Tensor sums({3 * kWidth}, DType::f32, bench::place());
  ModulateBackward call;
  call.width = kWidth, call.type = Type::bf16;
  call.stream = stream.data<float>(), call.moments = moments.data<float>();
  call.branch = branch.raw(), call.gate = table.data<float>() + 2 * kWidth;
  call.modulation = table.data<float>();
  call.gate_stride = call.modulation_stride = 3 * kWidth;
  call.dnormed = dnormed.raw(), call.dstream = dstream.data<float>();
  call.dx = dstream.data<float>(), call.dbranch = dbranch.raw();
  call.runs = runs.data<const ModulateRun>(), call.run_count = count;
  call.partial = partial.data<float>();
  report("modulate backward", 18 * kSize, [&] {
    need(modulate_backward(call, nullptr, compute_stream()));
    need(modulate_reduce(call, 1, sums.data<float>(), compute_stream()));
  });
}

void time_qk_norm_rope() {
  const Tensor x = bench::random_tensor({kTokens, 3 * kWidth}, DType::bf16, 1);
  const Tensor dy = bench::random_tensor({kTokens, 3 * kWidth}, DType::bf16, 2);
  const Tensor y(x.shape(), DType::bf16, bench::place());
  const Tensor weight = bench::random_tensor({kHeadDim}, DType::f32, 3);
  const Tensor angles = bench::random_tensor({kTokens, kHeadDim / 2}, DType::f32, 4);
  const Tensor dquery({kHeadDim}, DType::f32, bench::place()), dkey = dquery.clone();
  const auto describe = [&](QkNormRope& call) {
    call.tokens = kTokens, call.type = Type::bf16, call.head_dim = kHeadDim;
    call.query_heads = call.key_heads = call.value_heads = kHeads;
    call.query_weight = call.key_weight = weight.data<float>();
    call.cosines = call.sines = angles.data<float>();
  };
  const double table = 8.0 * kTokens * kHeadDim / 2;  // cosines and sines
  QkNormRopeForward forward;
  describe(forward);
  forward.x = x.raw(), forward.y = y.raw();
  report("qk_norm_rope forward", 2 * 3 * 2 * kSize + table,
         [&] { need(qk_norm_rope_forward(forward, compute_stream())); });
  QkNormRopeBackward backward;
  describe(backward);
  backward.x = x.raw(), backward.dy = dy.raw(), backward.dx = y.raw();
  backward.query_dweight = dquery.data<float>(), backward.key_dweight = dkey.data<float>();
  const Tensor partial({qk_norm_rope_partials(backward)}, DType::f32, bench::place());
  backward.partial = partial.data<float>();
  // Queries and keys: x, dy in, dx out; values: dy in, dx out.
  report("qk_norm_rope backward", 2 * (2 * 3 + 2) * kSize + table,
         [&] { need(qk_norm_rope_backward(backward, compute_stream())); });
}

void time_gelu() {
  const Tensor x = bench::random_tensor({kTokens, 4 * kWidth}, DType::bf16, 1);
  const Tensor dy = bench::random_tensor({kTokens, 4 * kWidth}, DType::bf16, 2);
  const Tensor y(x.shape(), DType::bf16, bench::place());
  const std::int64_t n = x.elements();
  report("gelu forward", 4.0 * static_cast<double>(n), [&] {
    need(activation_forward(Type::bf16, ActivationKind::gelu, x.raw(), y.raw(), n,
                            compute_stream()));
  });
  const auto back = [&](void* again) {
    need(activation_backward(Type::bf16, ActivationKind::gelu, x.raw(), dy.raw(), y.raw(), again, n,
                             compute_stream()));
  };
  report("gelu backward", 6.0 * static_cast<double>(n), [&] { back(nullptr); });
  const Tensor again(x.shape(), DType::bf16, bench::place());
  report("gelu backward and gelu", 8.0 * static_cast<double>(n), [&] { back(again.raw()); });
}

// Four matrices of 67 million elements.
void time_adamw(const char* what, bool split, double bytes) {
  constexpr std::int64_t kCount = std::int64_t{4096} * 4096 * 4;
  constexpr int kSlots = 4;
  std::vector<Tensor> kept;
  const auto make = [&](DType dtype) {
    kept.push_back(bench::random_tensor({kCount}, dtype, kept.size(), 1e-3f));
    return kept.back();
  };
  std::vector<OptimizerSlot> slots;
  std::vector<std::int64_t> counts(kSlots, kCount);
  for (int i = 0; i < kSlots; ++i) {
    OptimizerSlot slot;
    const DType low = split ? DType::bf16 : DType::f32;
    if (split) {
      slot.high = make(DType::bf16).data<std::uint16_t>();
      slot.low = make(DType::bf16).data<std::uint16_t>();
    } else {
      slot.value = make(DType::f32).data<float>();
    }
    slot.gradient = make(DType::f32).data<float>();
    slot.moment_type = split ? Type::bf16 : Type::f32;
    slot.first_moment = make(low).raw();
    kept.push_back(Tensor::zeros({kCount}, low, bench::place()));  // a negative one has no root
    slot.second_moment = kept.back().raw();
    slot.count = kCount;
    slots.push_back(slot);
  }
  std::vector<OptimizerChunk> chunks(
      static_cast<std::size_t>(optimizer_chunks(counts.data(), kSlots, nullptr)));
  optimizer_chunks(counts.data(), kSlots, chunks.data());
  const Tensor slots_there = list_on_gpu(slots), chunks_there = list_on_gpu(chunks);
  AdamwCall call;
  call.all.slots = slots_there.data<const OptimizerSlot>();
  call.all.chunks = chunks_there.data<const OptimizerChunk>();
  call.all.chunk_count = static_cast<std::int64_t>(chunks.size());
  report(what, bytes * kSlots * kCount, [&] { need(adamw(call, compute_stream())); });
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run([&] {
    if (argc > 1) fail_usage("there is no argument '{}'", argv[1]);
    time_copy();
    time_uploads();
    time_modulate_forward();
    time_modulate_backward();
    time_qk_norm_rope();
    time_gelu();
    time_adamw("adamw f32", false, 28);
    time_adamw("adamw split, bf16 moments", true, 20);
  });
}
