// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_saver.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <span>

#include "base/disk_errors.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/left_behind.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "base/thread_stop.h"
#include "base/units.h"
#include "dist/together.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "models/folder/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/state/state_shards.h"

namespace vfm::train {

/// What a thread does, and what comes of it. The thread keeps it, as it may be left behind.
struct CheckpointSaver::Job {
  std::atomic<bool> stop{false};
  std::exception_ptr failure;                 // after `done`, as the next one
  std::map<std::string, std::string> hashes;  // name -> hash

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::string at;  // the file, or the folder, that is being written

  bool is_done() const {
    const std::lock_guard lock(mutex);
    return done;
  }
  void write(const std::string& path) {
    const std::lock_guard lock(mutex);
    at = path;
  }
  void finish() {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
  /// Returns whether it is done.
  bool wait(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, most, [&] { return done; });
  }
};

namespace {

using namespace std::chrono_literals;

/// With a thread that is asked to end.
constexpr std::chrono::milliseconds kPatience = 10s;

/// "HASH  NAME", a line a file, sorted by name.
std::string lines_of(const std::map<std::string, std::string>& hashes) {
  std::string text;
  for (const auto& [name, hash] : hashes)
    text += hash + "  " + name + "\n";
  return text;
}

/// The place where a checkpoint is built.
std::string place_of(const std::string& target) {
  if (io::is_bucket(target)) return target;
  return io::join_path(io::dir_name(target), "." + io::base_name(target) + ".tmp");
}

/// Throws Error unless rank 0 sees the files of all ranks, names and writers.
void check_seen(const std::vector<std::pair<std::string, int>>& files, const std::string& folder) {
  std::set<std::string> seen;
  if (!io::is_bucket(folder))
    for (const io::FolderEntry& entry : io::files_below(folder))
      seen.insert(entry.name);
  io::for_each_at_once(files.size(), io::requests_at_once(folder), [&](std::size_t i) {
    const auto& [name, writer] = files[i];
    const std::string path = io::join_path(folder, name);
    // A bucket has what rank 0 wrote there.
    if (io::is_bucket(folder) ? writer == 0 : seen.contains(name)) return;
    if (!io::is_file(path))
      fail("rank {} wrote '{}', and rank 0 does not find it: all ranks need one file system (-o)",
           writer, path);
  });
}

/// Writes a file in a folder that may not be there; returns its hash.
std::string write_hashed(const std::string& path, std::span<const std::byte> bytes) {
  constexpr std::size_t kMebi = 1 << 20;
  // Uploads take from the caller's memory what is much larger than one part of an object.
  const std::size_t most = (io::is_bucket(path) ? 512 : 16) * kMebi;
  io::make_directories(io::dir_name(path));
  io::AtomicFile out(path);
  Hasher hasher;
  for (std::size_t at = 0; at < bytes.size(); at += most) {
    check_stop();
    const std::span<const std::byte> piece = bytes.subspan(at, std::min(most, bytes.size() - at));
    hasher.update(piece.data(), piece.size());
    out.write(piece.data(), piece.size());
  }
  check_stop();
  out.commit();
  return hasher.hex128();
}

/// One thread does not have all of the memory's bandwidth.
void copy_by_threads(std::byte* to, std::span<const std::byte> from) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  const auto parts = static_cast<std::int64_t>((from.size() + kPart - 1) / kPart);
#pragma omp parallel for schedule(static) if (parts > 1)
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * kPart;
    std::memcpy(to + at, from.data() + at, std::min(kPart, from.size() - at));
  }
}

/// What a rank says of its failure; "" if it only stopped because another one failed.
std::string message_of(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    if (stop_requested()) return "stopped";
  }
  return "";
}

}  // namespace

void SavedCheckpoint::need(dist::World& world) const {
  if (complete) return;
  dist::on_all_ranks(world, [&] {
    if (own) std::rethrow_exception(own);
  });
  fail("the checkpoint of step {} was not written", step);
}

CheckpointSaver::CheckpointSaver(const dist::Mesh& mesh, std::string run, const SaveLimits& limits,
                                 const std::string& memory)
    : mesh_(mesh),
      run_(std::move(run)),
      limits_(limits),
      memory_(std::make_shared<SnapshotMemory>(run_, mesh.world().rank(), memory)) {}

CheckpointSaver::~CheckpointSaver() {
  abandon();
}

/// Returns false if a thread hangs, which may use the memory.
bool CheckpointSaver::abandon() noexcept {
  if (!thread_.joinable()) return true;
  job_->stop = true;
  if (job_->wait(kPatience)) {
    thread_.join();
    return true;
  }
  count_left_on_disk();
  thread_.detach();
  return false;
}

/// Returns whether some rank has no room for its snapshot.
bool CheckpointSaver::agree_on_memory(const CheckpointFiles& files) {
  dist::World& world = mesh_.world();
  // At most: how the ranks of each host share it is not known here.
  const double of_host = std::min(files.bytes(), files.most_of_rank() * world.local_size());
  SnapshotMemory::Place place = SnapshotMemory::Place::none;
  try {
    if (of_host <= limits_.snapshot_bytes)
      place = memory_->begin(files.sizes_of(world.rank()), of_host);
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
  streams_ = place == SnapshotMemory::Place::none;
  std::array<double, 1> without = {streams_ ? 1.0 : 0.0};
  world.all_reduce_sum(std::span<double>(without));
  if (without[0] > 0 && world.rank() == 0 && !std::exchange(said_streams_, true))
    log_warning(
        "{} of {} ranks have no room in their host's memory for what they write of a checkpoint "
        "(up to {} on a host): steps wait while they write",
        without[0], world.size(), format_bytes(of_host));
  return without[0] > 0;
}

void CheckpointSaver::begin(const Checkpoint& checkpoint, Around around) {
  saved_ = {checkpoint.step, checkpoint_path(run_, checkpoint.step)};
  temporary_ = place_of(saved_.folder);
  around_ = std::move(around);
  begin_own(checkpoint);
  mesh_.world().barrier();
}

/// Ends sooner on ranks that have less to copy or to write.
void CheckpointSaver::begin_own(const Checkpoint& checkpoint) {
  dist::World& world = mesh_.world();
  const CheckpointFiles files(sets_of(checkpoint, limits_.file_bytes), world.size(),
                              limits_.piece_bytes);
  texts_.clear();
  expected_.clear();
  if (world.rank() == 0) {
    texts_ = files.texts();
    texts_.merge(texts_of(checkpoint));
    for (const CheckpointFiles::File& file : files.files())
      expected_.emplace_back(files.name(file), file.writer);
  }
  const bool some_stream = agree_on_memory(files);
  phase_ = Phase::write;
  if (some_stream) {  // which begin to write now
    const dist::Verdict verdict = dist::attempt_on_all_ranks(world, [&] {
      const SurvivesFullDisk survives;
      if (world.rank() == 0) models::remove_checkpoint(temporary_);
    });
    if (verdict.rank >= 0) return done({}, verdict.failure);
  }
  dist::Group& holders = holders_of(mesh_, checkpoint.optimizer.parameters());
  if (streams_) return stream(files, holders);
  const std::exception_ptr failure = fill(files, holders);
  // An older checkpoint of this step, damaged, must not look complete while it is replaced.
  const bool prepares = io::is_bucket(run_) && !some_stream;
  if (prepares) phase_ = Phase::prepare;
  if (failure) return done({}, failure);
  if (!prepares) return start_write();
  if (world.rank() == 0) start([folder = temporary_](Job&) { models::remove_checkpoint(folder); });
}

/// Copies the files of this rank into memory.
std::exception_ptr CheckpointSaver::fill(const CheckpointFiles& files, dist::Group& holders) {
  own_.clear();
  std::span<std::byte> left;  // of the last file
  const auto put = [&](std::span<const std::byte> bytes) {
    if (bytes.size() > left.size()) fail("'{}' has more bytes than planned", own_.back().name);
    copy_by_threads(left.data(), bytes);
    left = left.subspan(bytes.size());
  };
  return files.collect(holders,
                       [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
                         if (!bytes.empty()) return put(bytes);
                         left = memory_->file(own_.size());
                         own_.push_back({files.name(file), left});
                         const std::string header = files.header(file);
                         put(std::as_bytes(std::span(header)));
                       });
}

/// Writes them at once.
void CheckpointSaver::stream(const CheckpointFiles& files, dist::Group& holders) {
  std::map<std::string, std::string> hashes;
  std::string name;
  std::optional<io::AtomicFile> out;
  Hasher hasher;
  const auto put = [&](std::span<const std::byte> bytes) {
    hasher.update(bytes.data(), bytes.size());
    out->write(bytes.data(), bytes.size());
  };
  const auto finish_file = [&] {
    if (!out) return;
    out->commit();
    hashes[name] = std::exchange(hasher, Hasher()).hex128();
    out.reset();
  };
  const SurvivesFullDisk survives;
  std::exception_ptr failure = files.collect(
      holders, [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
        if (!bytes.empty()) return put(bytes);
        finish_file();
        name = files.name(file);
        const std::string path = io::join_path(temporary_, name), header = files.header(file);
        io::make_directories(io::dir_name(path));
        out.emplace(path);
        put(std::as_bytes(std::span(header)));
      });
  try {
    if (!failure) finish_file();
  } catch (...) {
    failure = std::current_exception();
  }
  done(std::move(hashes), failure);
}

void CheckpointSaver::done(std::map<std::string, std::string> hashes, std::exception_ptr failure) {
  job_ = std::make_shared<Job>();
  job_->hashes = std::move(hashes);
  job_->failure = std::move(failure);
  job_->finish();
}

void CheckpointSaver::start(Act act) {
  job_ = std::make_shared<Job>();
  job_->at = temporary_;
  thread_ = std::thread([job = job_, act = std::move(act)] {
    stop_thread_by(&job->stop);
    const SurvivesFullDisk survives;
    try {
      act(*job);
    } catch (...) {
      job->failure = std::current_exception();
    }
    job->finish();
  });
}

void CheckpointSaver::start_write() {
  if (own_.empty()) return;
  start([memory = memory_, own = own_, folder = temporary_](Job& job) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::string path = io::join_path(folder, own[i].name);
      job.write(path);
      const std::string hash = write_hashed(path, own[i].bytes);
      memory->name(i, hash);
      job.hashes[own[i].name] = hash;
    }
    memory->prepare();
  });
}

/// `lines` are those of all ranks' files.
void CheckpointSaver::start_complete(const std::vector<std::string>& lines) {
  std::map<std::string, std::string> hashes;
  for (const std::string& text : lines)
    hashes.merge(models::parse_complete(text, "a rank's list of files"));
  start([hashes, texts = texts_, expected = expected_, around = around_, from = temporary_,
         to = saved_.folder](Job& job) mutable {
    if (around.before && !job.stop) around.before();
    for (const auto& [name, text] : texts)
      hashes[name] = write_hashed(io::join_path(from, name), std::as_bytes(std::span(text)));
    check_seen(expected, from);
    const std::string complete = io::join_path(from, "COMPLETE");
    job.write(complete);
    const std::string listed = lines_of(hashes);
    io::write_file(complete, listed);
    models::HeldRun::wrote(to, listed);
    if (from != to) {
      io::remove_folder(to);  // only a damaged one, or one of a run that went another way
      io::rename_path(from, to);
    }
    try {  // what follows makes it no less complete
      if (around.after && !job.stop) around.after();
    } catch (const std::exception& error) {
      log_warning("{}", error.what());
    } catch (const Stopped&) {
    }
  });
}

void CheckpointSaver::start_clean() {
  start([folder = temporary_](Job&) {
    try {
      io::remove_folder(folder);
    } catch (const Error& error) {
      log_info("{}", error.what());  // the next checkpoint, or the next start, removes it
    }
  });
}

SaveNotes CheckpointSaver::notes() const {
  if (!job_) return {.done = 1};
  if (!job_->is_done()) return {};
  return {.done = 1, .failed = job_->failure ? 1.0 : 0.0};
}

std::optional<SavedCheckpoint> CheckpointSaver::advance(const SaveNotes& sums) {
  if (!pending()) return {};
  dist::World& world = mesh_.world();
  const bool leader = world.rank() == 0, failed = sums.failed > 0;
  if (failed && job_ && phase_ != Phase::clean) job_->stop = true;
  if (sums.done < world.size()) return {};
  if (thread_.joinable()) thread_.join();
  const std::shared_ptr<Job> job = std::exchange(job_, nullptr);
  if (phase_ == Phase::clean) {
    phase_ = Phase::idle;
    return saved_;
  }
  if (failed) {
    const std::string own = message_of(job ? job->failure : nullptr);
    if (!own.empty()) saved_.own = job->failure;
    const std::vector<std::string> said = world.gather(own);
    for (std::size_t rank = 0; rank < said.size() && saved_.failure.empty(); ++rank)
      if (!said[rank].empty()) saved_.failure = said[rank];
    phase_ = Phase::clean;
    if (leader) start_clean();
    return {};
  }
  if (phase_ == Phase::prepare) {
    phase_ = Phase::write;
    start_write();
  } else if (phase_ == Phase::write) {
    const std::vector<std::string> lines = world.gather(job ? lines_of(job->hashes) : "");
    phase_ = Phase::complete;
    if (leader) start_complete(lines);
  } else {
    if (!streams_) memory_->keep();
    phase_ = Phase::idle;
    saved_.complete = true;
    return saved_;
  }
  return {};
}

std::optional<SavedCheckpoint> CheckpointSaver::finish(double limit) {
  dist::World& world = mesh_.world();
  const Stopwatch watch;
  std::optional<Stopwatch> stopped;
  std::chrono::milliseconds pause = 1ms;
  while (pending()) {
    const SaveNotes own = notes();
    const bool late = world.rank() == 0 && limit > 0 && watch.seconds() > limit;
    std::array<double, 3> sums = {own.done, own.failed, late ? 1.0 : 0.0};
    world.all_reduce_sum(std::span<double>(sums));
    if (std::optional<SavedCheckpoint> ended = advance({.done = sums[0], .failed = sums[1]}))
      return ended;
    if (sums[0] == world.size()) continue;
    if (sums[2] > 0) fail_late(limit);
    // A thread that can stops by itself.
    if (stop_requested() && !stopped) stopped.emplace();
    if (stopped && stopped->seconds() > 10) check_stop();
    if (job_ && !job_->is_done())
      job_->wait(20ms);
    else
      std::this_thread::sleep_for(pause = std::min(2 * pause, std::chrono::milliseconds(20)));
  }
  return {};
}

/// Says who is not done after the limit.
void CheckpointSaver::fail_late(double limit) {
  dist::World& world = mesh_.world();
  std::string words;
  if (job_ && !job_->is_done()) {
    const std::lock_guard lock(job_->mutex);
    words = fmt::format("rank {} on host {} writes '{}'", world.rank(), world.host(), job_->at);
  }
  const std::vector<std::string> all = world.gather(words);
  dist::on_all_ranks(world, [&] {
    const auto first = std::ranges::find_if(all, [](const auto& text) { return !text.empty(); });
    if (first != all.end())
      fail("the checkpoint of step {} is not written after {} s ('train.checkpoint_limit'): {}",
           saved_.step, limit, *first);
  });
}

void CheckpointSaver::forget() noexcept {
  if (abandon()) memory_->remove();
}

std::string write_checkpoint(const dist::Mesh& mesh, const std::string& run,
                             const Checkpoint& checkpoint, const SaveLimits& limits) {
  CheckpointSaver saver(mesh, run, limits, "");
  saver.begin(checkpoint);
  const std::optional<SavedCheckpoint> saved = saver.finish();
  saved->need(mesh.world());
  return saved->folder;
}

}  // namespace vfm::train
