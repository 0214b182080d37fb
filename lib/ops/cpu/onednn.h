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

/// What oneDNN takes to describe a primitive's work, by version 3 and by version 2, where a desc
/// lies between. Throws dnnl::error.
template <class Primitive, class... Parts>
typename Primitive::primitive_desc described(const dnnl::primitive_attr& attributes,
                                             const Parts&... parts) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), parts..., attributes};
#else
  return {typename Primitive::desc(parts...), attributes, cpu_engine()};
#endif
}

/// The same of a gradient, whose layouts follow those of its forward pass.
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
