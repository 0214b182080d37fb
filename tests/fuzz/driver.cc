// Runs a fuzz target on its seeds and on mutations of them: bytes flipped, cut, repeated, joined,
// and numbers made huge. Same inputs at every run. Usage: x_fuzz [ITERATIONS [SEED]]
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/philox.h"
#include "fuzz.h"

namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed, vfm::Purpose::test) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_.bits(i_++) % n; }

 private:
  vfm::Random random_;
  std::uint64_t i_ = 0;
};

void mutate_once(std::string& text, const std::vector<std::string>& seeds, Dice& dice) {
  static const char* const tokens[] = {"\xff\xff\xff\xff\xff\xff\xff\x7f",
                                       "9223372036854775808",
                                       "-1",
                                       "{",
                                       "[",
                                       "\"",
                                       "\0",
                                       "1e999",
                                       "null",
                                       "\\ud800",
                                       "999999999"};
  const std::size_t at = dice.below(text.size() + 1);
  switch (dice.below(7)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << dice.below(8)));
      break;
    case 1:
      if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
      break;
    case 2:
      text.resize(at);
      break;
    case 3:
      text.erase(at, dice.below(16));
      break;
    case 4:
      text.insert(at, text.substr(dice.below(text.size() + 1), dice.below(64)));
      break;
    case 5:
      text.insert(at, tokens[dice.below(std::size(tokens))]);
      break;
    default: {
      const std::string& other = seeds[dice.below(seeds.size())];
      text = text.substr(0, at) + other.substr(dice.below(other.size() + 1));
    }
  }
}

void run_on(const std::string& text) {
  // A copy of exactly this size, so that the sanitizer sees a read one byte past the end.
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.shrink_to_fit();
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const long iterations = argc > 1 ? std::atol(argv[1]) : 20000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::vector<std::string> seeds = fuzz_seeds();
  for (const std::string& text : seeds)
    run_on(text);
  Dice dice(seed);
  for (long i = 0; i < iterations; ++i) {
    std::string text = seeds[dice.below(seeds.size())];
    for (std::size_t n = 1 + dice.below(5); n > 0; --n)
      mutate_once(text, seeds, dice);
    run_on(text);
  }
  std::printf("%zu seeds and %ld mutations passed\n", seeds.size(), iterations);
  return 0;
}
