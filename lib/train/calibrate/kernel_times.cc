// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate/kernel_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace vfm::train {
namespace {

constexpr std::size_t kTerms = 4;
using Terms = std::array<double, kTerms>;
using Square = std::array<Terms, kTerms>;

Terms terms_of(const AlikeCalls& call, double near) {
  return {1, call.flops, call.bytes, std::max(0.0, call.bytes - near)};
}

/// The coefficients of those of `used` that solve a x = b, others 0; nothing where one is below
/// zero, or cannot be told from others.
std::optional<Terms> solve(Square a, Terms b, unsigned used) {
  for (std::size_t i = 0; i < kTerms; ++i)
    if ((used >> i & 1U) == 0) {
      for (std::size_t j = 0; j < kTerms; ++j)
        a[i][j] = a[j][i] = 0;
      a[i][i] = 1, b[i] = 0;
    }
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (std::abs(a[i][i]) < 1e-9) return {};
    for (std::size_t r = i + 1; r < kTerms; ++r) {
      const double part = a[r][i] / a[i][i];
      for (std::size_t c = i; c < kTerms; ++c)
        a[r][c] -= part * a[i][c];
      b[r] -= part * b[i];
    }
  }
  Terms x{};
  for (std::size_t i = kTerms; i-- > 0;) {
    x[i] = b[i];
    for (std::size_t j = i + 1; j < kTerms; ++j)
      x[i] -= a[i][j] * x[j];
    x[i] /= a[i][i];
    if (x[i] < 0) return {};
  }
  return x;
}

/// Least squares of `calls` with caches of `near` bytes: keeps in `best` what is better.
void fit_near(const std::vector<AlikeCalls>& calls, double near, double& least,
              models::KernelRate& best) {
  double all = 0;
  for (const AlikeCalls& call : calls)
    all += call.calls * call.seconds;
  Square a{};
  Terms b{};
  for (const AlikeCalls& call : calls) {
    if (call.seconds <= 0) continue;
    const double weight = call.calls * call.seconds / all;
    const Terms terms = terms_of(call, near);
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t j = 0; j < kTerms; ++j)
        a[i][j] += weight * terms[i] * terms[j] / call.seconds / call.seconds;
      b[i] += weight * terms[i] / call.seconds;
    }
  }
  // To one size, so that what is left of a diagonal says how well terms can be told apart.
  Terms scale;
  for (std::size_t i = 0; i < kTerms; ++i)
    scale[i] = a[i][i] > 0 ? 1 / std::sqrt(a[i][i]) : 0;
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t j = 0; j < kTerms; ++j)
      a[i][j] *= scale[i] * scale[j];
    b[i] *= scale[i];
  }
  // Of those that are as good the first: of one size alone what grows with it.
  // Arithmetic takes no longer for coming from far.
  const bool computes = std::ranges::any_of(calls, [](const auto& call) { return call.flops > 0; });
  for (const unsigned used : {2U, 4U, 6U, 1U, 3U, 5U, 7U, 8U, 9U, 10U, 11U, 12U, 13U, 14U, 15U}) {
    if (computes && used >= 8) break;
    const std::optional<Terms> x = solve(a, b, used);
    if (!x) continue;
    models::KernelRate rate;
    rate.seconds = (*x)[0] * scale[0], rate.of_flop = (*x)[1] * scale[1];
    rate.of_byte = (*x)[2] * scale[2], rate.of_far_byte = (*x)[3] * scale[3];
    rate.near = rate.of_far_byte > 0 ? near : 0;
    double squares = 0;
    for (const AlikeCalls& call : calls) {
      if (call.seconds <= 0) continue;
      const double weight = call.calls * call.seconds / all;
      const double off = rate.of(call.flops, call.bytes) / call.seconds - 1;
      squares += weight * off * off, rate.error += weight * std::abs(off);
    }
    if (least >= 0 && squares > least - 1e-9) continue;
    least = squares;
    best = rate;
  }
}

}  // namespace

models::KernelRate fit_rate(const std::vector<AlikeCalls>& calls, bool caches) {
  if (calls.empty()) fail("a kernel was not called, so it has no rate");
  constexpr double kMebi = 1 << 20;
  models::KernelRate best;
  if (std::ranges::none_of(calls, [](const AlikeCalls& call) { return call.seconds > 0; }))
    return best;  // all is done within other kernels
  double least = -1;
  if (!caches) {
    fit_near(calls, std::numeric_limits<double>::infinity(), least, best);
    return best;
  }
  for (const double near : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0})
    fit_near(calls, near * kMebi, least, best);
  return best;
}

double KernelTimes::add(const Entries& counted, const std::vector<Entries>& timed) {
  // Of each name and each of its calls all times.
  std::map<std::string, std::vector<std::vector<double>>> all_seconds;
  for (const Entries& entries : timed) {
    std::map<std::string, std::size_t> seen;
    for (const KernelLog::Entry& entry : entries) {
      auto& of_name = all_seconds[entry.call.name];
      const std::size_t k = seen[entry.call.name]++;
      if (k == of_name.size()) of_name.emplace_back();
      of_name[k].push_back(entry.seconds);
    }
  }
  std::map<std::string, std::vector<double>> seconds;
  for (auto& [name, of_name] : all_seconds)
    for (std::vector<double>& one : of_name) {
      std::ranges::sort(one);
      seconds[name].push_back(one[one.size() / 4]);
    }
  // Of each name how often it is counted, and the bytes of all its calls.
  std::map<std::string, std::pair<std::size_t, double>> sums;
  for (const KernelLog::Entry& entry : counted) {
    auto& [calls, bytes] = sums[entry.call.name];
    ++calls, bytes += entry.call.bytes;
  }
  std::map<std::string, std::size_t> seen;
  double sum = 0;
  for (const KernelLog::Entry& entry : counted) {
    const KernelCall& call = entry.call;
    const std::vector<double>& own = seconds[call.name];
    const auto& [all, bytes] = sums[call.name];
    const std::size_t k = seen[call.name]++;
    if (own.size() != all && !own.empty() && call.flops > 0)
      fail("the CPU called '{}' {} times, and {} are counted", call.name, own.size(), all);
    double of_call = 0;
    if (own.size() == all)
      of_call = own[k];
    else if (bytes > 0)
      of_call = std::accumulate(own.begin(), own.end(), 0.0) * call.bytes / bytes;
    const Key key{call.name, call.type};
    kinds_[key] = call.kind;
    AlikeCalls& alike = calls_[key][{call.flops, call.bytes}];
    alike.flops = call.flops, alike.bytes = call.bytes;
    alike.seconds = (alike.seconds * alike.calls + of_call) / (alike.calls + 1);
    ++alike.calls;
    sum += of_call;
  }
  return sum;
}

std::vector<models::KernelRate> KernelTimes::rates() const {
  std::vector<models::KernelRate> rates;
  for (const auto& [key, alike] : calls_) {
    std::vector<AlikeCalls> calls;
    for (const auto& [size, one] : alike)
      calls.push_back(one);
    models::KernelRate& rate = rates.emplace_back(fit_rate(calls));
    rate.name = key.first, rate.type = key.second;
  }
  return rates;
}

std::vector<AlikeCalls> KernelTimes::calls_of(WorkKind kind, DType type, Pass pass) const {
  std::vector<AlikeCalls> calls;
  for (const auto& [key, alike] : calls_) {
    if (kinds_.at(key) != kind || key.second != type) continue;
    if (pass != Pass::both && key.first.ends_with("backward") != (pass == Pass::backward)) continue;
    for (const auto& [size, one] : alike)
      calls.push_back(one);
  }
  return calls;
}

}  // namespace vfm::train
