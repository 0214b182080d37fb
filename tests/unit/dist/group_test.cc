// SPDX-License-Identifier: Apache-2.0
#include "dist/group.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "dist/threads.h"
#include "group_cases.h"
#include "tensor/allocator.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::dist;

namespace {

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// What the ranks' failure says.
std::string failure(int size, const std::function<void(World&, Group&)>& act) {
  try {
    thread_worlds(size, [&](World& world) {
      const auto group = world.group("tp", first_ranks(size));
      act(world, *group);
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

using Catch::Contains;

}  // namespace

TEST_CASE("group: every operation, on one to eight ranks") {
  const int size = GENERATE(range(1, 9));
  CAPTURE(size);
  CHECK_NOTHROW(thread_worlds(size, [&](World& world) {
    const auto group = world.group("tp", first_ranks(size));
    group_cases::check_operations(*group);
    group_cases::check_traffic(*group, world.traffic());
    if (world.traffic().axes() !=
        (size > 1 ? std::vector<std::string>{"tp"} : std::vector<std::string>{}))
      fail("the axes of the traffic");
  }));
}

TEST_CASE("group: one rank that is no thread") {
  const auto world = self_world();
  const auto group = world->group("cp", {0});
  CHECK_NOTHROW(group_cases::check_operations(*group));
  CHECK_NOTHROW(group_cases::check_traffic(*group, world->traffic()));
  CHECK_THROWS_AS(world->group("cp", {1}), Error);
}

TEST_CASE("group: the world's own collectives, of threads") {
  CHECK_NOTHROW(thread_worlds(5, [](World& world) {
    std::vector<float> values = {1, static_cast<float>(world.rank())};
    std::vector<double> doubles = {0.5};
    world.all_reduce_sum(std::span<float>(values));
    world.all_reduce_sum(std::span<double>(doubles));
    if (values != std::vector<float>{5, 10} || doubles[0] != 2.5) fail("a sum");
    if (broadcast(world, world.rank() == 0 ? "text" : "") != "text") fail("a broadcast");
    const auto texts = world.gather(std::to_string(world.rank()));
    if (world.rank() == 0 && texts != std::vector<std::string>{"0", "1", "2", "3", "4"})
      fail("texts");
    world.barrier();
  }));
}

TEST_CASE("group: a barrier waits for all") {
  std::atomic<int> here = 0;
  std::atomic<bool> early = false;
  thread_worlds(7, [&](World& world) {
    for (int round = 1; round <= 20; ++round) {
      ++here;
      world.barrier();
      if (here < 7 * round) early = true;
      world.barrier();
    }
  });
  CHECK_FALSE(early);
}

TEST_CASE("group: messages and sums larger than one piece") {
  CHECK_NOTHROW(thread_worlds(2, [](World& world) {
    group_cases::check_large(*world.group("dp", {0, 1}));
  }));
}

TEST_CASE("group: an exception in one rank ends the others") {
  std::atomic<int> threw = 0;
  const auto act = [&](World& world) {
    try {
      world.barrier();  // now each has a world
      if (world.rank() == 2) throw std::domain_error("the reason");
      world.barrier();
    } catch (const Error& error) {
      if (std::string(error.what()) == "rank 2 failed: the reason") ++threw;
      throw;
    }
  };
  CHECK_THROWS_AS(thread_worlds(4, act), std::domain_error);
  CHECK(threw == 3);
}

TEST_CASE("group: an exception while messages of its rank's stack are under way") {
  const auto act = [](World& world) {
    const auto group = world.group("tp", first_ranks(3));
    std::vector<double> values(100, 1.0);
    const Transfer transfer = group->all_reduce(std::span<double>(values));
    if (world.rank() == 1) throw std::domain_error("the reason");
    Tensor other({2});
    group->broadcast(other, 0).wait();
    group->barrier();
  };
  CHECK_THROWS_AS(thread_worlds(3, act), std::domain_error);
}

TEST_CASE("group: ranks that call different things are told what") {
  CHECK_THAT(failure(3,
                     [](World& world, Group& group) {
                       const Tensor all({6}), part({2});
                       if (world.rank() == 1)
                         group.reduce_scatter(all, part).wait();
                       else
                         group.all_gather(part, all).wait();
                     }),
             Contains("call 1 of 'tp': rank ") &&
                 Contains("reduce_scatter of F32 elements [2 2 2]") &&
                 Contains("all_gather of F32 elements [2 2 2]"));
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       group.all_reduce(Tensor::zeros({3})).wait();
                       group.all_reduce(Tensor::zeros({3 + world.rank()})).wait();
                     }),
             Contains("call 2 of 'tp'") && Contains("elements [3]") && Contains("elements [4]"));
  CHECK_THAT(
      failure(
          2,
          [](World& world, Group& group) {
            group.all_reduce(Tensor::zeros({2}, world.rank() ? DType::bf16 : DType::f32)).wait();
          }),
      Contains("BF16") && Contains("F32"));
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       Tensor values = Tensor::zeros({2 + world.rank()});
                       if (world.rank() == 0)
                         group.send(1, values).wait();
                       else
                         group.receive(0, values).wait();
                     }),
             Contains("rank 0 sends 8 bytes to rank 1, which awaits 12"));
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       const std::int64_t even[] = {1, 1}, odd[] = {2, 0};
                       const Tensor in = Tensor::zeros({2}), out({2});
                       // Each is right by itself, not with the other.
                       if (world.rank() == 0)
                         group.all_to_all(in, out, even, even).wait();
                       else
                         group.all_to_all(in, out, odd, odd).wait();
                     }),
             Contains("all_to_all of F32 (1 of 'tp'): rank ") && Contains("bytes to rank"));
  CHECK_THAT(failure(2,
                     [](World& world, Group&) {
                       world.group(world.rank() ? "a" : "b", {0, 1});
                     }),
             Contains("'groups'"));
}

TEST_CASE("group: what would wait for ever is an error that says where") {
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       Tensor values({2});
                       if (world.rank() == 0) group.receive(1, values).wait();
                     }),
             Contains("rank 0 in receive of F32 of 'tp' for 1, rank 1 has ended"));
  // Neither send has its receive: nobody buffers them.
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       const Tensor out = Tensor::zeros({2}), in({2});
                       group.send(1 - world.rank(), out).wait();
                       group.receive(1 - world.rank(), in).wait();
                     }),
             Contains("all ranks wait: rank 0 in send") && Contains("rank 1 in send"));
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       if (world.rank() == 0)
                         world.barrier();
                       else
                         group.barrier();
                     }),
             Contains("of 'world') for 1") && Contains("of 'tp') for 0"));
}

TEST_CASE("group: a transfer that is not waited for is a failure") {
  CHECK_THAT(failure(2,
                     [](World& world, Group& group) {
                       const Tensor values = Tensor::zeros({2});
                       if (world.rank() == 1) Transfer transfer = group.receive(0, values);
                     }),
             Contains("rank 1 failed: it left receive of F32 of 'tp' unfinished"));
}

TEST_CASE("group: the thread that made the world calls it") {
  CHECK_THAT(failure(1,
                     [](World&, Group& group) {
                       std::string what = "none";
                       std::thread([&] {
                         try {
                           group.all_reduce(Tensor::zeros({2})).wait();
                         } catch (const Error& error) {
                           what = error.what();
                         }
                       }).join();
                       fail("{}", what);
                     }),
             Contains("did not make the world"));
}

TEST_CASE("group: shapes that do not fit are refused at the call") {
  const auto refused = [](const std::function<void(Group&)>& call) {
    return failure(2, [&](World&, Group& group) { call(group); });
  };
  const std::int64_t rows[] = {1, 3}, minus[] = {-1, 5};
  const Tensor two({2}), four({4}), five({5});
  CHECK_THAT(refused([&](Group& g) { g.all_gather(two, five).wait(); }), Contains("not even"));
  CHECK_THAT(refused([&](Group& g) { g.all_gather(two, four, rows).wait(); }), Contains("a part"));
  CHECK_THAT(refused([&](Group& g) { g.all_gather(two, five, rows).wait(); }),
             Contains("rows [1 3]"));
  CHECK_THAT(refused([&](Group& g) { g.reduce_scatter(four, two, minus).wait(); }),
             Contains("rows [-1 5]"));
  CHECK_THAT(refused([&](Group& g) { g.all_gather(two, four.to(DType::bf16)).wait(); }),
             Contains("two types"));
  CHECK_THAT(refused([&](Group& g) { g.all_reduce(Tensor({2}, DType::u8)).wait(); }),
             Contains("cannot sum"));
  CHECK_THAT(refused([&](Group& g) { g.send(2, two).wait(); }), Contains("which has 2"));
  CHECK_THAT(refused([&](Group& g) { g.send(g.rank(), two).wait(); }), Contains("itself"));
  CHECK_THAT(refused([&](Group& g) { g.exchange(g.rank(), two, 1 - g.rank(), four).wait(); }),
             Contains("both itself, or none"));
}

TEST_CASE("group: what lies on meta is counted, not moved") {
  const std::int64_t rows[] = {3, 0, 7, 2};
  const auto operations = [&](Group& group, Device device) {
    const auto own = rows[group.rank()];
    const Tensor part({own, 5}, DType::bf16, device), all({12, 5}, DType::bf16, device);
    if (device == Device::cpu) copy(Tensor::zeros({12, 5}, DType::bf16), all);
    group.all_gather(part, all, rows).wait();
    group.reduce_scatter(all, part, rows).wait();
    group.all_reduce(all).wait();
    group.broadcast(all, 2).wait();
    group.all_to_all(all, all.clone()).wait();
    group
        .exchange((group.rank() + 1) % 4, part, (group.rank() + 3) % 4,
                  Tensor({rows[(group.rank() + 3) % 4], 5}, DType::bf16, device))
        .wait();
  };
  CHECK_NOTHROW(thread_worlds(4, [&](World& world) {
    operations(*world.group("cp", first_ranks(4)), Device::cpu);
    const auto alone = counted_world(world.rank(), 4);
    operations(*alone->group("cp", first_ranks(4)), Device::meta);
    for (std::size_t i = 0; i < kOperations; ++i) {
      const auto operation = static_cast<Operation>(i);
      if (alone->traffic().of("cp", operation) != world.traffic().of("cp", operation))
        fail("rank {}: {}", world.rank(), operation_name(operation));
    }
  }));
  const auto alone = counted_world(1, 4);
  CHECK_THROWS_WITH(alone->barrier(), Contains("the other 3 ranks are not there"));
  CHECK_THROWS_WITH(alone->group("cp", first_ranks(4))->all_reduce(Tensor({2})),
                    Contains("are not there"));
  CHECK_THROWS_WITH(alone->group("cp", first_ranks(4))->barrier(), Contains("are not there"));
}

TEST_CASE("group: the memory of a sum, on meta as it is") {
  const auto need = [](bool meta) {
    std::size_t peak = 0;
    thread_worlds(2, [&](World& world) {
      const std::int64_t count = std::int64_t{3} << 20;  // of which half comes from the other
      if (meta) {
        if (world.rank() != 0) return;
        const MetaAccount account(Device::cpu);
        const Tensor values({count}, DType::f32, Device::meta);
        counted_world(0, 2)->group("dp", {0, 1})->all_reduce(values).wait();
        peak = account.memory().peak - account.memory().current;
      } else {
        const Tensor values = Tensor::zeros({count});
        world.barrier();
        reset_memory_peak();
        const std::size_t before = cpu_memory().current;
        world.barrier();
        world.group("dp", {0, 1})->all_reduce(values).wait();
        world.barrier();
        if (world.rank() == 0) peak = (cpu_memory().peak - before) / 2;  // of both ranks
      }
    });
    return peak;
  };
  CHECK(need(true) == std::size_t{6} << 20);
  CHECK(need(false) == std::size_t{6} << 20);
}

TEST_CASE("group: seconds that a rank waits") {
  thread_worlds(2, [](World& world) {
    const auto group = world.group("pp", {0, 1});
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    group->barrier();
    if (world.rank() == 0 && world.traffic().seconds("pp") < 0.02) fail("it did not wait");
    world.traffic().reset();
    if (world.traffic().seconds("pp") != 0) fail("it was not forgotten");
  });
}
