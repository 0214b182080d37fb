// SPDX-License-Identifier: Apache-2.0
#include "dist/world.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <exception>

#include "base/error.h"
#include "dist/message_group.h"
#include "tensor/device.h"

namespace vfm::dist {
namespace {

/// Of a rank that waits for nobody.
class SelfEngine final : public Engine {
 public:
  using Engine::Engine;
  void drop(const std::shared_ptr<Running>& running) override { forget(running); }

 protected:
  void wait(const Running& running, const std::function<bool()>&) override {
    fail("{}: a rank alone waits for others", running.what().place);
  }
};

class SelfWorld final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string host() const override {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  }
  std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) override {
    const int place = place_in(ranks, 0, 1, axis);
    return std::make_unique<MessageGroup>(std::string(axis), place, std::move(ranks), nullptr,
                                          engine_);
  }
  void all_reduce_sum(std::span<float>) override {}
  void all_reduce_sum(std::span<double>) override {}
  void all_reduce_sum(std::span<const Tensor>) override {}
  void broadcast(std::span<std::byte>) override {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  void barrier() override {}
  [[noreturn]] void end_all(int) override { std::terminate(); }

 private:
  SelfEngine engine_{traffic()};
};

}  // namespace

void World::section(std::string_view, double) {}

void World::all_reduce_sum(std::span<const Tensor> tensors) {
  constexpr std::size_t kMessage = std::size_t{4} << 20;  // floats
  std::vector<float> message;
  const auto move = [&](std::span<const Tensor> part, bool back) {
    float* at = message.data();
    for (const Tensor& tensor : part) {
      if (back)
        copy_bytes(tensor.raw(), tensor.device(), at, Device::cpu, tensor.bytes());
      else
        copy_bytes(at, Device::cpu, tensor.raw(), tensor.device(), tensor.bytes());
      at += tensor.elements();
    }
  };
  for (std::size_t begin = 0, end = 0; begin < tensors.size(); begin = end) {
    std::size_t count = 0;
    while (end < tensors.size() && (count == 0 || count < kMessage))
      count += static_cast<std::size_t>(tensors[end++].elements());
    message.resize(count);
    const std::span<const Tensor> part = tensors.subspan(begin, end - begin);
    move(part, false);
    all_reduce_sum(std::span<float>(message));
    move(part, true);
  }
}

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
