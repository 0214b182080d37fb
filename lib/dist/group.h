// Some ranks of a World that exchange tensors among themselves, such as those along one axis of a
// mesh (dist/mesh.h).
//
// A rank has a number in the group, which is its place in ranks(), and a number in the world. The
// ranks of a group must call the same collectives in the same order, with shapes that fit together.
// Ranks of different groups need not agree, so the plan that the ranks agreed on determines the
// order of all collectives. With threads (dist/threads.h) a rank that calls something else is
// reported with both calls. MPI compares the sizes of what arrives, and names both calls when a
// rank waits too long.
//
// Every operation starts at once, and Transfer::wait() finishes it. Until then nobody may change
// the tensors that it reads, or look at those that it writes. The operation keeps its tensors
// alive, but not memory borrowed with lend(). While a rank waits for one operation of its World,
// all its other operations go on, so they may be waited for in any order. A send is not buffered:
// it ends when it is received.
// Where every rank has a GPU (World::use_device), GPU tensors go from GPU to GPU, and wait() makes
// the compute stream wait, not the host. There the operations of a group run one after another, so
// two ranks that send each other something use exchange().
//
// Sums add in the order of the ranks, ((x0 + x1) + x2) + ..., so every rank and every backend gets
// the same bits. Values of f32 add in f32, bf16 in f32 with one rounding at the end, f64 in f64,
// i64 in i64. From GPU to GPU, sums of floats add in this order only if use_device() was asked for
// it. Otherwise NCCL chooses an order, the same on every rank.
// The parts of a tensor are ranges of its dim 0, in the order of the ranks. Any part may be empty,
// and nothing is sent for it. A group of one rank only copies, and counts no traffic.
//
// Errors: shapes that do not fit throw at the call; another rank's failure throws in wait(). After
// either the group can no longer be used. Thread-safety: the thread that made the World. The World
// must outlive the group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/traffic.h"
#include "tensor/tensor.h"

namespace vfm::dist {

/// Error: MPI or NCCL could not exchange. The ranks did nothing wrong, so the run may be started
/// again.
class ExchangeFailed : public Error {
 public:
  using Error::Error;
};

/// An operation in progress, as its backend implements it. Destroying an unfinished one does not
/// stop the other ranks.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
};

/// Handle of an operation that was started.
class [[nodiscard]] Transfer {
 public:
  Transfer() = default;  ///< no operation: wait() returns at once
  explicit Transfer(std::unique_ptr<Pending> pending) : pending_(std::move(pending)) {}
  /// Returns when this rank's part of the operation is finished. A second call returns at once.
  void wait();
  /// Returns whether wait() would return at once. The call also lets the operation make progress.
  bool done() { return !pending_ || pending_->done(); }

 private:
  std::unique_ptr<Pending> pending_;
};

/// How the elements of a sum are read.
enum class Sum { none, f32, bf16, f64, i64 };

/// One checked operation, as a backend gets it. Counts are elements of `element` bytes, by rank.
struct Call {
  Operation operation = Operation::barrier;
  Tensor in, out;  ///< what it reads and writes. For all_reduce and broadcast `out` is both
  std::vector<std::int64_t> to, from;  ///< elements of `in` to each rank, of `out` from each rank
  /// For exchange, send and receive; `source` is also broadcast's root.
  int target = -1, source = -1;
  Sum sum = Sum::none;
  std::size_t element = 1;
};
/// "all_gather of F32 elements [6 0 3]": the part of a call that is the same on all ranks.
std::string describe(const Call& call);
/// Bytes that a rank sends in this call, counted as dist/traffic.h says.
std::size_t bytes_sent(const Call& call, int rank, int size);

class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::string& axis() const { return axis_; }
  /// The members' ranks in the world, ascending.
  const std::vector<int>& ranks() const { return ranks_; }

  /// out [sum of rows, ...] = in [rows[rank], ...] of every rank. The list `rows` has dim 0 of each
  /// rank's `in`, the same on every rank; empty: every `in` has the same dim 0. `in` may be this
  /// rank's part of `out`.
  Transfer all_gather(const Tensor& in, const Tensor& out, std::span<const std::int64_t> rows = {});
  /// out [rows[rank], ...] = this rank's part of the sum of all ranks' in [sum of rows, ...].
  /// `rows` empty: equal parts. `out` may be this rank's part of `in`.
  Transfer reduce_scatter(const Tensor& in, const Tensor& out,
                          std::span<const std::int64_t> rows = {});
  /// In place: every rank gets the sum.
  Transfer all_reduce(const Tensor& values);
  Transfer all_reduce(std::span<float> values);
  Transfer all_reduce(std::span<double> values);
  /// Rank r gets part r of `in`, to[r] rows. `out` is made of from[r] rows of each rank r. to[r] on
  /// this rank equals from[this rank] on rank r. Both empty: equal parts.
  Transfer all_to_all(const Tensor& in, const Tensor& out, std::span<const std::int64_t> to = {},
                      std::span<const std::int64_t> from = {});
  /// In place: every rank gets the values of the rank `root`.
  Transfer broadcast(const Tensor& values, int root);
  /// One step of a ring: sends to one rank while it receives from another. Messages to one rank, of
  /// exchange() and send() together, arrive in the order of the calls.
  Transfer exchange(int to, const Tensor& out, int from, const Tensor& in);
  Transfer send(int to, const Tensor& values);
  Transfer receive(int from, const Tensor& values);

  /// Returns when every rank has called it.
  virtual void barrier() = 0;
  /// On rank 0 returns every rank's text, in the order of the ranks; on other ranks nothing.
  virtual std::vector<std::string> gather(const std::string& text) = 0;

 protected:
  Group(std::string axis, int rank, std::vector<int> ranks);
  virtual std::unique_ptr<Pending> start(const Call& call) = 0;

 private:
  void check_rank(int rank, Operation operation) const;
  const std::string axis_;
  const int rank_;
  const std::vector<int> ranks_;
};

/// The caller's memory as a tensor of bytes, which does not own it.
Tensor lend(std::span<std::byte> bytes);

}  // namespace vfm::dist
