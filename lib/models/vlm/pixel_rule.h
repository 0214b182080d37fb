// How vision models convert the bytes of pictures to numbers, by the settings of their processors,
// and where a folder has these settings.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/encoder/picture_resize.h"

namespace vfm::models {

struct PixelRule {
  Resample resample;
  double factor;
  std::array<double, 3> mean, deviation;

  bool operator==(const PixelRule&) const = default;
  /// Reads a processor's settings. Throws Error{usage} naming `what` and the setting, for an
  /// impossible setting, or for one that is neither a setting of all processors nor in `also`.
  void read(const Json& config, std::span<const char* const> also, std::string_view what);
  Json to_json() const;
  /// (byte * factor - mean) / deviation, for each channel and byte.
  std::array<std::array<float, 256>, 3> numbers() const;
};

/// Settings in a folder: the contents of `file`, or without it the part `name` of
/// processor_config.json; null without either. Sets `what` to the name for error messages.
Json processor_part(const std::string& folder, const char* file, const char* name,
                    std::string& what);
/// Settings for still pictures, in preprocessor_config.json or "image_processor". Throws
/// Error{usage} if there are none.
Json picture_processor(const std::string& folder, std::string& what);

}  // namespace vfm::models
