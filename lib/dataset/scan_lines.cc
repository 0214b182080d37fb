// SPDX-License-Identifier: Apache-2.0
#include "dataset/scan_lines.h"

#include <utility>

namespace vfm::dataset {

ScanLines::ScanLines(const std::vector<std::string>& inputs)
    : input_(inputs,
             [this](const io::Fault& fault) {
               ScanLine line;
               line.record.where = fault.input;
               line.error = fault.message;
               line.cause = fault.cause;
               bad_.push_back(std::move(line));
             },
             {"caption", "embed"}) {}

std::optional<ScanLine> ScanLines::next() {
  if (bad_.empty() && !held_)
    if (auto record = input_.next()) {
      held_.emplace();
      held_->record = *std::move(record);
    }
  std::optional<ScanLine> line;
  if (!bad_.empty()) {
    line = std::move(bad_.front());
    bad_.pop_front();
  } else {
    line = std::exchange(held_, std::nullopt);
  }
  if (line) line->number = number_++;
  return line;
}

}  // namespace vfm::dataset
