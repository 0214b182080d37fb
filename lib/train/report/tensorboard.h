// TensorBoard event files: scalars and short texts.
//
// A file is a sequence of TFRecords: length, masked CRC-32C of the length, data, masked CRC-32C of
// the data. Each holds an Event message of tensorflow/core/util/event.proto, encoded by hand, as
// only a few fields are needed. Each start of the program writes a new file, as TensorBoard
// expects. A resumed run first marks the step from which earlier files are void (SessionLog START).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file.h"
#include "io/growing_file.h"
#include "train/report/whole_appends.h"

namespace vfm::train {

/// CRC-32C (Castagnoli): reflected polynomial 0x82f63b78.
std::uint32_t crc32c(std::string_view bytes);
/// Frames `data` as one record.
std::string make_tfrecord(std::string_view data);

class EventWriter {
 public:
  /// Creates DIR/events.out.tfevents.TIME.HOST.N, where N is the first free number. `first_step` >
  /// 0 continues an earlier run there.
  EventWriter(const std::string& directory, const std::string& host, std::int64_t first_step);

  /// Writes one event with these (tag, value) pairs at the present time, at once.
  void scalars(std::int64_t step, const std::vector<std::pair<std::string, double>>& values);
  /// The same for words, which TensorBoard shows among its texts.
  void text(std::int64_t step, const std::string& tag, const std::string& words);
  /// Puts the file into the bucket, where DIR is in one.
  void put() { place_.put(); }
  const std::string& path() const { return place_.path(); }

 private:
  EventWriter(std::pair<io::GrowingFile, io::File> created, std::int64_t first_step);
  void write(const std::string& bytes);

  io::GrowingFile place_;
  WholeAppends file_;
};

}  // namespace vfm::train
