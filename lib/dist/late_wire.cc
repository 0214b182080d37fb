// SPDX-License-Identifier: Apache-2.0
#include "dist/late_wire.h"

#include <optional>
#include <utility>

#include "base/stopwatch.h"

namespace vfm::dist {
namespace {

class LateFlight final : public Flight {
 public:
  LateFlight(std::unique_ptr<Flight> flight, double seconds)
      : flight_(std::move(flight)), seconds_(seconds) {}
  bool landed() override {
    if (!arrived_ && flight_->landed()) arrived_.emplace();
    return arrived_ && arrived_->seconds() >= seconds_;
  }
  std::vector<int> awaited() override { return flight_->awaited(); }

 private:
  const std::unique_ptr<Flight> flight_;
  const double seconds_;
  std::optional<Stopwatch> arrived_;
};

class LateWire final : public Wire {
 public:
  LateWire(std::unique_ptr<Wire> wire, double seconds)
      : wire_(std::move(wire)), seconds_(seconds) {}
  void begin(std::int64_t number, const std::string& what) override { wire_->begin(number, what); }
  std::unique_ptr<Flight> post(int tag, const std::string& place,
                               const std::vector<Message>& messages) override {
    return std::make_unique<LateFlight>(wire_->post(tag, place, messages), seconds_);
  }

 private:
  const std::unique_ptr<Wire> wire_;
  const double seconds_;
};

}  // namespace

std::unique_ptr<Wire> late_wire(std::unique_ptr<Wire> wire, double seconds) {
  return std::make_unique<LateWire>(std::move(wire), seconds);
}

}  // namespace vfm::dist
