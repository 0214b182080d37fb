// How models that see turn bytes of pictures into numbers, as the settings of their processors say,
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
  /// Takes what a processor's settings say of it. Throws Error{usage} naming `what` and the
  /// setting, for one that is impossible, or that neither is among those that all processors have
  /// nor in `also`.
  void read(const Json& config, std::span<const char* const> also, std::string_view what);
  Json to_json() const;
  /// (byte * factor - mean) / deviation, of each channel and byte.
  std::array<std::array<float, 256>, 3> numbers() const;
};

/// The settings of a folder: the contents of `file`, or the part `name` of processor_config.json
/// where there is no such file; null where there is neither. `what` becomes the words for it.
Json processor_part(const std::string& folder, const char* file, const char* name,
                    std::string& what);
/// Those of still pictures, in preprocessor_config.json or "image_processor". Throws Error{usage}
/// if there are none.
Json picture_processor(const std::string& folder, std::string& what);

}  // namespace vfm::models
