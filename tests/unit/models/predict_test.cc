// Predicted times: work counted by hand times the rates of the table.
// SPDX-License-Identifier: Apache-2.0
#include "models/predict.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.h"
#include "models/dit/network_cost.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_fp8.h"
#include "ops/conv/conv2d.h"
#include "ops/determinism.h"
#include "ops/matmul/gemm.h"
#include "ops/optim/adamw.h"
#include "ops/pointwise/activations.h"
#include "support/usage_error.h"
#include "tensor/device.h"

using namespace vfm;
using models::Gpu;
using models::TimeLine;

namespace {

const Gpu& h200() {
  return models::find_gpu("h200");
}

/// Seconds of a line; 0 if there is none.
double line(const std::vector<TimeLine>& lines, std::string_view name) {
  const auto found = std::ranges::find(lines, name, &TimeLine::name);
  return found == lines.end() ? 0 : found->seconds;
}

Tensor blank(Shape shape, DType dtype = DType::bf16) {
  return Tensor(std::move(shape), dtype, Device::meta);
}

template <class Act>
std::vector<TimeLine> lines_of(Act act) {
  const MetaAccount account(Device::cuda);
  act();
  return models::predict(h200(), account.calls());
}

void product(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  const Tensor a = blank({m, k}, dtype), b = blank({n, k}, dtype);
  const Tensor scale = blank({1}, DType::f32), c = blank({m, n}, DType::f32);
  const bool fp8 = dtype == DType::f8e4m3;
  ops::Matrix left{a.raw(), dtype, k, false}, right{b.raw(), dtype, k, true};
  if (fp8) left.scale = right.scale = scale.data<float>();
  ops::gemm(Device::meta, m, n, k, left, right, c.raw(), DType::f32, n, false);
}

/// Self-attention of 1,024 tokens, two heads of `head_dim`, forward and backward.
void attention(DType dtype, int head_dim = 128) {
  ops::AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {1024};
  pack.heads = pack.key_heads = 2, pack.head_dim = head_dim;
  ops::Tape tape;
  const Tensor qkv = blank({1024, 6 * head_dim}, dtype);
  tape.watch(qkv, blank({1024, 6 * head_dim}, DType::f32));
  const Tensor out = ops::self_attention(tape, qkv, pack);
  tape.backward(out, blank(out.shape(), dtype));
}

}  // namespace

TEST_CASE("a small layer by hand, times the rates of the table") {
  const std::vector<TimeLine> lines = lines_of([] {
    product(1024, 2048, 1024, DType::bf16);
    product(1, 768, 256, DType::f32);
    product(1024, 2048, 512, DType::f8e4m3);
    ops::Tape silent(false);
    (void)ops::activate(silent, blank({1024, 1024}), ops::ActivationKind::gelu);
    (void)Tensor({1000, 7}).to(Device::meta);
  });
  CHECK(line(lines, "products") == 2. * 1024 * 2048 * 1024 / 680e12);
  // Of so few rows the weights' way takes the time: 256 x 768 of them, a row in and one out.
  CHECK(line(lines, "products, f32") == 4. * (256 + 256 * 768 + 768) / 3.65e12);
  CHECK(line(lines, "element-wise") == 2. * 2 * 1024 * 1024 / 3.65e12);
  CHECK(line(lines, "copies to the GPU") == 4. * 7000 / 7e9);
  CHECK(line(lines, "gaps") == 5 * 2e-6);
  CHECK(lines.back().name == "gaps");
  CHECK(lines.back().calls == 5);
  // The same part of the best that is published of bf16, 794.5, and of FP8, 1,453. Its result of
  // f32 is what takes longer.
  CHECK(680 / 794.5 == Approx(1244 / 1453.).epsilon(0.001));
  CHECK(line(lines, "products, FP8") == (1024. * 512 + 512 * 2048 + 4. * 1024 * 2048) / 3.65e12);
  CHECK(line(lines_of([] { product(8192, 8192, 8192, DType::f8e4m3); }), "products, FP8") ==
        Approx(2. * 8192 * 8192 * 8192 / 1244e12).epsilon(0.001));

  const TimeLine all = models::sum_of("all", lines);
  CHECK(all.calls == 5);
  CHECK(all.flops == 2. * (1024. * 2048 * (1024 + 512) + 256 * 768));
  double seconds = 0;
  for (const TimeLine& one : lines)
    seconds += one.seconds;
  CHECK(all.seconds == seconds);
}

TEST_CASE("attention: cuDNN's rates where it would do it, else our own") {
  const double pairs = 1024. * 1024, forward = 4 * pairs * 256, backward = 10 * pairs * 256;
  const auto check = [&](const std::vector<TimeLine>& lines, double up, double down) {
    CHECK(line(lines, "attention, forward") == Approx(forward / up).epsilon(1e-12));
    CHECK(line(lines, "attention, backward") == Approx(backward / down).epsilon(1e-12));
  };
  check(lines_of([] { attention(DType::bf16); }), 691e12, 594e12);
  ops::set_deterministic(true);
  check(lines_of([] { attention(DType::bf16); }), 320e12, 210e12);
  ops::set_deterministic(false);
  const double single = 66.9 / 989.4;
  check(lines_of([] { attention(DType::f32); }), 320e12 * single, 210e12 * single);
  // Heads of 32 are not cuDNN's: a quarter of the work.
  const std::vector<TimeLine> small = lines_of([] { attention(DType::bf16, 32); });
  CHECK(line(small, "attention, forward") == Approx(forward / 4 / 320e12).epsilon(1e-12));
  const std::vector<TimeLine> fp8 = lines_of([] {
    ops::AttentionPack pack;
    pack.query_lengths = pack.key_lengths = {1024};
    pack.heads = pack.key_heads = 2, pack.head_dim = 128;
    (void)ops::self_attention_fp8(ops::Tape(false), blank({1024, 768}), pack);
  });
  CHECK(line(fp8, "attention, forward") == Approx(forward / 1023e12).epsilon(1e-12));
}

TEST_CASE("convolutions: cuDNN's rate where it would do them, else our own") {
  ops::Conv2d conv;
  conv.images = 1, conv.height = conv.width = 64, conv.in = conv.out = 512;
  conv.kernel_height = conv.kernel_width = 3, conv.pad_top = conv.pad_left = 1;
  conv.pad_bottom = conv.pad_right = 1;
  const double flops = 2. * 64 * 64 * 512 * 512 * 9;
  const auto seconds = [&](DType type) {
    const std::vector<TimeLine> lines = lines_of([&] {
      const Tensor x = blank({64 * 64, 512}, type), w = blank({512, 9 * 512}, type);
      ops::conv2d(Device::meta, conv, type, x.raw(), w.raw(), nullptr, nullptr, x.raw());
      ops::conv2d_backward_data(Device::meta, conv, type, x.raw(), w.raw(), x.raw());
    });
    return line(lines, "convolutions");
  };
  CHECK(seconds(DType::bf16) == Approx(2 * flops / 530e12).epsilon(1e-12));
  CHECK(seconds(DType::f32) == Approx(2 * flops / (265e12 * 66.9 / 989.4)).epsilon(1e-12));
  ops::set_deterministic(true);
  CHECK(seconds(DType::bf16) == Approx(2 * flops / 265e12).epsilon(1e-12));
  ops::set_deterministic(false);
  // Gradients of weights are our own kernels' always.
  const std::vector<TimeLine> weights = lines_of([&] {
    const Tensor x = blank({64 * 64, 512}), sum = blank({512, 9 * 512}, DType::f32);
    ops::conv2d_backward_weights(Device::meta, conv, DType::bf16, x.raw(), x.raw(),
                                 sum.data<float>(), nullptr);
  });
  CHECK(line(weights, "convolutions") == Approx(flops / 265e12).epsilon(1e-12));
}

TEST_CASE("what comes after backward has lines of its own") {
  const MetaAccount account(Device::cuda);
  ops::AdamwSlot slot;
  slot.moments = DType::bf16;
  slot.count = 1 << 20;
  ops::clipped_adamw(Device::meta, std::vector{slot}, {}, 1, 1);
  const std::vector<TimeLine> lines = models::predict(h200(), {}, account.calls());
  CHECK(line(lines, "AdamW") == 20. * (1 << 20) / 3.65e12);
  CHECK(line(lines, "norm of gradients") == 4. * (1 << 20) / 3.65e12);
  CHECK(lines.size() == 3);
}

TEST_CASE("peaks of GPUs by their names") {
  const auto peak = [](const std::string& name) {
    return models::peak_tflops("NVIDIA " + name + ", 139.8 GiB, compute capability 9.0");
  };
  CHECK(peak("H100 80GB HBM3") == 989.4);
  CHECK(peak("H100 PCIe") == 756.5);
  CHECK(peak("A100-SXM4-80GB") == 312);
  CHECK(peak("B200") == 2250);
  CHECK(peak("GB200") == 2500);
  CHECK(peak("B300 SXM6 AC") == 2250);
  CHECK(peak("GB300") == 2500);
  CHECK(peak("RTX A4000") == 0);
  CHECK(peak("GeForce RTX 5090") == 0);
}

TEST_CASE("the rates that were fixed, and what of other GPUs follows from them") {
  CHECK(h200().products == 680e12);
  CHECK(h200().attention_forward == 691e12);
  CHECK(h200().attention_backward == 594e12);
  CHECK(h200().bandwidth == 3.65e12);
  const Gpu &h100 = models::find_gpu("h100"), &b200 = models::find_gpu("b200");
  CHECK(h100.products == h200().products);
  CHECK(h100.bandwidth == Approx(3.35e12 * 3.65 / 4.8));
  CHECK(b200.products == Approx(680e12 * 2250 / 989.4));
  CHECK(b200.bandwidth == Approx(8e12 * 3.65 / 4.8));
}

TEST_CASE("rates, MFU and whether it fits") {
  const std::vector<TimeLine> lines{{"products", 1.5, 10, 7e14, 1e9}, {"gaps", 0.5, 10, 0, 0}};
  constexpr double kGiB = 1 << 30;
  const Json told = models::prediction(h200(), lines, 8192, 4.947e14, 100 * kGiB);
  CHECK(told["seconds"] == 2);
  CHECK(told["tokens_per_second"] == 4096);
  CHECK(told["mfu"].get<double>() == Approx(0.25));
  CHECK(told["fits"] == true);
  CHECK(told["lines"].size() == 2);
  CHECK(told["lines"][0]["flops"] == 7e14);
  const std::string words = models::prediction_words(told);
  CHECK(words.find("4096 tokens/s, 25.0 % MFU; not measured\n") != std::string::npos);
  CHECK(words.find("products             1500 ms, 75.0 %\n") != std::string::npos);
  CHECK(words.find("fits an H200: 100.0 of 140.4 GiB") != std::string::npos);

  const auto verdict = [&](const char* gpu, double memory) {
    const Json json = models::prediction(models::find_gpu(gpu), lines, 1, 1, memory * kGiB);
    const std::string text = json["verdict"].get<std::string>();
    CHECK(json["fits"].get<bool>() == text.starts_with("fits "));
    return text.substr(0, text.find(" GiB"));
  };
  CHECK(verdict("h100", 86.1) == "does not fit an H100: 86.1 of 79.6");
  CHECK(verdict("h100", 75) == "does not fit an H100: 75.0 of 79.6");
  CHECK(verdict("h100", 73.6) == "fits an H100: 73.6 of 79.6");  // 95 % less 2 GiB: 73.67
  CHECK(verdict("b200", 100) == "fits a B200: 100.0 of 179.1");
}

TEST_CASE("what --gpu refuses") {
  CHECK(usage_error([] { models::find_gpu("h300"); }) ==
        "--gpu: unknown GPU 'h300'; choose one of a100, h100, h200, b200, gb200, l40s, "
        "or a file (.json)");
}

TEST_CASE("a pass of Cosmos 7B at 121 frames of 704x1280, with guidance, against a count by hand") {
  models::NetworkSample sample{16, 88, 160, 24};
  sample.text_tokens = 512;
  const models::PartCost cost = models::forward_cost(models::NetworkConfig(), {}, {sample, sample},
                                                     DType::bf16, {}, Device::cuda);
  const std::vector<TimeLine> lines = models::predict(h200(), cost.calls);
  // 28 layers of 12 + 2 d^2 products a token (q, k, v, out, four and four of the MLP; q and out of
  // cross-attention), of 2 x 56,320 tokens: 2.17 s at 680; keys and values of 512 texts are little.
  const double tokens = 2 * 56320, width = 4096;
  CHECK(line(lines, "products") ==
        Approx(28 * 2 * 14 * width * width * tokens / 680e12).epsilon(0.005));
  // 4 s (s + 512) d a sample and layer.
  CHECK(line(lines, "attention, forward") ==
        Approx(28 * 4 * tokens * (56320 + 512) * width / 691e12).epsilon(1e-6));
  double flops = 0;
  for (const TimeLine& one : lines)
    flops += one.flops;
  CHECK(flops == Approx(cost.flops));
}
