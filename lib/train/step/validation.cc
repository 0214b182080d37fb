// SPDX-License-Identifier: Apache-2.0
#include "train/step/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "train/data/skipped_samples.h"

namespace vfm::train {

namespace {

/// The numbers of `count` samples, or of all. Sorted keys do not depend on how shards are cut, but
/// of many samples they are not read.
std::vector<std::size_t> choose(const Recipe& recipe, const Dataset& data, std::size_t count) {
  std::vector<std::size_t> order;
  if (data::block_count(data.size(), data::Packing::blocks) == 1) {
    const std::vector<std::string> keys = data.index().keys();
    order.resize(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  }
  count = std::min(data.size(), count);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = i * data.size() / count;
    chosen.push_back(order.empty() ? place : order[place]);
  }
  return chosen;
}

}  // namespace

Validation::Validation(const Recipe& recipe, const Dataset& data, std::string split)
    : data_(data), split_(std::move(split)) {
  const std::vector<std::size_t> chosen =
      choose(recipe, data, static_cast<std::size_t>(recipe.validation.samples));
  std::vector<std::int64_t> lengths;
  for (const std::size_t i : chosen)
    lengths.push_back(token_count(data.sizes(i), recipe.model));
  data::PackingOptions options;
  options.tokens = recipe.data.tokens;
  // Few packs, and no step waits for them: rather the loss of earlier runs to the last bit.
  options.packing = data::Packing::best_fit;
  packs_ = data::plan_packs(lengths, options);
  for (data::Pack& pack : packs_)
    for (std::size_t& i : pack)
      i = chosen[i];
}

std::vector<CleanSample> Validation::read(const data::Pack& pack) {
  std::vector<CleanSample> samples;
  for (ReadSample& one : read_own_part(data_, pack, {}, 0, 1).whole) {
    if (one.failure.empty())
      samples.push_back(std::move(one.sample));
    else
      leave_out(one);
  }
  return samples;
}

void Validation::leave_out(const ReadSample& unread) {
  if (unread.failure == kLeftOut) return;
  if (failures_.emplace(unread.sample.key, unread.failure).second)
    log_warning("left out of validation: {}", unread.failure);
}

/// What the ranks that share samples can read.
std::vector<CleanSample> Validation::read_together(const data::Pack& pack,
                                                   const Parallel& parallel) {
  const dist::Group& sharers = parallel.sharers();
  if (sharers.size() == 1) return read(pack);
  OwnReading own = read_own_part(data_, pack, {}, sharers.rank(), sharers.size());
  std::vector<CleanSample> samples;
  for (ReadSample& one : share_samples(parallel, data_, std::move(own)).samples) {
    if (one.failure.empty())
      samples.push_back(std::move(one.sample));
    else if (sharers.rank() == 0)
      leave_out(one);
  }
  return samples;
}

std::vector<Reconstruction> Validation::reconstruct(const Objective& objective, std::size_t most) {
  std::vector<Reconstruction> made;
  for (const data::Pack& pack : packs_)
    for (CleanSample& sample : read(pack)) {
      if (made.size() == most) return made;
      std::vector<float> decoded = objective.reconstruct(sample);
      made.push_back({std::move(sample), std::move(decoded)});
    }
  return made;
}

Json Validation::run(const Objective& objective, const Parallel& parallel) {
  const std::vector<std::string> levels = objective.levels();
  // Sum and number of elements of each level; then of PSNRs and of SSIMs; and how many samples
  // could be read.
  std::vector<double> sums(2 * levels.size() + 5);
  const std::size_t psnr = 2 * levels.size(), ssim = psnr + 2;
  nn::BlockShards* const blocks = parallel.blocks();
  if (blocks != nullptr) blocks->gather_all(false);
  const auto data_ranks = static_cast<std::size_t>(parallel.data_ranks());
  std::size_t job = 0;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (const data::Pack& pack : packs_) {
      if (static_cast<int>(job++ % data_ranks) != parallel.data_rank()) continue;
      const std::vector<CleanSample> samples = read_together(pack, parallel);
      if (samples.empty()) {
        if (blocks != nullptr) blocks->fill(nn::BlockShards::Way::forward);
        continue;
      }
      const LossSums loss = objective.validate(level, samples);
      sums[2 * level] += loss.image_sum + loss.video_sum;
      sums[2 * level + 1] += loss.elements();
      sums[psnr] += loss.psnr_sum;
      sums[psnr + 1] += loss.clips;
      sums[ssim] += loss.ssim_sum;
      sums[ssim + 1] += loss.ssim_clips;
      if (level == 0 && parallel.sharers().rank() == 0)
        sums.back() += static_cast<double>(samples.size());
    }
  }
  // The last round, for which some ranks have nothing.
  const std::size_t rest = job % data_ranks;
  if (blocks != nullptr && rest > 0 && static_cast<std::size_t>(parallel.data_rank()) >= rest)
    blocks->fill(nn::BlockShards::Way::forward);
  if (blocks != nullptr) blocks->drop();  // what is kept is for the passes of a step
  parallel.world().all_reduce_sum(std::span<double>(sums));
  Json by_level = Json::object();
  double total = 0;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    if (sums[2 * level + 1] == 0) fail("none of the samples for validation could be read");
    const double loss = sums[2 * level] / sums[2 * level + 1];
    by_level[levels[level]] = loss;
    total += loss;
  }
  Json record = {{"val_loss", total / static_cast<double>(levels.size())},
                 {"val_split", split_},
                 {"val_samples", std::llround(sums.back())}};
  if (sums[psnr + 1] > 0) record["val_psnr"] = sums[psnr] / sums[psnr + 1];
  if (sums[ssim + 1] > 0) record["val_ssim"] = sums[ssim] / sums[ssim + 1];
  if (!levels.front().empty()) record["val_sigmas"] = by_level;
  return record;
}

std::string validation_words(const Json& record) {
  std::string quality;
  for (const char* name : {"val_psnr", "val_ssim"})
    if (record.contains(name))
      quality += fmt::format("  {} {:.3f}", name + 4, record[name].get<double>());
  return fmt::format("step {}  validation loss {:.4f}{} ({} of '{}')",
                     record["step"].get<std::int64_t>(), record["val_loss"].get<double>(), quality,
                     counted(record["val_samples"].get<std::int64_t>(), "sample"),
                     record["val_split"].get<std::string>());
}

}  // namespace vfm::train
