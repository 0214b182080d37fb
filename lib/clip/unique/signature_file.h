// Stores signatures of sources (curate/copies/video_signature.h) as DIR/HASH.signature, so that a
// source is decoded only once.
//
// A file has the pictures, 2048 bytes each (little-endian), and then 1024 bytes of JSON, padded
// with spaces: the source, the settings of the pictures, and the number of pictures. Files are
// written atomically.
// Thread-safety: any thread, but only one at a time for the same source.
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

/// Facts about a source.
struct SignatureFacts {
  double seconds = 0;         ///< from the first frame to the end of the last one
  int width = 0, height = 0;  ///< size as shown
  std::int64_t damaged = 0;   ///< packets or frames that could not be decoded
};

/// The pictures of a signature, mapped: only parts that are read take memory.
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

/// The options for making a source's signature.
struct SignatureWork {
  std::string folder;
  media::DecodeOptions decode;
  bool force = false;  ///< make it even if the file exists
};
/// Makes the signature unless it exists. Throws Error if the source cannot be decoded or is longer
/// than a day; Stopped.
SignatureFacts make_signature(const ClipSource& source, const SignatureWork& work,
                              Progress& progress);

}  // namespace vfm::clip
