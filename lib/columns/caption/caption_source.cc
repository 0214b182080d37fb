// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/caption_source.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace vfm::columns {
namespace {

/// Returns a member of an object, or the element of a list at an index, counted from 0.
const Json* part_of(const Json& value, const std::string& name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  const bool number = !name.empty() && name.size() < 10 &&
                      name.find_first_not_of("0123456789") == std::string::npos;
  if (!value.is_array() || !number) return nullptr;
  const std::size_t place = std::stoul(name);
  return place < value.size() ? &value[place] : nullptr;
}

/// Returns the sources that a word of --from names, or none for an unknown word.
std::vector<CaptionSource> sources_named(const std::string& source) {
  static const std::vector<CaptionSource> existing = {
      {CaptionKind::member, "existing:member"},
      {CaptionKind::field, "existing:field", "caption"},
      {CaptionKind::sidecar, "existing:txt", "txt"},
      {CaptionKind::sidecar, "existing:json", "json"},
      {CaptionKind::sidecar, "existing:srt", "srt"}};
  if (source == "existing") return existing;
  if (const auto found = std::ranges::find(existing, source, &CaptionSource::name);
      found != existing.end())
    return {*found};
  if (source == kMeasuredCaption) return {{CaptionKind::measure, source}};
  const std::size_t colon = source.find(':');
  const std::string value = colon == std::string::npos ? "" : source.substr(colon + 1);
  if (value.empty()) return {};
  if (source.starts_with("field:")) return {{CaptionKind::field, source, value}};
  if (source.starts_with("model:")) return {{CaptionKind::model, "model", value}};
  return {};
}

bool is_model(const CaptionSource& source) {
  return source.kind == CaptionKind::model;
}

}  // namespace

std::string CaptionSources::model_folder() const {
  const auto found = std::ranges::find_if(list, is_model);
  return found == list.end() ? "" : found->value;
}

CaptionSources parse_caption_sources(const std::vector<std::string>& from, bool server) {
  CaptionSources sources;
  for (const std::string& source : from) {
    const std::vector<CaptionSource> named = sources_named(source);
    if (named.empty())
      fail_usage(
          "'{}' is not a source of captions; the sources are existing, existing:member, "
          "existing:field, existing:txt, existing:json, existing:srt, field:NAME, model:DIR and "
          "builtin:measure; --endpoint is asked after them",
          source);
    sources.list.insert(sources.list.end(), named.begin(), named.end());
    sources.given.push_back(is_model(named.front()) ? named.front().name : source);
  }
  if (std::ranges::count_if(sources.list, is_model) > 1)
    fail_usage("--from names two models; name one");
  if (server) {
    sources.list.push_back({CaptionKind::server, "endpoint"});
    sources.given.emplace_back("endpoint");
  }
  return sources;
}

const Json* find_field(const Json& object, const std::string& name) {
  const Json* value = part_of(object, name);
  if (value == nullptr && name.find('.') != std::string::npos) {
    value = &object;
    for (std::size_t begin = 0; value != nullptr && begin <= name.size();) {
      const std::size_t dot = std::min(name.find('.', begin), name.size());
      value = part_of(*value, name.substr(begin, dot - begin));
      begin = dot + 1;
    }
  }
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace vfm::columns
