// Inside lib/dist only: a group whose collectives are messages between its ranks, on the host.
//
// Every part goes straight from the rank that has it to the rank that wants it. Sums are made where
// their part belongs: parts travel in an all-to-all, are added there in the order of the ranks, and
// are gathered again for all_reduce; at most kStaging bytes of other ranks' parts lie here at a
// time. Tensors on the GPU are given to a DeviceCarrier; without one they go by way of the host's
// memory. Those on meta are counted, not moved.
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
/// How many elements of each rank's part a sum takes at a time: all of them together, kStaging.
constexpr std::size_t sum_chunk(std::size_t element, std::size_t ranks) {
  return std::max<std::size_t>(1, kStaging / (ranks * element));
}

class MessageGroup final : public Group {
 public:
  /// `wire` null: no other rank can be reached, so there is none, or all tensors are on meta.
  MessageGroup(std::string axis, int rank, std::vector<int> ranks, std::unique_ptr<Wire> wire,
               Engine& engine);
  /// Has tensors of the GPU carried by it from now on.
  void use(std::unique_ptr<DeviceCarrier> carrier) { carrier_ = std::move(carrier); }

  void barrier() override;
  std::vector<std::string> gather(const std::string& text) override;

 protected:
  std::unique_ptr<Pending> start(const Call& call) override;

 private:
  Running::What begin(Operation operation, const std::string& described);
  /// `bytes`: what this rank sends.
  std::shared_ptr<Running> run(Operation operation, const std::string& described, std::size_t bytes,
                               Running::Next next);
  std::unique_ptr<Pending> count(const Call& call);
  std::unique_ptr<Wire> wire_;
  Engine& engine_;
  std::unique_ptr<DeviceCarrier> carrier_;
  std::int64_t number_ = 0;  // of the last collective
};

/// Throws Error unless `ranks` are ascending ranks of a world of `size`, `rank` among them.
/// Returns the place of `rank`.
int place_in(const std::vector<int>& ranks, int rank, int size, std::string_view axis);

}  // namespace vfm::dist
