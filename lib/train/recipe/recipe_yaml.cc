// The one file that knows yaml-cpp.
// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "base/error.h"
#include "train/recipe/recipe_file.h"

namespace vfm::train {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 20;
constexpr std::size_t kMaxSettings = 1000;  // aliases can make a small text mean a huge tree
constexpr int kMaxDepth = 4;

std::string place(const YAML::Node& node, std::string_view what) {
  return node.Mark().is_null() ? std::string(what)
                               : fmt::format("line {} of {}", node.Mark().line + 1, what);
}

/// Takes a document and keeps nothing. YAML::LoadAll, which would count them, never ends on `[1],
/// 2]`: yaml-cpp finds an empty document before the comma for ever.
class Ignore : public YAML::EventHandler {
  using Mark = YAML::Mark;
  using Style = YAML::EmitterStyle::value;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override {}
  void OnAlias(const Mark&, YAML::anchor_t) override {}
  void OnScalar(const Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnMapEnd() override {}
};

bool goes_on_after_first_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Ignore handler;
  return parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler);
}

YAML::Node load(std::string_view text, std::string_view what) {
  if (text.size() > kMaxText) fail_usage("{} is longer than 1 MiB, too long for a recipe", what);
  try {
    const std::string owned(text);
    if (goes_on_after_first_document(owned))
      fail_usage("{} has text after the end of its YAML document, and a recipe is one document",
                 what);
    return YAML::Load(owned);
  } catch (const YAML::Exception& error) {
    fail_usage("{} is not YAML: line {}: {}", what, error.mark.line + 1, error.msg);
  }
}

/// The value of a leaf; false if `node` is no leaf.
bool read_leaf(const YAML::Node& node, Setting& setting) {
  if (node.IsScalar()) {
    setting.values = {node.Scalar()};
    return true;
  }
  if (!node.IsSequence()) return false;
  setting.list = true;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar() || setting.values.size() > kMaxSettings)
      fail_usage("'{}' in {} is a list of something other than plain values", setting.key,
                 setting.where);
    setting.values.push_back(item.Scalar());
  }
  return true;
}

void flatten(const YAML::Node& node, const std::string& prefix, int depth, std::string_view what,
             std::set<std::string>& seen, std::vector<Setting>& out) {
  if (node.IsNull() && depth <= 1) return;  // an empty file, or "model:" with nothing below
  if (node.IsNull()) fail_usage("'{}' in {} has no value", prefix, place(node, what));
  if (!node.IsMap() || depth > kMaxDepth)
    fail_usage("{}: expected 'key: value' pairs{}", place(node, what),
               prefix.empty() ? std::string() : fmt::format(" below '{}'", prefix));
  for (const auto& pair : node) {
    if (!pair.first.IsScalar()) fail_usage("{}: a key is not a plain word", place(node, what));
    Setting setting;
    const std::string name = pair.first.Scalar();
    setting.key = prefix.empty() ? name : prefix + "." + name;
    setting.where = place(pair.first, what);
    if (!seen.insert(setting.key).second)
      fail_usage("'{}' is given twice, the second time in {}", setting.key, setting.where);
    if (!read_leaf(pair.second, setting)) {
      flatten(pair.second, setting.key, depth + 1, what, seen, out);
      continue;
    }
    if (out.size() >= kMaxSettings) fail_usage("{} has more than {} keys", what, kMaxSettings);
    out.push_back(std::move(setting));
  }
}

}  // namespace

std::vector<Setting> parse_yaml(std::string_view text, std::string_view what) {
  std::vector<Setting> settings;
  std::set<std::string> seen;
  try {
    flatten(load(text, what), "", 0, what, seen, settings);
  } catch (const YAML::Exception& error) {
    fail_usage("{} is not YAML: {}", what, error.msg);
  }
  return settings;
}

Setting parse_override(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  Setting setting;
  setting.where = fmt::format("argument '{}'", argument);
  if (equals == std::string_view::npos || equals == 0)
    fail_usage("{} is not of the form section.key=value", setting.where);
  setting.key = std::string(argument.substr(0, equals));
  try {
    if (!read_leaf(load(argument.substr(equals + 1), setting.where), setting))
      fail_usage("{} gives no value", setting.where);
  } catch (const YAML::Exception& error) {
    fail_usage("{} is not YAML: {}", setting.where, error.msg);
  }
  return setting;
}

}  // namespace vfm::train
