// Rows dealt out by columns: part by part, and as a whole, come to the same.
// SPDX-License-Identifier: Apache-2.0
#include "nn/collectives.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "dist/threads.h"
#include "ops/norm/heads_norm.h"
#include "ops/pointwise/join.h"
#include "support/distance.h"
#include "support/noise.h"

using namespace vfm;

namespace {

using RowCounts = std::vector<std::int64_t>;

std::int64_t count_sum(const RowCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Where the rows of parts stand, of all ranks' one after the other: row i of the pack comes i-th.
std::vector<std::int32_t> parted_order(const std::vector<RowCounts>& parts) {
  const std::size_t ranks = parts.front().size();
  std::vector<std::int32_t> begin(ranks, 0);  // of each rank's rows
  for (std::size_t r = 1; r < ranks; ++r) {
    begin[r] = begin[r - 1];
    for (const RowCounts& rows : parts)
      begin[r] += static_cast<std::int32_t>(rows[r - 1]);
  }
  std::vector<std::int32_t> order;
  for (const RowCounts& rows : parts)
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::int64_t i = 0; i < rows[r]; ++i)
        order.push_back(begin[r]++);
  return order;
}

bool alike(const Tensor& a, const Tensor& b) {
  const Tensor left = a.to(DType::f32), right = b.to(DType::f32);
  return a.shape() == b.shape() && std::ranges::equal(left.floats(), right.floats());
}

void compare_parted(const std::vector<RowCounts>& parts, DType dtype) {
  const int ranks = static_cast<int>(parts.front().size());
  dist::thread_worlds(ranks, [&](dist::World& world) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    const auto group = world.group("cp", all);
    const auto rank = static_cast<std::size_t>(world.rank());
    RowCounts rows(static_cast<std::size_t>(ranks), 0);
    for (const RowCounts& part : parts)
      for (std::size_t r = 0; r < rows.size(); ++r)
        rows[r] += part[r];
    const ops::RowOrder order(parted_order(parts), Device::cpu);
    const RowCounts blocks = {4 * ranks, 2 * ranks, 2 * ranks};
    const ops::Exchange whole = nn::rows_to_columns(*group, rows, blocks, order),
                        parted = nn::rows_to_columns(*group, parts, blocks),
                        back = nn::columns_to_rows(*group, parts, blocks);
    const Tensor x = noise_tensor({rows[rank], count_sum(blocks)}, 7 + rank, dtype);
    world.traffic().reset();
    const Tensor expected = whole.forward(x);
    const std::int64_t sent = world.traffic().of("cp").bytes;
    const Tensor made = parted.forward(x);
    if (!alike(made, expected)) fail("rank {}: parts are not the whole", world.rank());
    if (world.traffic().of("cp").bytes != 2 * sent) fail("bytes in parts");
    if (!alike(back.forward(made), x)) fail("rank {}: back are not what was", world.rank());
    if (!alike(parted.adjoint(made), x))
      fail("rank {}: the adjoint is not the way back", world.rank());
    if (!alike(back.adjoint(x), expected)) fail("rank {}: the inverse's adjoint", world.rank());
  });
}

}  // namespace

TEST_CASE("rows in parts come in their places, with the bytes of one message to each rank") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    compare_parted({{5, 4}, {4, 5}}, dtype);
    compare_parted({{3, 0, 2}, {0, 0, 0}, {1, 1, 1}, {0, 4, 0}}, dtype);
    compare_parted({{2, 0, 0}}, dtype);  // ranks without rows
  }
}

TEST_CASE("heads dealt to ranks are normed over all of them") {
  constexpr std::int64_t kTokens = 37, kHeads = 12, kDim = 8, kAll = kHeads * kDim;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = noise_tensor({kTokens, kAll}, 1, dtype), dy = noise_tensor({kTokens, kAll}, 2);
    const Tensor weight = noise_tensor({kAll}, 3);
    struct Result {
      Tensor y, dx, dweight;
    };
    const auto norm = [&](const Tensor& of, const Tensor& w, const Tensor& gradient, int ranks,
                          ops::Exchange sum) {
      ops::Tape tape;
      const Result r{{}, Tensor::zeros(of.shape()), Tensor::zeros(w.shape())};
      tape.watch(of, r.dx);
      tape.watch(w, r.dweight);
      const Tensor y = ops::heads_norm(tape, of, {{w}, 1e-5f, ranks, std::move(sum)});
      tape.backward(y, gradient.to(dtype));
      return Result{y.to(DType::f32), r.dx, r.dweight};
    };
    const Result one = norm(x, weight, dy, 1, {});
    for (const int ranks : {1, 2, 3}) {
      std::vector<Result> of_ranks;
      for (int run = 0; run < 2; ++run) {  // the second has the bits of the first
        std::vector<Result> got(static_cast<std::size_t>(ranks));
        dist::thread_worlds(ranks, [&](dist::World& world) {
          std::vector<int> all(static_cast<std::size_t>(ranks));
          std::iota(all.begin(), all.end(), 0);
          const auto group = world.group("tp", all);
          const nn::Columns own{world.rank() * kAll / ranks, kAll / ranks, kAll};
          got[static_cast<std::size_t>(world.rank())] =
              norm(nn::take_columns(x, own),
                   nn::take_columns(weight.reshape({1, kAll}), own).reshape({own.count}),
                   nn::take_columns(dy, own), ranks, nn::sum_everywhere(*group));
        });
        const auto joined = [&](Tensor Result::*of) {
          std::vector<Tensor> parts;
          for (const Result& r : got)
            parts.push_back((r.*of).dims() == 2 ? r.*of : (r.*of).reshape({1, kAll / ranks}));
          ops::Tape silent(false);
          return ops::join_columns(silent, parts);
        };
        of_ranks.push_back({joined(&Result::y), joined(&Result::dx), joined(&Result::dweight)});
      }
      INFO("ranks " << ranks << " " << dtype_name(dtype));
      const double near = dtype == DType::f32 ? 2e-6 : 8e-3;
      for (const auto of : {&Result::y, &Result::dx, &Result::dweight}) {
        CHECK(distance((of_ranks[0].*of).floats(), (one.*of).floats()) < near);
        CHECK(alike(of_ranks[0].*of, of_ranks[1].*of));
      }
    }
  }
}

TEST_CASE("columns that ranks do not divide are refused, in parts, too") {
  CHECK_THROWS_WITH(dist::thread_worlds(
                        2,
                        [](dist::World& world) {
                          const auto group = world.group("cp", {0, 1});
                          nn::rows_to_columns(*group, std::vector<RowCounts>{{1, 1}}, RowCounts{3});
                        }),
                    Catch::Contains("not dealt out evenly"));
}
