// SPDX-License-Identifier: Apache-2.0
#include "train/state/optimizer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "ops/optim/orthogonalize.h"
#include "train/step/schedule.h"

using namespace vfm;
using namespace vfm::train;

namespace {

nn::Parameter make_parameter(const std::string& name, std::vector<float> values, bool decay) {
  nn::Parameter parameter;
  parameter.name = name;
  parameter.value = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  parameter.grad = Tensor::zeros(parameter.value.shape());
  parameter.decay = decay;
  return parameter;
}

void set(const Tensor& tensor, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), tensor.floats().begin());
}

void check_near(const Tensor& tensor, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(tensor.floats()[i] == Approx(expected[i]).epsilon(2e-7).margin(2e-9));
}

}  // namespace

TEST_CASE("optimizer: three steps of AdamW as PyTorch computes them") {
  // torch 2.15, torch.optim.AdamW(lr=1e-2, betas=(.9,.99), eps=1e-8), float32; weight decay 0.1 for
  // the first tensor, 0 for the second.
  nn::Parameter p = make_parameter("p", {0.5f, -1.25f, 2.0f, 0.001f}, true);
  nn::Parameter q = make_parameter("q", {3.0f, -0.75f}, false);
  const nn::ParameterList list = {&p, &q};
  OptimizerRecipe recipe;
  recipe.weight_decay = 0.1;
  recipe.clip = 0;
  EmaRecipe ema;
  ema.mode = "off";
  Optimizer optimizer(recipe, ema, list);
  const std::vector<std::vector<float>> p_grads = {
      {0.1f, -0.2f, 0.0f, 5.0f}, {-0.3f, 0.4f, 1e-6f, -2.5f}, {0.2f, 0.1f, -3.0f, 0.25f}};
  const std::vector<std::vector<float>> q_grads = {{1.0f, -1e-4f}, {0.5f, 2e-4f}, {-0.25f, 0.0f}};
  const std::vector<std::vector<double>> p_values = {
      {0.4895000159740448, -1.2387499809265137, 1.9980000257492065, -0.00900100078433752},
      {0.4939434826374054, -1.2411673069000244, 1.9886807203292847, -0.011658993549644947},
      {0.49326184391975403, -1.2440853118896484, 1.993051528930664, -0.013998211361467838}};
  const std::vector<std::vector<double>> q_values = {{2.990000009536743, -0.7400010228157043},
                                                     {2.980665445327759, -0.7436568737030029},
                                                     {2.975010633468628, -0.7464892268180847}};
  for (std::size_t step = 0; step < 3; ++step) {
    set(p.grad, p_grads[step]);
    set(q.grad, q_grads[step]);
    optimizer.update(1e-2, 1.0);
    check_near(p.value, p_values[step]);
    check_near(q.value, q_values[step]);
  }
  CHECK(optimizer.updates == 3);
}

TEST_CASE("optimizer: gradients are scaled and clipped, or the step is left out") {
  nn::Parameter p = make_parameter("p", {1, 2, 3}, true), q = make_parameter("q", {4}, true);
  nn::Parameter r = make_parameter("r", {1, 2, 3}, true), s = make_parameter("s", {4}, true);
  const nn::ParameterList list = {&p, &q}, other = {&r, &s};
  OptimizerRecipe clips, plain;
  clips.clip = 2.5;
  plain.clip = 0;
  Optimizer a(clips, {}, list), b(plain, {}, other);
  const auto values = [](const nn::Parameter& parameter) {
    return std::vector<float>(parameter.value.floats().begin(), parameter.value.floats().end());
  };
  // A norm of 10 is brought down to 2.5; one of 2 stays.
  for (const float size : {5.f, 1.f}) {
    set(p.grad, {3 * size, 0, 0});
    set(q.grad, {4 * size});
    set(r.grad, {3, 0, 0});
    set(s.grad, {4});
    CHECK(a.update(1e-3, 0.4) == Approx(2 * size).epsilon(1e-12));
    CHECK(b.update(1e-3, size == 5 ? 0.5 : 0.4) == Approx(size == 5 ? 2.5 : 2).epsilon(1e-12));
    CHECK(values(p) == values(r));
    CHECK(values(q) == values(s));
  }
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    set(q.grad, {bad});
    const Tensor& moment = a.state("adam_m").tensors[0];
    const std::vector<float> before = values(p), m(moment.floats().begin(), moment.floats().end());
    CHECK_FALSE(std::isfinite(a.update(1e-3, 1.0)));
    CHECK(a.updates == 2);
    CHECK(values(p) == before);
    CHECK(std::equal(m.begin(), m.end(), moment.floats().begin()));
  }
}

TEST_CASE("optimizer: the average follows the weights") {
  nn::Parameter p = make_parameter("p", {1.0f}, false);
  const nn::ParameterList list = {&p};
  EmaRecipe ema;
  ema.decay = 0.5;
  Optimizer optimizer({}, ema, list);
  double mean = 1.0;
  for (int n = 1; n <= 20; ++n) {
    set(p.grad, {1.0f});
    optimizer.update(0.1, 1.0);
    const double beta = std::min(0.5, (1.0 + n) / (10.0 + n));
    mean = beta * mean + (1 - beta) * p.value.floats()[0];
    CHECK(optimizer.ema()[0].floats()[0] == Approx(mean).epsilon(1e-5));
  }
  const float raw = p.value.floats()[0], average = optimizer.ema()[0].floats()[0];
  optimizer.swap_ema();
  CHECK(p.value.floats()[0] == average);
  optimizer.swap_ema();
  CHECK(p.value.floats()[0] == raw);
  CHECK(optimizer.ema()[0].floats()[0] == average);
}

TEST_CASE("optimizer: an average every few updates has the decay of all of them") {
  nn::Parameter p = make_parameter("p", {1.0f}, false), q = make_parameter("q", {1.0f}, false);
  const nn::ParameterList often = {&p}, seldom = {&q};
  EmaRecipe ema;
  ema.decay = 0.5;
  EmaRecipe third = ema;
  third.every = 3;
  Optimizer a({}, ema, often), b({}, third, seldom);
  for (int n = 1; n <= 6; ++n) {
    set(p.grad, {n == 3 ? 1.0f : 0.0f});  // moves in the third update, and by momentum after it
    set(q.grad, {n == 3 ? 1.0f : 0.0f});
    const float before = b.ema()[0].floats()[0];
    a.update(0.1, 1.0);
    b.update(0.1, 1.0);
    if (n % 3 != 0) CHECK(b.ema()[0].floats()[0] == before);
    const double kept = 2.0 / 11 * (3.0 / 12) * (4.0 / 13);
    if (n == 3) {
      const double expected = kept * 1.0 + (1 - kept) * q.value.floats()[0];
      CHECK(b.ema()[0].floats()[0] == Approx(expected).epsilon(1e-6));
    }
  }
  CHECK(p.value.floats()[0] == q.value.floats()[0]);
}

TEST_CASE("optimizer: bf16 moments follow the f32 ones to their rounding") {
  nn::Parameter p = make_parameter("p", {1, -2, 3}, true),
                q = make_parameter("q", {1, -2, 3}, true);
  const nn::ParameterList fine = {&p}, coarse = {&q};
  EmaRecipe ema;
  ema.mode = "off";
  OptimizerRecipe low;
  low.moments = "bf16";
  Optimizer a({}, ema, fine), b(low, ema, coarse);
  CHECK(b.state("adam_m").dtype == DType::bf16);
  for (int n = 0; n < 50; ++n) {
    const float g = std::sin(static_cast<float>(n));
    set(p.grad, {g, 2 * g, -g});
    set(q.grad, {g, 2 * g, -g});
    a.update(1e-2, 1.0);
    b.update(1e-2, 1.0);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(p.value.floats()[i] != q.value.floats()[i]);
    CHECK(q.value.floats()[i] == Approx(p.value.floats()[i]).margin(5e-3));
  }
}

TEST_CASE("optimizer: moments of 8 bits follow those of f32, and take a quarter") {
  const auto make = [](nn::Parameter& parameter, const Shape& shape, bool decay) {
    parameter.name = decay ? "matrix" : "vector";
    parameter.value = Tensor::zeros(shape);
    parameter.grad = Tensor(shape);
    parameter.placement = {shape, Shape(shape.size(), 0)};
    parameter.decay = decay;
  };
  nn::Parameter matrix, vector, exact, exact_vector;
  for (nn::Parameter* one : {&matrix, &exact})
    make(*one, {30, 40}, true);
  for (nn::Parameter* one : {&vector, &exact_vector})
    make(*one, {40}, false);
  const nn::ParameterList coarse = {&matrix, &vector}, fine = {&exact, &exact_vector};
  EmaRecipe ema;
  ema.mode = "off";
  OptimizerRecipe recipe;
  recipe.moments = "8bit";
  recipe.clip = 0;
  recipe.weight_decay = 0;
  OptimizerRecipe f32 = recipe;
  f32.moments = "f32";
  Optimizer a(recipe, ema, coarse), b(f32, ema, fine);
  CHECK(a.state("adam_m_codes").parameters == nn::ParameterList{&matrix});
  CHECK(a.state("adam_v_scales").tensors[0].shape() == Shape{5});
  CHECK(a.state("adam_m").parameters == nn::ParameterList{&vector});
  CHECK(state_bytes(recipe, coarse) == 1200 * 2 + 2 * 5 * 4 + 40 * 8);
  for (int n = 0; n < 40; ++n) {
    for (const nn::ParameterList* list : {&coarse, &fine})
      for (const nn::Parameter* one : *list)
        for (std::size_t i = 0; i < one->grad.floats().size(); ++i)
          one->grad.floats()[i] =
              std::sin(static_cast<float>(i)) +
              0.5f * std::cos(static_cast<float>(n) * static_cast<float>(i + 1));
    a.update(1e-2, 1.0);
    b.update(1e-2, 1.0);
    if (n == 0)  // the moments of an update are those before the rounding
      CHECK(std::ranges::equal(matrix.value.floats(), exact.value.floats()));
  }
  CHECK(std::ranges::equal(vector.value.floats(), exact_vector.value.floats()));
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < 1200; ++i) {
    difference += std::pow(matrix.value.floats()[i] - exact.value.floats()[i], 2);
    all += std::pow(exact.value.floats()[i], 2);
  }
  CHECK(difference > 0);
  CHECK(std::sqrt(difference / all) < 0.05);
}

TEST_CASE(
    "optimizer: Muon moves hidden matrices by their orthogonal momentum, others as AdamW does") {
  const auto matrix = [](const std::string& name, bool hidden) {
    nn::Parameter parameter;
    parameter.name = name;
    parameter.value = Tensor({6, 4});
    parameter.grad = Tensor({6, 4});
    parameter.placement.global = {6, 4};
    parameter.hidden = hidden;
    for (std::size_t i = 0; i < 24; ++i)
      parameter.value.floats()[i] = std::sin(static_cast<float>(3 * i + 1));
    return parameter;
  };
  nn::Parameter hidden = matrix("hidden", true), table = matrix("table", false),
                alone = matrix("alone", false);
  const nn::ParameterList both = {&hidden, &table}, other = {&alone};
  OptimizerRecipe recipe;
  recipe.kind = "muon";
  recipe.momentum = 0.5;
  recipe.clip = 0;
  OptimizerRecipe adamw = recipe;
  adamw.kind = "adamw";
  EmaRecipe ema;
  ema.decay = 0.5;
  Optimizer muon(recipe, ema, both), usual(adamw, ema, other);
  CHECK(muon.state("muon_m").parameters == nn::ParameterList{&hidden});
  CHECK(muon.state("adam_v").parameters == nn::ParameterList{&table});
  CHECK(state_bytes(recipe, both) == 24 * (4 + 8));
  const Tensor momentum = Tensor::zeros({6, 4});
  Tensor average = hidden.value.clone();
  for (int n = 1; n <= 3; ++n) {
    for (std::size_t i = 0; i < 24; ++i)
      hidden.grad.floats()[i] = table.grad.floats()[i] = alone.grad.floats()[i] =
          std::cos(static_cast<float>(n * (i + 2)));
    const Tensor ahead({6, 4}), expected = hidden.value.clone();
    for (std::size_t i = 0; i < 24; ++i) {
      float& m = momentum.floats()[i];
      m = 0.5f * m + 2 * hidden.grad.floats()[i];
      ahead.floats()[i] = 0.5f * m + 2 * hidden.grad.floats()[i];
    }
    const Tensor orthogonal = ops::orthogonalize(ahead, 1e-8f);
    for (std::size_t i = 0; i < 24; ++i)
      expected.floats()[i] = expected.floats()[i] * (1 - 0.01f * 0.1f) -
                             0.01f * 0.2f * std::sqrt(6.f) * orthogonal.floats()[i];
    // The norm is that of all gradients, and what is not finite changes nothing.
    CHECK(muon.update(0.01, 2) == Approx(std::sqrt(2.0) * usual.update(0.01, 2)));
    const double decay = ema_beta(ema, n);
    for (std::size_t i = 0; i < 24; ++i) {
      CHECK(hidden.value.floats()[i] == Approx(expected.floats()[i]).epsilon(1e-4).margin(1e-6));
      CHECK(table.value.floats()[i] == alone.value.floats()[i]);
      average.floats()[i] =
          static_cast<float>(decay * average.floats()[i] + (1 - decay) * hidden.value.floats()[i]);
      CHECK(muon.ema()[0].floats()[i] == Approx(average.floats()[i]).margin(1e-6));
    }
  }
  const Tensor before = hidden.value.clone();
  table.grad.floats()[0] = HUGE_VALF;
  CHECK_FALSE(std::isfinite(muon.update(0.01, 2)));
  CHECK(std::ranges::equal(before.floats(), hidden.value.floats()));
}

TEST_CASE("optimizer: power-function averages have the gamma of the paper") {
  // Karras et al. 2024, table in appendix C: sigma_rel 0.05, 0.10, 0.20 -> gamma 16.97, 6.94, ...
  CHECK(power_ema_gamma(0.05) == Approx(16.97).margin(0.01));
  CHECK(power_ema_gamma(0.10) == Approx(6.94).margin(0.01));
  EmaRecipe ema;
  ema.mode = "power";
  ema.length = 0.1;
  CHECK(ema_beta(ema, 1) == 0.0);  // the first weights replace the initial ones
  CHECK(ema_beta(ema, 1000) == Approx(std::pow(0.999, power_ema_gamma(0.1) + 1)));
}

TEST_CASE("schedule: warm-up, then constant, line or half cosine") {
  OptimizerRecipe optimizer;
  optimizer.lr = 2.0;
  ScheduleRecipe schedule;
  schedule.warmup = 4;
  schedule.final = 0.05;
  const auto rate = [&](std::int64_t step) { return learning_rate(optimizer, schedule, step, 25); };
  CHECK(rate(0) == 0.5);
  CHECK(rate(3) == 2.0);
  CHECK(rate(4) == 2.0);
  CHECK(rate(24) == 2.0);
  schedule.shape = "linear";
  CHECK(rate(4) == 2.0);
  CHECK(rate(14) == Approx(2.0 * (0.05 + 0.95 * 0.5)));
  CHECK(rate(24) == Approx(0.1));
  schedule.shape = "cosine";
  CHECK(rate(4) == 2.0);
  CHECK(rate(9) == Approx(2.0 * (0.05 + 0.95 * 0.5 * (1 + std::sqrt(0.5)))));
  CHECK(rate(24) == Approx(0.1));
  CHECK(rate(1000) == Approx(0.1));  // a run continued beyond its planned end
  schedule.warmup = 0;
  CHECK(rate(0) == 2.0);
  CHECK(learning_rate(optimizer, schedule, 0, 1) == 2.0);
}
