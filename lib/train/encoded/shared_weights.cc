// SPDX-License-Identifier: Apache-2.0
#include "train/encoded/shared_weights.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "dist/together.h"
#include "io/remote/address.h"
#include "train/checkpoint/checkpoint_reading.h"
#include "train/cost/host_memory.h"

namespace vfm::train {
namespace {

/// A place for each tensor begins at a multiple of this.
constexpr std::size_t kAlignment = 64;

/// The bytes of another set's tensors, whatever their types.
class BytesOfSet final : public io::TensorSet {
 public:
  explicit BytesOfSet(const io::TensorSet& source) : TensorSet(source.path()), source_(source) {
    for (const io::TensorView& tensor : source.tensors())
      add({tensor.name, "U8", {std::ssize(tensor.data)}, tensor.data});
  }
  void release(const io::TensorView& tensor) const override {
    source_.release(*source_.find(tensor.name));
  }

 private:
  const io::TensorSet& source_;
};

/// The tensors of another set at other places.
class MovedSet final : public io::TensorSet {
 public:
  explicit MovedSet(const io::TensorSet& source) : TensorSet(source.path()), source_(source) {
    for (const io::TensorView& tensor : source.tensors())
      size_ += place_for(tensor);
  }
  ~MovedSet() override {
    if (memory_ != nullptr) ::munmap(memory_, size_);
    if (fd_ >= 0) ::close(fd_);
  }

  std::size_t size() const { return size_; }
  /// Makes the memory, and returns the path by which other processes of this user on this host map
  /// it until close(). "": there is too little.
  std::string make() {
    const HostMemory host = host_memory();
    if (host.free - static_cast<double>(size_) < host.all / 10) return "";
    fd_ = ::memfd_create("vfm-weights", MFD_CLOEXEC);
    if (fd_ < 0 || ::posix_fallocate(fd_, 0, static_cast<off_t>(size_)) != 0) return "";
    return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_);
  }
  void map(const std::string& path, bool writable) {
    const int fd = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) fail_errno(errno, "cannot open '{}'", path);
    const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* const at = ::mmap(nullptr, size_, access, MAP_SHARED, fd, 0);
    const int error = errno;
    ::close(fd);
    if (at == MAP_FAILED) fail_errno(error, "cannot map '{}'", path);
    memory_ = static_cast<std::byte*>(at);
    std::size_t next = 0;
    for (io::TensorView tensor : source_.tensors()) {
      const std::size_t place = std::exchange(next, next + place_for(tensor));
      tensor.data = {memory_ + place, tensor.data.size()};
      add(std::move(tensor));
    }
  }
  void close() {
    if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
  }

  /// What CheckpointReading does for this rank: `all` bytes of each tensor, or none.
  std::vector<models::RangeTarget> targets(bool all) const {
    std::vector<models::RangeTarget> targets;
    for (const io::TensorView& tensor : tensors()) {
      const std::int64_t bytes = std::ssize(tensor.data);
      auto* const to = memory_ + (tensor.data.data() - memory_);
      targets.push_back({tensor.name, io::TensorRange::whole({bytes}),
                         [to](const Tensor& values, std::int64_t begin) {
                           std::memcpy(to + begin, values.raw(), values.bytes());
                         },
                         0, all ? bytes : 0, true});
    }
    return targets;
  }

 private:
  static std::size_t place_for(const io::TensorView& tensor) {
    return (tensor.data.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  const io::TensorSet& source_;
  std::size_t size_ = 0;
  std::byte* memory_ = nullptr;
  int fd_ = -1;  // of the memory, until all have mapped it
};

/// Every rank gets the line of each, in the order of the ranks.
std::vector<std::string> tell_all(dist::World& world, const std::string& line) {
  std::string all;
  for (const std::string& one : world.gather(line))
    all += one + '\n';
  std::istringstream told(dist::broadcast(world, all));
  std::vector<std::string> lines;
  for (std::string one; std::getline(told, one);)
    lines.push_back(one);
  return lines;
}

}  // namespace

std::unique_ptr<io::TensorSet> share_weights(dist::World& world, const io::TensorSet& opened) {
  if (world.size() == 1) return nullptr;
  const std::vector<std::string> hosts = tell_all(world, world.host());
  const bool one_host = std::ranges::count(hosts, hosts[0]) == world.size();
  if (one_host && !io::is_remote(opened.path())) return nullptr;
  const auto first = std::ranges::find(hosts, world.host()) - hosts.begin();
  const bool is_first = first == world.rank();

  auto moved = std::make_unique<MovedSet>(opened);
  const std::vector<std::string> paths = tell_all(world, is_first ? moved->make() : "");
  const dist::Verdict verdict = attempt_on_all_ranks(world, [&] {
    const std::string& path = paths[static_cast<std::size_t>(first)];
    if (path.empty())
      fail_usage("host '{}' has no {} MB of memory to share", world.host(), moved->size() >> 20);
    as_usage([&] { moved->map(path, is_first); });
  });
  moved->close();
  if (verdict.rank >= 0) {
    if (world.rank() == 0)
      log_info("each host reads '{}' by itself: {}", opened.path(), verdict.refusal);
    return nullptr;
  }
  const BytesOfSet bytes(opened);
  const bool reads = CheckpointReading::reader_number(world) >= 0;
  CheckpointReading reading(world, reads ? &bytes : nullptr);
  reading.load(moved->targets(is_first));
  return moved;
}

}  // namespace vfm::train
