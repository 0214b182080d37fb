// The processes that train together, and the collectives between them.
//
// One process alone is a world of one, where every collective is free; mpirun's processes are an
// MPI world; dist/threads.h has a world of threads. Every rank must call the same collectives in
// the same order. Some ranks among themselves are a Group (dist/group.h). Not here: how work is
// dealt (train/). Errors: a failing collective throws Error naming the operation,
// host and rank. Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/group.h"
#include "dist/traffic.h"
#include "tensor/tensor.h"

namespace vfm::dist {

class MessageGroup;
struct Section;

class World {
 public:
  World();
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host() const = 0;
  /// How many ranks share this one's machine, itself included.
  virtual int local_size() const { return size(); }
  /// The least local_size() of all ranks: the same on all of them.
  virtual int least_local_size() const { return local_size(); }

  /// What the ranks do from now on, one of "setup", "step", "checkpoint"; and for how many seconds
  /// a rank waits for the others, 0: for ever. A rank that is not at a collective in that time is
  /// named with its host, and every process ends with status 1. A world of one waits for nobody.
  virtual void section(std::string_view what, double limit);

  /// A collective: every rank names the ranks of its own group, ascending, itself among them; two
  /// groups have no rank in common. `axis` is what errors and traffic() call it, the same
  /// everywhere.
  virtual std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) = 0;
  /// A collective; what this rank computes on. If all have a GPU, groups that are made from now on
  /// carry its tensors by NCCL, and sums of floats add in the order of the ranks only if they are
  /// to be `ordered`, which costs more. Else, with a warning that says why, these tensors go by way
  /// of the hosts, as without this call. Throws Error{usage}, on all ranks, that names those which
  /// have one GPU together.
  virtual void use_device(Device device, bool ordered);
  /// What this rank's groups sent.
  Traffic& traffic() { return traffic_; }

  /// In place: afterwards every rank holds the same sums, to the bit. The order of additions
  /// depends on the number of ranks only.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual void all_reduce_sum(std::span<double> values) = 0;
  /// In place, from rank 0.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Every rank's text, by rank, on rank 0; empty elsewhere.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  virtual void barrier() = 0;

  /// Ends every process of the world: what is left to do when one rank failed and the others would
  /// wait for it for ever. Does not return. Not for a world of one: throw instead.
  [[noreturn]] virtual void end_all(int status) = 0;

 protected:
  /// Has a new group do what use_device() said. A collective of the group.
  void equip(MessageGroup& group);

 private:
  Traffic traffic_;
  const std::shared_ptr<Section> section_;
  std::optional<bool> nccl_sums_;  // tensors go by NCCL, and whether sums are ordered
};

/// What a rank says in World::use_device().
struct RankDevice {
  std::string host, gpu;  ///< gpu_uuid(), or empty
  std::string no_nccl;    ///< why it has no NCCL
};
/// Which ranks have one GPU together, and what to do about it; empty: none.
std::string shared_gpus(std::span<const RankDevice> ranks);

/// The values of rank 0, on every rank.
void broadcast(World& world, std::span<float> values);
std::string broadcast(World& world, const std::string& text);

std::unique_ptr<World> self_world();

/// One rank of many that are not there: what its groups do with tensors on Device::meta is counted,
/// in traffic() and by the account of memory; all else that needs the others throws Error.
std::unique_ptr<World> counted_world(int rank, int size);

/// The MPI world; initialises MPI. Call once, with a launcher (without one MPI_Init is slow and of
/// no use). A thread of its own calls MPI, so messages move while the others compute. Messages of
/// groups come `late` seconds late, for benchmarks. Throws Error if this build has no MPI.
std::unique_ptr<World> mpi_world(double late = 0);
bool has_mpi();

}  // namespace vfm::dist
