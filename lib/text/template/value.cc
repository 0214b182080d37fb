// SPDX-License-Identifier: Apache-2.0
#include "text/template/value.h"

#include <algorithm>

#include "base/json.h"
#include "text/template/python_text.h"
#include "text/unicode.h"

namespace vfm::text::jinja {
namespace {

constexpr std::size_t kMostWork = 20'000'000;

template <class Container>
void weigh(Container& container, const Value& part, const Run& run) {
  if (part.space() != nullptr || part.loop() != nullptr || part.function() != nullptr)
    run.refuse("{} in a list, mapping or namespace is not supported", part.kind());
  container.weight += part.weight();
  container.depth = std::max(container.depth, part.depth() + 1);
  if (container.weight > kLargest) run.refuse("a value is larger than 16 MiB");
  if (container.depth > kDeepest) run.refuse("a value is deeper than {} levels", kDeepest);
}

bool equal_lists(const List& a, const List& b, Run& run) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i], run)) return false;
  return true;
}

bool equal_mappings(const Dict& a, const Dict& b, Run& run) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a) {
    run.charge(b.size());
    const Value* other = find(b, key);
    if (other == nullptr || !equal(value, *other, run)) return false;
  }
  return true;
}

}  // namespace

void Run::charge(std::size_t units) {
  work += units;
  if (work > kMostWork) refuse("the template takes more than {} steps", kMostWork);
}

Value Value::undefined(std::string name) {
  return Value(Held(Undefined{std::move(name)}));
}

Value Value::of(std::string text) {
  return Value(Held(std::make_shared<const std::string>(std::move(text))));
}

Value Value::of(List items, const Run& run, bool tuple) {
  Sequence sequence{{}, tuple};
  for (const Value& item : items)
    weigh(sequence, item, run);
  sequence.items = std::move(items);
  return Value(Held(std::make_shared<const Sequence>(std::move(sequence))));
}

Value Value::of(Dict items, const Run& run) {
  Mapping mapping;
  for (const auto& [key, value] : items) {
    mapping.weight += key.size();
    weigh(mapping, value, run);
  }
  mapping.items = std::move(items);
  return Value(Held(std::make_shared<const Mapping>(std::move(mapping))));
}

Value Value::of(Function function) {
  return Value(Held(std::make_shared<const Function>(std::move(function))));
}

Value Value::of(const Json& json, const Run& run) {
  if (json.is_null()) return none();
  if (json.is_boolean()) return of(json.get<bool>());
  const bool whole = json.is_number_integer() &&
                     (!json.is_number_unsigned() || json.get<std::uint64_t>() >> 63 == 0);
  if (whole) return of(json.get<std::int64_t>());
  if (json.is_number()) return of(json.get<double>());
  if (json.is_string()) return of(valid_utf8(json.get_ref<const std::string&>()));
  if (json.is_array()) {
    List items;
    for (const Json& item : json)
      items.push_back(of(item, run));
    return of(std::move(items), run);
  }
  Dict items;
  for (const auto& [key, value] : json.items())
    items.emplace_back(valid_utf8(key), of(value, run));
  return of(std::move(items), run);
}

const std::string* Value::string() const {
  const auto* held = std::get_if<std::shared_ptr<const std::string>>(&held_);
  return held ? held->get() : nullptr;
}
const List* Value::list() const {
  const auto* held = std::get_if<std::shared_ptr<const Sequence>>(&held_);
  return held ? &(*held)->items : nullptr;
}
const Dict* Value::mapping() const {
  const auto* held = std::get_if<std::shared_ptr<const Mapping>>(&held_);
  return held ? &(*held)->items : nullptr;
}
Space* Value::space() const {
  const auto* held = std::get_if<std::shared_ptr<Space>>(&held_);
  return held ? held->get() : nullptr;
}
const Loop* Value::loop() const {
  const auto* held = std::get_if<std::shared_ptr<Loop>>(&held_);
  return held ? held->get() : nullptr;
}
const Function* Value::function() const {
  const auto* held = std::get_if<std::shared_ptr<const Function>>(&held_);
  return held ? held->get() : nullptr;
}
bool Value::is_tuple() const {
  const auto* held = std::get_if<std::shared_ptr<const Sequence>>(&held_);
  return held && (*held)->tuple;
}

std::int64_t Value::integer() const {
  return is_bool() ? std::get<bool>(held_) : std::get<std::int64_t>(held_);
}
double Value::real() const {
  return is_real() ? std::get<double>(held_) : static_cast<double>(integer());
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return is_real() ? real() != 0 : integer() != 0;
  if (string()) return !string()->empty();
  if (list()) return !list()->empty();
  if (mapping()) return !mapping()->empty();
  return true;
}

std::size_t Value::weight() const {
  if (string()) return string()->size() + 1;
  if (const auto* held = std::get_if<std::shared_ptr<const Sequence>>(&held_))
    return (*held)->weight;
  if (const auto* held = std::get_if<std::shared_ptr<const Mapping>>(&held_))
    return (*held)->weight;
  return 1;
}

int Value::depth() const {
  if (const auto* held = std::get_if<std::shared_ptr<const Sequence>>(&held_))
    return (*held)->depth;
  if (const auto* held = std::get_if<std::shared_ptr<const Mapping>>(&held_)) return (*held)->depth;
  return 0;
}

std::string Value::kind() const {
  static constexpr const char* kNames[] = {"undefined",   "none",     "a boolean", "an integer",
                                           "a float",     "a string", "a list",    "a mapping",
                                           "a namespace", "a loop",   "a function"};
  if (is_undefined() && !undefined_name().empty())
    return vfm::format("'{}', which is undefined", undefined_name());
  return kNames[held_.index()];
}

const Value* find(const Dict& items, std::string_view key) {
  for (const auto& [name, value] : items)
    if (name == key) return &value;
  return nullptr;
}

bool equal(const Value& a, const Value& b, Run& run) {
  run.charge(1);
  if (a.is_number() && b.is_number()) {
    if (a.is_real() || b.is_real()) return a.real() == b.real();
    return a.integer() == b.integer();
  }
  if (a.string() && b.string()) {
    run.charge_bytes(std::min(a.string()->size(), b.string()->size()));
    return *a.string() == *b.string();
  }
  if (a.list() && b.list())
    return a.is_tuple() == b.is_tuple() && equal_lists(*a.list(), *b.list(), run);
  if (a.mapping() && b.mapping()) return equal_mappings(*a.mapping(), *b.mapping(), run);
  if (a.is_undefined() || a.is_none())
    return a.is_undefined() == b.is_undefined() && a.is_none() == b.is_none();
  return a.space() != nullptr && a.space() == b.space();
}

std::string to_text(const Value& value, Run& run) {
  run.charge_bytes(value.weight());
  if (value.string()) return *value.string();
  if (value.is_undefined()) return {};
  if (value.space() || value.loop() || value.function())
    run.refuse("{} cannot be written", value.kind());
  std::string text;
  append_repr(text, value);
  return text;
}

}  // namespace vfm::text::jinja
