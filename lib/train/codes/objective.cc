// SPDX-License-Identifier: Apache-2.0
#include "train/codes/objective.h"

#include <algorithm>
#include <utility>

#include "models/decoder/decoder_json.h"
#include "ops/loss/cross_entropy.h"
#include "train/text_dropout.h"

namespace vfm::train {

/// A pack, and of each sample how many of its codes count.
struct CodeObjective::Batch {
  models::CodeBatch input;
  std::vector<float> text;
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> lengths, counted;
};

CodeObjective::CodeObjective(const Recipe& recipe, models::Recompute recompute, Device device)
    : recipe_(recipe), decoder_(recipe.model.decoder, recipe.train.seed, recipe.compute(), device) {
  decoder_.set_recompute(recompute);
}

Json CodeObjective::config() const {
  return models::decoder_config_to_json(decoder_.config());
}

/// Of a video the first frames may not count: those that a video is to be continued from.
void CodeObjective::add(Batch& batch, const CleanSample& sample, bool without_text) const {
  const auto width = static_cast<std::size_t>(decoder_.config().text_embed_dim);
  models::CodeSample entry{sample.frames, sample.height, sample.width, 1};
  if (without_text || sample.text.empty()) {
    batch.text.resize(batch.text.size() + width, 0.0f);
  } else {
    entry.text_tokens = static_cast<int>(sample.text.size() / width);
    batch.text.insert(batch.text.end(), sample.text.begin(), sample.text.end());
  }
  const std::int64_t codes = entry.codes();
  const std::int64_t given =
      sample.frames == 1 ? 0
                         : std::min(sample.frames - 1, recipe_.autoregressive.ignored_frames) *
                               std::int64_t{sample.height} * sample.width;
  batch.input.codes.insert(batch.input.codes.end(), sample.codes.begin(), sample.codes.end());
  batch.targets.insert(batch.targets.end(), static_cast<std::size_t>(given), -1);
  batch.targets.insert(batch.targets.end(), sample.codes.begin() + given, sample.codes.end());
  batch.lengths.push_back(codes);
  batch.counted.push_back(codes - given);
  batch.input.samples.push_back(entry);
}

LossReader CodeObjective::pass(const Batch& batch, double scale) const {
  models::CodeBatch input = batch.input;
  if (const std::int64_t width = decoder_.config().text_embed_dim; width > 0)
    input.text =
        Tensor::from(batch.text, {static_cast<std::int64_t>(batch.text.size()) / width, width});
  ops::Tape tape(scale != 0);
  const Tensor logits = decoder_.forward(tape, input);
  ops::CrossEntropy loss =
      ops::cross_entropy(logits, batch.targets, recipe_.autoregressive.z_loss, scale);
  if (scale != 0) tape.backward(logits, std::exchange(loss.seed, Tensor()));
  return [losses = loss.losses, samples = batch.input.samples, lengths = batch.lengths,
          counted = batch.counted] {
    const std::vector<double> sums = ops::CrossEntropy{{}, losses}.read_sums(lengths);
    LossSums total;
    for (std::size_t i = 0; i < sums.size(); ++i)
      total.add(samples[i].frames == 1, sums[i], static_cast<double>(counted[i]));
    return total;
  };
}

BatchPass CodeObjective::build(std::uint32_t step, std::span<const std::string> /*keys*/,
                               const std::vector<PlacedSample>& samples) const {
  Batch batch;
  for (const auto& [sample, place] : samples)
    add(batch, sample,
        drop_text(recipe_.autoregressive.text_dropout, recipe_.train.seed, step, sample.key));
  return [this, made = std::move(batch)] { return pass(made, 1); };
}

BatchPass CodeObjective::build_validation(std::size_t /*level*/,
                                          const std::vector<CleanSample>& samples) const {
  Batch batch;
  for (const CleanSample& sample : samples)
    add(batch, sample, false);
  return [this, made = std::move(batch)] { return pass(made, 0); };
}

}  // namespace vfm::train
