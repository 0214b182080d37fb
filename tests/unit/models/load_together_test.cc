// Ranks that read one set of weights together: what each gets, and who reads which bytes.
// SPDX-License-Identifier: Apache-2.0
#include "models/folder/load_together.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "dist/threads.h"
#include "io/tensor_set.h"
#include "support/noise.h"

using namespace vfm;

namespace {

/// Tensors of memory, of which each read byte is counted.
class CountedSet final : public io::TensorSet {
 public:
  explicit CountedSet(std::atomic<std::uint64_t>& read) : TensorSet("memory"), read_(read) {}
  void put(const std::string& name, const Tensor& values) {
    kept_.push_back(values);
    add({name,
         std::string(dtype_name(values.dtype())),
         values.shape(),
         {static_cast<const std::byte*>(values.raw()), values.bytes()}});
  }

 protected:
  void read_bytes(const io::TensorView& tensor, std::uint64_t begin,
                  std::span<std::byte> out) const override {
    read_ += out.size();
    TensorSet::read_bytes(tensor, begin, out);
  }

 private:
  std::atomic<std::uint64_t>& read_;
  std::vector<Tensor> kept_;
};

nn::Parameter parameter(const std::string& name, const nn::PlacedPart& part) {
  nn::Parameter made;
  made.name = name;
  made.value = Tensor(part.shape);
  made.placement = part.placement;
  return made;
}

std::unique_ptr<dist::Group> everyone(dist::World& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return world.group("all", ranks);
}

}  // namespace

TEST_CASE("ranks read each byte once between them, and each has its part") {
  const Tensor wide = noise_tensor({6, 10}, 1), tall = noise_tensor({9, 4}, 2);
  const Tensor low = noise_tensor({33}, 3).to(DType::bf16);
  for (const int ranks : {1, 2, 3, 5})
    for (const std::int64_t piece : {7, 64, 4096}) {
      INFO("ranks " << ranks << ", pieces of " << piece);
      std::atomic<std::uint64_t> read = 0;
      std::atomic<int> right = 0;
      dist::thread_worlds(ranks, [&](dist::World& world) {
        CountedSet set(read);
        set.put("wide", wide);
        set.put("tall", tall);
        set.put("low", low);
        const int rank = world.rank();
        nn::Parameter columns = parameter("wide", nn::cut_part({6, 10}, {1, rank, ranks}));
        nn::Parameter rows = parameter("tall", nn::cut_part({9, 4}, {0, rank, ranks}));
        nn::Parameter whole = parameter("low", nn::cut_part({33}, {0, 0, 1}));
        const auto group = everyone(world);
        models::load_parameters(set, {&columns, &rows, &whole}, *group, piece);
        const auto same = [&](const nn::Parameter& part, const Tensor& of) {
          const Tensor all = of.to(DType::f32);
          const Shape& offset = part.placement.offset;
          for (std::int64_t i = 0; i < part.elements(); ++i) {
            std::int64_t at = offset[0] + i;
            if (part.shape().size() == 2) {
              const std::int64_t across = part.shape()[1];
              at = (offset[0] + i / across) * of.size(1) + offset[1] + i % across;
            }
            if (part.value.floats()[i] != all.floats()[at]) return false;
          }
          return true;
        };
        if (same(columns, wide) && same(rows, tall) && same(whole, low)) ++right;
      });
      CHECK(right == ranks);
      CHECK(read == 60 * 4 + 36 * 4 + 33 * 2);
    }
}

TEST_CASE("a rank that keeps a stretch of a part gets that stretch alone") {
  const Tensor wide = noise_tensor({6, 10}, 1);
  for (const std::int64_t piece : {7, 64, 4096}) {
    std::atomic<std::uint64_t> read = 0;
    std::atomic<int> right = 0;
    // Two ranks have the first five columns, two the others, and each half of these 30 elements.
    dist::thread_worlds(4, [&](dist::World& world) {
      CountedSet set(read);
      set.put("wide", wide);
      const nn::PlacedPart part = nn::cut_part({6, 10}, {1, world.rank() / 2, 2});
      const std::int64_t begin = world.rank() % 2 == 0 ? 0 : 17, end = begin == 0 ? 17 : 30;
      nn::Parameter stretch = parameter("wide", part);
      stretch.value = Tensor({end - begin});
      stretch.placement.part = part.shape;
      stretch.placement.begin = begin;
      const auto group = everyone(world);
      models::load_parameters(set, {&stretch}, *group, piece);
      bool same = true;
      for (std::int64_t i = begin; i < end; ++i)
        same = same && stretch.value.floats()[i - begin] ==
                           wide.floats()[i / 5 * 10 + world.rank() / 2 * 5 + i % 5];
      if (same) ++right;
    });
    CHECK(right == 4);
    CHECK(read == 60 * 4);
  }
}

TEST_CASE("weights that do not fit are refused by all ranks before anything is read") {
  std::atomic<std::uint64_t> read = 0;
  std::atomic<int> refused = 0;
  dist::thread_worlds(2, [&](dist::World& world) {
    CountedSet set(read);
    set.put("wide", noise_tensor({6, 9}, 1));
    nn::Parameter columns = parameter("wide", nn::cut_part({6, 10}, {1, world.rank(), 2}));
    const auto group = everyone(world);
    try {
      models::load_parameters(set, {&columns}, *group);
    } catch (const Error& error) {
      if (std::string(error.what()).find("1 of another shape: 'wide'") != std::string::npos)
        ++refused;
    }
  });
  CHECK(refused == 2);
  CHECK(read == 0);
}
