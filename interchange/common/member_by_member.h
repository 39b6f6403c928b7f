// Fan-ins for executors whose threadblocks receive from one rank each.
#pragma once

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// The same program without fan-ins: the root has a threadblock for every member, and each adds what it
// receives to what those before it have, in the order of the group. The last of them has the place of the
// fan-in's and does what that did besides. All ranks add in the order that they had; types narrower than
// float are rounded after every addition. Sums that the program nowhere stores, and those in which the rank's
// own value is not the first, take scratch. Other groups stay. Requires: a program that verifies. Linear in
// what comes out.
Program WithoutFanIns(const Program& program, const Collective& collective);

}  // namespace xccl
