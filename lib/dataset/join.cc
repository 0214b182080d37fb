// SPDX-License-Identifier: Apache-2.0
#include "dataset/join.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_members.h"
#include "shard/columns.h"

namespace vfm::dataset {
namespace {

constexpr std::array kVideo = {"mp4", "mkv",  "webm", "mov", "avi", "m4v",
                               "mpg", "mpeg", "ts",   "ogv", "flv", "wmv"};
constexpr std::array kImage = {"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "avif"};
// Order after the media member. Other members follow in the order of their names.
constexpr std::array<std::string_view, 4> kOrder = {"txt", "text.npy", "video.npy", "windows.npy"};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Adds the fields of `text` to `meta`. `added` has the fields that came from later columns.
void merge(Json& meta, std::string_view text, const std::string& key, bool first,
           std::set<std::string>& added) {
  const Json more = parse_json(text, fmt::format("'{}.json'", key));
  if (!more.is_object()) fail("'{}.json' is not a JSON object", key);
  Members members(meta);
  for (const auto& [name, value] : more.items()) {
    Json& member = *members.emplace(name).first;
    if (!first && !added.insert(name).second && member != value)
      fail("two columns of sample '{}' have different values of '{}': {} and {}", key, name,
           dump_json(member), dump_json(value));
    member = value;
  }
}

std::string choose_media(const std::vector<shard::MemberView>& members) {
  for (const MediaKind wanted : {MediaKind::video, MediaKind::image})
    for (const bool dotted : {false, true})
      for (const shard::MemberView& member : members)
        if (media_kind(member.extension) == wanted &&
            (member.extension.find('.') != std::string_view::npos) == dotted)
          return std::string(member.extension);
  for (const shard::MemberView& member : members)
    if (!contains(kOrder, member.extension)) return std::string(member.extension);
  return {};
}

const char* media_name(const std::string& extension) {
  switch (media_kind(extension)) {
    case MediaKind::video:
      return "video";
    case MediaKind::image:
      return "image";
    case MediaKind::other:
      break;
  }
  return "other";
}

}  // namespace

MediaKind media_kind(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  if (contains(kVideo, last)) return MediaKind::video;
  return contains(kImage, last) ? MediaKind::image : MediaKind::other;
}

std::string_view JoinedSample::find(std::string_view extension) const {
  for (const shard::MemberView& member : members)
    if (member.extension == extension) return member.data;
  return {};
}

JoinedSample join_sample(const std::vector<const shard::SampleView*>& parts) {
  JoinedSample joined;
  joined.key = shard::column_key(std::string(parts.front()->key));
  joined.meta = Json::object();
  std::set<std::string> fields;       // From later columns.
  std::set<std::string_view> others;  // From later columns.
  for (const shard::SampleView* part : parts)
    for (const shard::MemberView& member : part->members) {
      const bool first = part == parts.front();
      if (member.extension == "json") {
        merge(joined.meta, member.data, joined.key, first, fields);
        continue;
      }
      const auto present =
          std::find_if(joined.members.begin(), joined.members.end(),
                       [&](const auto& other) { return other.extension == member.extension; });
      if (present == joined.members.end())
        joined.members.push_back(member);
      else if (others.contains(member.extension) && present->data != member.data)
        fail("two columns of sample '{}' have different members '{}'", joined.key,
             member.extension);
      else
        *present = member;
      if (!first) others.insert(member.extension);
    }
  if (joined.members.empty()) fail("sample '{}' has no members but its JSON", joined.key);

  joined.media = choose_media(joined.members);
  const auto place = [&](const shard::MemberView& member) {
    if (member.extension == joined.media) return std::size_t{0};
    const auto at = std::find(kOrder.begin(), kOrder.end(), member.extension);
    return static_cast<std::size_t>(at - kOrder.begin()) + 1;
  };
  std::sort(joined.members.begin(), joined.members.end(), [&](const auto& a, const auto& b) {
    return std::make_tuple(place(a), a.extension) < std::make_tuple(place(b), b.extension);
  });

  Json& meta = joined.meta;
  if (parts.front()->key != joined.key) meta["original_key"] = parts.front()->key;
  meta.erase("split");
  meta.erase("bin");
  meta["key"] = joined.key;
  if (!meta.contains("media")) meta["media"] = media_name(joined.media);
  if (!meta.contains("bytes")) meta["bytes"] = joined.find(joined.media).size();
  if (!joined.media.empty()) meta["media_xxh3"] = hash_hex(joined.find(joined.media));
  return joined;
}

void rekey(JoinedSample& sample) {
  Json& meta = sample.meta;
  if (!meta.contains("original_key")) meta["original_key"] = sample.key;
  sample.key = hash_hex(hash_hex(sample.find(sample.media)) + sample.key);
  meta["key"] = sample.key;
}

}  // namespace vfm::dataset
