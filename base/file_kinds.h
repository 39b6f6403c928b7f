// Tells the kinds of file that commands read or write apart by their contents, so that a reader which is
// given another command's file can name it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

enum class FileKind : uint8_t {
  kOther,  // any other text
  kTopology,
  kFabric,  // the wiring between hosts, as an operator's tools print it
  kPlan,
  kExpertPlan,  // of dispatch and combine
  kBookIndex,
  kMachineModel,
  kCollective,
  kGroups,
  kMscclXml,
  kMscclppPlan,
  kPage,
  kPicture,
  kTrace,
  kResults,  // what a command prints with --json
  kCsv,
  kCallLog,  // what a job did, by XCCL_LOG_CALLS
};
std::string_view ToString(FileKind kind);  // with an article: "a topology"; "" for kOther

// The kind of the text, from its first element of XML or HTML, its first telling key of JSON, the first word
// of Graphviz, or its first line of numbers with commas. Reads at most its first 64 KiB.
FileKind KindOfText(std::string_view text);

// Errors: kInvalidInput "FILE: this is a topology; expected a plan", with a hint where a command makes one
// from the other, if the text is of a known kind other than `expected`.
Status CheckKind(std::string_view text, std::string_view file, FileKind expected);
// Errors: the same for a path that is a plan book, which is a directory with an index.json.
Status CheckNoBook(const std::string& path, FileKind expected);
// The contents of a file of the expected kind, or of kOther. Errors: those of ReadFile, CheckKind and
// CheckNoBook.
StatusOr<std::string> ReadFileOfKind(const std::string& path, FileKind expected);

}  // namespace xccl
