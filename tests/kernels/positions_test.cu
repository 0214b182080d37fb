// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <limits>

#include "kernel_test.h"
#include "positions.h"

using vfm::kernels::Positions;
using vfm::kernels::PositionsBackward;
using vfm::kernels::PositionsForward;
using namespace vfm::test;

namespace {

using Doubles = std::vector<double>;

struct Case {
  std::vector<std::array<int, 3>> grids;
  std::array<int, 3> rows;  // of the tables
  int width;
  int shift = 0;  // elements from an aligned address
  bool unit = true;
};

struct Numbers {
  std::array<std::vector<float>, 3> tables;
  std::vector<float> dy;
};

// Three table rows for each token, in the order of the tokens.
std::vector<std::array<int, 3>> places(const Case& k) {
  std::vector<std::array<int, 3>> result;
  for (const auto& g : k.grids)
    for (int t = 0; t < g[0]; ++t)
      for (int h = 0; h < g[1]; ++h)
        for (int w = 0; w < g[2]; ++w)
          result.push_back({t, h, w});
  return result;
}

std::vector<std::int32_t> packed(const Case& k) {
  std::vector<std::int32_t> result;
  int first = 0;
  for (const auto& g : k.grids) {
    result.insert(result.end(), {first, g[0], g[1], g[2]});
    first += g[0] * g[1] * g[2];
  }
  return result;
}

Numbers numbers(const Case& k) {
  Numbers n;
  for (unsigned i = 0; i < 3; ++i)
    n.tables[i] = noise(static_cast<std::size_t>(k.rows[i]) * k.width, i + 1);
  n.dy = noise(places(k).size() * k.width, 7);
  return n;
}

struct Reference {
  Doubles result, norms;
};

// What overflows in the kernel's f32 sum must here.
double norm_of(const double* e, int width) {
  double squares = 0;
  for (int i = 0; i < width; ++i)
    squares += e[i] * e[i];
  return 1e-6 + std::sqrt(double{static_cast<float>(squares)} / width);
}

Reference forward(const Case& k, const std::array<Doubles, 3>& tables) {
  Reference r;
  for (const auto& place : places(k)) {
    Doubles e(k.width);
    for (int axis = 0; axis < 3; ++axis)
      for (int i = 0; i < k.width; ++i)
        e[i] += tables[axis][static_cast<std::size_t>(place[axis]) * k.width + i];
    r.norms.push_back(k.unit ? norm_of(e.data(), k.width) : 1);
    for (const double v : e)
      r.result.push_back(v / r.norms.back());
  }
  return r;
}

std::array<Doubles, 3> backward(const Case& k, const Reference& r, const std::vector<float>& dy) {
  std::array<Doubles, 3> gradients;
  for (int axis = 0; axis < 3; ++axis)
    gradients[axis].resize(static_cast<std::size_t>(k.rows[axis]) * k.width);
  std::size_t token = 0;
  for (const auto& place : places(k)) {
    const double *y = r.result.data() + token * k.width, norm = r.norms[token], rms = norm - 1e-6;
    double product = 0;
    for (int i = 0; i < k.width; ++i)
      product += dy[token * k.width + i] * y[i] / k.width;
    const double along = k.unit && rms > 0 ? product * norm / rms : 0;
    for (int i = 0; i < k.width; ++i)
      for (int axis = 0; axis < 3; ++axis)
        gradients[axis][static_cast<std::size_t>(place[axis]) * k.width + i] +=
            (dy[token * k.width + i] - y[i] * along) / norm;
    ++token;
  }
  return gradients;
}

std::array<Doubles, 3> doubles(const Numbers& n) {
  std::array<Doubles, 3> result;
  for (int i = 0; i < 3; ++i)
    result[i].assign(n.tables[i].begin(), n.tables[i].end());
  return result;
}

std::vector<float> shifted(const Case& k, std::vector<float> values) {
  values.insert(values.begin(), k.shift, 0.f);
  return values;
}
std::vector<float> unshifted(const Case& k, const DeviceArray<float>& array) {
  auto values = array.host();
  values.erase(values.begin(), values.begin() + k.shift);
  return values;
}

void set(Positions& call, const Case& k, const DeviceArray<std::int32_t>& grids) {
  call.tokens = static_cast<std::int64_t>(places(k).size());
  call.width = k.width;
  call.unit = k.unit;
  call.samples = static_cast<int>(k.grids.size());
  call.grids = grids.get();
}

void compare(Checker& checker, const Case& k, const Numbers& n, double tolerance = 3e-6) {
  std::string name = std::to_string(k.grids.size()) + " samples, width " + std::to_string(k.width) +
                     (k.shift ? " shifted" : "") + (k.unit ? "" : " not unit");
  const std::size_t tokens = places(k).size(), size = tokens * k.width;
  const DeviceArray<std::int32_t> grids(packed(k));
  const DeviceArray<float> t(shifted(k, n.tables[0])), h(shifted(k, n.tables[1])),
      w(shifted(k, n.tables[2])), result(size + k.shift), norms(tokens), dy(shifted(k, n.dy)),
      scratch(2 * tokens);
  PositionsForward call;
  set(call, k, grids);
  call.tables[0] = t.get() + k.shift;
  call.tables[1] = h.get() + k.shift;
  call.tables[2] = w.get() + k.shift;
  call.result = result.get() + k.shift, call.norms = norms.get();
  need(positions_forward(call, nullptr), "forward");
  const Reference expected = forward(k, doubles(n));
  checker.close(name + " result", unshifted(k, result), expected.result, tolerance);
  checker.close(name + " norms", norms.host(), expected.norms, tolerance);

  const auto gradients = backward(k, expected, n.dy);
  std::array<std::vector<float>, 3> first;
  for (int again = 0; again < 2; ++again) {
    PositionsBackward back;
    set(back, k, grids);
    const DeviceArray<float> gt(n.tables[0].size()), gh(n.tables[1].size()), gw(n.tables[2].size());
    back.result = call.result, back.norms = norms.get(), back.dy = dy.get() + k.shift;
    back.scratch = scratch.get();
    const std::array<const DeviceArray<float>*, 3> out{&gt, &gh, &gw};
    for (int i = 0; i < 3; ++i)
      back.rows[i] = k.rows[i], back.gradients[i] = out[i]->get();
    // The second time without the middle table.
    if (again == 1) back.gradients[1] = nullptr;
    need(positions_backward(back, nullptr), "backward");
    for (int i = 0; i < 3; ++i) {
      const auto got = out[i]->host();
      if (again == 0) {
        first[i] = got;
        checker.close(name + " gradient " + std::to_string(i), got, gradients[i], tolerance);
      } else if (i == 1) {
        checker.check(name + " an unwanted gradient is left alone",
                      std::all_of(got.begin(), got.end(), [](float v) { return std::isnan(v); }));
      } else {
        checker.check(name + " the same bits again",
                      got.empty() || std::memcmp(got.data(), first[i].data(),
                                                 got.size() * sizeof(float)) == 0);
      }
    }
  }
}

// The formula of backward itself, against differences of the double forward.
void differences(Checker& checker) {
  const Case k{{{2, 2, 3}, {1, 3, 1}}, {3, 3, 3}, 5};
  const Numbers n = numbers(k);
  const auto tables = doubles(n);
  const auto gradients = backward(k, forward(k, tables), n.dy);
  const auto loss = [&](const std::array<Doubles, 3>& at) {
    const Reference r = forward(k, at);
    double sum = 0;
    for (std::size_t i = 0; i < r.result.size(); ++i)
      sum += r.result[i] * n.dy[i];
    return sum;
  };
  // Large enough to stand out of norm_of's rounding to f32.
  const double step = 1e-2;
  for (int axis = 0; axis < 3; ++axis) {
    Doubles slopes;
    for (std::size_t i = 0; i < tables[axis].size(); ++i) {
      auto up = tables, down = tables;
      up[axis][i] += step, down[axis][i] -= step;
      slopes.push_back((loss(up) - loss(down)) / (2 * step));
    }
    checker.close("differences " + std::to_string(axis), slopes, gradients[axis], 1e-3);
  }
}

void strange_values(Checker& checker) {
  const float inf = std::numeric_limits<float>::infinity();
  const Case k{{{2, 3, 4}, {1, 2, 2}}, {2, 3, 5}, 132};
  for (const float odd : {std::nanf(""), inf, -inf}) {
    Numbers n = numbers(k);
    n.tables[2][3 * k.width + 70] = odd;
    compare(checker, k, n);
    n = numbers(k);
    n.dy[8 * k.width + 5] = odd;
    compare(checker, k, n);
  }
  Numbers n = numbers(k);
  std::fill_n(n.tables[1].begin(), k.width, 1e30f);  // squares overflow: zeros come out
  compare(checker, k, n);
  // e = 0, whose norm is 1e-6, in every token of the first frame and row.
  n = numbers(k);
  for (auto& table : n.tables)
    std::fill(table.begin(), table.end(), 0.f);
  compare(checker, k, n);
}

void refusals(Checker& checker) {
  PositionsForward call;
  checker.check("nothing", positions_forward(call, nullptr) == 0);
  call.tokens = 1;
  call.width = 4;
  checker.check("no samples", positions_forward(call, nullptr) == cudaErrorInvalidValue);
  call.tokens = 0, call.width = -1;
  checker.check("width", positions_forward(call, nullptr) == cudaErrorInvalidValue);
  call.width = 4, call.tokens = 1l << 31;
  checker.check("tokens", positions_forward(call, nullptr) == cudaErrorInvalidValue);
  PositionsBackward back;
  back.rows[1] = -1;
  checker.check("rows", positions_backward(back, nullptr) == cudaErrorInvalidValue);
}

void time_sizes(const Case& k) {
  const Numbers n = numbers(k);
  const std::size_t tokens = places(k).size(), size = tokens * k.width;
  const DeviceArray<std::int32_t> grids(packed(k));
  const DeviceArray<float> t(n.tables[0]), h(n.tables[1]), w(n.tables[2]), result(size),
      norms(tokens), dy(n.dy), scratch(2 * tokens);
  PositionsForward call;
  set(call, k, grids);
  call.tables[0] = t.get(), call.tables[1] = h.get(), call.tables[2] = w.get();
  call.result = result.get(), call.norms = norms.get();
  const std::string name = "positions " + std::to_string(k.grids.size()) + " samples ";
  time_launch(name + "forward", 4.0 * static_cast<double>(size), 0,
              [&] { return positions_forward(call, nullptr); });
  PositionsBackward back;
  set(back, k, grids);
  const DeviceArray<float> gt(n.tables[0].size()), gh(n.tables[1].size()), gw(n.tables[2].size());
  back.result = result.get(), back.norms = norms.get(), back.dy = dy.get();
  back.scratch = scratch.get();
  back.gradients[0] = gt.get(), back.gradients[1] = gh.get(), back.gradients[2] = gw.get();
  for (int i = 0; i < 3; ++i)
    back.rows[i] = k.rows[i];
  time_launch(name + "backward", 8.0 * static_cast<double>(size), 0,
              [&] { return positions_backward(back, nullptr); });
}

void compare_sinusoid(Checker& checker, std::int64_t rows, int width) {
  std::vector<float> times = noise(static_cast<std::size_t>(rows), 5);
  if (rows > 1) times[1] = 0;
  const std::size_t half = static_cast<std::size_t>(width) / 2;
  std::vector<double> expected;
  for (const float time : times)
    for (std::size_t i = 0; i < 2 * half; ++i) {
      const double angle =
          time * std::exp(-std::log(10000.0) * static_cast<double>(i % half) / half);
      expected.push_back(i < half ? std::cos(angle) : std::sin(angle));
    }
  const DeviceArray<float> in(times), out(expected.size());
  need(vfm::kernels::sinusoid(in.get(), rows, width, out.get(), nullptr), "sinusoid");
  checker.close("sinusoid " + std::to_string(rows) + " x " + std::to_string(width), out.host(),
                expected, 1e-7);
}

void tests(Checker& checker) {
  for (const int width : {2, 6, 512, 4096})
    for (const std::int64_t rows : {0, 1, 7})
      compare_sinusoid(checker, rows, width);
  checker.check("an odd width of the sinusoid",
                vfm::kernels::sinusoid(nullptr, 1, 3, nullptr, nullptr) == cudaErrorInvalidValue);
  for (const int width : {1, 3, 4, 66, 68, 1023, 1028, 2052, 4100, 6145, 6148}) {
    const Case k{{{2, 2, 3}, {0, 4, 4}, {1, 3, 1}}, {3, 4, 5}, width};
    compare(checker, k, numbers(k));
  }
  for (const int width : {64, 65}) {
    for (const Case& k :
         {Case{{}, {2, 2, 2}, width}, Case{{{0, 3, 3}}, {2, 3, 3}, width},
          Case{{{1, 1, 1}}, {1, 1, 1}, width}, Case{{{1, 7, 11}}, {1, 8, 11}, width},
          Case{
              {{3, 4, 5}, {2, 0, 3}, {5, 1, 1}, {1, 1, 9}, {1, 6, 1}, {2, 2, 0}}, {6, 7, 9}, width},
          Case{{{4, 5, 3}, {2, 3, 7}}, {4, 5, 7}, width, 1},
          Case{{{4, 5, 3}, {2, 3, 7}}, {4, 5, 7}, width, 0, false}})
      compare(checker, k, numbers(k));
  }
  strange_values(checker);
  differences(checker);
  refusals(checker);
  if (timed()) {
    time_sizes({{{8, 32, 32}}, {16, 64, 64}, 4096});
    time_sizes({{{1, 64, 64}, {1, 64, 64}}, {16, 64, 64}, 4096});
  }
}

}  // namespace

int main() {
  return run(tests);
}
