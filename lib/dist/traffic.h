// Counts what a rank of a run sends to the others, and how long it waits for them.
//
// Counts are kept for each axis (the name of a group) and operation. The field `calls` counts
// operations of groups of two or more ranks. The field `bytes` counts the payload that leaves this
// rank: not what stays here, and not the lengths and status messages that backends add. With n
// ranks and parts of w_0 … w_(n-1) bytes, whose sum is W, rank r sends
//
//   all_gather      (n-1) w_r               its own part to every other rank
//   reduce_scatter  W - w_r                 every other rank's part to that rank
//   all_reduce      (W - w_r) + (n-1) w_r   both; the tensor is split as evenly as possible
//   all_to_all      all parts of its input except its own
//   broadcast       (n-1) W on the root, 0 elsewhere
//   exchange, send  the tensor it sends; receive 0; barrier 0
//   gather          its text; 0 on the root
//
// With even parts the first three are (n-1)/n W, (n-1)/n W and 2 (n-1)/n W, as in a ring.
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

  /// Zeros if nothing was counted.
  Count of(std::string_view axis, Operation operation) const;
  Count of(std::string_view axis) const;  ///< all operations together
  double seconds(std::string_view axis) const;
  std::vector<std::string> axes() const;  ///< axes with a call, sorted by name
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
