// The signatures of sources (curate/copies/video_signature.h) on disk: DIR/HASH.signature, so that
// a source is decoded only once.
//
// A file has the pictures, 2048 bytes each (little-endian), and behind them 1024 bytes of JSON,
// filled up with spaces, which say of what source they are, how they were made, and how many there
// are. It appears whole or not at all.
// Thread-safety: free functions; of one source one at a time.
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

/// Facts of a source, without its pixels.
struct SignatureFacts {
  double seconds = 0;         ///< from the first frame to the end of the last one
  int width = 0, height = 0;  ///< as shown
  std::int64_t damaged = 0;   ///< packets or frames that could not be decoded
};

/// The pictures of a signature, mapped: memory only for the parts read.
class SignatureFile {
 public:
  /// Throws Error for a file that is not a signature.
  explicit SignatureFile(const std::string& path);
  std::span<const curate::SignaturePicture> pictures() const;

 private:
  io::MappedFile file_;
};

/// DIR/HASH.signature
std::string signature_path(const std::string& folder, const std::string& hash);

/// The options for making a source's signature.
struct SignatureWork {
  std::string folder;
  media::DecodeOptions decode;
  bool force = false;  ///< also where the file is there
};
/// Makes the signature unless it is there. Throws Error for a source that cannot be decoded, or is
/// longer than a day; Stopped.
SignatureFacts make_signature(const ClipSource& source, const SignatureWork& work,
                              Progress& progress);

}  // namespace vfm::clip
