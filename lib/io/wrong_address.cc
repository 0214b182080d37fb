// SPDX-License-Identifier: Apache-2.0
#include "io/wrong_address.h"

#include "base/error.h"
#include "io/remote/address.h"

namespace vfm::io {

std::string wrong_address(const std::string& name) {
  if (!is_remote(name) || name.starts_with("msc://")) return "";
  try {
    address_of(name);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace vfm::io
