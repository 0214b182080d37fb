// SPDX-License-Identifier: Apache-2.0
#include "data/sample_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/npy.h"
#include "shard/sample.h"

namespace vfm::data {

Json sample_meta(const shard::Sample& sample) {
  const std::string* json = sample.find("json");
  if (json == nullptr) return Json::object();
  Json meta = parse_json(*json, "its 'json'");
  if (!meta.is_object()) fail("its 'json' is not an object");
  return meta;
}

SampleText sample_text(const shard::Sample& sample, const Json& meta, const std::string& name) {
  const std::string* bytes = sample.find(name);
  SampleText text;
  if (bytes == nullptr) {
    text.npy = io::make_npy_half({0, 0}, {});
    return text;
  }
  const std::string what = fmt::format("its '{}'", name);
  const io::NpyHeader header = io::parse_npy(*bytes, what);
  if (header.shape.size() != 2 || header.shape[0] > 1'000'000 || header.shape[1] > 1'000'000)
    fail("{} is not tokens x width", what);
  text.values = io::npy_floats(*bytes, what);
  io::check_halves(text.values, what);
  text.tokens = static_cast<int>(header.shape[0]);
  text.width = static_cast<int>(header.shape[1]);
  const auto encoder = meta.find("text_encoder");
  text.encoder = encoder != meta.end() && encoder->is_object()
                     ? *encoder
                     : Json{{"name", "unknown"}, {"dim", text.width}};
  if (get_integer(text.encoder, "dim") != text.width)
    fail("{} is {} wide, its text encoder {}", what, text.width,
         text.encoder->value("dim", Json()).dump());
  if (header.dtype == "<f2") {
    text.npy = *bytes;
  } else {
    text.npy = io::make_npy_half(header.shape, text.values);
    text.values = io::npy_floats(text.npy, what);
  }
  return text;
}

std::string embedding_member(const std::string& column) {
  return column == "caption" ? "text.npy" : column + ".text.npy";
}

std::string caption_member(const std::string& column) {
  return column == "caption" ? "txt" : column + ".txt";
}

namespace {

/// The numbers of the captions of windows that are of the part.
std::vector<std::size_t> windows_of_part(const Json& meta, const TextPart& part) {
  std::vector<std::size_t> within;
  const auto windows = meta.find("caption_windows");
  if (windows == meta.end() || !windows->is_array() || part.end <= part.begin) return within;
  const std::string what = "its 'caption_windows'";
  std::optional<std::size_t> most;
  double most_common = 0;
  for (std::size_t i = 0; i < windows->size(); ++i) {
    const Json& window = (*windows)[i];
    const double begin = need_number(window, "start", what), end = need_number(window, "end", what);
    const double common = std::min(end, part.end) - std::max(begin, part.begin);
    if (need_string(window, "caption", what).empty() || common <= 0) continue;
    if (2 * common >= end - begin) within.push_back(i);
    if (common > most_common) most_common = common, most = i;
  }
  if (within.empty() && most) within.push_back(*most);
  return within;
}

}  // namespace

std::string caption_of_part(const Json& meta, const TextPart& part) {
  std::string all;
  for (const std::size_t i : windows_of_part(meta, part))
    all += (all.empty() ? "" : " ") + meta["caption_windows"][i]["caption"].get<std::string>();
  return all;
}

std::optional<SampleText> text_of_part(const shard::Sample& sample, const Json& meta,
                                       const TextPart& part) {
  constexpr const char* kMember = "text.windows.npy";
  const std::vector<std::size_t> chosen = windows_of_part(meta, part);
  if (chosen.empty() || sample.find(kMember) == nullptr) return std::nullopt;
  const SampleText all = sample_text(sample, meta, kMember);
  const Json counts = meta.value("text_windows", Json());
  std::vector<std::int64_t> begins = {0};
  for (const Json& count : counts.is_array() ? counts : Json::array())
    begins.push_back(begins.back() + (count.is_number_integer() ? count.get<int>() : -1));
  if (begins.size() != meta["caption_windows"].size() + 1 || begins.back() != all.tokens ||
      !std::ranges::is_sorted(begins))
    fail("its 'text_windows' does not fit its '{}' of {} tokens", kMember, all.tokens);
  SampleText text;
  text.width = all.width;
  text.encoder = all.encoder;
  for (const std::size_t i : chosen) {
    text.tokens += static_cast<int>(begins[i + 1] - begins[i]);
    text.values.insert(text.values.end(), all.values.begin() + begins[i] * all.width,
                       all.values.begin() + begins[i + 1] * all.width);
  }
  text.npy = io::make_npy_half({text.tokens, text.width}, text.values);
  return text;
}

SampleText choose_text(const shard::Sample& sample, const Json& meta, const TextColumns& columns,
                       double place, const TextPart& part) {
  const auto caption_of = [&](const std::string& column) -> std::string {
    if (!columns.captions) return {};
    if (column == "caption")
      if (std::string own = caption_of_part(meta, part); !own.empty()) return own;
    if (const std::string* text = sample.find(caption_member(column))) return *text;
    return get_string(meta, column.c_str()).value_or("");
  };
  std::vector<std::string> there;
  for (const std::string& column : columns.names)
    if (sample.find(embedding_member(column)) != nullptr || !caption_of(column).empty())
      there.push_back(column);
  if (there.empty()) return {};
  const auto at = static_cast<std::size_t>(place * static_cast<double>(there.size()));
  const std::string& column = there[std::min(at, there.size() - 1)];
  if (sample.find(embedding_member(column)) != nullptr) {
    if (column == "caption")
      if (auto own = text_of_part(sample, meta, part)) return *std::move(own);
    return sample_text(sample, meta, embedding_member(column));
  }
  SampleText text;
  text.caption = caption_of(column);
  return text;
}

}  // namespace vfm::data
