// vfm-shard --balance: of what there is too much some is left out.
//
// A rule names a field of the samples' JSON, or vectors (NAME.npy), whose clusters then count as
// values. Of N samples n_v have the value v; the fair share of v is what it would have were all N
// samples shared out in proportion to n_v^(1 - strength): at strength 1 the same for each value.
// Of each value at most its fair share stays, rounded up. Samples without the field are a value of
// their own. Which ones stay: each sample has drawn a number, a function of seed and key alone, the
// same for all rules, and those with the lowest stay. A sample stays if all rules keep it. So
// neither the order of the rules nor that of the input matters, what is balanced already stays
// whole, and a sample more or less moves few others.
//
// Strength 0.5 goes by the square root of how many there are, as Movie Gen's data do (Polyak et
// al., 2024, section 3.1.1).
//
// Out of core: values and vectors (as halves of length 1) are on temporary files. In memory are
// the vectors that the centres of clusters are made of, a bounded number of them, and a bit a
// sample. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/slots.h"
#include "dataset/balance_options.h"
#include "dataset/item_store.h"
#include "dataset/join.h"
#include "dataset/left_out.h"
#include "dataset/sample_vector.h"

namespace vfm::dataset {

/// What the rules need of a sample, for ItemStore::for_each_noted(). Throws Error if a vector is
/// none.
void put_balance_notes(std::string& notes, const JoinedSample& sample,
                       const std::vector<BalanceRule>& rules, EncoderNames& encoders);

/// Takes what put_balance_notes() wrote from the front of `notes`.
void skip_balance_notes(std::string_view& notes, const std::vector<BalanceRule>& rules);

/// What became of one rule.
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

/// Drops what is too much from `items`, and lists it. Throws Error{usage} where the vectors of a
/// rule are of several encoders; Stopped.
std::vector<Balanced> balance(ItemStore& items, const BalanceOptions& options, std::uint64_t seed,
                              const EncoderNames& encoders, Slots& slots, LeftOutList& list);

}  // namespace vfm::dataset
