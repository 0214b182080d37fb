// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder.h"

#include <deque>
#include <optional>
#include <string>

#include "base/error.h"
#include "models/decoder/decoder_layer.h"
#include "models/decoder/decoder_pack.h"
#include "models/decoder/decoder_positions.h"
#include "nn/attached_adapters.h"
#include "nn/block_weights.h"
#include "nn/collectives.h"
#include "nn/stack.h"
#include "nn/weight_maker.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/embedding.h"

namespace vfm::models {
using nn::Init;
using nn::Weight;
using ops::Tape;

struct CausalDecoder::State {
  State(const DecoderConfig& c, std::uint64_t seed, DType compute_dtype, Device where,
        bool trainable, const nn::NetworkLayout& ranks)
      : config(c), compute(compute_dtype), device(where), layout(ranks) {
    nn::WeightMaker make{weights, {}, layout};
    make.options.compute = compute;
    make.options.seed = seed;
    make.options.device = device;
    make.options.trainable = trainable;
    make.options.state = layout.state;
    make.options.absent = !layout.first_stage();
    // The last row is what stands before the first code, where something does.
    table = &make.make({"embed_tokens.weight"}, {c.table_rows(), c.width()}, Init::normal, compute,
                       true, layout.cut(0));
    make.options.blocks = layout.blocks;
    for (int i = 0; i < c.num_layers; ++i) {
      make.options.absent = !layout.has_block(i, c.num_layers);
      of_layers.begin();
      layers.emplace_back(make, "layers." + std::to_string(i) + ".", c);
    }
    make.options.blocks = nullptr;
    make.options.absent = !layout.last_stage();
    norm.emplace(make, "norm", c.width(), kDecoderEpsilon);
    make.options.head = true;
    head.emplace(make, std::vector<Weight::Part>{{"lm_head", c.vocabulary}}, c.width(),
                 nn::LinearOptions{.divided = nn::Divided::outputs, .out = DType::f32});
    for (Weight& weight : weights)
      for (nn::Parameter& parameter : weight.parameters())
        parameters.push_back(&parameter);
    of_layers.gather_by(layout.blocks);
    options = make.options;
  }

  // Of rows of the table; each rank has what its own part of it gives.
  Tensor embed(Tape& tape, std::span<const std::int32_t> rows, const ops::Exchange& sum) const {
    const Tensor found = ops::embedding(tape, table->op(tape), rows);
    return ops::cast(tape, ops::run_exchange(tape, found, sum), DType::f32);
  }
  Tensor logits(Tape& tape, nn::Stream x, const nn::Pass& pass) const {
    const Tensor last = norm->of(tape, x).values(tape);
    nn::Pass gathered;
    gathered.newest = pass.newest;
    return head->forward(tape, ops::run_exchange(tape, last, pass.exchanges.gather), gathered);
  }

  DecoderConfig config;
  nn::WeightOptions options;  // of the matrices
  DType compute;
  Device device;
  nn::NetworkLayout layout;
  nn::Recompute recompute = nn::Recompute::none;
  bool offload = false;
  std::deque<Weight> weights;  // does not move them
  nn::BlockWeights of_layers{weights};
  nn::ParameterList parameters;
  const Weight* table = nullptr;
  std::deque<DecoderLayer> layers;
  nn::AttachedAdapters adapters;
  std::optional<nn::Norm> norm;
  std::optional<nn::Linear> head;
};

CausalDecoder::CausalDecoder(const DecoderConfig& config, std::uint64_t seed, DType compute,
                             Device device, bool trainable, const nn::NetworkLayout& layout) {
  config.validate();
  check_layout(config, layout);
  if (compute != DType::f32 && compute != DType::bf16)
    fail_usage("the model computes in f32 or bf16, not {}", dtype_name(compute));
  state_ = std::make_unique<State>(config, seed, compute, device, trainable, layout);
}
CausalDecoder::~CausalDecoder() = default;
CausalDecoder::CausalDecoder(CausalDecoder&&) noexcept = default;

const DecoderConfig& CausalDecoder::config() const {
  return state_->config;
}
Device CausalDecoder::device() const {
  return state_->device;
}
const nn::ParameterList& CausalDecoder::parameters() const {
  return state_->parameters;
}
void CausalDecoder::attach(const std::vector<nn::AdapterShape>& shapes, bool trainable) {
  state_->adapters.attach(state_->weights, state_->options, state_->layout, shapes, trainable);
}
const nn::ParameterList& CausalDecoder::adapters() const {
  return state_->adapters.parameters();
}
void CausalDecoder::set_recompute(nn::Recompute recompute, bool offload) {
  state_->recompute = recompute;
  state_->offload = offload;
}

class CausalDecoder::Stages final : public nn::StackForward<DecoderLayer, DecoderContext> {
 public:
  Stages(const State& state, Tape& tape, const CodeBatch& batch)
      : StackForward({state.layers, state.of_layers, state.recompute, state.offload}, tape),
        s_(state),
        pack_(checked_pack(batch)) {
    // Every parameter is watched before the first layer, so that a recomputed layer finds it.
    for (const Weight& weight : s_.weights)
      weight.watch(tape);
    s_.adapters.watch(tape);
    nn::Pass& pass = context_;
    pass.exchanges = pack_.exchanges;
    pass.recompute = s_.recompute != nn::Recompute::none && tape.recording();
    context_.self = {pass, pack_.self, token_angles(s_.config, batch.samples, s_.device)};
    if (s_.config.absolute_positions)
      context_.positions = absolute_positions(s_.config, batch.samples, own_rows(), s_.device);
    if (pack_.shard) {
      Tape silent(false);
      for (Tensor* angles : {&context_.self.angles.cosines, &context_.self.angles.sines})
        *angles = ops::take_ranges(silent, *angles, pack_.shard->sequence);
    }
    context_.text = {pass, {}, pack_.cross};
    if (batch.text.defined()) context_.text.text = batch.text.to(s_.device).to(s_.compute);
  }

 private:
  Tensor start() override {
    // A block too, where that decides what is free to wait elsewhere.
    const auto embed = [&s = s_, known = pack_.known, sum = pack_.exchanges.sum](Tape& inner,
                                                                                 const Tensor&) {
      return std::vector{s.embed(inner, known, sum)};
    };
    const Tensor& table = s_.table->op(tape_);
    return kept().offload ? tape_.checkpoint(table, {}, embed)[0] : embed(tape_, table)[0];
  }
  Tensor finish(const nn::Stream& stream) override { return s_.logits(tape_, stream, context_); }
  DecoderPack checked_pack(const CodeBatch& batch) const {
    batch.check(s_.config);
    if (s_.layout.by_outputs && !s_.layout.alone())
      fail("ranks that divide the outputs of matrices only write codes");
    return {s_.config, batch, s_.layout, s_.device};
  }
  ops::KeptOfBlock kept() const { return nn::kept_of(s_.recompute, s_.offload); }
  // Of the pack those that this rank has between sub-layers.
  std::vector<ops::RowRange> own_rows() const {
    if (pack_.shard) return pack_.shard->own;
    return {{0, static_cast<std::int64_t>(pack_.known.size())}};
  }

  const State& s_;
  const DecoderPack pack_;
};

Tensor CausalDecoder::forward(Tape& tape, const CodeBatch& batch) const {
  return Stages(*state_, tape, batch).forward();
}

std::unique_ptr<nn::StagedForward> CausalDecoder::stages(Tape& tape, const CodeBatch& batch) const {
  return std::make_unique<Stages>(*state_, tape, batch);
}

Shape CausalDecoder::stream_shape(const CodeBatch& batch) const {
  const DecoderPack pack(state_->config, batch, state_->layout, state_->device);
  std::int64_t rows = 0;
  if (pack.shard)
    for (const ops::RowRange& range : pack.shard->own)
      rows += range.count();
  else
    for (const CodeSample& sample : batch.samples)
      rows += sample.codes();
  return {rows, state_->config.width()};
}

CodeLoss CausalDecoder::loss(const Tensor& logits, const CodeBatch& batch,
                             std::span<const std::int32_t> targets, double z_loss,
                             double scale) const {
  if (targets.size() != batch.codes.size())
    fail("{} targets for a pack of {} codes", targets.size(), batch.codes.size());
  const LossShare share(state_->config, batch, state_->layout);
  const std::vector<std::int32_t> of_tokens = token_targets(state_->config, batch, targets);
  std::vector<std::int32_t> here;
  for (const ops::RowRange& range : share.rows)
    here.insert(here.end(), of_tokens.begin() + range.begin, of_tokens.begin() + range.end);
  CodeLoss result{ops::cross_entropy(logits, here, z_loss, scale, share.vocabulary), share.lengths};
  result.tokens.losses = result.tokens.losses.rows(share.own.begin, share.own.end);
  return result;
}

struct CodeWriter::State {
  const CausalDecoder::State& decoder;
  const nn::NetworkLayout& layout = decoder.layout;
  CodeSample sample;
  nn::BlockRange layers = {};             // of this rank
  DecoderContext context = {};            // angles of all codes
  ops::Exchange find = {}, gather = {};   // tp: the row of a code, and the logits
  std::deque<LayerMemory> memories = {};  // of the layers
  std::vector<std::int32_t> codes = {};   // that are written
  // To the next stage of a pipeline; and from the last one to the first, the newest code.
  Tensor stream = {}, drawn = {};
  dist::Transfer sent = {}, told = {};

  Tensor known_row(Tape& tape);
  void learn();
};

CodeWriter::CodeWriter(const CausalDecoder& decoder, const CodeSample& sample, const Tensor& text)
    : state_(std::make_unique<State>(State{.decoder = *decoder.state_, .sample = sample})) {
  State& s = *state_;
  const DecoderConfig& c = s.decoder.config;
  if (!s.layout.alone() && !s.layout.by_outputs)
    fail_usage("codes are written by a decoder that one rank has, or whose outputs ranks divide");
  if (text.defined() != (c.text_embed_dim > 0) ||
      (text.defined() && text.shape() != Shape{sample.text_tokens, c.text_embed_dim}))
    fail("text {} for a model of text width {}", to_string(text.shape()), c.text_embed_dim);
  s.layers = s.layout.chunks(c.num_layers).at(0);
  for (nn::Pass* pass :
       {static_cast<nn::Pass*>(&s.context), static_cast<nn::Pass*>(&s.context.self),
        static_cast<nn::Pass*>(&s.context.text)})
    pass->newest = true;
  s.context.self.angles = token_angles(c, {sample}, s.decoder.device);
  if (c.absolute_positions)
    s.context.positions = absolute_positions(c, {sample}, {{0, sample.codes()}}, s.decoder.device);
  const int ranks = s.layout.tp_size();
  if (ranks > 1) {
    s.find = nn::sum_everywhere(*s.layout.tp);
    s.gather = nn::gather_row(*s.layout.tp, nn::shares(c.vocabulary, ranks));
  }
  const std::int64_t keys = 2 * std::int64_t{c.key_value_heads() / ranks} * c.attention_head_dim;
  Tape silent(false);
  for (std::size_t i = s.layers.begin; i < s.layers.end; ++i) {
    LayerMemory& memory = s.memories.emplace_back();
    memory.seen.rows = Tensor({sample.codes(), keys}, s.decoder.compute, s.decoder.device);
    if (text.defined())
      memory.text =
          s.decoder.layers[i]
              .text_keys(silent, text.to(s.decoder.device).to(s.decoder.compute), s.context)
              .clone();
  }
}
CodeWriter::~CodeWriter() = default;

std::int64_t CodeWriter::written() const {
  return std::ssize(state_->codes);
}

// The row of the table that the newest token reads. One rank of tp has it, so the sum is exact.
Tensor CodeWriter::State::known_row(Tape& tape) {
  learn();
  std::vector<std::int32_t> row = {codes.empty() ? decoder.config.vocabulary : codes.back()};
  to_own_rows(row, decoder.config, layout);
  return decoder.embed(tape, row, find);
}

// The newest code, if it was drawn on the last stage.
void CodeWriter::State::learn() {
  if (!drawn.defined()) return;
  told.wait();
  if (layout.first_stage()) codes.back() = *drawn.data<std::int32_t>();
  drawn = {};
}

std::vector<float> CodeWriter::logits() {
  State& s = *state_;
  if (written() >= s.sample.codes()) fail("all {} codes are written", written());
  const std::int64_t at = s.decoder.config.start_token ? written() : written() - 1;  // the token
  if (at < 0) return {};
  Tape silent(false);
  DecoderContext context = s.context;
  const ops::RotaryAngles& angles = s.context.self.angles;
  context.self.angles = {angles.cosines.rows(at, at + 1), angles.sines.rows(at, at + 1)};
  if (context.positions.defined()) context.positions = s.context.positions.rows(at, at + 1);
  nn::Stream x;
  if (s.layout.first_stage()) {
    x.x = s.known_row(silent);
  } else {
    x.x = Tensor({1, s.decoder.config.width()}, DType::f32, s.decoder.device);
    s.layout.pp->receive(s.layout.pp_rank() - 1, x.x).wait();
  }
  for (std::size_t i = s.layers.begin; i < s.layers.end; ++i) {
    LayerMemory& memory = s.memories[i - s.layers.begin];
    memory.seen.at = at;
    x = s.decoder.layers[i].forward(silent, x, context, &memory);
  }
  if (!s.layout.last_stage()) {
    s.sent.wait();
    s.stream = x.sum(silent);
    s.sent = s.layout.pp->send(s.layout.pp_rank() + 1, s.stream);
    return {};
  }
  Tensor result = ops::run_exchange(silent, s.decoder.logits(silent, x, context), s.gather);
  if (result.device() == Device::meta) return {};
  result = result.to(Device::cpu);
  return {result.floats().begin(), result.floats().end()};
}

void CodeWriter::write(std::int32_t code) {
  if (code < 0 || code >= state_->decoder.config.vocabulary)
    fail("code {} of a vocabulary of {}", code, state_->decoder.config.vocabulary);
  state_->learn();
  state_->codes.push_back(code);
}

void CodeWriter::write_drawn(std::int32_t code) {
  State& s = *state_;
  const bool first = s.layout.first_stage(), last = s.layout.last_stage();
  write(last ? code : 0);
  if (first == last) return;
  s.drawn = Tensor({1}, DType::i32);
  *s.drawn.data<std::int32_t>() = code;
  s.told =
      first ? s.layout.pp->receive(s.layout.pp_size() - 1, s.drawn) : s.layout.pp->send(0, s.drawn);
}

std::vector<std::int32_t> CodeWriter::codes() {
  state_->learn();
  state_->sent.wait();
  return state_->codes;
}

}  // namespace vfm::models
