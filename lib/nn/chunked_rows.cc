// SPDX-License-Identifier: Apache-2.0
#include "nn/chunked_rows.h"

#include <utility>

#include "base/error.h"
#include "nn/placement.h"
#include "ops/pointwise/add.h"

namespace vfm::nn {
namespace {

using ops::RowRange;

class ChunkedRows final : public ops::RowChunks {
 public:
  ChunkedRows(dist::Group& group, const std::vector<std::int64_t>& rows, int parts)
      : group_(group), ranks_(group.size()), parts_(parts), begins_{0} {
    for (const std::int64_t count : rows)
      begins_.push_back(begins_.back() + count);
  }

  std::unique_ptr<ops::ComingRows> gather(const Tensor& x) const override;
  Tensor sum(std::int64_t columns, DType dtype, Device device, const Make& make,
             const std::function<void()>& meanwhile) const override;

 private:
  friend class Gathering;
  int rank() const { return group_.rank(); }
  int after(int step) const { return (rank() + step) % ranks_; }
  int before(int step) const { return (rank() - step + ranks_) % ranks_; }
  /// Of all rows those of a rank, and one of its chunks.
  RowRange rows_of(int rank) const {
    const auto i = static_cast<std::size_t>(rank);
    return {begins_[i], begins_[i + 1]};
  }
  RowRange chunk(int rank, int part) const {
    const RowRange all = rows_of(rank);
    return {all.begin + share(all.count(), part, parts_),
            all.begin + share(all.count(), part + 1, parts_)};
  }
  static Tensor part_of(const Tensor& some, const RowRange& all, const RowRange& rows) {
    return some.rows(rows.begin - all.begin, rows.end - all.begin);
  }

  dist::Group& group_;
  const int ranks_, parts_;
  std::vector<std::int64_t> begins_;
};

/// All messages are under way from the beginning: nothing has to be computed for them.
class Gathering final : public ops::ComingRows {
 public:
  Gathering(const ChunkedRows& rows, const Tensor& x)
      : own_(rows.rows_of(rows.rank())),
        all_({rows.begins_.back(), x.size(1)}, x.dtype(), x.device()) {
    if (x.size(0) != own_.count())
      fail("rank {} of {} has {} rows, not {}", rows.rank(), rows.group_.axis(), x.size(0),
           own_.count());
    for (int step = 1; step < rows.ranks_; ++step)
      for (int part = 0; part < rows.parts_; ++part) {
        const RowRange leaves = rows.chunk(rows.rank(), part),
                       comes = rows.chunk(rows.before(step), part);
        coming_.push_back(
            {comes, rows.group_.exchange(rows.after(step), ChunkedRows::part_of(x, own_, leaves),
                                         rows.before(step), all_.rows(comes.begin, comes.end))});
      }
    copy(x, all_.rows(own_.begin, own_.end));
  }

  Tensor rows() const override { return all_; }
  std::optional<RowRange> next() override {
    if (!std::exchange(has_own_, true) && own_.count() > 0) return own_;
    while (next_ < coming_.size()) {
      Part& part = coming_[next_++];
      part.transfer.wait();
      if (part.rows.count() > 0) return part.rows;
    }
    return std::nullopt;
  }

 private:
  struct Part {
    RowRange rows;
    dist::Transfer transfer;
  };
  const RowRange own_;
  const Tensor all_;
  std::vector<Part> coming_;
  std::size_t next_ = 0;
  bool has_own_ = false;
};

std::unique_ptr<ops::ComingRows> ChunkedRows::gather(const Tensor& x) const {
  return std::make_unique<Gathering>(*this, x);
}

Tensor ChunkedRows::sum(std::int64_t columns, DType dtype, Device device, const Make& make,
                        const std::function<void()>& meanwhile) const {
  const RowRange own = rows_of(rank());
  const Tensor result({own.count(), columns}, dtype, device),
      others({ranks_ - 1, own.count(), columns}, dtype, device);  // by rank
  std::vector<dist::Transfer> moving;
  for (int step = 1; step < ranks_; ++step) {
    const int to = after(step), from = before(step);
    const int slot = from - (from > rank() ? 1 : 0);
    const Tensor made({rows_of(to).count(), columns}, dtype, device),
        comes = others.rows(slot, slot + 1).reshape(result.shape());
    for (int part = 0; part < parts_; ++part) {
      const RowRange leaves = chunk(to, part);
      const Tensor rows = part_of(made, rows_of(to), leaves);
      if (leaves.count() > 0) make(leaves, rows);
      moving.push_back(group_.exchange(to, rows, from, part_of(comes, own, chunk(rank(), part))));
    }
  }
  if (own.count() > 0) make(own, result);
  if (meanwhile) meanwhile();
  for (dist::Transfer& transfer : moving)
    transfer.wait();
  ops::add_in_order(result, rank(), others);
  return result;
}

}  // namespace

int chunks_of_rank(int chunks, int ranks) {
  return (chunks + ranks - 1) / ranks;
}

std::shared_ptr<const ops::RowChunks> chunked_rows(dist::Group& group,
                                                   std::vector<std::int64_t> rows, int chunks) {
  if (group.size() == 1 || chunks <= 1) return nullptr;
  return std::make_shared<ChunkedRows>(group, rows, chunks_of_rank(chunks, group.size()));
}

}  // namespace vfm::nn
