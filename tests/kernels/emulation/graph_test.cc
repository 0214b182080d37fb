// Two streams and recorded work, as the emulation runs them: what is computed never reads data that
// have not come, copies never write over what is still read, and recorded work gives the bits of
// work that is done plainly.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <initializer_list>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.h"
#include "memory.h"
#include "ops/matmul/linear.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "streams.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/download.h"
#include "tensor/gpu_graph.h"
#include "tensor/graph_cache.h"
#include "tensor/offload.h"
#include "tensor/upload.h"
#include "tensors.h"

using namespace vfm;

namespace {

bool same(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu), y = b.to(Device::cpu);
  return x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

// A network of two layers whose gradient is added to `gradient`, with a table of the host.
struct Network {
  Tensor weights = noise_tensor({6, 6}, 100).to(Device::cuda);
  Tensor gradient = Tensor::zeros({6, 6}, DType::f32, Device::cuda);
  int calls = 0;
  bool looks = false;  // at a result, for which the host must wait

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    ++calls;
    ops::Tape tape;
    tape.watch(weights, gradient);
    const Tensor table = noise_tensor(inputs[0].shape(), 101).to(Device::cuda);
    const Tensor hidden =
        ops::activate(tape, ops::linear(tape, ops::add(tape, inputs[0], table), weights),
                      ops::ActivationKind::gelu);
    const Tensor result = ops::linear(tape, hidden, weights);
    if (looks) result.to(Device::cpu);
    tape.backward(result, inputs[1].clone());
    return {result};
  }
  GraphCache::Work work() {
    return [this](const std::vector<Tensor>& inputs) { return run(inputs); };
  }
};

// Runs of work with rows[i] rows and inputs of their own, plainly and by `cache`: the same results,
// and the same sum of gradients.
void compare(GraphCache& cache, Network& network, const std::vector<int>& rows) {
  Network plain;
  plain.gradient = network.gradient.clone();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<Tensor> inputs = {noise_tensor({rows[i], 6}, 2 * i).to(Device::cuda),
                                        noise_tensor({rows[i], 6}, 2 * i + 1).to(Device::cuda)};
    const Tensor expected = plain.run(inputs)[0];
    const Tensor got = cache.run(std::to_string(rows[i]), inputs, network.work())[0];
    CHECK(same(got, expected));
    CHECK(same(network.gradient, plain.gradient));
  }
}

// Work that needs much memory; and asks, if it is told to, for what cannot be recorded.
struct Greedy {
  std::int64_t mebibytes = 0;
  bool looks = false;

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    const Tensor room({mebibytes << 20}, DType::u8, Device::cuda);
    if (looks) inputs[0].to(Device::cpu);
    return {inputs[0].clone()};
  }
  GraphCache::Work work() const {
    return [*this](const std::vector<Tensor>& inputs) { return run(inputs); };
  }
};

// Nothing is kept for reuse.
void give_all_back() {
  GpuGraph::release_memory();
  gpu_allocator().release();
}

// The memory that there is, in MiB beyond what is used now; no limit again at the end.
struct Limit {
  explicit Limit(std::size_t mebibytes) {
    emulation::set_memory(emulation::used_memory() + (mebibytes << 20));
  }
  ~Limit() { emulation::set_memory(std::size_t{1} << 40); }
};

std::vector<std::string> lines;  // of the log

void listen() {
  lines.clear();
  set_log_sink([](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::info);
}

}  // namespace

TEST_CASE("copies beside what is computed, whoever is late") {
  const auto late =
      GENERATE(emulation::Late::none, emulation::Late::copies, emulation::Late::kernels);
  emulation::set_late(late);
  std::vector<Tensor> results, expected;
  for (std::uint64_t i = 0; i < 6; ++i) {
    Tensor host = noise_tensor({3, 500}, i);
    expected.push_back(host.clone());
    for (float& value : expected.back().floats())
      value *= 2;
    Upload upload;
    const Tensor there = upload.copy(host);
    host.floats()[0] = -1;  // may be changed at once
    upload.await();
    ops::Tape tape(false);
    results.push_back(ops::add(tape, there, there));
    // `there` goes back: the next copy takes its place.
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    CHECK(same(results[i], expected[i]));
  emulation::set_late(emulation::Late::none);
}

TEST_CASE("tensors go to the host and come back while others take their memory, whoever is late") {
  const auto late =
      GENERATE(emulation::Late::none, emulation::Late::copies, emulation::Late::kernels);
  emulation::set_late(late);
  ops::Tape tape(false);
  const auto make = [&tape](std::uint64_t i) {  // on the compute stream
    const Tensor there = noise_tensor({3, 500}, i).to(Device::cuda);
    return ops::add(tape, there, there);
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Offload>> away;
    std::vector<Tensor> expected;
    for (std::uint64_t i = 0; i < 5; ++i) {
      expected.push_back(make(i).to(Device::cpu));
      away.push_back(std::make_unique<Offload>(make(i)));
      CHECK(away.back()->place().bytes() == expected.back().bytes());
      if (i > 0) away[i - 1]->release();
      make(100 + i);  // takes the memory that is free, and is queued at once
    }
    for (std::size_t i = away.size(); i-- > 0;) {
      Tensor back = away[i]->get();  // the last never went
      if (i > 0) away[i - 1]->fetch();
      if (round == 1 && i == 3) break;  // one is on its way
      make(200 + i);
      CHECK(same(ops::add(tape, back, back), ops::add(tape, expected[i], expected[i])));
      back = {};
      away[i] = nullptr;
    }
    away.clear();
    CHECK(same(make(7), ops::add(tape, noise_tensor({3, 500}, 7), noise_tensor({3, 500}, 7))));
  }
  CHECK(pinned_allocator().stats().current == 0);
  emulation::set_late(emulation::Late::none);
}

TEST_CASE(
    "pinned memory serves tensors of all sizes, and is no more than the most of the largest") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const auto used = [](std::initializer_list<int> mebibytes) {
    std::vector<std::unique_ptr<Offload>> away;
    for (const int size : mebibytes)
      away.push_back(
          std::make_unique<Offload>(Tensor({std::int64_t{size} << 20}, DType::u8, Device::cuda)));
    away.clear();
    const MemoryStats stats = pinned_allocator().stats();
    CHECK(stats.current == 0);
    return stats.cached / kMiB;
  };
  CHECK(used({64, 64, 64}) >= 3 * 64);
  for (int i = 0; i < 3; ++i)
    CHECK(used({64 - i, 50, 3}) == used({64, 64, 64}));
  CHECK(used({80, 80, 80}) >= 3 * 80);
  CHECK(used({80, 80, 80}) <= 3 * 80 * 5 / 4);
}

TEST_CASE("pinned memory that is not there is named; nothing of it is recorded") {
  pinned_allocator().release();
  const Tensor large({std::int64_t{96} << 20}, DType::u8, Device::cuda);
  {
    const Limit limit(1);
    CHECK_THROWS_WITH(Offload(large),
                      "out of memory in pinned memory of the host, where 'model.offload' puts it: "
                      "cannot get 96.0 MiB more, 0 B are in use");
  }
  CHECK_NOTHROW(Offload(large));
  const Tensor input = noise_tensor({4}, 1).to(Device::cuda);
  CHECK_THROWS_AS(GpuGraph([&] { const Offload away(input); }), NotRecordable);
  GpuGraph::release_memory();
}

TEST_CASE("work that comes again is repeated with what is new in it, to the same bits") {
  Network network;
  GraphCache cache(8);
  compare(cache, network, {5, 5, 5, 300, 5, 300, 300, 2, 300, 5});
  CHECK(cache.graphs() == 2);
  CHECK(cache.replays() == 7);
  CHECK(network.calls == 5);  // 5, 300 and 2 plainly, 5 and 300 once more to be recorded
}

TEST_CASE("results stay what they are when the work is repeated") {
  Network network;
  GraphCache cache(8);
  std::vector<Tensor> inputs, results;
  for (std::uint64_t i = 0; i < 4; ++i) {
    inputs.push_back(noise_tensor({3, 6}, i).to(Device::cuda));
    results.push_back(cache.run("", {inputs[i], inputs[i]}, network.work())[0]);
  }
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(same(results[i], Network().run({inputs[i], inputs[i]})[0]));
}

TEST_CASE("with no graphs all work is done plainly") {
  Network network;
  GraphCache cache(0);
  compare(cache, network, {4, 4, 4});
  CHECK(network.calls == 3);
}

TEST_CASE("what cannot be recorded is done plainly, which is said once") {
  listen();
  Network network;
  GraphCache cache(8);
  network.looks = true;
  compare(cache, network, {4, 4, 4, 4, 4, 4, 7, 7, 7, 7, 7});
  CHECK(cache.graphs() == 0);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("copy from the GPU") != std::string::npos);
  network.looks = false;
  compare(cache, network, {9, 9, 9});
  CHECK(cache.graphs() == 1);
}

TEST_CASE("a graph that was not used for long makes room for another") {
  Network network;
  GraphCache cache(1);
  compare(cache, network, {4, 4, 5, 5, 5});
  CHECK(cache.graphs() == 1);
  CHECK(cache.replays() == 1);
  compare(cache, network, std::vector<int>(70, 5));
  CHECK(cache.graphs() == 1);
  CHECK(cache.replays() > 1);
}

TEST_CASE("a recording that fails gives its memory back to the work itself") {
  give_all_back();
  const std::vector<Tensor> inputs = {noise_tensor({4}, 1).to(Device::cuda)};
  GraphCache cache(8);
  const Limit limit(150);
  for (int i = 0; i < 6; ++i)
    CHECK(same(cache.run("", inputs, Greedy{100, true}.work())[0], inputs[0]));
  CHECK(cache.graphs() == 0);
}

TEST_CASE("beside a graph a recording that fails gives back only what it took") {
  give_all_back();
  const std::vector<Tensor> inputs = {noise_tensor({4}, 1).to(Device::cuda)};
  GraphCache cache(8);
  for (int i = 0; i < 3; ++i)
    cache.run("graph", inputs, Greedy{40}.work());
  const std::size_t kept = gpu_arena().size();
  {
    const Limit limit(150);
    for (int i = 0; i < 6; ++i)
      CHECK(same(cache.run("greedy", inputs, Greedy{100, true}.work())[0], inputs[0]));
  }
  CHECK(cache.graphs() == 1);
  CHECK(gpu_arena().size() == kept);
  CHECK(same(cache.run("graph", inputs, Greedy{40}.work())[0], inputs[0]));
  CHECK(cache.replays() == 3);
}

TEST_CASE("graphs are given up where memory is short, the third time for good") {
  listen();
  Network network;
  GraphCache cache(8);
  for (int time = 1; time <= 3; ++time) {
    compare(cache, network, {4, 4, 4});
    REQUIRE(cache.graphs() == 1);
    const Limit limit(1);
    // Fits only into what the recordings have.
    const Tensor large({std::int64_t{20} << 20}, DType::u8, Device::cuda);
    CHECK(cache.graphs() == 0);
    CHECK_THROWS(Tensor({std::int64_t{200} << 20}, DType::u8, Device::cuda));
  }
  compare(cache, network, {4, 4, 4});
  CHECK(cache.graphs() == 0);
  REQUIRE(lines.size() == 4);
  CHECK(lines[1].find("made once more") != std::string::npos);
  CHECK(lines[3].find("going on without CUDA graphs") != std::string::npos);
}

TEST_CASE(
    "an upload that goes while work is recorded is no part of it, and its memory comes back") {
  const bool elsewhere = GENERATE(false, true);  // in the thread that uploads
  const std::int64_t rows = elsewhere ? 30'000 : 20'000;
  const Tensor input = noise_tensor({rows, 100}, 1).to(Device::cuda);
  GraphCache cache(8);
  std::size_t used = 0;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const Tensor host = noise_tensor({rows, 100}, 2 + i);
    Upload upload;
    Tensor there = upload.copy(host);
    upload.await();
    ops::Tape tape(false);
    const Tensor sum = ops::add(tape, there, input);
    const auto drop = [&there] { there = {}; };
    const auto work = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
      elsewhere ? std::thread(drop).join() : drop();
      ops::Tape inner(false);
      return {ops::add(inner, inputs[0], inputs[0])};
    };
    const Tensor twice = cache.run("", {input}, work)[0];
    CHECK(same(twice, ops::add(tape, input, input)));
    CHECK(same(sum, ops::add(tape, host.to(Device::cuda), input)));
    // The third time the work is repeated, so nothing drops it there.
    CHECK(there.defined() == (i > 1));
    if (i == 2) used = emulation::used_memory();
  }
  CHECK(cache.graphs() == 1);
  CHECK(cache.replays() == 5);
  CHECK(emulation::used_memory() == used);
}

TEST_CASE("while work is recorded other threads upload and download, which CUDA allows") {
  const Tensor input = noise_tensor({30, 100}, 1).to(Device::cuda);
  const Tensor host = noise_tensor({50'000, 7}, 2);
  Tensor old = Upload().copy(noise_tensor({40, 100}, 3)), there;
  const std::size_t others = emulation::recorded_by_others();
  GraphCache cache(8);
  Upload upload;
  Download download;
  std::promise<void> begun;
  std::future<void> other;
  int pieces = 0, beside = 0;
  bool tried = false;
  std::string failure;
  emulation::when_capture_begins([&] {
    if (std::exchange(tried, true)) return;
    begun.set_value();
    other = std::async(std::launch::async, [&] {
      there = upload.copy(host);  // takes memory, and waits for room
      old = {};
      upload.copy(host.rows(0, 1000));  // and is dropped
    });
    // Without memory it would wait for the end of the recording.
    if (other.wait_for(std::chrono::seconds(20)) != std::future_status::ready) return;
    try {
      other.get();
      download.finish();
      beside = pieces;
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  const std::shared_ptr<void> at_end(nullptr, [](void*) { emulation::when_capture_begins({}); });
  const auto work = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    ops::Tape tape(false);
    return {ops::add(tape, inputs[0], inputs[0])};
  };
  for (int i = 0; i < 3; ++i) {
    if (i == 1)  // the second time is recorded
      download.start(std::vector<Download::Piece>(9, {{input.raw(), input.bytes()}}),
                     [&, ready = begun.get_future().share()](std::size_t, const std::byte* bytes) {
                       ready.wait();
                       pieces += std::memcmp(bytes, input.raw(), input.bytes()) == 0 ? 1 : 0;
                     });
    ops::Tape tape(false);
    CHECK(same(cache.run("", {input}, work)[0], ops::add(tape, input, input)));
  }
  if (other.valid()) other.wait();
  CHECK(failure.empty());
  CHECK(beside == 9);
  CHECK(cache.graphs() == 1);
  CHECK(cache.replays() == 2);
  upload.await();
  CHECK(same(there, host));
  CHECK(emulation::recorded_by_others() == others);
}

TEST_CASE("uploads of changing sizes give nothing back to the driver") {
  std::size_t used = 0;
  for (const std::int64_t size : {1'000'000, 500'000, 250'000, 1'000'000, 7, 700'000}) {
    const Tensor there = Upload().copy(Tensor::zeros({size}));
    CHECK(emulation::used_memory() >= used);
    used = emulation::used_memory();
  }
}

TEST_CASE("tensors and uploads get the memory that the other only keeps") {
  const Tensor small = noise_tensor({64}, 1), large = noise_tensor({5 << 20}, 2);  // 20 MiB
  Tensor({std::int64_t{100} << 20}, DType::u8, Device::cuda);                      // kept
  {
    const Limit limit(1);
    Upload upload;
    const Tensor there = upload.copy(large);
    upload.await();
    CHECK(same(there, large));
  }
  const Limit limit(1);
  CHECK_NOTHROW(Tensor({std::int64_t{24} << 20}, DType::u8, Device::cuda));
}

TEST_CASE("what is counted as memory: tensors, uploads and recordings") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  give_all_back();
  reset_cuda_peak();
  const MemoryStats before = cuda_memory();
  CHECK(before.peak == before.current);
  const std::vector<Tensor> inputs = {noise_tensor({4}, 1).to(Device::cuda)};
  GraphCache cache(8);
  cache.run("", inputs, Greedy{100}.work());
  CHECK(cuda_memory().current < before.current + kMiB);
  CHECK(cuda_memory().peak / kMiB == before.peak / kMiB + 100);
  for (int i = 0; i < 2; ++i)
    cache.run("", inputs, Greedy{100}.work());
  REQUIRE(cache.graphs() == 1);
  const std::size_t recorded = gpu_arena().size() / kMiB;
  CHECK(recorded >= 100);
  CHECK(cuda_memory().current / kMiB == before.current / kMiB + recorded);
  CHECK(cuda_memory().peak / kMiB == before.peak / kMiB + recorded);  // not the plain work's too
  const Tensor there = Upload().copy(Tensor::zeros({2 << 20}));
  CHECK(cuda_memory().current / kMiB == before.current / kMiB + recorded + 8);
}
