// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/row_ranges.h"

#include "base/error.h"

namespace vfm::ops {
namespace {

void check_ranges(std::span<const RowRange> ranges, std::int64_t rows) {
  std::int64_t at = 0;
  for (const RowRange& range : ranges) {
    if (range.begin < at || range.end < range.begin || range.end > rows)
      fail("rows {} to {} do not follow row {} of {}", range.begin, range.end, at, rows);
    at = range.end;
  }
}

void copy_range(const Tensor& from, const Tensor& to) {
  if (to.bytes() > 0) copy(from, to);
}

Tensor taken(const Tensor& x, std::span<const RowRange> ranges) {
  const Tensor y({row_count(ranges), x.size(1)}, x.dtype(), x.device());
  std::int64_t at = 0;
  for (const RowRange& range : ranges) {
    copy_range(x.rows(range.begin, range.end), y.rows(at, at + range.count()));
    at += range.count();
  }
  return y;
}

Tensor placed(const Tensor& x, std::span<const RowRange> ranges, std::int64_t rows) {
  const Tensor y = Tensor::zeros({rows, x.size(1)}, x.dtype(), x.device());
  std::int64_t at = 0;
  for (const RowRange& range : ranges) {
    copy_range(x.rows(at, at + range.count()), y.rows(range.begin, range.end));
    at += range.count();
  }
  return y;
}

}  // namespace

std::int64_t row_count(std::span<const RowRange> ranges) {
  std::int64_t count = 0;
  for (const RowRange& range : ranges)
    count += range.count();
  return count;
}

Tensor take_ranges(Tape& tape, const Tensor& x, std::vector<RowRange> ranges) {
  check_ranges(ranges, x.size(0));
  const Tensor y = taken(x, ranges);
  tape.record(y, {x}, [x, y, ranges = std::move(ranges)](Tape& t) {
    t.accumulate(x, placed(t.take(y), ranges, x.size(0)));
  });
  return y;
}

Tensor place_ranges(Tape& tape, const Tensor& x, std::vector<RowRange> ranges, std::int64_t rows) {
  check_ranges(ranges, rows);
  if (row_count(ranges) != x.size(0))
    fail("{} rows do not fill ranges of {}", x.size(0), row_count(ranges));
  const Tensor y = placed(x, ranges, rows);
  tape.record(y, {x}, [x, y, ranges = std::move(ranges)](Tape& t) {
    t.accumulate(x, taken(t.take(y), ranges));
  });
  return y;
}

}  // namespace vfm::ops
