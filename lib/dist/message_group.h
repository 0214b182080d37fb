// Inside lib/dist only: a group that builds its collectives from messages between the ranks, on the
// host.
//
// Every part goes directly from the rank that has it to the rank that needs it. A sum is computed
// on the rank that owns that part: the parts travel in an all-to-all and are added there in the
// order of the ranks. all_reduce then gathers the sums. At most kStaging bytes of other ranks'
// parts are held at a time. GPU tensors go through a DeviceCarrier; without one they are copied
// through the host's memory. Tensors on Device::meta are counted, not moved.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dist/device_carrier.h"
#include "dist/group.h"
#include "dist/wire.h"

namespace vfm::dist {

inline constexpr std::size_t kStaging = std::size_t{64} << 20;
/// Number of elements of each rank's part that a sum handles at a time. The elements of all ranks
/// together fill kStaging bytes.
constexpr std::size_t sum_chunk(std::size_t element, std::size_t ranks) {
  return std::max<std::size_t>(1, kStaging / (ranks * element));
}

class MessageGroup final : public Group {
 public:
  /// `wire` may be null if the group has one rank, or if all tensors are on Device::meta.
  MessageGroup(std::string axis, int rank, std::vector<int> ranks, std::unique_ptr<Wire> wire,
               Engine& engine);
  /// Lets `carrier` carry GPU tensors from now on.
  void use(std::unique_ptr<DeviceCarrier> carrier) { carrier_ = std::move(carrier); }

  void barrier() override;
  std::vector<std::string> gather(const std::string& text) override;

 protected:
  std::unique_ptr<Pending> start(const Call& call) override;

 private:
  Running::What begin(Operation operation, const std::string& described);
  /// What begin() began, for the flight recorder. `to` and `from` are ranks of the group, of a
  /// message between two ranks.
  FlightRecorder::Ticket record(Operation operation, const std::string& described, int to = -1,
                                int from = -1, bool gpu = false);
  /// `bytes` is what this rank sends.
  std::shared_ptr<Running> run(Operation operation, const std::string& described, std::size_t bytes,
                               Running::Next next, int to = -1, int from = -1);
  std::unique_ptr<Pending> count(const Call& call);
  std::unique_ptr<Wire> wire_;
  Engine& engine_;
  std::unique_ptr<DeviceCarrier> carrier_;
  const int recorded_as_;    // the group's number in the flight recorder
  std::int64_t number_ = 0;  // number of the last collective
};

/// Returns the place of `rank` in `ranks`. Throws Error unless `ranks` are ascending ranks of a
/// world of `size` and contain `rank`.
int place_in(const std::vector<int>& ranks, int rank, int size, std::string_view axis);

}  // namespace vfm::dist
