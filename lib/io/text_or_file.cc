// SPDX-License-Identifier: Apache-2.0
#include "io/text_or_file.h"

#include <cstdint>

#include "base/address.h"
#include "base/error.h"
#include "io/file.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

}  // namespace

std::string option_file(const std::string& path) {
  if (const std::string refused = no_file_message(path); !refused.empty())
    fail_usage("{}", refused);
  std::string text = as_usage([&] {
    if (File::open_regular(path).size() > kMostBytes)
      fail_usage("the text in '{}' is larger than 1 MiB", path);
    return read_file(path);
  });
  while (text.ends_with('\n') || text.ends_with('\r'))
    text.pop_back();
  if (text.empty()) fail_usage("'{}' has no text", path);
  return text;
}

std::string text_or_file(const std::string& value) {
  if (!value.starts_with('@')) return value;
  if (value.starts_with("@@")) return value.substr(1);
  if (value.size() == 1)
    fail_usage("'@' names no file; a text that begins with '@' begins with '@@'");
  return option_file(value.substr(1));
}

}  // namespace vfm::io
