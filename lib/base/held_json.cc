// SPDX-License-Identifier: Apache-2.0
#include "base/held_json.h"

#include <utility>

#include "base/json.h"

namespace vfm {

HeldJson::HeldJson(const HeldJson& other) : HeldJson(*other) {}
HeldJson::HeldJson(HeldJson&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}

HeldJson& HeldJson::operator=(HeldJson other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

HeldJson::~HeldJson() {
  delete value_;
}

Json* HeldJson::made_of(const Json& value) {
  return value.is_null() ? nullptr : new Json(value);
}

Json* HeldJson::made_of(Json&& value) {
  return value.is_null() ? nullptr : new Json(std::move(value));
}

HeldJson HeldJson::object() {
  return Json::object();
}

HeldJson HeldJson::array() {
  return Json::array();
}

Json& HeldJson::operator*() {
  if (!value_) value_ = new Json;
  return *value_;
}

const Json& HeldJson::operator*() const {
  static const Json null;
  return value_ ? *value_ : null;
}

Json& HeldJson::at_name(const std::string& name) {
  return (**this)[name];
}

const Json& HeldJson::at_name(const std::string& name) const {
  return (**this).at(name);
}

bool operator==(const HeldJson& a, const HeldJson& b) {
  return *a == *b;
}

bool operator==(const HeldJson& a, const Json& b) {
  return *a == b;
}

}  // namespace vfm
