// What the ranks of one run send each other, and how long this one waits for the others.
//
// Counted per axis (the name of a group) and operation. `calls` counts operations of groups of two
// or more ranks; `bytes` the payload that leaves this rank: what it sends to another rank, not what
// stays here, and none of the lengths and signs of life that the backends send besides. With n
// ranks, parts of w_0 … w_(n-1) bytes, W their sum, rank r sends
//
//   all_gather      (n-1) w_r               its own part to every other rank
//   reduce_scatter  W - w_r                 every other rank's part to that rank
//   all_reduce      (W - w_r) + (n-1) w_r   both, the tensor split as evenly as it goes
//   all_to_all      its parts for others    all but the one for itself
//   broadcast       (n-1) W on the root, 0 elsewhere
//   exchange, send  what it sends to another; receive 0; barrier 0
//   gather          its text, 0 on the root
//
// With even parts the first three are (n-1)/n W and 2 (n-1)/n W: those of a ring, too.
// Thread-safety: that of the World it belongs to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::dist {

enum class Operation {
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  exchange,
  send,
  receive,
  barrier,
  gather
};
inline constexpr std::size_t kOperations = 10;
std::string_view operation_name(Operation operation);  ///< "all_gather", ...

class Traffic {
 public:
  struct Count {
    std::int64_t calls = 0, bytes = 0;
    bool operator==(const Count&) const = default;
  };

  void called(std::string_view axis, Operation operation);
  void sent(std::string_view axis, Operation operation, std::size_t bytes);
  void waited(std::string_view axis, double seconds);

  /// Zeros for what never was.
  Count of(std::string_view axis, Operation operation) const;
  Count of(std::string_view axis) const;  ///< all operations together
  double seconds(std::string_view axis) const;
  std::vector<std::string> axes() const;  ///< those with a call, in the order of their names
  void reset() { axes_.clear(); }

 private:
  struct Axis {
    std::array<Count, kOperations> counts;
    double seconds = 0;
  };
  Axis& axis(std::string_view name);
  std::map<std::string, Axis, std::less<>> axes_;
};

}  // namespace vfm::dist
