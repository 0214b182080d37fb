// A video or picture to search for: its vector, by whatever encoder the vectors that it is compared
// with were made.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "media/hardware.h"

namespace vfm::columns {

class FileQuery {
 public:
  /// Decodes the file for its look. Throws Error.
  FileQuery(std::string path, const media::HardwareDecoder* hardware);

  /// By the encoder of `config`, the "video_encoder" of sample `key`; null is builtin:look. Throws
  /// Error, naming the sample: its encoder is not known here, its folder is gone or holds another
  /// one now.
  const std::vector<float>& vector(const Json& config, const std::string& key);

 private:
  std::vector<float> encode(const Json& config, const std::string& key) const;

  std::string path_;
  const media::HardwareDecoder* hardware_;
  std::vector<float> look_;
  std::mutex mutex_;
  std::map<std::string, std::vector<float>> encoded_;  // by configuration
};

}  // namespace vfm::columns
