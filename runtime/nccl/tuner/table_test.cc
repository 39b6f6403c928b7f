#include "runtime/nccl/tuner/table.h"

#include <gtest/gtest.h>

namespace xccl::nccl_tuner {
namespace {

TEST(Table, BothFormatsGiveTheSameRows) {
  const std::vector<Row> own =
      ReadTable(
          "xccl-tuner 1  # ours\n\n"
          "allreduce max_bytes=65536 nodes=1 registered=yes algorithm=tree protocol=simple channels=2\n"
          "  reduce_scatter min_bytes=65537 algorithm=ring protocol=ll128 ranks=32 pipe_ops=4 # last\n",
          "t")
          .value();
  const std::vector<Row> list = ReadTable(
                                    "# NVIDIA's\r\n"
                                    "allreduce,0,65536,tree,simple,2,1,-1,-1,1\r\n\r\n"
                                    "reducescatter, 65537 ,-1,ring,ll128,-1,-1,32,4\r\n",
                                    "t")
                                    .value();
  EXPECT_EQ(own, list);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[0].registered, true);
  EXPECT_EQ(own[1].pipe_ops, 4);
  EXPECT_EQ(ReadTable(WriteTable(own), "t").value(), own);
}

TEST(Table, ListsTakeWhatNvidiasExampleTakes) {
  // NCCL has no kernels for this row of NVIDIA's example.
  std::vector<std::string> notes;
  EXPECT_TRUE(ReadTable("broadcast,0,32768,tree,simple,-1,1,-1\n", "t", &notes).value().empty());
  EXPECT_EQ(notes,
            std::vector<std::string>{"t:1:19: broadcast by tree, simple; expected a combination that NCCL "
                                     "has; the row is left out"});
  EXPECT_EQ(ReadTable("allreduce,0,18446744073709551615,ring,ll,-1,-1,-1", "t").value()[0].max_bytes,
            std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(ReadTable("", "t").value().empty());
}

TEST(Table, RefusesWhatIsWrong) {
  const std::string fields =
      " fields; expected 8 to 10: collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks"
      "[,pipe_ops[,registered]]";
  const std::string own = "xccl-tuner 1\n";
  const std::pair<std::string, std::string> wrong[] = {
      {"# x\nallreduce,0,1,ring\n", "t:2:1: 4" + fields},
      {"allreduce,0,1,ring,ll,1,1,1,1,1,1\n", "t:1:1: 11" + fields},
      {"allreduced,0,1,ring,ll,1,1,1", "t:1:1: no collective 'allreduced'; did you mean 'allreduce'?"},
      {"allreduce,0,1,rings,ll,1,1,1", "t:1:15: no algorithm 'rings'; did you mean 'ring'?"},
      {"allreduce,0,1,ring, ll12 ,1,1,1", "t:1:21: no protocol 'll12'; did you mean 'll128'?"},
      {"allreduce,-1,1,ring,ll,1,1,1",
       "t:1:11: min_bytes '-1'; expected a whole number from 0 to 9223372036854775807"},
      {"allreduce,0,1K,ring,ll,1,1,1",
       "t:1:13: max_bytes '1K'; expected a whole number from 0 to 18446744073709551615, or -1"},
      {"allreduce,2,1,ring,ll,1,1,1", "t:1:11: min_bytes 2; expected at most max_bytes, 1"},
      {"allreduce,0,1,ring,ll,0,1,1", "t:1:23: channels '0'; expected a whole number from 1 to 64, or -1"},
      {"allreduce,0,1,ring,ll,65,1,1", "t:1:23: channels '65'; expected a whole number from 1 to 64, or -1"},
      {"allreduce,0,1,ring,ll,1,,1", "t:1:25: nodes ''; expected a whole number from 1 to 2147483647, or -1"},
      {"allreduce,0,1,ring,ll,1,1,1,1,2", "t:1:31: registered '2'; expected 0, 1 or -1"},
      {"xccl-tuner 2\n", "t:1:12: another version of the format; expected 'xccl-tuner 1'"},
      {own + "allreduce ring", "t:2:11: 'ring'; expected key=value"},
      {"\xEF\xBB\xBF" + own + "allreduce ring", "t:2:11: 'ring'; expected key=value"},
      {own + "allreduce protocols=ll", "t:2:11: no key 'protocols'; did you mean 'protocol'?"},
      {own + "allreduce protocol=ll protocol=ll", "t:2:23: a second protocol; expected one"},
      {own + "allreduce protocol=ll", "t:2:1: no algorithm; expected algorithm=ring, for example"},
      {own + "allreduce algorithm=ring", "t:2:1: no protocol; expected protocol=ll, ll128 or simple"},
      {own + "allreduce ranks=-1", "t:2:11: ranks '-1'; expected a whole number from 1 to 2147483647"},
      {own + "allreduce registered=1", "t:2:11: registered '1'; expected yes or no"},
      {own + "broadcast algorithm=tree protocol=ll",
       "t:2:11: broadcast by tree, ll; expected a combination that NCCL has"},
      {own + "allreduce algorithm=ring protocol=ll chunk_bytes=4096",
       "t:2:38: chunk_bytes; expected with protocol=simple only"},
      {own + "allreduce algorithm=ring protocol=simple chunk_bytes=5000",
       "t:2:42: chunk_bytes 5000; expected a multiple of 4096"},
      {own + "allreduce algorithm=ring protocol=simple chunk_bytes=4096 pipe_ops=1",
       "t:2:42: chunk_bytes with pipe_ops or registered; expected without, as NCCL asks for chunks without "
       "saying these"},
  };
  for (const auto& [text, message] : wrong) EXPECT_EQ(ReadTable(text, "t").status(), InvalidInput(message));
}

TEST(Table, TakesSoManyRows) {
  std::string text;
  for (size_t i = 0; i < kMaxRows; ++i) text += "allreduce,0,1,ring,ll,1,1,1\n";
  EXPECT_EQ(ReadTable(text, "t").value().size(), kMaxRows);
  text += "allreduce,0,1,ring,ll,1,1,1\n";
  EXPECT_EQ(ReadTable(text, "t").status(), InvalidInput("t:4097:1: one more row; expected at most 4096"));
}

}  // namespace
}  // namespace xccl::nccl_tuner
