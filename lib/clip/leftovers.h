// What stands in a folder of clips and is of no source of this run: sources that were taken away,
// or have other contents now. Told, or removed.
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
  /// `readable`: the names of this run's samples are (clip/names.h).
  /// `ledger`: of the folder; it remembers what was told.
  Leftovers(std::string directory, bool readable, io::HashLedger& ledger);
  /// Each item of the input.
  void see(const ClipItem& item);
  /// Says that sources are left over, and how many, up to 100; with `remove` removes what they
  /// gave, with its columns (ClipStore::remove()). Where not all of the input is known,
  /// `broken_off` saying why, an item that could not be read or a shard of the folder itself,
  /// nothing is told and nothing removed, and with `remove` that is a fault; so is what cannot be
  /// removed.
  ///
  /// Without `remove` it is told once for a folder, and then with -v alone until a run leaves
  /// nothing over: many runs of some videos each into one folder are no mistake. Then file names
  /// alone are looked at, and no more of them than tell a hundred; so what such a run costs does
  /// not grow with the folder.
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
