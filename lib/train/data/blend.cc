// SPDX-License-Identifier: Apache-2.0
#include "train/data/blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/blend_order.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/folder/checkpoint_folder.h"
#include "train/data/packed_folder.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

/// Samples of several indexes, one after the other.
class BlendIndex final : public data::SampleIndex {
 public:
  BlendIndex(const std::vector<std::unique_ptr<Dataset>>& parts,
             const std::vector<DataSource>& sources, const data::BlendShares& shares)
      : parts_(parts), sources_(sources), shares_(shares) {
    std::map<std::tuple<int, int, int, double>, std::uint32_t> numbers;
    std::uint32_t shards = 0;
    for (const std::unique_ptr<Dataset>& part : parts) {
      const data::SampleIndex& index = part->index();
      std::vector<std::uint32_t>& own = form_numbers_.emplace_back();
      for (const data::Form& form : index.forms()) {
        const auto [at, fresh] =
            numbers.try_emplace({form.frames, form.height, form.width, form.fps},
                                static_cast<std::uint32_t>(forms_.size()));
        if (fresh) {
          forms_.push_back(form);
          forms_.back().first += size_;
        } else {
          forms_[at->second].count += form.count;
        }
        own.push_back(at->second);
      }
      firsts_.push_back(size_);
      first_shards_.push_back(shards);
      size_ += index.size();
      shards += index.shards();
    }
  }

  std::size_t size() const override { return size_; }
  std::span<const data::Form> forms() const override { return forms_; }
  std::uint32_t form_of(std::size_t i) const override {
    const auto [part, own] = find(i);
    return form_numbers_[part][index(part).form_of(own)];
  }
  int text_tokens(std::size_t i) const override {
    const auto [part, own] = find(i);
    return index(part).text_tokens(own);
  }
  data::SamplePlace place(std::size_t i) const override {
    const auto [part, own] = find(i);
    data::SamplePlace place = index(part).place(own);
    place.shard += first_shards_[part];
    return place;
  }
  std::string_view shard_name(std::uint32_t shard) const override {
    const auto next = std::ranges::upper_bound(first_shards_, shard);
    const auto part = static_cast<std::size_t>(next - first_shards_.begin()) - 1;
    return index(part).shard_name(shard - first_shards_[part]);
  }
  std::uint32_t shards() const override {
    return first_shards_.back() + index(parts_.size() - 1).shards();
  }
  std::uint64_t check(std::size_t i) const override {
    const auto [part, own] = find(i);
    return index(part).check(own);
  }
  bool has_hash(std::size_t i) const override {
    const auto [part, own] = find(i);
    return index(part).has_hash(own);
  }
  data::Entry entry(std::size_t i) const override {
    const auto [part, own] = find(i);
    data::Entry entry = index(part).entry(own);
    entry.key = key_in_blend(part, entry.key);
    return entry;
  }
  std::vector<std::string> keys() const override {
    std::vector<std::string> keys;
    for (std::size_t part = 0; part < parts_.size(); ++part)
      for (const std::string& key : index(part).keys())
        keys.push_back(key_in_blend(part, key));
    return keys;
  }
  /// Folders may have samples of the same keys, which are others.
  std::string key_in_blend(std::size_t part, const std::string& key) const {
    return sources_[part].name + "/" + key;
  }
  /// Of the folders in order, and of their shares.
  std::string fingerprint(const Json& /*info*/) const override {
    Hasher hasher;
    hasher.update(fmt::format("blend {}", shares_.epoch));
    for (std::size_t part = 0; part < parts_.size(); ++part)
      hasher.update(fmt::format("\n{} {}", shares_.shares[part], parts_[part]->fingerprint()));
    return hasher.hex128();
  }
  void expect(std::span<const std::uint64_t> samples) const override {
    std::vector<std::vector<std::uint64_t>> own(parts_.size());
    for (const std::uint64_t i : samples) {
      const auto [part, number] = find(i);
      own[part].push_back(number);
    }
    for (std::size_t part = 0; part < parts_.size(); ++part)
      index(part).expect(own[part]);
  }

  /// The number of a part's first sample.
  std::size_t first_of(std::size_t part) const { return firsts_[part]; }
  /// Which part has sample `i`, and as which.
  std::pair<std::size_t, std::size_t> find(std::size_t i) const {
    if (i >= size_) fail("there is no sample {} of {}", i, size_);
    const auto next = std::ranges::upper_bound(firsts_, i);
    const auto part = static_cast<std::size_t>(next - firsts_.begin()) - 1;
    return {part, i - firsts_[part]};
  }

 private:
  const data::SampleIndex& index(std::size_t part) const { return parts_[part]->index(); }

  const std::vector<std::unique_ptr<Dataset>>& parts_;
  const std::vector<DataSource>& sources_;
  data::BlendShares shares_;
  std::size_t size_ = 0;
  std::vector<std::size_t> firsts_;
  std::vector<std::uint32_t> first_shards_;
  std::vector<data::Form> forms_;
  std::vector<std::vector<std::uint32_t>> form_numbers_;  // of each part's own forms
};

class BlendData final : public Dataset {
 public:
  BlendData(std::vector<std::unique_ptr<Dataset>> parts, std::vector<DataSource> sources,
            const data::BlendShares& shares)
      : parts_(std::move(parts)),
        sources_(std::move(sources)),
        shares_(shares),
        index_(parts_, sources_, shares) {}

  const data::SampleIndex& index() const override { return index_; }
  const Json& info() const override { return parts_[0]->info(); }
  std::unique_ptr<data::EpochOrder> order(std::uint64_t seed,
                                          data::Packing /*packing*/) const override {
    std::vector<std::uint64_t> sizes;
    for (const DataSource& source : sources_)
      sizes.push_back(source.samples);
    return data::order_of_blend(std::move(sizes), shares_, seed);
  }
  std::span<const DataSource> sources() const override { return sources_; }
  bool tells_repeats() const override { return true; }
  /// Noise follows from keys, so a run goes on with the names that it began with, wherever its
  /// folders lie now.
  void settle(dist::World& /*world*/, const Json& kept) override {
    if (!kept.is_object()) return;
    const Json names = kept.value(kNamedKeys, Json());
    if (!names.is_array() || names.size() != sources_.size())
      fail("'{}' in train.json must have {} names of folders", kNamedKeys, sources_.size());
    for (std::size_t i = 0; i < sources_.size(); ++i)
      sources_[i].name = names[i].is_string() ? names[i].get<std::string>() : "";
  }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> all;
    for (const std::unique_ptr<Dataset>& part : parts_)
      for (std::string& one : part->remarks())
        all.push_back(std::move(one));
    return all;
  }
  std::int64_t about_bytes(std::size_t i) const override {
    const auto [part, own] = index_.find(i);
    return parts_[part]->about_bytes(own);
  }
  bool has_pieces() const override {
    return std::ranges::all_of(parts_, [](const auto& part) { return part->has_pieces(); });
  }
  std::string read_piece(std::size_t i, std::int64_t begin, std::int64_t end) const override {
    const auto [part, own] = index_.find(i);
    return parts_[part]->read_piece(own, begin, end);
  }
  CleanSample put_together(std::size_t i, std::string_view bytes) const override {
    const auto [part, own] = index_.find(i);
    return named(part, parts_[part]->put_together(own, bytes));
  }
  bool is_remote() const override {
    return std::ranges::any_of(parts_, [](const auto& part) { return part->is_remote(); });
  }
  void fetch(std::span<data::SampleBytes> parts) const override {
    std::map<std::size_t, std::vector<std::size_t>> of_folders;  // places in `parts`
    for (std::size_t k = 0; k < parts.size(); ++k)
      of_folders[index_.find(parts[k].sample).first].push_back(k);
    for (const auto& [folder, places] : of_folders) {
      std::vector<data::SampleBytes> own;
      for (const std::size_t k : places) {
        own.push_back(std::move(parts[k]));
        own.back().sample = index_.find(own.back().sample).second;
      }
      parts_[folder]->fetch(own);
      for (std::size_t k = 0; k < places.size(); ++k) {
        own[k].sample += index_.first_of(folder);
        parts[places[k]] = std::move(own[k]);
      }
    }
  }
  CleanSample read_fetched(std::size_t i, const std::string& bytes,
                           std::optional<SeenAt> seen) const override {
    const auto [part, own] = index_.find(i);
    return named(part, parts_[part]->read_fetched(own, bytes, seen));
  }
  Json facts() const override {
    Json facts = parts_[0]->facts();
    if (facts.contains("trained")) facts["trained"] = trained_sizes(index_.forms());
    return facts;
  }

 private:
  void fit_model(Recipe& recipe) const override {
    for (std::size_t part = 0; part < parts_.size(); ++part)
      try {
        parts_[part]->fit(recipe);
      } catch (const Error& error) {
        throw Error(fmt::format("'{}': {}", sources_[part].name, error.what()), error.kind());
      }
  }
  CleanSample read_sample(std::size_t i, std::optional<SeenAt> seen) const override {
    const auto [part, own] = index_.find(i);
    return named(part, parts_[part]->read(own, seen));
  }
  CleanSample named(std::size_t part, CleanSample sample) const {
    sample.key = index_.key_in_blend(part, sample.key);
    return sample;
  }

  const std::vector<std::unique_ptr<Dataset>> parts_;
  std::vector<DataSource> sources_;
  const data::BlendShares shares_;
  BlendIndex index_;
};

/// The folders' last names, or, where two have the same, all as they were given.
std::vector<std::string> names_of(const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const std::string& folder : folders)
    names.push_back(io::base_name(models::absolute_path_of(folder)));
  const std::set<std::string> different(names.begin(), names.end());
  return different.size() == names.size() && !different.contains("") ? names : folders;
}

/// What latents.json says of a maker, for a message.
std::string describe_maker(const Json& value) {
  if (!value.is_object()) return value.is_null() ? "none" : dump_json(value);
  const std::string hash = get_string(value, "hash").value_or("");
  return get_string(value, "name").value_or("?") + (hash.empty() ? "" : " (" + hash + ")");
}

/// Makers are who their hash says, wherever they are.
bool same_maker(Json a, Json b) {
  const auto hash = [](const Json& maker) {
    return maker.is_object() ? get_string(maker, "hash").value_or("") : std::string();
  };
  if (!hash(a).empty() && !hash(b).empty()) return hash(a) == hash(b);
  for (Json* maker : {&a, &b})
    if (maker->is_object()) maker->erase("path");
  return a == b;
}

/// Throws Error{usage} with all that keeps the folders from being one.
void check_alike(const std::vector<std::string>& folders,
                 const std::vector<std::unique_ptr<Dataset>>& parts) {
  std::vector<std::string> differences;
  for (std::size_t i = 1; i < parts.size(); ++i)
    for (const char* key : {"tokenizer", "text_encoder", "channels", "vocabulary"}) {
      const Json first = parts[0]->info().value(key, Json()),
                 other = parts[i]->info().value(key, Json());
      if (!same_maker(first, other))
        differences.push_back(fmt::format("{} of '{}' is {}, of '{}' {}", key, folders[0],
                                          describe_maker(first), folders[i],
                                          describe_maker(other)));
    }
  if (!differences.empty())
    fail_usage("these folders cannot be blended: {}; pack them alike, or train on them in turn",
               fmt::join(differences, "; "));
}

void check_numbers(const RunOptions& options) {
  const DataRecipe& data = options.recipe.data;
  const std::size_t folders = options.blend.size();
  if (!data.weights.empty() && !data.repeats.empty())
    fail_usage("'data.weights' and 'data.repeats' are both set: give one of them");
  const bool weights = !data.weights.empty();
  const std::vector<double>& numbers = weights ? data.weights : data.repeats;
  const char* const key = weights ? "data.weights" : "data.repeats";
  if (numbers.empty()) return;
  if (folders == 0)
    fail_usage("'{}' is for several folders of data: give --data for each, or 'data.folders'", key);
  if (numbers.size() != folders)
    fail_usage("'{}' has {}, and there are {} folders of data: give one for each", key,
               counted(static_cast<std::int64_t>(numbers.size()), "number"), folders);
}

/// A next stage has the numbers of the run before, unless it has its own, or one folder.
void drop_inherited(Recipe& recipe, bool one_folder) {
  const bool weights = recipe.given.contains("data.weights"),
             repeats = recipe.given.contains("data.repeats");
  if (!weights && (one_folder || repeats)) recipe.data.weights.clear();
  if (!repeats && (one_folder || weights)) recipe.data.repeats.clear();
}

}  // namespace

void settle_folders(RunOptions& options, const std::vector<std::string>& given) {
  options.blend.clear();
  if (!options.synthetic.empty()) return;  // any recipe will do to measure a machine
  std::vector<std::string>& named = options.recipe.data.folders;
  if (!given.empty()) named = given;
  if (!named.empty()) options.data = named[0];
  if (named.size() > 1) options.blend = named;
  if (given.size() == 1) named.clear();  // a recipe is not of one folder
  drop_inherited(options.recipe, given.size() == 1);
  for (std::size_t i = 0; i < options.blend.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::string &a = options.blend[i], &b = options.blend[j];
      if (a == b || io::canonical_path(a) == io::canonical_path(b))
        fail_usage("'{}' and '{}' are one folder: to see it more often, give it a higher weight", b,
                   a);
    }
  check_numbers(options);
}

std::string name_data(const RunOptions& options, std::string_view between) {
  return options.blend.empty() ? options.data
                               : fmt::format("{}", fmt::join(options.blend, between));
}

std::unique_ptr<Dataset> open_data(const RunOptions& options, const std::string& split) {
  const Kind& kind = kind_of(options.recipe.model.type);
  const std::vector<std::string>& folders = options.blend;
  if (folders.empty()) return kind.open(options, split);
  std::vector<std::unique_ptr<Dataset>> parts;
  std::vector<std::uint64_t> sizes;
  RunOptions of_folder = options;
  of_folder.blend.clear();
  for (const std::string& folder : folders) {
    of_folder.data = folder;
    parts.push_back(kind.open(of_folder, split));
    sizes.push_back(parts.back()->size());
  }
  check_alike(folders, parts);
  const DataRecipe& data = options.recipe.data;
  const std::vector<double> once(folders.size(), 1.0);
  const data::BlendShares shares =
      data.weights.empty()
          ? data::shares_of_repeats(data.repeats.empty() ? once : data.repeats, sizes)
          : data::shares_of_weights(data.weights, sizes);
  const double all = std::accumulate(shares.shares.begin(), shares.shares.end(), 0.0);
  const std::vector<std::string> names = names_of(folders);
  std::vector<DataSource> sources;
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    sources.push_back({names[i], first, sizes[i], static_cast<double>(shares.shares[i]) / all});
    first += sizes[i];
  }
  kind.unify(options, parts, sources);
  return std::make_unique<BlendData>(std::move(parts), std::move(sources), shares);
}

RunOptions options_of_folder(const RunOptions& options, const Dataset& data, std::size_t folder) {
  RunOptions own = options;
  own.data = options.blend[folder];
  own.blend.clear();
  const Json facts = data.facts();
  if (const Json scale = facts.value("latent_scale", Json()); scale.is_object())
    own.base.scale = models::LatentScale::from_json(scale, "the blend's scale");
  return own;
}

Json folders_after(const Dataset& data, double samples) {
  Json folders = Json::array();
  for (const DataSource& source : data.sources()) {
    const double seen = samples * source.share;
    folders.push_back({{"folder", source.name},
                       {"share", source.share},
                       {"samples", source.samples},
                       {"seen", seen},
                       {"epochs", seen / static_cast<double>(source.samples)}});
  }
  return folders;
}

}  // namespace vfm::train
