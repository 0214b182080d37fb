// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate/gpu_probes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/philox.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_fp8.h"
#include "ops/conv/conv.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/linear_fp8.h"
#include "ops/pointwise/activations.h"
#include "tensor/device.h"
#include "tensor/offload.h"

namespace vfm::train {
namespace {

using Launch = std::function<void()>;

constexpr int kHeads = 32, kHeadDim = 128;

/// Numbers of a normal distribution, a million different ones over and over: products of random
/// numbers take more power, and so more time, than those of zeros.
Tensor numbers(Shape shape, DType dtype, Device device, std::uint64_t key) {
  constexpr std::int64_t kDifferent = 1 << 20;
  const Tensor all(std::move(shape), dtype, device);
  if (device == Device::meta) return all;
  const Tensor some({kDifferent});
  Random(1, Purpose::test, 0, key).fill_normal(some.floats());
  const Tensor piece = some.to(dtype).to(device);
  for (std::size_t done = 0; done < all.bytes(); done += piece.bytes())
    copy_bytes(all.data<std::byte>() + done, device, piece.raw(), device,
               std::min(piece.bytes(), all.bytes() - done));
  return all;
}

/// The same bytes in few large kernels and in many small ones, all of them larger than what a GPU
/// keeps near.
Launch element_wise(std::int64_t elements, int kernels, Device device) {
  std::vector<Tensor> all;
  for (int i = 0; i < kernels; ++i)
    all.push_back(numbers({elements / kernels}, DType::bf16, device, 1));
  return [all] {
    ops::Tape silent(false);
    for (const Tensor& x : all)
      ops::activate(silent, x, ops::ActivationKind::gelu);
  };
}

/// The four products of a layer of that width, forward and both of backward.
Launch layer_products(std::int64_t tokens, std::int64_t width, DType type, Device device) {
  struct Layer {
    std::int64_t in, out;
    Tensor x, w, dy, y, dx, dw;
  };
  std::vector<Layer> layers;
  for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{width, 3 * width},
                                {width, width},
                                {width, 4 * width},
                                {4 * width, width}})
    layers.push_back({in, out, numbers({tokens, in}, type, device, 2),
                      numbers({out, in}, type, device, 3), numbers({tokens, out}, type, device, 4),
                      Tensor({tokens, out}, type, device), Tensor({tokens, in}, type, device),
                      Tensor::zeros({out, in}, DType::f32, device)});
  return [layers, tokens, type, device] {
    const auto matrix = [](const Tensor& t, bool transposed) {
      return ops::Matrix{t.raw(), t.dtype(), t.size(1), transposed};
    };
    for (const Layer& one : layers) {
      ops::gemm(device, tokens, one.out, one.in, matrix(one.x, false), matrix(one.w, true),
                one.y.raw(), type, one.out, false);
      ops::gemm(device, tokens, one.in, one.out, matrix(one.dy, false), matrix(one.w, false),
                one.dx.raw(), type, one.in, false);
      ops::gemm(device, one.out, one.in, tokens, matrix(one.dy, true), matrix(one.x, false),
                one.dw.raw(), DType::f32, one.in, true);
    }
  };
}

Launch fp8_product(std::int64_t tokens, std::int64_t width, Device device) {
  const ops::Quantized x = ops::quantize(numbers({tokens, width}, DType::bf16, device, 2)),
                       w = ops::quantize(numbers({4 * width, width}, DType::bf16, device, 3));
  return [x, w] {
    const ops::Tape silent(false);
    ops::linear_fp8(silent, x, w, DType::bf16);
  };
}

ops::AttentionPack one_sample(std::int64_t tokens, Device device) {
  ops::AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {tokens};
  pack.heads = pack.key_heads = kHeads;
  pack.head_dim = kHeadDim;
  if (device != Device::meta) ops::prepare(pack, device);
  return pack;
}

/// Whose kernels compute attention, for as long as it lives.
class ChosenBody {
 public:
  explicit ChosenBody(ops::AttentionBody body) : before_(ops::attention_body()) {
    ops::set_attention_body(body);
  }
  ~ChosenBody() { ops::set_attention_body(before_); }
  ChosenBody(const ChosenBody&) = delete;
  ChosenBody& operator=(const ChosenBody&) = delete;

 private:
  const ops::AttentionBody before_;
};

/// `forward` makes something of x; and then back, if `back`.
void forward_and_back(const Tensor& x, const Tensor& out_gradient, bool back,
                      const std::function<Tensor(ops::Tape&)>& forward) {
  ops::Tape tape(back);
  // A gradient that nobody adds to a buffer: x is made from a leaf, as in a layer.
  const Tensor leaf = Tensor::zeros({1}, DType::f32, x.device()), gradient = leaf.clone();
  if (back) {
    tape.watch(leaf, gradient);
    tape.record(x, {leaf}, [x](ops::Tape& t) { t.take(x); });
  }
  const Tensor out = forward(tape);
  if (back) tape.backward(out, out_gradient);
}

Launch attention(std::int64_t tokens, ops::AttentionBody body, bool back, Device device) {
  const Tensor qkv = numbers({tokens, 3 * kHeads * kHeadDim}, DType::bf16, device, 5),
               dout = numbers({tokens, kHeads * kHeadDim}, DType::bf16, device, 6);
  const ops::AttentionPack pack = one_sample(tokens, device);
  return [=] {
    const ChosenBody chosen(body);
    forward_and_back(qkv, dout, back,
                     [&](ops::Tape& tape) { return ops::self_attention(tape, qkv, pack); });
  };
}

Launch fp8_attention(std::int64_t tokens, Device device) {
  const Tensor qkv = numbers({tokens, 3 * kHeads * kHeadDim}, DType::bf16, device, 5);
  const ops::AttentionPack pack = one_sample(tokens, device);
  return [=] {
    const ops::Tape silent(false);
    ops::self_attention_fp8(silent, qkv, pack);
  };
}

/// In space, of a video tokenizer's frames.
Launch convolution(std::int64_t side, std::int64_t channels, bool back, Device device) {
  const Tensor x = numbers({8, side, side, channels}, DType::bf16, device, 7),
               w = numbers({channels, channels, 1, 3, 3}, DType::bf16, device, 8),
               dy = numbers(x.shape(), DType::bf16, device, 9),
               bias = Tensor::zeros({channels}, DType::f32, device);
  const Tensor gradient = Tensor::zeros(w.shape(), DType::f32, device);
  return [=] {
    ops::Tape tape(back);
    if (back) tape.watch(w, gradient);
    const Tensor y = ops::conv_space(tape, x, w, bias);
    if (back) tape.backward(y, dy);
  };
}

/// To the host's pinned memory and back.
Launch host_copies(std::int64_t elements, Device device) {
  const Tensor x = numbers({elements}, DType::bf16, device, 10);
  return [x] {
    Offload there(x);
    there.release();
    there.fetch();
    there.get();
  };
}

}  // namespace

std::vector<GpuProbe> gpu_probes(int part) {
  using models::Gpu;
  using ops::AttentionBody;
  std::vector<GpuProbe> all;
  const auto add = [&](std::string name, double Gpu::*rate, auto make) {
    all.push_back({std::move(name), rate, make});
  };
  constexpr std::int64_t kMega = 1 << 20;
  for (const int kernels : {1, 4, 16})
    add(vfm::format("element-wise, {} kernels", kernels), &Gpu::bandwidth,
        [=](Device d) { return element_wise(256 * kMega / part, kernels, d); });
  const std::int64_t tokens = 8192 / part;
  for (const int of_model : {2048, 4096, 5120}) {
    const std::int64_t width = of_model / part;
    add(vfm::format("products, width {}", width), &Gpu::products,
        [=](Device d) { return layer_products(tokens, width, DType::bf16, d); });
  }
  add("products in f32", &Gpu::peak_f32,
      [=](Device d) { return layer_products(2048 / part, 2048 / part, DType::f32, d); });
  add("products in FP8", &Gpu::products_fp8,
      [=](Device d) { return fp8_product(tokens, 4096 / part, d); });
  for (const std::int64_t sample : {tokens, 2 * tokens}) {
    const std::string of = vfm::format(" of {} tokens", sample);
    for (const bool back : {false, true})
      for (const bool own : {false, true}) {
        double Gpu::*const rate = own ? (back ? &Gpu::own_backward : &Gpu::own_forward)
                                      : (back ? &Gpu::attention_backward : &Gpu::attention_forward);
        const AttentionBody body = own ? AttentionBody::own : AttentionBody::automatic;
        add(std::string(own ? "our own attention" : "attention") + (back ? ", and back," : "") + of,
            rate, [=](Device d) { return attention(sample, body, back, d); });
      }
    add("attention in FP8" + of, &Gpu::attention_fp8,
        [=](Device d) { return fp8_attention(sample, d); });
  }
  for (const bool back : {false, true})
    for (const std::int64_t channels : {128, 256})
      add(vfm::format("convolution of {} channels{}", channels, back ? ", and back" : ""),
          back ? &Gpu::own_convolutions : &Gpu::convolutions,
          [=](Device d) { return convolution(128 / part, channels, back, d); });
  add("copies to the host and back", &Gpu::host_link,
      [=](Device d) { return host_copies(128 * kMega / part, d); });
  return all;
}

ProbeWork work_of(const GpuProbe& probe) {
  const MetaAccount account(Device::cuda);
  const Launch run = probe.make(Device::meta);
  run();  // what is tried out at first
  const KernelCalls before = account.calls();
  const std::size_t copies = account.copies().size();
  run();
  ProbeWork work{account.calls()};
  add_calls(work.calls, before, -1);
  std::erase_if(work.calls, [](const auto& one) { return one.second <= 0; });
  for (std::size_t i = copies; i < account.copies().size(); ++i)
    work.copied += account.copies()[i].bytes * account.copies()[i].times;
  return work;
}

}  // namespace vfm::train
