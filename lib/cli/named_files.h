// Checks the names in options and arguments: folders and files of this machine, and where allowed
// videos with an address.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace vfm::cli {

/// Throws Error{usage} for a folder or file whose name is not UTF-8, since records name it, and for
/// an address (base/address.h) wherever a value is not text, as by default. Call it when the
/// command line is parsed. Opens nothing.
///
/// The kind of a value follows from the word that help shows for it, or from an argument's name:
/// TEXT, PROMPT, EXPRESSION, NAME and URL name no file; with TEXT|@FILE only the part after @ does;
/// VIDEO may be the address of one.
void check_named_files(const CLI::App& app);

}  // namespace vfm::cli
