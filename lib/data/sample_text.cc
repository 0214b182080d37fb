// SPDX-License-Identifier: Apache-2.0
#include "data/sample_text.h"

#include <algorithm>

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

SampleText choose_text(const shard::Sample& sample, const Json& meta, const TextColumns& columns,
                       double place) {
  const auto caption_of = [&](const std::string& column) -> std::string {
    if (!columns.captions) return {};
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
  if (sample.find(embedding_member(column)) != nullptr)
    return sample_text(sample, meta, embedding_member(column));
  SampleText text;
  text.caption = caption_of(column);
  return text;
}

}  // namespace vfm::data
