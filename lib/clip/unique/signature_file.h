// Stores signatures of sources (curate/copies/video_signature.h) as DIR/HASH.signature, so that
// each source is decoded only once.
//
// A file has the pictures, 2048 bytes each (little-endian), then 1024 bytes of JSON, padded with
// spaces. The JSON has the source, the settings of the pictures, and the number of pictures. Files
// are written atomically. Thread-safety: any thread, but one thread at a time for each source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/progress.h"
#include "clip/source.h"
#include "curate/copies/video_signature.h"
#include "io/file.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

struct SignatureFacts {
  double seconds = 0;  ///< Length in seconds, from the first frame to the end of the last frame.
  int width = 0, height = 0;  ///< Size in pixels, as shown.
  std::int64_t damaged = 0;   ///< Number of broken packets or frames.
};

/// The pictures of a signature, mapped into memory.
class SignatureFile {
 public:
  /// Throws Error if the file is not a signature.
  explicit SignatureFile(const std::string& path);
  std::span<const curate::SignaturePicture> pictures() const;

 private:
  io::MappedFile file_;
};

/// Returns DIR/HASH.signature.
std::string signature_path(const std::string& folder, const std::string& hash);

struct SignatureWork {
  std::string folder;
  media::DecodeOptions decode;
  bool force = false;  ///< If true, an existing signature is replaced.
};
/// Makes the signature of a source. Without work.force, an existing signature is kept. Throws
/// Stopped, and Error if the source cannot be decoded or is longer than a day.
SignatureFacts make_signature(const ClipSource& source, const SignatureWork& work,
                              Progress& progress);

}  // namespace vfm::clip
