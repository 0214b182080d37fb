// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "io/http.h"

namespace vfm::io {

bool have_http() {
  return false;
}

std::string http_version() {
  return {};
}

HttpAnswer http_exchange(const HttpRequest&) {
  fail_usage("this build has no libcurl, so no server can be asked; build it with -Dcurl=enabled");
}

}  // namespace vfm::io
