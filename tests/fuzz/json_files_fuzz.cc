// The JSON files of users, on 8 ranks: collectives, process groups, models of machines, indexes of plan
// books. The first byte chooses the reader.
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "ir/collective_json.h"
#include "ir/machine_model.h"
#include "runtime/plan_book.h"
#include "synth/groups/groups.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {
namespace {

constexpr int32_t kRanks = 8;

void ReadCollective(std::string_view text) {
  const StatusOr<Collective> collective = ReadCollectiveFile(FileWith(text), kRanks);
  if (!collective.ok()) return CheckRefusal(collective.status());
  std::ostringstream out;
  JsonWriter writer(out);
  WriteCollectiveJson(*collective, writer);
  writer.Finish();
  const StatusOr<JsonDocument> document = JsonDocument::Parse(out.str(), "written.json");
  XCCL_CHECK(document.ok());
  const StatusOr<Collective> again = ReadCollectiveJson(document->root(), kRanks);
  XCCL_CHECK(again.ok());
  XCCL_CHECK(again->spec() == collective->spec());
}

void ReadMachine(std::string_view text) {
  const StatusOr<MachineModel> machine = ReadMachineModel(FileWith(text));
  if (!machine.ok()) return CheckRefusal(machine.status());
  const std::string& path = FileWith("");
  XCCL_CHECK(WriteMachineModel(*machine, path).ok());
  XCCL_CHECK(ReadMachineModel(path).value() == *machine);
}

void ReadBook(std::string_view text) {
  const std::string directory = FileWith("") + ".book";
  std::filesystem::create_directories(directory);
  std::filesystem::rename(FileWith(text), directory + "/index.json");
  const StatusOr<PlanBook> book = ReadPlanBook(directory);
  if (!book.ok()) return CheckRefusal(book.status());
  XCCL_CHECK(WritePlanBook(*book).ok());
  XCCL_CHECK(ReadPlanBook(directory).value() == *book);
}

}  // namespace

void FuzzOne(std::string_view text) {
  if (text.empty()) return;
  const char reader = text[0];
  text.remove_prefix(1);
  if (reader == 'c') return ReadCollective(text);
  if (reader == 'm') return ReadMachine(text);
  if (reader == 'b') return ReadBook(text);
  const StatusOr<GroupRequest> groups = ReadGroups(FileWith(text), kRanks);
  if (!groups.ok()) CheckRefusal(groups.status());
}

}  // namespace xccl::testing
