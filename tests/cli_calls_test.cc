// Logs of a job's calls, planned and compared from outside.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

// The log of a rank of 4, with times: `us` a call.
std::string LogOf(int rank, int64_t us) {
  const std::string number = std::to_string(rank);
  const auto row = [&](const std::string& what, int64_t size, int64_t calls) {
    return "{\"collective\":\"" + what + "\",\"size_bytes\":" + std::to_string(size) +
           ",\"type\":\"float\",\"calls\":" + std::to_string(calls) + ",\"timed\":" + std::to_string(calls) +
           ",\"time_ps\":" + std::to_string(calls * us * 1'000'000) + "}";
  };
  return R"({"format":1,"call_log":"xccl","process":1,"rank":)" + number +
         R"(,"ranks":4,"communicators":[{"rank":)" + number + R"(,"ranks":4,"members":[0,1,2,3],"calls":[)" +
         row("allreduce", 1024, 10) + "," + row("allreduce", 1 << 20, 100) + "," + row("allgather", 4096, 5) +
         R"(]},{"rank":)" + std::to_string(rank / 2) +
         R"(,"ranks":2,"calls":[{"collective":"allreduce","size_bytes":64,"type":"float","calls":7,)"
         R"("timed":0,"time_ps":0}]}]})";
}

TEST_F(Cli, ABookForWhatAJobCalled) {
  for (int rank = 0; rank < 4; ++rank)
    Write("calls.json." + std::to_string(rank), LogOf(rank, 20 + 10 * rank));
  const Words words = {"book",         "full-mesh:4",  "--from-log", "calls.json.0", "calls.json.1",
                       "calls.json.2", "calls.json.3", "-o",         "book",         "--json"};
  const Json rows = Json::parse(Out(words));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["collective"], "allreduce") << "the most time comes first";
  EXPECT_EQ(rows[0]["min_bytes"], 1 << 20);
  EXPECT_EQ(rows[0]["calls"], 100);
  EXPECT_NEAR(rows[0]["measured_us"], 35, 1e-9);
  EXPECT_TRUE(rows[0]["nccl_us"].is_null());
  double share = 0;
  for (const Json& row : rows) {
    share += row["share"].get<double>();
    EXPECT_TRUE(row["kept"]);
    const std::string file = row["file"];
    EXPECT_NE(Out({"verify", "book/" + file}).find(": ok: "), std::string::npos);
    EXPECT_EQ(file.starts_with("2-ranks-"), row["ranks"] == 2) << file;
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(Run({"run", "book", "--sizes", "1KiB,1MiB", "--iters", "1"}).code, 0);
  const Said one = Run({"book", "full-mesh:4", "--from-log", "calls.json.0", "-o", "one"});
  EXPECT_EQ(one.code, 0);
  EXPECT_EQ(one.err, "warning: 2 ranks: the log does not say which of 4; the first are taken\n");
  EXPECT_NE(one.out.find("\nbook: one of "), std::string::npos) << one.out;
}

TEST_F(Cli, ABookForLinesOfNccl) {
  std::string log;
  for (int rank = 0; rank < 8; ++rank)
    for (int call = 0; call < 3; ++call)
      log += "[1," + std::to_string(rank) + "]<stdout>:gpu1:" + std::to_string(40 + rank) + ":9 [" +
             std::to_string(rank) + "] NCCL INFO AllReduce: opCount " + std::to_string(call) +
             " sendbuff 0x7f recvbuff 0x7f count 256 datatype 7 op 0 root 0 comm 0x5" + std::to_string(rank) +
             " [nranks=8] stream (nil)\n";
  Write("job.log", log);
  const Json rows = Json::parse(Out({"book", "dgx-a100", "--from-log", "job.log", "-o", "book", "--json"}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["calls"], 3);
  EXPECT_EQ(rows[0]["max_bytes"], 1024);
  EXPECT_GT(rows[0]["nccl_us"].get<double>(), 0);
  EXPECT_TRUE(rows[0]["measured_us"].is_null());
}

TEST_F(Cli, ComparesWithWhatAJobCalled) {
  Write("calls.json", LogOf(0, 20));
  const Words words = {"compare",   "full-mesh:4", "-c",     "allreduce",
                       "--engines", "ring",        "--with", "calls.json"};
  const std::string text = Out(words);
  EXPECT_NE(text.find(" measured: calls.json (a job, 100 calls) "), std::string::npos) << text;
  Words json = words;
  json.emplace_back("--json");
  std::vector<std::pair<int64_t, double>> measured;
  for (const Json& row : Json::parse(Out(json)))
    if (row["measured"]) measured.emplace_back(row["size_bytes"], row["time_us"]);
  EXPECT_EQ(measured, (std::vector<std::pair<int64_t, double>>{{1024, 20}, {1 << 20, 20}}))
      << "the job's sizes";
  Words sized = words;
  sized.insert(sized.end(), {"--sizes", "1KiB,4KiB"});
  EXPECT_NE(Out(sized).find("; 1 other size not compared\n"), std::string::npos);
  // The log has no times of two ranks, and does not say which they are.
  const Said two =
      Run({"compare", "full-mesh:2", "-c", "allreduce", "--engines", "ring", "--with", "calls.json"});
  EXPECT_NE(two.out.find("; without times: 64B (7 calls)\n"), std::string::npos) << two.out;
  ExpectWrong({{}, 1, "calls.json: no call of reduce of 4 ranks; expected one, as is compared"},
              Run({"compare", "full-mesh:4", "-c", "reduce", "-s", "1KiB", "--with", "calls.json"}));
  ExpectWrong({{}, 1, "calls.json: none of its sizes is compared; hint: leave out --sizes"},
              Run({"compare", "full-mesh:4", "-c", "allreduce", "-s", "3KiB", "--with", "calls.json"}));
}

TEST_F(Cli, LogsThatHaveNoCallsAreRefused) {
  Write("calls.json", R"({"format":1,"call_log":"xccl","process":1,"communicators":[]})");
  Write("notes", "my notes\n");
  ExpectWrong({{}, 1, "the logs have no call; expected at least one"},
              Run({"book", "full-mesh:4", "--from-log", "calls.json", "-o", "book"}));
  ExpectWrong(
      {{},
       1,
       "notes: no calls; expected a log of XCCL_LOG_CALLS, of NCCL_DEBUG_SUBSYS=INIT,COLL or of NCCL's "
       "profiler"},
      Run({"book", "full-mesh:4", "--from-log", "notes", "-o", "book"}));
  EXPECT_EQ(Files(), (Words{"calls.json", "notes"})) << "no book is left behind";
}

}  // namespace
}  // namespace xccl
