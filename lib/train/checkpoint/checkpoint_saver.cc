// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_saver.h"

#include <algorithm>
#include <array>
#include <chrono>
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
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "models/folder/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/cost/host_memory.h"
#include "train/state/state_shards.h"

namespace vfm::train {
namespace {

using namespace std::chrono_literals;

/// With a thread that is asked to end.
constexpr std::chrono::milliseconds kPatience = 10s;

/// The place where a checkpoint is built.
std::string place_of(const std::string& target) {
  if (io::is_bucket(target)) return target;
  return io::join_path(io::dir_name(target), "." + io::base_name(target) + ".tmp");
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
  if (room_.valid()) room_.wait();
  copies_.reset();
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

/// Makes room for the files of this rank.
SnapshotMemory::Place CheckpointSaver::make_room(const CheckpointFiles& files) {
  if (of_host(files) > limits_.snapshot_bytes) return SnapshotMemory::Place::none;
  return memory_->begin(files.sizes_of(mesh_.world().rank()), of_host(files));
}

/// At most: how the ranks of each host share it is not known here.
double CheckpointSaver::of_host(const CheckpointFiles& files) const {
  return std::min(files.bytes(), files.most_of_rank() * mesh_.world().local_size());
}

void CheckpointSaver::prepare(const Checkpoint& checkpoint) {
  CheckpointFiles files = files_of(checkpoint);
  room_ = std::async(std::launch::async, [this, files = std::move(files)] {
    try {
      make_room(files);
    } catch (const std::exception&) {  // begin() tries again, and says it
    }
  });
}

CheckpointFiles CheckpointSaver::files_of(const Checkpoint& checkpoint) const {
  return {sets_of(checkpoint, limits_.file_bytes), mesh_.world().size(), limits_.piece_bytes};
}

/// Returns whether some rank has no room for its snapshot.
bool CheckpointSaver::agree_on_memory(const CheckpointFiles& files) {
  dist::World& world = mesh_.world();
  SnapshotMemory::Place place = SnapshotMemory::Place::none;
  if (room_.valid()) room_.get();
  try {
    place = make_room(files);
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
        without[0], world.size(), format_bytes(of_host(files)));
  return without[0] > 0;
}

/// Returns whether all ranks copy from their GPUs while the next step computes, and so have room
/// for the parts that they send.
bool CheckpointSaver::agree_on_copies(const nn::ParameterList& parameters) const {
  const auto on_gpu = [](const nn::Parameter* p) { return p->device() == Device::cuda; };
  if (std::ranges::none_of(parameters, on_gpu)) return false;
  dist::World& world = mesh_.world();
  const HostMemory memory = host_memory();
  const double parts = GpuSnapshot::memory(*collection_) * world.local_size();
  std::array<double, 1> without = {memory.free < parts + memory.all / 10 ? 1.0 : 0.0};
  world.all_reduce_sum(std::span<double>(without));
  if (without[0] > 0 && world.rank() == 0)
    log_info(
        "{} of {} ranks have no room in their host's memory for the parts that they send: the step "
        "waits for the copy from the GPU",
        without[0], world.size());
  return without[0] == 0;
}

void CheckpointSaver::begin(const Checkpoint& checkpoint, AroundComplete around) {
  saved_ = {checkpoint.step, checkpoint_path(run_, checkpoint.step)};
  temporary_ = place_of(saved_.folder);
  around_ = std::move(around);
  begin_own(checkpoint);
  mesh_.world().barrier();
}

/// Ends sooner on ranks that have less to copy or to write.
void CheckpointSaver::begin_own(const Checkpoint& checkpoint) {
  dist::World& world = mesh_.world();
  CheckpointFiles files = files_of(checkpoint);
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
  const nn::ParameterList& parameters = checkpoint.optimizer.parameters();
  collection_.emplace(std::move(files), holders_of(mesh_, parameters));
  if (streams_) return stream();
  name_files();
  if (!some_stream && agree_on_copies(parameters)) return copy_beside(checkpoint);
  fill(collection_->reader(), io::is_bucket(run_) && !some_stream);
}

/// The files of this rank, in memory.
void CheckpointSaver::name_files() {
  own_.clear();
  const CheckpointFiles& files = collection_->files();
  for (const CheckpointFiles::File& file : files.files())
    if (file.writer == mesh_.world().rank())
      own_.push_back({files.name(file), memory_->file(own_.size())});
}

/// Begins to copy from the GPU.
void CheckpointSaver::copy_beside(const Checkpoint& checkpoint) {
  phase_ = Phase::copy;
  const CheckpointFiles& files = collection_->files();
  std::map<const CheckpointFiles::File*, std::byte*> places;  // of files, behind their headers
  std::size_t i = 0;
  for (const CheckpointFiles::File& file : files.files())
    if (file.writer == mesh_.world().rank())
      places[&file] = own_[i++].bytes.data() + files.header(file).size();
  try {
    copies_ = std::make_shared<GpuSnapshot>(
        *collection_, [&](const CheckpointFiles::File& file, std::size_t offset) {
          return places.at(&file) + offset;
        });
  } catch (...) {
    return done({}, std::current_exception());
  }
  const auto release = [copies = std::weak_ptr(copies_)] {
    if (const auto live = copies.lock()) live->release();
  };
  checkpoint.optimizer.before_change(release);
  for (const OtherState& other : checkpoint.others)
    other.optimizer.before_change(release);
}

/// Puts the files of this rank together in memory, and begins to write them; or, if rank 0 prepares
/// a bucket, that.
void CheckpointSaver::fill(const FileCollection::Read& read, bool prepares) {
  const CheckpointFiles& files = collection_->files();
  std::size_t file_number = 0;
  std::span<std::byte> left;  // of the last file
  const auto put = [&](std::span<const std::byte> bytes) {
    if (bytes.size() > left.size())
      fail("'{}' has more bytes than planned", own_[file_number - 1].name);
    if (bytes.data() != nullptr) copy_by_threads(left.data(), bytes);
    left = left.subspan(bytes.size());
  };
  const std::exception_ptr failure = collection_->run(
      [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
        if (!bytes.empty()) return put(bytes);
        left = own_[file_number++].bytes;
        const std::string header = files.header(file);
        put(std::as_bytes(std::span(header)));
      },
      read);
  collection_.reset();
  // An older checkpoint of this step, damaged, must not look complete while it is replaced.
  phase_ = prepares ? Phase::prepare : Phase::write;
  if (failure) return done({}, failure);
  if (!prepares) return start_write();
  if (mesh_.world().rank() == 0)
    start([folder = temporary_](SaveJob&) { models::remove_checkpoint(folder); });
}

/// Writes them at once.
void CheckpointSaver::stream() {
  const CheckpointFiles& files = collection_->files();
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
  std::exception_ptr failure = collection_->run(
      [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
        if (!bytes.empty()) return put(bytes);
        finish_file();
        name = files.name(file);
        const std::string path = io::join_path(temporary_, name), header = files.header(file);
        io::make_directories(io::dir_name(path));
        out.emplace(path);
        put(std::as_bytes(std::span(header)));
      },
      collection_->reader());
  collection_.reset();
  try {
    if (!failure) finish_file();
  } catch (...) {
    failure = std::current_exception();
  }
  done(std::move(hashes), failure);
}

void CheckpointSaver::done(std::map<std::string, std::string> hashes, std::exception_ptr failure) {
  job_ = std::make_shared<SaveJob>();
  job_->hashes = std::move(hashes);
  job_->failure = std::move(failure);
  job_->finish();
}

void CheckpointSaver::start(Act act) {
  job_ = std::make_shared<SaveJob>();
  job_->write(temporary_);
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
  start([memory = memory_, own = own_, folder = temporary_](SaveJob& job) {
    write_snapshot(job, *memory, own, folder);
    memory->prepare();
  });
}

/// `lines` are those of all ranks' files.
void CheckpointSaver::start_complete(const std::vector<std::string>& lines) {
  Completion completion{.texts = texts_,
                        .expected = expected_,
                        .around = around_,
                        .from = temporary_,
                        .to = saved_.folder};
  for (const std::string& text : lines)
    completion.hashes.merge(models::parse_complete(text, "a rank's list of files"));
  start([completion = std::move(completion)](SaveJob& job) mutable {
    complete(job, std::move(completion));
  });
}

void CheckpointSaver::start_clean() {
  start([folder = temporary_](SaveJob&) {
    try {
      io::remove_folder(folder);
    } catch (const Error& error) {
      log_info("{}", error.what());  // the next checkpoint, or the next start, removes it
    }
  });
}

SaveNotes CheckpointSaver::notes() const {
  if (copies_) {
    if (!copies_->done()) return {};
    return {.done = 1, .failed = copies_->failure() ? 1.0 : 0.0};
  }
  if (!job_) return {.done = 1};
  if (!job_->done()) return {};
  return {.done = 1, .failed = job_->failure ? 1.0 : 0.0};
}

std::optional<SavedCheckpoint> CheckpointSaver::advance(const SaveNotes& sums) {
  if (!pending()) return {};
  dist::World& world = mesh_.world();
  const bool leader = world.rank() == 0, failed = sums.failed > 0;
  if (failed && job_ && phase_ != Phase::clean) job_->stop = true;
  if (sums.done < world.size()) return {};
  if (thread_.joinable()) thread_.join();
  const std::shared_ptr<SaveJob> job = std::exchange(job_, nullptr);
  if (phase_ == Phase::clean) {
    phase_ = Phase::idle;
    return saved_;
  }
  if (failed) {
    const std::exception_ptr failure = copies_ ? copies_->failure() : job ? job->failure : nullptr;
    const std::string own = message_of(failure);
    if (!own.empty()) saved_.own = failure;
    copies_.reset();
    collection_.reset();
    const std::vector<std::string> said = world.gather(own);
    for (std::size_t rank = 0; rank < said.size() && saved_.failure.empty(); ++rank)
      if (!said[rank].empty()) saved_.failure = said[rank];
    phase_ = Phase::clean;
    if (leader) start_clean();
    return {};
  }
  if (phase_ == Phase::copy) {
    fill(copies_->reader(), io::is_bucket(run_));
    copies_.reset();
  } else if (phase_ == Phase::prepare) {
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
    if (job_ && !job_->done())
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
  if (job_ && !job_->done()) {
    words = fmt::format("rank {} on host {} writes '{}'", world.rank(), world.host(), job_->at());
  } else if (copies_ && !copies_->done()) {
    words = fmt::format("rank {} on host {} copies from its GPU", world.rank(), world.host());
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
