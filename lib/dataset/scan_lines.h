// The input of vfm-shard as numbered lines: records of shards, other records, and lines that are no
// records.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "shard/shard_input.h"

namespace vfm::dataset {

struct ScanLine {
  std::uint64_t number = 0;  ///< Place in the input, from 0.
  io::Record record;
  std::string error;  ///< Reason why the line is no record, or empty.
  Cause cause = Cause::line;
};

class ScanLines {
 public:
  /// `inputs` are those of shard::ShardInput.
  explicit ScanLines(const std::vector<std::string>& inputs);
  ScanLines(const ScanLines&) = delete;

  /// Returns the next line, or nullopt at the end. Lines that are no records come before the record
  /// after them.
  std::optional<ScanLine> next();
  io::InputStreams streams() const { return input_.streams(); }

 private:
  std::deque<ScanLine> bad_;
  shard::ShardInput input_;
  std::optional<ScanLine> held_;  // the record after bad lines
  std::uint64_t number_ = 0;
};

}  // namespace vfm::dataset
