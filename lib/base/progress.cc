// SPDX-License-Identifier: Apache-2.0
#include "base/progress.h"

namespace vfm {

Progress& no_progress() {
  static Progress silent;
  return silent;
}

}  // namespace vfm
