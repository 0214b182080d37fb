// SPDX-License-Identifier: Apache-2.0
#include "dist/world.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

using namespace vfm::dist;

TEST_CASE("world: one process alone") {
  const auto world = self_world();
  CHECK(world->size() == 1);
  CHECK(world->rank() == 0);
  CHECK_FALSE(world->host().empty());
  std::vector<float> values = {1, 2, 3};
  world->all_reduce_sum(std::span<float>(values));
  broadcast(*world, std::span<float>(values));
  CHECK(values == std::vector<float>{1, 2, 3});
  CHECK(broadcast(*world, std::string("text")) == "text");
  CHECK(world->gather("a") == std::vector<std::string>{"a"});
  world->barrier();
}

namespace {

// As if another rank had the same values; keeps the sizes of the messages.
class TwoAlike final : public World {
 public:
  std::vector<std::size_t> messages;

  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string host() const override { return "here"; }
  std::unique_ptr<Group> group(std::string_view, std::vector<int>) override { return nullptr; }
  void all_reduce_sum(std::span<float> values) override {
    messages.push_back(values.size());
    for (float& value : values)
      value *= 2;
  }
  using World::all_reduce_sum;
  void all_reduce_sum(std::span<double>) override {}
  void broadcast(std::span<std::byte>) override {}
  std::vector<std::string> gather(const std::string& text) override { return {text, text}; }
  void barrier() override {}
  [[noreturn]] void end_all(int) override { std::terminate(); }
};

}  // namespace

TEST_CASE("world: tensors are summed where they lie, small ones in one message") {
  using vfm::Tensor;
  constexpr std::int64_t kMany = 5 << 20;
  std::vector<Tensor> tensors;
  for (const std::int64_t size : std::initializer_list<std::int64_t>{3, 1, kMany, 2}) {
    tensors.emplace_back(vfm::Shape{size});
    std::iota(tensors.back().data<float>(), tensors.back().data<float>() + size, 1.f);
  }
  TwoAlike world;
  world.all_reduce_sum(std::span<const Tensor>(tensors));
  CHECK(world.messages == std::vector<std::size_t>{4 + std::size_t{kMany}, 2});
  for (const Tensor& tensor : tensors)
    for (const std::int64_t i : {std::int64_t{0}, tensor.elements() - 1})
      CHECK(tensor.data<float>()[i] == 2.f * static_cast<float>(i + 1));
  self_world()->all_reduce_sum(std::span<const Tensor>(tensors));
  CHECK(tensors[0].data<float>()[0] == 2);
}
