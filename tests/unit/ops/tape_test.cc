// SPDX-License-Identifier: Apache-2.0
#include "ops/tape.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/check.h"
#include "ops/exchange.h"
#include "ops/matmul/linear.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

Tensor ones(Shape shape) {
  Tensor t(std::move(shape));
  std::ranges::fill(t.floats(), 1.f);
  return t;
}

}  // namespace

TEST_CASE("a gradient passes through a reshape") {
  const Tensor x = noise_tensor({6, 2}, 1), gradient = Tensor::zeros({6, 2});
  Tape tape;
  tape.watch(x, gradient);
  const Tensor y = silu(tape, x.reshape({3, 4}));
  CHECK(tape.wants_grad(y.reshape({12})));
  const Tensor z = silu(tape, y.reshape({2, 6}));
  tape.backward(z.reshape({12, 1}), ones({12, 1}));
  CHECK(std::ranges::all_of(gradient.floats(), [](float v) { return v != 0; }));
}

TEST_CASE("a view of a part is refused, not forgotten") {
  const Tensor x = noise_tensor({4, 2}, 1), gradient = Tensor::zeros({4, 2});
  Tape tape;
  tape.watch(x, gradient);
  CHECK_THROWS_AS(silu(tape, x.rows(0, 2)), Error);  // the same first byte
  CHECK_THROWS_AS(silu(tape, x.rows(1, 3)), Error);
  CHECK_THROWS_AS(silu(tape, x.rows(3, 4)), Error);
  const Tensor whole = noise_tensor({8, 2}, 2);
  Tape second;
  second.watch(whole.rows(2, 4), Tensor::zeros({2, 2}));
  CHECK_THROWS_AS(second.wants_grad(whole), Error);
  CHECK_FALSE(second.wants_grad(whole.rows(0, 2)));
  CHECK_FALSE(second.wants_grad(whole.rows(4, 8)));
  CHECK(second.wants_grad(whole.rows(2, 4)));
}

TEST_CASE("a rank without rows takes part in what goes back") {
  // What an exchange makes of no rows may be rows of others, and the other way round.
  const Tensor none({0, 2}), rows = ones({3, 2});
  const Tensor w = ones({4, 2}), dw = Tensor::zeros({4, 2});
  const Tensor first = ones({2, 2}), of_first = Tensor::zeros({2, 2});
  int forward = 0, back = 0;
  const Exchange arrive{[&](const Tensor& in) {
                          CHECK(in.size(0) == 0);
                          ++forward;
                          return rows.clone();
                        },
                        [&](const Tensor& dy) {
                          CHECK(dy.size(0) == 3);
                          ++back;
                          return Tensor(Shape{0, 2});
                        }};
  Tape tape;
  tape.watch(first, of_first);
  tape.watch(w, dw);
  const Tensor empty = linear(tape, none, first);
  const Tensor met = run_exchange(tape, empty, arrive);
  const Tensor y = linear(tape, met, w);
  tape.backward(y, ones({3, 4}));
  CHECK(forward == 1);
  CHECK(back == 1);
  for (const float v : dw.floats())
    CHECK(v == 3);
  for (const float v : of_first.floats())
    CHECK(v == 0);
}

TEST_CASE("two uses of a tensor add their gradients, which may be shared") {
  const Tensor x = noise_tensor({3, 4}, 1), gradient = Tensor::zeros({3, 4});
  Tape tape;
  tape.watch(x, gradient);
  const Tensor y = silu(tape, x);
  // d/dy of ((y + y) + y) is 3: add hands the same tensor to both sides.
  const Tensor z = add(tape, add(tape, y, y), y);
  tape.backward(z, ones({3, 4}));
  Tape once;
  const Tensor single = Tensor::zeros({3, 4});
  once.watch(x, single);
  once.backward(silu(once, x), ones({3, 4}));
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(gradient.floats()[i] == Approx(3 * single.floats()[i]));
}

TEST_CASE("the seed of the caller is not written to") {
  const Tensor x = noise_tensor({3, 4}, 1), seed = ones({3, 4});
  Tape tape;
  tape.watch(x, Tensor::zeros({3, 4}));
  tape.backward(activate(tape, activate(tape, x, ActivationKind::gelu), ActivationKind::gelu),
                seed);
  CHECK(std::ranges::all_of(seed.floats(), [](float v) { return v == 1; }));
}

TEST_CASE("gradients accumulate in watched leaves over several tapes") {
  const Tensor x = noise_tensor({2, 3}, 1), gradient = Tensor::zeros({2, 3});
  std::vector<float> first;
  for (int i = 0; i < 2; ++i) {
    Tape tape;
    tape.watch(x, gradient);
    tape.backward(silu(tape, x), ones({2, 3}));
    if (i == 0) first.assign(gradient.floats().begin(), gradient.floats().end());
  }
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(gradient.floats()[i] == 2 * first[i]);
}

TEST_CASE("gradients that are replaced: what was there does not count, nor if nothing comes") {
  const Tensor x = noise_tensor({5, 8}, 1), w = noise_tensor({8, 8}, 2),
               bias = noise_tensor({8}, 3), unused = noise_tensor({3}, 4);
  const std::vector<Tensor> leaves{x, w, bias, unused};
  // Each is used twice, once where it is computed again, and there it is watched once more.
  const auto run = [&](const std::vector<Tensor>& buffers, bool replace, bool again) {
    Tape tape;
    if (replace) tape.replace_gradients();
    for (std::size_t i = 0; i < leaves.size(); ++i)
      tape.watch(leaves[i], buffers[i]);
    const auto block = [&, again](Tape& inner, const Tensor& in) {
      if (again) inner.watch(w, buffers[1]);
      const LinearWeight weight(w);
      return add(inner,
                 activate(inner, linear(inner, in, weight, bias, DType::f32), ActivationKind::gelu),
                 x);
    };
    const Tensor y = again ? tape.checkpoint(x, {},
                                             [&](Tape& inner, const Tensor& in) {
                                               return std::vector<Tensor>{block(inner, in)};
                                             })[0]
                           : block(tape, x);
    tape.backward(block(tape, y), ones({5, 8}));
  };
  for (const bool again : {false, true}) {
    std::vector<Tensor> added, replaced;
    for (const Tensor& leaf : leaves) {
      added.push_back(Tensor::zeros(leaf.shape()));
      replaced.push_back(Tensor(leaf.shape()));
      std::ranges::fill(replaced.back().floats(), std::numeric_limits<float>::quiet_NaN());
    }
    for (const bool first : {true, false}) {
      run(added, false, again);
      run(replaced, first, again);
      for (std::size_t i = 0; i < leaves.size(); ++i)
        CHECK(std::ranges::equal(added[i].floats(), replaced[i].floats()));
    }
    CHECK(std::ranges::all_of(replaced[3].floats(), [](float v) { return v == 0; }));
  }
}

TEST_CASE("a sum is added to in place where nobody else holds it") {
  const Tensor x = noise_tensor({3, 4}, 1);
  Tape tape;
  tape.watch(x, Tensor::zeros({3, 4}));
  CHECK(tape.sum_of(x).add);
  const Tensor y = silu(tape, x);
  CHECK_FALSE(tape.sum_of(y).tensor.defined());
  Tensor gradient = ones({3, 4});
  tape.accumulate(y, gradient);
  CHECK_FALSE(tape.sum_of(y).tensor.defined());  // the caller's
  const void* const place = gradient.raw();
  gradient = Tensor();
  CHECK(tape.sum_of(y).tensor.raw() == place);
  CHECK(tape.sum_of(y).add);
  CHECK_FALSE(tape.sum_of(noise_tensor({3, 4}, 2)).tensor.defined());
}

TEST_CASE("a tape that does not record keeps nothing") {
  Tape tape(false);
  const Tensor x = noise_tensor({100, 100}, 1);
  tape.watch(x, Tensor::zeros({100, 100}));
  CHECK_FALSE(tape.wants_grad(x));
  const std::size_t before = cpu_memory().current;
  for (int i = 0; i < 3; ++i)
    silu(tape, x);
  CHECK(cpu_memory().current == before);
  CHECK_THROWS_AS(tape.backward(x, x), Error);
}

TEST_CASE("memory that is freed during a tape's life is not mistaken for a known tensor") {
  const Tensor x = noise_tensor({64, 64}, 1), gradient = Tensor::zeros({64, 64});
  Tape tape;
  tape.watch(x, gradient);
  Tensor y = silu(tape, x);
  const void* address = y.raw();
  y = silu(tape, y);  // only the tape holds the first result now
  for (int i = 0; i < 4; ++i) {
    const Tensor fresh = noise_tensor({64, 64}, 2);
    CHECK(fresh.raw() != address);
    CHECK_FALSE(tape.wants_grad(fresh));
    CHECK_FALSE(tape.wants_grad(silu(tape, fresh)));
  }
  tape.backward(y, ones({64, 64}));
  CHECK(gradient.floats()[0] != 0);
}

TEST_CASE("backward frees what was saved") {
  const Tensor x = noise_tensor({64, 64}, 1), gradient = Tensor::zeros({64, 64});
  Tape tape;
  tape.watch(x, gradient);
  const std::size_t before = cpu_memory().current;
  {
    const Tensor y = silu(tape, silu(tape, x));
    CHECK(cpu_memory().current > before);
    tape.backward(y, ones({64, 64}));
  }
  CHECK(cpu_memory().current == before);
}

TEST_CASE("a checkpoint gives the same bits, also for what several blocks share") {
  const Tensor x = noise_tensor({5, 8}, 1), shared = noise_tensor({5, 8}, 2),
               w = noise_tensor({8, 8}, 3);
  const auto block = [&](Tape& tape, const Tensor& in) {
    const Tensor h = activate(tape, linear(tape, add(tape, in, shared), w), ActivationKind::gelu);
    return add(tape, h, shared);
  };
  std::vector<std::vector<Tensor>> runs;
  for (const bool recompute : {false, true}) {
    runs.push_back(gradients({x, shared, w}, ones({5, 8}), [&](Tape& tape) {
      Tensor y = x;
      for (int i = 0; i < 3; ++i) {
        if (!recompute) {
          y = block(tape, y);
          continue;
        }
        y = tape.checkpoint(y, {shared}, [&block](Tape& inner, const Tensor& in) {
          return std::vector<Tensor>{block(inner, in)};
        })[0];
      }
      return y;
    }));
  }
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::memcmp(runs[0][i].raw(), runs[1][i].raw(), runs[0][i].bytes()) == 0);
}

TEST_CASE("a checkpoint that keeps makes what takes long once, and the same bits") {
  const Tensor w = noise_tensor({4, 4}, 1), x = noise_tensor({3, 4}, 2);
  const Tensor seed = noise_tensor({3, 4}, 3);
  const auto gradient = [&](bool keep, int& made) {
    made = 0;
    Tensor sum = Tensor::zeros(w.shape());
    Tape tape;
    tape.watch(w, sum);
    Tensor stream = x;
    for (int block = 0; block < 3; ++block)
      stream = tape.checkpoint(stream, {},
                               [&w, &made](Tape& inner, const Tensor& y) {
                                 const Tape::Made kept = inner.once([&] {
                                   ++made;
                                   const Tensor squares(y.shape());
                                   for (std::size_t i = 0; i < squares.floats().size(); ++i)
                                     squares.floats()[i] = y.floats()[i] * y.floats()[i];
                                   return Tape::Made{{squares}, 7};
                                 });
                                 CHECK(kept.how == 7);
                                 const Tensor squares = kept.tensors[0];
                                 inner.record(squares, {y}, [y, squares](Tape& back) {
                                   const Tensor dy = back.take(squares).clone();
                                   for (std::size_t i = 0; i < dy.floats().size(); ++i)
                                     dy.floats()[i] *= 2 * y.floats()[i];
                                   back.accumulate(y, dy);
                                 });
                                 return std::vector<Tensor>{linear(inner, squares, w)};
                               },
                               {.once = keep})[0];
    tape.backward(stream, seed.clone());
    return sum;
  };
  int made = 0;
  const Tensor again = gradient(false, made);
  CHECK(made == 6);
  const Tensor kept = gradient(true, made);
  CHECK(made == 3);
  CHECK(std::ranges::equal(again.floats(), kept.floats()));
}

TEST_CASE("what goes into a block waits in the host's memory: the same bits, its own memory free") {
  const Tensor x = noise_tensor({5, 8}, 1), shared = noise_tensor({5, 8}, 2),
               w = noise_tensor({8, 8}, 3);
  constexpr int kBlocks = 5;
  std::vector<std::weak_ptr<void>> places;  // of what the blocks made, the first time
  std::vector<std::vector<Tensor>> runs;
  for (const bool once : {false, true})
    for (const bool offload : {false, true}) {
      places.clear();
      runs.push_back(gradients({x, shared, w}, ones({5, 8}), [&](Tape& tape) {
        const auto block = [&](Tape& inner, const Tensor& in) {
          const Tensor h =
              activate(inner, linear(inner, add(inner, in, shared), w), ActivationKind::gelu);
          const Tensor made = add(inner, h, shared);
          if (inner.recording()) return std::vector{made};
          const auto owner = std::make_shared<Tensor>(made);
          places.push_back(owner);
          return std::vector{Tensor::borrow(owner->raw(), owner->shape(), owner->dtype(), owner)};
        };
        Tensor y = tape.checkpoint(x, {shared}, block)[0];
        for (int i = 1; i < kBlocks; ++i) {
          y = tape.checkpoint(y, {shared}, block, {once, offload})[0];
          // All that are done with, but what goes into the newest, which is on its way.
          for (int j = 0; j <= i; ++j)
            CHECK(places[static_cast<std::size_t>(j)].expired() == (offload && j + 1 < i));
        }
        return y;
      }));
      CHECK(std::ranges::all_of(places, [](const auto& place) { return place.expired(); }));
    }
  for (std::size_t run = 1; run < runs.size(); ++run)
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(std::memcmp(runs[0][i].raw(), runs[run][i].raw(), runs[0][i].bytes()) == 0);
}

TEST_CASE(
    "a tape rests with all that blocks read away, and goes back to what came from elsewhere") {
  const Tensor w = noise_tensor({8, 8}, 1), seed = noise_tensor({5, 8}, 2);
  const auto block = [&](Tape& inner, const Tensor& in) {
    return std::vector{activate(inner, linear(inner, in, w), ActivationKind::gelu)};
  };
  std::vector<std::vector<Tensor>> runs;
  for (const bool offload : {false, true}) {
    const Tensor of_w = Tensor::zeros(w.shape());
    auto owner = std::make_shared<Tensor>(noise_tensor({5, 8}, 3));
    const std::weak_ptr<Tensor> memory = owner;
    Tensor x = Tensor::borrow(owner->raw(), owner->shape(), owner->dtype(), owner), of_x;
    owner = nullptr;
    Tape tape;
    tape.watch(w, of_w);
    tape.arrive(x, [&](Tensor gradient) { of_x = std::move(gradient); });
    CHECK_THROWS_AS(tape.arrive(x, {}), Error);
    x = tape.checkpoint(x, {}, block, {.offload = offload})[0];
    CHECK_FALSE(memory.expired());  // on its way
    Tensor name = tape.rest(x);
    CHECK(memory.expired() == offload);
    CHECK(name.id() != x.id());
    CHECK(x.unique());
    CHECK(tape.wants_grad(name));
    x = Tensor();
    tape.wake();
    tape.backward(name, seed);
    runs.push_back({of_w, of_x});
  }
  CHECK(std::ranges::equal(runs[0][0].floats(), runs[1][0].floats()));
  CHECK(std::ranges::equal(runs[0][1].floats(), runs[1][1].floats()));
  // What no block made keeps its values.
  Tape tape;
  tape.watch(w, Tensor::zeros(w.shape()));
  const Tensor made = silu(tape, w);
  CHECK(tape.rest(made).id() == made.id());
}

TEST_CASE("what waits in the host's memory may be made by blocks alone, and held by nobody else") {
  const Tensor x = noise_tensor({3, 4}, 1);
  const auto block = [](Tape& inner, const Tensor& in) { return std::vector{silu(inner, in)}; };
  const KeptOfBlock kept{.offload = true};
  Tape tape;
  tape.watch(x, Tensor::zeros({3, 4}));
  CHECK_THROWS_AS(tape.checkpoint(x, {}, block, kept), Error);  // a leaf
  const Tensor y = silu(tape, x);
  CHECK_THROWS_AS(tape.checkpoint(y, {}, block, kept), Error);  // of an op, which may hold it
  const Tensor held = tape.checkpoint(y, {}, block)[0];
  const Tensor next = tape.checkpoint(held, {}, block, kept)[0];
  CHECK_THROWS_WITH(tape.checkpoint(next, {}, block, kept),
                    "a tensor that is to wait in the host's memory is held by somebody else");
}

TEST_CASE("a block that no gradient reaches is not fetched") {
  const Tensor x = noise_tensor({3, 4}, 1), w = noise_tensor({4, 4}, 2);
  std::vector<Tensor> sums;
  for (const bool offload : {false, true}) {
    const Tensor& sum = sums.emplace_back(Tensor::zeros(w.shape()));
    int calls = 0;
    const auto block = [&](Tape& inner, const Tensor& in) {
      ++calls;
      return std::vector{linear(inner, in, w)};
    };
    Tape tape;
    tape.watch(w, sum);
    Tensor y = tape.checkpoint(x, {}, block)[0];
    y = tape.checkpoint(y, {}, block, {.offload = offload})[0];
    tape.checkpoint(y, {}, block, {.offload = offload});
    tape.backward(y, noise_tensor({3, 4}, 3));
    CHECK(calls == 3 + 2);
  }
  CHECK(std::ranges::equal(sums[0].floats(), sums[1].floats()));
}

TEST_CASE("misuse is an error") {
  const Tensor x = noise_tensor({2, 3}, 1);
  Tape tape;
  CHECK_THROWS_AS(tape.watch(x, Tensor::zeros({2, 2})), Error);
  CHECK_THROWS_AS(tape.watch(x, Tensor::zeros({2, 3}, DType::bf16)), Error);
  tape.watch(x, Tensor::zeros({2, 3}));
  const Tensor y = silu(tape, x);
  CHECK_THROWS_AS(tape.watch(y, Tensor::zeros({2, 3})), Error);
  CHECK_THROWS_AS(tape.accumulate(y, Tensor::zeros({7})), Error);
  CHECK_THROWS_AS(tape.backward(noise_tensor({2, 3}, 5), ones({2, 3})), Error);
}

TEST_CASE("backward tells of a leaf's gradient when nothing more can reach it") {
  const Tensor x = noise_tensor({4, 4}, 1), w1 = noise_tensor({4, 4}, 2),
               w2 = noise_tensor({4, 4}, 3), unused = noise_tensor({4, 4}, 4);
  std::vector<Tensor> gradients;
  for (int i = 0; i < 3; ++i)
    gradients.push_back(noise_tensor({4, 4}, 9));
  const auto pass = [&](bool hears, bool recompute) {
    std::vector<std::pair<const void*, std::vector<float>>> told;
    Tape tape;
    tape.replace_gradients();
    if (hears)
      tape.listen([&](const Tensor& gradient) {
        told.emplace_back(gradient.raw(),
                          std::vector(gradient.floats().begin(), gradient.floats().end()));
      });
    tape.watch(w1, gradients[0]);
    tape.watch(w2, gradients[1]);
    tape.watch(unused, gradients[2]);
    const Tensor y = linear(tape, x, w1);
    tape.first_use(w2);
    tape.first_use(unused);
    const auto block = [&](Tape& inner, const Tensor& in) {
      return std::vector{linear(inner, silu(inner, linear(inner, in, w2)), w2)};
    };
    const Tensor z = recompute ? tape.checkpoint(y, {}, block)[0] : block(tape, y)[0];
    tape.backward(z, ones({4, 4}));
    return told;
  };
  for (const bool recompute : {false, true}) {
    CHECK(pass(false, recompute).empty());
    std::vector<std::vector<float>> expected;
    for (const Tensor& gradient : gradients)
      expected.emplace_back(gradient.floats().begin(), gradient.floats().end());
    CHECK(std::ranges::all_of(expected[2], [](float v) { return v == 0; }));
    for (const Tensor& gradient : gradients)
      std::ranges::fill(gradient.floats(), std::numeric_limits<float>::quiet_NaN());
    const auto told = pass(true, recompute);
    REQUIRE(told.size() == 3);  // those of the block first, while that of w1 is not there yet
    CHECK(told[0] == std::pair<const void*, std::vector<float>>(gradients[2].raw(), expected[2]));
    CHECK(told[1] == std::pair<const void*, std::vector<float>>(gradients[1].raw(), expected[1]));
    CHECK(told[2] == std::pair<const void*, std::vector<float>>(gradients[0].raw(), expected[0]));
  }
}

TEST_CASE("a gradient that comes after it was told of is an error") {
  const Tensor x = noise_tensor({4, 4}, 1), w = noise_tensor({4, 4}, 2);
  Tape tape;
  tape.listen([](const Tensor&) {});
  tape.watch(w, Tensor::zeros({4, 4}));
  const Tensor y = linear(tape, x, w);
  tape.first_use(w);
  const Tensor z = linear(tape, silu(tape, y), w);
  CHECK_THROWS_WITH(tape.backward(z, ones({4, 4})), Catch::Contains("before its first use"));
}
