// The messages of xccl-synth about wrong command lines, machines and plans.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

TEST_F(Cli, WrongCommandLines) {
  RingPlan();
  const std::vector<Wrong> cases = {
      {{},
       2,
       std::string("no command; expected topo, bound, plan, verify, simulate, compare, sweep, emit, import, "
                   "run, tune, book, exec, view or completion\n") +
           kTry + "--help"},
      {{"plann", "torus:2x2"},
       2,
       std::string("no command 'plann'; did you mean 'plan'?\n") + kTry + "--help"},
      {{"plan"}, 2, std::string("TOPOLOGY is required\n") + kTry + "plan --help"},
      {{"plan", "torus:2x2", "--sze", "4"},
       2,
       std::string("plan: no option '--sze'; did you mean '--size'?\n") + kTry + "plan --help"},
      {{"verify", "a.json", "b.json"},
       2,
       std::string("verify: unexpected 'b.json'\n") + kTry + "verify --help"},
      {{"topo", "torus:2x2", "--format", "yaml"},
       2,
       std::string("--format: 'yaml'; expected text, xml, json, svg or dot\n") + kTry + "topo --help"},
      {{"plan", "torus:2x2", "--seed", "99999999999999999999"},
       2,
       std::string(
           "--seed: '99999999999999999999': expected a whole number from 0 to 9223372036854775807\n") +
           kTry + "plan --help"},
      {{"plan", "torus:2x2", "-c", "allgather", "-o", ""},
       2,
       std::string("--output: empty; expected a value\n") + kTry + "plan --help"},
      {{"tune", "torus:2x2", "--collectives", "allgather,x", "-o", "book"},
       2,
       "--collectives: no collective 'x'; expected one of allreduce, allgather, allgatherv, reduce_scatter, "
       "reduce_scatterv, broadcast, reduce, gather, scatter, alltoall, alltoallv, sendrecv, barrier"},
      {{"tune", "torus:2x2", "--collectives", "broadcast", "--root", "1,4", "-o", "book"},
       2,
       "--root: '1,4': rank 4; ranks are 0..3"},
      {{"tune", "torus:2x2", "--collectives", "allgather,alltoall", "--root", "all", "-o", "book"},
       2,
       "--root: allgather,alltoall: none has a root; expected broadcast, reduce, gather or scatter among "
       "--collectives"},
      {{"book", "dgx-a100", "--least-gain", "0.9", "-o", "book"},
       2,
       "--least-gain: '0.9'; expected 1 or more"},
      {{"book", "mi300x", "-o", "book"},
       1,
       "mi300x: its GPUs are gfx942; expected sm70 or later, as NCCL's model has"},
      {{"book", "dgx1", "-o", "book"}, 1, "dgx1: no machine model of its GPUs, sm70; hint: --machine=FILE"},
      {{"book", "dgx-a100", "--collectives", "alltoall", "-o", "book"},
       1,
       "alltoall: NCCL has no model of its time; expected broadcast, reduce, allgather, reduce_scatter or "
       "allreduce"},
      {{"plan", "torus:2x2"}, 2, "no collective; hint: --collective=allreduce"},
      {{"plan", "torus:2x2", "-c", "allgater"},
       2,
       "--collective: no collective 'allgater'; did you mean 'allgather'?"},
      {{"plan", "torus:2x2", "-c", "allgather", "-e", "rng"},
       2,
       "--engine: no engine 'rng'; did you mean 'ring'?"},
      {{"plan", "torus:2x2", "-c", "allgather", "-e", "ring", "--from", "a.json"},
       2,
       "--from: ring does not start from a plan; expected auto or greedy"},
      {{"plan", "torus:2x2", "-c", "allgather", "--chunks", "2", "--from", "a.json"},
       2,
       "--chunks: the plan's own chunks are kept with --from; expected one of the two"},
      {{"plan", "torus:2x2", "-c", "allgather", "--groups", "g.json"},
       2,
       "--collective: not together with --groups"},
      {{"plan", "torus:2x2", "--chunks", "2", "--groups", "g.json"},
       2,
       "--chunks: not together with --groups"},
      {{"plan", "torus:2x2", "-s", "1KiB", "--groups", "g.json"}, 2, "--size: not together with --groups"},
      {{"plan", "torus:2x2", "-s", "64MiB", "--for", "tp"}, 2, "--size: not together with --for"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8b", "--micro-batches", "7812500"},
       2,
       "--for tp: activations take 1000000000 times 1.007ms; at most 1 day a step is supported"},
      {{"plan", "torus:2x2", "--ranks", "0,1", "--for", "tp"}, 2, "--ranks: not together with --for"},
      {{"plan", "torus:2x2", "--groups", "g.json", "--for", "tp"}, 2, "--groups: not together with --for"},
      {{"plan", "torus:2x2", "--lower", "--for", "tp"}, 2, "--lower: not together with --for"},
      {{"plan", "torus:2x2", "-c", "allgather", "--tp", "2"}, 2, "--tp: only together with --for"},
      {{"plan", "torus:2x2", "--for", "tpp"},
       2,
       "--for: no parallelism 'tpp'; did you mean 'tp'?; expected dp, zero1, zero2, zero3, tp, sp, ulysses, "
       "pp "
       "or ep"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8"},
       2,
       "--llm: no model 'llama-3-8'; did you mean 'llama-3-8b'?"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "zzz"},
       2,
       "--llm: no model 'zzz'; expected one of gpt-3-175b, llama-3-8b, llama-3-70b, llama-3-405b, "
       "mixtral-8x7b"},
      {{"plan", "torus:2x2", "--for", "pp", "--llm", "llama-3-8b", "--pp", "16"},
       2,
       "--pp: 16; expected at most 4, the ranks"},
      {{"plan", "torus:2x2", "--for", "ep", "--llm", "mixtral-8x7b", "--ep", "3"},
       2,
       "--ep: 3; expected a divisor of 4 data parallel ranks"},
      {{"plan", "torus:2x2", "--for", "dp,zero1"},
       2,
       "--for: 'zero1' with another of dp, zero1, zero2 and zero3; expected one of them"},
      {{"plan", "torus:2x2", "--for", "tp"},
       2,
       "--layers: not given; hint: --llm=llama-3-8b has all of a model"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8b", "--tp", "3"},
       2,
       "degrees of parallelism multiply to 3; expected a divisor of 4 ranks"},
      {{"compare", "torus:2x2", "-c", "allgather", "--engines", "ring,rng"},
       2,
       "--engines: no engine 'rng'; did you mean 'ring'?"},
      {{"plan", "torus:2x2", "-c", "allreduce", "--root", "1"},
       2,
       "--root: 1; allreduce takes no root; expected broadcast, reduce, gather or scatter"},
      {{"plan", "torus:2x2", "-c", "broadcast", "--root", "99"},
       2,
       "broadcast: root 99; expected a rank from 0 to 3"},
      {{"plan", "torus:2x2", "-c", "broadcast", "--root", "-3"},
       2,
       "broadcast: root -3; expected a rank from 0 to 3"},
      {{"plan", "torus:2x2", "-c", "allgather", "--ranks", "0,0"},
       2,
       "--ranks: '0,0': rank 0 is given twice; expected each rank once"},
      {{"plan", "torus:2x2", "-c", "sendrecv"}, 2, "sendrecv: no pairs; hint: --pairs='0>1,1>0'"},
      {{"plan", "torus:2x2", "-c", "sendrecv", "--pairs", "0-1"},
       2,
       "--pairs: '0-1': '0-1'; expected a pair such as 0>1"},
      {{"plan", "torus:2x2", "-c", "sendrecv", "--pairs", "0>9"},
       2,
       "--pairs: '0>9': rank 9; ranks are 0..3"},
      {{"plan", "torus:2x2", "-c", "sendrecv", "--pairs", "0>1,0>1"},
       2,
       "--pairs: '0>1,0>1': pair 0>1 is given twice; expected each pair once"},
      {{"plan", "torus:2x2", "-c", "sendrecv", "--ranks", "0,1", "--pairs", "0>2"},
       2,
       "sendrecv: pair 0>2: rank 2; expected a rank from 0 to 1"},
      {{"run", "a.json", "--ranks", "1", "--rank", "0"},
       2,
       "--ranks: 1; expected 2 or more: a process alone needs neither it nor --rank"},
      {{"run", "a.json", "--rank", "0"}, 2, "--rank, --ranks: one without the other; expected both"},
      {{"run", "a.json", "--rank", "-1", "--ranks", "4"},
       2,
       std::string("--rank: '-1': expected a whole number from 0 to 1048576\n") + kTry + "run --help"},
      {{"run", "a.json", "--address", "127.0.0.1:99"},
       2,
       "--address, --token, --token-file: no other process to meet; expected --rank and --ranks, or a "
       "launcher"},
      {{"plan", "rail-2", "-c", "dispatch", "--tokens", "99999999999"},
       2,
       std::string("--tokens: '99999999999': expected a whole number from 1 to 1048576\n") + kTry +
           "plan --help"},
      {{"plan", "rail-2", "-c", "dispatch", "--row", "100B"},
       2,
       "row bytes: 100; expected a multiple of 16; hint: --row=112B"},
      {{"plan", "torus:2x2", "--for", "tp", "--llm", "llama-3-8b", "--heads", "33"},
       2,
       "--heads: 33; expected a divisor of 4096 hidden values (--hidden)"},
      {{"plan", "torus:2x2", "-c", "allgatherv"}, 2, "allgatherv: no counts; hint: --counts=FILE.csv"},
      {{"plan", "torus:2x2", "-c", "allgather", "--model", "blok"},
       2,
       "--model: no time model 'blok'; expected pipelined or blocking"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "8EiB"},
       2,
       "--size: '8EiB': too large; a size is written like 64MiB"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "2PiB"},
       2,
       "--size: 2048TiB; at most 1024TiB is supported"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "9000000TiB"},
       2,
       "--size: '9000000TiB': too large; a size is written like 64MiB"},
      {{"plan", "torus:2x2", "-c", "allgather", "--size", "8000000TiB"},
       2,
       "--size: 8000000TiB; at most 1024TiB is supported"},
      {{"bound", "torus:2x2", "-c", "allgather", "--size", "8000000TiB"},
       2,
       "--size: 8000000TiB; at most 1024TiB is supported"},
      {{"simulate", "a.json", "--sizes", "1KiB,8000000TiB"},
       2,
       "--sizes: 8000000TiB; at most 1024TiB is supported"},
      {{"compare", "torus:2x2", "-c", "allgather", "--sizes", "1KiB:1GiB:x1"},
       2,
       "--sizes: '1': expected a whole number from 2 to 1048576"},
      {{"plan", "torus:2x2", "-c", "allgather", "--time-limit", "5"},
       2,
       "--time-limit: '5': no unit; a time is written like 500ns"},
      {{"plan", "torus:2x2", "-c", "allgather", "--hosts", "0"}, 2, "--hosts: 0; expected 1 or more"},
      {{"topo", "dgx-h100", "--fabric", "bandwidth=1GB/s"}, 2, "--fabric: only together with --hosts"},
      {{"plan", "torus:2x2", "-c", "allgather", "--without-link", "0-1"},
       2,
       "--without-link: '0-1': expected A->B, such as 0->1 or h0/gpu:3->h0/nvswitch"},
      {{"run", "a.json", "--dtype", "flot"}, 2, "--dtype: no data type 'flot'; did you mean 'float'?"},
      {{"run", "a.json", "--redop", "smu"}, 2, "--redop: no reduction 'smu'; did you mean 'sum'?"},
      {{"run", "a.json", "--dtype", "xyzzy"},
       2,
       "--dtype: no data type 'xyzzy'; expected one of int8, uint8, int32, uint32, int64, uint64, half, "
       "float, "
       "double, bfloat16, f8e4m3, f8e5m2"},
      {{"run", "a.json", "--redop", "xor"},
       2,
       "--redop: no reduction 'xor'; expected one of sum, prod, min, max, avg"},
      {{"emit", "a.json", "--to", "xyzzy"},
       2,
       std::string(
           "--to: 'xyzzy'; expected cuda, host, program, chakra, msccl-xml, mscclpp-json, svg, dot or "
           "perfetto\n") +
           kTry + "emit --help"},
      {{"emit", "a.json", "--to", "msccl"},
       2,
       std::string(
           "--to: 'msccl'; expected cuda, host, program, chakra, msccl-xml, mscclpp-json, svg, dot or "
           "perfetto; did you mean 'msccl-xml'?\n") +
           kTry + "emit --help"},
      {{"emit", "a.json", "--to", "msccl-xml", "--for", "nccl"},
       2,
       std::string("--for: 'nccl'; expected msccl, executor or rccl; did you mean 'rccl'?\n") + kTry +
           "emit --help"},
      // No name or file moves the cursor of a terminal.
      {{"emit", "a.json", "--to", "msccl-xml", "--for", "\033[2Jnccl\x7f"},
       2,
       std::string("--for: '\\x1b[2Jnccl\\x7f'; expected msccl, executor or rccl\n") + kTry + "emit --help"},
      {{"emit", "a.json", "--to", "dot", "--size", "1KiB"},
       2,
       "--size: needs --to chakra, svg or perfetto; other formats serve all sizes"},
      {{"emit", "a.json", "--to", "svg", "--arch", "sm_90"},
       2,
       "--dtype, --redop, --arch: need --to cuda or host"},
      {{"plan", "dgx1", "-c", "allgather", "--pareto", "-e", "smt", "--explain"},
       2,
       "--explain: explains one plan; expected no --pareto"},
      {{"emit", "a.json", "--to", "host", "--for", "msccl"}, 2, "--for: needs --to msccl-xml"},
      {{"emit", "a.json", "--to", "mscclpp-json", "--for", "msccl"}, 2, "--for: needs --to msccl-xml"},
      {{"emit", "a.json", "--to", "mscclpp-json", "--arch", "sm_90"},
       2,
       "--dtype, --redop, --arch: need --to cuda or host"},
      {{"emit", "a.json", "--to", "mscclpp-json", "--max-size", "x"},
       2,
       "--max-size: 'x': no number; a size is written like 64MiB"},
      {{"emit", "a.json", "--to", "chakra", "--in-place"},
       2,
       "--in-place: needs --to msccl-xml or mscclpp-json"},
      {{"emit", "a.json", "--to", "msccl-xml", "--in-place"},
       2,
       "--in-place: needs --for msccl; the others run a file in place and out of place"},
      {{"plan", "torus:2x2", "-c", "allreduce", "-s", "3"},
       2,
       "--size: 3 bytes; allreduce of 4 ranks rounds them down to none; expected at least 4"},
      {{"bound", "torus:2x2", "-c", "allgather", "-s", "63"},
       2,
       "--size: 63 bytes; allgather of 4 ranks rounds them down to none; expected at least 64"},
      {{"compare", "torus:2x2", "-c", "allgather", "--sizes", "16,1KiB"},
       2,
       "--sizes: 16 bytes; allgather of 4 ranks rounds them down to none; expected at least 64"},
      {{"simulate", "a.json", "--sizes", "1KiB,3"},
       2,
       "--sizes: 3 bytes; allgather of 4 ranks rounds them down to none; expected at least 64"},
      {{"tune", "torus:2x2", "--sizes", "16", "-o", "book"},
       2,
       "--sizes: 16 bytes; allgather of 4 ranks rounds them down to none; expected at least 64"},
      {{"plan", "torus:2x2", "-c", "allreduce", "--seed", "-1"},
       2,
       std::string("--seed: '-1': expected a whole number from 0 to 9223372036854775807\n") + kTry +
           "plan --help"},
      {{"plan", "torus:4x4", "-c", "allreduce", "-e", "tree", "--steps", "1"},
       3,
       "tree: no allreduce on 16 ranks in 1 step: rank 10 is 4 links from rank 0; hint: --steps=8"},
      {{"run", "a.json", "-c", "allgather"},
       2,
       "--collective: chooses among the plans of a book; expected a plan book"},
      {{"run", "a.json", "--timeout", "0s"}, 2, "--timeout: 0s; expected more than 0"},
      {{"run", "a.json", "--slot-memory", "1x"},
       2,
       "--slot-memory: '1x': unknown unit 'x'; a size is written like 64MiB"},
  };
  for (const Wrong& c : cases) ExpectWrong(c, Run(c.arguments));
}

// A file of another kind is named, at every command that reads one.
TEST_F(Cli, WrongKindsOfFile) {
  RingPlan();
  Write("t.xml", R"(<topology><ring ranks="4"/></topology>)");
  Write("c.csv", "1,2\n");
  Write("m.json", R"({"format":2, "source":"s", "launch_ps":1})");
  ASSERT_EQ(Shell("mkdir book").code, 0);
  Write("book/index.json", R"({"format":1, "plans":[]})");
  const std::string plan_hint = "; hint: xccl-synth plan t.xml -c allreduce -o FILE makes one";
  const std::string foreign = "expected MSCCL XML, an MSCCL++ plan, ForestColl's trees or TACOS' lists";
  for (const Words& command :
       {Words{"verify"}, Words{"simulate"}, Words{"run"}, Words{"view", "-o", "v.html"},
        Words{"emit", "--to", "svg"}, Words{"plan", "ring:4", "-c", "allgather", "--from"}}) {
    const auto wrong = [&](const std::string& file, const std::string& err) {
      Words words = command;
      words.push_back(file);
      ExpectWrong({words, 1, file + ": this is " + err}, Run(words));
    };
    wrong("t.xml", "a topology; expected a plan" + plan_hint);
    wrong("c.csv", "CSV; expected a plan");
    wrong("m.json", "a machine model; expected a plan");
  }
  const std::vector<Wrong> cases = {
      {{"verify", "book"},
       1,
       "book: this is a plan book; expected a plan; hint: its files that end in .plan.json are plans"},
      {{"topo", "a.json"}, 1, "a.json: this is a plan; expected a topology"},
      {{"topo", "./book"}, 1, "./book: this is a plan book; expected a topology"},
      {{"plan", "a.json", "-c", "allgather"}, 1, "a.json: this is a plan; expected a topology"},
      {{"compare", "m.json", "-c", "allgather"}, 1, "m.json: this is a machine model; expected a topology"},
      {{"import", "a.json"}, 1, "a.json: this is a plan of xccl-synth; " + foreign},
      {{"import", "t.xml"}, 1, "t.xml: this is a topology; " + foreign},
      {{"plan", "ring:4", "-c", "allgather", "--machine", "a.json"},
       1,
       "a.json: this is a plan; expected a machine model"},
      {{"plan", "ring:4", "--collective-file", "t.xml"},
       1,
       "t.xml: this is a topology; expected a collective"},
      {{"plan", "ring:4", "--groups", "a.json"}, 1, "a.json: this is a plan; expected a list of groups"},
      {{"plan", "ring:4", "-c", "alltoallv", "--counts", "a.json"},
       1,
       "a.json: this is a plan; expected CSV"},
      {{"run", "book", "-c", "allgater"},
       2,
       "--collective: no collective 'allgater'; did you mean 'allgather'?"},
  };
  for (const Wrong& c : cases) ExpectWrong(c, Run(c.arguments));
}

TEST_F(Cli, WrongMachines) {
  struct Case {
    std::string xml;
    std::string err;
  };
  const std::string two = R"(<topology name="m"><gpu id="0"/><gpu id="1"/>)";
  const std::vector<Case> cases = {
      {"", "m.xml:1:1: no element; expected <topology>"},
      {R"(<topology><gpu id="0")",
       "m.xml:1:21: the file ends inside a start tag; expected more, up to </topology>"},
      {two + R"(<link from="0" to="1" bandwith="1GB/s"/></topology>)",
       "m.xml:1:46: link: unknown attribute 'bandwith'; did you mean 'bandwidth'?"},
      {two + R"(<link from="0" to="7" bandwidth="1GB/s"/></topology>)",
       "m.xml:1:46: link 0->7: no node 7; nodes are 0..1"},
      {R"(<topology name="m"><gpu id="0"/><gpu id="0"/></topology>)",
       "m.xml:1:33: a second gpu 0; expected another id"},
      {two + R"(<link from="0" to="1" bandwidth="0GB/s"/></topology>)",
       "m.xml:1:46: link: bandwidth '0GB/s': expected more than zero"},
      {two + R"(<link from="0" to="1" bandwidth="-5GB/s"/></topology>)",
       "m.xml:1:46: link: bandwidth '-5GB/s': below zero; expected zero or more"},
      {R"(<topology name="m"><host name="a b"><gpu id="0"/></host></topology>)",
       "m.xml:1:20: name 'a b': expected a name without '/', ',', '*', '<', '>', '\"', '..' and blanks"},
  };
  for (const Case& c : cases) {
    Write("m.xml", c.xml);
    if (c.xml.find("/>") != std::string::npos || c.xml.size() < 30)
      ExpectWrong({{"topo", "m.xml"}, 1, c.err}, Run({"topo", "m.xml"}));
    ExpectWrong({{"plan", "m.xml", "-c", "allgather"}, 1, c.err}, Run({"plan", "m.xml", "-c", "allgather"}));
  }
  Write(
      "m.xml",
      R"(<topology name="m"><gpu id="0"/><gpu id="1"/><gpu id="2"/><link from="0" to="1" bandwidth="10GB/s"/></topology>)");
  const std::string apart = "m: no path from rank 0 to rank 2, which allgather needs";
  for (const char* command : {"plan", "bound", "compare"})
    ExpectWrong({{command}, 3, apart}, Run({command, "m.xml", "-c", "allgather"}));
  EXPECT_EQ(Run({"plan", "m.xml", "-c", "allgather", "--ranks", "0,1"}).code, 0);
  Write("c.xml", R"(<topology name="c"><cluster hosts="2"><nvswitch gpus="2"/></cluster></topology>)");
  ExpectWrong(
      {{"hosts"},
       3,
       "c: no path from rank 0 to rank 2, which allgather needs: hosts h0 and h1 are not joined; hint: "
       "<fabric/> joins them"},
      Run({"plan", "c.xml", "-c", "allgather"}));
  const std::vector<Wrong> others = {
      {{"topo", "mesh:4x4@bandwidth=400Gb/s"},
       1,
       "mesh:4x4@bandwidth=400Gb/s: mesh: bandwidth '400Gb/s': b is bits; hint: 400Gbit/s (50GB/s)"},
      {{"topo", "ring"}, 1, "'ring': a short form without its numbers; expected ring:N, such as ring:16"},
      {{"topo", "none.xml"}, 1, ""},
      {{"topo", "mesh:99999999999x4"},
       1,
       "mesh:99999999999x4: mesh: dims '99999999999x4': expected whole numbers from 1 to 1000000000, such as "
       "4x4x4"},
      {{"topo", "torus:100000x100000"},
       1,
       "torus:100000x100000: torus: 10000000000 nodes; at most 1048576 are supported"},
      {{"topo", "."},
       1,
       ".: a folder, read as the files of one fabric: ./c.xml: no file of a fabric; expected what "
       "ibnetdiscover, iblinkinfo, lldpcli -f json or Slurm's topology.conf or topology.yaml wrote"},
      {{"plan", "torsu:2x2", "-c", "allgather"},
       1,
       "'torsu:2x2': no short form 'torsu'; did you mean 'torus:2x2'?"},
      {{"plan", "torus:2x2", "-c", "alltoall", "--counts", "none.csv"},
       1,
       "none.csv: cannot read: No such file or directory"},
  };
  for (const Wrong& c : others) {
    if (!c.err.empty()) ExpectWrong(c, Run(c.arguments));
    EXPECT_EQ(Run(c.arguments).code, 1);
  }
  Write("c.csv", "1,2\n");
  ExpectWrong({{"counts"}, 1, "c.csv: 2 counts; expected 4, one per rank"},
              Run({"plan", "torus:2x2", "-c", "allgatherv", "--counts", "c.csv"}));
  ExpectWrong({{"counts"}, 1, "c.csv:1:1: 2 counts; expected 4, one per destination"},
              Run({"plan", "torus:2x2", "-c", "alltoallv", "--counts", "c.csv"}));
}

TEST_F(Cli, WrongFilesOfGroupsAndCollectives) {
  const std::string names =
      "; expected one of allreduce, allgather, allgatherv, reduce_scatter, reduce_scatterv, broadcast, "
      "reduce, "
      "gather, scatter, alltoall, alltoallv, sendrecv, barrier";
  struct Case {
    const char* flag;
    std::string json, err;
  };
  for (
      const Case& c : {
          Case{"--groups", R"({"name":"g", "groups":[{"name":"a", "collective":"zz", "size":1}]})",
               "groups[0].collective: no collective 'zz'" + names},
          Case{"--groups", "{}", "no key 'name'; expected one"},
          Case{"--groups", R"({"name":"g", "groups":[], "x":1})", "unknown key 'x'; expected name or groups"},
          Case{"--collective-file", "{}", "no key 'name'; expected one"},
          Case{
              "--collective-file",
              R"({"name":"c", "part_sizes":[1], "pre":[{"rank":0, "part":0, "contributions":[]}], "post":[]})",
              "c: precondition of rank 0 part 0: no contributions; expected at least one"},
      }) {
    Write("x.json", c.json);
    ExpectWrong({{c.flag, c.json}, 1, "x.json: " + c.err}, Run({"plan", "torus:2x2", c.flag, "x.json"}));
  }
}

TEST_F(Cli, PlansEditedByHandAreRefused) {
  RingPlan();
  const std::string text = Read("a.json");
  const auto edited = [&](const std::function<void(Json&)>& edit) {
    Json plan = Json::parse(text);
    edit(plan);
    return plan.dump();
  };
  const auto each_column = [](Json& plan, const std::function<void(Json&)>& edit) {
    for (auto& [name, column] : plan["schedule"].items())
      if (column.is_array()) edit(column);
  };
  struct Case {
    std::string text;
    std::string err;  // after "bad.json: "; what begins with [ comes from proof alone
  };
  const std::vector<Case> cases = {
      {"", "1:1: truncated: the text ends inside its value; expected the rest"},
      {edited([](Json& p) { p["schedule"]["dst"][0] = 3; }),
       " [S2] step 0: path from rank 0 to rank 3 goes from rank 0 to rank 1"},
      {edited([&](Json& p) { each_column(p, [](Json& c) { std::swap(c[0], c[23]); }); }),
       " [S1] transfer 0: step 2; the first step is 0 (and 2 more)"},
      {edited([](Json& p) { std::swap(p["schedule"]["step"][0], p["schedule"]["step"][23]); }),
       " [S1] transfer 0: step 2; the first step is 0 (and 2 more)"},
      {edited([&](Json& p) { each_column(p, [](Json& c) { c.erase(5); }); }),
       " schedule.first: 23 entries; expected 24, as schedule.op has"},
      {edited([](Json& p) { p["format"] = 9; }), " format: version 9; this program reads version 1"},
      {edited([](Json& p) {
         p["topology"] =
             "<topology name=\"m\"><gpu id=\"0\"/><gpu id=\"1\"/>"
             "<link from=\"0\" to=\"1\" bandwidth=\"1GB/s\"/></topology>";
       }),
       " collective.ranks: entry 2 is 2; expected 0..1"},
  };
  for (const Case& c : cases) {
    Write("bad.json", c.text);
    const std::string err = "bad.json:" + c.err;
    for (const char* command : {"run", "simulate"})
      ExpectWrong({{command, err}, 1, err}, Run({command, "bad.json"}));
    const Said verified = Run({"verify", "bad.json"});
    EXPECT_EQ(verified.code, 1);
    if (!c.err.starts_with(" [")) {
      EXPECT_EQ(verified.out, "");
      EXPECT_EQ(verified.err, "xccl-synth: " + err + "\n");
      continue;
    }
    // Each violation is said once, on stdout.
    EXPECT_EQ(verified.out.rfind(err.substr(0, err.find(" (and ")) + "\n", 0), 0u) << verified.out;
    const auto violations = std::ranges::count(verified.out, '\n');
    EXPECT_EQ(verified.err, fmt::format("xccl-synth: bad.json: {} violation{}; expected none\n", violations,
                                        violations == 1 ? "" : "s"));
  }
  // One transfer fewer in every column: what it carried is missing at the end.
  Json less = Json::parse(text);
  each_column(less, [](Json& c) { c.erase(23); });
  std::string ops = less["schedule"]["op"];
  less["schedule"]["op"] = ops.substr(0, 23);
  Write("bad.json", less.dump());
  const Said lost = Run({"verify", "bad.json", "--json"});
  EXPECT_EQ(lost.code, 1);
  const Json report = Json::parse(lost.out);
  EXPECT_EQ(Keys(report), (Words{"ok", "violations"}));
  EXPECT_EQ(report["ok"], false);
  ASSERT_FALSE(report["violations"].empty());
  EXPECT_EQ(Keys(report["violations"][0]), (Words{"rule", "where", "text"}));
  EXPECT_EQ(report["violations"][0]["rule"], "S6");
  // Every prefix of a plan is refused without a crash.
  for (size_t end = 1; end + 2 < text.size(); end += text.size() / 40) {
    Write("bad.json", text.substr(0, end));
    EXPECT_EQ(Run({"verify", "bad.json"}).code, 1) << end;
  }
  ExpectWrong({{"verify"}, 1, "none.json: cannot read: No such file or directory"},
              Run({"verify", "none.json"}));
  ExpectWrong({{"verify"}, 1, ".: cannot read: Is a directory"}, Run({"verify", "."}));
}

}  // namespace
}  // namespace xccl
