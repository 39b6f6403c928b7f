#include "runtime/c_api/testing/books.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "ir/lower/testing/checked.h"
#include "ir/plan.h"
#include "ir/testing/programs.h"
#include "runtime/plan_book.h"

namespace xccl {

std::string MakeBook(const std::string& name, int32_t ranks, std::initializer_list<CollectiveKind> kinds) {
  PlanBook book;
  book.directory = testing::TempDir() + "/" + name;
  mkdir(book.directory.c_str(), 0700);
  for (CollectiveKind kind : kinds) {
    const Topology topology = FullMesh(ranks);
    const Collective collective = MakeCollective(kind, ranks);
    const Schedule schedule = *HandSchedule(Algorithm::kDirect, collective, topology);
    const Program program = LowerChecked(schedule, collective, topology).value();
    PlanBookEntry entry;
    entry.file = std::string(ToString(kind)) + ".plan.json";
    entry.collective = kind;
    entry.ranks = ranks;
    entry.root = collective.spec().root;
    entry.in_place = program.in_place ? InPlaceMode::kBoth : InPlaceMode::kNever;
    EXPECT_EQ(WritePlan(Plan{topology, collective, schedule, LoweredProgram{collective, program}, {}},
                        book.PathOf(entry)),
              OkStatus());
    book.entries.push_back(entry);
  }
  EXPECT_EQ(WritePlanBook(book), OkStatus());
  return book.directory;
}

}  // namespace xccl
