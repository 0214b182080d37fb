// Groups of ranks with a GPU each: what NCCL carries is what threads carry, to the bit, whichever
// stream is late.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <list>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "cuda_runtime.h"
#include "dist/device_carrier.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "group_cases.h"
#include "kernels/ordered_sum.h"
#include "nccl_emulated.h"
#include "streams.h"
#include "tensor/device.h"
#include "tensor/gpu_graph.h"

using namespace vfm;
using namespace vfm::dist;
using emulation::Late;

namespace {

std::vector<int> all_of(const World& world) {
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void check_cuda(int status) {
  check_gpu(status, "prepare a test");
}

/// On the compute stream by a kernel, so that it is late where kernels are, and so are `values`
/// read.
void fill(const Tensor& to, const void* values) {
  const Tensor raw({static_cast<std::int64_t>(to.bytes())}, DType::u8, Device::cuda);
  check_cuda(
      cudaMemcpyAsync(raw.raw(), values, to.bytes(), cudaMemcpyHostToDevice, compute_stream()));
  const std::int64_t floats = static_cast<std::int64_t>(to.bytes()) / 4;
  check_cuda(kernels::ordered_sum(kernels::Type::f32, raw.raw(), 0, nullptr, 0, 1, to.raw(), floats,
                                  compute_stream()));
  check_cuda(cudaMemcpyAsync(static_cast<float*>(to.raw()) + floats, raw.data<float>() + floats,
                             to.bytes() % 4, cudaMemcpyDeviceToDevice, compute_stream()));
}

void spoil(const Tensor& tensor) {
  check_cuda(cudaMemsetAsync(tensor.raw(), 0x7d, tensor.bytes(), compute_stream()));
}

/// Takes memory of that size that nobody has any more, and writes to it.
void spoil_free(std::size_t bytes) {
  std::vector<Tensor> taken;
  for (int i = 0; i < 4; ++i) {
    taken.emplace_back(Shape{static_cast<std::int64_t>(bytes)}, DType::u8, Device::cuda);
    spoil(taken.back());
  }
}

/// Tensors of the host as a group has them whose tensors are on the GPU: they are written there by
/// kernels, and read by copies, and their memory is used for other things at once.
class OnGpu final : public Group {
 public:
  explicit OnGpu(Group& gpu) : Group(gpu.axis(), gpu.rank(), gpu.ranks()), gpu_(gpu) {}
  void barrier() override { gpu_.barrier(); }
  std::vector<std::string> gather(const std::string& text) override { return gpu_.gather(text); }

 protected:
  std::unique_ptr<Pending> start(const Call& call) override {
    if (call.sum == Sum::f64)
      return std::make_unique<Copying>(all_reduce_f64(call), Tensor(), call);
    Tensor in, out;
    if (call.in.defined() && call.out.defined() && !is_part(call.in, call.out) &&
        is_part(call.out, call.in)) {
      in = up(call.in);
      out = same_part(call.out, call.in, in);
    } else {
      if (call.out.defined()) out = up(call.out);
      if (call.in.defined())
        in = call.out.defined() && is_part(call.in, call.out) ? same_part(call.in, call.out, out)
                                                              : up(call.in);
    }
    Transfer transfer = start(call, in, out);
    const std::size_t bytes = call.in.defined() ? call.in.bytes() : 0;
    in = Tensor();  // the transfer alone keeps it
    const Tensor kept = out;
    out = Tensor();
    spoil_free(bytes);
    return std::make_unique<Copying>(std::move(transfer), kept, call);
  }

 private:
  class Copying final : public Pending {
   public:
    Copying(Transfer transfer, Tensor from, const Call& call)
        : transfer_(std::move(transfer)), from_(std::move(from)), to_(call.out) {}
    void wait() override {
      transfer_.wait();
      if (!from_.defined()) return;
      const Tensor copied = from_.clone();
      spoil(from_);
      from_ = Tensor();
      copy(copied, to_);
    }
    bool done() override { return transfer_.done(); }

   private:
    Transfer transfer_;
    Tensor from_;
    const Tensor to_;
  };

  Transfer all_reduce_f64(const Call& call) {
    return gpu_.all_reduce(
        std::span<double>(static_cast<double*>(call.out.raw()), call.out.bytes() / sizeof(double)));
  }
  Tensor up(const Tensor& host) {
    const auto* bytes = static_cast<const std::byte*>(host.raw());
    const std::vector<std::byte>& kept = read_later_.emplace_back(bytes, bytes + host.bytes());
    const Tensor tensor({host.elements()}, host.dtype(), Device::cuda);
    fill(tensor, kept.data());
    return tensor;
  }
  static std::ptrdiff_t offset(const Tensor& part, const Tensor& whole) {
    return static_cast<const std::byte*>(part.raw()) - static_cast<const std::byte*>(whole.raw());
  }
  static bool is_part(const Tensor& part, const Tensor& whole) {
    const std::ptrdiff_t at = offset(part, whole);
    return at >= 0 && part.bytes() > 0 &&
           static_cast<std::size_t>(at) + part.bytes() <= whole.bytes();
  }
  /// What `part` is of `whole`, of `other`.
  static Tensor same_part(const Tensor& part, const Tensor& whole, const Tensor& other) {
    const auto element = static_cast<std::ptrdiff_t>(dtype_size(part.dtype()));
    const std::int64_t begin = offset(part, whole) / element;
    return other.rows(begin, begin + part.elements());
  }
  Transfer start(const Call& call, const Tensor& in, Tensor& out) {
    switch (call.operation) {
      case Operation::all_gather:
        return gpu_.all_gather(in, out, call.from);
      case Operation::reduce_scatter:
        return gpu_.reduce_scatter(in, out, call.to);
      case Operation::all_reduce:
        return gpu_.all_reduce(out);
      case Operation::all_to_all:
        return gpu_.all_to_all(in, out, call.to, call.from);
      case Operation::broadcast:
        return gpu_.broadcast(out, call.source);
      case Operation::exchange:
        return gpu_.exchange(call.target, in, call.source, out);
      case Operation::send:
        return gpu_.send(call.target, in);
      default:
        return gpu_.receive(call.source, out);
    }
  }

  Group& gpu_;
  std::list<std::vector<std::byte>> read_later_;
};

/// The ranks as threads, each with the GPU of its number.
void gpu_worlds(int size, bool ordered, Late late, const std::function<void(World&)>& act) {
  emulation::set_late(late);
  thread_worlds(size, [&](World& world) {
    emulation::device() = world.rank();
    world.use_device(Device::cuda, ordered);
    act(world);
    synchronize_gpu();
    world.barrier();
  });
  emulation::set_late(Late::none);
}

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    emulation::set_late(Late::none);
    return error.what();
  }
  emulation::set_late(Late::none);
  return "none";
}

Late any_late() {
  return GENERATE(Late::none, Late::kernels, Late::meetings);
}

Tensor gpu_tensor(const std::vector<float>& values) {
  thread_local std::list<std::vector<float>> read_later;
  const Tensor tensor({static_cast<std::int64_t>(values.size())}, DType::f32, Device::cuda);
  fill(tensor, read_later.emplace_back(values).data());
  return tensor;
}

std::vector<float> host_floats(const Tensor& tensor) {
  const Tensor host = tensor.to(Device::cpu);
  return {host.floats().begin(), host.floats().end()};
}

using Catch::Contains;

}  // namespace

TEST_CASE("nccl: every operation, to the bit, in ordered sums") {
  const int size = GENERATE(range(1, 6));
  const Late late = any_late();
  CAPTURE(size, static_cast<int>(late));
  const int before = test::emulated_nccl().communicators;
  CHECK_NOTHROW(gpu_worlds(size, true, late, [](World& world) {
    const auto group = world.group("tp", all_of(world));
    OnGpu on_gpu(*group);
    group_cases::check_operations(on_gpu);
    group_cases::check_traffic(on_gpu, world.traffic());
    if (world.traffic().axes() !=
        (world.size() > 1 ? std::vector<std::string>{"tp"} : std::vector<std::string>{}))
      fail("the axes of the traffic");
  }));
  // The world's group, and this; none for a rank alone.
  CHECK(test::emulated_nccl().communicators - before == (size > 1 ? 2 * size : 0));
}

TEST_CASE("nccl: sums of its own, and of parts of any size") {
  const Late late = any_late();
  CAPTURE(static_cast<int>(late));
  gpu_worlds(3, false, late, [](World& world) {
    const auto group = world.group("dp", all_of(world));
    const float big = world.rank() == 0 ? 1e8f : world.rank() == 1 ? -1e8f : 1.f;
    // NCCL's order here: (1 - 1e8) + 1e8 = 0.
    const Tensor all = gpu_tensor({big, 1, 2, 3, 4, 5});
    const Tensor uneven({world.rank() == 1 ? 4 : 1}, DType::f32, Device::cuda);
    const Tensor even({2}, DType::f32, Device::cuda);
    const std::int64_t rows[] = {1, 4, 1};
    Transfer first = group->reduce_scatter(all, uneven, rows),
             second = group->reduce_scatter(all, even);
    first.wait();
    second.wait();
    const std::vector<float> sums = {0, 3, 6, 9, 12, 15};
    const auto part = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      return std::vector<float>(sums.begin() + begin, sums.begin() + end);
    };
    if (host_floats(uneven) != (world.rank() == 0   ? part(0, 1)
                                : world.rank() == 1 ? part(1, 5)
                                                    : part(5, 6)))
      fail("uneven parts");
    if (host_floats(even) != part(2 * world.rank(), 2 * world.rank() + 2)) fail("even parts");
    group->all_reduce(all).wait();
    if (host_floats(all) != sums) fail("a sum");
    const Tensor half = gpu_tensor({0.5f, 0.25f}).to(DType::bf16);
    group->all_reduce(half).wait();
    if (host_floats(half.to(DType::f32)) != std::vector<float>{1.5f, 0.75f}) fail("a sum of bf16");
  });
}

TEST_CASE("nccl: groups along two axes, whose operations cross") {
  const Late late = any_late();
  CAPTURE(static_cast<int>(late));
  gpu_worlds(4, true, late, [](World& world) {
    const int rank = world.rank();
    const auto rows = world.group("tp", {rank / 2 * 2, rank / 2 * 2 + 1});
    const auto columns = world.group("cp", {rank % 2, rank % 2 + 2});
    const auto value = static_cast<float>(1 << rank);
    std::list<Tensor> tensors;
    std::vector<Transfer> transfers;
    for (int step = 0; step < 6; ++step) {
      tensors.push_back(gpu_tensor(std::vector<float>(9, value)));
      transfers.push_back(rows->all_reduce(tensors.back()));
      tensors.push_back(gpu_tensor(std::vector<float>(5, value)));
      transfers.push_back(columns->all_reduce(tensors.back()));
      if (step % 2 == 1) transfers[static_cast<std::size_t>(rank % 2 + 2 * step)].wait();
    }
    for (Transfer& transfer : transfers)
      transfer.wait();
    const float row = rank < 2 ? 3 : 12, column = rank % 2 == 0 ? 5 : 10;
    for (const Tensor& tensor : tensors)
      if (host_floats(tensor) != std::vector<float>(static_cast<std::size_t>(tensor.elements()),
                                                    tensor.elements() == 9 ? row : column))
        fail("a sum");
  });
}

TEST_CASE("nccl: what goes up a pipeline does not queue behind what goes down") {
  const Late late = any_late();
  CAPTURE(static_cast<int>(late));
  gpu_worlds(2, true, late, [](World& world) {
    Layout stages;
    stages.pp = 2;
    const Mesh mesh(world, stages);
    Group &down = mesh.group(Axes::pp), &up = mesh.upstream();
    const Tensor values({1000}, DType::f32, Device::cuda);
    if (world.rank() == 0) {
      const Tensor stream = gpu_tensor(std::vector<float>(1000, 3));
      Transfer sent = down.send(1, stream);
      up.receive(1, values).wait();
      if (host_floats(values) != std::vector<float>(1000, 5)) fail("a gradient");
      world.barrier();
      sent.wait();
    } else {
      const Tensor gradient = gpu_tensor(std::vector<float>(1000, 5));
      Transfer sent = up.send(0, gradient);
      world.barrier();  // it has come, and nobody has received the stream
      down.receive(0, values).wait();
      if (host_floats(values) != std::vector<float>(1000, 3)) fail("a stream");
      sent.wait();
    }
  });
}

TEST_CASE("nccl: a transfer that nobody waits for keeps its memory") {
  const Late late = any_late();
  CAPTURE(static_cast<int>(late));
  gpu_worlds(2, true, late, [](World& world) {
    const auto group = world.group("tp", all_of(world));
    const Tensor got({1000}, DType::f32, Device::cuda);
    const auto number = static_cast<float>(world.rank() + 1);
    {
      Transfer transfer;
      {
        const Tensor mine = gpu_tensor(std::vector<float>(1000, number));
        transfer = group->exchange(1 - world.rank(), mine, 1 - world.rank(), got);
      }
    }
    spoil_free(4000);
    if (host_floats(got) != std::vector<float>(1000, 3 - number)) fail("what came");
  });
}

TEST_CASE("nccl: wait() leaves the host alone, and done() tells") {
  gpu_worlds(2, false, Late::meetings, [](World& world) {
    const auto group = world.group("tp", all_of(world));
    const Tensor values = gpu_tensor({1, 2});
    Transfer transfer;
    if (world.rank() == 1) world.barrier();  // rank 0 has waited by then
    transfer = group->all_reduce(values);
    if (world.rank() == 0) {
      if (transfer.done()) fail("done before the other rank has begun");
      transfer.wait();
      world.barrier();
    } else {
      transfer.wait();
    }
    if (host_floats(values) != std::vector<float>{2, 4}) fail("a sum");
  });
}

TEST_CASE("nccl: ranks of one GPU are refused, and named, before there is any communicator") {
  const int before = test::emulated_nccl().communicators;
  const std::string why = failure([] {
    thread_worlds(4, [](World& world) {
      emulation::device() = world.rank() == 3 ? 1 : world.rank();
      world.use_device(Device::cuda, false);
    });
  });
  CHECK_THAT(why, Contains("ranks 1 3 have one GPU together (GPU-656d0100-0000-"));
  CHECK_THAT(why, Contains("of host thread 1") && Contains("CUDA_VISIBLE_DEVICES"));
  CHECK(test::emulated_nccl().communicators == before);
}

TEST_CASE("nccl: where a rank has no GPU, tensors go by way of the host") {
  const int before = test::emulated_nccl().communicators;
  static std::string warnings;
  set_log_sink([](LogLevel, std::string_view message) { warnings += message; }, LogLevel::warning);
  thread_worlds(2, [](World& world) {
    world.use_device(world.rank() == 1 ? Device::cuda : Device::cpu, false);
    const auto group = world.group("tp", {0, 1});
    const Tensor values = Tensor::from(std::vector<float>{1, 2}, {2});
    group->all_reduce(values).wait();
    if (values.floats()[1] != 4) fail("a sum");
  });
  set_log_sink(nullptr, LogLevel::info);
  CHECK_THAT(warnings, Contains("rank 0 on host thread 0: computes on the CPU"));
  CHECK(test::emulated_nccl().communicators == before);
}

TEST_CASE("nccl: a rank that fails ends what the others wait for, who say where") {
  const int aborted = test::emulated_nccl().aborted;
  std::atomic<bool> waits = false;
  const std::string why = failure([&] {
    gpu_worlds(2, false, Late::none, [&](World& world) {
      const auto group = world.group("tp", all_of(world));
      if (world.rank() == 1) {
        waits.wait(false);
        fail("no memory");
      }
      const Tensor values = gpu_tensor({1, 2}), more = gpu_tensor({1});
      Transfer first = group->all_reduce(values), second = group->all_gather(more, values);
      first.wait();
      waits = true;
      waits.notify_one();
      synchronize_gpu();  // returns as the communicator is aborted when rank 1 has ended
      second.wait();
    });
  });
  CHECK_THAT(why,
             Contains("all_reduce of F32 elements [2] (2 of 'tp'): NCCL: remote process exited") &&
                 Contains("(rank 0 on host thread 0)"));
  CHECK(test::emulated_nccl().aborted == aborted + 4);  // of both ranks this group and the world's
}

TEST_CASE("nccl: a rank that is silent is not waited for longer than the section's limit") {
  const bool learnt = GENERATE(false, true);
  CAPTURE(learnt);
  std::atomic<bool> over = false;
  std::string said;
  const std::string why = failure([&] {
    gpu_worlds(2, false, Late::none, [&](World& world) {
      const auto group = world.group("tp", all_of(world));
      world.silent_limit(0.3);
      for (std::size_t step = 0; learnt && step < SectionTimes::kEnough; ++step)
        world.section("step", 600);
      world.section("step", learnt ? 600 : 0.3);
      if (world.rank() == 1) {
        over.wait(false);
        fail("too late");
      }
      const Tensor values = gpu_tensor({1, 2});
      group->all_reduce(values).wait();
      synchronize_gpu();
      try {
        group->all_reduce(values).wait();
      } catch (const ExchangeFailed& error) {
        said = error.what();
      }
      over = true;
      over.notify_one();
    });
  });
  CHECK(why == "too late");
  CHECK(said ==
        fmt::format("all_reduce of F32 elements [2] (2 of 'tp'): not done for 0.3 s{}: a "
                    "rank of the group is silent, or has failed, or the hosts do not reach each "
                    "other over the interfaces that NCCL takes: see that no firewall stands "
                    "between them, and name others, such as with NCCL_SOCKET_IFNAME=eth0 (rank 0 "
                    "on host thread 0)",
                    learnt ? " (three times the usual, at least 'train.silent_limit')" : ""));
}

TEST_CASE("nccl: where hosts do not reach each other, the start names what chooses the interface") {
  std::string said;
  test::emulated_nccl().apart = true;
  thread_worlds(2, [&](World& world) {
    emulation::device() = world.rank();
    const auto group = world.group("tp", all_of(world));
    const auto section = std::make_shared<Section>();
    section->limit = world.rank() == 0 ? 0.3 : 60;
    section->lost = [&](const std::string& message) {
      said = message;
      const std::lock_guard held(emulation::monitor());
      test::emulated_nccl().apart = false;
      emulation::monitor().change();
    };
    nccl_carrier(*group, "rank 0 on host a", false, section);
    world.barrier();
  });
  CHECK(said ==
        "the start of NCCL: not done for 0.3 s: a rank of the group is silent, or has failed, or "
        "the hosts do not reach each other over the interfaces that NCCL takes: see that no "
        "firewall stands between them, and name others, such as with NCCL_SOCKET_IFNAME=eth0 "
        "(rank 0 on host a)");
}

TEST_CASE("nccl: two calls that differ are named, and are no exchange that another has failed") {
  // By the rank that calls second; the other one may find first that this has ended.
  std::string said[2];
  std::atomic<int> own = 0;
  failure([&] {
    gpu_worlds(2, false, Late::none, [&](World& world) {
      const auto group = world.group("tp", all_of(world));
      const Tensor values = gpu_tensor({1, 2});
      try {
        if (world.rank() == 0)
          group->all_reduce(values).wait();
        else
          group->broadcast(values, 0).wait();
      } catch (const Error& error) {
        said[world.rank()] = error.what();
        if (dynamic_cast<const ExchangeFailed*>(&error) == nullptr) ++own;
        throw;
      }
      synchronize_gpu();
    });
  });
  CHECK_THAT(said[0] + said[1], Contains("all_reduce of F32 elements [2]") &&
                                    Contains("broadcast of F32 elements [2] from rank 0"));
  CHECK(own == 1);
}

TEST_CASE("nccl: nothing of it can be recorded") {
  gpu_worlds(2, false, Late::none, [](World& world) {
    const auto group = world.group("tp", all_of(world));
    const Tensor values = gpu_tensor({1, 2});
    for (int rank = 0; rank < 2; ++rank, world.barrier()) {  // one records at a time
      if (rank != world.rank()) continue;
      bool refused = false;
      try {
        const GpuGraph graph([&] { group->all_reduce(values).wait(); });
      } catch (const NotRecordable&) {
        refused = true;
      }
      if (!refused) fail("an exchange was recorded");
    }
  });
}

TEST_CASE("nccl: without the events between computing and exchanging a sum has other bits") {
  const Late late = GENERATE(Late::kernels, Late::meetings);
  for (const bool forget : {false, true}) {
    CAPTURE(static_cast<int>(late), forget);
    std::atomic<int> wrong = 0;
    emulation::forget_waits(forget);
    gpu_worlds(2, true, late, [&](World& world) {
      const auto group = world.group("tp", all_of(world));
      const Tensor values({5}, DType::f32, Device::cuda);
      spoil(values);
      synchronize_gpu();
      const std::vector<float> mine(5, static_cast<float>(world.rank() + 1));
      fill(values, mine.data());
      group->all_reduce(values).wait();
      if (host_floats(values) != std::vector<float>(5, 3)) ++wrong;
    });
    emulation::forget_waits(false);
    CHECK((wrong > 0) == forget);
  }
}
