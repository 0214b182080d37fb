// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/save_job.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "models/folder/checkpoint_folder.h"

namespace vfm::train {
namespace {

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

}  // namespace

bool SaveJob::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool SaveJob::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [&] { return done_; });
}

void SaveJob::finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

std::string SaveJob::at() const {
  const std::lock_guard lock(mutex_);
  return at_;
}

void SaveJob::write(const std::string& path) {
  const std::lock_guard lock(mutex_);
  at_ = path;
}

void write_snapshot(SaveJob& job, SnapshotMemory& memory, const std::vector<SnapshotFile>& files,
                    const std::string& folder) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string path = io::join_path(folder, files[i].name);
    job.write(path);
    const std::string hash = write_hashed(path, files[i].bytes);
    memory.name(i, hash);
    job.hashes[files[i].name] = hash;
  }
}

void complete(SaveJob& job, Completion completion) {
  const std::string &from = completion.from, &to = completion.to;
  if (completion.around.before && !job.stop) completion.around.before();
  for (const auto& [name, text] : completion.texts)
    completion.hashes[name] =
        write_hashed(io::join_path(from, name), std::as_bytes(std::span(text)));
  check_seen(completion.expected, from);
  const std::string path = io::join_path(from, "COMPLETE");
  job.write(path);
  const std::string listed = lines_of(completion.hashes);
  io::write_file(path, listed);
  models::HeldRun::wrote(to, listed);
  if (from != to) {
    io::remove_folder(to);  // only a damaged one, or one of a run that went another way
    io::rename_path(from, to);
  }
  try {  // what follows makes it no less complete
    if (completion.around.after && !job.stop) completion.around.after();
  } catch (const std::exception& error) {
    log_warning("{}", error.what());
  } catch (const Stopped&) {
  }
}

std::string lines_of(const std::map<std::string, std::string>& hashes) {
  std::string text;
  for (const auto& [name, hash] : hashes)
    text += hash + "  " + name + "\n";
  return text;
}

}  // namespace vfm::train
