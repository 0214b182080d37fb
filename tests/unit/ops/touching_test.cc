// The bytes that are counted of each op of a transformer's layer (ops/run.h), against a count by
// hand: every operand read once, every result written once.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"
#include "ops/backward.h"
#include "ops/determinism.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/quantize.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/modulate.h"
#include "ops/norm/rmsnorm.h"
#include "ops/optim/adamw.h"
#include "ops/optim/sums.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "ops/position/qk_norm_rope.h"
#include "tensor/allocator.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

constexpr std::int64_t kTokens = 192, kWidth = 64, kAll = kTokens * kWidth;
constexpr double kElements = kAll;

Tensor blank(Shape shape, DType dtype = DType::f32) {
  return Tensor(std::move(shape), dtype, Device::meta);
}

using Kernels = std::map<std::string, KernelWork>;

/// What `work` counts on a GPU's rules.
Kernels counted(const std::function<void()>& work) {
  const MetaAccount account(Device::cuda);
  work();
  return account.kernels();
}

double bytes_of(const Kernels& kernels, const std::string& name) {
  const auto found = kernels.find(name);
  return found == kernels.end() ? 0 : found->second.bytes;
}

/// A leaf that wants a gradient.
Tensor leaf(Tape& tape, Shape shape, DType dtype = DType::f32) {
  const Tensor tensor = blank(shape, dtype);
  tape.watch(tensor, blank(std::move(shape)));
  return tensor;
}

/// What backward of `result` counts, with a gradient of its type.
Kernels back(Tape& tape, const Tensor& result) {
  return counted([&] { tape.backward(result, blank(result.shape(), result.dtype())); });
}

ModulateInput modulation_of(Tape& tape, std::int64_t samples, bool adds, bool extra) {
  ModulateInput in;
  in.x = leaf(tape, {kTokens, kWidth});
  in.out = DType::bf16;
  if (adds) in.branch = leaf(tape, {kTokens, kWidth}, DType::bf16);
  if (adds) in.gate = leaf(tape, {samples, 3 * kWidth});
  in.gate_column = 2 * kWidth;
  if (extra) in.extra = leaf(tape, {kTokens, kWidth});
  in.modulation = leaf(tape, {samples, 3 * kWidth});
  in.rows = RowMap(std::vector<std::int32_t>(kTokens, 0), Device::meta, 64);
  return in;
}

}  // namespace

TEST_CASE("bytes of modulate: stream, branch, positions and what becomes of them") {
  for (const std::int64_t samples : {1, 3}) {
    const double row = static_cast<double>(samples) * kWidth * 4, moments = 8.0 * kTokens;
    for (const bool extra : {false, true}) {
      Tape tape;
      Modulated made;
      const ModulateInput in = modulation_of(tape, samples, true, extra);
      const Kernels forward = counted([&] { made = gated_residual_layernorm_modulate(tape, in); });
      // x, branch, extra; the stream and normed. Gate, shift and scale.
      const double streams = 4 + 2 + (extra ? 4 : 0) + 4 + 2;
      CHECK(bytes_of(forward, "modulate_forward") == streams * kElements + moments + 3 * row);
      CHECK(forward.size() == 1);

      // Both results have a gradient, as in a network.
      tape.accumulate(made.stream, blank({kTokens, kWidth}));
      const Kernels backward = back(tape, made.normed);
      // stream, dnormed, dstream, branch; dbranch and dx. Gate and scale; sums of three runs.
      const double partial = 3.0 * 3 * kWidth * 4;
      // The gradient of the positions is added to at once.
      CHECK(bytes_of(backward, "modulate_backward") ==
            (4 + 2 + 4 + 2 + 2 + 4 + (extra ? 4 + 4 : 0)) * kElements + moments + 2 * row +
                partial);
      CHECK(bytes_of(backward, "modulate_reduce") == partial + 3 * row);
    }
    // Where nothing is added the stream is x, and not written.
    Tape tape;
    Modulated made;
    const ModulateInput in = modulation_of(tape, samples, false, false);
    const Kernels forward = counted([&] { made = gated_residual_layernorm_modulate(tape, in); });
    CHECK(bytes_of(forward, "modulate_forward") == (4 + 2) * kElements + moments + 2 * row);
    const Kernels backward = back(tape, made.normed);
    // x, dnormed; the gradient of x, which is added to.
    CHECK(bytes_of(backward, "modulate_backward") ==
          (4 + 2 + 4 + 4) * kElements + moments + row + 3.0 * 3 * kWidth * 4);
  }
}

TEST_CASE("bytes of modulate and gelu in FP8: nothing between them and the product") {
  const Tape silent(false);
  const double table = 3.0 * kWidth * 4, moments = 8.0 * kTokens;
  for (const bool adds : {true, false}) {
    Tape tape;
    const ModulateInput in = modulation_of(tape, 3, adds, adds);
    const Kernels fused = counted([&] { (void)gated_residual_layernorm_modulate_fp8(silent, in); });
    // x, branch and extra, the stream; then stream and values. Gate; shift and scale twice.
    const double first = adds ? 4 + 2 + 4 + 4 : 4;
    CHECK(bytes_of(fused, "modulate_fp8") ==
          (first + 4 + 1) * kElements + 2 * moments + (adds ? 5 : 4) * table);
    CHECK(fused.size() == 1);
    const Kernels two = counted([&] {
      Tape other(false);
      (void)quantize(gated_residual_layernorm_modulate(other, in).normed);
    });
    CHECK(bytes_of(two, "modulate_forward") + bytes_of(two, "quantize") -
              bytes_of(fused, "modulate_fp8") ==
          2 * kElements - moments - 2 * table);
  }
  const Tensor x = blank({kTokens, kWidth}, DType::bf16);
  const Kernels gelu = counted([&] { (void)quantize_gelu(x); });
  CHECK(bytes_of(gelu, "quantize_gelu") == (2 + 2 + 1) * kElements);
  CHECK(gelu.size() == 1);
}

TEST_CASE("bytes of gelu, silu, swiglu and rmsnorm") {
  Tape tape;
  const Tensor x = leaf(tape, {kTokens, kWidth}, DType::bf16);
  Tensor y;
  CHECK(bytes_of(counted([&] { y = activate(tape, x, ActivationKind::gelu); }),
                 "activation_forward") == 4 * kElements);
  const Kernels gelu_back = back(tape, y);
  CHECK(bytes_of(gelu_back, "activation_backward") == 6 * kElements);  // x, dy, dx
  // The leaf's gradient is f32: read, added to and written.
  CHECK(bytes_of(gelu_back, "add_into") == (2 + 4 + 4) * kElements);
  CHECK(gelu_back.size() == 2);
  const Tensor w = leaf(tape, {2, kWidth}, DType::bf16);
  CHECK(bytes_of(counted([&] { y = activated_linear(tape, x, w, ActivationKind::gelu); }),
                 "activation_forward") == 4 * kElements);
  const Kernels both = back(tape, y);
  CHECK(bytes_of(both, "activation_backward") == 8 * kElements);  // and gelu(x) once more
  CHECK(both.count("activation_forward") == 0);

  const Tensor f = leaf(tape, {kTokens, kWidth});
  CHECK(bytes_of(counted([&] { y = silu(tape, f); }), "silu_forward") == 8 * kElements);
  CHECK(bytes_of(back(tape, y), "silu_backward") == 12 * kElements);

  CHECK(bytes_of(counted([&] { y = swiglu_forward(x); }), "swiglu_forward") == 3 * kElements);
  CHECK(bytes_of(counted([&] { swiglu_backward(x, y); }), "swiglu_backward") == 5 * kElements);

  const Tensor g = leaf(tape, {kTokens, kWidth}), weight = leaf(tape, {kWidth});
  CHECK(bytes_of(counted([&] { y = rmsnorm(tape, g, weight, 1e-6f); }), "rmsnorm_forward") ==
        8 * kElements + 4 * kWidth);
  CHECK(bytes_of(back(tape, y), "rmsnorm_backward") == 12 * kElements + 8 * kWidth);
}

TEST_CASE("bytes of layer norm and of gelu in place") {
  Tape silent(false);
  const Tensor x = blank({kTokens, kWidth}), weight = blank({kWidth}), bias = blank({kWidth});
  Tensor y;
  const Kernels norm = counted([&] { y = layer_norm(silent, x, weight, bias, 1e-5f); });
  CHECK(y.shape() == x.shape());
  CHECK(y.device() == Device::meta);
  CHECK(bytes_of(norm, "layer_norm_forward") == 8 * kElements + 8 * kWidth);
  CHECK(norm.size() == 1);
  for (const bool of_weights : {true, false}) {
    Tape tape;
    const Tensor z = leaf(tape, {kTokens, kWidth});
    const Tensor w = of_weights ? leaf(tape, {kWidth}) : weight;
    // The sums of six chunks of 32 tokens, written and read; the gradients of both.
    const double sums = of_weights ? (2 * 6 + 1) * 2.0 * 4 * kWidth : 0;
    CHECK(bytes_of(back(tape, layer_norm(tape, z, w, bias, 1e-5f)), "layer_norm_backward") ==
          12 * kElements + 4 * kWidth + sums);
  }
  for (const ActivationKind kind :
       {ActivationKind::tanh_gelu, ActivationKind::gelu, ActivationKind::quick_gelu})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor z = blank({kTokens, kWidth}, dtype);
      const Kernels gelu = counted([&] { activate_in_place(silent, z, kind); });
      CHECK(bytes_of(gelu, "activation_forward") == (dtype == DType::f32 ? 8 : 4) * kElements);
      CHECK(gelu.size() == 1);
    }
}

TEST_CASE("bytes of queries' and keys' norms and rotation: values pass") {
  constexpr int kHeadDim = 16, kHeads = 4;
  static_assert(kHeadDim * kHeads == kWidth);
  for (const bool in_place : {true, false}) {
    Tape tape;
    QkNormRope layout;
    layout.query_heads = layout.key_heads = layout.value_heads = kHeads;
    layout.head_dim = kHeadDim;
    layout.query_weight = leaf(tape, {kHeadDim});
    layout.key_weight = leaf(tape, {kHeadDim});
    layout.cosines = blank({kTokens, kHeadDim / 2});
    layout.sines = blank({kTokens, kHeadDim / 2});
    const double angles = 4.0 * kTokens * kHeadDim, weights = 8.0 * kHeadDim;
    const Tensor x = leaf(tape, {kTokens, 3 * kWidth}, DType::bf16);
    Tensor y;
    CHECK(bytes_of(counted([&] { y = qk_norm_rope(tape, x, layout); }), "qk_norm_rope_forward") ==
          2 * 3 * 2 * kElements + angles + weights);
    AttentionPack pack{{kTokens}, {kTokens}, kHeads, kHeads, kHeadDim, false};
    const Kernels unmoved = counted([&] { (void)normed_self_attention(tape, x, layout, pack); });
    CHECK(bytes_of(unmoved, "qk_norm_rope_forward") == 2 * 2 * 2 * kElements + angles + weights);
    // Queries, keys, and values where they are; the result.
    CHECK(bytes_of(unmoved, "attend") == 2 * (3 + 1) * kElements);
    // The seed is the caller's; what gelu makes of it is nobody's, and overwritten.
    const Kernels backward = back(tape, in_place ? activate(tape, y, ActivationKind::gelu) : y);
    // x of queries and keys; dy and dx of these, and of values unless they are one.
    CHECK(bytes_of(backward, "qk_norm_rope_gradients") ==
          2 * (2 + (in_place ? 2 + 2 : 3 + 3)) * kElements + angles + 2 * weights);
  }
  // Queries of cross-attention: no positions, and no other heads.
  Tape tape;
  QkNormRope layout;
  layout.query_heads = kHeads;
  layout.head_dim = kHeadDim;
  layout.query_weight = leaf(tape, {kHeadDim});
  const Tensor x = leaf(tape, {kTokens, kWidth}, DType::bf16);
  Tensor y;
  CHECK(bytes_of(counted([&] { y = qk_norm_rope(tape, x, layout); }), "qk_norm_rope_forward") ==
        4 * kElements + 4 * kHeadDim);
  CHECK(bytes_of(back(tape, y), "qk_norm_rope_gradients") == 6 * kElements + 8 * kHeadDim);
  // Rotation alone: back it reads no x.
  layout.query_weight = Tensor();
  layout.cosines = blank({kTokens, kHeadDim / 2});
  layout.sines = blank({kTokens, kHeadDim / 2});
  const double angles = 4.0 * kTokens * kHeadDim;
  Tape bare;
  const Tensor z = leaf(bare, {kTokens, kWidth}, DType::bf16);
  CHECK(bytes_of(counted([&] { y = qk_norm_rope(bare, z, layout); }), "qk_norm_rope_forward") ==
        4 * kElements + angles);
  CHECK(bytes_of(back(bare, y), "qk_norm_rope_gradients") == 4 * kElements + angles);
}

TEST_CASE("bytes of sums, conversions, copies and zeros") {
  const Tensor f = blank({kTokens, kWidth}), b = blank({kTokens, kWidth}, DType::bf16);
  CHECK(bytes_of(counted([&] { add_in_place(f, b); }), "add_into") == 10 * kElements);
  CHECK(bytes_of(counted([&] { add_in_place(b, b); }), "add_into") == 6 * kElements);
  const Tensor others = blank({3, kTokens, kWidth}, DType::bf16);
  CHECK(bytes_of(counted([&] { add_in_order(b, 1, others); }), "add_in_order") == 10 * kElements);
  CHECK(bytes_of(counted([&] { (void)b.to(DType::f32); }), "convert") == 6 * kElements);
  CHECK(bytes_of(counted([&] { (void)b.clone(); }), "copy_bytes") == 4 * kElements);
  CHECK(bytes_of(counted([&] { (void)Tensor::zeros({kAll}, DType::f32, Device::meta); }),
                 "zero_bytes") == 4 * kElements);
  CHECK(bytes_of(counted([&] { quantize(b); }), "quantize") == (2 + 2 + 1) * kElements);

  // The narrow one's columns of the wide one, whose gradient is written in whole.
  Tape tape;
  const Tensor narrow = leaf(tape, {kTokens, kWidth}), wide = leaf(tape, {kTokens, 3 * kWidth});
  Tensor sum;
  CHECK(bytes_of(counted([&] { sum = add(tape, narrow, wide); }), "add_columns") == 12 * kElements);
  CHECK(bytes_of(back(tape, sum), "add_columns_backward") == (4 + 3 * 4) * kElements);
}

TEST_CASE("the memory that a GPU's kernels work in, by hand") {
  // Peaks beyond what is there before, of which nothing stays.
  const auto taken = [](const std::function<void()>& work) {
    const MetaAccount account(Device::cuda);
    work();
    return account.memory().peak;
  };
  const auto block = [](std::int64_t bytes) {
    return gpu_block_size(static_cast<std::size_t>(bytes));
  };
  // The gradient that is added to stays while products are timed, once; cuBLASLt's 64 MiB stay.
  const Tensor a = blank({512, 256}), b = blank({512, 128}), c = blank({256, 128});
  const auto product = [&](bool add) {
    gemm(Device::meta, 256, 128, 512, {a.raw(), DType::f32, 256, true},
         {b.raw(), DType::f32, 128, false}, c.raw(), DType::f32, 128, add);
  };
  constexpr std::int64_t kLibrary = std::int64_t{64} << 20;
  CHECK(taken([&] { product(false); }) == block(kLibrary));
  CHECK(taken([&] { product(true); }) == block(kLibrary) + block(256 * 128 * 4));
  set_deterministic(true);
  CHECK(taken([&] { product(true); }) == block(kLibrary));
  set_deterministic(false);

  // Attention of 4 heads of 64, 100 and 40 tokens.
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {100, 40};
  pack.heads = 4, pack.head_dim = 64;
  for (const int key_heads : {4, 2}) {
    pack.key_heads = key_heads;
    const std::int64_t wide = 64 * (4 + 2 * key_heads);
    const auto step = [&](AttentionBody body) {
      set_attention_body(body);
      Tape tape;
      const Tensor qkv = leaf(tape, {140, wide}, DType::bf16);
      const Tensor out = self_attention(tape, qkv, pack);
      const MetaAccount account(Device::cuda);
      tape.backward(out, blank({140, 256}, DType::bf16));
      return account.memory().peak - block(140 * 256 * 2) - block(140 * wide * 2);
    };
    const std::size_t own = block(140 * 4 * 2 * 4);
    CHECK(step(AttentionBody::own) == own);
    // Of rows that a tile may have beyond the pack too; and where heads share keys theirs apart.
    const std::size_t library = block(268 * 4 * 4) + block(268 * 256 * 4) +
                                (key_heads == 4 ? 0 : 2 * block(268 * wide * (4 / key_heads) * 2));
    CHECK(step(AttentionBody::cudnn) == library);
    // Or what these are compared with: three gradients, forward again, and our own.
    const std::size_t compared =
        3 * block(140 * wide * 2) + block(140 * 256 * 2) + block(140 * 4 * 4) + own;
    CHECK(step(AttentionBody::automatic) == std::max(library, compared));
  }
}

TEST_CASE("bytes of the optimizer: what AdamW reads and writes, and the norm before it") {
  for (const bool averages : {false, true}) {
    AdamwSlot slot;
    slot.moments = DType::bf16;
    slot.count = kAll;
    float average = 0;
    if (averages) slot.ema = &average;  // not read
    // The gradient; weight, both moments and the average, read and written.
    const double update = 4 + 2 * (4 + 2 + 2 + (averages ? 4 : 0));
    const std::vector<AdamwSlot> slots{slot, slot};
    CHECK(bytes_of(counted([&] { adamw(Device::meta, slots, {}); }), "adamw") ==
          2 * update * kElements);
    const Kernels clipped = counted([&] { clipped_adamw(Device::meta, slots, {}, 1, 1); });
    CHECK(bytes_of(clipped, "clipped_adamw") == 2 * update * kElements);
    CHECK(bytes_of(clipped, "sum_squares") == 2 * 4 * kElements);
  }
  const std::vector<Extent> arrays{{nullptr, kAll}, {nullptr, kAll}};
  CHECK(bytes_of(counted([&] { sum_squares(Device::meta, arrays); }), "sum_squares") ==
        8 * kElements);
}
