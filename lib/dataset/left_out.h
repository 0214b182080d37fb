// The file left_out.jsonl, which lists the samples that --balance or --without left out. Filtered
// samples are not listed. Duplicates have their own file (dataset/duplicates.h). Thread-safety: one
// thread at a time.
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
  std::string by;     ///< Rule of --balance, or for --without "key" or "source".
  std::string value;  ///< Field value as JSON, number of the cluster, or line of --without.
  /// `samples` is the number of samples with this value. At most `most` of them are kept.
  std::uint64_t samples = 0, most = 0;

  /// Returns the sample's line in left_out.jsonl.
  Json json() const;
  std::string pack() const;
  static LeftOut unpack(std::string_view packed);
};

/// Parses JSON text. Returns null if `value` is empty. Returns a string if `value` was shortened
/// and is not valid JSON.
Json value_json(const std::string& value);

/// A list of all samples left out, in a temporary file.
class LeftOutList {
 public:
  explicit LeftOutList(const std::string& folder) : sorter_(folder) {}
  void add(const LeftOut& sample) { add_packed(sample.pack()); }
  void add_packed(std::string_view packed);
  std::uint64_t count() const { return sorter_.records(); }
  std::uint64_t count(LeftOutReason reason) const {
    return counts_[static_cast<std::size_t>(reason)];
  }
  /// Frees memory. Call park() after the last add() if for_each() is not called soon.
  void park() { sorter_.park(); }
  /// Calls `use` with all samples, sorted by key, until `use` returns false.
  void for_each(const std::function<bool(const LeftOut& sample)>& use);

 private:
  io::Sorter sorter_;
  std::array<std::uint64_t, kLeftOutReasons.size()> counts_{};
};

}  // namespace vfm::dataset
