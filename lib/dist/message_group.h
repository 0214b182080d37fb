// Inside lib/dist only: a group whose collectives are messages between its ranks, on the host.
//
// Every part goes straight from the rank that has it to the rank that wants it. Sums are made where
// their part belongs: parts travel in an all-to-all, are added there in the order of the ranks, and
// are gathered again for all_reduce; at most kStaging bytes of other ranks' parts lie here at a
// time. Tensors on the GPU go by way of the host's memory; those on meta are counted, not moved.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dist/group.h"
#include "dist/wire.h"

namespace vfm::dist {

inline constexpr std::size_t kStaging = std::size_t{64} << 20;

class MessageGroup final : public Group {
 public:
  /// `wire` null: no other rank can be reached, so there is none, or all tensors are on meta.
  MessageGroup(std::string axis, int rank, std::vector<int> ranks, std::unique_ptr<Wire> wire,
               Engine& engine);

  void barrier() override;
  std::vector<std::string> gather(const std::string& text) override;

 protected:
  std::unique_ptr<Pending> start(const Call& call) override;

 private:
  std::shared_ptr<Running> run(Operation operation, const std::string& described,
                               Running::Next next);
  void count(const Call& call);
  std::unique_ptr<Wire> wire_;
  Engine& engine_;
  std::int64_t number_ = 0;  // of the last collective
};

/// Throws Error unless `ranks` are ascending ranks of a world of `size`, `rank` among them.
/// Returns the place of `rank`.
int place_in(const std::vector<int>& ranks, int rank, int size, std::string_view axis);

}  // namespace vfm::dist
