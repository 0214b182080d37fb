// What other programs know of the networks of an architecture: the classes and fields of their
// configurations, the names of their tensors, and the pipelines that the network is a part of. All
// of it is data and small functions without JSON. Folders, adapters, export and messages read it
// (models/folder/).
//
// "Here" are the names that parameters have in this program. "There" are the names in files of
// other programs.
// Thread-safety: constants and pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/dit/network.h"
#include "models/dit/pipeline_form.h"

namespace vfm::models {

class ConfigFields;  // models/dit/architecture.h

/// A part of a tensor's name. Parts that stand between dots include the dots.
struct Renaming {
  std::string_view there, here;
};

/// A tensor there whose rows are those of several tensors here, in this order and of any sizes. It
/// is split at loading and fused for export. Unused places of `here` are empty.
struct StackedRows {
  std::string_view there;
  std::array<std::string_view, 4> here;
};

/// A tensor here that has as many values there in another shape. A part of its name, and the shape
/// there.
struct ReshapedTensor {
  std::string_view here;
  std::vector<std::int64_t> (*there)(const NetworkConfig& config);
};

/// How files name and store the tensors of a network.
struct TensorForm {
  /// A part of a name that a file of this form has, and no other file.
  std::string_view sign;
  std::string_view prefix = {};  ///< of all names there
  /// Applied in this order, wherever they occur, from there to here. From here to there they are
  /// applied in the opposite order. A test checks that both directions give back each name.
  std::span<const Renaming> renamings = {};
  /// What else is done, by names after the renamings.
  std::span<const StackedRows> stacks = {};
  std::span<const std::string_view> transposed = {};  ///< parts of names here, of matrices
  std::span<const ReshapedTensor> reshaped = {};

  bool only_renames() const { return stacks.empty() && transposed.empty() && reshaped.empty(); }
};

/// A further class with networks of the architecture, which is read but not written. `visit` shows
/// the fields under the names of its configuration.
struct ForeignClass {
  std::string_view name;
  void (*visit)(NetworkConfig& config, ConfigFields& fields);
};

/// A field of a configuration that no field of NetworkConfig stands for.
struct ForeignField {
  std::string_view name;
  std::string_view value;  ///< the default, as JSON
  /// The models that have another value. They are refused by this name. Empty: the value does not
  /// matter.
  std::string_view otherwise = {};
};

/// A model that has the class of an architecture, but is not supported. `name` is empty if there is
/// none; `sign` tells by what it was recognised.
struct OtherModel {
  std::string_view name;
  std::string sign;
};

/// Sizes of the tensors of a file, under their names here.
class TensorSizes {
 public:
  virtual ~TensorSizes() = default;
  virtual bool has(const std::string& name) const = 0;
  /// Throws Error{usage} if there is no such tensor or dimension, or the size is no size of a
  /// network.
  virtual int size(const std::string& name, std::size_t dim) const = 0;
  /// Returns the number of tensors `before`0`after`, `before`1`after`... without a gap.
  virtual int count(const std::string& before, const std::string& after) const = 0;
  /// Throws Error{usage} that says why the tensors are not a network.
  [[noreturn]] virtual void refuse(const std::string& why) const = 0;
};

struct ForeignNetwork {
  std::span<const ForeignClass> classes = {};
  std::span<const ForeignField> fields = {};
  std::span<const TensorForm> tensors = {};
  /// The form that export writes, one of `tensors`. Null: the names and shapes are those from here.
  const TensorForm* written = nullptr;
  /// Returns why the class cannot hold this network; empty if it can. Null: it can hold all.
  std::string (*why_not)(const NetworkConfig& config) = nullptr;
  /// Recognises models with this class that are not supported. Null: there are none.
  OtherModel (*other)(const NetworkConfig& config) = nullptr;
  /// Returns the configuration of a network whose tensors are in the first form and have no
  /// configuration. Null: there are no such files.
  NetworkConfig (*published)(const TensorSizes& sizes) = nullptr;
  const PipelineForm* pipeline = nullptr;  ///< null: diffusers has no pipeline with the network
};

/// Returns the form of a file with these names; null if the names are those from here.
const TensorForm* form_of(std::span<const TensorForm> forms, std::span<const std::string> names);
/// Returns a name from there as it is here, without the form's prefix if it has that.
std::string name_here(const TensorForm& form, std::string name);
/// Returns a name from here as it is there, with the form's prefix.
std::string name_there(const TensorForm& form, std::string name);

}  // namespace vfm::models
