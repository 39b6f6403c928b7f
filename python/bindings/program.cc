// The program of a plan: its settings, and its instructions and connections as columns.
#include "ir/program.h"

#include <string>
#include <utility>
#include <vector>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"
#include "python/bindings/pickle.h"

namespace xccl::python {
namespace {

// A part of a plan, which has a program.
struct BoundProgram {
  explicit BoundProgram(SharedPlan whole) : plan(std::move(whole)) {
    if (!plan->plan.program) Check(InvalidInput("no program in the plan; hint: plan with lower=True"));
  }
  const Program& program() const { return plan->plan.program->program; }
  SharedPlan plan;
};

// One row an instruction. Opcodes and buffers are indices in the lists `opcodes` and `buffers`.
py::dict Instructions(const BoundProgram& bound) {
  std::vector<int32_t> rank, threadblock, index, count, src_slot, dst_slot, dependencies;
  std::vector<uint8_t> op, src_buffer, dst_buffer;
  const Program& program = bound.program();
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Threadblock>& blocks = program.ranks[Rank(r)].threadblocks;
    for (size_t b = 0; b < blocks.size(); ++b) {
      for (size_t i = 0; i < blocks[b].instructions.size(); ++i) {
        const Instruction& instruction = blocks[b].instructions[i];
        rank.push_back(r);
        threadblock.push_back(static_cast<int32_t>(b));
        index.push_back(static_cast<int32_t>(i));
        op.push_back(static_cast<uint8_t>(instruction.op));
        count.push_back(instruction.count);
        src_buffer.push_back(static_cast<uint8_t>(instruction.src.buffer));
        src_slot.push_back(instruction.src.slot);
        dst_buffer.push_back(static_cast<uint8_t>(instruction.dst.buffer));
        dst_slot.push_back(instruction.dst.slot);
        dependencies.push_back(instruction.dep_count);
      }
    }
  }
  py::dict columns;
  columns["rank"] = Owned(std::move(rank));
  columns["threadblock"] = Owned(std::move(threadblock));
  columns["index"] = Owned(std::move(index));
  columns["op"] = Owned(std::move(op));
  columns["count"] = Owned(std::move(count));
  columns["src_buffer"] = Owned(std::move(src_buffer));
  columns["src_slot"] = Owned(std::move(src_slot));
  columns["dst_buffer"] = Owned(std::move(dst_buffer));
  columns["dst_slot"] = Owned(std::move(dst_slot));
  columns["dependencies"] = Owned(std::move(dependencies));
  return columns;
}

// One row a threadblock; -1 where there is no peer, as where a group stands in its place.
py::dict Threadblocks(const BoundProgram& bound) {
  std::vector<int32_t> rank, threadblock, channel, send_peer, recv_peer, instructions;
  const Program& program = bound.program();
  const auto number = [](const std::optional<Rank>& peer) { return peer ? peer->value : -1; };
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Threadblock>& blocks = program.ranks[Rank(r)].threadblocks;
    for (size_t b = 0; b < blocks.size(); ++b) {
      rank.push_back(r);
      threadblock.push_back(static_cast<int32_t>(b));
      channel.push_back(blocks[b].channel);
      send_peer.push_back(number(blocks[b].send_peer));
      recv_peer.push_back(number(blocks[b].recv_peer));
      instructions.push_back(static_cast<int32_t>(blocks[b].instructions.size()));
    }
  }
  py::dict columns;
  columns["rank"] = Owned(std::move(rank));
  columns["threadblock"] = Owned(std::move(threadblock));
  columns["channel"] = Owned(std::move(channel));
  columns["send_peer"] = Owned(std::move(send_peer));
  columns["recv_peer"] = Owned(std::move(recv_peer));
  columns["instructions"] = Owned(std::move(instructions));
  return columns;
}

py::dict Connections(const BoundProgram& bound) {
  std::vector<int32_t> src, dst, channel;
  for (const Connection& connection : bound.program().connections) {
    src.push_back(connection.src.value);
    dst.push_back(connection.dst.value);
    channel.push_back(connection.channel);
  }
  py::dict columns;
  columns["src"] = Owned(std::move(src));
  columns["dst"] = Owned(std::move(dst));
  columns["channel"] = Owned(std::move(channel));
  return columns;
}

std::vector<std::string> NamesOf(uint8_t last, std::string (*name)(uint8_t)) {
  std::vector<std::string> names;
  for (uint8_t code = 0; code <= last; ++code) names.push_back(name(code));
  return names;
}

}  // namespace

void BindProgram(py::module_& module) {
  py::class_<BoundProgram>(module, "Program")
      .def(py::init<SharedPlan>())
      .def(py::pickle([](const BoundProgram& p) { return StateOf(*p.plan); },
                      [](const py::tuple& state) { return BoundProgram(PlanOfState(state)); }))
      .def_property_readonly("num_ranks", [](const BoundProgram& p) { return p.program().ranks.size(); })
      .def_property_readonly("slots", [](const BoundProgram& p) { return p.program().slots; })
      .def_property_readonly("instances", [](const BoundProgram& p) { return p.program().instances; })
      .def_property_readonly("segment_bytes", [](const BoundProgram& p) { return p.program().segment_bytes; })
      .def_property_readonly("in_place", [](const BoundProgram& p) { return p.program().in_place; })
      .def_property_readonly("num_groups", [](const BoundProgram& p) { return p.program().groups.size(); })
      .def_property_readonly(
          "protocol", [](const BoundProgram& p) { return std::string(ToString(p.program().protocol)); })
      .def("instructions", &Instructions)
      .def("threadblocks", &Threadblocks)
      .def("connections", &Connections);
  module.attr("opcodes") = NamesOf(static_cast<uint8_t>(Opcode::kNop), [](uint8_t code) {
    return std::string(ToString(static_cast<Opcode>(code)));
  });
  module.attr("buffers") = NamesOf(static_cast<uint8_t>(BufferKind::kScratch), [](uint8_t code) {
    return std::string(ToString(static_cast<BufferKind>(code)));
  });
}

}  // namespace xccl::python
