// Qwen2.5-VL's tower and language model, of tiny sizes and with weights of chance, on the GPU
// against the CPU: what is seen, a prompt, and texts that are written together.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/xxh3.h"
#include "kernel_test.h"
#include "models/vlm/qwen_text.h"
#include "models/vlm/qwen_vision.h"
#include "ops/determinism.h"
#include "ops/matmul/quantize.h"
#include "tensor/device.h"
#include "tensors.h"

using namespace vfm;
using models::QwenMemory;
using test::apart;
using test::Checker;

namespace {

/// Weights that a name and the sizes decide.
class ChanceMatrices final : public models::QwenMatrices {
 public:
  ChanceMatrices(const models::QwenTextConfig& text, const models::QwenVisionConfig& vision,
                 DType compute, bool int8, Device device)
      : QwenMatrices(compute, device), text_(text), vision_(vision), int8_(int8) {}

  models::QwenLinear linear(const std::string& name) const override {
    const Shape shape = shape_of(name);
    models::QwenLinear linear;
    linear.compute = compute();
    const Tensor all = matrix(name, shape).to(compute()).to(device());
    linear.weight = all;
    if (int8_) {
      const ops::QuantizedRows rows =
          ops::quantize_rows(all, ops::largest_of_rows(all), ops::RowFormat::int8);
      linear.weight = rows.values;
      linear.scales = rows.scales;
    }
    const bool biased = name.find("q_proj") != name.npos || name.find("k_proj") != name.npos ||
                        name.find("v_proj") != name.npos ||
                        (name.starts_with("visual.") && name.find("patch_embed") == name.npos);
    if (biased) linear.bias = noise_tensor({shape[0]}, seed_of(name) + 1).to(device());
    return linear;
  }

  Tensor vector(const std::string& name) const override {
    const bool sees = name.starts_with("visual.");
    const Tensor made = noise_tensor({sees ? vision_.width : text_.width}, seed_of(name));
    for (float& v : made.floats())
      v = 1 + v / 8;
    return made.to(device());
  }

  Tensor rows(const std::string&, std::span<const std::int32_t> numbers) const override {
    const Tensor table = matrix("embed_tokens", shape_of("embed_tokens"));
    const Tensor some({static_cast<std::int64_t>(numbers.size()), text_.width});
    for (std::size_t i = 0; i < numbers.size(); ++i)
      copy(table.rows(numbers[i], numbers[i] + 1),
           some.rows(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1));
    return some.to(device());
  }

 private:
  static std::uint32_t seed_of(const std::string& name) {
    return static_cast<std::uint32_t>(xxh3_64(name.data(), name.size()) % 100'000);
  }

  /// So that what comes out is about as large as what goes in.
  static Tensor matrix(const std::string& name, const Shape& shape) {
    const Tensor made = noise_tensor(shape, seed_of(name));
    for (float& v : made.floats())
      v /= std::sqrt(static_cast<float>(shape[1]));
    return made;
  }

  Shape shape_of(const std::string& name) const {
    const bool sees = name.starts_with("visual.");
    const std::int64_t d = sees ? vision_.width : text_.width;
    const std::int64_t f = sees ? vision_.feed_forward : text_.feed_forward;
    const std::int64_t keys = std::int64_t{text_.key_heads} * text_.head_dim();
    const std::int64_t merged = d * vision_.merged();
    const std::vector<std::pair<const char*, Shape>> shapes{
        {"patch_embed.proj", {d, vision_.patch_elements()}},
        {"attn.qkv", {3 * d, d}},
        {"attn.proj", {d, d}},
        {"merger.mlp.0", {merged, merged}},
        {"merger.mlp.2", {vision_.out_width, merged}},
        {"gate_proj", {f, d}},
        {"up_proj", {f, d}},
        {"down_proj", {d, f}},
        {"q_proj", {d, d}},
        {"k_proj", {keys, d}},
        {"v_proj", {keys, d}},
        {"o_proj", {d, d}},
        {"embed_tokens", {text_.vocabulary, d}},
        {"lm_head", {text_.vocabulary, d}}};
    for (const auto& [part, shape] : shapes)
      if (name.ends_with(part)) return shape;
    fail("the test has no matrix '{}'", name);
  }

  models::QwenTextConfig text_;
  models::QwenVisionConfig vision_;
  bool int8_;
};

struct TinyModel {
  models::QwenTextConfig text;
  models::QwenVisionConfig vision;

  TinyModel(int head_dim, std::array<int, 3> sections) {
    text.vocabulary = 61;
    text.heads = 4, text.key_heads = 2, text.width = 4 * head_dim, text.feed_forward = 5 * head_dim;
    text.layers = 2;
    text.sections = sections;
    vision.depth = 2, vision.heads = 2, vision.width = 2 * 20, vision.feed_forward = 52;
    vision.patch = 2, vision.window = 8, vision.out_width = text.width;
    vision.full_blocks = {1};
  }
};

/// What a device makes of a clip, a prompt and some texts.
struct Made {
  Tensor seen, hidden;
  std::vector<Tensor> logits;  ///< of each step, a row for each text
};

/// `which` of the texts are written, together.
Made make(const TinyModel& tiny, DType compute, bool int8, Device device,
          const std::vector<int>& which) {
  const ChanceMatrices weights(tiny.text, tiny.vision, compute, int8, device);
  const models::QwenVision vision(tiny.vision, weights);
  const models::QwenText text(tiny.text, weights);
  const models::QwenGrid grid{2, 6, 10};
  Made made;
  made.seen = vision.forward(noise_tensor({grid.patches(), tiny.vision.patch_elements()}, 7), grid);
  std::vector<QwenMemory> memories;
  std::vector<Tensor> hidden;
  for (const int i : which) {
    // Some words, what is seen, and more words.
    std::vector<std::int32_t> ids;
    for (int k = 0; k < 5 + 7 * i; ++k)
      ids.push_back((k * 17 + i) % tiny.text.vocabulary);
    const auto words = static_cast<std::int64_t>(ids.size()), sights = made.seen.size(0);
    const Tensor x({words + sights, tiny.text.width}, DType::f32, device);
    copy(text.embed(ids), x.rows(0, words));
    copy(made.seen, x.rows(words, words + sights));
    std::vector<models::QwenPlace> places;
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(x.size(0)); ++k)
      places.push_back({k / 3, k / 2, k});
    memories.push_back(text.memory(x.size(0) + 3));
    hidden.push_back(text.forward(x, places, memories.back()));
  }
  made.hidden = hidden.front().clone();
  const auto count = static_cast<std::int64_t>(which.size());
  Tensor last({count, tiny.text.width}, DType::f32, device);
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor& own = hidden[static_cast<std::size_t>(i)];
    copy(own.rows(own.size(0) - 1, own.size(0)), last.rows(i, i + 1));
  }
  std::vector<QwenMemory*> all;
  for (QwenMemory& memory : memories)
    all.push_back(&memory);
  for (int step = 0; step < 3; ++step) {
    made.logits.push_back(text.logits(last).to(Device::cpu));
    std::vector<std::int32_t> next;
    std::vector<models::QwenPlace> places;
    for (const int i : which) {
      next.push_back((i * 5 + step) % tiny.text.vocabulary);
      places.push_back({40 + step, 40 + step, 40 + step});
    }
    last = text.step(text.embed(next), places, all);
  }
  return made;
}

void compare(Checker& checker, const TinyModel& tiny, DType compute, bool int8, double tolerance) {
  const std::string name = std::string(compute == DType::f32 ? "f32" : "bf16") +
                           (int8 ? ", int8" : "") + ", heads of " +
                           std::to_string(tiny.text.head_dim());
  const std::vector<int> texts{0, 1, 2};
  const Made here = make(tiny, compute, int8, Device::cpu, texts);
  const Made there = make(tiny, compute, int8, Device::cuda, texts);
  checker.apart(name + ": seen", apart(there.seen, here.seen), tolerance);
  checker.apart(name + ": prompt", apart(there.hidden, here.hidden), tolerance);
  for (std::size_t step = 0; step < here.logits.size(); ++step)
    checker.apart(name + ": step " + std::to_string(step),
                  apart(there.logits[step], here.logits[step]), tolerance);
  // What else is written changes no bit of a text.
  for (const int i : texts) {
    const Made alone = make(tiny, compute, int8, Device::cuda, {i});
    for (std::size_t step = 0; step < here.logits.size(); ++step) {
      const Tensor row = there.logits[step].rows(i, i + 1);
      checker.check(name + ": text " + std::to_string(i) + " alone, step " + std::to_string(step),
                    std::memcmp(row.raw(), alone.logits[step].raw(), row.bytes()) == 0);
    }
  }
}

void tests(Checker& checker) {
  ops::set_deterministic(true);  // as the program that writes captions has it
  const TinyModel small_heads(16, {2, 3, 3}), tensor_cores(64, {8, 12, 12});
  checker.part(compare, small_heads, DType::f32, false, 2e-5);
  checker.part(compare, small_heads, DType::bf16, true, 4e-2);
  checker.part(compare, tensor_cores, DType::bf16, false, 4e-2);
}

}  // namespace

int main() {
  return vfm::test::run(tests);
}
