// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/adamw.h"

#include <omp.h>

#include <cstring>
#include <limits>

#include "ops/check.h"
#include "ops/optim/split_master.h"
#include "ops/optim/sums.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

AdamwSlot make_slot(const Tensor& value, const Tensor& gradient, const Tensor& m, const Tensor& v) {
  AdamwSlot slot;
  slot.value = value.data<float>();
  slot.gradient = gradient.data<float>();
  slot.first_moment = m.raw();
  slot.second_moment = v.raw();
  slot.moments = m.dtype();
  slot.count = value.elements();
  return slot;
}

}  // namespace

TEST_CASE("AdamW follows its formula, in double, for several steps") {
  each_isa([] {
    constexpr std::size_t kCount = 9001;
    const Tensor value = noise_tensor({9001}, 1), m = Tensor::zeros({9001}),
                 v = Tensor::zeros({9001});
    const Tensor ema = value.clone();
    std::vector<double> w(value.floats().begin(), value.floats().end()), dm(kCount), dv(kCount),
        de = w;
    AdamwStep step;
    step.learning_rate = 0.01f;
    step.gradient_scale = 0.5f;
    step.ema_decay = 0.9f;
    for (step.step = 1; step.step <= 4; ++step.step) {
      const Tensor g = noise_tensor({9001}, 10 + static_cast<std::uint64_t>(step.step));
      AdamwSlot slot = make_slot(value, g, m, v);
      slot.ema = ema.data<float>();
      slot.weight_decay = 0.1f;
      const std::vector<AdamwSlot> slots{slot};
      adamw(Device::cpu, slots, step);
      for (std::size_t i = 0; i < kCount; ++i) {
        const double gradient = 0.5 * g.floats()[i];
        dm[i] = 0.9 * dm[i] + 0.1 * gradient;
        dv[i] = 0.99 * dv[i] + 0.01 * gradient * gradient;
        const double steps = static_cast<double>(step.step);
        w[i] =
            w[i] * (1 - 0.01 * 0.1) - 0.01 * (dm[i] / (1 - std::pow(0.9, steps))) /
                                          (std::sqrt(dv[i] / (1 - std::pow(0.99, steps))) + 1e-8);
        de[i] = 0.9 * de[i] + 0.1 * w[i];
      }
    }
    double worst = 0;
    for (std::size_t i = 0; i < kCount; ++i)
      worst =
          std::max({worst, std::abs(w[i] - value.floats()[i]), std::abs(de[i] - ema.floats()[i])});
    CHECK(worst < 3e-6);
  });
}

TEST_CASE("a split master is updated to the bits of the plain weight, with moments of both types") {
  each_isa([] {
    for (const DType moments : {DType::f32, DType::bf16}) {
      const Tensor plain = noise_tensor({5003}, 1), high({5003}, DType::bf16),
                   low({5003}, DType::i16);
      const Tensor joined({5003});
      split_master(plain, high, low);
      std::vector<Tensor> state;
      for (int i = 0; i < 4; ++i)
        state.push_back(Tensor::zeros({5003}, moments));
      AdamwStep step;
      for (step.step = 1; step.step <= 3; ++step.step) {
        const Tensor g = noise_tensor({5003}, 20 + static_cast<std::uint64_t>(step.step));
        std::vector<AdamwSlot> slots{make_slot(plain, g, state[0], state[1]),
                                     make_slot(plain, g, state[2], state[3])};
        slots[1].value = nullptr;
        slots[1].high = high.data<std::uint16_t>();
        slots[1].low = low.data<std::uint16_t>();
        adamw(Device::cpu, slots, step);
        join_master(high, low, joined);
        CHECK(distance(joined, plain) < 1e-7);
        CHECK(distance(high, plain) < 4e-3);
        CHECK(distance(state[3], state[1]) < (moments == DType::f32 ? 1e-7 : 1e-2));
      }
    }
  });
}

TEST_CASE("AdamW without an average, and with an empty parameter") {
  const Tensor w = noise_tensor({5}, 1), g = noise_tensor({5}, 2), m = Tensor::zeros({5}),
               v = Tensor::zeros({5});
  const float before = w.floats()[0];
  const std::vector<AdamwSlot> slots{{}, make_slot(w, g, m, v)};
  adamw(Device::cpu, slots, AdamwStep{});
  // The first step moves every weight by the learning rate, against its gradient.
  CHECK(w.floats()[0] - before == Approx(g.floats()[0] > 0 ? -1e-3 : 1e-3).epsilon(1e-3));
}

TEST_CASE("the sum of squares has the same bits on any number of threads, and shows a NaN") {
  const Tensor a = noise_tensor({100000}, 1), b = noise_tensor({17}, 2);
  const std::vector<Extent> arrays{
      {a.data<float>(), a.elements()}, {b.data<float>(), b.elements()}, {}};
  double expected = 0;
  for (const auto& array : arrays)
    for (std::int64_t i = 0; i < array.count; ++i)
      expected += double{array.data[i]} * array.data[i];
  const int threads = omp_get_max_threads();
  std::vector<double> sums;
  for (const int n : {1, 2, 5}) {
    omp_set_num_threads(n);
    sums.push_back(sum_squares(Device::cpu, arrays));
  }
  omp_set_num_threads(threads);
  CHECK(sums[0] == Approx(expected).epsilon(1e-12));
  CHECK((sums[0] == sums[1] && sums[1] == sums[2]));
  CHECK(sum_squares(Device::cpu, {}) == 0);
  a.floats()[99999] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(sum_squares(Device::cpu, arrays)));
}
