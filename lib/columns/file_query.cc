// SPDX-License-Identifier: Apache-2.0
#include "columns/file_query.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "columns/clip_vector.h"
#include "columns/glimpse.h"
#include "curate/look.h"
#include "models/text_encoder.h"

namespace vfm::columns {

FileQuery::FileQuery(std::string path, const media::HardwareDecoder* hardware)
    : path_(std::move(path)),
      hardware_(hardware),
      look_(curate::look(glimpse_of_file(path_, hardware))) {}

const std::vector<float>& FileQuery::vector(const Json& config, const std::string& key) {
  if (config.is_null() || config == curate::look_config()) return look_;
  const std::lock_guard lock(mutex_);
  const std::string name = dump_json(config);
  auto at = encoded_.find(name);
  if (at == encoded_.end()) at = encoded_.emplace(name, encode(config, key)).first;
  return at->second;  // map nodes stay where they are
}

std::vector<float> FileQuery::encode(const Json& config, const std::string& key) const {
  const auto folder = config.is_object() ? get_string(config, "path") : std::nullopt;
  const auto frames = folder ? get_integer(config, "frames") : std::nullopt;
  if (!folder || !frames || *frames < 1 || *frames > kMostClipFrames)
    fail("{} was embedded by {}, not by {}", key, dump_json(config),
         dump_json(curate::look_config()));
  const DType compute = get_string(config, "compute") == "bf16" ? DType::bf16 : DType::f32;
  const auto encoder = models::make_picture_encoder(*folder, Device::cpu, compute);
  const int count = static_cast<int>(*frames);
  const Json own = clip_vector_config(*encoder, count);
  if (models::encoder_identity(own) != models::encoder_identity(config))
    fail("{} was embedded by {}, which is not what '{}' holds: {}", key, dump_json(config), *folder,
         dump_json(own));
  const PreparedClip clip = prepare_file(path_, *encoder, count, hardware_);
  return pool_vectors(encoder->encode_prepared(clip.frames), encoder->dim());
}

}  // namespace vfm::columns
