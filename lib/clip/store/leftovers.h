// Reports or removes files in a folder of clips that belong to no source of this run, since the
// source was taken away or has other contents now.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "clip/source.h"
#include "io/error_log.h"
#include "io/first_names.h"
#include "io/hash_ledger.h"

namespace vfm::clip {

/// Thread-safety: one thread at a time.
class Leftovers {
 public:
  /// Temporary files are in `directory`, the folder of the clips.
  /// `readable`: the names of this run's samples are (clip/store/names.h).
  /// `ledger`: the folder's; it remembers reports.
  Leftovers(std::string directory, bool readable, io::HashLedger& ledger);
  /// Takes each item of the input.
  void see(const ClipItem& item);
  /// Reports the number of sources left over, up to 100; with `remove` removes their outputs and
  /// columns (ClipStore::remove()). If the input is not completely known (`broken_off` says why, an
  /// item could not be read, or a shard is the folder's own), it reports and removes nothing; with
  /// `remove` that is a fault, as is a failed removal.
  ///
  /// Without `remove` it reports once for a folder, and then only with -v, until a run leaves
  /// nothing over: many runs of a few videos into one folder are normal. It then reads only file
  /// names, and only enough to find a hundred sources; so the cost does not grow with the folder.
  void finish(bool remove, const std::string& broken_off, io::ErrorLog& errors);

 private:
  void tell();

  std::string directory_;
  bool readable_;
  io::HashLedger& ledger_;
  io::FirstNames names_;  // of this run: of sources, and keys of pictures
  bool any_ = false;
  std::string unknown_;  // an input of which it is not known what it gives, and why
};

}  // namespace vfm::clip
