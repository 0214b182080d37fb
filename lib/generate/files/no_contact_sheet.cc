// Replaces contact_sheet.cc if FFmpeg is not installed.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "generate/files/contact_sheet.h"

namespace vfm::generate {

void write_contact_sheet(const std::string& path, const std::vector<std::string>&) {
  fail("cannot make '{}', since vfm was built without FFmpeg", path);
}

}  // namespace vfm::generate
