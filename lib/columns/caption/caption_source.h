// Parses the sources of captions (--from), and finds nested fields of JSON objects for field:NAME.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::columns {

enum class CaptionKind {
  member,   ///< the sample's own txt member
  field,    ///< `value` names it, in KEY.json or in the shard's record
  sidecar,  ///< the file with the extension `value` beside the source video
  model,    ///< the model in folder `value`
  measure,  ///< a sentence of measurements
  server,   ///< --endpoint
};

struct CaptionSource {
  CaptionKind kind = CaptionKind::member;
  std::string name;  ///< "caption_source" of its captions
  std::string value = {};
};

/// "caption_source" of a measured caption, and of a sample without a caption.
inline constexpr const char *kMeasuredCaption = "builtin:measure", *kNoCaption = "none";

struct CaptionSources {
  std::vector<CaptionSource> list;  ///< in the order they are tried
  /// The words of --from, for a column's settings. A model is "model" without its folder, which may
  /// move.
  std::vector<std::string> given;

  /// Returns the folder of the listed model, or "".
  std::string model_folder() const;
};

/// Parses the words of --from. If `server`, a server is added as the last source. Throws
/// Error{usage} for an unknown source or a second model.
CaptionSources parse_caption_sources(const std::vector<std::string>& from, bool server);

/// Returns the field `name` of an object, or null if it is absent or null. A member with exactly
/// this name is preferred. Otherwise each dot leads into an object, or into a list by index from 0:
/// "meta.captions.0".
const Json* find_field(const Json& object, const std::string& name);

}  // namespace vfm::columns
