// The option --balance of vfm-shard, which leaves out samples of over-represented values.
//
// A rule has a strength, and names a field of the samples' JSON. If the rule names vectors
// (NAME.npy), the values are the clusters of the vectors. Samples without the field form a value,
// too. Each value has a fair share of the samples. If n samples have the value, the fair share is
// proportional to n^(1 - strength). With strength 1, all values have the same fair share. If a
// value has more samples than its fair share (rounded up), the rule keeps the samples with the
// lowest random numbers, up to the fair share. A sample's random number depends only on seed and
// key. A sample is kept if all rules keep it. Thus the order of rules and input does not matter,
// and adding a sample changes the result for few others.
//
// Strength 0.5 uses the square root of counts, like Movie Gen (Polyak et al., 2024, section 3.1.1).
//
// Memory: one bit for each sample, and a bounded number of vectors. Thread-safety: one thread at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "dataset/balance_options.h"
#include "dataset/item_store.h"
#include "dataset/join.h"
#include "dataset/left_out.h"
#include "dataset/sample_vector.h"
#include "share/slots.h"

namespace vfm::dataset {

/// Appends a sample's data for the rules to `notes` (Item::notes). Throws Error for an invalid
/// vector.
void put_balance_notes(std::string& notes, const JoinedSample& sample,
                       const std::vector<BalanceRule>& rules, VectorNames& encoders);

/// Removes the data of put_balance_notes() from the front of `notes`.
void skip_balance_notes(std::string_view& notes, const std::vector<BalanceRule>& rules);

struct Balanced {
  struct Value {
    std::string value;  ///< JSON text, or empty for samples without the field.
    /// Numbers of samples with the value: all (`samples`), fair share (`most`), and kept (`stay`).
    std::uint64_t samples = 0, most = 0, stay = 0;
    std::string nearest;  ///< Key of the sample nearest to the cluster's centre.
  };
  BalanceRule rule;
  /// `left_out` counts samples left out by this rule.
  std::uint64_t values = 0, samples = 0, left_out = 0;
  std::vector<Value> largest;  ///< Values with the most samples, largest first.
  HeldJson by;

  Json json() const;
};

/// Drops excess samples from `items`, and adds the dropped samples to `list`. Throws Error{usage}
/// if the vectors of a rule are from several encoders. Throws Stopped.
std::vector<Balanced> balance(ItemStore& items, const BalanceOptions& options, std::uint64_t seed,
                              const VectorNames& encoders, share::Slots& slots, LeftOutList& list);

}  // namespace vfm::dataset
