#include "runtime/plan_book.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "base/files.h"

namespace {
size_t allocations = 0;
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }

namespace xccl {
namespace {

std::string NewDirectory(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  mkdir(path.c_str(), 0700);
  return path;
}

PlanBookEntry Entry(std::string file, CollectiveKind kind, int64_t low, std::optional<int64_t> high) {
  PlanBookEntry entry;
  entry.file = std::move(file);
  entry.collective = kind;
  entry.ranks = 8;
  entry.min_bytes = low;
  entry.max_bytes = high;
  return entry;
}

PlanBook Sample(const std::string& directory) {
  PlanBook book;
  book.directory = directory;
  book.entries = {Entry("small.plan.json", CollectiveKind::kAllreduce, 0, 4096),
                  Entry("large.plan.json", CollectiveKind::kAllreduce, 4097, std::nullopt),
                  Entry("fp.plan.json", CollectiveKind::kAllgather, 0, std::nullopt),
                  Entry("bcast.plan.json", CollectiveKind::kBroadcast, 0, std::nullopt)};
  book.entries[2].types = TypeClass::kFloating;
  book.entries[2].in_place = InPlaceMode::kOnly;
  book.entries[3].root = Rank(2);
  book.entries[3].kernel = "bcast.cu";
  book.entries[3].cubins = {
      {"bcast.sm_90.float.sum.cubin", 90, DataType::kFloat, ReduceOp::kSum, 0x0123456789abcdef},
      {"bcast.sm_100.f8e4m3.avg.cubin", 100, DataType::kFp8E4m3, ReduceOp::kAvg, 1}};
  return book;
}

TEST(PlanBook, ReadsBackWhatItWrites) {
  const PlanBook book = Sample(NewDirectory("book"));
  EXPECT_FALSE(IsPlanBook(book.directory + "/nowhere"));
  ASSERT_EQ(WritePlanBook(book), OkStatus());
  EXPECT_TRUE(IsPlanBook(book.directory));
  const StatusOr<PlanBook> read = ReadPlanBook(book.directory);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, book);
}

TEST(PlanBook, SelectsTheFirstThatServes) {
  const PlanBook book = Sample("book");
  struct Case {
    PlanQuery query;
    int expected;  // -1: none
  };
  const PlanQuery base{CollectiveKind::kAllreduce, 8, std::nullopt, 4096, DataType::kFloat, false};
  std::vector<Case> cases(8, {base, 0});
  cases[1].query.size_bytes = 4097, cases[1].expected = 1;
  cases[2].query.ranks = 4, cases[2].expected = -1;
  cases[3].query.collective = CollectiveKind::kAllgather, cases[3].expected = -1;  // not in place
  cases[4].query = cases[3].query, cases[4].query.in_place = true, cases[4].expected = 2;
  cases[5].query = cases[4].query, cases[5].query.type = DataType::kInt32, cases[5].expected = -1;
  cases[6].query.collective = CollectiveKind::kBroadcast, cases[6].expected = -1;  // no root
  cases[7].query = cases[6].query, cases[7].query.root = Rank(2), cases[7].expected = 3;
  for (size_t i = 0; i < cases.size(); ++i) {
    const StatusOr<size_t> found = SelectPlan(book, cases[i].query);
    EXPECT_EQ(found.ok() ? static_cast<int>(*found) : -1, cases[i].expected) << i;
  }
  EXPECT_EQ(
      SelectPlan(book, cases[5].query).status().message(),
      "book: no plan for allgather of 4096 bytes of int32 on 8 ranks in place; the book has 8 ranks 0 bytes "
      "and more floating types in place");
  PlanQuery query = base;
  query.collective = CollectiveKind::kReduce;
  query.root = Rank(1);
  EXPECT_EQ(
      SelectPlan(book, query).status().message(),
      "book: no plan for reduce of 4096 bytes of float on 8 ranks from root 1 out of place; the book has "
      "nothing");
}

// An entry that is passed over once had its text made: 200 of them cost a call 38 us.
TEST(PlanBook, FindingAPlanAllocatesNothing) {
  PlanBook book;
  for (int i = 0; i < 200; ++i) book.entries.push_back(Entry("a", CollectiveKind::kAllreduce, i, i));
  const PlanQuery query{CollectiveKind::kAllreduce, 8, std::nullopt, 199, DataType::kFloat, false};
  const size_t before = allocations;
  const StatusOr<size_t> found = SelectPlan(book, query);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(found.value(), 199U);
}

TEST(PlanBook, RanksThatDifferInBeingInPlaceTakeTheSamePlan) {
  PlanBook book;
  for (const InPlaceMode mode : {InPlaceMode::kNever, InPlaceMode::kOnly, InPlaceMode::kBoth}) {
    book.entries.push_back(Entry("a", CollectiveKind::kAllreduce, 0, std::nullopt));
    book.entries.back().in_place = mode;
  }
  PlanQuery query{CollectiveKind::kAllreduce, 8, std::nullopt, 1, DataType::kFloat, std::nullopt};
  EXPECT_EQ(FindPlan(book, query), 2U);
  book.entries.pop_back();
  EXPECT_EQ(FindPlan(book, query), 0U);
}

TEST(PlanBook, SaysWhatIsWrongWithAnIndex) {
  struct Case {
    const char* text;
    const char* expected;  // after the file's name
  };
  const std::string directory = NewDirectory("bad-book");
  for (const Case& c :
       {Case{R"({"format":1,"plans":[{"file":"a/b","collective":"allreduce","ranks":8}]})",
             ": plans[0].file: 'a/b'; expected a file in the book's own directory"},
        Case{R"({"format":1,"plans":[{"file":"a","collective":"allreduce","ranks":8,"types":"float"}]})",
             ": plans[0].types: 'float'; expected any, floating, integer; did you mean "
             "'floating'?"},
        Case{R"({"format":1,"plans":[{"file":"a","collective":"allreduced","ranks":8}]})",
             ": plans[0].collective: no collective 'allreduced'; did you mean 'allreduce'?"},
        Case{R"({"format":1,"plans":[{"file":"a","collective":"broadcast","ranks":8}]})",
             ": plans[0]: no root of broadcast; expected \"root\""},
        Case{R"({"format":1,"plans":[{"file":"a","collective":"allreduce","ranks":8,"root":0}]})",
             ": plans[0]: a root of allreduce; expected none"},
        Case{R"({"format":1,"plans":[{"file":"a","collective":"allreduce","ranks":8,"cubins":[]}]})",
             ": plans[0].cubins: cubins without a kernel; expected the source that they are made from"},
        Case{R"({"format":1,"plans":[{"file":"a","collective":"allreduce","ranks":8,"kernel":"a.cu","cubins":[
                 {"file":"a.cubin","arch":90,"type":"float","op":"sum","made_from":"12"}]}]})",
             ": plans[0].cubins[0].made_from: '12'; expected 16 hexadecimal digits"}}) {
    ASSERT_EQ(WriteFileAtomically(directory + "/index.json", c.text), OkStatus());
    EXPECT_EQ(ReadPlanBook(directory).status().message(), directory + "/index.json" + c.expected);
  }
}

TEST(PlanBook, AnIndexThatDoesNotEndIsRefused) {
  const std::string pipe = NewDirectory("pipe-book") + "/index.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadPlanBook(testing::TempDir() + "/pipe-book").status(),
            InvalidInput(pipe + ": a pipe; expected a regular file; hint: /dev/stdin < " + pipe));
  const std::string zero = NewDirectory("zero-book") + "/index.json";
  ASSERT_EQ(symlink("/dev/zero", zero.c_str()), 0);
  EXPECT_EQ(ReadPlanBook(testing::TempDir() + "/zero-book").status(),
            InvalidInput(zero + ": a device; expected a regular file"));
}

TEST(PlanBook, KernelsThatOthersMayWriteAreRefused) {
  const std::string directory = NewDirectory("own-book");
  PlanBook book;
  book.directory = directory;
  book.entries = {Entry("a.plan.json", CollectiveKind::kAllreduce, 0, {})};
  book.entries[0].kernel = "a.cu";
  book.entries[0].cubins = {{"a.cubin", 90, DataType::kFloat, ReduceOp::kSum, 1}};
  const std::string files[] = {directory + "/index.json", directory + "/a.plan.json", directory + "/a.cu",
                               directory + "/a.cubin", directory};
  for (size_t i = 0; i < 4; ++i) ASSERT_EQ(WriteFileAtomically(files[i], "text of " + files[i]), OkStatus());
  EXPECT_EQ(ReadKernel(book, book.entries[0]).value(), "text of " + directory + "/a.cu");
  for (const std::string& file : files) {
    struct stat before = {};
    ASSERT_EQ(stat(file.c_str(), &before), 0);
    ASSERT_EQ(chmod(file.c_str(), 0777), 0);
    EXPECT_EQ(ReadKernel(book, book.entries[0]).status(),
              InvalidInput(file +
                           ": all users may write it; expected that only you and root can change a "
                           "program; hint: chmod go-w " +
                           file));
    ASSERT_EQ(chmod(file.c_str(), before.st_mode & 07777U), 0);
  }
  ASSERT_EQ(unlink((directory + "/a.cubin").c_str()), 0);  // NVRTC compiles the source instead
  EXPECT_TRUE(ReadKernel(book, book.entries[0]).ok());
}

TEST(PlanBook, FoldersAreNeverWritableByAll) {
  const std::string directory = testing::TempDir() + "/open/book";
  const mode_t before = umask(0);
  EXPECT_EQ(MakePlanBookDirectory(directory), OkStatus());
  umask(before);
  struct stat found = {};
  ASSERT_EQ(stat(directory.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0775u);
}

}  // namespace
}  // namespace xccl
