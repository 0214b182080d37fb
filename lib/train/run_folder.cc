// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "models/folder/checkpoint_folder.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

/// What a run writes beside its checkpoints.
bool is_log(const std::string& name) {
  return name == "metrics.jsonl" || name == "timing.jsonl" || name == "errors.jsonl" ||
         name == "recipe.yaml" || name.starts_with("events.out.tfevents.");
}

/// Whether a run of ours began here: its recipe is the first file that it writes.
bool is_our_run(const std::string& run) {
  const std::string recipe = io::join_path(run, "recipe.yaml");
  return io::file_exists(recipe) && io::read_file(recipe).starts_with(kRecipeHead);
}

}  // namespace

fs::path whole_path(const fs::path& name) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(name), error);
  return (error ? fs::absolute(name).lexically_normal() : whole) / "";
}

bool is_begun(const std::string& out, bool force) {
  return !force && !out.empty() && !models::list_checkpoints(out).empty();
}

void refuse_foreign_files(const std::string& run) {
  if (!fs::is_directory(run) || is_our_run(run)) return;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (is_log(name))
      fail_usage("'{}' is not from vfm-train and would be replaced; choose another folder (-o)",
                 entry.path().string());
  }
}

void write_errors(const std::string& run, const std::map<std::string, std::string>& failures) {
  const std::string path = io::join_path(run, "errors.jsonl");
  std::string text;
  for (const auto& [key, message] : failures)
    text += dump_json({{"tool", "vfm-train"},
                       {"input", key},
                       {"error", message},
                       {"code", "other"}}) +
            "\n";
  if (!text.empty())
    io::update_file(path, text);
  else
    fs::remove(path);
}

void clear_run(const std::string& run) {
  const fs::path recipe = io::join_path(run, "recipe.yaml");
  for (const auto& entry : fs::directory_iterator(run))
    if (is_log(entry.path().filename().string()) && entry.path() != recipe)
      fs::remove(entry.path());
  for (const auto& entry : fs::directory_iterator(io::join_path(run, "checkpoints"))) {
    std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.ends_with(".tmp")) name = name.substr(1, name.size() - 5);
    if (models::is_checkpoint_name(name)) fs::remove_all(entry.path());
  }
  // Last: what a kill leaves before must still be known as ours.
  fs::remove(recipe);
}

}  // namespace vfm::train
