// The autoregressive decoder against a second implementation (scripts/golden/networks.py), and
// against itself: packs, causality, writing code after code, recomputation.
// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/one_thread.h"
#include "base/philox.h"
#include "models/decoder/decoder_json.h"
#include "ops/loss/cross_entropy.h"
#include "support/small_decoder.h"
#include "support/small_networks.h"
#include "tensor/allocator.h"

using namespace vfm;
using models::CausalDecoder;
using models::CodeBatch;
using models::CodeSample;
using models::CodeWriter;
using models::DecoderConfig;
using nn::Recompute;

namespace {

DecoderConfig tiny() {
  DecoderConfig c = small_decoder();
  c.num_layers = 1;
  c.mlp_ratio = 0.5;
  c.yarn_scale = 2;
  c.yarn_betas = {4, 0.05};
  return c;
}

// Without the last, those of Cosmos-1.0 (models/decoder/decoder_config.h), narrower than its heads.
std::vector<DecoderConfig> ways_of_tokens() {
  DecoderConfig base = tiny(), text = tiny(), all = tiny();
  base.start_token = false;
  base.read_positions = text.read_positions = true;
  text.absolute_positions = all.absolute_positions = true;
  base.yarn_rows = 2;
  base.text_embed_dim = 0;
  for (DecoderConfig* c : {&base, &text, &all})
    c->stream_width = 20, c->num_layers = 2;
  return {base, text, all};
}

constexpr std::size_t kCodes = 26;

CodeBatch noisy_batch(const DecoderConfig& c) {
  return code_pack(c, code_samples());
}

std::vector<float> logits_of(const CausalDecoder& decoder, const CodeBatch& batch) {
  ops::Tape tape(false);
  const Tensor logits = decoder.forward(tape, batch);
  return {logits.floats().begin(), logits.floats().end()};
}

// Forward, loss and backward; the sums of the samples' losses.
std::vector<double> run_step(const CausalDecoder& decoder, const CodeBatch& batch, double z_loss) {
  nn::zero_gradients(decoder.parameters());
  ops::Tape tape;
  const Tensor logits = decoder.forward(tape, batch);
  const ops::CrossEntropy loss = ops::cross_entropy(logits, batch.codes, z_loss, 1);
  tape.backward(logits, loss.seed);
  return loss.read_sums(std::vector<std::int64_t>{18, 6, 2});
}

}  // namespace

TEST_CASE("decoder: logits, losses and gradients are those of a second implementation") {
  const Golden golden("decoder_tiny");
  CausalDecoder decoder(tiny(), 1);
  golden.load_weights(decoder.parameters());
  CodeBatch batch;
  batch.samples = code_samples();
  for (int i = 0; i < 3; ++i) {
    const io::TensorView& codes = golden.view("input." + std::to_string(i) + ".codes");
    const auto begin = batch.codes.size();
    batch.codes.resize(begin + static_cast<std::size_t>(codes.elements()));
    std::memcpy(batch.codes.data() + begin, codes.data.data(), codes.data.size());
  }
  batch.text = Tensor::from(golden.joined("input", ".text", 3), {6, 6});
  CHECK(distance(logits_of(decoder, batch), golden.joined("output", "", 3)) < 1e-5);
  for (const Recompute recompute : {Recompute::none, Recompute::elementwise,
                                    Recompute::block_but_attention, Recompute::block}) {
    decoder.set_recompute(recompute);
    const std::vector<double> sums = run_step(decoder, batch, 0.01);
    for (std::size_t i = 0; i < 3; ++i) {
      double expected = 0;
      for (const float loss : golden["losses." + std::to_string(i)])
        expected += loss;
      CHECK(sums[i] == Approx(expected).epsilon(1e-5));
    }
    for (const nn::Parameter* p : decoder.parameters()) {
      INFO(p->name);
      CHECK(distance(p->grad.floats(), golden["gradient." + p->name]) < 1e-4);
    }
  }
}

TEST_CASE("decoder: a code sees those before it in its own sample, and nothing else") {
  const CausalDecoder decoder(tiny(), 1);
  randomise(decoder.parameters(), 0.3f);
  CodeBatch batch = noisy_batch(tiny());
  const std::vector<float> before = logits_of(decoder, batch);
  constexpr std::size_t kChanged = 7;
  batch.codes[kChanged] = (batch.codes[kChanged] + 1) % 11;
  const std::vector<float> after = logits_of(decoder, batch);
  for (std::size_t i = 0; i < kCodes; ++i) {
    INFO("code " << i);
    const bool same = std::memcmp(&before[i * 11], &after[i * 11], 11 * sizeof(float)) == 0;
    CHECK(same == (i <= kChanged || i >= 18));
  }
}

TEST_CASE("decoder: writing code after code, with what was seen kept, is the full forward") {
  for (const int text_width : {6, 0}) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      DecoderConfig c = tiny();
      c.num_layers = 2;
      c.text_embed_dim = text_width;
      const CausalDecoder decoder(c, 1, compute);
      randomise(decoder.parameters(), 0.3f);
      const CodeBatch pack = noisy_batch(c);
      const std::vector<float> whole = logits_of(decoder, pack);
      std::int64_t code = 0, text = 0;
      for (const CodeSample& s : pack.samples) {
        CodeWriter writer(decoder, s,
                          text_width > 0 ? pack.text.rows(text, text + s.text_tokens) : Tensor());
        for (std::int64_t i = 0; i < s.codes(); ++i, ++code) {
          CHECK(writer.written() == i);
          CHECK(distance(writer.logits(),
                         std::span(whole).subspan(static_cast<std::size_t>(code * 11), 11)) <
                (compute == DType::f32 ? 1e-5 : 0.05));
          writer.write(pack.codes[static_cast<std::size_t>(code)]);
        }
        CHECK_THROWS_AS(writer.logits(), Error);
        text += s.text_tokens;
      }
    }
  }
}

TEST_CASE("decoder: in each way that tokens stand for codes, writing them is the full forward") {
  for (const DecoderConfig& c : ways_of_tokens()) {
    CausalDecoder decoder(c, 1);
    randomise(decoder.parameters(), 0.3f);
    const CodeBatch pack = noisy_batch(c);
    const std::vector<float> whole = logits_of(decoder, pack);
    std::int64_t first = 0, text = 0;
    for (const CodeSample& s : pack.samples) {
      CodeWriter writer(
          decoder, s, c.text_embed_dim > 0 ? pack.text.rows(text, text + s.text_tokens) : Tensor());
      for (std::int64_t i = 0; i < s.codes(); ++i) {
        INFO("code " << i << " of " << s.codes() << ", start token " << c.start_token);
        const std::vector<float> logits = writer.logits();
        const std::int64_t token = c.start_token ? i : i - 1;
        if (token < 0)
          CHECK(logits.empty());
        else
          CHECK(distance(logits, std::span(whole).subspan(
                                     static_cast<std::size_t>((first + token) * 11), 11)) < 1e-5);
        writer.write(pack.codes[static_cast<std::size_t>(first + i)]);
      }
      first += s.codes();
      text += s.text_tokens;
    }
    // A code changes the logits of those after it, and no others.
    constexpr std::int64_t kChanged = 7;
    CodeBatch other = pack;
    other.codes[kChanged] = (other.codes[kChanged] + 1) % 11;
    const std::vector<float> after = logits_of(decoder, other);
    for (std::size_t i = 0; i < kCodes; ++i) {
      const bool same = std::memcmp(&whole[i * 11], &after[i * 11], 11 * sizeof(float)) == 0;
      CHECK(same == (i < kChanged + (c.start_token ? 1 : 0) || i >= 18));
    }
  }
}

TEST_CASE("decoder: a code without a start token before it has no loss") {
  const DecoderConfig c = ways_of_tokens()[0];
  CausalDecoder decoder(c, 1);
  randomise(decoder.parameters(), 0.3f);
  const CodeBatch pack = noisy_batch(c);
  ops::Tape silent(false);
  const Tensor logits = decoder.forward(silent, pack);
  std::vector<std::int32_t> targets = pack.codes;
  const std::vector<double> sums = decoder.loss(logits, pack, targets, 0.01, 0).read_sums();
  for (const std::size_t first : {0, 18, 24})
    targets[first] = (targets[first] + 1) % 11;
  CHECK(decoder.loss(logits, pack, targets, 0.01, 0).read_sums() == sums);
  targets[1] = -1;
  CHECK(decoder.loss(logits, pack, targets, 0.01, 0).read_sums()[0] < sums[0]);
}

TEST_CASE("decoder: every parameter is trained; recomputation changes no bit") {
  for (const auto& [text_width, compute] :
       {std::pair{6, DType::f32}, {0, DType::f32}, {6, DType::bf16}}) {
    DecoderConfig c = tiny();
    c.text_embed_dim = text_width;
    CausalDecoder decoder(c, 1, compute);
    randomise(decoder.parameters(), 0.3f);
    run_step(decoder, noisy_batch(c), 1e-3);
    std::map<std::string, Tensor> kept;
    for (const nn::Parameter* p : decoder.parameters()) {
      INFO(p->name);
      CHECK(std::ranges::any_of(p->grad.floats(), [](float g) { return g != 0; }));
      kept[p->name] = p->grad.clone();
    }
    for (const auto& [recompute, offload] : {std::pair{Recompute::elementwise, false},
                                             {Recompute::block_but_attention, false},
                                             {Recompute::block_but_attention, true},
                                             {Recompute::block, false},
                                             {Recompute::block, true}}) {
      decoder.set_recompute(recompute, offload);
      run_step(decoder, noisy_batch(c), 1e-3);
      for (const nn::Parameter* p : decoder.parameters()) {
        INFO(p->name << " " << nn::recompute_name(recompute) << " " << offload);
        CHECK(std::memcmp(p->grad.raw(), kept[p->name].raw(), p->grad.bytes()) == 0);
      }
    }
  }
}

TEST_CASE("decoder: what does not fit is refused") {
  const DecoderConfig c = tiny();
  const CausalDecoder decoder(c, 1);
  CodeBatch batch = noisy_batch(c);
  batch.codes[3] = 11;
  CHECK_THROWS_AS(logits_of(decoder, batch), Error);
  batch = noisy_batch(c);
  batch.codes.pop_back();
  CHECK_THROWS_AS(logits_of(decoder, batch), Error);
  batch = noisy_batch(c);
  batch.text = Tensor();
  CHECK_THROWS_AS(logits_of(decoder, batch), Error);
  CHECK_THROWS_AS(logits_of(decoder, CodeBatch{}), Error);
  CHECK_THROWS_AS(CodeWriter(decoder, {1, 1, 1, 1}, Tensor()), Error);
  for (const auto& spoil : std::initializer_list<void (*)(DecoderConfig&)>{
           [](DecoderConfig& d) { d.vocabulary = 0; },
           [](DecoderConfig& d) { d.num_key_value_heads = 3; },
           [](DecoderConfig& d) { d.yarn_scale = 0.5; },
           [](DecoderConfig& d) {
             d.yarn_betas = {1, 4};
           },
           [](DecoderConfig& d) { d.attention_head_dim = 13; },
           [](DecoderConfig& d) { d.stream_width = 21; },
           [](DecoderConfig& d) { d.start_token = false; }}) {
    DecoderConfig bad = c;
    spoil(bad);
    CHECK_THROWS_AS(bad.validate(), Error);
  }
}

TEST_CASE("decoder: config.json names its type and comes back") {
  const Json json = models::decoder_config_to_json(tiny());
  CHECK(json["_class_name"] == "AutoregressiveTransformer3DModel");
  CHECK(models::decoder_config_to_json(models::decoder_config_from_json(json)) == json);
  CHECK_THROWS_AS(models::decoder_config_from_json({{"vocabulary", "many"}}), Error);
  // What came later is said only where it is not as it was: files of before are as they were.
  CHECK(json.size() == 12);
  for (const DecoderConfig& c : ways_of_tokens()) {
    const Json other = models::decoder_config_to_json(c);
    CHECK(other["width"] == 20);
    const DecoderConfig back = models::decoder_config_from_json(other);
    CHECK(models::decoder_config_to_json(back) == other);
    CHECK(back.start_token == c.start_token);
    CHECK(back.yarn_rows == c.yarn_rows);
  }
}
