// vfm-clip --unique: which of many sources show the same, before time is spent on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/slots.h"
#include "io/manifest.h"
#include "media/decoder.h"

namespace vfm::clip {

struct UniqueOptions {
  std::vector<std::string> inputs;  ///< io::ManifestReader's arguments
  std::string directory;            ///< of signatures and lists
  bool force = false;               ///< decode also what has a signature there
  int stream = -1;                  ///< as DecodeOptions::stream
  bool deinterlace = true;
  const media::HardwareDecoder* hardware = nullptr;
  double share = 0.9;  ///< a source is left out if another one shows so much of it; above 0, to 1
};

/// Decodes each source once for its signature (clip/signature_file.h), compares all, and writes
/// DIR/sources.jsonl, a line for each source, and DIR/duplicates.jsonl, a line for each pair; then
/// to standard output, in the order of the input, the records of the sources that stay, as they
/// came. Records of kinds other than video pass. Pictures are compared by their bytes alone. What
/// fails is recorded in DIR/errors.jsonl. Returns how many records that is. All but the signatures
/// is in memory: see clip/duplicate_index.h, and a kilobyte or so for each source. Throws Error if
/// no source could be used or the input broke off, for then who stays is not known; Stopped.
long find_unique(const UniqueOptions& options, Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::clip
