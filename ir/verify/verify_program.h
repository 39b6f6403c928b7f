// Proves by symbolic execution that a program does what its collective says. Rules (docs/ir.md has the same
// list):
//   P1 structure: peers exist and differ from the rank, each direction of a (peer, channel) has one
//      threadblock and a declared connection, counts > 0, opcodes match the threadblock's peers; a group has
//      a root and two or more members, a connection for each that is in no other group, and one threadblock
//      of its root in place of the peer; groups need the simple protocol
//   P2 references in bounds: slots exist, operands of several chunks do not leave their buffer,
//      the two operands of an instruction have equal chunk sizes, the input is not written
//   P3 dependencies name instructions that exist and are not circular
//   P4 the k-th send of a connection matches the k-th receive: same count, same chunk sizes
//   P5 no deadlock with the program's slots
//   P6 every two conflicting accesses are ordered
//   P7 what is read has been written; nothing is reduced twice
//   P8 the postcondition holds in the output buffers
//   P9 `first` and `final` are where avg needs them
// P6..P8 are checked out of place and, where the program says in_place, in place too.
#pragma once

#include <vector>

#include "ir/collective.h"
#include "ir/program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {

std::vector<Violation> VerifyProgram(const Program& program, const Collective& collective);

}  // namespace xccl
