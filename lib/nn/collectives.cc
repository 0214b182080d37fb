// SPDX-License-Identifier: Apache-2.0
#include "nn/collectives.h"

#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "nn/chunked_rows.h"
#include "ops/pointwise/join.h"
#include "ops/pointwise/rows.h"

namespace vfm::nn {
namespace {

using Rows = std::vector<std::int64_t>;

std::int64_t all(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

Tensor gathered(dist::Group& group, const Rows& rows, const Tensor& x) {
  if (x.size(0) != rows[static_cast<std::size_t>(group.rank())])
    fail("rank {} of {} has {} rows, not {}", group.rank(), group.axis(), x.size(0),
         rows[static_cast<std::size_t>(group.rank())]);
  const Tensor y({all(rows), x.size(1)}, x.dtype(), x.device());
  group.all_gather(x, y, rows).wait();
  return y;
}

Tensor summed(dist::Group& group, const Rows& rows, const Tensor& x) {
  const std::int64_t own = rows[static_cast<std::size_t>(group.rank())];
  const Tensor y({own, x.size(1)}, x.dtype(), x.device());
  group.reduce_scatter(x, y, rows).wait();
  return y;
}

// Each rank's columns of x, [rows, sum of blocks], below each other: [ranks rows, ...]; or back.
void sort_columns(const Tensor& x, const Tensor& sorted, const Rows& blocks, int ranks, bool back) {
  const std::int64_t rows = x.size(0);
  for (int r = 0; r < ranks; ++r) {
    const Tensor part = sorted.rows(r * rows, (r + 1) * rows);
    std::int64_t begin = 0, here = 0;
    for (const std::int64_t block : blocks) {
      const std::int64_t width = block / ranks, there = begin + r * width;
      if (back)
        ops::copy_columns(part, here, x, there, width);
      else
        ops::copy_columns(x, there, part, here, width);
      begin += block, here += width;
    }
  }
}

// What both ways of dealing columns out have in common.
struct Deal {
  dist::Group& group;
  Rows rows, blocks;  // blocks: columns in all ranks
  ops::RowOrder order;

  std::int64_t own() const { return rows[static_cast<std::size_t>(group.rank())]; }
  std::int64_t share() const { return all(blocks) / group.size(); }
  Rows even() const { return Rows(rows.size(), own()); }

  Tensor to_columns(const Tensor& x) const {
    const Tensor sorted({group.size() * own(), share()}, x.dtype(), x.device());
    sort_columns(x, sorted, blocks, group.size(), false);
    const Tensor y({all(rows), share()}, x.dtype(), x.device());
    group.all_to_all(sorted, y, even(), rows).wait();
    return ops::gather_rows(y, order.there());
  }
  Tensor to_rows(const Tensor& y) const {
    const Tensor sorted({group.size() * own(), share()}, y.dtype(), y.device());
    group.all_to_all(ops::gather_rows(y, order.back()), sorted, rows, even()).wait();
    const Tensor x({own(), all(blocks)}, y.dtype(), y.device());
    sort_columns(x, sorted, blocks, group.size(), true);
    return x;
  }
};

// The same of rows in parts.
struct PartedDeal {
  dist::Group& group;
  std::vector<Rows> parts;
  Rows blocks;

  std::int64_t share() const { return all(blocks) / group.size(); }
  // act(rows of each rank, first of this rank's, first of all ranks') of each part that has rows.
  template <class Act>
  void each(const Act& act) const {
    std::int64_t own = 0, every = 0;
    for (const Rows& rows : parts) {
      if (all(rows) > 0) act(rows, own, every);
      own += rows[static_cast<std::size_t>(group.rank())], every += all(rows);
    }
  }
  std::int64_t own(const Rows& rows) const { return rows[static_cast<std::size_t>(group.rank())]; }
  std::int64_t all_own() const {
    std::int64_t sum = 0;
    for (const Rows& rows : parts)
      sum += own(rows);
    return sum;
  }
  std::int64_t all_rows() const {
    std::int64_t sum = 0;
    for (const Rows& rows : parts)
      sum += all(rows);
    return sum;
  }
  Tensor sorted_like(const Tensor& x, const Rows& rows) const {
    return Tensor({group.size() * own(rows), share()}, x.dtype(), x.device());
  }

  Tensor to_columns(const Tensor& x) const {
    const Tensor y({all_rows(), share()}, x.dtype(), x.device());
    std::vector<dist::Transfer> under_way;
    each([&](const Rows& rows, std::int64_t first, std::int64_t begin) {
      const Tensor sorted = sorted_like(x, rows);
      sort_columns(x.rows(first, first + own(rows)), sorted, blocks, group.size(), false);
      under_way.push_back(group.all_to_all(sorted, y.rows(begin, begin + all(rows)),
                                           Rows(rows.size(), own(rows)), rows));
    });
    for (dist::Transfer& transfer : under_way)
      transfer.wait();
    return y;
  }
  Tensor to_rows(const Tensor& y) const {
    std::vector<Tensor> sorted;
    std::vector<dist::Transfer> under_way;
    each([&](const Rows& rows, std::int64_t /*first*/, std::int64_t begin) {
      sorted.push_back(sorted_like(y, rows));
      under_way.push_back(group.all_to_all(y.rows(begin, begin + all(rows)), sorted.back(), rows,
                                           Rows(rows.size(), own(rows))));
    });
    const Tensor x({all_own(), all(blocks)}, y.dtype(), y.device());
    std::size_t at = 0;
    each([&](const Rows& rows, std::int64_t first, std::int64_t /*begin*/) {
      under_way[at].wait();
      sort_columns(x.rows(first, first + own(rows)), sorted[at++], blocks, group.size(), true);
    });
    return x;
  }
};

void check_blocks(const dist::Group& group, const Rows& blocks) {
  for (const std::int64_t block : blocks)
    if (block % group.size() != 0)
      fail("{} columns are not dealt out evenly to {} ranks", block, group.size());
}

Deal deal(dist::Group& group, Rows rows, Rows blocks, const ops::RowOrder& order) {
  check_blocks(group, blocks);
  return {group, std::move(rows), std::move(blocks), order};
}

}  // namespace

ops::Exchange gather_rows(dist::Group& group, Rows rows, int chunks) {
  if (group.size() == 1) return {};
  return {[&group, rows](const Tensor& x) { return gathered(group, rows, x); },
          [&group, rows](const Tensor& dy) { return summed(group, rows, dy); },
          chunked_rows(group, rows, chunks)};
}

ops::Exchange sum_rows(dist::Group& group, Rows rows, int chunks) {
  return ops::adjoint_of(gather_rows(group, std::move(rows), chunks));
}

ops::Exchange gather_row(dist::Group& group, Rows columns) {
  if (group.size() == 1) return {};
  const auto turned = [](const std::function<Tensor(const Tensor&)>& run) {
    return [run](const Tensor& x) {
      const Tensor y = run(x.reshape({x.elements(), 1}));
      return y.reshape({1, y.elements()});
    };
  };
  const ops::Exchange rows = gather_rows(group, std::move(columns));
  return {turned(rows.forward), turned(rows.adjoint)};
}

ops::Exchange sum_everywhere(dist::Group& group) {
  if (group.size() == 1) return {};
  const auto sum = [&group](const Tensor& x) {
    Tensor all = x.clone();
    group.all_reduce(all).wait();
    return all;
  };
  return {sum, sum};
}

ops::Exchange gather_columns(dist::Group& group, Rows rows, Columns columns,
                             const ops::RowOrder& order) {
  if (group.size() == 1) return {};
  return {[&group, rows, columns, order](const Tensor& x) {
            return ops::gather_rows(gathered(group, rows, take_columns(x, columns)), order.there());
          },
          [&group, rows, columns, order](const Tensor& dy) {
            return place_columns(summed(group, rows, ops::gather_rows(dy, order.back())), columns);
          }};
}

ops::Exchange gather_columns(dist::Group& group, Rows rows, Columns columns,
                             const ops::RowChoice& choice) {
  if (group.size() == 1) return {};
  return {[&group, rows, columns, choice](const Tensor& x) {
            return choice.take(gathered(group, rows, take_columns(x, columns)));
          },
          [&group, rows, columns, choice](const Tensor& dy) {
            return place_columns(summed(group, rows, choice.add_back(dy)), columns);
          }};
}

ops::Exchange rows_to_columns(dist::Group& group, Rows rows, Rows blocks,
                              const ops::RowOrder& order) {
  if (group.size() == 1) return {};
  const Deal all = deal(group, std::move(rows), std::move(blocks), order);
  return {[all](const Tensor& x) { return all.to_columns(x); },
          [all](const Tensor& dy) { return all.to_rows(dy); }};
}

ops::Exchange columns_to_rows(dist::Group& group, Rows rows, Rows blocks,
                              const ops::RowOrder& order) {
  if (group.size() == 1) return {};
  const Deal all = deal(group, std::move(rows), std::move(blocks), order);
  return {[all](const Tensor& y) { return all.to_rows(y); },
          [all](const Tensor& dx) { return all.to_columns(dx); }};
}

ops::Exchange rows_to_columns(dist::Group& group, std::vector<Rows> parts, Rows blocks) {
  if (group.size() == 1) return {};
  check_blocks(group, blocks);
  const PartedDeal all{group, std::move(parts), std::move(blocks)};
  return {[all](const Tensor& x) { return all.to_columns(x); },
          [all](const Tensor& dy) { return all.to_rows(dy); }};
}

ops::Exchange columns_to_rows(dist::Group& group, std::vector<Rows> parts, Rows blocks) {
  return ops::adjoint_of(rows_to_columns(group, std::move(parts), std::move(blocks)));
}

ops::Exchange move_rows(dist::Group& group, const ops::RowOrder& sorted, Rows to, Rows from) {
  if (group.size() == 1) return {};
  return {[&group, sorted, to, from](const Tensor& x) {
            const Tensor y({all(from), x.size(1)}, x.dtype(), x.device());
            group.all_to_all(ops::gather_rows(x, sorted.there()), y, to, from).wait();
            return y;
          },
          [&group, sorted, to, from](const Tensor& dy) {
            const Tensor dx({all(to), dy.size(1)}, dy.dtype(), dy.device());
            group.all_to_all(dy, dx, from, to).wait();
            return ops::gather_rows(dx, sorted.back());
          }};
}

}  // namespace vfm::nn
