// vfm-shard --balance: leaves out samples of over-represented values.
//
// A rule names a field of the samples' JSON, or vectors (NAME.npy), whose clusters are then the
// values. Samples without the field form a value, too. If n_v of N samples have value v, the fair
// share of v is the part of N in proportion to n_v^(1 - strength); at strength 1 it is equal for
// all values. At most as many samples of a value stay as the fair share, rounded up: the samples
// with the lowest random numbers. A sample's random number depends only on seed and key, and is the
// same for all rules. A sample stays if all rules keep it. Therefore the order of rules and input
// does not matter, and one sample more or less changes the result for few others.
//
// Strength 0.5 uses the square root of counts, like Movie Gen (Polyak et al., 2024, section 3.1.1).
//
// Values and unit vectors (halves) are in temporary files. Memory holds a bounded number of vectors
// for the clusters' centres, and one bit a sample. Thread-safety: one thread at a time.
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

/// Appends a sample's data for the rules, later read by ItemStore::for_each_noted(). Throws Error
/// for an invalid vector.
void put_balance_notes(std::string& notes, const JoinedSample& sample,
                       const std::vector<BalanceRule>& rules, VectorNames& encoders);

/// Removes what put_balance_notes() wrote from the front of `notes`.
void skip_balance_notes(std::string_view& notes, const std::vector<BalanceRule>& rules);

/// The result of one rule.
struct Balanced {
  struct Value {
    std::string value;                              ///< JSON text; empty: samples without the field
    std::uint64_t samples = 0, most = 0, stay = 0;  ///< `most`: the fair share
    std::string nearest;  ///< key of the sample nearest to a cluster's centre
  };
  BalanceRule rule;
  std::uint64_t values = 0, samples = 0, left_out = 0;  ///< `left_out`: by this rule
  std::vector<Value> largest;  ///< the values with most samples first; a bounded number
  HeldJson by;                 ///< the encoder of vectors

  Json json() const;
};

/// Drops excess samples from `items`, and adds them to `list`. Throws Error{usage} if a rule's
/// vectors are of several encoders, and Stopped.
std::vector<Balanced> balance(ItemStore& items, const BalanceOptions& options, std::uint64_t seed,
                              const VectorNames& encoders, share::Slots& slots, LeftOutList& list);

}  // namespace vfm::dataset
