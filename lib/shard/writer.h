// Writing one shard: a POSIX ustar tar that webdataset, wids, Energon, DALI, Hugging Face datasets and
// Python's tarfile all read, with its indexes, in one pass (vfm-shard(5)).
//
// Not here: which samples go where (tools, curate/), dataset-level files (shard/dataset_meta.h).
// Life: Add... then finish() or abandon(); the destructor abandons.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "shard/sample.h"

namespace vfm::shard {

struct WriterOptions {
  bool energon_index = true;  ///< X.tar.idx
  bool dali_index = true;     ///< X.idx
};

class Writer {
 public:
  /// `path` ends in ".tar". Nothing appears under it before finish(). Throws Error.
  explicit Writer(const std::string& path, const WriterOptions& options = {});
  ~Writer();
  Writer(Writer&&) noexcept;

  /// Throws Error, and adds nothing, if the key is malformed, repeated in this shard, a member is 2 GiB
  /// or more, or the members' extensions differ from the first sample's.
  void add(const Sample& sample);

  std::int64_t samples() const;
  std::uint64_t bytes() const;  ///< so far, without the end blocks
  /// Commits the indexes, then the tar; returns its manifest record {"kind":"shard","path":…,
  /// "samples":…,"bytes":…,"xxh3":…} (the hash of the whole file). Throws Error if there is no sample.
  Json finish();
  void abandon() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::shard
