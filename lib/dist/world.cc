// SPDX-License-Identifier: Apache-2.0
#include "dist/world.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "dist/device_carrier.h"
#include "dist/message_group.h"
#include "io/file.h"
#include "io/folder.h"
#include "tensor/device.h"

namespace vfm::dist {
namespace {

/// Of a rank that waits for nobody.
class SelfEngine final : public CallingEngine {
 public:
  using CallingEngine::CallingEngine;
  void drop(const std::shared_ptr<Running>& running) override { forget(running); }

 protected:
  void wait(const Running& running, const std::function<bool()>&) override {
    fail("{}: a rank alone waits for others", running.what().place);
  }
};

/// A rank without the others.
class SelfWorld final : public World {
 public:
  SelfWorld(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  }
  std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) override {
    const int place = place_in(ranks, rank_, size_, axis);
    return std::make_unique<MessageGroup>(std::string(axis), place, std::move(ranks), nullptr,
                                          engine_);
  }
  void all_reduce_sum(std::span<float>) override { check_alone("sum"); }
  void all_reduce_sum(std::span<double>) override { check_alone("sum"); }
  void broadcast(std::span<std::byte>) override { check_alone("broadcast"); }
  std::vector<std::string> gather(const std::string& text) override {
    check_alone("gather");
    return {text};
  }
  void barrier() override { check_alone("barrier"); }
  [[noreturn]] void end_all(int) override { std::terminate(); }

 private:
  void check_alone(const char* operation) const {
    if (size_ > 1) fail("{}: the other {} ranks are not there", operation, size_ - 1);
  }
  const int rank_, size_;
  SelfEngine engine_{traffic(), recorder()};
};

/// Why the ranks' tensors cannot go from GPU to GPU; empty: they can.
std::string why_by_host(std::span<const RankDevice> ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (const RankDevice& rank = ranks[r]; rank.gpu.empty() || !rank.no_nccl.empty())
      return vfm::format("rank {} on host {}: {}", r, rank.host,
                         rank.gpu.empty() ? "computes on the CPU" : rank.no_nccl);
  return "";
}

}  // namespace

World::World() : section_(std::make_shared<Section>()) {}

void World::section(std::string_view what, double limit) {
  using Seconds = std::chrono::duration<double>;
  const double now = Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  recorder_.section(what);
  section_->limit = section_->times.begin(what, limit, section_->least, now);
  section_->learnt = section_->times.learnt();
}

void World::silent_limit(double seconds) {
  section_->least = seconds;
}

Group& World::all() {
  if (!world_) {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    world_ = group("world", std::move(ranks));
  }
  return *world_;
}

void World::record_to(const std::string& folder) {
  if (rank() != 0) return;
  for (const io::FolderEntry& entry : io::entries(folder))
    if (entry.name == "run.json" || entry.name.starts_with("rank-"))
      io::remove_file(io::join_path(folder, entry.name));
  io::remove_if_empty(folder);
}

void World::use_device(Device device, bool ordered) {
  if (size() == 1) return;
  const Traffic before = traffic_;  // none of this is the run's
  const bool gpu = device == Device::cuda;
  const RankDevice mine{host(), gpu ? gpu_uuid() : "", gpu ? why_no_nccl() : ""};
  std::vector<RankDevice> ranks;
  for (const std::string& text : gather(mine.host + '\n' + mine.gpu + '\n' + mine.no_nccl)) {
    const std::size_t second = text.find('\n'), third = text.find('\n', second + 1);
    ranks.push_back({text.substr(0, second), text.substr(second + 1, third - second - 1),
                     text.substr(third + 1)});
  }
  // What all do is what rank 0 says: "nccl", "host", or why they cannot go on.
  std::string verdict;
  if (rank() == 0) {
    verdict = shared_gpus(ranks);
    const std::string why = why_by_host(ranks);
    if (verdict.empty()) verdict = why.empty() ? "nccl" : "host";
    if (verdict == "host" && std::any_of(ranks.begin(), ranks.end(),
                                         [](const RankDevice& one) { return !one.gpu.empty(); }))
      log_warning("what ranks exchange goes by the hosts: {}", why);
  }
  verdict = dist::broadcast(*this, verdict);
  traffic_ = before;
  if (verdict != "nccl" && verdict != "host") fail_usage("{}", verdict);
  nccl_sums_.reset();
  if (verdict == "nccl") nccl_sums_ = ordered;
}

void World::equip(MessageGroup& group) {
  if (!nccl_sums_ || group.size() == 1) return;
  const Traffic before = traffic_;
  group.use(nccl_carrier(group, vfm::format("rank {} on host {}", rank(), host()), *nccl_sums_,
                         section_));
  traffic_ = before;
}

std::string shared_gpus(std::span<const RankDevice> ranks) {
  std::map<std::string_view, std::vector<std::size_t>> of_gpus;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (!ranks[r].gpu.empty()) of_gpus[ranks[r].gpu].push_back(r);
  for (const RankDevice& first : ranks) {
    const auto found = of_gpus.find(first.gpu);
    if (found == of_gpus.end() || found->second.size() == 1) continue;
    std::string alike;
    for (const std::size_t r : found->second)
      alike += vfm::format("{}{}", alike.empty() ? "" : " ", r);
    return vfm::format(
        "ranks {} have one GPU together ({} of host {}), and each needs its own: start at most as "
        "many ranks on a machine as it has GPUs, let each see all of them or its own alone "
        "(CUDA_VISIBLE_DEVICES), or compute on the CPU with --device cpu",
        alike, first.gpu, first.host);
  }
  return "";
}

void broadcast(World& world, std::span<float> values) {
  world.broadcast(std::as_writable_bytes(values));
}

std::string broadcast(World& world, const std::string& text) {
  std::uint64_t size = text.size();
  world.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::string copy = text;
  copy.resize(size);
  world.broadcast(std::as_writable_bytes(std::span(copy.data(), copy.size())));
  return copy;
}

std::unique_ptr<World> self_world() {
  return std::make_unique<SelfWorld>(0, 1);
}
std::unique_ptr<World> counted_world(int rank, int size) {
  return std::make_unique<SelfWorld>(rank, size);
}

}  // namespace vfm::dist
