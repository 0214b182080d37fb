// A pipeline of diffusers: model_index.json maps the name of each part to [library, class], and
// there is a folder of that name for each.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "models/folder/hf_folder.h"
#include "models/folder/model_layout.h"

namespace vfm::models {
namespace {

constexpr const char* kIndex = "model_index.json";
constexpr const char* kBoundary = "boundary_ratio";

class Pipeline final : public ModelLayout {
 public:
  explicit Pipeline(const std::string& path)
      : ModelLayout(path), index_(read_config(path, kIndex)) {}

  bool is_pipeline() const override { return true; }
  std::string type() const override {
    const auto found = index_.find("_class_name");
    return found != index_.end() && found->is_string() ? found->get<std::string>() : "";
  }

  bool has(const std::string& part) const override {
    const auto found = index_.find(part);
    // A part that was left out is [null, null].
    return found != index_.end() && found->is_array() && found->size() == 2 &&
           (*found)[1].is_string();
  }

  std::vector<std::string> networks() const override {
    if (!has(kSecondNetwork)) return {kFirstNetwork};
    if (!has(kFirstNetwork)) return {kSecondNetwork};
    return {kFirstNetwork, kSecondNetwork};
  }

  double boundary() const override {
    const std::string what = "'" + io::join_path(folder(), kIndex) + "'";
    const auto ratio = as_usage([&] { return get_number(index_, kBoundary); });
    if (!ratio || !(*ratio > 0 && *ratio < 1))
      fail_usage(
          "{} names two networks, and its {} is {}: must be between 0 and 1, the noise level from "
          "which on '{}' is used",
          what, kBoundary, ratio ? fmt::format("{}", *ratio) : "missing", kFirstNetwork);
    return *ratio;
  }

  std::string folder_of(const std::string& part) const override {
    if (!has(part)) fail_usage("the pipeline '{}' has no component '{}'", folder(), part);
    const std::string path = io::join_path(folder(), part);
    if (io::is_folder(path)) return path;
    std::error_code why;  // such as a loop of links
    if (!io::is_remote(path)) std::filesystem::is_directory(path, why);
    fail_usage("the pipeline '{}' is not complete: its folder '{}' is missing{}{}", folder(), part,
               why ? ": " : "", why ? why.message() : "");
  }

  bool flag(const std::string& name) const override {
    const auto found = index_.find(name);
    return found != index_.end() && found->is_boolean() && found->get<bool>();
  }

 private:
  Json index_;
};

}  // namespace

std::unique_ptr<ModelLayout> open_pipeline(const std::string& path) {
  if (!io::file_exists(io::join_path(path, kIndex))) return nullptr;
  return std::make_unique<Pipeline>(path);
}

}  // namespace vfm::models
