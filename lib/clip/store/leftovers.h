// Reports or removes files in the output folder that belong to no source of this run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clip/source.h"
#include "io/error_log.h"
#include "io/first_names.h"

namespace vfm::clip {

/// Thread-safety: one thread at a time.
class Leftovers {
 public:
  /// Opens the output folder `directory`, which also gets temporary files. `readable` says whether
  /// the run has readable names (clip/store/names.h).
  Leftovers(std::string directory, bool readable);
  /// Receives each item of the input.
  void see(const ClipItem& item);
  /// With -v, reports the number of leftover sources. If there are over 100, reports "more than
  /// 100". If `remove` is true, removes the outputs and columns of leftover sources
  /// (ClipStore::remove()). If the input is not completely known, nothing is reported or removed.
  /// An input is not completely known if `broken_off` is not empty, an item could not be read, or
  /// an item is a shard in the output folder. If `remove` is true, an incompletely known input or a
  /// failed removal is an error.
  void finish(bool remove, const std::string& broken_off, io::ErrorLog& errors);

 private:
  void tell() const;

  std::string directory_;
  bool readable_;
  io::FirstNames names_;
  bool any_ = false;
  std::string unknown_;  // an input with unknown outputs
};

}  // namespace vfm::clip
