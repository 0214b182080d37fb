// SPDX-License-Identifier: Apache-2.0
#include "train/codes/objective.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "models/decoder/decoder.h"
#include "models/decoder/decoder_json.h"
#include "models/decoder/decoder_lora.h"
#include "train/step/chunks.h"

namespace vfm::train {
namespace {

/// Of each sample also how many of its codes count.
struct Pack final : Batch {
  models::CodeBatch input;  // without its text
  std::vector<float> text;
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> counted;
  models::CodeLoss result;
};

class CodeObjective final : public Objective {
 public:
  CodeObjective(const Recipe& recipe, nn::Recompute recompute, Device device,
                const nn::NetworkLayout& layout)
      : recipe_(recipe),
        layout_(layout),
        decoder_(recipe.model.decoder, recipe.train.seed, recipe.compute(), device,
                 recipe.lora.rank == 0, layout) {
    decoder_.set_recompute(recompute, recipe.model.offload);
    if (recipe.lora.rank > 0)
      decoder_.attach(models::lora_shapes(recipe.model.decoder, recipe.lora), true);
  }

  const nn::ParameterList& parameters() const override {
    return recipe_.lora.rank > 0 ? decoder_.adapters() : decoder_.parameters();
  }
  const nn::ParameterList& frozen() const override {
    return recipe_.lora.rank > 0 ? decoder_.parameters() : Objective::frozen();
  }
  Device device() const override { return decoder_.device(); }
  Json config() const override { return models::decoder_config_to_json(decoder_.config()); }
  std::unique_ptr<Batch> build(std::uint32_t step, std::size_t of_step,
                               const std::vector<PlacedSample>& samples) const override;
  std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const override;
  void pass(Batch& batch, bool first, const ops::Tape::Listener& final) const override {
    compute(dynamic_cast<Pack&>(batch), 1, first, final);
  }
  std::unique_ptr<ChunkedPass> pass_in_chunks(
      Batch& batch, const ops::Tape::Listener& final = {}) const override {
    return std::make_unique<NetworkChunks>(layout_, staged(dynamic_cast<Pack&>(batch), 1), true,
                                           final);
  }
  LossSums loss(const Batch& batch) const override;
  std::vector<std::string> levels() const override { return {""}; }
  LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const override;

 private:
  void add(Pack& pack, const CleanSample& sample, bool without_text) const;
  models::CodeBatch input_of(const Pack& pack) const;
  StagedBatch staged(Pack& pack, double scale) const;
  void compute(Pack& pack, double scale, bool first, const ops::Tape::Listener& final) const;

  const Recipe& recipe_;
  const nn::NetworkLayout layout_;
  models::CausalDecoder decoder_;
};

/// Of a video the first frames may not count: those that a video is to be continued from.
void CodeObjective::add(Pack& pack, const CleanSample& sample, bool without_text) const {
  const auto width = static_cast<std::size_t>(decoder_.config().text_embed_dim);
  models::CodeSample entry{sample.frames, sample.height, sample.width, 1};
  if (without_text || sample.text.empty() || width == 0) {
    pack.text.resize(pack.text.size() + width, 0.0f);
  } else {
    const std::size_t tokens = sample.text.size() / width;
    entry.text_tokens = recipe_.text_tokens(static_cast<int>(tokens));
    pack.text.insert(pack.text.end(), sample.text.begin(), sample.text.end());
    pack.text.resize(
        pack.text.size() + (static_cast<std::size_t>(entry.text_tokens) - tokens) * width, 0.0f);
  }
  const std::int64_t codes = entry.codes();
  const std::int64_t given =
      sample.frames == 1 ? 0
                         : std::min(sample.frames - 1, recipe_.autoregressive.ignored_frames) *
                               std::int64_t{sample.height} * sample.width;
  pack.input.codes.insert(pack.input.codes.end(), sample.codes.begin(), sample.codes.end());
  pack.targets.insert(pack.targets.end(), static_cast<std::size_t>(given), -1);
  pack.targets.insert(pack.targets.end(), sample.codes.begin() + given, sample.codes.end());
  // Without a start token nothing writes the first code.
  pack.counted.push_back(codes -
                         std::max<std::int64_t>(given, decoder_.config().start_token ? 0 : 1));
  pack.input.samples.push_back(entry);
}

models::CodeBatch CodeObjective::input_of(const Pack& pack) const {
  models::CodeBatch input = pack.input;
  if (const std::int64_t width = decoder_.config().text_embed_dim; width > 0)
    input.text =
        Tensor::from(pack.text, {static_cast<std::int64_t>(pack.text.size()) / width, width});
  return input;
}

StagedBatch CodeObjective::staged(Pack& pack, double scale) const {
  const auto input = std::make_shared<const models::CodeBatch>(input_of(pack));
  return {.stages = [this, input](ops::Tape& tape) { return decoder_.stages(tape, *input); },
          .loss =
              [this, input, scale, &pack](const Tensor& logits) {
                pack.result = decoder_.loss(logits, *input, pack.targets,
                                            recipe_.autoregressive.z_loss, scale);
                return std::exchange(pack.result.tokens.seed, Tensor());
              },
          .streams = [this, input](
                         std::size_t) { return std::vector<Shape>{decoder_.stream_shape(*input)}; },
          .device = device(),
          .blocks = decoder_.config().num_layers};
}

/// Forward and loss; with a scale other than 0 backward too, of a step's first batch or another.
void CodeObjective::compute(Pack& pack, double scale, bool first,
                            const ops::Tape::Listener& final) const {
  const models::CodeBatch input = input_of(pack);
  ops::Tape tape(scale != 0);
  if (first) tape.replace_gradients();
  tape.listen(final);
  const Tensor logits = decoder_.forward(tape, input);
  pack.result = decoder_.loss(logits, input, pack.targets, recipe_.autoregressive.z_loss, scale);
  if (scale != 0) tape.backward(logits, std::exchange(pack.result.tokens.seed, Tensor()));
}

std::unique_ptr<Batch> CodeObjective::blank(const std::vector<data::Entry>& samples) const {
  auto pack = std::make_unique<Pack>();
  const auto width = static_cast<std::size_t>(decoder_.config().text_embed_dim);
  for (const data::Entry& entry : samples) {
    CleanSample sample{entry.key, entry.frames, entry.height, entry.width, entry.fps, {}, {}, {}};
    sample.codes.resize(static_cast<std::size_t>(sample.frames) *
                        static_cast<std::size_t>(sample.height * sample.width));
    sample.text.resize(static_cast<std::size_t>(entry.text_tokens) * width);
    add(*pack, sample, false);
  }
  return pack;
}

/// Each rank has the losses of its own codes; the first one counts the codes.
LossSums CodeObjective::loss(const Batch& batch) const {
  const auto& pack = dynamic_cast<const Pack&>(batch);
  if (!layout_.last_stage()) return {};
  const std::vector<double> sums = pack.result.read_sums();
  LossSums total;
  for (std::size_t i = 0; i < sums.size(); ++i)
    total.add(pack.input.samples[i].frames == 1, sums[i],
              layout_.first() ? static_cast<double>(pack.counted[i]) : 0);
  return total;
}

std::unique_ptr<Batch> CodeObjective::build(std::uint32_t step, std::size_t /*of_step*/,
                                            const std::vector<PlacedSample>& samples) const {
  auto pack = std::make_unique<Pack>();
  for (const auto& [sample, place, again] : samples)
    add(*pack, sample,
        drop_text(recipe_.autoregressive.text_dropout, recipe_.train.seed, step,
                  random_name(sample.key, again)));
  return pack;
}

LossSums CodeObjective::validate(std::size_t /*level*/,
                                 const std::vector<CleanSample>& samples) const {
  Pack pack;
  for (const CleanSample& sample : samples)
    add(pack, sample, false);
  if (layout_.pp_size() > 1)
    NetworkChunks(layout_, staged(pack, 0), false).forward_alone();
  else
    compute(pack, 0, false, {});
  return loss(pack);
}

}  // namespace

std::unique_ptr<Objective> make_code_objective(const Recipe& recipe, nn::Recompute recompute,
                                               Device device, const nn::NetworkLayout& layout) {
  return std::make_unique<CodeObjective>(recipe, recompute, device, layout);
}

}  // namespace vfm::train
