// SPDX-License-Identifier: Apache-2.0
#include "base/json_members.h"

#include "base/json.h"

namespace vfm {

std::size_t Members::size() const {
  return object_.size();
}

std::pair<Json*, bool> Members::emplace(const std::string& name) {
  constexpr std::size_t kFew = 32;
  auto& object = object_.get_ref<Json::object_t&>();
  auto& members = static_cast<Json::object_t::Container&>(object);
  if (members.size() < kFew) {
    const auto [at, is_new] = object.emplace(name, Json());
    return {&at->second, is_new};
  }
  for (std::size_t i = places_.size(); i < members.size(); ++i)
    places_.emplace(members[i].first, i);
  const auto [found, is_new] = places_.emplace(name, members.size());
  if (is_new) members.emplace_back(name, Json());
  return {&members[found->second].second, is_new};
}

void put_members(Json& into, const Json& more) {
  Members members(into);
  for (const auto& [name, value] : more.items())
    *members.emplace(name).first = value;
}

void add_members(Json& into, const Json& more) {
  Members members(into);
  for (const auto& [name, value] : more.items())
    if (const auto [member, is_new] = members.emplace(name); is_new) *member = value;
}

}  // namespace vfm
