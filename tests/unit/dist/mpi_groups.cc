// Groups over MPI; tests/cli/train/train-ranks.bats runs it with four ranks: mpi_groups CASE.
//
//   operations  every operation along each axis of a mesh of tp=2 cp=2, and of all; sums by rank
//   large       messages and sums of more than one piece, and how long they took
//   beside      messages and sums go on while all ranks do something else
//   silent      rank 3 stops: the others end within the limit of 2 s and name it
//   absent      rank 3 leaves out one collective of its tp group: both calls are named
//   stuck       rank 3 does not come out of a step after some quick ones, while it lives: it is
//               named after 3 s, which is far less than the limit of a step
//   longer      rank 3 sends more than rank 2 awaits
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "group_cases.h"

using namespace vfm;
using namespace vfm::dist;

namespace {

Layout square() {
  Layout layout;
  layout.tp = 2, layout.cp = 2;
  return layout;
}

void operations(World& world) {
  const Axes more[] = {Axes::tp | Axes::cp | Axes::dp};
  const Mesh mesh(world, square(), more);
  for (const Axes axes : {Axes::tp, Axes::cp, Axes::cp | Axes::dp, more[0]}) {
    group_cases::check_operations(mesh.group(axes));
    group_cases::check_traffic(mesh.group(axes), world.traffic());
  }
  // By rank, which is not the order of a tree: (1e8 + 1) - 1e8 + 1.
  std::vector<float> values = {world.rank() == 0 ? 1e8f : world.rank() == 2 ? -1e8f : 1.f};
  world.all_reduce_sum(std::span<float>(values));
  if (values[0] != 1) fail("the world adds to {}", values[0]);
  std::vector<double> doubles(3, 0.5);
  world.all_reduce_sum(std::span<double>(doubles));
  if (doubles != std::vector<double>(3, 2)) fail("the world adds doubles to {}", doubles[0]);
}

void large(World& world) {
  const Mesh mesh(world, square());
  const Stopwatch watch;
  group_cases::check_large(mesh.group(Axes::cp));
  if (world.rank() == 0) std::printf("%.2f s\n", watch.seconds());
}

void beside(World& world) {
  const Mesh mesh(world, square());
  const Tensor values = Tensor::zeros({300000}), other = Tensor::zeros({300000});
  for (float& value : values.floats())
    value = static_cast<float>(world.rank() + 1);
  world.barrier();
  world.traffic().reset();
  // Two rounds of messages each, too large to be on their way without the other's help.
  Transfer sum = mesh.group(Axes::tp).all_reduce(values);
  Transfer next = mesh.group(Axes::cp).all_reduce(other);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  if (!sum.done() || !next.done()) fail("it waited for its rank");
  if (values.floats()[299999] != (world.rank() < 2 ? 3 : 7)) fail("a sum");
  sum.wait();
  next.wait();
  if (world.traffic().seconds("tp") > 0 || world.traffic().seconds("cp") > 0) fail("a wait");
}

/// Rank 3 does something else where its tp group meets for the third time; all go on.
void differently(World& world, const std::function<void(Group& tp)>& act) {
  const Mesh mesh(world, square());
  world.section("step", 2);
  Tensor values = Tensor::zeros({1000});
  for (int step = 1; step < 1000; ++step) {
    if (step == 3 && world.rank() == 3)
      act(mesh.group(Axes::tp));
    else
      mesh.group(Axes::tp).all_reduce(values).wait();
    mesh.group(Axes::cp).all_gather(values.rows(0, 500), values).wait();
    if (step == 3) world.barrier();
  }
}

void stuck(World& world) {
  const Mesh mesh(world, square());
  world.silent_limit(3);
  world.record_to("flight");
  Tensor values = Tensor::zeros({1000});
  for (int step = 1; step < 1000; ++step) {
    world.section("step", 600);
    mesh.group(Axes::tp).all_reduce(values).wait();
    if (step == 12 && world.rank() == 3)
      for (;;)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    mesh.group(Axes::cp).all_reduce(values).wait();
  }
}

void silent(World& world) {
  differently(world, [](Group&) { std::raise(SIGSTOP); });
}
void absent(World& world) {
  world.record_to("flight");
  differently(world, [](Group&) {});
}
void longer(World& world) {
  differently(world, [](Group& tp) { tp.all_reduce(Tensor::zeros({2000})).wait(); });
}

}  // namespace

int main(int, char** arguments) {
  set_log_sink(
      [](LogLevel, std::string_view message) {
        std::fprintf(stderr, "mpi_groups: %.*s\n", static_cast<int>(message.size()),
                     message.data());
      },
      LogLevel::error);
  const std::map<std::string, void (*)(World&)> cases = {
      {"operations", operations}, {"large", large}, {"beside", beside}, {"silent", silent},
      {"absent", absent},         {"stuck", stuck}, {"longer", longer}};
  const auto world = mpi_world();
  try {
    cases.at(arguments[1])(*world);
  } catch (const std::exception& error) {
    log_error("{} (rank {})", error.what(), world->rank());
    world->end_all(1);
  }
  return 0;
}
