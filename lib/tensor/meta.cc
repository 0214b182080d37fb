// SPDX-License-Identifier: Apache-2.0
#include "tensor/meta.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <utility>

#include "tensor/allocator.h"
#include "tensor/caching_allocator.h"
#include "tensor/kernel_log.h"

namespace vfm {
namespace {

// No address of a process: whoever reads there is stopped by the processor.
constexpr std::uintptr_t kNowhere = std::uintptr_t{1} << 60;

void* make_up(std::size_t size) noexcept {
  static std::atomic<std::uintptr_t> next = kNowhere;
  constexpr std::size_t kApart = 512;
  return reinterpret_cast<void*>(next.fetch_add((size + kApart) / kApart * kApart));
}
void forget(void* /*block*/, std::size_t /*bytes*/) noexcept {}

}  // namespace

struct MetaAccount::State {
  explicit State(Device like)
      : device(like),
        allocator(like == Device::cuda ? source(gpu_block_size, gpu_memory_limit)
                                       : source(block_size, memory_limit)),
        pinned(source(block_size, gpu_memory_limit)) {}
  static MemorySource source(std::size_t (*size)(std::size_t) noexcept,
                             std::size_t (*limit)(std::size_t) noexcept) {
    return {make_up, forget, size, "", nullptr, nullptr, limit};
  }
  const Device device;
  CachingAllocator allocator, pinned;
  std::vector<CopyBeside> copies;
  Work work;
  std::set<std::string> met;
  KernelCalls calls;
  std::shared_ptr<void> workspace;
};

namespace {
thread_local std::shared_ptr<MetaAccount::State> counting;
}

MetaAccount::MetaAccount(Device device)
    : state_(std::make_shared<State>(device)), outer_(std::exchange(counting, state_)) {}

MetaAccount::~MetaAccount() {
  counting = outer_;
}

MemoryStats MetaAccount::memory() const {
  return state_->allocator.stats();
}
MemoryStats MetaAccount::pinned() const {
  return state_->pinned.stats();
}
const std::vector<CopyBeside>& MetaAccount::copies() const {
  return state_->copies;
}
const Work& MetaAccount::work() const {
  return state_->work;
}

const KernelCalls& MetaAccount::calls() const {
  return state_->calls;
}

void add_calls(KernelCalls& sum, const KernelCalls& more, double times) {
  for (const auto& [call, count] : more)
    sum[call] += times * count;
}

std::map<std::string, KernelWork> work_by_name(const KernelCalls& calls) {
  std::map<std::string, KernelWork> kernels;
  for (const auto& [call, count] : calls) {
    KernelWork& kernel = kernels[call.name];
    kernel.kind = call.kind;
    kernel.calls += count;
    kernel.flops += count * call.flops;
    kernel.bytes += count * call.bytes;
  }
  return kernels;
}

std::string_view work_kind_name(WorkKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"products", "convolutions", "attention",
                                                      "elementwise", "transfers"};
  return kNames[static_cast<std::size_t>(kind)];
}

void note_work(const char* name, const Work& work) {
  const KernelCall call{work.kind, work.type, name, work.cudnn, work.flops, work.bytes};
  if (KernelLog* const log = KernelLog::current()) log->entries_.push_back({call});
  if (!counting) return;
  if (work.bytes > 0) ++counting->calls[call];  // not what only makes lists
  counting->work.flops += work.flops;
  counting->work.bytes += work.bytes;
  counting->work.scratch = std::max(counting->work.scratch, work.scratch);
  if (work.kept > 0 && first_on_meta(work.kernel)) counting->work.kept += work.kept;
  if (work.workspace > 0 && !counting->workspace)
    counting->workspace = counting->allocator.allocate(work.workspace);
  if (work.scratch > 0) counting->allocator.allocate(work.scratch);
}

bool first_on_meta(const std::string& what) {
  return !counting || counting->met.insert(what).second;
}

Device layout_device(Device device) {
  if (device != Device::meta) return device;
  return counting ? counting->device : Device::cpu;
}

namespace {

std::shared_ptr<void> allocate_of(CachingAllocator MetaAccount::State::*allocator,
                                  std::size_t bytes) {
  if (!counting) return {make_up(bytes), [](void*) {}};
  std::shared_ptr<void> block = ((*counting).*allocator).allocate(bytes);
  // A tensor may outlive the account.
  void* const at = block.get();
  return {at, [block = std::move(block), owner = counting](void*) mutable { block.reset(); }};
}

}  // namespace

std::shared_ptr<void> allocate_meta(std::size_t bytes) {
  return allocate_of(&MetaAccount::State::allocator, bytes);
}

std::shared_ptr<void> allocate_meta_pinned(std::size_t bytes) {
  return allocate_of(&MetaAccount::State::pinned, bytes);
}

// What was computed until then is taken off at its end.
std::size_t begin_copy_on_meta(double bytes) {
  if (!counting) return 0;
  CopyBeside& copy = counting->copies.emplace_back();
  copy.bytes = bytes;
  add_calls(copy.meanwhile, counting->calls, -1);
  return counting->copies.size() - 1;
}

void end_copy_on_meta(std::size_t number) {
  if (!counting || number >= counting->copies.size()) return;
  KernelCalls& meanwhile = counting->copies[number].meanwhile;
  add_calls(meanwhile, counting->calls);
  std::erase_if(meanwhile, [](const auto& call) { return call.second == 0; });
}

}  // namespace vfm
