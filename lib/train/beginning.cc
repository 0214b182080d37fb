// SPDX-License-Identifier: Apache-2.0
#include "train/beginning.h"

#include <vector>

#include "base/error.h"
#include "models/checkpoint.h"
#include "models/dit_json.h"
#include "models/initial_model.h"
#include "models/load_tensors.h"
#include "train/recipe_file.h"

namespace vfm::train {

models::DitConfig initial_config(const std::string& init, const std::string& out, bool force) {
  const bool begun = !force && !out.empty() && !models::list_checkpoints(out).empty();
  return models::dit_config_from_json(models::InitialModel(begun ? out : init).config());
}

void check_continues(const Json& train, const RunOptions& options, const Recipe& recipe,
                     const std::string& data_fingerprint) {
  const std::vector<std::string> changes = changed_settings(train["recipe"], recipe);
  if (!changes.empty())
    fail_usage(
        "'{}' was begun with another recipe: {}; restore it, choose another --out, or begin "
        "again with --force",
        options.out, fmt::join(changes, "; "));
  if (get_string(train, "data_fingerprint") != data_fingerprint)
    fail_usage(
        "'{}' was begun with other data than '{}'; choose another --out, or begin again with "
        "--force",
        options.out, options.data);
  const std::string from = get_string(train.value("init", Json()), "path").value_or("");
  if (options.init != from)
    fail_usage(
        "'{}' was begun from {}, not from {}; give the same --init, choose another --out, or "
        "begin again with --force",
        options.out, from.empty() ? "new weights" : "'" + from + "'",
        options.init.empty() ? "new weights" : "'" + options.init + "'");
}

Json load_initial(const std::string& init, const nn::ParameterList& parameters) {
  models::InitialModel model(init);
  std::vector<models::TensorTarget> targets;
  for (nn::Parameter* parameter : parameters)
    targets.push_back(models::value_target(*parameter));
  try {
    models::load_tensors(model.weights(), targets);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.what(), ErrorKind::usage);
  }
  return {{"path", init}, {"hash", model.hash()}};
}

}  // namespace vfm::train
