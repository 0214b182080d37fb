// SPDX-License-Identifier: Apache-2.0
#include "train/step/folder_validations.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "train/data/blend.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

/// sum += weight * value, of numbers, and of numbers in objects.
void add_weighted(Json& sum, const std::string& key, const Json& value, double weight) {
  if (value.is_object()) {
    for (const auto& [part, number] : value.items())
      add_weighted(sum[key], part, number, weight);
    return;
  }
  Json& number = sum[key];  // null before the first
  number = (number.is_null() ? 0.0 : number.get<double>()) + weight * value.get<double>();
}

}  // namespace

FolderValidations::FolderValidations(const RunOptions& options, const Recipe& recipe,
                                     const Dataset& data, bool tell)
    : data_(data) {
  if (recipe.validation.every == 0) return;
  if (!options.synthetic.empty()) {
    all_.push_back({1, Validation(recipe, data, "train")});
    return;
  }
  const Kind& kind = kind_of(recipe.model.type);
  const bool blend = !data.sources().empty();
  for (std::size_t i = 0; i < std::max<std::size_t>(1, data.sources().size()); ++i) {
    const RunOptions own = blend ? options_of_folder(options, data, i) : options;
    const double share = blend ? data.sources()[i].share : 1;
    const bool split = kind.has_split(own.data, "val");
    if (!split && tell)
      log_info("'{}' has no validation split: validating on training samples", own.data);
    const Dataset* of = &data;
    if (split || blend) {
      of = held_out_.emplace_back(kind.open_other(own, data, split ? "val" : "train")).get();
      Recipe fitted = recipe;
      of->fit(fitted);
      if (tell && split) warn_of_data(*of, data.remarks());
    }
    all_.push_back({share, Validation(recipe, *of, split ? "val" : "train")});
  }
}

Json FolderValidations::run(const Objective& objective, const Parallel& parallel) {
  if (all_.size() == 1) return all_.front().validation.run(objective, parallel);
  std::vector<Json> records;
  std::map<std::string, double> weights;  // of the folders that have a number of that name
  for (One& one : all_) {
    records.push_back(one.validation.run(objective, parallel));
    for (const auto& [key, value] : records.back().items())
      weights[key] += one.share;
  }
  std::int64_t samples = 0;
  Json means = Json::object(), folders = Json::object();
  std::string split;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    folders[data_.sources()[i].name] = records[i]["val_loss"];
    samples += records[i]["val_samples"].get<std::int64_t>();
    const std::string own = records[i]["val_split"].get<std::string>();
    split = split.empty() || split == own ? own : "val, train";
    for (const auto& [key, value] : records[i].items())
      if (value.is_object() || value.is_number_float())
        add_weighted(means, key, value, all_[i].share / weights[key]);
  }
  Json record = {{"val_loss", means["val_loss"]}, {"val_split", split}, {"val_samples", samples}};
  for (const auto& [key, value] : means.items())
    record[key] = value;
  record["val_folders"] = folders;
  return record;
}

std::map<std::string, std::string> FolderValidations::failures() const {
  std::map<std::string, std::string> all;
  for (std::size_t i = 0; i < all_.size(); ++i)
    for (const auto& [key, message] : all_[i].validation.failures())  // as in train/data/blend.h
      all.emplace(all_.size() == 1 ? key : data_.sources()[i].name + "/" + key, message);
  return all;
}

}  // namespace vfm::train
