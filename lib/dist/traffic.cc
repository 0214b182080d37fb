// SPDX-License-Identifier: Apache-2.0
#include "dist/traffic.h"

namespace vfm::dist {

std::string_view operation_name(Operation operation) {
  constexpr std::array<std::string_view, kOperations> kNames = {
      "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast",
      "exchange",   "send",           "receive",    "barrier",    "gather"};
  return kNames[static_cast<std::size_t>(operation)];
}

Traffic::Axis& Traffic::axis(std::string_view name) {
  const auto found = axes_.find(name);
  return found != axes_.end() ? found->second : axes_[std::string(name)];
}

void Traffic::called(std::string_view name, Operation operation) {
  ++axis(name).counts[static_cast<std::size_t>(operation)].calls;
}

void Traffic::sent(std::string_view name, Operation operation, std::size_t bytes) {
  axis(name).counts[static_cast<std::size_t>(operation)].bytes += static_cast<std::int64_t>(bytes);
}

void Traffic::waited(std::string_view name, double seconds) {
  axis(name).seconds += seconds;
}

Traffic::Count Traffic::of(std::string_view name, Operation operation) const {
  const auto found = axes_.find(name);
  return found == axes_.end() ? Count{} : found->second.counts[static_cast<std::size_t>(operation)];
}

Traffic::Count Traffic::of(std::string_view name) const {
  Count all;
  if (const auto found = axes_.find(name); found != axes_.end())
    for (const Count& count : found->second.counts) {
      all.calls += count.calls;
      all.bytes += count.bytes;
    }
  return all;
}

double Traffic::seconds(std::string_view name) const {
  const auto found = axes_.find(name);
  return found == axes_.end() ? 0 : found->second.seconds;
}

std::vector<std::string> Traffic::axes() const {
  std::vector<std::string> names;
  for (const auto& [name, axis] : axes_)
    if (of(name).calls > 0) names.push_back(name);
  return names;
}

}  // namespace vfm::dist
