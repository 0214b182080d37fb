// Fast access to JSON objects with very many names. To find or add a name, Json itself compares it
// with all earlier names. That takes minutes for an object that fits into one line.
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

/// An index of an object's members by name. While the index exists, nothing else may change the
/// object.
class Members {
 public:
  explicit Members(Json& object) : object_(object) {}
  std::size_t size() const;
  /// Returns the member of this name, and true if the member is new. A new member is null, and the
  /// last one.
  std::pair<Json*, bool> emplace(const std::string& name);

 private:
  Json& object_;
  std::unordered_map<std::string, std::size_t> places_;  // empty as long as there are few members
};

/// Adds the members of the object `more` to the object `into`, in their order. If a member exists,
/// put_ replaces its value; add_ keeps it.
void put_members(Json& into, const Json& more);
void add_members(Json& into, const Json& more);

}  // namespace vfm
