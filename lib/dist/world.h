// The processes that train together, and the collectives between them.
//
// A single process is a world of one, in which every collective is free. mpirun's processes are an
// MPI world. dist/threads.h has a world of threads. Every rank must call the same collectives in
// the same order. Some ranks among themselves form a Group (dist/group.h). Not here: how work is
// dealt to ranks (train/). Errors: a failing collective throws Error with the operation, host and
// rank. Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/flight_recorder.h"
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
  /// Number of ranks on this rank's machine, including this one.
  virtual int local_size() const { return size(); }
  /// The smallest local_size() of all ranks, the same on every rank.
  virtual int least_local_size() const { return local_size(); }

  /// Says what the ranks do from now on ("setup", "step", "validation", "checkpoint" or "step
  /// beside a checkpoint"), and how many seconds a rank waits for the others; 0: for ever. If a
  /// rank does not come to a collective in that time, it is named with its host, and every process
  /// ends with status 5. The time becomes shorter where it is known how long a "step" takes
  /// (dist/section_times.h). A world of one never waits.
  virtual void section(std::string_view what, double limit);
  /// Sets within how many seconds a rank is named whose process is stopped or gone, or whose host
  /// or link is down, and the least limit that is learnt of sections; 0: neither. Without this
  /// call 10.
  virtual void silent_limit(double seconds);
  /// Sets the folder of the flight records (dist/flight_recorder.h), which are written if the run
  /// dies. Call it on all ranks. Records of an earlier run are removed.
  virtual void record_to(const std::string& folder);
  FlightRecorder& recorder() { return recorder_; }

  /// A collective. Every rank gives the ranks of its own group, ascending and including itself; two
  /// groups have no rank in common. `axis` names the group in errors and in traffic(), and must be
  /// the same on every rank.
  virtual std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) = 0;
  /// The group "world" of all ranks. A collective the first time.
  virtual Group& all();
  /// A collective. `device` is what this rank computes on. If all ranks have a GPU, groups made
  /// from now on carry GPU tensors by NCCL. With `ordered`, which costs more, sums of floats then
  /// add in the order of the ranks. If not all have one, GPU tensors go through the hosts, as
  /// without this call, and a warning says why. Throws Error{usage} on all ranks if ranks share a
  /// GPU, and names them.
  virtual void use_device(Device device, bool ordered);
  /// Counts what this rank's groups have sent.
  Traffic& traffic() { return traffic_; }

  /// In place: afterwards every rank holds the same sums, to the bit. The order of the additions
  /// depends only on the number of ranks.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual void all_reduce_sum(std::span<double> values) = 0;
  /// In place: every rank gets the bytes of rank 0.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// On rank 0 returns every rank's text, in the order of the ranks; on other ranks nothing.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  virtual void barrier() = 0;

  /// Ends every process of the world, for when one rank failed and the others would wait for it for
  /// ever. Does not return. In a world of one, throw instead.
  [[noreturn]] virtual void end_all(int status) = 0;
  /// Returns after `seconds`, or never if the run ends because another rank was lost: an error of
  /// this rank may come from that, and need not be told then.
  virtual void await_end(double) {}

 protected:
  /// Gives a new group the carrier that use_device() chose. A collective of the group.
  void equip(MessageGroup& group);
  Section& current_section() { return *section_; }

 private:
  Traffic traffic_;
  FlightRecorder recorder_;
  std::unique_ptr<Group> world_;  // what all() has made
  const std::shared_ptr<Section> section_;
  std::optional<bool> nccl_sums_;  // empty: no NCCL; else whether its sums are ordered
};

/// A rank's report in World::use_device().
struct RankDevice {
  std::string host, gpu;  ///< gpu_uuid() of its GPU; empty: it has no GPU
  std::string no_nccl;    ///< why NCCL cannot be used; empty: it can
};
/// Text that names the ranks that share one GPU, and what to do about it; empty if none do.
std::string shared_gpus(std::span<const RankDevice> ranks);

/// Every rank gets the values of rank 0.
void broadcast(World& world, std::span<float> values);
std::string broadcast(World& world, const std::string& text);

std::unique_ptr<World> self_world();

/// One rank of `size` ranks that do not exist. What its groups do with tensors on Device::meta is
/// counted, in traffic() and by the account of memory. Any other exchange throws Error.
std::unique_ptr<World> counted_world(int rank, int size);

/// Initialises MPI and returns the MPI world. Call it once, and only under a launcher (without one
/// MPI_Init is slow and useless). A thread of its own calls MPI, so messages move while the other
/// threads compute. `late` delays the messages of groups by that many seconds, for benchmarks.
/// Throws Error if this build has no MPI.
std::unique_ptr<World> mpi_world(double late = 0);
bool has_mpi();

}  // namespace vfm::dist
