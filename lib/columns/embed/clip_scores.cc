// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/clip_scores.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rounding.h"
#include "columns/search/file_query.h"
#include "curate/vectors/look.h"
#include "io/text_or_file.h"
#include "models/text_encoder.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kLongestName = 40;

bool is_concept_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// The vectors must have length 1.
double clip_cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return six_digits(std::clamp(curate::dot(a, b), -1.0, 1.0));
}

}  // namespace

std::vector<Concept> parse_concepts(const std::vector<std::string>& texts) {
  std::vector<Concept> concepts;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals + 1 == text.size())
      fail_usage("--concept '{}' is not NAME=TEXT, such as watermark='a watermark'", text);
    Concept concept_of{text.substr(0, equals), io::text_or_file(text.substr(equals + 1))};
    if (!is_concept_name(concept_of.name))
      fail_usage("--concept '{}': a name has 1 to {} of a to z, 0 to 9 and _", text, kLongestName);
    if (!names.insert(concept_of.name).second)
      fail_usage("--concept {} is given twice", concept_of.name);
    concepts.push_back(std::move(concept_of));
  }
  return concepts;
}

ClipScores::ClipScores(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
                       const std::string& folder, const ModelPlace& place, DType compute)
    : text_image_(options.text_image), concepts_(options.concepts) {
  if (!options.aesthetic.empty()) {
    const std::string type = need_string(encoder.config(), "name", folder);
    if (const auto* family = models::find_picture_family(type); !family || !family->aesthetic)
      fail_usage("--aesthetic scores the vectors of a CLIP, and '{}' holds a {}", folder, type);
    head_.emplace(options.aesthetic, encoder.dim());
    config_["aesthetic"] = head_->config();
  }
  if (options.texts()) open_texts(options, encoder, folder, place, compute);
}

void ClipScores::open_texts(const ClipScoreOptions& options, const models::PictureEncoder& encoder,
                            const std::string& folder, const ModelPlace& place, DType compute) {
  if (!has_texts(encoder.config()))
    fail_usage(
        "clips are compared with texts, and the model in '{}' has no part for texts; take a CLIP "
        "or "
        "SigLIP with both parts",
        folder);
  const text::EncoderConfig config = models::text_encoder_config(folder, kMostTextTokens, compute);
  if (!config.one_token() || config.dim != encoder.dim())
    fail_usage("'{}' makes vectors of texts that cannot be compared with those of clips", folder);
  texts_ = place.texts(config);
  config_["texts"] = encoder_identity(config.to_json());
  if (options.concepts.empty()) return;
  std::vector<std::string> prompts;
  for (const Concept& one : options.concepts) {
    if (const int cut = texts_->tokens_left_out(one.prompt); cut > 0)
      log_warning("--concept {}: the model does not see the last {} tokens of the prompt", one.name,
                  cut);
    prompts.push_back(one.prompt);
    config_["concepts"][one.name] = one.prompt;
  }
  prompts_ = encode(prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (prompts_[i].empty())
      fail_usage("--concept {}: the vector that '{}' makes of the prompt is not finite",
                 concepts_[i].name, folder);
}

FrameScore ClipScores::frame_score() const {
  if (!head_) return {};
  return [this](std::span<const float> frame) { return head_->score(frame); };
}

Json ClipScores::of_clip(const ClipVector& clip) const {
  Json fields = Json::object();
  if (head_) fields["aesthetic"] = six_digits(clip.score);
  for (std::size_t i = 0; i < concepts_.size(); ++i)
    fields["concept_" + concepts_[i].name] = clip_cosine(clip.vector, prompts_[i]);
  return fields;
}

std::vector<std::vector<float>> ClipScores::encode(const std::vector<std::string>& captions) const {
  std::vector<std::vector<float>> vectors;
  for (text::TokenEmbeddings& tokens : texts_->encode_all(captions)) {
    const bool finite = std::all_of(tokens.values.begin(), tokens.values.end(),
                                    [](float value) { return std::isfinite(value); });
    vectors.push_back(finite && tokens.tokens == 1 ? std::move(tokens.values)
                                                   : std::vector<float>{});
    models::normalise(vectors.back());
  }
  return vectors;
}

double ClipScores::fit(const std::vector<float>& clip, const std::vector<float>& caption) {
  return clip_cosine(clip, caption);
}

}  // namespace vfm::columns
