// vfm-shard --balance: leaves out some samples of over-represented values.
//
// A rule names a field of the samples' JSON, or vectors (NAME.npy), whose clusters then count as
// values. If n_v of N samples have the value v, its fair share is its part if all N were divided in
// proportion to n_v^(1 - strength): at strength 1 the same for each value. At most the fair share,
// rounded up, of each value stays. Samples without the field are a value of their own. Each sample
// draws a number, which depends only on seed and key and is the same for all rules; those with the
// lowest stay. A sample stays if all rules keep it. So the order of rules and input does not
// matter, balanced samples stay whole, and one sample more or less changes few others.
//
// Strength 0.5 uses the square root of the counts, as Movie Gen's data do (Polyak et al., 2024,
// section 3.1.1).
//
// Out of core: values and vectors (as halves of length 1) are on temporary files. Memory holds a
// bounded number of vectors for the clusters' centres, and a bit a sample. Thread-safety: one
// thread at a time.
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

/// Writes a sample's data for the rules, for ItemStore::for_each_noted(). Throws Error for an
/// invalid vector.
void put_balance_notes(std::string& notes, const JoinedSample& sample,
                       const std::vector<BalanceRule>& rules, EncoderNames& encoders);

/// Takes the notes of put_balance_notes() from the front of `notes`.
void skip_balance_notes(std::string_view& notes, const std::vector<BalanceRule>& rules);

/// The result of one rule.
struct Balanced {
  struct Value {
    std::string value;  ///< JSON text; empty: the samples lack the field
    std::uint64_t samples = 0, most = 0, stay = 0;  ///< `most`: its fair share
    std::string nearest;  ///< key of the sample next to a cluster's centre
  };
  BalanceRule rule;
  std::uint64_t values = 0, samples = 0, left_out = 0;  ///< `left_out`: by this rule
  std::vector<Value> largest;  ///< the most samples first; a bounded number
  HeldJson by;                 ///< the encoder of vectors

  Json json() const;
};

/// Drops excess samples from `items`, and lists them. Throws Error{usage} if the vectors of a rule
/// are of several encoders; Stopped.
std::vector<Balanced> balance(ItemStore& items, const BalanceOptions& options, std::uint64_t seed,
                              const EncoderNames& encoders, share::Slots& slots, LeftOutList& list);

}  // namespace vfm::dataset
