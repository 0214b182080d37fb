// SPDX-License-Identifier: Apache-2.0
#include "cli/harmless.h"

#include <algorithm>

#include "base/utf8.h"

namespace vfm::cli {

std::string harmless(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    if (bytes == 0 || steering_character(text) > 0)
      result += '?';
    else
      result += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace vfm::cli
