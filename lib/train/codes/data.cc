// SPDX-License-Identifier: Apache-2.0
#include "train/codes/data.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "data/latents.h"
#include "train/data/packed_folder.h"
#include "train/recipe/recipe_file.h"

namespace vfm::train {
namespace {

std::size_t places_of(const data::Entry& entry) {
  return static_cast<std::size_t>(entry.frames) * static_cast<std::size_t>(entry.height) *
         static_cast<std::size_t>(entry.width);
}

/// Without a start token a sample of one code has nothing to learn from.
void refuse_single_codes(const Recipe& recipe, const data::SampleIndex& index) {
  if (recipe.model.decoder.start_token) return;
  check_forms(index, [&](const data::Entry& sample) {
    if (places_of(sample) == 1)
      fail_usage("sample '{}' is one code, and the first one is given: {}", sample.key,
                 describe_setting(recipe, "model.start_token"));
  });
}

}  // namespace

void fit_decoder(Recipe& recipe, const Dataset& data, int vocabulary) {
  models::DecoderConfig& decoder = recipe.model.decoder;
  fit_field(decoder.vocabulary, vocabulary, "model.vocabulary");
  if (recipe.takes_text())
    fit_field(decoder.text_embed_dim, text_width(data.info()), "model.text_embed_dim");
  decoder.validate();
  refuse_single_codes(recipe, data.index());
}

namespace {

/// Discrete latents, as vfm-pack wrote them; without their texts for a model that has none.
class CodeData final : public PackedDataset {
 public:
  CodeData(const std::string& directory, const std::string& split, bool texts)
      : PackedDataset(directory, split), info_(set().info()), texts_(texts) {
    if (text_width(info_) == 0) texts_ = true;  // there are none
    if (texts_) return;
    info_["text_encoder"] = nullptr;
    remarks_ = {text_left_aside(directory)};
  }
  const Json& info() const override { return info_; }
  /// Of all that is there, whatever of it is read.
  std::string fingerprint() const override { return index().fingerprint(set().info()); }
  std::vector<std::string> remarks() const override { return remarks_; }
  Json facts() const override { return latent_facts(*this, {}); }

 private:
  void fit_model(Recipe& recipe) const override {
    if (set().vocabulary() == 0)
      fail_usage(
          "'model.type' autoregressive needs discrete latents, and these are continuous: pack them "
          "with a discrete tokenizer, such as builtin:fsq");
    fit_decoder(recipe, *this, set().vocabulary());
  }

  CleanSample clean(std::size_t i, data::LatentSample data) const override {
    const data::Entry sample = sizes(i);
    if (data.codes.size() != places_of(sample))
      fail("sample '{}' has {} codes, its sizes make {}", data.key, data.codes.size(),
           places_of(sample));
    if (!texts_) data.text.clear();
    return take_sample(sample, std::move(data), text_width(info_));
  }

  Json info_;
  bool texts_;
  std::vector<std::string> remarks_;
};

class MadeUpCodeData final : public Dataset {
 public:
  explicit MadeUpCodeData(const MadeUpCodes& options) : vocabulary_(options.vocabulary) {
    std::vector<data::Entry> entries = synthetic_entries(options.sizes);
    for (data::Entry& entry : entries)
      entry.text_tokens = options.text_width > 0 ? options.text_tokens : 0;
    index_ = data::list_index(std::move(entries));
    info_ = {{"version", 1}, {"tokenizer", nullptr}, {"vocabulary", vocabulary_}};
    if (options.text_width > 0) info_["text_encoder"] = {{"dim", options.text_width}};
  }
  const data::SampleIndex& index() const override { return *index_; }
  const Json& info() const override { return info_; }

 private:
  void fit_model(Recipe& recipe) const override { fit_decoder(recipe, *this, vocabulary_); }

  CleanSample read_sample(std::size_t i, std::optional<SeenAt> /*seen*/) const override {
    const data::Entry entry = index_->entry(i);
    CleanSample sample{entry.key, entry.frames, entry.height, entry.width, entry.fps, {}, {}, {}};
    const Random random(0, Purpose::synthetic, 0, random_key(entry.key));
    for (std::size_t place = 0; place < places_of(entry); ++place)
      sample.codes.push_back(static_cast<std::int32_t>(
          std::floor(random.uniform(static_cast<std::uint64_t>(place)) * vocabulary_)));
    sample.text.resize(static_cast<std::size_t>(entry.text_tokens) *
                       static_cast<std::size_t>(text_width(info_)));
    Random(0, Purpose::synthetic, 1, random_key(entry.key)).fill_normal(sample.text);
    return sample;
  }

  int vocabulary_;
  std::unique_ptr<data::SampleIndex> index_;
  Json info_;
};

}  // namespace

std::unique_ptr<Dataset> open_codes(const std::string& directory, const std::string& split,
                                    bool texts) {
  return std::make_unique<CodeData>(directory, split, texts);
}

std::unique_ptr<Dataset> make_up_codes(const MadeUpCodes& options) {
  return std::make_unique<MadeUpCodeData>(options);
}

}  // namespace vfm::train
