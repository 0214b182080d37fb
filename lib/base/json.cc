// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_members.h"

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

constexpr int kMostLevels = 100;
constexpr std::size_t kMostNames = std::size_t{1} << 20;

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(std::string_view what) : what_(what) {}
  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON has no binary values.
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    Members& members = *open_.back().members;
    if (members.size() >= kMostNames)
      fail("{} has an object of more than {} names", what_, kMostNames);
    member_ = members.emplace(name).first;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    error_ = error.what();
    return false;
  }

 private:
  struct Level {
    Json* value;                     // Stays valid, because its container does not grow meanwhile.
    std::optional<Members> members;  // Of an object.
  };

  Json& place() {
    if (open_.empty()) return root_;
    Json& around = *open_.back().value;
    return around.is_array() ? around.emplace_back() : *member_;
  }
  bool put(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= kMostLevels) fail("{} is nested deeper than {} levels", what_, kMostLevels);
    Json& here = place();
    here = std::move(value);
    open_.push_back({&here, std::nullopt});
    if (here.is_object()) open_.back().members.emplace(here);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view what_;
  std::string error_;
  Json root_;
  Json* member_ = nullptr;  // The member of the innermost object whose value comes next.
  std::vector<Level> open_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view what) {
  TreeBuilder tree(what);
  if (Json::sax_parse(text, &tree)) return tree.take();
  // The library's text is "[json.exception...] parse error at line 1, column 5: ..."; keep the end.
  std::string message = tree.error();
  if (const auto at = message.find("column "); at != std::string::npos) message.erase(0, at);
  fail("{} is not JSON: {}", what, message);
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string dump_json_pretty(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json sorted(Json value) {
  for (Json& part : value)
    if (part.is_structured()) part = sorted(std::move(part));
  if (!value.is_object()) return value;
  std::vector<std::pair<std::string, Json*>> members;
  for (auto& [name, member] : value.items())
    members.emplace_back(name, &member);
  std::ranges::sort(members, {},
                    [](const auto& member) -> const std::string& { return member.first; });
  Json in_order = Json::object();
  Members to(in_order);
  for (const auto& [name, member] : members)
    *to.emplace(name).first = std::move(*member);
  return in_order;
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
