// SPDX-License-Identifier: Apache-2.0
#include "shard/media_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "io/file.h"

namespace vfm::shard {
namespace {

constexpr std::string_view kVideos[] = {"mp4", "m4v",  "mov", "webm", "mkv", "avi", "ts",
                                        "mpg", "mpeg", "ogv", "flv",  "wmv", "gif"};
constexpr std::string_view kStills[] = {"jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff"};

}  // namespace

bool is_still_extension(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  return std::ranges::find(kStills, last) != std::end(kStills);
}

bool is_media_extension(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  return std::ranges::find(kVideos, last) != std::end(kVideos) || is_still_extension(last);
}

bool is_media_name(const std::string& path) {
  return is_media_extension(io::extension(path));
}

const Member* media_member(const Sample& sample) {
  for (const bool still : {false, true})
    for (const bool dotted : {false, true})
      for (const Member& member : sample.members)
        if (is_media_extension(member.extension) && is_still_extension(member.extension) == still &&
            (member.extension.find('.') != std::string::npos) == dotted)
          return &member;
  return nullptr;
}

std::string no_media(const Sample& sample) {
  std::string members;
  for (const Member& member : sample.members)
    members += (members.empty() ? "" : ", ") + member.extension;
  return fmt::format("has no video and no picture that is known by its name, only {}", members);
}

}  // namespace vfm::shard
