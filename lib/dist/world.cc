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

/// A rank without the others.
class SelfWorld final : public World {
 public:
  SelfWorld(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  }
  std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) override {
    const int place = place_in(ranks, rank_, size_, axis);
    return std::make_unique<MessageGroup>(std::string(axis), place, std::move(ranks), nullptr,
                                          engine_);
  }
  void all_reduce_sum(std::span<float>) override { check_alone("sum"); }
  void all_reduce_sum(std::span<double>) override { check_alone("sum"); }
  void all_reduce_sum(std::span<const Tensor> tensors) override {
    for (const Tensor& tensor : tensors)
      if (tensor.device() != Device::meta) check_alone("sum");
  }
  void broadcast(std::span<std::byte>) override { check_alone("broadcast"); }
  std::vector<std::string> gather(const std::string& text) override {
    check_alone("gather");
    return {text};
  }
  void barrier() override { check_alone("barrier"); }
  [[noreturn]] void end_all(int) override { std::terminate(); }

 private:
  void check_alone(const char* operation) const {
    if (size_ > 1) fail("{}: the other {} ranks are not there", operation, size_ - 1);
  }
  const int rank_, size_;
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
  return std::make_unique<SelfWorld>(0, 1);
}
std::unique_ptr<World> counted_world(int rank, int size) {
  return std::make_unique<SelfWorld>(rank, size);
}

}  // namespace vfm::dist
