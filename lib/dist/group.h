// Some ranks of a World that exchange tensors among themselves, as those along one axis of a mesh
// (dist/mesh.h) do.
//
// A rank has a number here, its place in ranks(), and one in the world. The ranks of a group call
// the same collectives in the same order, with shapes that fit; ranks of different groups need not
// agree. That makes the order of all collectives a pure function of the plan that the ranks agreed
// on. Threads (dist/threads.h) report a rank that calls something else, and both calls; MPI
// compares the sizes of what arrives, and names both calls when the wait is too long.
//
// Every operation starts at once and is finished by Transfer::wait(). Until then nobody changes
// what it reads, nor looks at what it writes; it keeps the tensors, but not memory that lend()
// borrowed. While its rank waits for anything of its World, all its operations go on: so they may
// be waited for in any order. A send is not buffered: it ends when it is received.
// Where every rank has a GPU (World::use_device) tensors on it go from GPU to GPU, and wait() makes
// the compute stream wait, not the host. There one operation of a group follows the other, so two
// ranks that send each other something exchange() it.
//
// Sums add in the order of the ranks, ((x0 + x1) + x2) + ..., so they have the same bits on every
// rank and every backend: f32 in f32, bf16 in f32 with one rounding at the end, f64, i64. From GPU
// to GPU those of floats do so only if asked to; else the order is NCCL's, the same on every rank.
// Parts of a tensor are ranges of its dim 0, in the order of the ranks; any may be empty, and
// nothing is sent for an empty one. A group of one rank copies, and counts nothing.
//
// Errors: shapes that do not fit, at the call; another rank's failure, in wait(). After either the
// group is of no more use. Thread-safety: the thread that made the World, which must outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/traffic.h"
#include "tensor/tensor.h"

namespace vfm::dist {

/// An operation under way, as its backend sees it. Its end, unfinished, is no way to stop the
/// others.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
};

/// An operation that was started.
class [[nodiscard]] Transfer {
 public:
  Transfer() = default;  ///< of nothing: done
  explicit Transfer(std::unique_ptr<Pending> pending) : pending_(std::move(pending)) {}
  /// Returns when it is finished here; the second time at once.
  void wait();
  /// Whether wait() would return at once. Lets it go on.
  bool done() { return !pending_ || pending_->done(); }

 private:
  std::unique_ptr<Pending> pending_;
};

/// How the elements of a sum are read.
enum class Sum { none, f32, bf16, f64, i64 };

/// What a backend is asked for; checked. Counts are elements, of `element` bytes each, by rank.
struct Call {
  Operation operation = Operation::barrier;
  Tensor in, out;  ///< what it reads, what it writes. all_reduce and broadcast: `out` is both
  std::vector<std::int64_t> to, from;  ///< of `in` for each rank, of `out` from each rank
  int target = -1, source = -1;        ///< exchange, send, receive; broadcast's root is the source
  Sum sum = Sum::none;
  std::size_t element = 1;
};
/// "all_gather of F32 elements [6 0 3]": what the ranks of one collective have in common.
std::string describe(const Call& call);
/// What a rank sends in it, as dist/traffic.h says.
std::size_t bytes_sent(const Call& call, int rank, int size);

class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::string& axis() const { return axis_; }
  const std::vector<int>& ranks() const { return ranks_; }  ///< their ranks in the world, ascending

  /// out [sum of rows, ...] = in [rows[rank], ...] of every rank. `rows`: dim 0 of each rank's
  /// `in`, the same list everywhere; empty: all as here. `in` may be its own part of `out`.
  Transfer all_gather(const Tensor& in, const Tensor& out, std::span<const std::int64_t> rows = {});
  /// out [rows[rank], ...] = the sum of all ranks' in [sum of rows, ...], of this rank's part.
  /// `rows` empty: even parts. `out` may be its own part of `in`.
  Transfer reduce_scatter(const Tensor& in, const Tensor& out,
                          std::span<const std::int64_t> rows = {});
  /// In place: the sum, on every rank.
  Transfer all_reduce(const Tensor& values);
  Transfer all_reduce(std::span<float> values);
  Transfer all_reduce(std::span<double> values);
  /// Rank r gets the part r of `in`, of to[r] rows; `out` is made of from[r] rows of each rank r.
  /// to[r] here is from[this rank] there. Both empty: even parts.
  Transfer all_to_all(const Tensor& in, const Tensor& out, std::span<const std::int64_t> to = {},
                      std::span<const std::int64_t> from = {});
  /// In place, from the rank `root`.
  Transfer broadcast(const Tensor& values, int root);
  /// One step of a ring: sends to one rank while it receives from another. What a rank sends to
  /// another arrives in the order of its calls, of exchange() and send() together.
  Transfer exchange(int to, const Tensor& out, int from, const Tensor& in);
  Transfer send(int to, const Tensor& values);
  Transfer receive(int from, const Tensor& values);

  /// Returns when every rank is here.
  virtual void barrier() = 0;
  /// Every rank's text, by rank, on rank 0; empty elsewhere.
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

/// Memory of the caller's as a tensor of bytes, which does not keep it.
Tensor lend(std::span<std::byte> bytes);

}  // namespace vfm::dist
