// What options and arguments name: folders and files of this machine, and where it says so videos
// that have an address.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace vfm::cli {

/// Throws Error{usage} for a folder or file whose name is no UTF-8, as records name it, and for an
/// address (base/address.h) wherever a value is no text: so an option is asked that says nothing.
/// Call it when the command line is parsed. Opens nothing.
///
/// What a value is follows from the word that help shows for it, or from an argument's name: TEXT,
/// PROMPT, EXPRESSION, NAME, NAME=PROMPT and URL name no file; of TEXT|@FILE only what follows the
/// @; VIDEO may be the address of one.
void check_named_files(const CLI::App& app);

}  // namespace vfm::cli
