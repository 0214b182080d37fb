// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "kernel_test.h"
#include "modulate_backward.h"

using vfm::kernels::ModulateBackward;
using vfm::kernels::ModulateRun;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

using Doubles = std::vector<double>;

// What a call gets, widened, and what it should give, by the formula in double.
struct Problem {
  int tokens = 0, width = 0, rows = 0;
  bool branched = true, streamed = true, centred = true, normed = true;
  std::vector<ModulateRun> runs;
  std::vector<int> row_of;                                   // of each token
  Doubles stream, branch, dnormed, dstream, table, moments;  // table: shift, scale, gate
  Doubles dx, dbranch, partial, sums;

  double table_at(int token, int part, int i) const {
    return table[(row_of[token] * 3l + part) * width + i];
  }
};

Problem make_problem(const std::vector<int>& lengths, int width, int rows, bool branched,
                     bool streamed) {
  Problem p;
  p.width = width, p.rows = rows, p.branched = branched, p.streamed = streamed;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    // Rows come back, and the last one has no runs if there are many.
    const int row = static_cast<int>(r * 5 / 3) % std::max(1, rows - 1);
    p.runs.push_back({p.tokens, p.tokens + lengths[r], row});
    p.row_of.insert(p.row_of.end(), lengths[r], row);
    p.tokens += lengths[r];
  }
  return p;
}

void set_moments(Problem& p) {
  p.moments.clear();
  for (int t = 0; t < p.tokens; ++t) {
    double mean = 0, variance = 0;
    for (int i = 0; i < p.width; ++i)
      if (p.centred) mean += p.stream[t * static_cast<long>(p.width) + i] / p.width;
    for (int i = 0; i < p.width; ++i)
      variance += std::pow(p.stream[t * static_cast<long>(p.width) + i] - mean, 2) / p.width;
    p.moments.insert(p.moments.end(), {mean, 1 / std::sqrt(variance + 1e-6)});
  }
}

void solve(Problem& p) {
  const auto size = static_cast<std::size_t>(p.tokens) * p.width;
  const long width = p.width;
  p.dx.assign(size, 0), p.dbranch.assign(size, 0);
  p.partial.assign(p.runs.size() * 3 * width, 0);
  p.sums.assign(p.rows * 3 * width, 0);
  for (std::size_t r = 0; r < p.runs.size(); ++r) {
    double* partial = &p.partial[r * 3 * width];
    for (long t = p.runs[r].begin; t < p.runs[r].end; ++t) {
      const double center = p.moments[2 * t], rstd = p.moments[2 * t + 1];
      double mean = 0, product = 0;
      const auto n = [&](long i) { return (p.stream[t * width + i] - center) * rstd; };
      const auto g = [&](long i) { return p.dnormed[t * width + i] * (1 + p.table_at(t, 1, i)); };
      for (long i = 0; i < width; ++i)
        mean += p.centred ? g(i) / p.width : 0, product += g(i) * n(i) / p.width;
      for (long i = 0; i < width; ++i) {
        const long at = t * width + i;
        p.dx[at] = rstd * (g(i) - mean - n(i) * product) + (p.streamed ? p.dstream[at] : 0);
        partial[i] += p.dnormed[at];
        partial[width + i] += p.dnormed[at] * n(i);
        if (!p.branched) continue;
        p.dbranch[at] = p.dx[at] * p.table_at(t, 2, i);
        partial[2 * width + i] += p.dx[at] * p.branch[at];
      }
    }
    for (long i = 0; i < 3 * width; ++i)
      p.sums[p.runs[r].row * 3 * width + i] += partial[i];
  }
}

template <class T>
Doubles widened(const std::vector<T>& values) {
  Doubles result;
  for (const T& v : values)
    result.push_back(value(v));
  return result;
}

// Runs the kernel twice on p (without moments nor results) and compares; then in place.
template <class T>
void compare(Checker& checker, Problem p, const std::string& what,
             std::vector<float> dnormed_values = {}, std::vector<float> stream = {}) {
  const auto size = static_cast<std::size_t>(p.tokens) * p.width;
  const auto dstream = noise(size, 2), table = noise(3ul * p.width * p.rows, 3);
  if (stream.empty()) stream = noise(size, 1);
  if (dnormed_values.empty())
    dnormed_values = p.normed ? noise(size, 4) : std::vector<float>(size, 0.f);
  const auto dnormed = as<T>(dnormed_values), branch = as<T>(noise(size, 5));
  p.stream = widened(stream), p.dstream = widened(dstream), p.table = widened(table);
  p.dnormed = widened(dnormed), p.branch = widened(branch);
  set_moments(p);
  const std::vector<float> moments(p.moments.begin(), p.moments.end());
  p.moments = widened(moments);
  solve(p);

  const DeviceArray<float> d_stream(stream), d_dstream(dstream), d_table(table), d_moments(moments);
  const DeviceArray<T> d_dnormed(dnormed), d_branch(branch), dbranch(size);
  const DeviceArray<ModulateRun> d_runs(p.runs);
  const DeviceArray<float> dx(size), partial(p.partial.size()), sums(p.sums.size());
  ModulateBackward call;
  call.width = p.width;
  call.centred = p.centred;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.stream = d_stream.get(), call.moments = d_moments.get();
  call.modulation = d_table.get();
  call.modulation_stride = call.gate_stride = 3 * p.width;
  if (!p.normed) call.stream = call.moments = call.modulation = nullptr;
  if (p.branched) {
    call.branch = d_branch.get(), call.gate = d_table.get() + 2 * p.width;
    call.dbranch = dbranch.get();
  }
  if (p.normed) call.dnormed = d_dnormed.get();
  if (p.streamed) call.dstream = d_dstream.get();
  call.dx = dx.get();
  call.runs = d_runs.get(), call.run_count = static_cast<std::int64_t>(p.runs.size());
  call.partial = partial.get();
  float* to = nullptr;  // what dx is added to
  const auto launch = [&] {
    need(modulate_backward(call, to, nullptr), "backward");
    need(modulate_reduce(call, p.rows, sums.get(), nullptr), "reduce");
  };
  launch();
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") + what + " " +
                           std::to_string(p.tokens) + " x " + std::to_string(p.width);
  const auto first_dx = dx.host(), first_sums = sums.host(), first_partial = partial.host();
  checker.close(name + " dx", first_dx, p.dx, 3e-6);
  checker.close(name + " partial", first_partial, p.partial, 3e-6);
  checker.close(name + " sums", first_sums, p.sums, 3e-6);
  if (p.branched)
    checker.close(name + " dbranch", dbranch.host(), p.dbranch, sizeof(T) == 2 ? 4e-3 : 3e-6);
  if (p.streamed) call.dx = d_dstream.get();
  const auto before = noise(size, 6);
  const DeviceArray<float> dextra(before);
  to = dextra.get();
  launch();
  const auto added = dextra.host();
  bool each = true;  // as one addition; NaN is not the same as itself
  for (std::size_t i = 0; i < size; ++i) {
    const float sum = before[i] + first_dx[i];
    each = each && (added[i] == sum || (std::isnan(added[i]) && std::isnan(sum)));
  }
  checker.check(name + " dx is added to dextra", each);
  const auto again = p.streamed ? d_dstream.host() : dx.host();
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
  };
  checker.check(name + " in place, the same bits", same(again, first_dx) &&
                                                       same(sums.host(), first_sums) &&
                                                       same(partial.host(), first_partial));
}

// The formula itself: `solve` against differences of the forward formula, in double.
void check_formula(Checker& checker, bool centred) {
  Problem p = make_problem({3, 2, 1}, 8, 3, true, true);
  p.centred = centred;
  const auto size = static_cast<std::size_t>(p.tokens) * p.width;
  const Doubles dnormed = widened(noise(size, 1)), dstream = widened(noise(size, 2));
  p.dnormed = dnormed, p.dstream = dstream;
  p.branch = widened(noise(size, 3)), p.table = widened(noise(3ul * p.width * p.rows, 4));
  Doubles x = widened(noise(size, 5));
  const auto forward = [&] {
    p.stream = x;
    for (std::size_t at = 0; at < size; ++at)
      p.stream[at] += p.table_at(at / p.width, 2, at % p.width) * p.branch[at];
    set_moments(p);
    double loss = 0;
    for (std::size_t at = 0; at < size; ++at) {
      const int t = at / p.width, i = at % p.width;
      const double n = (p.stream[at] - p.moments[2 * t]) * p.moments[2 * t + 1];
      loss += dstream[at] * p.stream[at] +
              dnormed[at] * (n * (1 + p.table_at(t, 1, i)) + p.table_at(t, 0, i));
    }
    return loss;
  };
  forward();
  solve(p);
  const auto slopes = [&](Doubles& along) {
    Doubles result;
    for (double& v : along) {
      const double before = v;
      v = before + 1e-5;
      const double above = forward();
      v = before - 1e-5;
      result.push_back((above - forward()) / 2e-5);
      v = before;
    }
    return result;
  };
  checker.close("dx by differences", p.dx, slopes(x), 1e-7);
  checker.close("dbranch by differences", p.dbranch, slopes(p.branch), 1e-7);
  checker.close("sums by differences", p.sums, slopes(p.table), 1e-7);
}

void check_adversarial(Checker& checker) {
  const Problem p = make_problem({4, 4}, 36, 3, true, true);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(), 1e30f, 1e-40f}) {
    auto dnormed = noise(8 * 36, 6);
    dnormed[2 * 36 + 5] = bad;
    compare<float>(checker, p, "with " + std::to_string(bad), dnormed);
    compare<__nv_bfloat16>(checker, p, "with " + std::to_string(bad), dnormed);
  }
  // Far from zero without a variance: what stands beside the row must not matter.
  compare<float>(checker, make_problem({1}, 64, 1, true, true), "constant", {},
                 std::vector<float>(64, 3e38f));
}

void time_bf16(int tokens, int width, int length) {
  const auto size = static_cast<std::size_t>(tokens) * width;
  const DeviceArray<float> stream(noise(size, 1)), table(noise(3ul * width, 2)), dstream(size),
      moments(noise(2ul * tokens, 3));
  const DeviceArray<__nv_bfloat16> branch(as<__nv_bfloat16>(noise(size, 4))),
      dnormed(as<__nv_bfloat16>(noise(size, 5))), dbranch(size);
  std::vector<ModulateRun> runs;
  for (int begin = 0; begin < tokens; begin += length)
    runs.push_back({begin, std::min(tokens, begin + length), 0});
  const DeviceArray<ModulateRun> d_runs(runs);
  const DeviceArray<float> partial(runs.size() * 3 * width), sums(3ul * width);
  cudaMemset(dstream.get(), 0, size * sizeof(float));
  ModulateBackward call;
  call.width = width, call.type = Type::bf16;
  call.stream = stream.get(), call.moments = moments.get(), call.branch = branch.get();
  call.gate = table.get() + 2 * width, call.modulation = table.get();
  call.gate_stride = call.modulation_stride = 3 * width;
  call.dnormed = dnormed.get(), call.dstream = dstream.get(), call.dx = dstream.get();
  call.dbranch = dbranch.get(), call.runs = d_runs.get();
  call.run_count = static_cast<std::int64_t>(runs.size()), call.partial = partial.get();
  const std::string name = std::to_string(tokens) + " x " + std::to_string(width) + ", runs of " +
                           std::to_string(length);
  time_launch("modulate backward bf16 " + name, 18.0 * static_cast<double>(size), 0,
              [&] { return modulate_backward(call, nullptr, nullptr); });
  const DeviceArray<float> dextra(size);
  time_launch("modulate backward bf16, added, " + name, 26.0 * static_cast<double>(size), 0,
              [&] { return modulate_backward(call, dextra.get(), nullptr); });
  time_launch("modulate reduce " + name, 12.0 * static_cast<double>(runs.size()) * width, 0,
              [&] { return modulate_reduce(call, 1, sums.get(), nullptr); });
}

void tests(Checker& checker) {
  check_formula(checker, true);
  check_formula(checker, false);
  for (const bool branched : {false, true})
    for (const bool streamed : {false, true})
      for (const int width : {4, 124, 192, 1028}) {
        const auto p = make_problem({3, 1, 0, 5, 2}, width, 4, branched, streamed);
        compare<float>(checker, p, "small");
        compare<__nv_bfloat16>(checker, p, "small");
      }
  for (const int width : {4096, 4100, 5120, 8192, 9220}) {
    const auto p = make_problem({2, 1}, width, 1, true, true);
    compare<float>(checker, p, "wide");
    compare<__nv_bfloat16>(checker, p, "wide");
  }
  for (const int width : {124, 4100}) {
    auto p = make_problem({3, 2}, width, 2, true, true);
    p.centred = false;
    compare<float>(checker, p, "rms");
    compare<__nv_bfloat16>(checker, p, "rms");
  }
  for (const bool branched : {false, true})
    for (const int width : {4, 124, 4100}) {
      auto p = make_problem({3, 1, 0, 5}, width, 2, branched, true);
      p.normed = false;
      compare<float>(checker, p, "without a norm");
      compare<__nv_bfloat16>(checker, p, "without a norm");
    }
  compare<__nv_bfloat16>(checker, make_problem({64, 64, 17}, 40, 2, true, true), "long");
  compare<float>(checker, make_problem(std::vector<int>(300, 1), 20, 9, true, false), "many runs");
  compare<float>(checker, make_problem({}, 16, 2, true, true), "empty");
  check_adversarial(checker);
  ModulateBackward odd;
  odd.width = 6, odd.run_count = 1;
  checker.check("an odd width is refused",
                modulate_backward(odd, nullptr, nullptr) == cudaErrorInvalidValue &&
                    modulate_reduce(odd, 1, nullptr, nullptr) == cudaErrorInvalidValue);
  checker.check("no runs are no error",
                modulate_backward(ModulateBackward{}, nullptr, nullptr) == 0);
  if (!timed()) return;
  time_bf16(8192, 4096, 64);
  time_bf16(8192, 4096, 63);
  time_bf16(8192, 4096, 32);
  time_bf16(8192, 1024, 64);
  time_bf16(8192, 1024, 16);
  time_bf16(8192, 5120, 64);
}

}  // namespace

int main() {
  return run(tests);
}
