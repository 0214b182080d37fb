// Adapters of an autoregressive decoder: what they compute and learn is what the sum of weight and
// B A would.
// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_lora.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "models/decoder/decoder.h"
#include "support/small_decoder.h"
#include "support/small_networks.h"
#include "support/usage_error.h"

using namespace vfm;
using models::CausalDecoder;
using models::CodeBatch;
using models::DecoderConfig;
using models::LoraOptions;
using nn::Recompute;

namespace {

DecoderConfig adapted_config() {
  DecoderConfig c = small_decoder();
  c.stream_width = 20;
  c.mlp_ratio = 1.1;
  return c;
}

CodeBatch adapted_batch() {
  return code_pack(adapted_config(), {{3, 2, 3, 3}, {1, 3, 2, 1}});
}

/// Of every matrix that takes one.
LoraOptions all_of(const DecoderConfig& c) {
  LoraOptions options{3, 6, {}};
  for (const models::NetworkMatrix& m : models::decoder_matrices(c))
    options.targets.push_back(m.module);
  return options;
}

std::vector<float> learn(const CausalDecoder& decoder, const nn::ParameterList& trained) {
  const CodeBatch batch = adapted_batch();
  nn::zero_gradients(trained);
  ops::Tape tape;
  const Tensor logits = decoder.forward(tape, batch);
  tape.backward(logits, decoder.loss(logits, batch, batch.codes, 1e-3, 1).tokens.seed);
  return {logits.floats().begin(), logits.floats().end()};
}

/// factor A B, of [N, M] and [M, K] or their transposes.
Tensor times(const Tensor& a, bool turn_a, const Tensor& b, bool turn_b, float factor) {
  const std::int64_t rows = a.size(turn_a ? 1 : 0), inner = a.size(turn_a ? 0 : 1),
                     columns = b.size(turn_b ? 0 : 1);
  Tensor result({rows, columns});
  const auto at = [](const Tensor& t, bool turn, std::int64_t i, std::int64_t j) {
    return turn ? t.data<float>()[j * t.size(1) + i] : t.data<float>()[i * t.size(1) + j];
  };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < columns; ++k) {
      double sum = 0;
      for (std::int64_t j = 0; j < inner; ++j)
        sum += double{at(a, turn_a, i, j)} * at(b, turn_b, j, k);
      result.data<float>()[i * columns + k] = static_cast<float>(factor * sum);
    }
  return result;
}

}  // namespace

TEST_CASE("decoder lora: the matrices are those of the layers") {
  const DecoderConfig c = adapted_config();
  const CausalDecoder decoder(c, 1);
  std::map<std::string, Shape> shapes;
  for (const nn::Parameter* p : decoder.parameters())
    if (p->shape().size() == 2 && p->name.starts_with("layers.")) shapes[p->name] = p->shape();
  const std::vector<models::NetworkMatrix> matrices = models::decoder_matrices(c);
  CHECK(matrices.size() == shapes.size());
  for (const models::NetworkMatrix& m : matrices) {
    INFO(m.module);
    CHECK(shapes.at(m.module + ".weight") == Shape{m.rows, m.columns});
  }
  CHECK(models::lora_targets(c, {2, 0, {}}).size() == 16);
  CHECK(models::lora_targets(c, {2, 0, {"cross_attn.k_proj"}}).size() == 2);
  CHECK_THAT(usage_error([&] {
               models::lora_targets(c, {2, 0, {"to_q"}});
             }),
             Catch::Contains("there are down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj"));
}

TEST_CASE("decoder lora: outputs and gradients are those of weights with B A in them") {
  const DecoderConfig c = adapted_config();
  CausalDecoder adapted(c, 1, DType::f32, Device::cpu, false);
  CausalDecoder whole(c, 1);
  randomise(adapted.parameters(), 0.3f);
  randomise(whole.parameters(), 0.3f);
  adapted.attach(models::lora_shapes(c, all_of(c)), true);
  const std::vector<float> fresh = learn(adapted, adapted.adapters());
  CHECK(fresh == learn(whole, whole.parameters()));  // B begins as zero
  randomise(adapted.adapters(), 0.3f);
  std::map<std::string, const nn::Parameter*> sides;
  for (const nn::Parameter* p : adapted.adapters())
    sides[p->name] = p;
  for (const nn::Parameter* p : whole.parameters()) {
    const std::string module = p->name.substr(0, p->name.rfind(".weight"));
    if (!sides.contains(module + ".lora_A.weight")) continue;
    const Tensor value = p->read().clone();
    const Tensor more = times(sides[module + ".lora_B.weight"]->value, false,
                              sides[module + ".lora_A.weight"]->value, false, 2);
    for (std::int64_t i = 0; i < value.elements(); ++i)
      value.data<float>()[i] += more.data<float>()[i];
    p->write(value);
  }
  const std::vector<float> merged = learn(whole, whole.parameters());
  CHECK(distance(learn(adapted, adapted.adapters()), merged) < 1e-5);
  CHECK(distance(fresh, merged) > 1e-2);
  int compared = 0;
  for (const nn::Parameter* p : whole.parameters()) {
    const std::string module = p->name.substr(0, p->name.rfind(".weight"));
    if (!sides.contains(module + ".lora_A.weight")) continue;
    INFO(module);
    const nn::Parameter *a = sides[module + ".lora_A.weight"],
                        *b = sides[module + ".lora_B.weight"];
    CHECK(distance(b->grad.floats(), times(p->grad, false, a->value, true, 2).floats()) < 1e-4);
    CHECK(distance(a->grad.floats(), times(b->value, true, p->grad, false, 2).floats()) < 1e-4);
    ++compared;
  }
  CHECK(compared == 22);
  for (const nn::Parameter* p : adapted.parameters())
    CHECK(!p->grad.defined());
}

TEST_CASE("decoder lora: what is computed again changes no bit, in f32 and bf16") {
  const DecoderConfig c = adapted_config();
  for (const DType compute : {DType::f32, DType::bf16}) {
    CausalDecoder decoder(c, 1, compute, Device::cpu, false);
    randomise(decoder.parameters(), 0.3f);
    decoder.attach(models::lora_shapes(c, all_of(c)), true);
    randomise(decoder.adapters(), 0.3f);
    std::vector<std::vector<float>> all;
    for (const auto& [recompute, offload] : {std::pair{Recompute::none, false},
                                             {Recompute::elementwise, false},
                                             {Recompute::block_but_attention, true},
                                             {Recompute::block, false},
                                             {Recompute::block, true}}) {
      decoder.set_recompute(recompute, offload);
      std::vector<float>& values = all.emplace_back(learn(decoder, decoder.adapters()));
      for (const nn::Parameter* p : decoder.adapters())
        values.insert(values.end(), p->grad.floats().begin(), p->grad.floats().end());
      INFO(nn::recompute_name(recompute));
      CHECK(values == all.front());
    }
  }
}
