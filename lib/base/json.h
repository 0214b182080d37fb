// JSON values that keep the order of their keys, and readers whose errors name file and field.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

// Instantiated once, in json.cc: it is half the compile time of a file that reads JSON.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace vfm {

using Json = nlohmann::ordered_json;

/// Parses one JSON document. `what` names it in the error ("line 3 of 'a.jsonl'"). A document
/// nested deeper than 100 levels is refused, so hostile input cannot exhaust the stack, and so is
/// an object of more than a million names. Of a name that comes twice the last value counts, at
/// the place of the first. Takes time in proportion to the text: Json alone looks at every name
/// before a new one. Throws Error.
Json parse_json(std::string_view text, std::string_view what);

/// The members of an object, each found at once however many they are. The object must not change
/// in another way as long as this is used.
class Members {
 public:
  explicit Members(Json& object) : object_(&object.get_ref<Json::object_t&>()) {}
  std::size_t size() const { return object_->size(); }
  /// The member of that name; true: there was none, and it is null, behind the others.
  std::pair<Json*, bool> emplace(const std::string& name);

 private:
  Json::object_t* object_;
  std::unordered_map<std::string, std::size_t> places_;  // empty as long as there are few
};
/// Adds the members of the object `more` to the object `into`, in their order. put_: what is there
/// already gets their value; add_: it stays.
void put_members(Json& into, const Json& more);
void add_members(Json& into, const Json& more);

/// One line, no spaces, UTF-8; invalid UTF-8 becomes U+FFFD, so that this never throws.
std::string dump_json(const Json& value);
/// Indented by two, with a final newline: for files people read.
std::string dump_json_pretty(const Json& value);

/// Member `name` of object `value`, or nothing if absent or null. Throws Error if it has another
/// type.
std::optional<std::string> get_string(const Json& value, const char* name);
std::optional<double> get_number(const Json& value, const char* name);
std::optional<std::int64_t> get_integer(const Json& value, const char* name);
std::optional<bool> get_bool(const Json& value, const char* name);

/// The same, but absence throws Error: "<what> has no '<name>'".
std::string need_string(const Json& value, const char* name, std::string_view what);
double need_number(const Json& value, const char* name, std::string_view what);
std::int64_t need_integer(const Json& value, const char* name, std::string_view what);

}  // namespace vfm
