// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tensor/allocator.h"
#include "tensor/caching_allocator.h"
#include "tensor/device.h"

using namespace vfm;

namespace {

constexpr std::size_t kOtherBytes = 4096;
bool g_moves_fail = false;
void* g_other = nullptr;  // what another thread got where a block was to be moved to

}  // namespace

/// In place of the C library's: fails when a test wants it, after what was at the new place is gone
/// and another thread has got memory there.
extern "C" void* mremap(void* old, std::size_t size, std::size_t to, int flags, ...) noexcept {
  std::va_list rest;
  va_start(rest, flags);
  void* const place = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  if (!g_moves_fail)
    return reinterpret_cast<void*>(::syscall(SYS_mremap, old, size, to, flags, place));
  ::munmap(place, to);
  g_other = ::mmap(place, kOtherBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  errno = ENOMEM;
  return MAP_FAILED;
}

TEST_CASE("shapes, views and copies") {
  Tensor a({2, 3, 4});
  std::iota(a.floats().begin(), a.floats().end(), 0.f);
  CHECK(a.elements() == 24);
  CHECK(a.bytes() == 96);
  CHECK(a.size(-1) == 4);
  CHECK_THROWS_AS(a.size(3), Error);
  CHECK(to_string(a.shape()) == "[2, 3, 4]");
  CHECK(reinterpret_cast<std::uintptr_t>(a.raw()) % 64 == 0);

  const Tensor flat = a.reshape({6, 4});
  CHECK(flat.id() == a.id());
  CHECK_THROWS_AS(a.reshape({5, 5}), Error);
  const Tensor last = flat.rows(4, 6);
  CHECK(last.shape() == Shape{2, 4});
  CHECK(last.floats()[0] == 16);
  last.floats()[0] = -1;
  CHECK(a.floats()[16] == -1);
  CHECK_THROWS_AS(flat.rows(5, 7), Error);
  CHECK_THROWS_AS(flat.rows(3, 2), Error);
  CHECK(flat.rows(2, 2).elements() == 0);

  const Tensor copy = a.clone();
  copy.floats()[0] = 7;
  CHECK(a.floats()[0] == 0);
  CHECK_FALSE(a.unique());
  CHECK(copy.unique());
  CHECK_FALSE(Tensor().defined());
  CHECK_THROWS_AS(Tensor().floats(), Error);
  CHECK_THROWS_AS(Tensor({2}, DType::i32).floats(), Error);
}

TEST_CASE("nonsense sizes are refused") {
  CHECK_THROWS_AS(Tensor({-1}), Error);
  CHECK_THROWS_AS(Tensor({std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
  const std::vector<float> three(3);
  CHECK_THROWS_AS(Tensor::from(three, {2}), Error);
  CHECK(Tensor({0, 5}).elements() == 0);
  CHECK(Tensor(Shape{}).elements() == 1);
}

TEST_CASE("a view keeps the storage, a borrowed tensor its owner") {
  Tensor part;
  {
    Tensor whole = Tensor::zeros({4, 4});
    whole.floats()[15] = 3;
    part = whole.rows(3, 4);
  }
  CHECK(part.floats()[3] == 3);
  auto owner = std::make_shared<std::vector<float>>(4, 2.f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  Tensor borrowed = Tensor::borrow(owner->data(), {2, 2}, DType::f32, owner);
  owner.reset();
  CHECK_FALSE(watch.expired());
  CHECK(borrowed.floats()[3] == 2);
  borrowed = Tensor();
  CHECK(watch.expired());
}

TEST_CASE("bf16 rounds to nearest even") {
  // Halfway cases: 1 + 2^-8 lies between 1 and 1 + 2^-7; the even mantissa is 1.
  const std::vector<float> values{1.f, 1.00390625f, 1.01171875f, -2.5f, 3.4e38f, 0.f, 1e-40f};
  const Tensor low = Tensor::from(values, {7}).to(DType::bf16);
  const Tensor back = low.to(DType::f32);
  CHECK(back.floats()[0] == 1.f);
  CHECK(back.floats()[1] == 1.f);
  CHECK(back.floats()[2] == 1.015625f);
  CHECK(back.floats()[3] == -2.5f);
  CHECK(std::isinf(back.floats()[4]));
  CHECK(back.floats()[5] == 0.f);
  CHECK(std::abs(back.floats()[6] - 1e-40f) < 1e-41f);
  const std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()};
  CHECK(std::isnan(Tensor::from(nan, {1}).to(DType::bf16).to(DType::f32).floats()[0]));
  CHECK(low.to(DType::bf16).id() == low.id());
  CHECK(low.to(DType::f16).to(DType::f32).floats()[3] == -2.5f);
  CHECK_THROWS_AS(low.to(DType::i32), Error);
  // Long enough for threads, and equal to the short way.
  std::vector<float> many(100003);
  std::iota(many.begin(), many.end(), 0.f);
  const Tensor all = Tensor::from(many, {100003}).to(DType::bf16).to(DType::f32);
  CHECK(all.floats()[100002] == 99840.f);
  CHECK(all.floats()[255] == 255.f);
}

TEST_CASE("a tensor of E4M3 has a byte an element, and is not made without a scale") {
  const Tensor tensor({3, 5}, DType::f8e4m3);
  CHECK(tensor.bytes() == 15);
  CHECK(dtype_name(tensor.dtype()) == "F8_E4M3");
  CHECK_THROWS_AS(tensor.to(DType::f32), Error);
  CHECK_THROWS_AS(Tensor({2}).to(DType::f8e4m3), Error);
}

TEST_CASE("freed memory is used again") {
  release_cached_memory();
  const std::size_t before = cpu_memory().current;
  const void* first = nullptr;
  {
    const Tensor a({1000, 1000});
    first = a.raw();
    CHECK(cpu_memory().current >= before + 4000000);
    CHECK(cpu_memory().peak >= cpu_memory().current);
  }
  CHECK(cpu_memory().current == before);
  CHECK(cpu_memory().cached >= 4000000);
  const Tensor b({1000, 999});  // the same size class
  CHECK(b.raw() == first);
  release_cached_memory();
  CHECK(cpu_memory().cached == 0);
}

TEST_CASE("steps of changing sizes keep their memory, and hold little more than the largest took") {
  release_cached_memory();
  { const Tensor activations({8000000}), text({1000}); }
  const Tensor longer_text({3000});
  CHECK(cpu_memory().cached >= 32000000);
  for (std::int64_t size = 1000000; size < 20000000; size += 700000) {
    const Tensor tensor({size});
    const MemoryStats now = cpu_memory();
    CHECK(now.current + now.cached <= memory_limit(now.peak));
  }
  release_cached_memory();
}

TEST_CASE("memory that is kept goes back when it is too much, what was freed longest ago first") {
  static std::vector<std::size_t> made;
  static std::set<std::uintptr_t> there;
  made.clear(), there.clear();
  const auto get = [](std::size_t size) noexcept -> void* {
    made.push_back(size);
    there.insert(made.size());
    return reinterpret_cast<void*>(made.size());
  };
  const auto put = [](void* block, std::size_t) noexcept {
    there.erase(reinterpret_cast<std::uintptr_t>(block));
  };
  const auto as_it_is = [](std::size_t bytes) noexcept { return bytes; };
  CachingAllocator allocator({get, put, as_it_is, "", nullptr, nullptr, gpu_memory_limit});
  const auto held = [&] { return allocator.stats().current + allocator.stats().cached; };
  {
    const auto a = allocator.allocate(100), b = allocator.allocate(60), c = allocator.allocate(40);
  }
  // Freed in the order c, b, a; the most is 200.
  CHECK(held() == 200);
  allocator.allocate(50);
  CHECK(there.size() == 4);
  CHECK(held() == 250);
  allocator.allocate(30);  // c makes room
  CHECK(there == std::set<std::uintptr_t>{1, 2, 4, 5});
  CHECK(held() == 240);
  allocator.allocate(100);
  allocator.allocate(30);
  CHECK(made == std::vector<std::size_t>{100, 60, 40, 50, 30});
  // What is more than ever before may come beside a quarter of it.
  const auto more = allocator.allocate(220);
  CHECK(there == std::set<std::uintptr_t>{5, 6});
  CHECK(allocator.stats().cached == 30);
  CHECK(allocator.stats().held == 250);
  CachingAllocator all({get, put, as_it_is, "", nullptr, nullptr, nullptr});
  for (std::size_t size = 1; size <= 50; ++size)
    all.allocate(size);
  CHECK(all.stats().cached == 1275);
}

#if !defined(__SANITIZE_ADDRESS__)  // With a sanitizer, all memory is the C library's.
TEST_CASE("a block that cannot be moved goes back, and the memory of others does not") {
  release_cached_memory();
  const std::size_t before = cpu_memory().current;
  // No page of these is touched. The second one does not fit beside the first one.
  { const Tensor first({100'000'000}); }
  CHECK(cpu_memory().cached >= 400'000'000);
  g_moves_fail = true;
  {
    const Tensor second({110'000'000});
    g_moves_fail = false;
    REQUIRE(g_other);
    CHECK(::msync(g_other, kOtherBytes, MS_ASYNC) == 0);  // It is still there.
    CHECK(cpu_memory().cached == 0);
    CHECK(cpu_memory().current >= before + 440'000'000);
  }
  release_cached_memory();
  CHECK(cpu_memory().current == before);
  ::munmap(g_other, kOtherBytes);
}
#endif

TEST_CASE("size classes waste at most an eighth") {
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 33); bytes = bytes * 9 / 8 + 1) {
    const std::size_t size = block_size(bytes);
    CHECK(size >= bytes);
    CHECK(size % 64 == 0);
    CHECK(size <= std::max(bytes + 64, bytes + bytes / 8 + 64));
  }
}

TEST_CASE("tensors may be made and freed on many threads") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 1; i < 300; ++i) {
        const Tensor tensor({i, 7});
        std::memset(tensor.raw(), t, tensor.bytes());
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  SUCCEED();
}

TEST_CASE("a device is chosen by name, and a GPU only where one is") {
  CHECK(choose_device("cpu") == Device::cpu);
  CHECK_THROWS_WITH(choose_device("tpu"), Catch::Contains("no device 'tpu'"));
  if (why_no_gpu().empty()) {
    CHECK(choose_device("auto") == Device::cuda);
    CHECK(choose_device("cuda") == Device::cuda);
    return;
  }
  CHECK(choose_device("auto") == Device::cpu);
  try {
    choose_device("cuda");
    FAIL("a GPU that is not there was chosen");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK_THAT(error.what(), Catch::Contains("there is no usable GPU: " + why_no_gpu()));
  }
}
