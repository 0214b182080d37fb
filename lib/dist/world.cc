// SPDX-License-Identifier: Apache-2.0
#include "dist/world.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <exception>

namespace vfm::dist {
namespace {

class SelfWorld final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string host() const override {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  }
  void all_reduce_sum(std::span<float>) override {}
  void all_reduce_sum(std::span<double>) override {}
  void broadcast(std::span<std::byte>) override {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  void barrier() override {}
  [[noreturn]] void end_all(int) override { std::terminate(); }
};

}  // namespace

void World::section(std::string_view, double) {}

void broadcast(World& world, std::span<float> values) {
  world.broadcast(std::as_writable_bytes(values));
}

std::string broadcast(World& world, const std::string& text) {
  std::uint64_t size = text.size();
  world.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::string copy = text;
  copy.resize(size);
  world.broadcast(std::as_writable_bytes(std::span(copy.data(), copy.size())));
  return copy;
}

std::unique_ptr<World> self_world() {
  return std::make_unique<SelfWorld>();
}

}  // namespace vfm::dist
