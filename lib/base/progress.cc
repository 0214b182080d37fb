// SPDX-License-Identifier: Apache-2.0
#include "base/progress.h"

#include <algorithm>

#include "base/format.h"
#include "base/units.h"

namespace vfm {

ItemProgress::~ItemProgress() {
  progress_.part(this, -1);
  progress_.place("");
}

void ItemProgress::at(double seconds, double all) {
  if (calls_++ % 8 != 0) return;
  std::string text = vfm::format("'{}': {}", name_, format_seconds(std::max(0.0, seconds)));
  if (all > 0) {
    text += " of " + format_seconds(all);
    progress_.part(this, std::clamp(seconds / all, 0.0, 1.0));
  }
  progress_.place(text);
}

Progress& no_progress() {
  static Progress silent;
  return silent;
}

}  // namespace vfm
