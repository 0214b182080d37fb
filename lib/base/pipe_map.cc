// SPDX-License-Identifier: Apache-2.0
#include "base/pipe_map.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/pipe_lock.h"
#include "base/slot_rule.h"

namespace vfm {
namespace {

constexpr off_t kFileLock = 0, kFirstLife = 1;  // bytes of the file that are locked
constexpr off_t kLocker = offsetof(PipeFile, head) + offsetof(PipeFile::Head, locker);

off_t life_of(std::size_t index) {
  return kFirstLife + static_cast<off_t>(index);
}

/// Names the pipe behind a descriptor; 0: it is none.
std::uint64_t pipe_name(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) return 0;
  return (static_cast<std::uint64_t>(st.st_dev) << 40) ^ static_cast<std::uint64_t>(st.st_ino);
}

std::string say_slots(int slots) {
  return slots == PipeBoard::kNone ? "those of make" : vfm::format("{} slots", slots);
}

}  // namespace

std::uint64_t pipe_clock() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

PipeMap::PipeMap(const std::string& path, int slots, int otherwise, const PipeBoard::Stage& stage) {
  try {
    open(path);
    map(path);
    agree(slots, otherwise, path);
    join(path, stage);
  } catch (...) {
    close();
    throw;
  }
  unlock();
}

/// Slots first: nobody looks for those of a program that is known to have ended.
PipeMap::~PipeMap() {
  free_slots_of(own().used);
  own().left = pipe_clock();
  own().gone = own().used.load();
  if (free() > 0) call_next();
  close();
}

/// Frees the locks, too.
void PipeMap::close() {
  if (file_) ::munmap(file_, sizeof(PipeFile));
  if (fd_ >= 0) ::close(fd_);
}

void PipeMap::unlock() {
  file_->head.locker = 0;
  lock_byte(fd_, F_OFD_SETLK, F_UNLCK, kFileLock);
}

/// Leaves the lock to the others of the constructor.
void PipeMap::open(const std::string& path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (fd_ < 0) fail_usage("cannot open '{}' for --share: {}", path, errno_text(errno));
  struct stat st {};
  if (::fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode))
    fail_usage("'{}' is no file; --share needs one of its own", path);
  if (const int error = await_byte(fd_, kFileLock, path, kLocker))
    fail_usage("cannot lock '{}' for --share: {}; name a file on a disk of this machine", path,
               errno_text(error));
}

void PipeMap::map(const std::string& path) {
  struct stat st {};
  ::fstat(fd_, &st);  // under the lock: another program may just have made it
  char words[sizeof kPipeWords] = {};
  const auto blank = [&] {
    return std::all_of(words, words + sizeof words, [](char c) { return c == 0; });
  };
  const bool fits = st.st_size == sizeof(PipeFile) &&
                    ::pread(fd_, words, sizeof words, 0) == sizeof words &&
                    (std::memcmp(words, kPipeWords, sizeof words) == 0 || blank());
  if (st.st_size != 0 && !fits)
    fail_usage("'{}' is not empty, and not of --share of this version; name another file", path);
  // All of it on the disk: a mapped page that finds no room would end the program.
  if (const int error = ::posix_fallocate(fd_, 0, sizeof(PipeFile))) {
    // A part of it would be refused once there is room.
    if (st.st_size == 0 && ::ftruncate(fd_, 0) != 0)
      fail_usage("cannot make '{}' for --share: {}; remove it", path, errno_text(error));
    fail_usage("cannot make '{}' for --share: {}", path, errno_text(error));
  }
  void* const at = ::mmap(nullptr, sizeof(PipeFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) fail_usage("cannot map '{}' for --share: {}", path, errno_text(errno));
  file_ = static_cast<PipeFile*>(at);
  file_->head.locker = ::getpid();
  std::memcpy(file_->head.words, kPipeWords, sizeof kPipeWords);
}

/// On the number of slots.
void PipeMap::agree(int slots, int otherwise, const std::string& path) {
  std::atomic<std::int32_t>& agreed = file_->head.slots;
  if (!end_dead()) {
    // Nothing of an earlier pipe is left.
    for (PipeRecord& record : file_->records)
      record.used = 0, record.tokens = 0;
    for (std::atomic<std::uint32_t>& owner : file_->owners)
      owner = 0;
    agreed = slots == 0 ? otherwise : slots;
    file_->head.lost = 0;  // of another make, which has noticed
  }
  if (slots != 0 && slots != agreed)
    fail_usage("programs that share '{}' have {}, this one {}; set one VFM_SLOTS for all", path,
               say_slots(agreed), say_slots(slots));
}

/// Takes a record that was never used, or the one that is out of use longest. A program that has
/// left still holds its own for a moment.
void PipeMap::join(const std::string& path, const PipeBoard::Stage& stage) {
  const auto rank = [&](std::size_t i) {
    const PipeRecord& record = file_->records[i];
    return record.used == 0 ? 0 : counts(record) ? UINT64_MAX : record.left.load();
  };
  std::size_t best = kPipeRecords;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (rank(i) < (best == kPipeRecords ? UINT64_MAX : rank(best)) && !lives(i)) best = i;
  if (best == kPipeRecords || lock_byte(fd_, F_OFD_SETLK, F_WRLCK, life_of(best)) != 0)
    fail_usage("{} programs share '{}', as many as can; name another file", kPipeRecords, path);
  own_index_ = best;
  PipeRecord& record = own();
  file_->head.lost += record.tokens.exchange(0);
  record.used = 0;  // a kill from here on leaves a record that nobody has
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  set_pipe_name(record.name, stage.name);
  record.pid = ::getpid();
  record.input = pipe_name(stage.input);
  record.output = pipe_name(stage.output);
  record.joined = pipe_clock();
  record.most = 1;
  if (++file_->head.joins == 0) ++file_->head.joins;
  record.used = file_->head.joins.load();
  input_ = stage.input;
  set_places();
}

/// Programs of one pipe one after the other; of several, or where another program stands between
/// two, in the order that a shell starts them in.
void PipeMap::set_places() {
  using Rank = std::tuple<std::int64_t, int, std::int64_t, std::size_t>;
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < kPipeRecords; ++i) {
    if (file_->records[i].used == 0) continue;
    const PipeRecord* first = &file_->records[i];
    int depth = 0;
    while (depth < static_cast<int>(kPipeRecords) && first->input != 0) {
      const auto before = std::find_if(
          std::begin(file_->records), std::end(file_->records), [&](const PipeRecord& other) {
            return other.used != 0 && &other != first && other.output == first->input;
          });
      if (before == std::end(file_->records)) break;
      first = before;
      ++depth;
    }
    ranks.emplace_back(first->pid, depth, file_->records[i].pid, i);
  }
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t place = 0; place < ranks.size(); ++place)
    file_->records[std::get<3>(ranks[place])].place = static_cast<std::int32_t>(place);
}

/// Whether another program holds that record's lock, or nobody can say.
bool PipeMap::lives(std::size_t index) const {
  short found = F_UNLCK;
  return lock_byte(fd_, F_OFD_GETLK, F_WRLCK, life_of(index), &found) != 0 || found != F_UNLCK;
}

bool PipeMap::end_dead() {
  bool others = false;
  for (std::size_t i = 0; i < kPipeRecords; ++i) {
    PipeRecord& record = file_->records[i];
    const std::uint32_t program = record.used;
    if (program == 0 || record.gone == program || i == own_index_) continue;
    if (lives(i)) {
      others = true;
      continue;
    }
    // Whoever else finds it does the same. Last, as a kill may come in between, that it is done.
    free_slots_of(program);
    record.left = pipe_clock();
    record.gone = program;
  }
  return others;
}

/// Of one that takes no more.
void PipeMap::free_slots_of(std::uint32_t program) {
  for (std::atomic<std::uint32_t>& owner : file_->owners)
    if (std::uint32_t has = program; owner == program) owner.compare_exchange_strong(has, 0);
}

void PipeMap::collect_tokens() {
  const auto lost = [](const PipeRecord& r) { return r.used != 0 && !counts(r) && r.tokens != 0; };
  if (std::none_of(std::begin(file_->records), std::end(file_->records), lost)) return;
  // The lock keeps programs that join from these records.
  if (lock_byte(fd_, F_OFD_SETLK, F_WRLCK, kFileLock) != 0) return;
  file_->head.locker = ::getpid();
  for (PipeRecord& record : file_->records)
    if (lost(record)) file_->head.lost += record.tokens.exchange(0);
  unlock();
}

bool PipeMap::take_slot() {
  for (int i = 0; i < file_->head.slots; ++i)
    if (std::uint32_t nobody = 0; file_->owners[i] == 0 && file_->owners[i].compare_exchange_strong(
                                                               nobody, own().used.load()))
      return true;
  return false;
}

void PipeMap::give_slot() {
  const std::uint32_t program = own().used;
  for (int i = 0; i < file_->head.slots; ++i)
    if (file_->owners[i] == program) {
      file_->owners[i] = 0;
      return;
    }
}

int PipeMap::next() const {
  std::array<SlotClaim, kPipeRecords> claims;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (const PipeRecord& r = file_->records[i]; counts(r))
      claims[i] = {r.place, r.held, r.most, r.items, r.help};
  return next_claim(claims);
}

int PipeMap::free() const {
  int free = 0;
  for (int i = 0; i < file_->head.slots; ++i)
    free += file_->owners[i] == 0 ? 1 : 0;
  return free;
}

void PipeMap::call_next() {
  const int index = next();
  if (index < 0) return;
  PipeRecord& record = file_->records[index];
  std::atomic<std::uint32_t>& call = record.items > 0 ? record.call_items : record.call_help;
  ++call;
  ::syscall(SYS_futex, &call, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace vfm
