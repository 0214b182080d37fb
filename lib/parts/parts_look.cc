// SPDX-License-Identifier: Apache-2.0
#include "parts/parts_look.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "parts/part_run.h"

namespace vfm::parts {
namespace {

/// Returns the number of the part whose folder has this name, or nullopt for another name.
std::optional<int> part_of_folder(std::string_view name) {
  int part = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), part);
  if (error != std::errc() || stop != name.data() + name.size()) return std::nullopt;
  return part;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::unique_ptr<io::Store> open_parts(const std::string& directory) {
  return io::open_store(parts_path(directory, ""));
}

std::unique_ptr<io::Store> open_leases(const std::string& directory) {
  io::end_left_uploads(directory);  // of all parts and tools at once
  std::unique_ptr<io::Store> store = open_parts(directory);
  store->check_conditions();
  return store;
}

std::string parts_path(const std::string& directory, std::string_view name) {
  const std::string folder = io::join_path(directory, "parts");
  return name.empty() ? folder : io::join_path(folder, name);
}

PartsLook::PartsLook(const io::Store& store, std::string directory, std::string tool)
    : store_(store),
      directory_(std::move(directory)),
      tool_(std::move(tool)),
      listed_(io::is_bucket(directory_)) {
  refresh();
}

std::string PartsLook::folder(int part) const {
  return tool_ + "/" + part_name(part);
}

void PartsLook::refresh() {
  if (!listed_) return;
  begun_.clear();
  failed_.clear();
  marked_.clear();
  leases_.clear();
  notes_.clear();
  for (const io::FolderEntry& object : io::files_below(parts_path(directory_, tool_)))
    note_object(object.name, object.bytes);
  std::erase_if(read_, [&](const auto& each) { return !leases_.contains(each.first.first); });
}

void PartsLook::note_object(const std::string& name, std::uint64_t bytes) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return;
  const std::string_view first = std::string_view(name).substr(0, slash);
  const std::string_view rest = std::string_view(name).substr(slash + 1);
  if (first == kNotes)
    if (std::optional<PartNote> note = parse_note(rest)) notes_.push_back(*std::move(note));
  const std::optional<int> part = part_of_folder(first);
  if (!part) return;
  begun_.insert(*part);
  if (rest == "done.json") marked_[*part] = bytes;
  if (rest == "failed.json") failed_.insert(*part);
  if (const std::optional<LeaseName> lease = parse_lease_name(rest)) {
    LeaseName& newest = leases_[*part];
    newest = std::max(newest, *lease);
  }
}

std::set<int> PartsLook::begun() const {
  if (listed_) return begun_;
  std::set<int> parts;
  for (const std::string& name : store_.list(tool_))
    if (name.ends_with('/'))
      if (const auto part = part_of_folder(std::string_view(name).substr(0, name.size() - 1)))
        parts.insert(*part);
  return parts;
}

bool PartsLook::done(int part) const {
  return listed_ ? marked_.contains(part) : store_.facts(marker_name(tool_, part)).has_value();
}

std::optional<PartMarker> PartsLook::marker(int part) const {
  const std::string name = marker_name(tool_, part);
  if (!listed_) return read_marker_facts(store_, name);
  const auto found = marked_.find(part);
  return found == marked_.end() ? std::nullopt : read_marker_facts(store_, name, found->second);
}

std::optional<LeaseName> PartsLook::newest_lease(int part) const {
  if (!listed_) {
    const std::vector<LeaseName> names = leases_of(store_, folder(part));
    return names.empty() ? std::nullopt : std::optional(names.back());
  }
  const auto newest = leases_.find(part);
  return newest == leases_.end() ? std::nullopt : std::optional(newest->second);
}

std::optional<LeaseFacts> PartsLook::lease(int part) {
  if (!listed_) return find_lease(store_, folder(part));
  const std::optional<LeaseName> newest = newest_lease(part);
  if (!newest) return std::nullopt;
  const LeaseName name = *newest;
  auto known = read_.find({part, name.generation});
  if (known == read_.end()) {
    // All files of a generation say the same, and the first stays until the lease ends.
    const auto facts = read_lease(store_, folder(part), {name.generation, 0});
    if (!facts) return std::nullopt;
    known = read_.emplace(std::pair(part, name.generation), *facts).first;
  }
  LeaseFacts facts = known->second;
  facts.beat = name.beat;
  return facts;
}

std::vector<PartNote> PartsLook::notes() const {
  if (!listed_) return read_notes(store_, tool_);
  std::vector<PartNote> notes = notes_;
  std::stable_sort(notes.begin(), notes.end(),
                   [](const PartNote& a, const PartNote& b) { return a.part < b.part; });
  return notes;
}

std::vector<bool> marked_parts(const io::Store& store, const std::string& directory,
                               const std::string& tool, int parts) {
  const PartsLook look(store, directory, tool);
  std::vector<bool> marked(static_cast<std::size_t>(parts));
  for (int part = 0; part < parts; ++part)
    marked[static_cast<std::size_t>(part)] = look.done(part);
  return marked;
}

PartMarks::PartMarks(std::string directory, std::string tool)
    : directory_(std::move(directory)), tool_(std::move(tool)), store_(open_parts(directory_)) {}

bool PartMarks::done(int part) {
  constexpr std::size_t kFew = 8;
  constexpr double kPause = 1;  // seconds between listings
  if (done_.contains(part)) return true;
  asked_.insert(part);
  if (!io::is_bucket(directory_) || asked_.size() <= kFew) {
    if (!store_->facts(marker_name(tool_, part))) return false;
    done_.insert(part);
  } else if (const double now = seconds_now(); listed_at_ < 0 || now - listed_at_ > kPause) {
    const PartsLook look(*store_, directory_, tool_);
    for (const int each : look.begun())
      if (look.done(each)) done_.insert(each);
    std::erase_if(asked_, [&](int each) { return done_.contains(each); });
    listed_at_ = now;
  }
  return done_.contains(part);
}

}  // namespace vfm::parts
