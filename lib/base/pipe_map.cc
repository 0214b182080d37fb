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
#include <cstring>
#include <ctime>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/slot_rule.h"

namespace vfm {
namespace {

constexpr off_t kFileLock = 0, kFirstLife = 1;  // bytes of the file that are locked

/// fcntl for a lock of one byte: 0, or an errno value.
int lock_byte(int fd, int command, short type, off_t byte, short* found = nullptr) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (::fcntl(fd, command, &lock) < 0)
    if (errno != EINTR) return errno;
  if (found) *found = lock.l_type;
  return 0;
}

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
  lock_byte(fd_, F_OFD_SETLK, F_UNLCK, kFileLock);
}

PipeMap::~PipeMap() {
  {
    const Locked lock(*this);
    own().left = pipe_clock();
    own().gone = 1;
    own().held = 0;
    if (free() > 0) call_next();
  }
  close();
}

/// Frees the locks, too.
void PipeMap::close() {
  if (file_) ::munmap(file_, sizeof(PipeFile));
  if (fd_ >= 0) ::close(fd_);
}

PipeMap::Locked::Locked(PipeMap& map) : map_(map), lock_(map.mutex) {
  lock_byte(map.fd_, F_OFD_SETLKW, F_WRLCK, kFileLock);
}

PipeMap::Locked::~Locked() {
  lock_byte(map_.fd_, F_OFD_SETLK, F_UNLCK, kFileLock);
}

/// Leaves the lock to the others of the constructor.
void PipeMap::open(const std::string& path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (fd_ < 0) fail_usage("cannot open '{}' for --share: {}", path, errno_text(errno));
  struct stat st {};
  if (::fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode))
    fail_usage("'{}' is no file; --share needs one of its own", path);
  if (const int error = lock_byte(fd_, F_OFD_SETLKW, F_WRLCK, kFileLock))
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
  std::memcpy(file_->head.words, kPipeWords, sizeof kPipeWords);
}

/// On the number of slots.
void PipeMap::agree(int slots, int otherwise, const std::string& path) {
  std::atomic<std::int32_t>& agreed = file_->head.slots;
  if (!end_dead()) {
    // Nothing of an earlier pipe is left.
    for (PipeRecord& record : file_->records)
      record.used = 0;
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
    return record.used == 0 ? 0 : record.gone != 0 ? record.left.load() : UINT64_MAX;
  };
  std::size_t best = kPipeRecords;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (rank(i) < (best == kPipeRecords ? UINT64_MAX : rank(best)) && !lives(i)) best = i;
  if (best == kPipeRecords || lock_byte(fd_, F_OFD_SETLK, F_WRLCK, life_of(best)) != 0)
    fail_usage("{} programs share '{}', as many as can; name another file", kPipeRecords, path);
  own_index_ = best;
  PipeRecord& record = own();
  record.used = 0;  // a kill from here on leaves a record that nobody has
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  set_pipe_name(record.name, stage.name);
  record.pid = ::getpid();
  record.input = pipe_name(stage.input);
  record.output = pipe_name(stage.output);
  record.joined = pipe_clock();
  record.most = 1;
  record.used = 1;
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
    if (!counts(record) || i == own_index_) continue;
    if (lives(i)) {
      others = true;
      continue;
    }
    record.left = pipe_clock();
    record.gone = 1;
    record.held = record.items = record.help = 0;
    file_->head.lost += record.tokens.exchange(0);
  }
  return others;
}

int PipeMap::next() const {
  std::array<SlotClaim, kPipeRecords> claims;
  for (std::size_t i = 0; i < kPipeRecords; ++i)
    if (const PipeRecord& r = file_->records[i]; counts(r))
      claims[i] = {r.place, r.held, r.most, r.items, r.help};
  return next_claim(claims);
}

int PipeMap::free() const {
  int free = file_->head.slots;
  for (const PipeRecord& record : file_->records)
    if (counts(record)) free -= record.held;
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
