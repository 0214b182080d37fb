// SPDX-License-Identifier: Apache-2.0
#include "text/hash_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/xxh3.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr float kWordShare = 0.30f, kLetterShare = 0.55f, kPairShare = 0.15f;
/// Longer runs of letters are not words, and their n-grams only cost time.
constexpr std::size_t kLongestWord = 64;

void add_signs(std::string_view name, float weight, std::span<float> sum) {
  const Random random(0, Purpose::projection, 0, xxh3_64(name.data(), name.size()));
  for (std::size_t block = 0; block * 32 < sum.size(); ++block) {
    std::uint32_t bits = random.bits(block);
    for (std::size_t i = block * 32; i < sum.size() && i < block * 32 + 32; ++i, bits >>= 1)
      sum[i] += (bits & 1u) != 0 ? weight : -weight;
  }
}

std::vector<std::size_t> code_points(std::string_view utf8) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < utf8.size(); ++i)
    if ((static_cast<unsigned char>(utf8[i]) & 0xc0u) != 0x80u) starts.push_back(i);
  starts.push_back(utf8.size());
  return starts;
}

void add_letters(const std::string& word, std::span<float> sum) {
  // Marks both ends, so that the start and end of a word weigh more. The marks cannot be in a word.
  std::string framed = "\x02" + word + "\x03";
  std::vector<std::size_t> starts = code_points(framed);
  if (starts.size() > kLongestWord + 1) starts.resize(kLongestWord + 1);
  const std::size_t letters = starts.size() - 1;
  std::size_t count = 0;
  for (std::size_t n = 2; n <= 4; ++n)
    count += letters >= n ? letters - n + 1 : 0;
  const float weight = std::sqrt(kLetterShare / static_cast<float>(count));
  for (std::size_t n = 2; n <= 4; ++n)
    for (std::size_t i = 0; i + n <= letters; ++i)
      add_signs("g" + framed.substr(starts[i], starts[i + n] - starts[i]), weight, sum);
}

void scale_to_unit_variance(std::span<float> vector) {
  float squares = 0;
  for (const float x : vector)
    squares += x * x;
  if (squares == 0) return;
  const float scale = std::sqrt(static_cast<float>(vector.size()) / squares);
  for (float& x : vector)
    x *= scale;
}

}  // namespace

HashEncoder::HashEncoder(int dim, int max_tokens) : dim_(dim), max_tokens_(max_tokens) {
  if (dim < 8 || dim > 8192) fail_usage("builtin:hash has 8 to 8192 dimensions, not {}", dim);
  if (max_tokens < 1) fail_usage("builtin:hash needs at least one token, not {}", max_tokens);
}

TokenEmbeddings HashEncoder::encode(std::string_view utf8) const {
  const auto found = words(utf8, static_cast<std::size_t>(max_tokens_));
  TokenEmbeddings out;
  out.tokens = static_cast<int>(found.size());
  out.dim = dim_;
  const auto dim = static_cast<std::size_t>(dim_);
  out.values.assign(found.size() * dim, 0.0f);
  for (std::size_t t = 0; t < found.size(); ++t) {
    const std::span<float> vector = std::span(out.values).subspan(t * dim, dim);
    add_signs("w" + found[t], std::sqrt(kWordShare), vector);
    add_letters(found[t], vector);
    const std::string before = t > 0 ? found[t - 1] : std::string();
    add_signs("p" + before + "\x02" + found[t], std::sqrt(kPairShare), vector);
    scale_to_unit_variance(vector);
  }
  return out;
}

int HashEncoder::tokens_left_out(std::string_view utf8) const {
  const std::size_t found = words(utf8, std::numeric_limits<std::size_t>::max()).size();
  return std::max(0, static_cast<int>(found) - max_tokens_);
}

EncoderConfig HashEncoder::config() const {
  return {.name = "builtin:hash", .dim = dim_, .max_tokens = max_tokens_, .version = 1};
}

Json EncoderConfig::to_json() const {
  Json json = {{"name", name}};
  const auto add_text = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  const auto add_number = [&](const char* key, const std::optional<std::int64_t>& value) {
    if (value) json[key] = *value;
  };
  add_text("path", path);
  add_text("hash", hash);
  add_number("dim", dim);
  add_number("max_tokens", max_tokens);
  add_text("compute", compute);
  add_text("rule", rule);
  if (clean) json["clean"] = true;
  if (prompt) json["prompt"] = *prompt;
  if (query_prompt) json["query_prompt"] = *query_prompt;
  add_number("version", version);
  return json;
}

std::vector<TokenEmbeddings> TextEncoder::encode_all(const std::vector<std::string>& texts) const {
  std::vector<TokenEmbeddings> all;
  for (const std::string& utf8 : texts)
    all.push_back(encode(utf8));
  return all;
}

std::unique_ptr<TextEncoder> make_encoder(const EncoderConfig& config) {
  if (config.name != "builtin:hash")
    fail_usage("no text encoder is called '{}'; this program has builtin:hash", config.name);
  if (!config.unknown.empty())
    fail_usage("text encoder builtin:hash has no setting '{}'", config.unknown);
  if (config.version.value_or(1) != 1)
    fail_usage("this program has version 1 of builtin:hash, not {}", *config.version);
  return std::make_unique<HashEncoder>(static_cast<int>(config.dim.value_or(64)),
                                       static_cast<int>(config.max_tokens.value_or(512)));
}

}  // namespace vfm::text
