// left_out.jsonl: samples of the input that --balance or --without left out. Filtered samples are
// not listed; duplicates have their own file (dataset/duplicates.h). Thread-safety: one thread at a
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
  std::string by;     ///< rule of --balance; or kind of the line of --without: "key" or "source"
  std::string value;  ///< JSON text of the field, or number of the cluster; or the line
  std::uint64_t samples = 0, most = 0;  ///< samples with this value; most that may stay

  /// Returns the sample's line in left_out.jsonl.
  Json json() const;
  std::string pack() const;
  static LeftOut unpack(std::string_view packed);
};

/// Parses JSON text. Returns null if `value` is empty, and a string if it is not valid JSON because
/// it was shortened.
Json value_json(const std::string& value);

/// All samples left out, in a temporary file.
class LeftOutList {
 public:
  explicit LeftOutList(const std::string& folder) : sorter_(folder) {}
  void add(const LeftOut& sample) { add_packed(sample.pack()); }
  void add_packed(std::string_view packed);
  std::uint64_t count() const { return sorter_.records(); }
  std::uint64_t count(LeftOutReason reason) const {
    return counts_[static_cast<std::size_t>(reason)];
  }
  /// Frees memory. Call park() when no more samples are added and for_each() is not called soon.
  void park() { sorter_.park(); }
  /// Calls `use` with all samples, by key, until `use` returns false.
  void for_each(const std::function<bool(const LeftOut& sample)>& use);

 private:
  io::Sorter sorter_;
  std::array<std::uint64_t, kLeftOutReasons.size()> counts_{};
};

}  // namespace vfm::dataset
