// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy.h"
#include "kernel_test.h"

using namespace vfm::test;

namespace {

using vfm::kernels::CrossEntropy;

// In two shares, as ranks have them: each column's loss and gradient is that of the whole.
void compare_shares(Checker& checker, int tokens, int vocabulary, int first) {
  const auto logits = noise(static_cast<std::size_t>(tokens) * vocabulary, 1);
  std::vector<std::int32_t> targets(static_cast<std::size_t>(tokens));
  for (int i = 0; i < tokens; ++i)
    targets[i] = i % 4 == 2 ? -1 : (i * 31 + 7) % vocabulary;
  const DeviceArray<float> whole(logits), losses(static_cast<std::size_t>(tokens)),
      parts(static_cast<std::size_t>(4 * tokens));
  const DeviceArray<std::int32_t> list(targets);
  CrossEntropy call;
  call.tokens = tokens, call.vocabulary = vocabulary;
  call.z_loss = 1e-2f, call.scale = 0.5f;
  call.logits = whole.get(), call.targets = list.get(), call.losses = losses.get();
  need(cross_entropy(call, nullptr), "cross-entropy");
  const auto columns = [&](const std::vector<float>& of, int begin, int end) {
    std::vector<float> some;
    for (int i = 0; i < tokens; ++i)
      some.insert(some.end(), of.begin() + i * vocabulary + begin,
                  of.begin() + i * vocabulary + end);
    return some;
  };
  const std::vector<float> expected = losses.host();
  const DeviceArray<float> low(columns(logits, 0, first)), high(columns(logits, first, vocabulary));
  for (const bool both : {false, true})
    for (const bool last : {false, true}) {
      call.first = last ? first : 0;
      call.vocabulary = last ? vocabulary - first : first;
      call.logits = (last ? high : low).get();
      call.part = parts.get() + (last ? 2 * tokens : 0);
      call.parts = parts.get(), call.shares = 2;
      need(both ? cross_entropy(call, nullptr) : cross_entropy_part(call, nullptr), "a share");
      if (!both) continue;
      const std::string name = std::to_string(tokens) + " x " + std::to_string(vocabulary) +
                               (last ? ", last share" : ", first share");
      checker.close(name + " losses", losses.host(),
                    std::vector<double>(expected.begin(), expected.end()), 3e-6);
      const auto gradient = columns(whole.host(), call.first, call.first + call.vocabulary);
      checker.close(name + " gradient", (last ? high : low).host(),
                    std::vector<double>(gradient.begin(), gradient.end()), 3e-6);
    }
}

void compare(Checker& checker, int tokens, int vocabulary, float z_loss, float scale, float spread,
             float odd = 0) {
  auto logits = noise(static_cast<std::size_t>(tokens) * vocabulary, 1);
  for (float& v : logits)
    v *= spread;
  if (odd != 0) logits[vocabulary / 2] = odd;
  std::vector<std::int32_t> targets(static_cast<std::size_t>(tokens));
  for (int i = 0; i < tokens; ++i)
    targets[i] = i % 4 == 2 ? -1 : (i * 31 + 7) % vocabulary;
  std::vector<double> losses(tokens), gradient(logits.size());
  for (int i = 0; i < tokens; ++i) {
    const long row = i * static_cast<long>(vocabulary);
    if (targets[i] < 0) continue;
    double largest = -1e300, sum = 0;
    for (int v = 0; v < vocabulary; ++v)
      largest = std::max<double>(largest, logits[row + v]);
    for (int v = 0; v < vocabulary; ++v)
      sum += std::exp(logits[row + v] - largest);
    const double lse = largest + std::log(sum);
    losses[i] = lse - logits[row + targets[i]] + z_loss * lse * lse;
    for (int v = 0; v < vocabulary; ++v)
      gradient[row + v] = scale * (std::exp(logits[row + v] - lse) * (1 + 2 * z_loss * lse) -
                                   (v == targets[i] ? 1 : 0));
  }
  const DeviceArray<float> device(logits), out(static_cast<std::size_t>(tokens));
  const DeviceArray<std::int32_t> list(targets);
  CrossEntropy call;
  call.tokens = tokens, call.vocabulary = vocabulary;
  call.z_loss = z_loss, call.scale = scale;
  call.logits = device.get(), call.targets = list.get(), call.losses = out.get();
  need(cross_entropy(call, nullptr), "cross-entropy");
  const std::string name = std::to_string(tokens) + " x " + std::to_string(vocabulary);
  // The exponent is a difference of logits, and has their rounding.
  const double tolerance = 3e-6 * std::max(1.f, spread / 4);
  checker.close(name + " losses", out.host(), losses, 3e-6);
  if (scale != 0)
    checker.close(name + " gradient", device.host(), gradient, tolerance);
  else
    checker.check(name + " logits are left alone", device.host() == logits);
}

void tests(Checker& checker) {
  for (const int vocabulary : {1, 5, 511, 512, 1300})
    for (const float scale : {0.f, 1.f, 0.25f})
      compare(checker, 7, vocabulary, scale == 1 ? 1e-2f : 0.f, scale, 2);
  compare_shares(checker, 7, 1300, 650);
  compare_shares(checker, 5, 40, 1);
  compare(checker, 3, 40, 1e-4f, 1, 80);  // far apart, but not too far
  // One token: a loss as large as that would hide the others'.
  compare(checker, 1, 40, 0, 1, 1, 1e30f);
  compare(checker, 1, 64, 0, 1, 1, -1e30f);
  const DeviceArray<float> p(4);
  CrossEntropy bad;
  checker.check("nothing is no error", cross_entropy(bad, nullptr) == 0);
  bad.tokens = 1, bad.logits = bad.losses = p.get();
  checker.check("no vocabulary is refused", cross_entropy(bad, nullptr) == cudaErrorInvalidValue);
  checker.check("a share without a vocabulary is refused",
                cross_entropy_part(bad, nullptr) == cudaErrorInvalidValue);
  bad.vocabulary = 1, bad.parts = p.get();
  checker.check("no shares are refused", cross_entropy(bad, nullptr) == cudaErrorInvalidValue);
  bad.tokens = -1, bad.parts = nullptr;
  checker.check("tokens below zero are refused",
                cross_entropy(bad, nullptr) == cudaErrorInvalidValue);
  if (!timed()) return;
  constexpr int kTokens = 4096, kVocabulary = 64000;
  const DeviceArray<float> logits(static_cast<std::size_t>(kTokens) * kVocabulary), out(kTokens);
  const DeviceArray<std::int32_t> list(std::vector<std::int32_t>(kTokens, 3));
  cudaMemset(logits.get(), 0, sizeof(float) * kTokens * kVocabulary);
  CrossEntropy call;
  call.tokens = kTokens, call.vocabulary = kVocabulary, call.scale = 1;
  call.logits = logits.get(), call.targets = list.get(), call.losses = out.get();
  time_launch("cross-entropy", 8. * kTokens * kVocabulary, 0,
              [&] { return cross_entropy(call, nullptr); });
}

}  // namespace

int main() {
  return run(tests);
}
