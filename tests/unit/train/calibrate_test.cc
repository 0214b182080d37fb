// Rates that are measured: told exactly from times that are exact, and of kernels as they were
// counted.
// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate/calibrate.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/json.h"
#include "models/gpu_table.h"
#include "models/predict.h"
#include "ops/attention/attention_choice.h"
#include "ops/pointwise/activations.h"
#include "train/calibrate/gpu_probes.h"
#include "train/calibrate/kernel_times.h"

using namespace vfm;
using namespace vfm::train;

namespace {

AlikeCalls timed_calls(double flops, double bytes, const models::KernelRate& rate) {
  return {flops, bytes, rate.of(flops, bytes), 2};
}

KernelLog::Entry counted_kernel(const char* name, double flops, double bytes) {
  return {{WorkKind::products, DType::f32, name, false, flops, bytes}, 0};
}
KernelLog::Entry timed_kernel(const char* name, double seconds) {
  return {{WorkKind::elementwise, DType::f32, name, false, 0, 0}, seconds};
}

const models::KernelRate& rate_of_name(const std::vector<models::KernelRate>& rates,
                                       std::string_view name) {
  const auto found = std::ranges::find(rates, name, &models::KernelRate::name);
  REQUIRE(found != rates.end());
  return *found;
}

}  // namespace

TEST_CASE("a rate is told from times that have one, whatever its terms") {
  for (const models::KernelRate& rate : {models::KernelRate{"", DType::f32, 3e-6, 1e-11, 2e-10},
                                         models::KernelRate{"", DType::f32, 0, 1e-11, 0},
                                         models::KernelRate{"", DType::f32, 5e-6, 0, 1e-9},
                                         models::KernelRate{"", DType::f32, 0, 2e-12, 4e-10}}) {
    std::vector<AlikeCalls> calls;
    for (const auto& [flops, bytes] :
         {std::pair{1e6, 3e4}, {4e7, 2e5}, {1e9, 9e6}, {3e8, 1e7}, {2e9, 4e6}})
      calls.push_back(timed_calls(flops, bytes, rate));
    const models::KernelRate told = fit_rate(calls);
    for (const AlikeCalls& call : calls)
      CHECK(told.of(call.flops, call.bytes) == Approx(call.seconds).epsilon(1e-6));
    CHECK(told.error < 1e-6);
    CHECK(told.of_flop == Approx(rate.of_flop).epsilon(1e-4).margin(1e-17));
    CHECK(told.of_byte == Approx(rate.of_byte).epsilon(1e-4).margin(1e-16));
  }
}

TEST_CASE("a link's rate is that of large messages, also where small ones are faster") {
  constexpr double kMebi = 1 << 20;
  std::vector<AlikeCalls> calls;
  for (const double mebi : {0.001, 0.25, 4.0, 16.0, 64.0})
    calls.push_back({0, mebi * kMebi, 5e-5 + mebi * kMebi * (mebi < 1 ? 1e-10 : 2e-10), 1});
  const models::KernelRate rate = fit_rate(calls, false);
  CHECK(rate.of_far_byte == 0);
  CHECK(1 / rate.of_byte == Approx(5e9).epsilon(0.05));
  CHECK(rate.seconds == Approx(5e-5).epsilon(0.25));
}

TEST_CASE("no term of a rate is below zero, and one call has a rate, too") {
  // Faster the more it does: what grows gets nothing.
  const models::KernelRate odd = fit_rate({{1e6, 1e4, 4e-3, 1}, {1e8, 1e6, 1e-3, 1}});
  CHECK(odd.seconds >= 0);
  CHECK(odd.of_flop >= 0);
  CHECK(odd.of_byte >= 0);
  CHECK(odd.error > 0.1);
  CHECK(fit_rate({{1e6, 1e4, 4e-3, 1}}).of(1e6, 1e4) == Approx(4e-3));
  CHECK(fit_rate({{0, 1e4, 0, 1}}).of(0, 1e4) == 0);
  CHECK_THROWS(fit_rate({}));
}

TEST_CASE("each call has a short time of its place, and inner kernels none") {
  KernelTimes times;
  CHECK(times.add({counted_kernel("product", 10, 1), counted_kernel("inside", 5, 5),
                   counted_kernel("product", 20, 1)},
                  {{timed_kernel("product", 3), timed_kernel("product", 4)},
                   {timed_kernel("product", 2), timed_kernel("product", 9)}}) == Approx(2 + 4));
  const std::vector<models::KernelRate> rates = times.rates();
  CHECK(rate_of_name(rates, "product").of(10, 1) == Approx(2));
  CHECK(rate_of_name(rates, "product").of(20, 1) == Approx(4));
  CHECK(rate_of_name(rates, "inside").of(5, 5) == 0);
  CHECK(times.calls_of(WorkKind::products, DType::f32).size() == 3);
  CHECK_THROWS_WITH(times.add({counted_kernel("product", 1, 1), counted_kernel("product", 1, 1)},
                              {{timed_kernel("product", 3)}}),
                    "the CPU called 'product' 1 times, and 2 are counted");
  // Of many times neither the shortest nor a usual one.
  std::vector<KernelTimes::Entries> five;
  for (const double seconds : {9, 3, 2, 4, 8})
    five.push_back({timed_kernel("often", seconds)});
  times.add({counted_kernel("often", 1, 1)}, five);
  CHECK(rate_of_name(times.rates(), "often").of(1, 1) == Approx(3));
  // A copy less: the time of all goes by bytes.
  times.add({counted_kernel("copy", 0, 1), counted_kernel("copy", 0, 2)},
            {{timed_kernel("copy", 6)}});
  CHECK(rate_of_name(times.rates(), "copy").of(0, 2) == Approx(4));
}

TEST_CASE("the CPU logs the kernels that Device::meta counts") {
  const auto names_on = [](Device device) {
    const Tensor x = Tensor::zeros({64, 64}, DType::f32, device);
    const KernelLog log;
    const Tensor copy = x.to(DType::bf16);
    ops::Tape tape;
    static_cast<void>(ops::activate(tape, x, ops::ActivationKind::gelu));
    std::vector<std::string> names;
    for (const KernelLog::Entry& entry : log.entries()) {
      names.push_back(entry.call.name);
      CHECK((entry.seconds > 0) == (device == Device::cpu));
    }
    return names;
  };
  const std::vector<std::string> cpu = names_on(Device::cpu);
  CHECK(cpu.size() == 2);
  CHECK(cpu == names_on(Device::meta));
  CHECK(KernelLog::current() == nullptr);
}

TEST_CASE("a kernel that was measured takes what its rate says, others what the table does") {
  models::Gpu gpu;
  gpu.cpu = true, gpu.bandwidth = 1e9, gpu.peak = gpu.peak_f32 = gpu.products = 1e10, gpu.gap = 0;
  gpu.kernels = {{"activation_forward", DType::f32, 1, 0, 1e-3}};
  const KernelCalls work = {
      {{WorkKind::elementwise, DType::f32, "activation_forward", false, 0, 4e3}, 2},
      {{WorkKind::elementwise, DType::bf16, "activation_forward", false, 0, 4e3}, 1},
      {{WorkKind::products, DType::f32, "gemm", false, 5e9, 1}, 1}};
  CHECK(models::sum_of("", models::predict(gpu, work)).seconds == Approx(2 * (1 + 4) + 4e-6 + 0.5));
}

TEST_CASE("a GPU's rates are told from the times of its probes: those that made the times") {
  models::Gpu truth = models::find_gpu("h100");
  truth.gap = 3e-6, truth.products = 500e12, truth.own_convolutions = 123e12;
  std::vector<ProbeTime> times;
  for (const GpuProbe& probe : gpu_probes()) {
    const ProbeWork work = work_of(probe);
    INFO(probe.name);
    CHECK((!work.calls.empty() || work.copied > 0));
    times.push_back({probe.rate, work, predicted_seconds(truth, work)});
  }
  models::Gpu told;
  told.peak = truth.peak;
  tell_rates(told, times);
  CHECK(told.gap == Approx(truth.gap).epsilon(1e-3));
  for (double models::Gpu::*const rate :
       {&models::Gpu::bandwidth, &models::Gpu::products, &models::Gpu::peak_f32,
        &models::Gpu::products_fp8, &models::Gpu::attention_forward,
        &models::Gpu::attention_backward, &models::Gpu::own_forward, &models::Gpu::own_backward,
        &models::Gpu::attention_fp8, &models::Gpu::convolutions, &models::Gpu::own_convolutions,
        &models::Gpu::host_link, &models::Gpu::peak})
    CHECK(told.*rate == Approx(truth.*rate).epsilon(1e-3));
  for (const ProbeTime& one : times)
    CHECK(predicted_seconds(told, one.work) == Approx(one.seconds).epsilon(1e-3));
}

TEST_CASE("probes compute, again and again: small ones on the CPU", "[long]") {
  for (const GpuProbe& probe : gpu_probes(64)) {
    INFO(probe.name);
    const std::function<void()> run = probe.make(Device::cpu);
    CHECK_NOTHROW(run());
    CHECK_NOTHROW(run());
  }
  CHECK(ops::attention_body() == ops::AttentionBody::automatic);
}

TEST_CASE("what a GPU does not have is like what comes nearest, and noise makes no rate absurd") {
  const models::Gpu& truth = models::find_gpu("a100");
  std::vector<ProbeTime> times;
  double sign = 1;
  for (const GpuProbe& probe : gpu_probes()) {
    if (probe.rate == &models::Gpu::products_fp8 || probe.rate == &models::Gpu::attention_fp8)
      continue;
    const ProbeWork work = work_of(probe);
    times.push_back({probe.rate, work, predicted_seconds(truth, work) * (1 + 0.02 * sign)});
    sign = -sign;
  }
  models::Gpu told;
  tell_rates(told, times);
  CHECK(told.products == Approx(truth.products).epsilon(0.03));
  CHECK(told.peak == Approx(told.products).epsilon(0.05));
  CHECK(told.products_fp8 == told.products);
  CHECK(told.attention_fp8 == told.own_forward);
  CHECK(told.gap >= 0);
  CHECK(told.bandwidth == Approx(truth.bandwidth).epsilon(0.1));
  CHECK_THROWS_WITH(tell_rates(told, {}), "the rate of a GPU's memory was not measured");
}

TEST_CASE("a measurement that other programs slowed says so") {
  Json table = to_json(models::Gpu{});
  table["measured"] = {
      {"ranks", 1}, {"steps", 9}, {"seconds", 9.0}, {"spread", .05}, {"disturbed", 1.1}};
  CHECK_THAT(calibration_words(table), !Catch::Contains("other programs"));
  table["measured"]["disturbed"] = 1.91;
  CHECK_THAT(calibration_words(table),
             Catch::Contains("other programs slowed kernels to 1.9 times their time"));
}
