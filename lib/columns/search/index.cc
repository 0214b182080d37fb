// SPDX-License-Identifier: Apache-2.0
#include "columns/search/index.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "columns/search/index_writer.h"
#include "columns/search/inverted_file.h"
#include "columns/search/shard_coder.h"
#include "columns/search/vector_index.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/text_encoder.h"
#include "shard/columns.h"
#include "shard/shard_input.h"
#include "share/ordered.h"

namespace vfm::columns {
namespace {

constexpr std::uint64_t kMostCentres = 4096;
constexpr std::uint64_t kTrainedOnEach = 48;                     // training vectors for each centre
constexpr std::uint64_t kMostTraining = std::uint64_t{1} << 30;  // bytes of training vectors
constexpr std::uint64_t kOutgrown = 16;  // times as many vectors as in training

struct Task {
  IndexedShard shard;
  std::uint64_t first = 0;  // index of the shard's first row in the rows of all tasks
};

class IndexBuild {
 public:
  IndexBuild(const IndexOptions& options, share::Slots& slots, Progress& progress)
      : options_(options), slots_(slots), progress_(progress) {}

  long run(io::ManifestWriter& manifest);

 private:
  void read_input();
  void open_before();
  void plan();
  void look_at(Task& task);
  void find_encoder();
  std::vector<float> training_vectors();
  void train();
  void warn(const std::vector<io::Fault>& faults);

  const IndexOptions& options_;
  share::Slots& slots_;
  Progress& progress_;
  std::vector<Task> tasks_;  // to read
  std::set<std::string> named_;
  std::optional<VectorIndex> before_;
  std::vector<std::size_t> kept_;  // indices of kept shards in before_
  std::set<std::string> gone_;     // tars of before_ that leave the index
  IndexModel model_;
  Json identity_;
  TrainedLists trained_;
  long errors_ = 0;
};

void IndexBuild::warn(const std::vector<io::Fault>& faults) {
  for (const io::Fault& fault : faults)
    log_warning("{}: {}", fault.input, fault.message);
  errors_ += static_cast<long>(faults.size());
}

void IndexBuild::read_input() {
  std::vector<io::Fault> bad;
  shard::ShardInput reader(options_.inputs,
                           [&](io::Fault fault) { bad.push_back(std::move(fault)); });
  while (auto record = reader.next()) {
    const std::string path = get_string(record->json, "path").value_or(record->where);
    try {
      if (record->kind != "shard") fail("{} is a '{}', not a shard", record->where, record->kind);
      shard::complete_shard(*record);
      Task task;
      task.shard.path = record->path();
      task.shard.columns = record->json->at("columns");
      task.shard.tar = vectors_tar(*record);
      if (named_.insert(io::canonical_path(task.shard.tar)).second)
        tasks_.push_back(std::move(task));
    } catch (const Error& error) {
      bad.push_back({path, error.what()});
    }
  }
  warn(bad);
  reader.streams().check_whole("no index is made of what came");
  if (tasks_.empty())
    fail("the input has no shard to index; name shards that vfm-embed has embedded");
}

/// Opens an existing index, and finds the shards to keep.
void IndexBuild::open_before() {
  if (!io::file_exists(options_.path)) return;
  if (options_.force) {
    if (!is_index_file(options_.path))
      fail(
          "'{}' is not an index of vfm-embed, so --force leaves it; name another file, or remove "
          "it",
          options_.path);
    return;
  }
  before_.emplace(options_.path);
  model_ = before_->model();
  if (model_.kind != options_.kind)
    fail("'{}' is an index of {} vectors; add to it with --vectors {}, or name another file",
         options_.path, to_string(model_.kind), to_string(model_.kind));
  trained_.centres.assign(before_->centres().begin(), before_->centres().end());
  trained_.words.assign(before_->words().begin(), before_->words().end());
  std::unordered_set<std::string> stays;
  for (std::size_t i = 0; i < before_->shards().size(); ++i) {
    const IndexedShard& shard = before_->shards()[i];
    const std::string why = shard.changed();
    if (why.empty()) {
      kept_.push_back(i);
      stays.insert(io::canonical_path(shard.tar));
      continue;
    }
    gone_.insert(io::canonical_path(shard.tar));
    if (!named_.contains(io::canonical_path(shard.tar)))
      log_warning("{}: {}; it is taken out of the index", shard.path, why);
  }
  std::erase_if(
      tasks_, [&](const Task& task) { return stays.contains(io::canonical_path(task.shard.tar)); });
}

void IndexBuild::look_at(Task& task) {
  IndexedShard& shard = task.shard;
  shard.files = {file_state(shard.tar)};
  if (shard.path != shard.tar && io::file_exists(shard.path))
    shard.files.push_back(file_state(shard.path));
  shard.rows =
      static_cast<std::uint64_t>(StoredVectors(shard.tar, options_.kind, options_.limits).rows());
}

void IndexBuild::plan() {
  std::vector<io::Fault> bad;
  std::uint64_t rows = 0;
  std::erase_if(tasks_, [&](Task& task) {
    check_stop();
    try {
      look_at(task);
      task.first = rows;
      rows += task.shard.rows;
      return false;
    } catch (const Error& error) {
      bad.push_back({task.shard.path, error.what()});
      return true;
    }
  });
  warn(bad);
  progress_.start("samples", rows);
}

/// Takes the encoder of the first vector. The index accepts no other encoder.
void IndexBuild::find_encoder() {
  if (before_) {
    identity_ = encoder_identity(model_.encoder);
    return;
  }
  std::string why;  // first error
  for (const Task& task : tasks_) {
    try {
      StoredVectors vectors(task.shard.tar, options_.kind, options_.limits);
      StoredVector vector;
      for (std::int64_t row = 0; row < vectors.rows(); ++row) {
        check_stop();
        if (!vectors.read(row, vector)) continue;
        model_.kind = options_.kind;
        model_.encoder = vector.encoder;
        model_.dim = vector.values.size();
        if (model_.dim > kMostIndexDim)
          fail("a vector has {} numbers, an index takes {}", model_.dim, kMostIndexDim);
        identity_ = encoder_identity(vector.encoder);
        return;
      }
    } catch (const Error& error) {
      if (why.empty()) why = error.what();
    }
  }
  if (!why.empty()) fail("there are no {} vectors to index: {}", to_string(options_.kind), why);
  fail("there are no {} vectors to index; run vfm-embed on the shards first",
       to_string(options_.kind));
}

/// Returns vectors that are evenly spaced over all rows.
std::vector<float> IndexBuild::training_vectors() {
  std::uint64_t rows = 0;
  for (const Task& task : tasks_)
    rows += task.shard.rows;
  const std::uint64_t most = std::max<std::uint64_t>(1, kMostTraining / (4 * model_.dim));
  const std::uint64_t wanted = std::min({rows, kTrainedOnEach * index_lists(rows), most});
  std::vector<float> out;
  std::size_t next = 0;
  share::for_each_ordered<const Task*, std::vector<float>>(
      slots_,
      [&]() -> std::optional<const Task*> {
        if (next == tasks_.size()) return std::nullopt;
        return &tasks_[next++];
      },
      [&](const Task*& task) {
        std::vector<float> found;
        try {
          StoredVectors vectors(task->shard.tar, options_.kind, options_.limits);
          StoredVector vector;
          for (std::uint64_t row = 0; row < task->shard.rows; ++row) {
            const std::uint64_t at = task->first + row;
            if ((at + 1) * wanted / rows == at * wanted / rows) continue;
            check_stop();
            if (vectors.read(static_cast<std::int64_t>(row), vector) &&
                encoder_identity(vector.encoder) == identity_ && usable(vector, model_))
              found.insert(found.end(), vector.values.begin(), vector.values.end());
          }
        } catch (const Error&) {  // reported when the shard is coded
        }
        return found;
      },
      [&](std::vector<float>& found) { out.insert(out.end(), found.begin(), found.end()); },
      [](const std::vector<float>& found) { return held_bytes(found); });
  return out;
}

void IndexBuild::train() {
  const std::vector<float> vectors = training_vectors();
  if (vectors.empty()) fail("all vectors are zero; there is nothing to index");
  for (const Task& task : tasks_)
    model_.trained += task.shard.rows;
  const std::uint64_t n = vectors.size() / model_.dim;
  model_.lists = std::min<std::uint64_t>(index_lists(model_.trained), n);
  log_info("{} lists are made of {} vectors", model_.lists, n);
  trained_ = train_lists(vectors, model_.dim, model_.lists, slots_);
}

long IndexBuild::run(io::ManifestWriter& manifest) {
  read_input();
  io::AtomicFile file = io::AtomicFile::await(options_.path);
  open_before();
  plan();
  std::uint64_t entries = before_ ? before_->entries() : 0;
  IndexParts parts;
  if (!tasks_.empty() || !gone_.empty() || !before_) {
    find_encoder();
    if (options_.kind == VectorKind::text &&
        !models::text_config_from_json(model_.encoder).one_token())
      fail_as_words("the captions", model_.encoder);
    if (!before_) train();
    const InvertedFile inverted(model_.dim, trained_.centres, trained_.words);
    const ShardCoder coder(model_, inverted, options_.limits);
    io::ScratchFile coded(io::dir_name(options_.path));
    std::size_t next = 0;
    share::for_each_ordered<Task*, CodedShard>(
        slots_,
        [&]() -> std::optional<Task*> {
          if (next == tasks_.size()) return std::nullopt;
          return &tasks_[next++];
        },
        [&](Task*& task) { return coder.code(task->shard); },
        [&](CodedShard& done) {
          warn(done.errors);
          progress_.add(done.shard.rows);
          if (done.rows.empty()) return;
          coded.append(done.rows);
          gone_.erase(io::canonical_path(done.shard.tar));
          parts.added.push_back(std::move(done.shard));
        },
        [](const CodedShard& done) {
          return done.rows.size() + held_bytes(done.errors) + held_bytes(done.shard.columns) +
                 done.shard.files.size() * sizeof(IndexedFile);
        });
    parts.model = model_;
    parts.centres = trained_.centres, parts.words = trained_.words;
    parts.before = before_ ? &*before_ : nullptr;
    parts.kept = kept_;
    parts.coded = &coded;
    if (parts.kept.empty() && parts.added.empty()) fail("none of the shards could be indexed");
    entries = write_index(parts, file);
  }
  if (entries > kOutgrown * model_.trained)
    log_warning("'{}' was made for {} vectors and has {} now: --force makes a faster one",
                options_.path, model_.trained, entries);
  manifest.write({{"kind", "index"},
                  {"path", options_.path},
                  {"vectors", entries},
                  {"shards", kept_.size() + parts.added.size()},
                  {"added", parts.added.size()},
                  {"dropped", gone_.size()}});
  return errors_;
}

}  // namespace

std::size_t index_lists(std::uint64_t vectors) {
  const double lists = std::sqrt(static_cast<double>(vectors)) * 2 / 3;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(lists), 1, kMostCentres);
}

long build_index(const IndexOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest) {
  return IndexBuild(options, slots, progress).run(manifest);
}

}  // namespace vfm::columns
