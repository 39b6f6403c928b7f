// The structure of an MSCCL XML file: threadblocks, connections and waits, without what steps touch. Private
// to the reader.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "interchange/msccl/file.h"
#include "ir/analysis/program_index.h"
#include "ir/program.h"
#include "ir/violation.h"
#include "topologies/topology.h"

namespace xccl::msccl {

struct Outline {
  Program program;             // an instruction a step, with all operands in slot 0 of output
  std::vector<int32_t> order;  // all instructions, in an order in which none waits for a later one
};

// Rules P1 to P5 hold. Errors: kInvalidInput with the line, or the rule and the place.
StatusOr<Outline> OutlineOf(const File& file, std::string_view name);

const FileStep& StepAt(const File& file, const ProgramSite& site);
// "NAME:LINE: rank 0 threadblock 1 step 2 TEXT".
Status BadStep(const File& file, std::string_view name, const ProgramSite& site, std::string_view text);

// A finding about a program whose instructions are the file's steps, with the line that it is about.
Status BadAt(const File& file, std::string_view name, const Program& program, const ProgramIndex& index,
             const Violation& violation);

// Every connection of a program as a link of its own, and a path over it; every group as a switch of its own.
StatusOr<Topology> LinksOf(Program& program);

}  // namespace xccl::msccl
