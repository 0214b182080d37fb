// SPDX-License-Identifier: Apache-2.0
#include "columns/search/file_query.h"

#include <algorithm>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/json.h"
#include "columns/embed/clip_vector.h"
#include "columns/embed/glimpse.h"
#include "curate/vectors/look.h"
#include "io/npy.h"
#include "models/folder/hf_folder.h"
#include "models/text_encoder.h"
#include "share/slots.h"
#include "text/encoder.h"

namespace vfm::columns {
namespace {

/// Throws Error if a value does not fit fp16. A vector with NaN would be similar to everything.
std::vector<float> usable_query(std::vector<float> vector, const std::string& folder) {
  io::check_halves(vector, fmt::format("the query's vector by '{}'", folder));
  return vector;
}

}  // namespace

FileQuery::FileQuery(std::string path, const media::HardwareDecoder* hardware)
    : path_(std::move(path)),
      hardware_(hardware),
      look_(curate::look(glimpse_of_file(path_, hardware))) {}

const std::vector<float>& FileQuery::vector(const Json& config, const std::string& key) {
  if (config.is_null() || config == curate::look_config()) return look_;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    // The thread with the lock may wait for a GPU's decoder without a slot. So does this thread.
    const share::Slots::Away away;
    lock.lock();
  }
  const std::string name = dump_json(config);
  auto at = encoded_.find(name);
  if (at == encoded_.end()) at = encoded_.emplace(name, encode(config, key)).first;
  return at->second;  // references to map nodes stay valid
}

std::vector<float> FileQuery::encode(const Json& config, const std::string& key) const {
  const auto folder = config.is_object() ? get_string(config, "path") : std::nullopt;
  const auto frames = folder ? get_integer(config, "frames") : std::nullopt;
  if (!folder || !frames || *frames < 1 || *frames > kMostClipFrames)
    fail("{} was embedded by {}, not by {}", key, dump_json(config),
         dump_json(curate::look_config()));
  const DType compute = get_string(config, "compute") == "bf16" ? DType::bf16 : DType::f32;
  const int count = static_cast<int>(*frames);
  const auto encoder = models::make_picture_encoder(*folder, Device::cpu, compute, count);
  const Json own = clip_vector_config(*encoder, count);
  if (encoder_identity(own) != encoder_identity(config))
    fail("{} was embedded by {}, which is not what '{}' holds: {}", key, dump_json(config), *folder,
         dump_json(own));
  ClipVectors vectors(*encoder);
  vectors.push(prepare_file(path_, *encoder, count, hardware_).frames);
  return usable_query(vectors.take(true).front().vector, *folder);
}

void refuse_prompt_before_file(const SearchOptions& options) {
  if (options.query_prompt)
    fail_usage("'{}' is a file, and --query-prompt goes before a text", options.query);
}

bool has_words(const std::string& utf8) {
  return text::make_encoder({.name = "builtin:hash"})->encode(utf8).tokens > 0;
}

bool has_texts(const Json& video_encoder) {
  if (!video_encoder.is_object() || !get_string(video_encoder, "path")) return false;
  const auto* family = models::find_picture_family(get_string(video_encoder, "name").value_or(""));
  return family && family->texts;
}

std::unique_ptr<text::TextEncoder> query_encoder(const Json& text_encoder,
                                                 const std::optional<std::string>& prompt) {
  auto config = models::text_config_from_json(text_encoder);
  if (prompt && !config.one_token())
    fail(
        "captions are embedded word by word by {}: no prompt goes before a text that is compared "
        "with these; leave out --query-prompt",
        config.name);
  if (prompt || config.query_prompt) config.prompt = prompt ? prompt : config.query_prompt;
  return models::make_text_encoder(config);
}

std::vector<float> encode_text_beside_clips(const std::string& utf8, const Json& video_encoder,
                                            const std::string& key) {
  const std::string folder = need_string(video_encoder, "path", "\"video_encoder\"");
  const std::string hash = models::HfComponent(folder).hash();
  if (get_string(video_encoder, "hash") != hash)
    fail("{} was embedded by {}, and '{}' holds another model now", key, dump_json(video_encoder),
         folder);
  const auto encoder =
      models::make_text_encoder(models::text_encoder_config(folder, kMostTextTokens, DType::f32));
  const text::TokenEmbeddings tokens = encoder->encode(utf8);
  if (tokens.tokens != 1 || tokens.dim != need_integer(video_encoder, "dim", "\"video_encoder\""))
    fail("{}: '{}' makes vectors of texts that cannot be compared with those of clips", key,
         folder);
  std::vector<float> vector = tokens.values;
  models::normalise(vector);
  return usable_query(std::move(vector), folder);
}

}  // namespace vfm::columns
