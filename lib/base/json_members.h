// Objects of JSON that may have very many names: a Json keeps their order, and to find one or to
// add one compares it with all before it, minutes for those that fit into one line.
//
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/json_fwd.h"

namespace vfm {

/// The members of an object, each found at once however many they are. The object must not change
/// in another way as long as this is used.
class Members {
 public:
  explicit Members(Json& object) : object_(object) {}
  std::size_t size() const;
  /// The member of that name; true: there was none, and it is null, behind the others.
  std::pair<Json*, bool> emplace(const std::string& name);

 private:
  Json& object_;
  std::unordered_map<std::string, std::size_t> places_;  // empty as long as there are few
};

/// Adds the members of the object `more` to the object `into`, in their order. put_: what is there
/// already gets their value; add_: it stays.
void put_members(Json& into, const Json& more);
void add_members(Json& into, const Json& more);

}  // namespace vfm
