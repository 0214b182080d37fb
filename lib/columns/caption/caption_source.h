// Parses the sources of captions (--from), and finds nested fields of JSON objects for field:NAME.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::columns {

enum class CaptionKind {
  member,   ///< The sample's txt member.
  field,    ///< The field `value` of KEY.json or of the shard's record.
  sidecar,  ///< The file with the extension `value` beside the source video.
  model,    ///< The model in folder `value`.
  measure,  ///< A sentence that describes measurements.
  server,   ///< The server of --endpoint.
};

struct CaptionSource {
  CaptionKind kind = CaptionKind::member;
  std::string name;  ///< Value of "caption_source".
  std::string value = {};
};

/// Values of "caption_source" for a measured caption and for a missing caption.
inline constexpr const char *kMeasuredCaption = "builtin:measure", *kNoCaption = "none";

struct CaptionSources {
  std::vector<CaptionSource> list;  ///< Sources in the order in which they are tried.
  /// The words of --from for the column's settings. The word of a model:DIR is "model".
  std::vector<std::string> given;

  /// Returns the folder of the listed model, or "".
  std::string model_folder() const;
};

/// Parses the words of --from. If `server` is true, adds a server as the last source. Throws
/// Error{usage} for an unknown source or a second model.
CaptionSources parse_caption_sources(const std::vector<std::string>& from, bool server);

/// Returns the field `name` of an object, or nullptr if the field is missing or null. Prefers a
/// member with exactly this name. Otherwise each dot in the name leads into an object, or into a
/// list by an index from 0: "meta.captions.0".
const Json* find_field(const Json& object, const std::string& name);

}  // namespace vfm::columns
