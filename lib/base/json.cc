// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "base/error.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace vfm {
namespace {

const Json* find(const Json& value, const char* name) {
  if (!value.is_object()) return nullptr;
  const auto it = value.find(name);
  return it == value.end() || it->is_null() ? nullptr : &*it;
}

[[noreturn]] void wrong_type(const char* name, const char* wanted, const Json& found) {
  fail("'{}' is not {} but {}", name, wanted, found.type_name());
}

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > 100) fail("{} is nested deeper than 100 levels", what);
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const nlohmann::json::parse_error& error) {
    // The library's text is "[json.exception...] parse error at line 1, column 5: ..."; keep the
    // end.
    std::string message = error.what();
    if (const auto at = message.find("column "); at != std::string::npos) message.erase(0, at);
    fail("{} is not JSON: {}", what, message);
  } catch (const nlohmann::json::exception& error) {
    fail("{} is not JSON: {}", what, error.what());
  }
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string dump_json_pretty(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<std::string> get_string(const Json& value, const char* name) {
  const Json* member = find(value, name);
  if (!member) return std::nullopt;
  if (!member->is_string()) wrong_type(name, "a string", *member);
  return member->get<std::string>();
}

std::optional<double> get_number(const Json& value, const char* name) {
  const Json* member = find(value, name);
  if (!member) return std::nullopt;
  if (!member->is_number()) wrong_type(name, "a number", *member);
  return member->get<double>();
}

std::optional<std::int64_t> get_integer(const Json& value, const char* name) {
  const Json* member = find(value, name);
  if (!member) return std::nullopt;
  if (!member->is_number_integer()) wrong_type(name, "an integer", *member);
  return member->get<std::int64_t>();
}

std::optional<bool> get_bool(const Json& value, const char* name) {
  const Json* member = find(value, name);
  if (!member) return std::nullopt;
  if (!member->is_boolean()) wrong_type(name, "true or false", *member);
  return member->get<bool>();
}

std::string need_string(const Json& value, const char* name, std::string_view what) {
  if (auto found = get_string(value, name)) return *std::move(found);
  fail("{} has no '{}'", what, name);
}

double need_number(const Json& value, const char* name, std::string_view what) {
  if (auto found = get_number(value, name)) return *found;
  fail("{} has no '{}'", what, name);
}

std::int64_t need_integer(const Json& value, const char* name, std::string_view what) {
  if (auto found = get_integer(value, name)) return *found;
  fail("{} has no '{}'", what, name);
}

}  // namespace vfm
