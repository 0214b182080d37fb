// SPDX-License-Identifier: Apache-2.0
#include "io/remote/msc.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMostMscText = std::uint64_t{4} << 20;
constexpr std::size_t kMostMscNodes = 100'000;  // aliases can make a small text mean a huge tree
constexpr int kDeepestMsc = 20;

/// Returns the same values as JSON, with all scalars as text.
Json json_of_yaml(const YAML::Node& node, const std::string& file, std::size_t& left, int depth) {
  if (left-- == 0 || depth > kDeepestMsc) fail_usage("'{}' is too large for a configuration", file);
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& each : node) {
      if (!each.first.IsScalar()) fail_usage("'{}' has a name that is no text", file);
      object[each.first.Scalar()] = json_of_yaml(each.second, file, left, depth + 1);
    }
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& each : node)
      list.push_back(json_of_yaml(each, file, left, depth + 1));
    return list;
  }
  return node.IsScalar() ? Json(node.Scalar()) : Json();
}

Json parse_msc(std::string_view text, const std::string& file) {
  if (file.ends_with(".json"))
    return as_usage([&] { return parse_json(text, fmt::format("'{}'", file)); });
  try {
    std::size_t left = kMostMscNodes;
    return json_of_yaml(YAML::Load(std::string(text)), file, left, 0);
  } catch (const YAML::Exception& error) {
    fail_usage("'{}' is not YAML: line {}: {}", file, error.mark.line + 1, error.msg);
  }
}

/// A setting's text with the variables of the environment in it.
std::string with_variables(const std::string& text, const std::string& file) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool braced = text.compare(i, 2, "${") == 0;
    const std::size_t begin = i + (braced ? 2 : 1);
    std::size_t end = begin;
    const auto is_name = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (end < text.size() && is_name(text[end]))
      ++end;
    const bool named =
        text[i] == '$' && end > begin && (!braced || (end < text.size() && text[end] == '}'));
    if (!named) {
      out += text[i++];
      continue;
    }
    const std::string name = text.substr(begin, end - begin);
    const auto value = variable(name.c_str());
    if (!value) fail_usage("'{}' names the variable {}, which is not set", file, name);
    out += *value;
    i = end + (braced ? 1 : 0);
  }
  return out;
}

/// The settings of one profile, by paths such as "storage_provider/options/base_path".
class MscSettings {
 public:
  MscSettings(const Json& profile, std::string file, std::string name)
      : profile_(profile), file_(std::move(file)), name_(std::move(name)) {}

  const Json* find(const std::string& path) const {
    const Json* at = &profile_;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      if (!at->is_object()) return nullptr;
      const auto found = at->find(path.substr(begin, end - begin));
      if (found == at->end()) return nullptr;
      at = &*found;
      begin = end + 1;
    }
    return at->is_null() ? nullptr : at;
  }
  std::string text(const std::string& path) const {
    const Json* const found = find(path);
    if (!found) return "";
    if (found->is_structured()) refuse(path, "is no text");
    return with_variables(found->is_string() ? found->get<std::string>() : found->dump(), file_);
  }
  [[noreturn]] void refuse(const std::string& path, std::string_view why) const {
    fail_usage("profile '{}' of '{}': {} {}", name_, file_, path, why);
  }

 private:
  const Json& profile_;
  std::string file_, name_;
};

bool is_no(const std::string& text) {
  return text == "false" || text == "False" || text == "no" || text == "off" || text == "0";
}

std::shared_ptr<CredentialSource> msc_credentials(const MscSettings& settings) {
  const std::string type = settings.text("credentials_provider/type");
  const std::string options = "credentials_provider/options/";
  if (type == "S3Credentials") {
    const Credentials keys{settings.text(options + "access_key"),
                           settings.text(options + "secret_key"),
                           settings.text(options + "session_token"), 0};
    if (keys.key_id.empty() || keys.secret.empty())
      settings.refuse("credentials_provider", "has no access_key or no secret_key");
    return std::make_shared<CredentialSource>([keys] { return keys; });
  }
  if (type == "FileBasedCredentials") {
    const std::string path = settings.text(options + "credential_file_path");
    if (path.empty()) settings.refuse("credentials_provider", "has no credential_file_path");
    return std::make_shared<CredentialSource>([path] { return credentials_of_file(path); });
  }
  settings.refuse("credentials_provider",
                  "has a type that vfm does not know (it knows S3Credentials and "
                  "FileBasedCredentials)");
}

MscProfile read_msc_profile(const MscSettings& settings) {
  const std::string provider = settings.text("storage_provider/type");
  if (provider.empty()) settings.refuse("storage_provider/type", "is missing");
  if (provider != "s3" && provider != "s8k" && provider != "gcs_s3")
    settings.refuse("storage_provider/type",
                    "is '" + provider + "', and vfm reads and writes s3, s8k and gcs_s3 only");
  const std::string options = "storage_provider/options/";
  MscProfile profile;
  profile.base_path = settings.text(options + "base_path");
  while (profile.base_path.ends_with('/'))
    profile.base_path.pop_back();
  while (profile.base_path.starts_with('/'))
    profile.base_path.erase(0, 1);
  S3Place& place = profile.place;
  place = place_by_environment(settings.text(options + "profile_name"));
  if (const auto region = settings.text(options + "region_name"); !region.empty())
    place.region = region;
  if (const auto endpoint = settings.text(options + "endpoint_url"); !endpoint.empty())
    place.endpoint = endpoint;
  else if (provider == "gcs_s3" && place.endpoint.empty())
    place.endpoint = "https://storage.googleapis.com";
  const std::string style = settings.text(options + "s3/addressing_style");
  if (style == "path" || style == "virtual") place.path_style = style == "path";
  const std::string verify = settings.text(options + "verify");
  if (is_no(verify))
    settings.refuse(options + "verify",
                    "is false, but vfm always verifies certificates; give the path of the file "
                    "with the certificate to trust");
  if (!verify.empty() && verify != "true" && verify != "True") place.ca_file = verify;
  place.checksums = provider != "gcs_s3";
  if (settings.find("credentials_provider")) place.credentials = msc_credentials(settings);
  if (settings.text(options + "signature_version") == "UNSIGNED") place.credentials = nullptr;
  if (settings.find("metadata_provider")) {
    if (settings.text("metadata_provider/type") != "manifest")
      settings.refuse("metadata_provider/type", "is not 'manifest', the only one that vfm knows");
    if (profile.base_path.empty())
      settings.refuse("metadata_provider", "needs a base_path, with the bucket");
    profile.has_manifest = true;
    profile.manifest = settings.text("metadata_provider/options/manifest_path");
  }
  return profile;
}

/// Adds the profiles of the files that `config` includes.
void add_included(Json& config, const std::string& file) {
  const auto included = config.find("include");
  if (included == config.end()) return;
  if (!included->is_array()) fail_usage("'{}': include is no list", file);
  for (const Json& each : *included) {
    if (!each.is_string()) fail_usage("'{}': include names no file", file);
    const auto name = each.get<std::string>();
    const std::string path = name.starts_with('/') ? name : join_path(dir_name(file), name);
    const Json other = parse_msc(as_usage([&] { return read_file(path, kMostMscText); }), path);
    if (!other.is_object() || !other.contains("profiles")) continue;
    if (!other["profiles"].is_object()) fail_usage("'{}': profiles is no map", path);
    for (const auto& [profile, value] : other["profiles"].items())
      if (!config["profiles"].contains(profile)) config["profiles"][profile] = value;
  }
}

std::string msc_file() {
  std::vector<std::string> folders, files;
  if (const auto named = variable("MSC_CONFIG")) return *named;
  const auto both = [&](const std::string& begin) {
    for (const char* end : {".yaml", ".json"})
      files.push_back(begin + end);
  };
  if (const auto home = variable("XDG_CONFIG_HOME")) both(*home + "/msc/config");
  if (const auto home = variable("HOME")) {
    both(*home + "/.msc_config");
    both(*home + "/.config/msc/config");
  }
  const std::string all = variable("XDG_CONFIG_DIRS").value_or("/etc/xdg");
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    if (end > begin) both(all.substr(begin, end - begin) + "/msc/config");
    begin = end + 1;
  }
  both("/etc/msc_config");
  for (const std::string& file : files)
    if (file_exists(file)) return file;
  return "";
}

}  // namespace

MscProfile msc_profile_of(std::string_view text, const std::string& file, const std::string& name) {
  Json config = parse_msc(text, file);
  if (!config.is_object()) fail_usage("'{}' is no configuration of MSC", file);
  add_included(config, file);
  const auto profiles = config.find("profiles");
  if (profiles == config.end() || !profiles->is_object() || !profiles->contains(name))
    fail_usage("'{}' has no profile '{}'", file, name);
  return read_msc_profile({(*profiles)[name], file, name});
}

MscProfile msc_profile(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;  // used until the process ends
  static auto& known = *new std::map<std::string, MscProfile>;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  const std::string file = msc_file();
  if (file.empty())
    fail_usage(
        "'msc://{}' needs a configuration of MSC: write ~/.msc_config.yaml, or set "
        "MSC_CONFIG (vfm-storage(7))",
        name);
  const std::string text = as_usage([&] { return read_file(file, kMostMscText); });
  return known.emplace(name, msc_profile_of(text, file, name)).first->second;
}

std::vector<std::string> msc_manifest_parts(std::string_view text, const std::string& what) {
  const Json index = parse_json(text, what);
  if (!index.is_object() || get_string(index, "version").value_or("") != "1")
    fail("{} is no manifest of MSC of version 1", what);
  const auto parts = index.find("parts");
  if (parts == index.end() || !parts->is_array()) fail("{} has no list 'parts'", what);
  std::vector<std::string> paths;
  for (const Json& part : *parts) {
    paths.push_back(need_string(part, "path", what));
    if (!paths.back().ends_with(".jsonl"))
      fail("{} names '{}', and vfm reads parts in JSON Lines (.jsonl) only", what, paths.back());
  }
  return paths;
}

MscRow msc_manifest_row(std::string_view line, const std::string& what) {
  const Json json = parse_json(line, what);
  if (!json.is_object()) fail("{} is not a JSON object", what);
  MscRow row;
  row.key = need_string(json, "key", what);
  row.physical = get_string(json, "physical_path").value_or(row.key);
  const std::int64_t bytes = need_integer(json, "size_bytes", what);
  if (bytes < 0 || row.key.empty()) fail("{} has no key, or a size below 0", what);
  row.bytes = static_cast<std::uint64_t>(bytes);
  return row;
}

}  // namespace vfm::io
