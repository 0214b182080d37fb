// For builds without libseccomp.
// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/confine.h"

namespace vfm::media {

bool can_confine() {
  return false;
}

bool confine(std::uint64_t) {
  return false;
}

}  // namespace vfm::media
