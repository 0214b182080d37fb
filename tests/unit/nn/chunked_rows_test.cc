// The ranks are threads; what they exchange is what MPI would (unit_dist).
// SPDX-License-Identifier: Apache-2.0
#include "nn/chunked_rows.h"

#include <omp.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>

#include "base/error.h"
#include "dist/threads.h"
#include "nn/collectives.h"
#include "nn/placement.h"
#include "ops/matmul/exchanged_linear.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/recompute_linear.h"
#include "ops/norm/rmsnorm.h"
#include "ops/pointwise/activations.h"
#include "support/distance.h"
#include "support/noise.h"

using namespace vfm;
using ops::RowRange;

namespace {

using Counts = std::vector<std::int64_t>;
constexpr std::int64_t kWidth = 48, kHidden = 40;

struct Sublayer {
  Counts rows;  ///< of each rank
  DType dtype = DType::f32;
  bool recompute = false;  ///< elementwise
  bool gated = false;      ///< the norm and the MLP of the decoder, else gelu alone
  int adapters = 0;        ///< their rank
  bool bias = false;       ///< of both products
};

struct ChunksOutcome {
  std::map<std::string, std::vector<float>> of;  // by what and rank
  std::vector<dist::Traffic> sent;

  void add(const std::string& name, int rank, const Tensor& tensor) {
    const Tensor plain = tensor.to(DType::f32);
    of[name + " of rank " + std::to_string(rank)].assign(plain.floats().begin(),
                                                         plain.floats().end());
  }
};

std::int64_t total(const Counts& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

/// A matrix [rows, columns], an adapter to the last two thirds of its rows, and a bias.
struct Watched {
  Tensor w, dw;
  ops::LowRank low;
  Tensor da, db, bias, dbias;

  Watched(ops::Tape& tape, std::int64_t rows, std::int64_t columns, const Sublayer& s,
          std::uint64_t key)
      : w(noise_tensor({rows, columns}, key, s.dtype)), dw(Tensor::zeros({rows, columns})) {
    tape.watch(w, dw);
    if (s.bias) {
      bias = noise_tensor({rows}, key + 3), dbias = Tensor::zeros({rows});
      tape.watch(bias, dbias);
    }
    if (s.adapters == 0) return;
    low = {noise_tensor({s.adapters, columns}, key + 1, s.dtype),
           noise_tensor({rows - rows / 3, s.adapters}, key + 2, s.dtype), rows / 3, 0.5f};
    da = Tensor::zeros(low.a.shape()), db = Tensor::zeros(low.b.shape());
    tape.watch(low.a, da);
    tape.watch(low.b, db);
  }
  ops::LinearWeight matrix() const {
    ops::LinearWeight result(w);
    if (low.a.defined()) result.added = {low};
    result.bias = bias;
    return result;
  }
  void read(ChunksOutcome& outcome, const std::string& name, int rank) const {
    outcome.add(name, rank, dw);
    if (dbias.defined()) outcome.add(name + ", bias", rank, dbias);
    if (!da.defined()) return;
    outcome.add(name + ", a", rank, da);
    outcome.add(name + ", b", rank, db);
  }
};

/// The exchange as a whole, and then products of the same rows, in the same order.
class InPlace final : public ops::RowChunks {
 public:
  InPlace(dist::Group& group, Counts rows, int chunks)
      : group_(group), rows_(std::move(rows)), parts_(nn::chunks_of_rank(chunks, group.size())) {}

  std::unique_ptr<ops::ComingRows> gather(const Tensor& x) const override {
    const Tensor all({total(rows_), x.size(1)}, x.dtype());
    group_.all_gather(x, all, rows_).wait();
    std::vector<RowRange> ranges = others(-1);
    ranges.insert(ranges.begin(), own());
    return std::make_unique<Here>(all, std::move(ranges));
  }
  Tensor sum(std::int64_t columns, DType dtype, Device, const Make& make,
             const std::function<void()>& meanwhile) const override {
    const Tensor all({total(rows_), columns}, dtype), sum({own().count(), columns}, dtype);
    std::vector<RowRange> ranges = others(1);
    ranges.push_back(own());
    for (const RowRange& range : ranges)
      if (range.count() > 0) make(range, all.rows(range.begin, range.end));
    if (meanwhile) meanwhile();
    group_.reduce_scatter(all, sum, rows_).wait();
    return sum;
  }

 private:
  struct Here final : ops::ComingRows {
    Here(Tensor here, std::vector<RowRange> all)
        : values(std::move(here)), ranges(std::move(all)) {}
    std::optional<RowRange> next() override {
      while (at < ranges.size())
        if (ranges[at++].count() > 0) return ranges[at - 1];
      return std::nullopt;
    }
    Tensor rows() const override { return values; }
    Tensor values;
    std::vector<RowRange> ranges;
    std::size_t at = 0;
  };

  RowRange of_rank(int rank) const {
    const auto begin = std::accumulate(rows_.begin(), rows_.begin() + rank, std::int64_t{0});
    return {begin, begin + rows_[static_cast<std::size_t>(rank)]};
  }
  RowRange own() const { return of_rank(group_.rank()); }
  /// The chunks of the other ranks, from this one on upwards, or downwards.
  std::vector<RowRange> others(int direction) const {
    std::vector<RowRange> ranges;
    for (int step = 1; step < group_.size(); ++step) {
      const RowRange all =
          of_rank((group_.rank() + direction * step + group_.size()) % group_.size());
      for (int part = 0; part < parts_; ++part)
        ranges.push_back({all.begin + nn::share(all.count(), part, parts_),
                          all.begin + nn::share(all.count(), part + 1, parts_)});
    }
    return ranges;
  }

  dist::Group& group_;
  const Counts rows_;
  const int parts_;
};

enum class Way { whole, in_place, chunks };

/// The MLP of layers whose hidden columns are cut over the ranks, forward and back.
ChunksOutcome run(const Sublayer& s, int chunks, Way way = Way::chunks) {
  const int ranks = static_cast<int>(s.rows.size());
  ChunksOutcome outcome;
  outcome.sent.resize(s.rows.size());
  std::mutex mutex;
  dist::thread_worlds(ranks, [&](dist::World& world) {
    omp_set_num_threads(1);
    std::vector<int> all(s.rows.size());
    std::iota(all.begin(), all.end(), 0);
    const auto group = world.group("tp", all);
    const int rank = world.rank();
    const auto key = static_cast<std::uint64_t>(10 * rank);
    const std::int64_t own = s.rows[static_cast<std::size_t>(rank)];
    ops::Exchange gather = nn::gather_rows(*group, s.rows, way == Way::whole ? 1 : chunks);
    if (way == Way::in_place) gather.chunks = std::make_shared<InPlace>(*group, s.rows, chunks);
    const ops::Exchange sum = ops::adjoint_of(gather);
    ops::Tape tape;
    const Watched up(tape, (s.gated ? 2 : 1) * kHidden, kWidth, s, 100 + key),
        down(tape, kWidth, kHidden, s, 200 + key);
    // What a rank without rows has is made from what is watched, too.
    const DType stream = s.gated ? DType::f32 : s.dtype;
    const Tensor embed = noise_tensor({kWidth, 8}, 2, stream), dembed = Tensor::zeros({kWidth, 8}),
                 scale = noise_tensor({kWidth}, 7);
    tape.watch(embed, dembed);
    const Tensor x = ops::linear(tape, noise_tensor({own, 8}, 1 + key, stream), embed);
    Tensor y;
    if (s.gated && s.recompute) {
      const Tensor hidden = ops::rmsnorm_linear(tape, x, scale, 1e-5f, up.matrix(), gather);
      y = ops::swiglu_linear(tape, hidden, down.matrix(), s.dtype, sum);
    } else if (s.gated) {
      const Tensor normed = ops::rmsnorm(tape, x, scale, 1e-5f);
      const Tensor hidden = ops::gathered_linear(tape, normed, up.matrix(), gather);
      y = ops::summed_linear(tape, ops::swiglu(tape, hidden), down.matrix(), sum, s.dtype);
    } else {
      const Tensor hidden = ops::gathered_linear(tape, x, up.matrix(), gather);
      y = s.recompute
              ? ops::activated_linear(tape, hidden, down.matrix(), ops::ActivationKind::gelu, sum)
              : ops::summed_linear(tape, ops::activate(tape, hidden, ops::ActivationKind::gelu),
                                   down.matrix(), sum, s.dtype);
    }
    const Tensor kept = y.clone();
    tape.backward(y, noise_tensor(y.shape(), 3 + key, s.dtype));
    const std::lock_guard lock(mutex);
    outcome.add("result", rank, kept);
    outcome.add("gradient of x", rank, dembed);
    up.read(outcome, "gradient before", rank);
    down.read(outcome, "gradient after", rank);
    outcome.sent[static_cast<std::size_t>(rank)] = world.traffic();
  });
  return outcome;
}

const std::vector<Sublayer> kSublayers = {
    {{8, 8}},
    {{8, 8}, DType::bf16},
    {{7, 6}, DType::f32, true},
    {{33, 32}, DType::bf16, false, false, 3, true},
    {{33, 32}, DType::f32, true, false, 3, true},
    {{5, 4, 4}, DType::bf16, false},
    {{3, 2, 2}, DType::f32, true, true},
    {{64, 63}, DType::f32, false, true},
    {{13, 12}, DType::f32, true, true, 0, true},
    {{20, 20, 20, 19}, DType::bf16, true, false},
    {{2, 1, 1, 1}},                                  // fewer rows than chunks
    {{3, 0, 2}, DType::f32, false, false, 0, true},  // one has none
    {{0, 1}, DType::bf16},
};

}  // namespace

TEST_CASE("rows in chunks have the bits of the same products with whole exchanges") {
  for (const Sublayer& s : kSublayers) {
    for (const int chunks : {2, 4, 7}) {
      const ChunksOutcome parts = run(s, chunks), in_place = run(s, chunks, Way::in_place),
                          whole = run(s, chunks, Way::whole);
      for (const auto& [name, values] : parts.of) {
        INFO(s.rows.size() << " ranks, " << total(s.rows) << " rows, " << dtype_name(s.dtype) << ' '
                           << chunks << " chunks: " << name);
        CHECK((values == in_place.of.at(name)));
        // Products of fewer rows may be rounded otherwise (oneDNN).
        CHECK(distance(values, whole.of.at(name)) < (s.dtype == DType::f32 ? 3e-6 : 2e-2));
      }
      CHECK(parts.of.size() == whole.of.size());
    }
  }
}

TEST_CASE("a bias is added once, and its gradient is counted once, on any number of ranks") {
  constexpr std::int64_t kRows = 24, kOut = 12;
  // Of the whole layer, by ranks: results, then gradients of both biases.
  const auto pass = [](int ranks, int chunks) {
    std::vector<float> all(kRows * kOut + kHidden + kOut);
    std::mutex mutex;
    dist::thread_worlds(ranks, [&](dist::World& world) {
      omp_set_num_threads(1);
      Counts rows(static_cast<std::size_t>(ranks), kRows / ranks);
      std::vector<int> members(rows.size());
      std::iota(members.begin(), members.end(), 0);
      const auto group = world.group("tp", members);
      const ops::Exchange gather = nn::gather_rows(*group, rows, chunks);
      const std::int64_t rank = world.rank(), hidden = kHidden / ranks, own = kRows / ranks;
      const auto rows_of = [&](const Tensor& of, std::int64_t count) {
        return of.rows(rank * count, (rank + 1) * count).clone();
      };
      const Tensor wide = noise_tensor({kOut, kHidden}, 3), columns({kOut, hidden});
      for (std::int64_t o = 0; o < kOut; ++o)
        copy(wide.reshape({kOut * ranks, hidden}).rows(o * ranks + rank, o * ranks + rank + 1),
             columns.rows(o, o + 1));
      ops::LinearWeight up(rows_of(noise_tensor({kHidden, 6}, 1), hidden)), down(columns);
      up.bias = rows_of(noise_tensor({kHidden}, 2), hidden), down.bias = noise_tensor({kOut}, 4);
      const Tensor dup = Tensor::zeros({hidden}), ddown = Tensor::zeros({kOut});
      ops::Tape tape;
      tape.watch(up.bias, dup);
      tape.watch(down.bias, ddown);
      const Tensor x = rows_of(noise_tensor({kRows, 6}, 5), own);
      const Tensor y = ops::summed_linear(
          tape,
          ops::activate(tape, ops::gathered_linear(tape, x, up, gather), ops::ActivationKind::gelu),
          down, ops::adjoint_of(gather), DType::f32);
      const Tensor kept = y.clone();
      tape.backward(y, rows_of(noise_tensor({kRows, kOut}, 6), own));
      const std::lock_guard lock(mutex);
      std::copy_n(kept.floats().begin(), own * kOut, all.begin() + rank * own * kOut);
      std::copy_n(dup.floats().begin(), hidden, all.begin() + kRows * kOut + rank * hidden);
      for (std::int64_t i = 0; i < kOut; ++i)
        all[static_cast<std::size_t>(kRows * kOut + kHidden + i)] +=
            ddown.floats()[static_cast<std::size_t>(i)];
    });
    return all;
  };
  const std::vector<float> one = pass(1, 1);
  for (const int ranks : {2, 4})
    for (const int chunks : {1, 4}) {
      INFO(ranks << " ranks, " << chunks << " chunks");
      CHECK(distance(pass(ranks, chunks), one) < 2e-6);
    }
}

TEST_CASE("rows in chunks are as many bytes, in as many messages as there are chunks of others") {
  const auto sent = [](const Sublayer& s, int chunks, int rank) {
    dist::Traffic traffic = run(s, chunks).sent[static_cast<std::size_t>(rank)];
    return traffic.of("tp");
  };
  for (const Sublayer& s : {Sublayer{{9, 8}}, {{3, 2, 2}, DType::bf16}})
    for (const int rank : {0, 1}) {
      const dist::Traffic::Count whole = sent(s, 1, rank);
      // Two exchanges, forward and back.
      const auto others = static_cast<std::int64_t>(s.rows.size()) - 1;
      CHECK(whole.calls == 4);
      CHECK(sent(s, 2, rank) == dist::Traffic::Count{4 * others, whole.bytes});
      CHECK(sent(s, 5, rank) ==
            dist::Traffic::Count{4 * others * (others == 1 ? 3 : 2), whole.bytes});
    }
}

TEST_CASE("chunks of rows come in one order, and each once") {
  const Counts rows = {5, 0, 4};
  dist::thread_worlds(3, [&](dist::World& world) {
    const auto group = world.group("tp", {0, 1, 2});
    CHECK(nn::chunked_rows(*group, rows, 1) == nullptr);
    const auto chunks = nn::chunked_rows(*group, rows, 6);
    const std::int64_t own = rows[static_cast<std::size_t>(world.rank())];
    const auto coming = chunks->gather(noise_tensor({own, 3}, 1));
    std::vector<RowRange> seen;
    while (const std::optional<RowRange> next = coming->next())
      seen.push_back(*next);
    const std::vector<std::vector<RowRange>> wanted = {
        {{0, 5}, {5, 7}, {7, 9}}, {{0, 3}, {3, 5}, {5, 7}, {7, 9}}, {{5, 9}, {0, 3}, {3, 5}}};
    CHECK((seen == wanted[static_cast<std::size_t>(world.rank())]));
    CHECK(coming->wait().size(0) == 9);
  });
  CHECK_THROWS_WITH(dist::thread_worlds(2,
                                        [](dist::World& world) {
                                          const auto group = world.group("tp", {0, 1});
                                          const auto chunks = nn::chunked_rows(*group, {2, 2}, 2);
                                          (void)chunks->gather(Tensor({3, 4}));
                                        }),
                    Catch::Contains("has 3 rows, not 2"));
}
