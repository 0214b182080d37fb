// Whole samples of the input that are not in the dataset: left_out.jsonl. Filtered samples are not
// listed; duplicates have their own file (dataset/duplicates.h). Thread-safety: one thread at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "io/sorter.h"

namespace vfm::dataset {

enum class LeftOutReason { balance, without };
inline constexpr std::array kLeftOutReasons = {"balance", "without"};

struct LeftOut {
  std::string key;
  LeftOutReason reason = LeftOutReason::balance;
  std::string by;     ///< the rule of --balance; "key" or "source" of a line of --without
  std::string value;  ///< JSON text of the field or the number of the cluster; the line as it is
  std::uint64_t samples = 0, most = 0;  ///< with this value, and how many of them may stay

  /// The line of left_out.jsonl.
  Json json() const;
  std::string pack() const;
  static LeftOut unpack(std::string_view packed);
};

/// JSON text as JSON: null if empty; a string if it is not valid JSON any more.
Json value_json(const std::string& value);

/// All samples left out, on a temporary file.
class LeftOutList {
 public:
  explicit LeftOutList(const std::string& folder) : sorter_(folder) {}
  void add(const LeftOut& sample) { add_packed(sample.pack()); }
  void add_packed(std::string_view packed);
  std::uint64_t count() const { return sorter_.records(); }
  std::uint64_t count(LeftOutReason reason) const {
    return counts_[static_cast<std::size_t>(reason)];
  }
  /// Says that no more come and none is needed soon.
  void park() { sorter_.park(); }
  /// Calls `use` with all, by key. Stops when `use` returns false.
  void for_each(const std::function<bool(const LeftOut& sample)>& use);

 private:
  io::Sorter sorter_;
  std::array<std::uint64_t, kLeftOutReasons.size()> counts_{};
};

}  // namespace vfm::dataset
