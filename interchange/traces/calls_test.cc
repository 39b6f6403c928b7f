#include "interchange/traces/calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace xccl {
namespace {

JobLogs Read(std::initializer_list<std::string> texts) {
  CallLogReader reader;
  int file = 0;
  for (const std::string& text : texts) {
    EXPECT_TRUE(IsCallLog(text)) << text;
    EXPECT_EQ(reader.Add(text, "log" + std::to_string(file++)), OkStatus());
  }
  return reader.Finish();
}

// "gpu1:41:0 rank 0 of 4: allreduce 1024 float sum: 2", a line for each row.
std::vector<std::string> Rows(const JobLogs& job) {
  std::vector<std::string> rows;
  for (const CallLog& log : job.logs)
    for (const LoggedCommunicator& on : log.communicators)
      for (const CountedCalls& row : on.rows) {
        std::string text = log.host + ":" + std::to_string(log.process);
        if (log.rank) text += " is " + std::to_string(log.rank->value);
        text += ", rank " + (on.rank ? std::to_string(on.rank->value) : "?") + " of ";
        if (on.members.empty()) text += std::to_string(on.ranks);
        for (size_t i = 0; i < on.members.size(); ++i)
          text += (i == 0 ? "" : "+") + std::to_string(on.members[i].value);
        text += ": " + std::string(ToString(row.collective)) + " " + std::to_string(row.size_bytes) + " " +
                std::string(ToString(row.type));
        if (row.op) text += " " + std::string(ToString(*row.op));
        if (row.root) text += " root " + std::to_string(row.root->value);
        text += ": " + std::to_string(row.calls);
        if (row.timed > 0) text += " in " + std::to_string(row.time_ps / 1'000'000) + " us";
        rows.push_back(text);
      }
  return rows;
}

std::string Call(const std::string& before, const std::string& name, int64_t count, int type,
                 const std::string& comm, int ranks, const std::string& behind = "") {
  return before + "NCCL INFO " + name + ": opCount 1f sendbuff 0x7f10 recvbuff 0x7f20 count " +
         std::to_string(count) + " datatype " + std::to_string(type) + " op 0 root 1 comm " + comm +
         " [nranks=" + std::to_string(ranks) + "] stream (nil)" + behind + "\n";
}

TEST(Calls, EveryNameAndItsSize) {
  const std::string on = "gpu1:41:43 [0] ";
  std::string text;
  for (const char* name : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AlltoAll",
                           "Gather", "Scatter", "Send", "Recv", "AllReduce", "NewCollective"})
    text += Call(on, name, 100, 7, "0xaa", 4);
  text += Call(on, "AllReduce", 0, 7, "0xaa", 4);  // nothing to do
  const std::string head = "gpu1:41, rank ? of 0+1+2+3: ";
  std::vector<std::string> expected;
  for (const char* row :
       {"allreduce 400 float sum: 2", "allgather 1600 float: 1", "reduce_scatter 1600 float sum: 1",
        "broadcast 400 float root 1: 1", "reduce 400 float sum root 1: 1", "alltoall 1600 float: 1",
        "gather 1600 float root 1: 1", "scatter 1600 float root 1: 1", "sendrecv 400 float: 1"})
    expected.push_back(head + row);
  EXPECT_EQ(Rows(Read({text})), expected);
}

TEST(Calls, PrefixesOfLaunchersAndClocks) {
  for (const char* before :
       {"gpu1:41:43 [2] ", "[1,0]<stdout>:gpu1:41:43 [2] ", "0: gpu1:41:43 [2] ",
        "(Worker pid=41, ip=10.0.0.6) gpu1:41:43 [2] ", "[2026-01-02 10:00:00] gpu1:41:43 [2] ",
        "2026-01-02T10:00:00.5Z gpu1:41:43 [2] ", "gpu1:41:43 [2] 1558545003174220 ",
        "[pod/worker-0/main] gpu1:41:43 [2] ", "gpu1:41:43 ", "[rank0]:gpu1:41:43 [2] "})
    EXPECT_EQ(Rows(Read({Call(before, "AllReduce", 100, 7, "0xaa", 2)})),
              std::vector<std::string>{"gpu1:41, rank ? of 0+1: allreduce 400 float sum: 1"})
        << before;
  // Without a writer, pointers alone tell communicators apart.
  EXPECT_EQ(
      Rows(Read({Call("[7] ", "AllReduce", 100, 7, "0xaa", 2) + Call("", "AllReduce", 1, 7, "0xab", 2)})),
      (std::vector<std::string>{":0, rank ? of 0+1: allreduce 400 float sum: 1",
                                ":0, rank ? of 0+1: allreduce 4 float sum: 1"}));
}

// Two groups of two ranks each beside the whole job; a later group has the pointer of an earlier one.
TEST(Calls, RanksAreThoseOfTheJob) {
  std::string text;
  const auto init = [&](int r, const std::string& comm, int rank, int ranks, const std::string& id) {
    const std::string on = "gpu1:" + std::to_string(40 + r) + ":50 [" + std::to_string(r) + "] ";
    for (const char* when : {" - Init START", " - Init COMPLETE"})
      text += on + "NCCL INFO ncclCommInitRank comm " + comm + " rank " + std::to_string(rank) + " nranks " +
              std::to_string(ranks) + " cudaDev 0 nvmlDev 0 busId 1a000 commId " + id + when + "\n";
    return on;
  };
  for (int r = 0; r < 4; ++r) {
    std::string on = init(r, "0xa" + std::to_string(r), r, 4, "0x11");
    text += Call(on, "AllReduce", 256, 9, "0xa" + std::to_string(r), 4);
    on = init(r, "0xb" + std::to_string(r), r / 2, 2, r % 2 == 0 ? "0x22" : "0x33");
    text += Call(on, "AllGather", 64, 9, "0xb" + std::to_string(r), 2);
    if (r < 2) {
      on = init(r, "0xb" + std::to_string(r), 1 - r, 2, "0x44");
      text += Call(on, "AllGather", 1, 9, "0xb" + std::to_string(r), 2);
    }
  }
  const std::vector<std::string> expected = {"gpu1:40 is 0, rank 0 of 0+1+2+3: allreduce 512 bfloat16 sum: 1",
                                             "gpu1:40 is 0, rank 0 of 0+2: allgather 256 bfloat16: 1",
                                             "gpu1:40 is 0, rank 1 of 1+0: allgather 4 bfloat16: 1",
                                             "gpu1:41 is 1, rank 1 of 0+1+2+3: allreduce 512 bfloat16 sum: 1",
                                             "gpu1:41 is 1, rank 0 of 1+3: allgather 256 bfloat16: 1",
                                             "gpu1:41 is 1, rank 0 of 1+0: allgather 4 bfloat16: 1",
                                             "gpu1:42 is 2, rank 2 of 0+1+2+3: allreduce 512 bfloat16 sum: 1",
                                             "gpu1:42 is 2, rank 1 of 0+2: allgather 256 bfloat16: 1",
                                             "gpu1:43 is 3, rank 3 of 0+1+2+3: allreduce 512 bfloat16 sum: 1",
                                             "gpu1:43 is 3, rank 1 of 1+3: allgather 256 bfloat16: 1"};
  EXPECT_EQ(Rows(Read({text})), expected);
}

TEST(Calls, RcclTellsTheRank) {
  EXPECT_EQ(Rows(Read({Call("amd1:9:9 [3] ", "AllReduce", 8, 6, "0xaa", 8, " task 0 globalrank 3")})),
            std::vector<std::string>{"amd1:9 is 3, rank ? of 0+1+2+3+4+5+6+7: allreduce 16 half sum: 1"});
}

// Two ranks wrote at once.
TEST(Calls, ALineBehindTheBeginningOfAnother) {
  EXPECT_EQ(Rows(Read({"a:1:1 [0] NCCL INFO " + Call("a:2:2 [1] ", "Reduce", 8, 7, "0xaa", 2)})),
            std::vector<std::string>{"a:2, rank ? of 0+1: reduce 32 float sum root 1: 1"});
}

TEST(Calls, LinesThatAreCutAreLeftOut) {
  const std::string whole = Call("a:1:1 [0] ", "AllReduce", 8, 7, "0xaa", 2);
  const JobLogs job =
      Read({whole + whole.substr(0, 60) + "\n" + Call("a:1:1 [0] ", "Reduce", 8, 99, "0xaa", 2) +
            Call("a:1:1 [0] ", "AllReduce", -1, 7, "0xaa", 2)});
  EXPECT_EQ(Rows(job), std::vector<std::string>{"a:1, rank ? of 0+1: allreduce 32 float sum: 1"});
  EXPECT_EQ(job.warnings,
            std::vector<std::string>{"log0: 3 lines of calls left out: cut, or not NCCL's values"});
}

std::string Event(const char* name, const char* category, const char* phase, int id,
                  const std::string& rest) {
  return std::string("{\"name\": \"") + name + "\", \"cat\": \"" + category + "\", \"ph\": \"" + phase +
         "\", \"id\": " + std::to_string(id) + ", \"pid\": 77, \"tid\": 1, \"ts\": 5.000000" + rest + "},\n";
}
std::string Coll(const char* name, int id, int rank, int64_t count) {
  return Event(name, "COLL", "b", id,
               ", \"args\": {\"SeqNum\": 0, \"CommHash\": 149361, \"Rank\": " + std::to_string(rank) +
                   ", \"Count\": " + std::to_string(count) +
                   ", \"Datatype\": \"ncclFloat32\", \"Algorithm\": \"RING\"}");
}
std::string Kernel(int channel, int64_t start, int64_t stop) {
  return Event("KernelCh", "GPU", "b", channel,
               ", \"args\": {\"Channel\": " + std::to_string(channel) + ", \"StartGpuClk\": " +
                   std::to_string(start) + ", \"StopGpuClk\": " + std::to_string(stop) + "}");
}

TEST(Calls, TracesOfTheExampleProfiler) {
  std::string first =
      "[\n" + Event("AllReduce", "COLL_API", "b", 0, ", \"args\": {\"datatype\": ncclFloat32}");
  first += Coll("AllReduce", 0, 0, 256) + Kernel(0, 1'000'000, 1'040'000) + Kernel(1, 1'010'000, 1'050'000) +
           Event("AllReduce", "COLL", "e", 0, "");
  first += Coll("AllGather", 1, 0, 256) + Event("AllGather", "COLL", "e", 1, "") + "{}]\n";
  const std::string second = "[\n" + Coll("AllReduce", 0, 1, 256) + Event("AllReduce", "COLL", "e", 0, "") +
                             Coll("AllGather", 1, 1, 256);  // it was killed in the middle
  const JobLogs job = Read({first, second});
  EXPECT_EQ(Rows(job), (std::vector<std::string>{":77 is 0, rank 0 of 0+1: allreduce 1024 float: 1 in 50 us",
                                                 ":77 is 0, rank 0 of 0+1: allgather 2048 float: 1",
                                                 ":77 is 0, rank 1 of 0+1: allreduce 1024 float: 1"}));
  EXPECT_EQ(job.warnings,
            std::vector<std::string>{
                "a profile does not say how many ranks a communicator has; the files have up to 2; "
                "expected the files of all ranks"});
}

TEST(Calls, LinesOfTheInspector) {
  const auto line = [](int rank, const char* name, int64_t bytes, int64_t us) {
    return std::string("{\"header\":{\"id\":\"0xe6\",\"rank\":") + std::to_string(rank) +
           ",\"n_ranks\":2,\"nnodes\":1},\"metadata\":{\"hostname\":\"gpu1\",\"pid\":" +
           std::to_string(9 + rank) + "},\"coll_perf\":{\"coll\":\"" + name +
           "\",\"coll_sn\":3,\"coll_msg_size_bytes\":" + std::to_string(bytes) +
           ",\"coll_exec_time_us\":" + std::to_string(us) + "}}\n";
  };
  EXPECT_EQ(Rows(Read({line(0, "AllReduce", 4096, 30) + line(0, "AllReduce", 4096, 50) +
                           line(0, "AllGather", 64, 0),
                       line(1, "AllReduce", 4096, 31)})),
            (std::vector<std::string>{"gpu1:9 is 0, rank 0 of 0+1: allreduce 4096 uint8: 2 in 80 us",
                                      "gpu1:9 is 0, rank 0 of 0+1: allgather 128 uint8: 1",
                                      "gpu1:10 is 1, rank 1 of 0+1: allreduce 4096 uint8: 1 in 31 us"}));
}

// From version 4.3 on, a communicator is told once, before its calls.
TEST(Calls, LinesOfTheInspectorBehindAMarker) {
  const std::string call =
      R"({"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":4096,"coll_exec_time_us":30.5}})";
  const std::string marker =
      R"({"header":{"id":"0xe6","rank":1,"n_ranks":2},"metadata":{"hostname":"gpu1","pid":9},"dump_stats":{}})";
  EXPECT_EQ(Rows(Read({marker + "\n" + call + "\n" + call + "\n"})),
            std::vector<std::string>{"gpu1:9 is 1, rank 1 of 0+1: allreduce 4096 uint8: 2 in 61 us"});
}

TEST(Calls, OurOwnLog) {
  const CallLog log{.library = "xccl",
                    .host = "a",
                    .process = 1,
                    .rank = {},
                    .communicators = {{.rank = Rank(0), .ranks = 1, .rows = {{.op = {}, .calls = 3}}}}};
  const JobLogs job = Read({WriteCallLog(log)});
  ASSERT_EQ(job.logs.size(), 1U);
  EXPECT_EQ(job.logs[0], log);
}

TEST(Calls, OtherFilesAreRefused) {
  CallLogReader reader;
  EXPECT_EQ(reader.Add("<topology/>", "t.xml"),
            InvalidInput("t.xml: this is a topology; expected a log of calls"));
  EXPECT_EQ(
      reader.Add("hello\n", "a.txt"),
      InvalidInput("a.txt: no calls; expected a log of XCCL_LOG_CALLS, of NCCL_DEBUG_SUBSYS=INIT,COLL or "
                   "of NCCL's profiler"));
  EXPECT_EQ(reader.Add("gpu1:1:1 [0] NCCL INFO Using network IB\n", "a.txt"),
            InvalidInput("a.txt: lines of NCCL, none of a call; expected 'NCCL INFO AllReduce: opCount ...'; "
                         "hint: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL"));
  EXPECT_FALSE(IsCallLog("gpu1:1:1 [0] NCCL INFO AllReduce: 32 Bytes -> Algo RING\n"));
}

}  // namespace
}  // namespace xccl
