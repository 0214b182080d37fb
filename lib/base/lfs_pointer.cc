// SPDX-License-Identifier: Apache-2.0
#include "base/lfs_pointer.h"

#include "base/error.h"

namespace vfm {

void refuse_lfs_pointer(std::string_view name, std::string_view head) {
  if (head.starts_with("version https://git-lfs"))
    fail_as(Cause::missing, "'{}' is a Git LFS pointer, not the file itself: git lfs pull", name);
}

}  // namespace vfm
