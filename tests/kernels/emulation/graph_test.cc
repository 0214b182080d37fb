// Two streams and recorded work, as the emulation runs them: what is computed never reads data that
// have not come, copies never write over what is still read, and recorded work gives the bits of
// work that is done plainly.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>

#include "base/log.h"
#include "base/philox.h"
#include "ops/add.h"
#include "ops/gelu.h"
#include "ops/linear.h"
#include "streams.h"
#include "tensor/device.h"
#include "tensor/graph_cache.h"
#include "tensor/upload.h"

using namespace vfm;

namespace {

Tensor noise(Shape shape, std::uint64_t key) {
  const Tensor tensor(std::move(shape));
  Random(1, Purpose::test, 0, key).fill_normal(tensor.floats());
  return tensor;
}

bool same(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu), y = b.to(Device::cpu);
  return x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

// A network of two layers whose gradient is added to `gradient`, with a table of the host.
struct Network {
  Tensor weights = noise({6, 6}, 100).to(Device::cuda);
  Tensor gradient = Tensor::zeros({6, 6}, DType::f32, Device::cuda);
  int calls = 0;
  bool looks = false;  // at a result, for which the host must wait

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    ++calls;
    ops::Tape tape;
    tape.watch(weights, gradient);
    const Tensor table = noise(inputs[0].shape(), 101).to(Device::cuda);
    const Tensor hidden =
        ops::gelu(tape, ops::linear(tape, ops::add(tape, inputs[0], table), weights));
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
    const std::vector<Tensor> inputs = {noise({rows[i], 6}, 2 * i).to(Device::cuda),
                                        noise({rows[i], 6}, 2 * i + 1).to(Device::cuda)};
    const Tensor expected = plain.run(inputs)[0];
    const Tensor got = cache.run(std::to_string(rows[i]), inputs, network.work())[0];
    CHECK(same(got, expected));
    CHECK(same(network.gradient, plain.gradient));
  }
}

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
    Tensor host = noise({3, 500}, i);
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
    inputs.push_back(noise({3, 6}, i).to(Device::cuda));
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

TEST_CASE("graphs are given up where memory is short") {
  listen();
  Network network;
  GraphCache cache(8);
  compare(cache, network, {4, 4, 4});
  REQUIRE(cache.graphs() == 1);
  const std::size_t used = emulation::used_memory();
  emulation::set_memory(used + (std::size_t{1} << 20));
  // Fits only into what the recordings have.
  const Tensor large({std::int64_t{20} << 20}, DType::u8, Device::cuda);
  CHECK(cache.graphs() == 0);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].find("memory of the GPU is short") != std::string::npos);
  compare(cache, network, {4, 4, 4});
  CHECK(cache.graphs() == 0);
  CHECK_THROWS(Tensor({std::int64_t{200} << 20}, DType::u8, Device::cuda));
  emulation::set_memory(std::size_t{1} << 40);
}
