// Parses --balance's rules, and collects what they need of a sample.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "dataset/balance.h"
#include "io/packed.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kLongestValue = 256;  // longer values are cut and end with their hash

/// Returns the JSON text of a field, or "" if the sample has no value.
std::string value_text(const Json& meta, const std::string& field) {
  const auto found = meta.find(field);
  if (found == meta.end() || found->is_null()) return {};
  std::string text = dump_json(*found);
  // 30.0 and 30 are the same value, because JSON writers differ in how they write whole numbers.
  if (found->is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
  if (text.size() <= kLongestValue) return text;
  std::size_t end = kLongestValue / 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // Keep characters whole.
  return text.substr(0, end) + "... " + hash_hex(text);
}

}  // namespace

Json BalanceOptions::json() const {
  Json json = Json::object();
  for (const BalanceRule& rule : rules)
    json[rule.name] = rule.strength;
  return json;
}

std::vector<BalanceRule> parse_balance(std::string_view text) {
  std::vector<BalanceRule> rules;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string part(text.substr(0, comma));
    const std::size_t equals = part.find('=');
    BalanceRule rule{part.substr(0, equals), 1};
    if (rule.name.empty())
      fail_usage(
          "--balance: '{}' names no field; give FIELD or FIELD=STRENGTH, with commas between",
          part);
    if (equals != std::string::npos) {
      const std::string number = part.substr(equals + 1);
      char* end = nullptr;
      rule.strength = std::strtod(number.c_str(), &end);
      if (number.empty() || *end != '\0' || !(rule.strength > 0 && rule.strength <= 1))
        fail_usage("--balance: the strength of '{}' is '{}', and not above 0 and up to 1",
                   rule.name, number);
    }
    if (rule.clusters()) check_vector_name("--balance", rule.name);
    for (const BalanceRule& other : rules)
      if (other.name == rule.name) fail_usage("--balance: '{}' is named twice", rule.name);
    rules.push_back(std::move(rule));
    if (comma == text.size()) return rules;
    text.remove_prefix(comma + 1);
  }
}

void put_balance_notes(std::string& notes, const JoinedSample& sample,
                       const std::vector<BalanceRule>& rules, VectorNames& encoders) {
  for (const BalanceRule& rule : rules) {
    if (!rule.clusters()) {
      io::put_text(notes, value_text(sample.meta, rule.name));
      continue;
    }
    const SampleVector vector = sample_vector(sample, rule.name);
    encoders.add(vector);
    io::put_ordered(notes, vector.encoder, 8);
    io::put_text(notes, unit_halves(vector.values));
  }
}

void skip_balance_notes(std::string_view& notes, const std::vector<BalanceRule>& rules) {
  for (const BalanceRule& rule : rules) {
    if (rule.clusters()) io::take_ordered(notes, 8);
    io::take_text(notes);
  }
}

Json Balanced::json() const {
  Json list = Json::array();
  for (const Value& value : largest) {
    Json one = {{rule.clusters() ? "cluster" : "value", value_json(value.value)},
                {"samples", value.samples},
                {"most", value.most},
                {"stay", value.stay}};
    if (!value.nearest.empty()) one["nearest"] = value.nearest;
    list.push_back(std::move(one));
  }
  Json json = {{"by", rule.name},
               {"strength", rule.strength},
               {"values", values},
               {"samples", samples},
               {"left_out", left_out}};
  if (rule.clusters()) json["encoder"] = by;
  json["largest"] = std::move(list);
  return json;
}

}  // namespace vfm::dataset
