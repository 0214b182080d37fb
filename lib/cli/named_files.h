// Checks the names of files in options and arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace vfm::cli {

/// Throws Error{usage} for a file name that is not UTF-8, and for an address (base/address.h) in
/// place of a file. Call it after the command line is parsed.
///
/// The placeholder of a value in --help tells whether the value is a file. TEXT, PROMPT,
/// EXPRESSION, NAME and URL do not stand for files. In TEXT|@FILE only the part after @ is a file.
/// VIDEO may be an address. All other placeholders stand for files.
void check_named_files(const CLI::App& app);

}  // namespace vfm::cli
