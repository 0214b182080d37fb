// Fast access to JSON objects with very many names. For each name, Json itself searches all names
// of the object, which can take minutes for a long object.
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

/// An index of an object's members by name. While the index exists, only the index may change the
/// object.
class Members {
 public:
  explicit Members(Json& object) : object_(object) {}
  std::size_t size() const;
  /// Returns the member of this name, and whether the member is new. A new member is null, and
  /// comes last in the object.
  std::pair<Json*, bool> emplace(const std::string& name);

 private:
  Json& object_;
  std::unordered_map<std::string, std::size_t> places_;  // empty while there are few members
};

/// Adds the members of the object `more` to the object `into`, in order. If a member exists,
/// put_members replaces its value, and add_members keeps its value.
void put_members(Json& into, const Json& more);
void add_members(Json& into, const Json& more);

}  // namespace vfm
