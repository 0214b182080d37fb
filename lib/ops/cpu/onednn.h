// oneDNN's engine of this process's CPU. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>

namespace vfm::ops {

/// Never destroyed: threads may still hold compiled kernels when static objects go.
inline dnnl::engine& cpu_engine() {
  static dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

}  // namespace vfm::ops
