// SPDX-License-Identifier: Apache-2.0
#include "dist/mesh.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "dist/threads.h"
#include "group_cases.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::dist;

namespace {

Layout layout_of(int tp, int cp, int dp, int pp = 1, int replicas = 0) {
  Layout layout;
  layout.tp = tp, layout.cp = cp, layout.dp = dp, layout.pp = pp;
  if (replicas > 0) layout.shard = ShardKind::optimizer, layout.replicate = replicas;
  return layout;
}

}  // namespace

TEST_CASE("mesh: ranks along an axis") {
  const Layout cube = layout_of(2, 2, 2);
  CHECK(ranks_along(Axes::tp, cube, 5) == std::vector<int>{4, 5});
  CHECK(ranks_along(Axes::cp, cube, 5) == std::vector<int>{5, 7});
  CHECK(ranks_along(Axes::dp, cube, 5) == std::vector<int>{1, 5});
  CHECK(ranks_along(Axes::cp | Axes::dp, cube, 5) == std::vector<int>{1, 3, 5, 7});
  CHECK(ranks_along(Axes::tp | Axes::cp, cube, 5) == std::vector<int>{4, 5, 6, 7});
  CHECK(ranks_along(Axes::pp, cube, 5) == std::vector<int>{5});
  const Layout all = layout_of(2, 3, 4, 2, 2);  // tp 1, cp 2, shard 6, replicate 12, pp 24
  CHECK(ranks_along(Axes::shard, all, 0) == std::vector<int>{0, 6});
  CHECK(ranks_along(Axes::replicate, all, 0) == std::vector<int>{0, 12});
  CHECK(ranks_along(Axes::dp, all, 47) == std::vector<int>{29, 35, 41, 47});
  CHECK(ranks_along(Axes::pp, all, 30) == std::vector<int>{6, 30});
  CHECK(ranks_along(Axes::cp | Axes::shard, all, 1) == std::vector<int>{1, 3, 5, 7, 9, 11});
}

TEST_CASE("mesh: the two axes of cp") {
  Layout split = layout_of(2, 4, 2);  // tp 1, cp_heads 2, cp_ring 4, dp 8
  split.cp_kind = CpKind::all_to_all_ring, split.cp_heads = 2;
  CHECK(ranks_along(Axes::cp_heads, split, 5) == std::vector<int>{5, 7});
  CHECK(ranks_along(Axes::cp_ring, split, 5) == std::vector<int>{1, 5});
  CHECK(ranks_along(Axes::cp, split, 5) == std::vector<int>{1, 3, 5, 7});
  CHECK(ranks_along(Axes::cp | Axes::dp, split, 8) == std::vector<int>{0, 2, 4, 6, 8, 10, 12, 14});
  CHECK(axes_name(Axes::cp) == "cp");
  CHECK(axes_name(Axes::tp | Axes::cp_ring) == "tp+cp_ring");
  CHECK(to_string(split) == "tp=2 cp=4 dp=2 pp=1 cp_heads=2");
  CHECK(fit_layout(split, 16) == split);
  split.cp_heads = 3;
  CHECK_THAT(usage_error([&] { fit_layout(split, 16); }),
             Catch::Contains("cp_heads=3 does not divide cp=4") && Catch::Contains("cp_heads=2"));
  CHECK_NOTHROW(thread_worlds(4, [](World& world) {
    Layout halves = layout_of(1, 4, 1);
    halves.cp_kind = CpKind::all_to_all_ring, halves.cp_heads = 2;
    const Mesh mesh(world, halves);
    if (mesh.size(Axes::cp_heads) != 2 || mesh.size(Axes::cp_ring) != 2 ||
        mesh.place(Axes::cp_heads) != world.rank() % 2 ||
        mesh.place(Axes::cp_ring) != world.rank() / 2)
      fail("the axes of cp");
    group_cases::check_operations(mesh.group(Axes::cp_ring));
  }));
}

TEST_CASE("mesh: each axis of the list has its place, its name and its group") {
  int stride = 1;
  Layout all;  // two ranks along each axis
  for (const Axis& axis : all_axes())
    all.*axis.size = 2;
  for (const Axis& axis : all_axes()) {
    INFO(axis.name);
    CHECK(axes_name(axis.axes) == axis.name);
    CHECK(axes_named(axis.name) == axis.axes);
    Layout two;
    two.*axis.size = 2;
    CHECK(two.sharers() == (axis.shares_sample ? 2 : 1));
    CHECK(includes(two.sharing(), axis.axes) ==
          (axis.shares_sample || includes(Axes::tp | Axes::cp, axis.axes)));
    CHECK(fit_layout(two, 2).sizes() == fit_layout(two.sizes(), 2));
    CHECK(to_string(fit_layout(two, 2)).find(std::string(axis.name) + "=2") != std::string::npos);
    CHECK(ranks_along(axis.axes, all, 0) == std::vector<int>{0, stride});
    stride *= 2;
    CHECK_NOTHROW(thread_worlds(2, [&](World& world) {
      const Mesh mesh(world, two);
      if (mesh.size(axis.axes) != 2 ||
          (axis.axes != Axes::dp && mesh.group(axis.axes).axis() != axis.name))
        fail("group");
    }));
  }
  CHECK(all.sharers() * 2 == stride);
  CHECK(axes_named("tp+cp+dp") == (Axes::tp | Axes::cp | Axes::dp));
  CHECK(axes_name(axes_named("tp+cp_ring+replicate")) == "tp+cp_ring+replicate");
  CHECK_THROWS_AS(axes_named("tp+xp"), Error);
  // Four ranks on the axes of a recipe and on dp: one axis with four ranks, or two axes with two.
  const auto axes = std::ranges::count_if(all_axes(), [](const Axis& one) { return one.most > 0; });
  const std::vector<Layout> layouts = layouts_of(4);
  CHECK(static_cast<std::ptrdiff_t>(layouts.size()) == (axes + 1) * (axes + 2) / 2);
  for (const Layout& layout : layouts)
    CHECK(fit_layout(layout, 4) == layout);
  CHECK(distance_of_sizes(layout_of(4, 1, 0), layout_of(2, 2, 1)) == Approx(2 * std::log(2.0)));
}

TEST_CASE("mesh: a layout fills the ranks, or names the nearest that does") {
  CHECK(fit_layout(layout_of(2, 2, 0), 8) == layout_of(2, 2, 2));
  CHECK(fit_layout(layout_of(1, 1, 0), 6) == layout_of(1, 1, 6));
  CHECK(fit_layout(layout_of(1, 1, 6, 1, 3), 6) == layout_of(1, 1, 6, 1, 3));
  CHECK(fit_layout(layout_of(2, 1, 2, 2), 8) == layout_of(2, 1, 2, 2));
  CHECK_THAT(usage_error([] { fit_layout(layout_of(3, 1, 0), 8); }),
             Catch::Equals("tp=3 cp=1 pp=1 needs a multiple of 3 ranks, not 8; the nearest layout "
                           "of 8 ranks is tp=4 cp=1 dp=2 pp=1"));
  CHECK_THAT(usage_error([] { fit_layout(layout_of(2, 2, 3), 8); }),
             Catch::Contains("is for 12 ranks, not 8; the nearest layout of 8 ranks is tp=2 cp=2 "
                             "dp=2 pp=1"));
  CHECK_THAT(usage_error([] { fit_layout(layout_of(1, 1, 0, 1, 4), 6); }),
             Catch::Contains("replicate=4 does not divide dp=6") && Catch::Contains("shard=2"));
  CHECK_THAT(usage_error([] { fit_layout(layout_of(16, 1, 0), 8); }), Catch::Contains("tp=8"));
  CHECK_THAT(usage_error([] { fit_layout(layout_of(0, 1, 0), 8); }),
             Catch::Contains("without ranks"));
  CHECK(nearest_layout(layout_of(3, 1, 0, 1, 2), 8) == layout_of(4, 1, 2, 1, 2));
  CHECK(nearest_layout(layout_of(2, 2, 2, 2), 8) == layout_of(2, 2, 1, 2));
  // Whatever is asked for, the answer is a layout of that many ranks.
  for (int ranks = 1; ranks <= 12; ++ranks)
    for (int tp = 1; tp <= 5; ++tp)
      for (int dp = 0; dp <= 3; ++dp) {
        const Layout nearest = nearest_layout(layout_of(tp, 2, dp, 1, 2), ranks);
        CHECK(fit_layout(nearest, ranks) == nearest);
        CHECK(nearest.tp * nearest.cp * nearest.dp * nearest.pp == ranks);
      }
}

TEST_CASE("mesh: all operations along all axes of eight ranks") {
  CHECK_NOTHROW(thread_worlds(8, [](World& world) {
    const Mesh mesh(world, layout_of(2, 2, 2));
    for (const Axes axes :
         {Axes::tp, Axes::cp, Axes::cp | Axes::dp, Axes::tp | Axes::cp, Axes::pp}) {
      Group& group = mesh.group(axes);
      if (group.ranks() != ranks_along(axes, mesh.layout(), world.rank()) ||
          group.ranks()[static_cast<std::size_t>(mesh.place(axes))] != world.rank() ||
          group.axis() != axes_name(axes))
        fail("the group of {}", axes_name(axes));
      group_cases::check_operations(group);
      group_cases::check_traffic(group, world.traffic());
    }
    if (world.traffic().axes() != std::vector<std::string>{"cp", "cp+dp", "tp", "tp+cp"})
      fail("axes");
    if (mesh.size(Axes::dp) != 2 || mesh.place(Axes::dp) != world.rank() / 4) fail("dp");
  }));
}

namespace {

/// A world whose ranks have hosts of these names.
class Hosted final : public World {
 public:
  Hosted(World& world, std::vector<std::string> names) : world_(world), names_(std::move(names)) {}
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string host() const override { return names_[static_cast<std::size_t>(rank())]; }
  std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) override {
    return world_.group(axis, std::move(ranks));
  }
  void all_reduce_sum(std::span<float> values) override { world_.all_reduce_sum(values); }
  void all_reduce_sum(std::span<double> values) override { world_.all_reduce_sum(values); }
  void broadcast(std::span<std::byte> bytes) override { world_.broadcast(bytes); }
  std::vector<std::string> gather(const std::string& text) override { return world_.gather(text); }
  void barrier() override { world_.barrier(); }
  [[noreturn]] void end_all(int) override { fail("the end of all"); }

 private:
  World& world_;
  const std::vector<std::string> names_;
};

std::string warnings;

/// What a mesh of these hosts says.
std::string warned(const Layout& layout, const std::vector<std::string>& hosts) {
  warnings.clear();
  set_log_sink([](LogLevel, std::string_view text) { warnings += text; }, LogLevel::warning);
  thread_worlds(static_cast<int>(hosts.size()), [&](World& world) {
    Hosted hosted(world, hosts);
    Mesh(hosted, layout).warn_of_slow_tp();
  });
  set_log_sink(nullptr, LogLevel::warning);
  return warnings;
}

}  // namespace

TEST_CASE("mesh: says which tp groups lie on several hosts") {
  CHECK(warned(layout_of(2, 1, 2), {"a", "a", "b", "b"}).empty());
  CHECK(warned(layout_of(1, 2, 2), {"a", "b", "a", "b"}).empty());
  CHECK_THAT(warned(layout_of(4, 1, 2), {"a", "a", "b", "b", "c", "c", "c", "c"}),
             Catch::StartsWith("groups along tp lie on several hosts (ranks 0 1 2 3 on a b); the "
                               "largest tp within them is 2"));
  CHECK_THAT(
      warned(layout_of(2, 1, 2), {"a", "b", "b", "a"}),
      Catch::Contains("(ranks 0 1 on a b; ranks 2 3 on b a); the largest tp within them is 1"));
}

TEST_CASE("mesh: ranks that have one GPU together") {
  const std::vector<RankDevice> own = {{"a", "GPU-1", ""}, {"a", "GPU-2", ""}, {"b", "GPU-3", ""}};
  CHECK(shared_gpus(own).empty());
  const std::vector<RankDevice> none = {{"a", "", ""}, {"a", "", ""}};
  CHECK(shared_gpus(none).empty());
  const std::vector<RankDevice> shared = {
      {"a", "GPU-1", ""}, {"b", "GPU-3", ""}, {"b", "GPU-2", ""}, {"b", "GPU-3", ""}};
  CHECK_THAT(shared_gpus(shared),
             Catch::StartsWith("ranks 1 3 have one GPU together (GPU-3 of host b)"));
}

TEST_CASE("mesh: groups that were not asked for") {
  CHECK_THROWS_AS(thread_worlds(2, [](World& world) { Mesh(world, layout_of(2, 2, 0)); }), Error);
  const auto world = self_world();
  const Axes more[] = {Axes::tp | Axes::pp};
  const Mesh mesh(*world, layout_of(1, 1, 0), more);
  CHECK(mesh.size(Axes::tp | Axes::pp) == 1);
  CHECK(axes_name(Axes::tp | Axes::shard | Axes::pp) == "tp+shard+pp");
  CHECK_THROWS_WITH(mesh.group(Axes::dp | Axes::pp), Catch::Contains("without a group of 'dp+pp'"));
}
