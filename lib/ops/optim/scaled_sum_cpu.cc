// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/simd.h"
#include "ops/optim/scaled_sum_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

template <class Out, class X, class Y>
void scaled_sum_of(Out* out, float a, const X* x, float b, const Y* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(out + i, a * load(x + i) + b * load(y + i));
}

}  // namespace

void scaled_sum(const TypedArray& out, float a, const TypedArray& x, float b, const TypedArray& y,
                std::int64_t n) {
  by_type(out.type, [&](auto to) {
    by_type(x.type, [&](auto first) {
      by_type(y.type, [&](auto second) {
        scaled_sum_of(static_cast<decltype(to)*>(out.at), a, static_cast<decltype(first)*>(x.at), b,
                      static_cast<decltype(second)*>(y.at), n);
      });
    });
  });
}

}  // namespace vfm::ops::VFM_ISA
