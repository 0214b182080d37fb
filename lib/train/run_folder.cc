// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/remote/address.h"
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
  if (io::is_remote(name.string())) return fs::path(models::absolute_path_of(name.string())) / "";
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(name), error);
  return (error ? fs::absolute(name).lexically_normal() : whole) / "";
}

bool is_begun(const std::string& out, bool force) {
  return !force && !out.empty() && !models::list_checkpoints(out).empty();
}

void refuse_foreign_files(const std::string& run) {
  if (is_our_run(run)) return;
  for (const io::FolderEntry& entry : io::entries(run))
    if (is_log(entry.name))
      fail_usage("'{}' is not from vfm-train and would be replaced; choose another folder (-o)",
                 io::join_path(run, entry.name));
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
    io::remove_file(path);
}

void clear_run(const std::string& run) {
  constexpr std::string_view kRecipe = "recipe.yaml";
  const auto remove_logs = [&](const std::string& folder) {
    for (const io::FolderEntry& entry : io::entries(folder))
      if (is_log(entry.name) && entry.name != kRecipe)
        io::remove_file(io::join_path(folder, entry.name));
  };
  remove_logs(run);
  if (io::is_bucket(run)) remove_logs(io::local_folder_of(run));
  const std::string checkpoints = io::join_path(run, "checkpoints");
  for (const io::FolderEntry& entry : io::entries(checkpoints)) {
    std::string name = entry.name;
    if (name.starts_with('.') && name.ends_with(".tmp")) name = name.substr(1, name.size() - 5);
    if (models::is_checkpoint_name(name))
      models::remove_checkpoint(io::join_path(checkpoints, entry.name));
  }
  // Last: what a kill leaves before must still be known as ours.
  io::remove_file(io::join_path(run, kRecipe));
}

}  // namespace vfm::train
