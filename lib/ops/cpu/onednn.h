// The oneDNN engine of this process's CPU. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>

namespace vfm::ops {

/// Never destroyed: threads may still hold compiled kernels when static objects are destroyed.
inline dnnl::engine& cpu_engine() {
  static dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

/// Describes a primitive to oneDNN, with the API of version 3 or of version 2, which needs a desc
/// in between. Throws dnnl::error.
template <class Primitive, class... Parts>
typename Primitive::primitive_desc described(const dnnl::primitive_attr& attributes,
                                             const Parts&... parts) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), parts..., attributes};
#else
  return {typename Primitive::desc(parts...), attributes, cpu_engine()};
#endif
}

/// Describes a gradient, whose layouts follow those of the forward primitive.
template <class Primitive, class Forward, class... Parts>
typename Primitive::primitive_desc described_gradient(const Forward& forward,
                                                      const Parts&... parts) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), parts..., forward};
#else
  return {typename Primitive::desc(parts...), cpu_engine(), forward};
#endif
}

}  // namespace vfm::ops
