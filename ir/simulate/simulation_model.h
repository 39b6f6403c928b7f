// A schedule in the form that the simulator needs: flat arrays of jobs and of their dependencies. Built
// once, then run with any number of segments.
//
// A unit moves as one: in the pipelined model one chunk of one transfer, in the blocking model a whole
// message. A job is one unit on one link of its path. Units, and hence jobs, are numbered in the order in
// which a link prefers them: (step, message, position in the message). A cell is one (rank, chunk) that is
// read or written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "topologies/topology.h"

namespace xccl {

struct SimulationModel {
  // Why the schedule cannot be simulated, as in Simulation::unsound. If not empty, the rest is of no use.
  std::string unsound;

  // One link of an interned path. Equal paths share their hops.
  struct Hop {
    int32_t link = 0;
    int32_t inputs = 0;      // number of the path's links that end where this one begins
    int32_t next_first = 0;  // hops that begin where this one ends: next_hops[next_first..+next_count),
    int32_t next_count = 0;  //   as positions within the path
    bool from_gpu = false;   // reads a cell of its tail
    bool to_gpu = false;     // writes a cell of its head
  };
  // A job that reads a cell waits until the cell's first `need` writes, in order of step, have landed.
  struct WaitingRead {
    int32_t job = 0;
    int32_t need = 0;
    int32_t next = -1;  // the cell's next reader, whose need is not smaller; -1: last
  };
  struct Write {
    int32_t cell = 0;
    int32_t place = 0;  // among the cell's writes, in order of step
  };
  struct Cell {
    int32_t first_reader = -1;
    int32_t num_writes = 0;
    int64_t first_write = 0;  // the sum of num_writes of earlier cells
  };

  std::vector<Hop> hops;
  std::vector<int32_t> next_hops;
  std::vector<int32_t> path_first;  // hops of path p: path_first[p]..path_first[p+1)
  bool single_hop = true;           // every path is one link

  std::vector<int64_t> unit_bytes;
  std::vector<int32_t> unit_path, unit_message, unit_first_job;
  std::vector<int32_t> job_unit;
  std::vector<int32_t> job_missing;      // number of inputs and reads that a job waits for
  std::vector<int32_t> job_first_write;  // writes of job j: job_first_write[j]..[j+1)
  std::vector<Write> writes;
  std::vector<WaitingRead> readers;
  std::vector<Cell> cells;

  std::vector<int32_t> transfer_first_unit;  // by transfer; its chunks are consecutive units, or one unit
  bool unit_per_chunk = true;
  int32_t num_messages = 0;
  int32_t num_units() const { return static_cast<int32_t>(unit_path.size()); }
  int32_t num_jobs() const { return static_cast<int32_t>(job_unit.size()); }
  // Returns the unit of the transfer's i-th chunk.
  int32_t UnitOf(int64_t transfer, int32_t i) const {
    return transfer_first_unit[static_cast<size_t>(transfer)] + (unit_per_chunk ? i : 0);
  }
  const Hop& HopOf(int32_t job) const {
    const int32_t unit = job_unit[job];
    return hops[path_first[unit_path[unit]] + (job - unit_first_job[unit])];
  }
};

// The part of a compressed schedule that is simulated in place of its plain form. All translates of a
// transfer happen at the same time, so the columns are enough. Each link stands for its orbit and is replaced
// by its representative. Transfers over paths that are translates of each other form one message.
struct Quotient {
  std::vector<int32_t> path_class;           // by path; equal for translates, dense from 0
  std::vector<int32_t> link_representative;  // by link
  int64_t copies = 1;                        // number of translates of each transfer
};
// Returns the quotient of a plain schedule, in which every path and link stands for itself.
Quotient NoTranslates(const Schedule& schedule, int32_t num_links);

// The data that a rank may send before anything has arrived: the data that the collective says it holds, or
// any data, for a schedule that is played backwards.
enum class FromTheStart : uint8_t { kWhatIsHeld, kAnything };

// Returns the model. Requires: a normalized schedule. Linear in transfers × chunks each moves × links of a
// path.
SimulationModel BuildSimulationModel(const Schedule& schedule, const Collective& collective,
                                     const CollectiveSizes& sizes, const Topology& topology, TimeModel model,
                                     const Quotient& quotient,
                                     FromTheStart from_start = FromTheStart::kWhatIsHeld);

}  // namespace xccl
