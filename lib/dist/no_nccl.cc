// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "dist/device_carrier.h"

namespace vfm::dist {

std::string why_no_nccl() {
  return "built without NCCL";
}

std::unique_ptr<DeviceCarrier> nccl_carrier(Group&, const std::string&, bool,
                                            std::shared_ptr<const Section>) {
  fail("{}", why_no_nccl());
}

}  // namespace vfm::dist
