// SPDX-License-Identifier: Apache-2.0
#include "nn/collectives.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "nn/chunked_rows.h"
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

// What both ways of dealing columns out have in common.
struct Deal {
  dist::Group& group;
  Rows rows, blocks;  // blocks: columns in all ranks
  ops::RowOrder order;

  std::int64_t own() const { return rows[static_cast<std::size_t>(group.rank())]; }
  std::int64_t share() const { return all(blocks) / group.size(); }
  Rows even() const { return Rows(rows.size(), own()); }
  // Each rank's columns of x, [own(), sum of blocks], below each other; or back.
  void sort(const Tensor& x, const Tensor& sorted, bool back) const {
    for (int r = 0; r < group.size(); ++r) {
      const Tensor part = sorted.rows(r * own(), (r + 1) * own());
      std::int64_t begin = 0, here = 0;
      for (const std::int64_t block : blocks) {
        const std::int64_t width = block / group.size(), there = begin + r * width;
        if (back)
          copy_columns(part, here, x, there, width);
        else
          copy_columns(x, there, part, here, width);
        begin += block, here += width;
      }
    }
  }

  Tensor to_columns(const Tensor& x) const {
    const Tensor sorted({group.size() * own(), share()}, x.dtype(), x.device());
    sort(x, sorted, false);
    const Tensor y({all(rows), share()}, x.dtype(), x.device());
    group.all_to_all(sorted, y, even(), rows).wait();
    return ops::gather_rows(y, order.there());
  }
  Tensor to_rows(const Tensor& y) const {
    const Tensor sorted({group.size() * own(), share()}, y.dtype(), y.device());
    group.all_to_all(ops::gather_rows(y, order.back()), sorted, rows, even()).wait();
    const Tensor x({own(), all(blocks)}, y.dtype(), y.device());
    sort(x, sorted, true);
    return x;
  }
};

Deal deal(dist::Group& group, Rows rows, Rows blocks, const ops::RowOrder& order) {
  for (const std::int64_t block : blocks)
    if (block % group.size() != 0)
      fail("{} columns are not dealt out evenly to {} ranks", block, group.size());
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
