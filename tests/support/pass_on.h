// What a group or a world that stands before another one passes on to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dist/group.h"
#include "dist/world.h"

namespace vfm {

inline dist::Transfer pass_on(dist::Group& group, const dist::Call& call) {
  const auto flat = [](const Tensor& tensor) { return tensor.reshape({tensor.elements()}); };
  switch (call.operation) {
    case dist::Operation::all_gather:
      return group.all_gather(flat(call.in), flat(call.out), call.from);
    case dist::Operation::reduce_scatter:
      return group.reduce_scatter(flat(call.in), flat(call.out), call.to);
    case dist::Operation::all_to_all:
      return group.all_to_all(flat(call.in), flat(call.out), call.to, call.from);
    case dist::Operation::all_reduce:
      if (call.sum == dist::Sum::f64)
        return group.all_reduce(
            std::span(static_cast<double*>(call.out.raw()), call.out.bytes() / sizeof(double)));
      return group.all_reduce(call.out);
    case dist::Operation::broadcast:
      return group.broadcast(call.out, call.source);
    case dist::Operation::exchange:
      return group.exchange(call.target, call.in, call.source, call.out);
    case dist::Operation::send:
      return group.send(call.target, call.in);
    default:
      return group.receive(call.source, call.out);
  }
}

/// All but the groups.
class PassingWorld : public dist::World {
 public:
  /// Must outlive it.
  explicit PassingWorld(dist::World& world) : world_(world) {}

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string host() const override { return world_.host(); }
  int local_size() const override { return world_.local_size(); }
  int least_local_size() const override { return world_.least_local_size(); }
  void section(std::string_view what, double limit) override { world_.section(what, limit); }
  void silent_limit(double seconds) override { world_.silent_limit(seconds); }
  void record_to(const std::string& folder) override { world_.record_to(folder); }
  void all_reduce_sum(std::span<float> values) override { world_.all_reduce_sum(values); }
  void all_reduce_sum(std::span<double> values) override { world_.all_reduce_sum(values); }
  void broadcast(std::span<std::byte> bytes) override { world_.broadcast(bytes); }
  std::vector<std::string> gather(const std::string& text) override { return world_.gather(text); }
  void barrier() override { world_.barrier(); }
  [[noreturn]] void end_all(int status) override {
    world_.end_all(status);
    std::terminate();
  }

 protected:
  dist::World& world_;
};

}  // namespace vfm
