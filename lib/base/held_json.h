// A JSON value as a member of a struct in a header. Headers avoid base/json.h, which is slow to
// compile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "base/json_fwd.h"

namespace vfm {

/// Owns one Json, null at first. A copy owns its own Json. A HeldJson converts to Json, and * and
/// -> give access to the Json. Thread-safety: as Json.
class HeldJson {
 public:
  HeldJson() noexcept = default;
  /// Converts from Json, and from no other type.
  template <class T>
  requires std::same_as<std::remove_cvref_t<T>, Json> HeldJson(T&& value)
      : value_(made_of(std::forward<T>(value))) {}
  HeldJson(const HeldJson& other);
  HeldJson(HeldJson&& other) noexcept;
  HeldJson& operator=(HeldJson other) noexcept;
  ~HeldJson();
  static HeldJson object();
  static HeldJson array();

  Json& operator*();
  const Json& operator*() const;
  Json* operator->() { return &**this; }
  const Json* operator->() const { return &**this; }
  operator Json&() & { return **this; }
  operator const Json&() const& { return **this; }
  operator Json&&() && { return static_cast<Json&&>(**this); }
  Json& operator[](const std::string& name) { return at_name(name); }
  /// Returns an existing member. Throws what Json::at() throws.
  const Json& operator[](const std::string& name) const { return at_name(name); }

  friend bool operator==(const HeldJson& a, const HeldJson& b);
  friend bool operator==(const HeldJson& a, const Json& b);

 private:
  static Json* made_of(const Json& value);
  static Json* made_of(Json&& value);
  Json& at_name(const std::string& name);
  const Json& at_name(const std::string& name) const;

  Json* value_ = nullptr;  // null while the Json is null
};

}  // namespace vfm
